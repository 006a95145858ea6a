//! The table of servers: a row for each cell of one workload and size.

use prony_findings::{Code, Verdict};

use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers;
use crate::open;
use crate::part::{column, detail, unmeasured, verdict_column, with_ends};
use crate::ratio::RatioFigure;
use crate::rows;
use crate::table::{
    Column, Entry, ON_ERRORS, ON_TITLE, Table, errors, ratio, row_of, standing, verdict_text,
};

/// Places among these.
const RATE: usize = 1;

const RATIO: usize = 2;

const LATENCIES: std::ops::Range<usize> = 3..8;

/// The table of the cells of one workload and number of connections, and of one rate where one is said.
pub fn of_cells(cells: &[&CellFigures], reference: Option<&str>, notes: &Notes) -> Table {
    let mut columns = heads(cells, reference);
    let width = columns.len();
    let is_open = cells.iter().any(|cell| cell.open.is_some());
    if is_open {
        open::columns(&mut columns, RATE, RATIO);
    }
    let more = rows::more_columns(cells, notes);
    columns.extend(more.iter().map(|(column, _)| column.clone()));
    columns.push(detail(verdict_column()));
    let row = |(at, cell): (usize, &&CellFigures)| {
        let mut entries = match cell.trials.measured.is_empty() {
            true => unmeasured(cell, vec![name(cell)], width, false),
            false => measured(cell),
        };
        for (entry, codes) in entries.iter_mut().zip(codes()) {
            entry.marks = notes.marks(&cell.cell, codes);
        }
        if is_open {
            open::entries(&mut entries, cell, (RATE, RATIO), LATENCIES);
        }
        entries.extend(more.iter().map(|(_, entries)| entries[at].clone()));
        entries.push(Entry::text(verdict_text(cell)));
        row_of(cell, entries)
    };
    Table {
        rows: cells.iter().enumerate().map(row).collect(),
        columns,
    }
}

/// Subject, rate, its ratio, the other metrics, errors.
fn heads(cells: &[&CellFigures], reference: Option<&str>) -> Vec<Column> {
    let word = |interval: bool| if interval { "95 % interval" } else { "range" };
    let mut rates = cells.iter().filter_map(|c| c.rate_per_s);
    let mut ratios = cells.iter().filter_map(|c| c.ratio.as_ref());
    let [mut rate, others @ ..] = Metric::ALL.map(Metric::head);
    rate.below = word(rates.any(|rate| rate.is_interval())).into();
    let ratio = match reference {
        Some(id) => column(
            format!("ratio to {id}"),
            word(ratios.any(RatioFigure::is_interval)),
            true,
        ),
        None => column("ratio", "", true),
    };
    let mut heads = vec![column("subject", "", false), rate, ratio];
    heads.extend(others);
    heads.push(column("errors", "", true));
    heads
}

/// Codes of the findings that are footnotes on each of them.
fn codes() -> impl Iterator<Item = &'static [Code]> {
    let [rate, others @ ..] = Metric::ALL.map(|metric| metric.marks);
    let first = [ON_TITLE, rate, &[]].into_iter();
    first.chain(others).chain([ON_ERRORS])
}

fn measured(cell: &CellFigures) -> Vec<Entry> {
    let [mut rate, others @ ..] = Metric::ALL.map(|metric| metric.entry(cell));
    rate = with_ends(rate, cell.rate_per_s, numbers::rates);
    rate.remark = match cell.verdict {
        Some(Verdict::Bound) => "at least",
        Some(Verdict::Invalid) => "invalid",
        _ => "",
    };
    let mut entries = vec![name(cell), rate, ratio(cell)];
    entries.extend(others);
    entries.push(errors(cell));
    entries
}

/// The label, and what the reader must know of the subject to read the row.
fn name(cell: &CellFigures) -> Entry {
    Entry {
        text: cell.label.clone(),
        below: standing(cell),
        ..Entry::default()
    }
}
