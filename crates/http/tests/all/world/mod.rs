//! A server and its clients in a simulated world: every seed is another story of
//! short reads, late bytes, resets and stops, and tells itself the same again.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Nanos, Random};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Sender, mailbox};
use prony_http::{
    Handler, Header, Method, Request, Response, Server, ServerOptions, Source, Totals, Version,
};
use prony_wire::Limits;

use crate::by_hand;

const CONNECTIONS_MAX: u64 = 5;
const REQUESTS_MAX: u64 = 8;
const BODY_BYTES_MAX: u64 = 24_000;

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

/// Bytes that differ with length and place.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place * 7 + length) as u8)
        .collect()
}

/// Answers by path, at once or later, whole or in pieces.
struct App {
    handle: Handle,
    random: RefCell<Random>,
}

impl App {
    async fn stream(&self, length: usize, announced: bool, response: &mut Response) {
        let mut body = response.stream(200, [], announced.then_some(length as u64));
        let bytes = pattern(length);
        let mut rest = &bytes[..];
        while !rest.is_empty() && body.is_wanted() {
            let most = self.random.borrow_mut().below(900) as usize + 1;
            let (piece, after) = rest.split_at(most.min(rest.len()));
            if body.write(piece).await.is_err() {
                return;
            }
            rest = after;
        }
        body.finish().await.expect("as long as announced");
    }
}

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let (kind, length) = request.path()[1..].split_once('/').unwrap_or_default();
        let length = length.parse().unwrap_or_default();
        match kind {
            "whole" => response.send(200, [Header::new("x-kind", b"whole")], &pattern(length)),
            "pieces" => self.stream(length, true, response).await,
            "chunks" => self.stream(length, false, response).await,
            "echo" => response.send(201, [], request.body()),
            "late" => {
                let wait = Nanos::from_micros(self.random.borrow_mut().below(3_000));
                self.handle.sleep(wait).await;
                response.send(200, [], request.body());
            }
            "none" => response.send(204, [], b""),
            "silent" => {}
            _ => response.text(404, "no\n"),
        }
    }
}

/// A request, as bytes, and what must come back.
struct Exchange {
    method: Method,
    bytes: Vec<u8>,
    status: u16,
    body: Option<Vec<u8>>,
    /// Nothing can follow it.
    is_last: bool,
    /// It breaks a rule.
    is_bad: bool,
}

/// Mostly small.
fn length(random: &mut Random) -> usize {
    let most = if random.chance(1, 12) {
        BODY_BYTES_MAX
    } else {
        200
    };
    random.below(most) as usize
}

fn exchange(random: &mut Random) -> Exchange {
    if random.chance(1, 30) {
        return bad_exchange(random);
    }
    let choice = random.below(8);
    let length = match choice {
        // More than goes out in one piece.
        0..3 if random.chance(1, 20) => 64_000 + random.below(200_000) as usize,
        _ => length(random),
    };
    let sent = pattern(length);
    let (kind, status, body, has_body) = match choice {
        0 => ("whole", 200, sent.clone(), false),
        1 => ("pieces", 200, sent.clone(), false),
        2 => ("chunks", 200, sent.clone(), false),
        3 | 4 => ("echo", 201, sent.clone(), true),
        5 => ("late", 200, sent.clone(), true),
        6 => ("none", 204, Vec::new(), false),
        _ => ("nothing", 404, b"no\n".to_vec(), false),
    };
    let is_head = !has_body && random.chance(1, 4);
    let method = match (has_body, is_head) {
        (true, _) => Method::Post,
        (false, true) => Method::Head,
        (false, false) => Method::Get,
    };
    let target = format!("/{kind}/{length}");
    let mut request = by_hand::RawRequest::new(method, &target);
    if has_body {
        request.body = &sent;
        request.chunk_bytes = random.chance(1, 3).then(|| random.below(500) as usize + 1);
    }
    let http10 = request.chunk_bytes.is_none() && random.chance(1, 10);
    if http10 {
        request.version = Version::Http10;
    }
    request.keep_alive = !random.chance(1, 10);
    // In HTTP/1.0 a body of unknown length ends with the connection.
    let is_last = !request.keep_alive || (http10 && kind == "chunks");
    let mut bytes = Vec::new();
    request.encode("a", &mut bytes).expect("a fine request");
    Exchange {
        method,
        bytes,
        status,
        body: Some(if is_head { Vec::new() } else { body }),
        is_last,
        is_bad: false,
    }
}

