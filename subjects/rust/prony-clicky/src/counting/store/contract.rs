//! What a store does for the keeper: loads totals, commits batches, and says what failed.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::super::name::Name;
use super::super::setting::TOTAL_MAX;

/// Totals by counter.
pub type Totals = Vec<(Name, u64)>;

/// What is to be kept together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Batch {
    /// One higher than the last batch that was kept. A batch that is sent again because it
    /// is not known whether it was kept has the number that it had.
    pub sequence: u64,
    /// Clicks by counter, each counter once.
    pub clicks: Totals,
}

/// What a store says of a batch that is kept.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Committed {
    /// The totals of the batch's counters, in its order.
    pub totals: Vec<u64>,
    /// Whether it had been kept before, when it was sent for the first time, with what it
    /// had then.
    pub before: bool,
}

/// Why a batch is not known to be kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CommitError {
    /// Certainly nothing of it is kept.
    NotKept(String),
    /// It may be kept, or not, and only sending it again will tell.
    Unknown(String),
}

impl CommitError {
    /// What went wrong, for people.
    pub fn why(&self) -> &str {
        match self {
            CommitError::NotKept(why) | CommitError::Unknown(why) => why,
        }
    }
}

/// A place where totals are kept. It is used by one thread, which may wait for it.
pub trait Store: Send {
    /// What is kept.
    ///
    /// # Errors
    /// [`OpenError`]; then nothing must be counted.
    fn load(&mut self) -> Result<Totals, OpenError>;

    /// Keeps a batch. When this returns well it is as durable as the store can make it.
    ///
    /// # Errors
    /// [`CommitError`], which says what is known of the batch.
    fn commit(&mut self, batch: &Batch) -> Result<Committed, CommitError>;

    /// The totals that others may have raised; nothing for a store that is not shared.
    ///
    /// # Errors
    /// [`CommitError::NotKept`]: they could not be asked for.
    fn refresh(&mut self) -> Result<Totals, CommitError> {
        Ok(Vec::new())
    }

    /// Writes something that changes no total, as durably as a batch: whether a store that
    /// failed can be written again.
    ///
    /// # Errors
    /// [`CommitError`]: it cannot.
    fn probe(&mut self) -> Result<(), CommitError> {
        Ok(())
    }

    /// Bytes that it occupies, where that is known.
    fn bytes(&self) -> u64 {
        0
    }

    /// Leaves nothing behind but the totals.
    fn close(&mut self) {}
}

/// Why counting did not begin.
#[derive(Debug)]
pub enum OpenError {
    /// A setting that cannot be.
    Setting(String),
    /// Another process counts there.
    Held {
        /// The file that both want.
        path: PathBuf,
        /// The process that has it, where that is known.
        pid: Option<u32>,
    },
    /// What is kept is damaged, and nobody can say what it was.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Byte at which the damage begins.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// A number is kept that is higher than a counter's may be.
    TooHigh {
        /// The file.
        path: PathBuf,
        /// The number, or what is to be said of it.
        number: String,
    },
    /// The system refused something.
    Io {
        /// What was done to which file.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The store could not be reached, or did not understand.
    Unreachable(String),
}

impl OpenError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
        let what = what.into();
        move |source| OpenError::Io { what, source }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Setting(why) | OpenError::Unreachable(why) => f.write_str(why),
            OpenError::Held { path, pid } => {
                write!(f, "{}: another process counts there", path.display())?;
                pid.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
            }
            OpenError::Damaged { path, offset, why } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: damaged at byte {offset}: {why}; nothing was changed"
                )
            }
            OpenError::TooHigh { path, number } => write!(
                f,
                "{}: {number} is more than the {TOTAL_MAX} that a counter can have; nothing was \
                 changed",
                path.display()
            ),
            OpenError::Io { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
