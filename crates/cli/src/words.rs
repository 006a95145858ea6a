//! The words of the command line, as they are typed: nothing here looks at the
//! machine, a file or the environment.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use prony_base::Nanos;
use prony_bench::{Payload, Work};

use crate::bundle::words::{BundleWords, ReproduceWords};
use crate::check::CheckWords;
use crate::clean::CleanWords;
use crate::compare::words::CompareWords;
use crate::completions::{CompletionsWords, ManWords};
use crate::doctor::DoctorWords;
use crate::fetch::words::FetchWords;
use crate::home::Home;
use crate::host::HostWords;
use crate::list::ListWords;
use crate::load::words::LoadWords;
use crate::log::words::LogWords;
use crate::lua::LuaWords;
use crate::new::NewWords;
use crate::serve::ServeOptions;
use crate::verify::words::VerifyWords;
use prony_base::typed::{duration, share, size};
use prony_lab::experiment::{BLOCKS, BUDGET, DURATION, VISITS};

/// A laboratory for the performance of HTTP servers, clients and network I/O.
#[derive(Debug, Parser)]
#[command(name = "prony", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done and valid; 1 a check or a request failed, or the machine could not do it (a full disk); \
2 wrong usage or a bad file; 3 a measurement that the answer rests on is invalid; 130 interrupted."
)]
pub struct Words {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Drive one URL and report what was measured (takes wrk's flags)
    Load(LoadWords),
    /// Run an experiment and write its document
    Run(RunWords),
    /// Render the document of a run directory again
    Report(ReportWords),
    /// Compare two runs, or two commands in turns: what differs, by how much, how sure
    Compare(CompareWords),
    /// Keep a dated log of an experiment's runs
    Log(LogWords),
    /// Check that a run is whole, and that figures in prose are what it says
    Verify(VerifyWords),
    /// Pack a run into one file that can be handed on: records, experiment, sources
    Bundle(BundleWords),
    /// Run the experiment of a bundle here, and tell which of its claims held
    Reproduce(ReproduceWords),
    /// Sum up logs of per-second counts: mean and deviation over seconds
    Stats(StatsWords),
    /// Explain a finding, such as P003, at length
    Explain(ExplainWords),
    /// Find out what of this machine spoils measurements, and what mends it
    Doctor(DoctorWords),
    /// Write files to start from: an experiment, a subject, a job of CI
    New(NewWords),
    /// Check that subjects do what they must, without measuring
    Check(CheckWords),
    /// List experiments, subjects and runs
    List(ListWords),
    /// Remove runs and builds that are not needed any more
    Clean(CleanWords),
    /// Measure one thing by itself: a work of the runtime, strategies of I/O, the client
    Bench(BenchWords),
    /// Fetch URLs to files, with the client library
    Fetch(FetchWords),
    /// Serve known answers: the reference server
    Serve(ServeOptions),
    /// Host a web application in Lua
    Host(HostWords),
    /// Run a Lua file with the host's framework at hand: tests of an application, for one
    Lua(LuaWords),
    /// Print completions for a shell
    Completions(CompletionsWords),
    /// Manual pages, a file for each command
    #[command(name = "__man", hide = true)]
    Man(ManWords),
    /// The names of the subjects that are here, for completions
    #[command(name = "__names", hide = true)]
    Names,
    /// The generator process of a trial: a LoadSpec on standard input, events on standard output
    #[command(name = "__generate", hide = true)]
    Generate,
    /// The first process of a trial: an order on standard input, what happened on standard output
    #[command(name = "__supervise", hide = true)]
    Supervise,
    /// A worker of a host: its supervisor at the other end of standard input
    #[command(name = "__host-worker", hide = true)]
    HostWorker,
}

/// `prony stats`
#[derive(Debug, Args)]
#[command(
    after_help = "A log has a header, which is skipped, and then a line for each second: `… MILLISECONDSms: COUNT …`, \
such as `second 1 1000ms: 270262 requests, 0 failed`; `prony load --seconds FILE` writes one."
)]
pub struct StatsWords {
    /// Logs; each is a row
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Seconds at the start of each log that are left out
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub warmup: usize,
    /// Add the logs line by line: instances that ran at the same time are one row
    #[arg(long)]
    pub combine: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The word of who owns what load goes to.
pub const OWNED: &str = "--yes-i-own-this-host";

/// `prony run`
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Leaves a run directory with plan.json, environment.json, trials.jsonl, histograms/, logs/, \
document.md with appendix.md and pictures/, and index.html. Prints the answer, and the paths of document.md and index.html."
)]
pub struct RunWords {
    /// The experiment, a TOML file such as experiments/ping.toml
    pub experiment: PathBuf,
    /// A short look: fewer cells and blocks, no interval and no ranking claimed
    #[arg(long)]
    pub quick: bool,
    /// Only cells whose subject or id holds this text or matches this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Interleaved rounds over all cells, instead of the experiment's
    #[arg(long, value_name = "N", value_parser = blocks())]
    pub blocks: Option<u32>,
    /// Measured window of each trial, instead of the experiment's: 500ms, 10s, 2m, 1h
    #[arg(long, value_name = "T", value_parser = window)]
    pub duration: Option<Nanos>,
    /// Keep the servers of a workload alive together and measure them in turns of this length, the others stopped: 200ms; off
    /// [default: 200ms with --budget and --precision, else off]
    #[arg(long, value_name = "T", value_parser = visits, conflicts_with = "resume")]
    pub visits: Option<Nanos>,
    /// Spend this long (builds apart) on the narrowest intervals: a pilot chooses blocks and windows: 5m, 20m, 1h
    #[arg(long, value_name = "T", value_parser = budget, conflicts_with_all = ["quick", "blocks", "duration", "resume", "dry_run"])]
    pub budget: Option<Nanos>,
    /// Take as long as it takes to tell differences from this on: a pilot chooses blocks and windows: 2%, 0.5%
    #[arg(long, value_name = "PART", value_parser = share::parse_positive, conflicts_with_all = ["budget", "quick", "blocks", "duration",
        "resume", "dry_run"])]
    pub precision: Option<f64>,
    /// Profile each subject once more after all blocks: CPU samples as a flame graph, system calls, switches; in no figure
    #[arg(long)]
    pub profile: bool,
    /// Seed of everything random in the run, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run directory [default: runs/EXPERIMENT-NUMBER]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Go on with the run in this directory; trials that have ended are kept
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Say what would be run, for how long, and what is missing here; build, start and write nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Print the figures as JSON instead of the paths of the documents; with --dry-run, the plan
    #[arg(long)]
    pub json: bool,
    /// Drive servers (subjects given by url) that are neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
    /// Where subjects and builds are; `None`: where Prony's own are.
    #[arg(skip)]
    pub home: Option<Home>,
}

