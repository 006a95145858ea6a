//! Where a body goes: a file that gets its name when it is whole, or straight to a device
//! or standard output.
//!
//! A file is `NAME.part` until then, locked, with `NAME.part.json` beside it where it can be
//! gone on with. Dropped before its end, it stays where that is so and goes otherwise.
//! INVARIANT: nothing that is not whole is ever under the final name.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, OFlags, RenameFlags};
use rustix::io::Errno;

use super::fault::Fault;
use super::range::Mark;

/// Bytes of a mark that are read at most; a longer one is none.
const MARK_BYTES_MAX: u64 = 64 << 10;

/// `NAME.part`, to which bytes go until they are all there.
pub fn part_of(path: &Path) -> PathBuf {
    beside(path, ".part")
}

/// `NAME.part.json`, which says how to go on.
pub fn mark_of(path: &Path) -> PathBuf {
    beside(path, ".part.json")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Whether bytes go straight to it, because it is no file: `/dev/null`, a pipe.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_char_device() || kind.is_fifo() || kind.is_block_device()
    })
}

/// What was left for later: its bytes.
pub type LeftBytes = Rc<Cell<Option<u64>>>;

/// Where a body goes.
pub enum Output {
    /// Straight.
    Direct(Direct),
    /// To a file that is not whole yet.
    Part(Box<PartFile>),
}

/// A device or standard output.
pub struct Direct {
    file: File,
    path: PathBuf,
    written: u64,
}

/// A file that is not whole yet.
pub struct PartFile {
    file: File,
    path: PathBuf,
    replaces: bool,
    written: u64,
    /// None: it cannot be gone on with.
    mark: Option<Mark>,
    is_whole: bool,
    left: LeftBytes,
}

impl Output {
    /// Standard output.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn stdout() -> Result<Output, Fault> {
        let path = Path::new("standard output");
        let file = io::stdout().as_fd().try_clone_to_owned();
        let file = file.map_err(|error| Fault::file("write to", path, error))?;
        Ok(Output::direct(file.into(), path))
    }

    /// A device.
    ///
    /// # Errors
    /// What the system says.
    pub fn device(path: &Path) -> Result<Output, Fault> {
        let opened = OpenOptions::new().write(true).open(path);
        let file = opened.map_err(|error| Fault::file("open", path, error))?;
        Ok(Output::direct(file, path))
    }

    fn direct(file: File, path: &Path) -> Output {
        Output::Direct(Direct {
            file,
            path: path.to_owned(),
            written: 0,
        })
    }

    /// The file that is to be `path`, from its start; with `resume`, from where an earlier
    /// run left it, if that was for this `url`.
    ///
    /// # Errors
    /// It exists and is not to be replaced; it is being written; what the system says.
    pub fn part(
        path: &Path,
        url: &str,
        (replaces, resumes): (bool, bool),
        left: LeftBytes,
    ) -> Result<Output, Fault> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => {
                let error = io::ErrorKind::IsADirectory.into();
                return Err(Fault::file("write", path, error));
            }
            Ok(_) if !replaces => return Err(Fault::Exists(path.to_owned())),
            _ => {}
        }
        let file = open_locked(&part_of(path))?;
        let mut part = PartFile {
            file,
            path: path.to_owned(),
            replaces,
            written: 0,
            mark: None,
            is_whole: false,
            left,
        };
        let mark = resumes.then(|| read_mark(&mark_of(path))).flatten();
        match mark.filter(|mark| mark.url == url) {
            Some(mark) => part.go_on(mark)?,
            None => part.start_over()?,
        }
        Ok(Output::Part(Box::new(part)))
    }

    /// Bytes that are there.
    pub fn written(&self) -> u64 {
        match self {
            Output::Direct(direct) => direct.written,
            Output::Part(part) => part.written,
        }
    }

    /// How to go on with it; None where it has no bytes, or cannot be.
    pub fn mark(&self) -> Option<&Mark> {
        match self {
            Output::Part(part) if part.written > 0 => part.mark.as_ref(),
            _ => None,
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let (file, path, written) = match self {
            Output::Direct(direct) => (&mut direct.file, &direct.path, &mut direct.written),
            Output::Part(part) => (&mut part.file, &part.path, &mut part.written),
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(0) => {
                    let error = io::ErrorKind::WriteZero.into();
                    return Err(Fault::file("write", path, error));
                }
                Ok(count) => {
                    *written += count as u64;
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::file("write", path, error)),
            }
        }
        Ok(())
    }

    /// Begins anew with a body that `mark` names, if anything does. False where bytes have
    /// gone that cannot be taken back.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(&mut self, mark: Option<Mark>) -> Result<bool, Fault> {
        match self {
            Output::Direct(direct) => Ok(direct.written == 0),
            Output::Part(part) => {
                part.start_over()?;
                part.keep_mark(mark)?;
                Ok(true)
            }
        }
    }

    /// Throws away what is there, when this is dropped.
    pub fn spoil(&mut self) {
        if let Output::Part(part) = self {
            part.mark = None;
        }
    }
}

