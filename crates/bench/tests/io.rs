//! Every strategy against servers that answer well, badly, or not at all.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use prony_base::Nanos;
use prony_bench::io::{Buffers, IoDone, IoError, IoOrder, Strategy, Version, run};
use prony_engine::{Config, DriverChoice, Receive};
use proptest::prelude::*;
use rustix::net::sockopt::set_socket_linger;

/// What a server does with each connection after it has read the request.
#[derive(Clone)]
enum Answer {
    /// Sends these bytes in pieces of this size and closes.
    Bytes(Vec<u8>, usize),
    /// Sends these bytes, and nothing more until the client goes.
    Stall(Vec<u8>),
    /// Sends these bytes and resets the connection.
    Reset(Vec<u8>),
}

/// A server that answers `connections` connections so; it ends with them.
fn server(answer: Answer, connections: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(connections as usize).flatten() {
            let answer = answer.clone();
            thread::spawn(move || serve(stream, &answer));
        }
    });
    address
}

/// What the client does is for the client's side of the test to see.
fn serve(mut stream: TcpStream, answer: &Answer) {
    let mut request = Vec::new();
    let mut piece = [0; 512];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => request.extend_from_slice(&piece[..count]),
        }
    }
    match answer {
        Answer::Bytes(bytes, each) => {
            for piece in bytes.chunks(*each) {
                if stream.write_all(piece).is_err() {
                    return;
                }
            }
        }
        Answer::Stall(bytes) => {
            let _ = stream.write_all(bytes);
            let _ = stream.read(&mut piece);
        }
        Answer::Reset(bytes) => {
            let _ = stream.write_all(bytes);
            // Closing without lingering is a reset.
            set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
    }
}

fn ok(length: usize) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    bytes.extend((0..length).map(|index| index as u8));
    bytes
}

/// Whether this machine allows io_uring; said once where it does not.
fn ring_is_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let config = Config {
            driver: DriverChoice::Ring,
            ..Config::default()
        };
        let tried = prony_engine::run(&config, |_| async {});
        if let Err(error) = &tried {
            prony_testkit::skip_ring(&error.to_string());
        }
        tried.is_ok()
    })
}

fn order(address: SocketAddr, strategy: Strategy) -> IoOrder {
    let mut order = IoOrder::new(address);
    order.strategy = strategy;
    order.connections = 3;
    order
}

/// Every strategy that this machine allows, in each of its ways.
fn all_ways(address: SocketAddr) -> Vec<(String, IoOrder)> {
    let mut ways = Vec::new();
    for strategy in Strategy::ALL {
        let mut add = |name: &str, change: &dyn Fn(&mut IoOrder)| {
            let mut order = order(address, strategy);
            change(&mut order);
            ways.push((format!("{} {name}", strategy.name()), order));
        };
        add("plain", &|_| {});
        add("discard", &|order| order.discard = true);
        add("spin", &|order| order.spin = true);
        if strategy == Strategy::Ring {
            add("one-shot", &|order| order.receive = Receive::OneShot);
            add("few small buffers", &|order| {
                (order.buffer_bytes, order.ring_buffers) = (100, 2);
            });
        } else {
            add("one byte", &|order| order.buffer_bytes = 1);
            add("odd", &|order| order.buffer_bytes = 4_097);
            add("vectored", &|order| {
                (order.buffer_bytes, order.vectored) = (33, 16);
            });
            add("own", &|order| order.buffers = Buffers::Own);
            add("drained", &|order| {
                // Threads have nothing to go on to.
                (order.buffer_bytes, order.drains) = (100, true);
            });
        }
    }
    if !ring_is_allowed() {
        ways.retain(|(_, order)| order.strategy != Strategy::Ring);
    }
    ways
}

fn done(name: &str, order: &IoOrder) -> IoDone {
    run(order, &mut |_| {}).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The kind of all failures of one run over all connections.
fn failure(name: &str, order: &IoOrder) -> (String, String) {
    let done = done(name, order);
    let client = done.line.client.unwrap();
    assert_eq!(
        (done.line.count, client.failed, client.in_flight),
        (0, u64::from(order.connections), Some(0)),
        "{name}: {:?}",
        done.failures
    );
    let kinds: Vec<_> = client.failed_by_kind.into_keys().collect();
    (kinds.join(" "), done.failures.join("\n"))
}

#[test]
fn every_strategy_counts_every_byte_of_every_connection() {
    for length in [0, 1, 5_000, 300_000] {
        for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
            if length > 5_000 && order.buffer_bytes == 1 {
                continue;
            }
            order.address = server(Answer::Bytes(ok(length), 1 << 20), 6);
            order.iterations = 2;
            order.payload_bytes = Some(length as u64);
            let done = done(&name, &order);
            let line = &done.line;
            assert_eq!(done.failures, [""; 0], "{name}, {length} bytes");
            assert_eq!((line.count, line.bytes), (6, 6 * length as u64), "{name}");
            let client = line.client.as_ref().unwrap();
            assert_eq!((client.connections, client.failed), (3, 0));
            assert_eq!(client.latency.as_ref().unwrap().count, 6);
            for figure in [
                "socket_ns",
                "setup_ns",
                "connect_ns",
                "first_byte_ns",
                "download_ns",
                "rate_bytes_per_s",
                "stall_ns",
            ] {
                assert_eq!(line.figures[figure].count, 6, "{name}: {figure}");
            }
            assert_eq!(line.figures["run_ns"].count, 2);
            assert!(line.tallies["syscalls"] > 0 || order.spin, "{name}");
            assert!(line.tallies["peak_rss_bytes"] > 1 << 20);
            if !order.discard {
                assert_eq!(line.tallies["discarded_bytes"], 0);
            }
        }
    }
}

