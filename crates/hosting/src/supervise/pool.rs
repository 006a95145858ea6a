//! What a supervisor decides: which workers are started, replaced, told to leave and
//! killed, and what is reported of it. Events and the time go in, orders come out.
//!
//! A slot is a worker's place, for as long as the host lives; the one that serves in it
//! and the one that is being started for it are two workers of the pool.
//!
//! Not for: processes, sockets, clocks ([`super`] has them).

use std::collections::BTreeMap;

use prony_base::{Instant, Nanos};

use super::backoff::Backoff;
use crate::ending::{Ended, Error, LoadError};

/// A worker, never the same again.
pub(super) type Id = u64;

/// How long a worker may take to end that has said that it cannot go on, or whose time for a graceful end, to which it keeps by
/// itself, is over; then it is killed. What an application does at its exit, it does in this time, on a machine with other work, too.
const LEAVE_MAX: Nanos = Nanos::from_secs(5);

/// The settings of the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub workers: u32,
    /// How long a worker may be stuck.
    pub timeout: Option<Nanos>,
    pub graceful_timeout: Nanos,
}

/// An event that the pool reacts to.
#[derive(Debug)]
pub(super) enum Event {
    /// The host begins.
    Begin,
    /// A worker that was ordered runs as this process.
    Started(Id, u32),
    /// It could not be started.
    NotStarted(Id, String),
    Ready(Id),
    Failed(Id, String),
    Spent(Id),
    Ended(Id, Exit),
    /// All workers are to be replaced.
    Renew,
    Stop,
    /// It is about time: see [`Pool::due`].
    Time,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// As it was to.
    pub is_clean: bool,
    /// `ended with status 3`
    pub text: String,
}

/// An order that the supervisor carries out.
#[derive(Debug)]
pub(super) enum Order {
    Start {
        id: Id,
        slot: u32,
    },
    /// From now on it serves.
    Activate(Id),
    Retire(Id),
    /// No connection is taken any more, but what waits in the kernel.
    StopAccepting,
    Drain(Id),
    Kill(Id),
    /// All first workers serve.
    Announce,
    Say(String),
    End(Result<Ended, Error>),
}

/// Supervisor's view of its workers.
#[derive(Debug)]
pub(super) struct Pool {
    rules: Rules,
    slots: Vec<Slot>,
    workers: BTreeMap<Id, Worker>,
    state: PoolState,
    renewal: Option<Renewal>,
    next_id: Id,
    orders: Vec<Order>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The worker that serves.
    current: Option<Id>,
    /// The worker that is to take over.
    starting: Option<Id>,
    /// When the next is started, after one that ended.
    start_due: Option<Instant>,
    backoff: Backoff,
    /// Is still to be renewed.
    is_outdated: bool,
}

#[derive(Debug)]
struct Worker {
    slot: u32,
    process: u32,
    state: WorkerState,
    beat: u64,
    /// How long the beat has been this.
    quiet: Nanos,
    /// It cannot go on, and is to be replaced.
    is_spent: bool,
    /// Why it was killed.
    killed: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerState {
    Starting {
        since: Instant,
    },
    Serving {
        since: Instant,
    },
    /// On its way out until then.
    Leaving {
        due: Instant,
    },
}

#[derive(Debug)]
enum PoolState {
    /// Until all first workers serve.
    Opening,
    Serving,
    /// Until all have ended.
    Closing(Option<Result<Ended, Error>>),
    Over,
}

/// All workers are being replaced. One goes first, so that an application that no longer
/// loads is tried once and not by all.
#[derive(Debug)]
struct Renewal {
    first: Id,
    /// Was requested again meanwhile.
    again: bool,
}

impl Pool {
    pub(super) fn new(rules: Rules) -> Pool {
        let slots = (0..rules.workers).map(|_| Slot::default());
        Pool {
            slots: slots.collect(),
            rules,
            workers: BTreeMap::new(),
            state: PoolState::Opening,
            renewal: None,
            next_id: 0,
            orders: Vec::new(),
        }
    }

