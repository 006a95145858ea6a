//! What more connections, client threads or server threads bring: the rate of one row of a section over
//! that of an earlier row that differs from it in this one number, block by block.
//!
//! Not for: comparing clients with each other.

use prony_findings::Records;
use serde::Serialize;

use super::sections::{RowKey, Section, sections};
use crate::Run;
use crate::figures::CellFigures;
use crate::ratio;
use crate::ratio::RatioFigure;

/// The rate of a client with more of something over that with less, all else equal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The client.
    pub subject: String,
    /// The cell with more.
    pub cell: String,
    /// What there is more of: `connections`, `client threads`, `server threads`.
    pub what: &'static str,
    /// From how many.
    pub from: String,
    /// To how many.
    pub to: String,
    /// The ratio of rates; its `reference_cell` is the cell with less.
    pub ratio: RatioFigure,
}

/// One number that differs between two rows: its name, and both values.
pub type Change = (&'static str, String, String);

/// Pairs of rows that differ in one number: the earlier one, the later one, and the number. Of each
/// later row the nearest earlier one.
pub fn pairs(section: &Section<'_>) -> Vec<(usize, usize, Change)> {
    let rows = &section.rows;
    let pair = |later: usize| {
        let earlier = (0..later).rev();
        let mut found =
            earlier.filter_map(|at| Some((at, later, change(&rows[at], &rows[later])?)));
        found.next()
    };
    (0..rows.len()).filter_map(pair).collect()
}

fn change(from: &RowKey<'_>, to: &RowKey<'_>) -> Option<Change> {
    let numbers = [
        (
            "connections",
            from.connections.to_string(),
            to.connections.to_string(),
        ),
        ("client threads", from.threads.clone(), to.threads.clone()),
        (
            "server threads",
            from.peer_threads.to_string(),
            to.peer_threads.to_string(),
        ),
    ];
    let mut differ = numbers.into_iter().filter(|(_, from, to)| from != to);
    let one = differ.next()?;
    differ.next().is_none().then_some(one)
}

/// All steps of the sections on requests.
pub fn steps(run: &Run, records: &Records<'_>, cells: &[CellFigures]) -> Vec<Step> {
    let mut steps = Vec::new();
    let case = |id: &str| {
        let cell = run.plan.cells.iter().find(|cell| cell.id == id);
        cell.map(|cell| records.case(cell))
    };
    for section in sections(run, cells).iter().filter(|s| !s.is_downloads()) {
        for (from, to, (what, fewer, more)) in pairs(section) {
            for column in &section.columns {
                let at = |row: usize| section.cell(&section.rows[row], column);
                let (Some(less), Some(cell)) = (at(from), at(to)) else {
                    continue;
                };
                let (Some(base), Some(own)) = (case(&less.cell), case(&cell.cell)) else {
                    continue;
                };
                steps.extend(ratio::rates(&base, &own).map(|ratio| Step {
                    subject: cell.subject.clone(),
                    cell: cell.cell.clone(),
                    what,
                    from: fewer.clone(),
                    to: more.clone(),
                    ratio,
                }));
            }
        }
    }
    steps
}
