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
    after_help = "A file is written as NAME.part and gets its name when it is whole: its length is as \
announced, its checksum right, its bytes with the disk. What breaks off stays as NAME.part only where --resume \
can go on with it. A fetch is no load: at most 64 connections at once, 6 to one host.\n\
Standard output has the body (-o -) or the objects of --json; everything else goes to standard error.\n\
Exit codes: 0 all fetched; 1 some failed; 2 wrong usage; 130 interrupted."
)]
pub struct FetchWords {
    /// What to fetch: http:// and https:// URLs
    #[arg(value_name = "URL", required_unless_present = "input_file")]
    pub urls: Vec<String>,
    /// Read URLs from a file, too, one on each line; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// Write to this file, `-` is standard output; for one URL
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["dir", "remote_name_header"])]
    pub output: Option<PathBuf>,
    /// Write into this folder, under the last part of each URL's path [default: .]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Take the name that the server gives in Content-Disposition, where it gives one
    #[arg(long, conflicts_with = "resume")]
    pub remote_name_header: bool,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Go on with NAME.part where an earlier run broke off, if the server still has the same
    #[arg(short, long, conflicts_with = "compressed")]
    pub resume: bool,
    /// What the file must hash to: sha256:HEX, or sha256:FILE of lines `HEX  NAME`; sha256 alone tells the hash.
    /// Also sha512
    #[arg(long, value_name = "ALGORITHM[:WHAT]")]
    pub checksum: Option<String>,
    /// URLs at once
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(PARALLEL_MAX)))]
    pub parallel: u32,
    /// How long a URL may take in all [default: for ever]
    #[arg(long, value_name = "T", value_parser = duration::parse_positive)]
    pub timeout: Option<Nanos>,
    /// How long a connection may take to come about: name, TCP, proxy and TLS
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration::parse_positive)]
    pub connect_timeout: Nanos,
    /// How long the first byte of an answer may take
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration::parse_positive)]
    pub first_byte_timeout: Nanos,
    /// How long nothing may come of a body that is not whole
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration::parse_positive)]
    pub stall_timeout: Nanos,
    /// Try again so often what broke or was too busy, and go on where it broke
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub retries: u32,
    /// Fail where a file has more bytes: 200MiB, 1GiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub max_bytes: Option<u64>,
    /// Take at most so many bytes a second of each file, as they come: 512KiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub limit_rate: Option<u64>,
    /// Send a header line, as `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// User and password, as USER:PASSWORD; those of a URL go first, and a header Authorization before both
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub user: Option<String>,
    /// Go through this proxy; `env` takes those that the environment names (https_proxy, no_proxy)
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
    /// Take this address for a host: HOST:PORT:ADDRESS[,ADDRESS]; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub resolve: Vec<String>,
    /// Trust the authorities in this PEM file, too
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Show servers that ask for it this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key to it, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Take whoever answers for the server: for servers on one's own machine
    #[arg(long)]
    pub danger_accept_invalid_certificates: bool,
    /// Speak HTTP/1.1 only
    #[arg(long = "http1.1", conflicts_with = "http2")]
    pub http1: bool,
    /// Speak HTTP/2 only, over http:// without asking first
    #[arg(long)]
    pub http2: bool,
    /// Follow no redirects: one is a failure
    #[arg(long, conflicts_with = "redirects")]
    pub no_redirect: bool,
    /// Follow so many redirects in a row
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=100))]
    pub redirects: u32,
    /// Ask for gzip, br or zstd on the way, and write what comes out of it. Sizes are then told twice: of the file,
    /// and of what came on the wire
    #[arg(long)]
    pub compressed: bool,
    /// Send the cookies of this file, and keep there what servers set; in the format of curl
    #[arg(long, value_name = "FILE")]
    pub cookie_file: Option<PathBuf>,
    /// Tell when each step of each URL was over
    #[arg(long)]
    pub timing: bool,
    /// Print a line of JSON for each URL to standard output
    #[arg(long)]
    pub json: bool,
    /// Say nothing but what failed
    #[arg(short, long)]
    pub quiet: bool,
}
