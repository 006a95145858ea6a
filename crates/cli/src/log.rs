//! `prony log`: the runs of an experiment as a dated log.
//!
//! ```text
//! (revisions ──>) run directories ──> entries (kept in the history) ──> what may be said of them ──> document
//! ```

pub mod file;
pub mod history;
mod json;
mod revisions;
pub mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::counted;
use prony_lab::folder;
use prony_record::{Plan, layout};
use prony_report::log::{self, Entry, History};

use crate::cause::CannotWrite;
use crate::home::Home;
use crate::paths::file_name;
use crate::report;
use crate::run::code;
use crate::{Ending, Streams};
use history::HistoryFile;
use words::LogWords;

/// Name of the history among the run directories.
const HISTORY: &str = "history.jsonl";

/// Runs `prony log`.
pub fn run(words: &LogWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let mut words = words.clone();
    if !words.experiment.is_file() {
        let found = Home::find(streams.err)?.experiment(&words.experiment);
        let found = found.ok().filter(|found| found.path.is_file());
        let Some(found) = found else {
            bail!("{}: no such experiment", words.experiment.display());
        };
        words.experiment = PathBuf::from(found.shown);
    }
    let words = &words;
    if let Some(subject) = &words.revisions
        && let Some(ending) = revisions::measure(words, subject, streams)?
    {
        return Ok(ending);
    }
    let entries = entries(words, streams)?;
    let history = log::history(&entries);
    if let Some(document) = &words.document {
        write_document(document, &words.experiment, &history, streams)?;
    }
    tell(words, &history, streams)?;
    let newest = history.accounts.last();
    let slower = newest.is_some_and(|account| account.regressions().next().is_some());
    Ok(Ending::failed_if(slower && words.fail_on_regression))
}

/// The entries of an experiment: those of its run directories, and those whose directories are gone.
pub fn entries(words: &LogWords, streams: &mut Streams<'_>) -> anyhow::Result<Vec<Entry>> {
    let name = file_name(&words.experiment);
    let runs = run_dirs(words, &name, streams)?;
    let path = words
        .history
        .clone()
        .unwrap_or_else(|| words.runs.join(HISTORY));
    if runs.is_empty() && !path.exists() {
        bail!(
            "no run of {name} in {}; make one with: prony run {}",
            words.runs.display(),
            words.experiment.display()
        );
    }
    let older = path.with_extension("sqlite");
    if older.is_file() {
        writeln!(streams.err, "prony: {}", history::of_older(&older, &path))?;
    }
    let mut history_file = HistoryFile::open(&path, words.rebuild)?;
    let there = bring_up_to_date(&mut history_file, words, &runs, streams)?;
    history_file.save()?;
    let (entries, unreadable) = history_file.entries(&name, &there);
    for left_out in unreadable {
        writeln!(streams.err, "prony: left out: {left_out}")?;
    }
    Ok(entries)
}

/// The run directories of the experiment called `name`.
fn run_dirs(
    words: &LogWords,
    name: &str,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut dirs = Vec::new();
    if words.runs.is_dir() {
        for dir in dirs_in(&words.runs)? {
            match experiment_of(&dir) {
                Ok(other) if other == name => dirs.push(dir),
                Ok(_) => {}
                Err(error) => writeln!(streams.err, "prony: left out: {error:#}")?,
            }
        }
    }
    for dir in &words.run {
        let other = experiment_of(dir)?;
        if other != name {
            bail!("{} is a run of {other}, not of {name}", dir.display());
        }
        dirs.push(dir.clone());
    }
    Ok(dirs)
}

/// The run directories in a folder, by name.
pub fn dirs_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut dirs: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    dirs.retain(|dir| dir.join(layout::PLAN).is_file());
    dirs.sort();
    Ok(dirs)
}

/// Name of the experiment file that the run in `dir` is of.
pub fn experiment_of(dir: &Path) -> anyhow::Result<String> {
    let path = folder::inside(dir, layout::PLAN)?;
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let plan: Plan = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    Ok(file_name(Path::new(&plan.experiment)))
}

