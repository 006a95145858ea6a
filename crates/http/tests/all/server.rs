//! What the server does when time passes or somebody misbehaves, in simulated
//! time, so that each limit is seen to the nanosecond and nothing is waited for.

use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream, mailbox};
use prony_http::{
    Budget, Handler, Header, Interruption, Request, Response, Server, ServerOptions, Source, Totals,
};
use prony_tls::{
    Advanced, Handshaking, Offer, PlainData, ServerTls, TlsConfig, TlsError, TlsSession,
    TlsSettings, TlsVersions,
};
use prony_wire::Limits;

use crate::by_hand;

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
/// More than any message of these tests is under way.
const SLACK: Nanos = Nanos::from_millis(5);

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

struct App {
    handle: Handle,
    /// Bytes that `/endless` has made.
    made: Rc<Cell<u64>>,
}

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/hello" => response.text(200, "hello"),
            "/large" => response.send(200, [], &[b'x'; 20_000]),
            "/echo" => response.send(200, [], request.body()),
            "/stuck" => self.handle.sleep(Nanos::from_secs(1_000_000)).await,
            "/silent" => {}
            "/twice" => {
                response.text(200, "one");
                response.text(200, "two");
            }
            "/injected" => response.send(200, [Header::new("x", b"a\r\nb: c")], b""),
            "/reason" => response.send((200, &b"Fine"[..]), [], b""),
            "/reasons" => {
                let body = response.stream((200, &b"Very\r\nfine"[..]), [], None);
                body.finish().await.expect("a 500 instead");
            }
            "/host" => response.send(200, [], request.headers().get("host").unwrap_or(b"none")),
            "/205" => response.send(205, [], b"content"),
            "/205/stream" => {
                let mut body = response.stream(205, [], None);
                assert!(!body.is_wanted());
                body.write(b"content").await.expect("thrown away");
                body.finish().await.expect("nothing is missing");
            }
            // Of a CONNECT.
            "hello:80" => response.text(200, "hello"),
            "/interim" => response.send(101, [], b""),
            "/short" => {
                let mut body = response.stream(200, [], Some(10));
                body.write(b"12345").await.expect("room");
                body.finish().await.expect_err("5 are missing");
            }
            "/long" => {
                let mut body = response.stream(200, [], Some(3));
                body.write(b"12345").await.expect_err("2 too many");
            }
            "/endless" => {
                let mut body = response.stream(200, [], None);
                while body.write(&[b'x'; 1000]).await.is_ok() {
                    self.made.set(self.made.get() + 1000);
                }
            }
            "/ticks" => ticks(&self.handle, response).await,
            "/slow" => {
                let mut body = response.stream(200, [], Some(4));
                let _ = (body.write(b"be").await, body.flush().await);
                self.handle.sleep(Nanos::from_secs(1)).await;
                let _ = (body.write(b"ok").await, body.finish().await);
            }
            "/whom" => {
                let peer = response.peer_addr().expect("a connection");
                response.text(200, &peer.ip().to_string());
            }
            _ => response.text(404, ""),
        }
    }
}

/// A tick each second until there is no use in it.
async fn ticks(handle: &Handle, response: &mut Response) {
    let mut body = response.stream(200, [], None);
    let last: &[u8] = loop {
        if body.write(b"tick ").await.is_err() || body.flush().await.is_err() {
            return;
        }
        let pause = Nanos::from_secs(1);
        match handle.timeout(pause, body.interrupted()).await {
            Ok(Interruption::Gone) => break b"gone",
            Ok(Interruption::Stop) => break b"stopping",
            Err(_elapsed) => {}
        }
    };
    if body.write(last).await.is_ok() {
        let _ = body.finish().await;
    }
}

/// What came of a story.
struct Told<T> {
    client: T,
    totals: Totals,
    made: u64,
}

