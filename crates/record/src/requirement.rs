//! The outcomes of what is required of a measurement.

use serde::{Deserialize, Serialize};

/// What came of one requirement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequirementOutcome {
    /// The requirement: `p99 < 20ms`.
    pub requirement: String,
    /// The figure as it was measured, in the unit of the bound; `None`: infinite, or nothing was measured.
    pub value: Option<f64>,
    /// The bound: nanoseconds, a share (0.01 is 1 %), requests or bytes a second.
    pub bound: f64,
    /// Whether the figure is as required.
    pub held: bool,
    /// Whether the 95 % interval lies on that side of the bound as a whole; `None`: there is no interval.
    pub sure: Option<bool>,
    /// What the interval is of: `rate`, `share above the bound` and others; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interval_of: String,
    /// Lower end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// All of it in a sentence.
    pub sentence: String,
}
