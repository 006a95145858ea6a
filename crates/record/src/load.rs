//! What the load generator is told and what it reports, for `prony load` and
//! for the generator process of a trial alike.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::agents::{AgentReport, LoadPart};
use crate::answers::{AnswerChecks, CheckCount, Counts, LatencyNs, is_zero};
use crate::pace::{LatencyOrigin, Pace, Timestamps};
use crate::scenario::{ScenarioReport, ScenarioSpec};
use crate::search::{FindMax, RateSearch};

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "bool", into = "bool")]
pub enum HttpProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, by prior knowledge without.
    Http2,
}

impl HttpProtocol {
    fn is_http1(&self) -> bool {
        *self == HttpProtocol::Http1
    }
}

/// From the key `http2`.
impl From<bool> for HttpProtocol {
    fn from(is_http2: bool) -> HttpProtocol {
        match is_http2 {
            true => HttpProtocol::Http2,
            false => HttpProtocol::Http1,
        }
    }
}

impl From<HttpProtocol> for bool {
    fn from(protocol: HttpProtocol) -> bool {
        !protocol.is_http1()
    }
}

/// One run of the load generator, resolved: nothing is left to default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// The address to connect to and its name.
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
    /// When requests start.
    #[serde(default)]
    pub pace: Pace,
    /// What latency counts from.
    #[serde(default)]
    pub latency_from: LatencyOrigin,
    /// Arrivals that may wait for an idle slot at the same time, over all threads; a further one is dropped, and
    /// counted. 0: [`QUEUE_MAX`].
    #[serde(default)]
    pub queue_max: u64,
    /// Seed of all that is drawn at random.
    #[serde(default)]
    pub seed: u64,
    /// The loops ask the kernel again and again instead of sleeping.
    #[serde(default)]
    pub spin: bool,
    /// They look for news for up to so long before they sleep, where that pays.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub look_before_sleep_ns: u64,
    /// Each thread's core is its alone: it looks whoever else waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cores_are_own: bool,
    /// Who says when bytes arrived; `None`: the kernel, but on io_uring, where what arrived is taken
    /// soon, the generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Timestamps>,
    /// Keep the times of each request, for as many as this; 0: of none.
    #[serde(default)]
    pub trace_max: u64,
    /// What the generator process of a trial is to look for after the window; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find_max: Option<FindMax>,
    /// The load is made of turns that the generator is told one by one ([`Turn`]), and not of a warm-up and a window.
    /// Closed loops without think time only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turns: bool,
    /// TLS under HTTP; `None`: plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<LoadTls>,
    /// Requests that a connection carries before the client closes it and opens another; `None`: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<u64>,
    /// What its connections speak. In JSON it is `"http2": true`, or absent.
    #[serde(
        default,
        rename = "http2",
        skip_serializing_if = "HttpProtocol::is_http1"
    )]
    pub protocol: HttpProtocol,
    /// Requests that may be outstanding on a connection at the same time: streams of HTTP/2, or HTTP/1.1's pipeline. 0
    /// and 1: one.
    #[serde(default, skip_serializing_if = "is_none_or_one")]
    pub depth: u32,
    /// Addresses of this machine that connections come from, in turn; empty: as the route says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The order in which requests are sent.
    #[serde(default, skip_serializing_if = "RequestOrder::is_by_slot")]
    pub order: RequestOrder,
    /// The order of `requests` by their places there, for [`RequestOrder::InTurn`]; empty: as they stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<u32>,
    /// `requests` have fields such as `{random}`, which are filled in for each request that is sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_fields: bool,
    /// Each connection keeps the cookies that the server sets, and sends them back. Not with a pipeline of HTTP/1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cookies: bool,
    /// What an answer must be beside its status and the body of its request; `None`: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<AnswerChecks>,
    /// The file whose columns are fields, too; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<LoadData>,
    /// The field `{counter}` begins behind this: so many were sent before the load, for checking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub counter_from: u64,
    /// Path of the Unix socket that connections go to in place of the target's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<PathBuf>,
    /// `HOST:PORT` to which the target, a proxy, is asked to open a tunnel (CONNECT) for each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<String>,
    /// Requests say `Expect: 100-continue`; their bodies are sent once the server has answered with 100.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expects_continue: bool,
    /// Bodies of answers that have a content coding are decoded before they are compared with the expected ones. Not in a pipeline
    /// of HTTP/1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decodes: bool,
    /// Redirects are followed, up to so many in a row: each is another request in the slot of the one that led to it. `requests_max`,
    /// `queue_max` and arrivals count what was asked for, without them. `None`: they are answers like others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_max: Option<u32>,
    /// What users do: `requests` are its steps, an arrival is a user, and `requests_max` and `queue_max` count users. HTTP/1.1
    /// without a pipeline only; `None`: requests have nothing to do with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioSpec>,
    /// The threads of it that run here, where others run elsewhere; `None`: all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<LoadPart>,
}

