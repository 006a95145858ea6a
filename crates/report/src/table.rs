//! Tables as both documents show them: texts, the marks of footnotes, and the value that each
//! text was made from.

use std::borrow::Cow;

use prony_findings::{Code, Verdict};
use prony_stats::Conclusion;
use serde::Serialize;
use serde_json::Value;

use crate::figure::{INFINITE, in_blocks};
use crate::figures::CellFigures;
use crate::numbers::{self, COUNT, FigureUnit, NOTHING};
use crate::ratio::{OpenSide, RatioFigure, Unclaimed};

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Heads of the columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
}

/// The head of a column.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// Whether it holds what is typed or hashed.
    pub is_code: bool,
}

/// Columns that a table of the document has at the most.
pub const COLUMNS_MAX: usize = 7;

impl Table {
    /// A table of words, of which each row has one a column.
    pub fn of_words<const N: usize>(
        columns: [Column; N],
        rows: impl Iterator<Item = [String; N]>,
    ) -> Table {
        let row = |texts: [String; N]| Row {
            entries: texts.map(Entry::text).into(),
            ..Row::default()
        };
        Table {
            columns: columns.into(),
            rows: rows.map(row).collect(),
        }
    }

    /// The table without its details; a wide one in several, each of which begins with the columns that say what a row is of.
    pub fn brief(&self) -> Vec<Table> {
        let all = 0..self.columns.len();
        let kept: Vec<usize> = all.filter(|at| !self.columns[*at].details).collect();
        let heads = kept.iter().take_while(|at| !self.columns[**at].numeric);
        let (heads, figures) = kept.split_at(heads.count().clamp(1, COLUMNS_MAX - 1));
        if kept.len() <= COLUMNS_MAX {
            return vec![self.with_columns(&kept)];
        }
        let parts = figures.chunks(COLUMNS_MAX - heads.len());
        parts
            .map(|part| self.with_columns(&[heads, part].concat()))
            .collect()
    }