fn bad_exchange(random: &mut Random) -> Exchange {
    let (status, text) = match random.below(6) {
        0 => (400, "GET / HTTP/1.1\r\n\r\n".to_owned()),
        1 => (400, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        2 => (
            414,
            format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(2_000)),
        ),
        3 => (
            431,
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n",
                "y".repeat(4_000)
            ),
        ),
        4 => (
            413,
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\nabc".to_owned(),
        ),
        _ => (505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned()),
    };
    // Unread bytes must not make the server's kernel take the answer back.
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len() + length(random), b'z');
    Exchange {
        method: Method::Get,
        bytes,
        status,
        body: None,
        is_last: true,
        is_bad: true,
    }
}

/// What the clients of one world saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections that came about.
    pub connected: u64,
    /// Fine requests sent.
    pub sent: u64,
    /// Of these, answered as they had to be.
    pub answered: u64,
    /// Of these, without any answer.
    pub unanswered: u64,
    /// Of these, with a part of an answer.
    pub cut_off: u64,
    /// Requests that break a rule sent, and answered so.
    pub bad_sent: u64,
    /// The same, answered.
    pub bad_answered: u64,
    /// Everything that was not as it had to be.
    pub wrong: Vec<String>,
}

/// One connection's conversation.
async fn converse(handle: Handle, mut random: Random, tally: Rc<RefCell<Tally>>) {
    handle.sleep(Nanos::from_micros(random.below(2_000))).await;
    let Ok(mut client) = by_hand::Connection::connect(&handle, address()).await else {
        return;
    };
    client.time_max = Nanos::from_secs(600);
    tally.borrow_mut().connected += 1;
    let mut left = 1 + random.below(REQUESTS_MAX);
    while left > 0 {
        let depth = left.min(1 + random.below(4));
        left -= depth;
        match talk(&mut client, &mut random, depth, &tally).await {
            true => {}
            false => return,
        }
    }
    // Half-closed connections must end as well as closed ones.
    if random.chance(1, 2) {
        client.shutdown_write();
        let end = client.receive().await;
        let closed = matches!(end, Err(by_hand::Failure::Closed | by_hand::Failure::Io(_)));
        if !closed {
            tally
                .borrow_mut()
                .wrong
                .push(format!("after the end: {end:?}"));
        }
    }
}

/// Sends up to `depth` requests at once and reads the answers; false when the
/// connection is at its end.
async fn talk(
    client: &mut by_hand::Connection,
    random: &mut Random,
    depth: u64,
    tally: &RefCell<Tally>,
) -> bool {
    let mut exchanges = Vec::new();
    for _ in 0..depth {
        let exchange = exchange(random);
        let is_last = exchange.is_last;
        exchanges.push(exchange);
        if is_last {
            break;
        }
    }
    let bytes = exchanges
        .iter()
        .flat_map(|exchange| exchange.bytes.iter().copied())
        .collect();
    let methods: Vec<Method> = exchanges.iter().map(|exchange| exchange.method).collect();
    let sent = client.send_bytes(bytes, &methods).await;
    if sent.is_err() {
        return false;
    }
    let bad = exchanges.iter().filter(|one| one.is_bad).count() as u64;
    tally.borrow_mut().bad_sent += bad;
    tally.borrow_mut().sent += exchanges.len() as u64 - bad;
    for (place, exchange) in exchanges.iter().enumerate() {
        let received = client.receive().await;
        let mut tally = tally.borrow_mut();
        match received {
            Ok(response) => {
                tally.check(exchange, &response);
                if !response.keep_alive {
                    let behind = exchanges[place + 1..].iter().filter(|one| !one.is_bad);
                    tally.unanswered += behind.count() as u64;
                    return false;
                }
            }
            Err(error) => {
                let behind = exchanges[place + 1..].iter().filter(|one| !one.is_bad);
                tally.unanswered += behind.count() as u64;
                tally.fail(exchange, &error, client.is_unanswered());
                return false;
            }
        }
    }
    !exchanges.last().is_some_and(|exchange| exchange.is_last)
}

impl Tally {
    fn check(&mut self, exchange: &Exchange, response: &by_hand::RawResponse) {
        let body = exchange.body.as_ref();
        let is_right = response.status == exchange.status
            && body.is_none_or(|body| *body == response.body)
            && response.headers.get("date") == Some(b"Sun, 06 Nov 1994 08:49:37 GMT")
            && !(exchange.is_last && response.keep_alive);
        if !is_right {
            let (status, length) = (response.status, response.body.len());
            let request = exchange.bytes.escape_ascii();
            self.wrong
                .push(format!("{status} with {length} bytes for {request:.100}"));
        }
        match exchange.is_bad {
            true => self.bad_answered += 1,
            false => self.answered += 1,
        }
    }

