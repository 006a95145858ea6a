//! How tables of clients are laid out: a row or a column for each client, or a line for each cell.

use prony_findings::Code;

use super::Context;
use super::sections::{Section, row_of};
use super::words;
use crate::figures::CellFigures;
use crate::grid::{Crossed, Grid, crossed};
use crate::part::{Captioned, captioned, column};
use crate::table::{self, COLUMNS_MAX, Entry, Table};

impl<'a> Context<'a> {
    /// A row for each workload, a column for each client; the other way round where there are more clients than a
    /// table has room for beside each other.
    pub(super) fn matrix(
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
    pub(super) fn list<'f>(
        &'f self,
        section: &'f Section<'a>,
        mark: bool,
    ) -> Grid<'f, &'a CellFigures> {
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
    pub(super) fn listed(&self, section: &Section<'a>, grid: Grid<'_, &'a CellFigures>) -> Table {
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
