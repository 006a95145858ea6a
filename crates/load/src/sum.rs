//! What threads counted, added up: those of one machine and those of several alike.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prony_base::{Instant, Nanos, PerSecond};
use prony_engine::DriverKind;
use prony_record::{
    AgentReport, Arrivals, CheckCount, CodedReport, Counts, Http2Report, HttpProtocol, LatencyNs,
    LoadPart, LoadReport, LoadSpec, Pace, QUEUE_MAX, SCHEMA, ScenarioReport, ThreadCpu, Timestamps,
};
use serde::{Deserialize, Serialize};

use crate::checks::{FailedAnswer, ObservedAnswer};
use crate::control::{Counted, CpuTime};
use crate::interval::LoadTotals;
use crate::recorder::Recorder;
use crate::redirect::figures::HopFigures;
use crate::run::{LoadError, LoadResult};
use crate::scenario::compiled::Scenario;
use crate::scenario::figures::ScenarioFigures;
use crate::thread_spec::ThreadSpec;
use crate::window::Window;

/// Completed to drawn: below this the rate is not kept.
const KEPT_MIN: f64 = 0.99;
/// A generator whose threads were busy for this part of the window was at its limit.
const BUSY: f64 = 0.95;
/// A closed loop hides something where its longest latency is so many times the mean.
const HIDES_FROM: f64 = 10.0;

/// What some threads of a load measured, or all of them. It can go to another machine, whose clock is another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartResult {
    /// Start and end of each window: one, but of a load in turns.
    windows: Vec<(Instant, Instant)>,
    counted: Vec<Counted>,
    driver: String,
    /// Why the event loops do not run on io_uring although they were not told so.
    pub fallback: Option<String>,
    /// Whether its observer ended it.
    pub interrupted: bool,
    checks: Vec<CheckCount>,
    coded: Option<CodedReport>,
    failed_answers: Vec<FailedAnswer>,
    #[serde(skip)]
    observed: Vec<ObservedAnswer>,
}

impl PartResult {
    /// What threads counted in these windows.
    pub(crate) fn new(
        windows: &[Arc<Window>],
        counted: Vec<Counted>,
        driver: DriverKind,
    ) -> PartResult {
        let windows = windows.iter().map(|of| (of.start(), of.end()));
        PartResult {
            windows: windows.collect(),
            counted,
            driver: driver.to_string(),
            fallback: None,
            interrupted: false,
            checks: Vec::new(),
            coded: None,
            failed_answers: Vec::new(),
            observed: Vec::new(),
        }
    }

    /// Takes what the checks have counted that all threads share, of which `thread` is any.
    pub(crate) fn take_checked(&mut self, thread: &ThreadSpec) {
        self.coded = thread.coded.as_ref().map(|coded| coded.report());
        if let Some(checks) = &thread.checks {
            self.checks = checks.counts();
            self.failed_answers = checks.kept();
            self.observed = checks.observed();
        }
        let users = thread.scenario.iter();
        self.failed_answers
            .extend(users.clone().flat_map(|users| users.kept()));
        self.observed
            .extend(users.flat_map(|users| users.observed()));
    }

    /// The totals of each thread at the end.
    pub fn totals(&self) -> Vec<LoadTotals> {
        self.counted.iter().map(Counted::totals).collect()
    }

    /// Start of the window.
    pub fn start(&self) -> Instant {
        self.windows.first().map_or(Instant::ZERO, |first| first.0)
    }

    /// What is left of a part whose agent was lost, by the totals that it told last, so long after the start of its window: what was outstanding is abandoned. Of users and
    /// of redirects too little is told, so that nothing is left.
    pub fn until_lost(
        spec: &LoadSpec,
        part: LoadPart,
        (totals, told): (&LoadTotals, Nanos),
    ) -> PartResult {
        let start = Instant::ZERO + Nanos(spec.warmup_ns);
        let end = start + told.min(Nanos(spec.duration_ns));
        let is_told = spec.scenario.is_none() && spec.follow_max.is_none();
        let told = totals.clone();
        let told = if is_told { told } else { LoadTotals::default() };
        let mut counted = vec![Counted::until_lost(spec, &told, (start, end))];
        let none = Counted::until_lost(spec, &LoadTotals::default(), (start, end));
        counted.resize(part.threads().max(1) as usize, none);
        PartResult {
            windows: vec![(start, end)],
            counted,
            driver: String::new(),
            fallback: None,
            interrupted: false,
            checks: Vec::new(),
            coded: None,
            failed_answers: Vec::new(),
            observed: Vec::new(),
        }
    }

