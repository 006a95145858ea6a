//! Folders of the cache that are made once and kept, each under a lock of its own, each whole or begun anew.
//!
//! Not for: what is put into them.
//!
//! ```
//! # use std::sync::atomic::AtomicBool;
//! # use prony_lab::build::shelf::Shelf;
//! # let cache = tempfile::tempdir().unwrap();
//! let cancel = AtomicBool::new(false);
//! let shelf = Shelf::open(cache.path(), "notes", &cancel).unwrap();
//! let held = shelf.hold("one", &|dir| Ok(std::fs::write(dir.join("a"), "b").unwrap())).unwrap();
//! assert!(!held.cached && held.dir.join("a").is_file());
//! assert!(!shelf.remove("one"), "it is held");
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use prony_base::Nanos;

use super::job::{BuildContext, Failed, interrupted};
use crate::folder;

/// Folders of one name that are kept, unless more are asked for.
pub const KEPT: usize = 2;
/// How often a lock that another Prony holds is tried again.
const LOCK_RETRY: Duration = Duration::from_millis(200);
pub(super) const MARKER: &str = ".done";

/// A place where folders are kept.
#[derive(Clone, Debug)]
pub struct Shelf<'a> {
    /// Folder of them all, absolute.
    pub root: PathBuf,
    /// Set when the run is interrupted.
    pub(super) cancel: &'a AtomicBool,
    /// Whether nothing is made here.
    only_kept: bool,
}

/// A folder that is whole, and stays as long as this lives.
#[derive(Debug)]
pub struct Held {
    /// Absolute path.
    pub dir: PathBuf,
    /// Whether it had been made before.
    pub cached: bool,
    /// Keeps it from being removed as long as this is open.
    pub lock: File,
}

/// A lock that ends with this. Closing the file would not end it while a process that was just started, and has not become
/// its program yet, has the file, too.
pub struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // A lock that cannot be given back ends with the file.
        let _ = self.0.unlock();
    }
}

