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
}

impl HdrLog {
    /// For `file`, which gets its head. The start that it has is now, a little before that of the window.
    pub fn new(mut file: LinesFile, spec: &LoadSpec) -> anyhow::Result<HdrLog> {
        let about = format!("prony load: {}", summary::heading(spec).replace('\n', " "));
        let (log, head) = IntervalLog::new(SystemTime::now(), &about);
        file.write(&head)?;
        Ok(HdrLog { file, log })
    }
}

impl LoadOutput for HdrLog {
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()> {
        let line = self.log.line(interval)?;
        self.file.write(&line)
    }

    fn finish(&mut self, _: &FinishedLoad<'_>) -> anyhow::Result<()> {
        Ok(())
    }
}
