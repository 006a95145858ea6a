//! One thread of a run: its event loop, its slots, its schedule, its counts.
//!
//! Whatever the pace, the source and the protocol are, a request goes the same way: it is due, takes a slot (or
//! waits for one), is posted, and what comes on its connection is fed to the protocol until the answer is whole.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Arrival, Bracket, Handle, Received, Receiver, SendBuf, Stream, Task};
use prony_record::{LoadSpec, Pace, Turned};

use crate::coalescing;
use crate::connection;
use crate::failure::Failure;
use crate::http1::Http1;
use crate::origin::{Times, arrived};
use crate::pace::Schedule;
use crate::protocol::{Answered, Progress, Protocol, Reuse};
use crate::recorder::{Answer, Parts, Recorder, SLICE};
use crate::scheduler::{ArrivalCounts, Open};
use crate::share::{Share, Shared};
use crate::slots::{Due, Slots};
use crate::source::{Next, RequestSource};
use crate::trace::{RequestTimes, Trace};
use crate::window::{Part, Window};

/// How long requests may still be answered after the user has ended the run.
const CUT_AFTER: Nanos = Nanos::from_secs(1);

/// A slot and its connection.
pub struct Lane {
    /// None while there is no connection.
    pub stream: Option<Rc<Stream>>,
    protocol: Box<dyn Protocol>,
    pub outstanding: Option<Outstanding>,
    /// When the slot became ready for its next request.
    ready: Instant,
    /// The time-out has struck; what fails next fails for that.
    expired: bool,
    /// Answers on this connection.
    served: u64,
    /// A request of this slot has ended, on this connection or on one before.
    has_ended: bool,
    /// Its task is there, and opens another connection when this one is gone.
    is_driven: bool,
    local_port: u16,
}

/// A request that was posted and has not ended.
#[derive(Clone, Copy)]
pub struct Outstanding {
    due: Due,
    ready: Instant,
    posted: Instant,
    first_byte: Option<Instant>,
    /// The request itself asked for the connection to be closed.
    closes: bool,
}

impl Outstanding {
    /// Its times as far as there are any, should it end at `last_byte`.
    fn times(&self, submitted: Option<Bracket>, last_byte: Arrival, processed: Instant) -> Times {
        let at_once = Bracket {
            from: self.posted,
            to: self.posted,
        };
        Times {
            intended: self.due.intended,
            taken_up: self.due.taken_up,
            ready: self.ready,
            // One from before is that of the request before, on a connection that broke before this one went out.
            submitted: submitted
                .filter(|at| at.from >= self.posted)
                .unwrap_or(at_once),
            first_byte: self.first_byte.unwrap_or(arrived(&last_byte)),
            last_byte,
            processed,
        }
    }
}

/// A thread at work. Shared by its tasks, never leaves the thread.
pub struct Worker {
    pub(crate) handle: Handle,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) share: Share,
    pub(crate) window: RefCell<Arc<Window>>,
    source: RefCell<Box<dyn RequestSource>>,
    pub(crate) lanes: RefCell<Vec<Lane>>,
    pub(crate) slots: RefCell<Slots>,
    pub(crate) open: RefCell<Option<Open>>,
    trace: RefCell<Trace>,
    think: Nanos,
    pub(crate) requests_left: Cell<u64>,
    outstanding: Cell<usize>,
    connections_open: Cell<usize>,
    /// When there was a connection last.
    connected_last: Cell<Instant>,
    /// The user ended the run, or the server is gone: nothing is sent any more.
    pub(crate) given_up: Cell<bool>,
    /// When whoever still waits for an answer is left.
    cut_at: Cell<Instant>,
    /// Who waits for the end of the run, and who for the next request that is due.
    over: RefCell<Option<Waker>>,
    pub(crate) scheduler: RefCell<Option<Waker>>,
    /// A slot was idle when the window ended.
    pub(crate) had_idle: Cell<bool>,
    exact: bool,
    coalescing_longest: Cell<Nanos>,
}

