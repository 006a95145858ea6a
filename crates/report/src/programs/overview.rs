//! The table that a reader wants first: every subject on every work, a table for each number of
//! threads.
//!
//! A work that was measured again at a smaller size, for those that would take too long, does not
//! widen it: such workloads stand in a small table of their own. Sweeps have their own sections.

use prony_findings::Code;

use super::context::{Context, not_run, threads_word};
use super::tables::{ON_ELAPSED, ON_MEMORY, ON_SUBJECT, of_row};
use super::works::{self, Family, Kind, Rows, all_threads};
use super::{Part, captioned};
use crate::figures::CellFigures;
use crate::lists::{distinct, push_under};
use crate::numbers::{self, NOTHING};
use crate::part::{column, median};
use crate::settings::{Settings, with_settings};
use crate::table::{self, Entry, Table};

/// A column: a workload, its size, and settings that only it has.
type ColumnKey<'a> = (&'a str, u64, Settings);
/// A cell and the workload in whose column it stands.
type OfColumn<'a> = (&'a str, &'a CellFigures);
/// Workloads of the same work and size, which share a column.
type Members<'a> = (u64, Vec<&'a str>);

/// The members of a family of the size that it is shown with, or those of each other size.
fn by_size<'a>(family: &Family<'a>, first: bool) -> Vec<Members<'a>> {
    let mut sizes: Vec<Members<'a>> = Vec::new();
    for (workload, count) in &family.members {
        push_under(&mut sizes, *count, *workload);
    }
    let rest = sizes.split_off(sizes.len().min(1));
    if first { sizes } else { rest }
}

impl<'a> Context<'a> {
    /// Time and memory of every build of every subject over all works. `None` with fewer than two
    /// works, whose table says it all.
    pub(super) fn overview(&self, families: &[Family<'a>]) -> Option<Part> {
        let timed = || families.iter().filter(|f| f.kind == Kind::Timed);
        if timed().count() < 2 {
            return None;
        }
        let mut tables = Vec::new();
        for (first, again) in [(true, ""), (false, ", the same works at other sizes")] {
            let columns: Vec<Members<'a>> = timed().flat_map(|f| by_size(f, first)).collect();
            let cells: Vec<OfColumn<'a>> = columns.iter().flat_map(|c| self.of_size(c)).collect();
            let all: Vec<&CellFigures> = cells.iter().map(|(_, cell)| *cell).collect();
            for threads in all_threads(&self.run.plan, &all) {
                let own = cells.iter().copied();
                let own = own.filter(|(_, c)| works::threads(&self.run.plan, c) == threads);
                let caption = format!("{}{again}", threads_word(&threads));
                let table = self.overview_table(&own.collect::<Vec<_>>());
                tables.push(captioned(caption, table));
            }
        }
        Some(Part {
            title: "Overview".to_owned(),
            before: vec![
                "Median time of the work by the program's own clock, and peak memory of its process. \
                 Each thread does the whole of the work."
                    .to_owned(),
            ],
            tables,
            ..Part::default()
        })
    }

    /// The cells of a work and size, each with the workload whose column it stands in. Who was
    /// measured in several of the workloads stands there once, as in the first of them.
    fn of_size(&self, (count, workloads): &Members<'a>) -> Vec<OfColumn<'a>> {
        let mut cells: Vec<OfColumn<'a>> = Vec::new();
        for workload in workloads {
            let told = distinct(cells.iter().map(|(_, c)| c.subject.as_str()));
            let own = self.group(workload, Some(*count)).into_iter();
            let new = own.filter(|c| !told.contains(&c.subject.as_str()));
            cells.extend(new.map(|cell| (workloads[0], cell)));
        }
        cells
    }

    /// The cells of one number of threads.
    fn overview_table(&self, cells: &[OfColumn<'a>]) -> Table {
        let of_rows = cells.iter();
        let of_rows = of_rows.map(|(workload, c)| (*workload, &*c.subject, &c.settings));
        let rows = Rows::new(&self.run.plan, &of_rows.collect::<Vec<_>>());
        let keys = cells.iter().map(|(_, c)| rows.key(&c.subject, &c.settings));
        let (keys, varying) = rows.arranged(keys.collect());
        let of_column = |(workload, c): &OfColumn<'a>| -> ColumnKey<'a> {
            let count = c.program.as_ref().map_or(0, |p| p.count);
            (workload, count, rows.rest(&c.settings))
        };
        let columns = distinct(cells.iter().map(of_column));
        let mut grid = of_row(&varying, |key: &works::RowKey<'a>| key);
        for wanted in &columns {
            let (workload, count, rest) = wanted;
            let title = with_settings(works::title(&self.run.plan, workload), rest);
            let below = format!("n = {}", numbers::count(*count));
            let (rows, of_column) = (&rows, &of_column);
            grid = grid.head(column(title, below, true), move |key| {
                let fits = |of: &&OfColumn<'a>| {
                    rows.key(&of.1.subject, &of.1.settings) == *key && of_column(of) == *wanted
                };
                match cells.iter().find(fits) {
                    Some((_, cell)) => self.overview_entry(cell),
                    None => self.absence(key.0, workload, *count),
                }
            });
        }
        let mut table = grid.rows(&keys);
        for (row, key) in table.rows.iter_mut().zip(&keys) {
            if self.run.plan.reference.as_deref() == Some(key.0) {
                "reference".clone_into(&mut row.class);
            }
        }
        table
    }

    fn overview_entry(&self, cell: &CellFigures) -> Entry {
        let Some(program) = cell.program.as_ref().filter(|p| p.elapsed_ns.is_some()) else {
            return Entry::text(table::absence(cell));
        };
        let path = self.places.path(cell, "program.elapsed_ns.median");
        let mut entry = Entry::figure(path, median(program.elapsed_ns), numbers::time);
        entry.below = median(cell.memory_peak_bytes()).map_or_else(String::new, numbers::bytes);
        let codes: Vec<Code> = [ON_SUBJECT, ON_ELAPSED, ON_MEMORY].concat();
        self.notes.on(cell, &codes, entry)
    }

    fn absence(&self, subject: &str, workload: &str, count: u64) -> Entry {
        Entry::text(match not_run(&self.run.plan, subject, workload, count) {
            Some(not) if not.remedy.is_empty() => "not applicable",
            Some(_) => "not run",
            None => NOTHING,
        })
    }
}