/// Plays a server against `client`, and stops it when the client says so or ends.
fn tell<T: 'static, F: Future<Output = T> + 'static>(
    options: ServerOptions,
    client: impl FnOnce(Handle, StopSender) -> F + 'static,
) -> Told<T> {
    let mut world = World::new(
        1,
        SimOptions {
            slow_loops_one_in: 0,
            ..SimOptions::default()
        },
    );
    let (stop_sender, mut stopped) = mailbox::<()>(1);
    let made = Rc::new(Cell::new(0));
    let app_made = made.clone();
    let server = world.spawn_loop(&Config::default(), async move |handle| {
        let listener = handle
            .listen(address(), &ListenOptions::default())
            .expect("a free port");
        let app = App {
            handle: handle.clone(),
            made: app_made,
        };
        let server = Server::new(&handle, options, app);
        let counters = server.counters().clone();
        let stop = async {
            stopped.recv().await;
        };
        server.run(Source::Listener(listener), stop).await;
        counters.totals()
    });
    let outcome = world.spawn_loop(&Config::default(), async move |handle| {
        handle.sleep(Nanos::from_micros(10)).await;
        client(handle.clone(), StopSender(stop_sender)).await
    });
    world
        .run(Nanos::from_secs(1_000))
        .expect("the story has an end");
    Told {
        client: outcome.take().expect("the client has finished"),
        totals: server.take().expect("the server has finished"),
        made: made.get(),
    }
}

/// Stops the server, at the latest when dropped.
struct StopSender(prony_engine::Sender<()>);

impl StopSender {
    fn stop(&self) {
        self.0.send(()).expect("one stop");
    }
}

async fn connect(handle: &Handle) -> Stream {
    handle.connect(address()).await.expect("somebody listens")
}

/// Everything until the end of the stream (or 10 MB), and when that came.
async fn read_all(handle: &Handle, stream: &Stream) -> (String, Instant) {
    let mut text = String::new();
    loop {
        assert!(text.len() < 10_000_000, "there is no end");
        match stream.recv().await {
            Ok(bytes) if bytes.is_empty() => return (text, handle.now()),
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Err(error) => return (format!("{text}[{:?}]", error.kind()), handle.now()),
        }
    }
}

/// Sends `text` and reads all that comes.
async fn ask(handle: Handle, text: String) -> (String, Nanos) {
    let stream = connect(&handle).await;
    let began = handle.now();
    stream.post(text.into_bytes()).expect("room");
    let (answer, end) = read_all(&handle, &stream).await;
    (answer, end.since(began))
}

fn asked(options: ServerOptions, text: &str) -> Told<(String, Nanos)> {
    let text = text.to_owned();
    tell(
        options,
        async move |handle: Handle, stop_sender: StopSender| {
            let answer = ask(handle, text).await;
            drop(stop_sender);
            answer
        },
    )
}

#[track_caller]
fn assert_about(length: Nanos, expected: Nanos) {
    assert!(
        (expected - SLACK..expected + SLACK).contains(&length),
        "{length} is not about {expected}"
    );
}

fn status_of(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

#[test]
fn a_connection_at_rest_is_closed_after_the_idle_timeout() {
    let told = asked(ServerOptions::default(), HELLO);
    let (answer, after) = told.client;
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_about(after, Nanos::from_secs(75));
    assert_eq!((told.totals.answered, told.totals.truncated), (1, 0));
}

#[test]
fn a_connection_that_is_asked_now_and_then_is_not_at_rest() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            for _ in 0..4 {
                handle.sleep(Nanos::from_secs(50)).await;
                stream.post(HELLO).expect("room");
                let answer = stream.recv().await.expect("it is kept");
                assert!(answer.ends_with(b"hello"), "{answer:?}");
            }
            let asked = handle.now();
            let (rest, end) = read_all(&handle, &stream).await;
            drop(stop_sender);
            (rest, end.since(asked))
        },
    );
    let (rest, after) = told.client;
    assert_eq!(rest, "");
    assert_about(after, Nanos::from_secs(75));
}

#[test]
fn a_connection_that_says_nothing_is_closed_after_the_idle_timeout() {
    let (answer, after) = asked(ServerOptions::default(), "").client;
    assert_eq!(answer, "");
    assert_about(after, Nanos::from_secs(75));
}

#[test]
fn a_timeout_of_never_never_comes() {
    let options = ServerOptions {
        idle_timeout: Nanos::MAX,
        ..ServerOptions::default()
    };
    let told = tell(options, async |handle: Handle, stop_sender: StopSender| {
        let stream = connect(&handle).await;
        let week = handle.timeout(Nanos::from_secs(900), stream.recv()).await;
        drop(stop_sender);
        week.is_err()
    });
    assert!(told.client, "it was closed");
}

