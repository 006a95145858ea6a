//! What the load generator is told and what it reports, for `prony load` and
//! for the generator process of a trial alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One run of the load generator, resolved: nothing is left to default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Where to connect and what to call it.
    pub target: LoadTarget,
    /// Further addresses: connections are shared out over `target` and these in turn. All get the
    /// same requests, with the `Host` of `target`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<LoadTarget>,
    /// Threads, one event loop each; at least 1.
    pub threads: u32,
    /// Connections in all, shared out over the threads; at least 1.
    pub connections: u32,
    /// Length of the warm-up, which is not part of any figure but its own.
    pub warmup_ns: u64,
    /// Length of the measured window.
    pub duration_ns: u64,
    /// End after this many requests have been sent, if sooner than the window.
    pub requests_max: Option<u64>,
    /// An answer later than this is a failure by time-out; also bounds connecting and the drain.
    pub timeout_ns: u64,
    /// What to send: each connection takes them in turn, from its own place.
    pub requests: Vec<PreparedRequest>,
    /// Status codes that count as expected; empty: 200 to 399.
    pub expected_status: Vec<u16>,
    /// `auto`, `ring` or `epoll`.
    pub driver: String,
    /// Never wait for more completions before taking those that are there, whatever CPU that costs.
    #[serde(default)]
    pub exact: bool,
}

/// The server that is driven.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadTarget {
    /// As the user wrote it.
    pub url: String,
    /// `ADDRESS:PORT` that connections go to.
    pub address: String,
}

/// One request, encoded, and the answer that it must get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreparedRequest {
    /// The method, which decides how the answer is framed.
    pub method: String,
    /// The whole request as it goes over the wire.
    pub bytes: Vec<u8>,
    /// What the answer must be; an answer that differs is a failure.
    pub expect: Option<ExpectedAnswer>,
}

/// What an answer must be to count as completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedAnswer {
    /// The exact body.
    pub body: Option<Vec<u8>>,
}

/// A line that a generator process prints on its standard output, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one line of each is ever held")]
pub enum GeneratorEvent {
    /// All connections were tried. The two times are on `CLOCK_MONOTONIC`, so
    /// that a sampler in another process can read its clocks at the same moments.
    Connected {
        /// Start of the measured window.
        window_start_ns: u64,
        /// Its end.
        window_end_ns: u64,
    },
    /// The last line.
    Finished {
        /// What was measured.
        report: LoadReport,
        /// Latency of every completed request of the window.
        histogram: crate::Histogram,
    },
}

/// What one run of the generator measured. `counts` obeys
/// `sent = completed + failed by kind + in flight at the end`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// Name and version of the generator: `prony 0.1.0`.
    pub generator: String,
    /// Driver of its event loops: `ring` or `epoll`.
    pub driver: String,
    /// What was driven.
    pub target: LoadTarget,
    /// Threads used.
    pub threads: u32,
    /// Connections asked for.
    pub connections: u32,
    /// Length of the measured window as it was.
    pub window_ns: u64,
    /// Requests that were completed in the window. The same as `counts.completed`.
    pub completed: u64,
    /// Completed requests a second.
    pub rate_per_s: f64,
    /// Every request of the run, once.
    pub counts: Counts,
    /// Answers of the window by status code.
    pub status: BTreeMap<String, u64>,
    /// Failures of the window by kind, only those that happened. The sum of `counts.failed`.
    pub errors: BTreeMap<String, u64>,
    /// Bytes received in the window, heads included.
    pub received_bytes: u64,
    /// Bytes sent in the window, heads included.
    pub sent_bytes: u64,
    /// Latency of the requests completed in the window: last byte received - sent.
    pub latency_ns: LatencyNs,
    /// Time from sending to the first byte of the answer, likewise.
    pub first_byte_ns: LatencyNs,
    /// Time to connect, all connections of the run.
    pub connect_ns: LatencyNs,
    /// Completions by slice of the window.
    pub slices: Slices,
    /// Connections opened in the whole run; more than `connections` where the server closed some.
    pub connections_opened: u64,
    /// Connections that the server closed after a whole answer although keep-alive was asked for.
    pub connections_closed_by_server: u64,
    /// CPU time of the generator's threads in the window, the sum of `threads_cpu`.
    pub cpu_ns: u64,
    /// CPU time of each thread in the window.
    pub threads_cpu: Vec<ThreadCpu>,
    /// Longest that any thread was told to wait for more completions, in one turn of its loop, before it
    /// took those that were there: a latency may be longer by this, and by the few microseconds that each
    /// of the others then takes, than without. Zero: none waited.
    #[serde(default)]
    pub coalescing_ns: u64,
}

/// Every request of a run, counted once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests handed to the kernel from the start of the run to the end of the window, warm-up included.
    pub sent: u64,
    /// Answered in full before the window began.
    pub warmup_completed: u64,
    /// Failed before the window began.
    pub warmup_failed: u64,
    /// Answered in full, as expected or by another status, in the window.
    pub completed: u64,
    /// Of those, answers whose status was not an expected one.
    pub unexpected_status: u64,
    /// Answers of the whole run, warm-up and drain included, whose status (and body, where one is
    /// expected) was an expected one.
    #[serde(default)]
    pub acknowledged: u64,
    /// Failed in the window, by kind.
    pub failed: Failures,
    /// Sent and neither answered nor failed when the window ended:
    /// `drained + drain_failed + abandoned`.
    pub in_flight: u64,
    /// Of those, answered in full afterwards.
    pub drained: u64,
    /// Of those, failed afterwards other than by time-out.
    pub drain_failed: u64,
    /// Of those, never answered within the time-out.
    pub abandoned: u64,
    /// Attempts to connect that failed, by kind; no request was sent on these.
    pub connect_failed: Failures,
}

/// Failures by kind. A request that fails has been sent (in whole or part) and has no answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// The connection was refused.
    pub refused: u64,
    /// The connection was reset.
    pub reset: u64,
    /// The server closed before the answer was whole.
    pub closed: u64,
    /// No answer in time.
    pub timeout: u64,
    /// The answer was not HTTP, or over a limit.
    pub protocol: u64,
    /// The answer was not the expected one.
    pub wrong_answer: u64,
    /// Any other error of the system (no descriptors, no ports, unreachable).
    pub system: u64,
}

impl Failures {
    /// The kinds by their names in a report, in a fixed order.
    pub fn by_kind(&self) -> [(&'static str, u64); 7] {
        [
            ("refused", self.refused),
            ("reset", self.reset),
            ("closed", self.closed),
            ("timeout", self.timeout),
            ("protocol", self.protocol),
            ("wrong_answer", self.wrong_answer),
            ("system", self.system),
        ]
    }

    /// All of them. Saturates: a file may say anything.
    pub fn total(&self) -> u64 {
        let counts = self.by_kind().map(|(_, count)| count);
        counts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Percentiles of a latency in nanoseconds; all zero where nothing was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyNs {
    /// How many values the rest rests on.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the values.
    pub stdev: f64,
    /// Median.
    pub p50: u64,
    /// 75th percentile.
    pub p75: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// 99.99th percentile.
    pub p99_99: u64,
    /// Largest.
    pub max: u64,
}

/// Completions by slices of equal length; the last one may be cut short and is then left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slices {
    /// Length of each slice.
    pub slice_ns: u64,
    /// Completed requests in each.
    pub completed: Vec<u64>,
}

/// CPU time of one thread in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadCpu {
    /// Its name.
    pub name: String,
    /// CPU time by its own clock.
    pub cpu_ns: u64,
}
