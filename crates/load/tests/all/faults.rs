//! Whatever a server does wrong, a run ends in its time, says what went wrong, and counts each request once (which
//! every report is checked for).

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use prony_base::Nanos;
use prony_load::{LoadError, LoadSpec, Observer, run};
use prony_record::{LatencyOrigin, LoadReport, NEVER, Pace};

use crate::server::{HELLO, Silent, Then, answer, on_each_driver, serve, spec};

/// A run of so many requests on one connection.
fn few(requests: u64, behaviour: fn(u64, &mut TcpStream) -> Then, driver: &str) -> LoadReport {
    few_within(60_000, requests, behaviour, driver)
}

/// The same, where each answer has so many milliseconds.
fn few_within(
    timeout_ms: u64,
    requests: u64,
    behaviour: fn(u64, &mut TcpStream) -> Then,
    driver: &str,
) -> LoadReport {
    let server = serve(behaviour);
    let few = LoadSpec {
        threads: 1,
        connections: 1,
        warmup_ns: 0,
        duration_ns: u64::MAX,
        requests_max: Some(requests),
        timeout_ns: Nanos::from_millis(timeout_ms).0,
        ..spec(server.address, driver)
    };
    let report = run(&few, &mut Silent).unwrap().report;
    assert_eq!(report.counts.sent, server.requests());
    assert_eq!(report.counts.sent, requests);
    report
}

#[test]
fn an_answer_that_breaks_off_after_any_byte_is_one_failure_each() {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    on_each_driver(|driver| {
        BYTES.store(0, SeqCst);
        let report = few(
            HELLO.len() as u64,
            |_, stream| {
                let _ = stream.write_all(&HELLO[..BYTES.fetch_add(1, SeqCst)]);
                Then::Close
            },
            driver,
        );
        let failed = report.counts.failed;
        assert_eq!(
            failed.closed + failed.reset,
            HELLO.len() as u64,
            "{failed:?}"
        );
        assert_eq!(
            (report.latency_ns.infinite, report.latency_ns.p50),
            (HELLO.len() as u64, NEVER)
        );
    });
}

#[test]
fn a_server_that_answers_twice_loses_its_connection_and_no_request() {
    on_each_driver(|driver| {
        let report = few(
            20,
            |_, stream| answer(stream, b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\n"),
            driver,
        );
        // The second answer comes with the first, or after it while nothing is asked, or is taken for that of the
        // next request: never as a request more than were sent.
        assert_eq!(report.completed + report.counts.failed.total(), 20);
        assert!(report.connections_stray > 0, "{report:?}");
    });
}

#[test]
fn endless_headers_are_refused_at_a_limit() {
    on_each_driver(|driver| {
        let report = few(
            1,
            |_, stream| {
                let line = b"x: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n";
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
                for _ in 0..100_000_000 / line.len() {
                    if stream.write_all(line).is_err() {
                        break;
                    }
                }
                Then::Close
            },
            driver,
        );
        assert_eq!(report.counts.failed.protocol, 1, "{report:?}");
        assert!(report.received_bytes < 8 << 20, "{}", report.received_bytes);
    });
}

#[test]
fn bad_chunks_and_lengths_are_failures() {
    const BAD_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    const SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello";
    const LONG: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nHello";
    on_each_driver(|driver| {
        let bad = few(5, |_, stream| answer(stream, BAD_CHUNK), driver);
        assert_eq!(bad.counts.failed.protocol, 5);
        let short = few_within(500, 1, |_, stream| answer(stream, SHORT), driver);
        assert_eq!(short.counts.failed.timeout, 1, "the connection stays open");
        let cut = few(
            5,
            |_, stream| {
                let _ = stream.write_all(SHORT);
                Then::Close
            },
            driver,
        );
        assert_eq!(cut.counts.failed.closed + cut.counts.failed.reset, 5);
        let long = few(5, |_, stream| answer(stream, LONG), driver);
        // The answer was whole: what comes after it is nobody's.
        assert_eq!((long.completed, long.connections_stray), (5, 5));
    });
}

#[test]
fn an_answer_that_comes_byte_by_byte_is_given_the_time_of_one_answer() {
    on_each_driver(|driver| {
        let report = few_within(
            500,
            1,
            |_, stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n");
                // Byte by byte it takes longer, and ends when the client has closed it.
                while stream.write_all(b"x").is_ok() {}
                Then::Close
            },
            driver,
        );
        assert_eq!(report.counts.failed.timeout, 1, "{report:?}");
    });
}