impl<'a> Shelf<'a> {
    /// The folder `name` in the cache, made if it is not there. Errors: it cannot be made.
    pub fn open(cache: &Path, name: &str, cancel: &'a AtomicBool) -> Result<Shelf<'a>, Failed> {
        let root = cache.join(name);
        let in_root = |error: io::Error| Failed::new(format!("{}: {error}", root.display()));
        fs::create_dir_all(&root).map_err(in_root)?;
        let root = root.canonicalize().map_err(in_root)?;
        Ok(Shelf {
            root,
            cancel,
            only_kept: false,
        })
    }

    /// The folder `name` in the cache of a build.
    pub(super) fn for_build(context: &BuildContext<'a>, name: &str) -> Result<Shelf<'a>, Failed> {
        let shelf = Shelf::open(context.cache, name, context.cancel)?;
        Ok(Shelf {
            only_kept: context.only_kept,
            ..shelf
        })
    }

    /// The folder `stem`, made by `make` in an empty folder where it is not there whole. Waits while another Prony makes it.
    /// Errors: those of `make`; it cannot be locked or written.
    pub fn hold(
        &self,
        stem: &str,
        make: &dyn Fn(&Path) -> Result<(), Failed>,
    ) -> Result<Held, Failed> {
        let dir = self.root.join(stem);
        let lock_path = self.root.join(format!("{stem}.lock"));
        let wrong = |error: io::Error| Failed::new(format!("{}: {error}", lock_path.display()));
        let mut cached = true;
        if self.only_kept && !dir.join(MARKER).is_file() {
            return Err(Failed::due());
        }
        loop {
            let lock = self.lock(&lock_path, Lock::Shared)?;
            if dir.join(MARKER).is_file() {
                return Ok(Held { dir, cached, lock });
            }
            drop(lock);
            let lock = self.lock(&lock_path, Lock::Exclusive)?;
            if !dir.join(MARKER).is_file() {
                cached = false;
                made(&dir, make)?;
            }
            lock.unlock().map_err(wrong)?;
            // Between the two locks another Prony may have removed it: look again.
        }
    }

    /// Waits for a lock as long as it takes: another Prony is making the same.
    fn lock(&self, path: &Path, kind: Lock) -> Result<File, Failed> {
        let wrong = |error: io::Error| Failed::new(format!("{}: {error}", path.display()));
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .map_err(wrong)?;
            let taken = match kind {
                Lock::Shared => file.try_lock_shared(),
                Lock::Exclusive => file.try_lock(),
            };
            match taken {
                // One that was removed meanwhile locks nothing any more.
                Ok(()) if is_at(&file, path) => return Ok(file),
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            std::thread::sleep(LOCK_RETRY);
        }
    }

    /// Removes the folders of `prefix` but for `current`, the newest beside it, `kept` in all, and those in use. What cannot be
    /// removed stays: a full cache is no reason to stop.
    pub(super) fn remove_old(&self, prefix: &str, current: &str, builds_max: usize) {
        let mut there = self.made_of(prefix);
        there.retain(|(_, stem)| stem != current);
        there.sort();
        there.reverse();
        for (_, stem) in there.iter().skip(builds_max.max(1) - 1) {
            self.remove(stem);
        }
    }

    /// The folders of `prefix`, each with when it was made.
    fn made_of(&self, prefix: &str) -> Vec<(SystemTime, String)> {
        let made = self.made().into_iter();
        let prepared = made.filter(|(stem, _)| {
            let key = stem.strip_prefix(prefix);
            key.is_some_and(|key| key.len() == 12 && key.bytes().all(|b| b.is_ascii_hexdigit()))
        });
        prepared.map(|(stem, made)| (made, stem)).collect()
    }

    /// Removes a folder that is not locked; returns whether it did.
    pub fn remove(&self, stem: &str) -> bool {
        let Some(lock) = self.free(stem) else {
            return false;
        };
        let removed = remove_dir(&self.root.join(stem)).is_ok();
        if removed {
            let _ = fs::remove_file(self.root.join(format!("{stem}.log")));
            let _ = fs::remove_file(self.root.join(format!("{stem}.lock")));
        }
        drop(lock);
        removed
    }

    /// Locks a folder that is not locked; `None`: it is, or there is no such folder.
    pub fn free(&self, stem: &str) -> Option<Locked> {
        let path = self.root.join(format!("{stem}.lock"));
        let lock = File::options().write(true).open(path).ok()?;
        lock.try_lock().is_ok().then_some(Locked(lock))
    }

    /// How long making the newest folder of `prefix` took; `None`: there is none, or it was made by a Prony that kept no time.
    pub(super) fn last_time(&self, prefix: &str) -> Option<Nanos> {
        let (_, stem) = self.made_of(prefix).into_iter().max_by_key(|of| of.0)?;
        let text = fs::read_to_string(self.root.join(stem).join(MARKER)).ok()?;
        text.parse().ok().map(Nanos)
    }

    /// The folders that are there, each with when it was made; one that was cut off was made at the epoch.
    pub fn made(&self) -> Vec<(String, SystemTime)> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let stems = names.filter_map(|name| Some(name.strip_suffix(".lock")?.to_owned()));
        let dated = |stem: String| {
            let marker = self.root.join(&stem).join(MARKER);
            let made = fs::metadata(marker).and_then(|meta| meta.modified());
            (stem, made.unwrap_or(SystemTime::UNIX_EPOCH))
        };
        stems.map(dated).collect()
    }
}

#[derive(Clone, Copy)]
enum Lock {
    Shared,
    Exclusive,
}

/// Makes a folder anew, and marks it as the last thing.
fn made(dir: &Path, make: &dyn Fn(&Path) -> Result<(), Failed>) -> Result<(), Failed> {
    let wrong = |error: io::Error| Failed::new(format!("{}: {error}", dir.display()));
    remove_dir(dir).map_err(wrong)?;
    fs::create_dir_all(dir).map_err(wrong)?;
    let began = Instant::now();
    match make(dir) {
        Ok(()) => mark(dir, began.elapsed()).map_err(wrong),
        Err(failed) => {
            // What cannot be removed has no marker, and is begun anew.
            let _ = remove_dir(dir);
            Err(failed)
        }
    }
}

/// Writes the marker, durably and at once, with how long it took in nanoseconds.
fn mark(dir: &Path, took: Duration) -> io::Result<()> {
    let text = took.as_nanos().to_string();
    folder::write(dir, MARKER, text.as_bytes(), true).map_err(io::Error::other)
}

/// Removes a folder, its marker first: what is cut off in the middle is not whole.
fn remove_dir(dir: &Path) -> io::Result<()> {
    let missing_is_fine = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    missing_is_fine(fs::remove_file(dir.join(MARKER)))?;
    missing_is_fine(fs::remove_dir_all(dir))
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}
