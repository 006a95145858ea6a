//! What one thread counts while it drives. Recording one answer allocates
//! nothing and takes a few tens of nanoseconds.
//!
//! Each request goes through exactly one of [`Recorder::completed`] and
//! [`Recorder::failed`]; [`Recorder::counts`] therefore obeys
//! `sent = warm-up + completed + failed + in flight`, which a property test holds.

use std::io;

use hdrhistogram::Histogram as Hdr;
use prony_base::{Instant, Nanos};
use prony_record::{Counts, Failures, Histogram, LatencyNs, SCHEMA, Slices};

use crate::window::Part;

/// Length of a slice of the window.
pub const SLICE: Nanos = Nanos::from_millis(100);
/// Significant digits of the histograms.
const DIGITS: u8 = 3;
/// Largest latency that is told apart; a longer one counts as this.
const LATENCY_MAX: Nanos = Nanos::from_secs(3_600);
/// Status codes are three digits.
const STATUS_MAX: usize = 1_000;
/// Slices that are kept: ten hours of them. Later ones are not.
const SLICES_MAX: usize = 360_000;

/// Why a request, or an attempt to connect, failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// The server closed before the answer was whole.
    Closed,
    /// No answer in time.
    Timeout,
    /// The answer was not HTTP, or over a limit.
    Protocol,
    /// The answer was not the expected one.
    WrongAnswer,
    /// Any other error of the system.
    System,
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Failure::Reset,
            io::ErrorKind::UnexpectedEof => Failure::Closed,
            io::ErrorKind::TimedOut => Failure::Timeout,
            _ => Failure::System,
        }
    }
}

fn count(failures: &mut Failures, failure: Failure) {
    let counter = match failure {
        Failure::Refused => &mut failures.refused,
        Failure::Reset => &mut failures.reset,
        Failure::Closed => &mut failures.closed,
        Failure::Timeout => &mut failures.timeout,
        Failure::Protocol => &mut failures.protocol,
        Failure::WrongAnswer => &mut failures.wrong_answer,
        Failure::System => &mut failures.system,
    };
    *counter += 1;
}

/// One whole answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// When its request was sent.
    pub sent: Instant,
    /// When its first byte was there.
    pub first_byte: Instant,
    /// When its last byte was there.
    pub done: Instant,
    /// Its status code.
    pub status: u16,
    /// Whether that is an expected one.
    pub expected: bool,
}

/// The counts of one thread.
pub struct Recorder {
    counts: Counts,
    /// INVARIANT: `STATUS_MAX` long.
    status: Box<[u64]>,
    latency: Hdr<u64>,
    warmup_latency: Hdr<u64>,
    first_byte: Hdr<u64>,
    connect: Hdr<u64>,
    slices: Vec<u64>,
    /// End of the slice that is being counted.
    slice_end: Instant,
    slice_completed: u64,
    /// Last completion in the window, by which a run that ends early is measured.
    pub last_completion: Instant,
    /// Bytes received in the window.
    pub received_bytes: u64,
    /// Bytes sent in the window.
    pub sent_bytes: u64,
    /// Connections opened in the whole run.
    pub connections_opened: u64,
    /// Connections closed by the server after a whole answer.
    pub connections_closed_by_server: u64,
}

fn hdr() -> Hdr<u64> {
    Hdr::new_with_bounds(1, LATENCY_MAX.0, DIGITS)
        .expect("the bounds are constants that the library accepts")
}

impl Recorder {
    /// Nothing counted yet. The slices begin at `window_start`.
    pub fn new(window_start: Instant) -> Recorder {
        Recorder {
            counts: Counts::default(),
            status: vec![0; STATUS_MAX].into_boxed_slice(),
            latency: hdr(),
            warmup_latency: hdr(),
            first_byte: hdr(),
            connect: hdr(),
            slices: Vec::with_capacity(1_024),
            slice_end: window_start + SLICE,
            slice_completed: 0,
            last_completion: window_start,
            received_bytes: 0,
            sent_bytes: 0,
            connections_opened: 0,
            connections_closed_by_server: 0,
        }
    }

    /// A connection was opened after `length`.
    pub fn connected(&mut self, length: Nanos) {
        self.connections_opened += 1;
        self.connect.saturating_record(length.0.max(1));
    }

    /// An attempt to connect failed.
    pub fn connect_failed(&mut self, failure: Failure) {
        count(&mut self.counts.connect_failed, failure);
    }

