//! `prony serve` in HTTP/2 beside clients that others wrote, and `prony load`: each has as many answers as the server
//! has counted. In the long tier h2spec, where it is installed.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{PRONY, text};
use crate::server::Server;

/// Answers so far, and connections of HTTP/2.
fn counted(server: &Server) -> (u64, u64) {
    let url = format!("{}/stats", server.url);
    let output = run("curl", &["-sk", "--http1.1", &url]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |path: &str| stats.pointer(path).and_then(Value::as_u64).expect("there");
    (number("/served/answers"), number("/http2/connections"))
}

fn run(program: &str, words: &[&str]) -> Output {
    let output = Command::new(program).args(words).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Whether a program is there; a named skip where it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        prony_testkit::skip(&format!("{program} is not installed"));
    }
    found
}

const KINDS: [&[&str]; 2] = [&[], &["--tls"]];

#[test]
fn curl_sends_and_receives_by_http2() {
    if !has("curl") {
        return;
    }
    for words in KINDS {
        let server = Server::start(words);
        let how = match words.is_empty() {
            true => "--http2-prior-knowledge",
            false => "--http2",
        };
        let form = ["-sk", how, "-w", "|%{http_version} %{http_code}"];
        let hello = run(
            "curl",
            &[&form[..], &[&format!("{}/hello", server.url)]].concat(),
        );
        assert_eq!(text(&hello.stdout), "Hello, World!|2 200");
        let body = "x".repeat(120_000);
        let echo = format!("{}/echo", server.url);
        let words = [
            &form[..],
            &["-H", "Expect: 100-continue", "-d", &body, &echo],
        ]
        .concat();
        assert!(text(&run("curl", &words).stdout) == format!("{body}|2 200"));
        let large = format!("{}/payload/100000000", server.url);
        let words = [&form[..], &["-I", &large]].concat();
        assert!(text(&run("curl", &words).stdout).contains("content-length: 100000000"));
        assert_eq!(counted(&server), (3, 3));
    }
}

#[test]
fn h2load_has_as_many_answers_as_were_counted() {
    if !has("h2load") || !has("curl") {
        return;
    }
    for words in KINDS {
        let server = Server::start(words);
        for (path, requests) in [("hello", 5_000), ("payload/100000", 200)] {
            let url = format!("{}/{path}", server.url);
            let count = requests.to_string();
            let output = run("h2load", &["-n", &count, "-c", "4", "-m", "50", &url]);
            let said = text(&output.stdout);
            assert!(
                said.contains(&format!("{count} succeeded, 0 failed")),
                "{said}"
            );
        }
        assert_eq!(counted(&server), (5_200, 8));
    }
}

#[test]
fn our_own_generator_has_as_many_answers_as_were_counted() {
    if !has("curl") {
        return;
    }
    for words in KINDS {
        for threads in ["1", "2"] {
            let server = Server::start(&[words, &["--threads", threads]].concat());
            let url = format!("{}/echo", server.url);
            let words = [
                "load", "-t", "1", "--json", "-", "-n", "3000", "-c", "3", "--http2",
            ];
            let more = ["--streams", "20", "--body", "abc", "--insecure", &url];
            let more = if server.url.starts_with("https") {
                &more[..]
            } else {
                &[&more[..4], &more[5..]].concat()
            };
            let output = run(PRONY, &[&words[..], more].concat());
            assert!(output.status.success(), "{}", text(&output.stderr));
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let ok = report.pointer("/status/200").and_then(Value::as_u64);
            assert_eq!(ok, Some(3_000), "{report}");
            assert_eq!(counted(&server), (3_000, 3));
        }
    }
}

#[test]
fn the_whole_list_of_h2spec_holds() {
    if !prony_testkit::long() {
        return;
    }
    if Command::new("h2spec").arg("--version").output().is_err() {
        return prony_testkit::skip_without("h2spec", "h2spec is not installed");
    }
    let server = Server::start(&["--tls"]);
    let port = server.url.rsplit(':').next().expect("a port");
    let words = [
        "-t",
        "-k",
        "-h",
        "127.0.0.1",
        "-p",
        port,
        "-P",
        "/payload/100",
    ];
    let output = run("h2spec", &words);
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains(" 0 failed"),
        "{said}"
    );
}
