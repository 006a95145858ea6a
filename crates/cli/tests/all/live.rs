//! `prony run --open`: a run whose document is shown while it grows, and to whom.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use crate::common::{self, PRONY};

/// The run, the address of its page, and what else it prints.
fn run(folder: &std::path::Path, words: &[&str]) -> (Child, String, JoinHandle<String>) {
    let mut child = common::command(
        folder,
        &[&["run", "small.toml", "--out", "out"], words].concat(),
    )
    .env_remove("DISPLAY")
    .env_remove("WAYLAND_DISPLAY")
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("prony runs");
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    let mut said = String::new();
    let address = loop {
        let mut line = String::new();
        let count = lines.read_line(&mut line).expect("a line");
        assert!(count > 0, "no page was served:\n{said}");
        said.push_str(&line);
        if let Some((_, rest)) = line.split_once("http://") {
            break rest.trim().trim_end_matches('/').to_owned();
        }
    };
    let rest = thread::spawn(move || {
        let _ = lines.read_to_string(&mut said);
        said
    });
    (child, address, rest)
}

/// A connection on which this is requested.
fn ask(address: &str, first: &str, host: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!("{first} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a request");
    stream
}

/// The whole answer to a request.
fn asked(address: &str, first: &str, host: &str) -> String {
    let mut stream = ask(address, first, host);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// It ended by itself: that a figure of so short a window is not valid on a busy machine is no fault.
fn ended(output: &Output, said: JoinHandle<String>) {
    let said = said.join().expect("lines");
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
}

/// `before` is done in a shell before each start of the server.
fn small(folder: &std::path::Path, before: &str) {
    let text = format!(
        "title = \"Live\"\n[run]\nblocks = 2\nduration = \"200ms\"\nwarmup = \"50ms\"\n\
         [[subject]]\nname = \"own\"\n\
         cmd = [\"sh\", \"-c\", \"{before} exec {PRONY} serve --port {{port}} --threads 1\"]\n\
         [[workload]]\nrequest = {{ path = \"/hello\" }}\nconnections = [1, 20]\n"
    );
    fs::write(folder.join("small.toml"), text).expect("an experiment");
}

#[test]
fn the_document_is_there_from_the_first_trial_to_the_last_and_to_nobody_else() {
    let folder = common::folder("live");
    // Each server waits for a line, so that the run does not end before all has been asked for.
    small(&folder, "read line < gate;");
    let made = Command::new("mkfifo").arg(folder.join("gate")).status();
    assert!(made.expect("mkfifo runs").success());
    let (child, address, said) = run(&folder, &["--open"]);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let first = asked(&address, "GET /", &address);
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    assert!(
        first.contains("<p id=\"live\"") && first.contains("new EventSource"),
        "{first}"
    );
    let port = address.rsplit(':').next().expect("a port");
    let rebound = asked(&address, "GET /", &format!("rebound.example:{port}"));
    assert!(rebound.starts_with("HTTP/1.1 421 "), "{rebound}");
    let written = asked(&address, "PUT /document.md", &address);
    assert!(written.starts_with("HTTP/1.1 405 "), "{written}");
    let other = asked(&address, "GET /plan.json", &address);
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    // The events end with the last state, which is then fetched as the page does.
    let mut stream = ask(&address, "GET /events?since=0", &address);
    let mut events = String::new();
    BufReader::new(&mut stream)
        .read_line(&mut events)
        .expect("a status");
    let mut options = fs::File::options();
    let gate = options.read(true).write(true).open(folder.join("gate"));
    let mut gate = gate.expect("a pipe");
    gate.write_all("go\n".repeat(20).as_bytes()).expect("room");
    stream.read_to_string(&mut events).expect("its end");
    assert!(events.contains("event: last\ndata: "), "{events}");
    let last = asked(&address, "GET /", &address);
    let output = child.wait_with_output().expect("it ends");
    ended(&output, said);
    let page = fs::read_to_string(folder.join("out/index.html")).expect("a page");
    let main = |page: &str| {
        let rest = page.split("<main>").nth(1).expect("a main part");
        rest.split("</main>").next().expect("its end").to_owned()
    };
    assert_eq!(main(&last), main(&page));
    assert!(
        page.contains("requests/s") && last.contains("The run has ended"),
        "{last}"
    );
    assert!(
        !page.contains("id=\"live\""),
        "what is kept has no part of the live page"
    );
    assert!(
        TcpStream::connect(&address).is_err(),
        "it ends with the run"
    );
}

/// A run that nobody looks at ends as one without a page does.
#[test]
fn a_run_that_nobody_looks_at_ends_by_itself() {
    let folder = common::folder("live-unseen");
    small(&folder, "");
    let words = ["--open", "--blocks", "1", "--only", "*c=1"];
    let (child, address, said) = run(&folder, &words);
    let output = child.wait_with_output().expect("it ends");
    ended(&output, said);
    assert!(
        TcpStream::connect(&address).is_err(),
        "it ends with the run"
    );
}
