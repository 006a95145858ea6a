//! The client's side of a connection: responses out of bytes.

use std::collections::VecDeque;
use std::mem::MaybeUninit;

use crate::body::{Body, Step};
use crate::facts::{Codings, Facts, name_fault, split_first_line};
use crate::gather::{Found, Gather};
use crate::{End, Error, Framing, HEADERS_CAP, Headers, Limit, Limits, Method, Version};

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The version.
    pub version: Version,
    /// The status, 100 to 999.
    pub status: u16,
    /// The reason phrase; empty if it holds bytes from 0x80 up.
    pub reason: &'a str,
    /// All header lines.
    pub headers: Headers<'a>,
    /// How the body is framed.
    pub framing: Framing,
    /// Whether the server allows another request after this one.
    pub keep_alive: bool,
}

/// What a [`ResponseReader`] found next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// An interim response (1xx but 101), whole; the final one is to follow.
    Interim(ResponseHead<'a>),
    /// A final response starts.
    Head(ResponseHead<'a>),
    /// Bytes of its body, never empty.
    Data(&'a [u8]),
    /// It is whole. A body that ends with the stream ends in
    /// [`EndOfInput::Complete`] instead.
    End(End<'a>),
}

/// A final response that lay whole in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeResponse<'a> {
    /// Its head.
    pub head: ResponseHead<'a>,
    /// Its body.
    pub body: &'a [u8],
    /// How many bytes of the chunk it had.
    pub used: usize,
}

/// What the end of the stream means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfInput {
    /// It came between responses; `unanswered` requests remain outstanding.
    Idle {
        /// How many requests got no response.
        unanswered: usize,
    },
    /// It completed a response whose body ends with the stream.
    Complete {
        /// How many further requests got no response.
        unanswered: usize,
    },
}

/// Reads the responses of one connection.
///
/// Tell it of each request with [`ResponseReader::expect`] when it is sent:
/// whether a response has a body depends on its request's method.
///
/// # Bodies
///
/// HEAD, 1xx, 204 and 304 have none, whatever their headers say. A success to
/// CONNECT, and 101, are followed by bytes until the stream ends.
///
/// # Refused
///
/// Bytes while no request is outstanding, empty lines before a status line
/// (which would be accepted or not depending on when they come), a CR or LF
/// alone, space before a colon or the first header line, control bytes, statuses under
/// 100, lengths that are not digits or differ, codings besides `chunked`.
///
/// # Forgiven, as browsers do
///
/// Header lines folded over several, which are joined by one space (not in trailers); a
/// missing reason; Content-Length repeated with the same value; white space
/// after a chunk size; `Transfer-Encoding: identity`, which says nothing.
/// With both Content-Length and Transfer-Encoding, or with Transfer-Encoding
/// in HTTP/1.0, `chunked` decides and the connection is not used again.
#[derive(Debug)]
pub struct ResponseReader {
    limits: Limits,
    gather: Gather,
    state: State,
    outstanding: VecDeque<Expected>,
    failed: Option<Error>,
}

/// What matters of a request's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Connect,
    Head,
    Other,
}

#[derive(Debug)]
enum State {
    /// Before or within a head, after `interim` interim responses.
    Head { interim: u32 },
    /// After a head.
    Body { body: Body, keep_alive: bool },
    /// After a last response.
    Closed,
}

impl ResponseReader {
    /// A reader at the start of a connection.
    pub fn new(limits: Limits) -> ResponseReader {
        ResponseReader {
            limits,
            gather: Gather::default(),
            state: State::Head { interim: 0 },
            outstanding: VecDeque::new(),
            failed: None,
        }
    }

    /// A request with this method is being sent. Fails when `outstanding_max`
    /// are outstanding already; the reader remains of use then.
    pub fn expect(&mut self, method: &Method) -> Result<(), Error> {
        if self.outstanding.len() >= self.limits.outstanding_max {
            return Err(Limit::Outstanding.reached(&self.limits));
        }
        self.outstanding.push_back(match method {
            Method::Connect => Expected::Connect,
            Method::Head => Expected::Head,
            _ => Expected::Other,
        });
        Ok(())
    }

    /// How many requests have had no final head yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// What the request was whose final head is to come next, where nothing of that has come yet.
    pub(crate) fn expected_next(&self) -> Option<Expected> {
        let is_between = matches!(self.state, State::Head { interim: 0 }) && self.gather.is_empty();
        let expected = self.outstanding.front().filter(|_| is_between);
        expected.filter(|_| self.failed.is_none()).copied()
    }

