//! `prony clean`: removes run directories and builds that are not needed any more. It asks nothing, and removes nothing
//! that it does not know for what it is.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use prony_base::{clock, counted};
use prony_lab::build::clean;
use prony_lab::subject::{self, Subject};
use prony_record::layout;

use crate::cause::CannotWrite;
use crate::embedded;
use crate::home::Home;
use crate::lines::bytes;
use crate::runs::{self, RunDirectory};
use crate::{Ending, Streams};

const DAY_MS: u64 = 86_400_000;

/// `prony clean`
#[derive(Debug, Args)]
#[command(
    after_help = "A path that is not a run directory is refused, and so is one that a running prony uses; then nothing \
     at all is removed. A build is kept while it is the newest of its subject, or in use; unpacked subjects and \
     experiments while a prony uses them.\n\nExit codes: 0 done; 1 \
     something could not be removed; 2 wrong usage, or a path that is not a run directory."
)]
pub struct CleanWords {
    /// Run directories to remove
    #[arg(value_name = "DIR", required_unless_present_any = ["older_than", "builds"])]
    pub dirs: Vec<PathBuf>,
    /// Remove the runs in --runs that began longer ago than this: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = age, conflicts_with = "dirs")]
    pub older_than: Option<u64>,
    /// Remove the builds that no subject needs any longer, and subjects that another version of Prony has unpacked
    #[arg(long)]
    pub builds: bool,
    /// Folder of the run directories
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs",
        requires = "older_than"
    )]
    pub runs: PathBuf,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Reads an age, in milliseconds.
fn age(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a valid age: write it as 12h, 30d or 8w");
    let unit_ms = match text.chars().last() {
        Some('h') => DAY_MS / 24,
        Some('d') => DAY_MS,
        Some('w') => 7 * DAY_MS,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit_ms).ok_or_else(wrong)
}

/// Something that is to be removed.
struct Doomed {
    path: PathBuf,
    bytes: u64,
    kind: DoomedKind,
}

/// The kind of folder.
#[derive(Clone, Copy)]
enum DoomedKind {
    Run,
    Build,
    Copy,
}

/// Runs `prony clean`.
pub fn run(words: &CleanWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let mut doomed = Vec::new();
    for dir in &words.dirs {
        doomed.push(of_run(&runs_own(dir)?));
    }
    if let Some(age_ms) = words.older_than {
        let now_ms = clock::unix_nanos() / 1_000_000;
        let is_old = |run: &RunDirectory| run.started_unix_ms < now_ms.saturating_sub(age_ms);
        let all = runs::directories(&words.runs)?;
        doomed.extend(
            all.iter()
                .filter(|run| is_old(run) && !is_busy(&run.path))
                .map(of_run),
        );
    }
    let home = words.builds.then(|| Home::find(streams.err)).transpose()?;
    if let Some(home) = &home {
        doomed.extend(builds(home)?);
        doomed.extend(copies(home)?);
    }
    let (mut removed, mut failed) = (0, 0);
    for one in &doomed {
        let verb = match words.dry_run {
            true => Ok("would be removed"),
            false => remove(one, home.as_ref()).map(|()| "removed"),
        };
        match verb {
            Ok(verb) => {
                removed += one.bytes;
                writeln!(
                    streams.out,
                    "{verb}: {} ({})",
                    one.path.display(),
                    bytes(one.bytes)
                )?;
            }
            Err(error) => {
                failed += 1;
                writeln!(streams.err, "prony: not removed: {error:#}")?;
            }
        }
    }
    let verb = if words.dry_run {
        "would be freed"
    } else {
        "freed"
    };
    let all = counted(doomed.len() - failed, "folder");
    writeln!(streams.out, "{all}, {} {verb}", bytes(removed))?;
    Ok(Ending::failed_if(failed > 0))
}

fn of_run(run: &RunDirectory) -> Doomed {
    Doomed {
        path: run.path.clone(),
        bytes: run.bytes,
        kind: DoomedKind::Run,
    }
}

/// The run directory that `dir` is. Errors: it is none, holds what no run leaves, or a prony is running in it.
fn runs_own(dir: &Path) -> anyhow::Result<RunDirectory> {
    if dir.is_symlink() {
        bail!(
            "{}: not a run directory but a link: name what it leads to",
            dir.display()
        );
    }
    let run = RunDirectory::read(dir)?;
    let canonical = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    if env::current_dir().is_ok_and(|here| here.starts_with(&canonical)) {
        bail!("{}: this is where you are", dir.display());
    }
    if dir.join(".git").exists() {
        bail!(
            "{}: it holds a .git, which no run leaves: remove it by hand",
            dir.display()
        );
    }
    if is_busy(dir) {
        bail!("{}: a prony is running in it", dir.display());
    }
    Ok(run)
}

/// Whether a prony writes to the run in `dir`.
fn is_busy(dir: &Path) -> bool {
    let journal = File::options().append(true).open(dir.join(layout::TRIALS));
    journal.is_ok_and(|file| file.try_lock().is_err())
}

/// The builds that no subject needs.
fn builds(home: &Home) -> anyhow::Result<Vec<Doomed>> {
    let folders = subject::folders(&home.subjects).into_iter();
    let loaded = folders.filter_map(|id| Subject::load(&home.subjects.join(id)).ok());
    let subjects: Vec<Subject> = loaded.collect();
    let unused =
        clean::unused(&home.cache, &subjects).map_err(|failed| anyhow::anyhow!(failed.reason))?;
    Ok(unused
        .into_iter()
        .map(|path| of_cache(path, DoomedKind::Build))
        .collect())
}

/// The unpacked subjects and experiments that no prony uses.
fn copies(home: &Home) -> anyhow::Result<Vec<Doomed>> {
    let unused = embedded::unused(&home.cache)?.into_iter();
    Ok(unused
        .map(|path| of_cache(path, DoomedKind::Copy))
        .collect())
}

fn of_cache(path: PathBuf, kind: DoomedKind) -> Doomed {
    Doomed {
        bytes: runs::size(&path).unwrap_or(0),
        path,
        kind,
    }
}

fn remove(one: &Doomed, home: Option<&Home>) -> anyhow::Result<()> {
    let removed = match (one.kind, home) {
        (DoomedKind::Build, Some(home)) => clean::remove(&home.cache, &one.path)
            .map_err(|failed| anyhow::anyhow!(failed.reason))?,
        (DoomedKind::Copy, Some(home)) => embedded::remove(&home.cache, &one.path)?,
        _ => {
            // The plan goes first: what is cut off in the middle is no run directory any more, and is not rendered as one.
            fs::remove_file(one.path.join(layout::PLAN))
                .with_context(CannotWrite::at(&one.path))?;
            return fs::remove_dir_all(&one.path).with_context(CannotWrite::at(&one.path));
        }
    };
    match removed {
        true => Ok(()),
        false => bail!(
            "{}: it is in use by now, or may not be written",
            one.path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_hours_days_and_weeks() {
        assert_eq!(age("12h"), Ok(12 * 3_600_000));
        assert_eq!((age("30d"), age("2w")), (Ok(30 * DAY_MS), Ok(14 * DAY_MS)));
        for wrong in [
            "",
            "d",
            "3",
            "-1d",
            "1.5d",
            "5m",
            "99999999999999999999d",
            "20000000000000w",
            "3é",
        ] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
