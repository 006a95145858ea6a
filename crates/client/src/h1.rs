//! HTTP/1 over one transport: sends requests and reads their responses.
//! Not for: choosing a connection (`pool`), or acting on a response (`policy`).
//!
//! A request whose body is bytes is one post. A response's body is read in place, in the
//! buffer that the loop received it in.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::task::{Context, Poll, ready};

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, SendBuf};
use prony_wire::{
    EndOfInput, Limits, Method, OwnedHeaders, ResponseEvent, ResponseReader, Version, encode,
};

use super::body::{Body, JOINED_BYTES_MAX, Pieces, SENDING_BYTES_MAX};
use super::error::{Error, Kind, RequestPhase, TimeLimit};
use super::timeouts::Timeouts;
use super::tls::TlsError;
use super::transport::{Chunk, Transport};
use prony_engine::Alarm;

/// How long receiving the rest of an unwanted body may take.
pub(super) const DRAIN_TIME: Nanos = Nanos::from_secs(1);

/// The head of a response, without its header lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub status: u16,
    pub version: Version,
}

/// The part of a request that is still to be sent.
enum Sending {
    Done,
    /// A large body, which follows the head once that is sent.
    Bytes(SendBuf),
    Pieces(Streamed),
}

/// A streamed body.
struct Streamed {
    pieces: Box<dyn Pieces>,
    /// Bytes announced; None in chunks.
    announced: Option<u64>,
    given: u64,
    /// A large piece that waits until everything before it is sent.
    held: Option<SendBuf>,
}

impl Streamed {
    fn into_body(self) -> Body {
        Body::Pieces(self.pieces, self.announced)
    }
}

/// A connection that speaks HTTP/1.
pub(super) struct Connection {
    pub peer: SocketAddr,
    /// Responses read to their end.
    responses: u64,
    /// Pipelined requests that were posted and whose responses are not being read yet.
    pipelined: usize,
    /// The version of the peer's last response.
    version: Version,
    handle: Handle,
    transport: Transport,
    reader: ResponseReader,
    /// Received, and read up to `used`.
    chunk: Option<Chunk>,
    used: usize,
    sending: Sending,
    /// A streamed body that was sent whole, kept for another attempt.
    spent: Option<Body>,
    /// Why sending stopped before its end; reported if no response explains it.
    unsent: Option<Error>,
    alarm: Alarm,
    timeouts: Timeouts,
    phase: RequestPhase,
    /// When the request was posted.
    posted_at: Instant,
    /// The whole request was one post.
    is_one_post: bool,
    /// When bytes last moved.
    moved: Instant,
    /// Whether the transport was polled since then, before the time-out passed.
    has_polled: bool,
    /// Bytes that were posted and not taken by the kernel when last looked at.
    posted: usize,
    head_bytes: usize,
    sent_bytes: u64,
    received_bytes: u64,
    trailers: Option<Box<OwnedHeaders>>,
}

/// The next part of a response.
enum Event {
    Head(Head),
    /// A part of the body, as a range of the chunk.
    Data(Range<usize>),
    /// The response is complete; whether another can follow.
    End(bool),
}

/// The next part of a body.
pub(super) enum Next {
    /// Bytes, which [`Connection::data`] returns.
    Data(Range<usize>),
    /// The body is complete; whether the connection can be used again.
    End(bool),
}

impl Connection {
    /// A connection over `transport` that has carried nothing yet.
    pub fn new(
        handle: &Handle,
        (transport, peer): (Transport, SocketAddr),
        limits: Limits,
        now: Instant,
    ) -> Connection {
        Connection {
            peer,
            responses: 0,
            pipelined: 0,
            version: Version::Http10,
            handle: handle.clone(),
            transport,
            reader: ResponseReader::new(limits),
            chunk: None,
            used: 0,
            sending: Sending::Done,
            spent: None,
            unsent: None,
            alarm: Alarm::default(),
            timeouts: Timeouts::NEVER,
            phase: RequestPhase::Wait,
            posted_at: now,
            is_one_post: false,
            moved: now,
            has_polled: false,
            posted: 0,
            head_bytes: 0,
            sent_bytes: 0,
            received_bytes: 0,
            trailers: None,
        }
    }

    /// The transport, once the last response's head was read and nothing followed it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] where bytes followed.
    pub fn into_transport(self) -> io::Result<Transport> {
        let received = self.chunk.as_deref().unwrap_or_default().len();
        match self.used < received {
            true => Err(io::ErrorKind::InvalidData.into()),
            false => Ok(self.transport),
        }
    }

