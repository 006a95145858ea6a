//! `prony fetch` where something goes wrong: every fault has a name, and no part of a file
//! ever stands under its name.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use prony_testkit::folder;

use crate::common::SYSTEMS;
use crate::scripted::{Ask, Did, End, Scripted, fetch, names, run, say, whole};

const BODY: &[u8] = b"0123456789abcdef";
const TAG: &str = "ETag: \"one\"\r\n";

/// The head of the whole, and the first bytes.
fn cut(headers: &str, bytes: usize) -> Vec<u8> {
    let mut answer = whole(headers, BODY);
    answer.truncate(answer.len() - BODY.len() + bytes);
    answer
}

#[test]
fn faults_of_servers_are_told_by_name() {
    let server = Scripted::new(|ask: &Ask| match ask.path.as_str() {
        "/closed" => (Vec::new(), End::Close),
        "/no-http" => (b"220 mail.example ready\r\n".to_vec(), End::Close),
        "/head" => (b"HTTP/1.1 200 OK\r\nContent-".to_vec(), End::Close),
        "/truncated" => (cut("", 5), End::Close),
        "/chunks" => (
            say(
                "200 OK",
                "Transfer-Encoding: chunked\r\n",
                b"5\r\n01234\r\n",
            ),
            End::Close,
        ),
        "/silent" => (Vec::new(), End::Stall),
        "/stalled" => (cut("", 5), End::Stall),
        "/loop" => (say("302 Found", "Location: /loop\r\n", b""), End::Close),
        "/part" => (
            say(
                "206 Partial Content",
                "Content-Range: bytes 0-0/9\r\n",
                b"0",
            ),
            End::Close,
        ),
        "/busy" => (say("503 Busy", "Content-Length: 0\r\n", b""), End::Close),
        _ => (whole("", BODY), End::Close),
    });
    let here = folder("faults");
    let short = [
        "--json",
        "--first-byte-timeout",
        "300ms",
        "--stall-timeout",
        "300ms",
    ];
    for (path, fault) in [
        ("/closed", "wait closed"),
        ("/no-http", "head wire"),
        ("/head", "head truncated"),
        ("/truncated", "body truncated"),
        ("/chunks", "body truncated"),
        ("/silent", "wait timed_out"),
        ("/stalled", "body timed_out"),
        ("/loop", "redirect redirect_loop"),
        ("/part", "head bad_part"),
        ("/busy", "head status"),
    ] {
        let did = run(&here, &[&short[..], &[&server.url(path)]].concat());
        assert_eq!((did.code, did.fault().as_str()), (Some(1), fault), "{path}");
        assert!(did.err.contains(&server.url(path)), "{}", did.err);
        assert!(names(&here).is_empty(), "{path}: {:?}", names(&here));
    }
    let did = run(
        &here,
        &["--json", "--timeout", "300ms", &server.url("/silent")],
    );
    assert_eq!(did.fault(), "wait timed_out");
    let did = run(&here, &["--json", "--no-redirect", &server.url("/loop")]);
    assert_eq!(did.fault(), "head status");
}

#[test]
fn servers_that_cannot_be_reached_are_told_by_name() {
    let here = folder("reach");
    let closed = format!("http://127.0.0.1:{}/x", prony_testkit::free_port());
    let did = run(&here, &["--json", &closed]);
    assert_eq!(
        (did.code, did.fault().as_str()),
        (Some(1), "connect refused")
    );
    let did = run(&here, &["--json", "http://nothing.invalid/x"]);
    assert_eq!(did.fault(), "resolve name_not_found", "{}", did.err);
    let did = run(
        &here,
        &["--json", "--proxy", &closed, "http://nothing.invalid/x"],
    );
    assert!(did.fault().ends_with("refused"), "{}", did.err);
    let server = Scripted::new(|_| (whole("", BODY), End::Close));
    let secure = server.url("/x").replace("http:", "https:");
    let did = run(&here, &["--json", &secure]);
    assert!(did.fault().starts_with("tls "), "{}", did.err);
    assert!(names(&here).is_empty());
    let elsewhere = server.url("/x").replace("127.0.0.1", "nothing.invalid");
    let did = run(
        &here,
        &["--resolve", "nothing.invalid:127.0.0.1", &elsewhere],
    );
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(names(&here), ["x"]);
}

