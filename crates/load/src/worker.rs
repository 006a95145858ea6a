//! The request path of one thread: slots, connections and counts.
//!
//! Whatever the pace, the source and the protocol, every request takes the same path: it becomes due, takes a slot
//! (or waits for one), is posted, and what its connection receives is fed to the protocol until the answer is whole.
//! Not for: when requests are due (`scheduler`), opening connections (`connection`), or when to end (`control`).

use std::cell::{Cell, RefCell};
use std::io;
use std::iter::repeat_with;
use std::sync::Arc;
use std::task::Waker;

use prony_base::{Instant, Nanos};
use prony_engine::{Arrival, Bracket, Handle, Received, SendBuf, Stream};
use prony_record::{HttpProtocol, LoadSpec, Pace};
use prony_wire::LastHead;

use crate::arrivals::Open;
use crate::connection::{OpenConnection, last_head};
use crate::failure::Failure;
use crate::origin::{Times, arrived};
use crate::outstanding::{Outstanding, SlotState};
use crate::pace::Schedule;
use crate::protocol::{Answered, Progress, Reuse};
use crate::recorder::{Answer, Phases, Recorder};
use crate::slots::{Due, Slots};
use crate::source::{EndedRequest, Next, RequestSource};
use crate::thread_spec::ThreadSpec;
use crate::trace::Trace;
use crate::window::{LoadPhase, Window};

/// Answers of a pipeline that came together and count as handled at one moment: to read the clock takes a tenth of what one takes.
const STAMP_SHARED_BY: u32 = 4;

/// A connection, and what of it changes while it is open.
pub struct Lane {
    /// None while there is no connection.
    pub open: Option<OpenConnection>,
    /// A request has timed out; the failure that follows counts as that.
    pub(crate) expired: bool,
    /// The server takes no further request on it.
    is_leaving: bool,
    /// How many of its slots the server lets it use.
    places: usize,
    /// Answers received on this connection.
    pub(crate) served: u64,
    /// Requests that are outstanding on it.
    pub(crate) outstanding: usize,
    /// Its task is running, and opens another connection when this one is gone.
    pub(crate) is_driven: bool,
    local_port: u16,
}

/// What a slot does when it is ready for its next request, by the pace and the source: chosen once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WhenReady {
    /// It sends at once.
    Sends,
    /// It waits first.
    Thinks,
    /// It takes an arrival that waits, or waits for one.
    TakesArrival,
    /// Its user goes on, or another takes the slot.
    AsksUser,
}

/// The state of one load thread. Its tasks share it; it never leaves the thread.
pub struct Worker {
    pub(crate) handle: Handle,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) thread_spec: ThreadSpec,
    pub(crate) window: RefCell<Arc<Window>>,
    pub(crate) source: RefCell<Box<dyn RequestSource>>,
    pub(crate) lanes: RefCell<Vec<Lane>>,
    pub(crate) states: RefCell<Vec<SlotState>>,
    /// Slots of each connection.
    pub(crate) depth: usize,
    pub(crate) slots: RefCell<Slots>,
    pub(crate) open: RefCell<Option<Open>>,
    pub(crate) trace: RefCell<Trace>,
    think: Nanos,
    pub(crate) when_ready: WhenReady,
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
    /// The source had nothing more to send.
    pub(crate) data_ended: Cell<bool>,
    /// The head that was read last on connections that were opened again.
    pub(crate) last_head: LastHead,
    /// Of answers that came together so many are handled at the same moment: several may come, and nobody looks at each.
    stamp_shared_by: u32,
    pub(crate) exact: bool,
    pub(crate) coalescing_longest: Cell<Nanos>,
}

