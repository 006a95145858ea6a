//! An answer: its head, and its body as it comes. Not for: the way to it (`send`).

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};

use prony_base::{Instant, Nanos};
use prony_wire::{Headers, Method, OwnedHeaders};

use super::Client;
use super::body::Body;
use super::decode::{Decoder, PIECE_BYTES_MAX};
use super::error::{Error, Kind, Phase};
use super::h1::{Connection, Next, Waits};
use super::http2::Exchange;
use super::pool::Pool;
use super::request::{OnProgress, Progress, Request};
use super::send::Answered;
use super::target::Target;
use super::transport::Chunk;

/// The version of HTTP that an answer came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<prony_wire::Version> for Version {
    fn from(version: prony_wire::Version) -> Version {
        match version {
            prony_wire::Version::Http10 => Version::Http10,
            prony_wire::Version::Http11 => Version::Http11,
        }
    }
}

/// When the parts of a request were over, each as the time since its start. Of the
/// last exchange, where redirects or retries made several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The name was resolved; None on a connection that was there.
    pub resolved: Option<Nanos>,
    /// The connection was there.
    pub connected: Option<Nanos>,
    /// TLS was agreed on.
    pub secured: Option<Nanos>,
    /// The request was handed to the kernel, not later than this tells. Over HTTP/2, for requests that went out behind
    /// others, and where a body follows on its own, it was handed to the loop.
    pub sent: Nanos,
    /// The bytes that hold the head's end had come: the loop took them from the kernel. Over HTTP/2, they were read.
    pub first_byte: Nanos,
    /// The last byte of the body, as with the first; None before.
    pub done: Option<Nanos>,
    /// The connection had been used before.
    pub reused: bool,
}

/// Where an answer's body comes from.
pub(super) enum Source {
    /// A connection that is this answer's until its end.
    Http1(Box<Connection>),
    /// A stream of a shared connection, and what came of it last.
    Http2(Box<Exchange>, Option<Chunk>),
    /// Nowhere any more: it is over.
    Over,
}

impl Source {
    /// The bytes that were received last.
    #[inline]
    fn data(&self, place: Range<usize>) -> &[u8] {
        match self {
            Source::Http1(connection) => connection.data(place),
            Source::Http2(_, chunk) => {
                let chunk = chunk.as_deref().unwrap_or_default();
                chunk.get(place).unwrap_or_default()
            }
            Source::Over => &[],
        }
    }

    /// The request's body, for another try.
    pub fn take_body(&mut self, body: &mut Body) {
        match self {
            Source::Http1(connection) => connection.take_body(body),
            Source::Http2(exchange, _) => *body = exchange.take_body(),
            Source::Over => {}
        }
    }
}

/// Counts a request once, whatever becomes of it.
pub(super) struct Counted {
    client: Client,
    ended: bool,
}

impl Counted {
    #[inline]
    pub fn start(client: &Client) -> Counted {
        add(&client.counters().started);
        Counted {
            client: client.clone(),
            ended: false,
        }
    }

    #[inline]
    pub fn answered(&mut self) {
        self.end(|counters| &counters.answered);
    }

    pub fn failed(&mut self) {
        self.end(|counters| &counters.failed);
    }

    #[inline]
    fn end(&mut self, of: impl FnOnce(&super::Counters) -> &Cell<u64>) {
        if !std::mem::replace(&mut self.ended, true) {
            add(of(self.client.counters()));
        }
    }
}

impl Drop for Counted {
    #[inline]
    fn drop(&mut self) {
        self.end(|counters| &counters.cancelled);
    }
}

#[inline]
pub(super) fn add(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

/// An answer whose head has come.
///
/// Its body is read piece by piece ([`chunk`](Response::chunk)) or collected
/// ([`bytes`](Response::bytes), [`text`](Response::text)). Read to its end, its
/// connection goes back to the pool; dropped before, the request is cancelled.
pub struct Response {
    pub(super) counted: Counted,
    pub(super) target: Rc<Target>,
    pub(super) source: Source,
    pub(super) status: u16,
    pub(super) version: Version,
    pub(super) headers: OwnedHeaders,
    pub(super) trailers: Option<Box<OwnedHeaders>>,
    pub(super) peer: SocketAddr,
    pub(super) started: Instant,
    pub(super) timing: Timing,
    /// Bytes of the body so far, as they came.
    pub(super) received_bytes: u64,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) decoding: Option<Box<Decoding>>,
}

