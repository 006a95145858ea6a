//! When requests of a load start, and what their latency counts from.

use serde::{Deserialize, Serialize};

/// When requests start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Pace {
    /// A closed loop: each slot's next request starts when its last one has ended and this time has passed.
    Closed {
        /// Think time.
        think_ns: u64,
    },
    /// Open: one request every 1/rate seconds, whatever the answers do.
    Constant {
        /// Requests a second over all threads; more than 0, not necessarily whole.
        rate_per_s: f64,
    },
    /// Open: a Poisson process, whose gaps are exponential and independent.
    Poisson {
        /// Mean number of requests a second over all threads; more than 0.
        rate_per_s: f64,
    },
    /// Open: a rate that goes in straight lines from point to point. It begins with that of the first point
    /// and keeps that of the last.
    Stages {
        /// At least one; their times grow.
        points: Vec<StagePoint>,
        /// Whether arrivals are drawn as a Poisson process of that rate; otherwise they are evenly spaced.
        poisson: bool,
    },
    /// Open: at these times from the beginning of the load (of the warm-up, where there is one).
    Times {
        /// Nanoseconds, never falling.
        times_ns: Vec<u64>,
    },
}

/// A rate at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StagePoint {
    /// Time from the beginning of the load (of the warm-up, where there is one).
    pub at_ns: u64,
    /// Requests a second over all threads; 0 is a pause.
    pub rate_per_s: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::Closed { think_ns: 0 }
    }
}

impl Pace {
    /// Whether requests start by a schedule, and not by answers.
    pub fn is_open(&self) -> bool {
        !matches!(self, Pace::Closed { .. })
    }
}

/// What the latency of a request counts from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyOrigin {
    /// The moment at which the schedule wanted it to start: waiting for an idle slot, connecting and a late
    /// generator are part of it. In a closed loop without think time the same as `Submitted`.
    Intended,
    /// The moment at which it was handed to the kernel.
    #[default]
    Submitted,
}

/// The source of the times at which bytes arrived.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timestamps {
    /// The generator, when it takes them from the kernel.
    #[default]
    User,
    /// The generator; and, for the first connection of each thread, the kernel too, so that it is known how
    /// long answers lay there.
    Probe,
    /// The kernel, for every connection (`SO_TIMESTAMPING`).
    Kernel,
}
