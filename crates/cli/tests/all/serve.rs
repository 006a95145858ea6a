//! `prony serve` as a process, asked over raw sockets, on both drivers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::thread;

use prony_program::children::raise_open_files;
use prony_testkit::{RawAnswer, ask, read_answer, read_head, rest, try_ask};

use crate::server::{self, Server, drivers};

const MIB: usize = 1 << 20;

/// Requests and what must come back: request, status, content-type, body. A body
/// of `*` is any.
const TABLE: [(&str, u16, &str, &str); 32] = [
    ("GET /hello", 200, "text/plain", "Hello, World!"),
    ("GET /hello?a=b", 200, "text/plain", "Hello, World!"),
    (
        "GET http://elsewhere/hello",
        200,
        "text/plain",
        "Hello, World!",
    ),
    (
        "POST /ping {\"sequence\":0}",
        200,
        "application/json",
        "{\"sequence\":0}",
    ),
    (
        "POST /ping  { \"sequence\" : 9007199254740991 } ",
        200,
        "application/json",
        "{\"sequence\":9007199254740991}",
    ),
    (
        "POST /ping {\"a\":[{}],\"sequence\":7}",
        200,
        "application/json",
        "{\"sequence\":7}",
    ),
    ("POST /ping {\"sequence\":\"7\"}", 400, "*", "*"),
    ("POST /ping {\"sequence\":-1}", 400, "*", "*"),
    ("POST /ping {\"sequence\":1.5}", 400, "*", "*"),
    ("POST /ping {\"sequence\":null}", 400, "*", "*"),
    ("POST /ping {\"sequence\":1", 400, "*", "*"),
    ("POST /ping {\"sequence\":1}}", 400, "*", "*"),
    ("POST /ping {}", 400, "*", "*"),
    ("POST /ping [1]", 400, "*", "*"),
    ("POST /ping ", 400, "*", "*"),
    (
        "POST /echo some text",
        200,
        "application/octet-stream",
        "some text",
    ),
    ("GET /payload/0", 200, "application/octet-stream", ""),
    (
        "GET /payload/28",
        200,
        "application/octet-stream",
        "abcdefghijklmnopqrstuvwxyzab",
    ),
    ("GET /payload/x", 400, "*", "*"),
    ("GET /payload/99999999999999", 400, "*", "*"),
    ("GET /status/503", 503, "*", ""),
    ("GET /status/418", 418, "*", ""),
    ("GET /status/600", 400, "*", "*"),
    ("GET /status/100", 400, "*", "*"),
    ("GET /stall?every=0", 200, "application/json", "*"),
    ("GET /stall?every=1s", 400, "*", "*"),
    ("GET /stats", 200, "application/json", "*"),
    ("GET /hello_world.html", 200, "text/html", "*"),
    ("GET /testpayload", 404, "*", "*"),
    ("GET /nothing", 404, "*", "*"),
    ("DELETE /hello", 405, "*", "*"),
    ("GET /ping", 405, "*", "*"),
];

/// The bytes of a request of [`TABLE`].
fn spell(request: &str, extra: &str) -> String {
    let mut words = request.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (method, target, body) = (word(), word(), word());
    let length = body.len();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{extra}\r\n{body}"
    )
}

fn hello(extra: &str) -> String {
    spell("GET /hello", extra)
}

#[test]
fn every_endpoint_answers_as_it_must() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        for (request, status, kind, body) in TABLE {
            let answer = ask(&mut stream, &spell(request, ""), false);
            assert_eq!(answer.status, status, "{request}");
            if kind != "*" {
                assert_eq!(answer.header("content-type"), Some(kind), "{request}");
            }
            if body != "*" {
                assert_eq!(answer.text(), body, "{request}");
            }
            let date = answer.header("date").expect("a Date");
            assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
        }
        let refused = ask(&mut stream, &spell("DELETE /echo", ""), false);
        assert_eq!(refused.header("allow"), Some("POST"));
    }
}

