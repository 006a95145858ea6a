//! The table of a search.

use super::figures::SearchFigures;
use super::sections::Section;
use crate::figures::{CellFigures, Figure};
use crate::grid::{Grid, verdict};
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers;
use crate::part::{column, detail, median, ratio_word, spread_word, verdict_column};
use crate::servers::{name, remark};
use crate::table::{self, Entry, ON_CPU, ON_ERRORS, ON_RATE, ON_TITLE, Table};

/// A row for each cell, the highest rate first.
pub(super) fn of_section(section: &Section<'_>, reference: Option<&str>, notes: &Notes) -> Table {
    let rates = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let word = match rates.clone().any(|rate| rate.is_interval()) {
        true => "95 % interval",
        false => spread_word(rates.map(|rate| (false, rate.blocks))),
    };
    let ratio = reference.map_or_else(|| "ratio".to_owned(), |id| format!("ratio to {id}"));
    let count = |count: usize| numbers::count(count as u64);
    let grid = Grid::new()
        .head(column("subject", "", false), |c| {
            notes.on(c, ON_TITLE, name(c))
        })
        .figure(column("highest requests/s", word, true), |c| {
            notes.on(c, ON_RATE, highest(c))
        })
        .figure(
            column(ratio, ratio_word(&section.cells), true),
            table::ratio,
        )
        .figure(column("p50 there", "", true), |c| {
            let p50 = |of: &SearchFigures| of.p50_ns;
            of(c, "search.p50_ns.median", p50, numbers::time)
        })
        .figure(column("closed loop, requests/s", "", true), |c| {
            let closed = |of: &SearchFigures| of.closed_loop_per_s;
            of(c, "search.closed_loop_per_s.median", closed, numbers::rate)
        })
        .figure(Metric::CPU.head(), |c| {
            notes.on(c, ON_CPU, Metric::CPU.entry(c))
        })
        .figure(column("errors", "", true), |c| {
            notes.on(c, ON_ERRORS, table::errors(c))
        })
        .figure(detail(column("steps", "", true)), |c| {
            let steps = c.search.as_ref().map(|search| search.steps);
            let value = steps.map(|steps| steps as f64);
            Entry::figure("search.steps", value, |_| count(steps.unwrap_or(0)))
        })
        .figure(detail(column("steps kept", "", true)), |c| {
            let curve = c.search.iter().flat_map(|search| &search.curve);
            Entry::text(count(curve.map(|point| point.kept).sum()))
        })
        .head(detail(verdict_column()), verdict);
    let has_figures = |c: &CellFigures| c.search.is_some() && c.is_measured();
    let cells = section.cells.iter();
    let rows = cells.map(|c| grid.row_if(has_figures(c), c)).collect();
    grid.table(rows)
}

fn of(
    cell: &CellFigures,
    path: &'static str,
    figure: fn(&SearchFigures) -> Option<Figure>,
    show: fn(f64) -> String,
) -> Entry {
    Entry::figure(path, median(cell.search.as_ref().and_then(figure)), show)
}

fn highest(cell: &CellFigures) -> Entry {
    let Some(rate) = cell.rate_per_s else {
        let is_nowhere = |search: &SearchFigures| search.blocks_nowhere > 0;
        return Entry::text(match cell.search.as_ref().is_some_and(is_nowhere) {
            true => "none found",
            false => table::absence(cell),
        });
    };
    let mut entry = Metric::RATE.entry(cell);
    entry.below = numbers::rates(rate.low, rate.high);
    entry.remark = remark(cell);
    entry
}
