//! Totals in a file: a log that grows by a record for each batch and is now and then
//! written anew. Not for: the log's bytes (`log`), what a disk does (`disk`).
//!
//! A batch is kept when its record is written and synced: one write and one `fdatasync`
//! for everything that waited. When that fails:
//! - a write that fails (a full disk) is cut off again, and the batch is not kept;
//! - a *sync* that fails says nothing about what is on the disk, and succeeding later says
//!   nothing either, because the kernel may have dropped what it could not write. So the
//!   file is given up: a new one is written from the totals in memory and takes its place,
//!   and as long as that fails nothing is acknowledged.
//! - a log that is *deleted* while it is in use is written anew from the totals in memory;
//!   where there is another file in its place, that is left alone and nothing is
//!   acknowledged, as nobody would find it.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::name::Name;
use super::super::setting::{TOTAL_MAX, Tell};
use super::contract::{Batch, CommitError, Committed, OpenError, Store, Totals};
use super::disk::{Disk, Folder, ReplaceError};
use super::log::{self, COUNTERS_MAX, Contents};

/// Bytes of a log that can be read: more than one that could not be written anew for long
/// will ever have.
const LOG_BYTES_LIMIT: u64 = 1 << 30;

/// A number that is too high is shown up to so many digits, as many as `u64` has.
const DIGITS_SHOWN_MAX: usize = 20;

/// A log on a disk.
pub struct FileStore<D> {
    disk: D,
    contents: Contents,
    /// The log is not what it should be: it must be written anew.
    is_broken: bool,
    log_bytes_max: u64,
    /// Bytes that a log may have.
    log_bytes_limit: u64,
    /// Bytes of the log at which it is written anew next.
    anew_at: u64,
    record: Vec<u8>,
}

impl FileStore<Folder> {
    /// The log at `path`, which is made where there is none. A file of the original
    /// service, a number in decimal, is taken over.
    ///
    /// # Errors
    /// [`OpenError`]: another process has it, it is damaged, or the system refuses.
    pub fn open(path: &Path, log_bytes_max: u64, tell: &Tell) -> Result<Self, OpenError> {
        let (disk, bytes) = Folder::open(path, LOG_BYTES_LIMIT)?;
        FileStore::on(disk, Some(&bytes), path, log_bytes_max, tell)
    }
}

