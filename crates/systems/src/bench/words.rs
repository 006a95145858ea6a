//! The words of `prony bench`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::{duration, size};
use prony_bench::{Payload, Work};

/// `prony bench`
#[derive(Debug, Args)]
#[command(
    after_help = bench_help(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct BenchWords {
    /// What is measured, where it is no work of the runtime.
    #[command(subcommand)]
    pub other: Option<BenchCommand>,
    /// Which work: see below
    #[arg(value_name = "NAME", required = true)]
    pub work: Option<Work>,
    /// Repetitions on each thread [default: see below]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Threads that do the whole work at the same time, each with a loop of its own
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// start: how a service gets its dependencies [default: explicit]
    #[arg(long, value_name = "HOW")]
    pub injection: Option<InjectionWord>,
    /// event: number of different priorities, mixed [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub priorities: Option<u32>,
    /// event: what handles each event [default: coroutine]
    #[arg(long, value_name = "WHAT")]
    pub handler: Option<HandlerWord>,
    /// event: bytes that each event carries, 0 or 32 [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = payload_bytes)]
    pub payload: Option<Payload>,
    /// coroutine: how the second coroutine is started [default: events]
    #[arg(long, value_name = "WAY")]
    pub through: Option<ThroughWord>,
    /// realtime: deadline of each run [default: 2ms]
    #[arg(long, value_name = "T", value_parser = duration::parse_positive)]
    pub deadline: Option<Nanos>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What `prony bench` measures beside works of the runtime.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Download one payload over many connections at once, by one strategy of I/O
    Io(IoWords),
    /// Request one page in a closed loop with the client library
    Client(ClientWords),
}

/// `prony bench client`
#[derive(Debug, Args)]
#[command(
    after_help = "Closed loop: on each connection the next request is sent when the last answer has been read to its \
     end. Requests sent = answered in time + failed + in flight at the end; those in flight are completed, so that \
     the server's count agrees.\nExit code 1: a request failed; 3: none was answered."
)]
pub struct ClientWords {
    /// URL of each request: http://HOST:PORT/PATH
    pub url: String,
    /// How long requests are sent and answers counted
    #[arg(value_name = "SECONDS", value_parser = duration::parse_positive)]
    pub length: Nanos,
    /// Connections in all, over all threads
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Threads, each with an event loop and a client of its own
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Take CONNECTIONS as those of each thread, as the original does
    #[arg(long)]
    pub per_thread: bool,
    /// Count a request as failed when its answer takes longer than this
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub timeout: Nanos,
    /// Print one line of JSON; the exit status is then 0 although requests failed, if any was sent
    #[arg(long)]
    pub json: bool,
    /// Send requests to a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}

/// `prony bench io`
#[derive(Debug, Args)]
#[command(
    after_help = "A download ends with its last byte, or with the connection where the server gives no length. \
An answer other than 200, a chunked one, one of another length, and whatever the system refuses, fail \
the download by name; the others continue. `prony docs io-strategies` defines every figure.\n\
Exit code 1: a download failed."
)]
pub struct IoWords {
    /// The server's address, IPv4 or IPv6
    pub address: IpAddr,
    /// Its port
    pub port: u16,
    /// How the program waits for bytes and receives them
    #[arg(short, long, value_name = "NAME", default_value = "poll")]
    pub strategy: StrategyWord,
    /// Connections at once, each for one download [default: NO_CONNECTIONS, else 100]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Option<u32>,
    /// Runs, one after the other [default: ITERATIONS, else 1; the original's was 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,
    /// Length that the payload must have [default: TEST_PAYLOAD in MiB, else as the server announces; the original's
    /// was 200MiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub payload_bytes: Option<u64>,
    /// Most bytes of one receive; with --vectored, of each buffer (the original: 4MiB) [default: 64KiB; ring: 1MiB]
    #[arg(short, long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub buffer: Option<u64>,
    /// poll, epoll: one buffer for all connections, or one for each as in the original [default: shared]
    #[arg(long, value_name = "WHOSE")]
    pub buffers: Option<BuffersWord>,
    /// poll, epoll: read from a socket until it has nothing, as the original does, while the others wait
    #[arg(long)]
    pub drain: bool,
    /// ring: most buffers of the pool that all connections share [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ring_buffers: Option<u32>,
    /// ring: how it receives [default: multishot]
    #[arg(long, value_name = "HOW")]
    pub receive: Option<ReceiveWord>,
    /// Throw the body away in the kernel (MSG_TRUNC): its bytes are counted and not seen
    #[arg(long)]
    pub discard: bool,
    /// Never sleep while waiting: one core is busy throughout
    #[arg(long)]
    pub spin: bool,
    /// threads, poll, epoll: read into this many buffers in turn (readv) [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub vectored: Option<u32>,
    /// HTTP version of the requests; the original's is 1.0
    #[arg(long, value_name = "VERSION", default_value = "1.1")]
    pub http: HttpWord,
    /// Path to request
    #[arg(long, value_name = "PATH", default_value = "/testpayload")]
    pub path: String,
    /// Fail a connection that makes no progress for this long
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub timeout: Nanos,
    /// Do not sample this process's memory
    #[arg(long)]
    pub no_memory: bool,
    /// Run under a profiler and write where the time goes: `perf` where it is allowed, else counts of
    /// system calls by `strace -c`. The figures are slower then, and marked
    #[arg(long, value_name = "FILE", conflicts_with = "record_scheduling")]
    pub profile: Option<PathBuf>,
    /// Write what the scheduler did: `perf sched` where it is allowed, else /proc every 10 ms. The
    /// figures are slower then, and marked
    #[arg(long, value_name = "FILE")]
    pub record_scheduling: Option<PathBuf>,
    /// What this process runs under, which its output says.
    #[arg(long, hide = true, value_name = "TOOL")]
    pub under: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Send requests to a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}

