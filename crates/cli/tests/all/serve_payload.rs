//! `/testpayload` of `prony serve`, and the counters that two readings compare.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use prony_base::Random;
use prony_testkit::{RawAnswer, ask, read_answer, read_head, rest};

use crate::server::{Server, drivers, prony};

const MIB: usize = 1 << 20;

/// The first bytes of every made payload.
fn made(length: usize) -> Vec<u8> {
    let mut random = Random::of(1, "payload");
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn spell(method: &str, extra: &str) -> String {
    format!("{method} /testpayload HTTP/1.1\r\nHost: a\r\n{extra}\r\n")
}

fn get(stream: &mut TcpStream, extra: &str) -> RawAnswer {
    ask(stream, &spell("GET", extra), false)
}

#[test]
fn a_payload_comes_whole_and_the_connection_goes_on() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--payload", "20000001"]);
        let mut stream = server.connect();
        for _ in 0..2 {
            let answer = get(&mut stream, "");
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("content-length"), Some("20000001"));
            assert_eq!(answer.header("accept-ranges"), Some("bytes"));
            assert!(answer.body == made(20_000_001), "the bytes differ");
        }
        // Requests that come in one piece are answered in order.
        let hello = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
        let all = [
            &spell("GET", ""),
            hello,
            &spell("GET", "Range: bytes=0-9\r\n"),
        ]
        .concat();
        stream.write_all(all.as_bytes()).expect("sent");
        let answers: Vec<RawAnswer> = (0..3).map(|_| read_answer(&mut stream, false)).collect();
        assert_eq!(answers[0].body.len(), 20_000_001);
        assert_eq!(answers[1].text(), "Hello, World!");
        assert_eq!(answers[2].body, made(10));
    }
}

#[test]
fn ranges_are_parts_of_it() {
    let length = 3 * MIB + 7;
    for driver in drivers() {
        let server = Server::start_on(driver, &["--payload", &length.to_string()]);
        let mut stream = server.connect();
        let whole = made(length);
        let tag = get(&mut stream, "")
            .header("etag")
            .expect("a tag")
            .to_owned();
        let last = length - 1;
        for (extra, first, end) in [
            ("Range: bytes=0-0\r\n".to_owned(), 0, 1),
            (
                format!("Range: bytes=100-{}\r\n", 2 * MIB),
                100,
                2 * MIB + 1,
            ),
            (format!("Range: bytes={last}-\r\n"), last, length),
            ("Range: bytes=-1000\r\n".to_owned(), length - 1000, length),
            (format!("Range: bytes=5-9\r\nIf-Range: {tag}\r\n"), 5, 10),
        ] {
            let answer = get(&mut stream, &extra);
            assert_eq!(answer.status, 206, "{extra}");
            let range = format!("bytes {first}-{}/{length}", end - 1);
            assert_eq!(answer.header("content-range"), Some(&*range), "{extra}");
            assert_eq!(answer.header("etag"), Some(&*tag));
            assert!(answer.body == whole[first..end], "{extra}");
        }
        for extra in [
            "Range: bytes=0-1,4-5\r\n",
            "Range: lines=1-2\r\n",
            "Range: bytes=5-9\r\nIf-Range: \"other\"\r\n",
            "Range: bytes=5-9\r\nIf-Range: Sat, 29 Oct 1994 19:43:31 GMT\r\n",
        ] {
            let answer = get(&mut stream, extra);
            assert_eq!((answer.status, answer.body.len()), (200, length), "{extra}");
        }
        let answer = get(&mut stream, &format!("Range: bytes={length}-\r\n"));
        assert_eq!(answer.status, 416);
        let range = format!("bytes */{length}");
        assert_eq!(answer.header("content-range"), Some(&*range));
    }
}

#[test]
fn head_and_http_1_0_and_other_methods_are_answered_as_they_must() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--payload", "1MiB"]);
        let mut stream = server.connect();
        let head = ask(&mut stream, &spell("HEAD", "Range: bytes=0-9\r\n"), true);
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-length"), Some("1048576"));
        let posted = ask(&mut stream, &spell("POST", ""), false);
        assert_eq!(
            (posted.status, posted.header("allow")),
            (405, Some("GET, HEAD"))
        );
        let mut old = server.connect();
        old.write_all(b"GET /testpayload HTTP/1.0\r\n\r\n")
            .expect("sent");
        let answer = read_answer(&mut old, false);
        assert!(answer.status == 200 && answer.body == made(MIB));
        assert_eq!(rest(&mut old), "");
        let plain = Server::start_on(driver, &[]);
        let answer = plain.ask_once(&spell("GET", ""));
        assert_eq!(answer.status, 404);
        assert!(answer.text().contains("--payload"), "{}", answer.text());
        let page = plain.ask_once("GET /hello_world.html HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(page.header("content-type"), Some("text/html"));
        assert!(page.text().contains("<h1>Hello world!</h1>"));
    }
}

