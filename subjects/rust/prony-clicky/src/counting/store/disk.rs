//! What a log needs of a disk, as a trait so that disks that fail can be made up; and
//! the disk that there is. Not for: what the bytes mean (`log`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::contract::OpenError;

/// A file that grows at its end, or is replaced as a whole.
pub trait Disk: Send {
    /// Writes at the end, which is at byte `at`. On failure part of it may be there.
    ///
    /// # Errors
    /// What the system says.
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes durable what was written. After a failure it may never become so, however
    /// often this succeeds later.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;

    /// Whether what is written is there for who comes next: false where it was deleted.
    ///
    /// # Errors
    /// What the system says, or that there is another file now.
    fn is_there(&mut self) -> io::Result<bool>;

    /// Takes away what is after byte `length`.
    ///
    /// # Errors
    /// What the system says.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Puts another file in its place, at once and durably.
    ///
    /// # Errors
    /// [`ReplaceError`], which says which of the files is there.
    fn replace(&mut self, bytes: &[u8]) -> Result<(), ReplaceError>;
}

/// Why a file is not replaced durably.
#[derive(Debug)]
pub enum ReplaceError {
    /// The old file is there.
    Before(io::Error),
    /// The new one is there, but after a crash it may be the old one.
    After(io::Error),
}

/// The file of a file system, held by this process alone.
///
/// INVARIANT: `file` is locked. The lock is the file's own (its inode's) and not its name's:
/// nobody can take it away by deleting something, and whoever comes by another name meets it
/// as well. What replaces the file is locked before it has its name, so that the name never
/// stands for a file that anybody could lock.
pub struct Folder {
    /// Where `file` was found, without links.
    path: PathBuf,
    /// Path of what is to replace it.
    new: PathBuf,
    folder: File,
    file: File,
}

/// What is at the path of a file that is held.
enum Found {
    Itself,
    Nothing,
    Another,
}

/// Times that a file may be replaced by another while it is opened.
const REPLACED_MAX: u32 = 100;
/// How often the list of locks is read for who has one.
const LISTS_MAX: u32 = 16;

impl Folder {
    /// Takes hold of the file at `path`, which is made where there is none; its bytes, of
    /// which there may be `bytes_max`.
    ///
    /// # Errors
    /// [`OpenError::Held`] when another process has it; [`OpenError::Damaged`] when it is
    /// longer than that; [`OpenError::Setting`] when it is no file or has several names;
    /// [`OpenError::Io`].
    pub fn open(path: &Path, bytes_max: u64) -> Result<(Folder, Vec<u8>), OpenError> {
        let named = |what: &str| OpenError::io(format!("{what} {}", path.display()));
        // A link stays one, also where it led to nothing: what it leads to is replaced.
        drop(open_or_make(path).map_err(named("opening"))?);
        let path = fs::canonicalize(path).map_err(named("finding"))?;
        let file = hold(&path)?;
        only_name(&file, &path)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder = File::open(folder).map_err(named("opening the folder of"))?;
        let mut bytes = Vec::new();
        let mut limited = (&file).take(bytes_max + 1);
        limited.read_to_end(&mut bytes).map_err(named("reading"))?;
        if bytes.len() as u64 > bytes_max {
            return Err(OpenError::Damaged {
                path,
                offset: bytes_max,
                why: "longer than can be read".to_owned(),
            });
        }
        // Whoever wrote it may have been killed before it was durable, or its name.
        file.sync_all().map_err(named("syncing"))?;
        let synced = folder.sync_all();
        synced.map_err(named("syncing the folder of"))?;
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let disk = Folder {
            new: new.into(),
            path,
            folder,
            file,
        };
        Ok((disk, bytes))
    }

    fn found(&self) -> io::Result<Found> {
        found(&self.file, &self.path)
    }

