//! One request on a connection that others share, and its answer.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use prony_base::{Instant, Nanos};
use prony_wire::encode::EncodeError;
use prony_wire::{Header, Method, OwnedHeaders};

use super::connection::{Http2, fault};
use super::data::Data;
use crate::body::{Body, Pieces};
use crate::error::{Error, Kind, RequestPhase, TimeLimit};
use crate::timeouts::Timeouts;
use crate::transport::Chunk;
use prony_engine::Alarm;

/// Bytes of a body that are given to the connection at once.
const SENT_BYTES_MAX: usize = 64 << 10;

/// A request's head.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: Method,
    /// Whether the scheme is https.
    pub secure: bool,
    /// Host and port.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Header lines. Those of HTTP/1 alone are left out: Connection, Host,
    /// Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade.
    pub headers: Vec<Header<'a>>,
}

/// A request in flight. Dropping it before the response's end cancels it; the connection
/// stays open.
pub struct Exchange {
    connection: Http2,
    answer: Answer,
    stream: SendStream<Data>,
    sending: Sending,
    /// The whole body, where it may be sent again: bytes, and pieces that were all sent.
    repeatable: Body,
    trailers: Option<Box<OwnedHeaders>>,
    alarm: Alarm,
    /// Whether the stream was polled since bytes last moved, before the time-out passed.
    has_polled: bool,
    timeouts: Timeouts,
    /// When bytes last moved.
    moved: Instant,
    sent_bytes: u64,
    received_bytes: u64,
}

enum Answer {
    Awaited(ResponseFuture),
    Coming(RecvStream),
    /// The data are whole, trailers may follow.
    Ending(RecvStream),
    Whole,
}

/// The part of a body that is still to be sent.
enum Sending {
    Done,
    Bytes(Data),
    Pieces {
        pieces: Box<dyn Pieces>,
        announced: Option<u64>,
        /// Given and not yet sent.
        rest: Data,
        given: u64,
    },
}

impl Exchange {
    /// Sends a request. With more in flight than the server allows, it waits for its turn in
    /// [`poll_head`](Exchange::poll_head).
    ///
    /// # Errors
    /// [`Kind::BadRequest`] and [`Kind::BadUrl`] for what cannot be sent,
    /// [`Kind::NotHandled`] where the connection takes no more requests.
    pub async fn send(
        connection: &Http2,
        head: &Head<'_>,
        body: Body,
        timeouts: Timeouts,
    ) -> Result<Exchange, (Error, Body)> {
        let request = match request(head, body.length()) {
            Ok(request) => request,
            Err(error) => return Err((error.address(connection.0.peer), body)),
        };
        // One clone per request: each clone can have one request waiting in `h2`.
        let mut sender = connection.0.sender.borrow().clone();
        let ready = poll_fn(|cx| sender.poll_ready(cx)).await;
        let is_empty = matches!(body.length(), Some(0));
        let sent = ready.and_then(|()| sender.send_request(request, is_empty));
        match sent {
            Ok((answer, stream)) => Ok(Exchange::new(
                connection,
                answer,
                stream,
                (body, is_empty),
                timeouts,
            )),
            Err(error) => {
                // Nothing of it is on the wire.
                connection.0.moving.closing.set(true);
                let kind = Kind::NotHandled(error.to_string());
                Err((
                    Error::new(RequestPhase::Send, kind).address(connection.0.peer),
                    body,
                ))
            }
        }
    }

