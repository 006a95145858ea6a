//! The generator's counts against the servers' own, to the unit, over 20 runs
//! each: nginx's `stub_status` and `prony serve`'s `/stats`. And its rates
//! against wrk's where the server is the limit.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, Ended, PRONY, get, wait_for_port};
use crate::server::Server;
use serde_json::Value;

const RUNS: u32 = 20;

/// Runs `prony load` with `words` on `url` and returns its report.
fn load(url: &str, words: &[&str]) -> Value {
    let output = Command::new(PRONY)
        .args(["load", "--json", "-", url])
        .args(words)
        .output()
        .expect("prony runs");
    // 3: on a busy machine nothing may be answered in a window of milliseconds, and is counted all the same.
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
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
    let server = Server::start(&[]);
    let port = server.port;
    agrees_over_runs(&format!("http://127.0.0.1:{port}/hello"), || {
        let stats: Value = serde_json::from_str(&get(port, "/stats")).expect("counters");
        number(&stats, "/requests/received")
    });
}

/// What wrk printed: requests, the seconds that they took, and its rate.
fn wrk(wrk: &Path, url: &str) -> (u64, f64, f64) {
    let output = Command::new(wrk)
        .args(["-c50", "-t1", "-d1s", url])
        .output()
        .expect("wrk runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `  98765 requests in 1.00s, 15.07MB read` and `Requests/sec:  98270.15`
    let (before, after) = text.split_once(" requests in ").expect("a line of counts");
    let requests = before.split_whitespace().last().expect("a number");
    let (seconds, _) = after.split_once("s,").expect("a time in seconds");
    let rate = text.split_once("Requests/sec:").expect("a rate").1;
    let rate = rate.lines().next().expect("a line");
    let number = |word: &str| word.trim().parse().expect("a number");
    (
        requests.parse().expect("a number"),
        number(seconds),
        number(rate),
    )
}

/// A rate is what the server has counted, over the time that passed: of each tool on its own.
/// How fast they are beside each other is measured elsewhere, and is no test.
#[test]
fn rates_of_prony_and_of_wrk_are_the_servers_count_over_the_time_that_passed() {
    let (folder, port) = (common::folder("nginx-rates"), common::free_port());
    let (Some(path), Some(_server)) = (prony_testkit::need("wrk"), nginx(&folder, port)) else {
        return;
    };
    let url = format!("http://127.0.0.1:{port}/hello");
    let before = nginx_requests(port);
    let (requests, seconds, rate) = wrk(&path, &url);
    let between = nginx_requests(port);
    // What is on its way when it stops, one on each of its connections, it leaves out.
    let seen = between - before - 1;
    assert!(
        requests <= seen && seen <= requests + 50,
        "wrk says {requests} and nginx {seen}"
    );
    // It writes its time with two digits after the point.
    let at_most = requests as f64 / (seconds - 0.005);
    let at_least = requests as f64 / (seconds + 0.005);
    assert!(
        (at_least - 0.01..=at_most + 0.01).contains(&rate),
        "wrk: {requests} in {seconds} s are not {rate}"
    );
    let begun = std::time::Instant::now();
    let report = load(&url, &["-c50", "-t1", "-d1s"]);
    let passed = begun.elapsed().as_secs_f64();
    let seen = nginx_requests(port) - between - 1;
    assert_eq!(seen, accounted(&report), "{report}");
    let completed = number(&report, "/completed");
    assert!(
        completed <= seen && seen <= completed + 50,
        "completed {completed}, and nginx has counted {seen}: {report}"
    );
    let window = number(&report, "/window_ns") as f64 / 1e9;
    assert!(
        (1.0..=passed).contains(&window),
        "a window of {window} s in {passed} s"
    );
    let rate = report["rate_per_s"].as_f64().expect("a rate");
    let expected = completed as f64 / window;
    assert!(
        (rate / expected - 1.0).abs() < 1e-6,
        "{completed} in {window} s are not {rate}"
    );
}