/// How many answers that came together are handled at one moment: one where each is looked at.
fn stamp_shared_by(thread_spec: &ThreadSpec, has_users: bool) -> u32 {
    let is_looked_at = thread_spec.checks.is_some()
        || thread_spec.followers.is_some()
        || thread_spec.trace_max > 0
        || has_users;
    match thread_spec.depth > 1 && !is_looked_at {
        true => STAMP_SHARED_BY,
        false => 1,
    }
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
            open: None,
            expired: false,
            is_leaving: false,
            places: thread_spec.depth,
            served: 0,
            outstanding: 0,
            is_driven: true,
            local_port: 0,
        };
        let lanes = repeat_with(lane).take(thread_spec.connections).collect();
        let mut states = Vec::new();
        states.resize_with(thread_spec.slots(), SlotState::default);
        let begin = window.begin();
        let schedule = Schedule::new(
            &spec.pace,
            spec.seed,
            thread_spec.thread,
            thread_spec.threads,
        );
        let open = schedule.map(|schedule| Open::new(schedule, begin));
        let when_ready = match spec.pace {
            _ if source.has_users() => WhenReady::AsksUser,
            Pace::Closed { think_ns: 0 } => WhenReady::Sends,
            Pace::Closed { .. } => WhenReady::Thinks,
            _ => WhenReady::TakesArrival,
        };
        Worker {
            stamp_shared_by: stamp_shared_by(&thread_spec, source.has_users()),
            last_head: last_head(),
            when_ready,
            connected_last: Cell::new(handle.now()),
            handle,
            recorder: RefCell::new(recorder),
            source: RefCell::new(source),
            lanes: RefCell::new(lanes),
            states: RefCell::new(states),
            depth: thread_spec.depth,
            slots: RefCell::new(Slots::new(thread_spec.slots(), thread_spec.queue_max)),
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
            data_ended: Cell::default(),
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
            return self.may_start(now) || self.has_users(now);
        }
        // An open load lasts for the whole window, whether or not it has another arrival; without an end, as long as
        // it has one.
        let end = self.window.borrow().end();
        let lasts = self.may_draw() && now < end && end < Instant::NEVER;
        lasts
            || self.draws()
            || (self.slots.borrow().waiting() > 0 && self.may_drain(now))
            || self.has_users(now)
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
        if self.thread_spec.scenario.is_some() {
            let (all, source) = (self.thread_spec.slots(), self.source.borrow());
            return source.users() < all && self.connections_open.get() > source.users();
        }
        let lanes = self.lanes.borrow();
        let mut open = lanes.iter().filter(|lane| lane.open.is_some());
        open.any(|lane| lane.outstanding < lane.places)
    }

    /// Whether `slot` has a connection that takes a request, and none outstanding.
    pub(crate) fn can_send(&self, slot: usize) -> bool {
        let lane = &self.lanes.borrow()[slot / self.depth];
        let is_free = self.states.borrow()[slot].outstanding.is_none();
        let is_allowed = slot % self.depth < lane.places;
        lane.open.is_some() && !lane.is_leaving && is_allowed && is_free
    }

    /// Makes `connection` number `index`.
    pub(crate) fn connected(&self, index: usize, connection: OpenConnection) {
        let now = self.handle.now();
        {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.places = connection.protocol.places().min(self.depth);
            (lane.expired, lane.is_leaving, lane.served) = (false, false, 0);
            if self.thread_spec.trace_max > 0 {
                let address = connection.stream.local_addr();
                lane.local_port = address.map_or(0, |address| address.port());
            }
            lane.open = Some(connection);
        }
        self.connections_open.set(self.connections_open.get() + 1);
        let places = self.lanes.borrow()[index].places;
        for place in 0..places {
            self.ready(index * self.depth + place, now);
        }
    }

    /// Makes `slot` ready for another request at `now`.
    pub(crate) fn ready(&self, slot: usize, now: Instant) {
        self.states.borrow_mut()[slot].ready = now;
        match self.when_ready {
            WhenReady::Sends => self.send_next(slot, now, now),
            WhenReady::Thinks => self.think_until(slot, now + self.pause_of(slot)),
            WhenReady::TakesArrival => self.take_waiting(slot, now),
            WhenReady::AsksUser => self.ask_user(slot, now),
        }
    }

    /// Makes `slot` send the arrival that waits longest, or wait for one.
    pub(crate) fn take_waiting(&self, slot: usize, now: Instant) {
        if self.may_drain(now) {
            let waited = self.slots.borrow_mut().ready(slot);
            if let Some(due) = waited {
                self.send(slot, due, now);
            }
        }
    }

    /// The think time of `slot`. Before its first request, a fraction by its number: slots that all started at
    /// the same moment would stay in step.
    fn pause_of(&self, slot: usize) -> Nanos {
        let states = self.states.borrow();
        if states[slot].has_ended {
            return self.think;
        }
        let all = states.len() as u128;
        Nanos((u128::from(self.think.0) * slot as u128 / all) as u64)
    }

    pub(crate) fn think_until(&self, slot: usize, due: Instant) {
        self.slots.borrow_mut().think(slot, due);
        if let Some(waker) = self.scheduler.take() {
            waker.wake();
        }
    }

    /// Sends the next request of a closed-loop slot, which was due at `intended`, if it still may.
    pub(crate) fn send_next(&self, slot: usize, intended: Instant, now: Instant) {
        self.states.borrow_mut()[slot].ready = intended;
        if self.may_start(now) && self.can_send(slot) {
            self.requests_left.set(self.requests_left.get() - 1);
            let due = Due {
                intended,
                taken_up: intended,
            };
            self.send(slot, due, now);
        }
    }

    /// Posts the next request of `slot`.
    pub(crate) fn send(&self, slot: usize, due: Due, now: Instant) {
        let mut source = self.source.borrow_mut();
        let request = match source.next(slot) {
            Next::Send(request) => request,
            Next::After(pause) => {
                drop(source);
                self.put_back(due);
                return self.think_until(slot, now + pause);
            }
            Next::Nothing => return self.put_back(due),
            Next::Ended => {
                drop(source);
                return self.end_of_source(due);
            }
            Next::Together => {
                drop(source);
                self.put_back(due);
                // Making them took time, which is not the server's.
                return self.send_together(slot / self.depth, due.intended, self.handle.now());
            }
            Next::Stopped => {
                drop(source);
                return self.stop_here(due, now);
            }
        };
        {
            let state = &mut self.states.borrow_mut()[slot];
            state.outstanding = Some(Outstanding {
                due,
                ready: state.ready,
                posted: now,
                first_byte: None,
                closes: request.closes,
                step: request.step,
            });
        }
        let mut lanes = self.lanes.borrow_mut();
        let lane = &mut lanes[slot / self.depth];
        lane.outstanding += 1;
        self.outstanding.set(self.outstanding.get() + 1);
        let phase = self.phase(now);
        let place = slot % self.depth;
        let Some(OpenConnection { stream, protocol }) = &mut lane.open else {
            // Nobody asks for that; it would end by its time-out.
            return self.recorder.borrow_mut().sent(phase, 0);
        };
        let encoded = protocol.send(place, request, &mut || self.handle.take_buffer());
        let bytes = encoded.as_ref().map_or(0, |bytes| bytes.as_slice().len());
        self.recorder.borrow_mut().sent(phase, bytes);
        // A failure here is also received on this connection, and counted there.
        match encoded {
            Ok(bytes) => post(stream, bytes),
            Err(_) => stream.reset(),
        }
    }

    /// Sends the next request of each slot of connection `index` of a closed loop.
    fn send_together(&self, index: usize, intended: Instant, now: Instant) {
        for slot in index * self.depth..(index + 1) * self.depth {
            self.send_next(slot, intended, now);
        }
    }

    /// The source ends the load of this thread at `now`: answers that still come are those of the drain.
    fn stop_here(&self, due: Due, now: Instant) {
        let ended_before = self.data_ended.get();
        self.end_of_source(due);
        self.data_ended.set(ended_before);
        let own = Arc::new(self.window.borrow().ending_at(now));
        self.window.replace(own);
        self.check_over();
    }

    /// Returns a request that its slot does not send.
    fn put_back(&self, due: Due) {
        if self.is_open() {
            self.slots.borrow_mut().put_back(due);
        } else {
            self.requests_left.set(self.requests_left.get() + 1);
        }
    }

    /// There is no request for `due`, nor for any other: none of those that wait is sent, and they were never due.
    fn end_of_source(&self, due: Due) {
        self.data_ended.set(true);
        self.requests_left.set(0);
        if let Some(open) = &mut *self.open.borrow_mut() {
            let waiting = self.slots.borrow_mut().give_up();
            for due in waiting.into_iter().chain([due]) {
                open.scheduled -= 1;
                let is_in_window = self.phase(due.intended) == LoadPhase::Measured;
                open.in_window -= u64::from(is_in_window);
            }
        }
        self.check_over();
    }

    /// Handles what connection `index` received. True while the connection can be used further.
    pub(crate) fn received(&self, index: usize, received: io::Result<Received>) -> bool {
        let is_of_use = match received {
            Ok(bytes) if bytes.is_empty() => self.ended(index, bytes.arrival()),
            Ok(bytes) => self.take_in(index, &bytes),
            Err(error) => self.gone(index, Failure::from(&error)),
        };
        if self.outstanding.get() == 0 {
            self.check_over();
        }
        is_of_use
    }

    /// Feeds received bytes to the protocol, and counts what came of them.
    fn take_in(&self, index: usize, bytes: &Received) -> bool {
        let arrival = bytes.arrival();
        let phase = self.phase(arrived(&arrival));
        self.recorder.borrow_mut().received(phase, bytes.len());
        let mut rest = &bytes[..];
        let (mut answers, mut processed) = (0_u32, Instant::ZERO);
        loop {
            let progress = match &mut self.lanes.borrow_mut()[index].open {
                Some(open) => open.protocol.received(&mut rest),
                None => return false,
            };
            let is_of_use = match progress {
                Ok(Progress::Pending) => {
                    self.note_begun(index, arrived(&arrival));
                    return true;
                }
                Ok(Progress::Answered(answered)) => {
                    if answers.is_multiple_of(self.stamp_shared_by) {
                        processed = self.handle.now();
                    }
                    answers += 1;
                    let is_of_use = self.answered(index, answered, arrival, processed);
                    // With one request outstanding nothing can follow.
                    let is_one =
                        self.depth == 1 && self.thread_spec.protocol == HttpProtocol::Http1;
                    if is_of_use && is_one && rest.is_empty() {
                        return true;
                    }
                    is_of_use
                }
                Ok(Progress::Failed(place, failure)) => {
                    self.failed(index * self.depth + place, failure);
                    self.goes_on(index, index * self.depth + place, self.handle.now())
                }
                Ok(Progress::Leaving) => {
                    self.lanes.borrow_mut()[index].is_leaving = true;
                    self.is_kept(index)
                }
                Ok(Progress::Ended) => return self.gone(index, Failure::Closed),
                Ok(Progress::Stray) => {
                    self.recorder.borrow_mut().connections_stray += 1;
                    false
                }
                Err(failure) => {
                    self.broken(index, failure);
                    return false;
                }
            };
            if !is_of_use {
                // What else is outstanding there has no answer any more.
                self.broken(index, Failure::Closed);
                return false;
            }
        }
    }

    /// Notes the answers that have begun, and sends what the protocol has to send.
    fn note_begun(&self, index: usize, at: Instant) {
        let phase = self.phase(at);
        let mut lanes = self.lanes.borrow_mut();
        let Some(OpenConnection { stream, protocol }) = &mut lanes[index].open else {
            return;
        };
        let first = index * self.depth;
        protocol.begun(&mut |place| {
            if let Some(outstanding) = &mut self.states.borrow_mut()[first + place].outstanding {
                outstanding.first_byte.get_or_insert(at);
            }
        });
        if let Some(bytes) = protocol.output(&mut || self.handle.take_buffer()) {
            self.recorder
                .borrow_mut()
                .sent_more(phase, bytes.as_slice().len());
            post(stream, bytes);
        }
    }

    /// The server has ended its side of connection `index`.
    fn ended(&self, index: usize, arrival: Arrival) -> bool {
        let ended = match &mut self.lanes.borrow_mut()[index].open {
            Some(open) => open.protocol.ended(),
            None => return false,
        };
        match ended {
            Ok(answered) => {
                self.answered(index, answered, arrival, self.handle.now());
                self.broken(index, Failure::Closed);
                false
            }
            Err(failure) => self.gone(index, failure),
        }
    }

    /// Connection `index` has ended, between requests or while some were outstanding. It is of no more use: false.
    fn gone(&self, index: usize, failure: Failure) -> bool {
        let (is_idle, served) = {
            let lane = &self.lanes.borrow()[index];
            (lane.outstanding == 0, lane.served > 0)
        };
        if is_idle {
            self.recorder.borrow_mut().connections_closed_by_server += u64::from(served);
        } else {
            self.broken(index, failure);
        }
        false
    }

    /// When a request of connection `index` was handed to the kernel, where that is known: of several, only of the last.
    pub(crate) fn submitted(&self, index: usize) -> Option<Bracket> {
        let lanes = self.lanes.borrow();
        let open = lanes[index].open.as_ref().filter(|_| self.depth == 1);
        open.and_then(|open| open.stream.submitted())
    }

    /// Counts a request of connection `index` that is `processed` now. True when the connection can carry another.
    fn answered(
        &self,
        index: usize,
        answered: Answered,
        last_byte: Arrival,
        processed: Instant,
    ) -> bool {
        let slot = index * self.depth + answered.place;
        let submitted = self.submitted(index);
        let Some(outstanding) = self.states.borrow()[slot].outstanding else {
            return false;
        };
        if !answered.is_right {
            self.failed(slot, Failure::WrongAnswer);
            return false;
        }
        let times = outstanding.times(submitted, last_byte, processed);
        if let Some(check) = self.failed_check(outstanding.step, &answered, &times) {
            return self.check_failed(slot, check, answered.reuse, outstanding.closes);
        }
        {
            let state = &mut self.states.borrow_mut()[slot];
            (state.outstanding, state.has_ended) = (None, true);
        }
        let (port, is_spent) = {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.served += 1;
            lane.outstanding -= 1;
            let is_spent = lane.served >= self.thread_spec.served_max;
            (lane.local_port, is_spent)
        };
        self.outstanding.set(self.outstanding.get() - 1);
        let answer = Answer {
            times,
            status: answered.status,
            expected: self.expects(outstanding.step, answered.status),
        };
        let from = self.recorder.borrow().latency_from();
        let origin = times.origin(from);
        let phases = Phases {
            origin: self.phase(origin),
            end: self.phase(times.done()),
        };
        {
            let mut recorder = self.recorder.borrow_mut();
            recorder.completed(phases, &answer);
            match answered.reuse {
                Reuse::ClosedByServer if !outstanding.closes => {
                    recorder.connections_closed_by_server += 1;
                }
                Reuse::Stray => recorder.connections_stray += 1,
                Reuse::Yes | Reuse::ClosedByServer | Reuse::Unsent => {}
            }
        }
        let connection = (self.thread_spec.first + index) as u32;
        self.trace.borrow_mut().keep(connection, port, &answer);
        let ended = EndedRequest {
            outcome: Ok(&answer),
            origin,
            phases,
            at: processed,
        };
        self.source.borrow_mut().ended(slot, &ended);
        match answered.reuse {
            Reuse::ClosedByServer | Reuse::Stray | Reuse::Unsent => false,
            Reuse::Yes if is_spent => false,
            Reuse::Yes => self.goes_on(index, slot, processed),
        }
    }

    /// The check that an answer fails: of its head and body, or of its time.
    fn failed_check(&self, step: u16, answered: &Answered, times: &Times) -> Option<u16> {
        let checks = self.thread_spec.checks.as_ref()?;
        let from = self.recorder.borrow().latency_from();
        answered
            .check
            .or_else(|| checks.too_late(step, times.latency(from)))
    }

    /// Counts an answer that came whole and failed a check; `closes`: its request asked for the connection to be closed. True
    /// when the connection can carry another request.
    fn check_failed(&self, slot: usize, check: u16, reuse: Reuse, closes: bool) -> bool {
        let (now, index) = (self.handle.now(), slot / self.depth);
        let (is_spent, expired) = {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.served += 1;
            let is_spent = lane.served >= self.thread_spec.served_max;
            (is_spent, lane.expired)
        };
        // What has expired counts as that.
        let is_in_window = self.phase(now) == LoadPhase::Measured && !expired;
        if let Some(checks) = self.thread_spec.checks.as_ref().filter(|_| is_in_window) {
            checks.count(check);
        }
        self.failed_at(slot, Failure::Check, now);
        match reuse {
            Reuse::ClosedByServer if !closes => {
                self.recorder.borrow_mut().connections_closed_by_server += 1;
            }
            Reuse::Stray => self.recorder.borrow_mut().connections_stray += 1,
            Reuse::Yes | Reuse::ClosedByServer | Reuse::Unsent => {}
        }
        reuse == Reuse::Yes && !is_spent && self.goes_on(index, slot, now)
    }

    /// After a request of connection `index` has ended: another takes its slot, unless the server takes none any more.
    /// True while the connection is of use.
    fn goes_on(&self, index: usize, slot: usize, now: Instant) -> bool {
        if self.lanes.borrow()[index].is_leaving {
            return self.is_kept(index);
        }
        self.ready(slot, now);
        true
    }

    /// Whether a connection whose server is leaving is kept: as long as something is outstanding.
    fn is_kept(&self, index: usize) -> bool {
        let is_kept = self.lanes.borrow()[index].outstanding > 0;
        self.recorder.borrow_mut().connections_closed_by_server += u64::from(!is_kept);
        is_kept
    }

    /// Counts the failed request of `slot`.
    fn failed(&self, slot: usize, failure: Failure) {
        self.failed_at(slot, failure, self.handle.now());
    }

    fn failed_at(&self, slot: usize, failure: Failure, now: Instant) {
        let index = slot / self.depth;
        let submitted = self.submitted(index);
        let Some(outstanding) = self.states.borrow_mut()[slot].outstanding.take() else {
            return;
        };
        self.states.borrow_mut()[slot].has_ended = true;
        let expired = {
            let lane = &mut self.lanes.borrow_mut()[index];
            lane.outstanding -= 1;
            lane.expired
        };
        self.outstanding.set(self.outstanding.get() - 1);
        let times = outstanding.times(submitted, Arrival::default(), now);
        let kind = if expired { Failure::Timeout } else { failure };
        let origin = times.origin(self.recorder.borrow().latency_from());
        let phases = Phases {
            origin: self.phase(origin),
            end: self.phase(now),
        };
        self.recorder.borrow_mut().failed(phases, kind, now);
        let ended = EndedRequest {
            outcome: Err(kind),
            origin,
            phases,
            at: now,
        };
        self.source.borrow_mut().ended(slot, &ended);
    }

    /// Connection `index` is of no more use: what is outstanding on it has failed, each request once.
    fn broken(&self, index: usize, failure: Failure) {
        let slots = index * self.depth..(index + 1) * self.depth;
        let (outstanding, served, expired) = {
            let lane = &self.lanes.borrow()[index];
            (lane.outstanding, lane.served, lane.expired)
        };
        let has_begun = {
            let states = self.states.borrow();
            let mut all = states[slots.clone()]
                .iter()
                .filter_map(|state| state.outstanding);
            all.any(|outstanding| outstanding.first_byte.is_some())
        };
        let is_closed = matches!(failure, Failure::Closed | Failure::Reset);
        if outstanding > 0 && served > 0 && !has_begun && is_closed && !expired {
            self.recorder.borrow_mut().connections_closed_by_server += 1;
        }
        for slot in slots {
            self.failed(slot, failure);
        }
    }

    /// Notes that connection `index` is gone.
    pub(crate) fn disconnected(&self, index: usize) {
        self.connections_open.set(self.connections_open.get() - 1);
        let Some(open) = self.lanes.borrow_mut()[index].open.take() else {
            return;
        };
        let OpenConnection {
            stream,
            mut protocol,
        } = open;
        if let Some(fault) = protocol.fault() {
            self.recorder.borrow_mut().tls_failed(fault);
        }
        if let Some(bytes) = protocol.close(&mut || self.handle.take_buffer()) {
            // Where the connection is broken there is no one left to tell.
            let _ = stream.post(bytes);
        }
    }

    /// Whether `status` counts as expected of `step`.
    fn expects(&self, step: u16, status: u16) -> bool {
        self.thread_spec.expected_status.has(step, status)
    }
}

/// Posts bytes. A connection that is broken says so where it is received from; one that holds too much already is reset.
fn post(stream: &Stream, bytes: SendBuf) {
    if let Err(error) = stream.post(bytes)
        && error.kind() == io::ErrorKind::WouldBlock
    {
        stream.reset();
    }
}