/// As many blocks as an experiment's file may ask for.
pub fn blocks() -> clap::builder::RangedI64ValueParser<u32> {
    let (least, most) = (*BLOCKS.start() as i64, *BLOCKS.end() as i64);
    clap::value_parser!(u32).range(least..=most)
}

/// A time that an experiment's file may give to spend.
pub fn budget(text: &str) -> Result<Nanos, String> {
    let length = duration::parse(text)?;
    match BUDGET.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is no budget: it may be from {} to {}",
            duration::typed(*BUDGET.start()),
            duration::typed(*BUDGET.end())
        )),
    }
}

/// No visits.
const OFF: &str = "off";

/// Visits that an experiment's file may ask for; zero for none.
pub fn visits(text: &str) -> Result<Nanos, String> {
    if text == OFF {
        return Ok(Nanos::ZERO);
    }
    let length = duration::parse(text)?;
    match VISITS.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is no length of a visit: it may be from {} to {}, or {OFF}",
            duration::typed(*VISITS.start()),
            duration::typed(*VISITS.end())
        )),
    }
}

/// Visits as [`visits`] reads them.
pub fn visits_typed(length: Nanos) -> String {
    match length {
        Nanos::ZERO => OFF.to_owned(),
        length => duration::typed(length),
    }
}

