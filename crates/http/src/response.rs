//! An answer in the making.
//!
//! A handler gives it at once ([`Response::send`]) or in pieces
//! ([`Response::stream`]); either way it is written straight into the buffer
//! that is sent. Date, framing and Connection are not the handler's business.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use prony_engine::SendBuf;
use prony_wire::encode::{self, EncodeError};
use prony_wire::http2::put_answer_head;
use prony_wire::{Framing, Header, Method, RequestHead, Status, Version};

use crate::server::{Output, SEND_BYTES_MAX, Wire};

const TEXT: Header<'_> = Header::new("content-type", b"text/plain; charset=utf-8");

/// Bytes of a body that, with its head, fit into the ten segments that TCP sends unasked
/// (RFC 6928).
const FIRST_WINDOW_BYTES: u64 = 8 << 10;

/// The answer to one request.
pub struct Response {
    pub(crate) output: Output,
    version: Version,
    is_head: bool,
    is_connect: bool,
    keep_alive: bool,
    status: u16,
    /// Bytes of the body that were given.
    body_bytes: u64,
    progress: Progress,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No request is being answered.
    Idle,
    /// Nothing was written.
    Unanswered,
    /// The head is written, and this of the body is to come.
    Streaming(Body),
    /// All is written.
    Whole,
    /// Cannot become whole any more.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// This many bytes.
    Left(u64),
    Chunked,
    UntilClose,
    /// Whatever comes is thrown away: the request was HEAD, or the status has none.
    Unwanted,
}

/// What is to happen to the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    /// The answer was the last: let the client see it.
    Close,
    /// The answer is not whole: nothing can follow it.
    Abort,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({:?})", self.progress)
    }
}

impl Response {
    pub(crate) fn new(output: Output) -> Response {
        Response {
            output,
            version: Version::Http11,
            is_head: false,
            is_connect: false,
            keep_alive: true,
            status: 0,
            body_bytes: 0,
            progress: Progress::Idle,
        }
    }

