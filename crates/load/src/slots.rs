//! Which slots are idle, and which arrivals wait for one: one first-in-first-out queue with a limit. A slot is one
//! request outstanding. No I/O and no clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use prony_base::Instant;

/// The slots of one thread and what waits for them.
#[derive(Debug)]
pub struct Slots {
    /// Idle ones, the one that has been idle longest first, so that all connections are used alike. Some may have
    /// lost their connection since.
    idle: VecDeque<usize>,
    /// Whether a slot stands in `idle`.
    is_idle: Vec<bool>,
    /// The arrivals that wait.
    waiting: VecDeque<Due>,
    waiting_limit: usize,
    waiting_max: usize,
    dropped: u64,
    /// Slots that think, by the time at which they are to go on.
    thinking: BinaryHeap<Reverse<(Instant, usize)>>,
}

/// A request that is to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Due {
    /// When the schedule wanted it to start.
    pub intended: Instant,
    /// When the generator took it up.
    pub taken_up: Instant,
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arrived {
    /// This slot takes it.
    Slot(usize),
    /// It waits.
    Waits,
    /// The queue is at its limit.
    Dropped,
}

impl Slots {
    /// `count` slots, none of them ready, and a queue of at most `waiting_limit`.
    pub fn new(count: usize, waiting_limit: usize) -> Slots {
        Slots {
            idle: VecDeque::with_capacity(count),
            is_idle: vec![false; count],
            waiting: VecDeque::new(),
            waiting_limit,
            waiting_max: 0,
            dropped: 0,
            thinking: BinaryHeap::new(),
        }
    }

    /// A request is due; `can` tells whether an idle slot still has its connection.
    pub fn arrive(&mut self, due: Due, can: impl Fn(usize) -> bool) -> Arrived {
        // Who waits comes first; then there is no idle slot anyway.
        while self.waiting.is_empty()
            && let Some(slot) = self.idle.pop_front()
        {
            self.is_idle[slot] = false;
            if can(slot) {
                return Arrived::Slot(slot);
            }
        }
        if self.waiting.len() >= self.waiting_limit {
            self.dropped += 1;
            return Arrived::Dropped;
        }
        self.waiting.push_back(due);
        self.waiting_max = self.waiting_max.max(self.waiting.len());
        Arrived::Waits
    }

    /// `slot` is ready: the arrival that it takes, if one waits; otherwise it is idle from now on.
    pub fn ready(&mut self, slot: usize) -> Option<Due> {
        let first = self.waiting.pop_front();
        if first.is_none() && !std::mem::replace(&mut self.is_idle[slot], true) {
            self.idle.push_back(slot);
        }
        first
    }

    /// An arrival that was taken is the first to wait again: its slot sends nothing now.
    pub fn put_back(&mut self, due: Due) {
        self.waiting.push_front(due);
        self.waiting_max = self.waiting_max.max(self.waiting.len());
    }

    /// Schedules the next request of `slot` at `due`.
    pub fn think(&mut self, slot: usize, due: Instant) {
        self.thinking.push(Reverse((due, slot)));
    }

    /// A slot that has thought long enough at `now`, and when it was to go on.
    pub fn thought(&mut self, now: Instant) -> Option<(Instant, usize)> {
        let Reverse((due, _)) = *self.thinking.peek()?;
        if due > now {
            return None;
        }
        self.thinking.pop().map(|Reverse(first)| first)
    }

    /// When the next slot has thought long enough.
    pub fn next_thought(&self) -> Option<Instant> {
        self.thinking.peek().map(|Reverse((due, _))| *due)
    }

    /// Arrivals that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the arrivals that wait out of the queue: they will never be sent.
    pub fn give_up(&mut self) -> VecDeque<Due> {
        std::mem::take(&mut self.waiting)
    }

    /// Most that waited at the same time.
    pub fn waiting_max(&self) -> usize {
        self.waiting_max
    }

    /// Arrivals that found the queue at its limit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn due(at: u64) -> Due {
        Due {
            intended: Instant(at),
            taken_up: Instant(at),
        }
    }

    #[test]
    fn the_slot_that_was_idle_longest_takes_an_arrival_and_who_came_first_is_sent_first() {
        let mut slots = Slots::new(3, 2);
        for slot in [2, 0, 1] {
            assert_eq!(slots.ready(slot), None);
        }
        let mut arrive = |at| slots.arrive(due(at), |_| true);
        let taken = [
            arrive(1),
            arrive(2),
            arrive(3),
            arrive(4),
            arrive(5),
            arrive(6),
        ];
        let expected = [
            Arrived::Slot(2),
            Arrived::Slot(0),
            Arrived::Slot(1),
            Arrived::Waits,
            Arrived::Waits,
            Arrived::Dropped,
        ];
        assert_eq!(taken, expected);
        assert_eq!(
            (slots.ready(1), slots.ready(1), slots.ready(1)),
            (Some(due(4)), Some(due(5)), None)
        );
        assert_eq!((slots.waiting_max(), slots.dropped()), (2, 1));
    }

    #[test]
    fn a_slot_that_lost_its_connection_takes_nothing_and_is_back_once() {
        let mut slots = Slots::new(2, 9);
        slots.ready(0);
        slots.ready(0);
        slots.ready(1);
        assert_eq!(slots.arrive(due(1), |slot| slot != 0), Arrived::Slot(1));
        assert_eq!(slots.arrive(due(2), |_| true), Arrived::Waits);
        assert_eq!(slots.ready(0), Some(due(2)));
    }

    #[test]
    fn slots_think_each_for_its_time() {
        let mut slots = Slots::new(2, 0);
        slots.think(0, Instant(30));
        slots.think(1, Instant(20));
        assert_eq!(
            (slots.next_thought(), slots.thought(Instant(19))),
            (Some(Instant(20)), None)
        );
        assert_eq!(slots.thought(Instant(40)), Some((Instant(20), 1)));
        assert_eq!(slots.thought(Instant(40)), Some((Instant(30), 0)));
        assert_eq!(
            (slots.thought(Instant(40)), slots.next_thought()),
            (None, None)
        );
    }

    proptest! {
        #[test]
        fn no_arrival_is_lost_and_none_overtakes(steps in prop::collection::vec(any::<bool>(), 0..300), limit in 0_usize..20) {
            let mut slots = Slots::new(4, limit);
            let mut busy = std::collections::BTreeSet::from([0, 1, 2, 3]);
            let (mut sent, mut at) = (Vec::new(), 0);
            for is_arrival in steps {
                if is_arrival {
                    at += 1;
                    if let Arrived::Slot(slot) = slots.arrive(due(at), |_| true) {
                        prop_assert!(busy.insert(slot));
                        sent.push(due(at));
                    }
                } else if let Some(&slot) = busy.first() {
                    match slots.ready(slot) {
                        Some(first) => sent.push(first),
                        None => { busy.remove(&slot); }
                    }
                }
            }
            prop_assert!(sent.is_sorted_by_key(|due: &Due| due.intended));
            prop_assert_eq!(at, sent.len() as u64 + slots.waiting() as u64 + slots.dropped());
        }
    }
}
