//! What drives one thread through its windows: connections, scheduler, and a control loop that expires requests,
//! sets coalescing, reports progress and ends the run.

use std::cell::Cell;
use std::future::poll_fn;
use std::ops::Add;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::task::Poll;

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Arrival, Handle, Receiver, Task};
use prony_record::{LoadSpec, Turned};
use serde::{Deserialize, Serialize};

use crate::arrivals::ArrivalCounts;
use crate::coalescing;
use crate::connection::{self, OpenConnection};
use crate::interval::{INTERVAL, LAST_READING, LoadTotals};
use crate::latencies::COUNT_MAX;
use crate::outstanding::SlotState;
use crate::recorder::{Recorder, SLICE};
use crate::redirect::figures::HopFigures;
use crate::scenario::figures::ScenarioFigures;
use crate::thread_spec::RunState;
use crate::trace::RequestTimes;
use crate::window::Window;
use crate::worker::{Lane, Worker};

/// After a window a server to which there was no connection for so long is taken to be gone: longer than the kernel waits before it tries a lost SYN again.
const GONE: Nanos = Nanos::from_millis(1_500);
/// How long requests may still be answered after the user has ended the run.
const CUT_AFTER: Nanos = Nanos::from_secs(1);

/// The turns of one thread, of a load that is driven in turns.
pub struct Turns {
    /// Receives each window as its turn begins.
    pub next: Receiver<Arc<Window>>,
    /// Takes the counts of each turn, once nothing is outstanding.
    pub counts: mpsc::Sender<Turned>,
    /// The totals before this turn.
    pub before: Turned,
}

impl Turns {
    /// Reports the turn that is over; `all` are the totals so far.
    fn report(&mut self, all: Turned) {
        let before = std::mem::replace(&mut self.before, all);
        // The caller may be gone, which ends the run elsewhere.
        let _ = self.counts.send(Turned {
            completed: all.completed - before.completed,
            failed: all.failed - before.failed,
            answered: all.answered - before.answered,
            lost: all.lost - before.lost,
            closed_by_server: all.closed_by_server - before.closed_by_server,
            opened: all.opened - before.opened,
        });
    }
}

/// The CPU time of a thread: all, and that of looking for news instead of sleeping.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuTime {
    pub all: Nanos,
    pub spun: Nanos,
}

impl CpuTime {
    /// Up to now, of the thread whose loop this is.
    fn read(handle: &Handle) -> CpuTime {
        CpuTime {
            all: clock::thread_cpu(),
            spun: handle.stats().spun,
        }
    }

    /// Between two readings. A thread that others interrupt while it looks has spent less than that.
    fn between(from: CpuTime, to: CpuTime) -> CpuTime {
        let all = to.all - from.all;
        CpuTime {
            all,
            spun: (to.spun - from.spun).min(all),
        }
    }

    /// The time that was not spent looking, in nanoseconds.
    pub fn worked(self) -> f64 {
        (self.all - self.spun).0 as f64
    }
}

impl Add for CpuTime {
    type Output = CpuTime;

    fn add(self, other: CpuTime) -> CpuTime {
        CpuTime {
            all: self.all + other.all,
            spun: self.spun + other.spun,
        }
    }
}

/// The readings of the CPU clock at both ends of a window.
type CpuMarks = Rc<Cell<(Option<CpuTime>, Option<CpuTime>)>>;

/// The control loop of one window.
struct ControlLoop {
    task: Task<()>,
    cpu: CpuMarks,
}

impl ControlLoop {
    /// Ends the loop; returns the CPU time of the window up to `now`.
    fn end(self, now: CpuTime) -> CpuTime {
        let (start, end) = self.cpu.get();
        drop(self.task);
        CpuTime::between(start.unwrap_or(now), end.unwrap_or(now))
    }
}

/// The results of one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    /// Its counts.
    pub recorder: Recorder,
    /// The counts of its schedule, if it had one.
    pub arrivals: Option<ArrivalCounts>,
    /// Its CPU time in the window.
    pub cpu: CpuTime,
    /// The longest wait for more completions that was in force.
    pub coalescing: Nanos,
    /// When it had nothing left to do.
    pub finished: Instant,
    /// Some requests were still outstanding when the run was cut.
    pub drain_cut: bool,
    /// The server was gone, and requests were left that should have been sent.
    pub unsent: u64,
    /// Its source had nothing more to send.
    pub data_ended: bool,
    /// Times of its first requests.
    pub trace: Vec<RequestTimes>,
    /// What came of users and their steps.
    pub scenario: Option<ScenarioFigures>,
    /// What came of redirects.
    pub hops: Option<HopFigures>,
}

