//! Why a request, or an attempt to connect, failed.

use std::io;

use prony_record::Failures;

/// Why a request, or an attempt to connect, failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// The server closed before the answer was whole.
    Closed,
    /// No answer in time.
    Timeout,
    /// The answer was not HTTP, or over a limit.
    Protocol,
    /// The answer was not the expected one.
    WrongAnswer,
    /// Any other error of the system.
    System,
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Failure::Reset,
            io::ErrorKind::UnexpectedEof => Failure::Closed,
            io::ErrorKind::TimedOut => Failure::Timeout,
            _ => Failure::System,
        }
    }
}

impl Failure {
    /// Counts it under its kind.
    pub fn count(self, failures: &mut Failures) {
        let counter = match self {
            Failure::Refused => &mut failures.refused,
            Failure::Reset => &mut failures.reset,
            Failure::Closed => &mut failures.closed,
            Failure::Timeout => &mut failures.timeout,
            Failure::Protocol => &mut failures.protocol,
            Failure::WrongAnswer => &mut failures.wrong_answer,
            Failure::System => &mut failures.system,
        };
        *counter += 1;
    }
}
