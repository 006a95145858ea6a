//! Sections of a document, the heads of their tables and what stands below figures: what all kinds of work share.
//!
//! Each kind gives a list of [`Part`]s; `render` and the templates lay them out.
//! Not for: what a section says, which is in `servers`, `programs`, `search`, `rows`, `clients` and `published`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use prony_findings::Verdict;
use serde::Serialize;

use crate::figure::{Figure, in_blocks, spread_word};
use crate::figures::CellFigures;
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

/// [`spread_word`] of the ratios of cells.
pub fn ratio_word(cells: &[&CellFigures]) -> &'static str {
    let ratios = cells.iter().filter_map(|cell| cell.ratio.as_ref());
    spread_word(ratios.map(RatioFigure::figure))
}

/// The median of a figure.
pub fn median(figure: Option<Figure>) -> Option<f64> {
    figure.map(|f| f.median)
}

/// What was the limit, with how busy both sides were below it: `name` in `limits`, which says how often each was one, and is that of
/// the most of them; empty: not known.
pub fn limit_entry(
    name: &str,
    (most, limits): (&str, &BTreeMap<&'static str, u32>),
    busy: [Option<Figure>; 2],
) -> Entry {
    let all = limits.values().fold(0_u32, |sum, n| sum.saturating_add(*n));
    let most = limits.get(most).copied().unwrap_or(0);
    let text = match name {
        "" => "not known".to_owned(),
        name if most < all => format!("{name} in {}", in_blocks(most, all)),
        name => name.to_owned(),
    };
    let share = |of| median(of).map_or_else(|| NOTHING.to_owned(), numbers::percent);
    Entry {
        text,
        below: busy.map(share).join(", "),
        ..Entry::default()
    }
}
