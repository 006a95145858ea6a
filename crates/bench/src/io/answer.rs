//! The answer on one connection: a head that must say 200, and a body of which
//! every byte is counted. Not for: receiving them (the strategies), or any other answer.

use std::io;
use std::net::SocketAddr;

use prony_base::Nanos;
use prony_wire::{Framing, Limits, Method, ResponseEvent, ResponseHead, ResponseReader};
use thiserror::Error;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DownloadPhase {
    /// Connecting.
    Connect,
    /// Sending the request.
    Send,
    /// Waiting for the first byte.
    Wait,
    /// Receiving the answer's head or body.
    Receive,
}

impl DownloadPhase {
    fn name(self) -> &'static str {
        match self {
            DownloadPhase::Connect => "connecting",
            DownloadPhase::Send => "sending the request",
            DownloadPhase::Wait => "waiting for the first byte",
            DownloadPhase::Receive => "receiving",
        }
    }
}

/// Why a download failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// The error of the system.
    #[error("{}: {cause}", phase.name())]
    System {
        /// The phase in which it failed.
        phase: DownloadPhase,
        /// The text.
        cause: io::Error,
    },
    /// Nothing happened in the time allowed.
    #[error("{}: nothing happened for {after}", phase.name())]
    Timeout {
        /// The phase in which it failed.
        phase: DownloadPhase,
        /// The time.
        after: Nanos,
    },
    /// The end of the stream before a whole head.
    #[error("the server closed the connection before it answered")]
    Unanswered,
    /// The end of the stream before the end of the body.
    #[error("the server closed the connection after {got} of {of} bytes")]
    Short {
        /// Bytes of the body that came.
        got: u64,
        /// Bytes that it should have.
        of: u64,
    },
    /// More bytes than the body should have.
    #[error("more than the {of} bytes came that the body should have")]
    Long {
        /// Bytes that it should have.
        of: u64,
    },
    /// Another length than expected.
    #[error("Content-Length is {content_length}, but {expected} bytes were expected")]
    Length {
        /// The length in the head.
        content_length: u64,
        /// The expected length.
        expected: u64,
    },
    /// Another status than 200.
    #[error("the answer has status {0}, not 200")]
    Status(u16),
    /// A coding that has to be taken off, which no strategy does.
    #[error(
        "the answer is chunked: a body whose bytes can be counted as they come is needed (ask for --http 1.0)"
    )]
    Chunked,
    /// Bytes that are no answer.
    #[error("the answer breaks a rule of HTTP: {0}")]
    Http(prony_wire::Error),
}

impl Failure {
    /// Its name in counts of failures.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::System { cause, .. } => match cause.kind() {
                io::ErrorKind::ConnectionRefused => "refused",
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => "reset",
                _ => "system",
            },
            Failure::Timeout { .. } => "timeout",
            Failure::Unanswered => "closed",
            Failure::Short { .. } => "short",
            Failure::Long { .. } => "long",
            Failure::Length { .. } => "length",
            Failure::Status(_) => "status",
            Failure::Chunked => "chunked",
            Failure::Http(_) => "protocol",
        }
    }
}

/// The version that a request names.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Version {
    /// As the original: the answer ends with the connection.
    Http10,
    /// With `Connection: close`.
    #[default]
    Http11,
}

/// The request that every connection sends.
pub fn request(version: Version, path: &str, address: SocketAddr) -> Vec<u8> {
    match version {
        Version::Http10 => format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"),
        Version::Http11 => {
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        }
    }
    .into_bytes()
}

/// One answer as far as it was received.
#[derive(Debug)]
pub struct Answer {
    state: State,
    expected: Option<u64>,
    body_bytes: u64,
}

#[derive(Debug)]
enum State {
    Head(Box<ResponseReader>),
    /// `left`: bytes to the end; `None`: it ends with the stream.
    Body {
        left: Option<u64>,
    },
}

impl Answer {
    /// Nothing was received. `expected`: bytes that the body must have.
    pub fn new(expected: Option<u64>) -> Answer {
        let mut reader = ResponseReader::new(Limits::for_responses());
        // One request is below any limit of outstanding ones.
        let _ = reader.expect(&Method::Get);
        Answer {
            state: State::Head(Box::new(reader)),
            expected,
            body_bytes: 0,
        }
    }

    /// Bytes of the body so far.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Most bytes of the body that may still come; `None` within the head.
    pub fn body_left(&self) -> Option<u64> {
        match self.state {
            State::Head(_) => None,
            State::Body { left } => Some(left.unwrap_or(u64::MAX)),
        }
    }

