//! `prony load --find-max` against a server: what it says of each step, and what follows from the steps.

mod common;

use std::process::{Command, Output};

use common::PRONY;
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
    let (_server, port) = common::serve(&["--threads", "1"]);
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
    let (_server, port) = common::serve(&["--threads", "1"]);
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