/// Reads the run directories that the history does not have as they are. Yields where those are that can be read.
fn bring_up_to_date(
    history_file: &mut HistoryFile,
    words: &LogWords,
    runs: &[PathBuf],
    streams: &mut Streams<'_>,
) -> anyhow::Result<Vec<String>> {
    // By their digests.
    let mut there: BTreeMap<String, String> = BTreeMap::new();
    for dir in runs {
        // One that cannot be read must not keep the others from being logged.
        if let Err(error) = read(dir, history_file, words, &mut there) {
            writeln!(streams.err, "prony: left out: {error:#}")?;
        }
    }
    Ok(there.into_values().collect())
}

/// Reads a run directory, where the history does not have it as it is. A copy of one that is `there` is an error.
fn read(
    dir: &Path,
    history_file: &mut HistoryFile,
    words: &LogWords,
    there: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let canonical = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    let path = canonical.to_string_lossy().into_owned();
    let (digest, stamp) = (history::digest(dir)?, history::stamp(dir)?);
    if let Some(other) = there.get(&digest).filter(|other| **other != path) {
        bail!("{path} is a copy of {other}");
    }
    there.insert(digest.clone(), path.clone());
    let name = file_name(&words.experiment);
    if !words.rebuild && history_file.has(&name, &path, &stamp) {
        return Ok(());
    }
    let (run, _) = report::read(dir)?;
    if run.trials.is_empty() {
        return Ok(());
    }
    let entry = Entry::of(&run, &file_name(&canonical));
    let entry = Entry {
        digest,
        commits: code::commits(&words.experiment, entry.measured_commit()[0]),
        ..entry
    };
    history_file.put(&name, &path, &stamp, &entry)
}

fn write_document(
    path: &Path,
    experiment: &Path,
    history: &History,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let before = file::read(path)?;
    let document = match &before {
        Some(text) => text.clone(),
        None => heading(experiment, history),
    };
    // Beside the document, in a folder of its name.
    let folder = path.with_extension("");
    let regions = log::regions(history, &file_name(&folder), &document);
    let written = log::written(&document, &regions)
        .map_err(|damaged| anyhow::anyhow!("{}:{}: {}", path.display(), damaged.line, damaged.what))
        .context("the document is left as it is")?;
    let pictures = log::pictures(history);
    if !pictures.is_empty() {
        fs::create_dir_all(&folder).with_context(CannotWrite::at(&folder))?;
    }
    for (name, _, svg) in &pictures {
        let path = folder.join(name);
        fs::write(&path, svg).with_context(CannotWrite::at(&path))?;
    }
    if before.as_deref() != Some(&written.text) {
        file::replace(path, before.as_deref(), &written.text)?;
    }
    writeln!(
        streams.err,
        "{}: {} added, {} written again, {} left out as you did",
        path.display(),
        counted(written.added.len(), "entry"),
        counted(written.replaced.len(), "region"),
        counted(written.left_out.len(), "entry"),
    )?;
    Ok(())
}

/// How a document begins that is not there yet: from then on it is its author's.
fn heading(experiment: &Path, history: &History) -> String {
    let newest = history.accounts.last().map(|account| &account.entry);
    let words = |of: fn(&Entry) -> &String| {
        let words = newest.map_or("", |entry| of(entry).trim());
        words.replace('\n', " ")
    };
    let title = match words(|entry| &entry.title) {
        none if none.is_empty() => file_name(experiment),
        title => title,
    };
    match words(|entry| &entry.question) {
        none if none.is_empty() => format!("# Performance log: {title}\n\n"),
        question => format!("# Performance log: {title}\n\n{question}\n\n"),
    }
}

fn tell(words: &LogWords, history: &History, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    if words.json {
        return Ok(write!(streams.out, "{}", json::json(history)?)?);
    }
    match &words.document {
        Some(path) => writeln!(streams.out, "{}", path.display())?,
        None => write!(streams.out, "{}", log::brief(history))?,
    }
    Ok(())
}
