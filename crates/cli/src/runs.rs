//! Run directories as things that take room: which there are, how old and how large they are.
//!
//! Not for: what is in them (`prony report`), or whether they are whole (`prony verify`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use prony_base::Untrusted;
use prony_lab::store;
use prony_record::layout;
use serde::Serialize;

/// Entries of a folder that are looked at, and those of one run whose sizes are added up, at the most.
const ENTRIES_MAX: usize = 1_000_000;

/// A run directory.
#[derive(Clone, Debug, Serialize)]
pub struct RunDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// When it began, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The size of its files.
    pub bytes: u64,
    /// Title of its experiment.
    pub title: Untrusted,
    /// Trials that have ended.
    pub trials: usize,
}

impl RunDirectory {
    /// Reads what is in `path`. Errors: it is no run directory, or is damaged.
    pub fn read(path: &Path) -> anyhow::Result<RunDirectory> {
        let stored = store::read(path)?;
        Ok(RunDirectory {
            path: path.to_owned(),
            started_unix_ms: stored.environment.started_unix_ms,
            bytes: size(path).with_context(|| path.display().to_string())?,
            title: stored.plan.title,
            trials: stored.trials.len(),
        })
    }

    /// When it began: `2026-11-24 01:02 UTC`.
    pub fn date(&self) -> String {
        prony_report::moment(self.started_unix_ms)
    }
}

/// The run directories in `folder`, the oldest first. What is in it beside them is passed over. Errors: it cannot be read.
pub fn directories(folder: &Path) -> anyhow::Result<Vec<RunDirectory>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries
        .flatten()
        .take(ENTRIES_MAX)
        .map(|entry| entry.path());
    let of_run = |path: &PathBuf| path.join(layout::PLAN).is_file() && !path.is_symlink();
    let mut all: Vec<RunDirectory> = paths
        .filter(of_run)
        .filter_map(|path| RunDirectory::read(&path).ok())
        .collect();
    all.sort_by(|a, b| (a.started_unix_ms, &a.path).cmp(&(b.started_unix_ms, &b.path)));
    Ok(all)
}

/// Bytes of the files at `path` and below it; links are not followed.
pub fn size(path: &Path) -> io::Result<u64> {
    let (mut bytes, mut seen) = (0_u64, 0);
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        seen += 1;
        if seen > ENTRIES_MAX {
            return Err(io::Error::other(format!("more than {ENTRIES_MAX} files")));
        }
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else {
            bytes = bytes.saturating_add(meta.len());
        }
    }
    Ok(bytes)
}
