//! The registry of the outputs of `prony load` beside its summary.
//!
//! An output is a type that implements [`LoadOutput`] in a file of its own, and here its flag in [`OutputWords`] and what that opens in
//! [`Outputs::open`]. Files are made, and ports bound, before the run, so that one that cannot be costs no run. One that fails later is left alone from then on; the run goes on, and all else is written.

mod hdr;
mod json_lines;
mod metrics;
mod output;
mod page;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use prony_load::{LoadInterval, LoadSpec};

use output::{LinesFile, LoadOutput};

pub use json_lines::WholeReport;
pub use output::FinishedLoad;

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

/// These words by their fields: what looks at single requests refuses them.
pub const OUTPUT_FLAGS: [&str; 5] = ["json_lines", "hgrm", "hdr_log", "metrics", "html"];

/// All outputs of a run.
#[derive(Default)]
pub struct Outputs {
    /// Those that have not failed.
    all: Vec<Box<dyn LoadOutput>>,
    failures: Vec<anyhow::Error>,
}

impl Outputs {
    /// Those that `words` ask for. An error: one of them cannot be.
    pub fn open(
        words: &OutputWords,
        spec: &LoadSpec,
        err: &mut dyn Write,
    ) -> anyhow::Result<Outputs> {
        let mut all: Vec<Box<dyn LoadOutput>> = Vec::new();
        if let Some(file) = &words.json_lines {
            let file = LinesFile::create(file)?;
            all.push(Box::new(json_lines::JsonLines::new(file, spec)));
        }
        if let Some(file) = &words.hgrm {
            all.push(Box::new(hdr::Percentiles::new(LinesFile::create(file)?)));
        }
        if let Some(file) = &words.hdr_log {
            all.push(Box::new(hdr::HdrLog::new(LinesFile::create(file)?, spec)));
        }
        if let Some(address) = words.metrics {
            let metrics = metrics::Metrics::bind(address)?;
            writeln!(err, "prony: metrics at http://{}/metrics", metrics.address)?;
            all.push(Box::new(metrics));
        }
        if let Some(file) = &words.html {
            all.push(Box::new(page::Page::new(LinesFile::create(file)?)));
        }
        Ok(Outputs {
            all,
            failures: Vec::new(),
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.failures.is_empty()
    }

    /// Gives a second of the run to each.
    pub fn interval(&mut self, interval: &LoadInterval) {
        self.each(|output| output.interval(interval));
    }

    /// Ends each. What failed of any output.
    pub fn finish(mut self, of: &FinishedLoad<'_>) -> Vec<anyhow::Error> {
        self.each(|output| output.finish(of));
        self.failures
    }

    fn each(&mut self, mut give: impl FnMut(&mut dyn LoadOutput) -> anyhow::Result<()>) {
        let failures = &mut self.failures;
        self.all.retain_mut(|output| match give(output.as_mut()) {
            Ok(()) => true,
            Err(error) => {
                failures.push(error);
                false
            }
        });
    }
}
