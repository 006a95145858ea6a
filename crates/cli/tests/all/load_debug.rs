//! `prony load --print-request` and `--debug N`, over HTTP/1.1 and HTTP/2, and checks of headers over HTTP/2.

use std::process::Command;

use crate::common::{PRONY, text};
use crate::server::Server;

/// Standard output, and the exit code.
fn load(words: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(PRONY).arg("load").args(words).output();
    let output = output.expect("prony runs");
    let said = text(&output.stderr);
    (text(&output.stdout) + &said, output.status.code())
}

#[test]
fn the_first_request_is_printed_as_it_is_sent_and_nothing_is_sent() {
    // Nothing listens there.
    let url = "http://127.0.0.1:1/echo?n={counter}";
    let words = [
        "--body",
        "{\"n\": {counter}}",
        "-H",
        "X-A: b",
        "--print-request",
    ];
    let (printed, code) = load(&[&[url][..], &words].concat());
    assert_eq!(code, Some(0), "{printed}");
    let sent = "POST /echo?n=1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-A: b\r\nContent-Length: 8\r\n\r\n{\"n\": 1}";
    assert_eq!(printed, sent);
    let (printed, _) = load(&[&[url, "--http2"][..], &words].concat());
    let fields = ":scheme: http\n:method: POST\n:path: /echo?n=1\n:authority: 127.0.0.1:1\nx-a: b\ncontent-length: 8\n\n{\"n\": 1}\n";
    assert_eq!(printed, fields);
}

#[test]
fn exchanges_are_shown_whole_over_each_protocol() {
    let served = Server::start(&["--threads", "1"]);
    let url = served.at("/hello");
    for protocol in [&[][..], &["--http2"]] {
        let words = [
            &url,
            "--debug",
            "2",
            "--expect-contains",
            "Hello",
            "--expect-size",
            "1",
        ];
        let (shown, code) = load(&[&words[..], protocol].concat());
        assert_eq!(code, Some(1), "the size is another one: {shown}");
        for part in [
            "== request 1\n",
            "== request 2\n",
            "/hello",
            "== answer: status 200, whole after ",
            "\nHello, World!\n",
            "== check contains Hello: passed\n== check size 1: failed\n",
            "== 0 completed, 2 failed: check\n",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let lower = shown.to_ascii_lowercase();
        assert_eq!(
            lower.matches("< content-type: text/plain").count(),
            2,
            "{shown}"
        );
        assert!(!shown.contains("== request 3"), "{shown}");
    }
    let (shown, code) = load(&[&url, "--debug", "1"]);
    assert_eq!(
        (code, shown.ends_with("== 1 completed\n")),
        (Some(0), true),
        "{shown}"
    );
}

#[test]
fn headers_are_checked_over_http2_as_over_http1() {
    let served = Server::start(&["--threads", "1"]);
    let url = served.at("/hello");
    for protocol in [&[][..], &["--http2", "--streams", "4"]] {
        let words = [&url, "-c", "2", "-n", "40", "--expect-header"];
        let of = |header: &str| load(&[&words[..], &[header], protocol].concat());
        let (said, code) = of("Content-Type: text/plain");
        assert_eq!(code, Some(0), "{said}");
        for wrong in ["Content-Type: text", "X-None"] {
            let (said, code) = of(wrong);
            assert!(matches!(code, Some(1 | 3)), "{wrong}: {said}");
        }
    }
}

#[test]
fn what_is_shown_is_what_was_sent() {
    let served = Server::start(&["--threads", "1"]);
    let url = served.at("/echo");
    for protocol in [&[][..], &["--http2"]] {
        let words = [&url, "--body", "{time} {uuid}", "--debug", "2"];
        let (shown, code) = load(&[&words[..], protocol].concat());
        assert_eq!(code, Some(0), "{shown}");
        let is_value = |line: &&str| line.len() == "1790000000000 ".len() + 36;
        let values: Vec<&str> = shown.lines().filter(is_value).collect();
        assert_eq!(values.len(), 4, "{shown}");
        assert_eq!((values[0], values[2]), (values[1], values[3]), "{shown}");
    }
}