#[test]
fn a_refused_head_request_had_a_body() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        for request in [
            "HEAD /hello HTTP/1.1\r\n\r\n",
            "HEAD /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            "HEAD /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
        ] {
            let mut stream = server.connect();
            let answer = ask(&mut stream, request, true);
            assert_eq!(answer.status, 400, "{request}");
            assert_eq!(rest(&mut stream), "", "{request}");
        }
    }
}

#[test]
fn connections_over_the_limit_were_taken_in() {
    for driver in drivers() {
        for threads in ["1", "2"] {
            let options = ["--threads", threads, "--connections-max", "4"];
            let server = Server::start_on(driver, &options);
            let mut open: Vec<_> = (0..4).map(|_| server.connect()).collect();
            let mut all = || {
                for stream in &mut open {
                    let answer = ask(stream, &hello(""), false);
                    assert_eq!(answer.text(), "Hello, World!");
                }
            };
            all();
            let mut waiting = server.connect();
            waiting.write_all(hello("").as_bytes()).expect("sent");
            all();
            waiting.set_nonblocking(true).expect("set");
            assert!(waiting.peek(&mut [0]).is_err(), "it is answered");
            waiting.set_nonblocking(false).expect("set");
            let stats = spell("GET /stats", "");
            let stats = ask(&mut open[0], &stats, false).text();
            let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
            assert_eq!(stats["connections"]["accepted"], 4, "{stats}");
            drop(open);
            assert_eq!(read_answer(&mut waiting, false).text(), "Hello, World!");
        }
    }
}

#[test]
fn unfinished_bodies_took_any_memory() {
    for driver in drivers() {
        // One limit for all threads.
        let options = ["--threads", "2", "--body-memory", "3MiB"];
        let server = Server::start_on(driver, &options);
        let head = format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
            2 * MIB
        );
        let part = vec![b'x'; 2 * MIB - 1];
        let mut streams = [server.connect(), server.connect()];
        for stream in &mut streams {
            stream.write_all(head.as_bytes()).expect("sent");
            stream.write_all(&part).expect("sent");
            stream.set_nonblocking(true).expect("set");
        }
        let mut other = server.connect();
        let refused = loop {
            assert_eq!(ask(&mut other, &hello(""), false).status, 200);
            let is_answered = |stream: &TcpStream| stream.peek(&mut [0]).is_ok();
            if let Some(refused) = streams.iter().position(is_answered) {
                break refused;
            }
        };
        for stream in &streams {
            stream.set_nonblocking(false).expect("set");
        }
        assert_eq!(read_answer(&mut streams[refused], false).status, 503);
        let answer = ask(&mut streams[1 - refused], "x", false);
        assert_eq!(answer.body.len(), 2 * MIB);
    }
}

#[test]
fn head_is_get_without_the_body() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        for (request, ..) in TABLE {
            let Some(rest) = request.strip_prefix("GET ") else {
                continue;
            };
            if rest == "/stats" {
                // It differs each time.
                continue;
            }
            let get = ask(&mut stream, &spell(request, ""), false);
            let head = ask(&mut stream, &spell(&format!("HEAD {rest}"), ""), true);
            assert_eq!(head.status, get.status, "{request}");
            let same = |answer: &RawAnswer| {
                let mut headers = answer.headers.clone();
                headers.retain(|(name, _)| name != "date");
                headers
            };
            let moves = rest.starts_with("/stall?every=0");
            if !moves {
                assert_eq!(same(&head), same(&get), "{request}");
            }
        }
        // The connection is still in step.
        assert_eq!(ask(&mut stream, &hello(""), false).text(), "Hello, World!");
    }
}

