//! `prony load --http2` against nginx and nghttpd, over TLS and with prior knowledge, and `--pipeline` against
//! `prony serve`: each server has counted the same requests.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use prony_tls::CertificateText;
use prony_wire::http2::{FRAME_HEAD_BYTES, FrameHead, PREFACE, flag, kind, put_frame_head};
use serde_json::Value;

use crate::common::{Ended, PRONY, folder, free_port, text, wait_for_port};
use crate::server::Server;

fn load(words: &[&str], url: &str) -> Output {
    let mut command = Command::new(PRONY);
    command.args(["load", "-t", "1", "--json", "-"]).args(words);
    command.arg(url).output().expect("prony runs")
}

fn report(output: &Output) -> Value {
    let report = serde_json::from_slice(&output.stdout);
    report.unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

fn number(report: &Value, path: &str) -> u64 {
    let value = report.pointer(path).unwrap_or(&Value::Null);
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{path} in {report}"))
}

/// Whether a program is there; a named skip where it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-v").output().is_ok();
    if !found {
        prony_testkit::skip(&format!("{program} is not installed"));
    }
    found
}

/// nginx with HTTP/2: with TLS on the first port, without on the second.
struct Nginx {
    _process: Ended,
    secure: String,
    plain: String,
    certificate: String,
    log: PathBuf,
}

