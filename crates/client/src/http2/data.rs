//! The bytes of a request's body as `h2` takes them: parts of what the caller gave,
//! none of it copied. Not for: what is received, which `h2` has in `Bytes`.

use std::ops::Range;
use std::rc::Rc;

use bytes::{Buf, Bytes};
use prony_engine::SendBuf;

/// A part of a body.
pub(super) enum Data {
    /// Of a vector, or of the program.
    Bytes(Bytes),
    /// Of bytes that the request keeps, to send them again; they stay on their thread, and
    /// so are not `Bytes`.
    Shared(Rc<[u8]>, Range<usize>),
}

impl Data {
    /// Takes the first `count` bytes off, at most all.
    pub fn split_to(&mut self, count: usize) -> Data {
        let count = count.min(self.remaining());
        match self {
            Data::Bytes(bytes) => Data::Bytes(bytes.split_to(count)),
            Data::Shared(bytes, range) => {
                let first = range.start..range.start + count;
                range.start = first.end;
                Data::Shared(bytes.clone(), first)
            }
        }
    }
}

impl Default for Data {
    fn default() -> Data {
        Data::Bytes(Bytes::new())
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Data {
        Data::Bytes(bytes.into())
    }
}

impl From<SendBuf> for Data {
    fn from(bytes: SendBuf) -> Data {
        match bytes {
            SendBuf::Owned(bytes) => Data::from(bytes),
            SendBuf::Static(bytes) => Data::Bytes(Bytes::from_static(bytes)),
            SendBuf::Shared(bytes) => {
                let range = 0..bytes.len();
                Data::Shared(bytes, range)
            }
        }
    }
}

impl Buf for Data {
    fn remaining(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Shared(_, range) => range.len(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Data::Bytes(bytes) => bytes,
            Data::Shared(bytes, range) => &bytes[range.clone()],
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Data::Bytes(bytes) => bytes.advance(count),
            Data::Shared(_, range) => {
                assert!(
                    count <= range.len(),
                    "as Buf has it: no further than the end"
                );
                range.start += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_kind_are_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        let fixed: &'static [u8] = b"0123456789";
        for (bytes, wanted) in [
            (SendBuf::Owned(bytes.clone()), &bytes[..]),
            (SendBuf::Shared(Rc::from(&bytes[..])), &bytes[..]),
            (SendBuf::Static(fixed), fixed),
        ] {
            let mut data = Data::from(bytes);
            let mut got = Vec::new();
            for count in [0, 1, 3, 7, 1_000] {
                let mut part = data.split_to(count);
                while part.has_remaining() {
                    let step = part.remaining().min(2);
                    got.extend_from_slice(&part.chunk()[..step]);
                    part.advance(step);
                }
            }
            assert_eq!((got.as_slice(), data.remaining()), (wanted, 0));
        }
    }
}
