//! How requests and answers share a connection: a [`Protocol`], which turns bytes into what became of a request
//! and does no I/O. One value for each connection; the loop that moves the bytes is the same for all.
//!
//! [`crate::http1`] is the one there is. Not for: time, counting, opening and closing.

use crate::failure::Failure;
use crate::source::EncodedRequest;

/// One connection's side of a protocol.
pub trait Protocol {
    /// `request` is being sent.
    ///
    /// # Errors
    /// What makes that impossible on this connection.
    fn sent(&mut self, request: &EncodedRequest) -> Result<(), Failure>;

    /// Takes in bytes as they came.
    ///
    /// # Errors
    /// Why the outstanding request fails, and the connection with it.
    fn received(&mut self, bytes: &[u8]) -> Result<Progress, Failure>;

    /// The server has ended its side.
    ///
    /// # Errors
    /// The outstanding request was not answered in full.
    fn ended(&mut self) -> Result<Answered, Failure>;
}

/// How far the outstanding request has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// More bytes are to come.
    Pending,
    /// Its answer is whole.
    Answered(Answered),
}

/// A whole answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answered {
    /// Its status code.
    pub status: u16,
    /// Whether its body was the expected one, where one is expected.
    pub is_right: bool,
    /// What the connection is good for.
    pub reuse: Reuse,
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reuse {
    /// It can.
    Yes,
    /// The server said or showed that it closes.
    ClosedByServer,
    /// More bytes followed than the answer had: they belong to no request.
    Stray,
}
