//! A document that a person edits and a program writes: read whole, replaced in one step.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tempfile::NamedTempFile;

use crate::cause::CannotWrite;

/// Largest document that is read.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// The text of a document; `None` where there is none.
pub fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let size = match fs::metadata(path) {
        // A device has no length, and a pipe no end: prose of others may name either.
        Ok(about) if !about.is_file() => bail!("{}: not a regular file", path.display()),
        Ok(about) => about.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if size > DOCUMENT_BYTES_MAX {
        bail!(
            "{}: larger than the {DOCUMENT_BYTES_MAX} bytes that are read",
            path.display()
        );
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => bail!(
            "{}: not UTF-8 from byte {} on; it is left as it is",
            path.display(),
            error.utf8_error().valid_up_to()
        ),
    }
}

/// Puts `text` in place of the document, whole or not at all, with the permissions that it had. `before` is
/// what was read: where the file differs by now, it is being edited, and it is left alone.
pub fn replace(path: &Path, before: Option<&str>, text: &str) -> anyhow::Result<()> {
    // Behind a symbolic link it is the file that is replaced, not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = folder_of(&place);
    fs::create_dir_all(&folder).with_context(CannotWrite::at(&folder))?;
    let mut fresh = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(&folder)
        .with_context(CannotWrite::at(path))?;
    write_new(&mut fresh, &place, text).with_context(CannotWrite::at(path))?;
    if read(&place)?.as_deref() != before {
        bail!("{} was changed meanwhile; write it again", path.display());
    }
    fresh.persist(&place).with_context(CannotWrite::at(path))?;
    Ok(())
}

/// The folder in which a file lies.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn write_new(fresh: &mut NamedTempFile, place: &Path, text: &str) -> io::Result<()> {
    if let Ok(about) = fs::metadata(place) {
        fresh.as_file().set_permissions(about.permissions())?;
    }
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().sync_all()
}