    fn new(
        connection: &Http2,
        answer: ResponseFuture,
        stream: SendStream<Data>,
        (body, is_empty): (Body, bool),
        timeouts: Timeouts,
    ) -> Exchange {
        let streams = &connection.0.streams;
        streams.set(streams.get() + 1);
        let (sending, repeatable) = match body {
            _ if is_empty => (Sending::Done, body),
            Body::Empty => (Sending::Done, Body::Empty),
            Body::Bytes(bytes) => {
                let repeatable = Body::Bytes(bytes.clone());
                (Sending::Bytes(bytes.into()), repeatable)
            }
            Body::Pieces(pieces, announced) => {
                let sending = Sending::Pieces {
                    pieces,
                    announced,
                    rest: Data::default(),
                    given: 0,
                };
                (sending, Body::Empty)
            }
        };
        Exchange {
            moved: connection.0.handle.now(),
            has_polled: false,
            connection: connection.clone(),
            answer: Answer::Awaited(answer),
            stream,
            sending,
            repeatable,
            trailers: None,
            alarm: Alarm::default(),
            timeouts,
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Reads the response's status, and its header lines into `headers`. Skips interim responses.
    ///
    /// # Errors
    /// [`Kind::NotHandled`] where the server states that it did not process the request,
    /// [`Kind::Http2`], time-outs, what broke the connection, what failed in sending.
    pub fn poll_head(
        &mut self,
        headers: &mut OwnedHeaders,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u16, Error>> {
        self.pump(cx)?;
        let Answer::Awaited(answer) = &mut self.answer else {
            // A head comes once.
            return Poll::Ready(Err(self.failed(RequestPhase::Head, Kind::Closed)));
        };
        let answered = match Pin::new(answer).poll(cx) {
            Poll::Ready(answered) => answered,
            Poll::Pending => return self.poll_time(cx).map(Err),
        };
        let (head, body) = match answered {
            Ok(response) => response.into_parts(),
            Err(error) => return Poll::Ready(Err(self.broken(RequestPhase::Wait, &error))),
        };
        self.moved = self.connection.0.handle.now();
        self.has_polled = false;
        self.connection.heard();
        copy(&head.headers, headers);
        self.answer = Answer::Coming(body);
        Poll::Ready(Ok(head.status.as_u16()))
    }

    /// Reads the next bytes of the body; None at its end. Reading opens the window for more.
    ///
    /// # Errors
    /// As of [`poll_head`](Exchange::poll_head).
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, Error>> {
        loop {
            if !matches!(self.answer, Answer::Whole) {
                self.pump(cx)?;
            }
            let data = match &mut self.answer {
                Answer::Awaited(_) => {
                    return Poll::Ready(Err(self.failed(RequestPhase::Body, Kind::Closed)));
                }
                Answer::Whole => return Poll::Ready(Ok(None)),
                Answer::Coming(body) => body.poll_data(cx),
                Answer::Ending(body) => match body.poll_trailers(cx) {
                    Poll::Pending => return self.poll_time(cx).map(Err),
                    Poll::Ready(trailers) => return Poll::Ready(self.ended(trailers)),
                },
            };
            match data {
                Poll::Pending => return self.poll_time(cx).map(Err),
                Poll::Ready(Some(Ok(bytes))) if bytes.is_empty() => {}
                Poll::Ready(Some(Ok(bytes))) => return Poll::Ready(self.taken(bytes)),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(self.broken(RequestPhase::Body, &error)));
                }
                Poll::Ready(None) => match std::mem::replace(&mut self.answer, Answer::Whole) {
                    Answer::Coming(body) => self.answer = Answer::Ending(body),
                    other => self.answer = other,
                },
            }
        }
    }

    /// The trailers, if there were any.
    pub fn take_trailers(&mut self) -> Option<Box<OwnedHeaders>> {
        self.trailers.take()
    }

    /// The request's body, for another attempt if it can be [rewound](Body::rewind).
    pub fn into_body(mut self) -> Body {
        self.take_body()
    }

    /// The same, while the response can still be read. The rest of the body is not sent.
    pub fn take_body(&mut self) -> Body {
        let repeatable = std::mem::take(&mut self.repeatable);
        match std::mem::replace(&mut self.sending, Sending::Done) {
            Sending::Pieces {
                pieces, announced, ..
            } => Body::Pieces(pieces, announced),
            _ => repeatable,
        }
    }

    /// Whether no answer has come.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.answer, Answer::Awaited(_))
    }

    /// Bytes of the body sent and received so far.
    pub fn progress(&self) -> (u64, u64) {
        (self.sent_bytes, self.received_bytes)
    }

    /// When bytes last moved.
    pub fn moved(&self) -> Instant {
        self.moved
    }

