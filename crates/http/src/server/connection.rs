//! One connection of a server: reads requests, answers them in order, and closes so that the
//! client receives the last response.

use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

use prony_base::Instant;
use prony_engine::{Received, Stream};
use prony_wire::{
    Framing, Method, OwnedHeaders, RequestEvent, RequestHead, RequestReader, Version,
};

use super::handler::Handler;
use super::output::Output;
use super::state::ServerState;
use crate::budget::{Budget, Share};
use crate::request::Request;
use crate::response::{After, Response};
use crate::wait::Alarm;

/// Most bytes of memory that are kept for the bodies of further requests.
const BODY_KEPT_BYTES_MAX: usize = 64 << 10;
const NO_MEMORY: &str = "there is no memory for the request's body just now";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Serves a connection to its end.
pub(super) async fn serve<H: Handler>(shared: Rc<ServerState>, handler: &H, stream: Stream) {
    let now = shared.now();
    let mut connection = Connection {
        has_ended: false,
        kept_in_stop: now + shared.options.stop_idle_grace,
        rested_in_stop: None,
        reader: RequestReader::new(shared.options.limits),
        incoming: Incoming::default(),
        phase: ReadPhase::Rest,
        due: now + shared.options.idle_timeout,
        response: Response::new(Output {
            shared,
            stream,
            out: Vec::new(),
            alarm: Alarm::default(),
            peer: None,
        }),
    };
    let ending = connection.converse(handler).await;
    connection.end(ending).await;
    connection.has_ended = true;
}

impl Drop for Connection {
    /// Resets a connection that a stop, or the end of the server, has cut off: unlike with other
    /// dropped streams, the rest of what was posted is not sent.
    fn drop(&mut self) {
        let stream = &self.response.output.stream;
        if !self.has_ended && stream.posted_bytes() > 0 {
            stream.reset();
        }
    }
}

struct Connection {
    has_ended: bool,
    reader: RequestReader,
    incoming: Incoming,
    response: Response,
    phase: ReadPhase,
    /// When the phase times out.
    due: Instant,
    /// A stop keeps the connection until here at least, for its first request: it may have waited
    /// in the backlog.
    kept_in_stop: Instant,
    /// When it became idle during a stop, after a response with `keep-alive`: the client's next
    /// request may be on its way.
    rested_in_stop: Option<Instant>,
}

/// The part of a request that is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadPhase {
    /// The first byte of a request.
    Rest,
    /// The rest of a head.
    Head,
    /// More of a body.
    Body,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The client has closed its side, or no request is in progress.
    Orderly,
    /// The client may still be sending; closing now could make its kernel discard the last
    /// response unread (RFC 9112, section 9.6).
    Linger,
    /// The connection is of no use.
    Reset,
}

/// The result of waiting for bytes.
enum Waited {
    Bytes(Received),
    TooLong,
    Broken,
}

impl Connection {
    /// Answers requests until there is a reason to close.
    async fn converse<H: Handler>(&mut self, handler: &H) -> Ending {
        loop {
            let chunk = match self.receive().await {
                Waited::Bytes(chunk) => chunk,
                Waited::TooLong if self.phase == ReadPhase::Rest => return Ending::Orderly,
                Waited::TooLong => return self.refuse(408, &self.phase.complaint(), b""),
                Waited::Broken => {
                    self.note_end();
                    return Ending::Reset;
                }
            };
            if chunk.is_empty() {
                self.note_end();
                return Ending::Orderly;
            }
            let counters = &self.response.output.shared.counters;
            counters.bytes_in.add(chunk.len() as u64);
            if let Err(ending) = self.take(handler, &chunk).await {
                return ending;
            }
            drop(chunk);
            if self.response.output.send().await.is_err() {
                return Ending::Reset;
            }
            self.enter_phase();
        }
    }

