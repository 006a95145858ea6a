//! What the header lines of a head say about framing and the connection, in
//! one pass over the lines that `httparse` found; and names for what
//! `httparse` did not like.

use crate::authority::HostLines;
use crate::headers::{is_token, is_token_byte, list};
use crate::{Error, Limit, Limits, Version};

/// The transfer codings of a message, over all its Transfer-Encoding lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codings {
    /// No Transfer-Encoding line.
    Absent,
    /// `chunked` and nothing else.
    Chunked,
    /// `identity` and nothing else, which older servers send.
    Identity,
    /// Codings that are not `chunked`.
    Others,
    /// `chunked` once and last, after others.
    OthersThenChunked,
    /// Anything else: no end can be found.
    Bad,
}

/// What the lines say.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) length: Option<u64>,
    pub(crate) codings: Codings,
    pub(crate) close: bool,
    pub(crate) keep: bool,
    pub(crate) hosts: HostLines,
    pub(crate) expects_continue: bool,
}

impl Facts {
    /// Reads them from all `headers`. Fails on lengths that are no lengths or
    /// differ, and on a Host that is none.
    #[inline]
    pub(crate) fn of(headers: &[httparse::Header<'_>]) -> Result<Facts, Error> {
        let mut facts = Facts {
            length: None,
            codings: Codings::Absent,
            close: false,
            keep: false,
            hosts: HostLines::default(),
            expects_continue: false,
        };
        for header in headers {
            // The length of the name rules out nearly all lines at once.
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("host") => {
                    facts.hosts.take(header.value)?;
                }
                6 if header.name.eq_ignore_ascii_case("expect") => facts.expect(header.value),
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    facts.connection(header.value);
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    facts.content_length(header.value)?;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    facts.transfer_encoding(header.value);
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    /// Whether the connection may be used again, as far as the Connection
    /// lines say. `close` wins over `keep-alive`.
    pub(crate) fn keep_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep)
    }

    fn expect(&mut self, value: &[u8]) {
        self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
    }

    fn connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Equal lengths may repeat, in lines or in a list; RFC 9112 section 6.3.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Error> {
        for member in list(value) {
            let length = decimal(member)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Error::ConflictingContentLength);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) {
        for coding in list(value) {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            let identity = coding.eq_ignore_ascii_case(b"identity");
            self.codings = match self.codings {
                Codings::Absent if chunked => Codings::Chunked,
                Codings::Absent if identity => Codings::Identity,
                Codings::Absent | Codings::Others if is_token(coding) && !identity => match chunked
                {
                    true => Codings::OthersThenChunked,
                    false => Codings::Others,
                },
                _ => Codings::Bad,
            };
        }
    }
}

fn decimal(digits: &[u8]) -> Result<u64, Error> {
    if digits.is_empty() {
        return Err(Error::BadContentLength);
    }
    let mut overflow = false;
    let mut value = 0_u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return Err(Error::BadContentLength);
        }
        let next = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit - b'0')));
        overflow |= next.is_none();
        value = next.unwrap_or(0);
    }
    match overflow {
        true => Err(Error::ContentLengthOverflow),
        false => Ok(value),
    }
}

/// Names the fault on which `httparse` stopped with `error`: in a first line
/// (empty for trailers) or in the header lines that follow it.
#[cold]
pub(crate) fn name_fault(
    (first, lines): (&[u8], &[u8]),
    error: httparse::Error,
    limits: &Limits,
) -> Error {
    if has_bare_carriage_return(first) || has_bare_carriage_return(lines) {
        return Error::BareCarriageReturn;
    }
    match error {
        httparse::Error::HeaderName => name_header_fault(lines),
        httparse::Error::HeaderValue => Error::BadHeaderValue,
        httparse::Error::Status => Error::BadStatusLine,
        httparse::Error::TooManyHeaders => Limit::Headers.reached(limits),
        httparse::Error::NewLine | httparse::Error::Token | httparse::Error::Version => {
            name_first_line_fault(first)
        }
    }
}

/// A head as its first line and the rest.
pub(crate) fn split_first_line(head: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', head).map_or(head.len(), |feed| feed + 1);
    head.split_at(end)
}

fn has_bare_carriage_return(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', head).any(|at| head.get(at + 1) != Some(&b'\n'))
}

fn name_header_fault(lines: &[u8]) -> Error {
    let bad = lines
        .split(|&byte| byte == b'\n')
        .find(|line| !is_token(name_of(line)) && *line != b"\r");
    match bad {
        Some([b' ' | b'\t', ..]) => Error::FoldedHeader,
        Some(line) if is_token(name_of(line).trim_ascii_end()) && line.contains(&b':') => {
            Error::SpaceBeforeColon
        }
        _ => Error::BadHeaderName,
    }
}

/// A line up to its colon.
fn name_of(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b':').next().unwrap_or_default()
}

fn name_first_line_fault(line: &[u8]) -> Error {
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    if line.starts_with(b"HTTP/") {
        return name_version_fault(&line[..line.len().min(8)], Error::BadStatusLine);
    }
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    match words[..] {
        [method, ..] if !method.iter().all(|&byte| is_token_byte(byte)) => Error::BadMethod,
        [_, b"", ..] | [_] | [_, _] => Error::BadRequestLine,
        [_, target, ..] if !target.iter().all(u8::is_ascii_graphic) => Error::BadTarget,
        [_, _, version] => name_version_fault(version, Error::BadVersion),
        _ => Error::BadRequestLine,
    }
}

fn name_version_fault(version: &[u8], otherwise: Error) -> Error {
    match version {
        b"HTTP/1.0" | b"HTTP/1.1" => otherwise,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Error::UnsupportedVersion
        }
        _ => Error::BadVersion,
    }
}
