//! The files that `prony new` writes.

use std::path::PathBuf;

/// Files that are to be written.
#[derive(Debug, Eq, PartialEq)]
pub struct Files {
    /// Each with its text; `true`: it is a program.
    pub files: Vec<(PathBuf, String, bool)>,
    /// The next steps, a command a line.
    pub next: Vec<String>,
}