    /// Handles received bytes; the responses are appended to the output.
    async fn take<H: Handler>(&mut self, handler: &H, chunk: &[u8]) -> Result<(), Ending> {
        let mut rest = chunk;
        loop {
            if let Some(whole) = self.reader.next_whole(rest) {
                rest = &rest[whole.used..];
                let request = Request {
                    head: whole.head,
                    body: whole.body,
                };
                let is_last = !whole.head.keep_alive && whole.body.is_empty() && rest.is_empty();
                let answered = answer(handler, &request, &mut self.response).await;
                answered.map_err(|ending| match ending {
                    // The client has said that it sends nothing after this, and has not.
                    Ending::Linger if is_last => Ending::Orderly,
                    ending => ending,
                })?;
                if rest.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let (used, event) = match self.reader.next(rest) {
                Ok(next) => next,
                Err(error) => return Err(self.refuse(error.status(), &error, rest)),
            };
            rest = &rest[used..];
            match event {
                None => return Ok(()),
                Some(RequestEvent::Head(head)) => {
                    self.incoming
                        .start(&head, self.response.output.shared.now());
                    if head.expects_continue && rest.is_empty() {
                        self.response.output.out().extend_from_slice(CONTINUE);
                    }
                }
                Some(RequestEvent::Data(data)) => {
                    let memory = &self.response.output.shared.options.body_memory;
                    if !self.incoming.put(data, memory) {
                        return Err(self.refuse(503, &NO_MEMORY, rest));
                    }
                }
                Some(RequestEvent::End(_)) => {
                    let request = self.incoming.request();
                    answer(handler, &request, &mut self.response).await?;
                    let memory = &self.response.output.shared.options.body_memory;
                    self.incoming.clear(memory);
                }
            }
        }
    }

    /// Answers a request that breaks a rule or a limit before it was received whole. `rest` is the
    /// last chunk, from where the reader stopped.
    #[cold]
    fn refuse(&mut self, status: u16, why: &dyn fmt::Display, rest: &[u8]) -> Ending {
        let is_head = match self.incoming.is_open {
            true => self.incoming.method == Method::Head,
            false => self.reader.part_is_head_request(rest),
        };
        self.response.refuse(status, why, is_head);
        // What came of its body is of no use while the client is waited for.
        self.incoming = Incoming::default();
        Ending::Linger
    }

    /// Waits for bytes.
    #[inline]
    async fn receive(&mut self) -> Waited {
        poll_fn(|cx| {
            let output = &mut self.response.output;
            if let Poll::Ready(received) = output.stream.poll_recv(cx) {
                return Poll::Ready(received.map_or(Waited::Broken, Waited::Bytes));
            }
            let due = match output.shared.stop() {
                Some(stop) if self.phase == ReadPhase::Rest => {
                    let rested = self.rested_in_stop.map(|since| since + stop.idle_grace);
                    let kept = self.kept_in_stop.max(rested.unwrap_or(Instant::ZERO));
                    self.due.min(stop.idle_due.max(kept))
                }
                _ => self.due,
            };
            ready!(output.poll_alarm(due, cx));
            Poll::Ready(Waited::TooLong)
        })
        .await
    }

    /// Sets what is read next, and its time-out.
    #[inline]
    fn enter_phase(&mut self) {
        let shared = &self.response.output.shared;
        let options = &shared.options;
        let before = self.phase;
        let timeout = if self.reader.is_idle() {
            self.phase = ReadPhase::Rest;
            self.rested_in_stop = shared.stop().map(|_| shared.now());
            options.idle_timeout
        } else if self.incoming.is_open {
            self.phase = ReadPhase::Body;
            let whole = options.body_time(self.incoming.body.len() as u64);
            self.due = (shared.now() + options.body_timeout).min(self.incoming.began + whole);
            return;
        } else if before == ReadPhase::Head {
            // However many bytes come, a head has its time as a whole.
            return;
        } else {
            self.phase = ReadPhase::Head;
            options.header_timeout
        };
        self.due = shared.now() + timeout;
    }

    /// Counts a request that the end of the client's side has truncated.
    fn note_end(&mut self) {
        if self.reader.end_of_input().is_err() {
            self.response.output.shared.counters.truncated.add(1);
        }
    }

    /// Closes the connection.
    async fn end(&mut self, ending: Ending) {
        let output = &mut self.response.output;
        if ending == Ending::Reset {
            return output.stream.reset();
        }
        if output.send().await.is_err() || output.sent().await.is_err() {
            return output.stream.reset();
        }
        if ending == Ending::Linger {
            self.linger().await;
        }
    }

    /// Closes this side, and discards what is received until the client closes its own.
    async fn linger(&mut self) {
        let output = &mut self.response.output;
        output.stream.shutdown_write();
        let due = output.shared.handle.now() + output.shared.options.linger_timeout;
        let mut left = output.shared.options.linger_bytes_max;
        poll_fn(|cx| {
            loop {
                match output.stream.poll_recv(cx) {
                    Poll::Ready(Ok(bytes)) if !bytes.is_empty() && bytes.len() <= left => {
                        left -= bytes.len();
                    }
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return output.poll_alarm(due, cx),
                }
            }
        })
        .await
    }
}

/// Calls the handler for one request. The responses to pipelined requests are sent together.
#[inline]
async fn answer<H: Handler>(
    handler: &H,
    request: &Request<'_>,
    response: &mut Response,
) -> Result<(), Ending> {
    let shared = &response.output.shared;
    shared.counters.requests.add(1);
    response.begin(&request.head);
    match request.head.target_authority() {
        None => handler.handle(request, response).await,
        Some(authority) => {
            let headers = with_host(authority, &request.head);
            let mut request = *request;
            request.head.headers = headers.as_headers();
            handler.handle(&request, response).await;
        }
    }
    match response.conclude() {
        After::KeepAlive => {}
        After::Close => return Err(Ending::Linger),
        After::Abort => return Err(Ending::Reset),
    }
    let output = &mut response.output;
    if output.out.len() >= output.shared.options.response_buffer_bytes_max {
        output.send().await.map_err(|_| Ending::Reset)?;
    }
    Ok(())
}

/// A request's header lines, with Host replaced.
#[cold]
fn with_host(authority: &str, head: &RequestHead<'_>) -> OwnedHeaders {
    let mut headers = OwnedHeaders::default();
    let host = authority.as_bytes();
    if head.headers.get("host").is_none() {
        headers.push("Host", host);
    }
    for header in &head.headers {
        let value = if header.is("host") {
            host
        } else {
            header.value
        };
        headers.push(header.name, value);
    }
    headers
}

impl ReadPhase {
    fn complaint(self) -> &'static str {
        match self {
            ReadPhase::Body => "the request's body came too slowly",
            ReadPhase::Rest | ReadPhase::Head => "the request's head came too slowly",
        }
    }
}

