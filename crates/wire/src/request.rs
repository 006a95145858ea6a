//! The server's side of a connection: requests out of bytes.

use std::mem::MaybeUninit;

use crate::authority::{self, Port};
use crate::body::{Body, Step};
use crate::facts::{Codings, Facts, name_fault, split_first_line};
use crate::gather::{Gather, Gathered, end_of_head};
use crate::headers::is_token_byte;
use crate::http2::PREFACE;
use crate::{End, Error, Framing, HEADERS_CAP, Headers, Limit, Limits, Method, Version};

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: Method,
    /// The target as it was sent: visible ASCII without `#`.
    pub target: &'a str,
    /// The version.
    pub version: Version,
    /// All header lines.
    pub headers: Headers<'a>,
    /// How the body is framed; never `UntilClose`.
    pub framing: Framing,
    /// Whether the client allows another request after this one.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// What a [`RequestReader`] found next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// A request starts.
    Head(RequestHead<'a>),
    /// Bytes of its body, never empty.
    Data(&'a [u8]),
    /// It is whole.
    End(End<'a>),
}

/// A request that lay whole in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeRequest<'a> {
    /// Its head.
    pub head: RequestHead<'a>,
    /// Its body.
    pub body: &'a [u8],
    /// How many bytes of the chunk it had.
    pub used: usize,
}

/// Reads the requests of one connection.
///
/// # Refused
///
/// Whatever two parsers could understand in two ways, because that is how a
/// request is smuggled past one of them: a CR or LF alone; white space before
/// a colon, around or in a name; folded lines; control bytes; a target with a
/// byte outside visible ASCII, with `#`, in a form that its method does not
/// have, or that names no server where it should; HTTP/1.1 without exactly one
/// Host, HTTP/1.0 with several; a Host that is no host and port; lengths that
/// are not digits, exceed 64 bits or differ; Transfer-Encoding together with
/// Content-Length, in HTTP/1.0, or other than one `chunked`; chunk sizes that
/// are not hexadecimal digits, followed by CRLF or, perhaps after white space,
/// by `;`.
/// [`Error::status`] says how to answer.
///
/// # Forgiven
///
/// A few empty lines before a request line, which old clients send after a
/// body; Content-Length repeated with the same value; bytes from 0x80 in values.
/// HTTP/1.2 to HTTP/1.9 are read as HTTP/1.1 (RFC 9110, section 2.5).
///
/// After a request that does not allow another, input is used up and ignored.
/// What follows the head of a CONNECT is read as the next request: a server that
/// opens the tunnel must stop feeding the reader.
#[derive(Debug)]
pub struct RequestReader {
    limits: Limits,
    gather: Gather,
    state: State,
    failed: Option<Error>,
}

#[derive(Debug)]
enum State {
    /// Before a request line, `empty_lines` and perhaps a CR after the last.
    Between { empty_lines: u32, after_cr: bool },
    /// Within a head.
    Head,
    /// After a head.
    Body { body: Body, keep_alive: bool },
    /// After a last request.
    Closed,
}

const BETWEEN: State = State::Between {
    empty_lines: 0,
    after_cr: false,
};

impl<'a> RequestHead<'a> {
    /// The server that a target in absolute form names, `host` or `host:port`: it counts,
    /// and not what Host says (RFC 9112, section 3.2.2). None in the other forms.
    #[inline]
    pub fn target_authority(&self) -> Option<&'a str> {
        authority::of_target(self.target)
    }
}

impl RequestReader {
    /// A reader at the start of a connection.
    pub fn new(limits: Limits) -> RequestReader {
        RequestReader {
            limits,
            gather: Gather::default(),
            state: BETWEEN,
            failed: None,
        }
    }

