//! What one thread counts while it drives. Recording one answer allocates
//! nothing and takes a few tens of nanoseconds.
//!
//! Each request goes through exactly one of [`Recorder::completed`],
//! [`Recorder::failed`] and [`Recorder::abandoned`]; [`Recorder::counts`] therefore obeys
//! `sent = warm-up + completed + failed + in flight`, which a property test holds.
//!
//! Counts are by when something happened; latencies are of the requests whose origin lies in the window,
//! whenever they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prony_base::{Instant, Nanos, PerSecond};
use prony_record::{
    Counts, Failures, GeneratorDelay, LatencyNs, LatencyOrigin, Slices, TlsReport, Turned,
};
use prony_tls::{HandshakeFacts, TlsError};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::interval::LoadTotals;
use crate::latencies::{COUNT_MAX, Latencies};
use crate::origin::Times;
use crate::slow::Slowest;
use crate::window::LoadPhase;

/// Length of a slice of the window.
pub const SLICE: Nanos = Nanos::from_millis(100);
/// Status codes are three digits.
const STATUS_MAX: usize = 1_000;
/// Slices that are kept: ten hours of them. Later ones are not.
const SLICES_MAX: usize = 360_000;
/// A latency that is too long by no more than this, or by no more than one part in [`MATTERS_IN`] of the median,
/// is taken for true.
const MATTERS_MIN: Nanos = Nanos::from_micros(20);
/// See [`MATTERS_MIN`].
const MATTERS_IN: u64 = 33;

/// What it takes to wake a thread, where nothing else keeps it from its core.
const WAKING: Nanos = Nanos::from_micros(50);
/// Of so many answers one may have woken a sleeping thread before latencies are told as `at most`.
const WOKEN_PART_MAX: u64 = 100;

/// One whole answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// When what happened.
    pub times: Times,
    /// Its status code.
    pub status: u16,
    /// Whether that is an expected one.
    pub expected: bool,
}

/// The phases of a load that a request lies in.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// That of the moment which its latency counts from.
    pub origin: LoadPhase,
    /// That of the moment at which it ended.
    pub end: LoadPhase,
}

/// The counts of one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorder {
    latency_from: LatencyOrigin,
    counts: Counts,
    /// INVARIANT: `STATUS_MAX` long.
    status: Box<[u64]>,
    latency: Latencies,
    warmup_latency: Latencies,
    first_byte: Latencies,
    connect: Latencies,
    handshakes: Handshakes,
    /// The first, in words.
    protocol_fault: Option<String>,
    /// The first, by which a load that has not begun is given up.
    #[serde(skip)]
    connect_failure: Option<Failure>,
    places_min: usize,
    /// Bodies that were asked for with 100; connections count there.
    #[serde(with = "shared_count")]
    continued: Arc<AtomicU64>,
    lateness: Latencies,
    slot_wait: Latencies,
    pick_up: Latencies,
    pick_up_exact: u64,
    woken: u64,
    handling: Latencies,
    send_bracket: Latencies,
    slowest: Slowest,
    slices: Vec<u64>,
    /// End of the slice that is being counted.
    slice_end: Instant,
    slice_completed: u64,
    /// Last end of a request in the window, well or not, by which a run that ends early is measured.
    pub last_end: Instant,
    /// Bytes received in the window.
    pub received_bytes: u64,
    /// Bytes sent in the window.
    pub sent_bytes: u64,
    /// Connections opened in the whole run.
    pub connections_opened: u64,
    /// Connections closed by the server after a whole answer.
    pub connections_closed_by_server: u64,
    /// Connections closed because bytes arrived that belong to no request.
    pub connections_stray: u64,
}

impl Recorder {
    /// Nothing counted yet. The slices begin at `window_start`.
    pub fn new(window_start: Instant, latency_from: LatencyOrigin) -> Recorder {
        Recorder {
            latency_from,
            counts: Counts::default(),
            status: vec![0; STATUS_MAX].into_boxed_slice(),
            latency: Latencies::default(),
            warmup_latency: Latencies::default(),
            first_byte: Latencies::default(),
            connect: Latencies::default(),
            handshakes: Handshakes::default(),
            protocol_fault: None,
            connect_failure: None,
            places_min: usize::MAX,
            continued: Arc::default(),
            lateness: Latencies::default(),
            slot_wait: Latencies::default(),
            pick_up: Latencies::default(),
            pick_up_exact: 0,
            woken: 0,
            handling: Latencies::default(),
            send_bracket: Latencies::default(),
            slowest: Slowest::new(window_start),
            slices: Vec::with_capacity(1_024),
            slice_end: window_start + SLICE,
            slice_completed: 0,
            last_end: window_start,
            received_bytes: 0,
            sent_bytes: 0,
            connections_opened: 0,
            connections_closed_by_server: 0,
            connections_stray: 0,
        }
    }