    /// Whether it may be what the threads of `part` came to, and not something that cannot be added to the others.
    pub fn is_of(&self, spec: &LoadSpec, part: LoadPart) -> bool {
        let length = Nanos(spec.duration_ns);
        let is_window =
            matches!(self.windows[..], [(start, end)] if start <= end && end <= start + length);
        let threads = self.counted.len() as u64 == u64::from(part.threads());
        is_window
            && threads
            && self
                .counted
                .iter()
                .all(|thread| thread.is_plausible(self.start(), length))
    }

    /// Whether it has no request.
    pub fn is_empty(&self) -> bool {
        let mut threads = self.counted.iter();
        threads.all(|thread| thread.recorder.counts().sent == 0)
    }

    /// Its own figures, beside those of the whole.
    pub fn figures(&self, spec: &LoadSpec, part: LoadPart) -> AgentReport {
        let all = self.recorder(spec);
        let length = length_of(spec, self, &all);
        let report = report(spec, self, &all, length);
        AgentReport {
            part,
            connections: part.share(u64::from(spec.connections), spec.threads),
            counts: report.counts,
            rate_per_s: report.rate_per_s,
            latency_ns: report.latency_ns,
            histogram: all.latency().histogram(),
            busy: busy(&self.counted, length),
            ..AgentReport::default()
        }
    }

    /// Tells its times by another clock, on which its window starts at `start`.
    pub fn rebase(&mut self, start: Instant) {
        let from = self.start();
        for (first, last) in &mut self.windows {
            (*first, *last) = (first.rebased(from, start), last.rebased(from, start));
        }
        for thread in &mut self.counted {
            thread.rebase(from, start);
        }
    }
}

/// A load whose threads run in several places, whole.
pub struct WholeLoad {
    spec: LoadSpec,
    scenario: Option<Arc<Scenario>>,
}

impl WholeLoad {
    /// The load `spec`.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn new(spec: &LoadSpec) -> Result<WholeLoad, LoadError> {
        Ok(WholeLoad {
            scenario: Scenario::new(spec).map_err(LoadError::Spec)?,
            spec: spec.clone(),
        })
    }

    /// What came of it. The windows of all parts are laid over one another, and start at `start`.
    pub fn add_up(
        &self,
        mut parts: Vec<PartResult>,
        start: Instant,
    ) -> Result<LoadResult, LoadError> {
        parts.iter_mut().for_each(|part| part.rebase(start));
        add_up(&self.spec, parts, self.scenario.as_deref())
    }
}

/// One result from all parts, whose windows are by one clock.
pub(crate) fn add_up(
    spec: &LoadSpec,
    parts: Vec<PartResult>,
    scenario: Option<&Scenario>,
) -> Result<LoadResult, LoadError> {
    let mut parts = parts.into_iter();
    let Some(mut part) = parts.next() else {
        return Err(LoadError::Spec("no thread has run".to_owned()));
    };
    for other in parts {
        part.add(other);
    }
    let all = part.recorder(spec);
    let length = length_of(spec, &part, &all);
    let mut report = report(spec, &part, &all, length);
    report.scenario = scenario_of(scenario, &part, length);
    report.unsent *= u64::from(!part.interrupted);
    balance(&report)?;
    let traces = part.counted.into_iter().map(|thread| thread.trace);
    Ok(LoadResult {
        report,
        histogram: all.latency().histogram(),
        trace: traces.flatten().collect(),
        failed_answers: part.failed_answers,
        observed: part.observed,
        fallback: part.fallback,
        interrupted: part.interrupted,
    })
}