    fn taken(&mut self, bytes: Bytes) -> Result<Option<Chunk>, Error> {
        self.moved = self.connection.0.handle.now();
        self.has_polled = false;
        self.received_bytes += bytes.len() as u64;
        if let Answer::Coming(body) = &mut self.answer {
            let released = body.flow_control().release_capacity(bytes.len());
            released.map_err(|error| fault(RequestPhase::Body, &error))?;
        }
        Ok(Some(Chunk::Shared(bytes)))
    }

    fn ended(
        &mut self,
        trailers: Result<Option<HeaderMap>, h2::Error>,
    ) -> Result<Option<Chunk>, Error> {
        let trailers = trailers.map_err(|error| self.broken(RequestPhase::Body, &error))?;
        if let Some(trailers) = trailers {
            let mut copied = Box::<OwnedHeaders>::default();
            copy(&trailers, &mut copied);
            self.trailers = Some(copied);
        }
        self.moved = self.connection.0.handle.now();
        self.answer = Answer::Whole;
        Ok(None)
    }

    /// Sends more of the body. A source that fails leaves nothing to wait for.
    fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        while !matches!(self.sending, Sending::Done) {
            match self.poll_step(cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    self.stop_sending();
                    // The server must not take what came of the body for all of it.
                    self.stream.send_reset(Reason::CANCEL);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Sends one piece, or gets the next.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let left = match &self.sending {
            Sending::Done => return Poll::Ready(Ok(())),
            Sending::Bytes(rest) | Sending::Pieces { rest, .. } => rest.remaining(),
        };
        if left == 0 {
            return self.poll_next_piece(cx);
        }
        self.stream.reserve_capacity(left.min(SENT_BYTES_MAX));
        let room = match ready!(self.stream.poll_capacity(cx)) {
            Some(Ok(room)) => room.min(left).min(SENT_BYTES_MAX),
            // The stream or the connection has ended: reading the response reports how.
            Some(Err(_)) | None => {
                self.stop_sending();
                return Poll::Ready(Ok(()));
            }
        };
        if room == 0 {
            return Poll::Ready(Ok(()));
        }
        let (data, ends) = self.cut(room);
        self.sent_bytes += data.remaining() as u64;
        self.moved = self.connection.0.handle.now();
        // Where it fails, reading the response reports why.
        if self.stream.send_data(data, ends).is_err() || ends {
            self.stop_sending();
        }
        Poll::Ready(Ok(()))
    }

    /// The next bytes to be sent, and whether they are the last.
    fn cut(&mut self, count: usize) -> (Data, bool) {
        match &mut self.sending {
            Sending::Done => (Data::default(), true),
            Sending::Bytes(rest) => {
                let data = rest.split_to(count);
                (data, !rest.has_remaining())
            }
            Sending::Pieces { rest, .. } => (rest.split_to(count), false),
        }
    }

    fn poll_next_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let peer = self.connection.0.peer;
        let failed = |kind| Error::new(RequestPhase::Send, kind).address(peer);
        let Sending::Pieces {
            pieces,
            announced,
            rest,
            given,
        } = &mut self.sending
        else {
            self.sending = Sending::Done;
            return Poll::Ready(Ok(()));
        };
        let piece =
            ready!(pieces.poll_piece(cx)).map_err(|error| failed(Kind::BodySource(error)))?;
        let ended = piece.is_none();
        *rest = Data::from(piece.unwrap_or_default());
        *given += rest.remaining() as u64;
        if let Some(announced) = *announced
            && (*given > announced || (ended && *given < announced))
        {
            let given = *given;
            return Poll::Ready(Err(failed(Kind::BodyLength { announced, given })));
        }
        if ended {
            // Where it fails, reading the response reports why.
            let _ = self.stream.send_data(Data::default(), true);
            self.stop_sending();
        }
        Poll::Ready(Ok(()))
    }

    /// Stops sending. A streamed body is kept: a redirect or a retry may rewind it.
    fn stop_sending(&mut self) {
        if let Sending::Pieces {
            pieces, announced, ..
        } = std::mem::replace(&mut self.sending, Sending::Done)
        {
            self.repeatable = Body::Pieces(pieces, announced);
        }
    }

