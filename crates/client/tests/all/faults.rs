//! Each thing that a server, a proxy or the system can do wrong is an error by name, which
//! says what the client was at, with which address, and what was said. On both drivers.
//! (TLS: `client_tls`; codings and redirects of all kinds: `client_policy`.)

use std::net::{TcpListener, TcpStream};
use std::process::Command;

use prony_base::Nanos;
use prony_client::proxy::{Proxies, Proxy};
use prony_client::{Client, Counts, Error, RequestPhase, Settings};
use prony_engine::{Config, DriverChoice, run};

use crate::hostile::Act::{HalfClose, Read, Reset, Send, SendForEver, Stall};
use crate::hostile::{Act, Hostile};

const HEAD: Act = Send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n");
const CHUNKED: Act = Send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");

fn settings() -> Settings {
    Settings {
        timeout: Nanos::from_secs(60),
        ..Settings::default()
    }
}

/// What a GET fails with, on each driver.
fn failures(url: &str, settings: &Settings) -> Vec<Error> {
    let ask = |driver| {
        let config = Config {
            driver,
            ..Config::default()
        };
        let settings = settings.clone();
        let ran = run(&config, |handle| async move {
            let client = Client::new(&handle, settings);
            let whole = async || client.get(url).send().await?.bytes().await;
            let failed = whole().await.expect_err("it cannot go well");
            let Counts {
                started,
                failed: count,
                in_flight,
                connections,
                ..
            } = client.counts();
            assert_eq!((started, count, in_flight), (1, 1, 0), "{failed}");
            assert_eq!(connections, 0, "none is kept after {failed}");
            failed
        });
        ran.expect("the loop runs")
    };
    vec![ask(DriverChoice::Auto), ask(DriverChoice::Epoll)]
}