    /// The next event and how many bytes of `input` were used for it. `None`:
    /// all were used and more are needed.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<RequestEvent<'a>>), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Self {
            limits,
            gather,
            state,
            failed,
        } = self;
        step(state, gather, limits, input).inspect_err(|error| *failed = Some(*error))
    }

    /// The next request at once, if all of it lies at the start of `input` and
    /// its body is not chunked; else `None`, and nothing was used: go on with
    /// [`RequestReader::next`], which also names faults.
    ///
    /// What is yielded borrows from `input` alone, so that head and body can be
    /// looked at together, without a copy.
    #[inline]
    pub fn next_whole<'i>(&mut self, input: &'i [u8]) -> Option<WholeRequest<'i>> {
        let may_start = matches!(
            self.state,
            State::Between {
                empty_lines: 0,
                after_cr: false,
            }
        );
        if !may_start || self.failed.is_some() {
            return None;
        }
        let window = &input[..input.len().min(self.limits.head_bytes_max)];
        let head_bytes = end_of_head(window)?;
        let head = parse(&input[..head_bytes], &self.limits).ok()?;
        let body_bytes = match head.framing {
            Framing::None => 0,
            Framing::Length(length) => usize::try_from(length).ok()?,
            Framing::Chunked | Framing::UntilClose => return None,
        };
        let body = input[head_bytes..].get(..body_bytes)?;
        if !head.keep_alive {
            self.state = State::Closed;
        }
        Some(WholeRequest {
            head,
            body,
            used: head_bytes + body_bytes,
        })
    }

    /// The stream ended. Fine between requests; otherwise an error that says
    /// what was cut off. Pull all events first.
    pub fn end_of_input(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match &self.state {
            State::Between {
                after_cr: false, ..
            }
            | State::Closed => Ok(()),
            State::Body { body, .. } if body.is_whole() => Ok(()),
            State::Between { .. } | State::Head => Err(Error::TruncatedHead),
            State::Body { .. } => Err(Error::TruncatedBody),
        }
    }

    /// Whether the reader is between requests and holds nothing.
    pub fn is_idle(&self) -> bool {
        self.failed.is_none()
            && matches!(
                self.state,
                State::Between {
                    after_cr: false,
                    ..
                }
            )
    }

    /// Whether the head that was refused, or is not whole, began as that of a HEAD
    /// request does, whose answer has no body. `input` is what the reader was given
    /// last, from where it stopped.
    pub fn part_is_head_request(&self, input: &[u8]) -> bool {
        let State::Head = self.state else {
            return false;
        };
        let held = self.gather.held();
        let bytes = if held.is_empty() { input } else { held };
        // Empty lines that preceded it may lie in the same input.
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = bytes.iter().position(|byte| !is_line_end(byte));
        start.is_some_and(|start| bytes[start..].starts_with(b"HEAD "))
    }

    /// The bytes from there on where the first line of HTTP/2's preface was refused, if that is what was refused: a
    /// server that speaks HTTP/2 as well goes on with them. `input` as of
    /// [`part_is_head_request`](RequestReader::part_is_head_request).
    pub fn refused_preface(&self, input: &[u8]) -> Option<Vec<u8>> {
        let State::Head = self.state else {
            return None;
        };
        // Its first line and an empty one: what a request's head would be.
        let first = &PREFACE[..18];
        let held = self.gather.held();
        if held.is_empty() {
            return input.starts_with(first).then(|| input.to_vec());
        }
        // What is held ends with what it took of the input: all, or as much as a head may have.
        let is_taken = |count: &usize| held.ends_with(&input[..*count]);
        let taken = (1..=input.len().min(held.len())).rev().find(is_taken)?;
        held.starts_with(first)
            .then(|| [held, &input[taken..]].concat())
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
    gather: &'a mut Gather,
    limits: &Limits,
    input: &'a [u8],
) -> Result<(usize, Option<RequestEvent<'a>>), Error> {
    match state {
        State::Between { .. } => {
            let skipped = skip_empty_lines(state, limits, input)?;
            if skipped == input.len() {
                return Ok((skipped, None));
            }
            *state = State::Head;
            let (used, event) = head(state, gather, limits, &input[skipped..])?;
            Ok((skipped + used, event))
        }
        State::Head => head(state, gather, limits, input),
        State::Body { body, keep_alive } => {
            let (used, step) = body.next(input, gather, limits)?;
            let event = match step {
                Step::More => None,
                Step::Data(data) => Some(RequestEvent::Data(data)),
                Step::End(trailers) => {
                    let keep_alive = *keep_alive;
                    *state = if keep_alive { BETWEEN } else { State::Closed };
                    Some(RequestEvent::End(End {
                        keep_alive,
                        trailers,
                    }))
                }
            };
            Ok((used, event))
        }
        State::Closed => Ok((input.len(), None)),
    }
}