/// A request that is received in several chunks, copied together.
#[derive(Debug)]
struct Incoming {
    /// Its head was received, its end was not.
    is_open: bool,
    method: Method,
    target: String,
    version: Version,
    headers: OwnedHeaders,
    framing: Framing,
    keep_alive: bool,
    expects_continue: bool,
    /// When its head was complete.
    began: Instant,
    /// At most `body_bytes_max` bytes, by the reader.
    body: Vec<u8>,
    /// Its share of the memory for bodies. INVARIANT: no less than the body's capacity.
    share: Share,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming {
            is_open: false,
            method: Method::Get,
            target: String::new(),
            version: Version::Http11,
            headers: OwnedHeaders::default(),
            framing: Framing::None,
            keep_alive: false,
            expects_continue: false,
            began: Instant::ZERO,
            body: Vec::new(),
            share: Share::default(),
        }
    }
}

impl Incoming {
    fn start(&mut self, head: &RequestHead<'_>, now: Instant) {
        self.is_open = true;
        self.began = now;
        self.method = head.method;
        self.target.clear();
        self.target.push_str(head.target);
        self.version = head.version;
        self.headers.copy_from(&head.headers);
        self.framing = head.framing;
        self.keep_alive = head.keep_alive;
        self.expects_continue = head.expects_continue;
    }

    fn request(&self) -> Request<'_> {
        Request {
            head: RequestHead {
                method: self.method,
                target: &self.target,
                version: self.version,
                headers: self.headers.as_headers(),
                framing: self.framing,
                keep_alive: self.keep_alive,
                expects_continue: self.expects_continue,
            },
            body: &self.body,
        }
    }

    /// Adds to the body; false if there is no memory for it.
    #[inline]
    fn put(&mut self, data: &[u8], memory: &Budget) -> bool {
        let length = self.body.len() + data.len();
        if length > self.body.capacity() && !self.grow(length, memory) {
            return false;
        }
        self.body.extend_from_slice(data);
        true
    }

    /// Reserves memory for a body of `length` bytes, and for more where more may follow.
    fn grow(&mut self, length: usize, memory: &Budget) -> bool {
        let whole = match self.framing {
            Framing::Length(whole) => usize::try_from(whole).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let doubled = self.body.capacity().saturating_mul(2).min(whole);
        let capacity = doubled.max(length);
        if !self.share.grow_to(capacity as u64, memory) {
            return false;
        }
        self.body.reserve_exact(capacity - self.body.len());
        true
    }

    fn clear(&mut self, memory: &Budget) {
        self.is_open = false;
        self.body.clear();
        // What is kept for the next body must not keep others from having theirs.
        if self.body.capacity() > BODY_KEPT_BYTES_MAX || memory.is_scarce() {
            self.body = Vec::new();
            self.share = Share::default();
        }
    }
}
