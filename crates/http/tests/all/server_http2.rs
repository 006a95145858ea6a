//! The server's HTTP/2 against a client by hand, in simulated time: what it answers, which rules it holds a client to,
//! and where each flood ends.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Instant, Nanos, Random};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream, mailbox};
use prony_http::{Handler, Header, Request, Response, Server, ServerOptions, Source, Totals};
use prony_wire::http2::{
    FieldDecoder, FrameHead, PREFACE, code, flag, kind, put_frame_head, put_string,
};

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

struct App {
    handle: Handle,
    /// Bytes that `/endless` and `/large` have made.
    made: Rc<Cell<usize>>,
}

/// Of the body of `/large`.
const LARGE_BYTES: usize = 100_000;

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/hello" => response.text(200, "hello"),
            "/echo" => response.send(200, [], request.body()),
            "/host" => response.send(200, [], request.headers().get("host").unwrap_or(b"none")),
            "/header" => {
                let header = request.headers().get("x").unwrap_or_default();
                response.send(200, [Header::new("X", header)], b"");
            }
            "/slow" => {
                self.handle.sleep(Nanos::from_secs(1)).await;
                response.text(200, "slow");
            }
            "/stuck" => self.handle.sleep(Nanos::from_secs(1_000_000)).await,
            "/pieces" => {
                let mut body = response.stream(200, [], None);
                for _ in 0..300 {
                    if body.write(&[b'x'; 1_000]).await.is_err() {
                        return;
                    }
                }
                let _ = body.finish().await;
            }
            "/endless" => {
                let mut body = response.stream(200, [], None);
                while body.write(&[b'x'; 1_000]).await.is_ok() {
                    self.made.set(self.made.get() + 1_000);
                }
            }
            "/large" => {
                self.made.set(self.made.get() + LARGE_BYTES);
                response.send(200, [], &[b'x'; LARGE_BYTES]);
            }
            "/short" => {
                let mut body = response.stream(200, [], Some(10));
                let _ = body.write(b"12345").await;
            }
            "/silent" => {}
            "/injected" => response.send(200, [Header::new("x", b"a\r\nb: c")], b""),
            _ => response.text(404, ""),
        }
    }
}

fn options() -> ServerOptions {
    ServerOptions {
        http2: true,
        ..ServerOptions::default()
    }
}

/// Plays a server against `client`, and stops it when the client says so or ends.
fn tell<T: 'static>(
    options: ServerOptions,
    client: impl AsyncFnOnce(Peer) -> T + 'static,
) -> (T, Totals) {
    tell_made(options, async move |peer, _| client(peer).await)
}

/// The same, with a count of what the server's handlers have made.
fn tell_made<T: 'static>(
    options: ServerOptions,
    client: impl AsyncFnOnce(Peer, Rc<Cell<usize>>) -> T + 'static,
) -> (T, Totals) {
    let mut world = World::new(
        1,
        SimOptions {
            slow_loops_one_in: 0,
            ..SimOptions::default()
        },
    );
    let (stop, mut stopped) = mailbox::<()>(1);
    let made = Rc::new(Cell::new(0));
    let app_made = Rc::clone(&made);
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
        client(Peer::connect(handle, stop).await, made).await
    });
    world
        .run(Nanos::from_secs(1_000))
        .expect("the story has an end");
    let told = outcome.take().expect("the client has finished");
    (told, server.take().expect("the server has finished"))
}

/// A client.
struct Peer {
    handle: Handle,
    stream: Rc<Stream>,
    received: Vec<u8>,
    decoder: FieldDecoder,
    stop: prony_engine::Sender<()>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Frame {
    head: FrameHead,
    payload: Vec<u8>,
}

/// What came of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Came {
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    has_ended: bool,
    reset: Option<u32>,
}

impl Came {
    fn status(&self) -> &str {
        let status = self.fields.iter().find(|(name, _)| name == ":status");
        status.map_or("none", |(_, value)| {
            std::str::from_utf8(value).expect("digits")
        })
    }
}

impl Peer {
    async fn connect(handle: Handle, stop: prony_engine::Sender<()>) -> Peer {
        let stream = handle.connect(address()).await.expect("it listens");
        Peer {
            handle,
            stream: Rc::new(stream),
            received: Vec::new(),
            decoder: FieldDecoder::default(),
            stop,
        }
    }

    fn post(&self, bytes: &[u8]) {
        self.stream.post(bytes.to_vec()).expect("room");
    }

    /// Sends the preface, settings, and then `bytes`.
    fn begin(&self, settings: &[u8], bytes: &[u8]) {
        self.post(&[&PREFACE[..], &frame(kind::SETTINGS, 0, 0, settings), bytes].concat());
    }

