//! The words of the command line, as they are typed: nothing here looks at the
//! machine, a file or the environment.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use prony_base::Nanos;

use crate::duration;

/// A laboratory for the performance of HTTP servers, clients and network I/O.
#[derive(Debug, Parser)]
#[command(
    name = "prony",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 done and valid; 1 a check failed; 2 wrong usage or a bad file; \
3 a measurement that the answer rests on is invalid; 130 interrupted."
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
    /// The generator process of a trial: a LoadSpec on standard input, events on standard output
    #[command(name = "__generate", hide = true)]
    Generate,
    /// The first process of a trial: an order on standard input, what happened on standard output
    #[command(name = "__supervise", hide = true)]
    Supervise,
}

/// `prony load`
#[derive(Debug, Args)]
#[command(
    after_help = "Closed loop: on each connection the next request starts as soon as the last one is \
answered. Every request is accounted for: sent = completed + failed by kind + in flight at the end."
)]
pub struct LoadWords {
    /// What to drive: http://HOST:PORT/PATH
    pub url: String,
    /// Connections to keep open, in all
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Threads to use, one event loop each
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// How long to measure: 500ms, 10s, 2m, 1h [default: 10s; with -n: until all are answered]
    #[arg(short, long, value_name = "T", value_parser = duration::parse_positive)]
    pub duration: Option<Nanos>,
    /// End after this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
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
    /// Print more of the latency distribution
    #[arg(long)]
    pub latency: bool,
    /// Count a request as failed when its answer takes longer than this; also bounds connecting
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub timeout: Nanos,
    /// Write the report as JSON to a file, or to standard output for `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Drive a server that is neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
}