#[test]
fn requests_may_be_cut_at_every_byte() {
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: u\r\n\r\n";
    let text = format!(
        "{}{chunked}{}",
        spell("POST /ping {\"sequence\":12}", ""),
        hello("")
    );
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        for cut in 0..=text.len() {
            let mut stream = server.connect();
            stream.write_all(&text.as_bytes()[..cut]).expect("sent");
            if cut % 8 == 0 {
                // Makes sure that the server has seen the first part by itself.
                server.ask_once(&hello(""));
            }
            stream.write_all(&text.as_bytes()[cut..]).expect("sent");
            let answers: Vec<String> = (0..3)
                .map(|_| read_answer(&mut stream, false).text())
                .collect();
            assert_eq!(
                answers,
                ["{\"sequence\":12}", "abcde", "Hello, World!"],
                "cut at {cut}"
            );
        }
        let mut stream = server.connect();
        for byte in text.bytes() {
            stream.write_all(&[byte]).expect("sent");
        }
        let answers: Vec<String> = (0..3)
            .map(|_| read_answer(&mut stream, false).text())
            .collect();
        assert_eq!(
            answers,
            ["{\"sequence\":12}", "abcde", "Hello, World!"],
            "byte by byte"
        );
    }
}

#[test]
fn a_hundred_requests_in_a_row_are_answered_in_order() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        let requests: String = (0..100)
            .map(|number| spell(&format!("POST /ping {{\"sequence\":{number}}}"), ""))
            .collect();
        stream.write_all(requests.as_bytes()).expect("sent");
        for number in 0..100 {
            let answer = read_answer(&mut stream, false).text();
            assert_eq!(answer, format!("{{\"sequence\":{number}}}"));
        }
    }
}

#[test]
fn a_slow_reader_gets_all_of_a_large_answer_that_is_never_in_memory() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        let length = 200 * MIB;
        stream
            .write_all(spell(&format!("GET /payload/{length}"), "").as_bytes())
            .expect("sent");
        let head = read_head(&mut stream);
        assert_eq!(head.header("content-length"), Some("209715200"));
        // Another connection is answered while this one takes nothing.
        assert_eq!(server.ask_once(&hello("")).status, 200);
        let alphabets = b"abcdefghijklmnopqrstuvwxyz".repeat(MIB / 26 + 2);
        let (mut seen, mut buffer) = (0, vec![0; MIB]);
        while seen < length {
            let part = MIB.min(length - seen);
            stream.read_exact(&mut buffer[..part]).expect("open");
            let from = seen % 26;
            assert!(
                buffer[..part] == alphabets[from..from + part],
                "after {seen} bytes"
            );
            seen += part;
        }
        let peak = server.peak_memory_bytes();
        assert!(peak < 64 * MIB, "{peak} bytes");
        assert_eq!(ask(&mut stream, &hello(""), false).status, 200);
    }
}

#[test]
fn a_client_that_ends_its_side_is_answered() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        stream
            .write_all(hello("").repeat(2).as_bytes())
            .expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        for _ in 0..2 {
            assert_eq!(read_answer(&mut stream, false).text(), "Hello, World!");
        }
        assert_eq!(rest(&mut stream), "");
        // In the middle of a request there is nothing to answer.
        let mut stream = server.connect();
        stream
            .write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
            .expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        assert_eq!(rest(&mut stream), "");
        assert_eq!(server.stats()["requests"]["truncated"], 1);
    }
}

#[test]
fn what_breaks_a_limit_or_a_rule_is_refused_and_the_answer_arrives() {
    let long = "x".repeat(20_000);
    let cases = [
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(200)), 431),
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "y".repeat(9_000)), 414),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n".to_owned(), 413),
        ("GET /hello HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /hello HTTP/1.1\nHost: a\n\n".to_owned(), 400),
        ("GET /hello HTTP/1.1\r\nHost : a\r\n\r\n".to_owned(), 400),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), 400),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(), 501),
        ("GET /hello HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 505),
    ];
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        for (request, status) in &cases {
            let mut stream = server.connect();
            // What follows must not make the kernel throw the answer away.
            stream.write_all(request.as_bytes()).expect("sent");
            stream.write_all(&vec![b'z'; 100_000]).expect("sent");
            let answer = read_answer(&mut stream, false);
            assert_eq!(answer.status, *status, "{request:.60}");
            assert_eq!(answer.header("connection"), Some("close"));
            assert_eq!(rest(&mut stream), "");
        }
        assert_eq!(server.stats()["requests"]["refused"], cases.len());
    }
}