    /// A final response, of which [`ResponseReader::expected_next`] told, was read by somebody else.
    pub(crate) fn read_elsewhere(&mut self, keep_alive: bool) {
        self.gather.start_afresh_if_delivered();
        self.outstanding.pop_front();
        if !keep_alive {
            self.state = State::Closed;
        }
    }

    /// The next event and how many bytes of `input` were used for it. `None`:
    /// all were used and more are needed.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<ResponseEvent<'a>>), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Self {
            limits,
            gather,
            state,
            outstanding,
            failed,
        } = self;
        step(state, outstanding, gather, limits, input).inspect_err(|error| *failed = Some(*error))
    }

    /// The stream ended. Pull all events first. An end within a head or a body
    /// of known length is an error that says what was cut off.
    pub fn end_of_input(&mut self) -> Result<EndOfInput, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let unanswered = self.outstanding.len();
        match &self.state {
            State::Head { interim: 0 } if self.gather.is_empty() => {
                Ok(EndOfInput::Idle { unanswered })
            }
            State::Closed => Ok(EndOfInput::Idle { unanswered }),
            State::Body { body, .. } if body.is_whole() => Ok(EndOfInput::Idle { unanswered }),
            State::Body { body, .. } if body.ends_with_stream() => {
                self.state = State::Closed;
                Ok(EndOfInput::Complete { unanswered })
            }
            State::Head { .. } => Err(Error::TruncatedHead),
            State::Body { .. } => Err(Error::TruncatedBody),
        }
    }

    /// How many of the next bytes are known to be nothing but body
    /// (`u64::MAX`: all until the stream ends). They need not be fed if
    /// [`ResponseReader::skip`] is told.
    pub fn plain_bytes_left(&self) -> u64 {
        match &self.state {
            State::Body { body, .. } => body.plain_bytes_left(),
            State::Head { .. } | State::Closed => 0,
        }
    }

    /// The next `count` bytes, at most [`ResponseReader::plain_bytes_left`],
    /// were received and thrown away; the kernel can do that cheaply.
    pub fn skip(&mut self, count: u64) {
        if let State::Body { body, .. } = &mut self.state {
            body.skip(count);
        }
    }

    /// How many bytes of heads and trailers were searched or copied so far: at
    /// most three for each received, however they were split. For tests.
    pub fn bytes_examined(&self) -> u64 {
        self.gather.examined()
    }
}

#[inline]
fn step<'a>(
    state: &mut State,
    outstanding: &mut VecDeque<Expected>,
    gather: &'a mut Gather,
    limits: &Limits,
    input: &'a [u8],
) -> Result<(usize, Option<ResponseEvent<'a>>), Error> {
    match state {
        State::Head { .. } | State::Closed if input.is_empty() => Ok((0, None)),
        State::Head { .. } => head(state, outstanding, gather, limits, input),
        State::Body { body, keep_alive } => {
            // The head was seen: what it was kept in goes now, not with the next one.
            gather.start_afresh_if_delivered();
            let (used, step) = body.next(input, gather, limits)?;
            let event = match step {
                Step::More => None,
                Step::Data(data) => Some(ResponseEvent::Data(data)),
                Step::End(trailers) => {
                    let keep_alive = *keep_alive;
                    *state = match keep_alive {
                        true => State::Head { interim: 0 },
                        false => State::Closed,
                    };
                    Some(ResponseEvent::End(End {
                        keep_alive,
                        trailers,
                    }))
                }
            };
            Ok((used, event))
        }
        State::Closed => Err(Error::UnexpectedBytes),
    }
}

#[inline]
fn head<'a>(
    state: &mut State,
    outstanding: &mut VecDeque<Expected>,
    gather: &'a mut Gather,
    limits: &Limits,
    input: &'a [u8],
) -> Result<(usize, Option<ResponseEvent<'a>>), Error> {
    let Some(&expected) = outstanding.front() else {
        return Err(Error::UnexpectedBytes);
    };
    if gather.is_empty() && input[0] != b'H' {
        return Err(Error::BadStatusLine);
    }
    let used = match gather.find(input, limits.head_bytes_max)? {
        (used, Found::Part) => return Ok((used, None)),
        (_, Found::TooLong { .. }) => return Err(Limit::Head.reached(limits)),
        (used, Found::Whole) => used,
    };
    if gather.is_folded() {
        gather.unfold(input, used);
    }
    let head = parse(gather.whole(input, used), expected, limits)?;
    if let (State::Head { interim }, 100 | 102..=199) = (&mut *state, head.status) {
        *interim += 1;
        return match *interim > limits.interim_responses_max {
            true => Err(Limit::Interim.reached(limits)),
            false => Ok((used, Some(ResponseEvent::Interim(head)))),
        };
    }
    outstanding.pop_front();
    *state = State::Body {
        body: Body::new(head.framing, true),
        keep_alive: head.keep_alive,
    };
    Ok((used, Some(ResponseEvent::Head(head))))
}

