//! What the loops and the keeper share: the counters, the gate that clicks pass, the
//! table on which clicks wait to be kept, and what is known of the store.
//! Not for: deciding when something is kept (`keeper`), waiting on a loop (`desk`).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use prony_base::{Instant, Nanos, clock};
use prony_engine::Sender;

use super::counters::Counters;
use super::setting::{Ack, Backend, CountingSetting};

/// Clicks of one batch that may wait each for itself; they are added up where they are for
/// the same counter.
const WAITING_MAX: usize = 65_536;

/// Why a click was not counted. All but [`Refusal::Unsure`] are certain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The service ends.
    Closing,
    /// As many clicks as may be are in memory alone.
    PendingFull,
    /// As many requests as may be wait to be kept.
    WaitingFull,
    /// There are as many counters as there may be.
    TooManyCounters,
    /// The counter has reached [`TOTAL_MAX`](super::TOTAL_MAX).
    TotalFull,
    /// The store did not take it.
    NotKept,
    /// The store was asked to take it, and did not say whether it did.
    Unsure,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Closing => "the service is about to end",
            Refusal::PendingFull => "too many clicks wait for the store",
            Refusal::WaitingFull => "too many requests wait for the store",
            Refusal::TooManyCounters => "there are as many counters as there may be",
            Refusal::TotalFull => "the counter is full",
            Refusal::NotKept => "the store did not take the clicks",
            Refusal::Unsure => "the store did not say whether it took the clicks",
        })
    }
}

impl std::error::Error for Refusal {}

/// What became of a batch in which clicks of this loop waited.
pub(super) struct News {
    pub batch: u64,
    pub verdict: Result<(), Refusal>,
}

/// Clicks that were let in and are not kept yet, and whether any are let in. Its one number
/// decides, so that closing it and passing it have an order.
pub(super) struct Gate {
    pending: AtomicU64,
    pending_max: u64,
}

/// Set in the number when the gate is closed.
const CLOSED: u64 = 1 << 63;

impl Gate {
    pub fn new(pending_max: u64) -> Gate {
        Gate {
            pending: AtomicU64::new(0),
            // Many more threads than there are may add so much at once before a bit is lost.
            pending_max: pending_max.min(1 << 48),
        }
    }

    /// Lets clicks in; true when they make half of what may wait full.
    #[inline]
    pub fn enter(&self, clicks: u64) -> Result<bool, Refusal> {
        if clicks > self.pending_max {
            return Err(Refusal::PendingFull);
        }
        let before = self.pending.fetch_add(clicks, Ordering::AcqRel);
        let after = before + clicks;
        if after > self.pending_max {
            self.leave(clicks);
            let closed = before & CLOSED != 0;
            let why = [Refusal::PendingFull, Refusal::Closing][usize::from(closed)];
            return Err(why);
        }
        let half = self.pending_max / 2;
        Ok(before <= half && after > half)
    }

    /// Clicks are kept, or were refused after all.
    pub fn leave(&self, clicks: u64) {
        self.pending.fetch_sub(clicks, Ordering::AcqRel);
    }

    pub fn close(&self) {
        self.pending.fetch_or(CLOSED, Ordering::AcqRel);
    }

    pub fn is_closed(&self) -> bool {
        self.pending.load(Ordering::Acquire) & CLOSED != 0
    }

    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Acquire) & !CLOSED
    }

    pub fn is_full(&self) -> bool {
        self.pending() >= self.pending_max
    }

    pub fn is_half_full(&self) -> bool {
        self.pending() > self.pending_max / 2
    }
}

/// The table on which clicks wait that are answered when they are durable. What waits while
/// the keeper is busy goes into its next batch, all at once.
#[derive(Default)]
pub(super) struct Intake {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of the batch that is gathered now.
    batch: u64,
    /// Counters' numbers, and clicks.
    clicks: Vec<(u32, u64)>,
    seats: Vec<Option<Seat>>,
    /// Somebody wants the keeper to look at once.
    asked: bool,
    closing: bool,
    /// Nobody will take anything from the table any more.
    is_broken: bool,
    asleep: bool,
}

/// A loop that is told what becomes of its clicks.
struct Seat {
    sender: Sender<News>,
    /// The last batch that has clicks of this loop.
    batch: u64,
}

