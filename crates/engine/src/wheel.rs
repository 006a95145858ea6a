//! Timers: a hierarchical wheel (Varghese and Lauck, "Hashed and hierarchical
//! timing wheels", 1987) of eleven levels of 64 slots, exact to the nanosecond.
//!
//! Adding and cancelling are O(1) and allocate nothing once the table of timers
//! has grown. Most timers are time-outs that are cancelled long before they are
//! due, and those never move; one that does fall due moved down at most ten times.
//! Not for: knowing what time it is; every function takes it as an argument.

use prony_base::Instant;

use crate::slab::{Key, Slab};

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Eleven digits of six bits hold a 64-bit number of nanoseconds.
const LEVELS: usize = 11;
const NONE: u32 = u32::MAX;
/// Timers of one slot that are looked at for the one that is due first. Each wait that ends too early
/// costs a wake-up; so would a look at thousands of time-outs.
const LOOKED_AT_MAX: usize = 16;

struct Timer<T> {
    due: u64,
    what: Option<T>,
    level: u8,
    slot: u8,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List {
    first: NONE,
    last: NONE,
};

/// Timers, each with a thing to hand out when it is due.
///
/// Invariant: a timer stands on the level of the highest digit in which its due
/// time differs from `reached`, in the slot of that digit. So the first used slot
/// of the lowest used level holds the next timer, and timers that are due at the
/// same time share a list, in the order in which they were added.
pub(crate) struct Wheel<T> {
    timers: Slab<Timer<T>>,
    lists: Box<[[List; SLOTS]; LEVELS]>,
    /// One bit per used slot of each level.
    used: [u64; LEVELS],
    /// Time up to which everything due has been handed out.
    reached: u64,
}

impl<T> Wheel<T> {
    pub fn new(now: Instant) -> Wheel<T> {
        Wheel {
            timers: Slab::new(),
            lists: Box::new([[EMPTY; SLOTS]; LEVELS]),
            used: [0; LEVELS],
            reached: now.0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.timers.len() == 0
    }

    /// Adds a timer. One that is due already is handed out by the next `expire`.
    pub fn add(&mut self, due: Instant, what: T) -> Key {
        let key = self.timers.insert(Timer {
            due: due.0,
            what: Some(what),
            level: 0,
            slot: 0,
            before: NONE,
            after: NONE,
        });
        self.place(key.index);
        key
    }

    /// Takes a timer back; None when it was handed out already.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.timers.get(key)?;
        self.unlink(key.index);
        self.timers.remove(key)?.what
    }

    /// What a timer that is still to come will hand out.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.timers.get_mut(key)?.what.as_mut()
    }

    /// When the next timer is due. Where many share its slot, a time that is not later: then the wheel
    /// has to be turned (by `expire`) a few times before the timer itself is due.
    pub fn next(&self) -> Option<Instant> {
        let (level, slot) = self.first_slot()?;
        let start = self.start_of(level, slot);
        let mut next = u64::MAX;
        let mut index = self.lists[level][slot].first;
        for _ in 0..LOOKED_AT_MAX {
            let Some((_, timer)) = self.timers.at(index) else {
                break;
            };
            next = next.min(timer.due);
            index = timer.after;
        }
        // What is overdue is due now.
        Some(Instant(if index == NONE {
            next.max(start)
        } else {
            start
        }))
    }

    /// Moves what is due at `now` to the end of `out`, in order of due time and,
    /// for equal times, of adding.
    pub fn expire(&mut self, now: Instant, out: &mut Vec<T>) {
        while let Some((level, slot)) = self.first_slot() {
            let start = self.start_of(level, slot);
            if start > now.0 {
                break;
            }
            self.reached = self.reached.max(start);
            self.empty_slot(level, slot, out);
        }
        self.reached = self.reached.max(now.0);
    }

