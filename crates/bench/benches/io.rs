//! Strategies of I/O beside each other, taking turns.
//!
//! `cargo bench -p prony-bench --bench io -- ADDRESS PORT CONNECTIONS ROUNDS` asks a server
//! that gives `/testpayload`; pin it and this to different cores. It prints the best of each
//! way, and what the ring and throwing away come to beside `poll` with 64 KiB. Without an
//! address (as in a test run) it downloads a little from a thread of its own, to show that
//! it still works.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use prony_base::Nanos;
use prony_bench::io::{IoOrder, Strategy, run};

const GIB: f64 = (1_u64 << 30) as f64;

/// A name, and what it changes of the order.
type Way = (&'static str, fn(&mut IoOrder));

const WAYS: [Way; 9] = [
    ("poll", |order| order.strategy = Strategy::Poll),
    ("epoll", |order| order.strategy = Strategy::Epoll),
    ("threads", |order| order.strategy = Strategy::Threads),
    ("ring", |order| order.strategy = Strategy::Ring),
    ("ring 8x128K", |order| {
        order.strategy = Strategy::Ring;
        (order.buffer_bytes, order.ring_buffers) = (128 << 10, 8);
    }),
    ("ring 4x256K", |order| {
        order.strategy = Strategy::Ring;
        (order.buffer_bytes, order.ring_buffers) = (256 << 10, 4);
    }),
    ("ring 2x1M", |order| {
        order.strategy = Strategy::Ring;
        (order.buffer_bytes, order.ring_buffers) = (1 << 20, 2);
    }),
    ("poll, discard", |order| {
        (order.strategy, order.discard) = (Strategy::Poll, true);
    }),
    ("ring, discard", |order| {
        (order.strategy, order.discard) = (Strategy::Ring, true);
    }),
];

#[derive(Clone, Copy, Default)]
struct Best {
    bytes_per_s: f64,
    /// Of the cheapest run.
    cpu_s_per_gib: f64,
    pss_bytes: f64,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [address, port, connections, rounds, ..] if !address.starts_with('-') => {
            let address = format!("{address}:{port}").parse().expect("an address");
            let number = |word: &str| word.parse::<u32>().expect("a number");
            measure(address, number(connections), number(rounds));
        }
        _ => measure(small_server(), 2, 1),
    }
}

fn measure(address: SocketAddr, connections: u32, rounds: u32) {
    let mut best = [Best::default(); WAYS.len()];
    for _ in 0..rounds {
        for (way, best) in WAYS.iter().zip(&mut best) {
            once(address, connections, way, best);
        }
    }
    let [poll, ..] = best;
    for ((name, _), best) in WAYS.iter().zip(best) {
        println!(
            "{name:<14} {:>7.0} MiB/s ({:.2}), {:.3} CPU s/GiB ({:.2}), {:.1} MiB",
            best.bytes_per_s / f64::from(1 << 20),
            best.bytes_per_s / poll.bytes_per_s,
            best.cpu_s_per_gib,
            best.cpu_s_per_gib / poll.cpu_s_per_gib,
            best.pss_bytes / f64::from(1 << 20),
        );
    }
}

fn once(address: SocketAddr, connections: u32, (name, change): &Way, best: &mut Best) {
    let mut order = IoOrder::new(address);
    order.connections = connections;
    order.timeout = Nanos::from_secs(60);
    change(&mut order);
    let done = match run(&order, &mut |_| {}) {
        Ok(done) => done,
        // Where io_uring is not allowed, the others are still of use.
        Err(error) => return println!("{name}: {error}"),
    };
    assert!(done.failures.is_empty(), "{name}: {:?}", done.failures);
    let one = done.runs[0];
    let seconds = one.length.as_secs_f64();
    let rate = one.bytes as f64 / seconds;
    let cost = one.cpu.as_secs_f64() / (one.bytes as f64 / GIB);
    best.bytes_per_s = best.bytes_per_s.max(rate);
    if best.cpu_s_per_gib == 0.0 || cost < best.cpu_s_per_gib {
        best.cpu_s_per_gib = cost;
    }
    best.pss_bytes = best.pss_bytes.max(one.pss_bytes.unwrap_or(0.0));
}

/// 100 KiB for everyone who asks.
fn small_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 102400\r\n\r\n".to_vec();
            answer.resize(answer.len() + 102_400, b'x');
            // A client that has gone has what it wanted.
            let _ = stream.write_all(&answer);
        }
    });
    address
}
