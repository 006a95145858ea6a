//! The way of a request: a connection, the exchange over it, and once more on another
//! where the one that was at rest turns out to be dead.
//! Not for: bytes on the wire (`h1`), or waiting in line (`pool`).

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos};
use prony_engine::SendBuf;
use prony_wire::encode::{self, EncodeError};
use prony_wire::{Framing, Header, Method, OwnedHeaders, Version};

use super::Client;
use super::around;
use super::body::Body;
use super::connect::{self, Made, Span};
use super::error::{Error, Kind, Phase, TimeLimit};
use super::h1::{Connection, Head, JOINED_BYTES_MAX, Waits};
use super::http2::{self, Http2, Shared};
use super::pool::{Ahead, Granted, Host};
use super::proxy::{Proxy, absolute_form};
use super::request::Request;
use super::response::{self, Counted, Decoding, Response, Source, Timing, add};
use super::retry::is_idempotent;
use super::settings::HttpVersion;

/// How often a request that a connection at rest did not carry is sent once more.
const STALE_RETRIES_MAX: u32 = 2;

/// An exchange whose head has come.
pub(super) struct Answered {
    pub source: Source,
    pub peer: SocketAddr,
    pub status: u16,
    pub version: response::Version,
    pub headers: OwnedHeaders,
    pub timing: Timing,
}

/// What carries a request.
enum Carrier {
    /// A connection for it alone, until its answer's end. With when its head was sent,
    /// where that went out behind others before.
    Http1(Box<Connection>, Option<Instant>),
    /// One of many streams of a connection.
    Http2(Http2),
}

/// Sends `request` and waits for the head of its answer.
///
/// It takes what it needs by value and works on it in place: an async function keeps its
/// arguments, and each further one around it would keep them once more.
pub(super) async fn send(
    client: Client,
    mut request: Result<Request, Error>,
) -> Result<Response, Error> {
    let client = &client;
    let request = match &mut request {
        Ok(request) => request,
        Err(error) => return Err(error.take()),
    };
    let mut counted = Counted::start(client);
    let started = client.handle().now();
    let options = request.options.as_deref();
    let whole = options.and_then(|options| options.timeout);
    let whole = whole.unwrap_or(client.settings().timeout);
    let due = started + whole;
    let span = Span { started, due };
    let answered = around::send(client, request, span, whole).await;
    let answered = answered.and_then(|answered| {
        let decoding = Decoding::of(client, request, &answered)?;
        Ok((answered, decoding))
    });
    match answered {
        Ok((answered, decoding)) => Ok(Response {
            decoding,
            counted,
            peer: answered.peer,
            source: answered.source,
            status: answered.status,
            version: answered.version,
            headers: answered.headers,
            trailers: None,
            started,
            timing: answered.timing,
            received_bytes: 0,
            on_progress: request
                .options
                .take()
                .and_then(|options| options.on_progress),
            target: request.target.clone(),
        }),
        Err(error) => {
            counted.failed();
            Err(error.url(request.url()))
        }
    }
}

/// One exchange, and once more where a connection that was at rest turns out to be dead.
#[inline]
pub(super) async fn exchange(
    client: &Client,
    request: &mut Request,
    span: Span,
    whole: Nanos,
) -> Result<Answered, Error> {
    let mut stale = 0;
    loop {
        let mut timing = Timing::default();
        let (error, may_go_again) =
            match obtain(client, request, span, stale > 0, &mut timing).await? {
                Carrier::Http1(mut connection, ahead) => {
                    let mut headers = client.take_headers();
                    let limits = (span, whole);
                    let is_ahead = ahead.is_some();
                    let asked = match ahead {
                        None => ask(client, &mut connection, request, limits, &timing),
                        Some(sent) => {
                            timing.sent = sent.since(span.started);
                            let waits = (waits(client, request, limits), client.handle().now());
                            connection.begin_behind(&request.method, waits)
                        }
                    };
                    let answer = match asked {
                        Ok(()) => poll_fn(|cx| connection.poll_head(&mut headers, cx)).await,
                        Err(error) => Err(error),
                    };
                    match answer {
                        // The proxy's own answer, whoever was asked.
                        Ok(head) if head.status == 407 && asks_proxy(client, request) => {
                            let error = Error::new(Phase::Proxy, Kind::ProxyCredentials);
                            return Err(error.address(connection.peer));
                        }
                        Ok(head) => {
                            if !is_ahead {
                                timing.sent = connection.submitted().since(span.started);
                            }
                            timing.first_byte = connection.moved().since(span.started);
                            return Ok(answered(connection, head, headers, timing));
                        }
                        Err(error) => {
                            let again = may_go_again(&mut connection, request, &error);
                            (error, timing.reused && again)
                        }
                    }
                }
                Carrier::Http2(http2) => {
                    let over = over_http2(client, request, &http2, (span, whole), timing);
                    match Box::pin(over).await {
                        Ok(answered) => return Ok(answered),
                        Err(failed) => failed,
                    }
                }
            };
        if !may_go_again || stale >= STALE_RETRIES_MAX {
            return Err(error);
        }
        stale += 1;
        add(&client.counters().resent);
    }
}

