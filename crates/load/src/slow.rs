//! In how many separate periods of time requests were slow: one pause of a server delays all that are in flight, so a
//! thousand slow requests may be one event.
//!
//! What is slow is known only at the end. Until then the longest latency is kept of each slot of a millisecond, by when
//! its request ended. A request that took `l` and ended at `t` was slow from `t − l` to `t`; slow requests whose times
//! overlap are one period. What lies within a slot cannot be told apart and is one period, too: there are at least as
//! many as are counted.
//!
//! Not for: which requests they were ([`crate::trace`]).

use prony_base::{Instant, Nanos};
use serde::{Deserialize, Serialize};

/// Length of a slot at first, as a power of two: 2^20 ns, about a millisecond.
const SHIFT: u32 = 20;
/// Slots that are kept, about 18 minutes at first. Longer runs have longer slots.
const SLOTS_MAX: usize = 1 << 20;
/// Slots for which there is room from the beginning: a window of 16 s allocates nothing.
const SLOTS_AT_FIRST: usize = 1 << 14;

/// The longest latency in each slot of the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slowest {
    pub start: Instant,
    shift: u32,
    /// Nanoseconds; 0: no request ended there.
    slots: Vec<u64>,
}

impl Slowest {
    /// Nothing recorded; the first slot begins at `start`.
    pub fn new(start: Instant) -> Slowest {
        Slowest {
            start,
            shift: SHIFT,
            slots: Vec::with_capacity(SLOTS_AT_FIRST),
        }
    }

    /// Whether it may be what was recorded, wherever it is from.
    pub fn is_plausible(&self) -> bool {
        (SHIFT..u64::BITS - SLOTS_MAX.ilog2()).contains(&self.shift)
            && self.slots.len() <= SLOTS_MAX
    }

    /// A request that took `latency` ended at `at`. One that ended before the first slot counts into that.
    #[inline]
    pub fn record(&mut self, at: Instant, latency: Nanos) {
        let mut slot = self.slot(at);
        if slot >= self.slots.len() {
            slot = self.make_room(at);
        }
        let longest = &mut self.slots[slot];
        *longest = (*longest).max(latency.0);
    }

    #[inline]
    fn slot(&self, at: Instant) -> usize {
        let since = at.0.saturating_sub(self.start.0);
        usize::try_from(since >> self.shift).unwrap_or(usize::MAX)
    }

    #[cold]
    fn make_room(&mut self, at: Instant) -> usize {
        while self.slot(at) >= SLOTS_MAX {
            self.double();
        }
        let slot = self.slot(at);
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, 0);
        }
        slot
    }

    /// Makes each two slots one.
    fn double(&mut self) {
        let halves = self.slots.len().div_ceil(2);
        for slot in 0..halves {
            let second = self.slots.get(2 * slot + 1).copied().unwrap_or_default();
            self.slots[slot] = self.slots[2 * slot].max(second);
        }
        self.slots.truncate(halves);
        self.shift += 1;
    }

    /// Adds what another thread recorded of the same window.
    pub fn merge(&mut self, other: &Slowest) {
        let mut theirs = other.clone();
        while self.shift < theirs.shift {
            self.double();
        }
        while theirs.shift < self.shift {
            theirs.double();
        }
        if self.slots.len() < theirs.slots.len() {
            self.slots.resize(theirs.slots.len(), 0);
        }
        for (mine, theirs) in self.slots.iter_mut().zip(&theirs.slots) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Periods in which a request took longer than `limit`, at the least.
    pub fn periods(&self, limit: Nanos) -> u64 {
        let (mut periods, mut until) = (0, None);
        for (slot, &longest) in (0_u64..).zip(&self.slots) {
            if longest <= limit.0 {
                continue;
            }
            let (from, to) = (slot << self.shift, (slot + 1) << self.shift);
            // Its request may have ended at the beginning of the slot, or at its end.
            let begun = from.saturating_sub(longest);
            if until.is_none_or(|until| begun > until) {
                periods += 1;
            }
            until = Some(to);
        }
        periods
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn of(requests: &[(u64, u64)]) -> Slowest {
        let mut slowest = Slowest::new(Instant(0));
        for &(end_ms, latency_ms) in requests {
            slowest.record(Instant(end_ms * MS), Nanos(latency_ms * MS));
        }
        slowest
    }

    #[test]
    fn a_pause_that_delays_all_connections_is_one_period() {
        // 400 requests that waited for 50 ms end within 4 ms.
        let requests: Vec<(u64, u64)> = (0..400).map(|n| (1_000 + n / 100, 50)).collect();
        assert_eq!(of(&requests).periods(Nanos(10 * MS)), 1);
    }

    #[test]
    fn slow_requests_one_after_the_other_are_one_period() {
        // Each begins before the one before it has ended.
        let requests: Vec<(u64, u64)> = (0..20).map(|n| (100 + n * 30, 40)).collect();
        assert_eq!(of(&requests).periods(Nanos(10 * MS)), 1);
    }

    #[test]
    fn slow_requests_far_apart_are_periods_of_their_own() {
        let requests: Vec<(u64, u64)> = (0..20).map(|n| (100 + n * 100, 40)).collect();
        let slowest = of(&requests);
        assert_eq!(slowest.periods(Nanos(10 * MS)), 20);
        assert_eq!(slowest.periods(Nanos(40 * MS)), 0, "none took longer");
    }

    #[test]
    fn a_long_run_keeps_as_many_slots() {
        let mut slowest = Slowest::new(Instant(5));
        for hour in 0..10 {
            slowest.record(Instant(5 + hour * 3_600_000 * MS), Nanos(MS));
        }
        assert!(slowest.slots.len() <= SLOTS_MAX);
        assert_eq!(slowest.periods(Nanos(0)), 10);
    }

    #[test]
    fn nothing_is_no_period() {
        assert_eq!(Slowest::new(Instant(7)).periods(Nanos(0)), 0);
    }

    proptest! {
        /// Which thread recorded a request changes nothing, and longer slots only join periods.
        #[test]
        fn threads_add_up(requests in prop::collection::vec((0_u64..5_000, 1_u64..100, any::<bool>()), 0..200)) {
            let all: Vec<(u64, u64)> = requests.iter().map(|&(end, latency, _)| (end, latency)).collect();
            let of_thread = |which: bool| {
                let own = requests.iter().filter(|request| request.2 == which);
                of(&own.map(|&(end, latency, _)| (end, latency)).collect::<Vec<_>>())
            };
            let (mut merged, mut other) = (of_thread(false), of_thread(true));
            other.double();
            let limit = Nanos(20 * MS);
            merged.merge(&of_thread(true));
            prop_assert_eq!(merged.periods(limit), of(&all).periods(limit));
            let finer = merged.periods(limit);
            merged.merge(&other);
            prop_assert!(merged.periods(limit) <= finer);
            prop_assert!(finer <= all.iter().filter(|(_, latency)| *latency > 20).count() as u64);
        }
    }
}
