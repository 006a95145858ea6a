//! How a host ends, and why it cannot begin.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::sockets;

/// How a host ended that had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// After a signal, with everything answered that was begun, or what the time for
    /// that allowed.
    Gracefully,
    /// After a second signal, at once.
    AtOnce,
}

/// Why an application could not be loaded: what its author has to read, with file and
/// line where there is one; may have several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(pub String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// Why a host could not begin, or could not go on.
#[derive(Debug)]
pub enum Error {
    /// The application cannot be loaded: its author's to read.
    Load(LoadError),
    /// The address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// A worker ended before it served, and could not say why; this is what is known.
    Worker(String),
    /// A call that it cannot do without failed: what it was for, and the error of the kernel.
    System(&'static str, io::Error),
    /// The event loop cannot run.
    Loop(prony_engine::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Load(why) => write!(f, "{why}"),
            Error::Listen(address, error) => {
                write!(f, "cannot listen on {address}: {error}")?;
                match sockets::advice(*address, error) {
                    Some(advice) => write!(f, "; {advice}"),
                    None => Ok(()),
                }
            }
            Error::Worker(what) => f.write_str(what),
            Error::System(what, error) => write!(f, "cannot {what}: {error}"),
            Error::Loop(error) => write!(f, "the event loop cannot run: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<LoadError> for Error {
    fn from(why: LoadError) -> Error {
        Error::Load(why)
    }
}

impl From<prony_engine::Error> for Error {
    fn from(error: prony_engine::Error) -> Error {
        Error::Loop(error)
    }
}