impl PartResult {
    /// Adds the threads of another place.
    fn add(&mut self, other: PartResult) {
        self.counted.extend(other.counted);
        for (mine, theirs) in self.windows.iter_mut().zip(other.windows) {
            mine.1 = mine.1.max(theirs.1);
        }
        self.fallback = self.fallback.take().or(other.fallback);
        self.interrupted |= other.interrupted;
        if self.driver.is_empty() {
            self.driver = other.driver;
        }
        // All have the same checks in the same order, but for one that has told of none.
        if self.checks.is_empty() {
            self.checks = other.checks;
        } else {
            for (mine, theirs) in self.checks.iter_mut().zip(other.checks) {
                mine.failed = mine.failed.saturating_add(theirs.failed);
            }
        }
        match (&mut self.coded, other.coded) {
            (Some(mine), Some(theirs)) => mine.add(&theirs),
            (mine, theirs) => *mine = mine.or(theirs),
        }
        self.failed_answers.extend(other.failed_answers);
    }

    /// What all its threads recorded.
    fn recorder(&self, spec: &LoadSpec) -> Recorder {
        let mut all = Recorder::new(self.start(), spec.latency_from);
        self.counted.iter().for_each(|of| all.merge(&of.recorder));
        all
    }
}

/// The report of what `all` threads recorded, without users.
fn report(spec: &LoadSpec, part: &PartResult, all: &Recorder, length: Nanos) -> LoadReport {
    let counted = &part.counted[..];
    let counts = all.counts();
    let latency_ns = all.latency().summary();
    let delay = all.delay();
    let cpu = cpu(counted);
    LoadReport {
        schema: SCHEMA,
        generator: concat!("prony ", env!("CARGO_PKG_VERSION")).to_owned(),
        driver: part.driver.clone(),
        target: spec.target.clone(),
        threads: spec.threads,
        connections: spec.connections,
        window_ns: length.0,
        completed: counts.completed,
        rate_per_s: PerSecond::of(counts.completed, length).0,
        counts,
        status: all.status().collect(),
        errors: errors(&counts),
        received_bytes: all.received_bytes,
        sent_bytes: all.sent_bytes,
        latency_ns,
        first_byte_ns: all.first_byte(),
        connect_ns: all.connect(),
        tls: spec.tls.as_ref().map(|_| all.handshakes(length)),
        protocol_failure: all.protocol_fault().map(str::to_owned),
        depth: spec.depth,
        continued: spec.expects_continue.then(|| all.continued().load(Relaxed)),
        http2: http2_of(spec, all),
        slow_periods: Some(all.slow_periods(Nanos(latency_ns.p99_9))),
        slices: all.slices(length),
        connections_opened: all.connections_opened,
        connections_closed_by_server: all.connections_closed_by_server,
        connections_stray: all.connections_stray,
        cpu_ns: cpu.all.0,
        spun_ns: cpu.spun.0,
        threads_cpu: counted.iter().enumerate().map(cpu_of).collect(),
        coalescing_ns: longest_coalescing(counted).0,
        pace: spec.pace.clone(),
        latency_from: spec.latency_from,
        timestamps: match delay.pick_up_exact {
            0 => Timestamps::User,
            _ => spec.timestamps.unwrap_or(Timestamps::Kernel),
        },
        arrivals: arrivals(spec, &counts, counted, busy(counted, length)),
        delay: Some(delay),
        corrected_ns: corrected(spec, all, length),
        drain_cut: counted.iter().any(|thread| thread.drain_cut),
        data_ended: counted.iter().any(|thread| thread.data_ended),
        redirects: hops_of(counted).map(|hops| hops.report()),
        requests_max: spec.requests_max,
        unsent: counted.iter().map(|thread| thread.unsent).sum(),
        checks: part.checks.clone(),
        coded: part.coded,
        ..LoadReport::default()
    }
}

