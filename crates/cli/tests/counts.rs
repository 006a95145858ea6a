//! The generator's counts against the servers' own, to the unit, over 20 runs
//! each: nginx's `stub_status` and `prony serve`'s `/stats`. And its rates
//! against wrk's where the server is the limit.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ended, PRONY, get, wait_for_port};
use serde_json::Value;

const RUNS: u32 = 20;

/// Runs `prony load` with `words` on `url` and returns its report.
fn load(url: &str, words: &[&str]) -> Value {
    let output = Command::new(PRONY)
        .args(["load", "--json", "-", url])
        .args(words)
        .output()
        .expect("prony runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("a report")
}

fn number(value: &Value, path: &str) -> u64 {
    value
        .pointer(path)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("{path} in {value}"))
}

/// Requests that the server has seen: all that were sent, each answered, drained or failed.
fn accounted(report: &Value) -> u64 {
    let failed = report
        .pointer("/counts/failed")
        .and_then(Value::as_object)
        .expect("failures by kind");
    let failed: u64 = failed.values().filter_map(Value::as_u64).sum();
    let whole = number(report, "/completed")
        + failed
        + number(report, "/counts/drained")
        + number(report, "/counts/drain_failed")
        + number(report, "/counts/abandoned");
    assert_eq!(
        number(report, "/counts/sent"),
        whole,
        "sent = completed + failed + in flight"
    );
    whole
}

/// Words of run `n`: connections, threads and end differ from run to run.
fn words(n: u32) -> Vec<String> {
    let connections = 1 + n * 7 % 64;
    let threads = 1 + n % 2.min(connections);
    let end = if n % 4 == 3 {
        format!("-n{}", 501 + n)
    } else {
        format!("-d{}ms", 60 + n * 5)
    };
    vec![
        format!("-c{}", connections.max(threads)),
        format!("-t{threads}"),
        end,
    ]
}

fn agrees_over_runs(url: &str, requests_seen: impl Fn() -> u64) {
    for n in 0..RUNS {
        let before = requests_seen();
        let words = words(n);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let report = load(url, &words);
        // The question is itself a request.
        let seen = requests_seen() - before - 1;
        assert_eq!(seen, accounted(&report), "run {n} {words:?}: {report}");
    }
}

fn nginx(folder: &Path, port: u16) -> Option<Ended> {
    let nginx = prony_testkit::need("nginx")?;
    let conf = folder.join("nginx.conf");
    let dir = folder.display();
    let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {dir}/{kind};"))
        .collect();
    let text = format!(
        "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;\
         events {{ worker_connections 1024; }}\
         http {{ access_log off; keepalive_requests 1000000; {temp}\
         server {{ listen 127.0.0.1:{port} backlog=1024;\
         location /hello {{ return 200 'Hello, World!'; }} location /status {{ stub_status; }} }} }}"
    );
    fs::write(&conf, text).expect("a configuration");
    let mut command = Command::new(nginx);
    command
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(&conf)
        .arg("-e")
        .arg(folder.join("error.log"))
        .stderr(Stdio::null());
    let server = Ended::start(&mut command);
    wait_for_port(port);
    Some(server)
}

/// `Active connections: 1\nserver accepts handled requests\n 7 7 31 \n…`
fn nginx_requests(port: u16) -> u64 {
    let page = get(port, "/status");
    let line = page
        .lines()
        .skip_while(|line| !line.starts_with("server accepts"))
        .nth(1)
        .expect("the line of counters");
    line.split_whitespace()
        .nth(2)
        .and_then(|word| word.parse().ok())
        .expect("requests")
}

#[test]
fn nginx_has_counted_what_prony_has_counted() {
    let folder = common::folder("nginx-counts");
    let port = common::free_port();
    let Some(_server) = nginx(&folder, port) else {
        return;
    };
    agrees_over_runs(&format!("http://127.0.0.1:{port}/hello"), || {
        nginx_requests(port)
    });
}

#[test]
fn prony_serve_has_counted_what_prony_load_has_counted() {
    let (_server, port) = common::serve(&[]);
    agrees_over_runs(&format!("http://127.0.0.1:{port}/hello"), || {
        let stats: Value = serde_json::from_str(&get(port, "/stats")).expect("counters");
        number(&stats, "/requests/received")
    });
}

/// A rate is a measurement, not an invariant: the bounds only catch a figure that
/// is wrong by a factor, such as requests counted twice.
#[test]
fn wrk_finds_the_same_rate_within_a_factor_of_two() {
    let (folder, port) = (common::folder("nginx-rates"), common::free_port());
    let (Some(wrk), Some(_server)) = (prony_testkit::need("wrk"), nginx(&folder, port)) else {
        return;
    };
    let url = format!("http://127.0.0.1:{port}/hello");
    let ratios = (0..3).map(|_| {
        let ours = load(&url, &["-c50", "-t1", "-d1s"])["rate_per_s"]
            .as_f64()
            .expect("a rate");
        let output = Command::new(&wrk)
            .args(["-c50", "-t1", "-d1s", &url])
            .output()
            .expect("wrk runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Requests/sec:"))
            .expect("wrk's rate");
        ours / line.trim().parse::<f64>().expect("a number")
    });
    let best = ratios
        .map(|ratio: f64| ratio.ln().abs())
        .fold(f64::INFINITY, f64::min);
    assert!(
        best < 2.0_f64.ln(),
        "the rates differ by a factor of {}",
        best.exp()
    );
}
