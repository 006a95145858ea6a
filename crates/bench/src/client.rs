//! The client library in a closed loop: on each connection the next request is sent when
//! the last answer was read to its end (`prony bench client`).
//!
//! ```no_run
//! use prony_bench::client::{ClientOrder, run};
//!
//! let done = run(&ClientOrder::new("http://127.0.0.1:8000/hello"))?;
//! println!("{} answers", done.line.count);
//! # Ok::<(), prony_bench::client::ClientBenchError>(())
//! ```
//!
//! Every request that was sent ends in one count: answered in time with a status of 2xx,
//! failed, or in flight when the time was over. Those in flight are let come to their end, uncounted otherwise,
//! so that the sum is what the server has seen. Each thread has a loop and a client of its
//! own; connections are shared out over the threads.
//! Not for: what a server can do at best (`prony-load` costs less per request).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::OnceLock;
use std::thread::Builder;

use prony_base::{Instant, Nanos, PerSecond, clock};
use prony_client::redirect::RedirectPolicy;
use prony_client::{Client, Error, RequestPhase, Settings};
use prony_engine::{Config, DriverChoice, Handle};
use prony_load::Latencies;
use prony_record::{ClientFigures, ProgramLine};
use thiserror::Error;

use crate::spread::spread;
use crate::threads::on_threads;
use crate::usage::Usage;
use crate::{BenchError, THREADS_MAX};

/// Most connections in all.
pub const CONNECTIONS_MAX: u32 = 100_000;
/// How long a connection rests after a request that could not even be sent.
const PAUSE: Nanos = Nanos::from_millis(10);
/// Failures that a thread puts in words.
const WORDS_MAX: usize = 4;

/// The requests to send.
#[derive(Clone, Debug)]
pub struct ClientOrder {
    /// The URL of each request.
    pub url: String,
    /// How long requests are sent and answers counted.
    pub length: Nanos,
    /// Connections in all, over all threads.
    pub connections: u32,
    /// Threads, each with a loop and a client.
    pub threads: u32,
    /// Driver of the loops.
    pub driver: DriverChoice,
    /// Longest that a request may take.
    pub timeout: Nanos,
}

impl ClientOrder {
    /// 10 connections on one thread for 10 s.
    pub fn new(url: &str) -> ClientOrder {
        ClientOrder {
            url: url.to_owned(),
            length: Nanos::from_secs(10),
            connections: 10,
            threads: 1,
            driver: DriverChoice::default(),
            timeout: Nanos::from_secs(10),
        }
    }

    fn check(&self) -> Result<(), ClientBenchError> {
        let wrong = |what: String| Err(ClientBenchError::Order(what));
        if self.threads == 0 || self.threads > THREADS_MAX {
            return wrong(format!("threads must be from 1 to {THREADS_MAX}"));
        }
        if self.connections > CONNECTIONS_MAX {
            return wrong(format!("connections must be at most {CONNECTIONS_MAX}"));
        }
        if self.connections < self.threads {
            return wrong(format!(
                "{} connections in all cannot be shared out over {} threads",
                self.connections, self.threads
            ));
        }
        if self.length == Nanos::ZERO || self.timeout == Nanos::ZERO {
            return wrong("the length must be more than zero".to_owned());
        }
        Ok(())
    }

    /// Connections of thread `number`, from 0.
    fn share(&self, number: u32) -> u32 {
        self.connections / self.threads + u32::from(number < self.connections % self.threads)
    }