    /// The next frame; None at the connection's end.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((head, rest)) = self.received.split_first_chunk() {
                let head = FrameHead::read(*head);
                if let Some(payload) = rest.get(..head.length) {
                    let payload = payload.to_vec();
                    self.received.drain(..9 + head.length);
                    return Some(Frame { head, payload });
                }
            }
            match self.stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => self.received.extend_from_slice(&bytes),
                _ => return None,
            }
        }
    }

    /// What comes of a stream until it ends.
    async fn answer(&mut self, stream: u32) -> Came {
        self.answers(&[stream]).await.remove(0)
    }

    /// What comes of these streams until all have ended.
    async fn answers(&mut self, streams: &[u32]) -> Vec<Came> {
        let mut came = vec![Came::default(); streams.len()];
        while came.iter().any(|one| !one.has_ended && one.reset.is_none()) {
            let Some(frame) = self.next().await else {
                break;
            };
            let of = streams
                .iter()
                .position(|&stream| stream == frame.head.stream);
            let Some(one) = of.map(|place| &mut came[place]) else {
                continue;
            };
            match frame.head.kind {
                kind::HEADERS => {
                    let fields = &mut one.fields;
                    let read = self.decoder.decode(&frame.payload, 100_000, |name, value| {
                        fields.push((String::from_utf8_lossy(name).into_owned(), value.to_vec()));
                    });
                    read.expect("a block");
                }
                kind::DATA => one.body.extend_from_slice(&frame.payload),
                kind::RST_STREAM => one.reset = Some(four(&frame.payload)),
                _ => {}
            }
            let may_end = matches!(frame.head.kind, kind::HEADERS | kind::DATA);
            one.has_ended |= may_end && frame.head.has(flag::END_STREAM);
        }
        came
    }

    /// The code and the words of the connection's end; None where it ends without.
    async fn end(&mut self) -> Option<(u32, String)> {
        let mut end = None;
        while let Some(frame) = self.next().await {
            if frame.head.kind == kind::GOAWAY {
                let words = String::from_utf8_lossy(&frame.payload[8..]).into_owned();
                end = Some((four(&frame.payload[4..8]), words));
            }
        }
        end
    }
}

fn four(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

/// A block of these fields after those of every request.
fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0x86];
    let first = [(":method", method), (":path", path), (":authority", "a")];
    for (name, value) in first.iter().chain(more) {
        block.push(0);
        put_string(&mut block, name.as_bytes());
        put_string(&mut block, value.as_bytes());
    }
    block
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    let flags = flag::END_HEADERS | flag::END_STREAM;
    frame(kind::HEADERS, flags, stream, &block("GET", path, &[]))
}

fn post(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    frame(
        kind::HEADERS,
        flag::END_HEADERS,
        stream,
        &block("POST", path, more),
    )
}

fn setting(number: u16, value: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

#[test]
fn streams_are_answered_each_when_it_is_ready() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        let requests = [
            get(1, "/slow"),
            get(3, "/hello"),
            post(5, "/echo", &[("content-length", "5")]),
            frame(kind::DATA, 0, 5, b"He"),
            get(7, "/host"),
            frame(kind::DATA, flag::END_STREAM | flag::PADDED, 5, b"\x02llo--"),
            frame(
                kind::HEADERS,
                flag::END_HEADERS | flag::END_STREAM,
                9,
                &block("HEAD", "/hello", &[]),
            ),
            get(11, "/silent"),
            get(13, "/injected"),
            get(15, "/none"),
            get(17, "/short"),
        ];
        peer.begin(&[], &requests.concat());
        let mut order = Vec::new();
        let all: Vec<u32> = (0..9).map(|number| number * 2 + 1).collect();
        let came = peer.answers(&all).await;
        order.push(peer.handle.now());
        (came, order)
    });
    let (came, at) = came;
    let seen: Vec<_> = came
        .iter()
        .map(|one| (one.status(), &one.body[..], one.reset))
        .collect();
    let expected = [
        ("200", &b"slow"[..], None),
        ("200", b"hello", None),
        ("200", b"Hello", None),
        ("200", b"a", None),
        ("200", b"", None),
        ("500", b"the handler gave no answer\n", None),
        (
            "500",
            b"the handler's answer cannot be sent: the header value holds a control byte\n",
            None,
        ),
        ("404", b"", None),
        ("200", b"", Some(code::INTERNAL_ERROR)),
    ];
    assert_eq!(seen[..8], expected[..8]);
    assert_eq!((seen[8].0, seen[8].2), (expected[8].0, expected[8].2));
    assert!(at[0] > Instant::ZERO + Nanos::from_secs(1));
    let length = came[4]
        .fields
        .iter()
        .find(|(name, _)| name == "content-length");
    assert_eq!(length.map(|(_, value)| &value[..]), Some(&b"5"[..]));
    assert_eq!(
        (totals.requests, totals.answered, totals.aborted),
        (9, 8, 1)
    );
    assert_eq!((totals.http2_connections, totals.streams_cancelled), (1, 0));
    assert_eq!(
        totals.statuses.values().sum::<u64>(),
        totals.answered + totals.refused
    );
}

