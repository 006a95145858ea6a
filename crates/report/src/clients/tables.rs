//! How a table of rows by clients is laid out.

use prony_findings::Code;
use prony_record::NotRun;

use super::context::Context;
use super::sections::{RowKey, Section, row_of};
use super::words;
use crate::figures::CellFigures;
use crate::numbers::{self, NOTHING};
use crate::part::column;
use crate::table::{self, Column, Entry, Row, Table};

impl<'a> Context<'a> {
    /// The heads of the columns that say which row it is. On the page, whose first column stays in sight,
    /// all but the first stand below that.
    fn row_heads(&self, section: &Section<'_>, first: bool) -> Vec<Column> {
        let mut heads = vec![
            column("connections", "", true),
            column("client threads", "", true),
            column("server threads", "", true),
        ];
        if self.named(section) {
            heads.insert(0, column("workload", "", false));
        }
        for head in heads.iter_mut().skip(usize::from(first)) {
            head.markdown_only = true;
        }
        heads
    }

    /// The entries that say which row it is.
    fn row_start(&self, section: &Section<'_>, row: &RowKey<'_>) -> Vec<Entry> {
        let mut entries = vec![
            Entry::text(numbers::count(row.connections.into())),
            Entry::text(row.threads.clone()),
            Entry::text(row.peer_threads.to_string()),
        ];
        entries[0].page_below = words::rest(row, "connections");
        if self.named(section) {
            let name = Entry {
                text: row.workload.to_owned(),
                page_below: row.words(),
                ..Entry::default()
            };
            entries.insert(0, name);
        }
        entries
    }

    /// Whether rows cannot be told apart by their numbers.
    fn named(&self, section: &Section<'_>) -> bool {
        let number = |row: &RowKey<'_>| (row.connections, row.threads.clone(), row.peer_threads);
        let mut numbers: Vec<_> = section.rows.iter().map(number).collect();
        numbers.sort();
        numbers.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// A row for each workload, a column for each client.
    pub(super) fn matrix(
        &self,
        section: &Section<'a>,
        below: &'static str,
        entry: impl Fn(&'a CellFigures) -> Entry,
    ) -> Table {
        let mut columns = self.row_heads(section, true);
        let clients = section.columns.iter();
        columns.extend(clients.map(|c| column(section.label(self.run, c), below, true)));
        let row =
            |key: &RowKey<'a>| {
                let mut entries = self.row_start(section, key);
                entries.extend(section.columns.iter().map(
                    |client| match section.cell(key, client) {
                        Some(cell) if cell.trials.measured.is_empty() => self.unmeasured(cell),
                        Some(cell) => entry(cell),
                        None => self.absence(client.0, key),
                    },
                ));
                Row {
                    entries,
                    ..Row::default()
                }
            };
        Table {
            rows: section.rows.iter().map(row).collect(),
            columns,
        }
    }

    /// A row for each cell, with `columns` beside those that say which it is; one row of the section needs
    /// no such column.
    pub(super) fn list(
        &self,
        section: &Section<'a>,
        columns: Vec<Column>,
        entries: impl Fn(&'a CellFigures) -> Vec<Entry>,
    ) -> Table {
        let width = columns.len();
        let mut heads = vec![column("client", "", false)];
        let one = section.rows.len() == 1;
        if !one {
            heads.extend(self.row_heads(section, false));
        }
        heads.extend(columns);
        let line = |cell: &&'a CellFigures| {
            let mut line = vec![Entry {
                text: section.label_of(self.run, cell),
                ..Entry::default()
            }];
            if let Some(row) = row_of(cell).filter(|_| !one) {
                line[0].page_below = match self.named(section) {
                    true => format!("{}: {}", row.workload, row.words()),
                    false => row.words(),
                };
                line.extend(self.row_start(section, &row));
            }
            if cell.trials.measured.is_empty() {
                let mut absent = vec![self.unmeasured(cell)];
                absent.resize(width, Entry::text(NOTHING));
                line.extend(absent);
            } else {
                line.extend(entries(cell));
            }
            table::row_of(cell, line)
        };
        Table {
            rows: section.by_row().iter().map(line).collect(),
            columns: heads,
        }
    }

    pub(super) fn unmeasured(&self, cell: &CellFigures) -> Entry {
        Entry {
            text: table::absence(cell).to_owned(),
            marks: self.notes.marks(&cell.cell, &[Code::P010]),
            ..Entry::default()
        }
    }

    fn absence(&self, subject: &str, row: &RowKey<'_>) -> Entry {
        let mut not_run = self.run.plan.not_run.iter();
        let found = not_run.any(|not| concerned(not, subject, row.workload, row.connections));
        Entry::text(if found { "not run" } else { NOTHING })
    }

    /// Who is not in the tables of a section, and why.
    pub(super) fn absent(&self, section: &Section<'_>) -> Vec<String> {
        let mut reasons: Vec<(&str, &str, Vec<String>)> = Vec::new();
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
            let concerned =
                |row: &&RowKey<'_>| concerned(not, subject, row.workload, row.connections);
            let rows: Vec<&RowKey<'_>> = rows.filter(concerned).collect();
            if rows.is_empty() {
                continue;
            }
            let reason = not.reason.trim_end_matches('.');
            let words = match rows.len() == section.rows.len() {
                true => Vec::new(),
                false => rows.iter().map(|row| row.short()).collect(),
            };
            let same =
                |known: &&mut (&str, &str, Vec<String>)| (known.0, known.1) == (subject, reason);
            match reasons.iter_mut().find(same) {
                Some(known) => known.2.extend(words),
                None => reasons.push((subject, reason, words)),
            }
        }
        if reasons.is_empty() {
            return Vec::new();
        }
        let sentence = |(subject, reason, rows): (&str, &str, Vec<String>)| match rows.is_empty() {
            true => format!("{subject}: {reason}."),
            false => format!("{subject} at {}: {reason}.", rows.join("; ")),
        };
        let said: Vec<String> = reasons.into_iter().map(sentence).collect();
        vec![format!(
            "Not run (connections / client threads / server threads): {}",
            said.join(" ")
        )]
    }
}

/// Whether something was not run that concerns a client in a workload with a number of
/// connections: the client as a whole, its workload, or a cell.
fn concerned(not: &NotRun, subject: &str, workload: &str, connections: u32) -> bool {
    if not.what == subject {
        return true;
    }
    let rest = not
        .what
        .strip_prefix(subject)
        .and_then(|r| r.strip_prefix(' '));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(workload)) else {
        return false;
    };
    let own = format!("c={connections}");
    let mut sizes = rest
        .split_whitespace()
        .filter(|word| word.starts_with("c="));
    (rest.is_empty() || rest.starts_with(' ')) && sizes.all(|size| size == own)
}
