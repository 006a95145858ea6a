//! Where Prony's own files are: the subjects, and the cache of what was built.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Prony's own folders.
#[derive(Clone, Debug)]
pub struct Home {
    /// The folder `subjects/`.
    pub subjects: PathBuf,
    /// Where builds are kept.
    pub cache: PathBuf,
    /// The running binary.
    pub prony: PathBuf,
}

/// By what a folder is known to be Prony's.
const MARK: &str = "subjects/CONTRACT.md";

impl Home {
    /// Finds them: `PRONY_HOME` (which the launcher sets), else a folder above the
    /// binary, else one above the current folder. `PRONY_CACHE` moves the cache.
    pub fn find() -> anyhow::Result<Home> {
        let prony = env::current_exe().context("cannot find the prony binary")?;
        let named = env::var_os("PRONY_HOME").map(PathBuf::from);
        let here = env::current_dir().context("there is no current folder")?;
        let root = match named {
            Some(root) if root.join(MARK).exists() => root,
            Some(root) => bail!("PRONY_HOME is {}, which has no {MARK}", root.display()),
            None => above(&prony).or_else(|| above(&here)).unwrap_or(here),
        };
        let cache = env::var_os("PRONY_CACHE").map_or_else(|| root.join(".prony"), PathBuf::from);
        Ok(Home {
            subjects: root.join("subjects"),
            cache,
            prony,
        })
    }
}

impl Home {
    /// The folder of the experiments that come with Prony.
    pub fn experiments(&self) -> PathBuf {
        self.subjects.with_file_name("experiments")
    }
}

fn above(place: &Path) -> Option<PathBuf> {
    place
        .ancestors()
        .find(|folder| folder.join(MARK).exists())
        .map(Path::to_owned)
}