    /// What was counted up to these totals, of which no more is known. Requests that were outstanding are abandoned.
    pub fn until_lost(
        window_start: Instant,
        latency_from: LatencyOrigin,
        totals: &LoadTotals,
    ) -> Recorder {
        let mut recorder = Recorder::new(window_start, latency_from);
        recorder.counts = totals.counts;
        let abandoned = &mut recorder.counts.abandoned;
        *abandoned = abandoned.saturating_add(totals.outstanding);
        for &(code, count) in &totals.status {
            recorder.status[usize::from(code).min(STATUS_MAX - 1)] += count;
        }
        recorder.latency = totals.latency.clone();
        recorder.lateness = totals.lateness.clone();
        recorder.received_bytes = totals.received_bytes;
        recorder.sent_bytes = totals.sent_bytes;
        recorder
    }

    /// What latencies count from.
    pub fn latency_from(&self) -> LatencyOrigin {
        self.latency_from
    }

    /// A connection was opened after `length`.
    pub fn connected(&mut self, length: Nanos) {
        self.connections_opened += 1;
        self.connect.record(length);
    }

    /// TLS's handshake ended well after `length`.
    pub fn secured(&mut self, length: Nanos, facts: HandshakeFacts) {
        let of = &mut self.handshakes;
        match facts.is_resumed {
            true => of.resumed += 1,
            false => of.full += 1,
        }
        of.length.record(length);
        of.facts.get_or_insert_with(|| AgreedTls {
            version: facts.version.to_owned(),
            cipher: facts.cipher,
            protocol: String::from_utf8_lossy(&facts.protocol).into_owned(),
        });
    }

    /// TLS's handshake that ended last did so in the window.
    pub fn secured_in_window(&mut self) {
        self.handshakes.in_window += 1;
    }

    /// TLS failed, in a handshake or after it: what the first such failure says is kept.
    pub fn tls_failed(&mut self, fault: &TlsError) {
        self.handshakes
            .failure
            .get_or_insert_with(|| fault.to_string());
    }

    /// A connection was opened with room for so many requests.
    pub fn places(&mut self, places: usize) {
        self.places_min = self.places_min.min(places);
    }

    /// The least that a server allowed; `None`: as many as one likes.
    pub fn places_min(&self) -> Option<u64> {
        (self.places_min < usize::MAX).then_some(self.places_min as u64)
    }

    /// Goes on with the count of another, in which connections count that were opened before.
    pub fn share_continued(&mut self, other: &Recorder) {
        self.continued = Arc::clone(&other.continued);
    }

    /// Where the bodies are counted that a server asked for with 100.
    pub fn continued(&self) -> &Arc<AtomicU64> {
        &self.continued
    }

    /// An attempt to connect failed.
    pub fn connect_failed(&mut self, failure: Failure) {
        failure.count(&mut self.counts.connect_failed);
        self.connect_failure.get_or_insert(failure);
        self.note_fault(failure);
    }

    /// Keeps which rule a server broke, where it is the first.
    fn note_fault(&mut self, failure: Failure) {
        if let Failure::Protocol(fault) = failure {
            self.protocol_fault.get_or_insert_with(|| fault.to_string());
        }
    }

    /// A request of `bytes` is handed to the kernel in `phase`.
    pub fn sent(&mut self, phase: LoadPhase, bytes: usize) {
        self.counts.sent += 1;
        match phase {
            LoadPhase::WarmUp => {}
            LoadPhase::Measured => self.sent_bytes += bytes as u64,
            LoadPhase::Drain => self.counts.sent_in_drain += 1,
        }
    }

    /// More bytes are handed to the kernel in `phase`: the rest of a request, or what a protocol sends by itself.
    pub fn sent_more(&mut self, phase: LoadPhase, bytes: usize) {
        if phase == LoadPhase::Measured {
            self.sent_bytes += bytes as u64;
        }
    }

    /// Bytes of an answer arrived in `phase`.
    pub fn received(&mut self, phase: LoadPhase, bytes: usize) {
        if phase == LoadPhase::Measured {
            self.received_bytes += bytes as u64;
        }
    }

    /// A request was answered in full.
    pub fn completed(&mut self, phases: Phases, answer: &Answer) {
        self.counts.acknowledged += u64::from(answer.expected);
        match phases.end {
            LoadPhase::WarmUp => {
                self.counts.warmup_completed += 1;
                let latency = answer.times.latency(self.latency_from);
                self.warmup_latency.record(latency);
            }
            LoadPhase::Drain => self.counts.drained += 1,
            LoadPhase::Measured => self.ended_well(answer),
        }
        if phases.origin == LoadPhase::Measured {
            self.measured(&answer.times);
        }
    }

    /// Counts an answer that came in the window.
    fn ended_well(&mut self, answer: &Answer) {
        let done = answer.times.done();
        self.counts.completed += 1;
        self.counts.unexpected_status += u64::from(!answer.expected);
        self.status[usize::from(answer.status).min(STATUS_MAX - 1)] += 1;
        self.last_end = self.last_end.max(done);
        if done >= self.slice_end {
            self.close_slices(done);
        }
        self.slice_completed += 1;
    }

