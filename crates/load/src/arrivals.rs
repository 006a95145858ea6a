//! The arrivals of an open pace on one thread, and how they are counted.

use prony_base::Instant;
use serde::{Deserialize, Serialize};

use crate::pace::Schedule;

/// The schedule of an open pace.
pub struct Open {
    pub schedule: Schedule,
    /// The next arrival, if there is one.
    pub next: Option<Instant>,
    pub scheduled: u64,
    pub in_window: u64,
    /// Of those, never sent, because the queue was full.
    pub dropped_in_window: u64,
    pub rate_bits: u64,
}

impl Open {
    /// The arrivals of `schedule`, which begins at `begin`.
    pub fn new(mut schedule: Schedule, begin: Instant) -> Open {
        Open {
            next: schedule.draw().map(|after| begin + after),
            schedule,
            scheduled: 0,
            in_window: 0,
            dropped_in_window: 0,
            rate_bits: 0,
        }
    }
}

/// Counts of one thread's arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalCounts {
    /// Drawn.
    pub scheduled: u64,
    /// Of those, in the window.
    pub in_window: u64,
    /// Never sent, because they waited when the run ended.
    pub waiting: u64,
    /// Never sent, because the queue was full.
    pub dropped: u64,
    /// Of those, drawn in the window.
    pub dropped_in_window: u64,
    /// Longest queue of waiting arrivals.
    pub waiting_max: u64,
    /// A slot was idle when the window ended.
    pub had_idle: bool,
}
