//! HdrHistogram's formats of a load: the text of percentiles, and the log of intervals.

use std::time::SystemTime;

use prony_load::{IntervalLog, Latencies, LoadInterval, LoadSpec, percentiles_text};

use super::output::{FinishedLoad, LinesFile, LoadOutput};
use crate::load::summary;

/// The percentiles of all seconds together.
pub struct Percentiles {
    file: LinesFile,
    all: Latencies,
}

impl Percentiles {
    /// For `file`.
    pub fn new(file: LinesFile) -> Percentiles {
        Percentiles {
            file,
            all: Latencies::default(),
        }
    }
}

impl LoadOutput for Percentiles {
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()> {
        self.all.add(&interval.latency);
        Ok(())
    }

    fn finish(&mut self, _: &FinishedLoad<'_>) -> anyhow::Result<()> {
        self.file.write(&percentiles_text(&self.all))
    }
}

/// The latencies of each second.
pub struct HdrLog {
    file: LinesFile,
    log: IntervalLog,
    /// Until it is written, with the first line: a run that comes to nothing leaves no file.
    head: Option<String>,
}

impl HdrLog {
    /// For `file`. The start that its head has is now, a little before that of the window.
    pub fn new(file: LinesFile, spec: &LoadSpec) -> HdrLog {
        let about = format!("prony load: {}", summary::heading(spec).replace('\n', " "));
        let (log, head) = IntervalLog::new(SystemTime::now(), &about);
        let head = Some(head);
        HdrLog { file, log, head }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        match self.head.take() {
            Some(head) => self.file.write(&head),
            None => Ok(()),
        }
    }
}

impl LoadOutput for HdrLog {
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()> {
        let line = self.log.line(interval)?;
        self.begin()?;
        self.file.write(&line)
    }

    fn finish(&mut self, _: &FinishedLoad<'_>) -> anyhow::Result<()> {
        self.begin()
    }
}