impl LoadSpec {
    /// The threads of it that run here.
    pub fn part_here(&self) -> LoadPart {
        self.part.unwrap_or(LoadPart {
            first: 0,
            end: self.threads,
        })
    }
}

/// The order in which the requests of a load are sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOrder {
    /// Each slot goes through all of them from its own place.
    #[default]
    BySlot,
    /// One after the other over all slots of a thread, from the start again after the last; each thread begins at another
    /// place. Where arrivals have times of their own ([`Pace::Times`]), the nth of them is the nth request.
    InTurn,
    /// Drawn at random for each request, by weight.
    Random,
}

impl RequestOrder {
    fn is_by_slot(&self) -> bool {
        *self == RequestOrder::BySlot
    }
}

/// A CSV file whose first line names its columns.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct LoadData {
    /// The file.
    pub path: PathBuf,
    /// The row that a request gets.
    pub order: RowOrder,
}

/// The row of a data file that a request gets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOrder {
    /// The next one over all threads; from the start again after the last.
    #[default]
    InTurn,
    /// The next one over all threads; the load ends with the last.
    Once,
    /// Any, drawn for each request.
    Random,
}

fn is_none_or_one(depth: &u32) -> bool {
    *depth <= 1
}

/// How a load speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadTls {
    /// The name or address that the server is asked for (SNI) and that its certificate must be for.
    pub host: String,
    /// Files of authorities, as PEM, that are trusted and no other; empty: those of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorities: Vec<PathBuf>,
    /// Any certificate is accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Files with the certificate of the client and its key, as PEM, for servers that ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The only version that is spoken; `None`: the newest that the server speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<SpokenTls>,
    /// Connections do not go on from the session of an earlier one: each handshake is a full one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_resumption: bool,
    /// Where the environment's `SSLKEYLOGFILE` names a file, the secrets of each session are appended to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub logs_keys: bool,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum SpokenTls {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

/// One turn of a load that is made of turns, a line each on the generator's standard input. Requests start when the
/// line is read; those before `window_start_ns` are the lead-in, which is warm-up. Where the window is empty, all
/// of it is. After the end what is outstanding is answered, and nothing is sent until the next turn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Start of its window on `CLOCK_MONOTONIC`.
    pub window_start_ns: u64,
    /// Its end.
    pub window_end_ns: u64,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    /// Requests answered in its window.
    pub completed: u64,
    /// Requests and connects that failed in its window.
    pub failed: u64,
    /// Requests answered in all of the turn.
    pub answered: u64,
    /// Requests and connects that failed in all of the turn, or were cut.
    pub lost: u64,
    /// Connections that the server closed.
    pub closed_by_server: u64,
    /// Connections that were opened.
    pub opened: u64,
}

/// Arrivals that wait for an idle slot at most, where nothing else is said.
pub const QUEUE_MAX: u64 = 1_000_000;

