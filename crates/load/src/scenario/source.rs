//! What each user of a thread sends next, and when: the [`RequestSource`] of a scenario.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos, Random, clock};
use prony_record::{LatencyOrigin, LoadSpec, ThinkTime};

use super::compiled::Scenario;
use super::figures::ScenarioFigures;
use super::memory::UserMemory;
use crate::fields::Field;
use crate::filled::{decimal, uuid};
use crate::interval::StepTotals;
use crate::rows::{ThreadRows, each_value};
use crate::source::{EncodedRequest, EndedRequest, Next, RequestSource, UserTurn, decode};
use crate::window::LoadPhase;

/// The largest random number has so many bits: every language's JSON keeps it exact.
const RANDOM_BITS: u32 = 53;

/// Where a user is in its scenario.
#[derive(Clone, Copy, Debug)]
enum UserState {
    /// In no iteration, until it may begin another.
    Free(Instant),
    /// The request of a step is outstanding. The iteration began then; `None`: with this step.
    Sends { step: usize, began: Option<Instant> },
    /// A step is due then.
    Waits {
        step: usize,
        began: Option<Instant>,
        due: Instant,
    },
}

/// A slot's user.
struct User {
    memory: Rc<RefCell<UserMemory>>,
    state: UserState,
    /// Of each flow, that steps which are done once were done.
    did_once: Vec<bool>,
    /// Its `{random}`, `{counter}` and `{uuid}`: the same in all steps of an iteration.
    random: u64,
    counter: u64,
    id: [u64; 2],
}

/// The source of one thread.
pub struct ScenarioSource {
    scenario: Arc<Scenario>,
    /// Of each step.
    requests: Vec<EncodedRequest>,
    users: Vec<User>,
    /// Those in an iteration.
    active: usize,
    /// Each arrival is another user.
    is_open: bool,
    latency_from: LatencyOrigin,
    /// The sums of the flows' weights.
    up_to: Vec<u64>,
    flows: Random,
    thinks: Random,
    fields: Random,
    counter: u64,
    counter_step: u64,
    rows: Option<ThreadRows>,
    figures: ScenarioFigures,
}

impl ScenarioSource {
    /// The source of a thread with so many slots.
    ///
    /// # Errors
    /// A request has a name in braces that is no field.
    pub fn new(
        scenario: &Arc<Scenario>,
        spec: &LoadSpec,
        thread: u32,
        slots: usize,
    ) -> Result<ScenarioSource, String> {
        let mut requests = Vec::new();
        for (step, prepared) in spec.requests.iter().enumerate() {
            let mut request = decode(prepared);
            request.http2 = None;
            request.step =
                u16::try_from(step).map_err(|_| "there are too many steps".to_owned())?;
            request.filled = Some(Box::new(scenario.request(&prepared.bytes, step)?));
            requests.push(request);
        }
        let user = || User {
            memory: Rc::new(RefCell::new(UserMemory::new(scenario.names.len()))),
            state: UserState::Free(Instant::ZERO),
            did_once: vec![false; scenario.flows.len()],
            random: 0,
            counter: 0,
            id: [0; 2],
        };
        let mut users = Vec::new();
        users.resize_with(slots, user);
        let mut sum = 0;
        let up_to = scenario.spec.flows.iter().map(|flow| {
            sum += u64::from(flow.weight.max(1));
            sum
        });
        let random = |what: &str| Random::of(spec.seed, &format!("{what} of thread {thread}"));
        Ok(ScenarioSource {
            requests,
            users,
            active: 0,
            is_open: spec.pace.is_open(),
            latency_from: spec.latency_from,
            up_to: up_to.collect(),
            flows: random("flows"),
            thinks: random("think times"),
            fields: random("fields"),
            counter: spec.counter_from + u64::from(thread) + 1,
            counter_step: u64::from(spec.threads),
            rows: (scenario.data.as_ref()).map(|data| ThreadRows::new(data, spec.seed, thread)),
            figures: ScenarioFigures::new(scenario.steps.len(), scenario.flows.len()),
            scenario: Arc::clone(scenario),
        })
    }

