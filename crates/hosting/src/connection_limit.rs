//! How many connections a process can have: what its settings say, or what its descriptors
//! allow where that is less.

use std::cell::Cell;

use rustix::process::{Resource, getrlimit};

/// Descriptors that are kept back, for what an application opens between two looks: this
/// part of all, within these bounds.
const KEPT_BACK_PART: u64 = 16;
const KEPT_BACK_MIN: u64 = 8;
const KEPT_BACK_MAX: u64 = 256;
/// Taken for the descriptors of other things where they cannot be counted.
const OTHERS_GUESSED: u64 = 64;

/// The most connections of this process.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    connections_max: u64,
    /// Descriptors that it may have.
    descriptors_max: u64,
    /// Of these, those that are no connections.
    others: Cell<u64>,
    /// Nothing has happened that says otherwise.
    pub(crate) is_known: Cell<bool>,
}

impl ConnectionLimit {
    /// Before there are any, for at most so many.
    pub(crate) fn new(connections_max: u64) -> ConnectionLimit {
        let limit = ConnectionLimit {
            connections_max,
            descriptors_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            others: Cell::new(0),
            is_known: Cell::new(false),
        };
        limit.look(0);
        limit
    }

    /// How many connections there may be.
    pub(crate) fn get(&self) -> u64 {
        limit(
            self.connections_max,
            self.descriptors_max,
            self.others.get(),
        )
    }

    /// Counts what is open beside so many connections, while they are few if there was a
    /// reason to: counting costs as much as there is.
    pub(crate) fn look(&self, open: u64) {
        if self.is_known.get() && open < self.get() / 2 {
            return;
        }
        // One is that of the directory itself.
        let count = std::fs::read_dir("/proc/self/fd").map(|entries| entries.count() as u64 - 1);
        let others = count.map_or(OTHERS_GUESSED, |count| count.saturating_sub(open));
        self.others.set(others);
        self.is_known.set(true);
    }
}

fn limit(connections_max: u64, descriptors_max: u64, others: u64) -> u64 {
    let kept_back = (descriptors_max / KEPT_BACK_PART).clamp(KEPT_BACK_MIN, KEPT_BACK_MAX);
    connections_max.min(descriptors_max.saturating_sub(others + kept_back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_as_many_as_wanted_or_as_descriptors_allow() {
        assert_eq!(limit(100, 1024, 20), 100);
        assert_eq!(limit(100_000, 1024, 20), 1024 - 20 - 64);
        assert_eq!(limit(100_000, 64, 20), 64 - 20 - 8);
        assert_eq!(limit(100_000, 1 << 20, 20), 100_000);
        assert_eq!(limit(u64::MAX, 1 << 20, 20), (1 << 20) - 20 - 256);
        assert_eq!(limit(100, 20, 20), 0);
    }

    #[test]
    fn other_descriptors_are_counted_where_they_may_matter() {
        let limit = ConnectionLimit::new(1000);
        let before = limit.others.get();
        assert!(before > 0);
        let opened: Vec<_> = (0..50).map(|_| std::fs::File::open("/dev/null")).collect();
        limit.look(0);
        assert_eq!(limit.others.get(), before);
        limit.is_known.set(false);
        limit.look(0);
        assert!(limit.others.get() >= 50);
        drop(opened);
    }
}