/// The turns of a thread, of a load that is made of them.
pub struct Turns {
    /// Windows, each when it begins.
    pub next: Receiver<Arc<Window>>,
    /// Hears what came of each, when nothing is outstanding any more.
    pub said: mpsc::Sender<Turned>,
    /// What had come of all before.
    pub before: Turned,
}

impl Turns {
    fn over(&mut self, all: Turned) {
        let before = std::mem::replace(&mut self.before, all);
        // A caller that is gone wants nothing more.
        let _ = self.said.send(Turned {
            completed: all.completed - before.completed,
            failed: all.failed - before.failed,
            answered: all.answered - before.answered,
            lost: all.lost - before.lost,
            closed_by_server: all.closed_by_server - before.closed_by_server,
            opened: all.opened - before.opened,
        });
    }
}

/// The readings of the CPU clock at both ends of a window.
type CpuMarks = Rc<Cell<(Option<Nanos>, Option<Nanos>)>>;

/// What conducts one window.
struct Conducted {
    task: Task<()>,
    cpu: CpuMarks,
}

impl Conducted {
    /// Ends it; the CPU time of the window.
    fn end(self) -> Nanos {
        let (start, end) = self.cpu.get();
        let now = clock::thread_cpu();
        drop(self.task);
        end.unwrap_or(now) - start.unwrap_or(now)
    }
}

/// What a thread counted.
pub struct Counted {
    /// Its counts.
    pub recorder: Recorder,
    /// What became of its schedule, if it had one.
    pub arrivals: Option<ArrivalCounts>,
    /// Its CPU time in the window.
    pub cpu: Nanos,
    /// The longest wait for more completions that was in force.
    pub coalescing: Nanos,
    /// When nothing was left to do.
    pub finished: Instant,
    /// Some requests were still outstanding when the run was cut.
    pub drain_cut: bool,
    /// The server was gone, and requests were left that should have been sent.
    pub unsent: u64,
    /// Times of its first requests.
    pub trace: Vec<RequestTimes>,
}

impl Worker {
    /// A thread about to work through `window`, sending what `source` says.
    pub fn new(
        handle: Handle,
        spec: &LoadSpec,
        share: Share,
        source: Box<dyn RequestSource>,
        window: Arc<Window>,
        recorder: Recorder,
    ) -> Worker {
        let lane = || Lane {
            stream: None,
            protocol: Box::new(Http1::default()),
            outstanding: None,
            ready: Instant::ZERO,
            expired: false,
            served: 0,
            has_ended: false,
            is_driven: true,
            local_port: 0,
        };
        let mut lanes = Vec::new();
        lanes.resize_with(share.connections, lane);
        let begin = window.begin();
        let schedule = Schedule::new(&spec.pace, spec.seed, share.thread, share.threads);
        let open = schedule.map(|schedule| Open::new(schedule, begin));
        Worker {
            connected_last: Cell::new(handle.now()),
            handle,
            recorder: RefCell::new(recorder),
            source: RefCell::new(source),
            lanes: RefCell::new(lanes),
            slots: RefCell::new(Slots::new(share.connections, share.queue_max)),
            open: RefCell::new(open),
            trace: RefCell::new(Trace::new(share.trace_max)),
            think: match spec.pace {
                Pace::Closed { think_ns } => Nanos(think_ns),
                _ => Nanos::ZERO,
            },
            requests_left: Cell::new(share.requests_max),
            outstanding: Cell::new(0),
            connections_open: Cell::new(0),
            given_up: Cell::new(false),
            cut_at: Cell::new(Instant::NEVER),
            over: RefCell::default(),
            scheduler: RefCell::default(),
            had_idle: Cell::default(),
            exact: spec.exact,
            coalescing_longest: Cell::default(),
            share,
            window: RefCell::new(window),
        }
    }

