//! `prony bench io` and `prony bench client`, as a user starts them.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Instant;

use prony_record::ProgramLine;
use prony_testkit::{folder, free_port};

use crate::common::{PATIENCE, SYSTEMS, systems, text};
use crate::scripted::{End, Scripted};

fn bench(words: &[&str], environment: &[(&str, &str)]) -> Output {
    systems(&["bench"])
        .args(words)
        .env_remove("NO_CONNECTIONS")
        .env_remove("ITERATIONS")
        .env_remove("TEST_PAYLOAD")
        .envs(environment.iter().copied())
        .output()
        .expect("it starts")
}

fn texts(said: &Output) -> (String, String) {
    (text(&said.stdout), text(&said.stderr))
}

fn line(said: &Output) -> ProgramLine {
    let (out, err) = texts(said);
    assert_eq!(out.lines().count(), 1, "{out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

/// A server that answers for `path` with so many bytes and for no other, and its port.
fn serve(path: &'static str, bytes: usize) -> (Scripted, String) {
    let server = Scripted::new(move |ask| {
        let (status, length) = match ask.path == path {
            true => ("200 OK", bytes),
            false => ("404 Not Found", 0),
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
        ([head.as_bytes(), &vec![b'x'; length]].concat(), End::Next)
    });
    let port = server.port().to_string();
    (server, port)
}

/// The same at the path that `bench io` asks for.
fn payload(bytes: usize) -> (Scripted, String) {
    serve("/testpayload", bytes)
}

#[test]
fn downloads_are_a_table_for_people_and_a_line_for_programs() {
    let (_server, port) = payload(1 << 20);
    for strategy in ["threads", "poll", "epoll"] {
        let words = [
            "io",
            "127.0.0.1",
            &port,
            "-s",
            strategy,
            "-c",
            "4",
            "-n",
            "2",
        ];
        let said = bench(&words, &[]);
        let (out, err) = texts(&said);
        assert!(said.status.success(), "{strategy}: {out}{err}");
        assert!(out.contains("socket creation |"), "{out}");
        assert!(
            out.contains("\n8 downloads, 8,388,608 bytes in "),
            "{strategy}: {out}"
        );
        let json = [&words[..], &["--json"]].concat();
        let line = line(&bench(&json, &[]));
        let client = line.client.expect("figures of a client");
        assert_eq!((line.measure.as_str(), line.count), ("downloads", 8));
        assert_eq!((line.bytes, line.elapsed_ns > 0), (8 << 20, true));
        assert_eq!(
            (client.connections, client.failed, client.in_flight),
            (4, 0, Some(0))
        );
        assert_eq!(line.threads, if strategy == "threads" { 4 } else { 1 });
    }
}

#[test]
fn the_originals_variables_are_heeded() {
    let (_server, port) = payload(1 << 20);
    let words = ["io", "127.0.0.1", &port, "--json"];
    let environment = [
        ("NO_CONNECTIONS", "3"),
        ("ITERATIONS", "2"),
        ("TEST_PAYLOAD", "1"),
    ];
    let line = line(&bench(&words, &environment));
    assert_eq!((line.count, line.figures["run_ns"].count), (6, 2));

    let said = bench(&words, &[("NO_CONNECTIONS", "3"), ("TEST_PAYLOAD", "2")]);
    assert_eq!(said.status.code(), Some(1));
    let (_, err) = texts(&said);
    assert!(
        err.contains("Content-Length is 1048576, but 2097152 bytes were expected")
            && err.contains("3 of 3 downloads failed"),
        "{err}"
    );
}

#[test]
fn a_failed_download_ends_in_exit_code_1_by_name() {
    let port = free_port().to_string();
    let said = bench(&["io", "127.0.0.1", &port, "-c", "2", "--json"], &[]);
    assert_eq!(said.status.code(), Some(1));
    let line = line(&said);
    let client = line.client.expect("figures of a client");
    assert_eq!((line.count, client.failed_by_kind["refused"]), (0, 2));

    let (_server, port) = payload(1 << 10);
    let said = bench(
        &["io", "127.0.0.1", &port, "-c", "2", "--path", "/nothing"],
        &[],
    );
    let (_, err) = texts(&said);
    assert!(err.contains("status 404, not 200"), "{err}");
}

#[test]
fn wrong_words_are_answered_with_exit_code_2() {
    let cases: [(&[&str], &str); 5] = [
        (&["io", "127.0.0.1"], "<PORT>"),
        (&["io", "127.0.0.1", "80", "-b", "64KB"], "is not a size"),
        (
            &["io", "127.0.0.1", "80", "-s", "ring", "--vectored", "2"],
            "--vectored is of the strategy threads or poll or epoll",
        ),
        (&["io", "8.8.8.8", "80"], "--yes-i-own-this-host"),
        (
            &["client", "http://127.0.0.1:80/", "1", "2", "3"],
            "2 connections in all cannot be shared out over 3 threads",
        ),
    ];
    for (words, answer) in cases {
        let said = bench(words, &[]);
        let (_, err) = texts(&said);
        assert_eq!(said.status.code(), Some(2), "{err}");
        assert!(err.contains(answer), "{err}");
    }
}

#[test]
fn a_flag_of_another_strategy_was_taken_and_did_nothing() {
    for (words, of) in [
        (["poll", "--receive", "oneshot"], "ring"),
        (["threads", "--receive", "multishot"], "ring"),
        (["epoll", "--ring-buffers", "6"], "ring"),
        (["threads", "--buffers", "own"], "poll or epoll"),
        (["ring", "--buffers", "shared"], "poll or epoll"),
        (["ring", "--vectored", "1"], "threads or poll or epoll"),
    ] {
        let all = [&["io", "127.0.0.1", "1", "-s"], &words[..]].concat();
        let said = bench(&all, &[]);
        let (out, err) = texts(&said);
        assert_eq!(said.status.code(), Some(2), "{words:?}: {err}");
        let (strategy, flag) = (words[0], words[1]);
        let wanted = format!("{flag} is of the strategy {of}, and means nothing to {strategy}");
        assert!(err.contains(&wanted) && out.is_empty(), "{err}");
    }
}

#[test]
fn what_is_thrown_away_is_said_to_be_unseen() {
    let (_server, port) = payload(1 << 20);
    let words = ["io", "127.0.0.1", &port, "-c", "2", "--discard"];
    let (out, err) = texts(&bench(&words, &[]));
    assert!(out.contains("counted, not seen"), "{out}");
    assert!(err.contains("counted, not seen"), "{err}");
}

#[test]
fn a_profile_is_written_and_the_figures_are_marked() {
    if prony_testkit::need("strace").is_none() && prony_testkit::need("perf").is_none() {
        return;
    }
    let (_server, port) = payload(4 << 20);
    let file = folder("profile").join("profile.txt");
    let name = file.to_str().expect("a name in UTF-8");
    let words = [
        "io",
        "127.0.0.1",
        &port,
        "-c",
        "4",
        "--json",
        "--profile",
        name,
    ];
    let said = bench(&words, &[]);
    let (out, err) = texts(&said);
    assert!(said.status.success(), "{out}{err}");
    assert_eq!(line(&said).count, 4);
    assert!(
        err.contains("measured under ") && err.contains(name),
        "{err}"
    );
    let profile = std::fs::read_to_string(&file).expect("the profile");
    assert!(profile.lines().count() > 3, "{profile}");
}

#[test]
fn the_scheduler_is_recorded() {
    let (_server, port) = payload(1 << 20);
    let file = folder("schedule").join("schedule.txt");
    let name = file.to_str().expect("a name in UTF-8");
    let words = ["io", "127.0.0.1", &port, "-c", "4", "--json"];
    let said = bench(&[&words[..], &["--record-scheduling", name]].concat(), &[]);
    let (out, err) = texts(&said);
    assert!(said.status.success(), "{out}{err}");
    assert!(err.contains("measured under "), "{err}");
    assert!(
        !std::fs::read_to_string(&file)
            .expect("the record")
            .is_empty()
    );
}

/// The process of this port's downloads that runs under a tool, once it is there.
fn under_a_tool(port: u16) -> PathBuf {
    let (port, own) = (port.to_string(), SYSTEMS.as_bytes());
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "nothing runs under a tool");
        for process in fs::read_dir("/proc").expect("/proc").flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let has = |word: &str| line.split(|byte| *byte == 0).any(|w| w == word.as_bytes());
            if line.starts_with(own) && has(&port) && has("--under") {
                return process.path();
            }
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_profiled_command_outlived_the_one_that_started_it() {
    if prony_testkit::need("strace").is_none() && prony_testkit::need("perf").is_none() {
        return;
    }
    // It accepts, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let file = folder("profile-killed").join("profile.txt");
    let mut prony = systems(&["bench", "io", "127.0.0.1", &port.to_string(), "-c", "1"])
        .args(["--timeout", "120s", "--profile"])
        .arg(&file)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("prony starts");
    let process = under_a_tool(port);
    // It is bound to its tool before it connects.
    let (_connection, _) = listener.accept().expect("it connects");
    prony.kill().expect("it runs");
    prony.wait().expect("it has ended");
    let begun = Instant::now();
    // One that has ended and was not waited for has no words.
    while fs::read(process.join("cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(begun.elapsed() < PATIENCE, "it goes on");
        std::thread::yield_now();
    }
}

#[test]
fn a_profile_that_cannot_be_written_was_known_only_after_the_run() {
    for option in ["--profile", "--record-scheduling"] {
        let said = bench(&["io", "127.0.0.1", "1", option, "/nowhere/file"], &[]);
        let (out, err) = texts(&said);
        assert!(out.is_empty(), "{out}");
        assert!(err.contains("cannot write /nowhere/file"), "{err}");
    }
}

#[test]
fn the_client_sends_what_the_server_counts() {
    let (server, _) = serve("/hello", 13);
    let url = server.url("/hello");
    let said = bench(&["client", &url, "0.3", "5", "2", "--json"], &[]);
    let (out, err) = texts(&said);
    assert!(said.status.success(), "{out}{err}");
    let line = line(&said);
    let client = line.client.expect("figures of a client");
    assert_eq!((client.connections, line.threads), (5, 2));
    assert!(line.count > 0);
    assert_eq!(line.bytes, 13 * line.count);
    let latency = client.latency.expect("latencies");
    let histogram = client.histogram.expect("a histogram");
    assert_eq!((latency.count, histogram.total()), (line.count, line.count));
    let in_flight = client.in_flight.expect("an exact number");
    assert!(in_flight <= 5, "{in_flight}");
    let sent = line.count + client.failed + in_flight;
    assert_eq!((client.failed, line.tallies["exchanges"]), (0, sent));
    // Its threads may not have read yet what was in flight at the end.
    let begun = Instant::now();
    while (server.asked().len() as u64) < sent {
        assert!(begun.elapsed() < PATIENCE, "fewer requests came");
        std::thread::yield_now();
    }
    assert_eq!(server.asked().len() as u64, sent);
}

#[test]
fn connections_of_each_thread_are_multiplied() {
    let (server, _) = serve("/hello", 13);
    let url = server.url("/hello");
    let words = ["client", &url, "0.1", "3", "2", "--per-thread"];
    let (out, err) = texts(&bench(&words, &[]));
    assert!(
        out.contains("0.1 s, 6 connections in all on 2 threads")
            && out.contains("in flight at the end"),
        "{out}{err}"
    );
}

#[test]
fn answers_that_fail_are_a_measurement_for_a_program_and_a_failure_for_people() {
    let (server, _) = serve("/hello", 13);
    let url = server.url("/nothing");
    let said = bench(&["client", &url, "0.5", "2", "1", "--json"], &[]);
    assert_eq!(said.status.code(), Some(0));
    let line = line(&said);
    let failed = line.client.expect("figures").failed_by_kind;
    assert_eq!(line.count, 0);
    assert!(failed["status"] > 0, "{failed:?}");
    let said = bench(&["client", &url, "0.5", "2", "1"], &[]);
    assert_eq!(said.status.code(), Some(3));
}

#[test]
fn a_server_that_is_not_there_leaves_nothing_to_measure() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let said = bench(&["client", &url, "0.1", "2", "1", "--json"], &[]);
    assert_eq!(said.status.code(), Some(3));
    let line = line(&said);
    assert_eq!((line.count, line.client.expect("figures").failed), (0, 0));
    assert!(line.tallies["unsent"] >= 2, "{:?}", line.tallies);
}