    /// Takes the times of a request whose origin lies in the window.
    fn measured(&mut self, times: &Times) {
        let origin = times.origin(self.latency_from);
        let latency = times.done().since(origin);
        self.latency.record(latency);
        self.slowest.record(times.done(), latency);
        self.first_byte.record(times.first_byte.since(origin));
        self.lateness.record(times.lateness());
        if times.slot_wait() > Nanos::ZERO {
            self.slot_wait.record(times.slot_wait());
        }
        match times.pick_up() {
            Some(length) => self.pick_up.record(length),
            None => self.woken += 1,
        }
        self.pick_up_exact += u64::from(times.last_byte.kernel.is_some());
        self.handling.record(times.handling());
        // Of one that has none it is not known when it left.
        if times.submitted.width() > Nanos::ZERO {
            self.send_bracket.record(times.submitted.width());
        }
    }

    /// Closes every slice that ends at or before `now`.
    pub fn close_slices(&mut self, now: Instant) {
        while now >= self.slice_end && self.slices.len() < SLICES_MAX {
            self.slices.push(std::mem::take(&mut self.slice_completed));
            self.slice_end = self.slice_end + SLICE;
        }
    }

    /// Nothing is counted in slices from `end`, the end of a window, until `start`, that of the next one's start: the
    /// slices are those of the windows laid end to end.
    pub fn next_window(&mut self, end: Instant, start: Instant) {
        self.close_slices(end);
        self.slice_end = start + self.slice_end.since(end);
    }

    /// A request that was sent has failed at `at`.
    pub fn failed(&mut self, phases: Phases, failure: Failure, at: Instant) {
        self.note_fault(failure);
        match phases.end {
            LoadPhase::WarmUp => self.counts.warmup_failed += 1,
            LoadPhase::Measured => {
                failure.count(&mut self.counts.failed);
                self.last_end = self.last_end.max(at);
            }
            LoadPhase::Drain if failure == Failure::Timeout => self.counts.abandoned += 1,
            LoadPhase::Drain => self.counts.drain_failed += 1,
        }
        self.unanswered(phases.origin);
    }

    /// A request whose origin lies in `origin` will never be answered; one that was never sent, too.
    pub fn unanswered(&mut self, origin: LoadPhase) {
        if origin == LoadPhase::Measured {
            self.latency.record_never();
        }
    }

    /// The run was cut short while a request was outstanding: it took at least `so_far`.
    pub fn abandoned(&mut self, origin: LoadPhase, so_far: Nanos) {
        self.counts.abandoned += 1;
        if origin == LoadPhase::Measured {
            self.latency.record(so_far);
        }
    }

    /// What was counted so far; what only the worker knows (connections, requests outstanding) is zero.
    pub fn totals(&self) -> LoadTotals {
        let came = self
            .status
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        LoadTotals {
            counts: self.counts(),
            status: came.map(|(code, &count)| (code as u16, count)).collect(),
            latency: self.latency.clone(),
            lateness: self.lateness.clone(),
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            ..LoadTotals::default()
        }
    }

    /// Completed and failed requests of the window so far, for a live line.
    pub fn so_far(&self) -> (u64, u64) {
        (
            self.counts.completed,
            self.counts.failed.total() + self.counts.connect_failed.total(),
        )
    }

    /// What came of everything so far.
    pub fn turned(&self) -> Turned {
        let (c, (completed, failed)) = (self.counts(), self.so_far());
        Turned {
            completed,
            failed,
            answered: c.warmup_completed + c.completed + c.drained,
            lost: c.warmup_failed + failed + c.drain_failed + c.abandoned,
            closed_by_server: self.connections_closed_by_server,
            opened: self.connections_opened,
        }
    }

    /// Median latency of the window so far, or, before that, of the warm-up; zero before the first answer.
    pub fn median_latency(&self) -> Nanos {
        if self.latency.is_empty() {
            self.warmup_latency.median()
        } else {
            self.latency.median()
        }
    }

    /// The first failure to connect, if there was one.
    pub fn first_connect_failure(&self) -> Option<Failure> {
        self.connect_failure
    }

    /// Every request, once.
    pub fn counts(&self) -> Counts {
        let c = self.counts;
        Counts {
            in_flight: c.drained + c.drain_failed + c.abandoned,
            ..c
        }
    }

