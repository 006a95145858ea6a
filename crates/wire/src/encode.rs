//! Heads and chunks into bytes, appended to the caller's buffer; nothing is
//! allocated besides that buffer's own growth.
//!
//! Not for: deciding what to say. The framing is the caller's word, and the
//! header lines for it are written here only, so that they cannot contradict it.
//!
//! ```
//! use prony_wire::{Framing, Version, encode};
//!
//! let mut out = Vec::new();
//! encode::response(&mut out, Version::Http11, 200)
//!     .header("content-type", "text/plain")
//!     .keep_alive(false)
//!     .finish(Framing::Length(2))?;
//! out.extend_from_slice(b"hi");
//! assert_eq!(
//!     out,
//!     b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\
//!       content-length: 2\r\n\r\nhi"
//! );
//! # Ok::<(), encode::EncodeError>(())
//! ```

use std::fmt;

use crate::headers::{is_token, is_value};
use crate::{Framing, Header, Method, Status, Version, reason};

/// Why something cannot be sent. What was written of it is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EncodeError {
    /// A header name that is no token.
    BadHeaderName,
    /// A header value with a control byte, such as CR, LF or NUL.
    BadHeaderValue,
    /// A status under 100 or over 999.
    BadStatus,
    /// A reason with a control byte.
    BadReason,
    /// A target that is empty or holds a byte outside visible ASCII.
    BadTarget,
    /// A framing that this message cannot have.
    BadFraming,
    /// Content-Length or Transfer-Encoding given as a header.
    FramingHeader,
    /// A request in HTTP/1.1 without Host.
    MissingHost,
    /// Host given more than once.
    RepeatedHost,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EncodeError::BadHeaderName => "the header name is no token",
            EncodeError::BadHeaderValue => "the header value holds a control byte",
            EncodeError::BadStatus => "the status is not between 100 and 999",
            EncodeError::BadReason => "the reason holds a control byte",
            EncodeError::BadTarget => "the target is empty or not visible ASCII",
            EncodeError::BadFraming => "this message cannot have a body framed so",
            EncodeError::FramingHeader => {
                "Content-Length and Transfer-Encoding follow from the framing and cannot be given"
            }
            EncodeError::MissingHost => "an HTTP/1.1 request needs a Host header",
            EncodeError::RepeatedHost => "there can be only one Host header",
        })
    }
}

impl std::error::Error for EncodeError {}

/// Starts a request head at the end of `out`.
pub fn request<'v>(
    out: &'v mut Vec<u8>,
    method: &Method,
    target: &str,
    version: Version,
) -> HeadWriter<'v> {
    let mut head = HeadWriter::new(out, version, Kind::Request);
    let visible = target
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if target.is_empty() || !visible {
        head.fail(EncodeError::BadTarget);
    }
    head.put(&[method.name(), " ", target, " ", version.name(), "\r\n"]);
    head
}

/// Starts a response head at the end of `out`; `status` is a number, or a [`Status`] with
/// a reason of its own.
pub fn response<'v>(
    out: &'v mut Vec<u8>,
    version: Version,
    status: impl Into<Status<'v>>,
) -> HeadWriter<'v> {
    let Status { code, reason: own } = status.into();
    let mut head = HeadWriter::new(out, version, Kind::Response(code));
    if !(100..=999).contains(&code) {
        head.fail(EncodeError::BadStatus);
    }
    if own.is_some_and(|reason| !is_value(reason)) {
        head.fail(EncodeError::BadReason);
    }
    let mut digits = itoa::Buffer::new();
    head.put(&[version.name(), " ", digits.format(code), " "]);
    let reason = own.unwrap_or(reason(code).as_bytes());
    head.out.extend_from_slice(reason);
    head.put(&["\r\n"]);
    head
}

/// A head being written. Faults are kept until [`HeadWriter::finish`], which
/// takes the head back if there was one; so does dropping it unfinished.
#[must_use = "a head counts only when finished"]
#[derive(Debug)]
pub struct HeadWriter<'v> {
    out: &'v mut Vec<u8>,
    /// Where the head starts in `out`.
    start: usize,
    version: Version,
    kind: Kind,
    keep_alive: Option<bool>,
    hosts: u32,
    state: Result<(), EncodeError>,
    finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Response(u16),
}