#[test]
fn bodies_go_both_ways_within_the_windows() {
    let large: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = large.clone();
    let (came, totals) = tell(options(), async move |mut peer: Peer| {
        peer.begin(&setting(4, 100_000), &post(1, "/echo", &[]));
        let mut window = 262_144_usize;
        let (mut rest, mut sent_all) = (&sent[..], false);
        let mut body = Vec::new();
        loop {
            while !rest.is_empty() && window > 0 {
                let count = rest.len().min(16_384).min(window);
                let flags = if count == rest.len() {
                    flag::END_STREAM
                } else {
                    0
                };
                peer.post(&frame(kind::DATA, flags, 1, &rest[..count]));
                (rest, window) = (&rest[count..], window - count);
                sent_all = rest.is_empty();
            }
            let frame = peer.next().await.expect("it goes on");
            match frame.head.kind {
                kind::WINDOW_UPDATE if frame.head.stream == 1 => {
                    window += four(&frame.payload) as usize;
                }
                kind::DATA => {
                    assert!(sent_all);
                    body.extend_from_slice(&frame.payload);
                    if frame.head.has(flag::END_STREAM) {
                        return body;
                    }
                    let more = (frame.payload.len() as u32).to_be_bytes();
                    for stream in [0, 1] {
                        peer.post(&self::frame(kind::WINDOW_UPDATE, 0, stream, &more));
                    }
                }
                _ => {}
            }
        }
    });
    assert!(came == large);
    assert_eq!((totals.answered, totals.body_bytes), (1, 700_000));
}

#[test]
fn an_answer_in_pieces_waits_for_the_window_and_others_do_not() {
    let (came, _) = tell(options(), async |mut peer: Peer| {
        peer.begin(
            &setting(4, 10),
            &[get(1, "/pieces"), get(3, "/hello")].concat(),
        );
        let hello = peer.answer(3).await;
        peer.post(&frame(
            kind::WINDOW_UPDATE,
            0,
            1,
            &1_000_000_u32.to_be_bytes(),
        ));
        peer.post(&frame(
            kind::WINDOW_UPDATE,
            0,
            0,
            &1_000_000_u32.to_be_bytes(),
        ));
        let pieces = peer.answer(1).await;
        (hello.body, pieces.body.len())
    });
    assert_eq!((&came.0[..], came.1), (&b"hello"[..], 299_990));
}

/// As many requests as a client may have open.
fn all_of(path: &str) -> Vec<u8> {
    (0..256)
        .flat_map(|number| get(number * 2 + 1, path))
        .collect()
}

fn widen(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// What a connection makes of `requests` within some seconds in which its client takes nothing, and whether another
/// client is answered then.
fn made_unread(settings: Vec<u8>, requests: Vec<u8>) -> ((usize, Vec<u8>), Totals) {
    tell_made(options(), async move |peer: Peer, made| {
        peer.begin(
            &settings,
            &[widen(0, (1 << 31) - 65_536), requests].concat(),
        );
        peer.handle.sleep(Nanos::from_secs(10)).await;
        let mut other = Peer::connect(peer.handle.clone(), peer.stop.clone()).await;
        other.begin(&[], &get(1, "/hello"));
        let hello = other.answer(1).await.body;
        (made.get(), hello)
    })
}

#[test]
fn each_stream_of_a_client_that_takes_nothing_held_memory() {
    let at_most = options().response_buffer_bytes_max;
    let link = SimOptions::default().link_bytes_max;
    // Wide windows: what waits in the server, and what is on the link.
    let wide = setting(4, (1 << 31) - 1);
    let ((made, hello), totals) = made_unread(wide.clone(), all_of("/endless"));
    assert!((link..at_most + link).contains(&made), "{made}");
    assert_eq!(hello, b"hello");
    // What was not read was not begun, either.
    assert!(totals.requests < 256, "{}", totals.requests);
    let ((made, _), _) = made_unread(wide, all_of("/large"));
    assert!(
        (link..at_most + link + LARGE_BYTES).contains(&made),
        "{made}"
    );
    // Windows that are shut.
    let ((made, hello), totals) = made_unread(setting(4, 0), all_of("/endless"));
    assert_eq!((made, &hello[..], totals.requests), (0, &b"hello"[..], 257));
    let ((made, _), _) = made_unread(setting(4, 0), all_of("/large"));
    assert!((1..at_most + LARGE_BYTES).contains(&made), "{made}");
}

#[test]
fn requests_that_waited_for_others_windows_are_answered() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        let ids: Vec<u32> = (0..20).map(|number| number * 2 + 1).collect();
        let requests = ids.iter().flat_map(|&id| get(id, "/large"));
        let requests = [widen(0, 1 << 30), requests.collect()].concat();
        peer.begin(&setting(4, 0), &requests);
        peer.handle.sleep(Nanos::from_secs(1)).await;
        peer.post(&frame(kind::SETTINGS, 0, 0, &setting(4, 1 << 30)));
        let came = peer.answers(&ids).await;
        came.iter().map(|one| one.body.len()).collect::<Vec<_>>()
    });
    assert_eq!(came, [LARGE_BYTES; 20]);
    assert_eq!((totals.answered, totals.aborted), (20, 0));
}

