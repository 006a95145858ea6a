//! A search for the highest rate that keeps an objective: what is asked of it, and every step that it made.
//!
//! Not for: making steps (`prony-load`), choosing their rates (`prony-stats`).

use serde::{Deserialize, Serialize};

use crate::{Arrivals, Counts, LatencyNs, LoadTarget};

/// What a search is to look for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FindMax {
    /// What is to be kept: `p99 < 10ms`.
    pub objective: String,
    /// What the figure of the objective must stay below.
    pub below_ns: u64,
    /// Length of each step's window.
    pub step_ns: u64,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// Name and version of the generator.
    pub generator: String,
    /// What was driven.
    pub target: LoadTarget,
    /// Threads used.
    pub threads: u32,
    /// Connections of each step.
    pub connections: u32,
    /// What was to be kept: `p99 < 10ms`.
    pub objective: String,
    /// Length of each step's window.
    pub step_ns: u64,
    /// Requests a second of the closed loop before the first step.
    pub closed_loop_per_s: f64,
    /// Every step, in order.
    pub steps: Vec<RateStep>,
    /// Requests a second that each round found.
    pub rounds: Vec<f64>,
    /// The outcome; `None` where it was interrupted, or no rate keeps the objective.
    pub highest: Option<HighestRate>,
    /// Whether the observer ended it.
    pub interrupted: bool,
}

/// The highest rate that keeps the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HighestRate {
    /// Median of the rounds, requests a second.
    pub rate_per_s: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// What the ends are.
    pub spread: SpreadKind,
    /// The generator was the limit: the server keeps the objective at least so far.
    pub at_least: bool,
}

/// What the ends of a figure are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpreadKind {
    /// A confidence interval.
    Interval,
    /// Smallest and largest value seen, which say nothing of what would be seen next: there are too few, or they stand in two groups.
    #[default]
    Range,
}

/// What became of the objective in one step.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// The objective was kept, and the rate, too.
    #[default]
    Kept,
    /// The objective was missed, by the server's doing.
    Missed,
    /// The generator did not keep up, so that nothing is known of the server.
    GeneratorShort,
}

impl StepOutcome {
    /// The word that is written: `generator-short`.
    pub fn word(self) -> &'static str {
        match self {
            StepOutcome::Kept => "kept",
            StepOutcome::Missed => "missed",
            StepOutcome::GeneratorShort => "generator-short",
        }
    }
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// The number of the round, from 1; 0 before the first.
    pub round: usize,
    /// Requests that were to start a second.
    pub rate_per_s: f64,
    /// Requests that were completed a second.
    pub completed_per_s: f64,
    /// Median latency, from when a request was to start; `u64::MAX`: never ended, here and below.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The figure of the objective.
    pub objective_ns: u64,
    /// The same percentile, or the 99th, of what the generator added before sending.
    pub lateness_ns: u64,
    /// The number of requests by which what was in flight grew over the window.
    pub growth: i64,
    /// Requests without a right answer.
    pub failed: u64,
    /// What became of the objective.
    pub outcome: StepOutcome,
    /// Why it was not kept, in words; empty where it was.
    #[serde(default)]
    pub why: String,
    /// Every request of the step, once.
    #[serde(default)]
    pub counts: Counts,
    /// What became of its schedule.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Latencies of the requests that were to start in its window.
    #[serde(default)]
    pub latency_ns: LatencyNs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trial;

    #[test]
    fn a_search_is_read_as_it_was_written_and_records_without_one_are_read_too() {
        let step = RateStep {
            round: 2,
            rate_per_s: 0.1 + 0.2,
            p99_ns: crate::NEVER,
            growth: -3,
            outcome: StepOutcome::GeneratorShort,
            why: "the generator itself was late".to_owned(),
            counts: Counts {
                sent: 7,
                completed: 6,
                in_flight: 1,
                drained: 1,
                ..Counts::default()
            },
            ..RateStep::default()
        };
        let trial = Trial {
            search: Some(RateSearch {
                objective: "p99 < 10ms".to_owned(),
                steps: vec![step],
                rounds: vec![1.0 / 3.0],
                highest: Some(HighestRate {
                    rate_per_s: 1.0 / 3.0,
                    low: 0.3,
                    high: 0.4,
                    spread: SpreadKind::Range,
                    at_least: true,
                }),
                ..RateSearch::default()
            }),
            ..Trial::default()
        };
        let text = serde_json::to_string(&trial).expect("JSON");
        assert!(text.contains("\"outcome\":\"generator-short\""), "{text}");
        assert_eq!(
            serde_json::from_str::<Trial>(&text).expect("a trial"),
            trial
        );
        let without = serde_json::to_string(&Trial::default()).expect("JSON");
        assert!(!without.contains("search"), "{without}");
        assert_eq!(
            serde_json::from_str::<Trial>(&without).expect("a trial"),
            Trial::default()
        );
    }
}