/// How a program waits for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StrategyWord {
    /// A thread for each connection
    Threads,
    /// One thread and poll()
    Poll,
    /// One thread and epoll, level-triggered
    Epoll,
    /// One thread and io_uring
    Ring,
}

/// Whose a buffer is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum BuffersWord {
    /// All connections' in turn
    Shared,
    /// Each connection's own
    Own,
}

/// How the ring receives.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ReceiveWord {
    /// One submission for all bytes of a connection
    Multishot,
    /// One submission for each receive
    Oneshot,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum HttpWord {
    /// HTTP/1.0
    #[value(name = "1.0")]
    Http10,
    /// HTTP/1.1 with `Connection: close`
    #[value(name = "1.1")]
    Http11,
}

/// How a service gets its dependencies.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum InjectionWord {
    /// It registers its dependencies and is notified when they come and go
    Explicit,
    /// It is constructed with its dependencies
    Constructor,
}

/// What handles the events of a work.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum HandlerWord {
    /// A coroutine for each
    Coroutine,
    /// A function call for each
    Plain,
    /// Nothing; the queue counts them
    None,
}

/// How a coroutine that resumes another is started.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ThroughWord {
    /// An event is pushed, whose handler it is
    Events,
    /// It is spawned as a task of the loop
    Tasks,
}

fn payload_bytes(word: &str) -> Result<Payload, String> {
    match word {
        "0" => Ok(Payload::None),
        "32" => Ok(Payload::Words),
        _ => Err("an event carries 0 or 32 bytes".to_owned()),
    }
}

/// The works, for the command's help.
fn bench_help() -> String {
    let mut help = String::from("Works, with their repetitions where -n gives none:\n");
    for work in Work::ALL {
        let (name, count, summary) = (work.name(), work.count(), work.summary());
        help.push_str(&format!("  {name:<11} {count:>9}  {summary}\n"));
    }
    help.push_str(
        "\nThe time is from the creation of the first loop to the end of the last one; the peak memory is this \
         process's.\nExit code 1: the work was not done correctly.",
    );
    help
}
