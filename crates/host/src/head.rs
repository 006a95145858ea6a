//! The head of an answer, as an application gives it to `start_response`: checked, and
//! kept until it is sent.
//!
//! Not for: Lua; the values are bytes here.

use std::fmt;
use std::mem;

use prony_hosting::HOP_BY_HOP;
use prony_http::{OwnedHeaders, Status};

/// The arguments of one request's `start_response` and `write`.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// 0 before `start_response` was called.
    pub code: u16,
    /// Empty: the usual one.
    reason: Vec<u8>,
    pub headers: OwnedHeaders,
    /// Content-Length, which is not among the headers.
    pub length: Option<u64>,
    /// The arguments of a `start_response` under way: none of them counts before all do.
    draft: Box<Draft>,
    /// The bytes that `write` was given and that have not been sent.
    pub written: Vec<u8>,
    /// It is on its way, and cannot be changed.
    pub is_sent: bool,
}

#[derive(Debug, Default)]
struct Draft {
    code: u16,
    reason: Vec<u8>,
    headers: OwnedHeaders,
    length: Option<u64>,
}

/// An error in a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Status(String),
    /// The headers are such a value.
    Headers(String),
    /// The header in this place is no pair.
    Pair(usize),
    /// A name is such a value.
    NameKind(String),
    /// The value of this header is such a value.
    ValueKind(String, String),
    HopByHop(String),
    Name(String),
    Value(String),
    Length(String),
}

impl Head {
    /// As before `start_response`.
    pub fn clear(&mut self) {
        self.code = 0;
        self.headers.clear();
        self.length = None;
        self.written.clear();
        self.is_sent = false;
    }

    /// Takes a status, in place of all that was given before: once it is committed.
    pub fn begin(&mut self, status: Status<'_>) {
        self.draft.code = status.code;
        self.draft.reason.clear();
        let reason = status.reason.unwrap_or_default();
        self.draft.reason.extend_from_slice(reason);
        self.draft.headers.clear();
        self.draft.length = None;
    }

    /// From here on what was given since [`begin`](Head::begin) is the head.
    pub fn commit(&mut self) {
        self.code = self.draft.code;
        mem::swap(&mut self.reason, &mut self.draft.reason);
        mem::swap(&mut self.headers, &mut self.draft.headers);
        self.length = self.draft.length;
    }

    /// Whether `start_response` was called.
    pub fn is_started(&self) -> bool {
        self.code != 0
    }

    /// Status and reason.
    pub fn status(&self) -> Status<'_> {
        Status {
            code: self.code,
            reason: Some(self.reason.as_slice()).filter(|reason| !reason.is_empty()),
        }
    }

    /// Takes a header.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        // Lengths first: most names are none of these.
        match name.len() {
            // The server says what time it is.
            4 if is("date") => return Ok(()),
            14 if is("content-length") => {
                let length = parse_length(value).ok_or_else(|| Fault::Length(lossy(value)))?;
                if self.draft.length.is_some_and(|before| before != length) {
                    return Err(Fault::Length(lossy(value)));
                }
                self.draft.length = Some(length);
                return Ok(());
            }
            2 | 7 | 8 | 10 | 16..=19 if HOP_BY_HOP.iter().any(|other| is(other)) => {
                return Err(Fault::HopByHop(lossy(name)));
            }
            _ => {}
        }
        let text = std::str::from_utf8(name).map_err(|_| Fault::Name(lossy(name)))?;
        if self.draft.headers.push(text, value) {
            return Ok(());
        }
        let mut probe = OwnedHeaders::default();
        Err(match probe.push(text, b"") {
            true => Fault::Value(lossy(name)),
            false => Fault::Name(lossy(name)),
        })
    }
}

/// A status as `start_response` takes it: `200 OK`, or `200`.
pub(crate) fn parse_status(text: &[u8]) -> Result<Status<'_>, Fault> {
    let wrong = || Fault::Status(format!("{:?}", lossy(text)));
    let (digits, reason) = text.split_at_checked(3).ok_or_else(wrong)?;
    if !digits.iter().all(u8::is_ascii_digit) || !(reason.is_empty() || reason[0] == b' ') {
        return Err(wrong());
    }
    if reason.iter().any(|&byte| byte < b' ' || byte == 0x7f) {
        return Err(wrong());
    }
    let code = digits
        .iter()
        .fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    let code = check_status(code).ok_or_else(wrong)?;
    let reason = reason.get(1..).filter(|reason| !reason.is_empty());
    Ok(Status { code, reason })
}

