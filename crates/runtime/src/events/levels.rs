//! In which order events of all types are due: by priority, then first come first
//! served. It knows how many events of which type follow each other, not the
//! events themselves.
//!
//! A level is one priority. It holds runs: so many events of one type from one
//! originator in a row. A stream of one type is a single run that grows.
//! Not for: storing events (`lane`).

use std::collections::{BTreeMap, VecDeque};

/// Levels without events that are kept, because they are likely to be used again.
const EMPTY_LEVELS_MAX: usize = 64;

/// Some events of one type and originator in a row.
struct Run {
    channel: u32,
    count: u32,
    originator: u64,
}

struct Level {
    priority: u64,
    runs: VecDeque<Run>,
    /// The types that ever had an event here.
    users: Vec<u32>,
}

/// Events that the dispatcher has taken out of the order and is about to deliver.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    pub slot: u32,
    pub priority: u64,
    pub channel: u32,
    pub originator: u64,
    pub count: u32,
}

/// Where an appended event belongs.
pub(super) struct Place {
    pub slot: u32,
    /// It is more urgent than what is being dispatched.
    pub preempts: bool,
}

/// All levels.
pub(super) struct Levels {
    slots: Vec<Level>,
    free: Vec<u32>,
    by_priority: BTreeMap<u64, u32>,
    /// The level used last, by priority.
    last: (u64, u32),
    /// The most urgent level with events.
    top: Option<(u64, u32)>,
    /// The priority that is being dispatched; zero, which nothing precedes, if none.
    claimed: u64,
    empty: usize,
}

impl Levels {
    pub fn new() -> Levels {
        Levels {
            slots: Vec::new(),
            free: Vec::new(),
            by_priority: BTreeMap::new(),
            last: (0, u32::MAX),
            top: None,
            claimed: 0,
            empty: 0,
        }
    }

    /// Puts an event of this type behind all others of its priority.
    #[inline]
    pub fn append(&mut self, priority: u64, channel: u32, originator: u64) -> Place {
        let slot = self.slot(priority);
        let level = &mut self.slots[slot as usize];
        match level.runs.back_mut() {
            Some(run)
                if run.channel == channel
                    && run.originator == originator
                    && run.count < u32::MAX =>
            {
                run.count += 1;
                Place {
                    slot,
                    preempts: false,
                }
            }
            _ => self.begin_run(priority, slot, channel, originator),
        }
    }

    fn begin_run(&mut self, priority: u64, slot: u32, channel: u32, originator: u64) -> Place {
        let level = &mut self.slots[slot as usize];
        if level.runs.is_empty() {
            self.empty -= 1;
            if self.top.is_none_or(|(top, _)| priority < top) {
                self.top = Some((priority, slot));
            }
        }
        level.runs.push_back(Run {
            channel,
            count: 1,
            originator,
        });
        Place {
            slot,
            preempts: priority < self.claimed,
        }
    }

    #[inline]
    fn slot(&mut self, priority: u64) -> u32 {
        if self.last.0 == priority && self.last.1 != u32::MAX {
            return self.last.1;
        }
        let slot = match self.by_priority.get(&priority) {
            Some(slot) => *slot,
            None => self.add_level(priority),
        };
        self.last = (priority, slot);
        slot
    }

