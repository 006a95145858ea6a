//! What a log needs of a disk, as a trait so that disks that fail can be made up; and
//! the disk that there is. Not for: what the bytes mean (`log`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::OpenError;

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
pub struct Folder {
    path: PathBuf,
    /// Path of what is to replace it.
    new: PathBuf,
    folder: File,
    /// None before there is one.
    file: Option<File>,
    /// Held as long as this is; the kernel lets go of it whatever ends the process.
    _lock: File,
}

/// `path` with something after it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Folder {
    /// Takes hold of the file at `path`; its bytes, if there is one, of which there may be
    /// `bytes_max`.
    ///
    /// # Errors
    /// [`OpenError::Held`] when another process has it; [`OpenError::Damaged`] when it is
    /// longer than that; [`OpenError::Io`].
    pub fn open(path: &Path, bytes_max: u64) -> Result<(Folder, Option<Vec<u8>>), OpenError> {
        let named = |what: &str| OpenError::io(format!("{what} {}", path.display()));
        // A link stays one: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let folder = File::open(folder).map_err(named("opening the folder of"))?;
        let lock = lock(&path)?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let (file, bytes) = match file {
            Ok(file) => {
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
                (Some(file), Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(error) => return Err(named("opening")(error)),
        };
        let disk = Folder {
            new: beside(&path, ".new"),
            path,
            folder,
            file,
            _lock: lock,
        };
        Ok((disk, bytes))
    }

    fn file(&self) -> io::Result<&File> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no file yet");
        self.file.as_ref().ok_or_else(missing)
    }

    fn write_new(&self, bytes: &[u8]) -> io::Result<File> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&self.new)?;
        if let Some(old) = &self.file {
            // Whoever may read the old one may read the new one, and nobody else.
            file.set_permissions(old.metadata()?.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&self.new, &self.path)?;
        Ok(file)
    }
}

/// Takes the lock of the file at `path`, and writes there who has it.
fn lock(path: &Path) -> Result<File, OpenError> {
    let beside = beside(path, ".lock");
    let named = || OpenError::io(format!("locking {}", beside.display()));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&beside)
        .map_err(named())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(named()(error)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Who it is helps, and is not needed.
            let _ = (&file).take(20).read_to_string(&mut text);
            return Err(OpenError::Held {
                path: path.to_owned(),
                pid: text.trim().parse().ok(),
            });
        }
    }
    // Likewise: on a full disk the lock holds, only without a name.
    let _ = file.set_len(0);
    let _ = writeln!(file, "{}", std::process::id());
    Ok(file)
}

impl Disk for Folder {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file()?.set_len(length)
    }

    fn replace(&mut self, bytes: &[u8]) -> Result<(), ReplaceError> {
        let written = self.write_new(bytes);
        if written.is_err() {
            // What there is of it only takes room, which may be what is missing.
            let _ = fs::remove_file(&self.new);
        }
        self.file = Some(written.map_err(ReplaceError::Before)?);
        self.folder.sync_all().map_err(ReplaceError::After)
    }
}
