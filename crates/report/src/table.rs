//! Tables as both documents show them: texts, the marks of footnotes, and the value that each
//! text was made from.

use prony_findings::{Code, Verdict};
use serde::Serialize;

use crate::figures::{CellFigures, Figure, RatioFigure};
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Heads of the columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
}

/// The head of a column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// What it holds.
    pub title: String,
    /// Whether it holds numbers, which stand on the right.
    pub numeric: bool,
}

/// A row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The cell that it shows.
    pub cell: String,
    /// `reference`, `missing` or empty, and the verdict: for the page's style.
    pub class: String,
    /// Its texts, one a column.
    pub entries: Vec<Entry>,
}

/// One text in a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// As it is read.
    pub text: String,
    /// Which figure of the cell it shows: its path in `summary.json`.
    pub figure: &'static str,
    /// The value that the text was made from.
    pub value: Option<f64>,
    /// Footnotes.
    pub marks: Vec<usize>,
    /// Whether the percentile rests on too few episodes.
    pub few: bool,
}

impl Entry {
    /// Words.
    pub fn text(text: impl Into<String>) -> Entry {
        Entry {
            text: text.into(),
            ..Entry::default()
        }
    }

    fn figure(figure: &'static str, value: Option<f64>, show: impl Fn(f64) -> String) -> Entry {
        Entry {
            text: value.map_or_else(|| NOTHING.to_owned(), show),
            figure,
            value,
            ..Entry::default()
        }
    }
}

/// Columns, each with the codes of the findings that are footnotes on it.
const COLUMNS: [(&str, &[Code]); 13] = [
    ("subject", &[Code::P010, Code::P011, Code::P012]),
    (
        "requests/s",
        &[Code::P001, Code::P003, Code::P005, Code::P008, Code::P009],
    ),
    ("spread", &[]),
    ("ratio", &[]),
    ("p50", &[]),
    ("p90", &[]),
    ("p99", &[]),
    ("p99.9", &[]),
    ("max", &[]),
    ("CPU subject", &[Code::P007]),
    ("CPU generator", &[]),
    ("memory", &[]),
    ("errors", &[Code::P002, Code::P004, Code::P006]),
];

/// The table of the cells of one workload and number of connections.
pub fn of_cells(cells: &[&CellFigures], reference: Option<&str>, notes: &Notes) -> Table {
    let interval = cells
        .iter()
        .filter_map(|c| c.rate_per_s)
        .any(|rate| rate.is_interval());
    let of_ratio = |c: &&CellFigures| c.ratio.as_ref().is_some_and(|r| r.spread == "interval");
    let title = |name: &str| match name {
        "spread" if interval => "95 % interval".to_owned(),
        "spread" => "range".to_owned(),
        "ratio" => {
            let kind = if cells.iter().any(of_ratio) {
                "95 % interval"
            } else {
                "range"
            };
            reference.map_or("ratio".to_owned(), |id| format!("ratio to {id} ({kind})"))
        }
        "CPU subject" => "CPU subject, µs/req".to_owned(),
        "CPU generator" => "CPU generator, µs/req".to_owned(),
        "memory" => "memory peak".to_owned(),
        name => name.to_owned(),
    };
    let mut columns: Vec<Column> = COLUMNS
        .iter()
        .map(|&(name, _)| Column {
            title: title(name),
            numeric: name != "subject",
        })
        .collect();
    columns.push(Column {
        title: "verdict".to_owned(),
        numeric: false,
    });
    Table {
        columns,
        rows: cells.iter().map(|cell| row(cell, notes)).collect(),
    }
}

fn row(cell: &CellFigures, notes: &Notes) -> Row {
    let mut entries = if cell.trials.measured.is_empty() {
        unmeasured(cell)
    } else {
        measured(cell)
    };
    for (entry, (_, codes)) in entries.iter_mut().zip(COLUMNS) {
        entry.marks = notes.marks(&cell.cell, codes);
    }
    entries.push(Entry::text(verdict_text(cell)));
    let verdict = match cell.verdict {
        Some(Verdict::Valid) => "valid",
        Some(Verdict::Suspect) => "suspect",
        Some(Verdict::Invalid) => "invalid",
        None => "missing",
    };
    let reference = if cell.is_reference { " reference" } else { "" };
    Row {
        cell: cell.cell.clone(),
        class: format!("{verdict}{reference}"),
        entries,
    }
}

fn verdict_text(cell: &CellFigures) -> &'static str {
    match cell.verdict {
        Some(Verdict::Valid) => "valid",
        Some(Verdict::Suspect) => "suspect",
        Some(Verdict::Invalid) => "invalid",
        None => NOTHING,
    }
}

fn unmeasured(cell: &CellFigures) -> Vec<Entry> {
    let what = if cell.trials.failed.is_empty() {
        "not done yet"
    } else {
        "not measured"
    };
    let mut entries = vec![Entry::text(NOTHING); COLUMNS.len()];
    entries[0] = Entry::text(name(cell));
    entries[1] = Entry::text(what);
    entries
}

/// The label, and what the reader must know of the subject to read the row.
fn name(cell: &CellFigures) -> String {
    let label = &cell.label;
    if cell.is_reference {
        format!("{label} (reference)")
    } else if cell.is_copy {
        format!("{label} (copy of the reference)")
    } else {
        label.clone()
    }
}

fn measured(cell: &CellFigures) -> Vec<Entry> {
    let median = |figure: Option<Figure>| figure.map(|f| f.median);
    let latency = |name, figure| {
        let value = cell.latency_ns.get(name).map(|f| f.median);
        Entry::figure(figure, value, numbers::time)
    };
    let mut p99_9 = latency("p99_9", "latency_ns.p99_9.median");
    p99_9.few = p99_9.value.is_some() && !cell.p99_9_supported;
    let max = cell.latency_max_ns.map(|ns| ns as f64);
    let mut spread = Entry::text(NOTHING);
    if let Some(rate) = cell.rate_per_s {
        // Range or interval of one block would repeat its value.
        if rate.blocks > 1 {
            spread = Entry::text(numbers::rates(rate.low, rate.high));
        }
    }
    vec![
        Entry::text(name(cell)),
        Entry::figure("rate_per_s.median", median(cell.rate_per_s), numbers::rate),
        spread,
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
            figure: "errors",
            value: Some(cell.errors as f64),
            ..Entry::default()
        },
    ]
}

fn ratio(cell: &CellFigures) -> Entry {
    match &cell.ratio {
        None if cell.is_reference => Entry::figure("", Some(1.0), |_| "1".to_owned()),
        None => Entry::text(NOTHING),
        Some(ratio) => Entry::figure("ratio.ratio", Some(ratio.ratio), |_| ratio_text(ratio)),
    }
}

fn ratio_text(ratio: &RatioFigure) -> String {
    let mut text = numbers::ratio(ratio.ratio);
    if ratio.blocks > 1 {
        let (low, high) = (numbers::ratio(ratio.low), numbers::ratio(ratio.high));
        text.push_str(&format!(" ({low}–{high})"));
    }
    if ratio.conclusion == "no-difference-shown" {
        text.push_str(", no difference shown");
    }
    text
}
