//! A table from its columns: each is a head, and what it has of whatever a row is about.
//!
//! All tables of documents are made here, so that rows have as many entries as there are heads, and what was not measured looks
//! the same in each. Not for: how a table is written ([`crate::markdown`] and the page's template).

use crate::figures::CellFigures;
use crate::lists::{distinct, push_under};
use crate::notes::Notes;
use crate::numbers::NOTHING;
use crate::part::{column, verdict_column, verdicts_differ};
use crate::table::{self, Column, Entry, Row, Shown, Table};

/// What a column has of a row.
type Of<'f, R> = Box<dyn Fn(R) -> Entry + 'f>;

/// A table in the making, whose rows are each about an `R`.
pub struct Grid<'f, R> {
    columns: Vec<Column>,
    /// What each column has, and whether that is a figure.
    of: Vec<(bool, Of<'f, R>)>,
}

impl<'f, R: Copy> Grid<'f, R> {
    /// Without columns.
    pub fn new() -> Grid<'f, R> {
        let (columns, of) = (Vec::new(), Vec::new());
        Grid { columns, of }
    }

    fn with(mut self, is_figure: bool, column: Column, of: Of<'f, R>) -> Grid<'f, R> {
        self.columns.push(column);
        self.of.push((is_figure, of));
        self
    }

    /// And a column that every row has: what it is about, what became of it.
    pub fn head(self, column: Column, of: impl Fn(R) -> Entry + 'f) -> Grid<'f, R> {
        self.with(false, column, Box::new(of))
    }

    /// And a column of figures, which a row that was not measured lacks.
    pub fn figure(self, column: Column, of: impl Fn(R) -> Entry + 'f) -> Grid<'f, R> {
        self.with(true, column, Box::new(of))
    }

    /// The entries of a row; of one without figures `absent` stands in the place of the first of them. Marks stay where a
    /// figure would have had them.
    pub fn entries(&self, of: R, absent: Option<Entry>) -> Vec<Entry> {
        let is_absent = absent.is_some();
        let mut absent = absent.into_iter();
        let entry = |(is_figure, make): &(bool, Of<'f, R>)| {
            let made = make(of);
            if !(is_absent && *is_figure) {
                return made;
            }
            let mut entry = absent.next().unwrap_or_else(|| Entry::text(NOTHING));
            entry.marks.extend(made.marks);
            entry.marks.sort_unstable();
            entry.marks.dedup();
            entry
        };
        self.of.iter().map(entry).collect()
    }

    /// The table with these rows.
    pub fn table(self, rows: Vec<Row>) -> Table {
        let columns = self.columns;
        Table { columns, rows }
    }

    /// The table with a row about each of these, which are no cells.
    pub fn rows(self, about: impl IntoIterator<Item = R>) -> Table {
        let row = |of: R| Row {
            entries: self.entries(of, None),
            ..Row::default()
        };
        let rows = about.into_iter().map(row).collect();
        self.table(rows)
    }

    /// A row about something that the run does not have: its name, and why.
    pub fn missing(&self, name: &str, why: &str) -> Row {
        let mut entries = vec![Entry::text(name), Entry::text(why)];
        entries.resize(self.columns.len(), Entry::text(NOTHING));
        Row {
            class: "missing".to_owned(),
            entries,
            ..Row::default()
        }
    }
}

impl<'a, 'f> Grid<'f, &'a CellFigures> {
    /// And the verdicts in words, where they must be told.
    pub fn verdicts(self, cells: &[&CellFigures]) -> Grid<'f, &'a CellFigures> {
        match verdicts_differ(cells) {
            true => self.head(verdict_column(), verdict),
            false => self,
        }
    }

    /// And these columns of figures.
    pub fn shown(
        self,
        notes: &'f Notes,
        columns: impl IntoIterator<Item = Shown>,
    ) -> Grid<'f, &'a CellFigures> {
        columns.into_iter().fold(self, |grid, column| {
            grid.figure(column.head(), move |cell| notes.entry(cell, &column))
        })
    }

    /// The row of a cell.
    pub fn row(&self, cell: &'a CellFigures) -> Row {
        self.row_if(cell.is_measured(), cell)
    }

    /// The row of a cell, which has figures or has none.
    pub fn row_if(&self, has_figures: bool, cell: &'a CellFigures) -> Row {
        let absent = (!has_figures).then(|| Entry::text(table::absence(cell)));
        table::row_of(cell, self.entries(cell, absent))
    }

    /// The table with a row for each cell.
    pub fn cells<'c>(self, cells: impl IntoIterator<Item = &'c &'a CellFigures>) -> Table
    where
        'a: 'c,
    {
        let rows = cells.into_iter().map(|cell| self.row(cell)).collect();
        self.table(rows)
    }
}

/// A figure of a table that has a row for each of one thing and a column for each of another.
pub struct Crossed {
    /// What the row is of: the first entries of it.
    pub row: Vec<Entry>,
    /// What the column is of: its title.
    pub column: String,
    /// The figure.
    pub entry: Entry,
}

/// An entry and the title of its column.
type TitledEntry = (String, Entry);

/// The table of these, whose first columns have these titles; rows and columns stand as they first come, and `below` stands below the titles of all
/// columns of figures.
pub fn crossed(heads: &[&str], below: &'static str, all: Vec<Crossed>) -> Table {
    let heads = heads.iter().map(|title| column(*title, "", false));
    let titles = distinct(all.iter().map(|of| of.column.clone()));
    let mut rows: Vec<(Vec<Entry>, Vec<TitledEntry>)> = Vec::new();
    for of in all {
        push_under(&mut rows, of.row, (of.column, of.entry));
    }
    let row = |(heads, own): (Vec<Entry>, Vec<TitledEntry>)| {
        let entry = |title: &String| {
            let found = own.iter().find(|(column, _)| column == title);
            found.map_or_else(|| Entry::text(NOTHING), |(_, entry)| entry.clone())
        };
        Row {
            entries: heads.into_iter().chain(titles.iter().map(entry)).collect(),
            ..Row::default()
        }
    };
    let rows = rows.into_iter().map(row).collect();
    let figures = titles.iter().map(|title| column(title, below, true));
    Table {
        columns: heads.chain(figures).collect(),
        rows,
    }
}

/// The verdict of a cell in a word.
pub fn verdict(cell: &CellFigures) -> Entry {
    Entry::text(cell.verdict.map_or(NOTHING, table::verdict_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_figures_says_so_once_and_keeps_its_marks() {
        let marked = |n: usize| Entry {
            marks: vec![n],
            ..Entry::text(n.to_string())
        };
        let head = || column("", "", false);
        let grid = Grid::new()
            .head(head(), |_| Entry::text("name"))
            .figure(head(), marked)
            .figure(head(), marked)
            .head(head(), |_| Entry::text("verdict"));
        let texts = |entries: &[Entry]| -> Vec<String> {
            entries.iter().map(|entry| entry.text.clone()).collect()
        };
        assert_eq!(texts(&grid.entries(7, None)), ["name", "7", "7", "verdict"]);
        let absent = grid.entries(7, Some(Entry::text("not measured")));
        assert_eq!(texts(&absent), ["name", "not measured", NOTHING, "verdict"]);
        assert!(absent[1..3].iter().all(|entry| entry.marks == [7]));
        let missing = grid.missing("other", "not run");
        assert_eq!(missing.entries.len(), grid.table(Vec::new()).columns.len());
    }
}