/// What came of users in a window of `length`.
fn scenario_of(
    scenario: Option<&Scenario>,
    part: &PartResult,
    length: Nanos,
) -> Option<ScenarioReport> {
    Some(scenario?.report(&users_of(&part.counted)?, &part.checks, length))
}

/// What all threads counted of redirects.
fn hops_of(counted: &[Counted]) -> Option<HopFigures> {
    let mut threads = counted.iter().filter_map(|thread| thread.hops.as_ref());
    let mut all = threads.next()?.clone();
    threads.for_each(|thread| all.merge(thread));
    Some(all)
}

/// What all threads counted of users and their steps.
fn users_of(counted: &[Counted]) -> Option<ScenarioFigures> {
    let mut threads = counted.iter().filter_map(|thread| thread.scenario.as_ref());
    let mut all = threads.next()?.clone();
    threads.for_each(|thread| all.merge(thread));
    Some(all)
}

fn cpu(counted: &[Counted]) -> CpuTime {
    let threads = counted.iter().map(|thread| thread.cpu);
    threads.fold(CpuTime::default(), |sum, thread| sum + thread)
}

/// The part of a window for which its threads were busy, looking for news left out.
fn busy(counted: &[Counted], length: Nanos) -> f64 {
    let threads = counted.len().max(1) as f64;
    cpu(counted).worked() / (length.0.max(1) as f64 * threads)
}

/// The longest that a thread waited for more completions.
fn longest_coalescing(counted: &[Counted]) -> Nanos {
    let all = counted.iter().map(|thread| thread.coalescing);
    all.max().unwrap_or_default()
}

/// What HTTP/2 agreed on all connections.
fn http2_of(spec: &LoadSpec, all: &Recorder) -> Option<Http2Report> {
    let streams_max = all.places_min();
    (spec.protocol == HttpProtocol::Http2).then_some(Http2Report { streams_max })
}

/// Failures of the window by kind, only those that happened.
fn errors(counts: &Counts) -> BTreeMap<String, u64> {
    let kinds = counts.failed.by_kind().into_iter();
    let happened = kinds.filter(|&(_, count)| count > 0);
    happened
        .map(|(kind, count)| (kind.to_owned(), count))
        .collect()
}

fn cpu_of((thread, counted): (usize, &Counted)) -> ThreadCpu {
    ThreadCpu {
        name: format!("load-{thread}"),
        cpu_ns: counted.cpu.all.0,
        spun_ns: counted.cpu.spun.0,
    }
}

/// How long was measured in all.
fn length_of(spec: &LoadSpec, part: &PartResult, all: &Recorder) -> Nanos {
    match part.windows[..] {
        [(start, end)] if !spec.in_turns => end_of(end, part, all).since(start),
        _ => {
            let lengths = part.windows.iter().map(|(start, end)| end.since(*start));
            lengths.fold(Nanos::ZERO, |sum, length| sum + length)
        }
    }
}

/// The end of the window as it was. With a number of requests that is the end of the last of them, answered or not;
/// where the server was gone, until it was given up.
fn end_of(end: Instant, part: &PartResult, all: &Recorder) -> Instant {
    let finished = part.counted.iter().map(|thread| thread.finished).max();
    let finished = finished.unwrap_or(part.start());
    if finished >= end {
        end
    } else if part.counted.iter().any(|thread| thread.unsent > 0) {
        finished
    } else {
        all.last_end
    }
}

/// Whether every request was counted once.
fn balance(report: &LoadReport) -> Result<(), LoadError> {
    match report.unbalanced() {
        None => Ok(()),
        Some(what) => Err(LoadError::Accounts(format!(
            "{what}: {:?}, {:?}",
            report.counts, report.arrivals
        ))),
    }
}