/// A batch as it was gathered.
pub(super) struct Gathered {
    pub batch: u64,
    pub clicks: Vec<(u32, u64)>,
    /// The loops that wait for it.
    pub loops: Vec<Sender<News>>,
}

impl Intake {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, state: MutexGuard<'_, State>) {
        let asleep = state.asleep;
        drop(state);
        // Ringing is a system call even where nobody listens.
        if asleep {
            self.bell.notify_one();
        }
    }

    /// A loop's place, by which it waits.
    pub fn sit(&self, sender: Sender<News>) -> usize {
        let mut state = self.lock();
        let batch = u64::MAX;
        let seat = (!state.is_broken).then_some(Seat { sender, batch });
        if let Some(free) = state.seats.iter().position(Option::is_none) {
            state.seats[free] = seat;
            return free;
        }
        state.seats.push(seat);
        state.seats.len() - 1
    }

    pub fn rise(&self, place: usize) {
        let mut state = self.lock();
        let seat = state.seats.get_mut(place).and_then(Option::take);
        drop(state);
        drop(seat);
    }

    /// Puts clicks of the loop at `place` on the table; the number of their batch.
    pub fn put(&self, place: usize, counter: u32, clicks: u64) -> Result<u64, Refusal> {
        let mut state = self.lock();
        if state.is_broken {
            return Err(Refusal::NotKept);
        }
        let is_full = state.clicks.len() >= WAITING_MAX;
        match state.clicks.last_mut() {
            Some(last) if last.0 == counter => last.1 += clicks,
            _ if is_full => return Err(Refusal::WaitingFull),
            _ => state.clicks.push((counter, clicks)),
        }
        let batch = state.batch;
        if let Some(Some(seat)) = state.seats.get_mut(place) {
            seat.batch = batch;
        }
        self.ring(state);
        Ok(batch)
    }

    /// Asks the keeper to keep what is pending now.
    pub fn ask(&self) {
        let mut state = self.lock();
        state.asked = true;
        self.ring(state);
    }

    /// The keeper is gone without having kept what is on the table. Loops hear no more.
    pub fn break_off(&self) {
        let mut state = self.lock();
        state.is_broken = true;
        let seats = std::mem::take(&mut state.seats);
        drop(state);
        drop(seats);
    }

    /// Asks the keeper to keep what is left, and to end.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        self.ring(state);
    }

    pub fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// The keeper waits until there is something to do: until then, for the end, or, unless
    /// it is `patient`, for clicks that wait. True when it was asked to keep everything.
    pub fn wait(&self, until: Instant, patient: bool) -> bool {
        let mut state = self.lock();
        loop {
            let left = until.since(clock::monotonic());
            let called = !patient && (state.asked || !state.clicks.is_empty());
            if state.closing || called || left == Nanos::ZERO {
                break;
            }
            state.asleep = true;
            let waited = self.bell.wait_timeout(state, left.into());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.asleep = false;
        }
        std::mem::take(&mut state.asked)
    }

    /// What has gathered; what comes from now on is the next batch.
    pub fn take(&self) -> Gathered {
        let mut state = self.lock();
        let batch = state.batch;
        let clicks = std::mem::take(&mut state.clicks);
        let mut loops = Vec::new();
        if !clicks.is_empty() {
            state.batch += 1;
            let seats = state.seats.iter().flatten();
            let waiting = seats.filter(|seat| seat.batch == batch);
            loops.extend(waiting.map(|seat| seat.sender.clone()));
        }
        Gathered {
            batch,
            clicks,
            loops,
        }
    }
}

/// Whether clicks are counted and kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Health {
    /// The store takes what is counted.
    Ready,
    /// The store does not; clicks are counted in memory meanwhile.
    Bridging {
        /// How long that has been so.
        length: Nanos,
        /// Clicks that are in memory alone.
        pending: u64,
    },
    /// Clicks are refused.
    Refusing {
        /// Why, for people.
        why: String,
    },
}

/// What can be told in numbers, since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Numbers {
    /// Clicks that were counted by this process.
    pub clicks: u64,
    /// Clicks that are in memory alone.
    pub pending: u64,
    /// Counters that there are.
    pub counters: u64,
    /// Batches that the store has taken.
    pub batches: u64,
    /// Times that the store was asked to take a batch.
    pub syncs: u64,
    /// How long these took together.
    pub sync_total: Nanos,
    /// How long the longest took.
    pub sync_longest: Nanos,
    /// How many of these failed.
    pub failures: u64,
    /// Bytes of the store, where it is a file.
    pub store_bytes: u64,
}

