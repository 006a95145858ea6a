//! The table of a search, and the sentences above and below it.

use super::figures::SearchFigures;
use super::sections::Section;
use crate::figures::CellFigures;
use crate::grid::{Grid, verdict};
use crate::metrics::Metric;
use crate::numbers;
use crate::part::{Context, column, detail, ratio_word, spread_word, verdict_column};
use crate::sent::sent;
use crate::servers::{name, remark};
use crate::table::{self, COUNT, ERRORS, Entry, ON_TITLE, RATE, Shown, TIME, Table};
use crate::words::paragraph;

const COLUMNS: [Shown; 5] = [
    Shown::of("p50 there", "search.p50_ns", TIME),
    Shown::of("closed loop, requests/s", "search.closed_loop_per_s", RATE),
    Metric::CPU.shown,
    ERRORS,
    Shown::of("steps", "search.steps", COUNT).detail(),
];

/// A row for each cell, the highest rate first.
pub(super) fn of_section(context: &Context<'_, ()>, section: &Section<'_>) -> Table {
    let rates = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let word = match rates.clone().any(|rate| rate.is_interval()) {
        true => "95 % interval",
        false => spread_word(rates.map(|rate| (false, rate.blocks))),
    };
    let reference = context.run.plan.reference.as_ref();
    let ratio = reference.map_or_else(|| "ratio".to_owned(), |id| format!("ratio to {id}"));
    let notes = context.notes;
    let grid = Grid::new()
        .head(column("subject", "", false), |c| {
            notes.on(c, ON_TITLE, name(c))
        })
        .figure(column("highest requests/s", word, true), |c| {
            highest(context, c)
        })
        .figure(
            column(ratio, ratio_word(&section.cells), true),
            table::ratio,
        )
        .shown(context, COLUMNS)
        .figure(detail(column("steps kept", "", true)), |c| {
            let curve = c.search.iter().flat_map(|search| &search.curve);
            let kept: usize = curve.map(|point| point.kept).sum();
            Entry::text(numbers::count(kept as u64))
        })
        .head(detail(verdict_column()), verdict);
    let has_figures = |c: &CellFigures| c.search.is_some() && c.is_measured();
    let cells = section.cells.iter();
    let rows = cells.map(|c| grid.row_if(has_figures(c), c)).collect();
    grid.table(rows)
}

fn highest(context: &Context<'_, ()>, cell: &CellFigures) -> Entry {
    let entry = context.entry(cell, &Metric::RATE.shown);
    let is_nowhere = |search: &SearchFigures| search.blocks_nowhere > 0;
    let text = match (
        cell.rate_per_s,
        cell.search.as_ref().is_some_and(is_nowhere),
    ) {
        (Some(rate), _) => {
            return Entry {
                // One search has an interval of its own.
                below: numbers::rates(rate.low, rate.high),
                remark: remark(cell),
                ..entry
            };
        }
        (None, true) => "none found".to_owned(),
        (None, false) => table::absence(cell).to_owned(),
    };
    Entry { text, ..entry }
}

/// What a reader must know before the table.
pub(super) fn before(section: &Section<'_>) -> String {
    let planned = section.workload.find_max.as_ref();
    let step = numbers::duration(planned.map_or(0, |of| of.step_ns));
    let how = paragraph("search: steps").replace("{step}", &step);
    format!("{}. {how}", sent(section.workload, false))
}

/// What stands below the table.
pub(super) fn after(section: &Section<'_>) -> Option<String> {
    let mut rates = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let is_one = rates.any(|rate| rate.blocks == 1);
    is_one.then(|| paragraph("search: one"))
}
