//! What the reference server answers.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use prony_base::typed::duration;
use prony_base::{Nanos, clock};
use prony_engine::Sender;
use prony_http::{Count, Counters, Handler, Header, Method, Request, Response, Totals};
use serde::{Deserialize, Serialize};

use super::payload;
use super::stall::{EVERY_MAX, Order};

/// The endpoints, for the command's help.
pub const ENDPOINTS: &str = "\
Endpoints (HEAD wherever GET is):
  GET  /hello            Hello, World!
  POST /ping             {\"sequence\":N}, parsed and serialised again; anything else is 400
  POST /echo             the body that was sent (at most 16 MiB)
  GET  /payload/BYTES    that many bytes (at most 64 GiB), the alphabet over and over
  GET  /status/CODE      that status, from 200 to 599
  GET  /stall?every=2s&for=200ms
                         from `every` after the answer on, all threads block for `for`
                         at each multiple of `every` (at most 1h, more than `for`); the answer
                         says when, in nanoseconds of CLOCK_MONOTONIC; every=0 ends it
  GET  /hello_world.html a small page, text/html
  GET  /testpayload      the bytes of --payload or --payload-file, by sendfile; a Range of
                         them is 206, and its If-Range is compared with the ETag
  GET  /stats            counters of all threads; the request itself is received, not yet answered.
                         `served` has answers and the bytes of their bodies without those of /stats
                         itself, so that two readings differ by exactly what came between them

SIGTERM or Ctrl-C: what was accepted is answered, within 4 s; a second one ends at once.";

const PAYLOAD_BYTES_MAX: u64 = 64 << 30;
const TEXT: Header<'_> = Header::new("content-type", b"text/plain");
const JSON: Header<'_> = Header::new("content-type", b"application/json");
const HTML: Header<'_> = Header::new("content-type", b"text/html");
const BINARY: Header<'_> = Header::new("content-type", b"application/octet-stream");

/// The alphabet, 2,520 times.
static PIECE: [u8; 26 * 2_520] = {
    let mut piece = [0; 26 * 2_520];
    let mut place = 0;
    while place < piece.len() {
        piece[place] = b'a' + (place % 26) as u8;
        place += 1;
    }
    piece
};

/// A small page, as web servers are tried with.
const PAGE: &[u8] = b"<html>
  <head>
    <title>Hello World</title>
  </head>
  <body>
    <h1>Hello world!</h1>
  </body>
</html>
";

/// What one loop counts beside its server.
#[derive(Debug, Default)]
pub struct Counts {
    /// How often each endpoint was asked.
    endpoints: [Count; Endpoint::NAMES.len()],
    /// Answers with the counters, and the bytes of their bodies.
    stats: Count,
    stats_bytes: Count,
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Endpoint {
    Hello,
    Ping,
    Echo,
    Payload,
    Status,
    Stall,
    Stats,
    HelloWorld,
    TestPayload,
    Unknown,
}

impl Endpoint {
    const NAMES: [&str; 10] = [
        "hello",
        "ping",
        "echo",
        "payload",
        "status",
        "stall",
        "stats",
        "hello_world.html",
        "testpayload",
        "unknown",
    ];

    /// The endpoint of a path, and what follows its name.
    fn parse(path: &str) -> (Endpoint, &str) {
        let path = path.strip_prefix('/').unwrap_or_default();
        let (name, rest) = match path.split_once('/') {
            Some((name, rest)) => (name, Some(rest)),
            None => (path, None),
        };
        match (name, rest) {
            ("hello", None) => (Endpoint::Hello, ""),
            ("ping", None) => (Endpoint::Ping, ""),
            ("echo", None) => (Endpoint::Echo, ""),
            ("payload", Some(rest)) => (Endpoint::Payload, rest),
            ("status", Some(rest)) => (Endpoint::Status, rest),
            ("stall", None) => (Endpoint::Stall, ""),
            ("stats", None) => (Endpoint::Stats, ""),
            ("hello_world.html", None) => (Endpoint::HelloWorld, ""),
            ("testpayload", None) => (Endpoint::TestPayload, ""),
            _ => (Endpoint::Unknown, ""),
        }
    }

    /// The methods that it has, for the Allow header.
    fn allow(self) -> &'static str {
        match self {
            Endpoint::Ping | Endpoint::Echo => "POST",
            _ => "GET, HEAD",
        }
    }

    fn allows(self, method: Method) -> bool {
        match self {
            Endpoint::Ping | Endpoint::Echo => method == Method::Post,
            Endpoint::Unknown => true,
            _ => matches!(method, Method::Get | Method::Head),
        }
    }
}

/// Where the loops' counters hang.
#[derive(Debug, Default)]
pub struct Board(Mutex<Vec<(Arc<Counters>, Arc<Counts>)>>);

impl Board {
    /// Hangs up one loop's.
    pub fn add(&self, counters: Arc<Counters>, counts: Arc<Counts>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((counters, counts));
    }

    /// All loops' numbers, as JSON.
    fn stats(&self) -> serde_json::Value {
        let loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut totals = Totals::default();
        let mut endpoints = [0; Endpoint::NAMES.len()];
        let (mut stats, mut stats_bytes) = (0, 0);
        let mut threads = Vec::new();
        for (counters, counts) in loops.iter() {
            let thread = counters.totals();
            threads.push(serde_json::json!({
                "accepted": thread.accepted,
                "open": thread.open(),
                "received": thread.requests,
            }));
            totals.add(&thread);
            for (sum, count) in endpoints.iter_mut().zip(&counts.endpoints) {
                *sum += count.get();
            }
            stats += counts.stats.get();
            stats_bytes += counts.stats_bytes.get();
        }
        let endpoints: BTreeMap<_, _> = Endpoint::NAMES.into_iter().zip(endpoints).collect();
        serde_json::json!({
            "threads": threads,
            "connections": {
                "accepted": totals.accepted,
                "open": totals.open(),
                "accept_errors": totals.accept_errors,
            },
            "requests": {
                "received": totals.requests,
                "answered": totals.answered,
                "aborted": totals.aborted,
                "refused": totals.refused,
                "truncated": totals.truncated,
            },
            "http2": {
                "connections": totals.http2_connections,
                "streams_cancelled": totals.streams_cancelled,
                "streams_refused": totals.streams_refused,
            },
            "served": {
                "answers": totals.answered.saturating_sub(stats),
                "body_bytes": totals.body_bytes.saturating_sub(stats_bytes),
            },
            "endpoints": endpoints,
            "statuses": totals.statuses,
            "bytes": { "in": totals.bytes_in, "out": totals.bytes_out },
        })
    }
}

/// The reference server's handler, one for each loop.
pub struct App {
    board: Arc<Board>,
    counts: Arc<Counts>,
    /// To every loop of the server.
    orders: Vec<Sender<Order>>,
    payload: Option<io::Result<payload::LoopPayload>>,
}

/// What `/ping` takes and gives.
#[derive(Debug, Deserialize, Serialize)]
struct Ping {
    sequence: u64,
}

impl App {
    /// A handler that shows what hangs on `board`, gives orders to all loops, and has
    /// `payload` to give.
    pub fn new(
        board: Arc<Board>,
        orders: Vec<Sender<Order>>,
        payload: Option<io::Result<payload::LoopPayload>>,
    ) -> App {
        App {
            board,
            counts: Arc::default(),
            orders,
            payload,
        }
    }

    /// What it counts.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Answers with the counters, and counts its own answer, which is subtracted from them.
    fn stats(&self, method: Method, response: &mut Response) {
        let length = json(response, &self.board.stats());
        self.counts.stats.add(1);
        if method != Method::Head {
            self.counts.stats_bytes.add(length as u64);
        }
    }

    async fn test_payload(&self, request: &Request<'_>, response: &mut Response) {
        match &self.payload {
            Some(Ok(payload)) => payload.give(request, response).await,
            Some(Err(error)) => response.text(500, &format!("no descriptor for it: {error}\n")),
            None => response.text(404, "start the server with --payload 200MiB\n"),
        }
    }

    fn stall(&self, query: &str, response: &mut Response) {
        let order = match order(query) {
            Ok(order) => order,
            Err(wrong) => return response.text(400, &format!("{wrong}\n")),
        };
        if self.orders.iter().any(|orders| orders.send(order).is_err()) {
            return response.text(503, "too many orders to stall are on their way\n");
        }
        let first = (order.every != Nanos::ZERO).then_some(order.first.0);
        let answer = serde_json::json!({
            "every_ns": order.every.0,
            "for_ns": order.length.0,
            "first_ns": first,
            "now_ns": clock::monotonic().0,
        });
        json(response, &answer);
    }
}

impl Handler for App {
    #[inline]
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let (endpoint, rest) = Endpoint::parse(request.path());
        self.counts.endpoints[endpoint as usize].add(1);
        if !endpoint.allows(request.method()) {
            return response.method_not_allowed(endpoint.allow());
        }
        match endpoint {
            Endpoint::Hello => response.send(200, [TEXT], b"Hello, World!"),
            Endpoint::Ping => ping(request.body(), response),
            Endpoint::Echo => echo(request, response),
            Endpoint::Payload => payload(rest, response).await,
            Endpoint::Status => status(rest, response),
            Endpoint::Stall => self.stall(request.query(), response),
            Endpoint::Stats => self.stats(request.method(), response),
            Endpoint::HelloWorld => response.send(200, [HTML], PAGE),
            Endpoint::TestPayload => self.test_payload(request, response).await,
            Endpoint::Unknown => response.text(404, "no such path\n"),
        }
    }
}

