//! `experiments/protocols.toml` with nginx alone: each protocol that it speaks is checked and driven, and handshakes are
//! full or resumed as the cell says.

use std::fs;

use serde_json::Value;

use crate::common;

/// The trials of nginx, one of each cell, in windows that are as short as they may be.
fn trials() -> Vec<Value> {
    let folder = common::folder("protocols");
    let words = ["run", "protocols", "--only", "c/nginx *", "--out", "out"];
    let short = ["--blocks", "1", "--duration", "500ms", "--warmup", "0ms"];
    let output = common::prony(&folder, &[&words[..], &short].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    // 3: a machine that is too busy for a schedule of 2,000 a second has an invalid cell, and no other protocol for it.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    // It has no HTTP/2 without TLS, and says so.
    let why = "c/nginx protocol=h2c: it speaks `http`, `https`, `h2`, by [protocols]";
    assert!(said.contains(why), "{said}");
    let lines = fs::read_to_string(folder.join("out/trials.jsonl")).expect("trials");
    let trial = |line: &str| serde_json::from_str(line).expect("a trial");
    lines.lines().map(trial).collect()
}

fn has(trial: &Value, setting: &str) -> bool {
    let cell = trial["cell"].as_str().expect("a cell");
    cell.split(' ').any(|word| word == setting)
}

#[test]
fn nginx_is_driven_by_each_protocol_that_it_speaks() {
    if prony_testkit::need("nginx").is_none() {
        return;
    }
    let trials = trials();
    let of_prony: Vec<&Value> = trials
        .iter()
        .filter(|trial| trial["generator"] == "prony")
        .collect();
    for trial in &of_prony {
        let cell = &trial["cell"];
        assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
        let counts = &trial["load"]["counts"];
        let failed = counts["failed"].as_object().expect("kinds");
        assert!(failed.values().all(|count| count == 0), "{cell}: {counts}");
        // On a busy machine none may be answered within the window, only after its end.
        let answered = ["completed", "drained"].map(|name| counts[name].as_u64());
        assert!(
            answered.iter().any(|count| *count > Some(0)),
            "{cell}: {counts}"
        );
        let checks = trial["verification"].as_array().expect("checks");
        let of_http2 = |check: &&Value| check["name"] == "http/2";
        let is_http2 = has(trial, "protocol=h2");
        assert_eq!(
            checks.iter().any(|check| of_http2(&check)),
            is_http2,
            "{cell}"
        );
        let handshakes = &trial["load"]["tls"];
        let number = |name: &str| handshakes[name].as_u64().unwrap_or(0);
        let is_secure = is_http2 || has(trial, "protocol=https");
        assert_eq!(number("full") + number("resumed") > 0, is_secure, "{cell}");
        if is_secure && has(trial, "requests_per_connection=1") {
            let resumes = has(trial, "resumption=on");
            assert_eq!(number("resumed") > 0, resumes, "{cell}: {handshakes}");
        }
    }
    let cells = |setting: &str| of_prony.iter().filter(|trial| has(trial, setting)).count();
    assert_eq!(
        cells("protocol=h2"),
        3,
        "two on kept connections, one at a rate"
    );
    assert_eq!(cells("protocol=https"), 4, "kept, new twice, at a rate");
    assert_eq!(cells("pipeline=10"), 1);
    assert_eq!(cells("protocol=h2c"), 0);
}
