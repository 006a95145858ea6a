//! `prony fetch`: what arrives, what does not, and what stays behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use prony_testkit::folder;

use crate::common::SYSTEMS;
use crate::scripted::tls::Secured;
use crate::scripted::{Ask, End, Scripted, names, run, say, whole};

const BODY: &[u8] = b"0123456789abcdef";
const SHA256: &str = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";

fn good() -> Scripted {
    Scripted::new(|_| (whole("", BODY), End::Close))
}

#[test]
fn a_file_has_the_last_name_of_its_url() {
    let (server, here) = (good(), folder("name"));
    let did = run(&here, &[&server.url("/a/caf%C3%A9.txt?x=1")]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(names(&here), ["café.txt"]);
    assert_eq!(fs::read(here.join("café.txt")).expect("there"), BODY);
    assert!(
        did.out.is_empty(),
        "standard output is for what was asked for"
    );
    assert_eq!(did.err.lines().count(), 1, "{}", did.err);
    let quiet = run(&here, &["-q", "--overwrite", &server.url("/café.txt")]);
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""));
}

#[test]
fn a_body_goes_to_standard_output_or_a_device() {
    let (server, here) = (good(), folder("stdout"));
    let did = run(&here, &["-o", "-", &server.url("/")]);
    assert_eq!((did.code, &did.out[..]), (Some(0), BODY));
    let did = run(&here, &["-o", "/dev/null", &server.url("/")]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    let did = run(&here, &["--json", "-o", "/dev/full", &server.url("/")]);
    assert_eq!(
        (did.code, did.fault().as_str()),
        (Some(1), "file disk_full")
    );
    let did = run(&here, &["--json", "-o", "-", &server.url("/")]);
    assert_eq!(did.code, Some(2));
    assert!(names(&here).is_empty());
}

#[test]
fn an_object_tells_all_of_a_url() {
    let (server, here) = (good(), folder("json"));
    let url = server.url("/x");
    let did = run(&here, &["--json", "--checksum", "sha256", "--timing", &url]);
    let object = &did.objects()[0];
    let keys: Vec<&String> = object.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "address",
            "bytes",
            "error",
            "file",
            "final_url",
            "kept_bytes",
            "notes",
            "protocol",
            "rate_bytes_per_s",
            "received_bytes",
            "resumed_from",
            "retries",
            "reused",
            "schema",
            "sha256",
            "status",
            "timing",
            "took_ns",
            "url"
        ]
    );
    assert_eq!(object["url"], url);
    assert_eq!(object["bytes"], 16);
    assert_eq!(object["sha256"], SHA256);
    assert_eq!(object["protocol"], "HTTP/1.1");
    assert!(object["error"].is_null());
    let at = |name: &str| object["timing"][name].as_u64().expect("a time");
    assert!(at("connected_ns") <= at("sent_ns") && at("sent_ns") <= at("first_byte_ns"));
    assert!(at("first_byte_ns") <= at("done_ns"));
    assert!(did.err.contains("first byte"), "{}", did.err);
}