#[test]
fn a_head_that_comes_too_slowly_is_answered_408() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = Rc::new(connect(&handle).await);
            let dribbled = stream.clone();
            let clock = handle.clone();
            let _dribble = handle.spawn(async move {
                for byte in HELLO.bytes() {
                    clock.sleep(Nanos::from_secs(1)).await;
                    if dribbled.post(vec![byte]).is_err() {
                        return;
                    }
                }
            });
            let began = handle.now();
            let (answer, end) = read_all(&handle, &stream).await;
            drop(stop_sender);
            (answer, end.since(began))
        },
    );
    let (answer, after) = told.client;
    assert_eq!(status_of(&answer), "408", "{answer}");
    assert!(answer.contains("connection: close"));
    // From the first byte on.
    assert_about(after, Nanos::from_secs(21));
    assert_eq!((told.totals.refused, told.totals.statuses[&408]), (1, 1));
}

#[test]
fn a_body_that_stops_coming_is_answered_408() {
    let (answer, after) = asked(
        ServerOptions::default(),
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc",
    )
    .client;
    assert_eq!(status_of(&answer), "408");
    assert_about(after, Nanos::from_secs(30));
}

#[test]
fn a_client_that_takes_nothing_is_reset_and_costs_little_memory() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream
                .post(HELLO.replace("hello", "endless").into_bytes())
                .expect("room");
            // Nothing is received before it is asked for. The server looks twice:
            // the first time it sees that something was taken.
            handle.sleep(Nanos::from_secs(61)).await;
            let (answer, _) = read_all(&handle, &stream).await;
            drop(stop_sender);
            answer
        },
    );
    assert!(told.client.ends_with("[ConnectionReset]"));
    assert_eq!((told.totals.aborted, told.totals.answered), (1, 0));
    // What waits in the server, on the link, and in one piece not yet posted.
    assert!(
        (64_000..(256 + 64 + 64 + 1) << 10).contains(&told.made),
        "{}",
        told.made
    );
}

#[test]
fn pipelined_requests_of_a_client_that_takes_nothing_are_left_unread() {
    let options = ServerOptions {
        response_buffer_bytes_max: 4096,
        ..ServerOptions::default()
    };
    let told = tell(options, async |handle: Handle, stop_sender: StopSender| {
        let stream = connect(&handle).await;
        stream
            .post(HELLO.repeat(100_000).into_bytes())
            .expect("room");
        handle.sleep(Nanos::from_secs(10)).await;
        stream.reset();
        drop(stop_sender);
    });
    let per_link = (64 << 10) / 100;
    assert!(
        told.totals.requests < 2 * per_link,
        "{}",
        told.totals.requests
    );
}

#[test]
fn what_is_in_the_backlog_is_answered_before_a_stop() {
    let options = ServerOptions {
        connections_max: 1,
        ..ServerOptions::default()
    };
    let told = tell(options, async |handle: Handle, stop_sender: StopSender| {
        let resting = connect(&handle).await;
        handle.sleep(SLACK).await;
        let waiting = [(); 3].map(|()| handle.spawn(ask(handle.clone(), HELLO.to_owned())));
        handle.sleep(SLACK).await;
        stop_sender.stop();
        let mut answers = Vec::new();
        for task in waiting {
            answers.push(task.await.0);
        }
        drop(resting);
        answers
    });
    for answer in &told.client {
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(answer.ends_with("hello"), "{answer}");
    }
    assert_eq!(told.totals.answered, 3);
}

#[test]
fn a_stop_keeps_connections_at_rest_for_a_moment() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let (silent, asking) = (connect(&handle).await, connect(&handle).await);
            handle.sleep(SLACK).await;
            let stopped = handle.now();
            stop_sender.stop();
            handle.sleep(Nanos::from_millis(90)).await;
            asking.post(HELLO).expect("room");
            let (answer, _) = read_all(&handle, &asking).await;
            drop(asking);
            let (nothing, end) = read_all(&handle, &silent).await;
            (answer, nothing, end.since(stopped))
        },
    );
    let (answer, nothing, after) = told.client;
    assert!(
        answer.contains("connection: close") && answer.ends_with("hello"),
        "{answer}"
    );
    assert_eq!(nothing, "");
    assert_about(after, Nanos::from_millis(100));
}

