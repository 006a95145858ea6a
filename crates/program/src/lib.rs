//! What the programs share: where a command writes ([`Streams`]), how it ends ([`Ending`]), signals, children, the driver that the
//! environment asks for, and the program beside this one ([`sibling`]).
//!
//! Not for: words of the command line, or anything that one program alone does.
//!
//! # Central types
//! - [`Streams`]: standard output and standard error, or what stands for them in a test.
//! - [`Ending`]: how a command ended, and so its exit code.

pub mod cause;
pub mod children;
pub mod commands;
pub mod driver;
pub mod sibling;
pub mod signals;
pub mod terminal;

use std::io::Write;
use std::process::ExitCode;

/// How a command ended; the numbers are an interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Done, and valid.
    Done,
    /// A threshold, a regression or a check failed, or the machine could not do what was asked ([`cause`]).
    Failed,
    /// Wrong usage, or a bad file.
    Usage,
    /// A measurement that the answer rests on is invalid.
    Invalid,
    /// The user interrupted it.
    Interrupted,
}

impl Ending {
    /// How a check ends: failed, or done.
    pub fn failed_if(has_failed: bool) -> Ending {
        match has_failed {
            true => Ending::Failed,
            false => Ending::Done,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> ExitCode {
        ExitCode::from(match ending {
            Ending::Done => 0,
            Ending::Failed => 1,
            Ending::Usage => 2,
            Ending::Invalid => 3,
            Ending::Interrupted => 130,
        })
    }
}

/// Where a command writes: what was asked for to `out`, everything else to `err`.
pub struct Streams<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
}

/// The exit code of a command that came to this. An error is told; `ending_of` says how a command ends after it.
pub fn code(
    done: anyhow::Result<Ending>,
    ending_of: impl Fn(&anyhow::Error) -> Ending,
    err: &mut dyn Write,
) -> ExitCode {
    match done {
        Ok(ending) => ending.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A failing standard error leaves nowhere to say so.
            let _ = writeln!(err, "prony: {error:#}");
            ending_of(&error).into()
        }
    }
}

/// A reader that went away (`prony … | head`) has what it wanted.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