#[inline]
fn answered(
    connection: Box<Connection>,
    head: Head,
    headers: OwnedHeaders,
    timing: Timing,
) -> Answered {
    Answered {
        peer: connection.peer,
        source: Source::Http1(connection),
        status: head.status,
        version: head.version.into(),
        headers,
        timing,
    }
}

/// Sends the request as a stream of a shared connection. Beside an error: whether the
/// request can be sent again without harm.
#[cold]
async fn over_http2(
    client: &Client,
    request: &mut Request,
    http2: &Http2,
    (span, whole): (Span, Nanos),
    mut timing: Timing,
) -> Result<Answered, (Error, bool)> {
    timing.sent = client.handle().now().since(span.started);
    add(&client.counters().sent);
    let body = std::mem::take(&mut request.body);
    let waits = waits(client, request, (span, whole));
    let sent = http2.send(&http2_head(client, request), body, waits).await;
    let mut exchange = match sent {
        Ok(exchange) => Box::new(exchange),
        Err((error, body)) => {
            request.body = body;
            let is_untouched = matches!(error.kind(), Kind::NotHandled(_));
            return Err((error, is_untouched));
        }
    };
    let mut headers = client.take_headers();
    match poll_fn(|cx| exchange.poll_head(&mut headers, cx)).await {
        Ok(status) => {
            timing.first_byte = exchange.moved().since(span.started);
            Ok(Answered {
                peer: http2.peer_addr(),
                source: Source::Http2(exchange, None),
                status,
                version: response::Version::Http2,
                headers,
                timing,
            })
        }
        Err(error) => {
            let is_untouched = matches!(error.kind(), Kind::NotHandled(_));
            let is_stale = timing.reused
                && is_idempotent(request.method)
                && exchange.is_unanswered()
                && matches!(error.kind(), Kind::Closed | Kind::Reset(_) | Kind::Io(_));
            request.body = exchange.into_body();
            let may_go_again = (is_untouched || is_stale) && request.body.rewind();
            Err((error, may_go_again))
        }
    }
}

fn http2_head<'a>(client: &'a Client, request: &'a Request) -> http2::Head<'a> {
    let (target, settings) = (&request.target, client.settings());
    let mut headers = Vec::new();
    if !settings.user_agent.is_empty() && !request.has("user-agent") {
        headers.push(Header::new("user-agent", settings.user_agent.as_bytes()));
    }
    if let Some(value) = &target.authorization
        && !request.has("authorization")
    {
        headers.push(Header::new("authorization", value.as_bytes()));
    }
    headers.extend(request.all_headers());
    http2::Head {
        method: request.method,
        secure: target.host.origin.secure,
        authority: &target.host.authority,
        path: target.path(),
        headers,
    }
}

/// Whether a request that failed on a connection that had been at rest can be sent again
/// without harm: nothing came back, and doing it twice is as good as once.
#[cold]
fn may_go_again(connection: &mut Connection, request: &mut Request, error: &Error) -> bool {
    connection.take_body(&mut request.body);
    let broke = matches!(
        error.kind(),
        Kind::Closed | Kind::Reset(_) | Kind::Io(_) | Kind::Refused(_)
    );
    broke
        && connection.is_unanswered()
        && (is_idempotent(request.method) || connection.is_unsent())
        && request.body.rewind()
}