/// The server that is driven.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadTarget {
    /// The URL as the user wrote it.
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
    /// How often it is drawn beside the others, where the order is random; 0: as 1.
    #[serde(default, skip_serializing_if = "is_zero_weight")]
    pub weight: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero_weight(weight: &u32) -> bool {
    *weight == 0
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
    /// that a sampler in another process can read its clocks at the same moments; both are 0 of a load in turns.
    Connected {
        /// Start of the measured window.
        window_start_ns: u64,
        /// Its end.
        window_end_ns: u64,
    },
    /// A turn is over, and nothing is outstanding.
    Turned(Turned),
    /// The last line.
    Finished {
        /// What was measured.
        report: LoadReport,
        /// Latency of every completed request of the window.
        histogram: crate::Histogram,
        /// What was found after the window, where the specification asks for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        search: Option<RateSearch>,
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
    /// Bytes received in the window, heads included; with TLS, as its records.
    pub received_bytes: u64,
    /// Bytes sent in the window, heads included; with TLS, as its records.
    pub sent_bytes: u64,
    /// Latency of the requests whose origin (`latency_from`) lies in the window: last byte received - origin.
    /// Of those that ended after the window, too; one that failed or was never answered is infinite.
    pub latency_ns: LatencyNs,
    /// Time from sending to the first byte of the answer, likewise.
    pub first_byte_ns: LatencyNs,
    /// Time to connect, all connections of the run; without TLS's handshake.
    pub connect_ns: LatencyNs,
    /// Requests that could be outstanding on each connection at the same time; 0: one.
    #[serde(default, skip_serializing_if = "is_none_or_one")]
    pub depth: u32,
    /// Bodies that the server asked for with 100, in the whole run; `None` where none waited for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<u64>,
    /// What HTTP/2 agreed; `None` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Report>,
    /// The handshakes of TLS; `None` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
    /// The rule of HTTP that the server broke first in the whole run; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_failure: Option<String>,
    /// Completions by slice of the window.
    pub slices: Slices,
    /// Separate periods in which requests took longer than p99.9, at the least; `None`: not known, as of wrk and of records
    /// from before 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_periods: Option<u64>,
    /// Connections opened in the whole run; more than `connections` where the server closed some.
    pub connections_opened: u64,
    /// Connections that the server closed after a whole answer although keep-alive was asked for.
    pub connections_closed_by_server: u64,
    /// Connections given up because bytes came that nobody had asked for: after an answer, or before a request.
    #[serde(default)]
    pub connections_stray: u64,
    /// CPU time of the generator's threads in the window, the sum of `threads_cpu`.
    pub cpu_ns: u64,
    /// The part of it that was spent looking for news before sleeping.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spun_ns: u64,
    /// CPU time of each thread in the window.
    pub threads_cpu: Vec<ThreadCpu>,
    /// Longest that any thread was told to wait for more completions, in one turn of its loop, before it
    /// took those that were there: a latency may be longer by this, and by the few microseconds that each
    /// of the others then takes, than without. Zero: none waited.
    #[serde(default)]
    pub coalescing_ns: u64,
    /// When requests were to start.
    #[serde(default)]
    pub pace: Pace,
    /// What `latency_ns` counts from.
    #[serde(default)]
    pub latency_from: LatencyOrigin,
    /// Who said when bytes arrived: as asked for, or `User` where the kernel refused.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// What became of the schedule; `None` in a closed loop without think time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// What the generator itself added. `None` where an older one did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<GeneratorDelay>,
    /// Latencies of a closed loop with those added that requests would have had which it did not send while it
    /// waited, by wrk's rule: hypothetical. `None` in an open loop, and where nothing was hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_ns: Option<LatencyNs>,
    /// The drain was cut: of some requests of the window it is not known how long they took. Percentiles are
    /// "at least".
    #[serde(default)]
    pub drain_cut: bool,
    /// The load was to end with so many requests (of a scenario, iterations); `None`: with its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_max: Option<u64>,
    /// Requests (of a scenario, iterations) that were to be sent (`requests_max`) and were not, because the server could not be reached any more.
    #[serde(default)]
    pub unsent: u64,
    /// The load ended because each row of its data had been used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_ended: bool,
    /// The checks of answers, and how often each failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckCount>,
    /// What was decoded; `None` where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded: Option<CodedReport>,
    /// What came of redirects; `None` where none are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<RedirectReport>,
    /// What came of users and of each of their steps; `None` without a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioReport>,
    /// What each agent did; empty where one machine drove all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentReport>,
}

impl LoadReport {
    /// The first of its accounts that does not balance, in words: every request is counted once, and what is said twice
    /// is said alike. `None`: all do. Sums saturate: a file may say anything.
    pub fn unbalanced(&self) -> Option<String> {
        let sum = |parts: &[u64]| parts.iter().copied().fold(0, u64::saturating_add);
        let Counts {
            sent,
            warmup_completed,
            warmup_failed,
            completed,
            in_flight,
            ..
        } = self.counts;
        let failed = self.counts.failed.total();
        let ended = [
            warmup_completed,
            warmup_failed,
            completed,
            failed,
            in_flight,
        ];
        let accounts = [
            ("sent", sent, "completed, failed and in flight", sum(&ended)),
            (
                "in flight at the end",
                in_flight,
                "drained, failed and abandoned",
                sum(&[
                    self.counts.drained,
                    self.counts.drain_failed,
                    self.counts.abandoned,
                ]),
            ),
            ("completed", self.completed, "counts.completed", completed),
            (
                "failed by kind in `errors`",
                sum(&self.errors.values().copied().collect::<Vec<_>>()),
                "counts.failed",
                failed,
            ),
        ];
        let off = accounts.iter().find(|(_, one, _, other)| one != other);
        let of_schedule = self
            .arrivals
            .filter(|all| all.scheduled != sum(&[all.sent, all.waiting, all.dropped]));
        match (off, of_schedule) {
            (Some((name, one, others, other)), _) => {
                Some(format!("{name} is {one}, but {others} come to {other}"))
            }
            (None, Some(all)) => Some(format!(
                "scheduled is {}, but sent, waiting and dropped are {}, {} and {}",
                all.scheduled, all.sent, all.waiting, all.dropped
            )),
            (None, None) => {
                let sums = [sent, completed, failed, in_flight];
                self.scenario.as_ref().and_then(|of| of.unbalanced(sums))
            }
        }
    }

    /// What the histogram of its latencies contradicts of its figures, in words: how many there are, and the largest.
    pub fn contradicted(&self, histogram: &Histogram) -> Option<String> {
        let finite = self
            .latency_ns
            .count
            .saturating_sub(self.latency_ns.infinite);
        let total = histogram.total();
        if total != finite {
            return Some(format!(
                "the histogram has {total} values, and the record {finite}"
            ));
        }
        let (last, _) = histogram.counts.last()?;
        // A bucket is named by its highest value: by three digits that is at most a thousandth more, twice over.
        let near = (*last as f64 - self.latency_ns.max as f64).abs() <= 0.005 * *last as f64;
        let is_known = self.latency_ns.infinite == 0 && !near;
        is_known.then(|| {
            format!(
                "the histogram goes up to {last} ns, and the record to {} ns",
                self.latency_ns.max
            )
        })
    }
}

/// What became of the arrivals of a schedule: `scheduled = sent + waiting + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Drawn from the start of the load to the end of the window, warm-up included.
    pub scheduled: u64,
    /// Handed to the kernel, the drain included. The same as `counts.sent`; of a scenario, whose arrivals are users, the
    /// iterations begun.
    pub sent: u64,
    /// Still waiting for an idle slot when the run ended: never sent.
    pub waiting: u64,
    /// Found the queue at its limit: never sent.
    pub dropped: u64,
    /// The dropped requests that were drawn in the window.
    #[serde(default)]
    pub dropped_in_window: u64,
    /// Drawn in the window.
    pub in_window: u64,
    /// Most that waited at the same time, over all threads at most.
    pub waiting_max: u64,
    /// The limit of that.
    pub queue_max: u64,
    /// Fewer were completed in the window than drawn in it, by more than 1 %, and arrivals waited for slots:
    /// the server does not keep up with this rate.
    pub overloaded: bool,
    /// The same, but slots were idle: the generator does not keep up with this rate.
    pub generator_short: bool,
}