/// A body whose codings are taken off as it comes.
pub(super) struct Decoding {
    decoder: Decoder,
    /// What came out of it last.
    out: Vec<u8>,
    /// What of the last bytes received is not taken yet.
    rest: Option<Range<usize>>,
}

impl Decoding {
    /// What is to be taken off the body of this answer, if anything.
    ///
    /// # Errors
    /// [`Phase::Decode`]: a coding that is not known.
    #[inline]
    pub fn of(
        client: &Client,
        request: &Request,
        answered: &Answered,
    ) -> Result<Option<Box<Decoding>>, Error> {
        match client.decode_settings(request) {
            Some(settings) if answered.status != 206 => {
                let headers = answered.headers.as_headers();
                let values = headers.get_all("content-encoding");
                // Bytes that are no text name no coding, and show as such.
                let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
                let decoder = Decoder::new(values.iter().map(|value| &**value), settings);
                let made = decoder.map_err(|error| {
                    let error = Error::new(Phase::Decode, Kind::Decode(error));
                    error.address(answered.peer)
                })?;
                Ok(made.map(|decoder| {
                    Box::new(Decoding {
                        decoder,
                        out: Vec::new(),
                        rest: None,
                    })
                }))
            }
            _ => Ok(None),
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({} of {})", self.status, self.target.url)
    }
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status says that it went well: 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The version of HTTP that it came in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The header lines.
    pub fn headers(&self) -> Headers<'_> {
        self.headers.as_headers()
    }

