//! The words of `prony load`, as they are typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::{duration, rate};
use prony_load::Objective;

/// Threads at the most.
const THREADS_MAX: i64 = 1_024;

/// `prony load`
#[derive(Debug, Args)]
#[command(
    after_help = "Without a rate it is a closed loop: on each connection the next request starts as soon as the last \
     one is answered, or after --think. With --rate or --stages it is an open loop: requests start by a schedule, \
     whatever the answers do; one for which no connection is idle waits in a queue, and latency counts from its \
     scheduled start. Every request is accounted for: sent = completed + failed by kind + in flight at the end; \
     scheduled = sent + still waiting + dropped.\nExit codes: 0 answers came, and none failed; 1 some requests \
     failed, had an unexpected status or were never sent for want of a connection, or --find-max found no rate that \
     keeps its objective; 2 wrong usage; 3 no answer, not all of -n were sent, or the generator could not keep the \
     rate; 130 interrupted."
)]
pub struct LoadWords {
    /// What to drive: http://HOST:PORT/PATH
    pub url: String,
    /// Connections to keep open, in all
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = connections)]
    pub connections: u32,
    /// Threads to use, one event loop each
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=THREADS_MAX))]
    pub threads: u32,
    /// How long to measure: 500ms, 10s, 2m, 1h [default: 10s; with -n: until all are answered]
    #[arg(short, long, value_name = "T", value_parser = duration::parse_positive)]
    pub duration: Option<Nanos>,
    /// Stop after this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = positive)]
    pub requests: Option<u64>,
    /// Open loop: start this many requests a second, over all connections: 1000, 0.5, 2.5k
    #[arg(short = 'R', long, value_name = "N", value_parser = rate::parse)]
    pub rate: Option<f64>,
    /// How --rate or --stages spaces requests: evenly, or as independent users would [default: constant]
    #[arg(long, value_name = "HOW")]
    pub arrival: Option<ArrivalWord>,
    /// Open loop with a rate that goes in straight lines from point to point: 0:100,30s:1000,60s:1000; times
    /// count from the start, warm-up included
    #[arg(long, value_name = "TIME:RATE,…", value_parser = stages)]
    pub stages: Option<Stages>,
    /// Look for the highest rate that keeps this: p99<10ms, p99.9<50ms, mean<2ms, max<1s. Steps of -d (default 2s) in
    /// an open loop, each begun drained, in six rounds: their median with its interval
    #[arg(long, value_name = "OBJECTIVE", value_parser = objective, conflicts_with_all = ["rate", "stages", "think", "requests", "warmup",
        "latency_from", "latency", "seconds", "trace", "allow_failures"])]
    pub find_max: Option<Objective>,
    /// Closed loop: wait this long between an answer and the connection's next request
    #[arg(long, value_name = "T", value_parser = duration::parse_positive)]
    pub think: Option<Nanos>,
    /// Load for this long before measuring
    #[arg(long, value_name = "T", value_parser = duration::parse)]
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
    /// Never sleep while waiting: requests start more punctually, and each thread keeps a core busy
    #[arg(long)]
    pub spin: bool,
    /// Source of arrival times: this program, the kernel too for one connection of each thread, or the kernel for all
    #[arg(long, value_name = "WHO", default_value = "user")]
    pub timestamps: TimestampsWord,
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
    #[arg(long)]
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
    /// Exit with 0 although requests failed, if any was answered: for callers that read the report
    #[arg(long)]
    pub allow_failures: bool,
    /// Drive a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}

/// How arrivals of a rate are spaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ArrivalWord {
    /// Evenly
    Constant,
    /// By a Poisson process: gaps are random and independent
    Poisson,
}

/// What latency counts from.
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

/// Points of time and rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages(pub Vec<(Nanos, f64)>);

fn stages(text: &str) -> Result<Stages, String> {
    rate::stages(text).map(Stages)
}

fn objective(text: &str) -> Result<Objective, String> {
    text.parse()
}

fn positive(text: &str) -> Result<u64, String> {
    match rate::count(text)? {
        0 => Err("it must be at least 1".to_owned()),
        count => Ok(count),
    }
}

fn connections(text: &str) -> Result<u32, String> {
    let count = positive(text)?;
    u32::try_from(count).map_err(|_| format!("`{text}` is more connections than there can be"))
}
