//! HTTP/1 over one transport: a request out, its answer in, piece by piece.
//! Not for: which connection to take (`pool`), or what an answer means.
//!
//! A request that has nothing but bytes is one post. The body of an answer is handed
//! on where it lies, in the buffer that the loop received it in.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, SendBuf};
use prony_wire::{
    EndOfInput, Limits, Method, OwnedHeaders, ResponseEvent, ResponseReader, Version, encode,
};

use super::SENDING_BYTES_MAX;
use super::body::{Body, Pieces};
use super::error::{Error, Kind, Phase, TimeLimit};
use super::pool::{Behind, Slot};
use super::tls::TlsError;
use super::transport::{Chunk, Transport};
use crate::wait::Alarm;

/// Interim and final answers look the same until their status is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub status: u16,
    pub version: Version,
}

/// How long an exchange may wait for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    pub first_byte: Nanos,
    pub stall: Nanos,
    pub whole: Nanos,
    /// When the whole request has to be done.
    pub due: Instant,
}

/// What is left to be sent.
enum Sending {
    Done,
    /// Behind the head, once that is out.
    Bytes(SendBuf),
    Pieces(Streamed),
}

/// A body that comes in pieces.
struct Streamed {
    pieces: Box<dyn Pieces>,
    /// Bytes announced; None in chunks.
    announced: Option<u64>,
    given: u64,
    /// A large piece that waits until all before it is out.
    held: Option<SendBuf>,
}

impl Streamed {
    fn into_body(self) -> Body {
        Body::Pieces(self.pieces, self.announced)
    }
}

/// A connection that speaks HTTP/1.
pub(super) struct Connection {
    /// Requests whose heads are out, in the order in which their answers will come. Before
    /// the slot: when it breaks they are back in line before its room is given away.
    pub behind: Behind,
    pub slot: Slot,
    pub peer: SocketAddr,
    pub born: Instant,
    pub rests_since: Instant,
    /// Answers read to their end.
    pub answers: u64,
    /// The version that the other side speaks.
    version: Version,
    handle: Handle,
    transport: Transport,
    reader: ResponseReader,
    /// Received, and read up to `used`.
    chunk: Option<Chunk>,
    used: usize,
    sending: Sending,
    /// Pieces that were all sent, for another try.
    spent: Option<Body>,
    /// Why sending stopped before its end; told if no answer explains it.
    unsent: Option<Error>,
    alarm: Alarm,
    waits: Waits,
    phase: Phase,
    /// When the request was posted.
    posted_at: Instant,
    /// All of it was, at once.
    is_one_post: bool,
    /// When something last moved.
    moved: Instant,
    /// Whether it was waited for more since then, while there was time.
    has_asked: bool,
    /// What of the request was posted and not taken then.
    posted: usize,
    head_bytes: usize,
    sent_bytes: u64,
    received_bytes: u64,
    trailers: Option<Box<OwnedHeaders>>,
}

/// What comes next of an answer.
enum Piece {
    Head(Head),
    /// Where in the chunk.
    Data(Range<usize>),
    /// The answer is whole; whether another can follow.
    End(bool),
}

/// How a body reads on.
pub(super) enum Next {
    /// Its bytes, to be had by [`Connection::data`].
    Data(Range<usize>),
    /// The body is whole; whether the connection can be used again.
    End(bool),
}

impl Connection {
    pub fn new(
        handle: &Handle,
        slot: Slot,
        (transport, peer): (Transport, SocketAddr),
        limits: Limits,
        now: Instant,
    ) -> Box<Connection> {
        Box::new(Connection {
            behind: Behind::new(&slot.host),
            slot,
            peer,
            born: now,
            rests_since: now,
            answers: 0,
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
            waits: Waits {
                first_byte: Nanos::MAX,
                stall: Nanos::MAX,
                whole: Nanos::MAX,
                due: Instant::NEVER,
            },
            phase: Phase::Wait,
            posted_at: now,
            is_one_post: false,
            moved: now,
            has_asked: false,
            posted: 0,
            head_bytes: 0,
            sent_bytes: 0,
            received_bytes: 0,
            trailers: None,
        })
    }

    /// Closes it; what is left is its place in the counts.
    pub fn into_slot(self: Box<Connection>) -> Slot {
        self.slot
    }

