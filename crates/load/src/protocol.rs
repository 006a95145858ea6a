//! How requests and answers share a connection: a [`Protocol`], which turns bytes into what became of a request
//! and does no I/O. One value for each connection; the loop that moves the bytes is the same for all.
//!
//! [`crate::http1`] is one, [`crate::http2`] another, and [`crate::secure`] either of them under TLS. Not for: time,
//! counting, opening and closing.

use prony_engine::SendBuf;
use prony_tls::TlsError;

use crate::failure::Failure;
use crate::source::EncodedRequest;

/// One connection's side of a protocol. A connection has room for several requests at once; each has a place there,
/// counted from 0.
pub trait Protocol {
    /// What is sent before any request.
    fn hello(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let _ = buffer;
        None
    }

    /// Whether requests may be sent.
    fn is_ready(&self) -> bool {
        true
    }

    /// How many of its places the server lets it use.
    fn places(&self) -> usize {
        usize::MAX
    }

    /// `request` is to be sent from `place`: the bytes for it. `buffer` yields an empty one where it needs one.
    ///
    /// # Errors
    /// What makes that impossible on this connection.
    fn send(
        &mut self,
        place: usize,
        request: &EncodedRequest,
        buffer: BufferSource<'_>,
    ) -> Result<SendBuf, Failure>;

    /// Takes in bytes as they came, up to the next thing that happened. It is called again, with what it left of
    /// `bytes`, until it needs more.
    ///
    /// # Errors
    /// Why the outstanding requests fail, and the connection with them.
    fn received(&mut self, bytes: &mut &[u8]) -> Result<Progress, Failure>;

    /// Calls `note` with the place of each request whose answer has begun and is not whole.
    fn begun(&mut self, note: &mut dyn FnMut(usize));

    /// What the protocol itself has to send after it took in bytes.
    fn output(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let _ = buffer;
        None
    }

    /// The connection is given up in order: what is still to be sent on it.
    fn close(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let _ = buffer;
        None
    }

    /// Whether bytes that came now would belong to no request.
    fn expects_nothing(&self) -> bool;

    /// What TLS said, where a failure is TLS's.
    fn fault(&self) -> Option<&TlsError> {
        None
    }

    /// The server has ended its side.
    ///
    /// # Errors
    /// The outstanding requests were not answered in full.
    fn ended(&mut self) -> Result<Answered, Failure>;
}

/// Yields empty buffers.
pub type BufferSource<'a> = &'a mut dyn FnMut() -> Vec<u8>;

/// What happened next on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// More bytes are to come.
    Pending,
    /// An answer is whole.
    Answered(Answered),
    /// One request failed; the connection is of further use.
    Failed(usize, Failure),
    /// The server takes no further request, and answers those that are outstanding.
    Leaving,
    /// The server has ended its side in order, between answers.
    Ended,
    /// Bytes came that belong to no request.
    Stray,
}

/// A whole answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answered {
    /// The place of its request.
    pub place: usize,
    /// Its status code.
    pub status: u16,
    /// Whether its body was the expected one, where one is expected.
    pub is_right: bool,
    /// The check that it failed, by number.
    pub check: Option<u16>,
    /// What the connection is good for.
    pub reuse: Reuse,
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reuse {
    /// It can.
    Yes,
    /// The server said or showed that it closes: what is still outstanding will not be answered.
    ClosedByServer,
    /// More bytes followed than the answer had: they belong to no request.
    Stray,
    /// It was answered before its body was sent, which the server might still wait for: the client closes it.
    Unsent,
}
