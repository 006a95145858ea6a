//! Workloads with rows.

use prony_record::{PlannedRow, PlannedWorkload, Work};

use crate::Run;
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::numbers;

/// A workload with rows, and its table for each number of connections.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The workload.
    pub workload: &'a PlannedWorkload,
    /// Its tables.
    pub tables: Vec<Rows<'a>>,
}

/// The rows with one number of connections.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    /// Connections.
    pub connections: u32,
    /// What it is called where there are several, or by itself.
    pub title: String,
    /// Rows in their order, each with its figures where it is in the plan.
    pub rows: Vec<(&'a PlannedRow, Option<&'a CellFigures>)>,
}

impl<'a> Rows<'a> {
    /// The figures of its rows, where they have any.
    pub fn cells(&self) -> Vec<&'a CellFigures> {
        self.rows.iter().filter_map(|(_, cell)| *cell).collect()
    }
}

/// The workloads with rows, in the plan's order.
pub fn sections<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<Section<'a>> {
    let workloads = run.plan.workloads.iter();
    let with_rows = workloads.filter(|w| !w.rows.is_empty() && w.work() == Work::Server);
    let section = |workload: &'a PlannedWorkload| {
        let own = cells.iter().filter(|c| c.workload == workload.name);
        let sizes = own.filter(|c| c.row().is_some()).map(|c| c.connections);
        let sizes = distinct(sizes.chain(workload.connections.clone()));
        let several = sizes.len() > 1;
        let tables = sizes.iter().map(|c| rows(cells, workload, *c, several));
        Section {
            workload,
            tables: tables.collect(),
        }
    };
    with_rows.map(section).collect()
}

fn rows<'a>(
    cells: &'a [CellFigures],
    workload: &'a PlannedWorkload,
    connections: u32,
    several: bool,
) -> Rows<'a> {
    let found = |row: &PlannedRow| {
        let is_row = |c: &&CellFigures| c.row().is_some_and(|own| own.title == row.title);
        let mut own = cells.iter().filter(is_row);
        own.find(|c| c.workload == workload.name && c.connections == connections)
    };
    let of = self::connections(connections);
    Rows {
        connections,
        title: match several {
            true => format!("{}, {of}", workload.heading()),
            false => workload.heading().to_owned(),
        },
        rows: workload.rows.iter().map(|row| (row, found(row))).collect(),
    }
}

/// `256 connections`.
pub fn connections(connections: u32) -> String {
    numbers::counted(connections.into(), "connection")
}

/// A part of a whole that may be very small: `12.3 %`, `0.004 %`.
pub fn share(part: u64, whole: u64) -> String {
    let percents = part as f64 / whole as f64 * 100.0;
    if !percents.is_finite() || percents >= 0.1 || part == 0 {
        return numbers::percent(percents / 100.0);
    }
    match format!("{percents:.3}").trim_end_matches('0') {
        "0." => "under 0.001 %".to_owned(),
        digits => format!("{digits} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_told_as_far_as_they_can_be_seen() {
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(1, 1_000), "0.1 %");
        assert_eq!(share(4, 10_000), "0.04 %");
        assert_eq!(share(1, 80_000), "0.001 %");
        assert_eq!(share(1, 1_000_000), "under 0.001 %");
        assert_eq!(share(0, 7), "0.0 %");
        assert_eq!(share(1, 0), "–");
    }
}
