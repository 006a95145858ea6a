//! A run: threads started, connected, let go at the same moment, and added up.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::Duration;

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Config, DriverKind, Handle, Receiver, Sender, mailbox};
use prony_record::{Histogram, LoadReport, LoadSpec, Turn, Turned};

use crate::checks::{FailedAnswer, ObservedAnswer};
use crate::connection::connect_all;
use crate::control::{Counted, Turns};
use crate::failure::{Failure, reason};
use crate::interval::{Intervals, LoadInterval, LoadTotals};
use crate::mixed::Mixed;
use crate::recorder::Recorder;
use crate::redirect::source::following;
use crate::scenario::compiled::Scenario;
use crate::scenario::source::ScenarioSource;
use crate::source::{Cycle, RequestSource};
use crate::sum::{self, PartResult};
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
/// Hears how a run goes, on the thread that called [`run`].
pub trait Observer {
    /// All connections were tried, and so many are open: the moment at which the load begins, at the earliest. What begins with it
    /// waits here. `None`: it is called off. Not asked of a load in turns.
    fn begin(&mut self, opened: usize) -> Option<Instant> {
        let _ = opened;
        Some(Instant::ZERO)
    }

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
    /// The observer did not let it begin.
    #[error("the load was called off before it began")]
    CalledOff,
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
    by_source(spec, |source_of, scenario| {
        run_as(spec, source_of, scenario, observer)
    })
}

/// Runs the threads of `spec` that belong to its [part](prony_record::LoadPart): what they measured is to be [added up](crate::WholeLoad) with the other parts.
pub fn run_part(spec: &LoadSpec, observer: &mut dyn Observer) -> Result<PartResult, LoadError> {
    by_source(spec, |source_of, scenario| {
        measure(spec, source_of, scenario, observer).map(|(part, _)| part)
    })
}

/// Calls `run` with what makes the sources of threads, and with the users where there are any.
fn by_source<T>(
    spec: &LoadSpec,
    run: impl FnOnce(&dyn ThreadSources, Option<&Arc<Scenario>>) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    if let Some(scenario) = Scenario::new(spec).map_err(LoadError::Spec)? {
        // A source that cannot be made says so before any thread begins.
        ScenarioSource::new(&scenario, spec, 0, 0).map_err(LoadError::Spec)?;
        let source = |thread, slots| -> Box<dyn RequestSource> {
            match ScenarioSource::new(&scenario, spec, thread, slots) {
                Ok(source) => Box::new(source),
                Err(why) => unreachable!("it was made before: {why}"),
            }
        };
        return run(&OnlySources(&source), Some(&scenario));
    }
    if !Mixed::is_needed(spec) {
        let cycle = |_thread, slots| -> Box<dyn RequestSource> {
            Box::new(Cycle::new(&spec.requests, slots))
        };
        return run(&OnlySources(&cycle), None);
    }
    let mixed = Mixed::new(spec).map_err(LoadError::Spec)?;
    let source = |thread, _slots| mixed.source(thread);
    run(&OnlySources(&source), None)
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
    scenario: Option<&Arc<Scenario>>,
    observer: &mut dyn Observer,
) -> Result<LoadResult, LoadError> {
    let (part, mut intervals) = measure(spec, source_of, scenario, observer)?;
    let totals = intervals.is_some().then(|| part.totals());
    let result = sum::add_up(spec, vec![part], scenario.map(|of| &**of))?;
    if let Some((intervals, totals)) = intervals.as_mut().zip(totals) {
        last_intervals(intervals, Nanos(result.report.window_ns), totals, observer);
    }
    Ok(result)
}

/// What the threads of `spec` that run here measured, and what is left of its seconds.
fn measure(
    spec: &LoadSpec,
    source_of: &dyn ThreadSources,
    scenario: Option<&Arc<Scenario>>,
    observer: &mut dyn Observer,
) -> Result<(PartResult, Option<Intervals>), LoadError> {
    let thread_specs = thread_specs(spec, source_of, scenario);
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
        let mut part = PartResult::new(&windows, counted, driver);
        (part.fallback, part.interrupted) = (fallback, interrupted);
        if let Some(first) = thread_specs.first() {
            part.take_checked(first);
        }
        Ok((part, intervals))
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
    let part = spec.part_here();
    let (readings, intervals) = Intervals::new(part.first, part.threads());
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
    let opened = tried.iter().map(|thread| thread.opened).sum();
    let earliest = observer.begin(opened).ok_or(LoadError::CalledOff)?;
    let window = Arc::new(Window::new(
        earliest.max(clock::monotonic() + head_start),
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

#[cfg(test)]
mod tests {
    use prony_record::{LoadTarget, PreparedRequest};

    use super::*;

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
}