impl<'v> HeadWriter<'v> {
    fn new(out: &'v mut Vec<u8>, version: Version, kind: Kind) -> HeadWriter<'v> {
        HeadWriter {
            start: out.len(),
            out,
            version,
            kind,
            keep_alive: None,
            hosts: 0,
            state: Ok(()),
            finished: false,
        }
    }

    /// Adds a header. Not for Content-Length and Transfer-Encoding, which
    /// follow from the framing.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if is_host(name) {
            self.hosts += 1;
        }
        if let Err(error) = put_header(self.out, &Header::new(name, value.as_ref())) {
            self.fail(error);
        }
        self
    }

    /// Adds all of `headers`.
    pub fn headers<'h>(self, headers: impl IntoIterator<Item = Header<'h>>) -> Self {
        headers
            .into_iter()
            .fold(self, |head, header| head.header(header.name, header.value))
    }

    /// Says whether the connection may be used again, where the version's
    /// default is otherwise. Do not give a Connection header besides.
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Writes the lines for this framing and the empty line. A response in
    /// `UntilClose` says `connection: close`. `Length` in a response to HEAD or
    /// in a 304 is what the body would have had; send none. `None` writes no
    /// line: right for requests without body, 1xx, 204, 304 and answers to HEAD;
    /// any other response without a body is `Length(0)`.
    pub fn finish(mut self, framing: Framing) -> Result<(), EncodeError> {
        self.check(framing);
        self.state?;
        self.put_connection(framing);
        match framing {
            Framing::None | Framing::UntilClose => {}
            Framing::Length(length) => {
                let mut digits = itoa::Buffer::new();
                self.put(&["content-length: ", digits.format(length), "\r\n"]);
            }
            Framing::Chunked => self.put(&["transfer-encoding: chunked\r\n"]),
        }
        self.put(&["\r\n"]);
        self.finished = true;
        Ok(())
    }

    fn check(&mut self, framing: Framing) {
        if self.kind == Kind::Request {
            match (self.hosts, self.version) {
                (0, Version::Http11) => self.fail(EncodeError::MissingHost),
                (0 | 1, _) => {}
                _ => self.fail(EncodeError::RepeatedHost),
            }
        }
        if !framing_allowed(self.kind, self.version, framing) {
            self.fail(EncodeError::BadFraming);
        }
    }

    fn put_connection(&mut self, framing: Framing) {
        let keep_alive = match framing {
            Framing::UntilClose => Some(false),
            _ => self.keep_alive,
        };
        match (self.version, keep_alive) {
            (Version::Http11, Some(false)) => self.put(&["connection: close\r\n"]),
            (Version::Http10, Some(true)) => self.put(&["connection: keep-alive\r\n"]),
            _ => {}
        }
    }

    fn put(&mut self, parts: &[&str]) {
        for part in parts {
            self.out.extend_from_slice(part.as_bytes());
        }
    }

    /// Keeps the first fault.
    fn fail(&mut self, error: EncodeError) {
        self.state = self.state.and(Err(error));
    }
}

impl Drop for HeadWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

/// RFC 9112, section 6: who may frame how.
fn framing_allowed(kind: Kind, version: Version, framing: Framing) -> bool {
    match (kind, framing) {
        (_, Framing::None) => true,
        (_, Framing::Chunked) if version == Version::Http10 => false,
        (Kind::Request, Framing::UntilClose) => false,
        (Kind::Response(101), Framing::UntilClose) => true,
        (Kind::Response(100..=199 | 204), _) => false,
        (Kind::Response(304), Framing::UntilClose) => false,
        _ => true,
    }
}

/// Appends `data` as one chunk; nothing if it is empty, because an empty chunk
/// would end the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    put_hex(out, data.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Appends the last chunk and the trailers. On error nothing is appended.
pub fn last_chunk<'h>(
    out: &mut Vec<u8>,
    trailers: impl IntoIterator<Item = Header<'h>>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(b"0\r\n");
    for trailer in trailers {
        if let Err(error) = put_header(out, &trailer) {
            out.truncate(start);
            return Err(error);
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn put_hex(out: &mut Vec<u8>, value: u64) {
    let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = (value >> (4 * place)) & 0xf;
        out.push(b"0123456789abcdef"[digit as usize]);
    }
}

fn put_header(out: &mut Vec<u8>, header: &Header<'_>) -> Result<(), EncodeError> {
    check_header(header)?;
    out.extend_from_slice(header.name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(header.value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

pub(crate) fn check_header(header: &Header<'_>) -> Result<(), EncodeError> {
    if !is_token(header.name.as_bytes()) {
        return Err(EncodeError::BadHeaderName);
    }
    if header.is("content-length") || header.is("transfer-encoding") {
        return Err(EncodeError::FramingHeader);
    }
    match is_value(header.value) {
        true => Ok(()),
        false => Err(EncodeError::BadHeaderValue),
    }
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// The value of `Authorization` for credentials, which are `NAME:PASSWORD` (RFC 7617).
pub fn basic(credentials: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = "Basic ".to_owned();
    for three in credentials.as_ref().chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= three.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    out
}
