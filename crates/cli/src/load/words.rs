//! The words of `prony load`, as they are typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::duration;

use super::agents::AgentWords;
use super::answer_words::AnswerWords;
use super::expect::ExpectWords;
use super::form::FormWords;
use super::identity::IdentityWords;
use super::outputs::{OUTPUT_FLAGS, OutputWords};
use super::pace::PaceWords;
use super::require::JudgedWords;
use super::script::ScriptWords;
use super::source_words::SourceWords;
use super::way::WayWords;
use crate::spin::Spin;
use crate::tls::TlsVersionWord;
use crate::typed::{connections, positive};

/// Threads at the most.
const THREADS_MAX: u32 = 1_024;
/// Exchanges that `--debug` shows at the most.
const EXCHANGES_MAX: u32 = 1_000;
/// `prony load`
#[derive(Debug, Args)]
#[command(
    after_help = "Without a rate it is a closed loop: on each connection the next request starts as soon as the last \
     one is answered, or after --think. With --rate or --stages it is an open loop: requests start by a schedule, \
     whatever the answers do; one for which no connection is idle waits in a queue, and latency counts from its \
     scheduled start. Every request is accounted for: sent = completed + failed by kind + in flight at the end; \
     scheduled = sent + still waiting + dropped. A latency above a limit is no failure unless --require says \
     so.\nExit codes: 0 answers came, and none failed; 1 some requests \
     failed, had an unexpected status or were never sent for want of a connection, a --require was missed, \
     --stop-on ended the run, or --find-max found no rate that keeps its objective; 2 wrong usage; 3 no answer, not all of -n were sent, server or generator could not keep the \
     rate, or an agent was lost or late; 130 interrupted."
)]
pub struct LoadWords {
    /// What to drive: http://HOST:PORT/PATH, or https:// for TLS; several paths of one server are requested in turn
    #[arg(value_name = "URL", required_unless_present_any = ["requests_file", "scenario"])]
    pub urls: Vec<String>,
    /// Take the command of another tool in place of ours: 'wrk -t4 -c100 -d30s URL'; also wrk2, hey, ab, oha, h2load, vegeta, fortio and curl.
    /// Ours is printed and run; flags of ours may follow
    #[arg(long, value_name = "COMMAND")]
    pub from: Option<String>,
    /// Connections to keep open, in all
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = connections, alias = "clients")]
    pub connections: u32,
    /// Threads to use, one event loop each [default: 2, on each machine; 1 with -c 1]
    #[arg(short, long, value_name = "N", value_parser = threads)]
    pub threads: Option<u32>,
    /// How long to measure: 500ms, 10s, 2m, 1h [default: 10s; with -n: until all are answered]
    #[arg(short, long, value_name = "T", value_parser = duration::parse_positive, short_alias = 'z')]
    pub duration: Option<Nanos>,
    /// Stop after this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = positive)]
    pub requests: Option<u64>,
    #[command(flatten)]
    pub pace: PaceWords,
    /// Load for this long before measuring
    #[arg(long, value_name = "T", value_parser = duration::parse, alias = "warm-up-time")]
    pub warmup: Option<Nanos>,
    /// What latency counts from [default: intended with a rate or stages, else submitted]
    #[arg(long, value_name = "WHEN")]
    pub latency_from: Option<OriginWord>,
    /// Open loop: requests that may wait for an idle connection; a further one is dropped, and counted
    /// [default: 1M]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub queue: Option<u64>,
    /// Seed of what is drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Look for answers before sleeping: for up to a time, `auto` (50us) where that pays, `off`, or `always`, as without a
    /// value: requests start more punctually, and each thread keeps a core busy
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "always", value_parser = Spin::parse)]
    pub spin: Spin,
    /// Source of arrival times: this program, the kernel too for one connection of each thread, or the kernel for all
    /// [default: user on io_uring, kernel on epoll]
    #[arg(long, value_name = "WHO")]
    pub timestamps: Option<TimestampsWord>,
    /// Add a header to the request, as `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Request method [default: GET, or POST with a body]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Body of the request
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub body: Option<String>,
    /// File with the body of the request
    #[arg(long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
    /// Wait up to 1/32 of the median latency, 50us at most, for more answers: less client CPU, but
    /// latencies up to 5% longer where the server is not the limit
    #[arg(long)]
    pub coalesce: bool,
    /// Print more of the latency distribution, what the generator added, and what a closed loop hides
    #[arg(long, short_alias = 'L')]
    pub latency: bool,
    /// Count a request as failed when its answer takes longer than this; also bounds connecting
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub timeout: Nanos,
    /// Write the report as JSON to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a line for each whole second of the run, which `prony stats` reads
    #[arg(long, value_name = "FILE")]
    pub seconds: Option<PathBuf>,
    /// Write the times of each answered request as CSV, of the first 1000000
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Follow the run on the whole screen, with keys: q ends it, + and - change a rate; a terminal that cannot be drawn on has the usual line
    #[arg(long, conflicts_with = "find_max")]
    pub live: bool,
    #[command(flatten)]
    pub script: ScriptWords,
    #[command(flatten)]
    pub debug: DebugWords,
    #[command(flatten)]
    pub judged: JudgedWords,
    #[command(flatten)]
    pub outputs: OutputWords,
    #[command(flatten)]
    pub source: SourceWords,
    #[command(flatten)]
    pub identity: IdentityWords,
    #[command(flatten)]
    pub answers: AnswerWords,
    #[command(flatten)]
    pub expect: ExpectWords,
    #[command(flatten)]
    pub way: WayWords,
    #[command(flatten)]
    pub form: FormWords,
    #[command(flatten)]
    pub tls: TlsWords,
    #[command(flatten)]
    pub agents: AgentWords,
    /// Exit with 0 although requests failed, if any was answered: for callers that read the report
    #[arg(long)]
    pub allow_failures: bool,
    /// Drive a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}

