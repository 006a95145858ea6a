//! A run directory: written during a run, and read back into values.
//!
//! [`Journal`] is the writing side: one line a trial, synced before the next one
//! starts, so that a crash at any moment loses at the most the trial under way.
//! [`read`] is the reading side. Not for: computing anything from what was read.
//!
//! ```no_run
//! let run = prony_lab::store::read("runs/ping".as_ref())?;
//! for trial in &run.trials {
//!     let histogram = run.histogram(trial)?;
//!     println!("{}: {:?}", trial.cell, histogram.map(|h| h.total()));
//! }
//! # Ok::<(), prony_lab::store::StoreError>(())
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::folder;
use crate::passed::TRIALS;
use prony_base::Untrusted;
use prony_record::{
    Environment, Histogram, Outcome, Plan, PublishedClaim, PublishedClaims, SCHEMA, Trial, layout,
};
use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Largest file of a run directory that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// What is wrong with a run directory.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be written: what is wrong is the machine, not what the user said.
    #[error("cannot write {}: {source}", path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file holds what does not belong there.
    #[error("{}{}: {}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default(), Untrusted(reason))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where it has lines.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// A link, or what is no file, where a file of a run directory is to be.
    #[error("{}: is {what}, where only a file of its own may be: it may lead elsewhere, and is neither read nor written", path.display())]
    Elsewhere {
        /// What it is that is there.
        path: PathBuf,
        /// In words.
        what: &'static str,
    },
    /// It was written by another version.
    #[error("{}: {}", path.display(), other_schema(*found))]
    Schema {
        /// The file.
        path: PathBuf,
        /// The version in it.
        found: u64,
    },
    /// The folder is no run directory.
    #[error("{}: not a run directory: it holds no {}", _0.display(), layout::PLAN)]
    NoRun(PathBuf),
    /// It holds something already.
    #[error(
        "{} is there already; give another directory, or --resume to go on with the run in it",
        _0.display()
    )]
    Exists(PathBuf),
    /// Another process writes to it.
    #[error("another prony is running in {}", _0.display())]
    Busy(PathBuf),
    /// The run in it is another one.
    #[error(
        "{} holds another run: {what} differ. Resume with the same experiment, options, \
         environment and machine, or give another directory",
        path.display()
    )]
    OtherRun {
        /// The directory.
        path: PathBuf,
        /// The parts of plan or machine that differ.
        what: String,
    },
}

type StoreResult<T> = Result<T, StoreError>;

/// What is to be done with records of another schema than this program writes.
fn other_schema(found: u64) -> String {
    match found > u64::from(SCHEMA) {
        true => format!(
            "it has schema {found}, and this Prony reads schema {SCHEMA}: a newer Prony wrote it, which reads it"
        ),
        false => format!(
            "it has schema {found}, and this Prony reads schema {SCHEMA}; `prony docs formats` says which ones are read"
        ),
    }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, source }
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Unwritten { path, source }
}

/// A run directory as values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// The directory.
    pub dir: PathBuf,
    /// What was to be done.
    pub plan: Plan,
    /// The machine.
    pub environment: Environment,
    /// Every trial, in the order in which they ended. One that was interrupted and
    /// done again later is left out.
    pub trials: Vec<Trial>,
}

impl Stored {
    /// The latency histogram of a trial; `None` where it recorded none.
    pub fn histogram(&self, trial: &Trial) -> Result<Option<Histogram>, StoreError> {
        let Some(name) = &trial.histogram else {
            return Ok(None);
        };
        read_json(&self.dir, name).map(Some)
    }

    /// The folded stacks of a trial that profiled its subject, and their name; `None` where it recorded none.
    pub fn folded(&self, trial: &Trial) -> Result<Option<(String, String)>, StoreError> {
        let profile = trial.profile.as_ref();
        let Some(name) = profile.and_then(|profile| profile.folded.as_ref()) else {
            return Ok(None);
        };
        let bytes = read_bytes(&folder::inside(&self.dir, name)?)?;
        Ok(Some((
            name.clone(),
            String::from_utf8_lossy(&bytes).into_owned(),
        )))
    }
}

/// Reads a run directory. A last line that a crash cut off is left out; any other
/// damage is an error that names the file and the line.
pub fn read(dir: &Path) -> Result<Stored, StoreError> {
    check_run(dir)?;
    let (trials, _) = read_trials(&folder::inside(dir, layout::TRIALS)?)?;
    Ok(Stored {
        dir: dir.to_owned(),
        plan: read_json(dir, layout::PLAN)?,
        environment: read_json(dir, layout::ENVIRONMENT)?,
        trials: without_repeated(trials),
    })
}

