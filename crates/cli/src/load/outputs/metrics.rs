//! The counts of a load in OpenMetrics' text, for whoever asks while it runs.
//!
//! A thread serves them ([`local_server`]) at the lowest priority, so that it takes no core from the threads that drive.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;
use prony_base::Nanos;
use prony_engine::{Sender, mailbox};
use prony_http::{Handler, Header, Request, Response};
use prony_load::{Latencies, LoadInterval, LoadTotals};
use prony_record::Failures;

use super::output::{FinishedLoad, LoadOutput};
use crate::local_server;

/// Upper ends of the buckets of latency.
const BUCKETS_MS: [f64; 16] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0,
    5_000.0, 10_000.0,
];
/// The media type that OpenMetrics has.
const TYPE: Header<'_> = Header::new(
    "content-type",
    b"application/openmetrics-text; version=1.0.0; charset=utf-8",
);

/// The metrics that are offered, until this is dropped.
pub struct Metrics {
    text: Arc<Mutex<Arc<str>>>,
    /// Where it is offered.
    pub address: SocketAddr,
    _stop: Sender<Infallible>,
}

impl Metrics {
    /// Offers counts at `address` from now on.
    pub fn bind(address: SocketAddr) -> anyhow::Result<Metrics> {
        let taken = || format!("metrics cannot be offered at {address} (--metrics)");
        let listener = TcpListener::bind(address).with_context(taken)?;
        let address = listener.local_addr().with_context(taken)?;
        let text = Arc::new(Mutex::new(Arc::from(text(&LoadInterval::default()))));
        let scrapes = Scrapes(Arc::clone(&text));
        let (stop, stopped) = mailbox(1);
        let serve = move || {
            // The lowest priority; where the system refuses that, the usual one.
            let _ = rustix::process::nice(19);
            // Where this machine has no loop for it, it has none for the load either, which says so.
            let _ = local_server::serve(listener, stopped, |_| scrapes);
        };
        let named = thread::Builder::new().name("metrics".to_owned());
        named.spawn(serve).with_context(taken)?;
        Ok(Metrics {
            text,
            address,
            _stop: stop,
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

/// Answers with the newest text.
struct Scrapes(Arc<Mutex<Arc<str>>>);

impl Handler for Scrapes {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        if !["/metrics", "/"].contains(&request.path()) {
            return response.text(404, "the metrics are at /metrics\n");
        }
        let text = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        response.send(200, [TYPE], text.as_bytes());
    }
}

/// Families of metrics but the latencies: name, kind and help.
const FAMILIES: [&str; 10] = [
    "requests_sent counter Requests handed to the kernel, warm-up included.",
    "requests_completed counter Requests answered in the window.",
    "requests_failed counter Requests that failed in the window.",
    "connects_failed counter Attempts to connect that failed.",
    "responses counter Answers of the window by status code.",
    "received_bytes counter Bytes received in the window.",
    "sent_bytes counter Bytes sent in the window.",
    "connections_open gauge Connections that are open.",
    "requests_outstanding gauge Requests that are outstanding.",
    "requests_waiting gauge Requests that wait for an idle connection.",
];

/// The run so far.
fn text(interval: &LoadInterval) -> String {
    let mut text = String::new();
    for (family, samples) in FAMILIES.into_iter().zip(samples(&interval.total)) {
        let (name, rest) = family.split_once(' ').unwrap_or_default();
        let (kind, help) = rest.split_once(' ').unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# TYPE prony_{name} {kind}\n# HELP prony_{name} {help}"
        );
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (labels, value) in samples {
            let _ = writeln!(text, "prony_{name}{suffix}{labels} {value}");
        }
    }
    latency(&mut text, &interval.total.latency);
    text.push_str("# EOF\n");
    text
}

/// The samples of each family, with their labels.
fn samples(total: &LoadTotals) -> [Vec<(String, u64)>; FAMILIES.len()] {
    let counts = &total.counts;
    let plain = |value| vec![(String::new(), value)];
    let kinds = |of: &Failures| {
        let label = |(kind, count)| (format!("{{kind=\"{kind}\"}}"), count);
        of.by_kind().into_iter().map(label).collect()
    };
    let code = |(code, count): &(u16, u64)| (format!("{{code=\"{code}\"}}"), *count);
    [
        plain(counts.sent),
        plain(counts.completed),
        kinds(&counts.failed),
        kinds(&counts.connect_failed),
        total.status.iter().map(code).collect(),
        plain(total.received_bytes),
        plain(total.sent_bytes),
        plain(total.connections_open),
        plain(total.outstanding),
        plain(total.waiting),
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
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

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

    /// The answer to a request on a connection of its own.
    fn answer(address: SocketAddr, line: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("a listener");
        let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn requests_that_were_half_sent_kept_scrapers_out() {
        let metrics = Metrics::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let half = |_| {
            let mut stream = TcpStream::connect(metrics.address).expect("a listener");
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHo")
                .expect("written");
            stream
        };
        let hanging: Vec<TcpStream> = (0..100).map(half).collect();
        for (line, status) in [
            ("GET /metrics", "200"),
            ("HEAD /?x=y", "200"),
            ("GET /x", "404"),
            ("POST /metrics", "405"),
        ] {
            let answer = answer(metrics.address, line, "localhost");
            let expected = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&expected), "{answer}");
            assert_eq!(answer.ends_with("# EOF\n"), line == "GET /metrics");
        }
        drop(hanging);
    }

    #[test]
    fn a_page_of_a_stranger_read_the_metrics_by_a_name_that_led_here() {
        let metrics = Metrics::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let named = |host: &str| answer(metrics.address, "GET /metrics", host);
        let foreign = named("rebound.example");
        assert!(foreign.starts_with("HTTP/1.1 421 "), "{foreign}");
        assert!(!foreign.contains("prony_"), "{foreign}");
        let own = named(&metrics.address.to_string());
        assert!(own.starts_with("HTTP/1.1 200 "), "{own}");
        // To others it is offered by whatever name they have for it.
        let all = Metrics::bind(SocketAddr::from(([0, 0, 0, 0], 0))).expect("a free port");
        let here = SocketAddr::from(([127, 0, 0, 1], all.address.port()));
        let other = answer(here, "GET /metrics", "generator.example");
        assert!(other.starts_with("HTTP/1.1 200 "), "{other}");
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let refused = Metrics::bind(taken.local_addr().expect("its address"));
        let said = format!("{:#}", refused.err().expect("the port is taken"));
        assert!(
            said.contains("--metrics") && said.contains("in use"),
            "{said}"
        );
    }
}
