//! One connection of a server: reads requests, answers them in order, and closes so that the
//! client receives the last response.

use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

use prony_base::Instant;
use prony_engine::Stream;
use prony_wire::{Method, OwnedHeaders, RequestEvent, RequestHead, RequestReader};

use super::ending::{Ending, linger};
use super::handler::Handler;
use super::http2;
use super::incoming::Incoming;
use super::output::Output;
use super::state::ServerState;
#[cfg(feature = "tls")]
use super::wire::SecureWire;
use super::wire::{Wire, WireBytes};
use crate::request::Request;
use crate::response::{After, Response};
use prony_engine::Alarm;

const NO_MEMORY: &str = "there is no memory for the request's body just now";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Serves a connection to its end.
pub(super) async fn serve<H: Handler>(shared: Rc<ServerState>, handler: &H, stream: Stream) {
    let Some((stream, is_http2)) = wire(&shared, stream).await else {
        return;
    };
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
    let mut ending = match is_http2 {
        false => connection.converse(handler).await,
        true => Ending::Http2,
    };
    if ending == Ending::Http2 {
        let begun = std::mem::take(&mut connection.incoming.body);
        // In memory of its own, so that connections of HTTP/1.1 do not hold it.
        let serving = http2::serve(handler, &mut connection.response.output, begun);
        ending = Box::pin(serving).await;
    }
    connection.end(ending).await;
    connection.has_ended = true;
}

/// The connection as it is, or after the handshake of TLS, and whether that chose HTTP/2. None where it fails.
async fn wire(shared: &ServerState, stream: Stream) -> Option<(Wire, bool)> {
    #[cfg(feature = "tls")]
    if let Some(config) = &shared.options.tls {
        let due = shared.before_stop(shared.now() + shared.options.header_timeout);
        let accepting = SecureWire::accept(&shared.handle, stream, config);
        let accepted = shared.handle.timeout_at(due, accepting).await;
        let Ok(Ok((secure, is_http2))) = accepted else {
            shared.counters.handshakes_failed.add(1);
            return None;
        };
        let is_http2 = is_http2 && shared.options.http2;
        return Some((Wire::Secure(Box::new(secure)), is_http2));
    }
    let _ = shared;
    Some((Wire::Plain(stream), false))
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

/// The result of waiting for bytes.
enum Waited {
    Bytes(WireBytes),
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
                    return Ending::of_broken(&self.response.output.stream);
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
            self.response.output.stream.give_back(chunk);
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
                    // The client has said that it sends nothing after this, and has not. Should it
                    // still do so, what is not on its way yet would be dropped with the close.
                    Ending::Linger if is_last && self.response.is_small() => Ending::Orderly,
                    ending => ending,
                })?;
                if rest.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let (used, event) = match self.reader.next(rest) {
                Ok(next) => next,
                Err(error) => {
                    return Err(match self.becomes_http2(rest) {
                        true => Ending::Http2,
                        false => self.refuse(error.status(), &error, rest),
                    });
                }
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

    /// Whether what was refused is the preface of HTTP/2, at the connection's beginning. Looked at only then, so that
    /// requests of HTTP/1.1 pass nothing new.
    #[cold]
    fn becomes_http2(&mut self, rest: &[u8]) -> bool {
        let is_first = self.response.is_first();
        if !is_first || !self.response.output.shared.options.http2 {
            return false;
        }
        match self.reader.refused_preface(rest) {
            None => false,
            Some(begun) => {
                self.incoming.body = begun;
                true
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
        if output.send().await.is_err() {
            return output.stream.reset();
        }
        output.stream.say_end();
        // Asked for before the answer is sent, so that both leave in one segment. A client that sees the answer without
        // the end closes first, and its port stays in TIME_WAIT.
        if ending == Ending::Linger || output.stream.posted_bytes() > 0 {
            output.stream.shutdown_write();
        }
        if output.sent().await.is_err() {
            return output.stream.reset();
        }
        if ending == Ending::Linger {
            linger(&output.shared, &mut output.stream, &mut output.alarm).await;
        }
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
