//! Sections of a document, the heads of their tables and what stands below figures: what all kinds of work share.
//!
//! Each kind gives a list of [`Part`]s, made in a [`Context`]; `render` and the templates lay them out.
//! Not for: what a section says, which is in `servers`, `programs`, `search`, `rows`, `clients` and `published`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use prony_findings::Verdict;
use prony_record::NotRun;
use serde::Serialize;

use crate::Run;
use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};
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
    /// Whether it is the one table of a group of servers: nothing points to the columns that the appendix has.
    pub is_group: bool,
    /// What was asked, as code; empty where sentences say it.
    pub request: String,
    /// What a reader must know before the tables.
    pub before: Vec<String>,
    /// Pictures; more than two come after the tables.
    pub pictures: Vec<Picture>,
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

/// What the sections of a kind are made from: what all kinds need, and `own`, which that kind needs besides.
pub struct Context<'a, Own> {
    /// The run.
    pub run: &'a Run,
    /// Footnotes.
    pub notes: &'a Notes,
    /// Places of the cells in `summary.json`.
    pub places: Places<'a>,
    /// What only this kind needs.
    pub own: Own,
}

impl<'a, Own> Context<'a, Own> {
    /// Of all the cells of a run.
    pub fn of(
        run: &'a Run,
        cells: &'a [CellFigures],
        notes: &'a Notes,
        own: Own,
    ) -> Context<'a, Own> {
        let places = Places::of(cells);
        Context {
            run,
            notes,
            places,
            own,
        }
    }
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
    captioned("", table)
}

/// A table with what it shows.
pub fn captioned(caption: impl Into<String>, table: Table) -> Captioned {
    let caption = caption.into();
    Captioned { caption, table }
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

/// Whether something was not run that concerns a subject in a workload of a size (`c=10`, `n=1000`): the subject
/// as a whole, its workload, or a cell, of which the settings are given.
pub fn concerned(not: &NotRun, subject: &str, workload: &str, size: &str) -> Option<String> {
    if not.what == subject {
        return Some(String::new());
    }
    let rest = not.what.strip_prefix(subject)?.strip_prefix(' ')?;
    let rest = rest.strip_prefix(workload)?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let kind = size.get(..2).unwrap_or_default();
    let (sizes, settings): (Vec<&str>, Vec<&str>) = rest
        .split_whitespace()
        .partition(|word| word.starts_with(kind));
    let fits = sizes.iter().all(|own| *own == size);
    fits.then(|| settings.join(" "))
}

/// What was the limit, with how busy both sides were below it: `name` in `limits`, which has blocks by limit, and is that of
/// the most of them; empty: not known.
pub fn limit_entry(
    name: &str,
    (most, limits): (&str, &BTreeMap<&'static str, u32>),
    busy: [Option<Figure>; 2],
) -> Entry {
    let blocks = limits.values().fold(0_u32, |sum, n| sum.saturating_add(*n));
    let most = limits.get(most).copied().unwrap_or(0);
    let text = match name {
        "" => "not known".to_owned(),
        name if most < blocks => format!("{name} in {most} of {blocks} blocks"),
        name => name.to_owned(),
    };
    let share = |of| median(of).map_or_else(|| NOTHING.to_owned(), numbers::percent);
    Entry {
        text,
        below: busy.map(share).join(", "),
        ..Entry::default()
    }
}
