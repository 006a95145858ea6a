//! The request path of one thread: slots, connections and counts.
//!
//! Whatever the pace, the source and the protocol, every request takes the same path: it becomes due, takes a slot
//! (or waits for one), is posted, and what its connection receives is fed to the protocol until the answer is whole.
//! Not for: when requests are due (`scheduler`), opening connections (`connection`), or when to end (`control`).

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use prony_base::{Instant, Nanos};
use prony_engine::{Arrival, Bracket, Handle, Received, SendBuf, Stream};
use prony_record::{LoadSpec, Pace};

use crate::arrivals::Open;
use crate::failure::Failure;
use crate::http1::Http1;
use crate::origin::{Times, arrived};
use crate::pace::Schedule;
use crate::protocol::{Answered, Progress, Protocol, Reuse};
use crate::recorder::{Answer, Phases, Recorder};
use crate::slots::{Due, Slots};
use crate::source::{Next, RequestSource};
use crate::thread_spec::ThreadSpec;
use crate::trace::Trace;
use crate::window::{LoadPhase, Window};

/// A slot and its connection.
pub struct Lane {
    /// None while there is no connection.
    pub stream: Option<Rc<Stream>>,
    protocol: Box<dyn Protocol>,
    pub outstanding: Option<Outstanding>,
    /// When the slot became ready for its next request.
    ready: Instant,
    /// The request has timed out; the failure that follows counts as that.
    pub(crate) expired: bool,
    /// Answers received on this connection.
    served: u64,
    /// A request of this slot has ended, on this connection or an earlier one.
    has_ended: bool,
    /// Its task is running, and opens another connection when this one is gone.
    pub(crate) is_driven: bool,
    local_port: u16,
}

/// A request that was posted and has not ended.
#[derive(Clone, Copy)]
pub struct Outstanding {
    due: Due,
    ready: Instant,
    pub(crate) posted: Instant,
    first_byte: Option<Instant>,
    /// The request itself asked for the connection to be closed.
    closes: bool,
}

impl Outstanding {
    /// Its times so far, if it ends at `last_byte`.
    pub(crate) fn times(
        &self,
        submitted: Option<Bracket>,
        last_byte: Arrival,
        processed: Instant,
    ) -> Times {
        let at_once = Bracket {
            from: self.posted,
            to: self.posted,
        };
        Times {
            intended: self.due.intended,
            taken_up: self.due.taken_up,
            ready: self.ready,
            // An earlier stamp is the previous request's: the connection broke before this one went out.
            submitted: submitted
                .filter(|at| at.from >= self.posted)
                .unwrap_or(at_once),
            first_byte: self.first_byte.unwrap_or(arrived(&last_byte)),
            last_byte,
            processed,
        }
    }
}

/// The state of one load thread. Its tasks thread_spec it; it never leaves the thread.
pub struct Worker {
    pub(crate) handle: Handle,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) thread_spec: ThreadSpec,
    pub(crate) window: RefCell<Arc<Window>>,
    source: RefCell<Box<dyn RequestSource>>,
    pub(crate) lanes: RefCell<Vec<Lane>>,
    pub(crate) slots: RefCell<Slots>,
    pub(crate) open: RefCell<Option<Open>>,
    pub(crate) trace: RefCell<Trace>,
    think: Nanos,
    pub(crate) requests_left: Cell<u64>,
    pub(crate) outstanding: Cell<usize>,
    pub(crate) connections_open: Cell<usize>,
    /// When a connection was last open.
    pub(crate) connected_last: Cell<Instant>,
    /// The user ended the run, or the server is gone: nothing more is sent.
    pub(crate) given_up: Cell<bool>,
    /// When requests that are still outstanding are abandoned.
    pub(crate) cut_at: Cell<Instant>,
    /// Wakes what waits for the end of the run.
    pub(crate) over: RefCell<Option<Waker>>,
    /// Wakes the scheduler.
    pub(crate) scheduler: RefCell<Option<Waker>>,
    /// A slot was idle when the window ended.
    pub(crate) had_idle: Cell<bool>,
    pub(crate) exact: bool,
    pub(crate) coalescing_longest: Cell<Nanos>,
}

