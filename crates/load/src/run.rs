//! A run: threads started, connected, let go at the same moment, and added up.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::Duration;

use prony_base::{Instant, Nanos, PerSecond, clock};
use prony_engine::{Config, DriverKind, Handle, Receiver, Sender, mailbox};
use prony_record::{
    Arrivals, Counts, Histogram, Http2Report, HttpProtocol, LatencyNs, LoadReport, LoadSpec, Pace,
    QUEUE_MAX, SCHEMA, ScenarioReport, ThreadCpu, Timestamps, Turn, Turned,
};

use crate::checks::{FailedAnswer, ObservedAnswer};
use crate::connection::connect_all;
use crate::control::{Counted, CpuTime, Turns};
use crate::failure::{Failure, reason};
use crate::interval::{Intervals, LoadInterval, LoadTotals};
use crate::mixed::Mixed;
use crate::recorder::Recorder;
use crate::redirect::figures::HopFigures;
use crate::redirect::source::following;
use crate::scenario::compiled::Scenario;
use crate::scenario::figures::ScenarioFigures;
use crate::scenario::source::ScenarioSource;
use crate::source::{Cycle, RequestSource};
use crate::thread_spec::{RunState, ThreadSources, ThreadSpec, thread_specs};
use crate::trace::RequestTimes;
use crate::window::Window;
use crate::worker::Worker;

/// Time between two calls of [`Observer::progress`].
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Connections of a thread from which on memory counts for more than a part more of each answer.
const MANY_CONNECTIONS: usize = 4_000;
/// An open schedule begins so much after the threads are told, so that none is late for its first arrival.
const HEAD_START: Nanos = Nanos::from_millis(2);
/// Completed to drawn: below this the rate is not kept.
const KEPT_MIN: f64 = 0.99;
/// A generator whose threads were busy for this part of the window was at its limit.
const BUSY: f64 = 0.95;
/// A closed loop hides something where its longest latency is so many times the mean.
const HIDES_FROM: f64 = 10.0;

/// Hears how a run goes, on the thread that called [`run`].
pub trait Observer {
    /// All connections were tried; the window is from `start` to `end` on `CLOCK_MONOTONIC`.
    fn connected(&mut self, start: Instant, end: Instant) {
        let _ = (start, end);
    }

    /// Called a few times a second: completed and failed in the window so far. `false` ends the run now.
    fn progress(&mut self, completed: u64, failed: u64) -> bool {
        let _ = (completed, failed);
        true
    }

    /// Of a load in turns: waits for the next turn. `None`: there is no other.
    fn turn(&mut self) -> Option<Turn> {
        None
    }

    /// Whether [`Observer::interval`] is to be called, asked once before the run. Each thread then copies its counts once a second.
    fn wants_intervals(&self) -> bool {
        false
    }

    /// A second of the window is over. Called for each in turn, and at the end for what is left of the window and came after it: all
    /// together have every request and latency of the report once. Not called of a load in turns.
    fn interval(&mut self, interval: &LoadInterval) {
        let _ = interval;
    }

    /// A turn is over, and nothing is outstanding.
    fn turned(&mut self, turned: &Turned) {
        let _ = turned;
    }

    /// Called as often: the rate in requests a second over all threads that an open pace is to have from now on;
    /// `None`: as it is.
    fn rate(&mut self) -> Option<f64> {
        None
    }
}

/// A flag that ends the run once it is set; nothing else is heard.
impl Observer for Arc<AtomicBool> {
    fn progress(&mut self, _completed: u64, _failed: u64) -> bool {
        !self.load(Relaxed)
    }
}

/// What a run measured.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// The figures.
    pub report: LoadReport,
    /// Latency of every request whose origin lies in the window and that was answered.
    pub histogram: Histogram,
    /// Times of single requests, as many as were asked for.
    pub trace: Vec<RequestTimes>,
    /// Why the event loops do not run on io_uring although they were not told so; empty otherwise.
    pub fallback: Option<String>,
    /// Whether the observer ended it.
    pub interrupted: bool,
    /// Answers that failed a check, as many as were to be kept.
    pub failed_answers: Vec<FailedAnswer>,
    /// Answers that were observed, as many as were to be.
    pub observed: Vec<ObservedAnswer>,
}