/// A fault, what the client was at, the error's name, and a part of what it says.
type Case = (&'static [Act], RequestPhase, &'static str, &'static str);

fn check(cases: &[Case], settings: &Settings) {
    for &(script, phase, name, part) in cases {
        let server = Hostile::new(script);
        for error in failures(&server.url(), settings) {
            let said = error.to_string();
            assert_eq!(
                (error.phase(), error.kind().name()),
                (phase, name),
                "{script:?}: {said}"
            );
            assert!(said.contains(part), "{script:?}: {said}");
            assert!(said.starts_with(&server.url()), "{said}");
            assert_eq!(error.remote_addr(), Some(server.address()), "{said}");
        }
    }
}

#[test]
fn connections_that_end_too_early() {
    let broken = "the connection was broken off: Connection reset by peer";
    let cut = "the connection ended in the middle of the answer";
    let nothing = "the server closed the connection without an answer";
    let cases: [Case; 10] = [
        (&[Reset], RequestPhase::Wait, "reset", broken),
        (&[Read], RequestPhase::Wait, "closed", nothing),
        (&[Read, HalfClose], RequestPhase::Wait, "closed", nothing),
        (
            &[Read, Send(b"HTTP/1.1 200 O")],
            RequestPhase::Head,
            "truncated",
            cut,
        ),
        (
            &[Read, Send(b"HTTP/1.1 200 OK\r\na: b\r\n"), HalfClose],
            RequestPhase::Head,
            "truncated",
            cut,
        ),
        (&[Read, HEAD], RequestPhase::Body, "truncated", cut),
        (
            &[Read, HEAD, Send(b"123456789"), HalfClose],
            RequestPhase::Body,
            "truncated",
            cut,
        ),
        (
            &[Read, CHUNKED, Send(b"4\r\n12")],
            RequestPhase::Body,
            "truncated",
            cut,
        ),
        (
            &[Read, CHUNKED, Send(b"4\r\n1234\r\n")],
            RequestPhase::Body,
            "truncated",
            cut,
        ),
        (
            &[Read, CHUNKED, Send(b"4\r\n1234\r\n0\r\n")],
            RequestPhase::Body,
            "truncated",
            cut,
        ),
    ];
    check(&cases, &settings());
}

#[test]
fn answers_without_end() {
    let too_long = "the body has more bytes than collected_bytes_max allows (1000)";
    let cases: [Case; 7] = [
        (
            &[Read, Send(b"HTTP/1.1 200 OK\r\n"), SendForEver(b"x: y\r\n")],
            RequestPhase::Head,
            "wire",
            "_max allows",
        ),
        (
            &[
                Read,
                Send(b"HTTP/1.1 200 OK\r\nx: "),
                SendForEver(b"yyyyyyyyyyyyyyyyyyyyyyyy"),
            ],
            RequestPhase::Head,
            "wire",
            "head_bytes_max",
        ),
        (
            &[Read, SendForEver(b"HTTP/1.1 100 Continue\r\n\r\n")],
            RequestPhase::Head,
            "wire",
            "interim_responses_max",
        ),
        (
            &[Read, CHUNKED, Send(b"0\r\n"), SendForEver(b"x: y\r\n")],
            RequestPhase::Body,
            "wire",
            "_max",
        ),
        (
            &[Read, CHUNKED, Send(b"1;"), SendForEver(b"xxxxxxxxxxxxxxxx")],
            RequestPhase::Body,
            "wire",
            "chunk_line_bytes_max",
        ),
        (
            &[Read, CHUNKED, SendForEver(b"4\r\n1234\r\n")],
            RequestPhase::Body,
            "body_too_long",
            too_long,
        ),
        (
            &[
                Read,
                Send(b"HTTP/1.1 200 OK\r\n\r\n"),
                SendForEver(b"0123456789"),
            ],
            RequestPhase::Body,
            "body_too_long",
            too_long,
        ),
    ];
    let settings = Settings {
        collected_bytes_max: 1_000,
        ..settings()
    };
    check(&cases, &settings);
}

#[test]
fn answers_that_are_none() {
    let cases: [Case; 7] = [
        (
            &[Read, Send(b"220 mail.test ESMTP\r\n")],
            RequestPhase::Head,
            "wire",
            "status line",
        ),
        (
            &[Read, Send(b"<html>hello</html>\r\n")],
            RequestPhase::Head,
            "wire",
            "status line",
        ),
        (
            &[Read, Send(b"\0\x01\x02\x03\r\n\r\n")],
            RequestPhase::Head,
            "wire",
            "",
        ),
        (
            &[
                Read,
                Send(b"HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n"),
            ],
            RequestPhase::Head,
            "wire",
            "ontent-",
        ),
        (
            &[
                Read,
                Send(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"),
            ],
            RequestPhase::Head,
            "wire",
            "ontent-",
        ),
        (
            &[Read, CHUNKED, Send(b"zz\r\n")],
            RequestPhase::Body,
            "wire",
            "chunk",
        ),
        (
            &[Read, CHUNKED, Send(b"1\r\nabc")],
            RequestPhase::Body,
            "wire",
            "chunk",
        ),
    ];
    check(&cases, &settings());
}

#[test]
fn servers_that_stall() {
    let short = Nanos::from_millis(50);
    let cases: [Case; 1] = [(
        &[Read, Stall],
        RequestPhase::Wait,
        "timed_out",
        "first_byte_timeout",
    )];
    let first_byte = Settings {
        first_byte_timeout: short,
        ..settings()
    };
    check(&cases, &first_byte);
    let cases: [Case; 2] = [
        (
            &[Read, Send(b"HTTP/1.1 200 OK\r\n"), Stall],
            RequestPhase::Head,
            "timed_out",
            "stall_timeout",
        ),
        (
            &[Read, HEAD, Send(b"123"), Stall],
            RequestPhase::Body,
            "timed_out",
            "stall_timeout",
        ),
    ];
    let stall = Settings {
        stall_timeout: short,
        ..settings()
    };
    check(&cases, &stall);
    let cases: [Case; 1] = [(
        &[Read, Stall],
        RequestPhase::Wait,
        "timed_out",
        "that timeout allows",
    )];
    let whole = Settings {
        timeout: Nanos::from_millis(200),
        collected_bytes_max: u64::MAX,
        ..settings()
    };
    check(&cases, &whole);
    // What moves without end is ended by the limit on the whole, in which the answer has to begin on a busy machine, too.
    let cases: [Case; 1] = [(
        &[
            Read,
            Send(b"HTTP/1.1 200 OK\r\n\r\n"),
            SendForEver(b"0123456789"),
        ],
        RequestPhase::Body,
        "timed_out",
        "that timeout allows",
    )];
    let longer = Settings {
        timeout: Nanos::from_secs(1),
        ..whole
    };
    check(&cases, &longer);
}

#[test]
fn redirects_in_a_loop() {
    let looping = Send(b"HTTP/1.1 302 Found\r\nlocation: /it\r\ncontent-length: 0\r\n\r\n");
    let server = Hostile::new(Box::leak(Box::new([Read, looping])));
    for error in failures_of_redirect(&server) {
        let said = error.to_string();
        assert_eq!(
            (error.phase(), error.kind().name()),
            (RequestPhase::Redirect, "redirect_loop")
        );
        let url = server.url();
        assert!(
            said.contains(&format!("redirects in a loop: {url} -> {url}")),
            "{said}"
        );
    }
}

/// As of [`failures`], with an answer whose connection may stay.
fn failures_of_redirect(server: &Hostile) -> Vec<Error> {
    let mut told = Vec::new();
    for driver in [DriverChoice::Auto, DriverChoice::Epoll] {
        let config = Config {
            driver,
            ..Config::default()
        };
        let url = server.url();
        let ran = run(&config, |handle| async move {
            let client = Client::new(&handle, settings());
            client.get(&url).send().await.map(|_| ())
        });
        told.push(ran.expect("the loop runs").expect_err("it leads nowhere"));
    }
    told
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let held = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    // The other end of a connection: taken, and nobody listens there.
    let address = held.local_addr().expect("connected");
    for error in failures(&format!("http://{address}/"), &settings()) {
        assert_eq!(
            (error.phase(), error.kind().name()),
            (RequestPhase::Connect, "refused")
        );
        let said = error.to_string();
        let expected = format!("connecting to {address}: the connection was refused: ");
        assert!(said.contains(&expected), "{said}");
        assert!(
            said.ends_with("(is the server running, and on this port?)"),
            "{said}"
        );
    }
}

#[test]
fn names_that_lead_nowhere() {
    for error in failures("http://no.such.name.invalid/", &settings()) {
        assert_eq!(
            (error.phase(), error.kind().name()),
            (RequestPhase::Resolve, "name_not_found")
        );
        let said = error.to_string();
        assert!(
            said.contains("name not found: `no.such.name.invalid` ("),
            "{said}"
        );
    }
    // Several addresses, and each says why.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let held = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let port = held.local_addr().expect("connected").port();
    let mut settings = settings();
    let line = "two.test:127.0.0.1,127.0.0.2";
    let own = prony_client::resolve::Override::parse(line).expect("an override");
    settings.resolve.overrides.push(own);
    for error in failures(&format!("http://two.test:{port}/"), &settings) {
        assert_eq!(
            (error.phase(), error.kind().name()),
            (RequestPhase::Connect, "all_addresses")
        );
        let said = error.to_string();
        for address in ["127.0.0.1", "127.0.0.2"] {
            let part = format!("{address}:{port}: Connection refused");
            assert!(said.contains(&part), "{said}");
        }
    }
}

#[test]
fn proxies_that_refuse() {
    let cases: [(&'static [Act], &str, &str); 4] = [
        (
            &[
                Read,
                Send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"),
            ],
            "proxy_refused",
            "the proxy refused with status 403",
        ),
        (
            &[
                Read,
                Send(b"HTTP/1.1 407 No\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n"),
            ],
            "proxy_credentials",
            "give the proxy's user and password",
        ),
        (&[Read, Send(b"hello\r\n\r\n")], "wire", "status line"),
        (&[Read], "closed", "closed the connection"),
    ];
    for (script, name, part) in cases {
        let server = Hostile::new(script);
        let proxy = Proxy::new(&format!("http://{}", server.address())).expect("a proxy");
        let settings = Settings {
            proxies: Proxies::all(proxy),
            ..settings()
        };
        for error in failures("https://far.test/", &settings) {
            let said = error.to_string();
            assert_eq!(
                (error.phase(), error.kind().name()),
                (RequestPhase::Proxy, name),
                "{said}"
            );
            assert!(said.contains(part), "{said}");
        }
    }
}

/// In a process of its own, as it takes all descriptors that there are.
#[test]
fn no_descriptor_is_left() {
    const HERE: &str = "PRONY_TEST_TAKES_ALL_DESCRIPTORS";
    if let Some(url) = std::env::var_os(HERE) {
        let url = url.into_string().expect("a URL");
        let failed = run(&Config::default(), |handle| async move {
            let client = Client::new(&handle, settings());
            // The first may need descriptors for the loop itself.
            let _ = client.get(&url).send().await;
            let mut taken = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                taken.push(file);
            }
            client.get(&url).send().await.map(|_| ())
        });
        let error = failed.expect("the loop runs").expect_err("there is none");
        assert_eq!(error.kind().name(), "out_of_descriptors", "{error}");
        println!("told: {error}");
        return;
    }
    let server = Hostile::new(&[Read, HEAD]);
    let this = std::env::current_exe().expect("it runs");
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(this)
        .args(["--exact", "faults::no_descriptor_is_left", "--nocapture"])
        .env(HERE, server.url())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(
        said.contains("no descriptor is left: Too many open files"),
        "{said}"
    );
    assert!(
        said.contains("(raise the limit (ulimit -n) or lower the number of"),
        "{said}"
    );
}