/// What became of the arrivals of all threads; `None` in a closed loop.
fn arrivals(spec: &LoadSpec, counts: &Counts, counted: &[Counted], busy: f64) -> Option<Arrivals> {
    if !spec.pace.is_open() {
        return None;
    }
    let mut had_idle = false;
    let users = users_of(counted);
    let started = users.as_ref().map(|users| {
        let flows = users.flows.iter();
        flows.map(|flow| flow.counts.started).sum()
    });
    let hops = hops_of(counted);
    let mut all = Arrivals {
        // Hops are no arrivals.
        sent: started.unwrap_or(counts.sent - hops.as_ref().map_or(0, |of| of.followed)),
        queue_max: match spec.queue_max {
            0 => QUEUE_MAX,
            limit => limit,
        },
        ..Arrivals::default()
    };
    for thread in counted.iter().filter_map(|thread| thread.arrivals) {
        all.scheduled += thread.scheduled;
        all.in_window += thread.in_window;
        all.waiting += thread.waiting;
        all.dropped += thread.dropped;
        all.dropped_in_window += thread.dropped_in_window;
        all.waiting_max += thread.waiting_max;
        had_idle |= thread.had_idle;
    }
    let ended = match (users, hops) {
        (None, None) => counts.completed + counts.failed.total(),
        // How long a user takes is its own matter: what counts is whether it could begin. Likewise with redirects.
        _ => {
            let late = all.waiting + all.dropped_in_window + counts.sent_in_drain;
            all.in_window.saturating_sub(late)
        }
    };
    let is_short = (ended as f64) < all.in_window as f64 * KEPT_MIN;
    // A loop that spins is always busy: then it is its slots that tell who was waited for.
    let is_generator = if spec.spin { had_idle } else { busy >= BUSY };
    all.generator_short = is_short && is_generator;
    all.overloaded = is_short && !is_generator && !had_idle;
    Some(all)
}

/// The latencies of a closed loop with what it did not send while it waited, where that may matter.
fn corrected(spec: &LoadSpec, all: &Recorder, length: Nanos) -> Option<LatencyNs> {
    let seen = all.latency().summary();
    let finite = seen.count - seen.infinite;
    // How often a user was meant to send is not known: its steps differ, and it thinks.
    if spec.pace != Pace::default() || spec.scenario.is_some() || finite == 0 {
        return None;
    }
    let longest = all.latency().longest();
    if (longest.0 as f64) < seen.mean * HIDES_FROM {
        return None;
    }
    // wrk's rule: each connection was meant to send one as often as it did on average.
    let interval = length.0 / (finite / u64::from(spec.connections)).max(1);
    Some(all.latency().corrected(Nanos(interval)).summary())
}

#[cfg(test)]
mod tests {
    use prony_engine::{Arrival, Bracket};
    use prony_record::LatencyOrigin;

    use super::*;
    use crate::arrivals::ArrivalCounts;
    use crate::failure::Failure;
    use crate::origin::Times;
    use crate::recorder::{Answer, Phases};
    use crate::window::LoadPhase;

    fn spec(threads: u32, connections: u32) -> LoadSpec {
        LoadSpec {
            threads,
            connections,
            duration_ns: Nanos::from_secs(1).0,
            ..LoadSpec::default()
        }
    }

    /// What these threads came to in a window.
    fn added(spec: &LoadSpec, window: &Arc<Window>, threads: Vec<Counted>) -> LoadResult {
        let part = PartResult::new(&[Arc::clone(window)], threads, DriverKind::Epoll);
        add_up(spec, vec![part], None).expect("it balances")
    }

    const MEASURED: Phases = Phases {
        origin: LoadPhase::Measured,
        end: LoadPhase::Measured,
    };

