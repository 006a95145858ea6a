//! Tables with rows of their own: what a document says of services and of what stands around them.
//!
//! A workload may list its rows instead of taking all combinations of subjects and settings; each row then
//! stands beside another one, and its ratio is to that. `figures` has the numbers that only services have (a
//! cell outside of such a table has them, too, where something is around its server), `sections` says what is in a table, `tables` lays
//! them out, `pictures` draws the rates, `words` makes sentences of them. A document without rows and
//! services has none of this.
//!
//! Not for: the numbers that all servers share (rate, ratio, latency), which are in `crate::figures`.

pub mod figures;
mod pictures;
pub mod sections;
mod tables;
pub mod words;

use prony_findings::Records;

use self::sections::{Context, connections, sections};
use crate::Run;
use crate::figures::{CellFigures, measured};
use crate::lists::most;
use crate::notes::Notes;
use crate::part::Part;
use crate::plots::{Picture, Plot, picture};
use crate::rest;
use crate::table::Entry;
use crate::threads;
use crate::users;
pub use tables::more_columns;

/// The rates of the table with the most figures, the first of equals.
pub fn alone(run: &Run, cells: &[CellFigures]) -> Option<Picture> {
    let notes = Notes::default();
    let context = Context::of(run, cells, &notes, ());
    let tables = sections(run, cells).into_iter().flat_map(|s| s.tables);
    let best = most(tables, |rows| measured(&rows.cells()))?;
    let mut picture = context.rates_picture("rows-alone", &best);
    picture.title = format!("{}: {}", picture.title, best.title);
    Some(picture)
}

/// The parts of the document: one for each table.
pub fn parts(run: &Run, cells: &[CellFigures], notes: &Notes) -> Vec<Part> {
    let context = Context::of(run, cells, notes, ());
    let records = Records::new(&run.plan, &run.trials);
    let mut parts = Vec::new();
    for section in sections(run, cells) {
        for (at, rows) in section.tables.iter().enumerate() {
            // What holds for all its tables is said once.
            let before = match at {
                0 => words::before(run, &section),
                _ => Vec::new(),
            };
            let mut tables = context.tables(&section, rows);
            tables.extend(rest::table(run, &rows.cells(), |cell| {
                Entry::text(cell.label.clone())
            }));
            tables.extend(users::tables(&rows.cells()));
            tables.extend(threads::table(&records, &rows.cells()));
            let id = format!("r{}", parts.len() + 1);
            parts.push(Part {
                title: match section.tables.len() {
                    1 => format!("{}, {}", rows.title, connections(rows.connections)),
                    _ => rows.title.clone(),
                },
                before,
                tables,
                pictures: vec![
                    context.rates_picture(&format!("{id}-1"), rows),
                    picture(Plot::Latency, &id, &rows.cells()),
                ],
                after: words::after(run, rows),
                id,
                ..Part::default()
            });
        }
    }
    parts
}