/// What carries the request: a connection at rest, or a new one, or a shared one.
#[inline]
async fn obtain(
    client: &Client,
    request: &Request,
    span: Span,
    fresh: bool,
    timing: &mut Timing,
) -> Result<Carrier, Error> {
    let host = &request.target.host;
    let version = request.version().unwrap_or(client.settings().version);
    let may_share = match version {
        HttpVersion::Auto => host.origin.secure,
        HttpVersion::Http2 => true,
        HttpVersion::Http10 | HttpVersion::Http11 => false,
    };
    if may_share {
        let shared = Box::pin(obtain_shared(client, host, version, span, timing)).await?;
        if let Some(carrier) = shared {
            return Ok(carrier);
        }
    }
    let ahead = || ahead(client, request).filter(|_| !fresh);
    let acquired = client.pool().acquire(host, fresh, ahead);
    match in_time(client, span, acquired).await? {
        Granted::Used(connection, sent) => {
            timing.reused = true;
            Ok(Carrier::Http1(connection, sent))
        }
        Granted::Room(slot) => {
            // In a box, as all that few requests need: the future is moved as a whole.
            match Box::pin(connect::connect(client, slot, version, span, timing)).await? {
                Made::Http1(connection) => Ok(Carrier::Http1(connection, None)),
                Made::Http2(http2, slot) => {
                    host.sharing.add(&http2, slot, client.handle().now());
                    Ok(Carrier::Http2(http2))
                }
            }
        }
    }
}

/// The request as it may be sent behind others; None where it may not. Twice must be as
/// good as once, since a connection that breaks takes all that is behind with it.
#[cold]
fn ahead(client: &Client, request: &Request) -> Option<Ahead> {
    let is_fit = client.settings().pipelining_max > 1
        && is_idempotent(request.method)
        && matches!(request.body, Body::Empty)
        && request.version() != Some(HttpVersion::Http10);
    // A request that cannot be written says so when it is its turn.
    let head = is_fit.then(|| head(client, request))?.ok()?;
    Some(Ahead {
        head,
        method: request.method,
    })
}

/// A shared connection, or a new one that may become shared; None where the host is
/// known to speak HTTP/1.
async fn obtain_shared(
    client: &Client,
    host: &Rc<Host>,
    version: HttpVersion,
    span: Span,
    timing: &mut Timing,
) -> Result<Option<Carrier>, Error> {
    let (pool, settings) = (client.pool(), client.settings());
    let is_certain = version == HttpVersion::Http2;
    let limits = (settings.queue_max, settings.connection_age_max);
    let now = client.handle().now();
    let shared = host
        .sharing
        .obtain(is_certain, limits, (now, || pool.has_room(host)));
    let connecting = match in_time(client, span, shared).await? {
        Shared::Http1 => return Ok(None),
        Shared::Room(http2) => {
            timing.reused = true;
            return Ok(Some(Carrier::Http2(http2)));
        }
        Shared::Connect(connecting) => connecting,
    };
    let acquired = pool.acquire(host, true, || None);
    let slot = match in_time(client, span, acquired).await? {
        Granted::Room(slot) => slot,
        Granted::Used(connection, _) if !is_certain => {
            timing.reused = true;
            return Ok(Some(Carrier::Http1(connection, None)));
        }
        Granted::Used(connection, _) => connection.into_slot(),
    };
    match connect::connect(client, slot, version, span, timing).await {
        Ok(Made::Http2(http2, slot)) => {
            connecting.done(&http2, slot, client.handle().now());
            Ok(Some(Carrier::Http2(http2)))
        }
        Ok(Made::Http1(connection)) => {
            connecting.done_by_http1();
            Ok(Some(Carrier::Http1(connection, None)))
        }
        Err(error) => {
            connecting.failed();
            Err(error)
        }
    }
}

/// What is waited for in line, while the request has time.
#[inline]
async fn in_time<T>(
    client: &Client,
    span: Span,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    if span.due == Instant::NEVER {
        return work.await;
    }
    match client.handle().timeout_at(span.due, work).await {
        Ok(granted) => granted,
        Err(_elapsed) => {
            let length = span.due.since(span.started);
            let kind = Kind::TimedOut(TimeLimit::Whole, length);
            Err(Error::new(Phase::Queue, kind))
        }
    }
}