    /// Takes an event in; yields what is to be done, in this order.
    pub(super) fn on(&mut self, now: Instant, event: Event) -> Vec<Order> {
        match event {
            Event::Begin => (0..self.rules.workers).for_each(|slot| self.start(slot, now)),
            Event::Started(id, process) => {
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.process = process;
                }
            }
            Event::NotStarted(id, why) => self.ended(id, false, &why, now),
            Event::Ready(id) => self.ready(id, now),
            Event::Failed(id, why) => self.failed(id, why, now),
            Event::Spent(id) => self.spent(id, now),
            Event::Ended(id, exit) => self.ended(id, exit.is_clean, &exit.text, now),
            Event::Renew => self.renew(now),
            Event::Stop => self.stop(now),
            Event::Time => self.start_due(now),
        }
        std::mem::take(&mut self.orders)
    }

    /// When [`Event::Time`] is next wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.start_due).min()
    }

    /// Looks at whose beat stands still, and who takes too long; `passed` since it looked
    /// last.
    pub(super) fn look(
        &mut self,
        now: Instant,
        passed: Nanos,
        beat: impl Fn(Id) -> u64,
    ) -> Vec<Order> {
        for (&id, worker) in &mut self.workers {
            if let Some(why) = worker.look(&self.rules, now, passed, beat(id)) {
                worker.killed = Some(why);
                self.orders.push(Order::Kill(id));
            }
        }
        std::mem::take(&mut self.orders)
    }

    fn slot(&mut self, number: u32) -> &mut Slot {
        &mut self.slots[number as usize]
    }

    fn start(&mut self, number: u32, now: Instant) {
        let id = self.next_id;
        self.next_id += 1;
        let slot = self.slot(number);
        slot.starting = Some(id);
        slot.start_due = None;
        let worker = Worker {
            slot: number,
            process: 0,
            state: WorkerState::Starting { since: now },
            beat: 0,
            quiet: Nanos::ZERO,
            is_spent: false,
            killed: None,
        };
        self.workers.insert(id, worker);
        self.orders.push(Order::Start { id, slot: number });
    }

    /// Starts those whose wait is over.
    fn start_due(&mut self, now: Instant) {
        for number in 0..self.rules.workers {
            if self.slot(number).start_due.is_some_and(|due| due <= now) {
                self.start(number, now);
            }
        }
    }

    fn ready(&mut self, id: Id, now: Instant) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let number = worker.slot;
        if !worker.is_starting() {
            return;
        }
        worker.state = WorkerState::Serving { since: now };
        worker.quiet = Nanos::ZERO;
        self.orders.push(Order::Activate(id));
        let slot = self.slot(number);
        slot.starting = None;
        if let Some(before) = slot.current.replace(id) {
            self.retire(before, now);
        }
        match self.state {
            PoolState::Opening if self.slots.iter().all(|slot| slot.current.is_some()) => {
                self.state = PoolState::Serving;
                self.orders.push(Order::Announce);
                self.renew_again(now);
            }
            PoolState::Serving => self.renewed(id, number, now),
            _ => {}
        }
        self.replace_spent(now);
    }

    fn retire(&mut self, id: Id, now: Instant) {
        let due = now + self.rules.graceful_timeout + LEAVE_MAX;
        if let Some(worker) = self.workers.get_mut(&id)
            && worker.killed.is_none()
        {
            worker.state = WorkerState::Leaving { due };
            self.orders.push(Order::Retire(id));
        }
    }

    fn spent(&mut self, id: Id, now: Instant) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.is_spent = true;
        }
        self.replace_spent(now);
    }

    /// Starts another for each that serves, cannot go on, and has none coming: its word
    /// may have come before all served, or what was coming may have been given up.
    fn replace_spent(&mut self, now: Instant) {
        if !matches!(self.state, PoolState::Serving) {
            return;
        }
        for number in 0..self.rules.workers {
            let slot = &self.slots[number as usize];
            let current = slot.current.and_then(|id| self.workers.get(&id));
            let has_none = slot.starting.is_none() && slot.start_due.is_none();
            if has_none && current.is_some_and(|worker| worker.is_spent) {
                self.start(number, now);
            }
        }
    }

    /// A worker cannot load the application. It ends by itself.
    fn failed(&mut self, id: Id, why: String, now: Instant) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        if !worker.is_starting() {
            return;
        }
        let due = now + LEAVE_MAX;
        worker.state = WorkerState::Leaving { due };
        let number = worker.slot;
        self.slot(number).starting = None;
        match self.state {
            PoolState::Opening => self.close(Err(Error::Load(LoadError(why))), now),
            PoolState::Serving => self.not_begun(number, &why, now),
            PoolState::Closing(_) | PoolState::Over => {}
        }
    }

    fn ended(&mut self, id: Id, is_clean: bool, how: &str, now: Instant) {
        let Some(worker) = self.workers.remove(&id) else {
            return;
        };
        let who = worker.name();
        let number = worker.slot;
        let slot = self.slot(number);
        let is_starting = slot.starting == Some(id);
        let is_current = slot.current == Some(id);
        if is_starting {
            slot.starting = None;
        }
        if is_current {
            slot.current = None;
        }
        let is_told = worker.killed.as_ref().is_some_and(String::is_empty);
        let what = match &worker.killed {
            Some(why) => format!("{who} {why} and was killed"),
            None => format!("{who} {how}"),
        };
        match self.state {
            PoolState::Opening => {
                let why = match is_current {
                    true => format!("{what} before all workers served; the host ends"),
                    false => format!("{what} before it served; nothing was started"),
                };
                self.close(Err(Error::Worker(why)), now);
            }
            PoolState::Serving if is_starting => self.not_begun(number, &what, now),
            PoolState::Serving if is_current => {
                let ran = worker.served(now);
                self.again(number, &what, ran, now);
            }
            _ if !is_clean && !is_told => self.orders.push(Order::Say(what)),
            _ => {}
        }
        self.end_if_empty();
    }

    /// A worker that was started in the midst of serving does not serve.
    fn not_begun(&mut self, number: u32, why: &str, now: Instant) {
        if self.renewal.is_some() && self.slot(number).is_outdated {
            return self.abandon(why, now);
        }
        self.again(number, why, None, now);
    }

    /// Has another started, unless one is being started already.
    fn again(&mut self, number: u32, what: &str, ran: Option<Nanos>, now: Instant) {
        let slot = self.slot(number);
        if slot.starting.is_some() || slot.start_due.is_some() {
            return self.orders.push(Order::Say(what.to_owned()));
        }
        let wait = slot.backoff.after(ran);
        slot.start_due = Some(now + wait);
        let when = match wait {
            Nanos::ZERO => String::new(),
            _ => format!(" in {wait}"),
        };
        let text = format!("{what}; another is started{when}");
        self.orders.push(Order::Say(text));
    }

    fn renew(&mut self, now: Instant) {
        if self.is_first_starting() {
            // It may have read what was there before, and it may hang: not waited for.
            return self.begin_renewal(now);
        }
        match (&mut self.renewal, &self.state) {
            (Some(renewal), PoolState::Opening | PoolState::Serving) => renewal.again = true,
            (None, PoolState::Serving) => self.begin_renewal(now),
            (None, PoolState::Opening) => {
                let first = Id::MAX;
                self.renewal = Some(Renewal { first, again: true });
            }
            _ => {}
        }
    }

    /// Whether a renewal still waits for the one that goes first.
    fn is_first_starting(&self) -> bool {
        let first = self.renewal.as_ref().map(|renewal| renewal.first);
        first.is_some() && self.slots.iter().any(|slot| slot.starting == first)
    }

    fn begin_renewal(&mut self, now: Instant) {
        for number in 0..self.rules.workers {
            // What is being started may have read what was there before.
            self.give_up_start(number, now);
            let slot = self.slot(number);
            slot.start_due = None;
            slot.backoff = Backoff::default();
            slot.is_outdated = true;
        }
        let first = self.next_id;
        let again = false;
        self.renewal = Some(Renewal { first, again });
        self.start(0, now);
    }

    /// Kills who is being started in a slot.
    fn give_up_start(&mut self, number: u32, now: Instant) {
        let Some(id) = self.slot(number).starting.take() else {
            return;
        };
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.state = WorkerState::Leaving { due: now };
            worker.killed = Some(String::new());
            self.orders.push(Order::Kill(id));
        }
    }

    /// A worker of a renewal serves.
    fn renewed(&mut self, id: Id, number: u32, now: Instant) {
        let Some(renewal) = &self.renewal else {
            return;
        };
        let is_first = renewal.first == id;
        self.slot(number).is_outdated = false;
        if is_first {
            for number in 0..self.rules.workers {
                let slot = self.slot(number);
                if slot.is_outdated && slot.starting.is_none() {
                    self.start(number, now);
                }
            }
        }
        if !self.slots.iter().any(|slot| slot.is_outdated) {
            self.orders.push(Order::Say("all workers are new".into()));
            self.renew_again(now);
        }
    }

    /// The renewal is over; if one was requested meanwhile, it begins.
    fn renew_again(&mut self, now: Instant) {
        if self.renewal.take().is_some_and(|renewal| renewal.again) {
            self.begin_renewal(now);
        }
    }

    /// Gives the new workers up: those that run continue.
    fn abandon(&mut self, why: &str, now: Instant) {
        let replaced = self.slots.iter().filter(|slot| !slot.is_outdated).count();
        let what = match replaced {
            0 => "the workers are not replaced, the old ones keep serving".to_owned(),
            _ => format!(
                "{replaced} of {} workers are replaced, the others keep serving",
                self.rules.workers
            ),
        };
        self.orders.push(Order::Say(format!("{why}\n{what}")));
        for number in 0..self.rules.workers {
            if self.slot(number).is_outdated {
                self.give_up_start(number, now);
            }
            let slot = self.slot(number);
            if slot.is_outdated {
                // What it had before served.
                slot.backoff = Backoff::once_ready();
            }
            slot.is_outdated = false;
            if slot.current.is_none() && slot.starting.is_none() && slot.start_due.is_none() {
                slot.start_due = Some(now + slot.backoff.after(None));
            }
        }
        self.renew_again(now);
        self.replace_spent(now);
    }

    fn stop(&mut self, now: Instant) {
        match &mut self.state {
            PoolState::Opening | PoolState::Serving => self.close(Ok(Ended::Gracefully), now),
            PoolState::Closing(outcome) => {
                if let Some(Ok(ended)) = outcome {
                    *ended = Ended::AtOnce;
                }
                for (&id, worker) in &mut self.workers {
                    worker.killed = Some(String::new());
                    self.orders.push(Order::Kill(id));
                }
            }
            PoolState::Over => {}
        }
    }

    /// Has everyone leave, those that serve in their time.
    fn close(&mut self, outcome: Result<Ended, Error>, now: Instant) {
        self.state = PoolState::Closing(Some(outcome));
        self.renewal = None;
        for number in 0..self.rules.workers {
            self.give_up_start(number, now);
            self.slot(number).start_due = None;
        }
        self.orders.push(Order::StopAccepting);
        let due = now + self.rules.graceful_timeout + LEAVE_MAX;
        for (&id, worker) in &mut self.workers {
            if worker.killed.is_some() {
                continue;
            }
            // Who is on its way out already keeps the time that it had.
            if let WorkerState::Serving { .. } = worker.state {
                worker.state = WorkerState::Leaving { due };
            }
            self.orders.push(Order::Drain(id));
        }
        self.end_if_empty();
    }

    fn end_if_empty(&mut self) {
        if let PoolState::Closing(outcome) = &mut self.state
            && self.workers.is_empty()
            && let Some(outcome) = outcome.take()
        {
            self.state = PoolState::Over;
            self.orders.push(Order::End(outcome));
        }
    }
}

