//! The words of `prony load` on several requests, as they are typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_load::requests::RequestFormat;

/// Words about what is sent, where that is more than one request.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several requests, and users")]
pub struct SourceWords {
    /// Users do the steps of this file (TOML): what one takes from an answer goes into its next requests (docs/scenarios.md). -c is
    /// then how many users there are at once, -R how many arrive a second, and -n how many iterations are done. The URL is where
    /// to, without a path, and may be left out where the file has it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests_file", "order", "method", "body", "body_file", "form",
        "cookies", "think", "pipeline", "http2", "chunked", "expect_continue", "find_max", "expect_status", "expect_header",
        "expect_body", "expect_contains", "expect_regex", "expect_json", "expect_size", "expect_sha256", "expect_time"])]
    pub scenario: Option<PathBuf>,
    /// Send what this file lists: URLs, JSON lines, vegeta targets, curl commands, HAR, or an access log (docs/sources.md).
    /// The URL is then where to, without a path, and may be left out where the file names one server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "body_file", "form"])]
    pub requests_file: Option<PathBuf>,
    /// Format of that file, where it is not recognised: urls, json-lines, vegeta, curl, har, access-log
    #[arg(long, value_name = "FORMAT", requires = "requests_file", value_parser = format_word)]
    pub format: Option<RequestFormat>,
    /// Bodies that this file names may be in any regular file, not only below its folder and of 256 MiB
    #[arg(long, requires = "requests_file")]
    pub files_anywhere: bool,
    /// Order of the requests: one after the other over all connections, or at random, by weight where the file gives
    /// weights [default: in-turn; random with weights]
    #[arg(long, value_name = "ORDER")]
    pub order: Option<OrderWord>,
    /// Open loop: send the requests of an access log when they were made, at this speed: 1x, 10x, 0.5x
    #[arg(long, value_name = "SPEED", requires = "requests_file", value_parser = speed,
        conflicts_with_all = ["rate", "stages", "think", "find_max", "requests", "warmup", "order", "arrival"])]
    pub replay: Option<f64>,
    /// CSV file whose first line names columns: {NAME} in URL, headers and body is the value of a row
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Which row a request gets: the next one, from the start again after the last; the next one, until the last ends
    /// the run; or any [default: in-turn]
    #[arg(long, value_name = "ORDER", requires = "data")]
    pub data_order: Option<DataOrderWord>,
}

/// Order of several requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum OrderWord {
    /// One after the other
    InTurn,
    /// Drawn at random, by weight
    Random,
}

/// Which row of the data file a request gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum DataOrderWord {
    /// The next one; from the start again after the last
    InTurn,
    /// The next one; the run ends with the last
    Once,
    /// Any
    Random,
}

fn format_word(name: &str) -> Result<RequestFormat, String> {
    name.parse()
}

fn speed(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>();
    let usable = number.ok().filter(|speed| *speed >= 1e-3 && *speed <= 1e6);
    usable.ok_or_else(|| format!("`{text}` is no speed from 0.001x to 1000000x"))
}
