//! Sections of a document, the heads of their tables and what stands below figures: what all kinds of work share.
//!
//! Each kind gives a list of [`Part`]s, made in a [`Context`]; `render` and the templates lay them out.
//! Not for: what a section says, which is in `servers`, `programs`, `search`, `rows`, `clients` and `published`.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use prony_findings::Verdict;
use serde::Serialize;
use serde_json::Value;

use crate::Run;
use crate::figures::{CellFigures, Figure};
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};
use crate::plots::Picture;
use crate::ratio::RatioFigure;
use crate::table::{Column, Entry, Shown, Table};

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

    /// Those of the columns in which any of the cells has a figure.
    pub fn present(
        &self,
        cells: &[&CellFigures],
        columns: impl IntoIterator<Item = Shown>,
    ) -> Vec<Shown> {
        let has = |column: &Shown| {
            let mut entries = cells.iter().map(|cell| self.entry(cell, column));
            entries.any(|entry| entry.value.is_some())
        };
        columns.into_iter().filter(has).collect()
    }

    /// The figure of a cell in a column, with its footnotes.
    pub fn entry(&self, cell: &CellFigures, column: &Shown) -> Entry {
        self.entry_of(cell, "", column)
    }

    /// The same of one of several that the cell has, which is at `place`. What does not keep up with its schedule has no latency: that grows for
    /// as long as the run lasts.
    pub fn entry_of(&self, cell: &CellFigures, place: &str, column: &Shown) -> Entry {
        let is_time = ["latency", "duration_ns"].map(|name| column.path.starts_with(name));
        let entry = match (
            cell.is_overloaded() && is_time.contains(&true),
            column.title,
        ) {
            (false, _) => self.places.entry(cell, place, column),
            (true, "p50") => Entry::text("overloaded"),
            (true, _) => Entry::text(NOTHING),
        };
        self.notes.on(cell, column.marks, entry)
    }
}

/// A cell as `summary.json` has it, once it was asked for.
type SummaryCell = OnceCell<Value>;

/// Where figures of cells are in `summary.json`, and what stands there.
pub struct Places<'a>(BTreeMap<&'a str, (usize, SummaryCell)>);

impl<'a> Places<'a> {
    /// Those of all the cells of a run.
    pub fn of(cells: &'a [CellFigures]) -> Places<'a> {
        let places = cells.iter().enumerate();
        let place = |(at, cell): (usize, &'a CellFigures)| (&*cell.cell, (at, SummaryCell::new()));
        Places(places.map(place).collect())
    }

    /// The address of a figure, from its path within the cell.
    pub fn path(&self, cell: &CellFigures, figure: &str) -> String {
        let place = self.0.get(&*cell.cell).map_or(0, |of| of.0);
        format!("/cells/{place}/{}", figure.replace('.', "/"))
    }

    /// What stands at a path within the cell.
    fn at(&self, cell: &CellFigures, path: &str) -> Option<&Value> {
        let (_, written) = self.0.get(&*cell.cell)?;
        let written = written
            .get_or_init(|| serde_json::to_value(cell).expect("figures that can be written"));
        path.split('.').try_fold(written, |at, name| match at {
            Value::Array(all) => all.get(name.parse::<usize>().ok()?),
            at => at.get(name),
        })
    }

    /// The figure of a cell in a column, or of one of several that the cell has: of that at `place`.
    pub fn entry(&self, cell: &CellFigures, place: &str, column: &Shown) -> Entry {
        let path = format!("{place}{}", column.path);
        let entry = column.entry(self.path(cell, &path), self.at(cell, &path));
        let supported = self.at(cell, column.supported).and_then(Value::as_bool);
        Entry {
            few: entry.value.is_some() && supported == Some(false),
            ..entry
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
