//! What a document says of open loops: what was asked for, drawn and completed, and which subjects do not keep
//! up. The latency of one that does not keep up is no figure of it: it grows for as long as the run lasts.

use prony_findings::{Case, measure};
use prony_record::{Arrival, Arrivals, Plan, PlannedWorkload, Trial, Work};
use serde::Serialize;

use crate::figure::Figure;
use crate::lists::distinct;
use crate::words::paragraph;

/// What became of the schedules of a cell's trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenFigures {
    /// Requests a second that the schedule wanted to start in the window; users, where they do steps.
    pub drawn_per_s: Option<Figure>,
    /// Most that waited for an idle connection at the same time, in all trials.
    pub waiting_max: u64,
    /// Requests of all trials that were never sent for want of a connection.
    pub never_sent: u64,
    /// Blocks in which the subject did not keep up.
    pub blocks_overloaded: usize,
    /// Blocks in which the generator did not.
    pub blocks_generator_short: usize,
}

/// Whether a cell's requests start by a schedule.
pub fn is_open(case: &Case<'_>) -> bool {
    case.workload.is_some_and(|w| w.arrival.is_open())
}

/// The figures of an open loop; `None` of any other cell, and of one that was not measured.
pub fn of_cell(case: &Case<'_>) -> Option<OpenFigures> {
    let trials = case.measured().filter(|_| is_open(case));
    let trials: Vec<&Trial> = trials.filter(|trial| arrivals(trial).is_some()).collect();
    let all = || trials.iter().filter_map(|trial| arrivals(trial));
    let never_sent = all().map(|of| of.waiting.saturating_add(of.dropped));
    Some(OpenFigures {
        drawn_per_s: Figure::over(&trials, |trial| {
            Some(measure::drawn(trial.load.as_ref()?, arrivals(trial)?)?.0)
        }),
        waiting_max: all().map(|of| of.waiting_max).max()?,
        never_sent: never_sent.fold(0, u64::saturating_add),
        blocks_overloaded: all().filter(|of| of.overloaded).count(),
        blocks_generator_short: all().filter(|of| of.generator_short).count(),
    })
}

fn arrivals(trial: &Trial) -> Option<&Arrivals> {
    trial.load.as_ref()?.arrivals.as_ref()
}

/// How requests follow each other, of all workloads of servers.
pub fn loops(plan: &Plan) -> String {
    let servers = plan.workloads.iter().filter(|w| w.work() == Work::Server);
    let of_users = |w: &PlannedWorkload| w.source.as_ref().is_some_and(|of| of.scenario.is_some());
    let name = |workload: &PlannedWorkload| match (of_users(workload), &workload.arrival) {
        (true, arrival) if arrival.is_open() => "open: users",
        (true, _) => "closed: users",
        (false, Arrival::Closed) => "closed",
        (false, Arrival::Think { .. }) => "closed: thinking",
        (false, _) => "open",
    };
    let mut names = distinct(servers.map(name));
    if names.is_empty() {
        names.push("closed");
    }
    let lines = names
        .into_iter()
        .map(|name| paragraph(&format!("loop, {name}")));
    lines.collect::<Vec<_>>().join(". ")
}

/// What latency counts from in an open loop, where there is one.
pub fn origin(plan: &Plan) -> &'static str {
    match plan.workloads.iter().any(|w| w.arrival.is_open()) {
        true => " (in an open loop: from when it was to start; ∞: it failed or was never answered)",
        false => "",
    }
}