    fn with_columns(&self, kept: &[usize]) -> Table {
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

    /// Whether all of it is for the appendix.
    pub fn is_details(&self) -> bool {
        self.columns.iter().all(|c| c.details)
    }

    /// Whether there is more of it than the document shows.
    pub fn has_more(&self) -> bool {
        self.columns.iter().any(|c| c.details)
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// As it is read.
    pub text: String,
    /// What the page shows below it: range or interval.
    pub below: String,
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

/// A column of figures of cells: what a table calls it, where the figure is in a cell of `summary.json`, and how it is written.
#[derive(Clone, Copy)]
pub struct Shown {
    /// What a table calls it.
    pub title: &'static str,
    below: &'static str,
    /// Of a number, or of a figure over the blocks.
    pub path: &'static str,
    unit: FigureUnit,
    with_ends: bool,
    details: bool,
    /// Where it is words whether enough stands behind it; empty: it always does.
    pub supported: &'static str,
    /// Findings that are footnotes on it.
    pub marks: &'static [Code],
}

impl Shown {
    /// The median of a figure, or a number.
    pub const fn new(title: &'static str, path: &'static str, unit: FigureUnit) -> Shown {
        Shown {
            title,
            below: "",
            path,
            unit,
            with_ends: false,
            details: false,
            supported: "",
            marks: &[],
        }
    }

    /// With this below its title.
    pub const fn below(self, below: &'static str) -> Shown {
        Shown { below, ..self }
    }

    /// With the ends of its spread below the figure.
    pub const fn with_ends(self) -> Shown {
        let with_ends = true;
        Shown { with_ends, ..self }
    }

    /// Only where all figures stand.
    pub const fn detail(self) -> Shown {
        let details = true;
        Shown { details, ..self }
    }

    /// With footnotes on findings.
    pub const fn marked(self, marks: &'static [Code]) -> Shown {
        Shown { marks, ..self }
    }

    /// Marked where this says that too little stands behind it.
    pub const fn supported(self, supported: &'static str) -> Shown {
        Shown { supported, ..self }
    }

    /// Its head.
    pub fn head(&self) -> Column {
        Column {
            title: self.title.to_owned(),
            below: self.below.into(),
            numeric: true,
            details: self.details,
            ..Column::default()
        }
    }

    /// The figure of a cell, or of one of several that the cell has: of that at `place`.
    pub fn entry(&self, cell: &CellFigures, place: &str) -> Entry {
        let path = format!("{place}{}", self.path);
        let figure = cell.figure(&path);
        let ends = figure.and_then(|of| of.ends());
        let ends = ends.filter(|(low, _)| self.with_ends && *low < INFINITE);
        let median = figure.map(|of| of.median);
        let is_few = cell.at(self.supported) == Some(&Value::Bool(false));
        Entry {
            below: ends.map_or_else(String::new, |(low, high)| self.unit.ends(low, high)),
            few: median.is_some() && is_few,
            ..Entry::figure(cell.address(&path), median, |value| self.unit.text(value))
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
    Code::P032,
];
/// What went wrong in all blocks.
pub const ERRORS: Shown =
    Shown::new("errors", "errors", COUNT).marked(&[Code::P002, Code::P004, Code::P006]);
/// The same on CPU time of the subject.
pub const ON_CPU: &[Code] = &[Code::P007, Code::P026];

/// The word for a verdict.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "valid",
        Verdict::Bound => "bound",
        Verdict::Invalid => "invalid",
    }
}

/// The row of a cell, with its verdict and its class for the page's style.
pub fn row_of(cell: &CellFigures, entries: Vec<Entry>) -> Row {
    let verdict = cell.verdict.map_or("missing", verdict_word);
    let reference = if cell.is_reference { " reference" } else { "" };
    let told = cell.verdict.filter(|of| *of != Verdict::Valid);
    Row {
        cell: cell.cell.clone(),
        class: format!("{verdict}{reference}"),
        badge: told.map_or("", verdict_word),
        entries,
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

/// What a subject is beside the others, and of how many blocks its figures are where some failed.
pub fn standing(cell: &CellFigures) -> String {
    let role = match (cell.is_reference, cell.is_copy) {
        (true, _) => Some("reference".to_owned()),
        (false, true) => Some("copy of the reference".to_owned()),
        (false, false) => None,
    };
    let words: Vec<String> = role.into_iter().chain(blocks_of(cell)).collect();
    words.join(", ")
}

/// `5 of 6 blocks`, where some were measured and others failed.
pub fn blocks_of(cell: &CellFigures) -> Option<String> {
    let (measured, failed) = (cell.trials.measured.len(), cell.trials.failed.len());
    (measured > 0 && failed > 0).then(|| in_blocks(measured, measured + failed))
}

/// The ratio to the reference.
pub fn ratio(cell: &CellFigures) -> Entry {
    match &cell.ratio {
        None if cell.is_reference => Entry::figure("", Some(1.0), |_| "1".to_owned()),
        None => Entry::text(NOTHING),
        Some(ratio) => of_ratio("ratio.ratio", ratio, numbers::ratio),
    }
}

/// A ratio as a change with its ends: `+49 % (+32 to +97)`.
pub fn change(figure: impl Into<Cow<'static, str>>, ratio: &RatioFigure) -> Entry {
    Entry {
        // What kind of bound it is stands behind it.
        text: numbers::change_words(ratio.ratio, ratio.figure().ends(), None),
        below: String::new(),
        ..of_ratio(figure, ratio, numbers::ratio)
    }
}

/// A ratio with its spread.
pub fn of_ratio(
    figure: impl Into<Cow<'static, str>>,
    ratio: &RatioFigure,
    show: fn(f64) -> String,
) -> Entry {
    let mut entry = Entry::figure(figure, Some(ratio.ratio), show);
    if let Some((low, high)) = ratio.figure().ends() {
        entry.below = format!("{}–{}", show(low), show(high));
    }
    entry.remark = match (ratio.conclusion, ratio.bound, ratio.unclaimed) {
        (Conclusion::NoDifferenceShown, ..) => "no difference shown",
        (_, Some(OpenSide::AtLeast), _) => "at least",
        (_, Some(OpenSide::AtMost), _) => "at most",
        (.., Some(Unclaimed::Bound)) => "not claimed: a figure is a bound",
        (.., Some(Unclaimed::Copy)) => "not claimed: a copy differs",
        (.., Some(Unclaimed::Disturbed)) => "not claimed: others used the cores",
        _ if ratio.figure().is_of_two_groups() => "not claimed: blocks in two groups",
        _ => entry.remark,
    };
    entry
}
