//! One exchange: a connection from the pool, a request sent over it, its response's head; and
//! again on another connection where an idle one turns out to be dead.
//! Not for: bytes on the wire (`h1`, `http2`), waiting in line (`pool`), or what follows an
//! exchange (`policy`).

use std::future::poll_fn;
use std::rc::Rc;

use prony_base::Instant;
use prony_engine::SendBuf;
use prony_wire::encode::{self, EncodeError};
use prony_wire::{Framing, Header, Method, OwnedHeaders, Version};

use super::answer::{Answered, Source};
use super::body::{Body, JOINED_BYTES_MAX};
use super::connect::{self, Made};
use super::connections::{Host, Http1};
use super::error::{Error, Kind, RequestPhase, TimeLimit};
use super::h1;
use super::http2::{self, Exchange, Http2, Route};
use super::pool::{Granted, Pending};
use super::proxy::absolute_form;
use super::request::ClientRequest;
use super::retry::is_idempotent;
use super::settings::HttpVersion;
use super::state::{ClientState, add};
use super::timeouts::{Span, Timeouts};
use super::timing::{self, Timing};

/// How often a request is sent again after an idle connection failed under it.
const STALE_RETRIES_MAX: u32 = 2;

/// The connection that carries a request.
enum Carrier {
    /// A connection for it alone, until its response's end. With when its head was sent,
    /// where it was pipelined.
    Http1(Box<Http1>, Option<Instant>),
    /// A connection on which it is one of many streams.
    Http2(Http2),
}