    /// Answers of the window by status code, only those that came.
    pub fn status(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        self.status
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(code, &count)| (code.to_string(), count))
    }

    /// Latency of the requests of the window.
    pub fn latency(&self) -> &Latencies {
        &self.latency
    }

    /// Time to the first byte, likewise.
    pub fn first_byte(&self) -> LatencyNs {
        self.first_byte.summary()
    }

    /// Time to connect.
    pub fn connect(&self) -> LatencyNs {
        self.connect.summary()
    }

    /// Which rule of its protocol the server broke first, in words.
    pub fn protocol_fault(&self) -> Option<&str> {
        self.protocol_fault.as_deref()
    }

    /// What the first failure of TLS said.
    pub fn tls_failure(&self) -> Option<&str> {
        self.handshakes.failure.as_deref()
    }

    /// The handshakes of TLS, of a window of `length`.
    pub fn handshakes(&self, length: Nanos) -> TlsReport {
        let of = &self.handshakes;
        let agreed = of.facts.clone().unwrap_or_default();
        TlsReport {
            version: agreed.version,
            cipher: agreed.cipher,
            protocol: agreed.protocol,
            full: of.full,
            resumed: of.resumed,
            in_window: of.in_window,
            rate_per_s: PerSecond::of(of.in_window, length).0,
            handshake_ns: of.length.summary(),
            failure: of.failure.clone(),
        }
    }

    /// What the generator itself added.
    pub fn delay(&self) -> GeneratorDelay {
        let pick_up_ns = self.pick_up.summary();
        let matters = MATTERS_MIN.max(Nanos(self.latency.median().0 / MATTERS_IN));
        let is_bound = pick_up_ns.count > self.pick_up_exact;
        // How long after its answer a thread woke nothing tells.
        let many_woken = self.woken * WOKEN_PART_MAX > self.woken + pick_up_ns.count;
        GeneratorDelay {
            lateness_ns: self.lateness.summary(),
            slot_wait_ns: self.slot_wait.summary(),
            pick_up_ns,
            pick_up_exact: self.pick_up_exact,
            woken: self.woken,
            handling_ns: self.handling.summary(),
            send_bracket_ns: self.send_bracket.summary(),
            at_most: many_woken && WAKING > matters || is_bound && pick_up_ns.p99 > matters.0,
        }
    }

    /// The whole slices of a window of `length`.
    pub fn slices(&self, length: Nanos) -> Slices {
        let whole = (length.0 / SLICE.0) as usize;
        let mut completed = self.slices.clone();
        completed.resize(whole.min(SLICES_MAX), 0);
        Slices {
            slice_ns: SLICE.0,
            completed,
        }
    }

    /// In how many separate periods requests took longer than `limit`, at the least.
    pub fn slow_periods(&self, limit: Nanos) -> u64 {
        self.slowest.periods(limit)
    }

    /// Whether it may be what a thread recorded whose window of at most `length` began at `start`.
    pub fn is_plausible(&self, start: Instant, length: Nanos) -> bool {
        let of = &self.counts;
        let counts = [
            of.sent,
            of.warmup_completed,
            of.warmup_failed,
            of.completed,
            of.unexpected_status,
            of.acknowledged,
            of.failed.total(),
            of.sent_in_drain,
            of.in_flight,
            of.drained,
            of.drain_failed,
            of.abandoned,
            of.connect_failed.total(),
            self.received_bytes,
            self.sent_bytes,
            self.connections_opened,
            self.connections_closed_by_server,
            self.connections_stray,
            self.pick_up_exact,
            self.woken,
            self.handshakes.full,
            self.handshakes.resumed,
            self.handshakes.in_window,
            self.continued.load(Relaxed),
        ];
        let slices = self.slices.iter().chain(&self.status);
        counts.iter().chain(slices).all(|count| *count <= COUNT_MAX)
            && self.slices.len() <= SLICES_MAX
            && self.slowest.is_plausible()
            && (start..=start + length).contains(&self.last_end)
    }

    /// Tells its times by another clock, on which the moment `from` is `to`.
    pub fn rebase(&mut self, from: Instant, to: Instant) {
        for at in [
            &mut self.slice_end,
            &mut self.last_end,
            &mut self.slowest.start,
        ] {
            *at = at.rebased(from, to);
        }
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: &Recorder) {
        add_counts(&mut self.counts, &other.counts);
        for (mine, theirs) in self.status.iter_mut().zip(&other.status) {
            *mine += theirs;
        }
        for (mine, theirs) in [
            (&mut self.latency, &other.latency),
            (&mut self.warmup_latency, &other.warmup_latency),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.lateness, &other.lateness),
            (&mut self.slot_wait, &other.slot_wait),
            (&mut self.pick_up, &other.pick_up),
            (&mut self.handling, &other.handling),
            (&mut self.send_bracket, &other.send_bracket),
        ] {
            mine.add(theirs);
        }
        self.slowest.merge(&other.slowest);
        self.handshakes.merge(&other.handshakes);
        if self.protocol_fault.is_none() {
            self.protocol_fault.clone_from(&other.protocol_fault);
        }
        self.connect_failure = self.connect_failure.or(other.connect_failure);
        self.places_min = self.places_min.min(other.places_min);
        let theirs = other.continued.load(Relaxed);
        self.continued.fetch_add(theirs, Relaxed);
        if self.slices.len() < other.slices.len() {
            self.slices.resize(other.slices.len(), 0);
        }
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            *mine += theirs;
        }
        self.last_end = self.last_end.max(other.last_end);
        for (mine, theirs) in [
            (&mut self.pick_up_exact, other.pick_up_exact),
            (&mut self.woken, other.woken),
            (&mut self.received_bytes, other.received_bytes),
            (&mut self.sent_bytes, other.sent_bytes),
            (&mut self.connections_opened, other.connections_opened),
            (
                &mut self.connections_closed_by_server,
                other.connections_closed_by_server,
            ),
            (&mut self.connections_stray, other.connections_stray),
        ] {
            *mine += theirs;
        }
    }
}