    /// What a thread counted that got `answers` at 100, 300, 500 … ms, one failure at `failed_ms`, and ended at
    /// `finished_ms`.
    fn counted(window: &Window, answers: u64, failed_ms: u64, finished_ms: u64) -> Counted {
        let mut recorder = Recorder::new(window.start(), LatencyOrigin::Submitted);
        for number in 0..answers {
            let sent = window.start() + Nanos::from_millis(200 * number);
            let done = sent + Nanos::from_millis(100);
            recorder.sent(LoadPhase::Measured, 10);
            let answer = Answer {
                times: Times {
                    intended: sent,
                    taken_up: sent,
                    ready: sent,
                    submitted: Bracket {
                        from: sent,
                        to: sent,
                    },
                    first_byte: sent + Nanos::from_millis(50),
                    last_byte: Arrival {
                        reaped: done,
                        since: sent,
                        ..Arrival::default()
                    },
                    processed: done,
                },
                status: 200,
                expected: true,
            };
            recorder.received(LoadPhase::Measured, 1_000);
            recorder.completed(MEASURED, &answer);
        }
        recorder.sent(LoadPhase::Measured, 10);
        let failed = window.start() + Nanos::from_millis(failed_ms);
        recorder.failed(MEASURED, Failure::Closed, failed);
        recorder.connected(Nanos(77));
        recorder.connections_closed_by_server = answers;
        let finished = window.start() + Nanos::from_millis(finished_ms);
        recorder.close_slices(finished.min(window.end()));
        Counted {
            recorder,
            cpu: CpuTime {
                all: Nanos(answers * 7),
                spun: Nanos(answers),
            },
            coalescing: Nanos(answers * 2),
            finished,
            arrivals: None,
            drain_cut: false,
            scenario: None,
            hops: None,
            unsent: 0,
            data_ended: false,
            trace: Vec::new(),
        }
    }

    fn window() -> Arc<Window> {
        Arc::new(Window::new(
            Instant(5_000),
            Nanos(1_000),
            Nanos::from_secs(1),
        ))
    }

    #[test]
    fn the_report_is_what_all_threads_counted_together() {
        let window = window();
        let threads = vec![counted(&window, 2, 50, 900), counted(&window, 3, 60, 1_000)];
        let LoadResult {
            report, histogram, ..
        } = added(&spec(2, 7), &window, threads);
        assert_eq!((report.threads, report.connections), (2, 7));
        assert_eq!(
            (report.driver.as_str(), report.window_ns),
            ("epoll", 1_000_000_000)
        );
        assert_eq!((report.completed, report.rate_per_s), (5, 5.0));
        assert_eq!((report.counts.sent, report.counts.failed.closed), (7, 2));
        assert_eq!(report.errors, [("closed".to_owned(), 2)].into());
        assert_eq!(report.status, [("200".to_owned(), 5)].into());
        assert_eq!((report.sent_bytes, report.received_bytes), (70, 5_000));
        assert_eq!(
            (
                report.connections_opened,
                report.connections_closed_by_server
            ),
            (2, 5)
        );
        // Five answers, and two requests that will never have one.
        let latency = (report.latency_ns.count, report.latency_ns.infinite);
        assert_eq!((latency, report.first_byte_ns.count), ((7, 2), 5));
        assert_eq!((report.connect_ns.count, report.connect_ns.max), (2, 77));
        assert_eq!(report.slices.completed, [0, 2, 0, 2, 0, 1, 0, 0, 0, 0]);
        let cpu: Vec<_> = report
            .threads_cpu
            .iter()
            .map(|t| (t.name.as_str(), t.cpu_ns))
            .collect();
        assert_eq!(cpu, [("load-0", 14), ("load-1", 21)]);
        assert_eq!(
            (report.cpu_ns, report.spun_ns, report.coalescing_ns),
            (35, 5, 6)
        );
        assert_eq!(histogram.total(), 5);
    }

    #[test]
    fn a_run_whose_requests_are_spent_ends_with_its_last_answer() {
        let window = window();
        let threads = vec![counted(&window, 1, 50, 200), counted(&window, 3, 50, 999)];
        let LoadResult { report, .. } = added(&spec(2, 2), &window, threads);
        assert_eq!((report.window_ns, report.rate_per_s), (500_000_000, 8.0));
        // A failure is an end, too: 3 answers and a time-out after them are no 6 a second.
        let threads = vec![counted(&window, 3, 900, 950)];
        let LoadResult { report, .. } = added(&spec(1, 1), &window, threads);
        assert_eq!(report.window_ns, 900_000_000);
        // And where the server was waited for in vain, that time counts.
        let gone = Counted {
            unsent: 7,
            ..counted(&window, 3, 50, 950)
        };
        let LoadResult { report, .. } = added(&spec(1, 1), &window, vec![gone]);
        assert_eq!((report.window_ns, report.unsent), (950_000_000, 7));
    }

