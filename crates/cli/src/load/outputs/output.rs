//! The interface of an output of a load, and the file that most of them write.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use prony_load::{LoadInterval, LoadResult, LoadSpec};
use prony_record::RequirementOutcome;

use crate::cause::CannotWrite;

/// A run that has ended.
pub struct FinishedLoad<'a> {
    /// The specification of the run.
    pub spec: &'a LoadSpec,
    /// The measured result.
    pub outcome: &'a LoadResult,
    /// The outcomes of the requirements.
    pub requirements: &'a [RequirementOutcome],
    /// Why it ended before its time.
    pub stopped: Option<&'a str>,
    /// Where its script failed, which ended it unless that was in `done`.
    pub script_failed: Option<&'a str>,
}

/// One output of a run.
pub trait LoadOutput {
    /// A second of the run is over, or what was left of it.
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()>;

    /// The run has ended; all of its intervals were given.
    fn finish(&mut self, of: &FinishedLoad<'_>) -> anyhow::Result<()>;
}

/// A file that is written to in pieces, each of which is there for readers when it is written.
///
/// Of a run that came to nothing, as where nobody listens, no empty file is left, and an older one is as it was.
pub struct LinesFile {
    path: PathBuf,
    file: File,
    /// It was not there before.
    is_new: bool,
    /// Something is written.
    is_begun: bool,
}

impl LinesFile {
    /// Opens it for writing, or makes it.
    pub fn create(path: &Path) -> anyhow::Result<LinesFile> {
        let is_new = fs::symlink_metadata(path).is_err();
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).open(path);
        Ok(LinesFile {
            path: path.to_owned(),
            file: opened.with_context(CannotWrite::at(path))?,
            is_new,
            is_begun: false,
        })
    }

    /// Adds `text`; the first takes the place of what was there.
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.begin();
        let written = written.and_then(|()| self.file.write_all(text.as_bytes()));
        written.with_context(CannotWrite::at(&self.path))
    }

    fn begin(&mut self) -> io::Result<()> {
        // Pipes and devices have no length.
        if !self.is_begun && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.is_begun = true;
        Ok(())
    }
}

impl Drop for LinesFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            // Where it cannot go, it is an empty file too many.
            let _ = fs::remove_file(&self.path);
        }
    }
}