#[test]
fn a_checksum_decides_whether_a_file_gets_its_name() {
    let (server, here) = (good(), folder("sum"));
    let url = server.url("/x");
    let right = format!("sha256:{SHA256}");
    let did = run(&here, &["--checksum", &right, &url]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    let wrong = format!("sha256:{}", "0".repeat(64));
    let did = run(&here, &["--json", "--checksum", &wrong, "-o", "y", &url]);
    assert_eq!(did.code, Some(1));
    assert_eq!(did.fault(), "checksum wrong_checksum");
    assert_eq!(names(&here), ["x"]);
    fs::write(here.join("sums"), format!("{SHA256}  a\n{SHA256} *b\n")).expect("written");
    let (a, b, c) = (server.url("/a"), server.url("/b"), server.url("/c"));
    let did = run(&here, &["--checksum", "sha256:sums", &a, &b]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    let did = run(&here, &["--checksum", "sha256:sums", &c]);
    assert_eq!(did.code, Some(2), "{}", did.err);
    assert_eq!(names(&here), ["a", "b", "sums", "x"]);
}

#[test]
fn what_cannot_be_meant_is_said_before_anything_is_sent() {
    let (server, here) = (good(), folder("usage"));
    let (a, b) = (server.url("/1/x"), server.url("/2/x"));
    let part = server.url("/x.part");
    let up = server.url("/%2e%2e%2fx");
    // The parser of URLs drops these without a word.
    let (broken, tabbed) = (server.url("/a\r\nb"), server.url("/a\tb"));
    for (words, what) in [
        (vec![a.as_str(), &b], "would both be written to"),
        (vec![&a, &part], "would both be written to"),
        (vec!["-o", "y", &a, &b], "-o names one file"),
        (vec![&up], "leads to another folder"),
        (vec!["ftp://127.0.0.1/x"], "only http:// and https://"),
        (vec!["127.0.0.1/x"], "begin it with http://"),
        (vec![&broken], "there is a line break in it"),
        (vec![&tabbed], "there is a tab in it"),
        (vec!["-H", "Range: bytes=0-1", &a], "--resume"),
        (vec!["-H", "nonsense", &a], "is not a header"),
        (vec!["--checksum", "md5:x", &a], "use sha256 or sha512"),
        (vec!["--cacert", "none.pem", &a], "--cacert none.pem"),
        (vec!["--resolve", "x", &a], "HOST:PORT:ADDRESS"),
        (
            vec!["--input-file", "none", &a],
            "cannot read URLs from none",
        ),
        (vec!["--parallel", "65", &a], "65 is not in 1..=64"),
        (vec!["--resume", "--compressed", &a], "cannot be used with"),
    ] {
        let did = run(&here, &words);
        assert_eq!(did.code, Some(2), "{words:?}: {}", did.err);
        assert!(did.err.contains(what), "{words:?}: {}", did.err);
    }
    assert!(server.asked().is_empty() && names(&here).is_empty());
}

#[test]
fn names_of_servers_stay_in_the_folder() {
    let server = Scripted::new(|ask: &Ask| {
        let name = match ask.path.as_str() {
            "/good" => "fine.txt",
            "/up" => "../up.txt",
            "/root" => "/tmp/prony-root.txt",
            "/hidden" => ".bashrc",
            _ => return (whole("", BODY), End::Close),
        };
        let header = format!("Content-Disposition: attachment; filename=\"{name}\"\r\n");
        (whole(&header, BODY), End::Close)
    });
    let outer = folder("header");
    let here = outer.join("in");
    fs::create_dir(&here).expect("made");
    let words = ["--remote-name-header", "--json"];
    for path in ["/up", "/root", "/hidden"] {
        let did = run(&here, &[&words[..], &[&server.url(path)]].concat());
        assert_eq!((did.code, did.fault().as_str()), (Some(1), "file bad_name"));
    }
    let urls = [server.url("/good"), server.url("/plain")];
    let did = run(&here, &[&words[..], &[&urls[0], &urls[1]]].concat());
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(names(&here), ["fine.txt", "plain"]);
    assert_eq!(names(&outer), ["in"]);
}

#[test]
fn files_that_are_in_the_way_are_left_alone() {
    let (server, here) = (good(), folder("exists"));
    let url = server.url("/x");
    fs::write(here.join("x"), "mine").expect("written");
    let did = run(&here, &["--json", &url]);
    assert_eq!(
        (did.code, did.fault().as_str()),
        (Some(1), "file file_exists")
    );
    assert_eq!(fs::read(here.join("x")).expect("there"), b"mine");
    let did = run(&here, &["--json", "--dir", "none", &url]);
    assert_eq!(
        (did.code, did.fault().as_str()),
        (Some(1), "file no_folder")
    );
    fs::create_dir(here.join("d")).expect("made");
    let did = run(&here, &["--json", "--overwrite", "-o", "d", &url]);
    assert_eq!(
        (did.code, did.fault().as_str()),
        (Some(1), "file is_folder")
    );
    // Whoever can write here must not choose another file to be written.
    fs::write(here.join("victim"), "mine").expect("written");
    symlink(here.join("victim"), here.join("y.part")).expect("linked");
    let did = run(&here, &["--json", "-o", "y", &url]);
    assert_eq!((did.code, did.fault().as_str()), (Some(1), "file file"));
    assert_eq!(fs::read(here.join("victim")).expect("there"), b"mine");
    assert!(server.asked().is_empty(), "nothing was loaded for nothing");
    let did = run(&here, &["--overwrite", &url]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(fs::read(here.join("x")).expect("there"), BODY);
}

#[test]
fn many_at_once_are_six_of_one_host_and_all_arrive() {
    // Nobody is answered until six are there; a seventh would be counted.
    let gate = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = most.clone();
    let server = Scripted::new(move |_| {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let (count, changed) = &*gate;
        let mut count = count.lock().expect("no panic");
        *count += 1;
        let due = count.div_ceil(6) * 6;
        changed.notify_all();
        let patience = Duration::from_secs(30);
        let waited = changed.wait_timeout_while(count, patience, |count| *count < due);
        assert!(!waited.expect("no panic").1.timed_out(), "six never came");
        now.fetch_sub(1, Ordering::SeqCst);
        (whole("", BODY), End::Close)
    });
    let here = folder("many");
    let urls: Vec<String> = (0..24)
        .map(|number| server.url(&format!("/{number}")))
        .collect();
    fs::write(here.join("urls"), format!("# all\n\n{}\n", urls.join("\n"))).expect("written");
    let did = run(&here, &["-p", "24", "-i", "urls", "--json"]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(did.objects().len(), 24);
    assert_eq!(names(&here).len(), 25);
    assert_eq!(most.load(Ordering::SeqCst), 6);
}

#[test]
fn one_that_fails_does_not_keep_the_others() {
    let server = Scripted::new(|ask: &Ask| match ask.path.as_str() {
        "/gone" => (
            say("404 Not Found", "Content-Length: 0\r\n", b""),
            End::Close,
        ),
        _ => (whole("", BODY), End::Close),
    });
    let here = folder("some");
    let did = run(
        &here,
        &[&server.url("/gone"), &server.url("/x"), &server.url("/y")],
    );
    assert_eq!(did.code, Some(1));
    assert_eq!(names(&here), ["x", "y"]);
    let said = format!(
        "prony: {}: the server answered with status 404\n",
        server.url("/gone")
    );
    assert!(did.err.contains(&said), "{}", did.err);
}

#[test]
fn codings_cookies_and_credentials_go_their_way() {
    let server = Scripted::new(|ask: &Ask| match ask.path.as_str() {
        "/coded" => {
            assert!(
                ask.header("accept-encoding")
                    .is_some_and(|all| all.contains("gzip"))
            );
            let hello = [
                31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54,
                5, 0, 0, 0,
            ];
            (whole("Content-Encoding: gzip\r\n", &hello), End::Close)
        }
        _ => {
            assert_eq!(ask.header("accept-encoding"), Some("identity"));
            let seen =
                ["cookie", "authorization", "x-a"].map(|name| ask.header(name).unwrap_or("-"));
            let seen = seen.join(" ");
            (
                whole("Set-Cookie: k=v; Max-Age=1000\r\n", seen.as_bytes()),
                End::Close,
            )
        }
    });
    let here = folder("around");
    let did = run(&here, &["--compressed", "-o", "-", &server.url("/coded")]);
    assert_eq!(did.out, b"hello", "{}", did.err);
    assert!(did.err.contains("5 B (25 B on the wire) in"), "{}", did.err);
    let did = run(&here, &["--compressed", "--json", &server.url("/coded")]);
    let told = did.object();
    assert_eq!(
        (&told["bytes"], &told["received_bytes"]),
        (&5.into(), &25.into())
    );
    let words = [
        "--cookie-file",
        "jar",
        "-u",
        "me:secret",
        "-H",
        "X-A: b",
        "-o",
        "-",
    ];
    let url = server.url("/seen");
    let first = run(&here, &[&words[..], &[&url]].concat());
    assert_eq!(first.out, b"- Basic bWU6c2VjcmV0 b", "{}", first.err);
    let second = run(&here, &[&words[..], &[&url]].concat());
    assert_eq!(second.out, b"k=v Basic bWU6c2VjcmV0 b", "{}", second.err);
    let inside = url.replace("http://", "http://you:hush@");
    let third = run(&here, &["-o", "-", &inside]);
    assert_eq!(third.out, b"- Basic eW91Omh1c2g= -");
    assert!(!third.err.contains("hush"), "{}", third.err);
}

#[test]
fn user_and_header_were_both_sent_as_credentials() {
    let server = Scripted::new(|ask: &Ask| {
        let seen = ask.headers_of("authorization");
        (whole("", seen.join("|").as_bytes()), End::Close)
    });
    let (here, url) = (folder("one"), server.url("/x"));
    let inside = url.replace("http://", "http://you:hush@");
    for (words, seen) in [
        (
            vec!["-u", "me:secret", "-H", "authorization: Own", &url],
            "Own",
        ),
        (vec!["-H", "Authorization: Own", &inside], "Own"),
        (vec!["-u", "me:secret", &inside], "Basic eW91Omh1c2g="),
    ] {
        let did = run(&here, &[&["-o", "-"], &words[..]].concat());
        assert_eq!(String::from_utf8_lossy(&did.out), seen, "{words:?}");
    }
}

#[test]
fn a_locations_own_credentials_lost_to_those_before() {
    let server = Scripted::new(|ask: &Ask| {
        let seen = ask.headers_of("authorization");
        let host = ask.header("host").unwrap_or_default();
        match ask.path.as_str() {
            "/with" => {
                let to = format!("Location: http://you:hush@{host}/x\r\n");
                (say("302 Found", &to, b""), End::Close)
            }
            "/without" => (say("302 Found", "Location: /x\r\n", b""), End::Close),
            _ => (whole("", seen.join("|").as_bytes()), End::Close),
        }
    });
    let here = folder("location");
    for (path, seen) in [
        ("/with", "Basic eW91Omh1c2g="),
        ("/without", "Basic bWU6c2VjcmV0"),
    ] {
        let url = server.url(path);
        let inside = url.replace("http://", "http://me:secret@");
        for words in [vec!["-u", "me:secret", &url], vec![&inside]] {
            let did = run(&here, &[&["-o", "-"], &words[..]].concat());
            assert_eq!(String::from_utf8_lossy(&did.out), seen, "{words:?}");
            assert!(!did.err.contains("hush"), "{}", did.err);
        }
    }
}

#[test]
fn heads_that_curl_takes_were_refused() {
    let server = Scripted::new(|ask: &Ask| match ask.path.as_str() {
        "/folded" => (
            whole("Content-Type: text/plain;\r\n charset=utf-8\r\n", BODY),
            End::Close,
        ),
        "/many" => (whole(&"X: y\r\n".repeat(4_000), BODY), End::Close),
        "/long" => (
            whole(&format!("X: {}\r\n", "y".repeat(250_000)), BODY),
            End::Close,
        ),
        _ => {
            let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(500);
            ([hints, whole("", BODY)].concat(), End::Close)
        }
    });
    let here = folder("heads");
    for path in ["/folded", "/many", "/long", "/hints"] {
        let did = run(&here, &["-o", "-", &server.url(path)]);
        assert_eq!(
            (did.code, &did.out[..]),
            (Some(0), BODY),
            "{path}: {}",
            did.err
        );
    }
}

#[test]
fn a_rate_is_kept_to() {
    let body = vec![b'x'; 4_000];
    let server = Scripted::new(move |_| (whole("", &body), End::Close));
    let here = folder("rate");
    let did = run(
        &here,
        &["--limit-rate", "16KiB", "--json", &server.url("/x")],
    );
    let told = did.object();
    assert_eq!(told["bytes"], 4_000, "{}", did.err);
    // It never waits for less than what the rate asks for.
    let least_ns = 4_000 * 1_000_000_000_u64 / (16 << 10);
    assert!(told["took_ns"].as_u64() >= Some(least_ns), "{told}");
}

#[test]
fn redirects_are_followed_as_often_as_asked() {
    let server = Scripted::new(|ask: &Ask| match ask.path.as_str() {
        "/3" => (whole("", BODY), End::Close),
        path => {
            let next: u32 = path[1..].parse::<u32>().expect("a number") + 1;
            (
                say("302 Found", &format!("Location: /{next}\r\n"), b""),
                End::Close,
            )
        }
    });
    let (here, url) = (folder("redirects"), server.url("/0"));
    let did = run(&here, &["--redirects", "3", "-o", "-", &url]);
    assert_eq!((did.code, &did.out[..]), (Some(0), BODY), "{}", did.err);
    let did = run(&here, &["--redirects", "2", "-o", "-", &url]);
    assert_eq!(did.code, Some(1));
    assert!(
        did.err.contains("more than 2 redirects in a row"),
        "{}",
        did.err
    );
}

#[test]
fn a_connection_has_its_own_time() {
    // Who speaks TLS waits for an answer that this server has not to give.
    let server = Scripted::new(|_| (Vec::new(), End::Stall));
    let url = server.url("/x").replace("http://", "https://");
    let did = run(
        &folder("connect"),
        &["--connect-timeout", "500ms", "--json", &url],
    );
    assert_eq!(did.code, Some(1));
    let error = &did.object()["error"];
    assert_eq!(
        (&error["kind"], &error["phase"]),
        (&"timed_out".into(), &"tls".into())
    );
    assert!(
        did.err.contains("500ms that connect_timeout allows"),
        "{}",
        did.err
    );
}

#[test]
fn certificates_are_asked_for_and_shown() {
    let here = folder("certificates");
    let server = Secured::new(&here, true);
    let base = ["--http1.1", "--cacert", "ca.pem", "-o", "-", &server.url];
    let did = run(&here, &base);
    assert_eq!(did.code, Some(1));
    let wanted = "the server wants a certificate of the client, and none was given";
    assert!(did.err.contains(wanted), "{}", did.err);
    let shown = [&base[..], &["--cert", "client.pem", "--key", "client.key"]].concat();
    let did = run(&here, &shown);
    assert_eq!(
        (did.code, &did.out[..]),
        (Some(0), &b"hello"[..]),
        "{}",
        did.err
    );
    for words in [
        ["--cert", "client.pem", "--http1.1"],
        ["--key", "client.key", "--http1.1"],
    ] {
        let did = run(&here, &[&words[..], &[&server.url]].concat());
        assert_eq!(
            did.code,
            Some(2),
            "one is of no use without the other: {}",
            did.err
        );
    }
    let wrong = ["--cert", "client.key", "--key", "client.pem", &server.url];
    let did = run(&here, &wrong);
    assert_eq!(did.code, Some(2));
    assert!(
        did.err.contains("--cert client.key --key client.pem"),
        "{}",
        did.err
    );
}

#[test]
fn whoever_answers_is_taken_where_that_is_asked_for_by_name() {
    let here = folder("danger");
    let server = Secured::new(&here, false);
    let did = run(&here, &["--http1.1", "-o", "-", &server.url]);
    assert_eq!(did.code, Some(1));
    let wanted = [
        "no known authority signed the server's certificate",
        "(with --cacert FILE; --danger-accept-invalid-certificates accepts any)",
    ];
    for words in wanted {
        assert!(did.err.contains(words), "{}", did.err);
    }
    let danger = "--danger-accept-invalid-certificates";
    let did = run(&here, &["--http1.1", danger, "-o", "-", &server.url]);
    assert_eq!(
        (did.code, &did.out[..]),
        (Some(0), &b"hello"[..]),
        "{}",
        did.err
    );
    // It has HTTP/2 to offer, which it does not speak: who takes it hears nothing it knows.
    let did = run(
        &here,
        &[danger, "--connect-timeout", "60s", "-o", "-", &server.url],
    );
    assert_eq!(did.code, Some(1), "{}", did.err);
    assert_eq!(*server.agreed.lock().expect("no panic"), ["http/1.1", "h2"]);
}

#[test]
fn http2_is_spoken_unasked_where_nothing_else_is_to_be() {
    let server = good();
    let did = run(&folder("http2"), &["--http2", "-o", "-", &server.url("/x")]);
    assert_eq!(did.code, Some(1), "{}", did.err);
    // The line with which HTTP/2 begins, PRI * HTTP/2.0.
    assert_eq!(server.asked(), ["*"]);
}

#[test]
fn bars_are_for_terminals_and_never_on_standard_output() {
    let Some(script) = prony_testkit::need("script") else {
        return;
    };
    let (server, here) = (good(), folder("bars"));
    let command = format!("{} fetch -o - {} > body", SYSTEMS, server.url("/x"));
    let mut terminal = std::process::Command::new(script);
    terminal
        .args(["-qec", &command, "/dev/null"])
        .current_dir(&here);
    let shown = terminal.output().expect("it runs");
    assert_eq!(fs::read(here.join("body")).expect("there"), BODY);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("-> standard output: 16 B"), "{shown}");
}