#[test]
fn a_server_that_speaks_before_it_is_asked_is_not_taken_for_an_answer() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| {
            // The second one belongs to a request that has not been sent: users think.
            let _ = stream.write_all(HELLO);
            answer(stream, HELLO)
        });
        let thinking = LoadSpec {
            threads: 1,
            connections: 1,
            warmup_ns: 0,
            duration_ns: u64::MAX,
            requests_max: Some(2),
            // For as long the server has time to speak, however busy the machine is.
            pace: Pace::Closed {
                think_ns: Nanos::from_secs(1).0,
            },
            ..spec(server.address, driver)
        };
        let report = run(&thinking, &mut Silent).unwrap().report;
        assert_eq!(report.completed, 2, "{report:?}");
        // The run ends with its last answer, and may not wait for what comes after that.
        assert!((1..=2).contains(&report.connections_stray), "{report:?}");
        assert_eq!(report.counts.sent, server.requests());
    });
}

#[test]
fn a_name_that_is_not_found_is_told_before_anything_runs() {
    let url = prony_load::prepare::LoadUrl::parse("http://no-such-name.invalid/").unwrap();
    let said = url.resolve().unwrap_err().to_string();
    assert!(said.contains("no-such-name.invalid"), "{said}");
}

#[test]
fn a_rate_that_nobody_can_send_says_what_was_reached() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| answer(stream, HELLO));
        let impossible = LoadSpec {
            threads: 1,
            warmup_ns: 0,
            pace: Pace::Constant { rate_per_s: 5e6 },
            latency_from: LatencyOrigin::Intended,
            queue_max: 1_000,
            ..spec(server.address, driver)
        };
        let report = run(&impossible, &mut Silent).unwrap().report;
        let arrivals = report.arrivals.unwrap();
        assert_eq!(arrivals.in_window, 1_500_000);
        assert!(
            arrivals.overloaded || arrivals.generator_short,
            "{arrivals:?}"
        );
        assert!(
            arrivals.dropped > 0 && arrivals.waiting_max <= 1_000,
            "{arrivals:?}"
        );
        assert_eq!(report.counts.sent, server.requests());
        assert_eq!(report.latency_ns.p99, NEVER);
    });
}

#[test]
fn a_pace_without_sense_is_refused() {
    let nobody = "127.0.0.1:9".parse().unwrap();
    let none = LoadSpec {
        pace: Pace::Constant { rate_per_s: -1.0 },
        ..spec(nobody, "auto")
    };
    let error = run(&none, &mut Silent).unwrap_err();
    assert!(
        matches!(&error, LoadError::Spec(text) if text.contains("-1 is no rate")),
        "{error}"
    );
}

#[test]
fn a_rate_can_be_changed_while_it_runs() {
    struct Faster;
    impl Observer for Faster {
        fn rate(&mut self) -> Option<f64> {
            Some(2_000.0)
        }
    }
    let server = serve(|_, stream| answer(stream, HELLO));
    let slow = LoadSpec {
        warmup_ns: 0,
        duration_ns: Nanos::from_secs(2).0,
        pace: Pace::Constant { rate_per_s: 1.0 },
        latency_from: LatencyOrigin::Intended,
        ..spec(server.address, "auto")
    };
    let report = run(&slow, &mut Faster).unwrap().report;
    let arrivals = report.arrivals.unwrap();
    // From the first look on, a quarter of a second after the start or later.
    assert!((100..=3_600).contains(&arrivals.in_window), "{arrivals:?}");
    // On a busy machine some may wait when the window ends.
    let ended = arrivals.sent + arrivals.waiting + arrivals.dropped;
    assert_eq!(arrivals.scheduled, ended, "{arrivals:?}");
    assert_eq!(arrivals.sent, report.counts.sent);
}