#[test]
fn pieces_and_versions_make_no_difference() {
    let mut without_length = b"HTTP/1.0 200 OK\r\n\r\n".to_vec();
    without_length.resize(without_length.len() + 2_000, b'x');
    for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
        order.address = server(Answer::Bytes(ok(2_000), 7), 3);
        let line = done(&name, &order).line;
        assert_eq!((line.count, line.bytes), (3, 6_000), "{name}");
        order.version = Version::Http10;
        order.address = server(Answer::Bytes(without_length.clone(), 999), 3);
        let line = done(&name, &order).line;
        assert_eq!((line.count, line.bytes), (3, 6_000), "{name}");
    }
}

#[test]
fn each_wrong_answer_fails_each_connection_by_name() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found";
    let mut short = ok(2_000);
    short.truncate(short.len() - 1);
    let mut long = ok(2_000);
    long.push(b'x');
    let cases: [(&str, &[u8], &str); 6] = [
        ("chunked", chunked, "the answer is chunked"),
        ("status", missing, "status 404, not 200"),
        ("short", &short, "after 1999 of 2000 bytes"),
        ("long", &long, "more than the 2000 bytes"),
        ("closed", b"HTTP/1.1 200 OK\r\nConte", "before it answered"),
        ("protocol", b"\0\0\0\0\r\n\r\n", "breaks a rule of HTTP"),
    ];
    for (kind, bytes, words) in cases {
        for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
            // A byte too many is seen only where it comes with the last one of the body.
            if kind == "long" && order.buffer_bytes < 4_096 {
                continue;
            }
            order.address = server(Answer::Bytes(bytes.to_vec(), 1 << 20), 3);
            let (kinds, said) = failure(&name, &order);
            assert_eq!(kinds, kind, "{name}: {said}");
            assert!(said.contains(words), "{name}: {said}");
        }
    }
}

#[test]
fn a_byte_too_many_was_not_seen_behind_what_is_thrown_away() {
    // One piece, which loopback delivers as one.
    let mut long = ok(8_000);
    long.push(b'x');
    for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
        if order.discard {
            order.address = server(Answer::Bytes(long.clone(), 1 << 20), 3);
            order.buffer_bytes = 100;
            assert_eq!(failure(&name, &order).0, "long", "{name}");
        }
    }
}

#[test]
fn another_length_than_expected_is_a_failure() {
    for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
        order.address = server(Answer::Bytes(ok(10), 100), 3);
        order.payload_bytes = Some(11);
        let (kinds, said) = failure(&name, &order);
        assert_eq!(kinds, "length", "{name}");
        assert!(
            said.contains("Content-Length is 10, but 11 bytes were expected"),
            "{said}"
        );
    }
}

#[test]
fn a_server_that_stops_is_a_time_out_that_says_where() {
    let mut begun = ok(1_000);
    begun.truncate(500);
    for (bytes, words) in [
        (Vec::new(), "waiting for the first byte"),
        (begun, "receiving"),
    ] {
        // At once, so that each may have the time in which a busy machine answers.
        thread::scope(|scope| {
            for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
                order.address = server(Answer::Stall(bytes.clone()), 3);
                order.timeout = Nanos::from_millis(1_500);
                scope.spawn(move || {
                    let (kinds, said) = failure(&name, &order);
                    assert_eq!(kinds, "timeout", "{name}: {said}");
                    assert!(
                        said.contains(words) && said.contains("nothing happened for 1.5"),
                        "{name}: {said}"
                    );
                });
            }
        });
    }
}

#[test]
fn refused_and_reset_are_told_apart() {
    for (name, mut order) in all_ways("127.0.0.1:1".parse().unwrap()) {
        order.address = ([127, 0, 0, 1], prony_testkit::free_port()).into();
        let (kinds, said) = failure(&name, &order);
        assert_eq!(kinds, "refused", "{name}");
        assert!(said.contains("connecting: "), "{name}: {said}");

        order.address = server(Answer::Reset(Vec::new()), 3);
        let (kinds, said) = failure(&name, &order);
        assert_eq!(kinds, "reset", "{name}: {said}");
    }
}