/// Skips empty lines; what follows them must be able to start a request.
#[inline]
fn skip_empty_lines(state: &mut State, limits: &Limits, input: &[u8]) -> Result<usize, Error> {
    let State::Between {
        empty_lines,
        after_cr,
    } = state
    else {
        return Ok(0);
    };
    for (used, &byte) in input.iter().enumerate() {
        match (*after_cr, byte) {
            (false, b'\r') => *after_cr = true,
            (true, b'\n') => {
                *after_cr = false;
                *empty_lines += 1;
                if *empty_lines > limits.empty_lines_max {
                    return Err(Limit::EmptyLines.reached(limits));
                }
            }
            (true, _) => return Err(Error::BareCarriageReturn),
            (false, b'\n') => return Err(Error::BareLineFeed),
            // Refused at its first byte, because something that is no HTTP,
            // such as TLS, may never send the empty line that heads end in.
            (false, byte) if !is_token_byte(byte) => return Err(Error::BadMethod),
            (false, _) => return Ok(used),
        }
    }
    Ok(input.len())
}

#[inline]
fn head<'a>(
    state: &mut State,
    gather: &'a mut Gather,
    limits: &Limits,
    input: &'a [u8],
) -> Result<(usize, Option<RequestEvent<'a>>), Error> {
    match gather.take(input, limits.head_bytes_max)? {
        (used, Gathered::Part) => Ok((used, None)),
        (_, Gathered::TooLong { first_line: true }) => Err(Limit::RequestLine.reached(limits)),
        (_, Gathered::TooLong { first_line: false }) => Err(Limit::Head.reached(limits)),
        (used, Gathered::Whole(bytes)) => {
            let head = parse(bytes, limits)?;
            *state = State::Body {
                body: Body::new(head.framing, false),
                keep_alive: head.keep_alive,
            };
            Ok((used, Some(RequestEvent::Head(head))))
        }
    }
}

/// Parses a whole head, which ends in an empty line and holds no bare LF.
pub(crate) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<RequestHead<'a>, Error> {
    let mut table = [const { MaybeUninit::uninit() }; HEADERS_CAP];
    let table = &mut table[..limits.headers_max.min(HEADERS_CAP)];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(bytes, table) {
        Ok(httparse::Status::Complete(used)) if used == bytes.len() => {
            let line = RequestLine {
                method: parsed.method.unwrap_or_default(),
                target: parsed.path.unwrap_or_default(),
                version: Version::from_minor(parsed.version),
            };
            check(&line, bytes, parsed.headers, limits)
        }
        Ok(_) => Err(Error::BadRequestLine),
        Err(error) => parse_newer(bytes, error, limits),
    }
}

/// The first line of a request.
struct RequestLine<'a> {
    method: &'a str,
    target: &'a str,
    version: Version,
}