#[test]
fn a_chunked_body_that_grows_too_long_is_refused() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        let mut sending = stream.try_clone().expect("a second handle");
        let sender = thread::spawn(move || {
            let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            sending.write_all(head.as_bytes()).expect("sent");
            let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b'c'; MIB], b"\r\n"].concat();
            // 20 MiB; the server need not take them all.
            (0..20).all(|_| sending.write_all(&chunk).is_ok())
        });
        let answer = read_answer(&mut stream, false);
        assert_eq!(
            (answer.status, answer.header("connection")),
            (413, Some("close"))
        );
        let _all_sent = sender.join().expect("it ends");
    }
}

#[test]
fn a_body_of_many_megabytes_comes_back() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut body = (0..=250).collect::<Vec<u8>>().repeat(16 * MIB / 251);
        body.resize(16 * MIB, 0);
        let mut stream = server.connect();
        let mut sending = stream.try_clone().expect("a second handle");
        let sent = body.clone();
        let sender = thread::spawn(move || {
            let head = format!(
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nContent-Length: {}\r\n\r\n",
                sent.len()
            );
            sending.write_all(head.as_bytes()).expect("sent");
            sending.write_all(&sent).expect("sent");
        });
        let answer = read_answer(&mut stream, false);
        sender.join().expect("all sent");
        assert_eq!(answer.header("content-type"), Some("x/y"));
        assert!(answer.body == body, "it differs");
    }
}

#[test]
fn http_1_0_and_close_are_honoured() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        stream
            .write_all(b"GET /hello HTTP/1.0\r\n\r\n")
            .expect("sent");
        assert_eq!(read_answer(&mut stream, false).text(), "Hello, World!");
        assert_eq!(rest(&mut stream), "");

        let mut stream = server.connect();
        let keep = "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        for _ in 0..2 {
            let answer = ask(&mut stream, keep, false);
            assert_eq!(answer.header("connection"), Some("keep-alive"));
        }

        let ends_at_once = |_: &i32| {
            let mut stream = server.connect();
            let answer = ask(&mut stream, &hello("Connection: close\r\n"), false);
            assert_eq!(answer.header("connection"), Some("close"));
            stream.set_nonblocking(true).expect("a socket");
            let is_end = matches!(stream.read(&mut [0]), Ok(0));
            stream.set_nonblocking(false).expect("a socket");
            assert_eq!(rest(&mut stream), "");
            is_end
        };
        // In the segment of the last byte, so that no client closes first; but a kernel may send any segment before.
        let ended = (0..20).filter(ends_at_once).count();
        assert!(ended >= 10, "{driver}: {ended} of 20");
    }
}

#[test]
fn a_client_that_expects_it_is_told_to_continue() {
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let mut stream = server.connect();
        stream
            .write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
            .expect("sent");
        assert_eq!(read_head(&mut stream).status, 100);
        let answer = ask(&mut stream, "body", false);
        assert_eq!((answer.status, answer.text().as_str()), (200, "body"));
    }
}

#[test]
fn a_connection_at_rest_is_closed_and_a_busy_one_is_not() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--idle-timeout", "1s"]);
        let mut resting = server.connect();
        let mut busy = server.connect();
        // An answer that takes longer to read than the other connection is kept.
        let request = spell(&format!("GET /payload/{}", 64_u64 << 30), "");
        busy.write_all(request.as_bytes()).expect("sent");
        assert_eq!(read_head(&mut busy).status, 200);
        ask(&mut resting, &hello(""), false);
        resting.set_nonblocking(true).expect("set");
        let mut piece = [0; 1 << 16];
        while !server::has_ended(&mut resting) {
            busy.read_exact(&mut piece).expect("a busy one is kept");
        }
        busy.read_exact(&mut piece).expect("a busy one is kept");
    }
}