/// Why a run has no outcome at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The specification does not make sense.
    #[error("{0}")]
    Spec(String),
    /// No connection could be opened.
    #[error("no connection to {address} could be opened: {reason}")]
    Unreachable {
        /// Where to.
        address: String,
        /// What most attempts said.
        reason: String,
        /// Of which kind the first failure was.
        failure: Option<Failure>,
    },
    /// Some request was counted twice or not at all: a fault of this program, whose figures are worth nothing.
    #[error("the requests do not add up, which is a fault in prony: {0}; please report it")]
    Accounts(String),
    /// An event loop could not be started.
    #[error("the event loop could not be started: {0}")]
    Engine(#[from] prony_engine::Error),
}

/// What a thread says when it has tried all its connections.
struct Tried {
    opened: usize,
    failure: Option<Failure>,
    /// What TLS said.
    tls_failure: Option<String>,
    driver: DriverKind,
    fallback: Option<String>,
    go: Sender<Arc<Window>>,
}

impl Tried {
    /// The driver of its loop, and why that is not another one.
    fn facts(&self) -> (DriverKind, Option<String>) {
        (self.driver, self.fallback.clone())
    }
}

/// Counts a thread's end, however it comes, and wakes who waits for it: the thread itself
/// counts as finished only a little later.
struct AtEnd<'a> {
    ended: &'a AtomicUsize,
    caller: Thread,
}

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Release);
        self.caller.unpark();
    }
}

/// Makes the source of one thread, by its number and the number of its slots.
pub type SourceOf<'a> = &'a (dyn Fn(u32, usize) -> Box<dyn RequestSource> + Sync);

/// Threads that differ in their sources alone.
pub(crate) struct OnlySources<'a>(pub(crate) SourceOf<'a>);

impl ThreadSources for OnlySources<'_> {
    fn source(&self, thread: u32, slots: usize) -> Box<dyn RequestSource> {
        (self.0)(thread, slots)
    }
}

/// Runs `spec` to its end: each connection sends its requests in turn. Blocks the calling thread.
pub fn run(spec: &LoadSpec, observer: &mut dyn Observer) -> Result<LoadResult, LoadError> {
    if let Some(scenario) = Scenario::new(spec).map_err(LoadError::Spec)? {
        // A source that cannot be made says so before any thread begins.
        ScenarioSource::new(&scenario, spec, 0, 0).map_err(LoadError::Spec)?;
        let source = |thread, slots| -> Box<dyn RequestSource> {
            match ScenarioSource::new(&scenario, spec, thread, slots) {
                Ok(source) => Box::new(source),
                Err(why) => unreachable!("it was made before: {why}"),
            }
        };
        return run_as(
            spec,
            &OnlySources(&source),
            Some(Arc::clone(&scenario)),
            observer,
        );
    }
    if !Mixed::is_needed(spec) {
        let cycle = |_thread, slots| -> Box<dyn RequestSource> {
            Box::new(Cycle::new(&spec.requests, slots))
        };
        return run_with(spec, &cycle, observer);
    }
    let mixed = Mixed::new(spec).map_err(LoadError::Spec)?;
    let source = |thread, _slots| mixed.source(thread);
    run_with(spec, &source, observer)
}

/// [`run`], but what is sent is what each thread's source says, and not `spec.requests`.
pub fn run_with(
    spec: &LoadSpec,
    source_of: SourceOf<'_>,
    observer: &mut dyn Observer,
) -> Result<LoadResult, LoadError> {
    run_by(spec, &OnlySources(source_of), observer)
}

/// [`run_with`], where the threads take more than their sources from outside.
pub fn run_by(
    spec: &LoadSpec,
    source_of: &dyn ThreadSources,
    observer: &mut dyn Observer,
) -> Result<LoadResult, LoadError> {
    run_as(spec, source_of, None, observer)
}

