//! What a request costs the heap once a connection is under way: nothing, in HTTP/1.1 and in HTTP/2. A program of its
//! own, because the heap is everybody's; its client allocates nothing either.

use prony_engine::{Config, DriverChoice, Handle, ListenOptions, SendBuf, Stream};
use prony_http::{Handler, Header, Request, Response, Server, ServerOptions, Source};
use prony_wire::http2::{PREFACE, flag, kind, put_frame_head};

#[global_allocator]
static HEAP: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

/// Requests that are sent at once.
const BATCH: usize = 10;
const BATCHES: usize = 1_000;
/// Allocations in all of them that are nobody's doing of each request, such as the date's each second.
const ALLOWED: usize = 50;

struct Hello;

impl Handler for Hello {
    async fn handle(&self, _: &Request<'_>, response: &mut Response) {
        let kind = Header::new("content-type", b"text/plain");
        response.send(200, [kind], b"hello");
    }
}

/// All batches, each as it goes out. What is leaked lives as long as this program.
fn batches(one: impl Fn(u32, &mut Vec<u8>)) -> Vec<&'static [u8]> {
    let batch = |number: usize| -> &'static [u8] {
        let mut bytes = Vec::new();
        for place in 0..BATCH {
            one((number * BATCH + place) as u32, &mut bytes);
        }
        Vec::leak(bytes)
    };
    (0..2 * BATCHES).map(batch).collect()
}

/// Receives so many bytes.
async fn receive(stream: &Stream, bytes: usize) {
    let mut left = bytes;
    while left > 0 {
        let received = stream.recv().await.expect("an answer");
        assert!(!received.is_empty() && received.len() <= left);
        left -= received.len();
    }
}

/// Allocations of the second half of the batches, the first being there to warm up. `answer` is the size of one.
async fn allocations(stream: &Stream, batches: &[&'static [u8]], answer: usize) -> usize {
    let (first, second) = batches.split_at(BATCHES);
    for batch in first {
        stream.post(SendBuf::Static(batch)).expect("room");
        receive(stream, BATCH * answer).await;
    }
    let before = HEAP.stats().allocations;
    for batch in second {
        stream.post(SendBuf::Static(batch)).expect("room");
        receive(stream, BATCH * answer).await;
    }
    HEAP.stats().allocations - before
}

async fn http1(stream: Stream) -> usize {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let batches = batches(|_, out| out.extend_from_slice(request));
    stream.post(SendBuf::Static(request)).expect("room");
    let answer = stream.recv().await.expect("an answer").len();
    allocations(&stream, &batches, answer).await
}

async fn http2(stream: Stream) -> usize {
    let batches = batches(|number, out| {
        let block = b"\x82\x86\x84\x41\x01a";
        let flags = flag::END_HEADERS | flag::END_STREAM;
        put_frame_head(out, block.len(), kind::HEADERS, flags, 2 * number + 3);
        out.extend_from_slice(block);
    });
    let mut begin = PREFACE.to_vec();
    put_frame_head(&mut begin, 0, kind::SETTINGS, 0, 0);
    put_frame_head(&mut begin, 4, kind::WINDOW_UPDATE, 0, 0);
    begin.extend_from_slice(&1_000_000_000_u32.to_be_bytes());
    put_frame_head(&mut begin, 6, kind::HEADERS, 5, 1);
    begin.extend_from_slice(b"\x82\x86\x84\x41\x01a");
    stream.post(begin).expect("room");
    // Settings, a window and an acknowledgement, then the answer.
    let mut seen = Vec::new();
    while !seen.ends_with(b"hello") {
        seen.extend_from_slice(&stream.recv().await.expect("an answer"));
    }
    let control = (9 + 18) + (9 + 4) + 9;
    allocations(&stream, &batches, seen.len() - control).await
}

async fn measure(handle: Handle) -> (usize, usize) {
    let address = "127.0.0.1:0".parse().expect("an address");
    let listener = handle
        .listen(address, &ListenOptions::default())
        .expect("a port");
    let address = listener.local_addr();
    let options = ServerOptions {
        http2: true,
        ..ServerOptions::default()
    };
    let server = Server::new(&handle, options, Hello);
    let _serving = handle.spawn(server.run(Source::Listener(listener), std::future::pending()));
    let one = http1(handle.connect(address).await.expect("a connection")).await;
    let two = http2(handle.connect(address).await.expect("a connection")).await;
    (one, two)
}

#[test]
fn a_request_that_is_answered_at_once_allocates_nothing() {
    let config = Config {
        driver: DriverChoice::Epoll,
        ..Config::default()
    };
    let (http1, http2) = prony_engine::run(&config, measure).expect("a loop");
    assert!(
        http1 <= ALLOWED,
        "{http1} allocations for 10,000 requests of HTTP/1.1"
    );
    assert!(
        http2 <= ALLOWED,
        "{http2} allocations for 10,000 requests of HTTP/2"
    );
}
