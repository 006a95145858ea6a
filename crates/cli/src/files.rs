//! Files that commands write for users, and the folders in which they lie.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;

use crate::cause::CannotWrite;

/// Makes the folder of the file at `path`.
pub fn make_folder_of(path: &Path) -> anyhow::Result<()> {
    match path.parent() {
        Some(folder) => fs::create_dir_all(folder).with_context(CannotWrite::at(folder)),
        None => Ok(()),
    }
}

/// A new file: nothing that lies there can lead elsewhere.
pub fn create(path: &Path, is_program: bool) -> anyhow::Result<File> {
    make_folder_of(path)?;
    let mode = if is_program { 0o755 } else { 0o644 };
    let mut new = OpenOptions::new();
    let file = new.write(true).create_new(true).mode(mode).open(path);
    file.with_context(CannotWrite::at(path))
}