    fn write_new(&self, bytes: &[u8]) -> io::Result<File> {
        // Before the name of the new one is touched: it may be the other's as well.
        self.replaces_nobody()?;
        let file = hold(&self.new).map_err(io::Error::other)?;
        let written = self.fill(&file, bytes);
        // What there is of it only takes room, which may be what is missing.
        written.inspect_err(|_| drop(fs::remove_file(&self.new)))?;
        Ok(file)
    }

    fn fill(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        file.set_len(0)?;
        // Whoever may read the old one may read the new one, and nobody else.
        file.set_permissions(self.file.metadata()?.permissions())?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        // Who comes between this question and the renaming, into a place that was deleted
        // in the same moment, finds out with the first batch and keeps nothing.
        self.replaces_nobody()?;
        fs::rename(&self.new, &self.path)
    }

    fn replaces_nobody(&self) -> io::Result<()> {
        match self.found()? {
            Found::Another => Err(another()),
            Found::Itself | Found::Nothing => Ok(()),
        }
    }
}

fn open_or_make(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// The file at `path`, which is made where there is none, locked.
fn hold(path: &Path) -> Result<File, OpenError> {
    let named = |what: &str| OpenError::io(format!("{what} {}", path.display()));
    for _ in 0..REPLACED_MAX {
        let file = open_or_make(path).map_err(named("opening"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(named("locking")(error)),
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Held {
                    path: path.to_owned(),
                    pid: holder(&file),
                });
            }
        }
        // Who had it may have put another into its place before the lock was free.
        if let Found::Itself = found(&file, path).map_err(named("looking at"))? {
            return Ok(file);
        }
    }
    Err(OpenError::Held {
        path: path.to_owned(),
        pid: None,
    })
}

/// What is at `path`, where `file` was opened.
fn found(file: &File, path: &Path) -> io::Result<Found> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let held = file.metadata()?;
    match (there.dev(), there.ino()) == (held.dev(), held.ino()) {
        true => Ok(Found::Itself),
        false => Ok(Found::Another),
    }
}

fn another() -> io::Error {
    io::Error::other("another file was put in its place, which is left alone")
}

/// Refuses what could not be replaced: what is no file, and a file with several names, as
/// only one of them would stand for the new one. The others would keep the old totals, for
/// another to count on from there.
fn only_name(file: &File, path: &Path) -> Result<(), OpenError> {
    let named = |what: &str| OpenError::io(format!("{what} {}", path.display()));
    let metadata = file.metadata().map_err(named("looking at"))?;
    let refused = |why: String| Err(OpenError::Setting(format!("{}: {why}", path.display())));
    match metadata.nlink() {
        _ if !metadata.is_file() => refused("this is no file".to_owned()),
        0 | 1 => Ok(()),
        names => refused(format!(
            "this file has {names} names (hard links), and the log is replaced under one of \
             them; make the others symbolic links or copies"
        )),
    }
}

/// The process that has locked a file. Helps whoever is refused, and is not needed.
fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let device = metadata.dev();
    let file = format!(
        "{:02x}:{:02x}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device),
        metadata.ino()
    );
    // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`
    let holder = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_ours = words.next()? == "FLOCK" && words.nth(1)? == "WRITE";
        let pid = words.next()?;
        (is_ours && words.next()? == file).then(|| pid.parse().ok())?
    };
    // The list is read in pieces, and one that ends between two of them moves another past the reader.
    (0..LISTS_MAX).find_map(|_| {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(holder)
    })
}

impl Disk for Folder {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn is_there(&mut self) -> io::Result<bool> {
        match self.found()? {
            Found::Itself => Ok(true),
            Found::Nothing => Ok(false),
            Found::Another => Err(another()),
        }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn replace(&mut self, bytes: &[u8]) -> Result<(), ReplaceError> {
        // The old file is let go only when the new one is in its place.
        self.file = self.write_new(bytes).map_err(ReplaceError::Before)?;
        self.folder.sync_all().map_err(ReplaceError::After)
    }
}
