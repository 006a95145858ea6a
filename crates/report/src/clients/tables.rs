//! How a table of rows by clients is laid out.

use prony_findings::Code;
use prony_record::NotRun;

use super::Context;
use super::sections::{ColumnKey, RowKey, Section, row_of};
use super::words;
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::lists::push_under;
use crate::numbers::{self, NOTHING};
use crate::part::{column, concerned};
use crate::table::{self, COLUMNS_MAX, Column, Entry, Table};

impl<'a> Context<'a> {
    /// A row for each workload, a column for each client; the other way round where there are more clients than a
    /// table has room for beside each other.
    pub(super) fn matrix(
        &self,
        section: &Section<'a>,
        below: &'static str,
        entry: impl Fn(&'a CellFigures) -> Entry,
    ) -> Table {
        let entry = |row: &RowKey<'a>, client: &ColumnKey<'a>| match section.cell(row, client) {
            Some(cell) if !cell.is_measured() => self.unmeasured(cell),
            Some(cell) => entry(cell),
            None => self.absence(client.0, row),
        };
        let entry = &entry;
        let by_row = row_heads(Grid::new(), section, |row: &RowKey<'a>| Some(row.clone()));
        let is_wide = by_row.width() + section.columns.len() > COLUMNS_MAX;
        if is_wide && section.rows.len() < COLUMNS_MAX {
            let label = |client| Entry::text(section.label(self.run, client));
            let mut grid = Grid::new().head(column("client", "", false), label);
            for row in &section.rows {
                let head = column(row.words(), below, true);
                grid = grid.head(head, move |client| entry(row, client));
            }
            return grid.rows(&section.columns);
        }
        let mut grid = by_row;
        for client in &section.columns {
            let head = column(section.label(self.run, client), below, true);
            grid = grid.head(head, move |row| entry(row, client));
        }
        grid.rows(&section.rows)
    }

    /// A row for each cell, so far with what says which it is (one row of the section needs no such column); with `mark`
    /// those that throw bodies away are marked.
    pub(super) fn list<'f>(
        &'f self,
        section: &'f Section<'a>,
        mark: bool,
    ) -> Grid<'f, &'a CellFigures> {
        let one = section.rows.len() == 1;
        let grid = Grid::new().head(column("client", "", false), move |cell| {
            let row = row_of(cell).filter(|_| !one);
            let below = row.map_or_else(String::new, |row| match named(section) {
                true => format!("{}: {}", row.workload, row.words()),
                false => row.words(),
            });
            let discards = cell.client.as_ref().is_some_and(|client| client.discards);
            let mark = if mark && discards {
                words::DISCARDS
            } else {
                ""
            };
            Entry {
                text: section.label_of(self.run, cell) + mark,
                page_below: below,
                ..Entry::default()
            }
        });
        match one {
            true => grid,
            false => row_heads(grid, section, row_of),
        }
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

    pub(super) fn unmeasured(&self, cell: &CellFigures) -> Entry {
        let absence = Entry::text(table::absence(cell));
        self.notes.on(cell, &[Code::P010], absence)
    }

    fn absence(&self, subject: &str, row: &RowKey<'_>) -> Entry {
        let mut not_run = self.run.plan.not_run.iter();
        let found = not_run.any(|not| concerns(not, subject, row));
        Entry::text(if found { "not run" } else { NOTHING })
    }

    /// Who is not in the tables of a section, and why.
    pub(super) fn absent(&self, section: &Section<'_>) -> Vec<String> {
        let mut reasons = Vec::new();
        let subjects = &self.run.plan.subjects;
        let other = |not: &&NotRun| {
            let subject = subjects.iter().find(|s| s.id == not.what);
            subject.is_some_and(|s| s.client.is_empty())
        };
        for not in self.run.plan.not_run.iter().filter(|not| !other(not)) {
            let subjects = self.run.plan.subjects.iter().map(|s| s.id.as_str());
            let mut known = subjects.filter(|id| {
                not.what
                    .strip_prefix(id)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            });
            let subject = known.next().unwrap_or(&not.what);
            let rows = section.rows.iter();
            let rows: Vec<&RowKey<'_>> = rows.filter(|row| concerns(not, subject, row)).collect();
            if rows.is_empty() {
                continue;
            }
            let reason = not.reason.trim_end_matches('.');
            let words: Vec<String> = match rows.len() == section.rows.len() {
                true => Vec::new(),
                false => rows.iter().map(|row| row.short()).collect(),
            };
            push_under(&mut reasons, (subject, reason), words);
        }
        if reasons.is_empty() {
            return Vec::new();
        }
        let sentence =
            |((subject, reason), rows): ((&str, &str), Vec<Vec<String>>)| match rows.concat() {
                rows if rows.is_empty() => format!("{subject}: {reason}."),
                rows => format!("{subject} at {}: {reason}.", rows.join("; ")),
            };
        let said: Vec<String> = reasons.into_iter().map(sentence).collect();
        vec![format!(
            "Not run (connections / client threads / server threads): {}",
            said.join(" ")
        )]
    }
}

/// With the columns that say which row it is, which `of` tells. On the page, whose first column stays in sight,
/// all but the first column of the table stand below that.
fn row_heads<'a: 'f, 'f, R: Copy + 'f>(
    mut grid: Grid<'f, R>,
    section: &Section<'_>,
    of: fn(R) -> Option<RowKey<'a>>,
) -> Grid<'f, R> {
    type Number = fn(&RowKey<'_>) -> String;
    let mut numbers: Vec<(&str, bool, Number)> = vec![
        ("connections", true, |row| {
            numbers::count(row.connections.into())
        }),
        ("client threads", true, |row| row.threads.clone()),
        ("server threads", true, |row| row.peer_threads.to_string()),
    ];
    if named(section) {
        numbers.insert(0, ("workload", false, |row| row.workload.to_owned()));
    }
    for (title, numeric, number) in numbers {
        let head = Column {
            markdown_only: grid.width() > 0,
            ..column(title, "", numeric)
        };
        let rest = move |row: &RowKey<'_>| match title {
            "workload" => row.words(),
            "connections" => words::rest(row, "connections"),
            _ => String::new(),
        };
        grid = grid.head(head, move |about| {
            of(about).map_or_else(Entry::default, |row| Entry {
                text: number(&row),
                page_below: rest(&row),
                ..Entry::default()
            })
        });
    }
    grid
}

/// Whether rows cannot be told apart by their numbers.
fn named(section: &Section<'_>) -> bool {
    let number = |row: &RowKey<'_>| (row.connections, row.threads.clone(), row.peer_threads);
    let mut numbers: Vec<_> = section.rows.iter().map(number).collect();
    numbers.sort();
    numbers.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether something was not run that concerns a client in a row.
fn concerns(not: &NotRun, subject: &str, row: &RowKey<'_>) -> bool {
    let size = format!("c={}", row.connections);
    concerned(not, subject, row.workload, &size).is_some()
}
