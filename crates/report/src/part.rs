//! Sections of a document, the heads of their tables and what stands below figures: what programs and
//! clients share.
//!
//! Not for: what a section says, which is in `programs` and in `clients`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use prony_findings::Verdict;
use serde::Serialize;

use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::plots::Picture;
use crate::ratio::RatioFigure;
use crate::table::{Column, Entry, Table};

/// A section of the document.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    /// Its name in addresses.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What a reader must know before the tables.
    pub before: Vec<String>,
    /// Pictures.
    pub pictures: Vec<Picture>,
    /// Whether these come after the tables and not before them.
    pub pictures_last: bool,
    /// Tables.
    pub tables: Vec<Captioned>,
    /// What stands below them.
    pub after: Vec<String>,
}

/// Gives the parts of a kind and their pictures their names in addresses.
pub fn named(mut parts: Vec<Part>, letter: char) -> Vec<Part> {
    for (at, part) in parts.iter_mut().enumerate() {
        part.id = format!("{letter}{}", at + 1);
        for (number, picture) in part.pictures.iter_mut().enumerate() {
            picture.id = format!("{}-{}", part.id, number + 1);
        }
    }
    parts
}

/// Where figures of cells are in `summary.json`.
pub struct Places<'a>(BTreeMap<&'a str, usize>);

impl<'a> Places<'a> {
    /// Those of all the cells of a run.
    pub fn of(cells: &'a [CellFigures]) -> Places<'a> {
        let places = cells.iter().enumerate();
        Places(places.map(|(at, cell)| (&*cell.cell, at)).collect())
    }

    /// The address of a figure, from its path within the cell.
    pub fn path(&self, cell: &CellFigures, figure: &str) -> String {
        let place = self.0.get(&*cell.cell).copied().unwrap_or(0);
        format!("/cells/{place}/{}", figure.replace('.', "/"))
    }

    /// A metric of a cell in a table that is not of its cell alone.
    pub fn entry(&self, cell: &CellFigures, metric: Metric) -> Entry {
        Entry {
            figure: self.path(cell, metric.path).into(),
            ..metric.entry(cell)
        }
    }
}

/// A table with its caption.
#[derive(Clone, Debug, Serialize)]
pub struct Captioned {
    /// What it shows; empty where the heading says it.
    pub caption: String,
    /// The table.
    pub table: Table,
}

/// A table whose heading says what it shows.
pub fn plain(table: Table) -> Captioned {
    Captioned {
        caption: String::new(),
        table,
    }
}

/// The head of a column.
pub fn column(
    title: impl Into<String>,
    below: impl Into<Cow<'static, str>>,
    numeric: bool,
) -> Column {
    Column {
        title: title.into(),
        below: below.into(),
        numeric,
        ..Column::default()
    }
}

/// A column that stands only where all figures do.
pub fn detail(column: Column) -> Column {
    Column {
        details: true,
        ..column
    }
}

/// The verdicts in words, for the document without badges.
pub fn verdict_column() -> Column {
    Column {
        markdown_only: true,
        ..column("verdict", "", false)
    }
}

/// Whether the verdicts must be told: where all are valid nothing is to be said.
pub fn verdicts_differ(cells: &[&CellFigures]) -> bool {
    let told = |c: &&CellFigures| !matches!(c.verdict, Some(Verdict::Valid) | None);
    cells.iter().any(told)
}

/// What stands below the figures of a column, of each whether it is an interval and how many
/// blocks it has: nothing where each has only one.
pub fn spread_word(figures: impl Iterator<Item = (bool, usize)>) -> &'static str {
    let (mut interval, mut blocks_max) = (false, 0);
    for (is_interval, blocks) in figures {
        interval |= is_interval;
        blocks_max = blocks_max.max(blocks);
    }
    match (interval, blocks_max) {
        (true, _) => "95 % interval",
        (false, 0 | 1) => "",
        (false, _) => "range",
    }
}

/// [`spread_word`] of figures.
pub fn figures_word(figures: impl Iterator<Item = Figure>) -> &'static str {
    spread_word(figures.map(|of| (of.is_interval(), of.blocks)))
}

/// [`spread_word`] of ratios.
pub fn ratios_word<'a>(ratios: impl Iterator<Item = &'a RatioFigure>) -> &'static str {
    spread_word(ratios.map(|of| (of.is_interval(), of.blocks)))
}

/// [`spread_word`] of the ratios of cells.
pub fn ratio_word(cells: &[&CellFigures]) -> &'static str {
    ratios_word(cells.iter().filter_map(|cell| cell.ratio.as_ref()))
}

/// The median of a figure.
pub fn median(figure: Option<Figure>) -> Option<f64> {
    figure.map(|f| f.median)
}

/// A median with its range or interval below it.
pub fn with_ends(mut entry: Entry, figure: Option<Figure>, show: fn(f64, f64) -> String) -> Entry {
    // The range of one block would repeat its value.
    if let Some(of) = figure.filter(|of| of.blocks > 1) {
        entry.below = show(of.low, of.high);
    }
    entry
}