#[test]
fn a_server_that_http1_would_not_be_asked_for_was() {
    const PATH: &[(&str, &str)] = &[(":method", "GET"), (":scheme", "http"), (":path", "/host")];
    let head = |stream: u32, more: &[(&str, &str)]| {
        let mut block = Vec::new();
        for (name, value) in PATH.iter().chain(more) {
            block.push(0);
            put_string(&mut block, name.as_bytes());
            put_string(&mut block, value.as_bytes());
        }
        frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            stream,
            &block,
        )
    };
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[(":authority", "user@a")], "400"),
        (&[(":authority", "a/path")], "400"),
        (&[(":authority", "")], "400"),
        (&[(":authority", "a"), ("host", "b")], "400"),
        (&[("host", "a"), ("host", "a")], "400"),
        (&[("host", "")], "400"),
        (&[], "400"),
        (&[("host", "a")], "200"),
        (&[(":authority", "a:80"), ("host", "A:80")], "200"),
    ];
    for (fields, status) in cases {
        let requests = [head(1, fields), get(3, "/hello")].concat();
        let (came, _) = tell(options(), async move |mut peer: Peer| {
            peer.begin(&[], &requests);
            peer.answers(&[1, 3]).await
        });
        assert_eq!(
            (came[0].status(), came[1].status()),
            (status, "200"),
            "{fields:?}"
        );
    }
}

#[test]
fn every_split_of_the_bytes_means_the_same() {
    let bytes = || {
        [
            &PREFACE[..],
            &frame(kind::SETTINGS, 0, 0, &setting(4, 1_000_000)),
            &frame(kind::HEADERS, flag::END_STREAM, 1, b"\x82\x86"),
            &frame(kind::CONTINUATION, 0, 1, b"\x44\x06/h"),
            &frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"ello\x41\x01a"),
            &post(3, "/echo", &[]),
            &frame(kind::DATA, flag::PADDED, 3, b"\x01Hel-"),
            &frame(kind::DATA, flag::END_STREAM, 3, b"lo"),
        ]
        .concat()
    };
    for cut in 1..bytes().len() {
        let (came, _) = tell(options(), async move |mut peer: Peer| {
            let bytes = bytes();
            peer.post(&bytes[..cut]);
            peer.handle.sleep(Nanos::from_millis(1)).await;
            peer.post(&bytes[cut..]);
            peer.answers(&[1, 3]).await
        });
        let bodies: Vec<_> = came.iter().map(|one| &one.body[..]).collect();
        assert_eq!(bodies, [&b"hello"[..], b"Hello"], "cut at {cut}");
    }
}

#[test]
fn a_value_of_every_byte_comes_and_goes() {
    let value: String = (32..127_u8).map(char::from).collect();
    let sent = format!("x{value}x");
    let expected = sent.clone();
    let (came, _) = tell(options(), async move |mut peer: Peer| {
        let flags = flag::END_HEADERS | flag::END_STREAM;
        let block = block("GET", "/header", &[("x", &sent)]);
        peer.begin(&[], &frame(kind::HEADERS, flags, 1, &block));
        peer.answer(1).await
    });
    assert!(
        came.fields
            .contains(&("x".to_owned(), expected.into_bytes()))
    );
}

/// What the server says at the end to a client that sends `bytes` after its settings.
fn end_of(bytes: Vec<u8>) -> (Option<(u32, String)>, Totals) {
    tell(options(), async move |mut peer: Peer| {
        peer.begin(&[], &[]);
        for part in bytes.chunks(60_000) {
            if peer.stream.post(part.to_vec()).is_err() {
                break;
            }
            let _ = peer.stream.flush().await;
        }
        peer.end().await
    })
}

