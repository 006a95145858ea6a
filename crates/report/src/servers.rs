//! The table of servers: a row for each cell of one workload and size.

use prony_findings::{Code, Verdict};

use crate::figures::{CellFigures, Figure};
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};
use crate::open;
use crate::rows;
use crate::table::{
    Column, Entry, ON_CPU, ON_ERRORS, ON_RATE, ON_TITLE, Row, Table, absence, ratio, row_of,
    standing, verdict_text,
};

/// Columns, each with the codes of the findings that are footnotes on it.
const COLUMNS: [(&str, &[Code]); 12] = [
    ("subject", ON_TITLE),
    ("requests/s", ON_RATE),
    ("ratio", &[]),
    ("p50", &[]),
    ("p90", &[]),
    ("p99", &[]),
    ("p99.9", &[]),
    ("max", &[]),
    ("CPU subject", ON_CPU),
    ("CPU generator", &[]),
    ("memory", &[]),
    ("errors", ON_ERRORS),
];

/// Places among these.
const RATE: usize = 1;

const RATIO: usize = 2;

const LATENCIES: std::ops::Range<usize> = 3..8;

/// Those that stand in the appendix only.
const DETAILS: [&str; 5] = ["p90", "p99.9", "max", "CPU generator", "memory"];

/// The table of the cells of one workload and number of connections, and of one rate where one is said.
pub fn of_cells(cells: &[&CellFigures], reference: Option<&str>, notes: &Notes) -> Table {
    let word = |interval: bool| if interval { "95 % interval" } else { "range" };
    let rates = word(
        cells
            .iter()
            .filter_map(|c| c.rate_per_s)
            .any(|rate| rate.is_interval()),
    );
    let of_ratio = |c: &&CellFigures| c.ratio.as_ref().is_some_and(|r| r.spread == "interval");
    let ratios = word(cells.iter().any(of_ratio));
    let column = |name: &str| {
        let (title, below) = match name {
            "requests/s" => (name.to_owned(), rates),
            "ratio" => match reference {
                Some(id) => (format!("ratio to {id}"), ratios),
                None => (name.to_owned(), ""),
            },
            "CPU subject" => (name.to_owned(), "µs/req"),
            "CPU generator" => (name.to_owned(), "µs/req"),
            "memory" => ("memory peak".to_owned(), ""),
            name => (name.to_owned(), ""),
        };
        Column {
            title,
            below: below.into(),
            numeric: name != "subject",
            markdown_only: false,
            details: DETAILS.contains(&name),
        }
    };
    let mut columns: Vec<Column> = COLUMNS.iter().map(|&(name, _)| column(name)).collect();
    let is_open = cells.iter().any(|cell| cell.open.is_some());
    if is_open {
        open::columns(&mut columns, RATE, RATIO);
    }
    let more = rows::more_columns(cells, notes);
    columns.extend(more.iter().map(|(column, _)| column.clone()));
    columns.push(Column {
        title: "verdict".to_owned(),
        below: "".into(),
        numeric: false,
        markdown_only: true,
        details: true,
    });
    Table {
        columns,
        rows: cells
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let more = more.iter().map(|(_, entries)| entries[at].clone());
                row(cell, notes, is_open, more)
            })
            .collect(),
    }
}

fn row(cell: &CellFigures, notes: &Notes, is_open: bool, more: impl Iterator<Item = Entry>) -> Row {
    let mut entries = if cell.trials.measured.is_empty() {
        unmeasured(cell)
    } else {
        measured(cell)
    };
    for (entry, (_, codes)) in entries.iter_mut().zip(COLUMNS) {
        entry.marks = notes.marks(&cell.cell, codes);
    }
    if is_open {
        open::entries(&mut entries, cell, (RATE, RATIO), LATENCIES);
    }
    entries.extend(more);
    entries.push(Entry::text(verdict_text(cell)));
    row_of(cell, entries)
}

fn unmeasured(cell: &CellFigures) -> Vec<Entry> {
    let what = absence(cell);
    let mut entries = vec![Entry::text(NOTHING); COLUMNS.len()];
    entries[0] = name(cell);
    entries[1] = Entry::text(what);
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

fn measured(cell: &CellFigures) -> Vec<Entry> {
    let median = |figure: Option<Figure>| figure.map(|f| f.median);
    let latency = |name, figure: &'static str| {
        let value = cell.latency_ns.get(name).map(|f| f.median);
        Entry::figure(figure, value, numbers::time)
    };
    let mut p99_9 = latency("p99_9", "latency_ns.p99_9.median");
    p99_9.few = p99_9.value.is_some() && !cell.p99_9_supported;
    let max = cell.latency_max_ns.map(|ns| ns as f64);
    let mut rate = Entry::figure("rate_per_s.median", median(cell.rate_per_s), numbers::rate);
    // The range of one block would repeat its value.
    if let Some(of) = cell.rate_per_s.filter(|of| of.blocks > 1) {
        rate.below = numbers::rates(of.low, of.high);
    }
    rate.remark = match cell.verdict {
        Some(Verdict::Bound) => "at least",
        Some(Verdict::Invalid) => "invalid",
        _ => "",
    };
    vec![
        name(cell),
        rate,
        ratio(cell),
        latency("p50", "latency_ns.p50.median"),
        latency("p90", "latency_ns.p90.median"),
        latency("p99", "latency_ns.p99.median"),
        p99_9,
        Entry::figure("latency_max_ns", max, numbers::time),
        Entry::figure(
            "cpu_subject_ns.median",
            median(cell.cpu_subject_ns),
            numbers::micros,
        ),
        Entry::figure(
            "cpu_generator_ns.median",
            median(cell.cpu_generator_ns),
            numbers::micros,
        ),
        Entry::figure(
            "memory_peak_bytes.median",
            median(cell.memory_peak_bytes),
            numbers::bytes,
        ),
        Entry {
            text: numbers::count(cell.errors),
            figure: "errors".into(),
            value: Some(cell.errors as f64),
            ..Entry::default()
        },
    ]
}