/// The same with users that do a scenario, where there is one.
fn run_as(
    spec: &LoadSpec,
    source_of: &dyn ThreadSources,
    scenario: Option<Arc<Scenario>>,
    observer: &mut dyn Observer,
) -> Result<LoadResult, LoadError> {
    let thread_specs = thread_specs(spec, source_of, scenario.as_ref());
    let mut thread_specs = thread_specs.map_err(LoadError::Spec)?;
    let mut intervals = intervals_of(spec, &mut thread_specs, observer);
    let shared = Arc::new(RunState::default());
    let ended = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (said, hear) = mpsc::channel::<Tried>();
        let (turn_over, turns_over) = mpsc::channel::<Turned>();
        let threads: Vec<_> = thread_specs
            .iter()
            .map(|thread_spec| {
                let said = (said.clone(), turn_over.clone());
                let shared = Arc::clone(&shared);
                let at_end = AtEnd {
                    ended: &ended,
                    caller: thread::current(),
                };
                let body = move || {
                    let _at_end = at_end;
                    one_thread(spec, thread_spec.clone(), source_of, said, shared)
                };
                let named = thread::Builder::new().name(format!("load-{}", thread_spec.thread));
                named.spawn_scoped(scope, body).map_err(no_thread)
            })
            .collect::<Result<_, _>>()?;
        drop((said, turn_over));
        let tried: Vec<Tried> = hear.iter().collect();
        let begun = begin(spec, &tried, observer).map(|first| match first {
            Some(window) => (vec![window], false),
            None => in_turns(&tried, &turns_over, &shared, observer),
        });
        let facts = tried.first().map(Tried::facts);
        drop(tried);
        let mut interrupted = begun.as_ref().is_ok_and(|(_, interrupted)| *interrupted);
        if begun.is_ok() {
            let is_over = || ended.load(Acquire) >= threads.len();
            interrupted = watch(is_over, interrupted, &shared, observer, intervals.as_mut());
        }
        let joined: Result<Vec<Option<Counted>>, _> = threads.into_iter().map(joined).collect();
        let counted: Vec<Counted> = joined?.into_iter().flatten().collect();
        let (windows, _) = begun?;
        let (driver, fallback) = facts.unwrap_or((DriverKind::Epoll, None));
        let totals = counted.iter().map(Counted::totals);
        let totals: Option<Vec<_>> = intervals.is_some().then(|| totals.collect());
        let added = add_up(spec, driver, &windows, counted, scenario.as_deref());
        let (mut report, histogram, trace) = added;
        if let Some((intervals, totals)) = intervals.as_mut().zip(totals) {
            last_intervals(intervals, Nanos(report.window_ns), totals, observer);
        }
        report.unsent *= u64::from(!interrupted);
        let (failed_answers, observed) = checked(&thread_specs, &mut report);
        balance(&report)?;
        Ok(LoadResult {
            report,
            histogram,
            trace,
            failed_answers,
            observed,
            fallback,
            interrupted,
        })
    })
}

fn no_thread(error: std::io::Error) -> LoadError {
    LoadError::Spec(format!("no thread: {error}"))
}

/// What puts the seconds of all threads together, where the observer wants them.
fn intervals_of(
    spec: &LoadSpec,
    thread_specs: &mut [ThreadSpec],
    observer: &dyn Observer,
) -> Option<Intervals> {
    if !observer.wants_intervals() || spec.in_turns {
        return None;
    }
    let (readings, intervals) = Intervals::new(spec.threads);
    for thread_spec in thread_specs {
        thread_spec.readings = Some(readings.clone());
    }
    Some(intervals)
}

/// Tells the observer how the run goes until it is over. Returns whether the observer ended it, or had before.
fn watch(
    is_over: impl Fn() -> bool,
    mut interrupted: bool,
    shared: &RunState,
    observer: &mut dyn Observer,
    mut intervals: Option<&mut Intervals>,
) -> bool {
    while !is_over() {
        thread::park_timeout(PROGRESS_EVERY);
        while let Some(interval) = intervals.as_mut().and_then(|all| all.next()) {
            observer.interval(&interval);
        }
        let (completed, failed) = (shared.completed.load(Relaxed), shared.failed.load(Relaxed));
        if !interrupted && !observer.progress(completed, failed) {
            interrupted = true;
            shared.stop.store(true, Relaxed);
        }
        if let Some(rate) = observer.rate().filter(|rate| *rate >= 0.0) {
            shared.rate.store(rate.to_bits(), Relaxed);
        }
    }
    interrupted
}

/// Tells the observer of the seconds that are left, and of what came after them: `totals` are those of each thread at the end.
fn last_intervals(
    intervals: &mut Intervals,
    length: Nanos,
    totals: Vec<LoadTotals>,
    observer: &mut dyn Observer,
) {
    while let Some(interval) = intervals.next() {
        observer.interval(&interval);
    }
    let rest = intervals.rest(length, totals.into_iter());
    rest.iter().for_each(|rest| observer.interval(rest));
}

