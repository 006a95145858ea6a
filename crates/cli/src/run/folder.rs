//! The run directory: where the user says, else `runs/EXPERIMENT-NUMBER`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::words::RunWords;
use crate::cause::CannotWrite;
use crate::paths::file_name;

/// Numbers that are tried before giving up.
const NUMBER_MAX: u32 = 9_999;

/// The directory of this run, which exists afterwards.
pub fn choose(words: &RunWords) -> anyhow::Result<PathBuf> {
    if let Some(dir) = &words.resume {
        return Ok(dir.clone());
    }
    if let Some(dir) = &words.out {
        fs::create_dir_all(dir).with_context(CannotWrite::at(dir))?;
        return Ok(dir.clone());
    }
    let stem = file_name(&words.experiment.with_extension(""));
    next_free(Path::new("runs"), &stem)
}

/// Makes the first of `STEM-001`, `STEM-002`, … that is free in `folder`.
pub fn next_free(folder: &Path, stem: &str) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder).with_context(CannotWrite::at(folder))?;
    for number in 1..=NUMBER_MAX {
        let dir = folder.join(format!("{stem}-{number:03}"));
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(CannotWrite::at(&dir));
            }
        }
    }
    bail!(
        "{} already holds {NUMBER_MAX} runs of {stem}; name a directory with --out",
        folder.display()
    )
}