    fn add_level(&mut self, priority: u64) -> u32 {
        self.empty += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize].priority = priority;
                slot
            }
            None => {
                self.slots.push(Level {
                    priority,
                    runs: VecDeque::new(),
                    users: Vec::new(),
                });
                (self.slots.len() - 1) as u32
            }
        };
        self.by_priority.insert(priority, slot);
        slot
    }

    /// Notes that a type uses a level for the first time.
    pub fn add_user(&mut self, slot: u32, channel: u32) {
        self.slots[slot as usize].users.push(channel);
    }

    /// Takes the next events out of the order: of one type and originator, at most
    /// `max` (at least one). [`finish`](Levels::finish) must follow.
    pub fn claim(&mut self, max: u32) -> Option<Claim> {
        let (priority, slot) = self.top?;
        let level = &mut self.slots[slot as usize];
        let run = level.runs.front_mut()?;
        let claim = Claim {
            slot,
            priority,
            channel: run.channel,
            originator: run.originator,
            count: run.count.min(max),
        };
        run.count -= claim.count;
        if run.count == 0 {
            level.runs.pop_front();
            self.note_emptied(slot);
        }
        self.claimed = priority;
        Some(claim)
    }

    fn note_emptied(&mut self, slot: u32) {
        let level = &self.slots[slot as usize];
        if !level.runs.is_empty() {
            return;
        }
        self.empty += 1;
        if self.top.is_some_and(|(_, top)| top == slot) {
            let later = self.by_priority.range(level.priority..);
            self.top = later
                .map(|(priority, slot)| (*priority, *slot))
                .find(|(_, slot)| !self.slots[*slot as usize].runs.is_empty());
        }
    }

    /// Ends a claim of which `left` events were not delivered. Where too many
    /// levels are empty, yields the types to be told that this level's slot is
    /// given up.
    pub fn finish(&mut self, claim: &Claim, left: u32) -> Option<Vec<u32>> {
        self.claimed = 0;
        if left > 0 {
            self.put_back(claim, left);
        }
        let level = &mut self.slots[claim.slot as usize];
        if !level.runs.is_empty() || self.empty <= EMPTY_LEVELS_MAX {
            return None;
        }
        self.empty -= 1;
        self.by_priority.remove(&claim.priority);
        self.free.push(claim.slot);
        if self.last.1 == claim.slot {
            self.last.1 = u32::MAX;
        }
        Some(std::mem::take(&mut level.users))
    }

    fn put_back(&mut self, claim: &Claim, left: u32) {
        let level = &mut self.slots[claim.slot as usize];
        if level.runs.is_empty() {
            self.empty -= 1;
        }
        match level.runs.front_mut() {
            Some(run)
                if run.channel == claim.channel
                    && run.originator == claim.originator
                    && run.count <= u32::MAX - left =>
            {
                run.count += left;
            }
            _ => level.runs.push_front(Run {
                channel: claim.channel,
                count: left,
                originator: claim.originator,
            }),
        }
        if self.top.is_none_or(|(top, _)| claim.priority < top) {
            self.top = Some((claim.priority, claim.slot));
        }
    }

    /// The least urgent priority with events.
    pub fn least_urgent(&self) -> Option<u64> {
        self.last_level().map(|(priority, _)| priority)
    }

    fn last_level(&self) -> Option<(u64, u32)> {
        self.by_priority
            .iter()
            .rev()
            .map(|(priority, slot)| (*priority, *slot))
            .find(|(_, slot)| !self.slots[*slot as usize].runs.is_empty())
    }

    /// Takes the oldest of the least urgent events out of the order; yields slot
    /// and type.
    pub fn drop_oldest(&mut self) -> Option<(u32, u32)> {
        let (_, slot) = self.last_level()?;
        let level = &mut self.slots[slot as usize];
        let run = level.runs.front_mut()?;
        let channel = run.channel;
        run.count -= 1;
        if run.count == 0 {
            level.runs.pop_front();
            self.note_emptied(slot);
        }
        Some((slot, channel))
    }

    /// The priority of a slot that is in use.
    pub fn priority(&self, slot: u32) -> u64 {
        self.slots[slot as usize].priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(levels: &mut Levels) -> Vec<(u64, u32, u32)> {
        std::iter::from_fn(|| {
            let claim = levels.claim(u32::MAX)?;
            levels.finish(&claim, 0);
            Some((claim.priority, claim.channel, claim.count))
        })
        .collect()
    }

    #[test]
    fn urgent_levels_come_first_and_a_type_in_a_row_is_one_run() {
        let mut levels = Levels::new();
        for (priority, channel) in [(9, 0), (9, 0), (9, 1), (3, 1), (9, 0), (3, 1)] {
            levels.append(priority, channel, 7);
        }
        assert_eq!(
            order(&mut levels),
            [(3, 1, 2), (9, 0, 2), (9, 1, 1), (9, 0, 1)]
        );
    }

    #[test]
    fn what_was_claimed_and_not_delivered_is_first_again() {
        let mut levels = Levels::new();
        levels.append(5, 0, 7);
        levels.append(5, 0, 7);
        let claim = levels.claim(10).expect("two wait");
        assert_eq!(claim.count, 2);
        assert!(levels.append(4, 1, 7).preempts);
        assert!(!levels.append(5, 2, 7).preempts);
        levels.finish(&claim, 1);
        assert_eq!(order(&mut levels), [(4, 1, 1), (5, 0, 1), (5, 2, 1)]);
    }

    #[test]
    fn the_oldest_of_the_least_urgent_is_dropped() {
        let mut levels = Levels::new();
        for (priority, channel) in [(1, 0), (8, 1), (8, 2)] {
            levels.append(priority, channel, 7);
        }
        assert_eq!(levels.drop_oldest().map(|(_, channel)| channel), Some(1));
        assert_eq!(levels.drop_oldest().map(|(_, channel)| channel), Some(2));
        assert_eq!(levels.least_urgent(), Some(1));
        assert_eq!(order(&mut levels), [(1, 0, 1)]);
    }

    #[test]
    fn empty_levels_are_given_up_beyond_a_limit() {
        let mut levels = Levels::new();
        let mut given_up = 0;
        for priority in 0..1_000 {
            let place = levels.append(priority, 0, 7);
            levels.add_user(place.slot, 0);
            let claim = levels.claim(1).expect("one waits");
            given_up += levels.finish(&claim, 0).map_or(0, |users| users.len());
        }
        assert_eq!(levels.by_priority.len(), EMPTY_LEVELS_MAX);
        assert_eq!(given_up, 1_000 - EMPTY_LEVELS_MAX);
    }
}
