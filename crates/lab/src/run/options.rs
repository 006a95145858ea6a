//! Options of a run, the events that it reports, and its outcome.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use prony_base::Nanos;
use prony_record::{Cell, GeneratorKind, Phase, Trial};
use thiserror::Error;

use crate::launch::{Wanted, found_in};
use crate::profile::Means;
use crate::store::StoreError;
use crate::supervise::{Interrupt, SupervisorError};

/// Interval at which the interrupt flag is polled.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// Slack beyond the time-outs of a trial, after which it counts as hung.
pub(super) const TRIAL_SLACK: Nanos = Nanos::from_secs(90);

/// How long an interrupted trial may take to end, beside its stop rule.
pub(super) const INTERRUPT_SLACK: Nanos = Nanos::from_secs(15);

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run directory.
    pub dir: PathBuf,
    /// Resume the run that is in it.
    pub resume: bool,
    /// The prony binary, absolute.
    pub prony: PathBuf,
    /// The namespaces that the machine offers ([`crate::supervise::offer`]).
    pub wanted: Wanted,
    /// Driver of the generator: `auto`, `ring` or `epoll`.
    pub driver: String,
    /// wrk, for one cross-check of the reference's cells.
    pub wrk: Option<Wrk>,
    /// The means of profiling, where the plan has profiles.
    pub profile: Option<Means>,
    /// Whether what others disturbed is measured once more at the end.
    pub again: bool,
    /// Whether there is no load: each server is started, its responses are checked, and it is stopped. Programs and clients
    /// do their work.
    pub check_only: bool,
    /// Raised when the user interrupts the run.
    pub interrupt: Interrupt,
}

/// An installed wrk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wrk {
    /// Its binary.
    pub path: PathBuf,
    /// `wrk 4.1.0`
    pub version: String,
}

impl Wrk {
    /// Looks for wrk on `PATH` (the variable's value) and reads its version.
    pub fn find(path: &std::ffi::OsStr) -> Option<Wrk> {
        let found = found_in("wrk", std::env::split_paths(path))?;
        // It prints its version and usage, and ends with 1.
        let output = std::process::Command::new(&found).arg("-v").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        Some(Wrk {
            path: found,
            version: wrk_version(&text)?,
        })
    }
}

/// `wrk debian/4.1.0-3+b2 [epoll] Copyright …` to `wrk debian/4.1.0-3+b2`.
pub(super) fn wrk_version(text: &str) -> Option<String> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    (name == "wrk").then(|| format!("{name} {version}"))
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RunOutcome {
    /// Trials recorded by an earlier run, and kept.
    pub reused: u32,
    /// Trials measured by this run.
    pub measured: u32,
    /// Trials that failed in this run.
    pub failed: u32,
    /// Trials that were left out, because their cell had failed before.
    pub left_out: u32,
    /// Whether the user interrupted it.
    pub interrupted: bool,
}

/// Why a run could not continue. Recorded trials are kept.
#[derive(Debug, Error)]
pub enum RunError {
    /// The run directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The supervisors cannot be started at all.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The folder for the trials' files, or a kernel setting that cannot be put back.
    #[error("the folder for the trials' files, or a kernel setting: {0}")]
    Work(#[from] io::Error),
    /// The plan's cores for the lab itself: a run that is resumed elsewhere, or under another affinity.
    #[error("the plan has the sampler on cores {cores}, which cannot be had here: {source}")]
    Cores {
        /// Which.
        cores: String,
        /// Why.
        source: io::Error,
    },
    /// The plan refers to an entry that it does not have.
    #[error("the plan is broken: cell `{cell}` names {what}, which is not in it")]
    Plan {
        /// The cell, or its number.
        cell: String,
        /// What it names.
        what: String,
    },
}

/// An event in a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// It begins, or resumes after `kept` trials of `total`.
    Begun {
        /// Trials recorded before.
        reused: u32,
        /// Trials in all, the cross-checks included.
        total: u32,
        /// Estimate for all that is left.
        left: Nanos,
    },
    /// A trial begins.
    Started {
        /// Its cell.
        cell: &'a Cell,
        /// Its block, from 0.
        block: u32,
        /// Its generator.
        generator: GeneratorKind,
    },
    /// A phase of it begins.
    Phase(Phase),
    /// It has ended and is recorded.
    Ended {
        /// Its record.
        trial: &'a Trial,
        /// Trials that have ended or were left out.
        done: u32,
        /// Trials in all.
        total: u32,
        /// Estimate for all that is left.
        left: Nanos,
    },
    /// A trial was left out, because its cell had failed before.
    LeftOut {
        /// Its cell.
        cell: &'a Cell,
        /// Its block, from 0.
        block: u32,
        /// Trials that have ended or were left out.
        done: u32,
        /// Trials in all.
        total: u32,
    },
}

/// Receives the events of a run.
pub type Progress<'p> = dyn FnMut(Event<'_>) + 'p;