#[test]
fn each_flood_ends_at_its_limit() {
    let reset = |stream: u32| {
        let reset = frame(kind::RST_STREAM, 0, stream, &code::CANCEL.to_be_bytes());
        [get(stream, "/stuck"), reset].concat()
    };
    let answered_and_reset = |stream: u32| {
        let reset = frame(kind::RST_STREAM, 0, stream, &code::CANCEL.to_be_bytes());
        [get(stream, "/hello"), reset].concat()
    };
    let broken = |stream: u32| {
        let flags = flag::END_HEADERS | flag::END_STREAM;
        frame(kind::HEADERS, flags, stream, b"\x82")
    };
    let odd = |count: u32| (0..count).map(|number| number * 2 + 1);
    let one = [post(1, "/echo", &[]), Vec::new()].concat();
    let begun = frame(kind::HEADERS, 0, 1, b"\x82");
    let floods = [
        ("settings", frame(kind::SETTINGS, 0, 0, &[]).repeat(2_000)),
        ("pings", frame(kind::PING, 0, 0, &[0; 8]).repeat(2_000)),
        (
            "answers to pings",
            frame(kind::PING, 1, 0, &[0; 8]).repeat(2_000),
        ),
        (
            "priorities",
            frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 9, 9]).repeat(2_000),
        ),
        ("unknown frames", frame(99, 0, 0, &[0; 8]).repeat(2_000)),
        (
            "windows",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).repeat(2_000),
        ),
        (
            "empty data",
            [one, frame(kind::DATA, 0, 1, &[]).repeat(2_000)].concat(),
        ),
        ("rapid resets", odd(3_000).flat_map(reset).collect()),
        (
            "resets of what was answered",
            odd(3_000).flat_map(answered_and_reset).collect(),
        ),
        ("broken requests", odd(3_000).flat_map(broken).collect()),
        (
            "empty continuations",
            [
                begun.clone(),
                frame(kind::CONTINUATION, 0, 1, &[]).repeat(100),
            ]
            .concat(),
        ),
        (
            "long continuations",
            [
                begun,
                frame(kind::CONTINUATION, 0, 1, &[0; 16_000]).repeat(5),
            ]
            .concat(),
        ),
    ];
    for (name, bytes) in floods {
        let (end, totals) = end_of(bytes);
        let code = end.as_ref().map(|end| end.0);
        assert_eq!(code, Some(code::ENHANCE_YOUR_CALM), "{name}: {end:?}");
        assert_eq!(totals.requests, totals.answered + totals.aborted, "{name}");
        assert_eq!(totals.open(), 0, "{name}");
    }
}

#[test]
fn a_busy_client_is_no_flood() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        peer.begin(&[], &[]);
        for number in 0..5_000_u32 {
            let stream = number * 2 + 1;
            let window = frame(kind::WINDOW_UPDATE, 0, stream, &[0, 0, 0, 9]);
            let more = frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]);
            peer.post(&[get(stream, "/hello"), window, more].concat());
            assert_eq!(peer.answer(stream).await.body, b"hello");
        }
        true
    });
    assert!(came && totals.answered == 5_000);
}

/// What names streams or sizes that are not as they must be.
fn broken_streams_and_settings() -> Vec<(Vec<u8>, u32)> {
    vec![
        (get(2, "/hello"), code::PROTOCOL_ERROR),
        (get(0, "/hello"), code::PROTOCOL_ERROR),
        (
            [get(5, "/hello"), get(3, "/hello")].concat(),
            code::PROTOCOL_ERROR,
        ),
        (
            [get(1, "/hello"), get(1, "/hello")].concat(),
            code::STREAM_CLOSED,
        ),
        (frame(kind::DATA, 0, 1, b"x"), code::PROTOCOL_ERROR),
        (frame(kind::RST_STREAM, 0, 1, &[0; 4]), code::PROTOCOL_ERROR),
        (
            frame(kind::RST_STREAM, 0, 1, &[0; 3]),
            code::FRAME_SIZE_ERROR,
        ),
        (
            frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
            code::PROTOCOL_ERROR,
        ),
        (
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            frame(kind::SETTINGS, 0, 0, &setting(4, 1 << 31)),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            frame(kind::SETTINGS, 0, 0, &setting(5, 1)),
            code::PROTOCOL_ERROR,
        ),
        (
            frame(kind::SETTINGS, 0, 0, &setting(2, 2)),
            code::PROTOCOL_ERROR,
        ),
        (
            frame(kind::SETTINGS, 0, 0, b"12345"),
            code::FRAME_SIZE_ERROR,
        ),
        (
            frame(kind::SETTINGS, flag::ACK, 0, b"123456"),
            code::FRAME_SIZE_ERROR,
        ),
        (frame(kind::SETTINGS, 0, 1, &[]), code::PROTOCOL_ERROR),
    ]
}