/// What the keeper knows of the store.
#[derive(Default)]
pub(super) struct Condition {
    /// Since when it fails, and why.
    pub failing: Option<(Instant, String)>,
    /// Without what is counted elsewhere.
    pub numbers: Numbers,
}

pub(super) struct Shared {
    pub counters: Counters,
    pub gate: Gate,
    pub intake: Intake,
    pub ack: Ack,
    /// False where nothing is kept anywhere.
    pub keeps: bool,
    condition: Mutex<Condition>,
}

impl Shared {
    pub fn new(setting: &CountingSetting) -> Shared {
        Shared {
            counters: Counters::new(setting.counters_max),
            gate: Gate::new(setting.pending_max),
            intake: Intake::default(),
            ack: setting.ack,
            keeps: setting.backend != Backend::None,
            condition: Mutex::default(),
        }
    }

    pub fn condition(&self) -> MutexGuard<'_, Condition> {
        let condition = self.condition.lock();
        condition.unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses clicks from now on, and tells all who wait that nobody knows of theirs.
    pub fn break_off(&self, why: &str) {
        self.gate.close();
        self.condition().failing = Some((clock::monotonic(), why.to_owned()));
        self.intake.break_off();
    }

    pub fn health(&self) -> Health {
        let condition = self.condition();
        let is_closed = self.gate.is_closed();
        let Some((since, why)) = &condition.failing else {
            let why = Refusal::Closing.to_string();
            return if is_closed {
                Health::Refusing { why }
            } else {
                Health::Ready
            };
        };
        if is_closed || self.ack == Ack::Synced || self.gate.is_full() {
            return Health::Refusing { why: why.clone() };
        }
        Health::Bridging {
            length: clock::monotonic().since(*since),
            pending: self.gate.pending(),
        }
    }

    pub fn numbers(&self) -> Numbers {
        let all = self.counters.since(0);
        let clicks = all.iter().map(|(_, counter)| counter.counted());
        Numbers {
            clicks: clicks.fold(0, u64::saturating_add),
            pending: self.gate.pending(),
            counters: all.len() as u64,
            ..self.condition().numbers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_has_a_limit_and_can_be_closed() {
        let gate = Gate::new(10);
        assert_eq!(gate.enter(5), Ok(false));
        assert_eq!(gate.enter(1), Ok(true));
        assert_eq!(gate.enter(5), Err(Refusal::PendingFull));
        assert_eq!(gate.enter(u64::MAX), Err(Refusal::PendingFull));
        assert_eq!(gate.pending(), 6);
        gate.close();
        assert_eq!(gate.enter(1), Err(Refusal::Closing));
        gate.leave(6);
        assert_eq!((gate.pending(), gate.is_closed()), (0, true));
    }

    #[test]
    fn what_comes_after_the_taking_is_another_batch() {
        let intake = Intake::default();
        let (sender, _receiver) = prony_engine::mailbox(4);
        let place = intake.sit(sender);
        assert_eq!(intake.put(place, 0, 1), Ok(0));
        assert_eq!(intake.put(place, 0, 2), Ok(0));
        let taken = intake.take();
        assert_eq!(
            (taken.batch, taken.clicks, taken.loops.len()),
            (0, vec![(0, 3)], 1)
        );
        assert_eq!(intake.put(place, 1, 1), Ok(1));
        intake.rise(place);
        let taken = intake.take();
        assert_eq!((taken.clicks, taken.loops.len()), (vec![(1, 1)], 0));
        assert!(intake.take().clicks.is_empty());
    }

    #[test]
    fn the_table_has_a_limit() {
        let intake = Intake::default();
        for number in 0..WAITING_MAX as u32 {
            assert!(intake.put(0, number, 1).is_ok());
        }
        assert_eq!(intake.put(0, 0, 1), Err(Refusal::WaitingFull));
    }

    #[test]
    fn a_keeper_that_is_patient_waits_for_its_time_and_for_the_end_only() {
        let intake = Intake::default();
        intake.ask();
        assert!(intake.wait(Instant::NEVER, false));
        intake.ask();
        assert!(intake.wait(clock::monotonic(), true), "its time has come");
        intake.close();
        assert!(!intake.wait(Instant::NEVER, true));
    }
}
