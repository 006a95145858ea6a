//! What a document says of open loops: what was asked for, drawn and completed, and which subjects do not keep
//! up. The latency of one that does not keep up is no figure of it: it grows for as long as the run lasts.

use std::ops::Range;

use prony_findings::{Case, measure};
use prony_record::{Arrival, Arrivals, LoadReport, NEVER, Plan, Work};
use serde::Serialize;

use crate::answer::listed;
use crate::figures::{CellFigures, Figure};
use crate::numbers::{self, NOTHING};
use crate::table::{Column, Entry};

/// A latency that never ended, as figures hold it.
pub const INFINITE: f64 = NEVER as f64;

/// What became of the schedules of a cell's blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenFigures {
    /// Requests a second that the schedule wanted to start in the window.
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

/// A latency over the blocks. One that never ended makes the middle of two infinite, too.
pub fn latencies(values: &[f64]) -> Option<Figure> {
    let ended: Vec<f64> = values.iter().copied().filter(|ns| *ns < INFINITE).collect();
    let figure = Figure::range(&ended);
    if ended.len() == values.len() {
        return figure;
    }
    let mut all = values.to_vec();
    all.sort_by(f64::total_cmp);
    let (below, above) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    Some(Figure {
        median: if above < INFINITE {
            f64::midpoint(below, above)
        } else {
            INFINITE
        },
        low: all[0],
        high: INFINITE,
        spread: "range",
        blocks: all.len(),
    })
}

impl CellFigures {
    /// Whether its subject did not keep up with the schedule in any block.
    pub fn is_overloaded(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.blocks_overloaded > 0)
    }
}

/// Makes the columns of a table those of open loops: what was drawn beside what was completed, and no
/// ratio of rates that the schedule gives.
pub fn columns(columns: &mut Vec<Column>, rate: usize, ratio: usize) {
    columns.remove(ratio);
    "completed/s".clone_into(&mut columns[rate].title);
    let drawn = Column {
        title: "drawn/s".to_owned(),
        below: "".into(),
        numeric: true,
        markdown_only: false,
        details: false,
    };
    columns.insert(rate, drawn);
}

/// The same with the entries of a row.
pub fn entries(
    entries: &mut Vec<Entry>,
    cell: &CellFigures,
    (rate, ratio): (usize, usize),
    latencies: Range<usize>,
) {
    if cell.is_overloaded() {
        for entry in &mut entries[latencies.clone()] {
            *entry = Entry::text(NOTHING);
        }
        entries[latencies.start] = Entry::text("overloaded");
    }
    entries.remove(ratio);
    let drawn = cell.open.as_ref().and_then(|open| open.drawn_per_s);
    let drawn = drawn.map(|figure| figure.median);
    let drawn = Entry::figure("open.drawn_per_s.median", drawn, numbers::rate);
    entries.insert(rate, drawn);
}

/// Who kept up with the schedule, and who did not.
pub fn sentence(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let mut kept = Vec::new();
    let mut overloaded = Vec::new();
    for cell in cells {
        let (Some(open), Some(rate)) = (&cell.open, cell.rate_per_s) else {
            continue;
        };
        match (
            open.drawn_per_s,
            open.blocks_overloaded,
            open.blocks_generator_short,
        ) {
            (Some(drawn), 1.., _) => overloaded.push(format!(
                "{} ({} of {} requests/s)",
                cell.label,
                numbers::rate(rate.median),
                numbers::rate(drawn.median)
            )),
            (_, 0, 0) => kept.push(cell.label.clone()),
            // The generator did not: the findings say so.
            _ => {}
        }
    }
    let mut parts = Vec::new();
    if !kept.is_empty() {
        parts.push(format!("{} kept up with the schedule", listed(&kept)));
    }
    if !overloaded.is_empty() {
        let were = if overloaded.len() == 1 { "was" } else { "were" };
        parts.push(format!(
            "{} {were} overloaded: no latency is given",
            listed(&overloaded)
        ));
    }
    (!parts.is_empty()).then(|| format!("{place}, {}.", parts.join("; ")))
}

/// How requests follow each other, of all workloads of servers.
pub fn loops(plan: &Plan) -> String {
    let servers = || {
        let mut workloads = plan.workloads.iter();
        std::iter::from_fn(move || workloads.find(|w| w.work() == Work::Server))
    };
    let has = |is: fn(&Arrival) -> bool| servers().any(|w| is(&w.arrival));
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
    said.join(". ")
}

/// What latency counts from in an open loop, where there is one.
pub fn origin(plan: &Plan) -> &'static str {
    match plan.workloads.iter().any(|w| w.arrival.is_open()) {
        true => " (in an open loop: from when it was to start; ∞: it failed or was never answered)",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_that_never_ended_is_no_part_of_a_mean() {
        let figure = latencies(&[1e6, INFINITE]).expect("a figure");
        assert_eq!(
            (figure.low, figure.median, figure.high),
            (1e6, INFINITE, INFINITE)
        );
        assert_eq!(numbers::time(figure.median), "∞");
        let figure = latencies(&[1e6, 3e6, INFINITE]).expect("a figure");
        assert_eq!((figure.median, figure.high), (3e6, INFINITE));
        let json = serde_json::to_value(figure).expect("JSON");
        assert_eq!(json["high"].as_f64(), Some(INFINITE));
    }
}
