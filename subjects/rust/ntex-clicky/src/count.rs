//! The one number, shared by all workers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Set once nothing may be added any more. In the same word as the count, so that no click is
/// acknowledged after the last value was taken.
const CLOSED: u64 = 1 << 63;

/// A counter that any thread may add to until it is closed.
#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !CLOSED
    }

    /// The new total; `None` once it is closed.
    pub fn add(&self, clicks: u16) -> Option<u64> {
        let before = self.0.fetch_add(clicks.into(), Ordering::Relaxed);
        (before & CLOSED == 0).then(|| before + u64::from(clicks))
    }

    /// Takes in what others have added to the same counter.
    pub fn merge(&self, others: i64) {
        self.0.fetch_add(others as u64, Ordering::Relaxed);
    }

    /// Closes it: the last value.
    pub fn close(&self) -> u64 {
        self.0.fetch_or(CLOSED, Ordering::Relaxed) & !CLOSED
    }
}