    /// Drives `streams` until the window is over and everything is answered or has failed; of a load in turns, until
    /// there is no other turn.
    pub async fn work(
        self: Rc<Worker>,
        streams: Vec<Option<Stream>>,
        shared: Arc<Shared>,
        mut turns: Option<Turns>,
    ) -> Counted {
        let mut conducted = self.conducted(&shared);
        let mut connections: Vec<Task<()>> = streams
            .into_iter()
            .enumerate()
            .map(|(index, stream)| {
                self.handle
                    .spawn(connection::drive(Rc::clone(&self), index, stream))
            })
            .collect();
        // After the connections, so that the first arrivals find them.
        let scheduler = self.handle.spawn(Rc::clone(&self).schedule());
        let mut cpu = Nanos::ZERO;
        let finished = loop {
            self.until_over().await;
            let finished = self.handle.now();
            cpu += conducted.end();
            let Some(turns) = &mut turns else {
                break finished;
            };
            turns.over(self.recorder.borrow().turned());
            let Some(window) = turns.next.recv().await else {
                break finished;
            };
            self.open(window);
            conducted = self.conducted(&shared);
            self.go_on_everywhere(&mut connections);
        };
        drop((scheduler, connections));
        let drain_cut = self.abandon(finished);
        let arrivals = self.count_arrivals();
        let window = Arc::clone(&self.window.borrow());
        let empty = Recorder::new(window.start(), self.recorder.borrow().latency_from());
        let mut recorder = self.recorder.replace(empty);
        recorder.close_slices(finished.min(window.end()));
        let is_short = self.share.requests_max != u64::MAX && self.given_up.get();
        Counted {
            recorder,
            arrivals,
            cpu,
            coalescing: self.coalescing_longest.get(),
            finished,
            drain_cut,
            unsent: if is_short {
                self.requests_left.get()
            } else {
                0
            },
            trace: self.trace.take().into_kept(),
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

    /// The conductor of one window, which has no other while it is idle: it would wake for nothing.
    fn conducted(self: &Rc<Worker>, shared: &Arc<Shared>) -> Conducted {
        let cpu = Rc::new(Cell::new((None, None)));
        let conductor = Rc::clone(self).conduct(Arc::clone(shared), Rc::clone(&cpu));
        let task = self.handle.spawn(conductor);
        Conducted { task, cpu }
    }

    /// From now on `window` is the window.
    fn open(&self, window: Arc<Window>) {
        let end = self.window.borrow().end();
        self.recorder.borrow_mut().next_window(end, window.start());
        self.window.replace(window);
    }

    /// Every slot that stood still sends again; whose connection is gone gets another.
    fn go_on_everywhere(self: &Rc<Worker>, connections: &mut [Task<()>]) {
        let now = self.handle.now();
        for (index, task) in connections.iter_mut().enumerate() {
            let (is_idle, is_left) = {
                let lane = &mut self.lanes.borrow_mut()[index];
                let is_left = !std::mem::replace(&mut lane.is_driven, true);
                let is_idle = lane.stream.is_some() && lane.outstanding.is_none();
                (is_idle, is_left)
            };
            if is_left {
                let drive = connection::drive(Rc::clone(self), index, None);
                *task = self.handle.spawn(drive);
            } else if is_idle {
                self.ready(index, now);
            }
        }
    }

    /// The task of connection `index` has ended, as no other is wanted now.
    pub(crate) fn left(&self, index: usize) {
        self.lanes.borrow_mut()[index].is_driven = false;
    }

    /// Counts what is outstanding although the run is over. Tells whether there was any.
    fn abandon(&self, now: Instant) -> bool {
        let mut is_any = false;
        let mut recorder = self.recorder.borrow_mut();
        for lane in self.lanes.borrow_mut().iter_mut() {
            if let Some(outstanding) = lane.outstanding.take() {
                let submitted = lane.stream.as_ref().and_then(|stream| stream.submitted());
                let times = outstanding.times(submitted, Arrival::default(), now);
                let origin = times.origin(recorder.latency_from());
                recorder.abandoned(self.part(origin), now.since(origin));
                is_any = true;
            }
        }
        is_any
    }

    /// Reads the CPU clock at both ends of the window, strikes the time-outs,
    /// sets how long turns may wait for more, hears that the run is to stop, and says how far it has come.
    async fn conduct(self: Rc<Worker>, shared: Arc<Shared>, cpu: CpuMarks) {
        let tick = Nanos((self.share.timeout.0 / 8).clamp(1_000_000, SLICE.0));
        let mut said = (0, 0);
        loop {
            let now = self.handle.now();
            if shared.stop.load(Relaxed) && !self.given_up.replace(true) {
                self.window.borrow().cut(now);
                self.cut_at.set(now + CUT_AFTER);
            }
            let (mut start, mut end) = cpu.get();
            if now >= self.window.borrow().start() {
                start.get_or_insert_with(clock::thread_cpu);
            }
            if now >= self.window.borrow().end() && end.is_none() {
                end = Some(clock::thread_cpu());
                self.had_idle.set(self.has_idle());
            }
            cpu.set((start, end));
            self.change_rate(shared.rate.load(Relaxed), now);
            self.strike_timeouts(now).await;
            self.leave_a_server_that_is_gone(now);
            self.coalesce();
            said = self.say_how_far(&shared, said);
            self.check_over();
            let moments = [
                now + tick,
                self.window.borrow().start(),
                self.window.borrow().end(),
                self.cut_at.get(),
            ];
            let next = moments.into_iter().filter(|&moment| moment > now).min();
            self.handle.sleep_until(next.unwrap_or(now + tick)).await;
        }
    }

    /// A run that ends with a number of requests would never end if nobody is there to answer them.
    fn leave_a_server_that_is_gone(&self, now: Instant) {
        if self.connections_open.get() > 0 {
            self.connected_last.set(now);
        }
        let is_endless = self.window.borrow().end() == Instant::NEVER;
        if is_endless && now.since(self.connected_last.get()) >= self.share.timeout {
            self.given_up.set(true);
        }
    }

    /// Sets how long a turn may wait for more answers, by the latency so far.
    fn coalesce(&self) {
        if self.exact {
            return;
        }
        let median = self.recorder.borrow().median_latency();
        let (answers, wait) = coalescing::rule(self.share.connections, median);
        self.handle.set_coalescing(answers, wait);
        let in_force = self.handle.stats().coalescing;
        self.coalescing_longest
            .set(in_force.max(self.coalescing_longest.get()));
    }

    fn say_how_far(&self, shared: &Shared, said: (u64, u64)) -> (u64, u64) {
        let (completed, failed) = self.recorder.borrow().so_far();
        shared.completed.fetch_add(completed - said.0, Relaxed);
        shared.failed.fetch_add(failed - said.1, Relaxed);
        (completed, failed)
    }

    /// Resets every connection whose answer is overdue. Its task finds the lane expired.
    async fn strike_timeouts(&self, now: Instant) {
        let timeout = self.share.timeout;
        let is_overdue = |lane: &Lane| {
            let posted = lane.outstanding.map(|outstanding| outstanding.posted);
            !lane.expired && posted.is_some_and(|posted| now.since(posted) >= timeout)
        };
        if !self.lanes.borrow().iter().any(is_overdue) {
            return;
        }
        // An answer that is here already, and which only this thread has not looked at, was
        // not late: the kernel is asked, and the connections' tasks have their turn.
        self.handle.yield_now().await;
        for lane in self.lanes.borrow_mut().iter_mut() {
            if is_overdue(lane)
                && let Some(stream) = &lane.stream
            {
                lane.expired = true;
                stream.reset();
            }
        }
    }

    /// What the moment `at` belongs to.
    pub(crate) fn part(&self, at: Instant) -> Part {
        self.window.borrow().part(at)
    }

    /// Whether a slot of a closed loop may send at `now`.
    fn may_start(&self, now: Instant) -> bool {
        self.requests_left.get() > 0 && !self.given_up.get() && self.part(now) != Part::Drain
    }

    /// Whether arrivals that wait may still be sent at `now`.
    fn may_drain(&self, now: Instant) -> bool {
        !self.given_up.get() && now < self.window.borrow().end() + self.share.timeout
    }

    /// Whether a connection that is gone is to be opened again at `now`.
    pub(crate) fn wants_connections(&self, now: Instant) -> bool {
        if !self.is_open() {
            return self.may_start(now);
        }
        // An open load lasts for the whole window, whether or not it has another arrival; without an end, as long as
        // it has one.
        let end = self.window.borrow().end();
        let lasts = self.may_draw() && now < end && end < Instant::NEVER;
        lasts || self.draws() || (self.slots.borrow().waiting() > 0 && self.may_drain(now))
    }

    /// Whether nothing is outstanding and nothing more will be sent.
    fn is_over(&self, now: Instant) -> bool {
        if now >= self.cut_at.get() {
            return true;
        }
        if self.outstanding.get() > 0 {
            return false;
        }
        !self.wants_connections(now)
    }

    /// Wakes who waits for the end, if it has come.
    fn check_over(&self) {
        if self.is_over(self.handle.now())
            && let Some(waker) = self.over.take()
        {
            waker.wake();
        }
    }

    fn has_idle(&self) -> bool {
        let lanes = self.lanes.borrow();
        let mut idle = lanes.iter().filter(|lane| lane.outstanding.is_none());
        idle.any(|lane| lane.stream.is_some())
    }

    /// Connection `index` is `stream` from now on.
    pub(crate) fn connected(&self, index: usize, stream: &Rc<Stream>) {
        let now = self.handle.now();
        {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.stream = Some(Rc::clone(stream));
            lane.protocol = Box::new(Http1::default());
            (lane.expired, lane.served) = (false, 0);
            if self.share.trace_max > 0 {
                lane.local_port = stream.local_addr().map_or(0, |address| address.port());
            }
        }
        self.connections_open.set(self.connections_open.get() + 1);
        self.ready(index, now);
    }

    /// The slot of connection `index` is ready for another request at `now`.
    pub(crate) fn ready(&self, index: usize, now: Instant) {
        self.lanes.borrow_mut()[index].ready = now;
        if self.is_open() {
            if self.may_drain(now) {
                let waited = self.slots.borrow_mut().ready(index);
                if let Some(due) = waited {
                    self.send(index, due, now);
                }
            }
        } else if self.think > Nanos::ZERO {
            self.think_until(index, now + self.pause_of(index));
        } else {
            self.go_on(index, now, now);
        }
    }

    /// How long slot `index` thinks. Before its first request a part of that, by its number: users who all began at
    /// the same moment would go on in step.
    fn pause_of(&self, index: usize) -> Nanos {
        if self.lanes.borrow()[index].has_ended {
            return self.think;
        }
        let all = self.share.connections as u128;
        Nanos((u128::from(self.think.0) * index as u128 / all) as u64)
    }

    fn think_until(&self, index: usize, due: Instant) {
        self.slots.borrow_mut().think(index, due);
        if let Some(waker) = self.scheduler.take() {
            waker.wake();
        }
    }

    /// A slot of a closed loop sends what was due at `intended`, if it still may.
    pub(crate) fn go_on(&self, index: usize, intended: Instant, now: Instant) {
        let is_free = {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.ready = intended;
            lane.stream.is_some() && lane.outstanding.is_none()
        };
        if is_free && self.may_start(now) {
            self.requests_left.set(self.requests_left.get() - 1);
            let due = Due {
                intended,
                taken_up: intended,
            };
            self.send(index, due, now);
        }
    }

    /// Posts the next request of slot `index`.
    pub(crate) fn send(&self, index: usize, due: Due, now: Instant) {
        let mut source = self.source.borrow_mut();
        let request = match source.next(index) {
            Next::Send(request) => request,
            Next::After(pause) => {
                drop(source);
                self.take_back(due);
                return self.think_until(index, now + pause);
            }
            Next::Nothing => return self.take_back(due),
        };
        let mut lanes = self.lanes.borrow_mut();
        let lane = &mut lanes[index];
        lane.outstanding = Some(Outstanding {
            due,
            ready: lane.ready,
            posted: now,
            first_byte: None,
            closes: request.closes,
        });
        self.outstanding.set(self.outstanding.get() + 1);
        let part = self.part(now);
        self.recorder.borrow_mut().sent(part, request.bytes.len());
        let Some(stream) = &lane.stream else { return };
        // What fails here is told by what is received on this connection, too, and counted there.
        if lane.protocol.sent(request).is_err() {
            stream.reset();
        } else {
            let _told_by_recv = stream.post(SendBuf::from(Rc::clone(&request.bytes)));
        }
    }

    /// A request is not sent by the slot that should have.
    fn take_back(&self, due: Due) {
        if self.is_open() {
            self.slots.borrow_mut().put_back(due);
        } else {
            self.requests_left.set(self.requests_left.get() + 1);
        }
    }

    /// Takes in what came on connection `index`. True when it can be used further.
    pub(crate) fn received(&self, index: usize, received: io::Result<Received>) -> bool {
        let ended = self.feed(index, received);
        let is_of_use = match ended {
            Fed::More => return true,
            Fed::Answered(answered) => self.answered(index, answered),
            Fed::Failed(failure) => self.failed(index, failure),
            Fed::IdleEnd => {
                let lanes = self.lanes.borrow();
                let served = lanes[index].served > 0;
                self.recorder.borrow_mut().connections_closed_by_server += u64::from(served);
                false
            }
            Fed::Unasked => {
                self.recorder.borrow_mut().connections_stray += 1;
                false
            }
        };
        if self.outstanding.get() == 0 {
            self.check_over();
        }
        is_of_use
    }

    /// Hands what came to the protocol.
    fn feed(&self, index: usize, received: io::Result<Received>) -> Fed {
        let mut lanes = self.lanes.borrow_mut();
        let lane = &mut lanes[index];
        let Some(outstanding) = &mut lane.outstanding else {
            return match received {
                Ok(bytes) if !bytes.is_empty() => {
                    let part = self.part(bytes.arrival().reaped);
                    self.recorder.borrow_mut().received(part, bytes.len());
                    Fed::Unasked
                }
                _ => Fed::IdleEnd,
            };
        };
        let bytes = match received {
            Ok(bytes) => bytes,
            Err(error) => return Fed::Failed(Failure::from(&error)),
        };
        let arrival = bytes.arrival();
        if bytes.is_empty() {
            return match lane.protocol.ended() {
                Ok(answered) => Fed::Answered((answered, arrival)),
                Err(failure) => Fed::Failed(failure),
            };
        }
        let part = self.part(arrived(&arrival));
        self.recorder.borrow_mut().received(part, bytes.len());
        outstanding.first_byte.get_or_insert(arrived(&arrival));
        match lane.protocol.received(&bytes) {
            Ok(Progress::Pending) => Fed::More,
            Ok(Progress::Answered(answered)) => Fed::Answered((answered, arrival)),
            Err(failure) => Fed::Failed(failure),
        }
    }

    /// The request on connection `index` was answered. True when the connection can carry another.
    fn answered(&self, index: usize, (answered, last_byte): (Answered, Arrival)) -> bool {
        let processed = self.handle.now();
        let (times, closes, trace) = {
            let mut lanes = self.lanes.borrow_mut();
            let lane = &mut lanes[index];
            let Some(outstanding) = lane.outstanding else {
                return false;
            };
            let submitted = lane.stream.as_ref().and_then(|stream| stream.submitted());
            let times = outstanding.times(submitted, last_byte, processed);
            if answered.is_right {
                lane.outstanding = None;
                lane.served += 1;
                lane.has_ended = true;
            }
            (times, outstanding.closes, lane.local_port)
        };
        if !answered.is_right {
            return self.failed(index, Failure::WrongAnswer);
        }
        self.outstanding.set(self.outstanding.get() - 1);
        let answer = Answer {
            times,
            status: answered.status,
            expected: self.expects(answered.status),
        };
        {
            let mut recorder = self.recorder.borrow_mut();
            let parts = Parts {
                origin: self.part(times.origin(recorder.latency_from())),
                end: self.part(times.done()),
            };
            recorder.completed(parts, &answer);
            match answered.reuse {
                Reuse::ClosedByServer if !closes => recorder.connections_closed_by_server += 1,
                Reuse::Stray => recorder.connections_stray += 1,
                Reuse::Yes | Reuse::ClosedByServer => {}
            }
        }
        let connection = (self.share.first + index) as u32;
        self.trace.borrow_mut().keep(connection, trace, &answer);
        self.source.borrow_mut().ended(index, Ok(answered.status));
        if answered.reuse != Reuse::Yes {
            return false;
        }
        self.ready(index, processed);
        true
    }

    /// The request on connection `index` has failed, and the connection with it.
    fn failed(&self, index: usize, failure: Failure) -> bool {
        let now = self.handle.now();
        let (outstanding, submitted, expired, served) = {
            let lane = &mut self.lanes.borrow_mut()[index];
            let submitted = lane.stream.as_ref().and_then(|stream| stream.submitted());
            (
                lane.outstanding.take(),
                submitted,
                lane.expired,
                lane.served,
            )
        };
        let Some(outstanding) = outstanding else {
            return false;
        };
        self.lanes.borrow_mut()[index].has_ended = true;
        self.outstanding.set(self.outstanding.get() - 1);
        let times = outstanding.times(submitted, Arrival::default(), now);
        let kind = if expired { Failure::Timeout } else { failure };
        {
            let mut recorder = self.recorder.borrow_mut();
            let parts = Parts {
                origin: self.part(times.origin(recorder.latency_from())),
                end: self.part(now),
            };
            recorder.failed(parts, kind, now);
            let is_closed = matches!(failure, Failure::Closed | Failure::Reset);
            if served > 0 && outstanding.first_byte.is_none() && is_closed && !expired {
                recorder.connections_closed_by_server += 1;
            }
        }
        self.source.borrow_mut().ended(index, Err(kind));
        false
    }

    /// Connection `index` is gone.
    pub(crate) fn disconnected(&self, index: usize) {
        self.connections_open.set(self.connections_open.get() - 1);
        self.lanes.borrow_mut()[index].stream = None;
    }

    /// Whether `status` counts as expected.
    fn expects(&self, status: u16) -> bool {
        let expected = &self.share.expected_status;
        if expected.is_empty() {
            (200..400).contains(&status)
        } else {
            expected.contains(&status)
        }
    }
}

/// What came of some bytes.
enum Fed {
    More,
    Answered((Answered, Arrival)),
    Failed(Failure),
    /// The connection ended between two requests.
    IdleEnd,
    /// Bytes that nobody asked for.
    Unasked,
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use prony_engine::Config;
    use prony_record::{LatencyOrigin, LoadTarget, PreparedRequest, Timestamps};

    use super::*;
    use crate::source::Cycle;

    /// A worker of `connections` on a loop of epoll, which can wait for more on every kernel.
    fn with_worker(connections: usize, exact: bool, test: fn(&Worker)) {
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let spec = LoadSpec {
            target: LoadTarget {
                url: String::new(),
                address: address.to_string(),
            },
            further: Vec::new(),
            threads: 1,
            connections: connections as u32,
            warmup_ns: 0,
            duration_ns: 0,
            requests_max: None,
            timeout_ns: 0,
            requests: vec![PreparedRequest {
                method: "GET".to_owned(),
                bytes: Vec::new(),
                expect: None,
            }],
            expected_status: Vec::new(),
            driver: "epoll".to_owned(),
            exact,
            ..LoadSpec::default()
        };
        let share = Share {
            thread: 0,
            threads: 1,
            connections,
            requests_max: 0,
            first: 0,
            addresses: vec![address],
            timeout: Nanos::ZERO,
            first_timeout: Nanos::ZERO,
            connecting_max: 1,
            expected_status: Vec::new(),
            queue_max: 0,
            timestamps: Timestamps::User,
            trace_max: 0,
        };
        let config = Config {
            driver: spec.driver.parse().unwrap(),
            ..Config::default()
        };
        let done = prony_engine::run(&config, move |handle| async move {
            let window = Arc::new(Window::new(handle.now(), Nanos::ZERO, Nanos::ZERO));
            let recorder = Recorder::new(window.start(), LatencyOrigin::Submitted);
            let source = Box::new(Cycle::new(&spec.requests, connections));
            test(&Worker::new(handle, &spec, share, source, window, recorder));
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
            let parts = Parts {
                origin: Part::Measured,
                end: Part::Measured,
            };
            worker.recorder.borrow_mut().completed(parts, &answer);
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
