//! Forms of HTTP/1 and further ways of `prony load`: each against our own server and one by hand, which sees the bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::common::{PRONY, folder, text};
use crate::server::Server;

fn load(words: &[&str], url: &str) -> Output {
    let mut command = Command::new(PRONY);
    command.args(["load", "-t", "1", "--json", "-"]).args(words);
    command.arg(url).output().expect("prony runs")
}

fn report(words: &[&str], url: &str) -> Value {
    let output = load(words, url);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a report")
}

fn refusal(words: &[&str], url: &str) -> String {
    let output = load(words, url);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    text(&output.stderr).to_owned()
}

fn number(report: &Value, path: &str) -> u64 {
    let value = report.pointer(path).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("{path} in {report}"))
}

/// Reads a head, byte by byte: what follows it stays unread.
fn head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    Some(String::from_utf8(head).expect("text"))
}

/// Answers each request of a connection with `answer`; counts them, and keeps the first head.
fn answer_all(
    mut stream: impl Read + Write,
    answer: &[u8],
    count: &AtomicU64,
    first: &Mutex<String>,
) {
    while let Some(head) = head(&mut stream) {
        if count.fetch_add(1, Relaxed) == 0 {
            *first.lock().unwrap() = head;
        }
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

/// A server by hand.
struct ByHand {
    url: String,
    count: Arc<AtomicU64>,
    first: Arc<Mutex<String>>,
}

impl ByHand {
    fn start(answer: &'static [u8]) -> ByHand {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (count, first) = (Arc::<AtomicU64>::default(), Arc::<Mutex<String>>::default());
        let server = (Arc::clone(&count), Arc::clone(&first));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, first) = (Arc::clone(&server.0), Arc::clone(&server.1));
                thread::spawn(move || answer_all(stream, answer, &count, &first));
            }
        });
        ByHand { url, count, first }
    }

    fn first(&self) -> String {
        self.first.lock().unwrap().clone()
    }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_unix_socket_carries_the_same_requests() {
    let folder = folder("load-unix");
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).expect("bound");
    let (count, first) = (Arc::<AtomicU64>::default(), Arc::<Mutex<String>>::default());
    let server = (Arc::clone(&count), Arc::clone(&first));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (count, first) = (Arc::clone(&server.0), Arc::clone(&server.1));
            thread::spawn(move || answer_all(stream, OK, &count, &first));
        }
    });
    let place = path.to_str().expect("text");
    for driver in ["auto", "epoll"] {
        let mut command = Command::new(PRONY);
        command.args([
            "load", "-t", "1", "--json", "-", "-n", "1000", "-c", "20", "--unix", place,
        ]);
        let output = command
            .arg("http://app.test/x")
            .env("PRONY_DRIVER", driver)
            .output();
        let output = output.expect("prony runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(number(&report, "/completed"), 1_000);
        assert_eq!(number(&report, "/connections_opened"), 20);
        assert!(number(&report, "/latency_ns/p50") > 0);
    }
    assert_eq!(count.load(Relaxed), 2_000);
    assert_eq!(
        *first.lock().unwrap(),
        "GET /x HTTP/1.1\r\nHost: app.test\r\n\r\n"
    );
    let none = folder.join("none");
    let output = load(
        &["-n", "1", "--unix", none.to_str().expect("text")],
        "http://a",
    );
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn http10_keeps_connections_only_where_both_sides_say_so() {
    let server = Server::start(&[]);
    let kept = report(&["-n", "300", "-c", "3", "--http1.0"], &server.at("/hello"));
    assert_eq!(
        (
            number(&kept, "/completed"),
            number(&kept, "/connections_opened")
        ),
        (300, 3)
    );
    let words = ["-n", "30", "-c", "3", "--http1.0", "--no-keepalive"];
    let closed = report(&words, &server.at("/hello"));
    assert_eq!(number(&closed, "/completed"), 30);
    assert!(number(&closed, "/connections_opened") >= 30, "{closed}");
    let by_hand =
        ByHand::start(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
    let kept = report(&["-n", "30", "-c", "1", "--http1.0"], &by_hand.url);
    assert_eq!(
        (number(&kept, "/completed"), by_hand.count.load(Relaxed)),
        (30, 30)
    );
    let first = by_hand.first();
    assert!(
        first.starts_with("GET / HTTP/1.0\r\n") && first.contains("Connection: keep-alive"),
        "{first}"
    );
}

#[test]
fn bodies_go_in_chunks_and_after_a_100() {
    for words in [&[][..], &["--tls"]] {
        let server = Server::start(words);
        let body = "x".repeat(100_000);
        let more: &[&str] = if words.is_empty() {
            &[]
        } else {
            &["--insecure"]
        };
        let common = [&["-n", "200", "-c", "2", "--body", &body], more].concat();
        let plain = report(&common, &server.at("/echo"));
        let chunked = report(
            &[&common[..], &["--chunked=1KiB"]].concat(),
            &server.at("/echo"),
        );
        for one in [&plain, &chunked] {
            assert_eq!(number(one, "/status/200"), 200, "{one}");
        }
        assert!(number(&chunked, "/sent_bytes") > number(&plain, "/sent_bytes") + 200 * 98 * 7);
        let both = ["--expect-continue", "--chunked"];
        for flags in [&both[..1], &both[..]] {
            let waited = report(&[&common[..], flags].concat(), &server.at("/echo"));
            assert_eq!(number(&waited, "/status/200"), 200, "{waited}");
            assert_eq!(number(&waited, "/continued"), 200);
            assert_eq!(number(&waited, "/connections_opened"), 2);
        }
    }
}

#[test]
fn an_answer_in_place_of_the_100_spends_the_connection() {
    let by_hand = ByHand::start(b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
    let words = [
        "-n",
        "10",
        "-c",
        "1",
        "--body",
        "abc",
        "--expect-continue",
        "--allow-failures",
    ];
    let waited = report(&words, &by_hand.url);
    assert_eq!(
        (
            number(&waited, "/status/417"),
            number(&waited, "/continued")
        ),
        (10, 0)
    );
    assert!(number(&waited, "/connections_opened") >= 10, "{waited}");
    assert!(by_hand.first().contains("Expect: 100-continue\r\n"));
}

#[test]
fn trailers_belong_to_their_answer_and_are_counted() {
    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
        2\r\nok\r\n0\r\nX-Sum: 1234\r\nX-More: 5\r\n\r\n";
    let by_hand = ByHand::start(ANSWER);
    let got = report(&["-n", "50", "-c", "1"], &by_hand.url);
    assert_eq!(
        (
            number(&got, "/completed"),
            number(&got, "/connections_opened")
        ),
        (50, 1)
    );
    assert_eq!(number(&got, "/received_bytes"), 50 * ANSWER.len() as u64);
}

/// A proxy by hand that opens tunnels, or refuses each.
fn tunnels(refuses: bool) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let count = Arc::<AtomicU64>::default();
    let opened = Arc::clone(&count);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let opened = Arc::clone(&opened);
            thread::spawn(move || {
                let head = head(&mut stream).expect("a head");
                let place = head.strip_prefix("CONNECT ").expect("a CONNECT");
                let place = place.split(' ').next().expect("a place").to_owned();
                if refuses {
                    let _ = stream.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
                    return;
                }
                let behind = TcpStream::connect(place).expect("a server");
                opened.fetch_add(1, Relaxed);
                stream
                    .write_all(b"HTTP/1.1 200 Fine\r\n\r\n")
                    .expect("sent");
                let (mut there, mut back) =
                    (behind.try_clone().unwrap(), stream.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut stream, &mut there));
                let mut behind = behind;
                let _ = std::io::copy(&mut behind, &mut back);
            });
        }
    });
    (url, count)
}