impl Counted {
    /// What a thread had counted whose machine is lost, by its last totals, in a window from `start` to `end`.
    pub fn until_lost(
        spec: &LoadSpec,
        totals: &LoadTotals,
        (start, end): (Instant, Instant),
    ) -> Counted {
        let counts = &totals.counts;
        let arrivals = spec.pace.is_open().then(|| ArrivalCounts {
            scheduled: counts.sent.saturating_add(totals.waiting),
            // Of the others it is not known: that they were not answered says nothing of the server.
            in_window: counts.completed.saturating_add(counts.failed.total()),
            waiting: totals.waiting,
            waiting_max: totals.waiting,
            ..ArrivalCounts::default()
        });
        Counted {
            recorder: Recorder::until_lost(start, spec.latency_from, totals),
            arrivals,
            cpu: CpuTime::default(),
            coalescing: Nanos::ZERO,
            finished: end,
            drain_cut: totals.outstanding > 0,
            unsent: 0,
            data_ended: false,
            trace: Vec::new(),
            scenario: None,
            hops: None,
        }
    }

    /// Whether it may be what a thread counted whose window of at most `length` began at `start`.
    pub fn is_plausible(&self, start: Instant, length: Nanos) -> bool {
        let arrivals = self.arrivals.unwrap_or_default();
        let hops = self.hops.as_ref().map_or(0, |hops| hops.followed);
        let counts = [
            arrivals.scheduled,
            arrivals.in_window,
            arrivals.waiting,
            arrivals.dropped,
            arrivals.dropped_in_window,
            arrivals.waiting_max,
            self.unsent,
            self.cpu.all.0,
            self.cpu.spun.0,
        ];
        counts.iter().all(|count| *count <= COUNT_MAX)
            && self.recorder.is_plausible(start, length)
            && hops <= self.recorder.counts().sent
    }

    /// Tells its times by another clock, on which the moment `from` is `to`.
    pub fn rebase(&mut self, from: Instant, to: Instant) {
        self.recorder.rebase(from, to);
        self.finished = self.finished.rebased(from, to);
        for times in &mut self.trace {
            times.rebase(from, to);
        }
    }

    /// What it comes to at the end of the run.
    pub fn totals(&self) -> LoadTotals {
        let steps = self.scenario.as_ref().map(ScenarioFigures::so_far);
        LoadTotals {
            steps: steps.unwrap_or_default(),
            ..self.recorder.totals()
        }
    }
}

impl Worker {
    /// Drives the connections until the window is over and everything is answered or has failed; of a load in turns, until
    /// there is no other turn.
    pub async fn work(
        self: Rc<Worker>,
        opened: Vec<Option<OpenConnection>>,
        shared: Arc<RunState>,
        mut turns: Option<Turns>,
    ) -> Counted {
        let mut control = self.start_control(&shared);
        let mut connections: Vec<Task<()>> = opened
            .into_iter()
            .enumerate()
            .map(|(index, opened)| {
                self.handle
                    .spawn(connection::drive(Rc::clone(&self), index, opened))
            })
            .collect();
        // After the connections, so that the first arrivals find them.
        let scheduler = self.handle.spawn(Rc::clone(&self).schedule());
        let mut cpu = CpuTime::default();
        let finished = loop {
            self.until_over().await;
            let finished = self.handle.now();
            cpu = cpu + control.end(CpuTime::read(&self.handle));
            let Some(turns) = &mut turns else {
                break finished;
            };
            turns.report(self.recorder.borrow().turned());
            let Some(window) = turns.next.recv().await else {
                break finished;
            };
            self.open_window(window);
            control = self.start_control(&shared);
            self.restart_slots(&mut connections);
        };
        drop((scheduler, connections));
        let drain_cut = self.abandon(finished);
        let arrivals = self.count_arrivals();
        let window = Arc::clone(&self.window.borrow());
        let empty = Recorder::new(window.start(), self.recorder.borrow().latency_from());
        let mut recorder = self.recorder.replace(empty);
        recorder.close_slices(finished.min(window.end()));
        if let Some(to) = &self.thread_spec.readings {
            // The caller may be gone, which ends the run elsewhere.
            let totals = LoadTotals {
                steps: self.source.borrow().steps_so_far(),
                ..recorder.totals()
            };
            let _ = to.send((LAST_READING, self.thread_spec.thread, totals));
        }
        let is_short = self.thread_spec.requests_max != u64::MAX && self.given_up.get();
        Counted {
            recorder,
            arrivals,
            cpu,
            coalescing: self.coalescing_longest.get(),
            finished,
            drain_cut,
            data_ended: self.data_ended.get(),
            unsent: if is_short {
                self.requests_left.get()
            } else {
                0
            },
            trace: self.trace.take().into_kept(),
            scenario: self.finish_source(),
            hops: self.source.borrow_mut().finish_hops(),
        }
    }

