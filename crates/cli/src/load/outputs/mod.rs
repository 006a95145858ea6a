//! What `prony load` writes beside its summary: the registry of its outputs.
//!
//! An output is a type that implements [`LoadOutput`] and a line in [`Outputs::open`]. Files are made, and ports bound, before the run, so
//! that one that cannot be costs no run. One that fails later is left alone from then on; the run goes on, and all else is written.

mod hdr;
mod json_lines;
mod metrics;
mod output;
mod page;
pub mod words;

use std::io::Write;

use prony_load::{LoadInterval, LoadSpec};

use output::{LinesFile, LoadOutput};
use words::OutputWords;

pub use json_lines::WholeReport;
pub use output::FinishedLoad;

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