    fn settings(&self, connections: u32) -> Settings {
        Settings {
            connections_per_host_max: connections as usize,
            connections_max: connections as usize,
            connect_timeout: self.timeout,
            first_byte_timeout: self.timeout,
            stall_timeout: self.timeout,
            timeout: self.timeout,
            // Each request is one exchange, so that both sides count the same.
            redirects: RedirectPolicy::None,
            ..Settings::default()
        }
    }
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum ClientBenchError {
    /// An order that cannot be followed.
    #[error("{0}")]
    Order(String),
    /// A thread could not be had, or panicked.
    #[error("{0}")]
    Thread(#[from] BenchError),
}

/// The counts of one thread.
#[derive(Clone, Debug, Default)]
struct Counted {
    answered: u64,
    bytes: u64,
    in_flight: u64,
    latencies: Latencies,
    failed: BTreeMap<String, u64>,
    unsent: u64,
    resent: u64,
    exchanges: u64,
    connected: u64,
    words: Vec<String>,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct ClientDone {
    /// The measurement.
    pub line: ProgramLine,
    /// Failures in words, a few of each thread.
    pub failures: Vec<String>,
    /// CPU time of this process, from before its threads began until they had ended.
    pub cpu: Nanos,
    /// Requests that were sent: answered, failed and in flight.
    pub sent: u64,
}

/// Asks for as long as ordered.
///
/// # Errors
/// [`ClientBenchError`]: the order cannot be followed, or the system does not let it. A
/// request that fails is no error: it is counted in `line.client`.
pub fn run(order: &ClientOrder) -> Result<ClientDone, ClientBenchError> {
    order.check()?;
    crate::io::raise_descriptors();
    let before = Usage::of_this_process();
    let start = OnceLock::new();
    let asks = |number| ask(order, order.share(number), &start);
    let counted = on_threads(order.threads, &Builder::new, asks)?;
    let used = Usage::of_this_process().since(before, Usage::default());
    Ok(sum(order, counted, used))
}

/// One thread's part.
fn ask(
    order: &ClientOrder,
    connections: u32,
    start: &OnceLock<Instant>,
) -> Result<Counted, BenchError> {
    let config = Config {
        driver: order.driver,
        connections_hint: connections,
        ..Config::default()
    };
    let counted = prony_engine::run(&config, async |handle: Handle| {
        let end = *start.get_or_init(clock::monotonic) + order.length;
        let client = Client::new(&handle, order.settings(connections));
        let counted = Rc::new(RefCell::new(Counted::default()));
        let loops: Vec<_> = (0..connections)
            .map(|_| {
                let (client, counted) = (client.clone(), counted.clone());
                let url = order.url.clone();
                handle.spawn(closed_loop(handle.clone(), client, url, end, counted))
            })
            .collect();
        for one in loops {
            one.await;
        }
        let mut counted = counted.take();
        let counts = client.counts();
        (counted.resent, counted.exchanges) = (counts.resent, counts.exchanges);
        counted.connected = counts.connected;
        counted
    })?;
    Ok(counted)
}

/// One request after the other until `end`.
async fn closed_loop(
    handle: Handle,
    client: Client,
    url: String,
    end: Instant,
    counted: Rc<RefCell<Counted>>,
) {
    let mut sent = clock::monotonic();
    while sent < end {
        let answer = exchange(&client, &url).await;
        let done = clock::monotonic();
        let is_over = done > end;
        let is_unsent = answer.as_ref().is_err_and(|error| !was_sent(error));
        counted.borrow_mut().take(answer, is_over);
        sent = done;
        if is_unsent && !is_over {
            handle.sleep(PAUSE).await;
            sent = clock::monotonic();
        }
    }
}

/// An answer, read to its end.
struct Answer {
    status: u16,
    bytes: u64,
    /// From handing the request to the kernel to taking the last byte from it.
    latency: Nanos,
}

async fn exchange(client: &Client, url: &str) -> Result<Answer, Error> {
    let mut answer = client.get(url).send().await?;
    let mut bytes = 0;
    while let Some(piece) = answer.chunk().await? {
        bytes += piece.len() as u64;
    }
    let timing = answer.timing();
    Ok(Answer {
        status: answer.status(),
        bytes,
        latency: timing.done.unwrap_or(timing.first_byte) - timing.sent,
    })
}

/// Whether a server can have seen the request.
fn was_sent(error: &Error) -> bool {
    !matches!(
        error.phase(),
        RequestPhase::Request
            | RequestPhase::Queue
            | RequestPhase::Resolve
            | RequestPhase::Connect
            | RequestPhase::Proxy
            | RequestPhase::Tls
    )
}

impl Counted {
    /// Puts a request that has ended, before the end of the time or after it, into its count.
    #[inline]
    fn take(&mut self, answer: Result<Answer, Error>, is_over: bool) {
        match answer {
            Err(error) if !was_sent(&error) => {
                self.unsent += 1;
                self.tell(&error);
            }
            _ if is_over => self.in_flight += 1,
            Ok(answer) if (200..300).contains(&answer.status) => {
                self.answered += 1;
                self.bytes += answer.bytes;
                self.latencies.record(answer.latency);
            }
            // Pages of errors are often short, and must not look like speed.
            Ok(Answer { status, .. }) => {
                self.fail("status", &format_args!("the answer has status {status}"));
            }
            Err(error) => self.fail(error.kind().name(), &error),
        }
    }

    #[cold]
    fn fail(&mut self, kind: &str, why: &dyn fmt::Display) {
        let count = match self.failed.get_mut(kind) {
            Some(count) => count,
            None => self.failed.entry(kind.to_owned()).or_default(),
        };
        *count += 1;
        self.tell(why);
    }

    fn tell(&mut self, why: &dyn fmt::Display) {
        if self.words.len() < WORDS_MAX {
            self.words.push(why.to_string());
        }
    }
}

fn sum(order: &ClientOrder, counted: Vec<Counted>, used: Usage) -> ClientDone {
    let mut all = Counted::default();
    let mut rates = Vec::new();
    let mut failures = Vec::new();
    for one in counted {
        all.answered += one.answered;
        all.bytes += one.bytes;
        all.in_flight += one.in_flight;
        all.unsent += one.unsent;
        all.resent += one.resent;
        all.exchanges += one.exchanges;
        all.connected += one.connected;
        all.latencies.add(&one.latencies);
        for (kind, count) in one.failed {
            *all.failed.entry(kind).or_default() += count;
        }
        rates.push(PerSecond::of(one.answered, order.length).0);
        failures.extend(one.words);
    }
    let failed: u64 = all.failed.values().sum();
    let (latency, histogram) = (all.latencies.summary(), all.latencies.histogram());
    let tallies = [
        ("connected", all.connected),
        ("exchanges", all.exchanges),
        ("resent", all.resent),
        ("unsent", all.unsent),
        ("user_ns", used.user.0),
        ("system_ns", used.system.0),
        ("voluntary_switches", used.voluntary),
        ("involuntary_switches", used.involuntary),
        ("peak_rss_bytes", used.peak_bytes),
    ];
    let line = ProgramLine {
        measure: "requests".to_owned(),
        threads: order.threads,
        count: all.answered,
        elapsed_ns: order.length.0,
        bytes: all.bytes,
        checksum: all.bytes.to_string(),
        client: Some(ClientFigures {
            connections: order.connections,
            failed,
            failed_by_kind: all.failed,
            in_flight: Some(all.in_flight),
            latency: Some(latency),
            histogram: Some(histogram),
        }),
        figures: BTreeMap::from([("thread_requests_per_s".to_owned(), spread(rates))]),
        tallies: tallies.map(|(name, count)| (name.to_owned(), count)).into(),
        ..ProgramLine::default()
    };
    ClientDone {
        line,
        failures,
        cpu: used.cpu(),
        sent: all.answered + failed + all.in_flight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_says_an_error_was_counted_as_an_answer() {
        let mut counted = Counted::default();
        let answer = |status| {
            Ok(Answer {
                status,
                bytes: 10,
                latency: Nanos::from_millis(1),
            })
        };
        for status in [200, 299, 199, 300, 304, 404, 500] {
            counted.take(answer(status), false);
        }
        counted.take(answer(404), true);
        assert_eq!((counted.answered, counted.bytes), (2, 20));
        assert_eq!(counted.failed, BTreeMap::from([("status".to_owned(), 5)]));
        assert_eq!(counted.in_flight, 1);
        assert_eq!(counted.latencies.summary().count, 2);
        assert_eq!(counted.words.len(), WORDS_MAX);
        assert_eq!(counted.words[2], "the answer has status 304");
    }

    #[test]
    fn connections_are_shared_out_to_the_last() {
        for (connections, threads) in [(1, 1), (7, 3), (100, 7), (5, 5)] {
            let mut order = ClientOrder::new("http://127.0.0.1/");
            (order.connections, order.threads) = (connections, threads);
            let shares: Vec<_> = (0..threads).map(|number| order.share(number)).collect();
            assert_eq!(shares.iter().sum::<u32>(), connections);
            assert!(shares[0] - shares[shares.len() - 1] <= 1, "{shares:?}");
        }
    }
}