/// Parses a whole head, which ends in an empty line and holds no bare LF. Folded lines are
/// refused: who reads them unfolds them before.
pub(crate) fn parse<'a>(
    bytes: &'a [u8],
    expected: Expected,
    limits: &Limits,
) -> Result<ResponseHead<'a>, Error> {
    let mut table = [const { MaybeUninit::uninit() }; HEADERS_CAP];
    let table = &mut table[..limits.headers_max.min(HEADERS_CAP)];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut parsed, bytes, table) {
        Ok(httparse::Status::Complete(used)) if used == bytes.len() => {}
        Ok(_) => return Err(Error::BadStatusLine),
        Err(httparse::Error::TooManyHeaders) if limits.headers_max > HEADERS_CAP => {
            return parse_many(bytes, expected, limits);
        }
        Err(error) => return Err(fault_of(bytes, error, limits)),
    }
    understood(&parsed, bytes, expected, limits)
}

/// What is wrong with a head. A first line that is none of a response is not said to be a bad one of a request.
#[cold]
fn fault_of(bytes: &[u8], error: httparse::Error, limits: &Limits) -> Error {
    match name_fault(split_first_line(bytes), error, limits) {
        Error::BadMethod | Error::BadRequestLine | Error::BadTarget | Error::BadVersion => {
            Error::BadStatusLine
        }
        other => other,
    }
}

/// As [`parse`], for more lines than there is room for on the stack.
#[cold]
fn parse_many<'a>(
    bytes: &'a [u8],
    expected: Expected,
    limits: &Limits,
) -> Result<ResponseHead<'a>, Error> {
    let lines = memchr::memchr_iter(b'\n', bytes).count();
    let mut table = vec![httparse::EMPTY_HEADER; lines.min(limits.headers_max)];
    let mut parsed = httparse::Response::new(&mut table);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(used)) if used == bytes.len() => {
            understood(&parsed, bytes, expected, limits)
        }
        Ok(_) => Err(Error::BadStatusLine),
        Err(error) => Err(fault_of(bytes, error, limits)),
    }
}

#[inline]
fn understood<'a>(
    parsed: &httparse::Response<'_, 'a>,
    bytes: &'a [u8],
    expected: Expected,
    limits: &Limits,
) -> Result<ResponseHead<'a>, Error> {
    let status = parsed.code.unwrap_or_default();
    if status < 100 {
        return Err(Error::BadStatusLine);
    }
    let version = Version::from_minor(parsed.version);
    let facts = Facts::of(parsed.headers)?;
    let framing = framing(&facts, status, expected, limits)?;
    Ok(ResponseHead {
        version,
        status,
        reason: parsed.reason.unwrap_or_default(),
        headers: Headers::checked(split_first_line(bytes).1, parsed.headers.len()),
        framing,
        keep_alive: facts.keep_alive(version) && can_go_on(&facts, version, framing),
    })
}

/// RFC 9112, section 6.3, for responses.
fn framing(
    facts: &Facts,
    status: u16,
    expected: Expected,
    limits: &Limits,
) -> Result<Framing, Error> {
    match (status, expected) {
        (101, _) | (200..=299, Expected::Connect) => return Ok(Framing::UntilClose),
        (100..=199 | 204 | 304, _) | (_, Expected::Head) => return Ok(Framing::None),
        _ => {}
    }
    match (facts.codings, facts.length) {
        (Codings::Chunked, _) => Ok(Framing::Chunked),
        (Codings::Others | Codings::OthersThenChunked, _) => {
            Err(Error::UnsupportedTransferEncoding)
        }
        (Codings::Bad, _) => Err(Error::BadTransferEncoding),
        (Codings::Absent | Codings::Identity, None) => Ok(Framing::UntilClose),
        (Codings::Absent | Codings::Identity, Some(length)) if length > limits.body_bytes_max => {
            Err(Limit::Body.reached(limits))
        }
        (Codings::Absent | Codings::Identity, Some(length)) => Ok(Framing::Length(length)),
    }
}

/// Whether the end of this response is certain enough to read on after it.
fn can_go_on(facts: &Facts, version: Version, framing: Framing) -> bool {
    let doubtful =
        facts.codings != Codings::Absent && (facts.length.is_some() || version == Version::Http10);
    framing != Framing::UntilClose && !doubtful
}
