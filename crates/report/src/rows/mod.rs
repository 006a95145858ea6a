//! Tables with rows of their own: what a document says of services and of what stands around them.
//!
//! A workload may list its rows instead of taking all combinations of subjects and settings; each row then
//! stands beside another one, and its ratio is to that. `figures` has the numbers that only services have (a
//! cell outside of such a table has them, too, where something is around its server), `sections` says what is in a table, `tables` lays
//! them out, `lines` makes sentences of them. A document without rows and
//! services has none of this.
//!
//! Not for: the numbers that all servers share (rate, ratio, latency), which are in `crate::figures`.

pub mod figures;
pub mod lines;
pub mod sections;
mod tables;

use prony_findings::Records;

use self::sections::{Rows, connections, sections};
use crate::Run;
use crate::answer::ranking::{BY_RATE, RankedQuestion};
use crate::figures::{CellFigures, labelled};
use crate::lists::distinct;
use crate::notes::Notes;
use crate::part::{Part, named};
use crate::plots::cells::latency;
use crate::rest;
use crate::threads;
use crate::users;
pub use tables::more_columns;

/// What each row costs or brings beside the row that it is compared with.
pub fn questions<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<RankedQuestion<'a>> {
    let tables = sections(run, cells)
        .into_iter()
        .flat_map(|section| section.tables);
    tables.flat_map(|rows| of_table(&rows)).collect()
}

/// A question for each row with which others are compared, and one for the rows that are compared with none.
fn of_table<'a>(rows: &Rows<'a>) -> Vec<RankedQuestion<'a>> {
    let baseline = |c: &CellFigures| c.row().and_then(|row| row.baseline.clone());
    let cells = rows.cells();
    let baselines = distinct(cells.iter().filter_map(|c| baseline(c)));
    let question =
        |(title, without, subjects): (String, String, Vec<&'a CellFigures>)| RankedQuestion {
            title,
            by: BY_RATE,
            subjects: labelled(&subjects),
            without: Some(without),
        };
    let beside = |name: &String| {
        let is_in = |c: &&&CellFigures| c.label == *name || baseline(c).as_ref() == Some(name);
        let title = match baselines.len() {
            1 => rows.title.clone(),
            _ => format!("{}, beside {name}", rows.title),
        };
        let subjects = cells.iter().filter(is_in).copied();
        (title, name.clone(), subjects.collect())
    };
    let with_none = |c: &&&CellFigures| baseline(c).is_none() && !baselines.contains(&c.label);
    let rest: Vec<&CellFigures> = cells.iter().filter(with_none).copied().collect();
    let rest = (!rest.is_empty()).then(|| (rows.title.clone(), String::new(), rest));
    baselines
        .iter()
        .map(beside)
        .chain(rest)
        .map(question)
        .collect()
}

/// The parts of the document: one for each table.
pub fn parts(run: &Run, cells: &[CellFigures], notes: &Notes) -> Vec<Part> {
    let records = Records::new(&run.plan, &run.trials);
    let mut parts = Vec::new();
    for section in sections(run, cells) {
        for (at, rows) in section.tables.iter().enumerate() {
            // What holds for all its tables is said once.
            let before = match at {
                0 => lines::before(run, &section),
                _ => Vec::new(),
            };
            let mut tables = notes.tables(&section, rows);
            tables.extend(rest::table(run, notes, &rows.cells()));
            tables.extend(users::tables(notes, &rows.cells()));
            tables.extend(threads::table(&records, &rows.cells()));
            parts.push(Part {
                title: match section.tables.len() {
                    1 => format!("{}, {}", rows.title, connections(rows.connections)),
                    _ => rows.title.clone(),
                },
                before,
                tables,
                pictures: vec![latency(&labelled(&rows.cells()))],
                ..Part::default()
            });
        }
    }
    named(parts, 'r')
}