impl Nginx {
    fn start(folder: &Path, settings: &str) -> Option<Nginx> {
        if !has("nginx") {
            return None;
        }
        let made = CertificateText::self_signed(&["127.0.0.1".to_owned()]).expect("made");
        let files = made.write(folder).expect("written");
        let (secure, plain, at) = (free_port(), free_port(), folder.display());
        let (certificate, key) = (files.certificate.display(), files.key.display());
        let config = format!(
            "daemon off; pid {at}/pid; error_log {at}/error.log; worker_processes 1;
            events {{ worker_connections 1000; }}
            http {{
              access_log {at}/access.log; client_body_temp_path {at}/a; proxy_temp_path {at}/b;
              fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;
              ssl_certificate {certificate}; ssl_certificate_key {key}; {settings}
              server {{ listen 127.0.0.1:{secure} ssl http2; listen 127.0.0.1:{plain} http2;
                location / {{ return 200 'Hello'; }}
                location /no {{ return 404 'No'; }} }}
            }}"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, config).expect("written");
        let mut command = Command::new("nginx");
        command
            .arg("-c")
            .arg(&file)
            .arg("-e")
            .arg(folder.join("error.log"));
        let process = Ended::start(command.stderr(Stdio::null()));
        wait_for_port(secure);
        wait_for_port(plain);
        Some(Nginx {
            _process: process,
            secure: format!("https://127.0.0.1:{secure}"),
            plain: format!("http://127.0.0.1:{plain}"),
            certificate: files.certificate.to_string_lossy().into_owned(),
            log: folder.join("access.log"),
        })
    }

    /// The requests that it has answered, once it has ended.
    fn answered(self) -> u64 {
        let Nginx { _process, log, .. } = self;
        drop(_process);
        let log = fs::read_to_string(log).expect("a log");
        let http2 = log.lines().filter(|line| line.contains("HTTP/2.0"));
        http2.count() as u64
    }
}

#[test]
fn nginx_counts_the_same_requests_of_http2() {
    let folder = folder("http2-nginx");
    let settings = "keepalive_requests 1000000; http2_max_concurrent_streams 100;";
    let Some(nginx) = Nginx::start(&folder, settings) else {
        return;
    };
    let ten = ["-n", "1000", "-c", "3", "--http2", "--streams", "10"];
    let secure = [&ten[..], &["--cacert", &nginx.certificate]].concat();
    let mut seen = 0;
    for driver in ["auto", "epoll"] {
        for (words, url) in [(&secure[..], &nginx.secure), (&ten[..], &nginx.plain)] {
            let mut command = Command::new(PRONY);
            command.args(["load", "-t", "1", "--json", "-"]).args(words);
            let output = command.arg(url).env("PRONY_DRIVER", driver).output();
            let output = output.expect("prony runs");
            let report = report(&output);
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert_eq!(number(&report, "/completed"), 1_000);
            assert_eq!(number(&report, "/status/200"), 1_000);
            assert_eq!(number(&report, "/connections_opened"), 3);
            assert_eq!(number(&report, "/http2/streams_max"), 10);
            seen += 1_000;
        }
    }
    let posted = [
        "-n",
        "50",
        "-c",
        "1",
        "--http2",
        "--body",
        "{}",
        "--streams",
        "2",
    ];
    let report_of_no = report(&load(&posted, &format!("{}/no", nginx.plain)));
    assert_eq!(number(&report_of_no, "/status/404"), 50);
    assert_eq!(nginx.answered(), seen + 50);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_server_that_leaves_is_left_and_what_it_drops_is_told_apart() {
    let folder = folder("http2-goaway");
    let settings = "keepalive_requests 100; http2_max_concurrent_streams 4;";
    let Some(nginx) = Nginx::start(&folder, settings) else {
        return;
    };
    let words = ["-n", "2000", "-c", "2", "--http2", "--streams", "10"];
    let report = report(&load(&words, &nginx.plain));
    assert_eq!(number(&report, "/http2/streams_max"), 4);
    let (completed, sent) = (
        number(&report, "/completed"),
        number(&report, "/counts/sent"),
    );
    let gone = report.pointer("/counts/failed/gone_away");
    let gone = gone.and_then(Value::as_u64).unwrap_or_default();
    assert_eq!((sent, completed + gone), (2_000, 2_000), "{report}");
    assert!(completed > 1_000);
    assert!(number(&report, "/connections_opened") >= 20, "{report}");
    assert_eq!(nginx.answered(), completed);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn nghttpd_answers_large_bodies_and_takes_them() {
    if !has("nghttpd") {
        return;
    }
    let folder = folder("http2-nghttpd");
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 253) as u8).collect();
    fs::write(folder.join("large"), &large).expect("written");
    let port = free_port();
    let mut command = Command::new("nghttpd");
    command
        .args(["--no-tls", "-a", "127.0.0.1", "-d"])
        .arg(&folder);
    let _server = Ended::start(command.arg(port.to_string()).stdout(Stdio::null()));
    wait_for_port(port);
    let url = format!("http://127.0.0.1:{port}/large");
    let words = ["-n", "40", "-c", "2", "--http2", "--streams", "5"];
    let output = load(&words, &url);
    let got = report(&output);
    assert_eq!(number(&got, "/completed"), 40, "{got}");
    assert!(number(&got, "/received_bytes") > 40 * 3_000_000);
    let file = folder.join("large");
    let body = ["--body-file", file.to_str().expect("text")];
    let got = report(&load(&[&words[..], &body].concat(), &url));
    assert_eq!(number(&got, "/completed"), 40, "{got}");
    assert!(number(&got, "/sent_bytes") > 40 * 3_000_000);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_server_without_http2_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1_000]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            // Closed with a part of the preface unread, it would be reset, and the answer lost.
            let _ = stream.shutdown(Shutdown::Write);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
    });
    let output = load(&["-n", "10", "--http2"], &url);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(
        said.contains("the server does not speak HTTP/2 there"),
        "{said}"
    );
    let server = Server::start(&["--tls", "--no-http2"]);
    let output = load(&["-n", "10", "--http2", "--insecure"], &server.url);
    let said = text(&output.stderr);
    assert!(said.contains("no_application_protocol"), "{said}");
}

/// Frames for a stream.
type AnswerOf = fn(u32) -> Vec<u8>;

