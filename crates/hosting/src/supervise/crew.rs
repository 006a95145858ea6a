//! What a supervisor decides: which workers are started, replaced, told to leave and
//! killed, and what is said of it. Events and the time go in, orders come out.
//!
//! A slot is a worker's place, for as long as the host lives; the one that serves in it
//! and the one that is being started for it are two members of the crew.
//!
//! Not for: processes, sockets, clocks ([`super`] has them).

use std::collections::BTreeMap;

use prony_base::{Instant, Nanos};

use super::backoff::Backoff;
use crate::ending::{Ended, Error};
use crate::post::LoadError;

/// A worker, never the same again.
pub(super) type Id = u64;

/// How long a worker that has said that it cannot go on may take to end.
const LEAVE_MAX: Nanos = Nanos::from_secs(5);
/// A worker keeps to the time of a graceful end by itself; so much later it is killed.
const GRACE_MARGIN: Nanos = Nanos::from_secs(1);

/// What the crew goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub workers: u32,
    /// How long a worker may be stuck.
    pub timeout: Option<Nanos>,
    pub graceful_timeout: Nanos,
}

/// What happened.
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
    /// It is about time: see [`Crew::due`].
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

/// What is to be done.
#[derive(Debug)]
pub(super) enum Order {
    Start {
        id: Id,
        slot: u32,
    },
    /// From now on it serves.
    Employ(Id),
    Retire(Id),
    /// No connection is taken any more, but what waits in the kernel.
    CloseDoor,
    Drain(Id),
    Kill(Id),
    /// All first workers serve.
    Announce,
    Say(String),
    End(Result<Ended, Error>),
}

/// Supervisor's view of its workers.
#[derive(Debug)]
pub(super) struct Crew {
    rules: Rules,
    slots: Vec<Slot>,
    members: BTreeMap<Id, Member>,
    phase: Phase,
    renewal: Option<Renewal>,
    next_id: Id,
    orders: Vec<Order>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Who serves.
    current: Option<Id>,
    /// Who is to.
    starting: Option<Id>,
    /// When the next is started, after one that ended.
    start_due: Option<Instant>,
    backoff: Backoff,
    /// Is still to be renewed.
    is_outdated: bool,
}

