//! The counts of a load in OpenMetrics' text, for whoever asks while it runs.
//!
//! A thread accepts, and one more serves each scrape, a few at a time and each for a few seconds at the most: one that hangs disturbs
//! neither the others nor the run. They run at the lowest priority, so that they take no core from the threads that drive.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prony_base::Nanos;
use prony_load::{Latencies, LoadInterval, LoadTotals};
use prony_record::Failures;

use super::output::{FinishedLoad, LoadOutput};

/// Scrapes that are served at the same time; further ones are turned away.
const SCRAPES_MAX: usize = 8;
/// How long a scrape may take.
const SCRAPE_MAX: Duration = Duration::from_secs(3);
/// Bytes of a request that are read.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Upper ends of the buckets of latency.
const BUCKETS_MS: [f64; 16] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0,
    5_000.0, 10_000.0,
];
/// The media type that OpenMetrics has.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is offered.
pub struct Metrics {
    text: Arc<Mutex<Arc<str>>>,
    ended: Arc<AtomicBool>,
    /// Where it is offered.
    pub address: SocketAddr,
}

impl Metrics {
    /// Offers counts at `address` from now on.
    pub fn bind(address: SocketAddr) -> anyhow::Result<Metrics> {
        let taken = || format!("metrics cannot be offered at {address} (--metrics)");
        let listener = TcpListener::bind(address).with_context(taken)?;
        let address = listener.local_addr().with_context(taken)?;
        let text = Arc::new(Mutex::new(Arc::from(text(&LoadInterval::default()))));
        let ended = Arc::new(AtomicBool::new(false));
        let (shown, is_over) = (Arc::clone(&text), Arc::clone(&ended));
        let accept = move || accept(&listener, &shown, &is_over);
        let named = thread::Builder::new().name("metrics".to_owned());
        named.spawn(accept).with_context(taken)?;
        Ok(Metrics {
            text,
            ended,
            address,
        })
    }
}

impl LoadOutput for Metrics {
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()> {
        let text = Arc::from(text(interval));
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        Ok(())
    }

    fn finish(&mut self, _: &FinishedLoad<'_>) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        // Wakes the thread that accepts; where that fails it ends with the program.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(100));
    }
}

fn accept(listener: &TcpListener, shown: &Mutex<Arc<str>>, ended: &AtomicBool) {
    // The lowest priority; where the system refuses that, the usual one.
    let _ = rustix::process::nice(19);
    let serving = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if ended.load(Relaxed) {
            return;
        }
        if serving.load(Relaxed) >= SCRAPES_MAX {
            continue;
        }
        let text = Arc::clone(&shown.lock().unwrap_or_else(PoisonError::into_inner));
        serving.fetch_add(1, Relaxed);
        let counted = Arc::clone(&serving);
        let serve = move || {
            // Who asked and went away has nothing to be told.
            let _ = scrape(stream, &text);
            counted.fetch_sub(1, Relaxed);
        };
        if thread::Builder::new()
            .name("scrape".to_owned())
            .spawn(serve)
            .is_err()
        {
            serving.fetch_sub(1, Relaxed);
        }
    }
}

/// Answers one request, and closes.
fn scrape(mut stream: TcpStream, text: &str) -> io::Result<()> {
    let deadline = Instant::now() + SCRAPE_MAX;
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        (!left.is_zero())
            .then_some(left)
            .ok_or(io::ErrorKind::TimedOut)
    };
    let (mut head, mut part) = (Vec::new(), [0; 1_024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left()?))?;
        let count = stream.read(&mut part)?;
        head.extend_from_slice(&part[..count]);
        if count == 0 || head.len() > HEAD_BYTES_MAX {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&head);
    let mut line = line.split_whitespace();
    let (method, path) = (
        line.next().unwrap_or_default(),
        line.next().unwrap_or_default(),
    );
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics" | "/") => ("200 OK", text),
        ("GET" | "HEAD", _) => ("404 Not Found", "the metrics are at /metrics\n"),
        _ => ("405 Method Not Allowed", "the metrics answer GET\n"),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { body };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TYPE}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut rest = answer.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left()?))?;
        let count = stream.write(rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

/// A family of metrics: its name, kind and help, and its samples.
type MetricFamily = (&'static str, &'static str, &'static str, Vec<(String, u64)>);

/// The run so far.
fn text(interval: &LoadInterval) -> String {
    let mut text = String::new();
    let total = &interval.total;
    for (name, kind, help, samples) in counters(total).into_iter().chain(gauges(total)) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# TYPE prony_{name} {kind}\n# HELP prony_{name} {help}"
        );
        let suffix = if kind == COUNTER { "_total" } else { "" };
        for (labels, value) in samples {
            let _ = writeln!(text, "prony_{name}{suffix}{labels} {value}");
        }
    }
    latency(&mut text, &interval.total.latency);
    text.push_str("# EOF\n");
    text
}

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