#[test]
fn one_failure_leaves_the_others_alone() {
    // The server ends after two connections; the third is reset.
    for strategy in Strategy::ALL {
        let mut order = order(server(Answer::Bytes(ok(5_000), 100), 2), strategy);
        if strategy == Strategy::Ring && !ring_is_allowed() {
            continue;
        }
        order.timeout = Nanos::from_secs(60);
        let done = done(strategy.name(), &order);
        let client = done.line.client.unwrap();
        assert_eq!((done.line.count, client.failed), (2, 1), "{strategy:?}");
        assert_eq!(done.line.bytes, 10_000);
        assert_eq!(done.line.figures["download_ns"].count, 2);
    }
}

#[test]
fn what_cannot_be_done_together_is_refused() {
    let address = "127.0.0.1:1".parse().unwrap();
    let refused = |strategy, change: &dyn Fn(&mut IoOrder)| {
        let mut order = order(address, strategy);
        change(&mut order);
        match run(&order, &mut |_| {}) {
            Err(IoError::Order(said)) => said,
            other => panic!("{other:?}"),
        }
    };
    let vectored = refused(Strategy::Ring, &|order| order.vectored = 2);
    assert!(vectored.contains("no vectored reads"), "{vectored}");
    let own = refused(Strategy::Ring, &|order| order.buffers = Buffers::Own);
    assert!(own.contains("pool"), "{own}");
    let both = refused(Strategy::Poll, &|order| {
        (order.discard, order.vectored) = (true, 2);
    });
    assert!(both.contains("discard"), "{both}");
    for change in [
        (|order: &mut IoOrder| order.connections = 0) as fn(&mut IoOrder),
        |order| order.iterations = 0,
        |order| order.buffer_bytes = 0,
        |order| order.buffer_bytes = 1 << 40,
        |order| order.vectored = 17,
        |order| order.timeout = Nanos::ZERO,
        |order| order.path = "/a b".to_owned(),
    ] {
        refused(Strategy::Poll, &change);
    }
    refused(Strategy::Ring, &|order| order.buffer_bytes = 63);
    refused(Strategy::Ring, &|order| order.ring_buffers = 0);
}

#[test]
fn memory_is_looked_at_while_a_run_goes_on() {
    let mut order = order(server(Answer::Stall(Vec::new()), 3), Strategy::Poll);
    order.timeout = Nanos::from_secs(2);
    let line = done("poll", &order).line;
    let seen = &line.figures["pss_sample_bytes"];
    assert!(seen.count >= 1 && seen.min > 4096.0, "{seen:?}");
    assert_eq!(line.figures["pss_bytes"].count, 1);
    assert!(line.tallies["sampler_cpu_ns"] > 0);

    order.memory = false;
    order.timeout = Nanos::from_millis(100);
    order.address = server(Answer::Stall(Vec::new()), 3);
    let line = done("poll", &order).line;
    assert!(!line.figures.contains_key("pss_bytes"));
}

#[test]
fn the_scheduler_is_recorded_in_a_table() {
    let file = std::env::temp_dir().join(format!("prony-schedule-{}.tsv", std::process::id()));
    let mut order = order(server(Answer::Bytes(ok(10), 100), 3), Strategy::Threads);
    order.schedule = Some(file.clone());
    let notes = done("threads", &order).notes.join("\n");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(text.starts_with("time_ns\tthread\tname\t"), "{text}");
    assert!(
        text.lines().count() > 1 && notes.contains("lines from /proc"),
        "{notes}"
    );

    order.schedule = Some("/nowhere/at/all".into());
    let said = run(&order, &mut |_| {}).unwrap_err().to_string();
    assert!(said.contains("cannot write /nowhere/at/all"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn bytes_depend_neither_on_strategy_nor_on_buffers(
        length in 0_usize..60_000,
        buffer_bytes in 64_usize..9_000,
        vectored in 1_u32..16,
        piece in 50_usize..5_000,
        own: bool,
        discard: bool,
    ) {
        for strategy in Strategy::ALL {
            let ring = strategy == Strategy::Ring;
            if ring && !ring_is_allowed() {
                continue;
            }
            let mut order = order(server(Answer::Bytes(ok(length), piece), 3), strategy);
            order.buffer_bytes = buffer_bytes;
            order.discard = discard;
            order.vectored = if ring || discard { 1 } else { vectored };
            order.buffers = if own && !ring { Buffers::Own } else { Buffers::Shared };
            order.payload_bytes = Some(length as u64);
            let done = done(strategy.name(), &order);
            prop_assert_eq!((done.line.count, done.line.bytes), (3, 3 * length as u64), "{:?}", done.failures);
        }
    }
}