/// The rest of what ends a connection.
fn broken_frames() -> Vec<(Vec<u8>, u32)> {
    let headers = |flags: u8, stream: u32, block: &[u8]| frame(kind::HEADERS, flags, stream, block);
    vec![
        (frame(kind::PING, 0, 0, b"1234567"), code::FRAME_SIZE_ERROR),
        (frame(kind::PING, 0, 1, b"12345678"), code::PROTOCOL_ERROR),
        (frame(kind::GOAWAY, 0, 1, &[0; 8]), code::PROTOCOL_ERROR),
        (frame(kind::GOAWAY, 0, 0, &[0; 7]), code::FRAME_SIZE_ERROR),
        (
            frame(kind::PUSH_PROMISE, 4, 1, &[0; 4]),
            code::PROTOCOL_ERROR,
        ),
        (
            frame(kind::CONTINUATION, 4, 1, b"\x82"),
            code::PROTOCOL_ERROR,
        ),
        (
            [headers(0, 1, b"\x82"), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            code::PROTOCOL_ERROR,
        ),
        (headers(5, 1, b"\xbe"), code::COMPRESSION_ERROR),
        (
            headers(5 | flag::PADDED, 1, b"\x09\x82"),
            code::PROTOCOL_ERROR,
        ),
        (
            headers(5 | flag::PRIORITY, 1, b"\0\0\0\x01\x09\x82"),
            code::PROTOCOL_ERROR,
        ),
        (frame(kind::PRIORITY, 0, 1, &[0; 4]), code::FRAME_SIZE_ERROR),
        (frame(kind::PRIORITY, 0, 0, &[0; 5]), code::PROTOCOL_ERROR),
        (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], code::FRAME_SIZE_ERROR),
    ]
}

#[test]
fn a_client_that_breaks_a_rule_is_told_which() {
    let cases = broken_streams_and_settings()
        .into_iter()
        .chain(broken_frames());
    for (number, (bytes, expected)) in cases.enumerate() {
        let (end, _) = end_of(bytes);
        assert_eq!(
            end.as_ref().map(|end| end.0),
            Some(expected),
            "{number}: {end:?}"
        );
    }
    let (end, _) = tell(options(), async |mut peer: Peer| {
        peer.post(&[&PREFACE[..], &frame(kind::PING, 0, 0, &[0; 8])].concat());
        peer.end().await
    });
    assert_eq!(end.expect("an end").0, code::PROTOCOL_ERROR);
}

#[test]
fn a_stream_that_breaks_a_rule_ends_alone() {
    let head = |block: &[u8]| frame(kind::HEADERS, 5, 1, block);
    let data = |bytes: &[u8]| frame(kind::DATA, flag::END_STREAM, 1, bytes);
    let length = [("content-length", "3")];
    let cases = [
        (head(b"\x82"), code::PROTOCOL_ERROR),
        (
            head(&block("GET", "/hello", &[("X", "y")])),
            code::PROTOCOL_ERROR,
        ),
        (
            head(&block("GET", "/hello", &[("connection", "close")])),
            code::PROTOCOL_ERROR,
        ),
        (
            head(&block("GET", "/hello", &[(":path", "/")])),
            code::PROTOCOL_ERROR,
        ),
        (head(&block("POST", "/echo", &length)), code::PROTOCOL_ERROR),
        (
            [post(1, "/echo", &length), data(b"ab")].concat(),
            code::PROTOCOL_ERROR,
        ),
        (
            [post(1, "/echo", &length), data(b"abcd")].concat(),
            code::PROTOCOL_ERROR,
        ),
        (
            [
                post(1, "/echo", &[]),
                frame(kind::HEADERS, 4, 1, b"\0\x01a\x01b"),
            ]
            .concat(),
            code::PROTOCOL_ERROR,
        ),
        (
            [post(1, "/echo", &[]), head(b"\x82")].concat(),
            code::PROTOCOL_ERROR,
        ),
        ([get(1, "/stuck"), data(b"x")].concat(), code::STREAM_CLOSED),
        (
            [get(1, "/stuck"), frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4])].concat(),
            code::PROTOCOL_ERROR,
        ),
        (
            [
                get(1, "/stuck"),
                frame(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff]),
            ]
            .concat(),
            code::FLOW_CONTROL_ERROR,
        ),
    ];
    for (number, (bytes, expected)) in cases.into_iter().enumerate() {
        let (came, _) = tell(options(), async move |mut peer: Peer| {
            peer.begin(&[], &[bytes, get(3, "/hello")].concat());
            peer.answers(&[1, 3]).await
        });
        assert_eq!(came[0].reset, Some(expected), "{number}");
        assert_eq!(came[1].body, b"hello", "{number}");
    }
}

#[test]
fn what_passes_a_limit_is_answered_and_the_connection_goes_on() {
    let mut bomb = block("GET", "/hello", &[]);
    bomb.push(0x40);
    put_string(&mut bomb, b"x");
    put_string(&mut bomb, &[b'x'; 3_000]);
    bomb.extend([0xbe; 9_000]);
    let (came, totals) = tell(options(), async move |mut peer: Peer| {
        let requests = [
            frame(kind::HEADERS, 5, 1, &bomb),
            post(3, "/echo", &[("content-length", "99999999")]),
            frame(kind::HEADERS, 5, 5, &block("GET", &"/".repeat(9_000), &[])),
            // Data that was on its way.
            frame(kind::DATA, flag::END_STREAM, 3, b"ignored"),
            get(7, "/hello"),
        ];
        peer.begin(&[], &requests.concat());
        peer.answers(&[1, 3, 5, 7]).await
    });
    let statuses: Vec<_> = came.iter().map(Came::status).collect();
    assert_eq!(statuses, ["431", "413", "414", "200"]);
    assert_eq!((totals.refused, totals.answered), (3, 1));
}