    /// Hands out what is due in a slot whose time has come, and moves the rest
    /// to lower levels.
    fn empty_slot(&mut self, level: usize, slot: usize, out: &mut Vec<T>) {
        let mut index = std::mem::replace(&mut self.lists[level][slot], EMPTY).first;
        self.used[level] &= !(1 << slot);
        while index != NONE {
            let (key, timer) = self.timers.at_mut(index).expect("a listed timer exists");
            let after = timer.after;
            if timer.due <= self.reached {
                out.extend(self.timers.remove(key).and_then(|timer| timer.what));
            } else {
                self.place(index);
            }
            index = after;
        }
    }

    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.used.iter().position(|&bits| bits != 0)?;
        Some((level, self.used[level].trailing_zeros() as usize))
    }

    /// The first nanosecond of a slot, given that it lies ahead of `reached`.
    fn start_of(&self, level: usize, slot: usize) -> u64 {
        let shift = DIGIT_BITS * level as u32;
        let above = self
            .reached
            .checked_shr(shift + DIGIT_BITS)
            .unwrap_or(0)
            .checked_shl(shift + DIGIT_BITS)
            .unwrap_or(0);
        above | (slot as u64) << shift
    }

    fn place(&mut self, index: u32) {
        let reached = self.reached;
        let (_, timer) = self.timers.at_mut(index).expect("a placed timer exists");
        // What is overdue stands in the slot of `reached` itself, on level 0.
        let due = timer.due.max(reached);
        let differs = due ^ reached;
        let level = (63_u32.saturating_sub(differs.leading_zeros()) / DIGIT_BITS) as usize;
        let slot = (due >> (DIGIT_BITS * level as u32)) as usize % SLOTS;
        (timer.level, timer.slot) = (level as u8, slot as u8);
        timer.after = NONE;
        let list = &mut self.lists[level][slot];
        timer.before = std::mem::replace(&mut list.last, index);
        if timer.before == NONE {
            list.first = index;
            self.used[level] |= 1 << slot;
        } else {
            let before = timer.before;
            let (_, before) = self.timers.at_mut(before).expect("a listed timer exists");
            before.after = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let (_, timer) = self.timers.at_mut(index).expect("a listed timer exists");
        let (before, after) = (timer.before, timer.after);
        let (level, slot) = (usize::from(timer.level), usize::from(timer.slot));
        match self.timers.at_mut(before) {
            Some((_, timer)) => timer.after = after,
            None => self.lists[level][slot].first = after,
        }
        match self.timers.at_mut(after) {
            Some((_, timer)) => timer.before = before,
            None => self.lists[level][slot].last = before,
        }
        if self.lists[level][slot].first == NONE {
            self.used[level] &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Add(u64),
        Cancel(usize),
        Pass(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Lengths of every magnitude, so that every level is used.
        let length = (0_u32..64, any::<u64>()).prop_map(|(bits, random)| random >> bits);
        let step = prop_oneof![
            4 => length.clone().prop_map(Step::Add),
            2 => any::<usize>().prop_map(Step::Cancel),
            3 => length.prop_map(Step::Pass),
        ];
        proptest::collection::vec(step, 0..120)
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(start in any::<u32>(), steps in steps()) {
            let mut now = u64::from(start);
            let mut wheel = Wheel::new(Instant(now));
            let mut model: BTreeMap<(u64, usize), ()> = BTreeMap::new();
            let mut added: Vec<(Key, u64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Add(length) => {
                        let due = now.saturating_add(length);
                        let name = added.len();
                        added.push((wheel.add(Instant(due), name), due));
                        model.insert((due, name), ());
                    }
                    Step::Cancel(any) if !added.is_empty() => {
                        let name = any % added.len();
                        let (key, due) = added[name];
                        let there = model.remove(&(due, name)).map(|()| name);
                        prop_assert_eq!(wheel.cancel(key), there);
                    }
                    Step::Cancel(_) => {}
                    Step::Pass(length) => {
                        now = now.saturating_add(length);
                        let mut out = Vec::new();
                        wheel.expire(Instant(now), &mut out);
                        let later = model.split_off(&(now, usize::MAX));
                        let due: Vec<usize> = model.keys().map(|&(_, name)| name).collect();
                        model = later;
                        prop_assert_eq!(out, due);
                    }
                }
                prop_assert_eq!(wheel.is_empty(), model.is_empty());
                let first = model.keys().next().map(|&(due, _)| due);
                prop_assert_eq!(wheel.next().is_some(), first.is_some());
                if let (Some(next), Some(first)) = (wheel.next(), first) {
                    prop_assert!(next.0 <= first);
                    prop_assert!(next.0 > now || first <= now);
                    if model.len() <= LOOKED_AT_MAX {
                        prop_assert_eq!(next.0, first.max(now));
                    }
                }
            }
        }
    }

    #[test]
    fn an_overdue_timer_is_handed_out_at_once() {
        let mut wheel = Wheel::new(Instant(1_000));
        wheel.add(Instant(5), "late");
        let mut out = Vec::new();
        wheel.expire(Instant(1_000), &mut out);
        assert_eq!(out, ["late"]);
    }
}