    /// Begins an iteration of the user in `slot`: its first step, or `None` where there is no row for it any more.
    fn begin(&mut self, slot: usize) -> Option<usize> {
        let flow = match self.up_to.as_slice() {
            [_] => 0,
            up_to => {
                let drawn = self.flows.below(up_to.last().copied().unwrap_or_default());
                up_to.partition_point(|&sum| sum <= drawn)
            }
        };
        let user = &mut self.users[slot];
        if !self.scenario.keeps {
            user.memory.borrow_mut().clear();
        }
        if let Some(rows) = &mut self.rows {
            let row = rows.next()?;
            let mut memory = user.memory.borrow_mut();
            // The file was checked; one that was changed meanwhile has no value there.
            let _ = each_value(row, &mut |place, value| {
                memory.set(place, |_, out| {
                    out.extend_from_slice(value);
                    true
                });
            });
        }
        user.random = self.fields.next_u64() >> (64 - RANDOM_BITS);
        user.id = [self.fields.next_u64(), self.fields.next_u64()];
        user.counter = self.counter;
        self.counter += self.counter_step;
        self.active += 1;
        self.figures.flows[flow].counts.started += 1;
        let own = &self.scenario.flows[flow];
        self.next_step(slot, flow, own.first)
    }

    /// The first step from `step` on that the user in `slot` does; `None`: there is none in the flow.
    fn next_step(&self, slot: usize, flow: usize, step: usize) -> Option<usize> {
        let did_once = self.scenario.keeps && self.users[slot].did_once[flow];
        let mut steps = step..self.scenario.flows[flow].end;
        steps.find(|&step| !did_once || !self.scenario.step(step).once)
    }

    /// Fills in the request of `step` for the user in `slot`, and counts it.
    fn send(&mut self, slot: usize, step: usize, began: Option<Instant>) -> Next<'_> {
        let user = &mut self.users[slot];
        user.state = UserState::Sends { step, began };
        self.figures.steps[step].counts.sent += 1;
        let request = &mut self.requests[step];
        if let Some(filled) = &mut request.filled {
            let memory = user.memory.borrow();
            filled.fill(|field, out| match field {
                Field::Random => decimal(out, user.random),
                Field::Counter => decimal(out, user.counter),
                Field::Uuid => uuid(out, user.id),
                Field::Time => decimal(out, clock::unix_nanos() / 1_000_000),
                // It was looked at beforehand that the value is there.
                Field::Column(place) => {
                    out.extend_from_slice(memory.value(place).unwrap_or_default())
                }
                Field::Cookies => memory.cookies.line(out),
            });
        }
        request.user = Some(Rc::clone(&user.memory));
        Next::Send(request)
    }

    /// The iteration of the user in `slot` has ended; another may begin at `then`.
    fn free(&mut self, slot: usize, then: Instant) {
        self.active -= 1;
        let then = if self.is_open { Instant::ZERO } else { then };
        self.users[slot].state = UserState::Free(then);
    }

    /// A failed step, or one that lacks a value, has ended the iteration.
    fn abandon(&mut self, slot: usize, flow: usize, then: Instant) {
        self.figures.flows[flow].counts.abandoned += 1;
        self.forget(slot);
        self.free(slot, then);
    }

    /// The next iteration of the user in `slot` begins as its first one did, whichever its flow: they share cookies and values.
    fn forget(&mut self, slot: usize) {
        self.users[slot].did_once.fill(false);
        self.users[slot].memory.borrow_mut().clear();
    }

    /// Whether some flow of the user in `slot` would begin behind its steps that are done once, and with one that lacks what they
    /// took.
    fn lacks_what_it_took(&self, slot: usize) -> bool {
        let flows = self.scenario.flows.iter().enumerate();
        let mut begun = flows.filter(|&(flow, _)| self.users[slot].did_once[flow]);
        begun.any(|(flow, own)| {
            let first = self.next_step(slot, flow, own.first);
            first.is_some_and(|step| self.lacks(slot, step))
        })
    }

    fn think(&mut self, think: ThinkTime) -> Nanos {
        let range = think.max_ns - think.min_ns;
        match range {
            0 => Nanos(think.min_ns),
            range => Nanos(think.min_ns + self.thinks.below(range.saturating_add(1))),
        }
    }

    /// Whether the user in `slot` lacks a value that `step` needs.
    fn lacks(&self, slot: usize, step: usize) -> bool {
        let memory = self.users[slot].memory.borrow();
        let mut needs = self.scenario.steps[step].needs.iter();
        needs.any(|&place| memory.value(place).is_none())
    }
}

