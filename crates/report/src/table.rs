//! Tables as both documents show them: texts, the marks of footnotes, and the value that each
//! text was made from.

use std::borrow::Cow;

use prony_findings::{Code, Verdict};
use serde::Serialize;

use crate::claims::RatioFigure;
use crate::figures::{CellFigures, Figure};
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};
use crate::open;
use crate::rows;

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
    /// Unit, or what stands below its figures.
    pub below: Cow<'static, str>,
    /// Whether it holds numbers, which stand on the right.
    pub numeric: bool,
    /// Whether the page shows it otherwise: below a figure, or as a badge.
    pub markdown_only: bool,
    /// Whether it stands only where all figures do: in the appendix, and folded away in the page.
    pub details: bool,
}

/// Columns that a table of the document has at the most; wider ones are for the appendix.
const COLUMNS_MAX: usize = 7;

impl Table {
    /// The table without its details.
    pub fn brief(&self) -> Table {
        let kept = |at: &usize| !self.columns[*at].details;
        let kept: Vec<usize> = (0..self.columns.len()).filter(kept).collect();
        let row = |row: &Row| Row {
            entries: kept
                .iter()
                .filter_map(|at| row.entries.get(*at).cloned())
                .collect(),
            ..row.clone()
        };
        Table {
            columns: kept.iter().map(|at| self.columns[*at].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// Whether it is narrow enough for a document.
    pub fn fits(&self) -> bool {
        self.columns.iter().filter(|c| !c.details).count() <= COLUMNS_MAX
    }

    /// Whether there is more of it than the document shows.
    pub fn has_more(&self) -> bool {
        !self.fits() || self.columns.iter().any(|c| c.details)
    }
}

/// A row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The cell that it shows.
    pub cell: String,
    /// `reference`, `missing` or empty, and the verdict: for the page's style.
    pub class: String,
    /// The verdict, where it is not valid.
    pub badge: &'static str,
    /// Its texts, one a column.
    pub entries: Vec<Entry>,
}

/// One text in a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// As it is read.
    pub text: String,
    /// What the page shows below it: range or interval.
    pub below: String,
    /// What the page alone shows below it: what columns say that only Markdown has.
    pub page_below: String,
    /// What follows from the figure, in words.
    pub remark: &'static str,
    /// Which figure it shows, as a path in `summary.json`: within the cell, or from the top
    /// where it begins with `/`.
    pub figure: Cow<'static, str>,
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

    /// A number of the figures, as it is shown.
    pub fn figure(
        figure: impl Into<Cow<'static, str>>,
        value: Option<f64>,
        show: impl Fn(f64) -> String,
    ) -> Entry {
        Entry {
            text: value.map_or_else(|| NOTHING.to_owned(), show),
            figure: figure.into(),
            value,
            ..Entry::default()
        }
    }
}

/// Codes of the findings that are footnotes on a title or a subject.
pub const ON_TITLE: &[Code] = &[Code::P010, Code::P011, Code::P012, Code::P027];
/// The same on a rate.
pub const ON_RATE: &[Code] = &[
    Code::P001,
    Code::P003,
    Code::P005,
    Code::P008,
    Code::P028,
    Code::P029,
    Code::P030,
    Code::P031,
];
/// The same on errors.
pub const ON_ERRORS: &[Code] = &[Code::P002, Code::P004, Code::P006];
/// The same on CPU time of the subject.
pub const ON_CPU: &[Code] = &[Code::P007, Code::P026];

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

/// The row of a cell, with its verdict and its class for the page's style.
pub fn row_of(cell: &CellFigures, entries: Vec<Entry>) -> Row {
    let verdict = match cell.verdict {
        Some(Verdict::Valid) => "valid",
        Some(Verdict::Bound) => "bound",
        Some(Verdict::Invalid) => "invalid",
        None => "missing",
    };
    let reference = if cell.is_reference { " reference" } else { "" };
    Row {
        cell: cell.cell.clone(),
        class: format!("{verdict}{reference}"),
        badge: match cell.verdict {
            Some(Verdict::Valid) | None => "",
            Some(_) => verdict,
        },
        entries,
    }
}

/// The verdict in a word.
pub fn verdict_text(cell: &CellFigures) -> &'static str {
    match cell.verdict {
        Some(Verdict::Valid) => "valid",
        Some(Verdict::Bound) => "bound",
        Some(Verdict::Invalid) => "invalid",
        None => NOTHING,
    }
}

/// Why a cell has no figures, in two or three words.
pub fn absence(cell: &CellFigures) -> &'static str {
    if cell.trials.failed.is_empty() {
        "not done yet"
    } else {
        "not measured"
    }
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

/// What a subject is beside the others, and of how many blocks its figures are where some failed.
pub fn standing(cell: &CellFigures) -> String {
    let role = match (cell.is_reference, cell.is_copy) {
        (true, _) => Some("reference".to_owned()),
        (false, true) => Some("copy of the reference".to_owned()),
        (false, false) => None,
    };
    let said: Vec<String> = role.into_iter().chain(blocks_of(cell)).collect();
    said.join(", ")
}

/// `5 of 6 blocks`, where some were measured and others failed.
pub fn blocks_of(cell: &CellFigures) -> Option<String> {
    let (measured, failed) = (cell.trials.measured.len(), cell.trials.failed.len());
    (measured > 0 && failed > 0).then(|| format!("{measured} of {} blocks", measured + failed))
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

/// The ratio to the reference.
pub fn ratio(cell: &CellFigures) -> Entry {
    match &cell.ratio {
        None if cell.is_reference => Entry::figure("", Some(1.0), |_| "1".to_owned()),
        None => Entry::text(NOTHING),
        Some(ratio) => of_ratio("ratio.ratio", ratio, numbers::ratio),
    }
}

/// A ratio with its spread.
pub fn of_ratio(
    figure: impl Into<Cow<'static, str>>,
    ratio: &RatioFigure,
    show: fn(f64) -> String,
) -> Entry {
    let mut entry = Entry::figure(figure, Some(ratio.ratio), show);
    if ratio.blocks > 1 {
        entry.below = format!("{}–{}", show(ratio.low), show(ratio.high));
    }
    if ratio.conclusion == "no-difference-shown" {
        entry.remark = "no difference shown";
    }
    entry
}