    /// Whether a connection at rest can still be used: the other side has said nothing,
    /// neither an end nor bytes that belong to no request.
    #[inline]
    pub fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.transport.poll_recv(cx).is_pending()
    }

    /// Sends a request: its head (with a small body in it), and what follows.
    ///
    /// # Errors
    /// [`Phase::Send`]: nothing of it was sent.
    #[inline]
    pub fn begin(
        &mut self,
        method: &Method,
        head: SendBuf,
        body: &mut Body,
        (waits, now): (Waits, Instant),
    ) -> Result<(), Error> {
        self.expect(method, waits, now)?;
        self.head_bytes = head.as_slice().len();
        let posted = self.transport.post(head);
        posted.map_err(|error| self.failed(Phase::Send, Kind::of_io(error)))?;
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

    /// Begins to read the answer of a request that was [posted](Connection::post_behind)
    /// behind others.
    ///
    /// # Errors
    /// As of [`begin`](Connection::begin).
    pub fn begin_behind(
        &mut self,
        method: &Method,
        (waits, now): (Waits, Instant),
    ) -> Result<(), Error> {
        self.expect(method, waits, now)?;
        if self.used < self.chunk.as_deref().unwrap_or_default().len() {
            // It came together with the answer before.
            self.phase = Phase::Head;
        }
        Ok(())
    }

    #[inline]
    fn expect(&mut self, method: &Method, waits: Waits, now: Instant) -> Result<(), Error> {
        self.waits = waits;
        (self.posted_at, self.is_one_post) = (now, false);
        self.moved = now;
        self.has_asked = false;
        self.phase = Phase::Wait;
        self.sent_bytes = 0;
        self.received_bytes = 0;
        self.posted = 0;
        self.spent = None;
        let expected = self.reader.expect(method);
        expected.map_err(|error| self.failed(Phase::Send, Kind::Wire(error)))
    }

    /// Sends a whole request behind those that are under way; false where the connection
    /// does not take it.
    pub fn post_behind(&mut self, head: SendBuf) -> bool {
        // It was sent by another, who cannot tell what the kernel took of it.
        self.head_bytes = usize::MAX;
        self.transport.post(head).is_ok()
    }

    /// Whether requests may go out before the answers to those before them have come: the
    /// other side speaks HTTP/1.1, has kept the connection once, and nothing is half sent.
    pub fn takes_more(&self) -> bool {
        self.answers > 0 && self.version == Version::Http11 && matches!(self.sending, Sending::Done)
    }

    /// The body that was sent or being sent, for another try. What was not sent to its end
    /// leaves the connection of no more use.
    pub fn take_body(&mut self, body: &mut Body) {
        if let Some(spent) = self.spent.take() {
            *body = spent;
        }
        match std::mem::replace(&mut self.sending, Sending::Done) {
            Sending::Pieces(streamed) => {
                self.unsent = Some(self.failed(Phase::Send, Kind::Closed));
                *body = streamed.into_body();
            }
            other => self.sending = other,
        }
    }

    /// Whether no byte of an answer has come, so that the server may never have seen
    /// the request.
    pub fn is_unanswered(&self) -> bool {
        self.phase == Phase::Wait
    }

    /// Whether the kernel has taken nothing of the request.
    pub fn is_unsent(&self) -> bool {
        self.sent_bytes == 0 && self.transport.posted_bytes() >= self.head_bytes
    }

    /// When the request was handed to the kernel: not later than it was. Where a body followed its head on its own,
    /// and where the kernel is not known to have it, when the head was posted.
    #[inline]
    pub fn submitted(&self) -> Instant {
        let submitted = self.transport.submitted().map(|at| at.from);
        submitted
            .filter(|&at| self.is_one_post && at >= self.posted_at)
            .unwrap_or(self.posted_at)
    }

    /// When something last moved: after a head or an end, when it came.
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
        let whole = self.chunk.as_deref().unwrap_or_default();
        whole.get(place).unwrap_or_default()
    }

    /// What followed the body, if anything.
    pub fn take_trailers(&mut self) -> Option<Box<OwnedHeaders>> {
        self.trailers.take()
    }

    /// The answer's head, its lines into `headers`. Interim answers are passed over.
    ///
    /// # Errors
    /// Whatever ends an exchange; the connection is of no more use then.
    #[inline]
    pub fn poll_head(
        &mut self,
        headers: &mut OwnedHeaders,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Error>> {
        match ready!(self.poll_piece(headers, cx))? {
            Piece::Head(head) => {
                self.phase = Phase::Body;
                self.version = head.version;
                Poll::Ready(Ok(head))
            }
            // A head comes first, always.
            Piece::Data(_) | Piece::End(_) => {
                Poll::Ready(Err(self.failed(Phase::Head, Kind::Closed)))
            }
        }
    }

    /// What follows of the body.
    ///
    /// # Errors
    /// As of [`poll_head`](Connection::poll_head).
    #[inline]
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Next, Error>> {
        // A body has no head: what is passed here stays empty.
        match ready!(self.poll_piece(&mut OwnedHeaders::default(), cx))? {
            Piece::Data(place) => {
                self.received_bytes += place.len() as u64;
                Poll::Ready(Ok(Next::Data(place)))
            }
            Piece::End(keep_alive) => {
                self.answers += 1;
                Poll::Ready(Ok(Next::End(self.is_reusable(keep_alive))))
            }
            Piece::Head(_) => Poll::Ready(Err(self.failed(Phase::Body, Kind::Closed))),
        }
    }

    /// Lets what is left take until `due` at most.
    pub fn limit(&mut self, due: Instant) {
        self.waits.due = self.waits.due.min(due);
    }

    /// How many bytes of the body are known to be left; `u64::MAX` where it is not known.
    pub fn body_bytes_left(&self) -> u64 {
        self.reader.plain_bytes_left()
    }

    fn is_reusable(&self, keep_alive: bool) -> bool {
        let whole = self.chunk.as_deref().unwrap_or_default();
        keep_alive
            // What has come already is the next one's answer, or nobody's.
            && (self.used == whole.len() || !self.behind.is_empty())
            && matches!(self.sending, Sending::Done)
            && self.unsent.is_none()
    }

    #[inline]
    fn poll_piece(
        &mut self,
        headers: &mut OwnedHeaders,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, Error>> {
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
                    self.has_asked = false;
                    if self.phase == Phase::Wait {
                        self.phase = Phase::Head;
                    }
                    self.chunk = Some(chunk);
                    self.used = 0;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.broken(error))),
                Poll::Pending => return self.poll_time(cx).map(Err),
            }
        }
    }

    /// What the chunk holds next.
    #[inline]
    fn read(&mut self, headers: &mut OwnedHeaders) -> Result<Option<Piece>, Error> {
        let chunk = self.chunk.as_deref().unwrap_or_default();
        loop {
            let (used, event) = match self.reader.next(&chunk[self.used..]) {
                Ok(next) => next,
                Err(error) => return Err(self.failed(self.phase, Kind::of_wire(error))),
            };
            self.used += used;
            return Ok(match event {
                None => {
                    // Back to the pool before more is received.
                    self.chunk = None;
                    self.used = 0;
                    None
                }
                Some(ResponseEvent::Interim(_)) => continue,
                Some(ResponseEvent::Head(head)) => {
                    headers.copy_from(&head.headers);
                    Some(Piece::Head(Head {
                        status: head.status,
                        version: head.version,
                    }))
                }
                Some(ResponseEvent::Data(data)) => {
                    Some(Piece::Data(self.used - data.len()..self.used))
                }
                Some(ResponseEvent::End(end)) => {
                    if !end.trailers.is_empty() {
                        let mut kept = Box::<OwnedHeaders>::default();
                        kept.copy_from(&end.trailers);
                        self.trailers = Some(kept);
                    }
                    Some(Piece::End(end.keep_alive))
                }
            });
        }
    }

    /// Sends more of a body. That the connection takes no more of it is kept: an answer
    /// that has come says more. A source that fails leaves nothing to wait for.
    #[cold]
    #[inline(never)]
    fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let Err(error) = self.poll_pump(cx) else {
            return Ok(());
        };
        match error.kind() {
            Kind::BodySource(_) | Kind::BodyLength { .. } => Err(error),
            _ => {
                // Kept, since another try must send all of it again.
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
            let waits = match &self.sending {
                Sending::Done => return Ok(()),
                Sending::Bytes(_) => true,
                Sending::Pieces(streamed) => streamed.held.is_some(),
            };
            if waits || self.transport.posted_bytes() >= SENDING_BYTES_MAX {
                let Poll::Ready(flushed) = self.transport.poll_flush(cx) else {
                    return Ok(());
                };
                flushed.map_err(|error| self.failed(Phase::Send, Kind::of_io(error)))?;
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
            // Nothing may be posted behind it before it is out.
            return self.post(held).map(|()| Poll::Ready(false));
        }
        let polled = streamed.pieces.poll_piece(cx);
        let polled = polled.map_err(|error| self.failed(Phase::Send, Kind::BodySource(error)))?;
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
            // Alone, whatever its size, it is taken.
            true => streamed.held = Some(bytes),
            false => self.post(bytes)?,
        }
        Ok(Poll::Ready(ended))
    }

    fn check_length(&self, announced: Option<u64>, given: u64, ended: bool) -> Result<(), Error> {
        match announced {
            Some(announced) if given > announced || (ended && given < announced) => {
                Err(self.failed(Phase::Send, Kind::BodyLength { announced, given }))
            }
            _ => Ok(()),
        }
    }

    fn post(&mut self, bytes: SendBuf) -> Result<(), Error> {
        self.moved = self.handle.now();
        let posted = self.transport.post(bytes);
        posted.map_err(|error| self.failed(Phase::Send, Kind::of_io(error)))
    }

    /// Ready with an error once a time-out has passed.
    #[inline]
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        loop {
            let (due, limit, length) = self.next_limit();
            if self.alarm.poll(&self.handle, due, cx).is_pending() {
                self.has_asked = true;
                return Poll::Pending;
            }
            if !std::mem::replace(&mut self.has_asked, true) {
                // Nobody has looked since what came last: what came meanwhile may still be
                // with the kernel, and was not late.
                if limit == TimeLimit::Whole {
                    self.handle.wake_next_turn(cx);
                    return Poll::Pending;
                }
                self.moved = self.handle.now();
                continue;
            }
            let posted = self.transport.posted_bytes();
            if limit != TimeLimit::Whole && std::mem::replace(&mut self.posted, posted) > posted {
                // The kernel took a part of what is being sent.
                self.moved = self.handle.now();
                continue;
            }
            let phase = match (posted, self.phase) {
                (1.., Phase::Wait) => Phase::Send,
                (_, phase) => phase,
            };
            // That the request could not be sent says why nothing came.
            let unsent = self.unsent.take();
            let late = || self.failed(phase, Kind::TimedOut(limit, length));
            return Poll::Ready(unsent.unwrap_or_else(late));
        }
    }

    /// The time-out that passes next, which it is, and its length.
    #[inline]
    fn next_limit(&self) -> (Instant, TimeLimit, Nanos) {
        let waits = &self.waits;
        let (limit, length) = match (self.phase, &self.sending) {
            (Phase::Wait, Sending::Done) => (TimeLimit::FirstByte, waits.first_byte),
            _ => (TimeLimit::Stall, waits.stall),
        };
        let step = self.moved + length;
        match waits.due < step {
            true => (waits.due, TimeLimit::Whole, waits.whole),
            false => (step, limit, length),
        }
    }

    #[cold]
    fn at_end(&mut self) -> Result<Piece, Error> {
        self.moved = self.handle.now();
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => Ok(Piece::End(false)),
            Ok(EndOfInput::Idle { .. }) => Err(self.why(Kind::Closed)),
            Err(error) => Err(self.why(Kind::of_wire(error))),
        }
    }

    #[cold]
    fn broken(&mut self, error: io::Error) -> Error {
        let kind = match TlsError::within(&error) {
            // Nothing was cut off where nothing had come: many servers close so.
            Some(TlsError::Truncated) if self.phase == Phase::Wait => Kind::Closed,
            _ => Kind::of_io(error),
        };
        self.why(kind)
    }

    /// A failed answer; what stopped the sending says more, if something did.
    fn why(&mut self, kind: Kind) -> Error {
        match self.unsent.take() {
            Some(error) => error,
            None if !matches!(self.sending, Sending::Done) => self.failed(Phase::Send, kind),
            None => self.failed(self.phase, kind),
        }
    }

    #[cold]
    fn failed(&self, phase: Phase, kind: Kind) -> Error {
        Error::new(phase, kind).address(self.peer)
    }
}

/// Bodies of at most so many bytes go out in one post with their head.
pub(super) const JOINED_BYTES_MAX: usize = 16 << 10;

/// A large body that can be sent again without a copy.
pub(super) fn shared(bytes: SendBuf) -> SendBuf {
    match bytes {
        SendBuf::Owned(bytes) if bytes.len() > JOINED_BYTES_MAX => SendBuf::Shared(Rc::from(bytes)),
        other => other,
    }
}