/// Sends `request` and waits for the response's head; again on another connection where an
/// idle one turns out to be dead.
///
/// # Errors
/// The error that ended the last attempt.
#[inline]
pub(super) async fn exchange(
    client: &ClientState,
    request: &mut ClientRequest,
    span: Span,
) -> Result<Answered, Error> {
    let mut stale = 0;
    loop {
        let mut timing = Timing::default();
        let (error, may_go_again) =
            match obtain(client, request, span, stale > 0, &mut timing).await? {
                Carrier::Http1(mut connection, pipelined) => {
                    let mut headers = client.take_headers();
                    let is_pipelined = pipelined.is_some();
                    let begun = match pipelined {
                        None => begin(client, &mut connection, request, span, &timing),
                        Some(sent) => {
                            timing.sent = sent.since(span.started);
                            let timeouts = timeouts(client, request, span);
                            let now = client.handle().now();
                            connection.begin_pipelined(&request.method, (timeouts, now))
                        }
                    };
                    let head = match begun {
                        Ok(()) => poll_fn(|cx| connection.poll_head(&mut headers, cx)).await,
                        Err(error) => Err(error),
                    };
                    match head {
                        Ok(head) => {
                            if !is_pipelined {
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
                    let over = over_http2(client, request, &http2, span, timing);
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
    connection: Box<Http1>,
    head: h1::Head,
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

/// Sends the request as a stream of a shared connection. With an error comes whether the
/// request can safely be sent again.
#[cold]
async fn over_http2(
    client: &ClientState,
    request: &mut ClientRequest,
    http2: &Http2,
    span: Span,
    mut timing: Timing,
) -> Result<Answered, (Error, bool)> {
    timing.sent = client.handle().now().since(span.started);
    add(&client.counters().sent);
    let body = std::mem::take(&mut request.body);
    let timeouts = timeouts(client, request, span);
    let head = http2_head(client, request);
    let sent = Exchange::send(http2, &head, body, timeouts).await;
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
                version: timing::Version::Http2,
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

fn http2_head<'a>(client: &'a ClientState, request: &'a ClientRequest) -> http2::Head<'a> {
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

/// Whether a request that failed on a reused connection can safely be sent again: no byte of a
/// response was received, and it is idempotent or was not sent.
#[cold]
fn may_go_again(connection: &mut Http1, request: &mut ClientRequest, error: &Error) -> bool {
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

/// Obtains what carries the request: an idle connection, a new one, or a shared one.
#[inline]
async fn obtain(
    client: &ClientState,
    request: &ClientRequest,
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
    let pending = || pending(client, request).filter(|_| !fresh);
    let acquired = client.pool().acquire(host, fresh, pending);
    match in_time(client, span, acquired).await? {
        Granted::Used(connection, sent) => {
            timing.reused = true;
            Ok(Carrier::Http1(connection, sent))
        }
        Granted::Slot(slot) => {
            // Boxed, as all that few requests need: futures are moved as a whole.
            match Box::pin(connect::connect(client, slot, version, span, timing)).await? {
                Made::Http1(connection) => Ok(Carrier::Http1(connection, None)),
                Made::Http2(http2, slot) => {
                    host.shared.add(&http2, slot, client.handle().now());
                    Ok(Carrier::Http2(http2))
                }
            }
        }
    }
}

/// The request, to be pipelined; None where it may not be. Only idempotent ones may, since a
/// connection that breaks fails every request pipelined on it.
#[cold]
fn pending(client: &ClientState, request: &ClientRequest) -> Option<Pending> {
    let is_fit = client.settings().pipelining_max > 1
        && is_idempotent(request.method)
        && matches!(request.body, Body::Empty)
        && request.version() != Some(HttpVersion::Http10);
    // A request that cannot be encoded fails when its turn comes.
    let head = is_fit.then(|| head(client, request))?.ok()?;
    Some(Pending {
        head,
        method: request.method,
    })
}

/// Obtains a stream of a shared connection, or a new connection that may become shared; None
/// where the host is known to speak HTTP/1.
async fn obtain_shared(
    client: &ClientState,
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
        .shared
        .obtain(is_certain, limits, (now, || pool.has_free_slot(host)));
    let connecting = match in_time(client, span, shared).await? {
        Route::Http1 => return Ok(None),
        Route::Stream(http2) => {
            timing.reused = true;
            return Ok(Some(Carrier::Http2(http2)));
        }
        Route::Connect(connecting) => connecting,
    };
    let acquired = pool.acquire(host, true, || None);
    let slot = match in_time(client, span, acquired).await? {
        Granted::Slot(slot) => slot,
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

/// Waits in line until the request's deadline.
#[inline]
async fn in_time<T>(
    client: &ClientState,
    span: Span,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    if span.due == Instant::NEVER {
        return work.await;
    }
    match client.handle().timeout_at(span.due, work).await {
        Ok(granted) => granted,
        Err(_elapsed) => {
            let kind = Kind::TimedOut(TimeLimit::Whole, span.due.since(span.started));
            Err(Error::new(RequestPhase::Queue, kind))
        }
    }
}

/// Sends the request over a connection of HTTP/1.
#[inline]
fn begin(
    client: &ClientState,
    connection: &mut Http1,
    request: &mut ClientRequest,
    span: Span,
    timing: &Timing,
) -> Result<(), Error> {
    let head = head(client, request)?;
    let now = match timing.reused {
        // Reading the clock is saved where the connection was idle already.
        true if connection.moved() <= span.started => span.started,
        _ => client.handle().now(),
    };
    let timeouts = timeouts(client, request, span);
    add(&client.counters().sent);
    connection.begin(&request.method, head, &mut request.body, (timeouts, now))
}

#[inline]
fn timeouts(client: &ClientState, request: &ClientRequest, span: Span) -> Timeouts {
    let settings = client.settings();
    let options = request.options.as_deref();
    let first_byte = options.and_then(|options| options.first_byte_timeout);
    Timeouts {
        first_byte: first_byte.unwrap_or(settings.first_byte_timeout),
        stall: settings.stall_timeout,
        total: span.total,
        due: span.due,
    }
}

/// The request's head, with its body where that is small.
#[inline]
fn head(client: &ClientState, request: &ClientRequest) -> Result<SendBuf, Error> {
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

fn encode_into_buffer(client: &ClientState, request: &ClientRequest) -> Result<SendBuf, Error> {
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
    Error::new(RequestPhase::Request, Kind::BadRequest(error))
}

fn encode_head(
    client: &ClientState,
    request: &ClientRequest,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let (target, settings) = (&request.target, client.settings());
    let version = match request.version().unwrap_or(settings.version) {
        HttpVersion::Http10 => Version::Http10,
        _ => Version::Http11,
    };
    let proxy = settings.proxies.forward(&target.host.origin);
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