/// Answers with JSON; yields its length in bytes.
fn json(response: &mut Response, value: &serde_json::Value) -> usize {
    let text = format!("{value:#}\n");
    response.send(200, [JSON], text.as_bytes());
    text.len()
}

/// Parsed and serialised by serde_json: for one small object, a parser that
/// vectorises has nothing to gain, and this one is the ecosystem's.
fn ping(body: &[u8], response: &mut Response) {
    // Serde would take an array for a struct, too.
    let parsed = match body.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice::<Ping>(body),
        _ => return response.text(400, "a JSON object is wanted: {\"sequence\":N}\n"),
    };
    match parsed {
        Ok(ping) => {
            let mut text = [0; 40];
            let mut left = &mut text[..];
            // The longest is 34 bytes.
            let written = serde_json::to_writer(&mut left, &ping);
            let length = 40 - left.len();
            match written {
                Ok(()) => response.send(200, [JSON], &text[..length]),
                Err(error) => response.text(500, &format!("{error}\n")),
            }
        }
        Err(error) => response.text(400, &format!("{error}\n")),
    }
}

fn echo(request: &Request<'_>, response: &mut Response) {
    let kind = request.headers().get("content-type");
    let kind = kind.map_or(BINARY, |kind| Header::new("content-type", kind));
    response.send(200, [kind], request.body());
}