/// Opens the file and locks it against other writers. A link under its name is not
/// followed: it may have been put there to have another file written.
fn open_locked(path: &Path) -> Result<File, Fault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let opened = options.open(path);
    let file = opened.map_err(|error| Fault::file("write", path, error))?;
    match file.try_lock() {
        Ok(()) if is_still_at(&file, path) => Ok(file),
        // The process that held the lock has just renamed it.
        Ok(()) => Err(Fault::InUse(path.to_owned())),
        Err(TryLockError::WouldBlock) => Err(Fault::InUse(path.to_owned())),
        // A file system without locks: two at once are the user's own doing.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(error)) => Err(Fault::file("lock", path, error)),
    }
}

fn is_still_at(file: &File, path: &Path) -> bool {
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    let here = file.metadata().map(id);
    let there = fs::symlink_metadata(path).map(id);
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

fn read_mark(path: &Path) -> Option<Mark> {
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    let read = file.take(MARK_BYTES_MAX).read_to_end(&mut text);
    read.ok()?;
    serde_json::from_slice(&text).ok()
}

impl PartFile {
    fn go_on(&mut self, mark: Mark) -> Result<(), Fault> {
        let end = self.file.seek(SeekFrom::End(0));
        self.written = end.map_err(|error| Fault::file("read", &part_of(&self.path), error))?;
        self.mark = Some(mark);
        Ok(())
    }

    /// The mark goes first: whatever interrupts this, no mark stands beside bytes that are
    /// not its own.
    fn start_over(&mut self) -> Result<(), Fault> {
        self.mark = None;
        self.written = 0;
        let mark = mark_of(&self.path);
        match fs::remove_file(&mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Fault::file("remove", &mark, error));
            }
            _ => {}
        }
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| Fault::file("empty", &part_of(&self.path), error))
    }

    fn keep_mark(&mut self, mark: Option<Mark>) -> Result<(), Fault> {
        let Some(mark) = mark else { return Ok(()) };
        let path = mark_of(&self.path);
        let text = serde_json::to_vec(&mark).map_err(io::Error::from);
        let left = text.and_then(|text| fs::write(&path, text));
        left.map_err(|error| Fault::file("write", &path, error))?;
        self.mark = Some(mark);
        Ok(())
    }

    /// A second descriptor of the file, and how to read what is there of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn reader(&self) -> Result<impl io::Read + use<>, Fault> {
        let path = part_of(&self.path);
        let opened = File::open(&path).map(|file| file.take(self.written));
        opened.map_err(|error| Fault::file("read", &path, error))
    }

    /// What gives the file its name once its bytes are with the disk: slow, so it may be
    /// called on another thread.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn naming(&self) -> Result<Naming, Fault> {
        let file = self.file.try_clone();
        let file = file.map_err(|error| Fault::file("write", &self.path, error))?;
        Ok(Naming {
            file,
            path: self.path.clone(),
            replaces: self.replaces,
        })
    }

    /// It has its name: what belongs to its time before goes.
    pub fn named(&mut self) {
        self.is_whole = true;
        // One that stays says nothing: there is no part beside it.
        let _ = fs::remove_file(mark_of(&self.path));
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.is_whole {
            return;
        }
        if self.mark.is_some() && self.written > 0 {
            self.left.set(Some(self.written));
            return;
        }
        // The fault that led here is the one to tell.
        let _ = fs::remove_file(mark_of(&self.path));
        let _ = fs::remove_file(part_of(&self.path));
    }
}

/// Gives a file its name.
pub struct Naming {
    file: File,
    path: PathBuf,
    replaces: bool,
}

impl Naming {
    /// The name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the bytes are with the disk, then names them.
    ///
    /// # Errors
    /// Something has the name, or what the system says.
    pub fn finish(self) -> Result<(), Fault> {
        let part = part_of(&self.path);
        let synced = self.file.sync_all();
        synced.map_err(|error| Fault::file("write", &part, error))?;
        let flags = match self.replaces {
            true => RenameFlags::empty(),
            false => RenameFlags::NOREPLACE,
        };
        match rustix::fs::renameat_with(CWD, &part, CWD, &self.path, flags) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Fault::Exists(self.path)),
            // A file system that cannot do it in one step.
            Err(Errno::INVAL | Errno::NOSYS) if !self.replaces => {
                if self.path.symlink_metadata().is_ok() {
                    return Err(Fault::Exists(self.path));
                }
                let named = fs::rename(&part, &self.path);
                named.map_err(|error| Fault::file("name", &self.path, error))?;
            }
            Err(error) => return Err(Fault::file("name", &self.path, error.into())),
        }
        sync_folder(&self.path);
        Ok(())
    }
}

/// Makes the name last. Not every file system can, and the file is there in any case.
fn sync_folder(path: &Path) {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}
