//! A load that several machines drive together: the part of each, and what it did.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::answers::{Counts, LatencyNs};

/// A part of a load: some of its threads, which do what they do where all are in one place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct LoadPart {
    /// Number of its first thread, from 0.
    pub first: u32,
    /// Number behind that of its last.
    pub end: u32,
}

impl LoadPart {
    /// How many they are.
    pub fn threads(self) -> u32 {
        self.end.saturating_sub(self.first)
    }

    /// The part of `whole` that is theirs, where it is shared out over all `threads` and the first ones take the remainder.
    pub fn share(self, whole: u64, threads: u32) -> u64 {
        let threads = u64::from(threads.max(1));
        let up_to = |end: u32| {
            let end = u64::from(end);
            whole / threads * end + (whole % threads).min(end)
        };
        up_to(self.end).saturating_sub(up_to(self.first))
    }
}

/// What one agent did of a load that several drive together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// What it is called: the host that was named, or what it calls itself.
    pub name: String,
    /// Its threads.
    pub part: LoadPart,
    /// Its connections.
    pub connections: u64,
    /// Every request of it, once.
    pub counts: Counts,
    /// Requests completed a second.
    pub rate_per_s: f64,
    /// Latency of its requests, as in [`LoadReport::latency_ns`](crate::LoadReport::latency_ns).
    pub latency_ns: LatencyNs,
    /// The same, bucket by bucket. The histograms of all agents add up to that of the load.
    pub histogram: Histogram,
    /// The part of the window for which its threads were busy, looking for news left out.
    pub busy: f64,
    /// How long after the agreed moment it began, by its clock and what is known of that; negative: before it. `None`: it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_after_ns: Option<i64>,
    /// By how much that may be wrong.
    pub clock_within_ns: u64,
    /// The shortest round trip between it and the controller.
    pub round_trip_ns: u64,
    /// Why it was lost; `None`: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// It began so late that its part of the load is not the one that was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}
