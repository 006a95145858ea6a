//! The keeper: the one thread that talks to the store, so that no loop ever waits for it.
//! Not for: the stores themselves (`store`).
//!
//! It gathers a batch when clicks wait to be durable, when the interval is over, or when
//! memory is half full, and hands it to the store. While the store is at work the next batch
//! gathers by itself: that is all there is to group commit, and no timer has part in it.
//!
//! What happens when the store fails:
//! - *certainly not kept*: who waits is refused; what was answered from memory stays pending
//!   and goes into the next batch, after a pause that doubles up to a second;
//! - *perhaps kept*: the batch is sent again at once, with its number, which the store
//!   knows if it kept it. If that fails too, who waits is refused as unsure, and their
//!   clicks are taken out of the batch: they count only if the first sending had arrived.
//!
//! It takes clicks again when a batch is kept or, while nobody clicks, when a probe is
//! written; that it can be read says nothing. A keeper that panics refuses all from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Sender;

use super::counters::Counter;
use super::name::Name;
use super::setting::{CountingSetting, Tell};
use super::shared::{Gathered, News, Refusal, Shared};
use super::store::{Batch, CommitError, Committed, OpenError, Store, Totals};

/// The pause after a failure, at first and at most.
const PAUSE_FIRST: Nanos = Nanos::from_millis(50);
const PAUSE_MAX: Nanos = Nanos::from_secs(1);

/// Clicks could not be kept before the end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CloseError {
    /// Acknowledged clicks that are lost.
    pub clicks: u64,
    /// What the store said.
    pub why: String,
}

impl std::fmt::Display for CloseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CloseError { clicks, why } = self;
        write!(f, "{clicks} clicks could not be kept: {why}")
    }
}

impl std::error::Error for CloseError {}

/// A counter and how many of its clicks are kept.
struct Entry {
    name: Name,
    counter: Arc<Counter>,
    /// Of what the counter has counted.
    kept: u64,
}

/// One counter's part of a batch.
struct CounterClicks {
    number: usize,
    /// Clicks that were answered from memory.
    answered: u64,
    /// Clicks that wait to be answered.
    waiting: u64,
}

/// A batch on its way.
struct Draft {
    sequence: u64,
    parts: Vec<CounterClicks>,
    /// Who waits for it; none when they were refused.
    waiting: Option<(u64, Vec<Sender<News>>)>,
    /// It was sent, and may be kept.
    is_unsure: bool,
}

impl Draft {
    /// Whether clicks that wait are sent: not after their tasks were refused.
    fn clicks(&self, part: &CounterClicks) -> u64 {
        let waiting = if self.waiting.is_some() {
            part.waiting
        } else {
            0
        };
        part.answered + waiting
    }
}

pub(super) struct Keeper {
    shared: Arc<Shared>,
    store: Box<dyn Store>,
    entries: Vec<Entry>,
    sync: Nanos,
    close_max: Nanos,
    tell: Tell,
    /// Of the last batch that is kept.
    sequence: u64,
    draft: Option<Draft>,
    /// When what is pending is kept at the latest.
    next: Instant,
    /// How long to wait after the next failure.
    pause: Nanos,
    /// Why the store fails now.
    failing: Option<String>,
    /// When there is no time left to send anything a second time.
    until: Instant,
}

impl Keeper {
    /// Takes in what is kept.
    pub fn open(
        shared: Arc<Shared>,
        mut store: Box<dyn Store>,
        setting: &CountingSetting,
    ) -> Result<Keeper, OpenError> {
        let totals = store.load()?;
        let sync = setting.sync.max(Nanos::from_millis(1));
        let mut keeper = Keeper {
            shared,
            store,
            entries: Vec::new(),
            sync,
            close_max: setting.close_max,
            tell: setting.tell.clone(),
            sequence: 0,
            draft: None,
            next: clock::monotonic() + sync,
            pause: PAUSE_FIRST,
            failing: None,
            until: Instant::NEVER,
        };
        let left_out = keeper.take_in(&totals);
        if left_out > 0 {
            keeper.tell.say(&format!(
                "{left_out} counters more are kept than the {} that there may be; \
                 they stay as they are, and nobody can ask for them",
                setting.counters_max
            ));
        }
        keeper.shared.condition().numbers.store_bytes = keeper.store.bytes();
        Ok(keeper)
    }

