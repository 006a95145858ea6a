//! The bodies of requests: nothing, bytes, or pieces that come when they come.
//! Not for: their framing on the wire (`h1`, `http2`), or forms (`multipart`).

use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use prony_engine::SendBuf;

/// Where the pieces of a streamed body come from.
///
/// A piece is sent as it is, and the next asked for once the connection has taken
/// so much that [`SENDING_BYTES_MAX`](crate::client::SENDING_BYTES_MAX) is not passed:
/// pieces of 16 to 256 KiB suit.
pub trait Pieces {
    /// The next piece; None at the end. May be empty, which sends nothing.
    ///
    /// # Errors
    /// What the source says; the request fails with it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>>;

    /// Starts again from the first piece, for a redirect or a retry. False where the
    /// source can give its pieces only once.
    fn rewind(&mut self) -> bool {
        false
    }
}

/// Pieces of an iterator, which never waits.
impl<I: Iterator<Item = io::Result<Vec<u8>>>> Pieces for I {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        Poll::Ready(self.next().transpose())
    }
}

/// A request's body.
#[derive(Default)]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// Bytes, which can be sent again.
    Bytes(SendBuf),
    /// Pieces, of which the length in bytes is known or not.
    Pieces(Box<dyn Pieces>, Option<u64>),
}

impl Body {
    /// A body of pieces; `length` in bytes, where it is known. Otherwise it is sent in chunks.
    pub fn pieces(pieces: impl Pieces + 'static, length: Option<u64>) -> Body {
        Body::Pieces(Box::new(pieces), length)
    }

    /// Its length in bytes, where it is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.as_slice().len() as u64),
            Body::Pieces(_, length) => *length,
        }
    }

    /// Makes it ready to be sent from its start; false where that cannot be.
    pub fn rewind(&mut self) -> bool {
        match self {
            Body::Empty | Body::Bytes(_) => true,
            Body::Pieces(pieces, _) => pieces.rewind(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length() {
            Some(length) => write!(f, "Body({length} bytes)"),
            None => f.write_str("Body(pieces)"),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(SendBuf::Owned(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::from(text.into_bytes())
    }
}

impl From<Rc<[u8]>> for Body {
    fn from(bytes: Rc<[u8]>) -> Body {
        Body::Bytes(SendBuf::Shared(bytes))
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Body {
        Body::Bytes(SendBuf::Static(bytes))
    }
}

impl<const N: usize> From<&'static [u8; N]> for Body {
    fn from(bytes: &'static [u8; N]) -> Body {
        Body::Bytes(SendBuf::Static(bytes))
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::from(text.as_bytes())
    }
}