    fn fail(&mut self, exchange: &Exchange, error: &by_hand::Failure, is_unanswered: bool) {
        if exchange.is_bad {
            return;
        }
        match is_unanswered {
            true => self.unanswered += 1,
            false => self.cut_off += 1,
        }
        let expected = matches!(
            error,
            by_hand::Failure::Closed
                | by_hand::Failure::Io(_)
                | by_hand::Failure::Wire(
                    prony_wire::Error::TruncatedHead | prony_wire::Error::TruncatedBody
                )
        );
        if !expected {
            self.wrong.push(error.to_string());
        }
    }
}

/// How one world is made.
#[derive(Clone, Debug)]
pub struct Story {
    pub seed: u64,
    /// Connections break, connects are refused.
    pub has_faults: bool,
    /// The server is stopped while clients are at it.
    pub stops_early: bool,
}

impl Story {
    pub fn of(seed: u64) -> Story {
        let mut random = Random::of(seed, "story");
        Story {
            seed,
            has_faults: random.chance(1, 3),
            stops_early: random.chance(1, 3),
        }
    }
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub struct StoryOutcome {
    pub tally: Tally,
    pub totals: Totals,
    pub trace_hash: u64,
}

/// Plays a story to its end.
pub fn play(story: &Story) -> Result<StoryOutcome, String> {
    let mut random = Random::of(story.seed, "play");
    let faults = |often: u32| if story.has_faults { often } else { 0 };
    let mut world = World::new(
        story.seed,
        SimOptions {
            resets_per_million: faults(20_000),
            refusals_per_million: faults(100_000),
            link_bytes_max: 1 << (8 + random.below(8)),
            ..SimOptions::default()
        },
    );
    let (stop_sender, mut stopped) = mailbox::<()>(1);
    let options = server_options(&mut random);
    let config = Config {
        recv_buffer_bytes: 64 << random.below(7),
        ..Config::default()
    };
    let handler_random = Random::of(story.seed, "handler");
    let server = world.spawn_loop(&config, async move |handle| {
        let listener = handle
            .listen(address(), &ListenOptions::default())
            .expect("a free port");
        let app = App {
            handle: handle.clone(),
            random: RefCell::new(handler_random),
        };
        let server = Server::new(&handle, options, app);
        let counters = server.counters().clone();
        let stop = async {
            stopped.recv().await;
        };
        server.run(Source::Listener(listener), stop).await;
        counters.totals()
    });
    let clients = Random::of(story.seed, "clients");
    let early = story
        .stops_early
        .then(|| Nanos::from_micros(random.below(10_000)));
    let client = world.spawn_loop(&Config::default(), async move |handle| {
        all_clients(handle, clients, stop_sender, early).await
    });
    let ran = world.run(Nanos::from_secs(3_600));
    ran.map_err(|error| error.to_string())?;
    Ok(StoryOutcome {
        tally: client.take().ok_or("the clients have not finished")?,
        totals: server.take().ok_or("the server has not finished")?,
        trace_hash: world.trace_hash(),
    })
}

fn server_options(random: &mut Random) -> ServerOptions {
    ServerOptions {
        limits: Limits {
            head_bytes_max: 3_000,
            target_bytes_max: 1_000,
            body_bytes_max: BODY_BYTES_MAX,
            ..Limits::for_requests()
        },
        response_buffer_bytes_max: 1 << (6 + random.below(12)),
        connections_max: 1 + random.below(6) as usize,
        unix_nanos: || 784_111_777_000_000_000,
        ..ServerOptions::default()
    }
}

async fn all_clients(
    handle: Handle,
    mut random: Random,
    stop_sender: Sender<()>,
    early: Option<Nanos>,
) -> Tally {
    let tally = Rc::new(RefCell::new(Tally::default()));
    // Until the server listens.
    handle.sleep(Nanos::from_micros(1)).await;
    let count = 1 + random.below(CONNECTIONS_MAX);
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let random = Random::new(random.next_u64());
            handle.spawn(converse(handle.clone(), random, tally.clone()))
        })
        .collect();
    if let Some(early) = early {
        handle.sleep(early).await;
        stop_sender.send(()).expect("one stop");
    }
    for task in tasks {
        task.await;
    }
    drop(stop_sender);
    tally.take()
}