/// A window that an experiment's file may ask for.
pub fn window(text: &str) -> Result<Nanos, String> {
    let length = duration::parse(text)?;
    match DURATION.contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "`{text}` is no window: it may be from {} to {}",
            duration::typed(*DURATION.start()),
            duration::typed(*DURATION.end())
        )),
    }
}

impl RunWords {
    /// An experiment as it is.
    pub fn of(experiment: PathBuf) -> RunWords {
        RunWords {
            experiment,
            quick: false,
            only: Vec::new(),
            blocks: None,
            duration: None,
            visits: None,
            budget: None,
            precision: None,
            profile: false,
            seed: None,
            out: None,
            resume: None,
            dry_run: false,
            json: false,
            yes_i_own_this_host: false,
            home: None,
        }
    }

    /// The words that repeat the run, without those that only say where to write.
    pub fn command(&self) -> Vec<String> {
        let mut words = vec!["run".to_owned(), self.experiment.display().to_string()];
        words.extend(self.quick.then(|| "--quick".to_owned()));
        for only in &self.only {
            words.extend(["--only".to_owned(), only.clone()]);
        }
        if let Some(blocks) = self.blocks {
            words.extend(["--blocks".to_owned(), blocks.to_string()]);
        }
        if let Some(length) = self.duration {
            words.extend(["--duration".to_owned(), duration::typed(length)]);
        }
        if let Some(length) = self.visits {
            words.extend(["--visits".to_owned(), visits_typed(length)]);
        }
        words.extend(self.profile.then(|| "--profile".to_owned()));
        if let Some(seed) = self.seed {
            words.extend(["--seed".to_owned(), seed.to_string()]);
        }
        words.extend(self.yes_i_own_this_host.then(|| OWNED.to_owned()));
        words
    }
}

/// `prony report`
#[derive(Debug, Args)]
pub struct ReportWords {
    /// The run directory, a bundle, or a folder of documents with their run.prony, which are rendered again
    pub dir: PathBuf,
    /// Take the claims ([[published]]) of this experiment in place of the run's; they are kept in DIR/published.json
    #[allow(
        rustdoc::broken_intra_doc_links,
        reason = "the text is that of `--help`, too"
    )]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plot", "export"])]
    pub experiment: Option<PathBuf>,
    /// Of a bundle: the run directory to make of it, which is to be new or empty
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plot", "export"])]
    pub out: Option<PathBuf>,
    /// Print the figures as JSON instead of the paths of the documents
    #[arg(long)]
    pub json: bool,
    /// Print one of the pictures as SVG instead
    #[arg(long, value_name = "PICTURE", conflicts_with = "json")]
    pub plot: Option<Picture>,
    /// Print the figures in a format of other programs instead
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "plot"])]
    pub export: Option<ExportWord>,
}

/// Formats of other programs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExportWord {
    /// Comma-separated values, a row for each figure of each trial
    Long,
    /// What benchstat reads, a line for each trial
    Benchstat,
    /// JUnit's XML: a test case for each cell, which fails where it is invalid
    Junit,
}

/// The pictures of a document.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Picture {
    /// Requests a second, with ranges
    Rate,
    /// Percentiles of latency, on a logarithmic scale
    Latency,
    /// CPU time per request of subject and generator
    Cpu,
}

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
    /// How often, on each thread [default: as below]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Threads that do the whole work at the same time, each with a loop of its own
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// start: how a service comes by what it requires [default: explicit]
    #[arg(long, value_name = "HOW")]
    pub injection: Option<InjectionWord>,
    /// event: different priorities, mixed [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub priorities: Option<u32>,
    /// event: what sees each event [default: coroutine]
    #[arg(long, value_name = "WHAT")]
    pub handler: Option<HandlerWord>,
    /// event: bytes that each event carries, 0 or 32 [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = payload_bytes)]
    pub payload: Option<Payload>,
    /// coroutine: by which way the second coroutine comes to run [default: events]
    #[arg(long, value_name = "WAY")]
    pub through: Option<ThroughWord>,
    /// realtime: what no run should exceed [default: 2ms]
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
    /// Ask for one page again and again with the client library
    Client(ClientWords),
}

