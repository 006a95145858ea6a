//! What a document says of open loops: what was asked for, drawn and completed, and which subjects do not keep
//! up. The latency of one that does not keep up is no figure of it: it grows for as long as the run lasts.

pub mod figures;

use prony_record::{Arrival, Plan, PlannedWorkload, Work};

use crate::figures::CellFigures;
use crate::numbers;
use crate::table::Entry;

impl CellFigures {
    /// Whether its subject did not keep up with the schedule in any block.
    pub fn is_overloaded(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.blocks_overloaded > 0)
    }
}

/// Requests, or users, that the schedule drew a second.
pub fn drawn(cell: &CellFigures) -> Entry {
    let drawn = cell.open.as_ref().and_then(|open| open.drawn_per_s);
    let drawn = drawn.map(|figure| figure.median);
    Entry::figure("open.drawn_per_s.median", drawn, numbers::rate)
}

/// How requests follow each other, of all workloads of servers.
pub fn loops(plan: &Plan) -> String {
    let servers = || {
        let mut workloads = plan.workloads.iter();
        std::iter::from_fn(move || workloads.find(|w| w.work() == Work::Server))
    };
    let of_users = |w: &PlannedWorkload| w.source.as_ref().is_some_and(|of| of.scenario.is_some());
    let has = |is: fn(&Arrival) -> bool| servers().any(|w| !of_users(w) && is(&w.arrival));
    let has_users =
        |is_open: bool| servers().any(|w| of_users(w) && w.arrival.is_open() == is_open);
    let mut said = Vec::new();
    if has(|arrival| *arrival == Arrival::Closed) || servers().next().is_none() {
        said.push(
            "A closed loop: each connection sends its next request when the last is answered",
        );
    }
    if has(|arrival| matches!(arrival, Arrival::Think { .. })) {
        said.push(
            "A closed loop with think time: each connection sends its next request that long after the last \
             is answered",
        );
    }
    if has(Arrival::is_open) {
        said.push(
            "An open loop: requests start by a schedule that is drawn beforehand, whatever the answers do; one \
             for which no connection is idle waits for one",
        );
    }
    if has_users(false) {
        said.push(
            "Users in a closed loop: each does its steps on a connection of its own, thinks between them where the scenario says so, \
             and begins again after the last",
        );
    }
    if has_users(true) {
        said.push(
            "Users in an open loop: they arrive by a schedule that is drawn beforehand, whatever the answers do; one for \
             whom no connection is idle waits for one",
        );
    }
    said.join(". ")
}

/// What latency counts from in an open loop, where there is one.
pub fn origin(plan: &Plan) -> &'static str {
    match plan.workloads.iter().any(|w| w.arrival.is_open()) {
        true => " (in an open loop: from when it was to start; ∞: it failed or was never answered)",
        false => "",
    }
}