#[derive(Debug)]
struct Member {
    slot: u32,
    process: u32,
    stage: Stage,
    beat: u64,
    /// How long the beat has been this.
    quiet: Nanos,
    /// Why it was killed.
    killed: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
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
enum Phase {
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
    /// Was asked for again meanwhile.
    again: bool,
}

impl Crew {
    pub(super) fn new(rules: Rules) -> Crew {
        let slots = (0..rules.workers).map(|_| Slot::default());
        Crew {
            slots: slots.collect(),
            rules,
            members: BTreeMap::new(),
            phase: Phase::Opening,
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
                if let Some(member) = self.members.get_mut(&id) {
                    member.process = process;
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
        for (&id, member) in &mut self.members {
            if let Some(why) = member.look(&self.rules, now, passed, beat(id)) {
                member.killed = Some(why);
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
        let member = Member {
            slot: number,
            process: 0,
            stage: Stage::Starting { since: now },
            beat: 0,
            quiet: Nanos::ZERO,
            killed: None,
        };
        self.members.insert(id, member);
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
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let number = member.slot;
        let Stage::Starting { .. } = member.stage else {
            return;
        };
        member.stage = Stage::Serving { since: now };
        member.quiet = Nanos::ZERO;
        self.orders.push(Order::Employ(id));
        let slot = self.slot(number);
        slot.starting = None;
        if let Some(before) = slot.current.replace(id) {
            self.retire(before, now);
        }
        match self.phase {
            Phase::Opening if self.slots.iter().all(|slot| slot.current.is_some()) => {
                self.phase = Phase::Serving;
                self.orders.push(Order::Announce);
                self.renew_again(now);
            }
            Phase::Serving => self.renewed(id, number, now),
            _ => {}
        }
    }

    fn retire(&mut self, id: Id, now: Instant) {
        let due = now + self.rules.graceful_timeout + GRACE_MARGIN;
        if let Some(member) = self.members.get_mut(&id) {
            member.stage = Stage::Leaving { due };
            self.orders.push(Order::Retire(id));
        }
    }

    fn spent(&mut self, id: Id, now: Instant) {
        let Some(member) = self.members.get(&id) else {
            return;
        };
        let number = member.slot;
        let slot = self.slot(number);
        let has_none = slot.starting.is_none() && slot.start_due.is_none();
        if slot.current == Some(id) && has_none && matches!(self.phase, Phase::Serving) {
            self.start(number, now);
        }
    }

    /// A worker cannot load the application. It ends by itself.
    fn failed(&mut self, id: Id, why: String, now: Instant) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let Stage::Starting { .. } = member.stage else {
            return;
        };
        let due = now + LEAVE_MAX;
        member.stage = Stage::Leaving { due };
        let number = member.slot;
        self.slot(number).starting = None;
        match self.phase {
            Phase::Opening => self.close(Err(Error::Load(LoadError(why))), now),
            Phase::Serving => self.not_begun(number, &why, now),
            Phase::Closing(_) | Phase::Over => {}
        }
    }

    fn ended(&mut self, id: Id, is_clean: bool, how: &str, now: Instant) {
        let Some(member) = self.members.remove(&id) else {
            return;
        };
        let who = member.name();
        let number = member.slot;
        let slot = self.slot(number);
        let is_starting = slot.starting == Some(id);
        let is_current = slot.current == Some(id);
        if is_starting {
            slot.starting = None;
        }
        if is_current {
            slot.current = None;
        }
        let is_told = member.killed.as_ref().is_some_and(String::is_empty);
        let what = match &member.killed {
            Some(why) => format!("{who} {why} and was killed"),
            None => format!("{who} {how}"),
        };
        match self.phase {
            Phase::Opening => {
                let why = format!("{what} before it served; nothing was started");
                self.close(Err(Error::Worker(why)), now);
            }
            Phase::Serving if is_starting => self.not_begun(number, &what, now),
            Phase::Serving if is_current => {
                let ran = member.served(now);
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
        self.again(number, why, Nanos::ZERO, now);
    }

    /// Has another started, unless one is being started already.
    fn again(&mut self, number: u32, what: &str, ran: Nanos, now: Instant) {
        let slot = self.slot(number);
        if slot.starting.is_some() || slot.start_due.is_some() {
            return self.orders.push(Order::Say(what.to_owned()));
        }
        let wait = slot.backoff.after(ran);
        slot.start_due = Some(now + wait);
        let text = format!("{what}; another is started in {wait}");
        self.orders.push(Order::Say(text));
    }

    fn renew(&mut self, now: Instant) {
        match (&mut self.renewal, &self.phase) {
            (Some(renewal), Phase::Opening | Phase::Serving) => renewal.again = true,
            (None, Phase::Serving) => self.begin_renewal(now),
            (None, Phase::Opening) => {
                let first = Id::MAX;
                self.renewal = Some(Renewal { first, again: true });
            }
            _ => {}
        }
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
        if let Some(member) = self.members.get_mut(&id) {
            let due = now + LEAVE_MAX;
            member.stage = Stage::Leaving { due };
            member.killed = Some(String::new());
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

    /// The renewal is over; if one was asked for meanwhile, it begins.
    fn renew_again(&mut self, now: Instant) {
        if self.renewal.take().is_some_and(|renewal| renewal.again) {
            self.begin_renewal(now);
        }
    }

    /// What is new does not work: what runs goes on.
    fn abandon(&mut self, why: &str, now: Instant) {
        self.orders.push(Order::Say(format!(
            "{why}\nthe workers are not replaced, those that serve go on"
        )));
        for number in 0..self.rules.workers {
            if self.slot(number).is_outdated {
                self.give_up_start(number, now);
            }
            let slot = self.slot(number);
            slot.is_outdated = false;
            if slot.current.is_none() && slot.starting.is_none() && slot.start_due.is_none() {
                slot.start_due = Some(now + slot.backoff.after(Nanos::ZERO));
            }
        }
        self.renew_again(now);
    }

    fn stop(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Opening | Phase::Serving => self.close(Ok(Ended::Gracefully), now),
            Phase::Closing(outcome) => {
                if let Some(Ok(ended)) = outcome {
                    *ended = Ended::AtOnce;
                }
                for (&id, member) in &mut self.members {
                    member.killed = Some(String::new());
                    self.orders.push(Order::Kill(id));
                }
            }
            Phase::Over => {}
        }
    }

    /// Has everyone leave, those that serve in their time.
    fn close(&mut self, outcome: Result<Ended, Error>, now: Instant) {
        self.phase = Phase::Closing(Some(outcome));
        self.renewal = None;
        for number in 0..self.rules.workers {
            self.give_up_start(number, now);
            self.slot(number).start_due = None;
        }
        self.orders.push(Order::CloseDoor);
        let due = now + self.rules.graceful_timeout + GRACE_MARGIN;
        for (&id, member) in &mut self.members {
            match &mut member.stage {
                Stage::Starting { .. } => {}
                Stage::Serving { .. } => {
                    member.stage = Stage::Leaving { due };
                    self.orders.push(Order::Drain(id));
                }
                // It keeps the time that it had.
                Stage::Leaving { .. } if member.killed.is_none() => {
                    self.orders.push(Order::Drain(id));
                }
                Stage::Leaving { .. } => {}
            }
        }
        self.end_if_empty();
    }

    fn end_if_empty(&mut self) {
        if let Phase::Closing(outcome) = &mut self.phase
            && self.members.is_empty()
            && let Some(outcome) = outcome.take()
        {
            self.phase = Phase::Over;
            self.orders.push(Order::End(outcome));
        }
    }
}

impl Member {
    fn name(&self) -> String {
        match self.process {
            0 => format!("worker {}", self.slot),
            process => format!("worker {} (process {process})", self.slot),
        }
    }

    /// How long it has served.
    fn served(&self, now: Instant) -> Nanos {
        match self.stage {
            Stage::Serving { since } => now.since(since),
            _ => Nanos::ZERO,
        }
    }

    /// Why it is to be killed, if it is.
    fn look(&mut self, rules: &Rules, now: Instant, passed: Nanos, beat: u64) -> Option<String> {
        if self.killed.is_some() {
            return None;
        }
        let is_still = beat == self.beat;
        self.beat = beat;
        self.quiet = match is_still {
            true => self.quiet + passed,
            false => Nanos::ZERO,
        };
        let stuck = rules.timeout.filter(|&timeout| self.quiet >= timeout);
        match (self.stage, stuck) {
            (Stage::Leaving { due }, _) if now >= due => {
                Some(format!("did not end within {}", rules.graceful_timeout))
            }
            (Stage::Starting { .. }, Some(timeout)) => {
                Some(format!("had not loaded the application after {timeout}"))
            }
            (_, Some(timeout)) => Some(format!("was stuck for {timeout}")),
            _ => None,
        }
    }
}