/// Words about looking at single requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Looking at requests")]
pub struct DebugWords {
    /// Print the first request as it is sent, and send nothing; of HTTP/2 its fields
    #[arg(long, conflicts_with_all = flags_of_loads())]
    pub print_request: bool,
    /// Send so many requests, one after the other, and show each with its answer and what the checks say of it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(EXCHANGES_MAX)),
        conflicts_with_all = flags_of_loads(), conflicts_with_all = ["print_request", "rate", "stages", "think", "replay", "requests", "warmup"])]
    pub debug: Option<u32>,
}

/// Flags that are about a load and not about single requests, and would be ignored without a word.
fn flags_of_loads() -> impl Iterator<Item = &'static str> {
    let first = ["scenario", "find_max", "live", "json"].into_iter();
    let last = ["seconds", "trace", "keep_failed", "require", "stop_on"];
    first.chain(OUTPUT_FLAGS).chain(last)
}

/// Words for `https://`.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "TLS, for https:// (SSLKEYLOGFILE=FILE keeps the secrets of sessions)"
)]
pub struct TlsWords {
    /// Trust what this PEM file's certificates signed, and these themselves, in place of the machine's authorities; may be
    /// repeated
    #[arg(long, value_name = "FILE")]
    pub cacert: Vec<PathBuf>,
    /// Accept any certificate: the server may be anyone
    #[arg(long, conflicts_with = "cacert")]
    pub insecure: bool,
    /// Certificate of the client as PEM, with its chain, for servers that ask for one
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its key [default: in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Speak this version of TLS only [default: the newest that the server speaks]
    #[arg(long, value_name = "VERSION")]
    pub tls_version: Option<TlsVersionWord>,
    /// Make each handshake a full one: do not resume the session of an earlier connection
    #[arg(long)]
    pub no_resumption: bool,
}

/// The moment from which latency counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum OriginWord {
    /// The scheduled start of the request
    Intended,
    /// The moment at which it was submitted to the kernel
    Submitted,
}

/// Source of arrival times.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TimestampsWord {
    /// This program, when it receives the bytes from the kernel
    User,
    /// The kernel too, for the first connection of each thread
    Probe,
    /// The kernel, for every connection
    Kernel,
}

fn threads(text: &str) -> Result<u32, String> {
    let threads = connections(text)?;
    match threads <= THREADS_MAX {
        true => Ok(threads),
        false => Err(format!("at most {THREADS_MAX}")),
    }
}