/// What the generator added to the requests whose origin lies in the window: four figures that do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorDelay {
    /// Due to taken up by the generator, and from then, or, if that was later, from a slot having become idle, to
    /// handed to the kernel.
    pub lateness_ns: LatencyNs,
    /// Taken up to a slot being idle: the server's doing. Only requests that waited.
    pub slot_wait_ns: LatencyNs,
    /// Last byte arrived to taken from the kernel. With the kernel's stamps as it was; otherwise at most, and
    /// only of the answers that came while the thread was at work.
    pub pick_up_ns: LatencyNs,
    /// Values of `pick_up_ns` that are exact.
    pub pick_up_exact: u64,
    /// Answers that came while the thread slept in the kernel, so that only the time of its waking lies between,
    /// which it cannot see.
    pub woken: u64,
    /// Taken from the kernel to recorded.
    pub handling_ns: LatencyNs,
    /// Width of the bracket around each moment of handing to the kernel.
    pub send_bracket_ns: LatencyNs,
    /// Latencies are to be read as "at most": answers lay in the kernel for long enough to matter.
    pub at_most: bool,
}

/// Bodies of answers as they came and as they were decoded, of all answers of the run whose bodies could be.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct CodedReport {
    /// Answers whose bodies could be decoded.
    pub answers: u64,
    /// Answers with a content coding.
    pub coded: u64,
    /// Bytes of their bodies as they came.
    pub wire_bytes: u64,
    /// Bytes that these stand for.
    pub decoded_bytes: u64,
}

