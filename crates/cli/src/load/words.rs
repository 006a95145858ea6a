//! The words of `prony load`, as they are typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::{duration, rate};
use prony_load::Objective;

use super::answer_words::AnswerWords;
use super::expect::ExpectWords;
use super::form::FormWords;
use super::identity::IdentityWords;
use super::outputs::words::OutputWords;
use super::require::JudgedWords;
use super::script::ScriptWords;
use super::source_words::SourceWords;
use super::way;
use crate::tls::TlsVersionWord;

/// Threads at the most.
const THREADS_MAX: u32 = 1_024;
/// Exchanges that `--debug` shows at the most.
const EXCHANGES_MAX: u32 = 1_000;
/// What is of a load and not of single requests, and would be left out without a word.
const WITHOUT: [&str; WITHOUT_COUNT] = [
    "scenario",
    "find_max",
    "live",
    "json",
    "json_lines",
    "hgrm",
    "hdr_log",
    "metrics",
    "html",
    "seconds",
    "trace",
    "keep_failed",
    "require",
    "stop_on",
];
const WITHOUT_COUNT: usize = 14;

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
     --stop-on ended the run, or --find-max found no rate that keeps its objective; 2 wrong usage; 3 no answer, not all of -n were sent, or server or generator could not keep the \
     rate; 130 interrupted."
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
    /// Threads to use, one event loop each [default: 2; 1 with -c 1]
    #[arg(short, long, value_name = "N", value_parser = threads)]
    pub threads: Option<u32>,
    /// How long to measure: 500ms, 10s, 2m, 1h [default: 10s; with -n: until all are answered]
    #[arg(short, long, value_name = "T", value_parser = duration::parse_positive, short_alias = 'z')]
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
    #[arg(long, conflicts_with_all = WITHOUT)]
    pub print_request: bool,
    /// Send so many requests, one after the other, and show each with its answer and what the checks say of it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(EXCHANGES_MAX)),
        conflicts_with_all = WITHOUT, conflicts_with_all = ["print_request", "rate", "stages", "think", "replay", "requests", "warmup"])]
    pub debug: Option<u32>,
}

/// Words about connections: how long they last, where they go, where they come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct WayWords {
    /// Open another connection for each request, and say so with `Connection: close`
    #[arg(
        long,
        conflicts_with = "requests_per_connection",
        alias = "disable-keepalive"
    )]
    pub no_keepalive: bool,
    /// HTTP/1.1: send this many requests on a connection without waiting for the first one's answer
    #[arg(long, value_name = "N", value_parser = depth, conflicts_with_all = ["no_keepalive", "requests_per_connection"])]
    pub pipeline: Option<u32>,
    /// Speak HTTP/2: agreed by ALPN over https://, by prior knowledge over http://
    #[arg(long, conflicts_with_all = ["pipeline", "no_keepalive", "requests_per_connection"])]
    pub http2: bool,
    /// HTTP/2: requests that are outstanding on each connection [default: 1]
    #[arg(long, value_name = "N", value_parser = depth, requires = "http2", alias = "max-concurrent-streams")]
    pub streams: Option<u32>,
    /// Close a connection after this many answers and open another
    #[arg(long, value_name = "N", value_parser = positive)]
    pub requests_per_connection: Option<u64>,
    /// Connect to ADDR where the URL names this host and port; several addresses are used in turn
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR…]", value_parser = way::resolved)]
    pub resolve: Vec<way::ResolvedHost>,
    /// Connect to the second host and port where the URL names the first; what is sent names the first
    #[arg(long, value_name = "HOST:PORT:HOST:PORT", value_parser = way::instead)]
    pub connect_to: Vec<way::Instead>,
    /// Connect from this address of this machine; may be repeated, and is then used in turn: each has ports for some 28 k
    /// connections to one server, or as many as net.ipv4.ip_local_port_range has
    #[arg(long, value_name = "ADDR")]
    pub source: Vec<std::net::IpAddr>,
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

fn threads(text: &str) -> Result<u32, String> {
    let threads = connections(text)?;
    match threads <= THREADS_MAX {
        true => Ok(threads),
        false => Err(format!("at most {THREADS_MAX}")),
    }
}

/// Requests outstanding on a connection at the most.
const DEPTH_MAX: u32 = 1_000;

fn depth(text: &str) -> Result<u32, String> {
    let depth = connections(text)?;
    match depth <= DEPTH_MAX {
        true => Ok(depth),
        false => Err(format!("at most {DEPTH_MAX}")),
    }
}

fn connections(text: &str) -> Result<u32, String> {
    let count = positive(text)?;
    u32::try_from(count).map_err(|_| format!("`{text}` is more connections than there can be"))
}