#[test]
fn a_stop_closed_a_connection_as_soon_as_an_answer_had_ended_that_promised_to_keep_it() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let (asking, silent) = (connect(&handle).await, connect(&handle).await);
            for stream in [&asking, &silent] {
                stream.post(get("/slow").into_bytes()).expect("room");
            }
            handle.sleep(SLACK).await;
            stop_sender.stop();
            let stopped = handle.now();
            let mut slow = String::new();
            while !slow.ends_with("beok") {
                let more = asking.recv().await.expect("more");
                slow.push_str(&String::from_utf8_lossy(&more));
            }
            handle.sleep(Nanos::from_millis(90)).await;
            asking.post(HELLO).expect("room");
            let (next, _) = read_all(&handle, &asking).await;
            drop(asking);
            let (_, end) = read_all(&handle, &silent).await;
            (slow, next, end.since(stopped))
        },
    );
    let (slow, next, after) = told.client;
    assert!(!slow.contains("connection: close"), "{slow}");
    assert!(
        next.contains("connection: close") && next.ends_with("hello"),
        "{next}"
    );
    assert_about(after, Nanos::from_millis(1100));
}

#[test]
fn a_stop_ends_what_takes_too_long() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream
                .post(HELLO.replace("hello", "stuck").into_bytes())
                .expect("room");
            handle.sleep(SLACK).await;
            let stopped = handle.now();
            stop_sender.stop();
            let (answer, end) = read_all(&handle, &stream).await;
            (answer, end.since(stopped))
        },
    );
    let (answer, after) = told.client;
    assert_eq!(answer, "");
    assert_about(after, Nanos::from_secs(4));
    assert_eq!((told.totals.aborted, told.totals.open()), (1, 0));
}

#[test]
fn a_handler_that_does_wrong_is_answered_for() {
    for (path, expected) in [
        ("silent", "the handler gave no answer\n"),
        (
            "injected",
            "the handler's answer cannot be sent: the header value holds a control byte\n",
        ),
        (
            "reasons",
            "the handler's answer cannot be sent: the reason holds a control byte\n",
        ),
        (
            "interim",
            "the handler's answer cannot be sent: the status is not between 100 and 999\n",
        ),
    ] {
        let request = HELLO
            .replace("hello", path)
            .replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let told = asked(ServerOptions::default(), &request);
        let answer = told.client.0;
        assert_eq!(status_of(&answer), "500", "{path}");
        assert!(answer.ends_with(expected), "{answer}");
    }
}

#[test]
fn a_handler_may_give_a_reason() {
    let request = HELLO
        .replace("hello", "reason")
        .replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let answer = asked(ServerOptions::default(), &request).client.0;
    assert!(answer.starts_with("HTTP/1.1 200 Fine\r\n"), "{answer}");
}

#[test]
fn an_answer_that_is_not_whole_is_not_taken_for_whole() {
    for path in ["/short", "/long", "/twice"] {
        let told = tell(
            ServerOptions::default(),
            async move |handle: Handle, stop_sender: StopSender| {
                let client = by_hand::Connection::connect(&handle, address()).await;
                let mut client = client.expect("somebody listens");
                let answer = client.exchange(&by_hand::RawRequest::get(path)).await;
                drop(stop_sender);
                answer
            },
        );
        let error = told.client.expect_err("it is not whole");
        assert!(matches!(error, by_hand::Failure::Io(_)), "{path}: {error}");
        assert_eq!(
            (told.totals.aborted, told.totals.answered),
            (1, 0),
            "{path}"
        );
    }
}

