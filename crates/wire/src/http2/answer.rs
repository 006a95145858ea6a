//! The head of an answer as a header block.

use super::hpack::{put_field, put_status};
use crate::encode::{self, EncodeError};
use crate::{Framing, Header};

/// Fields of a connection of HTTP/1.1, which HTTP/2 has none of (RFC 9113, section 8.2.2).
const LEFT_OUT: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];

/// Appends the fields of an answer: its status, `headers`, and its length where the framing gives one. Those that are
/// a connection's in HTTP/1.1 are left out.
///
/// # Errors
/// As of [`encode::response`]; then part of the block may be there.
#[inline]
pub fn put_answer_head<'h>(
    out: &mut Vec<u8>,
    status: u16,
    headers: impl IntoIterator<Item = Header<'h>>,
    framing: Framing,
) -> Result<(), EncodeError> {
    if !(100..=999).contains(&status) {
        return Err(EncodeError::BadStatus);
    }
    put_status(out, status);
    for header in headers {
        encode::check_header(&header)?;
        if !LEFT_OUT.iter().any(|name| header.is(name)) {
            put_field(out, header.name, header.value);
        }
    }
    if let Framing::Length(length) = framing {
        let mut digits = itoa::Buffer::new();
        put_field(out, "content-length", digits.format(length).as_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_status_first_and_nothing_of_a_connection() {
        let headers = [
            Header::new("Content-Type", b"a/b"),
            Header::new("Connection", b"close"),
        ];
        let mut out = Vec::new();
        put_answer_head(&mut out, 200, headers, Framing::Length(12)).unwrap();
        assert_eq!(out, b"\x88\x0f\x10\x03a/b\x0f\x0d\x0212");
        for (header, error) in [
            (Header::new("a b", b""), EncodeError::BadHeaderName),
            (Header::new("a", b"\r\n"), EncodeError::BadHeaderValue),
            (
                Header::new("content-length", b"1"),
                EncodeError::FramingHeader,
            ),
        ] {
            let put = put_answer_head(&mut Vec::new(), 200, [header], Framing::None);
            assert_eq!(put, Err(error));
        }
        let put = put_answer_head(&mut Vec::new(), 99, [], Framing::None);
        assert_eq!(put, Err(EncodeError::BadStatus));
    }
}