/// The handshakes of TLS.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Handshakes {
    full: u64,
    resumed: u64,
    in_window: u64,
    length: Latencies,
    /// Of the first.
    facts: Option<AgreedTls>,
    /// What the first failure of TLS said.
    failure: Option<String>,
}

/// What a handshake has agreed on, as a report has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct AgreedTls {
    version: String,
    cipher: String,
    protocol: String,
}

/// A count that connections share, as its value.
mod shared_count {
    use super::{Arc, AtomicU64, Deserialize, Relaxed};

    pub fn serialize<S: serde::Serializer>(count: &AtomicU64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(count.load(Relaxed))
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<AtomicU64>, D::Error> {
        Ok(Arc::new(u64::deserialize(from)?.into()))
    }
}

impl Handshakes {
    fn merge(&mut self, other: &Handshakes) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.in_window += other.in_window;
        self.length.add(&other.length);
        self.facts = self.facts.take().or_else(|| other.facts.clone());
        self.failure = self.failure.take().or_else(|| other.failure.clone());
    }
}

/// Adds counts of another thread.
pub fn add_counts(mine: &mut Counts, theirs: &Counts) {
    mine.sent += theirs.sent;
    mine.sent_in_drain += theirs.sent_in_drain;
    mine.warmup_completed += theirs.warmup_completed;
    mine.warmup_failed += theirs.warmup_failed;
    mine.completed += theirs.completed;
    mine.unexpected_status += theirs.unexpected_status;
    mine.acknowledged += theirs.acknowledged;
    mine.in_flight += theirs.in_flight;
    mine.drained += theirs.drained;
    mine.drain_failed += theirs.drain_failed;
    mine.abandoned += theirs.abandoned;
    add_failures(&mut mine.failed, &theirs.failed);
    add_failures(&mut mine.connect_failed, &theirs.connect_failed);
}

/// Adds failures of another thread.
pub fn add_failures(mine: &mut Failures, theirs: &Failures) {
    mine.refused += theirs.refused;
    mine.reset += theirs.reset;
    mine.closed += theirs.closed;
    mine.timeout += theirs.timeout;
    mine.protocol += theirs.protocol;
    mine.wrong_answer += theirs.wrong_answer;
    mine.system += theirs.system;
    mine.certificate += theirs.certificate;
    mine.handshake += theirs.handshake;
    mine.alert += theirs.alert;
    mine.refused_stream += theirs.refused_stream;
    mine.stream_reset += theirs.stream_reset;
    mine.gone_away += theirs.gone_away;
    mine.check += theirs.check;
    mine.proxy += theirs.proxy;
}

#[cfg(test)]
mod tests {
    use std::io;

    use prony_engine::{Arrival, Bracket};
    use proptest::prelude::*;

    use super::*;
    use crate::failure::ProtocolFault;

    fn times(sent: u64, first_byte: u64, done: u64) -> Times {
        let sent = Instant(sent);
        let last_byte = Arrival {
            reaped: Instant(done),
            since: sent,
            ..Arrival::default()
        };
        Times {
            intended: sent,
            taken_up: sent,
            ready: sent,
            submitted: Bracket {
                from: sent,
                to: sent,
            },
            first_byte: Instant(first_byte),
            last_byte,
            processed: Instant(done),
        }
    }

    fn answer(sent: u64, done: u64) -> Answer {
        Answer {
            times: times(sent, done, done),
            status: 200,
            expected: true,
        }
    }

    /// Both ends in this phase.
    fn all(phase: LoadPhase) -> Phases {
        Phases {
            origin: phase,
            end: phase,
        }
    }

    fn recorder() -> Recorder {
        Recorder::new(Instant(0), LatencyOrigin::Submitted)
    }

    fn phase() -> impl Strategy<Value = LoadPhase> {
        prop_oneof![
            Just(LoadPhase::WarmUp),
            Just(LoadPhase::Measured),
            Just(LoadPhase::Drain)
        ]
    }

    const KINDS: [Failure; 15] = [
        Failure::Refused,
        Failure::Reset,
        Failure::Closed,
        Failure::Timeout,
        Failure::Protocol(ProtocolFault::NotHttp2),
        Failure::WrongAnswer,
        Failure::System,
        Failure::Certificate,
        Failure::Handshake,
        Failure::Alert,
        Failure::RefusedStream,
        Failure::StreamReset,
        Failure::GoneAway,
        Failure::Check,
        Failure::Proxy,
    ];

    fn failure() -> impl Strategy<Value = Failure> {
        prop::sample::select(&KINDS[..])
    }

    /// What a thread may have to count, each a moment after the one before.
    #[derive(Clone, Debug)]
    enum Event {
        Connected(u64),
        ConnectFailed(Failure),
        Sent(usize),
        Received(LoadPhase, usize),
        Completed(LoadPhase, Answer),
        Failed(LoadPhase, Failure),
        ClosedByServer,
    }

