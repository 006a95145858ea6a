//! The table of a search.

use super::figures::SearchFigures;
use super::sections::Section;
use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers;
use crate::part::{column, detail, median, ratios_word, spread_word, unmeasured, verdict_column};
use crate::table::{self, Column, Entry, ON_CPU, ON_ERRORS, ON_RATE, ON_TITLE, Row, Table};

/// A row for each cell, the highest rate first.
pub(super) fn of_section(section: &Section<'_>, reference: Option<&str>, notes: &Notes) -> Table {
    let columns = columns(section, reference);
    let width = columns.len();
    Table {
        rows: section
            .cells
            .iter()
            .map(|cell| row(cell, notes, width))
            .collect(),
        columns,
    }
}

fn columns(section: &Section<'_>, reference: Option<&str>) -> Vec<Column> {
    let rates = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let word = match rates.clone().any(|rate| rate.is_interval()) {
        true => "95 % interval",
        false => spread_word(rates.map(|rate| (false, rate.blocks))),
    };
    let ratios = ratios_word(section.cells.iter().filter_map(|cell| cell.ratio.as_ref()));
    let ratio = match reference {
        Some(id) => format!("ratio to {id}"),
        None => "ratio".to_owned(),
    };
    vec![
        column("subject", "", false),
        column("highest requests/s", word, true),
        column(ratio, ratios, true),
        column("p50 there", "", true),
        column("closed loop, requests/s", "", true),
        column("CPU subject", "µs/req", true),
        column("errors", "", true),
        detail(column("steps", "", true)),
        detail(column("steps kept", "", true)),
        detail(verdict_column()),
    ]
}

fn row(cell: &CellFigures, notes: &Notes, width: usize) -> Row {
    let head = Entry {
        text: cell.label.clone(),
        below: table::standing(cell),
        marks: notes.marks(&cell.cell, ON_TITLE),
        ..Entry::default()
    };
    let Some(search) = cell
        .search
        .as_ref()
        .filter(|_| !cell.trials.measured.is_empty())
    else {
        return table::row_of(cell, unmeasured(cell, vec![head], width, true));
    };
    let marked = |codes, entry: Entry| Entry {
        marks: notes.marks(&cell.cell, codes),
        ..entry
    };
    let of = |path: &'static str, figure: Option<Figure>, show: fn(f64) -> String| {
        Entry::figure(path, median(figure), show)
    };
    let kept = search.curve.iter().map(|point| point.kept).sum::<usize>();
    let entries = vec![
        head,
        marked(ON_RATE, highest(cell, search)),
        table::ratio(cell),
        of("search.p50_ns.median", search.p50_ns, numbers::time),
        of(
            "search.closed_loop_per_s.median",
            search.closed_loop_per_s,
            numbers::rate,
        ),
        marked(ON_CPU, Metric::CPU.entry(cell)),
        marked(ON_ERRORS, table::errors(cell)),
        Entry::figure("search.steps", Some(search.steps as f64), |_| {
            numbers::count(search.steps as u64)
        }),
        Entry::text(numbers::count(kept as u64)),
        Entry::text(table::verdict_text(cell)),
    ];
    table::row_of(cell, entries)
}

fn highest(cell: &CellFigures, search: &SearchFigures) -> Entry {
    let Some(rate) = cell.rate_per_s else {
        return Entry::text(match search.blocks_nowhere {
            0 => table::absence(cell),
            _ => "none found",
        });
    };
    let mut entry = Entry::figure("rate_per_s.median", Some(rate.median), numbers::rate);
    entry.below = numbers::rates(rate.low, rate.high);
    entry.remark = match cell.verdict {
        Some(prony_findings::Verdict::Bound) => "at least",
        Some(prony_findings::Verdict::Invalid) => "invalid",
        _ => "",
    };
    entry
}
