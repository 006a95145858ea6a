//! Every request is counted once: what the generator reports is held against
//! what a small server on plain sockets has counted itself, for servers that
//! answer well and servers that do not, on every driver that this machine has.

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;

use prony_base::Nanos;
use prony_load::prepare::{RequestParts, prepare};
use prony_load::{LoadSpec, Observer, run};
use prony_record::LoadTarget;

use crate::server::{HELLO, Server, Silent, Then, answer, drive, on_each_driver, serve, spec};

#[test]
fn the_server_has_seen_each_request_that_was_sent_and_no_other() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| answer(stream, HELLO));
        let outcome = drive(&spec(server.address, driver));
        assert_eq!(outcome.report.counts.sent, server.requests());
        assert_eq!(outcome.report.connections_opened, 8);
        assert_eq!(outcome.report.errors, [].into());
        assert!(outcome.report.completed > 0 && outcome.report.cpu_ns > 0);
    });
}

#[test]
fn many_connections_wait_for_each_other_a_little_unless_that_is_forbidden() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| answer(stream, HELLO));
        let many = LoadSpec {
            further: Vec::new(),
            threads: 1,
            connections: 200,
            warmup_ns: Nanos::from_millis(300).0,
            ..spec(server.address, driver)
        };
        let report = drive(&many).report;
        assert_eq!(report.errors, [].into());
        assert!(report.coalescing_ns <= 50_000, "{report:?}");
        let exact = LoadSpec {
            exact: true,
            ..many.clone()
        };
        assert_eq!(drive(&exact).report.coalescing_ns, 0);
        let few = LoadSpec {
            connections: 50,
            ..many
        };
        assert_eq!(drive(&few).report.coalescing_ns, 0);
    });
}

#[test]
fn a_number_of_requests_is_kept_exactly() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| answer(stream, HELLO));
        let wanted = LoadSpec {
            requests_max: Some(1_001),
            warmup_ns: 0,
            duration_ns: u64::MAX,
            ..spec(server.address, driver)
        };
        let outcome = run(&wanted, &mut Silent).unwrap();
        assert_eq!(
            (outcome.report.counts.sent, outcome.report.completed),
            (1_001, 1_001)
        );
        assert_eq!(server.requests(), 1_001);
        assert!(
            outcome.report.window_ns < Nanos::from_secs(60).0,
            "the window ended with the last answer"
        );
    });
}

#[test]
fn an_answer_split_at_every_byte_is_one_answer() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| {
            for byte in
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n0\r\n\r\n"
            {
                if stream.write_all(&[*byte]).is_err() {
                    return Then::Close;
                }
            }
            Then::Next
        });
        let outcome = drive(&spec(server.address, driver));
        assert_eq!(outcome.report.errors, [].into());
        assert_eq!(outcome.report.counts.sent, server.requests());
        assert!(outcome.report.first_byte_ns.mean < outcome.report.latency_ns.mean);
    });
}

#[test]
fn a_server_that_closes_after_each_answer_is_found_out() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| {
            answer(stream, HELLO);
            Then::Close
        });
        let report = drive(&spec(server.address, driver)).report;
        assert!(report.connections_closed_by_server > 0, "{report:?}");
        assert!(report.connections_opened > 8);
    });
}

#[test]
fn a_server_that_says_it_closes_loses_no_request() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| {
            answer(
                stream,
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            );
            Then::Close
        });
        let report = drive(&spec(server.address, driver)).report;
        assert_eq!(report.errors, [].into());
        assert_eq!(report.counts.sent, server.requests());
        assert!(report.connections_closed_by_server > 0);
    });
}

#[test]
fn what_is_never_answered_is_a_time_out_and_is_bounded() {
    on_each_driver(|driver| {
        let server = serve(|n, stream| {
            if n < 3 {
                answer(stream, HELLO)
            } else {
                Then::Next
            }
        });
        let slow = LoadSpec {
            timeout_ns: Nanos::from_millis(100).0,
            ..spec(server.address, driver)
        };
        let report = drive(&slow).report;
        assert!(report.counts.failed.timeout > 0, "{report:?}");
        assert_eq!(report.counts.sent, server.requests());
    });
}

#[test]
fn a_wrong_answer_is_a_failure_and_not_a_completed_request() {
    on_each_driver(|driver| {
        let server = serve(|n, stream| {
            let wrong: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!";
            answer(stream, if n == 1 { wrong } else { HELLO })
        });
        let parts = RequestParts {
            method: "GET",
            path: "/",
            authority: "a",
            headers: &[],
            body: b"",
        };
        let strict = LoadSpec {
            requests: vec![prepare(&parts, Some(b"Hello, World!")).unwrap()],
            warmup_ns: 0,
            requests_max: Some(80),
            ..spec(server.address, driver)
        };
        let report = run(&strict, &mut Silent).unwrap().report;
        assert_eq!(
            report.counts.failed.wrong_answer + report.completed,
            80,
            "{report:?}"
        );
        assert!(report.counts.failed.wrong_answer >= 8);
    });
}