    /// Keeps what is counted until it is told to end and has kept everything, or cannot.
    pub fn run(mut self) -> Result<(), CloseError> {
        loop {
            let failing = self.failing.is_some();
            let asked = self.shared.intake.wait(self.next, failing);
            if self.shared.intake.is_closing() {
                return self.end();
            }
            self.turn(asked);
        }
    }

    /// Keeps what there is. Where that fails, the next turn comes after a pause.
    fn turn(&mut self, asked: bool) {
        let due = asked || clock::monotonic() >= self.next;
        if self.draft.is_some() && !self.attempt() {
            self.refuse_waiting();
            return;
        }
        let draft = self.draw(due);
        if draft.parts.is_empty() {
            if due {
                self.look_around();
            }
            return;
        }
        self.draft = Some(draft);
        if self.attempt() && due {
            self.next = clock::monotonic() + self.sync;
            if self.shared.gate.is_half_full() {
                self.shared.intake.ask();
            }
        }
    }

    /// Keeps all that is left, as long as it may take.
    fn end(&mut self) -> Result<(), CloseError> {
        self.until = clock::monotonic() + self.close_max;
        loop {
            if self.draft.is_none() {
                let draft = self.draw(true);
                self.draft = (!draft.parts.is_empty()).then_some(draft);
            }
            let well = self.draft.is_none() || self.attempt();
            // A click that has passed the gate may not be in its counter yet.
            if well && self.shared.gate.pending() == 0 {
                self.store.close();
                return Ok(());
            }
            if clock::monotonic() >= self.until {
                return Err(self.give_up());
            }
            match well {
                true => std::thread::yield_now(),
                false => std::thread::park_timeout(PAUSE_FIRST.into()),
            }
        }
    }

    fn give_up(&mut self) -> CloseError {
        self.refuse_waiting();
        if let Some(mut draft) = self.draft.take() {
            self.refuse(&mut draft, Refusal::Unsure);
        }
        let why = self.failing.take();
        CloseError {
            clicks: self.shared.gate.pending(),
            why: why.unwrap_or_else(|| "there was no time for it".to_owned()),
        }
    }

    /// What is to be kept now: what waits, and, when it is `due`, what was answered.
    fn draw(&mut self, due: bool) -> Draft {
        let Gathered {
            batch,
            clicks,
            loops,
        } = self.shared.intake.take();
        // Not before that: whoever makes a counter puts clicks of it on the table only then.
        self.meet();
        let waiting = (!clicks.is_empty()).then_some((batch, loops));
        let mut waits: BTreeMap<usize, u64> = BTreeMap::new();
        for &(number, count) in &clicks {
            *waits.entry(number as usize).or_default() += count;
        }
        let part = |number: usize| {
            let entry = &self.entries[number];
            let answered = match due {
                true => entry.counter.counted() - entry.kept,
                false => 0,
            };
            let waiting = waits.get(&number).copied().unwrap_or(0);
            (answered + waiting > 0).then_some(CounterClicks {
                number,
                answered,
                waiting,
            })
        };
        // Between two intervals only those on the table are looked at, however many there are.
        let parts = match due {
            true => (0..self.entries.len()).filter_map(part).collect(),
            false => waits.keys().copied().filter_map(part).collect(),
        };
        Draft {
            sequence: self.sequence + 1,
            parts,
            waiting,
            is_unsure: false,
        }
    }

    /// Hands the draft to the store, twice where the first time leaves doubt. True when
    /// there is no draft any more because it is kept.
    fn attempt(&mut self) -> bool {
        let Some(mut draft) = self.draft.take() else {
            return true;
        };
        let mut outcome = self.send(&draft);
        if let Err(CommitError::Unknown(_)) = outcome {
            draft.is_unsure = true;
            if clock::monotonic() < self.until {
                outcome = self.send(&draft);
            }
        }
        let error = match outcome {
            Ok(committed) => {
                self.settle(&draft, &committed);
                self.recover();
                return true;
            }
            Err(error) => error,
        };
        self.fail(error.why());
        let refusal = match draft.is_unsure {
            true => Refusal::Unsure,
            false => Refusal::NotKept,
        };
        self.refuse(&mut draft, refusal);
        // What is certainly not kept is drawn anew, with what has come since.
        self.draft = draft.is_unsure.then_some(draft);
        false
    }