    /// A request of `bytes` is handed to the kernel in `part`, which is never the drain.
    pub fn sent(&mut self, part: Part, bytes: usize) {
        debug_assert_ne!(part, Part::Drain, "no request starts after the window");
        self.counts.sent += 1;
        if part == Part::Measured {
            self.sent_bytes += bytes as u64;
        }
    }

    /// Bytes of an answer arrived in `part`.
    pub fn received(&mut self, part: Part, bytes: usize) {
        if part == Part::Measured {
            self.received_bytes += bytes as u64;
        }
    }

    /// A request was answered in full; `part` is that of `answer.done`.
    pub fn completed(&mut self, part: Part, answer: &Answer) {
        self.counts.acknowledged += u64::from(answer.expected);
        match part {
            Part::WarmUp => {
                self.counts.warmup_completed += 1;
                let latency = answer.done.since(answer.sent);
                self.warmup_latency.saturating_record(latency.0.max(1));
            }
            Part::Drain => self.counts.drained += 1,
            Part::Measured => self.measured(answer),
        }
    }

    fn measured(&mut self, answer: &Answer) {
        self.counts.completed += 1;
        self.counts.unexpected_status += u64::from(!answer.expected);
        self.status[usize::from(answer.status).min(STATUS_MAX - 1)] += 1;
        self.latency
            .saturating_record(answer.done.since(answer.sent).0.max(1));
        self.first_byte
            .saturating_record(answer.first_byte.since(answer.sent).0.max(1));
        self.last_completion = answer.done;
        if answer.done >= self.slice_end {
            self.close_slices(answer.done);
        }
        self.slice_completed += 1;
    }

    /// Closes every slice that ends at or before `now`.
    pub fn close_slices(&mut self, now: Instant) {
        while now >= self.slice_end && self.slices.len() < SLICES_MAX {
            self.slices.push(std::mem::take(&mut self.slice_completed));
            self.slice_end = self.slice_end + SLICE;
        }
    }

    /// A request that was sent has failed; `part` is that of the moment it did.
    pub fn failed(&mut self, part: Part, failure: Failure) {
        match part {
            Part::WarmUp => self.counts.warmup_failed += 1,
            Part::Measured => count(&mut self.counts.failed, failure),
            Part::Drain if failure == Failure::Timeout => self.counts.abandoned += 1,
            Part::Drain => self.counts.drain_failed += 1,
        }
    }

    /// Completed and failed requests of the window so far, for a live line.
    pub fn so_far(&self) -> (u64, u64) {
        (
            self.counts.completed,
            self.counts.failed.total() + self.counts.connect_failed.total(),
        )
    }

    /// Median latency of the window so far, or, before that, of the warm-up; zero before the first answer.
    pub fn median_latency(&self) -> Nanos {
        let so_far = if self.latency.is_empty() {
            &self.warmup_latency
        } else {
            &self.latency
        };
        Nanos(so_far.value_at_quantile(0.5))
    }

    /// A failure to connect, if there was one.
    pub fn first_connect_failure(&self) -> Option<Failure> {
        let failed = &self.counts.connect_failed;
        let kinds = [
            (failed.refused, Failure::Refused),
            (failed.timeout, Failure::Timeout),
            (failed.reset, Failure::Reset),
            (failed.closed, Failure::Closed),
            (failed.system, Failure::System),
        ];
        kinds
            .into_iter()
            .find(|&(count, _)| count > 0)
            .map(|(_, kind)| kind)
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

    /// Latency of the window.
    pub fn latency(&self) -> (LatencyNs, Histogram) {
        let counts = self.latency.iter_recorded();
        let counts = counts
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect();
        let histogram = Histogram {
            schema: SCHEMA,
            unit: "ns".to_owned(),
            digits: DIGITS,
            counts,
        };
        (summary(&self.latency), histogram)
    }

    /// Time to the first byte in the window.
    pub fn first_byte(&self) -> LatencyNs {
        summary(&self.first_byte)
    }

    /// Time to connect.
    pub fn connect(&self) -> LatencyNs {
        summary(&self.connect)
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

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: &Recorder) {
        add(&mut self.counts, &other.counts);
        for (mine, theirs) in self.status.iter_mut().zip(&other.status) {
            *mine += theirs;
        }
        for (mine, theirs) in [
            (&mut self.latency, &other.latency),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
        ] {
            mine.add(theirs)
                .expect("all histograms have the same bounds");
        }
        if self.slices.len() < other.slices.len() {
            self.slices.resize(other.slices.len(), 0);
        }
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            *mine += theirs;
        }
        self.last_completion = self.last_completion.max(other.last_completion);
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.connections_opened += other.connections_opened;
        self.connections_closed_by_server += other.connections_closed_by_server;
    }
}