/// What only grows, but for the latencies.
fn counters(total: &LoadTotals) -> Vec<MetricFamily> {
    let counts = &total.counts;
    let plain = |value| vec![(String::new(), value)];
    let kinds = |of: &Failures| -> Vec<(String, u64)> {
        let label = |(kind, count)| (format!("{{kind=\"{kind}\"}}"), count);
        of.by_kind().into_iter().map(label).collect()
    };
    let code = |(code, count): &(u16, u64)| (format!("{{code=\"{code}\"}}"), *count);
    let codes = total.status.iter().map(code).collect();
    vec![
        (
            "requests_sent",
            COUNTER,
            "Requests handed to the kernel, warm-up included.",
            plain(counts.sent),
        ),
        (
            "requests_completed",
            COUNTER,
            "Requests answered in the window.",
            plain(counts.completed),
        ),
        (
            "requests_failed",
            COUNTER,
            "Requests that failed in the window.",
            kinds(&counts.failed),
        ),
        (
            "connects_failed",
            COUNTER,
            "Attempts to connect that failed.",
            kinds(&counts.connect_failed),
        ),
        (
            "responses",
            COUNTER,
            "Answers of the window by status code.",
            codes,
        ),
        (
            "received_bytes",
            COUNTER,
            "Bytes received in the window.",
            plain(total.received_bytes),
        ),
        (
            "sent_bytes",
            COUNTER,
            "Bytes sent in the window.",
            plain(total.sent_bytes),
        ),
    ]
}

/// What is now.
fn gauges(total: &LoadTotals) -> Vec<MetricFamily> {
    let plain = |value| vec![(String::new(), value)];
    let (open, waiting) = (total.connections_open, total.waiting);
    vec![
        (
            "connections_open",
            GAUGE,
            "Connections that are open.",
            plain(open),
        ),
        (
            "requests_outstanding",
            GAUGE,
            "Requests that are outstanding.",
            plain(total.outstanding),
        ),
        (
            "requests_waiting",
            GAUGE,
            "Requests that wait for an idle connection.",
            plain(waiting),
        ),
    ]
}

/// Of the requests that ended well; those that failed are in their counters.
fn latency(text: &mut String, latencies: &Latencies) {
    let summary = latencies.summary();
    let ended = summary.count - summary.infinite;
    let name = "prony_latency_seconds";
    let help = "Latency of the answered requests of the window.";
    let _ = writeln!(
        text,
        "# TYPE {name} histogram\n# UNIT {name} seconds\n# HELP {name} {help}"
    );
    for ms in BUCKETS_MS {
        let above = latencies.above(Nanos((ms * 1e6) as u64));
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"{}\"}} {}",
            ms / 1e3,
            summary.count - above
        );
    }
    let sum = summary.mean * ended as f64 / 1e9;
    let _ = writeln!(
        text,
        "{name}_bucket{{le=\"+Inf\"}} {ended}\n{name}_sum {sum}\n{name}_count {ended}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_each_count_once_and_buckets_that_only_grow() {
        let mut interval = LoadInterval::default();
        let total = &mut interval.total;
        total.counts.sent = 12;
        total.counts.completed = 10;
        total.counts.failed.reset = 2;
        total.status = vec![(200, 9), (503, 1)];
        for ms in [1, 1, 3, 7, 20, 20, 20, 300, 4_000, 20_000] {
            total
                .latency
                .record(Nanos::from_millis(ms) - Nanos::from_micros(10));
        }
        total.latency.record_never();
        let text = text(&interval);
        for line in [
            "prony_requests_sent_total 12",
            "prony_requests_completed_total 10",
            "prony_requests_failed_total{kind=\"reset\"} 2",
            "prony_responses_total{code=\"503\"} 1",
            "prony_latency_seconds_bucket{le=\"0.001\"} 2",
            "prony_latency_seconds_bucket{le=\"10\"} 9",
            "prony_latency_seconds_bucket{le=\"+Inf\"} 10",
            "prony_latency_seconds_count 10",
        ] {
            assert_eq!(
                text.lines().filter(|it| *it == line).count(),
                1,
                "{line}\n{text}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
        let buckets = text.lines().filter(|line| line.contains("_bucket"));
        let buckets: Vec<u64> = buckets
            .map(|line| {
                line.split(' ')
                    .next_back()
                    .expect("a value")
                    .parse()
                    .expect("a count")
            })
            .collect();
        assert!(buckets.is_sorted(), "{buckets:?}");
    }

    #[test]
    fn a_scrape_is_answered_beside_one_that_hangs_and_a_taken_port_is_refused() {
        let metrics = Metrics::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = metrics.address;
        let hanging = TcpStream::connect(address).expect("a listener");
        for (line, status) in [
            ("GET /metrics", "200"),
            ("GET /x", "404"),
            ("POST /metrics", "405"),
        ] {
            let mut stream = TcpStream::connect(address).expect("a listener");
            write!(stream, "{line} HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
        drop(hanging);
        let Err(refused) = Metrics::bind(address) else {
            panic!("the port is taken");
        };
        let said = format!("{refused:#}");
        assert!(
            said.contains("--metrics") && said.contains("in use"),
            "{said}"
        );
    }
}
