//! As in a container with its engine's default filter of system calls: io_uring is refused, and
//! everything says so once and works on epoll.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use crate::common::{self, Ended, PRONY, get};
use prony_testkit::{Refusal, in_container};

const SAYS: &str = "using epoll, not io_uring: ";

/// What a command printed, which must have succeeded, and how often it said that it fell back.
fn told(output: &Output) -> (String, usize) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?}: {said}", output.status);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (printed, said.matches(SAYS).count())
}

fn prony(words: &[&str]) -> Output {
    let mut command = Command::new(PRONY);
    // Which driver is taken is what this is about.
    command.args(words).env_remove("PRONY_DRIVER");
    command.output().expect("prony runs")
}

fn serve_and_ask(refusal: Refusal) {
    let folder = common::folder(&format!("container-{refusal:?}"));
    let mut command = Command::new(PRONY);
    command
        .args(["serve", "--port", "0", "--threads", "2"])
        .env_remove("PRONY_DRIVER")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut server = Ended::start(&mut command);
    let mut line = String::new();
    let out = server.0.stdout.as_mut().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on http://127.0.0.1:");
    let port = address.expect("a port").parse().expect("a port");
    let url = format!("http://127.0.0.1:{port}/hello");
    let hello = get(port, "/hello");
    let (report, says) = told(&prony(&[
        "load", "-c4", "-t2", "-n1000", "--json", "-", &url,
    ]));
    assert_eq!(says, 1);
    let report: serde_json::Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(report["driver"], "epoll");
    assert_eq!(
        (&report["completed"], &report["errors"]),
        (&1_000.into(), &serde_json::json!({}))
    );
    let file = folder.join("hello");
    // It takes epoll wherever it may choose.
    let (_, says) = told(&prony(&[
        "fetch",
        &url,
        "-o",
        file.to_str().expect("a path"),
    ]));
    assert_eq!(says, 0);
    assert_eq!(fs::read_to_string(&file).expect("it was fetched"), hello);
    let mut pipe = server.0.stderr.take().expect("a pipe");
    drop(server);
    let mut said = String::new();
    pipe.read_to_string(&mut said).expect("text");
    assert_eq!(said.matches(SAYS).count(), 1, "{said}");
}

#[test]
fn where_io_uring_is_refused_a_server_and_its_clients_run_on_epoll() {
    for refusal in [Refusal::NotPermitted, Refusal::NotImplemented] {
        in_container(refusal, || serve_and_ask(refusal));
    }
}

const EXPERIMENT: &str = r#"
title = "In a container"
question = "Does it run?"

[run]
blocks = 1
duration = "200ms"
warmup = "50ms"

[[subject]]
ref = "rust/prony"

[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [4]
"#;

#[test]
fn where_io_uring_and_namespaces_are_refused_an_experiment_is_measured() {
    let folder = common::folder("container-run");
    fs::write(folder.join("small.toml"), EXPERIMENT).expect("an experiment");
    let output = in_container(Refusal::NotPermitted, || {
        Command::new(PRONY)
            .args(["run", "small.toml", "--out", "out"])
            .current_dir(&folder)
            .env("PRONY_HOME", prony_testkit::root())
            .env("PRONY_CACHE", folder.join("cache"))
            .env_remove("PRONY_DRIVER")
            .output()
            .expect("a run")
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    common::rendered(&output);
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect(name);
    let told = "the load runs on epoll (io_uring is not available: ";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    for trial in read("trials.jsonl").lines() {
        let trial: serde_json::Value = serde_json::from_str(trial).expect("a trial");
        assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
        if trial["generator"] == "prony" {
            assert_eq!(trial["load"]["driver"], "epoll", "{trial}");
        }
        assert_eq!(trial["isolation"]["network_namespace"], false, "{trial}");
    }
}
