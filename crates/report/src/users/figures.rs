//! What came of users and of each of their steps in the trials of a cell, computed once for each.

use std::collections::BTreeMap;

use prony_findings::Case;
use prony_record::{
    CheckCount, FlowReport, IterationCounts, LatencyNs, ScenarioReport, StepCounts,
};
use serde::Serialize;

use crate::figure::{Figure, latency_interval};

/// What came of the users of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellUsers {
    /// Iterations completed a second, of all scenarios together.
    pub iterations_per_s: Option<Figure>,
    /// Each scenario of the file.
    pub scenarios: Vec<CellScenario>,
    /// Each step, one scenario after the other.
    pub steps: Vec<CellStep>,
}

/// What came of the iterations of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellScenario {
    /// Its name.
    pub name: String,
    /// Iterations of all trials.
    pub iterations: IterationCounts,
    /// Completed a second.
    pub rate_per_s: Option<Figure>,
    /// How long they took that were completed, by percentile, nanoseconds.
    pub duration_ns: BTreeMap<&'static str, Figure>,
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellStep {
    /// The scenario that it is of.
    pub scenario: String,
    /// Its name.
    pub name: String,
    /// Its requests of all trials.
    pub counts: StepCounts,
    /// Of those in the windows, the ones without a right answer: failed, or with a status that was not expected.
    pub failed: u64,
    /// The same by kind, only those that happened.
    pub errors: BTreeMap<String, u64>,
    /// Its checks, and what was to be taken: answers for which each was the first that failed, only those that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckCount>,
    /// Completed requests a second.
    pub rate_per_s: Option<Figure>,
    /// Latency by percentile, nanoseconds; 2^64 - 1: among the requests that were never answered.
    pub latency_ns: BTreeMap<&'static str, Figure>,
}

/// Percentiles of steps and iterations, with their names.
const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0)];

/// The figures of a cell's users; `None` of a cell that has none. One that was not measured has the names of its steps.
pub fn of_cell(case: &Case<'_>) -> Option<CellUsers> {
    let planned = case.workload?.source.as_ref()?.scenario.as_ref()?;
    let loads = case.measured().filter_map(|trial| trial.load.as_ref());
    let reports: Vec<&ScenarioReport> = loads.filter_map(|load| load.scenario.as_ref()).collect();
    let per_s = |report: &&ScenarioReport| report.flows.iter().map(|of| of.rate_per_s).sum();
    let scenarios = planned.flows.iter().map(|of| scenario(&of.name, &reports));
    let names = planned.names().into_iter();
    Some(CellUsers {
        iterations_per_s: Figure::interval(reports.iter().map(per_s)),
        scenarios: scenarios.collect(),
        steps: names.map(|of| step(of, &reports)).collect(),
    })
}

fn scenario(name: &str, reports: &[&ScenarioReport]) -> CellScenario {
    let flows = reports.iter().flat_map(|report| &report.flows);
    let own: Vec<&FlowReport> = flows.filter(|flow| flow.name == name).collect();
    let mut iterations = IterationCounts::default();
    for flow in &own {
        add_iterations(&mut iterations, &flow.iterations);
    }
    CellScenario {
        name: name.to_owned(),
        iterations,
        rate_per_s: Figure::interval(own.iter().map(|flow| flow.rate_per_s)),
        duration_ns: percentiles(own.iter().map(|flow| &flow.duration_ns)),
    }
}

fn step((scenario, name): (&str, &str), reports: &[&ScenarioReport]) -> CellStep {
    let all = reports.iter().flat_map(|report| &report.steps);
    let own = all.filter(|step| step.flow == scenario && step.name == name);
    let own: Vec<_> = own.collect();
    let mut counts = StepCounts::default();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let mut checks: Vec<CheckCount> = Vec::new();
    for step in &own {
        add_requests(&mut counts, &step.counts);
        for (kind, count) in &step.errors {
            add(errors.entry(kind.clone()).or_default(), *count);
        }
        for of in step.checks.iter().filter(|of| of.failed > 0) {
            match checks.iter_mut().find(|known| known.check == of.check) {
                Some(known) => add(&mut known.failed, of.failed),
                None => checks.push(of.clone()),
            }
        }
    }
    if counts.unexpected_status > 0 {
        errors.insert("unexpected_status".to_owned(), counts.unexpected_status);
    }
    CellStep {
        scenario: scenario.to_owned(),
        name: name.to_owned(),
        failed: errors.values().copied().fold(0, u64::saturating_add),
        counts,
        errors,
        checks,
        rate_per_s: Figure::interval(own.iter().map(|step| step.rate_per_s)),
        latency_ns: percentiles(own.iter().map(|step| &step.latency_ns)),
    }
}

/// Adds what a file may say, whatever it is.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

fn add_iterations(sum: &mut IterationCounts, of: &IterationCounts) {
    add(&mut sum.started, of.started);
    add(&mut sum.completed, of.completed);
    add(&mut sum.completed_in_window, of.completed_in_window);
    add(&mut sum.abandoned, of.abandoned);
    add(&mut sum.unfinished, of.unfinished);
}

fn add_requests(sum: &mut StepCounts, of: &StepCounts) {
    add(&mut sum.sent, of.sent);
    add(&mut sum.warmup_completed, of.warmup_completed);
    add(&mut sum.warmup_failed, of.warmup_failed);
    add(&mut sum.completed, of.completed);
    add(&mut sum.unexpected_status, of.unexpected_status);
    sum.failed.add(&of.failed);
    add(&mut sum.in_flight, of.in_flight);
    add(&mut sum.lacking, of.lacking);
}

/// The percentiles over the trials, of which each has those of its own. A trial in which there was nothing has none.
fn percentiles<'a>(trials: impl Iterator<Item = &'a LatencyNs>) -> BTreeMap<&'static str, Figure> {
    let trials: Vec<&LatencyNs> = trials.filter(|of| of.count > 0).collect();
    let figure = |(name, percent): (&'static str, f64)| {
        let values = trials.iter().filter_map(|of| of.percentile(percent));
        let values: Vec<f64> = values.map(|ns| ns as f64).collect();
        Some((name, latency_interval(&values)?))
    };
    PERCENTILES.into_iter().filter_map(figure).collect()
}
