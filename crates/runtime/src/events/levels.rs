//! In which order events of all types are due: by priority, then first come first
//! served. It knows how many events of which type follow each other, not the
//! events themselves.
//!
//! A level is one priority. It holds runs: so many events of one type from one
//! originator in a row. A stream of one type is a single run that grows.
//! Not for: storing events (`lane`).

use std::collections::{BTreeMap, VecDeque};

use super::types::{EventId, Meta, Originator, Priority};

/// Levels without events that are kept, because they are likely to be used again.
const EMPTY_LEVELS_MAX: usize = 64;

/// Some events of one type and originator in a row.
#[derive(Clone, Copy)]
struct Run {
    channel: u32,
    originator: u64,
    count: u64,
}

impl Run {
    const NONE: Run = Run {
        channel: 0,
        originator: 0,
        count: 0,
    };

    fn is_of(&self, channel: u32, originator: u64) -> bool {
        self.channel == channel && self.originator == originator
    }
}

struct Level {
    priority: u64,
    /// All runs but the youngest; none of them is empty.
    older: VecDeque<Run>,
    /// The youngest run; empty only when there is none at all.
    youngest: Run,
    /// The types that ever had an event here.
    users: Vec<u32>,
}

impl Level {
    fn is_empty(&self) -> bool {
        self.youngest.count == 0
    }

    /// Takes at most `max` events of the oldest run.
    fn take(&mut self, max: u64) -> Run {
        let oldest = self.older.front_mut().unwrap_or(&mut self.youngest);
        let taken = Run {
            count: oldest.count.min(max),
            ..*oldest
        };
        oldest.count -= taken.count;
        if self.older.front().is_some_and(|run| run.count == 0) {
            self.older.pop_front();
        }
        taken
    }

    /// Puts events before all others.
    fn put_back(&mut self, run: Run) {
        if self.is_empty() {
            self.youngest = run;
            return;
        }
        match self.older.front_mut().unwrap_or(&mut self.youngest) {
            oldest if oldest.is_of(run.channel, run.originator) => oldest.count += run.count,
            _ => self.older.push_front(run),
        }
    }
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

impl Claim {
    /// The data of its event of this number.
    #[inline]
    pub fn meta(&self, id: u64) -> Meta {
        Meta {
            id: EventId(id),
            originator: Originator(self.originator),
            priority: Priority(self.priority),
        }
    }
}

/// The place of an appended event.
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
    /// The level used last, by priority; it may not be there any more.
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

    /// Appends an event of this type to all others of its priority.
    #[inline]
    pub fn append(&mut self, priority: u64, channel: u32, originator: u64) -> Place {
        let slot = if self.last.0 == priority {
            self.last.1
        } else {
            self.find(priority)
        };
        if let Some(level) = self.slots.get_mut(slot as usize)
            && level.youngest.is_of(channel, originator)
            && !level.is_empty()
        {
            level.youngest.count += 1;
            return Place {
                slot,
                preempts: false,
            };
        }
        self.begin_run(slot, priority, channel, originator)
    }

    /// So many events more were put behind the youngest of a level, and are like it.
    pub fn extend(&mut self, slot: u32, count: u64) {
        self.slots[slot as usize].youngest.count += count;
    }

    fn find(&mut self, priority: u64) -> u32 {
        let found = self.by_priority.get(&priority);
        let slot = found.map_or(u32::MAX, |slot| *slot);
        self.last = (priority, slot);
        slot
    }

    /// `slot` is that of the priority, or `u32::MAX` where there may be none.
    fn begin_run(&mut self, slot: u32, priority: u64, channel: u32, originator: u64) -> Place {
        let slot = match slot {
            u32::MAX => self.find_or_add(priority),
            slot => slot,
        };
        let level = &mut self.slots[slot as usize];
        let begun = Run {
            channel,
            originator,
            count: 1,
        };
        let before = std::mem::replace(&mut level.youngest, begun);
        if before.count > 0 {
            level.older.push_back(before);
        } else {
            self.note_filled(priority, slot);
        }
        Place {
            slot,
            preempts: priority < self.claimed,
        }
    }

    #[cold]
    fn find_or_add(&mut self, priority: u64) -> u32 {
        let mut slot = self.find(priority);
        if slot == u32::MAX {
            slot = self.add_level(priority);
            self.last = (priority, slot);
        }
        slot
    }

    fn note_filled(&mut self, priority: u64, slot: u32) {
        self.empty -= 1;
        if self.top.is_none_or(|(top, _)| priority < top) {
            self.top = Some((priority, slot));
        }
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
                    older: VecDeque::new(),
                    youngest: Run::NONE,
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
    #[inline]
    pub fn claim(&mut self, max: u32) -> Option<Claim> {
        let (priority, slot) = self.top?;
        let run = self.slots[slot as usize].take(u64::from(max));
        self.note_taken(slot);
        self.claimed = priority;
        Some(Claim {
            slot,
            priority,
            channel: run.channel,
            originator: run.originator,
            count: run.count as u32,
        })
    }

    #[inline]
    fn note_taken(&mut self, slot: u32) {
        let level = &self.slots[slot as usize];
        if !level.is_empty() {
            return;
        }
        self.empty += 1;
        if self.empty == self.by_priority.len() {
            self.top = None;
        } else if self.top.is_some_and(|(_, top)| top == slot) {
            let later = self.by_priority.range(level.priority..);
            self.top = later
                .map(|(priority, slot)| (*priority, *slot))
                .find(|(_, slot)| !self.slots[*slot as usize].is_empty());
        }
    }

    /// Ends a claim that was delivered whole, and keeps its level.
    #[inline]
    pub fn end_claim(&mut self) {
        self.claimed = 0;
    }

    /// Ends a claim of which `left` events were not delivered. Where too many
    /// levels are empty, yields the types whose lanes in this level's slot
    /// are to be given up.
    #[inline]
    pub fn finish(&mut self, claim: &Claim, left: u32) -> Option<Vec<u32>> {
        self.claimed = 0;
        let level = &mut self.slots[claim.slot as usize];
        if left > 0 {
            let was_empty = level.is_empty();
            level.put_back(Run {
                channel: claim.channel,
                originator: claim.originator,
                count: u64::from(left),
            });
            if was_empty {
                self.note_filled(claim.priority, claim.slot);
            }
            return None;
        }
        if !level.is_empty() || self.empty <= EMPTY_LEVELS_MAX {
            return None;
        }
        Some(self.give_up(claim))
    }

    #[cold]
    fn give_up(&mut self, claim: &Claim) -> Vec<u32> {
        let level = &mut self.slots[claim.slot as usize];
        let users = std::mem::take(&mut level.users);
        self.empty -= 1;
        self.by_priority.remove(&claim.priority);
        self.free.push(claim.slot);
        self.last.1 = u32::MAX;
        users
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
            .find(|(_, slot)| !self.slots[*slot as usize].is_empty())
    }

    /// Takes the oldest of the least urgent events out of the order; yields slot
    /// and type.
    pub fn drop_oldest(&mut self) -> Option<(u32, u32)> {
        let (_, slot) = self.last_level()?;
        let run = self.slots[slot as usize].take(1);
        self.note_taken(slot);
        Some((slot, run.channel))
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
