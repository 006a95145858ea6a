//! Scenarios: users that do steps, and what came of each step and of each user's iterations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::answers::{AnswerChecks, CheckCount, Failures, LatencyNs};

/// What users do. The steps of all flows, one flow after the other, are `requests` of the load, in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioSpec {
    /// What a user may do; each of its iterations is one of these, drawn by weight. At least one.
    pub flows: Vec<ScenarioFlow>,
}

/// A course of steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioFlow {
    /// Its name, no two alike.
    pub name: String,
    /// How often it is drawn beside the others; at least 1.
    pub weight: u32,
    /// The steps in their order; at least one.
    pub steps: Vec<ScenarioStep>,
}

/// One step: a request of the load, and what is done with its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioStep {
    /// Its name, no two alike in a scenario.
    pub name: String,
    /// How values are written into its body.
    #[serde(default)]
    pub body: BodyForm,
    /// What is taken from its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<StepTake>,
    /// What its answer must be beside its status and the body of its request; `None`: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<AnswerChecks>,
    /// Status codes that are expected; empty: 200 to 399.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected_status: Vec<u16>,
    /// How long the user waits after its answer.
    #[serde(default)]
    pub think: ThinkTime,
    /// The user goes on where it fails; otherwise that ends the iteration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// It is done in a user's first iteration only. Then cookies and values are kept from one iteration to the next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// How values are written into a body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyForm {
    /// Values as they are.
    #[default]
    AsIs,
    /// Values of a form: application/x-www-form-urlencoded.
    Form,
    /// Text within a string of JSON.
    Json,
}

/// A value that is taken from an answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct StepTake {
    /// The name of the field that it fills in, without braces.
    pub name: String,
    /// The place in an answer.
    pub from: TakeFrom,
}

/// The place of a value in an answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakeFrom {
    /// A path of its body, which is JSON: `$.token`.
    Json(String),
    /// The first header of this name.
    Header(String),
    /// A match in its body: the first group of this expression, or all that matches where it has none.
    Regex(String),
    /// The user's cookie of this name, as it is after the answer.
    Cookie(String),
}

/// How long a user waits, drawn evenly from both ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ThinkTime {
    /// The shortest time.
    pub min_ns: u64,
    /// The longest time.
    pub max_ns: u64,
}

/// What came of a scenario. The counts of all steps sum up to those of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioReport {
    /// Counts of each flow.
    pub flows: Vec<FlowReport>,
    /// Counts of each step, one flow after the other.
    pub steps: Vec<StepReport>,
}

/// What came of the iterations of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// Every iteration of the run, once.
    pub iterations: IterationCounts,
    /// Rounds completed in the window, a second.
    pub rate_per_s: f64,
    /// How long the iterations took that were completed in the window: from what the first step's latency counts from to
    /// the last byte of the last answer, think times between included.
    pub duration_ns: LatencyNs,
}

/// The iterations of users. `started = completed + abandoned + unfinished`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct IterationCounts {
    /// Begun in the whole run, warm-up included.
    pub started: u64,
    /// Iterations whose last step was done.
    pub completed: u64,
    /// Completed iterations that ended in the window.
    pub completed_in_window: u64,
    /// Iterations that a failed step ended, or a step that lacked a value.
    pub abandoned: u64,
    /// Iterations in the middle of which the run ended.
    pub unfinished: u64,
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The flow that it is of.
    pub flow: String,
    /// Its name.
    pub name: String,
    /// Every request of it, once.
    pub counts: StepCounts,
    /// Completed requests a second of the window.
    pub rate_per_s: f64,
    /// Failures of the window by kind, only those that happened. The sum of `counts.failed`.
    pub errors: BTreeMap<String, u64>,
    /// Latency of its requests, as `latency_ns` of the load.
    pub latency_ns: LatencyNs,
    /// Its checks, and what was to be taken: answers of the window for which each was the first that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckCount>,
}

/// The requests of a step. `sent = warmup_completed + warmup_failed + completed + failed by kind + in_flight`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct StepCounts {
    /// Handed to the kernel.
    pub sent: u64,
    /// Answered before the window began.
    pub warmup_completed: u64,
    /// Failed before the window began.
    pub warmup_failed: u64,
    /// Answered in the window.
    pub completed: u64,
    /// Completed answers with a status that was not expected.
    pub unexpected_status: u64,
    /// Failed in the window, by kind.
    pub failed: Failures,
    /// Neither answered nor failed when the window ended.
    pub in_flight: u64,
    /// Times that it was to be sent, and was not: a value that it needs had not been taken.
    pub lacking: u64,
}

impl ScenarioReport {
    /// The step that a requirement calls `name`: by its own name, or with its flow's before it, `buyer: order`.
    pub fn step(&self, name: &str) -> Option<&StepReport> {
        let is_it =
            |of: &&StepReport| of.name == name || format!("{}: {}", of.flow, of.name) == name;
        self.steps.iter().find(is_it)
    }

    /// All iterations of all flows.
    pub fn iterations(&self) -> IterationCounts {
        let mut all = IterationCounts::default();
        for of in self.flows.iter().map(|flow| flow.iterations) {
            all.started += of.started;
            all.completed += of.completed;
            all.completed_in_window += of.completed_in_window;
            all.abandoned += of.abandoned;
            all.unfinished += of.unfinished;
        }
        all
    }

    /// What does not add up, in words: in a step, in a flow, or of all steps beside the load, which sent, completed and
    /// failed so many, and had so many in flight.
    pub fn unbalanced(&self, load: [u64; 4]) -> Option<String> {
        let mut sums = [0; 4];
        for step in &self.steps {
            let of = &step.counts;
            let failed = of.failed.total();
            let ended =
                of.warmup_completed + of.warmup_failed + of.completed + failed + of.in_flight;
            if ended != of.sent {
                return Some(format!(
                    "step {}: {} sent, {ended} ended",
                    step.name, of.sent
                ));
            }
            for (sum, one) in sums
                .iter_mut()
                .zip([of.sent, of.completed, failed, of.in_flight])
            {
                *sum += one;
            }
        }
        for flow in &self.flows {
            let of = &flow.iterations;
            if of.started != of.completed + of.abandoned + of.unfinished {
                return Some(format!("iterations of {}: {of:?}", flow.name));
            }
        }
        (sums != load).then(|| format!("all steps sum up to {sums:?}, and the load is {load:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> ScenarioReport {
        let step = |name: &str, sent, completed, in_flight| StepReport {
            name: name.to_owned(),
            counts: StepCounts {
                sent,
                completed,
                in_flight,
                ..StepCounts::default()
            },
            ..StepReport::default()
        };
        ScenarioReport {
            flows: vec![FlowReport {
                iterations: IterationCounts {
                    started: 5,
                    completed: 3,
                    abandoned: 1,
                    unfinished: 1,
                    ..IterationCounts::default()
                },
                ..FlowReport::default()
            }],
            steps: vec![step("a", 5, 5, 0), step("b", 4, 3, 1)],
        }
    }

    #[test]
    fn steps_that_do_not_sum_up_to_the_load_are_told() {
        assert_eq!(report().unbalanced([9, 8, 0, 1]), None);
        assert!(report().unbalanced([9, 9, 0, 0]).is_some());
        let mut off = report();
        off.steps[1].counts.sent = 5;
        let message = off.unbalanced([10, 8, 0, 1]).unwrap_or_default();
        assert_eq!(message, "step b: 5 sent, 4 ended");
        off = report();
        off.flows[0].iterations.unfinished = 0;
        assert!(off.unbalanced([9, 8, 0, 1]).is_some());
    }
}