#[test]
fn a_client_that_waits_is_told_to_continue() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream
            .post("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
            .expect("room");
            let mut interim = String::new();
            while !interim.ends_with("\r\n\r\n") {
                let bytes = stream.recv().await.expect("open");
                interim.push_str(&String::from_utf8_lossy(&bytes));
            }
            stream.post("ok").expect("room");
            let (answer, _) = read_all(&handle, &stream).await;
            drop(stop_sender);
            (interim, answer)
        },
    );
    let (interim, answer) = told.client;
    assert_eq!(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nok"),
        "{answer}"
    );
}

#[test]
fn a_client_that_waits_with_too_long_a_body_is_not() {
    let options = ServerOptions {
        limits: Limits {
            body_bytes_max: 1,
            ..Limits::for_requests()
        },
        ..ServerOptions::default()
    };
    let request =
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(status_of(&asked(options, request).client.0), "413");
}

#[test]
fn a_client_that_never_closes_is_lingered_for_only_so_long() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream.post("BAD\r\n\r\n").expect("room");
            let (answer, _) = read_all(&handle, &stream).await;
            let mut seconds = 0;
            while stream.post("more").is_ok() {
                seconds += 1;
                handle.sleep(Nanos::from_secs(1)).await;
            }
            drop(stop_sender);
            (answer, seconds)
        },
    );
    let (answer, seconds) = told.client;
    assert_eq!(status_of(&answer), "400");
    // Closed after 2 s: the post at 3 s finds nobody there, that at 4 s is told.
    assert_eq!(seconds, 4);
}

#[test]
fn a_large_last_answer_was_dropped_by_a_close_over_what_the_client_still_sent() {
    // Posts, one a second, until the client is told that nobody reads them any more.
    for (path, posts) in [("/large", 4), ("/hello", 2)] {
        let request = get(path).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let told = tell(
            ServerOptions::default(),
            async move |handle: Handle, stop_sender: StopSender| {
                let stream = connect(&handle).await;
                stream.post(request.into_bytes()).expect("room");
                let (answer, _) = read_all(&handle, &stream).await;
                let mut posts = 0;
                while stream.post("\r\n").is_ok() {
                    posts += 1;
                    handle.sleep(Nanos::from_secs(1)).await;
                }
                drop(stop_sender);
                (answer, posts)
            },
        );
        let (answer, told_after) = told.client;
        assert_eq!(status_of(&answer), "200");
        assert_eq!(told_after, posts, "{path}");
    }
}

#[test]
fn an_answer_without_an_end_comes_as_it_is_made_and_ends_with_the_server() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream.post(get("/ticks").into_bytes()).expect("room");
            let began = handle.now();
            let mut text = String::new();
            while text.matches("tick").count() < 3 {
                text.push_str(&String::from_utf8_lossy(
                    &stream.recv().await.expect("more"),
                ));
            }
            let third = handle.now().since(began);
            stop_sender.stop();
            let (rest, _) = read_all(&handle, &stream).await;
            (third, rest)
        },
    );
    let (third, rest) = told.client;
    assert_about(third, Nanos::from_secs(2));
    assert!(rest.ends_with("8\r\nstopping\r\n0\r\n\r\n"), "{rest}");
    assert_eq!((told.totals.answered, told.totals.aborted), (1, 0));
}

#[test]
fn an_answer_without_an_end_learns_that_its_client_has_gone() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream.post(get("/ticks").into_bytes()).expect("room");
            stream.recv().await.expect("a tick");
            stream.shutdown_write();
            let (rest, _) = read_all(&handle, &stream).await;
            drop(stop_sender);
            rest
        },
    );
    assert!(told.client.contains("gone"), "{}", told.client);
    assert_eq!((told.totals.answered, told.totals.open()), (1, 0));
}

#[test]
fn what_is_sent_behind_an_answer_without_an_end_is_thrown_away() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            stream.post(get("/ticks").into_bytes()).expect("room");
            stream.recv().await.expect("a tick");
            stream.post(HELLO).expect("room");
            handle.sleep(Nanos::from_secs(2)).await;
            stop_sender.stop();
            read_all(&handle, &stream).await.0
        },
    );
    assert!(told.client.ends_with("0\r\n\r\n"), "{}", told.client);
    assert_eq!(told.totals.requests, 1, "the other was not taken for one");
}