#[test]
fn a_file_is_served_as_it_was_and_its_loss_is_seen() {
    for driver in drivers() {
        let folder = std::env::temp_dir().join(format!("prony-payload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("made");
        let path = folder.join(driver);
        std::fs::write(&path, made(8 * MIB)).expect("written");
        let server = Server::start_on(driver, &["--payload-file", path.to_str().expect("text")]);
        let mut stream = server.connect();
        assert!(get(&mut stream, "").body == made(8 * MIB));
        // Longer is not seen, shorter cannot be hidden.
        let file = std::fs::File::options().write(true).open(&path);
        let file = file.expect("it is there");
        file.set_len(9 * MIB as u64).expect("set");
        assert_eq!(get(&mut stream, "").body.len(), 8 * MIB);
        file.set_len(MIB as u64).expect("set");
        stream.write_all(spell("GET", "").as_bytes()).expect("sent");
        let head = read_head(&mut stream);
        assert_eq!(head.header("content-length"), Some("8388608"));
        let mut got = Vec::new();
        // It ends early, as a rule with a reset.
        let _ = stream.read_to_end(&mut got);
        assert!(got.len() <= MIB, "{} bytes", got.len());
        assert_eq!(server.stats()["requests"]["aborted"], 1);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

#[test]
fn who_leaves_in_the_middle_is_no_answer() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--payload", "64MiB"]);
        let mut stream = server.connect();
        stream.write_all(spell("GET", "").as_bytes()).expect("sent");
        stream.read_exact(&mut [0; 1000]).expect("its beginning");
        drop(stream);
        while server.stats()["requests"]["aborted"] == 0 {}
        let stats = server.stats();
        assert_eq!(stats["requests"]["aborted"], 1);
        assert_eq!(stats["served"]["answers"], 0);
        assert_eq!(stats["served"]["body_bytes"], 0);
    }
}

#[test]
fn two_readings_differ_by_exactly_what_came_between() {
    for driver in drivers() {
        let server = Server::start_on(driver, &["--payload", "1MiB", "--threads", "2"]);
        server.stats();
        let before = server.stats();
        let mut bytes = 0;
        let mut answers = 0;
        for _ in 0..6 {
            let mut stream = server.connect();
            bytes += get(&mut stream, "").body.len();
            bytes += get(&mut stream, "Range: bytes=9-99\r\n").body.len();
            bytes += get(&mut stream, "Range: bytes=9999999-\r\n").body.len();
            bytes += ask(&mut stream, &spell("DELETE", ""), false).body.len();
            ask(&mut stream, &spell("HEAD", ""), true);
            for request in [
                "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /hello_world.html HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /payload/100000 HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /status/204 HTTP/1.1\r\nHost: a\r\n\r\n",
            ] {
                bytes += ask(&mut stream, request, false).body.len();
            }
            // Readings in between, and their heads, are not counted.
            server.stats();
            ask(&mut stream, "HEAD /stats HTTP/1.1\r\nHost: a\r\n\r\n", true);
            answers += 10;
        }
        let after = server.stats();
        let difference = |name: &str| {
            let number = |stats: &serde_json::Value| stats["served"][name].as_u64();
            number(&after).expect("a number") - number(&before).expect("a number")
        };
        assert_eq!(difference("answers"), answers);
        assert_eq!(difference("body_bytes"), bytes as u64);
    }
}

#[test]
fn a_payload_that_cannot_be_is_refused_by_name() {
    for (arguments, said) in [
        (&["--payload", "much"][..], "is not a size"),
        (&["--payload", "17GiB"], "--payload-file"),
        (
            &["--payload-file", "/nowhere"],
            "cannot serve `/nowhere` as the payload",
        ),
        (&["--payload", "1MiB", "--services"], "leave --payload out"),
        (
            &["--payload", "1MiB", "--payload-file", "/"],
            "cannot be used with",
        ),
    ] {
        let arguments = [&["serve", "--port", "0"][..], arguments].concat();
        let output = prony(&arguments).output().expect("prony starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}