/// A server that begins with `hello` and gives each request, by its stream, what `answer` makes.
fn rogue(hello: Vec<u8>, answer: AnswerOf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let converse = move |mut stream: TcpStream, hello: Vec<u8>| -> io::Result<()> {
        stream.write_all(&hello)?;
        stream.read_exact(&mut [0; PREFACE.len()])?;
        loop {
            let mut head = [0; FRAME_HEAD_BYTES];
            stream.read_exact(&mut head)?;
            let head = FrameHead::read(head);
            stream.read_exact(&mut vec![0; head.length])?;
            if head.kind == kind::HEADERS {
                stream.write_all(&answer(head.stream))?;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let hello = hello.clone();
            thread::spawn(move || converse(stream, hello));
        }
    });
    url
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

#[test]
fn a_server_that_breaks_a_rule_at_once_is_not_said_to_speak_no_http2() {
    let settings = frame(kind::SETTINGS, 0, 0, &[]);
    for (hello, named) in [
        (
            frame(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1]),
            "the server broke the protocol: SETTINGS: MAX_FRAME_SIZE is not from 16,384",
        ),
        (
            frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
            "the server broke the protocol: WINDOW_UPDATE by 0",
        ),
        (
            frame(kind::GOAWAY, 0, 0, &[0; 8]),
            "the server leaves at once (GOAWAY)",
        ),
    ] {
        // Before its settings nothing else may come but a farewell.
        let hello = match hello[3] {
            kind::WINDOW_UPDATE => [&settings[..], &hello].concat(),
            _ => hello,
        };
        let url = rogue(hello, |_| Vec::new());
        let output = load(&["-n", "10", "--http2"], &url);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(named), "{said}");
    }
}

#[test]
fn an_answer_that_breaks_a_rule_of_http2_is_a_failure_with_the_rules_name() {
    let settings = frame(kind::SETTINGS, 0, 0, &[]);
    let answers: [(AnswerOf, _); 2] = [
        (
            |stream| {
                frame(
                    kind::HEADERS,
                    flag::END_HEADERS | flag::END_STREAM,
                    stream,
                    b"\x88\x88",
                )
            },
            "a pseudo-header field is there twice",
        ),
        (
            |stream| {
                [
                    frame(kind::HEADERS, flag::END_HEADERS, stream, b"\x88"),
                    frame(
                        kind::HEADERS,
                        flag::END_HEADERS | flag::END_STREAM,
                        stream,
                        b"\x88",
                    ),
                ]
                .concat()
            },
            "a pseudo-header field in trailers",
        ),
    ];
    for (answer, named) in answers {
        let url = rogue(settings.clone(), answer);
        let words = ["-n", "20", "-c", "2", "--http2", "--streams", "3"];
        let got = report(&load(&words, &url));
        assert_eq!(number(&got, "/completed"), 0, "{got}");
        assert_eq!(number(&got, "/errors/protocol"), 20, "{got}");
        // The stream has failed, and not its connection.
        assert_eq!(number(&got, "/connections_opened"), 2, "{got}");
        let rule = got["protocol_failure"].as_str().expect("a rule");
        assert!(rule.contains(named), "{rule}");
        let shown = Command::new(PRONY)
            .args(["load", "-t1", "-c1", "-n2", "--http2", &url])
            .output()
            .expect("prony runs");
        let shown = text(&shown.stdout);
        assert!(
            shown.contains("Protocol:     of an answer's fields: "),
            "{shown}"
        );
    }
    let url = rogue(settings, |stream| frame(kind::HEADERS, 5, stream, b"\x88"));
    let got = report(&load(&["-n", "20", "--http2"], &url));
    assert_eq!(number(&got, "/completed"), 20, "{got}");
    assert_eq!(got["protocol_failure"], Value::Null);
}

#[test]
fn a_pipeline_is_answered_in_order_and_counted() {
    for tls in [&[][..], &["--tls"]] {
        let server = Server::start(tls);
        let url = format!("{}/hello", server.url);
        let insecure = if tls.is_empty() {
            &[][..]
        } else {
            &["--insecure"]
        };
        let words = [&["-n", "3000", "-c", "3", "--pipeline", "8"], insecure].concat();
        let output = load(&words, &url);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let got = report(&output);
        assert_eq!(number(&got, "/completed"), 3_000);
        assert_eq!(number(&got, "/connections_opened"), 3);
        let rate = ["-d", "500ms", "-R", "2000", "-c", "2", "--pipeline", "4"];
        let got = report(&load(&[&rate[..], insecure].concat(), &url));
        assert_eq!(number(&got, "/counts/sent"), number(&got, "/arrivals/sent"));
    }
}