#[test]
fn what_is_too_long_is_not_kept() {
    let server = Scripted::new(|ask: &Ask| match ask.path.as_str() {
        "/more" => {
            let answer = [&whole("", BODY)[..], b"and more"].concat();
            (answer, End::Close)
        }
        "/endless" => (say("200 OK", TAG, &[BODY, BODY].concat()), End::Close),
        _ => (whole(TAG, BODY), End::Close),
    });
    let here = folder("long");
    for path in ["/known", "/endless"] {
        let did = run(&here, &["--json", "--max-bytes", "15", &server.url(path)]);
        assert_eq!((did.code, did.fault().as_str()), (Some(1), "body too_long"));
        assert!(names(&here).is_empty());
    }
    // What follows the announced length belongs to no answer.
    let did = run(&here, &["--max-bytes", "16", &server.url("/more")]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(fs::read(here.join("more")).expect("there"), BODY);
}

/// A server that cuts a whole body off after 5 bytes, and answers ranges as told.
fn resuming(range: impl Fn(&Ask) -> Vec<u8> + Send + Sync + 'static) -> Scripted {
    Scripted::new(move |ask| match ask.header("range") {
        Some(_) => (range(ask), End::Close),
        None => (cut(TAG, 5), End::Close),
    })
}

fn broken_off(server: &Scripted, name: &str) -> std::path::PathBuf {
    let here = folder(name);
    let did = run(&here, &["--json", &server.url("/x")]);
    assert_eq!(did.fault(), "body truncated");
    assert_eq!(did.objects()[0]["kept_bytes"], 5);
    assert!(did.err.contains("continue with --resume"), "{}", did.err);
    assert_eq!(names(&here), ["x.part", "x.part.json"]);
    here
}

fn rest(ask: &Ask) -> Vec<u8> {
    assert_eq!(ask.header("range"), Some("bytes=5-"));
    assert_eq!(ask.header("if-range"), Some("\"one\""));
    let headers = format!("Content-Range: bytes 5-15/16\r\nContent-Length: 11\r\n{TAG}");
    say("206 Partial Content", &headers, &BODY[5..])
}

fn is_whole(here: &std::path::Path, did: &Did) {
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(names(here), ["x"]);
    assert_eq!(fs::read(here.join("x")).expect("there"), BODY);
}

#[test]
fn a_download_goes_on_where_it_broke_off() {
    let server = resuming(rest);
    let here = broken_off(&server, "resume");
    let did = run(
        &here,
        &[
            "--resume",
            "--json",
            "--checksum",
            "sha256",
            &server.url("/x"),
        ],
    );
    is_whole(&here, &did);
    let object = &did.objects()[0];
    assert_eq!(object["resumed_from"], 5);
    assert_eq!(object["received_bytes"], 11);
    let of_all = Command::new("sha256sum").arg(here.join("x")).output();
    let of_all = String::from_utf8(of_all.expect("it runs").stdout).expect("text");
    assert_eq!(object["sha256"].as_str(), of_all.split(' ').next());
}

#[test]
fn retries_go_on_where_a_body_broke_off() {
    let server = resuming(rest);
    let here = folder("retry");
    let did = run(&here, &["--retries", "1", "--json", &server.url("/x")]);
    is_whole(&here, &did);
    assert_eq!(did.objects()[0]["retries"], 1);
}

#[test]
fn another_version_is_fetched_from_its_start() {
    for (name, headers) in [("changed", "ETag: \"two\"\r\n"), ("ignored", TAG)] {
        let server = resuming(move |_| whole(headers, BODY));
        let here = broken_off(&server, name);
        let did = run(&here, &["--resume", &server.url("/x")]);
        is_whole(&here, &did);
        assert!(did.err.contains("5 bytes thrown away"), "{}", did.err);
    }
}

#[test]
fn a_part_that_is_whole_needs_only_its_name() {
    let answer = |_: &Ask| {
        say(
            "416 Range Not Satisfiable",
            "Content-Range: bytes */5\r\n",
            b"",
        )
    };
    let server = resuming(answer);
    let here = broken_off(&server, "complete");
    let did = run(&here, &["--resume", &server.url("/x")]);
    assert_eq!(did.code, Some(0), "{}", did.err);
    assert_eq!(fs::read(here.join("x")).expect("there"), &BODY[..5]);
}

#[test]
fn parts_that_do_not_fit_leave_the_file_as_it_was() {
    for (name, range) in [
        ("late", "bytes 6-15/16"),
        ("other-length", "bytes 5-15/17"),
        ("none", "bytes */16"),
    ] {
        let server = resuming(move |_| {
            let headers = format!("Content-Range: {range}\r\n{TAG}");
            say("206 Partial Content", &headers, &BODY[5..])
        });
        let here = broken_off(&server, name);
        let did = run(&here, &["--resume", "--json", &server.url("/x")]);
        assert_eq!(did.fault(), "head bad_part", "{name}");
        assert_eq!(names(&here), ["x.part", "x.part.json"]);
        assert_eq!(fs::read(here.join("x.part")).expect("there"), &BODY[..5]);
    }
}

#[test]
fn a_part_of_another_url_is_not_gone_on_with() {
    let server = Scripted::new(|ask: &Ask| match (ask.path.as_str(), ask.header("range")) {
        ("/x", _) => (cut(TAG, 5), End::Close),
        (_, None) => (whole(TAG, BODY), End::Close),
        (_, Some(_)) => panic!("it asks for the rest of something else"),
    });
    let here = broken_off(&server, "other");
    let did = run(&here, &["--resume", &server.url("/other/x")]);
    is_whole(&here, &did);
}

#[test]
fn an_interruption_keeps_what_can_be_gone_on_with() {
    let server = Scripted::new(|_| (cut(TAG, 5), End::Stall));
    let here = folder("interrupted");
    let child = fetch(&here, &["--json", &server.url("/x"), &server.url("/y")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    let length = |name: &str| fs::metadata(here.join(name)).map_or(0, |found| found.len());
    while length("x.part") < 5 || length("y.part") < 5 {
        assert!(Instant::now() < deadline, "nothing came");
        std::thread::yield_now();
    }
    // The signal goes on to what `timeout` runs.
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("it runs").success());
    let did = Did::from(child.wait_with_output().expect("it ends"));
    assert_eq!(did.code, Some(130), "{}", did.err);
    assert_eq!(
        names(&here),
        ["x.part", "x.part.json", "y.part", "y.part.json"]
    );
    let kept = did.objects();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|object| object["kept_bytes"] == 5));
    assert!(did.err.contains("continue with --resume"), "{}", did.err);
}

