//! The words for what `prony load` writes beside its summary.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Outputs for other programs, and for looking at.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Outputs")]
pub struct OutputWords {
    /// Write a line of JSON for each second while the run goes on, and a last one with the whole report
    #[arg(long, value_name = "FILE", conflicts_with = "find_max")]
    pub json_lines: Option<PathBuf>,
    /// Write the percentiles of latency as HdrHistogram's text (.hgrm), in milliseconds
    #[arg(long, value_name = "FILE", conflicts_with = "find_max")]
    pub hgrm: Option<PathBuf>,
    /// Write the latencies of each second while the run goes on as HdrHistogram's log, version 2, in nanoseconds
    #[arg(long, value_name = "FILE", conflicts_with = "find_max")]
    pub hdr_log: Option<PathBuf>,
    /// Offer the counts of the run so far in OpenMetrics' text at http://ADDR/metrics as long as it runs; they are a second old at the
    /// most. On 127.0.0.1 it answers only who asks for that or for localhost
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "find_max")]
    pub metrics: Option<SocketAddr>,
    /// Write a page that shows the run: latency and errors over time, percentiles, a heat map; one file that needs nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "find_max")]
    pub html: Option<PathBuf>,
}