#[test]
fn more_streams_than_were_allowed_are_refused() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        let many: Vec<u8> = (0..257)
            .flat_map(|number| get(number * 2 + 1, "/slow"))
            .collect();
        peer.begin(&[], &many);
        let refused = peer.answer(513).await.reset;
        (refused, peer.answer(1).await.body)
    });
    assert_eq!(came, (Some(code::REFUSED_STREAM), b"slow".to_vec()));
    assert_eq!(totals.requests, 256);
}

#[test]
fn a_reset_stream_drops_its_handler() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        let reset = frame(kind::RST_STREAM, 0, 1, &code::CANCEL.to_be_bytes());
        peer.begin(&[], &[get(1, "/stuck"), reset, get(3, "/hello")].concat());
        peer.answer(3).await.body
    });
    assert_eq!(came, b"hello");
    assert_eq!(
        (totals.requests, totals.answered, totals.aborted),
        (2, 1, 1)
    );
    assert_eq!(totals.streams_cancelled, 1);
}

#[test]
fn a_window_of_zero_for_ever_ends_the_stream_and_not_the_connection() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        peer.begin(
            &setting(4, 0),
            &[get(1, "/hello"), get(3, "/pieces")].concat(),
        );
        let began = peer.handle.now();
        let came = peer.answers(&[1, 3]).await;
        let after = peer.handle.now().since(began);
        peer.post(&frame(kind::SETTINGS, 0, 0, &setting(4, 1_000)));
        peer.post(&get(5, "/hello"));
        (
            came[0].reset,
            came[1].reset,
            after,
            peer.answer(5).await.body,
        )
    });
    let (one, two, after, hello) = came;
    assert_eq!(
        (one, two),
        (Some(code::INTERNAL_ERROR), Some(code::INTERNAL_ERROR))
    );
    assert!(
        (Nanos::from_secs(29)..Nanos::from_secs(61)).contains(&after),
        "{after}"
    );
    assert_eq!(hello, b"hello");
    assert_eq!((totals.answered, totals.aborted), (1, 2));
}

#[test]
fn what_comes_too_slowly_ends() {
    // A head that does not end, a frame that does not, and a preface that does not.
    for bytes in [
        frame(kind::HEADERS, 0, 1, b"\x82"),
        frame(kind::PING, 0, 0, &[0; 8])[..12].to_vec(),
    ] {
        let (came, _) = tell(options(), async move |mut peer: Peer| {
            peer.begin(&[], &bytes);
            let began = peer.handle.now();
            let end = peer.end().await;
            (end.map(|end| end.0), peer.handle.now().since(began))
        });
        assert_eq!(came.0, Some(code::ENHANCE_YOUR_CALM));
        assert!(came.1 < Nanos::from_secs(23), "{}", came.1);
    }
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        peer.begin(&[], &post(1, "/echo", &[]));
        let came = peer.answer(1).await;
        (came.status().to_owned(), came.reset)
    });
    assert_eq!(came.0, "408");
    assert_eq!(totals.refused, 1);
    // A connection at rest.
    let (came, _) = tell(options(), async |mut peer: Peer| {
        peer.begin(&[], &get(1, "/hello"));
        let end = peer.end().await;
        (end.map(|end| end.0), peer.handle.now())
    });
    assert_eq!(came.0, Some(code::NO_ERROR));
    assert!(came.1 > Instant::ZERO + Nanos::from_secs(74));
}

#[test]
fn settings_at_the_ends_of_their_ranges_are_right() {
    let (status, _) = tell(options(), async |mut peer: Peer| {
        let ends = [(2, 1), (4, (1 << 31) - 1), (5, 1 << 14), (5, (1 << 24) - 1)];
        let settings = ends.map(|(number, value)| setting(number, value));
        peer.begin(&settings.concat(), &get(1, "/hello"));
        peer.answer(1).await.status().to_owned()
    });
    assert_eq!(status, "200");
}

#[test]
fn a_stop_answers_what_has_come_and_says_so() {
    let (came, totals) = tell(options(), async |mut peer: Peer| {
        peer.begin(&[], &get(1, "/slow"));
        peer.handle.sleep(Nanos::from_millis(10)).await;
        peer.stop.send(()).expect("one stop");
        peer.handle.sleep(Nanos::from_millis(10)).await;
        // On its way.
        peer.post(&get(3, "/hello"));
        let mut lasts = Vec::new();
        let mut bodies = Vec::new();
        while let Some(frame) = peer.next().await {
            match frame.head.kind {
                kind::GOAWAY => lasts.push(four(&frame.payload[..4])),
                kind::DATA => bodies.push(frame.payload),
                _ => {}
            }
        }
        (lasts, bodies)
    });
    let bodies = vec![b"hello".to_vec(), b"slow".to_vec()];
    assert_eq!(came, (vec![(1 << 31) - 1, 3], bodies));
    assert_eq!((totals.answered, totals.aborted), (2, 0));
}