    /// Ready with an error once a time-out has passed.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        let handle = self.connection.0.handle.clone();
        let (limit, length) = loop {
            let (due, limit, length) = self.next_limit();
            if self.alarm.poll(&handle, due, cx).is_pending() {
                self.has_polled = true;
                return Poll::Pending;
            }
            if std::mem::replace(&mut self.has_polled, true) {
                break (limit, length);
            }
            // The stream was not polled since bytes last moved: what has arrived since then may
            // still be in the kernel, and is not late.
            if limit == TimeLimit::Whole {
                handle.wake_next_turn(cx);
                return Poll::Pending;
            }
            self.moved = handle.now();
        };
        let phase = match (&self.answer, &self.sending) {
            (Answer::Awaited(_), Sending::Done) => RequestPhase::Wait,
            (Answer::Awaited(_), _) => RequestPhase::Send,
            _ => RequestPhase::Body,
        };
        Poll::Ready(self.failed(phase, Kind::TimedOut(limit, length)))
    }

    /// The time-out that passes next: when, which one, and its length.
    fn next_limit(&self) -> (Instant, TimeLimit, Nanos) {
        let timeouts = &self.timeouts;
        let (limit, length) = match (&self.answer, &self.sending) {
            (Answer::Awaited(_), Sending::Done) => (TimeLimit::FirstByte, timeouts.first_byte),
            _ => (TimeLimit::Stall, timeouts.stall),
        };
        let step = match length {
            Nanos::MAX => Instant::NEVER,
            length => self.moved + length,
        };
        match timeouts.due < step {
            true => (timeouts.due, TimeLimit::Whole, timeouts.total),
            false => (step, limit, length),
        }
    }

    /// The error that ended the answer.
    fn broken(&self, phase: RequestPhase, error: &h2::Error) -> Error {
        fault(phase, error).address(self.connection.0.peer)
    }

    fn failed(&self, phase: RequestPhase, kind: Kind) -> Error {
        Error::new(phase, kind).address(self.connection.0.peer)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !matches!(self.answer, Answer::Whole) || !matches!(self.sending, Sending::Done) {
            self.stream.send_reset(Reason::CANCEL);
        }
        self.connection.stream_ended();
    }
}

/// A request as `h2` takes it.
pub(super) fn request(
    head: &Head<'_>,
    body_bytes: Option<u64>,
) -> Result<http::Request<()>, Error> {
    let bad_target = || {
        Error::new(
            RequestPhase::Request,
            Kind::BadRequest(EncodeError::BadTarget),
        )
    };
    let bad_header = |error| Error::new(RequestPhase::Request, Kind::BadRequest(error));
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(if head.secure {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    });
    parts.authority = Some(Authority::try_from(head.authority).map_err(|_| bad_target())?);
    parts.path_and_query = Some(PathAndQuery::try_from(head.path).map_err(|_| bad_target())?);
    let uri = http::Uri::from_parts(parts).map_err(|_| bad_target())?;
    let method = http::Method::from_bytes(head.method.name().as_bytes());
    let mut request = http::Request::new(());
    *request.method_mut() = method.map_err(|_| bad_target())?;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    let headers = request.headers_mut();
    for header in head
        .headers
        .iter()
        .filter(|header| is_known_to_http2(header))
    {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| bad_header(EncodeError::BadHeaderName))?;
        let value = HeaderValue::from_bytes(header.value)
            .map_err(|_| bad_header(EncodeError::BadHeaderValue))?;
        headers.append(name, value);
    }
    let tells_length = !matches!(
        head.method,
        Method::Get | Method::Head | Method::Options | Method::Trace | Method::Delete
    );
    match body_bytes {
        Some(0) if !tells_length => {}
        Some(length) => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        None => {}
    }
    Ok(request)
}

/// RFC 9113, section 8.2.2.
fn is_known_to_http2(header: &Header<'_>) -> bool {
    const HTTP1_ONLY: [&str; 7] = [
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
    ];
    let te_says_more = header.is("te") && !header.value.eq_ignore_ascii_case(b"trailers");
    !te_says_more && !HTTP1_ONLY.iter().any(|name| header.is(name))
}

fn copy(from: &HeaderMap, to: &mut OwnedHeaders) {
    to.clear();
    for (name, value) in from {
        // `h2` lets through what HTTP allows; anything else is left out.
        to.push(name.as_str(), value.as_bytes());
    }
}
