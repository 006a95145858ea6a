//! How a command ends that could not do what it was asked: by the cause of the error.
//!
//! What the user can mend in words or in a file ends with [`Ending::Usage`]. What the machine refused (a full
//! disk, a directory that cannot be written, no memory, no descriptors, no processes) ends with
//! [`Ending::Failed`]: the same words may do tomorrow.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::Ending;

/// A file or folder that cannot be written, as the context of an error.
#[derive(Debug)]
pub struct CannotWrite(PathBuf);

impl CannotWrite {
    /// For `with_context`.
    pub fn at(path: &Path) -> impl Fn() -> CannotWrite {
        let path = path.to_owned();
        move || CannotWrite(path.clone())
    }
}

impl fmt::Display for CannotWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}", self.0.display())
    }
}

/// How a command ends after `error`; `is_of_machine` says of a cause that only its program knows whether the machine refused.
pub fn ending(
    error: &anyhow::Error,
    is_of_machine: impl Fn(&(dyn Error + 'static)) -> bool,
) -> Ending {
    let refused = |cause: &(dyn Error + 'static)| match cause.downcast_ref::<io::Error>() {
        Some(error) => lacks(error),
        None => is_of_machine(cause),
    };
    match error.downcast_ref::<CannotWrite>().is_some() || error.chain().any(refused) {
        true => Ending::Failed,
        false => Ending::Usage,
    }
}

/// Whether the system refused because it lacks something, or is broken.
fn lacks(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
        ErrorKind::FileTooLarge,
        ErrorKind::ReadOnlyFilesystem,
        ErrorKind::OutOfMemory,
        ErrorKind::WriteZero,
    ];
    let numbers = [Errno::IO, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    kinds.contains(&error.kind()) || number.is_some_and(|number| numbers.contains(&number))
}