    /// Gives the whole answer. To HEAD only its head is sent; a status without
    /// body (204, 205, 304) goes without. So does a 2xx to CONNECT, after which the client
    /// takes the connection for a tunnel: there is none here, and it is closed.
    ///
    /// `status` is from 200 to 999, with the usual reason or, as a [`Status`], another. `headers` are without Date, Connection,
    /// Content-Length and Transfer-Encoding. An answer that cannot be sent, or a
    /// second one, turns into a 500, or the end of the connection.
    #[inline]
    pub fn send<'h>(
        &mut self,
        status: impl Into<Status<'h>>,
        headers: impl IntoIterator<Item = Header<'h>>,
        body: &[u8],
    ) {
        let framing = Framing::Length(body.len() as u64);
        if let Some(wanted) = self.start(status.into(), headers, framing) {
            if wanted {
                self.put_body(body);
            }
            self.progress = Progress::Whole;
        }
    }

    /// Adds a whole body.
    #[inline]
    fn put_body(&mut self, body: &[u8]) {
        match &self.output.stream {
            // A stream whose client is gone takes no body, and its answer is dropped.
            Wire::Http2(stream) => drop(stream.data(body, true)),
            _ => self.output.out.extend_from_slice(body),
        }
        self.body_bytes = body.len() as u64;
    }

    /// Gives a whole answer of plain text.
    pub fn text(&mut self, status: u16, text: &str) {
        self.send(status, [TEXT], text.as_bytes());
    }

    /// Answers 405: the path has other methods, `allow`, such as `GET, HEAD`.
    pub fn method_not_allowed(&mut self, allow: &str) {
        let allow = Header::new("allow", allow.as_bytes());
        self.send(405, [TEXT, allow], b"the path has other methods\n");
    }

    /// Starts an answer in pieces, of `length` bytes or of unknown length. End it
    /// with [`BodyWriter::finish`]. Faults as of [`send`](Response::send).
    pub fn stream<'h>(
        &mut self,
        status: impl Into<Status<'h>>,
        headers: impl IntoIterator<Item = Header<'h>>,
        length: Option<u64>,
    ) -> BodyWriter<'_> {
        let (framing, body) = match (length, self.version) {
            (Some(length), _) => (Framing::Length(length), Body::Left(length)),
            (None, _) if self.is_http2() => (Framing::None, Body::UntilClose),
            (None, Version::Http11) => (Framing::Chunked, Body::Chunked),
            (None, Version::Http10) => (Framing::UntilClose, Body::UntilClose),
        };
        if let Some(wanted) = self.start(status.into(), headers, framing) {
            self.keep_alive &= body != Body::UntilClose;
            let body = if wanted { body } else { Body::Unwanted };
            self.progress = Progress::Streaming(body);
        }
        BodyWriter { response: self }
    }

    /// Sends what was answered so far, and waits until the kernel has taken it: before
    /// work that the client need not wait for. Without it, an answer goes out once the
    /// handler has returned.
    ///
    /// # Errors
    /// What broke the connection; [`io::ErrorKind::TimedOut`] if the client takes nothing.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.output.send().await?;
        self.output.sent().await
    }

    /// Whether an answer was started.
    pub fn is_started(&self) -> bool {
        !matches!(self.progress, Progress::Idle | Progress::Unanswered)
    }

    /// The address of the client that is answered; the kernel is asked once for each
    /// connection. None where the connection is gone already.
    #[inline]
    pub fn peer_addr(&mut self) -> Option<SocketAddr> {
        self.output.peer()
    }

    /// The status of the answer that was started.
    pub fn status(&self) -> Option<u16> {
        self.is_started().then_some(self.status)
    }

    /// Bytes of the body given so far, without framing; none of an answer to HEAD.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Writes a head; whether its body is wanted. None if there can be no answer.
    #[inline]
    fn start<'h>(
        &mut self,
        status: Status<'h>,
        headers: impl IntoIterator<Item = Header<'h>>,
        framing: Framing,
    ) -> Option<bool> {
        if self.progress != Progress::Unanswered {
            self.progress = Progress::Broken;
            return None;
        }
        match self.put_head(status, headers, framing) {
            Ok(wanted) => Some(wanted),
            Err(fault) => {
                self.fail(&fault);
                None
            }
        }
    }

    #[inline]
    fn put_head<'h>(
        &mut self,
        status: Status<'h>,
        headers: impl IntoIterator<Item = Header<'h>>,
        framing: Framing,
    ) -> Result<bool, EncodeError> {
        let is_tunnel = self.is_connect && matches!(status.code, 200..=299);
        let (framing, bodiless) = match status.code {
            _ if is_tunnel => (Framing::None, true),
            204 | 304 => (Framing::None, true),
            // Without a length it would go on until the connection's end (RFC 9110,
            // section 15.3.6).
            205 => (Framing::Length(0), true),
            _ => (framing, false),
        };
        if status.code < 200 {
            return Err(EncodeError::BadStatus);
        }
        if let Wire::Http2(stream) = &self.output.stream {
            let wanted = !self.is_head && !bodiless;
            let ends = !wanted || framing == Framing::Length(0);
            let shared = &self.output.shared;
            let date = shared.date();
            let own = shared.options.headers.iter().copied();
            let headers = [Header::new("date", &date)].into_iter().chain(own).chain(
                headers
                    .into_iter()
                    .map(|header| Header::new(header.name, header.value)),
            );
            stream.head(ends, |out| {
                put_answer_head(out, status.code, headers, framing)
            })?;
            self.status = status.code;
            return Ok(wanted);
        }
        self.output.out();
        let Output { shared, out, .. } = &mut self.output;
        // Asked as late as can be: a stop may have begun while the handler waited.
        self.keep_alive &= shared.stop().is_none() && !is_tunnel;
        encode::response(out, self.version, status)
            .header("date", shared.date())
            .headers(shared.options.headers.iter().copied())
            .headers(headers)
            .keep_alive(self.keep_alive)
            .finish(framing)?;
        self.status = status.code;
        Ok(!self.is_head && !bodiless)
    }

    /// The handler's answer cannot be sent: says so instead.
    #[cold]
    fn fail(&mut self, fault: &EncodeError) {
        let text = format!("the handler's answer cannot be sent: {fault}\n");
        let framing = Framing::Length(text.len() as u64);
        self.progress = match self.put_head(500.into(), [TEXT], framing) {
            Ok(wanted) => {
                if wanted {
                    self.put_body(text.as_bytes());
                }
                Progress::Whole
            }
            Err(_) => Progress::Broken,
        };
    }

    #[inline]
    fn is_http2(&self) -> bool {
        matches!(self.output.stream, Wire::Http2(_))
    }

    /// Whether no answer was given on the connection so far.
    pub(crate) fn is_first(&self) -> bool {
        self.status == 0
    }

    /// Whether the kernel sends all of the answer at the end of this side, which comes before the close: it is no more
    /// than a new connection's first window.
    pub(crate) fn is_small(&self) -> bool {
        self.body_bytes <= FIRST_WINDOW_BYTES
    }

    /// Of HTTP/2: gives the rest of an answer whose handler has returned to its stream, and waits until that has sent
    /// it. What does not become whole is [`After::Abort`] in [`conclude`](Response::conclude).
    pub(crate) async fn give_rest(&mut self) {
        if self.progress == Progress::Unanswered {
            self.text(500, "the handler gave no answer\n");
        }
        if self.progress != Progress::Whole {
            return;
        }
        let mut given = self.output.send().await;
        if let (Ok(()), Wire::Http2(stream)) = (&given, &self.output.stream) {
            given = stream.data(&[], true);
        }
        if given.is_ok() {
            given = self.output.sent().await;
        }
        if given.is_err() {
            self.progress = Progress::Broken;
        }
    }

    /// A request is to be answered.
    #[inline]
    pub(crate) fn begin(&mut self, head: &RequestHead<'_>) {
        self.version = head.version;
        self.is_head = head.method == Method::Head;
        self.is_connect = head.method == Method::Connect;
        self.keep_alive = head.keep_alive;
        self.body_bytes = 0;
        self.progress = Progress::Unanswered;
    }

    /// The handler has returned.
    #[inline]
    pub(crate) fn conclude(&mut self) -> After {
        if self.progress == Progress::Unanswered {
            self.text(500, "the handler gave no answer\n");
        }
        let is_whole = self.progress == Progress::Whole;
        let counters = &self.output.shared.counters;
        self.progress = Progress::Idle;
        if !is_whole {
            counters.aborted.add(1);
            return After::Abort;
        }
        counters.answered.add(1);
        counters.body_bytes.add(self.body_bytes);
        counters.status(self.status);
        match self.keep_alive {
            true => After::KeepAlive,
            false => After::Close,
        }
    }

    /// Answers a request that broke a rule; the connection's last answer.
    #[cold]
    pub(crate) fn refuse(&mut self, status: u16, why: &dyn fmt::Display, is_head: bool) {
        self.version = Version::Http11;
        self.is_head = is_head;
        self.is_connect = false;
        self.keep_alive = false;
        self.progress = Progress::Unanswered;
        self.text(status, &format!("{why}\n"));
        self.progress = Progress::Idle;
        self.output.shared.counters.refused.add(1);
        self.output.shared.counters.status(self.status);
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        // The connection was ended while its handler was still at work.
        if self.progress != Progress::Idle {
            self.output.shared.counters.aborted.add(1);
        }
    }
}