    /// Whether an idle connection can still be used: the peer has neither closed it nor sent
    /// bytes that belong to no request.
    #[inline]
    pub fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.transport.poll_recv(cx).is_pending()
    }

    /// Sends a request: its head (with a small body in it), and what follows.
    ///
    /// # Errors
    /// [`RequestPhase::Send`]: nothing of it was sent.
    #[inline]
    pub fn begin(
        &mut self,
        method: &Method,
        head: SendBuf,
        body: &mut Body,
        (timeouts, now): (Timeouts, Instant),
    ) -> Result<(), Error> {
        self.expect(method, timeouts, now)?;
        self.head_bytes = head.as_slice().len();
        let posted = self.transport.post(head);
        posted.map_err(|error| self.failed(RequestPhase::Send, Kind::of_io(error)))?;
        self.sending = match body {
            Body::Empty => Sending::Done,
            Body::Bytes(bytes) if bytes.as_slice().len() <= JOINED_BYTES_MAX => Sending::Done,
            Body::Bytes(bytes) => Sending::Bytes(bytes.clone()),
            Body::Pieces(..) => match std::mem::take(body) {
                Body::Pieces(pieces, announced) => Sending::Pieces(Streamed {
                    pieces,
                    announced,
                    given: 0,
                    held: None,
                }),
                _ => Sending::Done,
            },
        };
        self.is_one_post = matches!(self.sending, Sending::Done);
        Ok(())
    }

    /// Begins to read the response of a [pipelined](Connection::post_pipelined) request.
    ///
    /// # Errors
    /// As of [`begin`](Connection::begin).
    pub fn begin_pipelined(
        &mut self,
        method: &Method,
        (timeouts, now): (Timeouts, Instant),
    ) -> Result<(), Error> {
        self.pipelined = self.pipelined.saturating_sub(1);
        self.expect(method, timeouts, now)?;
        if self.used < self.chunk.as_deref().unwrap_or_default().len() {
            // It arrived together with the response before.
            self.phase = RequestPhase::Head;
        }
        Ok(())
    }

    #[inline]
    fn expect(&mut self, method: &Method, timeouts: Timeouts, now: Instant) -> Result<(), Error> {
        self.timeouts = timeouts;
        (self.posted_at, self.is_one_post) = (now, false);
        self.moved = now;
        self.has_polled = false;
        self.phase = RequestPhase::Wait;
        self.sent_bytes = 0;
        self.received_bytes = 0;
        self.posted = 0;
        self.spent = None;
        let expected = self.reader.expect(method);
        expected.map_err(|error| self.failed(RequestPhase::Send, Kind::Wire(error)))
    }

    /// Sends a whole request behind those in flight; false where the connection refuses it.
    pub fn post_pipelined(&mut self, head: SendBuf) -> bool {
        // How much of it the kernel took is unknown once its turn comes.
        self.head_bytes = usize::MAX;
        let is_posted = self.transport.post(head).is_ok();
        self.pipelined += usize::from(is_posted);
        is_posted
    }

    /// Whether requests may be sent before the responses to earlier ones: the peer speaks
    /// HTTP/1.1, has kept the connection once, and no request is half sent.
    pub fn can_pipeline(&self) -> bool {
        self.responses > 0
            && self.version == Version::Http11
            && matches!(self.sending, Sending::Done)
    }

    /// Takes the body that was sent or is being sent, for another attempt. A connection over
    /// which it was not sent whole is of no more use.
    pub fn take_body(&mut self, body: &mut Body) {
        if let Some(spent) = self.spent.take() {
            *body = spent;
        }
        match std::mem::replace(&mut self.sending, Sending::Done) {
            Sending::Pieces(streamed) => {
                self.unsent = Some(self.failed(RequestPhase::Send, Kind::Closed));
                *body = streamed.into_body();
            }
            other => self.sending = other,
        }
    }

    /// Whether no byte of the response has been received: the server may never have seen the
    /// request.
    pub fn is_unanswered(&self) -> bool {
        self.phase == RequestPhase::Wait
    }

    /// Whether the kernel has taken nothing of the request.
    pub fn is_unsent(&self) -> bool {
        self.sent_bytes == 0 && self.transport.posted_bytes() >= self.head_bytes
    }

    /// When the request was handed to the kernel, or a time before. Where a body is sent apart from its head, and where
    /// the kernel is not known to have it: when the head was posted.
    #[inline]
    pub fn submitted(&self) -> Instant {
        let submitted = self.transport.submitted().map(|at| at.from);
        submitted
            .filter(|&at| self.is_one_post && at >= self.posted_at)
            .unwrap_or(self.posted_at)
    }

    /// When bytes last moved: after a head or an end, when those bytes were received.
    pub fn moved(&self) -> Instant {
        self.moved
    }

    /// Bytes of the body sent and received so far.
    pub fn progress(&self) -> (u64, u64) {
        (self.sent_bytes, self.received_bytes)
    }

    /// The bytes of a [`Next::Data`].
    #[inline]
    pub fn data(&self, place: Range<usize>) -> &[u8] {
        let chunk = self.chunk.as_deref().unwrap_or_default();
        chunk.get(place).unwrap_or_default()
    }

    /// The trailers, if there were any.
    pub fn take_trailers(&mut self) -> Option<Box<OwnedHeaders>> {
        self.trailers.take()
    }

    /// Reads the response's head, its lines into `headers`. Skips interim responses.
    ///
    /// # Errors
    /// The error that ended the exchange; the connection cannot be used any more.
    #[inline]
    pub fn poll_head(
        &mut self,
        headers: &mut OwnedHeaders,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Error>> {
        match ready!(self.poll_event(headers, cx))? {
            Event::Head(head) => {
                self.phase = RequestPhase::Body;
                self.version = head.version;
                Poll::Ready(Ok(head))
            }
            // A head comes first, always.
            Event::Data(_) | Event::End(_) => {
                Poll::Ready(Err(self.failed(RequestPhase::Head, Kind::Closed)))
            }
        }
    }

    /// Reads the next part of the body.
    ///
    /// # Errors
    /// As of [`poll_head`](Connection::poll_head).
    #[inline]
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Next, Error>> {
        // There is no head in a body: these lines stay empty.
        match ready!(self.poll_event(&mut OwnedHeaders::default(), cx))? {
            Event::Data(place) => {
                self.received_bytes += place.len() as u64;
                Poll::Ready(Ok(Next::Data(place)))
            }
            Event::End(keep_alive) => {
                self.responses += 1;
                Poll::Ready(Ok(Next::End(self.is_reusable(keep_alive))))
            }
            Event::Head(_) => Poll::Ready(Err(self.failed(RequestPhase::Body, Kind::Closed))),
        }
    }

    /// Limits the rest of the exchange to `due`.
    pub fn limit(&mut self, due: Instant) {
        self.timeouts.due = self.timeouts.due.min(due);
    }

    /// Bytes of the body that are left; `u64::MAX` where that is not known.
    pub fn body_bytes_left(&self) -> u64 {
        self.reader.plain_bytes_left()
    }

    /// Receives the rest of an unwanted body, at most `bytes_max` until `due`; whether the
    /// connection can be used again.
    pub async fn drain(&mut self, mut bytes_max: u64, due: Instant) -> bool {
        self.limit(due);
        loop {
            match poll_fn(|cx| self.poll_body(cx)).await {
                Ok(Next::Data(place)) if place.len() as u64 <= bytes_max => {
                    bytes_max -= place.len() as u64;
                }
                Ok(Next::End(reusable)) => return reusable,
                Ok(Next::Data(_)) | Err(_) => return false,
            }
        }
    }

    /// Receives the response of a pipelined request that was cancelled, with a body of at most
    /// `bytes_max`, since others follow it; whether the connection can be used again.
    pub async fn skip_response(&mut self, method: Method, bytes_max: u64, now: Instant) -> bool {
        let due = now + DRAIN_TIME;
        let timeouts = Timeouts {
            total: DRAIN_TIME,
            due,
            ..Timeouts::NEVER
        };
        if self.begin_pipelined(&method, (timeouts, now)).is_err() {
            return false;
        }
        let mut headers = OwnedHeaders::default();
        let head = poll_fn(|cx| self.poll_head(&mut headers, cx)).await;
        head.is_ok() && self.drain(bytes_max, due).await
    }

    fn is_reusable(&self, keep_alive: bool) -> bool {
        let chunk = self.chunk.as_deref().unwrap_or_default();
        keep_alive
            // Bytes that follow belong to a pipelined request's response, or to none.
            && (self.used == chunk.len() || self.pipelined > 0)
            && matches!(self.sending, Sending::Done)
            && self.unsent.is_none()
    }

    #[inline]
    fn poll_event(
        &mut self,
        headers: &mut OwnedHeaders,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Event, Error>> {
        loop {
            if let Some(piece) = self.read(headers)? {
                return Poll::Ready(Ok(piece));
            }
            if !matches!(self.sending, Sending::Done) {
                self.pump(cx)?;
            }
            match self.transport.poll_recv(cx) {
                Poll::Ready(Ok(chunk)) if chunk.is_empty() => return Poll::Ready(self.at_end()),
                Poll::Ready(Ok(chunk)) => {
                    let arrived = self.transport.arrived(&chunk);
                    self.moved = arrived.unwrap_or_else(|| self.handle.now());
                    self.has_polled = false;
                    if self.phase == RequestPhase::Wait {
                        self.phase = RequestPhase::Head;
                    }
                    self.chunk = Some(chunk);
                    self.used = 0;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.broken(error))),
                Poll::Pending => return self.poll_time(cx).map(Err),
            }
        }
    }

    /// Reads the next part of the response from the chunk.
    #[inline]
    fn read(&mut self, headers: &mut OwnedHeaders) -> Result<Option<Event>, Error> {
        let chunk = self.chunk.as_deref().unwrap_or_default();
        loop {
            let (used, event) = match self.reader.next(&chunk[self.used..]) {
                Ok(next) => next,
                Err(error) => return Err(self.failed(self.phase, Kind::of_wire(error))),
            };
            self.used += used;
            return Ok(match event {
                None => {
                    // The buffer returns to its pool before more is received.
                    self.chunk = None;
                    self.used = 0;
                    None
                }
                Some(ResponseEvent::Interim(_)) => continue,
                Some(ResponseEvent::Head(head)) => {
                    headers.copy_from(&head.headers);
                    Some(Event::Head(Head {
                        status: head.status,
                        version: head.version,
                    }))
                }
                Some(ResponseEvent::Data(data)) => {
                    Some(Event::Data(self.used - data.len()..self.used))
                }
                Some(ResponseEvent::End(end)) => {
                    if !end.trailers.is_empty() {
                        let mut trailers = Box::<OwnedHeaders>::default();
                        trailers.copy_from(&end.trailers);
                        self.trailers = Some(trailers);
                    }
                    Some(Event::End(end.keep_alive))
                }
            });
        }
    }

    /// Sends more of a body. A connection that takes no more of it is not an error yet: a
    /// response may explain it. A body source that fails ends the exchange.
    #[cold]
    #[inline(never)]
    fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let Err(error) = self.poll_pump(cx) else {
            return Ok(());
        };
        match error.kind() {
            Kind::BodySource(_) | Kind::BodyLength { .. } => Err(error),
            _ => {
                // Kept, since another attempt must send all of it again.
                let stopped = std::mem::replace(&mut self.sending, Sending::Done);
                if let Sending::Pieces(streamed) = stopped {
                    self.spent = Some(streamed.into_body());
                }
                self.unsent = Some(error);
                Ok(())
            }
        }
    }

    fn poll_pump(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        loop {
            let must_flush = match &self.sending {
                Sending::Done => return Ok(()),
                Sending::Bytes(_) => true,
                Sending::Pieces(streamed) => streamed.held.is_some(),
            };
            if must_flush || self.transport.posted_bytes() >= SENDING_BYTES_MAX {
                let Poll::Ready(flushed) = self.transport.poll_flush(cx) else {
                    return Ok(());
                };
                flushed.map_err(|error| self.failed(RequestPhase::Send, Kind::of_io(error)))?;
            }
            match std::mem::replace(&mut self.sending, Sending::Done) {
                Sending::Done => {}
                Sending::Bytes(bytes) => {
                    self.sent_bytes = bytes.as_slice().len() as u64;
                    self.post(bytes)?;
                }
                Sending::Pieces(mut streamed) => {
                    let polled = self.poll_piece_out(&mut streamed, cx);
                    match polled {
                        Ok(Poll::Ready(true)) => self.spent = Some(streamed.into_body()),
                        _ => self.sending = Sending::Pieces(streamed),
                    }
                    if polled?.is_pending() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Sends the next piece; ready with true at the end.
    fn poll_piece_out(
        &mut self,
        streamed: &mut Streamed,
        cx: &mut Context<'_>,
    ) -> Result<Poll<bool>, Error> {
        if let Some(held) = streamed.held.take() {
            // Nothing may be posted behind it before it is sent.
            return self.post(held).map(|()| Poll::Ready(false));
        }
        let polled = streamed.pieces.poll_piece(cx);
        let polled =
            polled.map_err(|error| self.failed(RequestPhase::Send, Kind::BodySource(error)))?;
        let Poll::Ready(piece) = polled else {
            return Ok(Poll::Pending);
        };
        let ended = piece.is_none();
        streamed.given += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        self.check_length(streamed.announced, streamed.given, ended)?;
        self.sent_bytes = streamed.given;
        let bytes = match (piece, streamed.announced) {
            (Some(piece), Some(_)) => SendBuf::Owned(piece),
            (None, Some(_)) => return Ok(Poll::Ready(true)),
            (Some(piece), None) => {
                let mut out = self.handle.take_buffer();
                encode::chunk(&mut out, &piece);
                SendBuf::Owned(out)
            }
            (None, None) => SendBuf::Static(b"0\r\n\r\n"),
        };
        match bytes.as_slice().len() > SENDING_BYTES_MAX {
            // An idle transport accepts a post of any size.
            true => streamed.held = Some(bytes),
            false => self.post(bytes)?,
        }
        Ok(Poll::Ready(ended))
    }

    fn check_length(&self, announced: Option<u64>, given: u64, ended: bool) -> Result<(), Error> {
        match announced {
            Some(announced) if given > announced || (ended && given < announced) => {
                Err(self.failed(RequestPhase::Send, Kind::BodyLength { announced, given }))
            }
            _ => Ok(()),
        }
    }

    fn post(&mut self, bytes: SendBuf) -> Result<(), Error> {
        self.moved = self.handle.now();
        let posted = self.transport.post(bytes);
        posted.map_err(|error| self.failed(RequestPhase::Send, Kind::of_io(error)))
    }

    /// Ready with an error once a time-out has passed.
    #[inline]
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        loop {
            let (due, limit, length) = self.next_limit();
            if self.alarm.poll(&self.handle, due, cx).is_pending() {
                self.has_polled = true;
                return Poll::Pending;
            }
            if !std::mem::replace(&mut self.has_polled, true) {
                // The transport was not polled since bytes last moved: what has arrived since then
                // may still be in the kernel, and is not late.
                if limit == TimeLimit::Whole {
                    self.handle.wake_next_turn(cx);
                    return Poll::Pending;
                }
                self.moved = self.handle.now();
                continue;
            }
            let posted = self.transport.posted_bytes();
            if limit != TimeLimit::Whole && std::mem::replace(&mut self.posted, posted) > posted {
                // The kernel took a part of what is posted.
                self.moved = self.handle.now();
                continue;
            }
            let phase = match (posted, self.phase) {
                (1.., RequestPhase::Wait) => RequestPhase::Send,
                (_, phase) => phase,
            };
            // A request that could not be sent explains the missing response.
            let unsent = self.unsent.take();
            let late = || self.failed(phase, Kind::TimedOut(limit, length));
            return Poll::Ready(unsent.unwrap_or_else(late));
        }
    }

    /// The time-out that passes next: when, which one, and its length.
    #[inline]
    fn next_limit(&self) -> (Instant, TimeLimit, Nanos) {
        let timeouts = &self.timeouts;
        let (limit, length) = match (self.phase, &self.sending) {
            (RequestPhase::Wait, Sending::Done) => (TimeLimit::FirstByte, timeouts.first_byte),
            _ => (TimeLimit::Stall, timeouts.stall),
        };
        let step = self.moved + length;
        match timeouts.due < step {
            true => (timeouts.due, TimeLimit::Whole, timeouts.total),
            false => (step, limit, length),
        }
    }

    #[cold]
    fn at_end(&mut self) -> Result<Event, Error> {
        self.moved = self.handle.now();
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => Ok(Event::End(false)),
            Ok(EndOfInput::Idle { .. }) => Err(self.why(Kind::Closed)),
            Err(error) => Err(self.why(Kind::of_wire(error))),
        }
    }

    #[cold]
    fn broken(&mut self, error: io::Error) -> Error {
        let kind = match TlsError::within(&error) {
            // Nothing was truncated where nothing was received: many servers close so.
            Some(TlsError::Truncated) if self.phase == RequestPhase::Wait => Kind::Closed,
            _ => Kind::of_io(error),
        };
        self.why(kind)
    }

    /// The error of a failed response; what stopped the sending explains more, if something did.
    fn why(&mut self, kind: Kind) -> Error {
        match self.unsent.take() {
            Some(error) => error,
            None if !matches!(self.sending, Sending::Done) => self.failed(RequestPhase::Send, kind),
            None => self.failed(self.phase, kind),
        }
    }

    #[cold]
    fn failed(&self, phase: RequestPhase, kind: Kind) -> Error {
        Error::new(phase, kind).address(self.peer)
    }
}