impl Worker {
    /// A thread that is about to drive load through `window`, with requests from `source`.
    pub fn new(
        handle: Handle,
        spec: &LoadSpec,
        thread_spec: ThreadSpec,
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
        lanes.resize_with(thread_spec.connections, lane);
        let begin = window.begin();
        let schedule = Schedule::new(
            &spec.pace,
            spec.seed,
            thread_spec.thread,
            thread_spec.threads,
        );
        let open = schedule.map(|schedule| Open::new(schedule, begin));
        Worker {
            connected_last: Cell::new(handle.now()),
            handle,
            recorder: RefCell::new(recorder),
            source: RefCell::new(source),
            lanes: RefCell::new(lanes),
            slots: RefCell::new(Slots::new(thread_spec.connections, thread_spec.queue_max)),
            open: RefCell::new(open),
            trace: RefCell::new(Trace::new(thread_spec.trace_max)),
            think: match spec.pace {
                Pace::Closed { think_ns } => Nanos(think_ns),
                _ => Nanos::ZERO,
            },
            requests_left: Cell::new(thread_spec.requests_max),
            outstanding: Cell::new(0),
            connections_open: Cell::new(0),
            given_up: Cell::new(false),
            cut_at: Cell::new(Instant::NEVER),
            over: RefCell::default(),
            scheduler: RefCell::default(),
            had_idle: Cell::default(),
            exact: spec.exact,
            coalescing_longest: Cell::default(),
            thread_spec,
            window: RefCell::new(window),
        }
    }

    /// Notes that the task of connection `index` has ended, since no further connection is wanted.
    pub(crate) fn retired(&self, index: usize) {
        self.lanes.borrow_mut()[index].is_driven = false;
    }

    /// What the moment `at` belongs to.
    pub(crate) fn phase(&self, at: Instant) -> LoadPhase {
        self.window.borrow().phase(at)
    }

    /// Whether requests start by a schedule.
    pub(crate) fn is_open(&self) -> bool {
        self.open.borrow().is_some()
    }

    /// Whether arrivals may still be drawn.
    pub(crate) fn may_draw(&self) -> bool {
        !self.given_up.get() && self.requests_left.get() > 0
    }

    /// Whether arrivals are still to be drawn.
    pub(crate) fn draws(&self) -> bool {
        let open = self.open.borrow();
        let next = open.as_ref().and_then(|open| open.next);
        self.may_draw() && next.is_some_and(|next| next < self.window.borrow().end())
    }

    /// Whether a slot of a closed loop may send at `now`.
    fn may_start(&self, now: Instant) -> bool {
        self.requests_left.get() > 0 && !self.given_up.get() && self.phase(now) != LoadPhase::Drain
    }

    /// Whether arrivals that wait may still be sent at `now`.
    fn may_drain(&self, now: Instant) -> bool {
        !self.given_up.get() && now < self.window.borrow().end() + self.thread_spec.timeout
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
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        if now >= self.cut_at.get() {
            return true;
        }
        if self.outstanding.get() > 0 {
            return false;
        }
        !self.wants_connections(now)
    }

    /// Wakes the control loop if the run is over.
    pub(crate) fn check_over(&self) {
        if self.is_over(self.handle.now())
            && let Some(waker) = self.over.take()
        {
            waker.wake();
        }
    }

    pub(crate) fn has_idle(&self) -> bool {
        let lanes = self.lanes.borrow();
        let mut idle = lanes.iter().filter(|lane| lane.outstanding.is_none());
        idle.any(|lane| lane.stream.is_some())
    }

    /// Makes `stream` connection `index`.
    pub(crate) fn connected(&self, index: usize, stream: &Rc<Stream>) {
        let now = self.handle.now();
        {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.stream = Some(Rc::clone(stream));
            lane.protocol = Box::new(Http1::default());
            (lane.expired, lane.served) = (false, 0);
            if self.thread_spec.trace_max > 0 {
                lane.local_port = stream.local_addr().map_or(0, |address| address.port());
            }
        }
        self.connections_open.set(self.connections_open.get() + 1);
        self.ready(index, now);
    }

