//! What the steps of a build share: commands, the trait that runs them, and failures.
//!
//! Not for: which commands there are ([`super::build`], [`super::source`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prony_record::NotRun;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::folder;
use crate::launch::Resolved;
use crate::passed::{Passed, To};
use crate::root::Rooted;

/// Lines of a failed build's log that its reason quotes.
const TAIL_LINES: usize = 8;

/// Bytes read of the end of a log.
const TAIL_BYTES: u64 = 4 << 10;

/// A command to run to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// What is started.
    pub resolved: Resolved,
    /// What its root file system is furnished with, before it is entered; `None`: it has the machine's own.
    #[serde(default)]
    pub rooted: Option<Rooted>,
    /// File that gets both of its output streams; created or cut.
    pub log: PathBuf,
    /// After this it is killed, with all that it started.
    pub timeout_ns: u64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Finished {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it that Prony did not send.
    Signal(i32),
    /// Killed at its time-out.
    TimedOut,
    /// Killed because the run was interrupted.
    Interrupted,
}

/// A command that could not be started.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct LaunchError(pub String);

/// Starts processes that do not outlive Prony, and waits for them.
pub trait Launcher {
    /// Runs `command` to its end. Once `cancel` is true it is killed, with all that
    /// it started.
    fn run(&self, command: &CommandSpec, cancel: &AtomicBool) -> Result<Finished, LaunchError>;

    /// What of the environment of this process the commands get.
    fn passed(&self) -> Passed {
        Passed::here(To::Builds)
    }
}

/// What building needs to know.
#[derive(Clone, Debug)]
pub struct BuildContext<'a> {
    /// Folder of the cache; `build/` is made in it.
    pub cache: &'a Path,
    /// Folder of repositories that are used in place of the network, and of what the user has built of them
    /// ([`super::source::originals`]).
    pub originals: Option<&'a Path>,
    /// The prony binary, for `{prony}`.
    pub prony: &'a Path,
    /// Builds of one subject, and work trees of one repository, that are kept: [`super::KEPT`], or more for who comes back to older ones.
    pub builds_max: usize,
    /// Set when the run is interrupted.
    pub cancel: &'a AtomicBool,
    /// Whether nothing is made: what the cache lacks fails as due.
    pub only_kept: bool,
}

/// A subject that cannot be started.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Failed {
    /// Why, in a sentence, with the last lines of the log.
    pub reason: String,
    /// What would change it; empty: to read the log.
    pub remedy: String,
    /// What the build printed, where it came to that.
    pub log: Option<PathBuf>,
    /// Whether it was the interruption of the run, not the subject.
    pub interrupted: bool,
    /// Whether it is only not built yet.
    pub due: bool,
}

impl Failed {
    /// A failure for this reason, without a remedy or a log.
    pub fn new(reason: impl Into<String>) -> Failed {
        Failed {
            reason: reason.into(),
            ..Failed::default()
        }
    }

    /// For what is not made where nothing is to be made.
    pub(super) fn due() -> Failed {
        Failed {
            due: true,
            ..Failed::new("not built yet")
        }
    }

    /// The failure as an entry of the plan.
    pub fn not_run(&self, id: &str) -> NotRun {
        let read_log = || {
            let log = self.log.as_ref()?;
            Some(format!("less {}", quote(&log.display().to_string())))
        };
        let remedy = match self.remedy.is_empty() {
            true => read_log().unwrap_or_default(),
            false => self.remedy.clone(),
        };
        NotRun::new(id, &self.reason, remedy)
    }
}

/// A file of this call's own for the output of a short command.
pub(super) fn temporary(root: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    root.join(format!(".output-{}-{number}", std::process::id()))
}

/// `name` as a part of a file's name.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "._-".contains(c) {
        true => c,
        false => '_',
    };
    name.chars().map(plain).collect()
}

pub(super) fn interrupted() -> Failed {
    Failed {
        interrupted: true,
        ..Failed::new("the run was interrupted")
    }
}

/// Quoted for a shell.
pub(super) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Adds a named part to a hash, lengths first, so that no two lists of parts are
/// the same bytes.
pub(super) fn part(hash: &mut Sha256, name: &str, content: &[u8]) {
    for bytes in [name.as_bytes(), content] {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
}

/// The last lines of a log, without control characters.
pub(super) fn tail(log: &Path) -> Vec<String> {
    let text = folder::end_of(log, TAIL_BYTES);
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines = text.lines().map(clean);
    let lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}