#[test]
fn a_proxy_gets_absolute_targets_and_opens_tunnels() {
    let by_hand = ByHand::start(OK);
    let words = ["-n", "100", "-c", "2", "--proxy", &by_hand.url];
    let got = report(&words, "http://127.0.0.1:9/a?b");
    assert_eq!(
        (number(&got, "/completed"), by_hand.count.load(Relaxed)),
        (100, 100)
    );
    let first = by_hand.first();
    assert_eq!(
        first,
        "GET http://127.0.0.1:9/a?b HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n"
    );

    let server = Server::start(&["--tls"]);
    for http2 in [&[][..], &["--http2", "--streams", "5"]] {
        let (proxy, opened) = tunnels(false);
        let words = ["-n", "200", "-c", "2", "--insecure", "--proxy", &proxy];
        let got = report(&[&words[..], http2].concat(), &server.at("/hello"));
        assert_eq!(
            (number(&got, "/status/200"), opened.load(Relaxed)),
            (200, 2)
        );
    }
    let (proxy, _) = tunnels(true);
    let output = load(
        &["-n", "2", "-c", "1", "--insecure", "--proxy", &proxy],
        &server.at("/hello"),
    );
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("proxy"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn words_that_do_not_go_together_say_why() {
    let url = "http://127.0.0.1:9/";
    for (words, said) in [
        (&["--chunked"][..], "--chunked is about the body"),
        (
            &["--expect-continue"],
            "--expect-continue is about the body",
        ),
        (&["--proxy", "127.0.0.1:1/x"], "without a path"),
        (&["--proxy", "https://127.0.0.1"], "http://HOST:PORT"),
        (
            &["--proxy", "http://127.0.0.1:1", "--http2"],
            "leave --http2 out",
        ),
        (
            &["--unix", "/x", "--timestamps", "kernel"],
            "leave --timestamps out",
        ),
        (&["--http1.0", "--http2"], "cannot be used with"),
    ] {
        let refusal = refusal(words, url);
        assert!(refusal.contains(said), "{words:?}: {refusal}");
    }
    let behind = refusal(&["--proxy", "http://127.0.0.1:1"], "http://192.0.2.1/");
    assert!(behind.contains("--yes-i-own-this-host"), "{behind}");
}