impl RequestSource for ScenarioSource {
    fn next(&mut self, slot: usize) -> Next<'_> {
        match self.users[slot].state {
            UserState::Waits { step, began, .. } => self.send(slot, step, began),
            UserState::Free(_) | UserState::Sends { .. } => match self.begin(slot) {
                Some(step) => self.send(slot, step, None),
                None => Next::Ended,
            },
        }
    }

    fn ended(&mut self, slot: usize, request: &EndedRequest<'_>) {
        let UserState::Sends { step, began } = self.users[slot].state else {
            return;
        };
        let figures = &mut self.figures.steps[step];
        let (failed, done) = match request.outcome {
            Ok(answer) => {
                figures.completed(request.phases, answer, self.latency_from);
                (!answer.expected, answer.times.done())
            }
            Err(failure) => {
                figures.failed(request.phases, failure);
                (true, request.at)
            }
        };
        let began = began.unwrap_or(request.origin);
        let flow = self.scenario.flow_of(step);
        let (goes_on, think) = {
            let of = self.scenario.step(step);
            (of.goes_on, of.think)
        };
        let due = done + self.think(think);
        if failed && !goes_on {
            return self.abandon(slot, flow, due);
        }
        let Some(next) = self.next_step(slot, flow, step + 1) else {
            let figures = &mut self.figures.flows[flow];
            figures.counts.completed += 1;
            if request.phases.end == LoadPhase::Measured {
                figures.counts.completed_in_window += 1;
                figures.duration.record(done.since(began));
            }
            self.users[slot].did_once[flow] = true;
            if self.scenario.keeps && self.lacks_what_it_took(slot) {
                self.forget(slot);
            }
            return self.free(slot, due);
        };
        if self.lacks(slot, next) {
            self.figures.steps[next].counts.lacking += 1;
            return self.abandon(slot, flow, due);
        }
        self.users[slot].state = UserState::Waits {
            step: next,
            began: Some(began),
            due,
        };
    }

    fn led_on(&mut self, slot: usize, request: &EndedRequest<'_>) {
        if let (UserState::Sends { step, began }, Ok(answer)) =
            (self.users[slot].state, request.outcome)
        {
            self.figures.steps[step].completed(request.phases, answer, self.latency_from);
            let began = Some(began.unwrap_or(request.origin));
            self.users[slot].state = UserState::Sends { step, began };
        }
    }

    fn hop_sent(&mut self, slot: usize) {
        if let UserState::Sends { step, .. } = self.users[slot].state {
            self.figures.steps[step].counts.sent += 1;
        }
    }

    fn has_users(&self) -> bool {
        true
    }

    fn turn(&self, slot: usize) -> UserTurn {
        match self.users[slot].state {
            UserState::Waits { due, .. } => UserTurn::GoesOn(due),
            UserState::Free(then) => UserTurn::Free(then),
            UserState::Sends { .. } => UserTurn::GoesOn(Instant::NEVER),
        }
    }

    fn users(&self) -> usize {
        self.active
    }

    fn stopped(&mut self, slot: usize) {
        // One that sends waits for the hop of a redirect: nothing of it is outstanding.
        if let UserState::Waits { step, .. } | UserState::Sends { step, .. } =
            self.users[slot].state
        {
            let flow = self.scenario.flow_of(step);
            self.figures.flows[flow].counts.unfinished += 1;
            self.free(slot, Instant::ZERO);
        }
    }

    fn abandoned(&mut self, slot: usize, origin: LoadPhase, so_far: Nanos) {
        if let UserState::Sends { step, .. } = self.users[slot].state {
            self.figures.steps[step].cut(origin, so_far);
        }
    }

    fn steps_so_far(&self) -> Vec<StepTotals> {
        self.figures.so_far()
    }

    fn finish(&mut self) -> Option<ScenarioFigures> {
        for user in &self.users {
            if let UserState::Waits { step, .. } | UserState::Sends { step, .. } = user.state {
                let flow = self.scenario.flow_of(step);
                self.figures.flows[flow].counts.unfinished += 1;
            }
        }
        Some(std::mem::take(&mut self.figures))
    }
}
