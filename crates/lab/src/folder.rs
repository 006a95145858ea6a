//! Files in a folder that may be a stranger's: a run directory that was unpacked, documents that somebody sent.
//!
//! Each is a plain file in that very folder. A link, or anything but a file, is refused by name, so that nothing elsewhere is read.
//! A file is written beside its place and then renamed, so that nothing elsewhere is overwritten.
//!
//! Not for: what is in them ([`crate::store`]), or a folder that somebody else changes at the same time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};

use crate::store::StoreError;

/// The path of the file or folder `name` in `dir`, which need not be there. Errors: it, or a folder on the way, is a link or no file.
pub fn inside(dir: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let mut path = dir.to_owned();
    let mut parts = Path::new(name).components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(part) = part else {
            return Err(StoreError::Damaged {
                path: dir.join(name),
                line: None,
                reason: "it is to lie in the run directory".to_owned(),
            });
        };
        path.push(part);
        let seen = match fs::symlink_metadata(&path) {
            Ok(seen) => seen,
            Err(error) if is_not_there(&error) => return Ok(dir.join(name)),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        if !(seen.is_dir() || parts.peek().is_none() && seen.is_file()) {
            let what = match seen.is_symlink() {
                true => "a link",
                false => "no plain file",
            };
            return Err(StoreError::Elsewhere { path, what });
        }
    }
    Ok(path)
}

/// The files of a folder in `dir` that end so, as `FOLDER/FILE`, sorted; none where there is no such folder.
pub fn listed(dir: &Path, folder: &str, ending: &str) -> Result<Vec<String>, StoreError> {
    let path = inside(dir, folder)?;
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if is_not_there(&error) => return Ok(Vec::new()),
        Err(source) => return Err(StoreError::Io { path, source }),
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let names = names.map(|name| format!("{folder}/{}", name.to_string_lossy()));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    Ok(names)
}

/// Puts `bytes` in the place of the file `name` in `dir`, whole or not at all; with `is_synced` they are on the disk before.
pub fn write(dir: &Path, name: &str, bytes: &[u8], is_synced: bool) -> Result<(), StoreError> {
    let path = inside(dir, name)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{file_name}.{}", std::process::id()));
    let unwritten = |source| StoreError::Unwritten {
        path: path.clone(),
        source,
    };
    // One that a killed process with this id left.
    let _ = fs::remove_file(&fresh);
    let mut new = OpenOptions::new();
    let written = new.write(true).create_new(true).open(&fresh);
    let written = written.and_then(|mut file| {
        file.write_all(bytes)?;
        match is_synced {
            true => file.sync_data(),
            false => Ok(()),
        }
    });
    let placed = written.and_then(|()| fs::rename(&fresh, &path));
    if placed.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    placed.map_err(unwritten)
}

fn is_not_there(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The last bytes of a file as text, at most `bytes_max`; nothing where it cannot be read: a log decides nothing.
pub fn end_of(path: &Path, bytes_max: u64) -> String {
    let mut bytes = Vec::new();
    let mut read = || -> io::Result<usize> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(bytes_max)))?;
        file.take(bytes_max).read_to_end(&mut bytes)
    };
    let _ = read();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_a_folder_was_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("run");
        fs::create_dir_all(dir.join("logs")).expect("folders");
        fs::write(folder.path().join("victim"), "mine").expect("written");
        symlink("../victim", dir.join("a")).expect("a link");
        symlink("..", dir.join("out")).expect("a link");
        for name in ["a", "out/victim", "out", "../victim", "/etc/passwd"] {
            assert!(inside(&dir, name).is_err(), "{name}");
            assert!(write(&dir, name, b"yours", false).is_err(), "{name}");
        }
        let error = inside(&dir, "out/victim").expect_err("refused").to_string();
        assert!(error.contains("run/out: is a link"), "{error}");
        assert!(listed(&dir, "out", "").is_err());
        // Another name of a victim is not written through, either.
        fs::hard_link(folder.path().join("victim"), dir.join("b")).expect("a hard link");
        write(&dir, "b", b"yours", true).expect("written");
        write(&dir, "logs/c", b"yours", false).expect("written");
        assert_eq!(fs::read(dir.join("b")).expect("there"), b"yours");
        assert_eq!(
            fs::read(folder.path().join("victim")).expect("there"),
            b"mine"
        );
        assert_eq!(listed(&dir, "logs", "c").expect("listed"), ["logs/c"]);
        assert_eq!(listed(&dir, "none", "").expect("none"), [""; 0]);
    }
}
