//! How a command ends that could not do what it was asked: [`prony_program::cause`], with the errors that only this program knows.
//! A server that refused every connection is no measurement: [`Ending::Invalid`].

use std::error::Error;

use prony_agents::fleet::FleetError;
use prony_lab::run::RunError;
use prony_lab::store::StoreError;
use prony_lab::supervise::SupervisorError;
use prony_load::LoadError;
use prony_program::cause;
pub use prony_program::cause::CannotWrite;

use crate::Ending;

/// How a command ends after `error`.
pub fn ending(error: &anyhow::Error) -> Ending {
    if matches!(error.downcast_ref(), Some(LoadError::Unreachable { .. })) {
        return Ending::Invalid;
    }
    match error.downcast_ref() {
        Some(FleetError::Agent { .. } | FleetError::NoneLeft(_)) => return Ending::Invalid,
        Some(FleetError::Interrupted) => return Ending::Interrupted,
        _ => {}
    }
    cause::ending(error, is_of_machine)
}

fn is_of_machine(cause: &(dyn Error + 'static)) -> bool {
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
    cause.is::<SupervisorError>()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use anyhow::Context as _;
    use rustix::io::Errno;

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
