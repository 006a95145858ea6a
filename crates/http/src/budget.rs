//! Memory that several holders share, up to a limit: no holder is kept waiting, and who
//! comes when it is used up is told so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of bytes that its holders may take together. Copies are the same budget, also
/// on other threads.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes_max: u64,
    taken: AtomicU64,
}

impl Budget {
    /// One of so many bytes.
    pub fn new(bytes_max: u64) -> Budget {
        Budget(Arc::new(Inner {
            bytes_max,
            taken: AtomicU64::new(0),
        }))
    }

    /// Bytes that are taken now.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Relaxed)
    }

    /// Whether more than half is taken: what could be given back should be.
    pub(crate) fn is_scarce(&self) -> bool {
        self.taken() > self.0.bytes_max / 2
    }

    /// Takes `bytes` more; false, and nothing is taken, if they are not there.
    fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| {
            taken
                .checked_add(bytes)
                .filter(|&all| all <= self.0.bytes_max)
        };
        self.0.taken.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.taken.fetch_sub(bytes, Relaxed);
    }
}

/// What one holder has of a budget; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Nothing before something was taken.
    held: Option<(Budget, u64)>,
}

impl Share {
    /// Holds `bytes` of `budget` from now on, which are more than before; false, and it is
    /// as before, if they are not there. It is always the same budget.
    pub(crate) fn grow_to(&mut self, bytes: u64, budget: &Budget) -> bool {
        let before = self.held.as_ref().map_or(0, |(_, held)| *held);
        if !budget.take(bytes.saturating_sub(before)) {
            return false;
        }
        self.held = Some((budget.clone(), bytes.max(before))).filter(|(_, held)| *held > 0);
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some((budget, held)) = &self.held {
            budget.give_back(*held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_together_never_exceeds_the_limit_and_comes_back() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (Share::default(), Share::default());
        assert!(one.grow_to(40, &budget) && one.grow_to(60, &budget));
        assert!(!other.grow_to(41, &budget));
        assert_eq!((budget.taken(), budget.is_scarce()), (60, true));
        assert!(other.grow_to(40, &budget.clone()));
        assert!(!one.grow_to(u64::MAX, &budget));
        drop(one);
        assert_eq!((budget.taken(), budget.is_scarce()), (40, false));
        drop(other);
        assert_eq!(budget.taken(), 0);
    }
}