    /// Takes received bytes; true once the answer is whole.
    #[inline]
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        match self.state {
            State::Body { .. } => self.count(bytes.len() as u64),
            State::Head(_) => self.take_head(bytes),
        }
    }

    /// Takes `count` bytes of the body that were received and need not be seen.
    #[inline]
    pub fn count(&mut self, count: u64) -> Result<bool, Failure> {
        self.body_bytes += count;
        let State::Body { left } = &mut self.state else {
            return Ok(false);
        };
        match left {
            Some(left) => {
                let of = self.body_bytes - count + *left;
                *left = left.checked_sub(count).ok_or(Failure::Long { of })?;
                Ok(*left == 0)
            }
            None => match self.expected {
                Some(of) if self.body_bytes > of => Err(Failure::Long { of }),
                _ => Ok(false),
            },
        }
    }

    fn take_head(&mut self, mut bytes: &[u8]) -> Result<bool, Failure> {
        loop {
            let State::Head(reader) = &mut self.state else {
                return self.count(bytes.len() as u64);
            };
            let (used, event) = reader.next(bytes).map_err(Failure::Http)?;
            let left = match event {
                None => return Ok(false),
                Some(ResponseEvent::Head(head)) => Some(checked(&head, self.expected)?),
                Some(_) => None,
            };
            bytes = &bytes[used..];
            if let Some(left) = left {
                self.state = State::Body { left };
            }
        }
    }

    /// The stream ended; right where that is the end of the answer.
    pub fn end(&self) -> Result<(), Failure> {
        let got = self.body_bytes;
        match (&self.state, self.expected) {
            (State::Head(_), _) => Err(Failure::Unanswered),
            (State::Body { left: Some(left) }, _) if *left > 0 => Err(Failure::Short {
                got,
                of: got + left,
            }),
            (State::Body { left: None }, Some(of)) if got < of => Err(Failure::Short { got, of }),
            _ => Ok(()),
        }
    }
}

/// Bytes that follow a head; `None`: until the stream ends.
fn checked(head: &ResponseHead<'_>, expected: Option<u64>) -> Result<Option<u64>, Failure> {
    if head.status != 200 {
        return Err(Failure::Status(head.status));
    }
    let content_length = match head.framing {
        Framing::Chunked => return Err(Failure::Chunked),
        Framing::UntilClose => return Ok(None),
        Framing::None => 0,
        Framing::Length(content_length) => content_length,
    };
    match expected {
        Some(expected) if expected != content_length => Err(Failure::Length {
            content_length,
            expected,
        }),
        _ => Ok(Some(content_length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The kind of failure, or the bytes of the body, when `bytes` come in pieces of `each`.
    fn read(bytes: &[u8], each: usize, expected: Option<u64>) -> Result<u64, &'static str> {
        let mut answer = Answer::new(expected);
        for piece in bytes.chunks(each.max(1)) {
            match answer.take(piece) {
                Ok(false) => {}
                Ok(true) if bytes.ends_with(piece) => return Ok(answer.body_bytes()),
                Ok(true) => return Ok(answer.body_bytes()),
                Err(failure) => return Err(failure.kind()),
            }
        }
        answer.end().map_err(|failure| failure.kind())?;
        Ok(answer.body_bytes())
    }

    #[test]
    fn each_wrong_answer_is_a_failure_by_name() {
        let of = |text: &str, expected| read(text.as_bytes(), 1_000, expected);
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(of(&format!("{ok}abc"), None), Ok(3));
        assert_eq!(of(&format!("{ok}abc"), Some(3)), Ok(3));
        assert_eq!(of(&format!("{ok}abc"), Some(4)), Err("length"));
        assert_eq!(of(&format!("{ok}ab"), None), Err("short"));
        assert_eq!(of(&format!("{ok}abcd"), None), Err("long"));
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Le", None), Err("closed"));
        assert_eq!(of("", None), Err("closed"));
        let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(of(missing, None), Err("status"));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(of(chunked, None), Err("chunked"));
        assert_eq!(of("SSH-2.0-OpenSSH\r\n\r\n", None), Err("protocol"));
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_stream() {
        let text = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(read(text, 100, None), Ok(3));
        assert_eq!(read(text, 100, Some(3)), Ok(3));
        assert_eq!(read(text, 100, Some(4)), Err("short"));
        assert_eq!(read(text, 100, Some(2)), Err("long"));
    }

    #[test]
    fn what_was_discarded_counts_as_what_was_seen() {
        let mut answer = Answer::new(None);
        assert_eq!(answer.body_left(), None);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
        assert!(!answer.take(head).unwrap());
        assert_eq!(answer.body_left(), Some(7));
        assert!(!answer.count(6).unwrap());
        assert!(answer.count(1).unwrap());
        assert_eq!(answer.body_bytes(), 10);
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(length in 0_usize..300, each in 1_usize..400, interim: bool) {
            let mut bytes = Vec::new();
            if interim {
                bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
            }
            bytes.extend_from_slice(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes());
            bytes.resize(bytes.len() + length, b'x');
            prop_assert_eq!(read(&bytes, each, Some(length as u64)), Ok(length as u64));
        }
    }
}
