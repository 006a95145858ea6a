//! `prony load --find-max` against a server, and the same in an experiment: what it says of each step, and what follows from the
//! steps.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{self, PRONY};
use crate::server::Server;
use serde_json::Value;

fn load(words: &[&str]) -> Output {
    Command::new(PRONY)
        .arg("load")
        .args(words)
        .output()
        .expect("prony runs")
}

#[test]
fn a_search_says_what_its_steps_showed() {
    let server = Server::start(&["--threads", "1"]);
    let port = server.port;
    let url = format!("http://127.0.0.1:{port}/hello");
    let common = ["-c8", "-t1", "-d100ms", "--json", "-"];
    let mut words = vec!["--find-max", "p50<20ms"];
    words.extend(common);
    words.push(&url);
    let output = load(&words);
    let search: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(search["objective"], "p50 < 20ms");
    let number = |of: &Value| of.as_f64().expect("a number");
    let steps = search["steps"].as_array().expect("steps");
    assert_eq!(
        number(&steps[0]["rate_per_s"]),
        number(&search["closed_loop_per_s"]) / 2.0
    );
    for step in steps {
        let is_late = step["objective_ns"].as_u64() >= Some(20_000_000);
        assert!(!(is_late && step["outcome"] == "kept"), "{step}");
        assert_eq!(step["objective_ns"], step["p50_ns"]);
    }
    // On a machine that is busy with something else the generator may have been late at every rate: then it says so.
    let Some(highest) = search.get("highest").filter(|highest| !highest.is_null()) else {
        assert!(matches!(output.status.code(), Some(1 | 3)), "{search}");
        return;
    };
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(search["rounds"].as_array().map(Vec::len), Some(6));
    let [low, rate, high] = ["low", "rate_per_s", "high"].map(|name| number(&highest[name]));
    assert!(low <= rate && rate <= high, "{highest}");
    let kept = steps.iter().filter(|step| step["outcome"] == "kept");
    let fastest = kept
        .map(|step| number(&step["rate_per_s"]))
        .fold(0.0, f64::max);
    assert!(rate <= fastest * 1.05, "{rate} of at most {fastest}");
}

#[test]
fn an_objective_that_nothing_keeps_ends_with_1_and_says_so() {
    let server = Server::start(&["--threads", "1"]);
    let port = server.port;
    let url = format!("http://127.0.0.1:{port}/hello");
    // A nanosecond is less than the way through the kernel, whatever the generator adds.
    let output = load(&["--find-max", "max<1ns", "-c1", "-t1", "-d50ms", &url]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(matches!(output.status.code(), Some(1 | 3)), "{said}");
    assert!(
        said.contains("the lowest rate at which a step") || said.contains("is not known"),
        "{said}"
    );
    assert!(said.contains("Closed loop: "), "{said}");
}

#[test]
fn words_that_a_search_would_not_heed_are_refused() {
    for (words, why) in [
        (
            &["--find-max", "p99>10ms"][..],
            "is not an objective: write it as p99<10ms",
        ),
        (
            &["--find-max", "p99<10ms", "-R", "5"],
            "cannot be used with",
        ),
        (
            &["--find-max", "p99<10ms", "-n", "5"],
            "cannot be used with",
        ),
        (
            &["--find-max", "p99<10ms", "--trace", "x"],
            "cannot be used with",
        ),
    ] {
        let mut all = words.to_vec();
        all.push("http://127.0.0.1:1/");
        let output = load(&all);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{words:?}: {said}");
    }
    // Nobody there is what it is in any run.
    let url = format!("http://127.0.0.1:{}/", common::free_port());
    let output = load(&["--find-max", "p99<10ms", "-d50ms", &url]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

/// Requests a second that the server below bears: one answer after the other, each takes 200 µs.
const CAPACITY: f64 = 5_000.0;

/// Compiles the instrument whose behaviour is known (truth/README.md) into `folder`.
fn responder(folder: &Path) -> Option<()> {
    prony_testkit::need("cc")?;
    let source = prony_testkit::root().join("truth/responder.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-o"]);
    let built = compiler
        .arg(folder.join("responder"))
        .arg(source)
        .status()
        .expect("a compiler");
    assert!(built.success());
    Some(())
}

/// Its standard input must stay open, which a pipe opened for both sides does.
const KNOWN: &str = r#"
title = "Known"
[run]
blocks = 1
duration = "200ms"
warmup = "50ms"
[[subject]]
name = "known"
cmd = "sh -c 'mkfifo pipe-{port}; exec ./responder --port {port} --serial --delay 200 --busy <>pipe-{port}'"
[[workload]]
request = { path = "/" }
connections = [8]
find_max = "p50<50ms"
duration = "100ms"
"#;

/// However busy the machine is, no step can be kept above what the server bears; what a search finds below that is the
/// machine's doing.
#[test]
fn an_experiment_finds_no_more_than_the_server_bears_and_records_every_step() {
    let folder = common::folder("find-max");
    if responder(&folder).is_none() {
        return;
    }
    fs::write(folder.join("known.toml"), KNOWN).expect("an experiment");
    let mut command = Command::new(PRONY);
    command
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root());
    let output = command
        .args(["run", "known.toml", "--out", "out"])
        .output()
        .expect("a run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect(name);
    let trial: Value = serde_json::from_str(&read("trials.jsonl")).expect("a trial");
    assert_eq!(trial["outcome"]["kind"], "measured", "{trial}{said}");
    let search = &trial["search"];
    assert_eq!(search["objective"], "p50 < 50ms");
    let steps = search["steps"].as_array().expect("steps");
    assert!(!steps.is_empty());
    for step in steps {
        balances(step);
        let rate = step["rate_per_s"].as_f64().expect("a rate");
        let is_kept = step["outcome"] == "kept";
        assert_eq!(step["why"] == "", is_kept, "{step}");
        // In a tenth of a second ten requests more may be left over than came.
        assert!(!is_kept || rate <= CAPACITY + 150.0, "{step}");
    }
    let document = read("document.md");
    assert!(
        document.contains("highest rate that keeps p50"),
        "{document}"
    );
    assert!(folder.join("out/pictures/s1-1.svg").is_file());
    let summary: Value = serde_json::from_str(&read("summary.json")).expect("the figures");
    let cell = &summary["cells"][0];
    match search["highest"].as_object() {
        Some(highest) => {
            assert_eq!(cell["rate_per_s"]["median"], highest["rate_per_s"]);
            assert_eq!(cell["rate_per_s"]["low"], highest["low"]);
        }
        None => assert_eq!(cell["invalid_by"][0], "P031", "{cell}"),
    }
}

/// sent = completed + failed by kind + in flight, and what was scheduled was sent, waits, or was dropped.
fn balances(step: &Value) {
    let count = |of: &Value| of.as_u64().expect("a count");
    let counts = &step["counts"];
    let failed = counts["failed"].as_object().expect("kinds");
    let failed: u64 = failed.values().map(count).sum();
    let parts = [
        "warmup_completed",
        "warmup_failed",
        "completed",
        "in_flight",
    ];
    let parts: u64 = parts.iter().map(|part| count(&counts[*part])).sum();
    assert_eq!(count(&counts["sent"]), parts + failed, "{step}");
    let arrivals = &step["arrivals"];
    let parts = ["sent", "waiting", "dropped"].map(|part| count(&arrivals[part]));
    assert_eq!(
        count(&arrivals["scheduled"]),
        parts.iter().sum::<u64>(),
        "{step}"
    );
}
