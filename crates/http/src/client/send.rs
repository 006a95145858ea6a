//! The way of a request: a connection, the exchange over it, and once more on another
//! where the one that was at rest turns out to be dead.
//! Not for: bytes on the wire (`h1`), or waiting in line (`pool`).

use std::future::poll_fn;
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use prony_engine::SendBuf;
use prony_wire::encode::{self, EncodeError};
use prony_wire::{Framing, Method, OwnedHeaders, Version};

use super::Client;
use super::body::Body;
use super::connect::{self, Span};
use super::error::{Error, Kind, Phase, TimeLimit};
use super::h1::{Connection, Head, JOINED_BYTES_MAX, Waits};
use super::pool::Granted;
use super::request::Request;
use super::response::{Counted, Response, Source, Timing, add};
use super::settings::HttpVersion;

/// How often a request that a connection at rest did not carry is sent once more.
const STALE_RETRIES_MAX: u32 = 2;

/// An exchange whose head has come.
struct Answered {
    connection: Box<Connection>,
    head: Head,
    headers: OwnedHeaders,
    timing: Timing,
}

/// Sends `request` and waits for the head of its answer.
pub(super) async fn send(client: &Client, mut request: Request) -> Result<Response, Error> {
    let mut counted = Counted::start(client);
    let started = client.handle().now();
    let options = request.options.as_deref();
    let whole = options.and_then(|options| options.timeout);
    let whole = whole.unwrap_or(client.settings().timeout);
    let due = started + whole;
    let span = Span { started, due };
    match exchange(client, &mut request, span, whole).await {
        Ok(answered) => Ok(Response {
            counted,
            peer: answered.connection.peer,
            source: Source::Http1(answered.connection),
            status: answered.head.status,
            version: answered.head.version.into(),
            headers: answered.headers,
            trailers: None,
            started,
            timing: answered.timing,
            on_progress: request.options.and_then(|options| options.on_progress),
            target: request.target,
        }),
        Err(error) => {
            counted.failed();
            Err(error.url(request.url()))
        }
    }
}

async fn exchange(
    client: &Client,
    request: &mut Request,
    span: Span,
    whole: Nanos,
) -> Result<Answered, Error> {
    let mut stale = 0;
    loop {
        let mut timing = Timing::default();
        let mut connection = obtain(client, request, span, stale > 0, &mut timing).await?;
        let mut headers = client.take_headers();
        let asked = ask(client, &mut connection, request, (span, whole), &mut timing);
        let answer = match asked {
            Ok(()) => poll_fn(|cx| connection.poll_head(&mut headers, cx)).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(head) => {
                timing.first_byte = connection.moved().since(span.started);
                return Ok(Answered {
                    connection,
                    head,
                    headers,
                    timing,
                });
            }
            Err(error) => {
                if !timing.reused
                    || stale >= STALE_RETRIES_MAX
                    || !may_go_again(&mut connection, request, &error)
                {
                    return Err(error);
                }
                stale += 1;
                add(&client.counters().resent);
            }
        }
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

/// A connection for the request: one at rest, or a new one.
#[inline]
async fn obtain(
    client: &Client,
    request: &Request,
    span: Span,
    fresh: bool,
    timing: &mut Timing,
) -> Result<Box<Connection>, Error> {
    let host = &request.target.host;
    let acquired = client.pool().acquire(host, fresh);
    let granted = match span.due == Instant::NEVER {
        true => acquired.await?,
        false => match client.handle().timeout_at(span.due, acquired).await {
            Ok(granted) => granted?,
            Err(_elapsed) => {
                let length = span.due.since(span.started);
                let kind = Kind::TimedOut(TimeLimit::Whole, length);
                return Err(Error::new(Phase::Queue, kind));
            }
        },
    };
    match granted {
        Granted::Used(connection) => {
            timing.reused = true;
            Ok(connection)
        }
        Granted::Room(slot) => {
            let version = request.version().unwrap_or(client.settings().version);
            connect::connect(client, slot, version, span, timing).await
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
    timing: &mut Timing,
) -> Result<(), Error> {
    let settings = client.settings();
    let head = head(client, request)?;
    let now = match timing.reused {
        // It took no time to get it, unless it was waited for.
        true if connection.moved() <= span.started => span.started,
        _ => client.handle().now(),
    };
    timing.sent = now.since(span.started);
    let options = request.options.as_deref();
    let first_byte = options.and_then(|options| options.first_byte_timeout);
    let waits = Waits {
        first_byte: first_byte.unwrap_or(settings.first_byte_timeout),
        stall: settings.stall_timeout,
        whole,
        due: span.due,
    };
    add(&client.counters().sent);
    connection.begin(&request.method, head, &mut request.body, (waits, now))
}

/// The request's head, and its body where that is small.
#[inline]
fn head(client: &Client, request: &Request) -> Result<SendBuf, Error> {
    let is_plain = request.method == Method::Get
        && request.headers.is_empty()
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
    let mut writer = encode::request(out, &request.method, target.path(), version);
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
        .headers(request.headers())
        .keep_alive(true)
        .finish(framing)
}

/// RFC 9110, section 9.2.2.
fn is_idempotent(method: Method) -> bool {
    !matches!(
        method,
        Method::Post | Method::Patch | Method::Connect | Method::Other(_)
    )
}