#[test]
fn an_answer_knows_whom_it_goes_to() {
    let told = asked(ServerOptions::default(), &get("/whom"));
    assert!(
        told.client.0.ends_with("\r\n\r\n127.0.0.1"),
        "{}",
        told.client.0
    );
}

#[test]
fn lines_for_every_answer_are_in_refusals_too() {
    let options = ServerOptions {
        headers: vec![Header::new("x-all", b"yes")],
        ..ServerOptions::default()
    };
    let (answer, _) = asked(options.clone(), HELLO).client;
    assert!(answer.contains("\r\nx-all: yes\r\n"), "{answer}");
    let (answer, _) = asked(options, "GET / HTTP/1.1\r\n\r\n").client;
    assert_eq!(status_of(&answer), "400");
    assert!(answer.contains("\r\nx-all: yes\r\n"), "{answer}");
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn a_byte_every_four_seconds_held_a_connection_for_ever() {
    let story = async |handle: Handle, stop_sender: StopSender| {
        let stream = Rc::new(connect(&handle).await);
        let (dribbled, clock) = (stream.clone(), handle.clone());
        let _dribble = handle.spawn(async move {
            let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n";
            let _ = dribbled.post(head.to_vec());
            for _ in 0..100 {
                clock.sleep(Nanos::from_secs(4)).await;
                if dribbled.post(vec![b'x']).is_err() {
                    return;
                }
            }
        });
        let began = handle.now();
        let (answer, end) = read_all(&handle, &stream).await;
        drop(stop_sender);
        (answer, end.since(began))
    };
    let (answer, after) = tell(ServerOptions::default(), story).client;
    assert_eq!(status_of(&answer), "408", "{answer}");
    // The time that a body has to begin with, and that of 7 bytes at 500 bytes a second.
    assert_about(after, Nanos::from_millis(30_014));
    let any = ServerOptions {
        body_rate_min: 0,
        idle_timeout: Nanos::from_secs(1),
        ..ServerOptions::default()
    };
    let (answer, after) = tell(any, story).client;
    assert_eq!(status_of(&answer), "200", "{answer}");
    assert_about(after, Nanos::from_secs(401));
}

#[test]
fn a_body_that_came_faster_than_it_must_was_cut_off() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n";
            stream.post(head.as_bytes().to_vec()).expect("room");
            // 600 bytes a second, for more than three times as long as one may bring nothing.
            for _ in 0..100 {
                handle.sleep(Nanos::from_secs(1)).await;
                stream.post(vec![b'x'; 600]).expect("room");
            }
            let bytes = stream.recv().await.expect("an answer");
            drop(stop_sender);
            String::from_utf8_lossy(&bytes).into_owned()
        },
    );
    assert_eq!(status_of(&told.client), "200", "{}", told.client);
}

#[test]
fn unfinished_bodies_took_any_memory() {
    let memory = Budget::new(1000);
    let options = ServerOptions {
        body_memory: memory.clone(),
        ..ServerOptions::default()
    };
    let shared = memory.clone();
    let told = tell(
        options,
        async move |handle: Handle, stop_sender: StopSender| {
            let begun = async |length: u32, chunk: usize| {
                let stream = connect(&handle).await;
                let head =
                    format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
                stream.post(head.into_bytes()).expect("room");
                handle.sleep(SLACK).await;
                stream.post(vec![b'x'; chunk]).expect("room");
                handle.sleep(SLACK).await;
                stream
            };
            let first = begun(700, 600).await;
            let taken = shared.taken();
            let second = begun(700, 600).await;
            let (refused, _) = read_all(&handle, &second).await;
            let third = begun(300, 200).await;
            let together = shared.taken();
            first.reset();
            handle.sleep(SLACK).await;
            let left = shared.taken();
            third.post(vec![b'x'; 100]).expect("room");
            let answer = third.recv().await.expect("an answer");
            let answer = String::from_utf8_lossy(&answer).into_owned();
            drop(stop_sender);
            (refused, answer, [taken, together, left])
        },
    );
    let (refused, answer, taken) = told.client;
    assert_eq!(status_of(&refused), "503", "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
    assert_eq!(status_of(&answer), "200", "{answer}");
    assert_eq!(taken, [600, 800, 200]);
    assert_eq!(memory.taken(), 0);
    assert_eq!((told.totals.refused, told.totals.answered), (1, 1));
}

#[test]
fn a_refused_head_request_had_a_body() {
    for (request, status) in [
        ("HEAD / HTTP/1.1\r\n\r\n", "400"),
        ("HEAD /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("HEAD / HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n",
            "413",
        ),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
            "400",
        ),
        // What comes too slowly.
        ("HEAD / HTTP/1.1\r\nHost", "408"),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
            "408",
        ),
    ] {
        let (answer, _) = asked(ServerOptions::default(), request).client;
        assert_eq!(status_of(&answer), status, "{request}");
        assert!(answer.contains("content-length: "), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{request}: {answer}");
    }
    for request in ["GET / HTTP/1.1\r\n\r\n", "HEADS / HTTP/1.1\r\n\r\n"] {
        let (answer, _) = asked(ServerOptions::default(), request).client;
        assert!(answer.ends_with("has no Host header\n"), "{answer}");
    }
}