    async fn until_over(&self) {
        poll_fn(|cx| {
            if self.is_over(self.handle.now()) {
                return Poll::Ready(());
            }
            self.over.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Starts the control loop of one window. There is none between turns, where it would wake for nothing.
    fn start_control(self: &Rc<Worker>, shared: &Arc<RunState>) -> ControlLoop {
        let cpu = Rc::new(Cell::new((None, None)));
        let control = Rc::clone(self).control(Arc::clone(shared), Rc::clone(&cpu));
        let task = self.handle.spawn(control);
        ControlLoop { task, cpu }
    }

    /// Makes `window` the current window.
    fn open_window(&self, window: Arc<Window>) {
        let end = self.window.borrow().end();
        self.recorder.borrow_mut().next_window(end, window.start());
        self.window.replace(window);
    }

    /// Restarts every idle slot, and opens another connection for each slot that has lost its own.
    fn restart_slots(self: &Rc<Worker>, connections: &mut [Task<()>]) {
        let now = self.handle.now();
        for (index, task) in connections.iter_mut().enumerate() {
            let is_left = {
                let lane = &mut self.lanes.borrow_mut()[index];
                !std::mem::replace(&mut lane.is_driven, true)
            };
            if is_left {
                let drive = connection::drive(Rc::clone(self), index, None);
                *task = self.handle.spawn(drive);
                continue;
            }
            for slot in index * self.depth..(index + 1) * self.depth {
                if self.can_send(slot) {
                    self.ready(slot, now);
                }
            }
        }
    }

    /// Counts requests that are still outstanding when the run is over. True if there were any.
    fn abandon(&self, now: Instant) -> bool {
        let mut is_any = false;
        let mut recorder = self.recorder.borrow_mut();
        for slot in 0..self.thread_spec.slots() {
            let outstanding = self.states.borrow_mut()[slot].outstanding.take();
            if let Some(outstanding) = outstanding {
                let submitted = self.submitted(slot / self.depth);
                let times = outstanding.times(submitted, Arrival::default(), now);
                let origin = times.origin(recorder.latency_from());
                let (phase, so_far) = (self.phase(origin), now.since(origin));
                recorder.abandoned(phase, so_far);
                self.abandon_step(slot, phase, so_far);
                is_any = true;
            }
        }
        is_any
    }

    /// Runs one window: reads the CPU clock at both ends, expires overdue requests, sets coalescing, stops when
    /// asked, and reports progress.
    async fn control(self: Rc<Worker>, shared: Arc<RunState>, cpu: CpuMarks) {
        let tick = Nanos((self.thread_spec.timeout.0 / 8).clamp(1_000_000, SLICE.0));
        let mut reported = (0, 0);
        let mut reading = 0;
        loop {
            let now = self.handle.now();
            if shared.stop.load(Relaxed) && !self.given_up.replace(true) {
                self.window.borrow().cut(now);
                self.cut_at.set(now + CUT_AFTER);
            }
            let (mut start, mut end) = cpu.get();
            if now >= self.window.borrow().start() {
                start.get_or_insert_with(|| CpuTime::read(&self.handle));
            }
            if now >= self.window.borrow().end() && end.is_none() {
                end = Some(CpuTime::read(&self.handle));
                self.had_idle.set(self.has_idle());
                self.stop_users(now);
            }
            cpu.set((start, end));
            self.change_rate(shared.rate.load(Relaxed), now);
            self.expire(now).await;
            self.give_up_if_unreachable(now);
            self.coalesce();
            reported = self.report_progress(&shared, reported);
            reading = self.send_readings(now, reading);
            self.check_over();
            let moments = [
                now + tick,
                self.reading_due(reading),
                self.window.borrow().start(),
                self.window.borrow().end(),
                self.cut_at.get(),
            ];
            let next = moments.into_iter().filter(|&moment| moment > now).min();
            self.handle.sleep_until(next.unwrap_or(now + tick)).await;
        }
    }

    /// When the reading with this number is due; never where nobody wants it, or the window ends before.
    fn reading_due(&self, reading: u64) -> Instant {
        let window = self.window.borrow();
        let due = window.start() + INTERVAL * (reading + 1);
        match self.thread_spec.readings.is_some() && due <= window.end() {
            true => due,
            false => Instant::NEVER,
        }
    }

    /// Sends a reading for each second of the window that is over by `now`; returns the number of the next.
    fn send_readings(&self, now: Instant, mut next: u64) -> u64 {
        while let Some(to) = &self.thread_spec.readings
            && self.reading_due(next) <= now
        {
            let waiting = self.slots.borrow().waiting();
            let totals = LoadTotals {
                connections_open: self.connections_open.get() as u64,
                outstanding: self.outstanding.get() as u64,
                waiting: waiting as u64,
                steps: self.source.borrow().steps_so_far(),
                ..self.recorder.borrow().totals()
            };
            // The caller may be gone, which ends the run elsewhere.
            let _ = to.send((next, self.thread_spec.thread, totals));
            next += 1;
        }
        next
    }

    /// Gives up where the server is gone: a run of a fixed number of requests would otherwise never end, and what waits after a window would be
    /// waited for in vain.
    fn give_up_if_unreachable(&self, now: Instant) {
        if self.connections_open.get() > 0 {
            self.connected_last.set(now);
        }
        let end = self.window.borrow().end();
        let timeout = self.thread_spec.timeout;
        let patience = match end == Instant::NEVER {
            true => timeout,
            false => timeout.min(GONE),
        };
        let is_waited_for = end == Instant::NEVER || now >= end;
        if is_waited_for && now.since(self.connected_last.get()) >= patience {
            self.given_up.set(true);
        }
    }

    /// Sets how long a turn may wait for more answers, by the latency so far.
    fn coalesce(&self) {
        if self.exact {
            return;
        }
        let median = self.recorder.borrow().median_latency();
        let (answers, wait) = coalescing::rule(self.thread_spec.slots(), median);
        self.handle.set_coalescing(answers, wait);
        let in_force = self.handle.stats().coalescing;
        self.coalescing_longest
            .set(in_force.max(self.coalescing_longest.get()));
    }

    fn report_progress(&self, shared: &RunState, reported: (u64, u64)) -> (u64, u64) {
        let (completed, failed) = self.recorder.borrow().so_far();
        shared.completed.fetch_add(completed - reported.0, Relaxed);
        shared.failed.fetch_add(failed - reported.1, Relaxed);
        (completed, failed)
    }

    /// Resets each connection whose answer is overdue. The connection's task then finds the lane expired.
    async fn expire(&self, now: Instant) {
        let timeout = self.thread_spec.timeout;
        let is_overdue = |state: &SlotState| {
            let posted = state.outstanding.map(|outstanding| outstanding.posted);
            posted.is_some_and(|posted| now.since(posted) >= timeout)
        };
        let has_overdue = |index: usize, lane: &Lane| {
            let slots = index * self.depth..(index + 1) * self.depth;
            !lane.expired && self.states.borrow()[slots].iter().any(is_overdue)
        };
        let any = |lanes: &[Lane]| {
            let mut lanes = lanes.iter().enumerate();
            lanes.any(|(index, lane)| has_overdue(index, lane))
        };
        if !any(&self.lanes.borrow()) {
            return;
        }
        // An answer that has arrived but has not been read by this thread is not late: one turn of the loop lets the
        // connections' tasks read it.
        self.handle.yield_now().await;
        for (index, lane) in self.lanes.borrow_mut().iter_mut().enumerate() {
            if has_overdue(index, lane)
                && let Some(open) = &lane.open
            {
                open.stream.reset();
                lane.expired = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use prony_engine::Config;
    use prony_record::{
        HttpProtocol, LatencyOrigin, LoadSpec, LoadTarget, PreparedRequest, Timestamps,
    };

    use super::*;
    use crate::expected::ExpectedStatus;
    use crate::origin::Times;
    use crate::recorder::{Answer, Phases};
    use crate::source::Cycle;
    use crate::thread_spec::ThreadSpec;
    use crate::window::LoadPhase;

    fn get() -> PreparedRequest {
        PreparedRequest {
            method: "GET".to_owned(),
            ..PreparedRequest::default()
        }
    }

    /// A worker of `connections` on a loop of epoll, which can wait for more on every kernel.
    fn with_worker(connections: usize, exact: bool, test: fn(&Worker)) {
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let spec = LoadSpec {
            target: LoadTarget {
                url: String::new(),
                address: address.to_string(),
            },
            threads: 1,
            connections: connections as u32,
            warmup_ns: 0,
            duration_ns: 0,
            requests_max: None,
            timeout_ns: 0,
            requests: vec![get()],
            expected_status: Vec::new(),
            driver: "epoll".to_owned(),
            exact,
            ..LoadSpec::default()
        };
        let thread_spec = ThreadSpec {
            thread: 0,
            threads: 1,
            connections,
            depth: 1,
            cookies: false,
            checks: None,
            followers: None,
            protocol: HttpProtocol::Http1,
            unix: None,
            tunnel: None,
            expects_continue: false,
            requests_max: 0,
            first: 0,
            addresses: vec![address],
            timeout: Nanos::ZERO,
            first_timeout: Nanos::ZERO,
            connecting_max: 1,
            expected_status: ExpectedStatus::new(std::iter::once(&[][..])),
            follow_max: None,
            coded: None,
            scenario: None,
            queue_max: 0,
            timestamps: Some(Timestamps::User),
            trace_max: 0,
            served_max: u64::MAX,
            sources: Vec::new(),
            secure: None,
            readings: None,
        };
        let config = Config {
            driver: spec.driver.parse().unwrap(),
            ..Config::default()
        };
        let done = prony_engine::run(&config, move |handle| async move {
            let window = Arc::new(Window::new(handle.now(), Nanos::ZERO, Nanos::ZERO));
            let recorder = Recorder::new(window.start(), LatencyOrigin::Submitted);
            let source = Box::new(Cycle::new(&spec.requests, connections));
            test(&Worker::new(
                handle,
                &spec,
                thread_spec,
                source,
                window,
                recorder,
            ));
        });
        done.unwrap();
    }

    /// So many answers took so long.
    fn answered(worker: &Worker, times: u32, latency: Nanos) {
        let done = Instant::ZERO + latency;
        for _ in 0..times {
            let answer = Answer {
                times: Times {
                    last_byte: Arrival {
                        reaped: done,
                        ..Arrival::default()
                    },
                    ..Times::default()
                },
                status: 200,
                expected: true,
            };
            let phases = Phases {
                origin: LoadPhase::Measured,
                end: LoadPhase::Measured,
            };
            worker.recorder.borrow_mut().completed(phases, &answer);
        }
    }

    fn in_force(worker: &Worker) -> Nanos {
        worker.coalesce();
        worker.handle.stats().coalescing
    }

    #[test]
    fn a_loop_waits_for_more_answers_as_the_latency_so_far_allows_and_the_longest_wait_is_told() {
        with_worker(200, false, |worker| {
            assert_eq!(in_force(worker), Nanos::ZERO);
            answered(worker, 1, Nanos::from_millis(1));
            let wait = in_force(worker);
            let median = worker.recorder.borrow().median_latency();
            assert_eq!(wait, coalescing::rule(200, median).1);
            assert!(wait > Nanos::from_micros(30), "{wait}");
            answered(worker, 9, Nanos::from_micros(400));
            let shorter = in_force(worker);
            assert!(shorter > Nanos::ZERO && shorter < wait, "{shorter}");
            answered(worker, 90, Nanos::from_secs(1));
            assert_eq!(in_force(worker), Nanos::ZERO);
            assert_eq!(worker.coalescing_longest.get(), wait);
        });
    }

    #[test]
    fn a_loop_that_is_to_be_exact_never_waits_for_more() {
        with_worker(200, true, |worker| {
            answered(worker, 1, Nanos::from_millis(1));
            assert_eq!(in_force(worker), Nanos::ZERO);
            assert_eq!(worker.coalescing_longest.get(), Nanos::ZERO);
        });
    }
}