/// What a client sends that does as `random` says, and how many requests are in it: what a rule forbids as well.
fn any_frames(random: &mut Random) -> (Vec<u8>, u64) {
    let mut below = |limit: u64| random.below(limit);
    let settings = setting(4, below(70_000) as u32);
    let mut bytes = [&PREFACE[..], &frame(kind::SETTINGS, 0, 0, &settings)].concat();
    let (mut stream, mut requests) = (1, 0);
    for _ in 0..below(40) {
        let open = 1 + 2 * below(8) as u32;
        let paths = ["/hello", "/slow", "/pieces", "/short", "/none", "/silent"];
        match below(12) {
            0..5 => {
                bytes.extend(get(stream, paths[below(6) as usize]));
                (stream, requests) = (stream + 2, requests + 1);
            }
            5..7 => {
                let body = vec![b'x'; below(3_000) as usize];
                bytes.extend(post(stream, "/echo", &[]));
                bytes.extend(frame(kind::DATA, below(2) as u8, stream, &body));
                (stream, requests) = (stream + 2, requests + 1);
            }
            7 => bytes.extend(frame(
                kind::RST_STREAM,
                0,
                open,
                &code::CANCEL.to_be_bytes(),
            )),
            8 => {
                let more = [0, 0, 200, below(256) as u8];
                bytes.extend(frame(kind::WINDOW_UPDATE, 0, below(2) as u32 * open, &more));
            }
            9 => bytes.extend(frame(kind::PING, 0, 0, &[0; 8])),
            10 => bytes.extend(frame(kind::DATA, below(2) as u8, open, &[0; 10])),
            _ if below(3) == 0 => {
                let payload: Vec<u8> = (0..below(30)).map(|_| below(256) as u8).collect();
                let (kind, flags) = (below(11) as u8, below(64) as u8);
                bytes.extend(frame(kind, flags, below(9) as u32, &payload));
            }
            _ => {}
        }
    }
    (bytes, requests)
}

/// Sends them in any parts and at any time, and reads what comes, or does not.
async fn anything(mut peer: Peer, mut random: Random) -> u64 {
    let (bytes, requests) = any_frames(&mut random);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let count = 1 + random.below(2_000) as usize;
        let (part, after) = rest.split_at(rest.len().min(count));
        rest = after;
        if peer.stream.post(part.to_vec()).is_err() {
            break;
        }
        if random.below(4) == 0 {
            let pause = Nanos::from_millis(random.below(300));
            peer.handle.sleep(pause).await;
        }
    }
    if random.below(3) > 0 {
        // Until the server ends the connection, or for a while.
        let (pause, handle) = (Nanos::from_secs(random.below(90)), peer.handle.clone());
        let reading = async { while peer.next().await.is_some() {} };
        let _ = handle.timeout(pause, reading).await;
    }
    requests
}

#[test]
fn whatever_a_client_does_every_request_is_accounted_for_and_the_connection_ends() {
    for seed in 0..prony_testkit::seeds(1_000, 10_000) {
        let (requests, totals) = tell(options(), async move |peer: Peer| {
            anything(peer, Random::new(seed)).await
        });
        assert_eq!(
            totals.requests,
            totals.answered + totals.aborted,
            "seed {seed}: {totals:?}"
        );
        assert!(
            totals.requests + totals.refused <= requests + 1,
            "seed {seed}: {totals:?}"
        );
        assert_eq!(
            totals.statuses.values().sum::<u64>(),
            totals.answered + totals.refused,
            "seed {seed}: {totals:?}"
        );
        assert_eq!(totals.open(), 0, "seed {seed}: {totals:?}");
    }
}

#[test]
fn without_http2_its_preface_is_refused() {
    let (came, totals) = tell(ServerOptions::default(), async |peer: Peer| {
        peer.begin(&[], &get(1, "/hello"));
        let bytes = peer.stream.recv().await.expect("an answer");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    assert!(came.starts_with("HTTP/1.1 505"), "{came}");
    assert_eq!((totals.http2_connections, totals.refused), (0, 1));
}

#[test]
fn a_preface_after_a_request_is_refused() {
    let (came, totals) = tell(options(), async |peer: Peer| {
        peer.post(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        peer.begin(&[], &get(1, "/hello"));
        let mut all = String::new();
        loop {
            match peer.stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => all.push_str(&String::from_utf8_lossy(&bytes)),
                _ => return all,
            }
        }
    });
    assert!(came.contains("HTTP/1.1 505"), "{came}");
    assert_eq!((totals.http2_connections, totals.answered), (0, 1));
}
