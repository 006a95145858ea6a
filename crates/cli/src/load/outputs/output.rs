//! What an output of a load is, and the file that most of them write.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use prony_load::{LoadInterval, LoadResult, LoadSpec};
use prony_record::RequirementOutcome;

use crate::cause::CannotWrite;

/// A run that has ended.
pub struct FinishedLoad<'a> {
    /// What was to be run.
    pub spec: &'a LoadSpec,
    /// What was measured.
    pub outcome: &'a LoadResult,
    /// What came of what was required.
    pub requirements: &'a [RequirementOutcome],
    /// Why it ended before its time.
    pub stopped: Option<&'a str>,
}

/// One output of a run.
pub trait LoadOutput {
    /// A second of the run is over, or what was left of it.
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()>;

    /// The run has ended; all of its intervals were given.
    fn finish(&mut self, of: &FinishedLoad<'_>) -> anyhow::Result<()>;
}

/// A file that is written to in pieces, each of which is there for readers when it is written.
pub struct LinesFile {
    path: PathBuf,
    file: File,
}

impl LinesFile {
    /// Makes it, empty.
    pub fn create(path: &Path) -> anyhow::Result<LinesFile> {
        let file = File::create(path).with_context(CannotWrite::at(path))?;
        Ok(LinesFile {
            path: path.to_owned(),
            file,
        })
    }

    /// Adds `text`.
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.with_context(CannotWrite::at(&self.path))
    }
}