    #[test]
    fn the_kernels_stamps_are_told_only_where_there_was_one() {
        let window = window();
        let asked = LoadSpec {
            timestamps: Some(Timestamps::Kernel),
            ..spec(1, 1)
        };
        let said = |threads| added(&asked, &window, threads).report.timestamps;
        let mut stamped = counted(&window, 0, 50, 950);
        assert_eq!(said(vec![counted(&window, 3, 50, 950)]), Timestamps::User);
        let at = window.start();
        let answer = Answer {
            times: Times {
                intended: at,
                taken_up: at,
                ready: at,
                submitted: Bracket { from: at, to: at },
                first_byte: at,
                last_byte: Arrival {
                    reaped: at,
                    kernel: Some(at),
                    ..Arrival::default()
                },
                processed: at,
            },
            status: 200,
            expected: true,
        };
        stamped.recorder.sent(LoadPhase::Measured, 10);
        stamped.recorder.completed(MEASURED, &answer);
        assert_eq!(said(vec![stamped]), Timestamps::Kernel);
    }

    /// What is said of a schedule of 100 arrivals in the window, of which so many were answered.
    fn judged(answers: u64, busy: f64, spin: bool, had_idle: bool) -> (bool, bool) {
        let thread = Counted {
            arrivals: Some(ArrivalCounts {
                scheduled: 120,
                in_window: 100,
                waiting: 3,
                dropped: 2,
                dropped_in_window: 2,
                waiting_max: 9,
                had_idle,
            }),
            ..counted(&window(), 0, 10, 1_000)
        };
        let counts = Counts {
            sent: 115,
            completed: answers,
            ..Counts::default()
        };
        let spec = LoadSpec {
            pace: Pace::Constant { rate_per_s: 100.0 },
            spin,
            ..spec(1, 1)
        };
        let all = arrivals(&spec, &counts, &[thread], busy).unwrap();
        assert_eq!(all.scheduled, all.sent + all.waiting + all.dropped);
        assert_eq!(all.queue_max, QUEUE_MAX);
        (all.overloaded, all.generator_short)
    }

    #[test]
    fn who_does_not_keep_up_is_told_by_who_was_waited_for() {
        assert_eq!(judged(99, 0.3, false, false), (false, false));
        assert_eq!(judged(98, 0.3, false, false), (true, false));
        // Slots were idle and the generator was not busy: answers only take long.
        assert_eq!(judged(98, 0.3, false, true), (false, false));
        assert_eq!(judged(98, 0.96, false, false), (false, true));
        assert_eq!(judged(98, 1.0, true, false), (true, false));
        assert_eq!(judged(98, 1.0, true, true), (false, true));
    }

    #[test]
    fn a_request_that_was_counted_twice_or_not_at_all_is_an_error() {
        let window = window();
        let threads = vec![counted(&window, 3, 50, 900)];
        let LoadResult { mut report, .. } = added(&spec(1, 1), &window, threads);
        assert!(balance(&report).is_ok());
        report.counts.completed += 1;
        assert!(matches!(balance(&report), Err(LoadError::Accounts(_))));
        report.counts.sent += 1;
        report.completed += 1;
        assert!(balance(&report).is_ok());
        report.arrivals = Some(Arrivals {
            scheduled: 9,
            sent: 5,
            waiting: 3,
            ..Arrivals::default()
        });
        assert!(matches!(balance(&report), Err(LoadError::Accounts(_))));
    }