    /// The value of the first header line of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name)
    }

    /// The lines after the body, once that was read to its end and if there were any.
    pub fn trailers(&self) -> Option<Headers<'_>> {
        self.trailers.as_ref().map(|lines| lines.as_headers())
    }

    /// The URL that it came from, after redirects the last one.
    pub fn url(&self) -> &str {
        self.target.url.as_str()
    }

    /// The address that it came from; through a proxy, the proxy's.
    pub fn remote_addr(&self) -> SocketAddr {
        self.peer
    }

    /// When the parts of the request were over.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// The body's length in bytes as the head says it, before decoding.
    pub fn content_length(&self) -> Option<u64> {
        let value = std::str::from_utf8(self.header("content-length")?).ok()?;
        value.trim().parse().ok()
    }

    /// Bytes of the body that have come so far, as they were sent: before a coding was
    /// undone. What [`chunk`](Response::chunk) gives may be more, or less.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// The next bytes of the body, where the loop received them; None at its end.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Phase::Body`]: it was cut off, or a time-out passed. Then it is over.
    pub async fn chunk(&mut self) -> Result<Option<&[u8]>, Error> {
        let place = poll_fn(|cx| self.poll_place(cx)).await?;
        Ok(place.map(|place| self.at(place)))
    }

    /// The whole body.
    ///
    /// # Errors
    /// As of [`chunk`](Response::chunk); [`Kind::BodyTooLong`] when it has more than
    /// `collected_bytes_max` bytes.
    pub async fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let max = self.counted.client.settings().collected_bytes_max;
        let mut out = Vec::new();
        while let Some(place) = poll_fn(|cx| self.poll_place(cx)).await? {
            if (out.len() + place.len()) as u64 > max {
                let too_long = Error::new(Phase::Body, Kind::BodyTooLong(max));
                return Err(self.fail(too_long.address(self.peer)));
            }
            if out.is_empty() {
                // What was announced is believed up to this size, and no further.
                let announced = self.content_length().unwrap_or(0).min(1 << 20);
                out.reserve_exact((announced as usize).max(place.len()));
            }
            out.extend_from_slice(self.at(place));
        }
        Ok(out)
    }

    /// The whole body as text; bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As of [`bytes`](Response::bytes).
    pub async fn text(self) -> Result<String, Error> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl Response {
    /// Where the next bytes of the body are, decoded; None at its end.
    #[inline]
    fn poll_place(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Range<usize>>, Error>> {
        match self.decoding {
            None => self.poll_received(cx),
            Some(_) => self.poll_decoded(cx),
        }
    }

    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Range<usize>>, Error>> {
        loop {
            if let Some(made) = self.decode_more()? {
                return Poll::Ready(Ok(Some(0..made)));
            }
            let place = ready!(self.poll_received(cx))?;
            let Some(decoding) = self.decoding.as_mut().filter(|_| place.is_some()) else {
                return Poll::Ready(Ok(None));
            };
            decoding.rest = place;
        }
    }

    /// Decodes what is there; how many bytes came of it, None where more has to come.
    fn decode_more(&mut self) -> Result<Option<usize>, Error> {
        let Some(decoding) = &mut self.decoding else {
            return Ok(None);
        };
        let Some(rest) = decoding.rest.take() else {
            return Ok(None);
        };
        decoding.out.clear();
        let received = self.source.data(rest.clone());
        match decoding.decoder.decode(received, &mut decoding.out) {
            Ok(used) => {
                let made = decoding.out.len();
                if made >= PIECE_BYTES_MAX {
                    decoding.rest = Some(rest.start + used..rest.end);
                }
                Ok((made > 0).then_some(made))
            }
            Err(error) => {
                let error = Error::new(Phase::Decode, Kind::Decode(error));
                Err(self.fail(error.address(self.peer)))
            }
        }
    }

    /// Where the next bytes of the body are as they were received; None at its end.
    #[inline]
    fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Range<usize>>, Error>> {
        let connection = match &mut self.source {
            Source::Http1(connection) => connection,
            Source::Http2(..) => return self.poll_place_of_http2(cx),
            Source::Over => return Poll::Ready(Ok(None)),
        };
        Poll::Ready(match ready!(connection.poll_body(cx)) {
            Ok(Next::Data(place)) => {
                self.received_bytes += place.len() as u64;
                self.tell_progress();
                Ok(Some(place))
            }
            Ok(Next::End(reusable)) => match self.decoded_whole() {
                Ok(()) => {
                    self.end(reusable);
                    Ok(None)
                }
                Err(error) => Err(self.fail(error)),
            },
            Err(error) => Err(self.fail(error)),
        })
    }

    #[cold]
    fn poll_place_of_http2(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Range<usize>>, Error>> {
        let Source::Http2(exchange, last) = &mut self.source else {
            return Poll::Ready(Ok(None));
        };
        *last = None;
        Poll::Ready(match ready!(exchange.poll_chunk(cx)) {
            Ok(Some(chunk)) => {
                let place = 0..chunk.len();
                *last = Some(chunk);
                self.received_bytes += place.len() as u64;
                self.tell_progress();
                Ok(Some(place))
            }
            Ok(None) => {
                self.timing.done = Some(exchange.moved().since(self.started));
                self.trailers = exchange.take_trailers();
                match self.decoded_whole() {
                    Ok(()) => {
                        self.source = Source::Over;
                        self.counted.answered();
                        Ok(None)
                    }
                    Err(error) => Err(self.fail(error)),
                }
            }
            Err(error) => Err(self.fail(error)),
        })
    }

    /// Whether the codings were at their end, too.
    #[inline]
    fn decoded_whole(&mut self) -> Result<(), Error> {
        let Some(decoding) = &mut self.decoding else {
            return Ok(());
        };
        decoding
            .decoder
            .finish()
            .map_err(|error| Error::new(Phase::Decode, Kind::Decode(error)).address(self.peer))
    }

    #[inline]
    fn at(&self, place: Range<usize>) -> &[u8] {
        if let Some(decoding) = &self.decoding {
            return decoding.out.get(place).unwrap_or_default();
        }
        self.source.data(place)
    }

    fn tell_progress(&self) {
        let Some(tell) = &self.on_progress else {
            return;
        };
        let (sent_bytes, received_bytes) = match &self.source {
            Source::Http1(connection) => connection.progress(),
            Source::Http2(exchange, _) => exchange.progress(),
            Source::Over => return,
        };
        tell(Progress {
            sent_bytes,
            received_bytes,
            total_bytes: self.content_length(),
        });
    }

    /// The body is whole.
    #[inline]
    fn end(&mut self, reusable: bool) {
        let Source::Http1(mut connection) = std::mem::replace(&mut self.source, Source::Over)
        else {
            return;
        };
        let now = connection.moved();
        self.timing.done = Some(now.since(self.started));
        self.trailers = connection.take_trailers();
        self.counted.answered();
        if reusable {
            self.counted.client.pool().release(connection, now);
        }
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.source = Source::Over;
        self.counted.failed();
        error.url(self.target.url.as_str())
    }

    /// Reads what has come of an unread body, so that its connection can be used again;
    /// a small rest is waited for in the background.
    #[cold]
    fn drain(&mut self) {
        let settings = self.counted.client.settings();
        let mut left = settings.drain_bytes_max;
        let cx = &mut Context::from_waker(Waker::noop());
        while let Source::Http1(connection) = &mut self.source {
            match connection.poll_body(cx) {
                Poll::Ready(Ok(Next::Data(place))) if place.len() as u64 <= left => {
                    left -= place.len() as u64;
                }
                Poll::Ready(Ok(Next::End(reusable))) => self.end(reusable),
                Poll::Pending if connection.body_bytes_left() <= left => break,
                Poll::Ready(_) | Poll::Pending => return,
            }
        }
        if let Source::Http1(connection) = std::mem::replace(&mut self.source, Source::Over) {
            let client = &self.counted.client;
            let pool = Rc::downgrade(client.pool());
            let rest = drain_rest(connection, left, client.handle().now() + DRAIN_TIME, pool);
            client.handle().spawn(rest).detach();
        }
    }
}

/// Receives a body that nobody wants, if it is small, so that its connection serves the next
/// exchange: mostly it came with the head, and its end is nearer than a new connection.
pub(super) async fn discard(client: &Client, answered: Answered) {
    client.give_back(answered.headers);
    // A stream of a shared connection is given up, and the connection goes on.
    if let Source::Http1(connection) = answered.source {
        let pool = Rc::downgrade(client.pool());
        let due = client.handle().now() + DRAIN_TIME;
        drain_rest(connection, client.settings().drain_bytes_max, due, pool).await;
    }
}

/// How long the rest of an unread body may take.
const DRAIN_TIME: Nanos = Nanos::from_secs(1);

async fn drain_rest(
    mut connection: Box<Connection>,
    mut left: u64,
    due: Instant,
    pool: Weak<Pool>,
) {
    connection.limit(due);
    loop {
        match poll_fn(|cx| connection.poll_body(cx)).await {
            Ok(Next::Data(place)) if place.len() as u64 <= left => left -= place.len() as u64,
            Ok(Next::End(true)) => {
                if let Some(pool) = pool.upgrade() {
                    let now = connection.moved();
                    pool.release(connection, now);
                }
                return;
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// Receives an answer that nobody wants any more, if it is small, since others follow it.
pub(super) async fn read_away(
    mut connection: Box<Connection>,
    method: Method,
    bytes_max: u64,
    now: Instant,
    pool: Weak<Pool>,
) {
    let due = now + DRAIN_TIME;
    let waits = Waits {
        first_byte: Nanos::MAX,
        stall: Nanos::MAX,
        whole: DRAIN_TIME,
        due,
    };
    if connection.begin_behind(&method, (waits, now)).is_ok() {
        let mut headers = OwnedHeaders::default();
        if poll_fn(|cx| connection.poll_head(&mut headers, cx))
            .await
            .is_ok()
        {
            drain_rest(connection, bytes_max, due, pool).await;
        }
    }
}

impl Drop for Response {
    #[inline]
    fn drop(&mut self) {
        if matches!(self.source, Source::Http1(_)) {
            self.drain();
        }
        let headers = std::mem::take(&mut self.headers);
        self.counted.client.give_back(headers);
    }
}
