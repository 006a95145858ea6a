//! One connection of a server: reads requests, has them answered in order, and
//! closes in such a way that the client sees the last answer.

use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

use prony_base::Instant;
use prony_engine::{Received, Stream};
use prony_wire::{
    Framing, Method, OwnedHeaders, RequestEvent, RequestHead, RequestReader, Version,
};

use super::Handler;
use super::shared::{Link, Shared};
use crate::budget::{Budget, Share};
use crate::request::Request;
use crate::response::{After, Response};
use crate::wait::Alarm;

/// A body's memory larger than this is given back after its request.
const BODY_KEPT_BYTES_MAX: usize = 64 << 10;
const NO_MEMORY: &str = "there is no memory for the request's body just now";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Serves a connection to its end.
pub(super) async fn serve<H: Handler>(shared: Rc<Shared>, handler: &H, stream: Stream) {
    let now = shared.now();
    let mut connection = Connection {
        has_ended: false,
        kept_in_stop: now + shared.options.stop_idle_grace,
        rested_in_stop: None,
        reader: RequestReader::new(shared.options.limits),
        incoming: Incoming::default(),
        phase: Phase::Rest,
        due: now + shared.options.idle_timeout,
        response: Response::new(Link {
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
    /// Cut off, by the end of a stop or of the whole server: what its client has not taken
    /// by then is not waited for, as what remains of a dropped stream is.
    fn drop(&mut self) {
        let stream = &self.response.link.stream;
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
    phase: Phase,
    /// Until when the phase may last.
    due: Instant,
    /// Until when at least a stop leaves it its time for a first request: it may
    /// have waited in the backlog.
    kept_in_stop: Instant,
    /// When it came to rest in a stop, after an answer that had promised to keep it: the
    /// client's next request may be on its way.
    rested_in_stop: Option<Instant>,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
    /// The client has ended its side, or nothing is under way.
    Orderly,
    /// The client may still be sending; closing now could make its kernel drop
    /// our last answer unread (RFC 9112, section 9.6).
    Linger,
    /// The connection is of no use.
    Reset,
}

/// What came of waiting for bytes.
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
                Waited::TooLong if self.phase == Phase::Rest => return Ending::Orderly,
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
            let counters = &self.response.link.shared.counters;
            counters.bytes_in.add(chunk.len() as u64);
            if let Err(ending) = self.take(handler, &chunk).await {
                return ending;
            }
            drop(chunk);
            if self.response.link.send().await.is_err() {
                return Ending::Reset;
            }
            self.enter_phase();
        }
    }

    /// Takes in received bytes; the answers are in the buffer to be sent.
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
                    self.incoming.start(&head, self.response.link.shared.now());
                    if head.expects_continue && rest.is_empty() {
                        self.response.link.out().extend_from_slice(CONTINUE);
                    }
                }
                Some(RequestEvent::Data(data)) => {
                    let memory = &self.response.link.shared.options.body_memory;
                    if !self.incoming.put(data, memory) {
                        return Err(self.refuse(503, &NO_MEMORY, rest));
                    }
                }
                Some(RequestEvent::End(_)) => {
                    let request = self.incoming.request();
                    answer(handler, &request, &mut self.response).await?;
                    let memory = &self.response.link.shared.options.body_memory;
                    self.incoming.clear(memory);
                }
            }
        }
    }

    /// Answers a request that breaks a rule or a limit, before it was whole. `rest` is what
    /// the reader was given last, from where it stopped.
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
            let link = &mut self.response.link;
            if let Poll::Ready(received) = link.stream.poll_recv(cx) {
                return Poll::Ready(received.map_or(Waited::Broken, Waited::Bytes));
            }
            let due = match link.shared.stop() {
                Some(stop) if self.phase == Phase::Rest => {
                    let rested = self.rested_in_stop.map(|since| since + stop.idle_grace);
                    let kept = self.kept_in_stop.max(rested.unwrap_or(Instant::ZERO));
                    self.due.min(stop.idle_due.max(kept))
                }
                _ => self.due,
            };
            ready!(link.poll_alarm(due, cx));
            Poll::Ready(Waited::TooLong)
        })
        .await
    }

    /// Finds out what is waited for next, and for how long.
    #[inline]
    fn enter_phase(&mut self) {
        let shared = &self.response.link.shared;
        let options = &shared.options;
        let before = self.phase;
        let timeout = if self.reader.is_idle() {
            self.phase = Phase::Rest;
            self.rested_in_stop = shared.stop().map(|_| shared.now());
            options.idle_timeout
        } else if self.incoming.is_open {
            self.phase = Phase::Body;
            let whole = options.body_time(self.incoming.body.len() as u64);
            self.due = (shared.now() + options.body_timeout).min(self.incoming.began + whole);
            return;
        } else if before == Phase::Head {
            // However many bytes come, a head has its time as a whole.
            return;
        } else {
            self.phase = Phase::Head;
            options.header_timeout
        };
        self.due = shared.now() + timeout;
    }

    /// The client's side has ended.
    fn note_end(&mut self) {
        if self.reader.end_of_input().is_err() {
            self.response.link.shared.counters.truncated.add(1);
        }
    }

    /// Closes.
    async fn end(&mut self, ending: Ending) {
        let link = &mut self.response.link;
        if ending == Ending::Reset {
            return link.stream.reset();
        }
        if link.send().await.is_err() || link.sent().await.is_err() {
            return link.stream.reset();
        }
        if ending == Ending::Linger {
            self.linger().await;
        }
    }

    /// Ends our side, and throws away what comes until the client ends its own.
    async fn linger(&mut self) {
        let link = &mut self.response.link;
        link.stream.shutdown_write();
        let due = link.shared.handle.now() + link.shared.options.linger_timeout;
        let mut left = link.shared.options.linger_bytes_max;
        poll_fn(|cx| {
            loop {
                match link.stream.poll_recv(cx) {
                    Poll::Ready(Ok(bytes)) if !bytes.is_empty() && bytes.len() <= left => {
                        left -= bytes.len();
                    }
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return link.poll_alarm(due, cx),
                }
            }
        })
        .await
    }
}

/// Has one request answered. Many answers that are pipelined go out together.
#[inline]
async fn answer<H: Handler>(
    handler: &H,
    request: &Request<'_>,
    response: &mut Response,
) -> Result<(), Ending> {
    let shared = &response.link.shared;
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
    let link = &mut response.link;
    if link.out.len() >= link.shared.options.response_buffer_bytes_max {
        link.send().await.map_err(|_| Ending::Reset)?;
    }
    Ok(())
}

/// A request's header lines with another Host, in the place of the one that was sent.
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

impl Phase {
    fn complaint(self) -> &'static str {
        match self {
            Phase::Body => "the request's body came too slowly",
            Phase::Rest | Phase::Head => "the request's head came too slowly",
        }
    }
}

/// A request that comes in several chunks, copied together.
#[derive(Debug)]
struct Incoming {
    /// The head is there, the end is not.
    is_open: bool,
    method: Method,
    target: String,
    version: Version,
    headers: OwnedHeaders,
    framing: Framing,
    keep_alive: bool,
    expects_continue: bool,
    /// When its head was whole.
    began: Instant,
    /// At most `body_bytes_max` bytes, by the reader.
    body: Vec<u8>,
    /// The body's memory, of that of all. INVARIANT: no less than its capacity.
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

    /// Makes room for a body of `length` bytes, and for more where more may come.
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
