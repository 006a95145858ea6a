//! How a command ends that could not do what it was asked: by the cause of the error.
//!
//! What the user can mend in words or in a file ends with [`Ending::Usage`]. What the machine refused (a full
//! disk, a directory that cannot be written, no memory, no descriptors, no processes) ends with
//! [`Ending::Failed`]: the same words may do tomorrow. A server that refused every connection is no measurement:
//! [`Ending::Invalid`].

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use prony_lab::run::RunError;
use prony_lab::store::StoreError;
use prony_lab::supervise::SupervisorError;
use prony_load::LoadError;
use rusqlite::ErrorCode;
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

/// How a command ends after `error`.
pub fn ending(error: &anyhow::Error) -> Ending {
    if matches!(error.downcast_ref(), Some(LoadError::Unreachable { .. })) {
        return Ending::Invalid;
    }
    let of_machine =
        error.downcast_ref::<CannotWrite>().is_some() || error.chain().any(is_of_machine);
    if of_machine {
        Ending::Failed
    } else {
        Ending::Usage
    }
}

fn is_of_machine(cause: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return lacks(error);
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return matches!(error, StoreError::Unwritten { .. });
    }
    if let Some(error) = cause.downcast_ref::<RunError>() {
        return matches!(
            error,
            RunError::Work(_)
                | RunError::Supervisor(_)
                | RunError::Store(StoreError::Unwritten { .. })
        );
    }
    if let Some(error) = cause.downcast_ref::<LoadError>() {
        return matches!(error, LoadError::Engine(_));
    }
    if let Some(error) = cause.downcast_ref::<rusqlite::Error>() {
        use ErrorCode::{
            CannotOpen, DatabaseBusy, DiskFull, OutOfMemory, ReadOnly, SystemIoFailure,
        };
        let codes = [
            CannotOpen,
            DatabaseBusy,
            DiskFull,
            OutOfMemory,
            ReadOnly,
            SystemIoFailure,
        ];
        return error
            .sqlite_error_code()
            .is_some_and(|code| codes.contains(&code));
    }
    cause.is::<SupervisorError>()
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

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn failed(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.raw_os_error())
    }

    #[test]
    fn a_full_disk_was_wrong_usage() {
        let full = || Err::<(), _>(failed(Errno::NOSPC));
        let error = full().context("cannot write x").unwrap_err();
        assert_eq!(ending(&error), Ending::Failed);
        let store = StoreError::Unwritten {
            path: "x".into(),
            source: failed(Errno::ACCESS),
        };
        assert_eq!(ending(&RunError::from(store).into()), Ending::Failed);
        let denied = Err::<(), _>(failed(Errno::ACCESS));
        let error = denied
            .with_context(CannotWrite::at(Path::new("/x/y")))
            .context("more")
            .unwrap_err();
        assert_eq!(ending(&error), Ending::Failed);
        assert_eq!(
            format!("{error:#}").find("more: cannot write /x/y: "),
            Some(0)
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_wrong_usage() {
        let none = Err::<(), _>(failed(Errno::NOENT));
        let error = none.context("cannot read x").unwrap_err();
        assert_eq!(ending(&error), Ending::Usage);
        assert_eq!(ending(&anyhow::anyhow!("no such word")), Ending::Usage);
        let damaged = StoreError::Schema {
            path: "x".into(),
            found: 99,
        };
        assert_eq!(ending(&damaged.into()), Ending::Usage);
    }
}