async fn payload(bytes: &str, response: &mut Response) {
    let bytes = match number(bytes) {
        Some(bytes) if bytes <= PAYLOAD_BYTES_MAX => bytes,
        _ => {
            let wrong = format!("/payload/BYTES takes a number from 0 to {PAYLOAD_BYTES_MAX}\n");
            return response.text(400, &wrong);
        }
    };
    let mut body = response.stream(200, [BINARY], Some(bytes));
    let mut left = if body.is_wanted() { bytes } else { 0 };
    while left > 0 {
        let piece = &PIECE[..PIECE.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        // A connection that is gone ends the matter.
        if body.write_static(piece).await.is_err() {
            return;
        }
        left -= piece.len() as u64;
    }
    // Cannot be short.
    let _ = body.finish().await;
}

fn status(code: &str, response: &mut Response) {
    match number(code) {
        Some(code @ 200..=599) => response.text(code as u16, ""),
        _ => response.text(400, "/status/CODE takes a number from 200 to 599\n"),
    }
}

/// Digits alone, no sign.
fn number(digits: &str) -> Option<u64> {
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten()
}

/// The order that a query spells.
fn order(query: &str) -> Result<Order, String> {
    let (mut every, mut length) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("every", value)) => every = Some(duration::parse(value)?),
            Some(("for", value)) => length = Some(duration::parse(value)?),
            _ => {
                return Err(format!(
                    "`{pair}` is unknown: write /stall?every=2s&for=200ms"
                ));
            }
        }
    }
    match (every, length) {
        (Some(Nanos::ZERO), _) | (_, Some(Nanos::ZERO)) => Ok(Order::NONE),
        (Some(every), Some(length)) if length < every && every <= EVERY_MAX => Ok(Order {
            first: clock::monotonic() + every,
            every,
            length,
        }),
        (Some(_), Some(_)) => {
            Err("`for` must be less than `every`, and `every` at most 1h".to_owned())
        }
        _ => Err("both are wanted: /stall?every=2s&for=200ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_endpoints_exactly() {
        for (path, endpoint, rest) in [
            ("/hello", Endpoint::Hello, ""),
            ("/hello/", Endpoint::Unknown, ""),
            ("/payload/12", Endpoint::Payload, "12"),
            ("/payload", Endpoint::Unknown, ""),
            ("/status/a/b", Endpoint::Status, "a/b"),
            ("*", Endpoint::Unknown, ""),
            ("/", Endpoint::Unknown, ""),
        ] {
            assert_eq!(Endpoint::parse(path), (endpoint, rest), "{path}");
        }
    }

    #[test]
    fn an_order_to_stall_is_spelt_out_or_refused() {
        let order = order("every=2s&for=200ms").unwrap();
        assert_eq!(
            (order.every, order.length),
            (Nanos::from_secs(2), Nanos::from_millis(200))
        );
        assert_eq!(super::order("every=0&for=1s"), Ok(Order::NONE));
        assert_eq!(super::order("for=0"), Ok(Order::NONE));
        for wrong in [
            "",
            "every=2s",
            "every=1s&for=1s",
            "every=2h&for=1s",
            "every=x&for=1s",
            "evry=1s",
        ] {
            assert!(super::order(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_no_signs() {
        assert_eq!(number("0017"), Some(17));
        for wrong in ["", "+1", "-1", "1.0", "99999999999999999999"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
