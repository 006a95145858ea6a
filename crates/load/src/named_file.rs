//! Files that another file names: an experiment, or a list of requests, that a stranger may have written.
//!
//! ```
//! use prony_load::named_file::{FileReach, open};
//! use std::path::Path;
//! let below = FileReach::Below(Path::new("/etc"));
//! assert!(open(Path::new("/dev/zero"), FileReach::Anywhere).is_err());
//! assert!(open(Path::new("/etc/../proc/version"), below).is_err());
//! ```
//!
//! Not for: what a user types, who may name any file.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Bytes of such a file at the most.
pub const NAMED_BYTES_MAX: u64 = 256 << 20;
/// The flag that permits more.
pub const FLAG: &str = "--files-anywhere";

/// Which files may be named.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FileReach<'a> {
    /// Regular files that lie in this folder or below it, whatever links lead there, of [`NAMED_BYTES_MAX`] bytes.
    Below(&'a Path),
    /// Regular files wherever they lie, however large they are: the user permits it.
    #[default]
    Anywhere,
}

/// Opens `path`.
///
/// # Errors
/// It cannot be opened, or may not be named: in words that follow the path.
pub fn open(path: &Path, reach: FileReach<'_>) -> io::Result<File> {
    // Held before it is judged, because its name may soon lead elsewhere. Not opened yet: a pipe would wait for one that
    // writes, and some devices act on being opened.
    let held = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let held_path = format!("/proc/self/fd/{}", held.as_raw_fd());
    let real = fs::read_link(&held_path)?;
    if let FileReach::Below(folder) = reach {
        let current = folder.as_os_str().is_empty().then_some(Path::new("."));
        let folder = current.unwrap_or(folder).canonicalize()?;
        if !real.starts_with(&folder) {
            return Err(io::Error::other(format!(
                "it lies outside of {}, where what a file names has to be; {FLAG} permits it",
                folder.display()
            )));
        }
    }
    // A device has no end.
    let meta = fs::metadata(&held_path)?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if matches!(reach, FileReach::Below(_)) && meta.len() > NAMED_BYTES_MAX {
        let bytes = meta.len();
        return Err(io::Error::other(format!(
            "it has {bytes} bytes; what a file names may have {NAMED_BYTES_MAX}, and more with {FLAG}"
        )));
    }
    File::open(held_path)
}

/// The bytes of `file`, of which there may be `bytes_max`; `None`: there are more.
///
/// # Errors
/// It cannot be read.
pub fn read(file: File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_device_was_read_without_end_and_a_pipe_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let zero = folder.path().join("zero");
        symlink("/dev/zero", &zero).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), &zero, folder.path()] {
            let error = open(path, FileReach::Anywhere).unwrap_err();
            assert_eq!(error.to_string(), "it is no regular file", "{path:?}");
            assert!(
                open(path, FileReach::Below(folder.path())).is_err(),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_link_or_dots_led_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (inside, outside) = (inner.join("a"), folder.path().join("secret"));
        fs::write(&inside, "inside").unwrap();
        fs::write(&outside, "outside").unwrap();
        symlink("../secret", inner.join("link")).unwrap();
        symlink("a", inner.join("own")).unwrap();
        let below = |path: &Path| open(path, FileReach::Below(&inner));
        for path in [outside.clone(), inner.join("../secret"), inner.join("link")] {
            let error = below(&path).unwrap_err().to_string();
            assert!(
                error.contains("outside of") && error.contains(FLAG),
                "{error}"
            );
            assert!(open(&path, FileReach::Anywhere).is_ok());
        }
        for path in [inside, inner.join("own"), inner.join("../inner/a")] {
            let text = read(below(&path).unwrap(), 6).unwrap();
            assert_eq!(text.as_deref(), Some(&b"inside"[..]));
            assert_eq!(read(below(&path).unwrap(), 5).unwrap(), None);
        }
        assert!(open(Path::new("Cargo.toml"), FileReach::Below(Path::new(""))).is_ok());
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(NAMED_BYTES_MAX + 1).unwrap();
        let folder = file.path().parent().unwrap();
        let error = open(file.path(), FileReach::Below(folder)).unwrap_err();
        assert!(error.to_string().contains("268435457 bytes"), "{error}");
        assert!(open(file.path(), FileReach::Anywhere).is_ok());
    }
}