/// Why an answer should end now; see [`BodyWriter::interrupted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The client has closed the connection or its side of it, or it broke.
    Gone,
    /// The server is stopping.
    Stop,
}

/// Sends a body piece by piece, no faster than the client takes it: at most
/// [`response_buffer_bytes_max`](crate::ServerOptions) wait in memory.
///
/// Dropped before [`finish`](BodyWriter::finish), the answer is not whole, and the
/// connection is reset, so that the client cannot take it for whole.
#[derive(Debug)]
#[must_use = "a body counts only when finished"]
pub struct BodyWriter<'r> {
    response: &'r mut Response,
}

impl BodyWriter<'_> {
    /// False where nothing of the body will be sent, because the request was HEAD
    /// or there was a fault: it need not be made.
    pub fn is_wanted(&self) -> bool {
        match self.response.progress {
            Progress::Streaming(body) => body != Body::Unwanted,
            _ => false,
        }
    }

    /// Adds a piece, waiting while too much is unsent.
    ///
    /// # Errors
    /// What broke the connection; [`io::ErrorKind::TimedOut`] if the client takes
    /// nothing; [`io::ErrorKind::InvalidInput`] if it is more than was announced.
    pub async fn write(&mut self, data: &[u8]) -> io::Result<()> {
        for piece in data.chunks(SEND_BYTES_MAX) {
            let Some(body) = self.take(piece.len() as u64)? else {
                return Ok(());
            };
            if self.response.is_http2() {
                let sent = self.response.output.send_framed(piece).await;
                self.note(sent)?;
                continue;
            }
            let out = self.response.output.out();
            match body {
                Body::Chunked => encode::chunk(out, piece),
                _ => out.extend_from_slice(piece),
            }
            if out.len() >= SEND_BYTES_MAX {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Adds a piece that lives as long as the program, without copying it where
    /// the length was announced. Keep it under 64 KiB. Errors as of
    /// [`write`](BodyWriter::write).
    pub async fn write_static(&mut self, data: &'static [u8]) -> io::Result<()> {
        if data.is_empty() || self.response.progress == Progress::Streaming(Body::Chunked) {
            return self.write(data).await;
        }
        if self.take(data.len() as u64)?.is_none() {
            return Ok(());
        }
        self.send().await?;
        let sent = self
            .response
            .output
            .send_buffer(SendBuf::Static(data))
            .await;
        self.note(sent)
    }

    /// Adds `length` bytes of a file from `offset` on, which go to the client without
    /// passing through the program. For an answer whose length was announced. Waits, for
    /// much, until all of it is in the kernel's hands.
    ///
    /// # Errors
    /// As of [`write`](BodyWriter::write), and what the kernel says about the file;
    /// [`io::ErrorKind::UnexpectedEof`] if it has not so many bytes;
    /// [`io::ErrorKind::InvalidInput`] in an answer of unknown length.
    pub async fn write_file(
        &mut self,
        file: &Rc<OwnedFd>,
        offset: u64,
        length: u64,
    ) -> io::Result<()> {
        if self.response.progress == Progress::Streaming(Body::Chunked) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a part of a file needs an announced length",
            ));
        }
        if self.take(length)?.is_none() {
            return Ok(());
        }
        self.send().await?;
        let file = Rc::clone(file);
        let sent = self.response.output.send_file(file, offset, length).await;
        self.note(sent)
    }

    /// Sends what was written so far, and waits until the kernel has taken it: what a
    /// client that reads slowly holds in memory is then one piece, whatever it is sent.
    ///
    /// # Errors
    /// As of [`write`](BodyWriter::write).
    pub async fn flush(&mut self) -> io::Result<()> {
        self.send().await?;
        let sent = self.response.output.sent().await;
        self.note(sent)
    }

    /// Waits until there is no use in going on: for answers without an end, which have
    /// nothing to write for long. What the client sends meanwhile is thrown away, and then
    /// the connection carries no request after this one.
    pub async fn interrupted(&mut self) -> Interruption {
        poll_fn(|cx| self.poll_interrupted(cx)).await
    }

    /// [`interrupted`](BodyWriter::interrupted), for hand-written futures.
    pub fn poll_interrupted(&mut self, cx: &mut Context<'_>) -> Poll<Interruption> {
        let output = &mut self.response.output;
        if output.shared.stop().is_some() {
            return Poll::Ready(Interruption::Stop);
        }
        loop {
            match output.stream.poll_recv(cx) {
                Poll::Ready(Ok(bytes)) if !bytes.is_empty() => {
                    output.shared.counters.bytes_in.add(bytes.len() as u64);
                    self.response.keep_alive = false;
                }
                Poll::Ready(_) => return Poll::Ready(Interruption::Gone),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is less than was announced.
    pub async fn finish(self) -> io::Result<()> {
        match self.response.progress {
            Progress::Streaming(Body::Chunked) => {
                let ended = encode::last_chunk(self.response.output.out(), []);
                ended.map_err(io::Error::other)?;
            }
            Progress::Streaming(Body::Left(0) | Body::Unwanted | Body::UntilClose) => {}
            Progress::Streaming(Body::Left(_)) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the body is shorter than announced",
                ));
            }
            Progress::Whole => return Ok(()),
            _ => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        self.response.progress = Progress::Whole;
        Ok(())
    }

    /// Notes that `length` bytes more are given; None if they are not wanted.
    fn take(&mut self, length: u64) -> io::Result<Option<Body>> {
        let taken = self.take_counted(length)?;
        if taken.is_some() {
            self.response.body_bytes += length;
        }
        Ok(taken)
    }

    fn take_counted(&mut self, length: u64) -> io::Result<Option<Body>> {
        match &mut self.response.progress {
            Progress::Streaming(Body::Unwanted) | Progress::Whole => Ok(None),
            Progress::Streaming(Body::Left(left)) => match left.checked_sub(length) {
                Some(less) => {
                    *left = less;
                    Ok(Some(Body::Left(less)))
                }
                None => Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the body is longer than announced",
                )),
            },
            Progress::Streaming(body) => Ok(Some(*body)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        let sent = self.response.output.send().await;
        self.note(sent)
    }

    fn note(&mut self, sent: io::Result<()>) -> io::Result<()> {
        if sent.is_err() {
            self.response.progress = Progress::Broken;
        }
        sent
    }
}