impl Worker {
    fn name(&self) -> String {
        match self.process {
            0 => format!("worker {}", self.slot),
            process => format!("worker {} (process {process})", self.slot),
        }
    }

    /// Whether what it says of its start counts: it may have been killed meanwhile.
    fn is_starting(&self) -> bool {
        matches!(self.state, WorkerState::Starting { .. }) && self.killed.is_none()
    }

    /// How long it has served, if it has.
    fn served(&self, now: Instant) -> Option<Nanos> {
        match self.state {
            WorkerState::Serving { since } => Some(now.since(since)),
            _ => None,
        }
    }

    /// Why it is to be killed, if it is.
    fn look(&mut self, rules: &Rules, now: Instant, passed: Nanos, beat: u64) -> Option<String> {
        if self.killed.is_some() {
            return None;
        }
        let is_still = beat == self.beat;
        self.beat = beat;
        // It answers for no time in which it was not there.
        let passed = match self.state {
            WorkerState::Starting { since } | WorkerState::Serving { since } => {
                passed.min(now.since(since))
            }
            WorkerState::Leaving { .. } => passed,
        };
        self.quiet = match is_still {
            true => self.quiet + passed,
            false => Nanos::ZERO,
        };
        let stuck = rules.timeout.filter(|&timeout| self.quiet >= timeout);
        match (self.state, stuck) {
            (WorkerState::Leaving { due }, _) if now >= due => {
                Some(format!("did not end within {}", rules.graceful_timeout))
            }
            (WorkerState::Starting { .. }, Some(timeout)) => {
                Some(format!("had not loaded the application after {timeout}"))
            }
            (_, Some(timeout)) => Some(format!("was stuck for {timeout}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prony_base::random::Random;

    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn rules(workers: u32) -> Rules {
        Rules {
            workers,
            timeout: Some(Nanos::from_secs(2)),
            graceful_timeout: Nanos::from_secs(5),
        }
    }

    /// A world in which orders have the consequences that they are to have: processes by
    /// number, and whether each serves.
    struct World {
        pool: Pool,
        now: Instant,
        alive: BTreeMap<Id, State>,
        spent: BTreeSet<Id>,
        beats: BTreeMap<Id, u64>,
        said: Vec<String>,
        announced: u32,
        end: Option<Result<Ended, Error>>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum State {
        Starting,
        Serving,
        Leaving,
        Killed,
    }

    impl World {
        fn new(workers: u32) -> World {
            let mut world = World {
                pool: Pool::new(rules(workers)),
                now: Instant::ZERO + SECOND,
                alive: BTreeMap::new(),
                spent: BTreeSet::new(),
                beats: BTreeMap::new(),
                said: Vec::new(),
                announced: 0,
                end: None,
            };
            world.happens(Event::Begin);
            world
        }

        fn happens(&mut self, event: Event) {
            if let Event::Spent(id) = event {
                self.spent.insert(id);
            }
            let orders = self.pool.on(self.now, event);
            self.follow(orders);
        }

        fn follow(&mut self, orders: Vec<Order>) {
            for order in orders {
                assert!(self.end.is_none(), "nothing is ordered after the end");
                let mut change = |id, from: &[State], to| {
                    let state = self.alive.get_mut(&id).expect("somebody who is there");
                    assert!(from.contains(state), "{id}: {state:?}, to be {to:?}");
                    *state = to;
                };
                use State::{Killed, Leaving, Serving, Starting};
                match order {
                    Order::Start { id, .. } => {
                        assert_eq!(self.alive.insert(id, Starting), None);
                    }
                    Order::Activate(id) => change(id, &[Starting], Serving),
                    Order::Retire(id) => change(id, &[Serving], Leaving),
                    Order::Drain(id) => change(id, &[Serving, Leaving], Leaving),
                    Order::Kill(id) => change(id, &[Starting, Serving, Leaving, Killed], Killed),
                    Order::Announce => self.announced += 1,
                    Order::Say(text) => self.said.push(text),
                    Order::StopAccepting => {}
                    Order::End(how) => self.end = Some(how),
                }
            }
        }

        fn ends(&mut self, id: Id) {
            let state = self.alive.remove(&id);
            let exit = Exit {
                is_clean: state == Some(State::Leaving),
                text: "ended".to_owned(),
            };
            self.happens(Event::Ended(id, exit));
        }

        fn in_state(&self, state: State) -> Vec<Id> {
            let those = self.alive.iter().filter(|&(_, of)| *of == state);
            those.map(|(&id, _)| id).collect()
        }

        /// Lets time pass; beats of those in `still` do not change.
        fn pass(&mut self, still: &[Id]) {
            self.now = self.now + SECOND;
            self.happens(Event::Time);
            for &id in self.alive.keys().filter(|id| !still.contains(id)) {
                self.beats.insert(id, self.now.0);
            }
            let beat = |id| self.beats.get(&id).copied().unwrap_or(0);
            let orders = self.pool.look(self.now, SECOND, beat);
            self.follow(orders);
        }

        /// All that is under way comes to its end: who starts serves, who leaves is gone.
        fn settle(&mut self) {
            for _ in 0..100 {
                for id in self.in_state(State::Starting) {
                    if self.alive.get(&id) == Some(&State::Starting) {
                        self.happens(Event::Ready(id));
                    }
                }
                for state in [State::Leaving, State::Killed] {
                    self.in_state(state)
                        .into_iter()
                        .for_each(|id| self.ends(id));
                }
                self.pass(&[]);
            }
        }
    }

    /// Whatever happens in whatever order: each slot serves in the end, with one worker;
    /// and after a stop nobody is left and nothing is started.
    #[test]
    fn after_any_events_all_slots_serve_and_after_a_stop_none() {
        for seed in 0..prony_testkit::seeds(500, 50_000) {
            let mut random = Random::new(seed);
            let workers = 1 + random.below(4) as u32;
            let mut world = World::new(workers);
            if random.chance(1, 2) {
                world.happens(Event::Ready(0));
                world.happens(Event::Spent(0));
            }
            world.settle();
            assert_eq!(world.announced, 1);
            for _ in 0..random.below(60) {
                let all: Vec<Id> = world.alive.keys().copied().collect();
                let id = all.get(random.below(all.len() as u64) as usize).copied();
                match (random.below(7), id) {
                    (0, _) => world.happens(Event::Renew),
                    (1, _) => world.pass(&[]),
                    (2, _) => world.pass(&all),
                    (3, Some(id)) => world.happens(Event::Ready(id)),
                    (4, Some(id)) => world.happens(Event::Spent(id)),
                    (5, Some(id)) => {
                        world.happens(Event::Failed(id, "fails".into()));
                    }
                    (6, Some(id)) => world.ends(id),
                    _ => {}
                }
            }
            let mut ended = World {
                alive: world.alive.clone(),
                ..world
            };
            ended.settle();
            assert_eq!(
                ended.in_state(State::Serving).len(),
                workers as usize,
                "{seed}"
            );
            assert_eq!(ended.alive.len(), workers as usize, "{seed}");
            assert_eq!(ended.announced, 1);
            let serves_spent = ended.alive.keys().any(|id| ended.spent.contains(id));
            assert!(!serves_spent, "{seed}");
            ended.happens(Event::Stop);
            assert!(ended.in_state(State::Starting).is_empty());
            if random.chance(1, 2) {
                ended.happens(Event::Stop);
            }
            let all: Vec<Id> = ended.alive.keys().copied().collect();
            all.into_iter().for_each(|id| ended.ends(id));
            assert!(matches!(ended.end, Some(Ok(_))), "{seed}: {:?}", ended.end);
        }
    }

    #[test]
    fn a_broken_application_is_tried_once_in_a_renewal() {
        let mut world = World::new(4);
        world.settle();
        world.happens(Event::Renew);
        let tried = world.in_state(State::Starting);
        assert_eq!(tried.len(), 1);
        world.happens(Event::Failed(tried[0], "app.lua:1: no".into()));
        assert_eq!(world.in_state(State::Starting), [tried[0]], "and no other");
        assert_eq!(world.in_state(State::Serving).len(), 4);
        assert!(
            world.said[0].starts_with("app.lua:1: no\n"),
            "{:?}",
            world.said
        );
    }

    #[test]
    fn a_spent_worker_was_forgotten_when_a_renewal_was_abandoned() {
        let mut world = World::new(2);
        world.settle();
        let (first, second) = (
            world.in_state(State::Serving)[0],
            world.in_state(State::Serving)[1],
        );
        world.happens(Event::Spent(second));
        world.happens(Event::Renew);
        let tried = world.in_state(State::Starting);
        world.happens(Event::Failed(tried[0], "no".into()));
        assert_eq!(world.in_state(State::Serving), [first, second]);
        let last = *world.alive.keys().last().unwrap();
        assert_eq!(
            world.alive[&last],
            State::Starting,
            "another for the second"
        );
        world.happens(Event::Ready(last));
        assert_eq!(world.alive[&second], State::Leaving);
    }

    #[test]
    fn a_renewal_whose_first_hung_held_up_the_next() {
        let mut world = World::new(3);
        world.settle();
        world.happens(Event::Renew);
        let hanging = world.in_state(State::Starting);
        world.happens(Event::Renew);
        assert_eq!(world.alive[&hanging[0]], State::Killed);
        let next = world.in_state(State::Starting);
        assert_eq!(next.len(), 1);
        world.settle();
        let serving = world.in_state(State::Serving);
        assert!(serving.len() == 3 && serving[0] >= next[0]);
        assert_eq!(world.said, ["all workers are new"]);
    }

    #[test]
    fn an_abandoned_renewal_says_how_many_were_replaced() {
        let mut world = World::new(3);
        world.settle();
        world.happens(Event::Renew);
        let first = world.in_state(State::Starting)[0];
        world.happens(Event::Ready(first));
        let second = world.in_state(State::Starting)[0];
        world.happens(Event::Failed(second, "no".into()));
        assert_eq!(
            world.said,
            ["no\n1 of 3 workers are replaced, the others keep serving"]
        );
        assert_eq!(world.in_state(State::Serving).len(), 3);
    }

    #[test]
    fn a_worker_that_had_served_was_said_to_have_ended_before_it_did() {
        let ends_with = |text: &str, is_ready: bool| {
            let mut world = World::new(2);
            if is_ready {
                world.happens(Event::Ready(0));
            }
            world.ends(0);
            world.ends(1);
            let said = world.end.unwrap().unwrap_err().to_string();
            assert!(said.ends_with(text), "{said}");
        };
        ends_with("ended before it served; nothing was started", false);
        ends_with("ended before all workers served; the host ends", true);
    }

    #[test]
    fn a_host_whose_workers_all_crashed_served_nobody_for_seconds() {
        let mut world = World::new(3);
        world.settle();
        // Not the first of this host: each has been replaced before, and serves for a second at least.
        for _ in 0..20 {
            for id in world.in_state(State::Serving) {
                world.ends(id);
            }
            assert_eq!(world.pool.due(), Some(world.now), "none waits");
            world.happens(Event::Time);
            let starting = world.in_state(State::Starting);
            assert_eq!(starting.len(), 3);
            starting
                .into_iter()
                .for_each(|id| world.happens(Event::Ready(id)));
            world.pass(&[]);
        }
        assert!(
            world
                .said
                .iter()
                .all(|line| line == "worker 0 ended; another is started"
                    || line == "worker 1 ended; another is started"
                    || line == "worker 2 ended; another is started"),
            "{:?}",
            world.said
        );
    }

    #[test]
    fn a_new_worker_answered_for_the_time_before_it() {
        let mut pool = Pool::new(rules(1));
        let begun = Instant::ZERO + SECOND;
        pool.on(begun, Event::Begin);
        let mut kills_at = |millis, passed| {
            let now = begun + Nanos::from_millis(millis);
            !pool.look(now, Nanos::from_millis(passed), |_| 0).is_empty()
        };
        assert!(!kills_at(100, 1000));
        assert!(!kills_at(1100, 1000));
        assert!(!kills_at(1900, 800));
        assert!(kills_at(2000, 100));
    }

    #[test]
    fn who_is_stuck_is_killed_and_who_has_a_late_supervisor_is_not() {
        let mut world = World::new(2);
        world.settle();
        let stuck = world.in_state(State::Serving)[0];
        world.pass(&[stuck]);
        world.pass(&[]);
        world.pass(&[stuck]);
        assert!(world.in_state(State::Killed).is_empty());
        world.pass(&[stuck]);
        assert_eq!(world.in_state(State::Killed), [stuck]);
        world.ends(stuck);
        assert!(world.said[0].contains("was stuck for 2.00s and was killed; another"));
    }

    #[test]
    fn a_worker_that_does_not_end_in_its_time_is_killed() {
        let mut world = World::new(1);
        world.settle();
        world.happens(Event::Stop);
        // Its five seconds, and five in which to leave.
        for _ in 0..10 {
            assert!(world.in_state(State::Killed).is_empty());
            world.pass(&[]);
        }
        assert_eq!(world.in_state(State::Killed).len(), 1);
    }
}