#[test]
fn a_thousand_connections_at_once_are_all_served() {
    // Of the usual 1,024 open files, what runs beside this in one process has some, too.
    raise_open_files();
    for driver in drivers() {
        for threads in ["1", "2"] {
            let server = Server::start_on(driver, &["--threads", threads]);
            let mut streams: Vec<TcpStream> = (0..1_000).map(|_| server.connect()).collect();
            for stream in &mut streams {
                stream.write_all(hello("").as_bytes()).expect("sent");
            }
            for stream in &mut streams {
                assert_eq!(read_answer(stream, false).text(), "Hello, World!");
            }
            let stats = server.stats();
            assert_eq!(stats["connections"]["open"], 1_001);
            assert_eq!(stats["endpoints"]["hello"], 1_000);
            let shares: Vec<u64> = stats["threads"]
                .as_array()
                .expect("threads")
                .iter()
                .map(|one| one["accepted"].as_u64().expect("a number"))
                .collect();
            assert!(
                shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1,
                "{shares:?}"
            );
        }
    }
}

#[test]
fn what_was_accepted_is_answered_when_it_is_told_to_stop() {
    for driver in drivers() {
        for threads in ["1", "2"] {
            let mut server = Server::start_on(driver, &["--threads", threads]);
            let workers: Vec<_> = (0..40)
                .map(|_| {
                    let mut stream = server.connect();
                    thread::spawn(move || {
                        let mut answered = 0;
                        // A closed loop, until an answer says that it was the last. (Where
                        // this thread gets no time to ask for longer than the server keeps
                        // connections at rest, there is no such answer.)
                        while let Some(answer) = try_ask(&mut stream, &hello("")) {
                            assert_eq!(answer.text(), "Hello, World!");
                            answered += 1;
                            if answer.header("connection") == Some("close") {
                                assert_eq!(rest(&mut stream), "");
                                break;
                            }
                        }
                        answered
                    })
                })
                .collect();
            while server.stats()["endpoints"]["hello"].as_u64() < Some(2_000) {}
            // In the backlog or on their way when the signal comes.
            let mut late: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
            for stream in &mut late {
                stream.write_all(hello("").as_bytes()).expect("sent");
            }
            server.signal_term();
            for stream in &mut late {
                assert_eq!(read_answer(stream, false).text(), "Hello, World!");
            }
            let answered: u64 = workers
                .into_iter()
                .map(|worker| worker.join().expect("answered to the end"))
                .sum();
            assert!(answered >= 2_000);
            assert_eq!(server.wait(), Some(0));
        }
    }
}

#[test]
fn counts_agree_with_what_clients_sent() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--threads", "2"]);
        let clients: Vec<_> = (0..8_u64)
            .map(|client| {
                let mut stream = server.connect();
                thread::spawn(move || {
                    for number in 0..500 {
                        let ping = spell(
                            &format!("POST /ping {{\"sequence\":{}}}", client * number),
                            "",
                        );
                        assert_eq!(ask(&mut stream, &ping, false).status, 200);
                    }
                    ask(&mut stream, &spell("GET /nothing", ""), false);
                })
            })
            .collect();
        for client in clients {
            client.join().expect("all answered");
        }
        let stats = server.stats();
        assert_eq!(stats["endpoints"]["ping"], 4_000);
        assert_eq!(stats["endpoints"]["unknown"], 8);
        assert_eq!(stats["requests"]["received"], 4_009);
        assert_eq!(stats["requests"]["answered"], 4_008);
        assert_eq!(stats["statuses"]["200"], 4_000);
        assert_eq!(stats["statuses"]["404"], 8);
    }
}

#[test]
fn counts_agree_with_wrk() {
    let Some(wrk) = prony_testkit::need("wrk") else {
        return;
    };
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let url = format!("{}/hello", server.url);
        let output = Command::new(&wrk)
            .args(["-t1", "-c20", "-d1s", &url])
            .output()
            .expect("wrk runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let completed = text
            .lines()
            .find_map(|line| line.trim().split_once(" requests in"));
        let completed: u64 = completed.expect("its count").0.parse().expect("a number");
        let hello = server.stats()["endpoints"]["hello"]
            .as_u64()
            .expect("a number");
        // Before it starts wrk makes a request that it does not count, and at the
        // end it drops what is outstanding on each connection.
        assert!(
            (completed..=completed + 21).contains(&hello),
            "{hello} of {completed}\n{text}"
        );
    }
}