fn add(mine: &mut Counts, theirs: &Counts) {
    mine.sent += theirs.sent;
    mine.warmup_completed += theirs.warmup_completed;
    mine.warmup_failed += theirs.warmup_failed;
    mine.completed += theirs.completed;
    mine.unexpected_status += theirs.unexpected_status;
    mine.acknowledged += theirs.acknowledged;
    mine.drained += theirs.drained;
    mine.drain_failed += theirs.drain_failed;
    mine.abandoned += theirs.abandoned;
    add_failures(&mut mine.failed, &theirs.failed);
    add_failures(&mut mine.connect_failed, &theirs.connect_failed);
}

fn add_failures(mine: &mut Failures, theirs: &Failures) {
    mine.refused += theirs.refused;
    mine.reset += theirs.reset;
    mine.closed += theirs.closed;
    mine.timeout += theirs.timeout;
    mine.protocol += theirs.protocol;
    mine.wrong_answer += theirs.wrong_answer;
    mine.system += theirs.system;
}

/// What a record keeps of a histogram of nanoseconds; all zero where nothing was recorded.
pub fn summary(hdr: &Hdr<u64>) -> LatencyNs {
    if hdr.is_empty() {
        return LatencyNs::default();
    }
    // A bucket is named by its highest value, which may lie above the largest
    // value that was seen; a percentile never does.
    let at = |quantile| hdr.value_at_quantile(quantile).min(hdr.max());
    LatencyNs {
        count: hdr.len(),
        min: hdr.min(),
        mean: hdr.mean(),
        stdev: hdr.stdev(),
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: hdr.max(),
        infinite: 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(sent: u64, done: u64) -> Answer {
        Answer {
            sent: Instant(sent),
            first_byte: Instant(done),
            done: Instant(done),
            status: 200,
            expected: true,
        }
    }

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![Just(Part::WarmUp), Just(Part::Measured), Just(Part::Drain)]
    }

    const KINDS: [Failure; 7] = [
        Failure::Refused,
        Failure::Reset,
        Failure::Closed,
        Failure::Timeout,
        Failure::Protocol,
        Failure::WrongAnswer,
        Failure::System,
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
        Received(Part, usize),
        Completed(Part, Answer),
        Failed(Part, Failure),
        ClosedByServer,
    }

    fn event() -> impl Strategy<Value = Event> {
        let whole = (1_u64..5_000_000, 1_u64..5_000_000, 100_u16..600).prop_map(|times| Answer {
            sent: Instant(0),
            first_byte: Instant(times.0),
            done: Instant(times.0 + times.1),
            status: times.2,
            expected: times.2 < 400,
        });
        prop_oneof![
            1 => (1_u64..1_000_000).prop_map(Event::Connected),
            1 => failure().prop_map(Event::ConnectFailed),
            1 => (1_usize..1_000).prop_map(Event::Sent),
            1 => (part(), 1_usize..9_000).prop_map(|(part, bytes)| Event::Received(part, bytes)),
            4 => (part(), whole).prop_map(|(part, answer)| Event::Completed(part, answer)),
            1 => (part(), failure()).prop_map(|(part, failure)| Event::Failed(part, failure)),
            1 => Just(Event::ClosedByServer),
        ]
    }

    impl Recorder {
        fn happens(&mut self, event: &Event, at: u64) {
            match *event {
                Event::Connected(length) => self.connected(Nanos(length)),
                Event::ConnectFailed(failure) => self.connect_failed(failure),
                Event::Sent(bytes) => self.sent(Part::Measured, bytes),
                Event::Received(part, bytes) => self.received(part, bytes),
                Event::Completed(part, answer) => {
                    let later = |moment: Instant| Instant(moment.0 + at);
                    let (sent, first_byte) = (later(answer.sent), later(answer.first_byte));
                    let done = later(answer.done);
                    self.completed(
                        part,
                        &Answer {
                            sent,
                            first_byte,
                            done,
                            ..answer
                        },
                    );
                }
                Event::Failed(part, failure) => self.failed(part, failure),
                Event::ClosedByServer => self.connections_closed_by_server += 1,
            }
        }

        /// All that a report is made of.
        fn told(&self, length: Nanos) -> impl PartialEq + std::fmt::Debug + use<> {
            let latencies = (self.latency(), self.first_byte(), self.connect());
            let status: Vec<_> = self.status().collect();
            let bytes = (self.received_bytes, self.sent_bytes);
            let connections = (self.connections_opened, self.connections_closed_by_server);
            let ends = (self.last_completion, self.slices(length), self.so_far());
            (self.counts(), latencies, status, bytes, connections, ends)
        }
    }

    proptest! {
        // Recorders are large: each case allocates, merges and walks through a megabyte and more.
        #![proptest_config(ProptestConfig::with_cases(prony_testkit::seeds(48, 2_000) as u32))]
        #[test]
        fn every_request_is_counted_once(ends in prop::collection::vec((part(), prop::option::of(failure()), any::<bool>()), 0..200)) {
            let mut recorder = Recorder::new(Instant(0));
            for &(part, failure, expected) in &ends {
                recorder.sent(Part::WarmUp, 100);
                match failure {
                    None => recorder.completed(part, &Answer { expected, ..answer(0, 1_000) }),
                    Some(failure) => recorder.failed(part, failure),
                }
            }
            let c = recorder.counts();
            prop_assert_eq!(c.sent, ends.len() as u64);
            prop_assert_eq!(c.sent, c.warmup_completed + c.warmup_failed + c.completed + c.failed.total() + c.in_flight);
            let right = ends.iter().filter(|(_, failure, expected)| failure.is_none() && *expected);
            prop_assert_eq!(c.acknowledged, right.count() as u64);
            prop_assert_eq!(c.in_flight, c.drained + c.drain_failed + c.abandoned);
            prop_assert_eq!(recorder.latency().1.total(), c.completed);
        }

        #[test]
        fn percentiles_keep_three_digits(mut values in prop::collection::vec(1_u64..10_000_000_000, 1..300)) {
            let mut recorder = Recorder::new(Instant(0));
            for &value in &values {
                recorder.completed(Part::Measured, &answer(0, value));
            }
            values.sort_unstable();
            let exact = values[(values.len() * 99).div_ceil(100) - 1] as f64;
            let shown = recorder.latency().0.p99 as f64;
            prop_assert!((shown - exact).abs() <= exact * 0.001 + 1.0, "{} for {}", shown, exact);
        }

        #[test]
        fn two_threads_together_count_what_one_would(events in prop::collection::vec((event(), any::<bool>()), 0..200)) {
            let new = || Recorder::new(Instant(0));
            let (mut whole, mut one, mut other) = (new(), new(), new());
            for (at, (event, mine)) in (0..).step_by(10_000_000).zip(&events) {
                whole.happens(event, at);
                let half = if *mine { &mut one } else { &mut other };
                half.happens(event, at);
            }
            for recorder in [&mut whole, &mut one, &mut other] {
                recorder.close_slices(Instant(2_000_000_000));
            }
            one.merge(&other);
            let length = Nanos::from_secs(2);
            prop_assert_eq!(one.told(length), whole.told(length));
        }
    }

    #[test]
    fn a_thread_that_ended_early_leaves_no_slice_of_another_out() {
        let (mut short, mut long) = (Recorder::new(Instant(0)), Recorder::new(Instant(0)));
        for (recorder, tenths) in [(&mut short, 1), (&mut long, 3)] {
            for tenth in 0..tenths {
                recorder.completed(Part::Measured, &answer(0, tenth * SLICE.0));
            }
            recorder.close_slices(Instant(tenths * SLICE.0));
        }
        short.merge(&long);
        assert_eq!(short.slices(SLICE * 3).completed, [2, 1, 1]);
    }

    #[test]
    fn each_kind_of_failure_has_its_own_counter() {
        let mut recorder = Recorder::new(Instant(0));
        for (times, kind) in (1..).zip(KINDS) {
            for _ in 0..times {
                recorder.failed(Part::Measured, kind);
                recorder.connect_failed(kind);
            }
            recorder.connect_failed(kind);
        }
        let counts = recorder.counts();
        let failed = counts.failed.by_kind().map(|(_, count)| count);
        assert_eq!(failed, [1, 2, 3, 4, 5, 6, 7]);
        let connect_failed = counts.connect_failed.by_kind().map(|(_, count)| count);
        assert_eq!(connect_failed, [2, 3, 4, 5, 6, 7, 8]);
        recorder.completed(Part::Measured, &answer(0, 1));
        assert_eq!(recorder.so_far(), (1, 28 + 35));
    }

    #[test]
    fn a_failure_outside_of_the_window_is_in_no_kind() {
        let mut recorder = Recorder::new(Instant(0));
        recorder.failed(Part::WarmUp, Failure::Timeout);
        recorder.failed(Part::Drain, Failure::Timeout);
        recorder.failed(Part::Drain, Failure::Timeout);
        recorder.failed(Part::Drain, Failure::Reset);
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
        assert_eq!(Recorder::new(Instant(0)).first_connect_failure(), None);
        for kind in KINDS {
            if matches!(kind, Failure::Protocol | Failure::WrongAnswer) {
                continue; // No attempt to connect ends so.
            }
            let mut recorder = Recorder::new(Instant(0));
            recorder.connect_failed(kind);
            assert_eq!(recorder.first_connect_failure(), Some(kind));
        }
    }

    #[test]
    fn the_median_is_that_of_the_window_and_before_it_that_of_the_warm_up() {
        let mut recorder = Recorder::new(Instant(0));
        assert_eq!(recorder.median_latency(), Nanos::ZERO);
        for latency in [100, 200, 300] {
            recorder.completed(Part::WarmUp, &answer(1_000, 1_000 + latency));
        }
        assert_eq!(recorder.median_latency(), Nanos(200));
        recorder.completed(Part::Measured, &answer(1_000, 1_700));
        assert_eq!(recorder.median_latency(), Nanos(700));
    }

    #[test]
    fn bytes_count_in_the_window_only() {
        let mut recorder = Recorder::new(Instant(0));
        recorder.sent(Part::WarmUp, 1);
        recorder.sent(Part::Measured, 20);
        recorder.sent(Part::Measured, 300);
        for (part, bytes) in [
            (Part::WarmUp, 4),
            (Part::Measured, 50),
            (Part::Measured, 600),
            (Part::Drain, 7_000),
        ] {
            recorder.received(part, bytes);
        }
        assert_eq!((recorder.sent_bytes, recorder.received_bytes), (320, 650));
        assert_eq!(recorder.counts().sent, 3);
    }

    #[test]
    fn answers_of_the_window_are_told_apart_by_their_status() {
        let mut recorder = Recorder::new(Instant(0));
        for status in [200, 503, 200, 999, 1_000, u16::MAX] {
            let expected = status == 200;
            recorder.completed(
                Part::Measured,
                &Answer {
                    status,
                    expected,
                    ..answer(0, 1)
                },
            );
        }
        recorder.completed(
            Part::Drain,
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
        let mut recorder = Recorder::new(Instant(0));
        recorder.close_slices(Instant(SLICE.0 * (SLICES_MAX as u64 + 2)));
        assert_eq!(recorder.slices.len(), SLICES_MAX);
        let kept = recorder.slices(Nanos(SLICE.0 * (SLICES_MAX as u64 + 2)));
        assert_eq!((kept.completed.len(), kept.slice_ns), (SLICES_MAX, SLICE.0));
    }

    /// Under 2,048 ns the buckets are as wide as a nanosecond, and figures are exact.
    #[test]
    fn a_summary_has_each_percentile_mean_and_deviation() {
        let mut recorder = Recorder::new(Instant(0));
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
                recorder.completed(Part::Measured, &answer(5, 5 + latency));
            }
        }
        let (seen, histogram) = recorder.latency();
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
        assert_eq!(summary(&hdr()), LatencyNs::default());
    }

    #[test]
    fn the_slices_of_a_window_hold_all_of_its_answers() {
        let mut recorder = Recorder::new(Instant(0));
        for tenth in 0..30 {
            recorder.completed(Part::Measured, &answer(0, tenth * 10_000_000));
        }
        recorder.close_slices(Instant(300_000_000));
        assert_eq!(
            recorder.slices(Nanos::from_millis(300)).completed,
            [10, 10, 10]
        );
    }

    #[test]
    fn a_percentile_is_never_above_the_maximum() {
        let mut recorder = Recorder::new(Instant(0));
        recorder.completed(Part::Measured, &answer(0, 1_000_001));
        let latency = recorder.latency().0;
        assert!(latency.p99_99 <= latency.max);
    }
}