/// `prony bench client`
#[derive(Debug, Args)]
#[command(
    after_help = "Closed loop: on each connection the next request is sent when the last answer was read to \
its end. Requests sent = answered in time + failed + in flight at the end; those in flight are let come \
to their end, so that the server has seen as many.\nExit code 1: a request failed; 3: none was answered."
)]
pub struct ClientWords {
    /// What each request gets: http://HOST:PORT/PATH
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
    /// Ask a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}

/// `prony bench io`
#[derive(Debug, Args)]
#[command(
    after_help = "A download ends with its last byte, or with the connection where the server gives no length. \
An answer other than 200, a chunked one, one of another length, and whatever the system refuses, fail \
the download by name; the others go on. docs/io-strategies.md defines every figure.\n\
Exit code 1: a download failed."
)]
pub struct IoWords {
    /// The server's address, IPv4 or IPv6
    pub address: IpAddr,
    /// Its port
    pub port: u16,
    /// How the program learns that bytes are there, and takes them
    #[arg(short, long, value_name = "NAME", default_value = "poll")]
    pub strategy: StrategyWord,
    /// Connections at once, each for one download [default: NO_CONNECTIONS, else 100]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Option<u32>,
    /// Runs, one after the other [default: ITERATIONS, else 1; the original's was 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,
    /// Length that the payload must have [default: TEST_PAYLOAD in MiB, else what the server says;
    /// the original's was 200MiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub payload_bytes: Option<u64>,
    /// Most bytes that one receive takes; with --vectored, into each buffer (the original: 4MiB) [default:
    /// 64KiB; ring: 1MiB]
    #[arg(short, long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub buffer: Option<u64>,
    /// poll, epoll: one buffer for all connections, or one for each as in the original [default: shared]
    #[arg(long, value_name = "WHOSE")]
    pub buffers: Option<BuffersWord>,
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
    /// Version of HTTP that is asked in; the original's is 1.0
    #[arg(long, value_name = "VERSION", default_value = "1.1")]
    pub http: HttpWord,
    /// What is asked for
    #[arg(long, value_name = "PATH", default_value = "/testpayload")]
    pub path: String,
    /// Longest that nothing may happen on a connection
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub timeout: Nanos,
    /// Do not look at this process's memory while it runs
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
    /// Ask a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}

/// How a program learns that bytes are there.
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

/// How a service comes by what it requires.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum InjectionWord {
    /// It registers what it requires and is told when that comes and goes
    Explicit,
    /// It is made with what it requires
    Constructor,
}

/// What sees the events of a work.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum HandlerWord {
    /// A coroutine is made of each
    Coroutine,
    /// A function is called with each
    Plain,
    /// Nobody; the queue counts them
    None,
}

/// By which way a coroutine that resumes another comes to run.
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
    let mut help = String::from("Works, with how often they are done unless -n says:\n");
    for work in Work::ALL {
        let (name, count, summary) = (work.name(), work.count(), work.summary());
        help.push_str(&format!("  {name:<11} {count:>9}  {summary}\n"));
    }
    help.push_str(
        "\nThe time is from the making of the first loop to the end of the last one; the peak memory is \
this process's.\nExit code 1: the work was not done as it should have been.",
    );
    help
}

/// `prony explain`
#[derive(Debug, Args)]
pub struct ExplainWords {
    /// The code of a finding; without one, all codes are listed
    pub code: Option<String>,
}