fn check_run(dir: &Path) -> Result<(), StoreError> {
    match dir.join(layout::PLAN).exists() {
        true => Ok(()),
        false => Err(StoreError::NoRun(dir.to_owned())),
    }
}

/// The claims that were put in the place of the plan's after the run; `None`: none were.
pub fn published(dir: &Path) -> Result<Option<Vec<PublishedClaim>>, StoreError> {
    let path = folder::inside(dir, layout::PUBLISHED)?;
    match path.exists() {
        true => Ok(Some(
            read_json::<PublishedClaims>(dir, layout::PUBLISHED)?.claims,
        )),
        false => Ok(None),
    }
}

/// Puts claims in the place of the plan's, which itself stays as it is.
pub fn republish(dir: &Path, claims: Vec<PublishedClaim>) -> Result<(), StoreError> {
    let schema = SCHEMA;
    let claims = PublishedClaims { schema, claims };
    write_json(dir, layout::PUBLISHED, &claims, true)?;
    sync_folder(dir)
}

/// Whether a trial counts as done on `--resume`.
pub fn is_finished(trial: &Trial) -> bool {
    trial.outcome != Outcome::Interrupted
}

fn without_repeated(trials: Vec<Trial>) -> Vec<Trial> {
    let place = |trial: &Trial| (trial.cell.clone(), trial.block, trial.generator);
    let done: std::collections::HashSet<_> = trials
        .iter()
        .filter(|trial| is_finished(trial))
        .map(place)
        .collect();
    let stays = |trial: &Trial| is_finished(trial) || !done.contains(&place(trial));
    trials.into_iter().filter(stays).collect()
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    let size = std::fs::metadata(path).map_err(at(path))?.len();
    if size > FILE_BYTES_MAX {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            line: None,
            reason: format!("{size} bytes, more than the {FILE_BYTES_MAX} that are read"),
        });
    }
    std::fs::read(path).map_err(at(path))
}

/// Reads a file of one JSON object with a schema version.
fn read_json<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<T, StoreError> {
    let path = folder::inside(dir, name)?;
    parse(&path, None, &read_bytes(&path)?)
}