/// Sends the request.
#[inline]
fn ask(
    client: &Client,
    connection: &mut Connection,
    request: &mut Request,
    (span, whole): (Span, Nanos),
    timing: &Timing,
) -> Result<(), Error> {
    let head = head(client, request)?;
    let now = match timing.reused {
        // It took no time to get it, unless it was waited for.
        true if connection.moved() <= span.started => span.started,
        _ => client.handle().now(),
    };
    let waits = waits(client, request, (span, whole));
    add(&client.counters().sent);
    connection.begin(&request.method, head, &mut request.body, (waits, now))
}

#[inline]
fn waits(client: &Client, request: &Request, (span, whole): (Span, Nanos)) -> Waits {
    let settings = client.settings();
    let options = request.options.as_deref();
    let first_byte = options.and_then(|options| options.first_byte_timeout);
    Waits {
        first_byte: first_byte.unwrap_or(settings.first_byte_timeout),
        stall: settings.stall_timeout,
        whole,
        due: span.due,
    }
}

/// The request's head, and its body where that is small.
#[inline]
fn head(client: &Client, request: &Request) -> Result<SendBuf, Error> {
    let is_plain = request.method == Method::Get
        && request.headers.is_empty()
        && request.own_headers.is_empty()
        && matches!(request.body, Body::Empty)
        && request.version().is_none();
    if !is_plain {
        return encode_into_buffer(client, request);
    }
    let made = match request.target.plain_get.get() {
        Some(made) => made,
        None => {
            let mut out = Vec::new();
            encode_head(client, request, &mut out).map_err(bad_request)?;
            request.target.plain_get.get_or_init(|| Rc::from(out))
        }
    };
    Ok(SendBuf::Shared(made.clone()))
}

fn encode_into_buffer(client: &Client, request: &Request) -> Result<SendBuf, Error> {
    let mut out = client.handle().take_buffer();
    encode_head(client, request, &mut out).map_err(bad_request)?;
    if let Body::Bytes(bytes) = &request.body
        && bytes.as_slice().len() <= JOINED_BYTES_MAX
    {
        out.extend_from_slice(bytes.as_slice());
    }
    Ok(SendBuf::Owned(out))
}

#[cold]
fn bad_request(error: EncodeError) -> Error {
    Error::new(Phase::Request, Kind::BadRequest(error))
}

fn encode_head(client: &Client, request: &Request, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (target, settings) = (&request.target, client.settings());
    let version = match request.version().unwrap_or(settings.version) {
        HttpVersion::Http10 => Version::Http10,
        _ => Version::Http11,
    };
    let proxy = asked_proxy(client, request);
    let absolute;
    let path = match proxy {
        None => target.path(),
        Some(_) => {
            absolute = absolute_form(&target.host.authority, target.path());
            &absolute
        }
    };
    let mut writer = encode::request(out, &request.method, path, version);
    if let Some(value) = proxy.and_then(|proxy| proxy.authorization()) {
        writer = writer.header("proxy-authorization", value);
    }
    if !request.has("host") {
        writer = writer.header("host", &target.host.authority);
    }
    if !settings.user_agent.is_empty() && !request.has("user-agent") {
        writer = writer.header("user-agent", &settings.user_agent);
    }
    if let Some(value) = &target.authorization
        && !request.has("authorization")
    {
        writer = writer.header("authorization", value);
    }
    let has_body_by_nature = matches!(request.method, Method::Post | Method::Put | Method::Patch);
    let framing = match (&request.body, request.body.length()) {
        (Body::Empty, _) if !has_body_by_nature => Framing::None,
        (_, Some(length)) => Framing::Length(length),
        (_, None) => Framing::Chunked,
    };
    writer
        .headers(request.all_headers())
        .keep_alive(true)
        .finish(framing)
}

/// The proxy that a request in http is sent to as it is.
fn asked_proxy<'a>(client: &'a Client, request: &Request) -> Option<&'a Arc<Proxy>> {
    let origin = &request.target.host.origin;
    let proxy = client.settings().proxies.of(origin);
    proxy.filter(|_| !origin.secure)
}

#[cold]
fn asks_proxy(client: &Client, request: &Request) -> bool {
    asked_proxy(client, request).is_some()
}
