//! What one thread counts of users and their steps.

use std::collections::BTreeMap;

use prony_base::{Nanos, PerSecond};
use prony_record::{
    CheckCount, FlowReport, IterationCounts, LatencyOrigin, ScenarioReport, StepCounts, StepReport,
};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::interval::StepTotals;
use crate::latencies::Latencies;
use crate::recorder::{Answer, Phases, add_failures};
use crate::window::LoadPhase;

/// What is counted of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepFigures {
    /// Its requests.
    pub counts: StepCounts,
    latency: Latencies,
}

impl StepFigures {
    /// A request was answered in full.
    pub fn completed(&mut self, phases: Phases, answer: &Answer, from: LatencyOrigin) {
        let counts = &mut self.counts;
        match phases.end {
            LoadPhase::WarmUp => counts.warmup_completed += 1,
            LoadPhase::Measured => {
                counts.completed += 1;
                counts.unexpected_status += u64::from(!answer.expected);
            }
            LoadPhase::Drain => counts.in_flight += 1,
        }
        if phases.origin == LoadPhase::Measured {
            self.latency.record(answer.times.latency(from));
        }
    }

    /// A request failed.
    pub fn failed(&mut self, phases: Phases, failure: Failure) {
        match phases.end {
            LoadPhase::WarmUp => self.counts.warmup_failed += 1,
            LoadPhase::Measured => failure.count(&mut self.counts.failed),
            LoadPhase::Drain => self.counts.in_flight += 1,
        }
        if phases.origin == LoadPhase::Measured {
            self.latency.record_never();
        }
    }

    /// The run was cut short while a request was outstanding.
    pub fn cut(&mut self, origin: LoadPhase, so_far: Nanos) {
        self.counts.in_flight += 1;
        if origin == LoadPhase::Measured {
            self.latency.record(so_far);
        }
    }

    fn merge(&mut self, other: &StepFigures) {
        let (mine, theirs) = (&mut self.counts, &other.counts);
        mine.sent += theirs.sent;
        mine.warmup_completed += theirs.warmup_completed;
        mine.warmup_failed += theirs.warmup_failed;
        mine.completed += theirs.completed;
        mine.unexpected_status += theirs.unexpected_status;
        add_failures(&mut mine.failed, &theirs.failed);
        mine.in_flight += theirs.in_flight;
        mine.lacking += theirs.lacking;
        self.latency.add(&other.latency);
    }
}

/// What is counted of a flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Its iterations.
    pub counts: IterationCounts,
    /// How long those took that were completed in the window.
    pub duration: Latencies,
}

/// What one thread counts, or all threads together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ScenarioFigures {
    /// Of each step.
    pub steps: Vec<StepFigures>,
    /// Of each flow.
    pub flows: Vec<FlowFigures>,
}

impl ScenarioFigures {
    /// Nothing counted of so many.
    pub fn new(steps: usize, flows: usize) -> ScenarioFigures {
        ScenarioFigures {
            steps: vec![StepFigures::default(); steps],
            flows: vec![FlowFigures::default(); flows],
        }
    }

    /// What is told of each step while the run goes on.
    pub fn so_far(&self) -> Vec<StepTotals> {
        let of = |step: &StepFigures| StepTotals {
            completed: step.counts.completed,
            unexpected_status: step.counts.unexpected_status,
            failed: step.counts.failed.total(),
        };
        self.steps.iter().map(of).collect()
    }

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &ScenarioFigures) {
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.flows.iter_mut().zip(&other.flows) {
            let (counts, of) = (&mut mine.counts, &theirs.counts);
            counts.started += of.started;
            counts.completed += of.completed;
            counts.completed_in_window += of.completed_in_window;
            counts.abandoned += of.abandoned;
            counts.unfinished += of.unfinished;
            mine.duration.add(&theirs.duration);
        }
    }

    /// The report of a window of `length`. `names` are the flow and the step of each step, `checks` its checks.
    pub fn report(
        &self,
        length: Nanos,
        flows: &[&str],
        names: &[(&str, &str)],
        checks: Vec<Vec<CheckCount>>,
    ) -> ScenarioReport {
        let steps = self.steps.iter().zip(names).zip(checks);
        let step = |((of, (flow, name)), checks): ((&StepFigures, &(&str, &str)), _)| StepReport {
            flow: (*flow).to_owned(),
            name: (*name).to_owned(),
            counts: of.counts,
            rate_per_s: PerSecond::of(of.counts.completed, length).0,
            errors: happened(&of.counts),
            latency_ns: of.latency.summary(),
            checks,
        };
        let flow = |(of, name): (&FlowFigures, &&str)| FlowReport {
            name: (*name).to_owned(),
            iterations: of.counts,
            rate_per_s: PerSecond::of(of.counts.completed_in_window, length).0,
            duration_ns: of.duration.summary(),
        };
        ScenarioReport {
            flows: self.flows.iter().zip(flows).map(flow).collect(),
            steps: steps.map(step).collect(),
        }
    }
}

/// Failures by kind, only those that happened.
fn happened(counts: &StepCounts) -> BTreeMap<String, u64> {
    let kinds = counts.failed.by_kind().into_iter();
    let kinds = kinds.filter(|&(_, count)| count > 0);
    kinds
        .map(|(kind, count)| (kind.to_owned(), count))
        .collect()
}