#[test]
fn garbage_is_a_protocol_failure() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| answer(stream, b"SSH-2.0-OpenSSH_9.2\r\n\r\n"));
        let report = drive(&spec(server.address, driver)).report;
        assert_eq!(report.completed, 0);
        assert!(report.counts.failed.protocol > 0);
    });
}

#[test]
fn an_answer_cut_short_is_a_failure() {
    on_each_driver(|driver| {
        let server = serve(|_, stream| {
            answer(
                stream,
                b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello",
            );
            Then::Close
        });
        let report = drive(&spec(server.address, driver)).report;
        assert_eq!(report.completed, 0);
        assert!(
            report.counts.failed.closed + report.counts.failed.reset > 0,
            "{report:?}"
        );
    });
}

#[test]
fn other_statuses_are_completed_and_counted_apart() {
    on_each_driver(|driver| {
        let server =
            serve(|_, stream| answer(stream, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
        let report = drive(&spec(server.address, driver)).report;
        assert_eq!(report.counts.unexpected_status, report.completed);
        assert_eq!(report.status, [("503".to_owned(), report.completed)].into());
    });
}

#[test]
fn what_was_acknowledged_is_every_right_answer_of_the_whole_run() {
    on_each_driver(|driver| {
        let server = serve(|n, stream| {
            let busy: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
            answer(stream, if n % 4 == 3 { busy } else { HELLO })
        });
        let counts = drive(&spec(server.address, driver)).report.counts;
        // Three of four answers on each of the eight connections, from the first one on.
        let (sent, right) = (counts.sent, counts.acknowledged);
        assert!(
            right > counts.completed - counts.unexpected_status,
            "{counts:?}"
        );
        assert!(
            right * 4 >= sent * 3 && right * 4 <= sent * 3 + 8 * 4,
            "{counts:?}"
        );
    });
}

#[test]
fn connections_are_shared_out_over_several_servers() {
    on_each_driver(|driver| {
        let servers: Vec<Server> = (0..2)
            .map(|_| serve(|_, stream| answer(stream, HELLO)))
            .collect();
        let [one, other] = [&servers[0], &servers[1]];
        let both = LoadSpec {
            further: vec![LoadTarget {
                url: format!("http://{}/", other.address),
                address: other.address.to_string(),
            }],
            connections: 10,
            threads: 3,
            ..spec(one.address, driver)
        };
        let report = drive(&both).report;
        assert_eq!(report.errors, [].into());
        let opened = servers.iter().map(|server| server.connections.load(SeqCst));
        assert_eq!(opened.collect::<Vec<_>>(), [5, 5]);
        let asked: u64 = servers.iter().map(Server::requests).sum();
        assert_eq!(report.counts.sent, asked);
        assert_eq!(report.counts.acknowledged, asked);
    });
}

#[test]
fn one_of_several_servers_that_does_not_listen_takes_no_request_with_it() {
    let server = serve(|_, stream| answer(stream, HELLO));
    let address = format!("127.0.0.1:{}", prony_testkit::free_port());
    let both = LoadSpec {
        further: vec![LoadTarget {
            url: format!("http://{address}/"),
            address,
        }],
        ..spec(server.address, "auto")
    };
    let report = drive(&both).report;
    assert!(report.counts.connect_failed.refused > 0, "{report:?}");
    assert_eq!(server.connections.load(SeqCst), 4);
    assert_eq!(report.counts.sent, server.requests());
}

#[test]
fn nothing_that_listens_is_an_error_that_says_so() {
    let address = ([127, 0, 0, 1], prony_testkit::free_port()).into();
    let error = run(&spec(address, "auto"), &mut Silent).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("connection refused; nothing listens there"),
        "{error}"
    );
}

#[test]
fn the_user_can_end_it_and_keeps_what_was_measured() {
    struct EndsAtOnce;
    impl Observer for EndsAtOnce {
        fn progress(&mut self, completed: u64, _failed: u64) -> bool {
            completed == 0
        }
    }
    let server = serve(|_, stream| answer(stream, HELLO));
    let long = LoadSpec {
        duration_ns: Nanos::from_secs(3_600).0,
        ..spec(server.address, "auto")
    };
    let outcome = run(&long, &mut EndsAtOnce).unwrap();
    assert!(outcome.interrupted && outcome.report.completed > 0);
    assert!(outcome.report.window_ns < Nanos::from_secs(60).0);
    assert_eq!(outcome.report.counts.sent, server.requests());
}