impl<D: Disk> FileStore<D> {
    /// The log that `disk` has, with these bytes; `path` is what it is called.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn on(
        disk: D,
        bytes: Option<&[u8]>,
        path: &Path,
        log_bytes_max: u64,
        tell: &Tell,
    ) -> Result<Self, OpenError> {
        let name = path.display();
        let mut store = FileStore {
            disk,
            contents: Contents::default(),
            is_broken: false,
            log_bytes_max,
            log_bytes_limit: LOG_BYTES_LIMIT,
            anew_at: 0,
            record: Vec::new(),
        };
        let Some(bytes) = bytes.filter(|bytes| log::is_log(bytes)) else {
            let total = bytes.map_or(Ok(0), |bytes| decimal(bytes, path))?;
            if total > 0 {
                tell.say(&format!(
                    "{name}: {total}, a number in decimal, is taken over"
                ));
                store.contents.totals.insert(Name::ROOT, total);
            }
            store.begin(path)?;
            return Ok(store);
        };
        store.contents = log::read(bytes).map_err(|damage| OpenError::Damaged {
            path: path.to_owned(),
            offset: damage.offset as u64,
            why: damage.why.to_owned(),
        })?;
        let (torn, whole) = (store.contents.torn, store.contents.whole);
        if torn > 0 {
            tell.say(&format!(
                "{name}: {torn} bytes after byte {whole}, of a write that broke off, are cut off"
            ));
            store.begin(path)?;
        } else {
            // Had a sync of it failed before this process, the kernel might not say so, and
            // what was read might be in its memory alone: nothing is added to such a log.
            store.is_broken = true;
        }
        store.anew_at = store.next_anew();
        Ok(store)
    }

    /// Writes the first log, or one without what is torn.
    fn begin(&mut self, path: &Path) -> Result<(), OpenError> {
        let totals = std::mem::take(&mut self.contents.totals);
        self.write_anew(totals).map_err(|error| {
            let (ReplaceError::Before(source) | ReplaceError::After(source)) = error;
            OpenError::io(format!("writing {}", path.display()))(source)
        })
    }

    fn next_anew(&self) -> u64 {
        let whole = self.contents.whole as u64;
        whole.saturating_add(self.log_bytes_max)
    }

    /// Puts a log in its place that has these totals and nothing else.
    fn write_anew(&mut self, totals: BTreeMap<Name, u64>) -> Result<(), ReplaceError> {
        let (bytes, number) = log::image(&totals);
        let outcome = self.disk.replace(&bytes);
        match outcome {
            Ok(()) => {
                self.contents = Contents {
                    totals,
                    number,
                    whole: bytes.len(),
                    torn: 0,
                };
                self.is_broken = false;
                self.anew_at = self.next_anew();
            }
            Err(ReplaceError::Before(_)) => {
                // Not with every batch: a disk that is full now will be so for a while.
                self.anew_at = self.next_anew();
            }
            Err(ReplaceError::After(_)) => self.is_broken = true,
        }
        outcome
    }

    /// The totals with a batch.
    fn with(&self, changed: &[(Name, u64)]) -> BTreeMap<Name, u64> {
        let mut totals = self.contents.totals.clone();
        totals.extend(changed.iter().copied());
        totals
    }

    /// Keeps these totals as a record at the end.
    fn append(&mut self, changed: &[(Name, u64)]) -> Result<(), CommitError> {
        self.record.clear();
        let number = self.contents.number + 1;
        let entries = changed.iter().map(|(name, total)| (name, *total));
        log::append(&mut self.record, number, entries);
        let end = self.contents.whole as u64;
        if end + self.record.len() as u64 > self.log_bytes_limit {
            let why = "the log is as long as can be read, and could not be written anew";
            return Err(CommitError::NotKept(why.to_owned()));
        }
        if let Err(error) = self.disk.write(end, &self.record) {
            // If even that fails the log is given up, but the record is not whole.
            self.is_broken = self.disk.cut(end).is_err();
            return Err(CommitError::NotKept(format!("writing the log: {error}")));
        }
        if let Some(why) = self.doubt() {
            self.is_broken = true;
            return self.begin_again(changed, why);
        }
        self.contents.number = number;
        self.contents.whole += self.record.len();
        self.contents.totals.extend(changed.iter().copied());
        Ok(())
    }

    /// Syncs what was written; why it may not be kept all the same.
    fn doubt(&mut self) -> Option<String> {
        if let Err(error) = self.disk.sync() {
            return Some(format!("syncing the log: {error}"));
        }
        // Only after that: what was there before may be gone since.
        match self.disk.is_there() {
            Ok(true) => None,
            Ok(false) => Some("the log was deleted".to_owned()),
            Err(error) => Some(format!("looking for the log: {error}")),
        }
    }

    /// Gives up a log that was written to in vain.
    fn begin_again(&mut self, changed: &[(Name, u64)], why: String) -> Result<(), CommitError> {
        match self.write_anew(self.with(changed)) {
            Ok(()) => return Ok(()),
            // So that a crash does not find the record, if the disk still does that much.
            Err(ReplaceError::Before(_)) => {
                let _ = self.disk.cut(self.contents.whole as u64);
            }
            // What is there now is the new log.
            Err(ReplaceError::After(_)) => {}
        }
        Err(CommitError::Unknown(why))
    }

    fn keep(&mut self, changed: &[(Name, u64)]) -> Result<(), CommitError> {
        let is_long = self.contents.whole as u64 >= self.anew_at;
        if !self.is_broken && !is_long {
            return self.append(changed);
        }
        match self.write_anew(self.with(changed)) {
            Ok(()) => Ok(()),
            Err(ReplaceError::Before(_)) if !self.is_broken => self.append(changed),
            Err(ReplaceError::Before(error)) => Err(CommitError::NotKept(format!(
                "writing the log anew: {error}"
            ))),
            Err(ReplaceError::After(error)) => Err(CommitError::Unknown(format!(
                "syncing the folder of the log: {error}"
            ))),
        }
    }
}

impl<D: Disk> Store for FileStore<D> {
    fn load(&mut self) -> Result<Totals, OpenError> {
        Ok(self.contents.totals.clone().into_iter().collect())
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, CommitError> {
        let mut changed = batch.clicks.clone();
        for (name, number) in &mut changed {
            let total = self.contents.totals.get(name).copied();
            *number = number.saturating_add(total.unwrap_or(0));
        }
        // What the log could not read again must not get into it.
        if self.contents.totals.len() + changed.len() > COUNTERS_MAX
            && self.with(&changed).len() > COUNTERS_MAX
        {
            let why = format!("a log has no more than {COUNTERS_MAX} counters");
            return Err(CommitError::NotKept(why));
        }
        self.keep(&changed)?;
        Ok(Committed {
            totals: changed.iter().map(|&(_, total)| total).collect(),
            before: false,
        })
    }

    fn probe(&mut self) -> Result<(), CommitError> {
        self.write_anew(self.contents.totals.clone())
            .map_err(|error| {
                let (ReplaceError::Before(error) | ReplaceError::After(error)) = error;
                CommitError::NotKept(format!("writing the log anew: {error}"))
            })
    }

    fn bytes(&self) -> u64 {
        self.contents.whole as u64
    }
}

/// The number in a file of the original service; an empty file is zero.
fn decimal(bytes: &[u8], path: &Path) -> Result<u64, OpenError> {
    let digits = bytes.trim_ascii();
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(OpenError::Damaged {
            path: path.to_owned(),
            offset: 0,
            why: "neither a log of counters nor a number in decimal".to_owned(),
        });
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = String::from_utf8_lossy(&digits[zeros..]);
    let number = if digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    };
    let number = number.filter(|&number| number <= TOTAL_MAX);
    number.ok_or_else(|| OpenError::TooHigh {
        path: path.to_owned(),
        number: match digits.len() {
            ..=DIGITS_SHOWN_MAX => digits.into_owned(),
            length => format!("a number of {length} digits"),
        },
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