    fn event() -> impl Strategy<Value = Event> {
        let whole = (1_u64..5_000_000, 1_u64..5_000_000, 100_u16..600).prop_map(|of| Answer {
            times: times(0, of.0, of.0 + of.1),
            status: of.2,
            expected: of.2 < 400,
        });
        prop_oneof![
            1 => (1_u64..1_000_000).prop_map(Event::Connected),
            1 => failure().prop_map(Event::ConnectFailed),
            1 => (1_usize..1_000).prop_map(Event::Sent),
            1 => (phase(), 1_usize..9_000).prop_map(|(phase, bytes)| Event::Received(phase, bytes)),
            4 => (phase(), whole).prop_map(|(phase, answer)| Event::Completed(phase, answer)),
            1 => (phase(), failure()).prop_map(|(phase, failure)| Event::Failed(phase, failure)),
            1 => Just(Event::ClosedByServer),
        ]
    }

    impl Recorder {
        fn happens(&mut self, event: &Event, at: u64) {
            match *event {
                Event::Connected(length) => self.connected(Nanos(length)),
                Event::ConnectFailed(failure) => self.connect_failed(failure),
                Event::Sent(bytes) => self.sent(LoadPhase::Measured, bytes),
                Event::Received(phase, bytes) => self.received(phase, bytes),
                Event::Completed(phase, answer) => {
                    let (first_byte, done) = (answer.times.first_byte.0, answer.times.done().0);
                    let times = times(at, at + first_byte, at + done);
                    self.completed(all(phase), &Answer { times, ..answer });
                }
                Event::Failed(phase, failure) => self.failed(all(phase), failure, Instant(at)),
                Event::ClosedByServer => self.connections_closed_by_server += 1,
            }
        }

        /// All that a report is made of.
        fn told(&self, length: Nanos) -> impl PartialEq + std::fmt::Debug + use<> {
            let latency = (self.latency().summary(), self.latency().histogram());
            let latencies = (latency, self.first_byte(), self.connect(), self.delay());
            let status: Vec<_> = self.status().collect();
            let bytes = (self.received_bytes, self.sent_bytes);
            let connections = (self.connections_opened, self.connections_closed_by_server);
            let ends = (self.last_end, self.slices(length), self.so_far());
            (self.counts(), latencies, status, bytes, connections, ends)
        }
    }

    proptest! {
        // Recorders are large: each case allocates, merges and walks through a megabyte and more.
        #![proptest_config(ProptestConfig::with_cases(prony_testkit::seeds(48, 2_000) as u32))]
        #[test]
        fn every_request_is_counted_once(ends in prop::collection::vec((phase(), prop::option::of(failure()), any::<bool>()), 0..200)) {
            let mut recorder = recorder();
            for &(phase, failure, expected) in &ends {
                recorder.sent(LoadPhase::WarmUp, 100);
                match failure {
                    None => recorder.completed(all(phase), &Answer { expected, ..answer(0, 1_000) }),
                    Some(failure) => recorder.failed(all(phase), failure, Instant(1)),
                }
            }
            let c = recorder.counts();
            prop_assert_eq!(c.sent, ends.len() as u64);
            prop_assert_eq!(c.sent, c.warmup_completed + c.warmup_failed + c.completed + c.failed.total() + c.in_flight);
            let right = ends.iter().filter(|(_, failure, expected)| failure.is_none() && *expected);
            prop_assert_eq!(c.acknowledged, right.count() as u64);
            prop_assert_eq!(c.in_flight, c.drained + c.drain_failed + c.abandoned);
            let of_window = ends.iter().filter(|(phase, ..)| *phase == LoadPhase::Measured);
            prop_assert_eq!(recorder.latency().summary().count, of_window.count() as u64);
        }

        #[test]
        fn two_threads_together_count_what_one_would(events in prop::collection::vec((event(), any::<bool>()), 0..200)) {
            let (mut whole, mut one, mut other) = (recorder(), recorder(), recorder());
            for (at, (event, mine)) in (0..).step_by(10_000_000).zip(&events) {
                whole.happens(event, at);
                let half = if *mine { &mut one } else { &mut other };
                half.happens(event, at);
            }
            for recorder in [&mut whole, &mut one, &mut other] {
                recorder.close_slices(Instant(2_000_000_000));
            }
            // The other one may be on another machine, with a clock of its own.
            let apart = Instant(3_600_000_000_000);
            other.rebase(Instant(0), apart);
            let line = serde_json::to_vec(&other).expect("a line");
            let mut arrived: Recorder = serde_json::from_slice(&line).expect("the same");
            arrived.rebase(apart, Instant(0));
            one.merge(&arrived);
            let length = Nanos::from_secs(2);
            prop_assert_eq!(one.told(length), whole.told(length));
        }
    }

    #[test]
    fn a_thread_that_ended_early_leaves_no_slice_of_another_out() {
        let (mut short, mut long) = (recorder(), recorder());
        for (recorder, tenths) in [(&mut short, 1), (&mut long, 3)] {
            for tenth in 0..tenths {
                recorder.completed(all(LoadPhase::Measured), &answer(0, tenth * SLICE.0));
            }
            recorder.close_slices(Instant(tenths * SLICE.0));
        }
        short.merge(&long);
        assert_eq!(short.slices(SLICE * 3).completed, [2, 1, 1]);
    }

