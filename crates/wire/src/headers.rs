//! Header lines of a parsed head or trailer section.
//!
//! [`Headers`] is the bytes themselves: lines are found again when they are
//! iterated, which for the few lines of a head costs less than storing where
//! each one is, and needs no memory per connection.
//!
//! Not for: deciding what a header means; see `facts`.

use memchr::memchr;

/// One header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name as it was written; compare with [`Header::is`].
    pub name: &'a str,
    /// The value without white space around it. Bytes from 0x80 up may occur.
    pub value: &'a [u8],
}

impl<'a> Header<'a> {
    /// A header of this name and value.
    pub const fn new(name: &'a str, value: &'a [u8]) -> Header<'a> {
        Header { name, value }
    }

    /// Whether this is its name, whatever the case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The value as text, if it is UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.value).ok()
    }
}

/// The header lines of a head or trailer section, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    /// INVARIANT: `len` lines, each a token, a colon, a value and CRLF, as
    /// `httparse` has checked; the empty line may follow.
    lines: &'a [u8],
    len: usize,
}

impl<'a> Headers<'a> {
    /// `lines` must be what `httparse` found to be `len` header lines.
    pub(crate) const fn checked(lines: &'a [u8], len: usize) -> Headers<'a> {
        Headers { lines, len }
    }

    /// How many bytes the lines and the empty one after them have.
    pub(crate) const fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// How many lines there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The lines in their order.
    pub const fn iter(&self) -> HeadersIter<'a> {
        HeadersIter {
            lines: self.lines,
            left: self.len,
        }
    }

    /// The value of the first line with this name, whatever the case.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// The values of all lines with this name, whatever the case.
    pub fn get_all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |header| header.is(name))
            .map(|header| header.value)
    }
}

/// Header lines kept beyond the bytes that they came in. Copying others into
/// it again reuses its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedHeaders {
    /// INVARIANT: as of [`Headers`].
    lines: Vec<u8>,
    len: usize,
}

impl OwnedHeaders {
    /// Replaces what was there by a copy of `headers`.
    pub fn copy_from(&mut self, headers: &Headers<'_>) {
        self.lines.clear();
        self.lines.extend_from_slice(headers.lines);
        self.len = headers.len;
    }

    /// Bytes of memory that are held for lines, be there any or not.
    pub fn memory_bytes(&self) -> usize {
        self.lines.capacity()
    }

    /// Removes all lines and keeps the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.len = 0;
    }

    /// Adds a line that came otherwise than in HTTP/1. False, and nothing is added, where
    /// its name is no token or its value holds a control byte.
    pub fn push(&mut self, name: &str, value: &[u8]) -> bool {
        let is_line = is_token(name.as_bytes()) && is_value(value);
        if is_line {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                self.lines.extend_from_slice(part);
            }
            self.len += 1;
        }
        is_line
    }

    /// The lines.
    pub fn as_headers(&self) -> Headers<'_> {
        Headers::checked(&self.lines, self.len)
    }

    /// The value of the first line with this name, whatever the case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.as_headers().get(name)
    }
}

impl<'a> IntoIterator for &Headers<'a> {
    type Item = Header<'a>;
    type IntoIter = HeadersIter<'a>;

    fn into_iter(self) -> HeadersIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Headers`].
#[derive(Clone, Debug)]
pub struct HeadersIter<'a> {
    lines: &'a [u8],
    left: usize,
}

impl<'a> Iterator for HeadersIter<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        let end = memchr(b'\n', self.lines)?;
        let (line, rest) = self.lines.split_at(end + 1);
        self.lines = rest;
        let colon = memchr(b':', line)?;
        Some(Header {
            // A token is ASCII, so the fallback is never taken.
            name: std::str::from_utf8(&line[..colon]).unwrap_or_default(),
            // Trims the CRLF, too. Other ASCII white space cannot occur.
            value: line[colon + 1..].trim_ascii(),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for HeadersIter<'_> {}

/// The members of a comma-separated list, without the white space around them.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// Whether `bytes` is a token (RFC 9110, section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

pub(crate) const fn is_token_byte(byte: u8) -> bool {
    matches!(byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9'
        | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+'
        | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// Whether a header value, or a reason, may be these bytes.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| is_value_byte(byte))
}

/// Whether a header value may hold this byte.
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_pushed_are_found_and_bad_ones_are_refused() {
        let mut headers = OwnedHeaders::default();
        assert!(headers.push("a", b"1"));
        assert!(headers.push("b-c", b" x: \xff "));
        for (name, value) in [
            ("", &b""[..]),
            ("a b", b""),
            ("a", b"x\r\ny: z"),
            ("a", b"\0"),
        ] {
            assert!(!headers.push(name, value), "{name:?}");
        }
        let lines: Vec<_> = headers.as_headers().iter().collect();
        let wanted = [Header::new("a", b"1"), Header::new("b-c", b"x: \xff")];
        assert_eq!(lines, wanted);
        assert_eq!(headers.get("B-C"), Some(&b"x: \xff"[..]));
        assert_eq!(headers.get("b"), None);
        headers.clear();
        assert!(headers.as_headers().is_empty());
    }
}
