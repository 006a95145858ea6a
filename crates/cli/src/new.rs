//! `prony new`: files to start from, which run at once. It asks nothing, and overwrites nothing.

mod ci;
mod experiment;
mod files;
mod subject;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use crate::cause::CannotWrite;
use crate::lines::wrapped;
use crate::{Ending, Streams};
use ci::CiWords;
use experiment::{ExperimentWords, LoadWords};
use subject::SubjectWords;

/// `prony new`
#[derive(Debug, Args)]
pub struct NewWords {
    /// What is written.
    #[command(subcommand)]
    pub what: New,
}

/// What `prony new` writes.
#[derive(Debug, Subcommand)]
pub enum New {
    /// An experiment: one server, or two that are compared
    Experiment(ExperimentWords),
    /// A subject: a small server in a language, held to the contract
    Subject(SubjectWords),
    /// An experiment of latency at given rates
    Load(LoadWords),
    /// A job of CI that compares a change with what it is based on
    Ci(CiWords),
}

/// Runs `prony new`.
pub fn run(words: &NewWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let files = match &words.what {
        New::Experiment(words) => experiment::files(words)?,
        New::Load(words) => experiment::load(words)?,
        New::Subject(words) => subject::files(words)?,
        New::Ci(words) => ci::files(words)?,
    };
    if let Some((there, ..)) = files
        .files
        .iter()
        .find(|(path, ..)| path.symlink_metadata().is_ok())
    {
        bail!(
            "{} already exists, and nothing is overwritten: remove it, or give another name",
            there.display()
        );
    }
    for (path, text, is_program) in &files.files {
        write(path, text, *is_program)?;
        writeln!(streams.out, "wrote {}", path.display())?;
    }
    for next in &files.next {
        writeln!(streams.out, "{}", wrapped("next: ", 6, next))?;
    }
    Ok(Ending::Done)
}

fn write(path: &Path, text: &str, is_program: bool) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(CannotWrite::at(folder))?;
    }
    let mode = if is_program { 0o755 } else { 0o644 };
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let written = made.and_then(|mut file| file.write_all(text.as_bytes()));
    written
        .map_err(|error: io::Error| error)
        .with_context(CannotWrite::at(path))
}