    #[test]
    fn each_kind_of_failure_has_its_own_counter() {
        let mut recorder = recorder();
        for (times, kind) in (1..).zip(KINDS) {
            for _ in 0..times {
                recorder.failed(all(LoadPhase::Measured), kind, Instant(1));
                recorder.connect_failed(kind);
            }
            recorder.connect_failed(kind);
        }
        let counts = recorder.counts();
        let failed = counts.failed.by_kind().map(|(_, count)| count);
        assert_eq!(failed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let connect_failed = counts.connect_failed.by_kind().map(|(_, count)| count);
        assert_eq!(
            connect_failed,
            [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
        );
        recorder.completed(all(LoadPhase::Measured), &answer(0, 1));
        assert_eq!(recorder.so_far(), (1, 120 + 135));
    }

    #[test]
    fn a_failure_outside_of_the_window_is_in_no_kind() {
        let mut recorder = recorder();
        recorder.failed(all(LoadPhase::WarmUp), Failure::Timeout, Instant(1));
        recorder.failed(all(LoadPhase::Drain), Failure::Timeout, Instant(1));
        recorder.failed(all(LoadPhase::Drain), Failure::Timeout, Instant(1));
        recorder.failed(all(LoadPhase::Drain), Failure::Reset, Instant(1));
        let counts = recorder.counts();
        assert_eq!((counts.warmup_failed, counts.failed.total()), (1, 0));
        assert_eq!(
            (counts.abandoned, counts.drain_failed, counts.in_flight),
            (2, 1, 3)
        );
    }

    #[test]
    fn an_error_of_the_system_is_counted_as_what_it_means() {
        use io::ErrorKind as Kind;
        for (kind, failure) in [
            (Kind::ConnectionRefused, Failure::Refused),
            (Kind::ConnectionReset, Failure::Reset),
            (Kind::ConnectionAborted, Failure::Reset),
            (Kind::BrokenPipe, Failure::Reset),
            (Kind::UnexpectedEof, Failure::Closed),
            (Kind::TimedOut, Failure::Timeout),
            (Kind::AddrNotAvailable, Failure::System),
        ] {
            assert_eq!(Failure::from(&io::Error::from(kind)), failure, "{kind}");
        }
    }

    #[test]
    fn the_first_failure_to_connect_is_one_that_there_was() {
        assert_eq!(recorder().first_connect_failure(), None);
        for kind in KINDS {
            let mut recorder = recorder();
            recorder.connect_failed(kind);
            assert_eq!(recorder.first_connect_failure(), Some(kind));
        }
    }

    #[test]
    fn the_median_is_that_of_the_window_and_before_it_that_of_the_warm_up() {
        let mut recorder = recorder();
        assert_eq!(recorder.median_latency(), Nanos::ZERO);
        for latency in [100, 200, 300] {
            recorder.completed(all(LoadPhase::WarmUp), &answer(1_000, 1_000 + latency));
        }
        assert_eq!(recorder.median_latency(), Nanos(200));
        recorder.completed(all(LoadPhase::Measured), &answer(1_000, 1_700));
        assert_eq!(recorder.median_latency(), Nanos(700));
    }

    #[test]
    fn bytes_count_in_the_window_only() {
        let mut recorder = recorder();
        recorder.sent(LoadPhase::WarmUp, 1);
        recorder.sent(LoadPhase::Measured, 20);
        recorder.sent(LoadPhase::Measured, 300);
        for (phase, bytes) in [
            (LoadPhase::WarmUp, 4),
            (LoadPhase::Measured, 50),
            (LoadPhase::Measured, 600),
            (LoadPhase::Drain, 7_000),
        ] {
            recorder.received(phase, bytes);
        }
        assert_eq!((recorder.sent_bytes, recorder.received_bytes), (320, 650));
        assert_eq!(recorder.counts().sent, 3);
    }

    #[test]
    fn requests_of_all_threads_are_added_up_those_of_the_drain_too() {
        let thread = |sent, sent_in_drain| {
            let mut thread = recorder();
            (thread.counts.sent, thread.counts.sent_in_drain) = (sent, sent_in_drain);
            thread
        };
        let mut all = thread(7, 2);
        all.merge(&thread(5, 3));
        assert_eq!((all.counts().sent, all.counts().sent_in_drain), (12, 5));
    }

    #[test]
    fn answers_of_the_window_are_told_apart_by_their_status() {
        let mut recorder = recorder();
        for status in [200, 503, 200, 999, 1_000, u16::MAX] {
            let expected = status == 200;
            recorder.completed(
                all(LoadPhase::Measured),
                &Answer {
                    status,
                    expected,
                    ..answer(0, 1)
                },
            );
        }
        recorder.completed(
            all(LoadPhase::Drain),
            &Answer {
                status: 404,
                expected: false,
                ..answer(0, 1)
            },
        );
        let told: Vec<_> = recorder.status().collect();
        let wanted = [("200", 2), ("503", 1), ("999", 3)].map(|(code, n)| (code.to_owned(), n));
        assert_eq!(told, wanted);
        assert_eq!(recorder.counts().unexpected_status, 4);
    }

    #[test]
    fn no_more_than_ten_hours_of_slices_are_kept() {
        let mut recorder = recorder();
        recorder.close_slices(Instant(SLICE.0 * (SLICES_MAX as u64 + 2)));
        assert_eq!(recorder.slices.len(), SLICES_MAX);
        let kept = recorder.slices(Nanos(SLICE.0 * (SLICES_MAX as u64 + 2)));
        assert_eq!((kept.completed.len(), kept.slice_ns), (SLICES_MAX, SLICE.0));
    }

    /// Under 2,048 ns the buckets are as wide as a nanosecond, and figures are exact.
    #[test]
    fn a_summary_has_each_percentile_mean_and_deviation() {
        let mut recorder = recorder();
        let steps = [
            (5_000, 100),
            (2_500, 200),
            (1_500, 300),
            (900, 400),
            (90, 500),
            (9, 600),
            (1, 700),
        ];
        for (count, latency) in steps {
            for _ in 0..count {
                recorder.completed(all(LoadPhase::Measured), &answer(5, 5 + latency));
            }
        }
        let (seen, histogram) = (recorder.latency().summary(), recorder.latency().histogram());
        assert_eq!((seen.count, seen.min, seen.max), (10_000, 100, 700));
        let percentiles = [
            seen.p50,
            seen.p75,
            seen.p90,
            seen.p99,
            seen.p99_9,
            seen.p99_99,
        ];
        assert_eq!(percentiles, [100, 200, 300, 400, 500, 600]);
        // Σ count × latency = 1,810,000 + 45,000 + 5,400 + 700.
        assert!((seen.mean - 186.11).abs() < 1e-9, "{}", seen.mean);
        let squares: f64 = steps
            .iter()
            .map(|&(n, v)| n as f64 * (v as f64 - 186.11).powi(2))
            .sum();
        assert!(
            (seen.stdev - (squares / 1e4).sqrt()).abs() < 1e-9,
            "{}",
            seen.stdev
        );
        assert_eq!(
            histogram.counts,
            steps.map(|(count, latency)| (latency, count))
        );
        assert_eq!(super::Latencies::default().summary(), LatencyNs::default());
    }

    #[test]
    fn the_slices_of_a_window_hold_all_of_its_answers() {
        let mut recorder = recorder();
        for tenth in 0..30 {
            recorder.completed(all(LoadPhase::Measured), &answer(0, tenth * 10_000_000));
        }
        recorder.close_slices(Instant(300_000_000));
        assert_eq!(
            recorder.slices(Nanos::from_millis(300)).completed,
            [10, 10, 10]
        );
    }

    #[test]
    fn a_percentile_is_never_above_the_maximum() {
        let mut recorder = recorder();
        recorder.completed(all(LoadPhase::Measured), &answer(0, 1_000_001));
        let latency = recorder.latency().summary();
        assert!(latency.p99_99 <= latency.max);
    }

    #[test]
    fn a_latency_is_that_of_a_request_of_the_window_whenever_it_ends() {
        let mut recorder = recorder();
        let ends = |origin, end| Phases { origin, end };
        // Before the window and answered in it; in the window and answered in it, and after it; and failed after it.
        recorder.completed(
            ends(LoadPhase::WarmUp, LoadPhase::Measured),
            &answer(0, 100),
        );
        recorder.completed(
            ends(LoadPhase::Measured, LoadPhase::Measured),
            &answer(0, 200),
        );
        recorder.completed(ends(LoadPhase::Measured, LoadPhase::Drain), &answer(0, 300));
        recorder.failed(
            ends(LoadPhase::Measured, LoadPhase::Drain),
            Failure::Timeout,
            Instant(9),
        );
        recorder.unanswered(LoadPhase::Measured);
        recorder.unanswered(LoadPhase::WarmUp);
        let (counts, latency) = (recorder.counts(), recorder.latency().summary());
        assert_eq!(
            (counts.completed, counts.drained, counts.abandoned),
            (2, 1, 1)
        );
        assert_eq!((latency.count, latency.min, latency.infinite), (4, 200, 2));
        assert_eq!((latency.p50, latency.p75), (300, prony_record::NEVER));
    }

    #[test]
    fn latencies_are_at_most_where_answers_may_have_lain_in_the_kernel_for_long() {
        let with = |length: u64, kernel: Option<Instant>, slept| {
            let mut recorder = recorder();
            let mut answer = answer(0, 1_000_000);
            answer.times.last_byte = Arrival {
                reaped: Instant(1_000_000),
                since: Instant(1_000_000 - length),
                slept,
                kernel,
            };
            recorder.completed(all(LoadPhase::Measured), &answer);
            recorder.delay()
        };
        // Three parts in a hundred of a millisecond are 30 us.
        assert!(!with(29_000, None, false).at_most);
        assert!(with(40_000, None, false).at_most);
        let exact = with(40_000, Some(Instant(950_000)), false);
        assert_eq!(
            (exact.at_most, exact.pick_up_exact, exact.pick_up_ns.max),
            (false, 1, 50_015)
        );
        let woken = with(40_000, None, true);
        assert_eq!(
            (woken.at_most, woken.woken, woken.pick_up_ns.count),
            (true, 1, 0)
        );
    }
}