    #[test]
    fn a_closed_loop_that_stalled_says_what_it_kept_back() {
        let window = window();
        let mut all = Recorder::new(window.start(), LatencyOrigin::Submitted);
        assert_eq!(corrected(&spec(1, 1), &all, Nanos::from_secs(1)), None);
        all.merge(&counted(&window, 3, 10, 900).recorder);
        assert_eq!(corrected(&spec(1, 1), &all, Nanos::from_secs(1)), None);
        // A server that answers in a millisecond, and once in half a second.
        for latency_ms in std::iter::repeat_n(1, 9_500).chain([500]) {
            let sent = window.start();
            let at = Bracket {
                from: sent,
                to: sent,
            };
            let last_byte = Arrival {
                reaped: sent + Nanos::from_millis(latency_ms),
                ..Arrival::default()
            };
            let answer = Answer {
                times: Times {
                    submitted: at,
                    last_byte,
                    ..Times::default()
                },
                status: 200,
                expected: true,
            };
            all.completed(MEASURED, &answer);
        }
        let seen = all.latency().summary();
        let with = corrected(&spec(1, 1), &all, Nanos::from_secs(10)).unwrap();
        assert!(seen.p99 < 2_000_000, "{seen:?}");
        assert!(
            with.p99 > 350_000_000 && with.count > seen.count + 450,
            "{with:?}"
        );
        let thinking = LoadSpec {
            pace: Pace::Closed { think_ns: 1 },
            ..spec(1, 1)
        };
        assert_eq!(corrected(&thinking, &all, Nanos::from_secs(10)), None);
    }

    /// The same threads in one place, and in two with clocks that are an hour apart, one of them by way of a line.
    #[test]
    fn parts_of_several_machines_are_added_up_as_threads_of_one_are() {
        let here = window();
        let hour = Nanos::from_secs(3_600);
        let there = Arc::new(Window::new(
            Instant(5_000) + hour,
            Nanos(1_000),
            Nanos::from_secs(1),
        ));
        let spec = spec(3, 9);
        let parts = |other: &Arc<Window>| {
            let threads = [(&here, 2, 900), (other, 3, 1_000), (other, 1, 950)];
            threads.map(|(window, answers, end)| counted(window, answers, 50, end))
        };
        let together = added(&spec, &here, parts(&here).to_vec());
        let [first, second, third] = parts(&there);
        let one = PartResult::new(&[Arc::clone(&here)], vec![first], DriverKind::Epoll);
        let other = PartResult::new(&[there], vec![second, third], DriverKind::Epoll);
        let line = serde_json::to_vec(&other).expect("a line");
        let other: PartResult = serde_json::from_slice(&line).expect("the same");
        let all = LoadPart { first: 1, end: 3 };
        assert!(other.is_of(&spec, all) && !one.is_of(&spec, all));
        let whole = WholeLoad::new(&spec).expect("it makes sense");
        let apart = whole
            .add_up(vec![one, other], Instant(77_000))
            .expect("it balances");
        assert_eq!(apart.report, together.report);
        assert_eq!(apart.histogram, together.histogram);
    }

    #[test]
    fn of_a_part_that_is_lost_there_is_what_it_told_for_as_long_as_it_told() {
        let window = window();
        let thread = counted(&window, 2, 50, 900);
        let mut told = thread.totals();
        (told.counts.sent, told.outstanding) = (told.counts.sent + 4, 4);
        let spec = LoadSpec {
            pace: Pace::Constant { rate_per_s: 100.0 },
            duration_ns: Nanos::from_secs(600).0,
            ..spec(2, 2)
        };
        let part = LoadPart { first: 0, end: 2 };
        let lost = PartResult::until_lost(&spec, part, (&told, Nanos::from_secs(3)));
        assert!(lost.is_of(&spec, part) && !lost.is_empty());
        let whole = WholeLoad::new(&spec).expect("it makes sense");
        let report = whole
            .add_up(vec![lost], Instant(1))
            .expect("it balances")
            .report;
        assert_eq!((report.window_ns, report.completed), (3_000_000_000, 2));
        assert_eq!((report.counts.abandoned, report.counts.in_flight), (4, 4));
        assert!(report.drain_cut && !report.arrivals.expect("a schedule").overloaded);
        let followed = LoadSpec {
            follow_max: Some(3),
            ..spec
        };
        let lost = PartResult::until_lost(&followed, part, (&told, Nanos::from_secs(3)));
        assert!(lost.is_empty());
    }
}
