//! What reading and writing heads costs: `cargo bench -p prony-wire`.
//!
//! Without `--bench`, as `cargo test` runs it, each case runs a few times only,
//! so that it cannot rot. Times are told, never asserted.

use std::hint::black_box;
use std::time::Instant;

use prony_wire::{
    DateCache, Framing, Limits, Method, RequestEvent, RequestReader, ResponseReader, Version,
    encode,
};

const REQUEST: &[u8] = b"GET /payload/1024 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\
    User-Agent: prony/0.1\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
    Connection: keep-alive\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nserver: prony\r\n\
    date: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-type: application/json\r\n\
    content-length: 14\r\n\r\n{\"sequence\":1}";

/// Measurements of each case, of which the least counts.
const BATCHES: usize = 100;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let rounds = if full { 20_000 } else { 1 };
    let large = large_request();
    let heads = [("request", REQUEST), ("large request", &large[..])];
    for (name, head) in heads {
        let mut reader = RequestReader::new(Limits::for_requests());
        report(name, head.len(), rounds, || {
            read_requests(&mut reader, head)
        });
        report(&format!("{name}, whole"), head.len(), rounds, || {
            let request = reader.next_whole(black_box(head)).expect("a whole request");
            request.used + request.head.target.len()
        });
        report(
            &format!("{name}, httparse alone"),
            head.len(),
            rounds,
            || httparse_alone(head),
        );
    }
    let mut reader = RequestReader::new(Limits::for_requests());
    report("request in two pieces", REQUEST.len(), rounds, || {
        read_requests(&mut reader, &REQUEST[..70]) + read_requests(&mut reader, &REQUEST[70..])
    });
    let mut reader = ResponseReader::new(Limits::for_responses());
    report("response with body", RESPONSE.len(), rounds, || {
        read_response(&mut reader, RESPONSE)
    });
    let (mut out, mut dates) = (Vec::new(), DateCache::default());
    report("write a response head", 120, rounds, || {
        write_response(&mut out, &mut dates)
    });
}

/// Two dozen headers, as a browser sends.
fn large_request() -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    for number in 0..24 {
        head.extend_from_slice(format!("x-header-{number}: {}\r\n", "v".repeat(40)).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The least of several batches, because other programs can only add to it.
fn report(name: &str, bytes: usize, rounds: u32, mut work: impl FnMut() -> usize) {
    let mut least = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = Instant::now();
        let sum: usize = (0..rounds).map(|_| black_box(work())).sum();
        assert!(sum >= rounds as usize, "{name} did nothing");
        let each = start.elapsed().as_nanos() as f64 / f64::from(rounds);
        least = least.min(each);
    }
    println!("{name:34} {bytes:5} bytes {least:8.1} ns");
}

/// Pulls all events; the count of those, and of a known header.
fn read_requests(reader: &mut RequestReader, mut rest: &[u8]) -> usize {
    let mut count = 1;
    while let (used, Some(event)) = reader.next(black_box(rest)).expect("a fine request") {
        rest = &rest[used..];
        count += match event {
            RequestEvent::Head(head) => head.target.len(),
            _ => 1,
        };
    }
    count
}

fn read_response(reader: &mut ResponseReader, mut rest: &[u8]) -> usize {
    reader.expect(&Method::Get).expect("room for one");
    let mut count = 0;
    while let (used, Some(_)) = reader.next(black_box(rest)).expect("a fine response") {
        rest = &rest[used..];
        count += 1;
    }
    count
}

fn httparse_alone(head: &[u8]) -> usize {
    let mut table = [const { std::mem::MaybeUninit::uninit() }; 128];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(black_box(head), &mut table);
    parsed.expect("a fine request").unwrap() + request.headers.len()
}

fn write_response(out: &mut Vec<u8>, dates: &mut DateCache) -> usize {
    out.clear();
    encode::response(out, Version::Http11, 200)
        .header("date", dates.at(784_111_777))
        .header("server", "prony")
        .header("content-type", "application/json")
        .finish(Framing::Length(black_box(14)))
        .expect("a fine response");
    out.len()
}
