//! `prony new`: files to start from, which run at once. It asks nothing, and overwrites nothing.

mod ci;
mod experiment;
mod files;
mod subject;
mod subjects;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use crate::cause::CannotWrite;
use crate::lines::wrapped;
use crate::{Ending, Streams};
use ci::CiWords;
use experiment::{ExperimentWords, LoadWords};
use subject::SubjectWords;
use subjects::SubjectsWords;

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
    /// A subject: a small server in Go, JavaScript, Python or Rust that passes `prony check`
    Subject(SubjectWords),
    /// The subjects and experiments that come with Prony, to be changed
    Subjects(SubjectsWords),
    /// An experiment of latency at given rates
    Load(LoadWords),
    /// A CI job that compares a change with its base
    Ci(CiWords),
}

/// Runs `prony new`.
pub fn run(words: &NewWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let files = match &words.what {
        New::Experiment(words) => experiment::files(words)?,
        New::Load(words) => experiment::load(words)?,
        New::Subject(words) => subject::files(words)?,
        New::Ci(words) => ci::files(words)?,
        New::Subjects(words) => return subjects::write_all(words, streams),
    };
    refuse_any(files.files.iter().map(|(path, ..)| path.as_path()))?;
    for (path, text, is_program) in &files.files {
        write(path, text.as_bytes(), *is_program)?;
        writeln!(streams.out, "wrote {}", path.display())?;
    }
    for next in &files.next {
        writeln!(streams.out, "{}", wrapped("next: ", 6, next))?;
    }
    Ok(Ending::Done)
}

/// Refuses paths of which one is there.
fn refuse_any<'a>(mut paths: impl Iterator<Item = &'a Path>) -> anyhow::Result<()> {
    match paths.find(|path| path.symlink_metadata().is_ok()) {
        Some(there) => bail!(
            "{} already exists, and nothing is overwritten: remove it, or give another name",
            there.display()
        ),
        None => Ok(()),
    }
}

fn write(path: &Path, bytes: &[u8], is_program: bool) -> anyhow::Result<()> {
    let written = crate::files::create(path, is_program)?.write_all(bytes);
    written.with_context(CannotWrite::at(path))
}
