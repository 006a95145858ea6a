//! A client in a closed loop on reqwest: each task asks, reads the body to its end and asks again. A runtime, a client and
//! its pool for each thread, so that threads share nothing.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use reqwest::{Client, Url, redirect};
use serde_json::json;
use tokio::task::JoinSet;

/// How long requests that are under way at the end may take to end.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Parser)]
struct Words {
    #[arg(long)]
    url: Url,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

/// What the requests of one thread came to. Its tasks all run on that thread, so that the lock is always free.
struct Tally {
    answered: u64,
    in_flight: u64,
    bytes: u64,
    failed: BTreeMap<&'static str, u64>,
    connect_failed: u64,
    latencies: Histogram<u64>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            answered: 0,
            in_flight: 0,
            bytes: 0,
            failed: BTreeMap::new(),
            connect_failed: 0,
            latencies: Histogram::new(3).expect("three digits"),
        }
    }

    fn answered(&mut self, bytes: u64, latency: Duration) {
        self.answered += 1;
        self.bytes += bytes;
        let grown = self.latencies.record(latency.as_nanos() as u64);
        grown.expect("a histogram that grows");
    }

    fn failed(&mut self, kind: &'static str) {
        *self.failed.entry(kind).or_default() += 1;
    }

    fn add(&mut self, other: Tally) {
        self.answered += other.answered;
        self.in_flight += other.in_flight;
        self.bytes += other.bytes;
        self.connect_failed += other.connect_failed;
        for (kind, count) in other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        self.latencies
            .add(other.latencies)
            .expect("a histogram that grows");
    }
}

/// One request and its whole answer: the length of the body, or by which name it failed.
async fn ask(client: &Client, url: &Url) -> reqwest::Result<Result<u64, &'static str>> {
    let mut response = client.get(url.clone()).send().await?;
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await? {
        bytes += chunk.len() as u64;
    }
    Ok(if response.status().is_success() {
        Ok(bytes)
    } else {
        Err("status")
    })
}

fn kind(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "timeout"
    } else if error.is_body() || error.is_decode() {
        "body"
    } else if error.is_request() {
        "request"
    } else {
        "other"
    }
}

/// Asks again and again until the deadline.
async fn drive(client: Client, url: Url, deadline: Instant, tally: Arc<Mutex<Tally>>) {
    let mut started = Instant::now();
    while started < deadline {
        let asked = ask(&client, &url).await;
        let ended = Instant::now();
        let mut tally = tally.lock().expect("no task panics");
        match asked {
            // A connection that could not be made is no request.
            Err(error) if error.is_connect() => tally.connect_failed += 1,
            _ if ended > deadline => tally.in_flight += 1,
            Ok(Ok(bytes)) => tally.answered(bytes, ended - started),
            Ok(Err(kind)) => tally.failed(kind),
            Err(error) => tally.failed(kind(&error)),
        }
        started = ended;
    }
}

fn client() -> reqwest::Result<Client> {
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .build()
}

/// The connections of one thread. Its runtime is made before the clock of the whole starts.
fn worker(url: &Url, connections: u32, start: &Barrier, duration: Duration) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let tally = Arc::new(Mutex::new(Tally::new()));
    start.wait();
    let deadline = Instant::now() + duration;
    runtime.block_on(async {
        let client = client().expect("a client without special wishes");
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(drive(client.clone(), url.clone(), deadline, tally.clone()));
        }
        let drained = tokio::time::timeout(duration + DRAIN, async {
            while let Some(ended) = tasks.join_next().await {
                ended.expect("no task panics");
            }
        });
        if drained.await.is_err() {
            tally.lock().expect("no task panics").in_flight += tasks.len() as u64;
        }
    });
    let mut tally = tally.lock().expect("no task panics");
    mem::replace(&mut *tally, Tally::new())
}

fn line(words: &Words, tally: &Tally) -> serde_json::Value {
    let latencies = &tally.latencies;
    let at = |percentile| latencies.value_at_percentile(percentile);
    json!({
        "measure": "requests",
        "threads": words.threads,
        "count": tally.answered,
        "elapsed_ns": u64::from(words.seconds) * 1_000_000_000,
        "bytes": tally.bytes,
        "client": {
            "connections": words.connections,
            "failed": tally.failed.values().sum::<u64>(),
            "failed_by_kind": tally.failed,
            "in_flight": tally.in_flight,
            "latency": {
                "count": latencies.len(), "min": latencies.min(), "max": latencies.max(),
                "mean": latencies.mean(), "stdev": latencies.stdev(),
                "p50": at(50.0), "p75": at(75.0), "p90": at(90.0), "p99": at(99.0),
                "p99_9": at(99.9), "p99_99": at(99.99),
            },
        },
        "tallies": { "connect_failed": tally.connect_failed },
    })
}

fn main() {
    let words = Words::parse();
    let duration = Duration::from_secs(u64::from(words.seconds));
    let start = Barrier::new(words.threads as usize);
    let mut sum = Tally::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..words.threads)
            .map(|index| {
                let more = u32::from(index < words.connections % words.threads);
                let connections = words.connections / words.threads + more;
                let (url, start) = (&words.url, &start);
                scope.spawn(move || worker(url, connections, start, duration))
            })
            .collect();
        for thread in threads {
            sum.add(thread.join().expect("no thread panics"));
        }
    });
    println!("{}", line(&words, &sum));
}