/// A status that is a number.
pub(crate) fn number_status(number: f64) -> Result<Status<'static>, Fault> {
    let code = number as u16;
    let is_whole = f64::from(code) == number;
    check_status(code)
        .filter(|_| is_whole)
        .map(Status::from)
        .ok_or_else(|| Fault::Status(number.to_string()))
}

/// A status that may be an answer's.
fn check_status(code: u16) -> Option<u16> {
    (200..=999).contains(&code).then_some(code)
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok()?;
    is_number.then(|| text.parse().ok())?
}

fn lossy(bytes: &[u8]) -> String {
    let most = bytes.len().min(100);
    String::from_utf8_lossy(&bytes[..most])
        .escape_debug()
        .to_string()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Status(status) => write!(
                f,
                "start_response: the status is {status}: it has to be a string such as \
                 \"200 OK\", or a number, from 200 to 999"
            ),
            Fault::Headers(kind) => write!(
                f,
                "start_response: the headers are a {kind}, not a table: {{{{name, value}}, ...}} \
                 or {{name = value, ...}}"
            ),
            Fault::Pair(place) => write!(
                f,
                "start_response: header {place} is not a table {{name, value}}"
            ),
            Fault::NameKind(kind) => {
                write!(
                    f,
                    "start_response: the name of a header is a {kind}, not a string"
                )
            }
            Fault::ValueKind(name, kind) => write!(
                f,
                "start_response: the value of the header `{name}` is a {kind}, not a string"
            ),
            Fault::HopByHop(name) => write!(
                f,
                "start_response: the header `{name}` concerns the connection, which is the \
                 server's business"
            ),
            Fault::Name(name) => write!(
                f,
                "start_response: the header name `{name}` is none: letters, digits and \
                 !#$%&'*+-.^_`|~ make one"
            ),
            Fault::Value(name) => write!(
                f,
                "start_response: the value of the header `{name}` holds a control character, \
                 such as a line break"
            ),
            Fault::Length(value) => write!(
                f,
                "start_response: the Content-Length `{value}` is not a number of bytes, or \
                 differs from the one given before"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        for (text, code, reason) in [
            ("200 OK", 200, Some("OK")),
            ("404", 404, None),
            ("299 ", 299, None),
            ("999 a b", 999, Some("a b")),
        ] {
            let reason = reason.map(str::as_bytes);
            let status = Ok(Status { code, reason });
            assert_eq!(parse_status(text.as_bytes()), status, "{text}");
        }
        for text in [
            "",
            "20",
            "2000",
            "200OK",
            "100 Continue",
            " 200",
            "200 a\r\nb: c",
        ] {
            assert!(parse_status(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn headers_that_an_application_may_not_give_are_refused_by_name() {
        let mut head = Head::default();
        head.begin(200.into());
        for name in HOP_BY_HOP {
            let fault = head.push(name.to_uppercase().as_bytes(), b"x");
            assert_eq!(fault, Err(Fault::HopByHop(name.to_uppercase())));
        }
        assert_eq!(head.push(b"a b", b""), Err(Fault::Name("a b".into())));
        assert_eq!(head.push(b"", b""), Err(Fault::Name(String::new())));
        let split = head.push(b"x", b"a\r\nb: c");
        assert_eq!(split, Err(Fault::Value("x".into())));
        assert!(head.draft.headers.as_headers().is_empty());
        assert!(!head.is_started());
        assert_eq!(head.push(b"X", b"\xff\t"), Ok(()));
        assert_eq!(head.push(b"date", b"never"), Ok(()));
        assert_eq!(head.push(b"content-LENGTH", b"12"), Ok(()));
        assert_eq!(head.draft.length, Some(12));
        for value in ["", "-1", "+1", "1 ", "0x1", "13", "99999999999999999999"] {
            assert!(head.push(b"content-length", value.as_bytes()).is_err());
        }
        assert_eq!((head.code, head.length), (0, None));
        head.commit();
        assert_eq!((head.code, head.length), (200, Some(12)));
        assert_eq!(head.headers.as_headers().len(), 1);
    }
}
