//! What became of the schedules of a cell's open loops, computed once for each.

use prony_findings::{Case, measure};
use prony_record::{Arrivals, LoadReport};
use serde::Serialize;

use crate::figure::Figure;

/// What became of the schedules of a cell's blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenFigures {
    /// Requests a second that the schedule wanted to start in the window; users, where they do steps.
    pub drawn_per_s: Option<Figure>,
    /// Most that waited for an idle connection at the same time, in all blocks.
    pub waiting_max: u64,
    /// Requests of all blocks that were never sent for want of a connection.
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
    let loads = || case.measured().filter_map(|trial| trial.load.as_ref());
    let arrivals = || loads().filter_map(|load| Some((load, load.arrivals?)));
    arrivals().next()?;
    let drawn: Vec<f64> = arrivals()
        .filter_map(|(load, of)| drawn(load, &of))
        .collect();
    let blocks = |is: fn(&Arrivals) -> bool| arrivals().filter(|(_, of)| is(of)).count();
    Some(OpenFigures {
        drawn_per_s: Figure::range(&drawn),
        waiting_max: arrivals().map(|(_, of)| of.waiting_max).max().unwrap_or(0),
        never_sent: arrivals()
            .map(|(_, of)| of.waiting.saturating_add(of.dropped))
            .fold(0, u64::saturating_add),
        blocks_overloaded: blocks(|of| of.overloaded),
        blocks_generator_short: blocks(|of| of.generator_short),
    })
    .filter(|_| is_open(case))
}

fn drawn(load: &LoadReport, arrivals: &Arrivals) -> Option<f64> {
    Some(measure::drawn(load, arrivals)?.0)
}