#[test]
fn curl_is_content() {
    let Some(curl) = prony_testkit::need("curl") else {
        return;
    };
    for driver in drivers() {
        let server = Server::start_on(driver, &[]);
        let run = |args: &[&str], path: &str| {
            let url = format!("{}{path}", server.url);
            let output = Command::new(&curl)
                .args(["-sS", "--fail-with-body"])
                .args(args)
                .arg(url)
                .output();
            let output = output.expect("curl runs");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(run(&[], "/hello"), "Hello, World!");
        assert_eq!(
            run(&["-d", "{\"sequence\": 3}"], "/ping"),
            "{\"sequence\":3}"
        );
        assert_eq!(
            run(&["-d", "a b", "-H", "Transfer-Encoding: chunked"], "/echo"),
            "a b"
        );
        assert_eq!(run(&["-0"], "/payload/3"), "abc");
        assert!(run(&["-I"], "/payload/300").contains("content-length: 300\r\n"));
        assert_eq!(server.stats()["requests"]["answered"], 5);
    }
}

#[test]
fn a_stall_blocks_all_threads_at_the_moments_it_said() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--threads", "2"]);
        let said = server.ask_once(&spell("GET /stall?every=600ms&for=400ms", ""));
        let said: serde_json::Value = serde_json::from_str(&said.text()).expect("JSON");
        assert_eq!(said["every_ns"], 600_000_000);
        assert_eq!(said["for_ns"], 400_000_000);
        let first = said["first_ns"].as_u64().expect("a number");
        // Two connections, one on each thread, kept busy until a stall is seen: one that has passed before they were
        // there, or in which they had no time to ask, is followed by others.
        let mut streams = [server.connect(), server.connect()];
        for stream in &mut streams {
            ask(stream, &hello(""), false);
        }
        let seen = streams.map(|mut stream| {
            thread::spawn(move || {
                while server::monotonic_ns() < first + 60_000_000_000 {
                    let sent = server::monotonic_ns();
                    ask(&mut stream, &hello(""), false);
                    let done = server::monotonic_ns();
                    // The last stall that had begun when the answer was there.
                    let begin = first + done.saturating_sub(first) / 600_000_000 * 600_000_000;
                    let within = done
                        .min(begin + 400_000_000)
                        .saturating_sub(sent.max(begin));
                    if within > 100_000_000 {
                        return true;
                    }
                }
                false
            })
        });
        for seen in seen {
            // Nothing is answered in a stall, so that a request is under way for most of it.
            assert!(seen.join().expect("answered"), "no stall was seen");
        }
        let cleared = server.ask_once(&spell("GET /stall?every=0", ""));
        let cleared: serde_json::Value = serde_json::from_str(&cleared.text()).expect("JSON");
        assert!(cleared["first_ns"].is_null());
    }
}

#[test]
fn a_port_in_use_is_said_with_what_to_do() {
    let server = Server::start_on("epoll", &[]);
    let port = server.port.to_string();
    let second = server::prony(&["serve", "--port", &port])
        .output()
        .expect("it runs");
    assert_eq!(second.status.code(), Some(2));
    let said = String::from_utf8_lossy(&second.stderr).replace(&port, "PORT");
    assert_eq!(
        said,
        "prony: cannot listen on 127.0.0.1:PORT: Address already in use (os error 98); stop what listens \
         there (`ss -ltnp 'sport = :PORT'` names it), or give another --port; 0 takes a free one\n"
    );
}

#[test]
fn wrong_words_are_refused() {
    for (args, part) in [
        (
            &["--driver", "kqueue"][..],
            "\"kqueue\" is no driver: use auto, ring or epoll",
        ),
        (&["--threads", "0"], "0 is not in 1..=1024"),
        (
            &["--idle-timeout", "soon"],
            "`soon` is not a length of time",
        ),
        (
            &["--host", "no such host"],
            "`no such host` is not the address of a host",
        ),
        (
            &["--host", "192.0.2.1", "--port", "0"],
            "this machine has no such address",
        ),
    ] {
        let output = server::prony(&[&["serve"], args].concat())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part), "{said}");
    }
}
