//! What answers must be, and figures that loads and their steps have alike.

use serde::{Deserialize, Serialize};

/// A percentile that falls among requests that failed or were never answered.
pub const NEVER: u64 = u64::MAX;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero_count(count: &u32) -> bool {
    *count == 0
}

/// What an answer must be; one that is not has failed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct AnswerChecks {
    /// Headers that it has, by name, with their exact value where that matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, Option<String>)>,
    /// Texts in its body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Regular expressions that match somewhere in its body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regex: Vec<String>,
    /// Values of its body, which is JSON: `$.path == value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<String>,
    /// Bytes of its body, from and to, both included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u64, u64)>,
    /// SHA-256 of its body, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Longest latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ns: Option<u64>,
    /// Failed answers that are kept for looking.
    #[serde(default)]
    pub keep_max: u32,
    /// Answers that are kept for looking, whatever comes of their checks.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub observe_max: u32,
}

impl AnswerChecks {
    /// Whether nothing is checked.
    pub fn is_empty(&self) -> bool {
        *self == AnswerChecks::default()
    }
}

/// How often a check failed in the window. The sum of all is `counts.failed.check`.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct CheckCount {
    /// The check, in words.
    pub check: String,
    /// Answers for which it was the first that failed.
    pub failed: u64,
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
    /// TLS: the server's certificate was not accepted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub certificate: u64,
    /// TLS: the handshake was cut, or what came was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshake: u64,
    /// TLS: the server ended the connection with an alert.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub alert: u64,
    /// HTTP/2: the server refused the stream, and has done nothing for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_stream: u64,
    /// HTTP/2: the server reset the stream.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stream_reset: u64,
    /// HTTP/2: the server left (GOAWAY) and will not answer the stream.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone_away: u64,
    /// The answer came whole, and failed a check.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub check: u64,
    /// The proxy did not open a tunnel.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxy: u64,
}

impl Failures {
    /// The kinds by their names in a report, in a fixed order.
    pub fn by_kind(&self) -> [(&'static str, u64); 15] {
        [
            ("refused", self.refused),
            ("reset", self.reset),
            ("closed", self.closed),
            ("timeout", self.timeout),
            ("protocol", self.protocol),
            ("wrong_answer", self.wrong_answer),
            ("system", self.system),
            ("certificate", self.certificate),
            ("handshake", self.handshake),
            ("alert", self.alert),
            ("refused_stream", self.refused_stream),
            ("stream_reset", self.stream_reset),
            ("gone_away", self.gone_away),
            ("check", self.check),
            ("proxy", self.proxy),
        ]
    }

    /// Adds others, each to those of its kind. Saturates: a file may say anything.
    pub fn add(&mut self, others: &Failures) {
        let sums = [
            (&mut self.refused, others.refused),
            (&mut self.reset, others.reset),
            (&mut self.closed, others.closed),
            (&mut self.timeout, others.timeout),
            (&mut self.protocol, others.protocol),
            (&mut self.wrong_answer, others.wrong_answer),
            (&mut self.system, others.system),
            (&mut self.certificate, others.certificate),
            (&mut self.handshake, others.handshake),
            (&mut self.alert, others.alert),
            (&mut self.refused_stream, others.refused_stream),
            (&mut self.stream_reset, others.stream_reset),
            (&mut self.gone_away, others.gone_away),
            (&mut self.check, others.check),
            (&mut self.proxy, others.proxy),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }

    /// All of them. Saturates: a file may say anything.
    pub fn total(&self) -> u64 {
        let counts = self.by_kind().map(|(_, count)| count);
        counts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Every request of a run, counted once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests handed to the kernel, warm-up and drain included.
    pub sent: u64,
    /// Answered in full before the window began.
    pub warmup_completed: u64,
    /// Failed before the window began.
    pub warmup_failed: u64,
    /// Answered in full, as expected or by another status, in the window.
    pub completed: u64,
    /// Completed answers with a status that was not expected.
    pub unexpected_status: u64,
    /// Answers of the whole run, warm-up and drain included, whose status (and body, where one is
    /// expected) was an expected one.
    #[serde(default)]
    pub acknowledged: u64,
    /// Failed in the window, by kind.
    pub failed: Failures,
    /// The part of `sent` that waited for a slot when the window ended and was sent after it.
    #[serde(default)]
    pub sent_in_drain: u64,
    /// Sent, or waiting for a slot and sent afterwards, and neither answered nor failed when the window ended:
    /// `drained + drain_failed + abandoned`.
    pub in_flight: u64,
    /// Requests in flight that were answered in full afterwards.
    pub drained: u64,
    /// Requests in flight that failed afterwards other than by time-out.
    pub drain_failed: u64,
    /// Requests in flight that were not answered within the time-out.
    pub abandoned: u64,
    /// Attempts to connect that failed, by kind; no request was sent on these.
    pub connect_failed: Failures,
}

/// Percentiles of a latency in nanoseconds; all zero where nothing was counted. A percentile, and the largest, is
/// [`NEVER`] where it falls among the infinite ones; mean and deviation are of the others.
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
    /// The part of `count` that is infinite.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub infinite: u64,
}

impl LatencyNs {
    /// The percentile with this number, in nanoseconds, where it is one of those that are kept here: 50, 75, 90, 99, 99.9 and 99.99.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let all = [
            (50.0, self.p50),
            (75.0, self.p75),
            (90.0, self.p90),
            (99.0, self.p99),
            (99.9, self.p99_9),
            (99.99, self.p99_99),
        ];
        let is_it = |known: f64| (known - percent).abs() < 1e-9;
        let found = all.iter().find(|(known, _)| is_it(*known));
        found.map(|(_, value)| *value)
    }
}