    fn send(&mut self, draft: &Draft) -> Result<Committed, CommitError> {
        let click = |part: &CounterClicks| (self.entries[part.number].name, draft.clicks(part));
        let batch = Batch {
            sequence: draft.sequence,
            clicks: draft.parts.iter().map(click).collect(),
        };
        let begun = clock::monotonic();
        let outcome = self.store.commit(&batch);
        let took = clock::monotonic().since(begun);
        // It may ask the system, for which nobody shall wait who asks how things are.
        let bytes = self.store.bytes();
        let numbers = &mut self.shared.condition().numbers;
        numbers.syncs += 1;
        numbers.sync_total += took;
        numbers.sync_longest = numbers.sync_longest.max(took);
        match outcome {
            Ok(_) => numbers.batches += 1,
            Err(_) => numbers.failures += 1,
        }
        numbers.store_bytes = bytes;
        outcome
    }

    /// A draft is kept: totals rise, the gate opens further, who waits is answered.
    fn settle(&mut self, draft: &Draft, committed: &Committed) {
        self.sequence = draft.sequence;
        for (index, part) in draft.parts.iter().enumerate() {
            let entry = &mut self.entries[part.number];
            // What was refused as unsure counts after all if its first sending had arrived.
            let waiting = match draft.waiting.is_some() || committed.before {
                true => part.waiting,
                false => 0,
            };
            entry.counter.add(waiting);
            entry.kept += part.answered + waiting;
            if let Some(total) = committed.totals.get(index) {
                entry.counter.raise_base(total.saturating_sub(entry.kept));
            }
            // What is kept nowhere has passed no gate.
            if self.shared.keeps {
                self.shared.gate.leave(draft.clicks(part));
            }
        }
        tell_loops(&draft.waiting, Ok(()));
    }

    /// Who waits for a draft is told that it is not kept.
    fn refuse(&mut self, draft: &mut Draft, refusal: Refusal) {
        let waiting = draft.waiting.take();
        if waiting.is_some() {
            let clicks = draft.parts.iter().map(|part| part.waiting).sum();
            self.shared.gate.leave(clicks);
        }
        tell_loops(&waiting, Err(refusal));
    }

    /// Those who wait cannot be served now: nothing of theirs was sent.
    fn refuse_waiting(&mut self) {
        let Gathered {
            batch,
            clicks,
            loops,
        } = self.shared.intake.take();
        let clicks = clicks.iter().map(|&(_, count)| count).sum();
        self.shared.gate.leave(clicks);
        tell_loops(&Some((batch, loops)), Err(Refusal::NotKept));
    }

    /// What others have counted, and, after a failure, whether the store can be written
    /// again: reading says nothing about that.
    fn look_around(&mut self) {
        self.next = clock::monotonic() + self.sync;
        let probed = match &self.failing {
            Some(_) => self.store.probe(),
            None => Ok(()),
        };
        match probed.and_then(|()| self.store.refresh()) {
            Ok(totals) => {
                // It was said at the start that there may be too many.
                self.take_in(&totals);
                self.recover();
            }
            Err(error) => self.fail(error.why()),
        }
    }

    /// Takes over totals; for how many of them there is no room.
    fn take_in(&mut self, totals: &Totals) -> usize {
        let mut left_out = 0;
        for (name, total) in totals {
            let Ok((number, _)) = self.shared.counters.ensure(name) else {
                left_out += 1;
                continue;
            };
            self.meet();
            let entry = &mut self.entries[number as usize];
            entry.counter.raise_base(total.saturating_sub(entry.kept));
        }
        left_out
    }

    /// Learns of the counters that there are by now.
    fn meet(&mut self) {
        let new = self.shared.counters.since(self.entries.len());
        self.entries
            .extend(new.into_iter().map(|(name, counter)| Entry {
                name,
                counter,
                kept: 0,
            }));
    }

    fn fail(&mut self, why: &str) {
        let now = clock::monotonic();
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        if self.failing.is_none() {
            self.shared.condition().failing = Some((now, why.to_owned()));
            self.tell.say(&format!("the store fails: {why}"));
        }
        self.failing = Some(why.to_owned());
    }

    fn recover(&mut self) {
        if self.failing.take().is_none() {
            return;
        }
        self.pause = PAUSE_FIRST;
        self.next = clock::monotonic();
        self.shared.condition().failing = None;
        self.tell.say("the store takes clicks again");
    }
}

fn tell_loops(waiting: &Option<(u64, Vec<Sender<News>>)>, verdict: Result<(), Refusal>) {
    if let Some((batch, loops)) = waiting {
        for sender in loops {
            // A loop that is gone has nobody who waits.
            let _ = sender.send(News {
                batch: *batch,
                verdict,
            });
        }
    }
}