impl CodedReport {
    /// Adds those of another place.
    pub fn add(&mut self, other: &CodedReport) {
        self.answers += other.answers;
        self.coded += other.coded;
        self.wire_bytes += other.wire_bytes;
        self.decoded_bytes += other.decoded_bytes;
    }
}

/// Redirects that were followed. Each is a request in `counts`, with a latency of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RedirectReport {
    /// Requests that an answer led to, of the whole run: of `sent` the others were asked for.
    pub followed: u64,
    /// Redirects that were not followed any more, because the run ended before.
    pub unfinished: u64,
    /// Time from the moment that the latency of a request counts from to the last byte of its final answer, through all redirects between, of those
    /// that were answered as expected in the window; of requests without a redirect, too.
    pub whole_ns: LatencyNs,
}

/// What HTTP/2 agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Http2Report {
    /// Streams of those asked for that the server allowed on a connection; the least of all.
    pub streams_max: Option<u64>,
}

/// The handshakes of a load over TLS, and what the first of them agreed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsReport {
    /// Version, such as `TLS 1.3`; empty where no handshake was completed.
    pub version: String,
    /// Cipher suite, by its registered name.
    pub cipher: String,
    /// Protocol that the server chose (ALPN); empty: none.
    pub protocol: String,
    /// Handshakes of the whole run that began a session.
    pub full: u64,
    /// Handshakes of the whole run that went on from an earlier session.
    pub resumed: u64,
    /// Handshakes that were completed in the window.
    pub in_window: u64,
    /// Handshakes completed in the window, a second.
    pub rate_per_s: f64,
    /// Time of a handshake, from the connection's opening on; all of the run.
    pub handshake_ns: LatencyNs,
    /// What the first failure of TLS said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
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
    /// The part of it that was spent looking for news before sleeping.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spun_ns: u64,
}