/// Parses a head that `httparse` did not like, if that was only because its version is
/// a later one of HTTP/1, which is to be understood as HTTP/1.1 (RFC 9110, section 2.5).
#[cold]
fn parse_newer<'a>(
    bytes: &'a [u8],
    error: httparse::Error,
    limits: &Limits,
) -> Result<RequestHead<'a>, Error> {
    let (first, lines) = split_first_line(bytes);
    let fault = name_fault((first, lines), error, limits);
    let text = std::str::from_utf8(first).unwrap_or_default();
    let mut words = text.trim_end_matches("\r\n").split(' ');
    // The fault says that there are three words, and that the last is a version.
    let line = match (fault, words.next(), words.next(), words.next()) {
        (Error::UnsupportedVersion, Some(method), Some(target), Some(version))
            if !method.is_empty() && version.starts_with("HTTP/1.") =>
        {
            RequestLine {
                method,
                target,
                version: Version::Http11,
            }
        }
        _ => return Err(fault),
    };
    let mut table = [httparse::EMPTY_HEADER; HEADERS_CAP];
    let table = &mut table[..limits.headers_max.min(HEADERS_CAP)];
    match httparse::parse_headers(lines, table) {
        Ok(httparse::Status::Complete((used, headers))) if used == lines.len() => {
            check(&line, bytes, headers, limits)
        }
        Ok(_) => Err(Error::BadHeaderName),
        Err(error) => Err(name_fault((b"", lines), error, limits)),
    }
}

/// What the parts of a head mean together.
#[inline]
fn check<'a>(
    line: &RequestLine<'a>,
    bytes: &'a [u8],
    headers: &[httparse::Header<'_>],
    limits: &Limits,
) -> Result<RequestHead<'a>, Error> {
    let &RequestLine {
        target, version, ..
    } = line;
    let method = Method::from_name(line.method).ok_or(Limit::Method.reached(limits))?;
    check_target(&method, target, limits)?;
    let facts = Facts::of(headers)?;
    facts.hosts.finish(version == Version::Http11)?;
    let framing = framing(&facts, version, limits)?;
    let has_body = !matches!(framing, Framing::None | Framing::Length(0));
    Ok(RequestHead {
        method,
        target,
        version,
        headers: Headers::checked(split_first_line(bytes).1, headers.len()),
        framing,
        keep_alive: facts.keep_alive(version),
        expects_continue: facts.expects_continue && has_body && version == Version::Http11,
    })
}

/// RFC 9112, section 3.2: the four forms of a target and who may use them.
///
/// # Errors
/// [`Error::BadTarget`], and [`Limit::Target`] for a longer one.
pub fn check_target(method: &Method, target: &str, limits: &Limits) -> Result<(), Error> {
    if target.len() > limits.target_bytes_max {
        return Err(Limit::Target.reached(limits));
    }
    let bytes = target.as_bytes();
    let visible = bytes
        .iter()
        .all(|byte| byte.is_ascii_graphic() && *byte != b'#');
    let form_allowed = match bytes {
        [b'/', ..] => *method != Method::Connect,
        b"*" => *method == Method::Options,
        // A port is needed (RFC 9110, section 9.3.6).
        _ if *method == Method::Connect => {
            matches!(authority::port_of(bytes), Some(Port::Number(1..)))
        }
        _ => authority::of_target(target)
            .is_some_and(|authority| authority::port_of(authority.as_bytes()).is_some()),
    };
    match visible && form_allowed {
        true => Ok(()),
        false => Err(Error::BadTarget),
    }
}

/// RFC 9112, section 6.3, with everything doubtful refused.
fn framing(facts: &Facts, version: Version, limits: &Limits) -> Result<Framing, Error> {
    if facts.codings != Codings::Absent {
        if version == Version::Http10 {
            return Err(Error::TransferEncodingInHttp10);
        }
        if facts.length.is_some() {
            return Err(Error::LengthAndTransferEncoding);
        }
    }
    match (facts.codings, facts.length) {
        (Codings::Chunked, _) => Ok(Framing::Chunked),
        (Codings::OthersThenChunked, _) => Err(Error::UnsupportedTransferEncoding),
        (Codings::Identity | Codings::Others | Codings::Bad, _) => Err(Error::BadTransferEncoding),
        (Codings::Absent, None) => Ok(Framing::None),
        (Codings::Absent, Some(length)) if length > limits.body_bytes_max => {
            Err(Limit::Body.reached(limits))
        }
        (Codings::Absent, Some(length)) => Ok(Framing::Length(length)),
    }
}
