//! A response: its head, and its body as it is received. Not for: sending requests (`send`).

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use prony_base::Instant;
use prony_wire::{Headers, OwnedHeaders};

use super::answer::{Answered, Source, drain};
use super::decode::{Decoder, PIECE_BYTES_MAX};
use super::error::{Error, Kind, RequestPhase};
use super::h1::{DRAIN_TIME, Next};
use super::request::{ClientRequest, OnProgress, Progress};
use super::state::{ClientState, Counters, add};
use super::target::Target;
use super::timing::{Timing, Version};

/// Counts a request once, however it ends.
pub(super) struct Counted {
    client: Rc<ClientState>,
    ended: bool,
}

impl Counted {
    #[inline]
    pub fn start(client: &Rc<ClientState>) -> Counted {
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
    fn end(&mut self, of: impl FnOnce(&Counters) -> &Cell<u64>) {
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

/// A response whose head has been received.
///
/// Its body is read chunk by chunk ([`chunk`](Response::chunk)) or collected
/// ([`bytes`](Response::bytes), [`text`](Response::text)). Read to its end, its
/// connection returns to the pool; dropped before, the request is cancelled.
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
    /// Bytes of the body so far, before decoding.
    pub(super) received_bytes: u64,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) decoding: Option<Box<Decoding>>,
}

/// A body that is decoded as it is received.
pub(super) struct Decoding {
    decoder: Decoder,
    /// Its last output.
    out: Vec<u8>,
    /// The part of the last chunk that is not decoded yet.
    rest: Option<Range<usize>>,
}

impl Decoding {
    /// The decoding of this response's body, if it has a content coding.
    ///
    /// # Errors
    /// [`RequestPhase::Decode`]: an unknown coding.
    #[inline]
    pub fn new(
        client: &ClientState,
        request: &ClientRequest,
        answered: &Answered,
    ) -> Result<Option<Box<Decoding>>, Error> {
        match request.decode_settings(client.settings()) {
            Some(settings) if answered.status != 206 => {
                let headers = answered.headers.as_headers();
                let values = headers.get_all("content-encoding");
                // Bytes that are not UTF-8 name no coding, and the error shows them.
                let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
                let decoder = Decoder::new(values.iter().map(|value| &**value), settings);
                let made = decoder.map_err(|error| {
                    let error = Error::new(RequestPhase::Decode, Kind::Decode(error));
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

    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Its version of HTTP.
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

    /// The trailers, once the body was read to its end and if there were any.
    pub fn trailers(&self) -> Option<Headers<'_>> {
        self.trailers.as_ref().map(|lines| lines.as_headers())
    }

    /// The URL of the request; after redirects the last one.
    pub fn url(&self) -> &str {
        self.target.url.as_str()
    }

    /// The peer's address; through a proxy, the proxy's.
    pub fn remote_addr(&self) -> SocketAddr {
        self.peer
    }

    /// When each phase of the request ended.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// The body's length in bytes as the head states it, before decoding.
    pub fn content_length(&self) -> Option<u64> {
        let value = std::str::from_utf8(self.header("content-length")?).ok()?;
        value.trim().parse().ok()
    }

    /// Bytes of the body received so far, before decoding. What [`chunk`](Response::chunk)
    /// returns may be more, or less.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Waits for the next bytes of the body, in the buffer that the loop received them in; None
    /// at its end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`RequestPhase::Body`]: it was truncated, or a time-out passed. The response is then over.
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
                let too_long = Error::new(RequestPhase::Body, Kind::BodyTooLong(max));
                return Err(self.fail(too_long.address(self.peer)));
            }
            if out.is_empty() {
                // Memory is reserved for an announced length up to this one.
                let announced = self.content_length().unwrap_or(0).min(1 << 20);
                out.reserve_exact((announced as usize).max(place.len()));
            }
            out.extend_from_slice(self.at(place));
        }
        Ok(out)
    }

    /// The whole body as text; bytes that are not UTF-8 become U+FFFD.
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
    /// The range of the next bytes of the decoded body; None at its end.
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

    /// Decodes what was received; the length of the output, None where more is needed.
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
                let error = Error::new(RequestPhase::Decode, Kind::Decode(error));
                Err(self.fail(error.address(self.peer)))
            }
        }
    }

    /// The range of the next bytes of the body as received; None at its end.
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
                self.report_progress();
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
                self.report_progress();
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

    /// Checks that the codings have ended with the body.
    #[inline]
    fn decoded_whole(&mut self) -> Result<(), Error> {
        let Some(decoding) = &mut self.decoding else {
            return Ok(());
        };
        decoding.decoder.finish().map_err(|error| {
            Error::new(RequestPhase::Decode, Kind::Decode(error)).address(self.peer)
        })
    }

    #[inline]
    fn at(&self, place: Range<usize>) -> &[u8] {
        if let Some(decoding) = &self.decoding {
            return decoding.out.get(place).unwrap_or_default();
        }
        self.source.data(place)
    }

    fn report_progress(&self) {
        let Some(callback) = &self.on_progress else {
            return;
        };
        let (sent_bytes, received_bytes) = match &self.source {
            Source::Http1(connection) => connection.progress(),
            Source::Http2(exchange, _) => exchange.progress(),
            Source::Over => return,
        };
        callback(Progress {
            sent_bytes,
            received_bytes,
            total_bytes: self.content_length(),
        });
    }

    /// Ends the response: its body is complete.
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

    /// Reads what was received of an unread body, so that its connection can be used again; a
    /// small rest is received in the background.
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
            let rest = drain(connection, left, client.handle().now() + DRAIN_TIME);
            client.handle().spawn(rest).detach();
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