#[test]
fn a_205_had_a_body() {
    for path in ["/205", "/205/stream"] {
        let (answer, _) = asked(ServerOptions::default(), &(get(path) + HELLO)).client;
        let (first, second) = answer.split_once("\r\n\r\n").expect("a head");
        assert_eq!(status_of(first), "205");
        assert!(first.ends_with("content-length: 0"), "{first}");
        assert!(!first.contains("transfer-encoding"), "{first}");
        assert_eq!(status_of(second), "200", "{answer}");
    }
}

#[test]
fn a_connect_was_answered_with_a_length() {
    let request = "CONNECT hello:80 HTTP/1.1\r\nHost: hello:80\r\n\r\n";
    let (answer, _) = asked(ServerOptions::default(), &(request.to_owned() + HELLO)).client;
    assert_eq!(status_of(&answer), "200");
    assert!(!answer.contains("content-length"), "{answer}");
    assert!(!answer.contains("transfer-encoding"), "{answer}");
    // There is no tunnel: nothing follows.
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    // One that is refused has its text, and the connection goes on.
    let request = request.replace("hello:80", "b:80");
    let (answer, _) = asked(ServerOptions::default(), &(request + HELLO)).client;
    assert_eq!(status_of(&answer), "404");
    assert!(answer.contains("content-length: 0"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
}

#[test]
fn host_won_over_the_server_that_the_target_names() {
    for (request, host) in [
        ("GET http://b:80/host HTTP/1.1\r\nHost: a\r\n\r\n", "b:80"),
        (
            "GET http://b/host?c HTTP/1.1\r\nX: y\r\nhOST: a\r\nZ: z\r\n\r\n",
            "b",
        ),
        ("GET http://[::1]/host HTTP/1.0\r\n\r\n", "[::1]"),
        ("GET /host HTTP/1.1\r\nHost: a\r\n\r\n", "a"),
        ("GET /host?http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "a"),
    ] {
        let (answer, _) = asked(ServerOptions::default(), request).client;
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert_eq!(body, host, "{request}");
        let split = tell(
            ServerOptions::default(),
            async |handle: Handle, stop_sender: StopSender| {
                let stream = connect(&handle).await;
                for byte in request.bytes() {
                    stream.post(vec![byte]).expect("room");
                    handle.sleep(SLACK).await;
                }
                let (answer, _) = read_all(&handle, &stream).await;
                drop(stop_sender);
                answer
            },
        );
        assert!(
            split.client.ends_with(&format!("\r\n\r\n{host}")),
            "{}",
            split.client
        );
    }
}

#[test]
fn a_stop_ended_a_second_late_with_a_client_that_takes_nothing() {
    let told = tell(
        ServerOptions::default(),
        async |handle: Handle, stop_sender: StopSender| {
            let stream = connect(&handle).await;
            let request = HELLO.replace("hello", "endless");
            stream.post(request.into_bytes()).expect("room");
            handle.sleep(Nanos::from_secs(1)).await;
            stop_sender.stop();
            // The time of a stop is over.
            handle.sleep(Nanos::from_secs(4) + SLACK).await;
            read_all(&handle, &stream).await.0
        },
    );
    // What waits in the server is not sent any more.
    assert!(
        told.client.ends_with("[ConnectionReset]"),
        "{}",
        told.client.len()
    );
    assert_eq!((told.totals.aborted, told.totals.closed), (1, 1));
}

#[test]
fn a_client_that_had_said_that_it_sends_nothing_more_was_waited_for() {
    let options = ServerOptions {
        connections_max: 1,
        ..ServerOptions::default()
    };
    let told = tell(options, async |handle: Handle, stop_sender: StopSender| {
        let last = HELLO.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let stream = connect(&handle).await;
        stream.post(last.clone().into_bytes()).expect("room");
        let (answer, end) = read_all(&handle, &stream).await;
        assert!(answer.ends_with("hello"), "{answer}");
        // It keeps its side open, and the next one is served all the same.
        let next = connect(&handle).await;
        next.post(HELLO).expect("room");
        assert!(!next.recv().await.expect("an answer").is_empty());
        let soon = handle.now().since(end);
        drop((next, stream));
        // Who sends more than it said is let see its answer.
        let more = connect(&handle).await;
        more.post((last + HELLO).into_bytes()).expect("room");
        let (answer, end) = read_all(&handle, &more).await;
        assert!(answer.ends_with("hello"), "{answer}");
        let next = connect(&handle).await;
        next.post(HELLO).expect("room");
        assert!(!next.recv().await.expect("an answer").is_empty());
        drop(stop_sender);
        (soon, handle.now().since(end))
    });
    assert_about(told.client.0, Nanos::ZERO);
    assert_about(told.client.1, Nanos::from_secs(2));
}

/// A client's session on a connection.
async fn secured(stream: &Stream, config: &TlsConfig, offer: Offer) -> Box<TlsSession> {
    let mut out = Vec::new();
    let mut ours = Handshaking::client(config, "a", offer, &mut out).expect("a name");
    loop {
        stream.post(std::mem::take(&mut out)).expect("room");
        let received = stream.recv().await.expect("a handshake");
        match ours.advance(&received, &mut out).expect("a handshake") {
            Advanced::More(more) => ours = more,
            Advanced::Done(session, _) => {
                stream.post(out).expect("room");
                return session;
            }
        }
    }
}

#[test]
fn a_fault_of_tls_after_the_handshake_was_a_reset_without_an_alert() {
    let made = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).expect("a certificate");
    let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let (versions, both) = (TlsVersions::default(), Offer::Either);
    let tls = ServerTls::from_pem(pem.as_bytes(), key.as_bytes(), versions, both, true);
    let options = ServerOptions {
        tls: Some(tls.expect("a certificate")),
        http2: true,
        ..ServerOptions::default()
    };
    let mut trust = TlsSettings::trusting_nobody();
    trust.add_roots_pem(pem.as_bytes()).expect("a certificate");
    let config = trust.build().expect("settings");
    for offer in [Offer::Http1, Offer::Http2] {
        let config = config.clone();
        let told = tell(
            options.clone(),
            async move |handle: Handle, stop_sender: StopSender| {
                let stream = connect(&handle).await;
                let mut session = secured(&stream, &config, offer).await;
                let mut out = Vec::new();
                session.encrypt(b"anything", &mut out).expect("a key");
                *out.last_mut().expect("a record") ^= 1;
                // What follows it would make a close at once a reset.
                out.resize(200_000, 0);
                stream.post(out).expect("room");
                let fault = loop {
                    let received = stream.recv().await.expect("no reset");
                    assert!(!received.is_empty(), "an end without an alert");
                    session.take_in(&received);
                    let next = loop {
                        match session.next_data() {
                            Ok(PlainData::Data(_)) => {}
                            next => break next.map(|_| ()),
                        }
                    };
                    if let Err(fault) = next {
                        break fault;
                    }
                };
                let end = stream.recv().await.map(|bytes| bytes.len());
                drop(stop_sender);
                (fault, end.map_err(|error| error.kind()))
            },
        );
        let (fault, end) = told.client;
        assert!(
            matches!(&fault, TlsError::Alert(name) if name == "bad_record_mac"),
            "{fault}"
        );
        assert_eq!((end, told.totals.requests), (Ok(0), 0));
    }
}
