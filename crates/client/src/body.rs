//! The bodies of requests: nothing, bytes, or a stream of pieces.
//! Not for: their framing on the wire (`h1`, `http2`), or forms (`multipart`).

use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use prony_engine::SendBuf;

/// Bytes of a streamed body that are posted and not yet taken by the kernel, at most, before
/// the next piece is requested.
pub const SENDING_BYTES_MAX: usize = 256 << 10;

/// Bodies of at most so many bytes are sent in one post with their head.
pub(super) const JOINED_BYTES_MAX: usize = 16 << 10;

/// The source of a streamed body.
///
/// The next piece is requested once less than [`SENDING_BYTES_MAX`] is unsent: pieces of 16 to
/// 256 KiB suit.
pub trait Pieces {
    /// The next piece; None at the end. May be empty, which sends nothing.
    ///
    /// # Errors
    /// The source's error; the request fails with it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>>;

    /// Restarts from the first piece, for a redirect or a retry. False where the source can be
    /// read only once.
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

    /// The same, shared instead of owned where it is large, so that sending it again copies nothing.
    pub(super) fn resendable(self) -> Body {
        match self {
            Body::Bytes(SendBuf::Owned(bytes)) if bytes.len() > JOINED_BYTES_MAX => {
                Body::Bytes(SendBuf::Shared(Rc::from(bytes)))
            }
            other => other,
        }
    }

    /// Its length in bytes, where it is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.as_slice().len() as u64),
            Body::Pieces(_, length) => *length,
        }
    }

    /// Prepares it to be sent from its start again; false where that is impossible.
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
