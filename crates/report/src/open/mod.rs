//! What a document says of open loops: what was asked for, drawn and completed, and which subjects do not keep
//! up. The latency of one that does not keep up is no figure of it: it grows for as long as the run lasts.

pub mod figures;

use prony_record::{Arrival, Plan, PlannedWorkload, Work};

use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::words::paragraph;

impl CellFigures {
    /// Whether its subject did not keep up with the schedule in any block.
    pub fn is_overloaded(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.blocks_overloaded > 0)
    }
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
    let said = names
        .into_iter()
        .map(|name| paragraph(&format!("loop, {name}")));
    said.collect::<Vec<_>>().join(". ")
}

/// What latency counts from in an open loop, where there is one.
pub fn origin(plan: &Plan) -> &'static str {
    match plan.workloads.iter().any(|w| w.arrival.is_open()) {
        true => " (in an open loop: from when it was to start; ∞: it failed or was never answered)",
        false => "",
    }
}