/// Puts what the checks that all threads share have counted into the report; returns the answers that were kept, and those that were
/// observed.
fn checked(
    thread_specs: &[ThreadSpec],
    report: &mut LoadReport,
) -> (Vec<FailedAnswer>, Vec<ObservedAnswer>) {
    let Some(first) = thread_specs.first() else {
        return (Vec::new(), Vec::new());
    };
    report.coded = first.coded.as_ref().map(|coded| coded.report());
    let mut kept = Vec::new();
    let mut observed = Vec::new();
    if let Some(checks) = &first.checks {
        report.checks = checks.counts();
        kept = checks.kept();
        observed = checks.observed();
    }
    kept.extend(first.scenario.iter().flat_map(|users| users.kept()));
    observed.extend(first.scenario.iter().flat_map(|users| users.observed()));
    (kept, observed)
}

/// What came of users in a window of `length`.
fn scenario_of(
    scenario: Option<&Scenario>,
    counted: &[Counted],
    length: Nanos,
) -> Option<ScenarioReport> {
    Some(scenario?.report(&users_of(counted)?, length))
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

/// Where thousands of answers may come together, they take half as much memory each; larger ones then come in
/// more parts.
fn recv_buffer_bytes(connections: usize) -> u32 {
    let usual = Config::default().recv_buffer_bytes;
    if connections < MANY_CONNECTIONS {
        usual
    } else {
        usual / 2
    }
}

fn one_thread(
    spec: &LoadSpec,
    thread_spec: ThreadSpec,
    source_of: &dyn ThreadSources,
    said: (mpsc::Sender<Tried>, mpsc::Sender<Turned>),
    shared: Arc<RunState>,
) -> Result<Option<Counted>, LoadError> {
    let config = Config {
        driver: spec.driver.parse().map_err(LoadError::Spec)?,
        connections_hint: thread_spec.connections as u32,
        recv_buffer_bytes: recv_buffer_bytes(thread_spec.connections),
        spin: spec.spin,
        look_before_sleep: Nanos(spec.look_before_sleep_ns),
        core_is_own: spec.cores_are_own,
        precise_timers: true,
        ..Config::default()
    };
    let ended = prony_engine::run(&config, |handle| {
        one_loop(handle, spec, thread_spec, source_of, said, shared)
    })?;
    Ok(ended)
}

async fn one_loop(
    handle: Handle,
    spec: &LoadSpec,
    thread_spec: ThreadSpec,
    source_of: &dyn ThreadSources,
    (said, turn_over): (mpsc::Sender<Tried>, mpsc::Sender<Turned>),
    shared: Arc<RunState>,
) -> Option<Counted> {
    // The slices begin with the window, which is known only once all threads have connected.
    let recorder = Recorder::new(Instant::ZERO, spec.latency_from);
    let recorder = Rc::new(RefCell::new(recorder));
    let streams = connect_all(&handle, &thread_spec, &recorder).await;
    let (go, mut gone): (_, Receiver<Arc<Window>>) = mailbox(1);
    let opened = streams.iter().flatten().count();
    let failure = recorder.borrow().first_connect_failure();
    let tls_failure = recorder.borrow().tls_failure().map(str::to_owned);
    let fallback = handle.fallback().map(str::to_owned);
    // Dropped after its one message: the caller receives until every thread has sent its own or ended.
    let _ = said.send(Tried {
        opened,
        failure,
        tls_failure,
        driver: handle.driver(),
        fallback,
        go,
    });
    drop(said);
    let window = gone.recv().await?;
    if let Some(checks) = &thread_spec.checks {
        checks.measured_in(&window);
    }
    if let Some(scenario) = &thread_spec.scenario {
        scenario.measured_in(&window);
    }
    let mut counts = Recorder::new(window.start(), spec.latency_from);
    counts.merge(&recorder.borrow());
    counts.share_continued(&recorder.borrow());
    let turns = spec.in_turns.then(|| Turns {
        next: gone,
        counts: turn_over,
        before: counts.turned(),
    });
    let slots = thread_spec.slots();
    let source = following(source_of.source(thread_spec.thread, slots), spec, slots);
    let worker = Worker::new(handle, spec, thread_spec, source, window, counts);
    Some(Rc::new(worker).work(streams, shared, turns).await)
}

/// Returns what a thread returned; resumes its panic.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// All turns of a load that is made of them: their windows, and whether the observer ended the run.
fn in_turns(
    tried: &[Tried],
    over: &mpsc::Receiver<Turned>,
    shared: &RunState,
    observer: &mut dyn Observer,
) -> (Vec<Arc<Window>>, bool) {
    let mut windows: Vec<Arc<Window>> = Vec::new();
    while let Some(turn) = observer.turn() {
        windows.push(Arc::new(Window::of(clock::monotonic(), &turn)));
        if one_turn(&windows, tried, over, shared, observer) {
            return (windows, true);
        }
    }
    (windows, false)
}

/// Lets all threads go through the last of `windows` and waits until nothing is outstanding. Tells whether the
/// observer ended the run meanwhile.
fn one_turn(
    windows: &[Arc<Window>],
    tried: &[Tried],
    over: &mpsc::Receiver<Turned>,
    shared: &RunState,
    observer: &mut dyn Observer,
) -> bool {
    let told = tried.iter().filter(|thread| {
        let window = windows.last().map(Arc::clone);
        window.is_some_and(|window| thread.go.send(window).is_ok())
    });
    let (mut missing, mut turned) = (told.count(), Turned::default());
    let mut interrupted = false;
    while missing > 0 {
        match over.recv_timeout(PROGRESS_EVERY) {
            Ok(of) => {
                missing -= 1;
                turned.completed += of.completed;
                turned.failed += of.failed;
                turned.answered += of.answered;
                turned.lost += of.lost;
                turned.closed_by_server += of.closed_by_server;
                turned.opened += of.opened;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // Threads that are gone have errors of their own, which their joins return.
            Err(mpsc::RecvTimeoutError::Disconnected) => return interrupted,
        }
        let so_far = (shared.completed.load(Relaxed), shared.failed.load(Relaxed));
        if !interrupted && !observer.progress(so_far.0, so_far.1) {
            interrupted = true;
            shared.stop.store(true, Relaxed);
        }
    }
    observer.turned(&turned);
    interrupted
}

/// Lets all threads go, unless nothing answers, or the first turn is still to come.
fn begin(
    spec: &LoadSpec,
    tried: &[Tried],
    observer: &mut dyn Observer,
) -> Result<Option<Arc<Window>>, LoadError> {
    if tried.iter().all(|thread| thread.opened == 0) {
        let failure = tried.iter().find_map(|thread| thread.failure);
        let of_tls = tried.iter().find_map(|thread| thread.tls_failure.clone());
        return Err(LoadError::Unreachable {
            address: spec.target.address.clone(),
            reason: of_tls.unwrap_or_else(|| reason(failure)),
            failure,
        });
    }
    if spec.in_turns {
        observer.connected(Instant::ZERO, Instant::ZERO);
        return Ok(None);
    }
    let head_start = if spec.pace.is_open() {
        HEAD_START
    } else {
        Nanos::ZERO
    };
    let window = Arc::new(Window::new(
        clock::monotonic() + head_start,
        Nanos(spec.warmup_ns),
        Nanos(spec.duration_ns),
    ));
    observer.connected(window.start(), window.end());
    for thread in tried {
        // A thread that is gone has an error of its own, which its join returns.
        let _ = thread.go.send(Arc::clone(&window));
    }
    Ok(Some(window))
}

/// One report from what all threads counted.
fn add_up(
    spec: &LoadSpec,
    driver: DriverKind,
    windows: &[Arc<Window>],
    counted: Vec<Counted>,
    scenario: Option<&Scenario>,
) -> (LoadReport, Histogram, Vec<RequestTimes>) {
    let start = windows.first().map_or(Instant::ZERO, |first| first.start());
    let mut all = Recorder::new(start, spec.latency_from);
    counted.iter().for_each(|of| all.merge(&of.recorder));
    let length = length_of(spec, windows, &counted, &all);
    let counts = all.counts();
    let latency_ns = all.latency().summary();
    let delay = all.delay();
    let cpu = counted
        .iter()
        .fold(CpuTime::default(), |sum, thread| sum + thread.cpu);
    let busy = cpu.worked() / (length.0.max(1) as f64 * f64::from(spec.threads));
    let report = LoadReport {
        schema: SCHEMA,
        generator: concat!("prony ", env!("CARGO_PKG_VERSION")).to_owned(),
        driver: driver.to_string(),
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
        protocol_failure: all.protocol_fault().map(|fault| fault.to_string()),
        depth: spec.depth,
        continued: spec.expects_continue.then(|| all.continued().load(Relaxed)),
        http2: http2_of(spec, &all),
        slow_periods: Some(all.slow_periods(Nanos(latency_ns.p99_9))),
        slices: all.slices(length),
        connections_opened: all.connections_opened,
        connections_closed_by_server: all.connections_closed_by_server,
        connections_stray: all.connections_stray,
        cpu_ns: cpu.all.0,
        spun_ns: cpu.spun.0,
        threads_cpu: counted.iter().enumerate().map(cpu_of).collect(),
        coalescing_ns: longest_coalescing(&counted).0,
        pace: spec.pace.clone(),
        latency_from: spec.latency_from,
        timestamps: match delay.pick_up_exact {
            0 => Timestamps::User,
            _ => spec.timestamps.unwrap_or(Timestamps::Kernel),
        },
        arrivals: arrivals(spec, &counts, &counted, busy),
        delay: Some(delay),
        corrected_ns: corrected(spec, &all, length),
        drain_cut: counted.iter().any(|thread| thread.drain_cut),
        data_ended: counted.iter().any(|thread| thread.data_ended),
        scenario: scenario_of(scenario, &counted, length),
        redirects: hops_of(&counted).map(|hops| hops.report()),
        requests_max: spec.requests_max,
        unsent: counted.iter().map(|thread| thread.unsent).sum(),
        ..LoadReport::default()
    };
    let histogram = all.latency().histogram();
    let traces = counted.into_iter().map(|thread| thread.trace);
    (report, histogram, traces.flatten().collect())
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
fn length_of(
    spec: &LoadSpec,
    windows: &[Arc<Window>],
    counted: &[Counted],
    all: &Recorder,
) -> Nanos {
    match windows {
        [window] if !spec.in_turns => end_of(window, counted, all).since(window.start()),
        windows => windows
            .iter()
            .fold(Nanos::ZERO, |sum, window| sum + window.length()),
    }
}

/// The end of the window as it was. With a number of requests that is the end of the last of them, answered or not;
/// where the server was gone, until it was given up.
fn end_of(window: &Window, counted: &[Counted], all: &Recorder) -> Instant {
    let finished = counted.iter().map(|thread| thread.finished).max();
    let finished = finished.unwrap_or(window.start());
    if finished >= window.end() {
        window.end()
    } else if counted.iter().any(|thread| thread.unsent > 0) {
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
    use prony_record::{LoadTarget, PreparedRequest};

    use prony_engine::{Arrival, Bracket};
    use prony_record::LatencyOrigin;

    use super::*;
    use crate::arrivals::ArrivalCounts;
    use crate::origin::Times;
    use crate::recorder::{Answer, Phases};
    use crate::window::LoadPhase;

    fn thread_specs(spec: &LoadSpec) -> Result<Vec<ThreadSpec>, String> {
        let source = |_thread, slots| -> Box<dyn RequestSource> {
            Box::new(Cycle::new(&[PreparedRequest::default()], slots))
        };
        super::thread_specs(spec, &OnlySources(&source), None)
    }

    fn spec(threads: u32, connections: u32) -> LoadSpec {
        let target = |address: &str| LoadTarget {
            url: format!("http://{address}/"),
            address: address.to_owned(),
        };
        LoadSpec {
            target: target("127.0.0.1:81"),
            further: vec![target("127.0.0.1:82"), target("127.0.0.1:83")],
            threads,
            connections,
            warmup_ns: 0,
            duration_ns: Nanos::from_secs(1).0,
            requests_max: None,
            timeout_ns: Nanos::from_secs(2).0,
            requests: vec![PreparedRequest {
                method: "GET".to_owned(),
                bytes: b"GET / HTTP/1.0\r\n\r\n".to_vec(),
                ..PreparedRequest::default()
            }],
            expected_status: vec![204],
            driver: "auto".to_owned(),
            exact: false,
            ..LoadSpec::default()
        }
    }

    #[test]
    fn threads_share_connections_and_requests_out_and_none_is_lost() {
        let limited = LoadSpec {
            requests_max: Some(11),
            ..spec(3, 10)
        };
        let thread_specs = thread_specs(&limited).unwrap();
        let told = thread_specs.iter().map(|thread_spec| {
            (
                thread_spec.thread,
                thread_spec.connections,
                thread_spec.first,
                thread_spec.requests_max,
            )
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [(0, 4, 0, 4), (1, 3, 4, 4), (2, 3, 7, 3)]
        );
        assert_eq!(thread_specs[0].timeout, Nanos::from_secs(2));
        let expected = &thread_specs[2].expected_status;
        assert!(expected.has(0, 204) && !expected.has(0, 200));
        let without_limit = &self::thread_specs(&spec(1, 1)).unwrap()[0];
        assert_eq!(without_limit.requests_max, u64::MAX);
    }

    #[test]
    fn connections_of_all_threads_go_to_the_addresses_in_turn() {
        let ports: Vec<u16> = thread_specs(&spec(2, 7))
            .unwrap()
            .iter()
            .flat_map(|thread_spec| {
                (0..thread_spec.connections).map(|index| thread_spec.address(index).port())
            })
            .collect();
        assert_eq!(ports, [81, 82, 83, 81, 82, 83, 81]);
    }

    #[test]
    fn a_load_without_sense_is_refused_with_the_reason() {
        let refusal = |spec: &LoadSpec| thread_specs(spec).unwrap_err();
        for (threads, connections) in [(0, 4), (3, 2)] {
            let said = refusal(&spec(threads, connections));
            assert!(said.contains("at least one connection for each"), "{said}");
        }
        assert!(thread_specs(&spec(3, 3)).is_ok());
        let nothing = LoadSpec {
            requests: Vec::new(),
            ..spec(1, 1)
        };
        assert_eq!(refusal(&nothing), "there is no request to send");
        let mut nowhere = spec(1, 1);
        nowhere.further[0].address = "here".to_owned();
        assert_eq!(refusal(&nowhere), "`here` is not an address with a port");
    }

    #[test]
    fn why_nothing_could_be_opened_is_said_by_its_kind() {
        for (failure, said) in [
            (Some(Failure::Refused), "refused"),
            (Some(Failure::Timeout), "in time"),
            (Some(Failure::Reset), "reset"),
            (Some(Failure::System), "ulimit -n"),
            (None, "ulimit -n"),
        ] {
            assert!(reason(failure).contains(said), "{failure:?}");
        }
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
        let (report, histogram, _) = add_up(
            &spec(2, 7),
            DriverKind::Epoll,
            &[Arc::clone(&window)],
            threads,
            None,
        );
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
        let (report, ..) = add_up(
            &spec(2, 2),
            DriverKind::Epoll,
            &[Arc::clone(&window)],
            threads,
            None,
        );
        assert_eq!((report.window_ns, report.rate_per_s), (500_000_000, 8.0));
        // A failure is an end, too: 3 answers and a time-out after them are no 6 a second.
        let threads = vec![counted(&window, 3, 900, 950)];
        let (report, ..) = add_up(
            &spec(1, 1),
            DriverKind::Epoll,
            &[Arc::clone(&window)],
            threads,
            None,
        );
        assert_eq!(report.window_ns, 900_000_000);
        // And where the server was waited for in vain, that time counts.
        let gone = Counted {
            unsent: 7,
            ..counted(&window, 3, 50, 950)
        };
        let (report, ..) = add_up(
            &spec(1, 1),
            DriverKind::Epoll,
            &[Arc::clone(&window)],
            vec![gone],
            None,
        );
        assert_eq!((report.window_ns, report.unsent), (950_000_000, 7));
    }

    #[test]
    fn the_kernels_stamps_are_told_only_where_there_was_one() {
        let window = window();
        let asked = LoadSpec {
            timestamps: Some(Timestamps::Kernel),
            ..spec(1, 1)
        };
        let said = |threads| {
            add_up(
                &asked,
                DriverKind::Epoll,
                &[Arc::clone(&window)],
                threads,
                None,
            )
            .0
            .timestamps
        };
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
        let (mut report, ..) = add_up(
            &spec(1, 1),
            DriverKind::Epoll,
            &[Arc::clone(&window)],
            threads,
            None,
        );
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
}