#[test]
fn a_full_disk_leaves_no_part_under_the_name() {
    let here = folder("full");
    let inside = "mount -t tmpfs -o size=64k none \"$1\" && shift && cd \"$0\" && \"$@\"; code=$?; ls; exit $code";
    let (place, prony) = (here.display().to_string(), SYSTEMS);
    let Some(mut unshared) = prony_testkit::unshared("--mount") else {
        return;
    };
    let server = Scripted::new(|_| (whole("", &[7; 256 << 10]), End::Close));
    unshared.args(["sh", "-c", inside, &place, &place]);
    unshared.args([prony, "fetch", &server.url("/x")]);
    let did = Did::from(unshared.output().expect("it runs"));
    assert_eq!(did.code, Some(1), "{}", did.err);
    assert!(did.err.contains("No space left on device"), "{}", did.err);
    assert!(did.err.contains("free some space"), "{}", did.err);
    assert_eq!(did.out, b"", "nothing is left there");
}

#[test]
fn few_descriptors_are_an_error_by_name_or_enough() {
    let server = Scripted::new(|_| (whole("", BODY), End::Close));
    let mut kinds = Vec::new();
    for limit in 4..20 {
        let here = folder(&format!("few-{limit}"));
        let command = format!("ulimit -n {limit}; exec \"$0\" fetch \"$1\"");
        let mut shell = Command::new("sh");
        let url = server.url("/x");
        shell.args(["-c", &command, SYSTEMS, &url]);
        let did = Did::from(shell.current_dir(&here).output().expect("it runs"));
        match did.code {
            Some(0) => assert_eq!(names(&here), ["x"]),
            code => {
                assert!(names(&here).is_empty(), "{limit}: {:?}", names(&here));
                assert!(matches!(code, Some(1 | 2)), "{limit}: {code:?} {}", did.err);
                let is_named = ["descriptor", "open files"]
                    .iter()
                    .any(|word| did.err.contains(word));
                assert!(is_named, "{limit}: {}", did.err);
            }
        }
        kinds.push(did.code);
    }
    assert!(
        kinds.contains(&Some(0)) && kinds.contains(&Some(1)),
        "{kinds:?}"
    );
}
