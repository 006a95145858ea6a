//! Subjects that are clients, which ask a peer: what a document says of them.
//!
//! `figures` has the numbers of a cell, `steps` what one more connection, thread or server thread brings;
//! `sections` says which cells belong together; `requests` and
//! `downloads` make the tables of the two works, `words` and `answer` put them into
//! sentences. A document without clients has none of this.
//!
//! Not for: the numbers that all kinds of subjects share (rate, ratio, memory), which are in
//! `crate::figures`.

mod downloads;
pub mod figures;
mod requests;
mod sections;
pub mod steps;
pub mod words;

use prony_findings::Code;

use self::steps::Step;
use crate::Run;
use crate::answer::ranking::{BY_RATE, By, RankedQuestion};
use crate::figures::CellFigures;
use crate::grid::{Crossed, Grid, crossed};
use crate::notes::Notes;
use crate::numbers::MIB;
use crate::part::{Captioned, Part, captioned, column, named};
use crate::table::{self, COLUMNS_MAX, Entry, Table};
pub use sections::sections;
use sections::{Section, row_of};

/// What the sections are made from.
struct Context<'a> {
    run: &'a Run,
    notes: &'a Notes,
    /// What more connections and threads bring.
    steps: &'a [Step],
}

/// Who gets the most of each row: of many rows the first, the middle and the last.
pub fn questions<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<RankedQuestion<'a>> {
    let sections = sections(run, cells);
    let several = sections.len() > 1;
    let titles = sections
        .iter()
        .flat_map(Section::pictured)
        .map(|(title, _)| title);
    let titles: Vec<String> = titles.collect();
    // What is the same in all rows tells none of them from another.
    let is_own = |part: &&str| {
        let has = |title: &String| title.split(", ").any(|other| other == *part);
        !titles.iter().all(has)
    };
    let name = |section: &Section<'_>, row: &str| {
        let own: Vec<&str> = row.split(", ").filter(is_own).collect();
        match (several, own.is_empty()) {
            (false, true) => row.to_owned(),
            (false, false) => own.join(", "),
            (true, true) => section.title.clone(),
            (true, false) => format!("{}: {}", section.title, own.join(", ")),
        }
    };
    let of_section = |section: Section<'a>| {
        let by = match section.is_downloads() {
            true => By {
                heading: "MiB/s",
                path: "client.bytes_per_s",
                unit: MIB,
                bound: Code::P020,
                ..BY_RATE
            },
            false => By {
                bound: Code::P020,
                ..BY_RATE
            },
        };
        let question = |(title, cells): (String, Vec<&'a CellFigures>)| {
            RankedQuestion::new(name(&section, &title), by, section.named(run, cells))
        };
        section
            .pictured()
            .into_iter()
            .map(question)
            .collect::<Vec<_>>()
    };
    sections.into_iter().flat_map(of_section).collect()
}

/// The parts of the document, in order.
pub fn parts(run: &Run, cells: &[CellFigures], steps: &[Step], notes: &Notes) -> Vec<Part> {
    let context = Context { run, notes, steps };
    let part = |section: &Section<'_>| match section.is_downloads() {
        true => context.downloads(section),
        false => context.requests(section),
    };
    named(sections(run, cells).iter().flat_map(part).collect(), 'c')
}

impl<'a> Context<'a> {
    /// A row for each workload, a column for each client; the other way round where there are more clients than a
    /// table has room for beside each other.
    fn matrix(
        &self,
        section: &Section<'a>,
        (caption, below): (&str, &'static str),
        entry: impl Fn(&'a CellFigures) -> Entry,
    ) -> Captioned {
        let by_client = section.columns.len() >= COLUMNS_MAX;
        let place = |cell: &'a CellFigures| {
            let client = section.label_of(self.run, cell);
            let row = row_of(cell).map_or_else(String::new, |row| section.name_of(&row));
            let (row, column) = if by_client {
                (client, row)
            } else {
                (row, client)
            };
            Crossed {
                row: vec![Entry::text(row)],
                column,
                entry: match cell.is_measured() {
                    true => entry(cell),
                    false => self.unmeasured(cell),
                },
            }
        };
        let head = if by_client {
            "client"
        } else {
            "connections and threads"
        };
        let all = section.by_row().into_iter().map(place).collect();
        captioned(caption, crossed(&[head], below, all))
    }

    /// A row for each cell, so far with what says which it is (one row of the section needs no such column); with `mark`
    /// those that throw bodies away are marked.
    fn list<'f>(&'f self, section: &'f Section<'a>, mark: bool) -> Grid<'f, &'a CellFigures> {
        let head = column("client", "", false);
        let grid = Grid::new().head(head, move |cell: &CellFigures| {
            let discards = cell.client.as_ref().is_some_and(|client| client.discards);
            let mark = if mark && discards {
                words::DISCARDS
            } else {
                ""
            };
            Entry::text(section.label_of(self.run, cell) + mark)
        });
        if section.rows.len() == 1 {
            return grid;
        }
        let head = column("connections / client / server threads", "", false);
        grid.head(head, |cell| {
            Entry::text(row_of(cell).map_or_else(String::new, |row| section.short(&row)))
        })
    }

    /// The table of a [list](Context::list) of a section.
    fn listed(&self, section: &Section<'a>, grid: Grid<'_, &'a CellFigures>) -> Table {
        let row = |cell: &'a CellFigures| {
            let absent = (!cell.is_measured()).then(|| self.unmeasured(cell));
            table::row_of(cell, grid.entries(cell, absent))
        };
        let rows = section.by_row().into_iter().map(row).collect();
        grid.table(rows)
    }

    fn unmeasured(&self, cell: &CellFigures) -> Entry {
        let absence = Entry::text(table::absence(cell));
        self.notes.on(cell, &[Code::P010], absence)
    }
}