    /// Makes the slot of connection `index` ready for another request at `now`.
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
            self.send_next(index, now, now);
        }
    }

    /// The think time of slot `index`. Before its first request, a fraction by its number: slots that all started at
    /// the same moment would stay in step.
    fn pause_of(&self, index: usize) -> Nanos {
        if self.lanes.borrow()[index].has_ended {
            return self.think;
        }
        let all = self.thread_spec.connections as u128;
        Nanos((u128::from(self.think.0) * index as u128 / all) as u64)
    }

    fn think_until(&self, index: usize, due: Instant) {
        self.slots.borrow_mut().think(index, due);
        if let Some(waker) = self.scheduler.take() {
            waker.wake();
        }
    }

    /// Sends the next request of a closed-loop slot, which was due at `intended`, if it still may.
    pub(crate) fn send_next(&self, index: usize, intended: Instant, now: Instant) {
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
                self.put_back(due);
                return self.think_until(index, now + pause);
            }
            Next::Nothing => return self.put_back(due),
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
        let phase = self.phase(now);
        self.recorder.borrow_mut().sent(phase, request.bytes.len());
        let Some(stream) = &lane.stream else { return };
        // A failure here is also received on this connection, and counted there.
        if lane.protocol.sent(request).is_err() {
            stream.reset();
        } else {
            let _counted_on_receive = stream.post(SendBuf::from(Rc::clone(&request.bytes)));
        }
    }

    /// Returns a request that its slot does not send.
    fn put_back(&self, due: Due) {
        if self.is_open() {
            self.slots.borrow_mut().put_back(due);
        } else {
            self.requests_left.set(self.requests_left.get() + 1);
        }
    }

    /// Handles what connection `index` received. True while the connection can be used further.
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
            Fed::Stray => {
                self.recorder.borrow_mut().connections_stray += 1;
                false
            }
        };
        if self.outstanding.get() == 0 {
            self.check_over();
        }
        is_of_use
    }

    /// Feeds what was received to the protocol.
    fn feed(&self, index: usize, received: io::Result<Received>) -> Fed {
        let mut lanes = self.lanes.borrow_mut();
        let lane = &mut lanes[index];
        let Some(outstanding) = &mut lane.outstanding else {
            return match received {
                Ok(bytes) if !bytes.is_empty() => {
                    let phase = self.phase(bytes.arrival().reaped);
                    self.recorder.borrow_mut().received(phase, bytes.len());
                    Fed::Stray
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
        let phase = self.phase(arrived(&arrival));
        self.recorder.borrow_mut().received(phase, bytes.len());
        outstanding.first_byte.get_or_insert(arrived(&arrival));
        match lane.protocol.received(&bytes) {
            Ok(Progress::Pending) => Fed::More,
            Ok(Progress::Answered(answered)) => Fed::Answered((answered, arrival)),
            Err(failure) => Fed::Failed(failure),
        }
    }

    /// Counts the answered request of connection `index`. True when the connection can carry another.
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
            let phases = Phases {
                origin: self.phase(times.origin(recorder.latency_from())),
                end: self.phase(times.done()),
            };
            recorder.completed(phases, &answer);
            match answered.reuse {
                Reuse::ClosedByServer if !closes => recorder.connections_closed_by_server += 1,
                Reuse::Stray => recorder.connections_stray += 1,
                Reuse::Yes | Reuse::ClosedByServer => {}
            }
        }
        let connection = (self.thread_spec.first + index) as u32;
        self.trace.borrow_mut().keep(connection, trace, &answer);
        self.source.borrow_mut().ended(index, Ok(answered.status));
        if answered.reuse != Reuse::Yes {
            return false;
        }
        self.ready(index, processed);
        true
    }

    /// Counts the failed request of connection `index`; the connection is of no more use.
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
            let phases = Phases {
                origin: self.phase(times.origin(recorder.latency_from())),
                end: self.phase(now),
            };
            recorder.failed(phases, kind, now);
            let is_closed = matches!(failure, Failure::Closed | Failure::Reset);
            if served > 0 && outstanding.first_byte.is_none() && is_closed && !expired {
                recorder.connections_closed_by_server += 1;
            }
        }
        self.source.borrow_mut().ended(index, Err(kind));
        false
    }

    /// Notes that connection `index` is gone.
    pub(crate) fn disconnected(&self, index: usize) {
        self.connections_open.set(self.connections_open.get() - 1);
        self.lanes.borrow_mut()[index].stream = None;
    }

    /// Whether `status` counts as expected.
    fn expects(&self, status: u16) -> bool {
        let expected = &self.thread_spec.expected_status;
        if expected.is_empty() {
            (200..400).contains(&status)
        } else {
            expected.contains(&status)
        }
    }
}

/// The result of feeding received bytes to the protocol.
enum Fed {
    More,
    Answered((Answered, Arrival)),
    Failed(Failure),
    /// The connection ended between two requests.
    IdleEnd,
    /// Bytes that belong to no request.
    Stray,
}
