//! `prony stats` on files, and on what `prony load --seconds` writes.

use std::fs;
use std::process::{Command, Output};

use crate::common::{PRONY, folder};
use crate::server::Server;
use serde_json::Value;

fn prony(words: &[&str]) -> Output {
    Command::new(PRONY)
        .args(words)
        .output()
        .expect("prony runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// As `rust_load_test` of the original wrote them, shortened: a header and 3 seconds of warm-up.
const LOG: &str = "Running for 8s with 1024 clients\n\
    [00:01] 1000ms: 1 ok\n\
    [00:02] 1000ms: 2 ok\n\
    [00:03] 1000ms: 3 ok\n\
    [00:04] 1000ms: 2000 ok\n\
    [00:05] 500ms: 2000 ok\n\
    [00:06] 2000ms: 12000 ok\n";

#[test]
fn a_log_is_summed_up_as_the_table_has_it() {
    let folder = folder("stats");
    let file = folder.join("a.log");
    fs::write(&file, LOG).expect("a log");
    let file = file.to_str().expect("a name");
    let output = prony(&["stats", file]);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Rates of 2000, 4000 and 6000: a mean of 4000 and a deviation of 2000.
    let row = table.lines().nth(2).expect("a row");
    assert!(
        row.contains("| `4,000` |") && row.contains("`2,000.00` |"),
        "{table}"
    );
    let seen = prony(&["stats", "--json", "--combine", "--warmup", "4", file, file]);
    let seen: Value = serde_json::from_slice(&seen.stdout).expect("JSON");
    assert_eq!(seen["rows"][0]["mean_per_s"], 10_000.0);
    assert_eq!(seen["rows"][0]["seconds"], 2);
    assert_eq!(seen["rows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_bad_log_is_named_with_its_line() {
    let folder = folder("stats-bad");
    let write = |name: &str, text: &[u8]| {
        let file = folder.join(name);
        fs::write(&file, text).expect("a log");
        file.to_str().expect("a name").to_owned()
    };
    let bad = write("bad.log", LOG.replace("2000 ok", "many ok").as_bytes());
    let short = write("short.log", b"header\n1000ms: 1\n");
    let binary = write("binary.log", &[0xff, 0xfe, 0]);
    let absent = folder.join("absent.log");
    let absent = absent.to_str().expect("a name");
    for (file, why) in [
        (
            &*bad,
            "bad.log:5: the count after `ms:` is not a whole number",
        ),
        (&*short, "short.log has 1 line after its header"),
        (&*binary, "not text"),
        (absent, "cannot read"),
    ] {
        let output = prony(&["stats", file]);
        let seen = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{seen}");
        assert!(seen.contains(why) && output.stdout.is_empty(), "{seen}");
    }
    assert_eq!(prony(&["stats"]).status.code(), Some(2));
}

#[test]
fn what_load_writes_by_second_is_what_stats_reads() {
    let folder = folder("stats-load");
    let server = Server::start(&[]);
    let port = server.port;
    let url = format!("http://127.0.0.1:{port}/hello");
    let (log, report) = (folder.join("s.log"), folder.join("r.json"));
    let (log, report) = (
        log.to_str().expect("a name"),
        report.to_str().expect("a name"),
    );
    let words = [
        "load",
        "-c2",
        "-t1",
        "-d2300ms",
        "--seconds",
        log,
        "--json",
        report,
        &url,
    ];
    let output = prony(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&fs::read(report).expect("a report")).expect("JSON");
    let slices: Vec<u64> = report["slices"]["completed"]
        .as_array()
        .expect("slices")
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    let seen = prony(&["stats", "--json", "--warmup", "0", log]);
    let seen: Value = serde_json::from_slice(&seen.stdout).expect("JSON");
    let row = &seen["rows"][0];
    assert_eq!(row["seconds"], 2);
    let two: u64 = slices[..20].iter().sum();
    assert_eq!(row["mean_per_s"], two as f64 / 2.0);
    let written = fs::read_to_string(log).expect("a log");
    assert!(written.contains(": requests by second, 2 connections, 0 failed in all\n"));
    assert!(written.ends_with(" requests, 0 failed\n"), "{written}");
    // A run without a whole second says so and leaves a header.
    let output = prony(&["load", "-c1", "-t1", "-n3", "--seconds", log, &url]);
    assert!(text(&output.stderr).contains("shorter than a second"));
    assert_eq!(fs::read_to_string(log).expect("a log").lines().count(), 1);
}
