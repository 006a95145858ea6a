//! Errors in bundles, which may come from anyone.

use std::io;

use prony_base::Untrusted;
use thiserror::Error;

/// Version of the manifest.
pub const SCHEMA: u32 = 1;

/// An error in a bundle.
#[derive(Debug, Eq, Error, PartialEq)]
pub enum Fault {
    /// It does not begin as one does.
    #[error("not a bundle: it does not begin with the four bytes of zstd")]
    Magic,
    /// It ends in the middle.
    #[error("it is cut off")]
    CutOff,
    /// It is damaged, or no archive.
    #[error("it cannot be unpacked: {0}")]
    Damaged(Untrusted),
    /// It is larger than what is read.
    #[error("it is too large: {what}, and at most {max} are read")]
    TooLarge {
        /// The number that is too large.
        what: String,
        /// The limit.
        max: u64,
    },
    /// An entry of the archive is of a kind that has no place in it.
    #[error(
        "its entry `{0}` is not a plain file: links, devices, folders and extended headers are refused"
    )]
    Kind(Untrusted),
    /// An entry of the archive has a name that has no place in it.
    #[error("its entry `{0}` has no place in a bundle")]
    Name(Untrusted),
    /// There twice.
    #[error("`{0}` is in it twice")]
    Twice(Untrusted),
    /// A file's path leads out of the folder, or into another file.
    #[error(
        "its file `{0}` may not be written: a path must be that of a file of a run below run/, or lie below source/, without `..`, and is no other file's folder"
    )]
    Path(Untrusted),
    /// A path is one whose files git follows.
    #[error(
        "its `{0}` may not be written: git would take it for a repository, and run what its settings say"
    )]
    Git(Untrusted),
    /// A file's content is not there.
    #[error("`{0}` is not in it, although it is to be")]
    Missing(Untrusted),
    /// A content is not what its digest says.
    #[error("the content of `{0}` does not match its digest")]
    Digest(Untrusted),
    /// Another version.
    #[error("it has schema {0}, and this Prony reads schema {SCHEMA}")]
    Schema(u64),
}

impl Fault {
    /// The error that an error of a stream stands for: one in the bundle, or else one of the machine.
    pub fn from_error(error: io::Error) -> anyhow::Error {
        match error.downcast::<Fault>() {
            Ok(fault) => fault.into(),
            // The archive's reader has words of its own for what is no archive.
            Err(error) if error.raw_os_error().is_none() => {
                Fault::Damaged(Untrusted(error.to_string())).into()
            }
            Err(error) => error.into(),
        }
    }
}