fn parse<T: DeserializeOwned>(path: &Path, line: Option<usize>, bytes: &[u8]) -> StoreResult<T> {
    let damaged = |error: serde_json::Error| StoreError::Damaged {
        path: path.to_owned(),
        line,
        reason: error.to_string(),
    };
    // The version is looked at before the rest, which another version may spell differently.
    let version: Version = serde_json::from_slice(bytes).map_err(damaged)?;
    if version.schema != u64::from(SCHEMA) {
        return Err(StoreError::Schema {
            path: path.to_owned(),
            found: version.schema,
        });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

#[derive(serde::Deserialize)]
struct Version {
    schema: u64,
}

/// Reads `trials.jsonl`, and says how many of its bytes are whole lines. The last
/// line is dropped when it is cut off: has no newline, or is no JSON.
fn read_trials(path: &Path) -> Result<(Vec<Trial>, u64), StoreError> {
    let bytes = read_bytes(path)?;
    let mut trials = Vec::new();
    let mut complete: u64 = 0;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    for (index, line) in lines.iter().enumerate() {
        let last = index + 1 == lines.len();
        if last && line.last() != Some(&b'\n') {
            break;
        }
        match parse(path, Some(index + 1), line) {
            Ok(trial) => trials.push(trial),
            Err(StoreError::Damaged { .. }) if last => break,
            Err(error) => return Err(error),
        }
        complete += line.len() as u64;
    }
    Ok((trials, complete))
}

/// The writing side of a run directory. Only one process has it at a time.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    file: File,
    trials: Vec<Trial>,
}

impl Journal {
    /// Makes a run directory, which must not be there or be empty, and writes plan and
    /// environment into it.
    pub fn create(dir: &Path, plan: &Plan, environment: &Environment) -> StoreResult<Journal> {
        // A pilot, and what chose its warm-up, come before their run, and lie in its folder.
        let is_own = |entry: std::io::Result<std::fs::DirEntry>| {
            let before = [layout::PILOT, layout::WARM_UP];
            entry.is_ok_and(|entry| before.iter().any(|name| entry.file_name() == *name))
        };
        let in_use = std::fs::read_dir(dir).is_ok_and(|mut all| !all.all(is_own));
        if in_use {
            return Err(StoreError::Exists(dir.to_owned()));
        }
        for folder in [layout::HISTOGRAMS, layout::LOGS] {
            let path = dir.join(folder);
            std::fs::create_dir_all(&path).map_err(unwritten(&path))?;
        }
        let journal = Journal::open(dir, Vec::new(), 0)?;
        write_json(dir, layout::ENVIRONMENT, environment, true)?;
        // The plan is last: a directory without it is no run directory.
        write_json(dir, layout::PLAN, plan, true)?;
        sync_folder(dir)?;
        Ok(journal)
    }

    /// Goes on with a run: the plan must be the same but for how it was called, and so
    /// must the machine. A last line that was cut off is removed.
    pub fn resume(dir: &Path, plan: &Plan, environment: &Environment) -> StoreResult<Journal> {
        check_run(dir)?;
        // What a trial writes goes into these.
        for name in [
            layout::LOGS,
            layout::PROFILES,
            layout::PILOT,
            layout::WARM_UP,
        ] {
            folder::inside(dir, name)?;
        }
        let before: Plan = read_json(dir, layout::PLAN)?;
        let machine: Environment = read_json(dir, layout::ENVIRONMENT)?;
        let mut differ = plan_differences(&before, plan);
        differ.extend(machine_differences(&machine, environment));
        if !differ.is_empty() {
            return Err(StoreError::OtherRun {
                path: dir.to_owned(),
                what: differ.join(", "),
            });
        }
        let (trials, complete) = read_trials(&folder::inside(dir, layout::TRIALS)?)?;
        Journal::open(dir, trials, complete)
    }

    /// Opens `trials.jsonl` after its first `whole` bytes and locks it.
    fn open(dir: &Path, trials: Vec<Trial>, complete: u64) -> Result<Journal, StoreError> {
        let path = folder::inside(dir, layout::TRIALS)?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(unwritten(&path))?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(StoreError::Busy(dir.to_owned()));
        }
        file.set_len(complete).map_err(unwritten(&path))?;
        Ok(Journal {
            dir: dir.to_owned(),
            file,
            trials,
        })
    }

    /// The trials that it holds.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Writes a trial's histogram and then its line, both synced before it returns.
    /// `stem` names the histogram's file.
    pub fn append(
        &mut self,
        mut trial: Trial,
        histogram: Option<&Histogram>,
        stem: &str,
    ) -> Result<(), StoreError> {
        if let Some(histogram) = histogram {
            let name = format!("{}/{stem}.json", layout::HISTOGRAMS);
            write_json(&self.dir, &name, histogram, false)?;
            sync_folder(&self.dir.join(layout::HISTOGRAMS))?;
            trial.histogram = Some(name);
        }
        let path = self.dir.join(layout::TRIALS);
        let mut line =
            serde_json::to_vec(&trial).map_err(|error| unwritten(&path)(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(unwritten(&path))?;
        self.file.sync_data().map_err(unwritten(&path))?;
        self.trials.push(trial);
        Ok(())
    }
}

/// Writes a file so that it is there whole or not at all.
fn write_json(dir: &Path, name: &str, value: &impl Serialize, pretty: bool) -> StoreResult<()> {
    let text = if pretty {
        serde_json::to_vec_pretty(value)
    } else {
        serde_json::to_vec(value)
    };
    let mut text = text.map_err(|error| unwritten(&dir.join(name))(error.into()))?;
    text.push(b'\n');
    folder::write(dir, name, &text, true)
}

fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(unwritten(path))
}

/// The parts of two plans that differ, by name. How the command was called may.
fn plan_differences(before: &Plan, now: &Plan) -> Vec<String> {
    let fields = |plan: &Plan| match serde_json::to_value(plan) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (before, now) = (fields(before), fields(now));
    let differs = |name: &&String| {
        !matches!(name.as_str(), "command" | "experiment") && before.get(*name) != now.get(*name)
    };
    now.keys().filter(differs).cloned().collect()
}

fn machine_differences(before: &Environment, now: &Environment) -> Vec<String> {
    let passed = |environment: &Environment| {
        let facts = environment.facts.iter();
        let passed = facts.filter(|fact| fact.name == TRIALS);
        passed.map(|fact| fact.value.clone()).next()
    };
    // A run begun before this was recorded may be resumed.
    let same = passed(before).is_none_or(|before| passed(now).is_none_or(|now| now == before));
    let parts = [
        (TRIALS, same),
        ("cpu_model", before.cpu_model == now.cpu_model),
        ("cpus", before.cpus == now.cpus),
        ("kernel", before.kernel == now.kernel),
        ("prony_version", before.prony_version == now.prony_version),
        ("prony_commit", before.prony_commit == now.prony_commit),
        ("prony_sha256", before.prony_sha256 == now.prony_sha256),
        (
            "systems_sha256",
            before.systems_sha256 == now.systems_sha256,
        ),
    ];
    let different = parts.iter().filter(|(_, same)| !same);
    different.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("prony-store-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn plan() -> Plan {
        Plan {
            schema: SCHEMA,
            blocks: 2,
            ..Plan::default()
        }
    }

    fn environment() -> Environment {
        Environment {
            schema: SCHEMA,
            ..Environment::default()
        }
    }

    fn trial(cell: &str, outcome: Outcome) -> Trial {
        Trial {
            schema: SCHEMA,
            cell: cell.to_owned(),
            outcome,
            ..Trial::default()
        }
    }

    fn histogram() -> Histogram {
        Histogram {
            schema: SCHEMA,
            unit: "ns".to_owned(),
            digits: 3,
            counts: vec![(1_000, 5)],
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let folder = Folder::new("round");
        let mut journal = Journal::create(&folder.0, &plan(), &environment()).unwrap();
        journal
            .append(trial("a", Outcome::Measured), Some(&histogram()), "b00")
            .unwrap();
        journal
            .append(trial("b", Outcome::Measured), None, "b01")
            .unwrap();
        let stored = read(&folder.0).unwrap();
        assert_eq!(stored.trials.len(), 2);
        assert_eq!(
            stored.histogram(&stored.trials[0]).unwrap(),
            Some(histogram())
        );
        assert_eq!(stored.histogram(&stored.trials[1]).unwrap(), None);
    }

    /// A kill does not show it: the kernel keeps what was written. The calls of the test above are looked at.
    #[test]
    fn a_trial_was_not_on_the_disk_before_the_next_began() {
        let Some(strace) = prony_testkit::need("strace") else {
            return;
        };
        let folder = Folder::new("calls");
        std::fs::create_dir_all(&folder.0).unwrap();
        let listed = folder.0.join("calls");
        let status = std::process::Command::new(strace)
            .args([
                "-f",
                "-y",
                "-e",
                "trace=write,fsync,fdatasync,rename,renameat,renameat2",
                "-o",
            ])
            .arg(&listed)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::what_was_written_is_read_back"])
            .output()
            .unwrap();
        let calls = std::fs::read_to_string(&listed).unwrap_or_default();
        if calls.contains("PTRACE_TRACEME") || !status.status.success() && calls.is_empty() {
            return prony_testkit::skip("strace may not trace here");
        }
        assert!(status.status.success(), "{status:?}");
        // `4711 fdatasync(5</tmp/x/trials.jsonl>) = 0`
        let of_run = |line: &str| {
            let (call, rest) = line.split_once(' ')?.1.trim_start().split_once('(')?;
            let path = rest.split_once('<')?.1.split_once('>')?.0;
            // What is written beside a file has its name, with a dot before it and the process behind it.
            let process = format!(".{}", path.split("prony-store-").nth(1)?.split('-').next()?);
            let name = path.rsplit('/').next()?.trim_start_matches('.');
            let name = name.strip_suffix(&process).unwrap_or(name);
            let is_ours =
                name.starts_with("trials") || name.starts_with("b00") || name == layout::HISTOGRAMS;
            is_ours.then(|| format!("{call} {name}"))
        };
        let seen: Vec<String> = calls.lines().filter_map(of_run).collect();
        let trial = ["write trials.jsonl", "fdatasync trials.jsonl"];
        let histogram = ["write b00.json", "fdatasync b00.json", "fsync histograms"];
        assert_eq!(
            seen,
            [&histogram[..], &trial[..], &trial[..]].concat(),
            "{calls}"
        );
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_dropped_at_every_byte() {
        let folder = Folder::new("torn");
        let mut journal = Journal::create(&folder.0, &plan(), &environment()).unwrap();
        journal
            .append(trial("a", Outcome::Measured), None, "x")
            .unwrap();
        let path = folder.0.join(layout::TRIALS);
        let complete = std::fs::metadata(&path).unwrap().len();
        journal
            .append(trial("b", Outcome::Measured), None, "x")
            .unwrap();
        drop(journal);
        let all = std::fs::read(&path).unwrap();
        for cut in complete as usize..all.len() {
            std::fs::write(&path, &all[..cut]).unwrap();
            assert_eq!(read(&folder.0).unwrap().trials.len(), 1, "cut at {cut}");
            let journal = Journal::resume(&folder.0, &plan(), &environment()).unwrap();
            assert_eq!(journal.trials().len(), 1);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), complete);
        }
    }

    #[test]
    fn damage_in_the_middle_is_named_by_file_and_line() {
        let folder = Folder::new("damaged");
        let mut journal = Journal::create(&folder.0, &plan(), &environment()).unwrap();
        for cell in ["a", "b", "c"] {
            journal
                .append(trial(cell, Outcome::Measured), None, "x")
                .unwrap();
        }
        let path = folder.0.join(layout::TRIALS);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"cell\":\"b\"", "\"cell\":7")).unwrap();
        let error = read(&folder.0).unwrap_err().to_string();
        assert!(error.contains("trials.jsonl:2: invalid type"), "{error}");
    }

    #[test]
    fn another_schema_is_named_before_anything_else_is_read() {
        let folder = Folder::new("schema");
        drop(Journal::create(&folder.0, &plan(), &environment()).unwrap());
        std::fs::write(
            folder.0.join(layout::PLAN),
            r#"{"schema":99,"blocks":"many"}"#,
        )
        .unwrap();
        let error = read(&folder.0).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "plan.json: it has schema 99, and this Prony reads schema 1: a newer Prony wrote it, which reads it"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_directory_in_use_and_one_with_another_plan_are_refused() {
        let folder = Folder::new("refused");
        let journal = Journal::create(&folder.0, &plan(), &environment()).unwrap();
        let again = Journal::create(&folder.0, &plan(), &environment());
        assert!(matches!(again, Err(StoreError::Exists(_))));
        let busy = Journal::resume(&folder.0, &plan(), &environment());
        assert!(matches!(busy, Err(StoreError::Busy(_))));
        drop(journal);
        let mut other = plan();
        other.blocks = 3;
        other.command = vec!["--resume".to_owned()];
        let error = Journal::resume(&folder.0, &other, &environment()).unwrap_err();
        assert!(
            error.to_string().contains("another run: blocks differ"),
            "{error}"
        );
        other.blocks = 2;
        let mut changed = environment();
        changed.prony_sha256 = "aa00".to_owned();
        let error = Journal::resume(&folder.0, &other, &changed).unwrap_err();
        assert!(error.to_string().contains("prony_sha256"), "{error}");
        let mut changed = environment();
        changed.systems_sha256 = "aa00".to_owned();
        let error = Journal::resume(&folder.0, &other, &changed).unwrap_err();
        assert!(error.to_string().contains("systems_sha256"), "{error}");
        assert!(Journal::resume(&folder.0, &other, &environment()).is_ok());
    }

    #[test]
    fn half_of_a_run_was_measured_in_another_environment() {
        let folder = Folder::new("environment");
        let passed = |value: &str| Environment {
            facts: vec![prony_record::Fact {
                name: TRIALS.to_owned(),
                value: value.to_owned(),
            }],
            ..environment()
        };
        drop(Journal::create(&folder.0, &plan(), &passed("LANG=C PATH")).unwrap());
        let resume = |now: &Environment| Journal::resume(&folder.0, &plan(), now);
        let error = resume(&passed("GOGC=off LANG=C PATH")).unwrap_err();
        assert!(
            error.to_string().contains("environment of trials differ"),
            "{error}"
        );
        assert!(resume(&passed("LANG=C PATH")).is_ok());
        assert!(resume(&environment()).is_ok(), "one that does not say it");
    }

    #[test]
    fn a_trial_that_was_interrupted_and_done_again_counts_once() {
        let folder = Folder::new("again");
        let mut journal = Journal::create(&folder.0, &plan(), &environment()).unwrap();
        journal
            .append(trial("a", Outcome::Interrupted), None, "x")
            .unwrap();
        journal
            .append(trial("a", Outcome::Measured), None, "x")
            .unwrap();
        journal
            .append(trial("b", Outcome::Interrupted), None, "x")
            .unwrap();
        let cells: Vec<String> = read(&folder.0)
            .unwrap()
            .trials
            .into_iter()
            .map(|t| t.cell)
            .collect();
        assert_eq!(cells, ["a", "b"]);
    }

    #[test]
    fn a_histogram_outside_the_run_directory_is_not_read() {
        let mut outside = trial("a", Outcome::Measured);
        outside.histogram = Some("../../etc/passwd".to_owned());
        assert!(Stored::default().histogram(&outside).is_err());
    }
}
