//! What is counted of redirects that are followed.

use prony_record::RedirectReport;
use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;

/// What one thread counts of hops.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HopFigures {
    /// Hops that were sent.
    pub followed: u64,
    /// Hops that were due when the run ended.
    pub unfinished: u64,
    /// From what the latency of a request counts from to the last byte of its final answer, of those that ended in the window.
    pub whole: Latencies,
}

impl HopFigures {
    /// Adds those of another thread.
    pub fn merge(&mut self, other: &HopFigures) {
        self.followed += other.followed;
        self.unfinished += other.unfinished;
        self.whole.add(&other.whole);
    }

    /// What a report says of them.
    pub fn report(&self) -> RedirectReport {
        RedirectReport {
            followed: self.followed,
            unfinished: self.unfinished,
            whole_ns: self.whole.summary(),
        }
    }
}
