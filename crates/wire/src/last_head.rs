//! The head of a response that was read last: servers send the same one again and again, and one that is the same byte for
//! byte is not parsed again. Not for: heads in several pieces, folded lines, interim responses.

use std::cell::RefCell;
use std::rc::Rc;

use crate::facts::split_first_line;
use crate::response::Expected;
use crate::{
    EndOfInput, Error, Framing, Headers, Limits, Method, ResponseEvent, ResponseHead,
    ResponseReader, Version, WholeResponse,
};

/// A longer head is parsed each time.
const BYTES_MAX: usize = 1024;
/// Where the reason stands in a head: after `HTTP/1.1 200 `.
const REASON_AT: usize = 13;

/// The last head of all readers that share it, those of a thread.
#[derive(Clone, Debug)]
pub struct LastHead {
    /// The limits of these readers: what they refuse depends on them.
    limits: Limits,
    parsed: Rc<RefCell<Parsed>>,
}

#[derive(Debug)]
struct Parsed {
    /// Empty: there was none.
    bytes: Vec<u8>,
    expected: Expected,
    version: Version,
    status: u16,
    reason_bytes: usize,
    lines_at: usize,
    lines: usize,
    framing: Framing,
    keep_alive: bool,
}

impl LastHead {
    /// None so far, for readers with these limits.
    pub fn new(limits: Limits) -> LastHead {
        let parsed = Parsed {
            bytes: Vec::new(),
            expected: Expected::Other,
            version: Version::Http11,
            status: 0,
            reason_bytes: 0,
            lines_at: 0,
            lines: 0,
            framing: Framing::None,
            keep_alive: false,
        };
        LastHead {
            limits,
            parsed: Rc::new(RefCell::new(parsed)),
        }
    }

    /// The limits of its readers.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The response that `input` begins with, where its head is this one in answer to the same kind of request, and its body
    /// is of known length and there.
    #[inline]
    pub(crate) fn whole<'a>(
        &self,
        input: &'a [u8],
        expected: Expected,
    ) -> Option<WholeResponse<'a>> {
        let last = self.parsed.borrow();
        let head_bytes = last.bytes.len();
        let body_bytes = match last.framing {
            Framing::None => 0,
            Framing::Length(length) => usize::try_from(length).ok()?,
            Framing::Chunked | Framing::UntilClose => return None,
        };
        if head_bytes == 0 || last.expected != expected || !input.starts_with(&last.bytes) {
            return None;
        }
        let body = input[head_bytes..].get(..body_bytes)?;
        let reason = &input[REASON_AT..REASON_AT + last.reason_bytes];
        let head = ResponseHead {
            version: last.version,
            status: last.status,
            reason: std::str::from_utf8(reason).unwrap_or_default(),
            headers: Headers::checked(&input[last.lines_at..head_bytes], last.lines),
            framing: last.framing,
            keep_alive: last.keep_alive,
        };
        Some(WholeResponse {
            head,
            body,
            used: head_bytes + body_bytes,
        })
    }

    /// Keeps a head, `bytes` as it came.
    #[inline]
    pub(crate) fn keep(&self, bytes: &[u8], head: &ResponseHead<'_>, expected: Expected) {
        let reason_bytes = head.reason.len();
        let reason = bytes.get(REASON_AT..REASON_AT + reason_bytes);
        // Folded lines are not as they came any more.
        let is_as_it_came = split_first_line(bytes).1.len() == head.headers.bytes();
        if bytes.len() > BYTES_MAX || reason != Some(head.reason.as_bytes()) || !is_as_it_came {
            return;
        }
        let mut last = self.parsed.borrow_mut();
        last.bytes.clear();
        last.bytes.extend_from_slice(bytes);
        last.expected = expected;
        (last.version, last.status) = (head.version, head.status);
        last.reason_bytes = reason_bytes;
        last.lines_at = bytes.len() - split_first_line(bytes).1.len();
        last.lines = head.headers.len();
        (last.framing, last.keep_alive) = (head.framing, head.keep_alive);
    }
}

/// A [`ResponseReader`] of one of several connections, which does not parse a head again that is the same as the last one of them all.
#[derive(Debug)]
pub struct SharingReader {
    reader: ResponseReader,
    last: LastHead,
}

impl SharingReader {
    /// A reader at the start of a connection.
    pub fn new(last: LastHead) -> SharingReader {
        SharingReader {
            reader: ResponseReader::new(last.limits),
            last,
        }
    }

    /// As [`ResponseReader::expect`].
    pub fn expect(&mut self, method: &Method) -> Result<(), Error> {
        self.reader.expect(method)
    }

    /// The next response at once, if `input` begins with one that is whole and not chunked, and its head is the last one. Else
    /// `None`, and nothing was used: go on with [`SharingReader::next`].
    #[inline]
    pub fn next_whole<'i>(&mut self, input: &'i [u8]) -> Option<WholeResponse<'i>> {
        let whole = self.last.whole(input, self.reader.expected_next()?)?;
        self.reader.read_elsewhere(whole.head.keep_alive);
        Some(whole)
    }

    /// As [`ResponseReader::next`].
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<ResponseEvent<'a>>), Error> {
        let expected = self.reader.expected_next();
        let found = self.reader.next(input)?;
        if let (used, Some(ResponseEvent::Head(head))) = &found
            && let Some(expected) = expected
        {
            self.last.keep(&input[..*used], head, expected);
        }
        Ok(found)
    }

    /// As [`ResponseReader::end_of_input`].
    pub fn end_of_input(&mut self) -> Result<EndOfInput, Error> {
        self.reader.end_of_input()
    }

    /// As [`ResponseReader::bytes_examined`].
    pub fn bytes_examined(&self) -> u64 {
        self.reader.bytes_examined()
    }
}
