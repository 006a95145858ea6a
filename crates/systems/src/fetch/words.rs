//! The words of `prony fetch`, as they are typed.

use std::path::PathBuf;

use clap::Args;
use prony_base::Nanos;

use prony_base::typed::duration;
use prony_base::typed::size;

/// Connections at once, over all hosts.
pub const PARALLEL_MAX: u32 = 64;
/// Connections at once to one scheme, host and port.
pub const PER_HOST_MAX: usize = 6;

/// `prony fetch`
#[derive(Debug, Args)]
#[command(
    after_help = "A file is written as NAME.part and renamed when it is complete: its length is as announced, its \
     checksum matches, and its bytes are on the disk. An incomplete NAME.part is kept only if --resume can continue \
     it. fetch is no load generator: it opens at most 64 connections at once, 6 to one host.\nThe body (-o -) and \
     the objects of --json go to standard output; everything else goes to standard error.\nExit codes: 0 all \
     fetched; 1 some failed; 2 wrong usage; 130 interrupted."
)]
pub struct FetchWords {
    /// What to fetch: http:// and https:// URLs
    #[arg(value_name = "URL", required_unless_present = "input_file")]
    pub urls: Vec<String>,
    /// Also read URLs from a file, one on each line; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// Write to this file, `-` is standard output; for one URL
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["dir", "remote_name_header"])]
    pub output: Option<PathBuf>,
    /// Write into this folder, under the last part of each URL's path [default: .]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Use the name in the server's Content-Disposition, if there is one
    #[arg(long, conflicts_with = "resume")]
    pub remote_name_header: bool,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Resume NAME.part where an earlier run stopped, if the file on the server is unchanged
    #[arg(short, long, conflicts_with = "compressed")]
    pub resume: bool,
    /// Hash that the file must have: sha256:HEX, or sha256:FILE of lines `HEX  NAME`; sha256 alone prints the hash.
    /// Also sha512
    #[arg(long, value_name = "ALGORITHM[:WHAT]")]
    pub checksum: Option<String>,
    /// URLs at once
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(PARALLEL_MAX)))]
    pub parallel: u32,
    /// How long a URL may take in all [default: for ever]
    #[arg(long, value_name = "T", value_parser = duration::parse_positive)]
    pub timeout: Option<Nanos>,
    /// How long a connection may take to open: name, TCP, proxy and TLS
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub connect_timeout: Nanos,
    /// How long the first byte of an answer may take
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration::parse_positive)]
    pub first_byte_timeout: Nanos,
    /// How long an incomplete body may make no progress
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration::parse_positive)]
    pub stall_timeout: Nanos,
    /// Retries of a URL after a broken connection or a busy server; each continues where the last one stopped
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub retries: u32,
    /// Fail if a file is larger: 200MiB, 1GiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub max_bytes: Option<u64>,
    /// Limit each file to this many bytes a second, before decoding: 512KiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub limit_rate: Option<u64>,
    /// Send a header line, as `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// User and password, as USER:PASSWORD; those of a URL take precedence, and an Authorization header over both
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub user: Option<String>,
    /// Use this proxy; `env` uses those of the environment (https_proxy, no_proxy)
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
    /// Use this address for a host: HOST:PORT:ADDRESS[,ADDRESS]; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub resolve: Vec<String>,
    /// Also trust the authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Client certificate for servers that request one, a PEM file
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Accept any certificate: for servers on your own machine
    #[arg(long)]
    pub danger_accept_invalid_certificates: bool,
    /// Use HTTP/1.1 only
    #[arg(long = "http1.1", conflicts_with = "http2")]
    pub http1: bool,
    /// Use HTTP/2 only; over http:// with prior knowledge
    #[arg(long)]
    pub http2: bool,
    /// Follow no redirects: one is a failure
    #[arg(long, conflicts_with = "redirects")]
    pub no_redirect: bool,
    /// Follow at most this many redirects in a row
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=100))]
    pub redirects: u32,
    /// Accept gzip, br or zstd, and write the decoded content. Two sizes are then reported: of the file, and on the
    /// wire
    #[arg(long)]
    pub compressed: bool,
    /// Send the cookies of this file, and store there those that servers set; in curl's format
    #[arg(long, value_name = "FILE")]
    pub cookie_file: Option<PathBuf>,
    /// Print when each step of each URL ended
    #[arg(long)]
    pub timing: bool,
    /// Print a line of JSON for each URL to standard output
    #[arg(long)]
    pub json: bool,
    /// Print only failures
    #[arg(short, long)]
    pub quiet: bool,
}
