//! Jobs that are run again and again: how long the runs were, and which missed their deadline.

use super::context::{Context, heading};
use super::figures::{DurationFigures, MissedRun};
use super::tables::{MEMORY, ON_ELAPSED};
use super::works::Family;
use super::{Captioned, Part, captioned, lengths_of, pictures, plain, works};
use crate::figure::BLOCK;
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::numbers::{self, COUNT, TIME};
use crate::part::{column, median};
use crate::table::{Entry, Shown, Table};
use crate::words::paragraph;

/// Missed deadlines that a document lists one by one, as many of each program; `summary.json` has all that programs named.
const MISSED_MAX: usize = 50;

const COLUMNS: [Shown; 9] = [
    Shown::new("min", "program.durations.min_ns", TIME).detail(),
    Shown::new("max", "program.durations.max_ns", TIME),
    Shown::new("average", "program.durations.mean_ns", TIME).marked(ON_ELAPSED),
    Shown::new("missed", "program.durations.missed_count", COUNT),
    Shown::new("runs", "program.durations.runs", COUNT).detail(),
    Shown::new("p99", "program.durations.p99_ns", TIME),
    Shown::new("p99.9", "program.durations.p99_9_ns", TIME)
        .supported("program.durations.p99_9_supported")
        .detail(),
    Shown::new("deadline", "program.durations.deadline_ns", TIME).detail(),
    MEMORY,
];

impl<'a> Context<'a> {
    /// The section of one workload and size.
    pub(super) fn lengths(&self, family: &Family<'a>) -> Part {
        let Some(&(workload, count)) = family.members.first() else {
            return Part::default();
        };
        let mut cells = self.group(workload, Some(count));
        cells.sort_by_key(|cell| least_late(cell));
        let mut before = self.asked(family, &[workload]);
        before.extend(self.kernel_settings(&cells));
        if let Some(ns) = common_deadline(&cells) {
            let deadline = numbers::duration(ns);
            before.push(format!("No run should take longer than {deadline}."));
        }
        let (missed, after) = self.missed_table(&cells);
        let lengths = plain(self.lengths_table(&cells));
        let title = works::title(&self.run.plan, workload);
        Part {
            title: heading(title, Some(count)),
            before,
            pictures: pictures::histograms(&cells, &self.labels(&cells)),
            tables: std::iter::once(lengths).chain(missed).collect(),
            after,
            ..Part::default()
        }
    }

    /// What settings of the cells that are the kernel's stand for.
    fn kernel_settings(&self, cells: &[&CellFigures]) -> Vec<String> {
        let settings = self.run.plan.settings.iter();
        let own = settings.filter(|s| cells.iter().any(|c| c.settings.contains_key(&s.name)));
        let lines = own.filter_map(|s| {
            let sysctl = s.sysctl.as_ref()?;
            Some(format!(
                "{} is the kernel's {sysctl}, set for the time of each trial.",
                s.name
            ))
        });
        lines.collect()
    }

    /// A row for each cell.
    fn lengths_table(&self, cells: &[&'a CellFigures]) -> Table {
        let grid = self
            .subjects(&self.varying(cells))
            .shown(self.notes, COLUMNS);
        let grid = grid.verdicts(cells);
        let row = |cell: &&'a CellFigures| grid.row_if(lengths_of(cell).is_some(), cell);
        let rows = cells.iter().map(row).collect();
        grid.table(rows)
    }

    /// Missed deadlines, up to a number, and what the table leaves out.
    fn missed_table(&self, cells: &[&'a CellFigures]) -> (Option<Captioned>, Vec<String>) {
        let labels = self.labels(cells);
        let with = || {
            let all = cells.iter().zip(&labels);
            all.filter_map(|(cell, label)| Some((label.as_str(), lengths_of(cell)?)))
        };
        let late = with().filter(|(_, of)| !of.missed.is_empty()).count();
        let each = MISSED_MAX / late.max(1);
        let named = with().flat_map(|(label, of)| {
            let first = of.missed.iter().take(each);
            first.map(move |run| (label, run, of))
        });
        let lines: Vec<Missed<'_>> = named.collect();
        let all = with()
            .map(|(_, of)| of.missed_count)
            .fold(0, u64::saturating_add);
        if all == 0 {
            let any = with().any(|(_, of)| of.deadline_ns > 0);
            let lines = any.then(|| "No deadline was missed.".to_owned());
            return (None, lines.into_iter().collect());
        }
        let caption = match all > lines.len() as u64 {
            true => format!(
                "Missed deadlines, {} in all, the first of each",
                numbers::count(all)
            ),
            false => "Every missed deadline".to_owned(),
        };
        let table = captioned(caption, missed_rows(&lines));
        (Some(table), vec![paragraph("programs: missed")])
    }
}

/// By what cells with lengths of runs are in order: fewest deadlines missed, then the smallest maximum; what cannot be used
/// after all others.
fn least_late(cell: &CellFigures) -> (bool, u64, u64) {
    match lengths_of(cell) {
        Some(of) => (cell.is_invalid(), of.missed_count, of.max_ns),
        None => (true, u64::MAX, u64::MAX),
    }
}

/// The deadline that all cells with figures have.
fn common_deadline(cells: &[&CellFigures]) -> Option<u64> {
    let durations = cells.iter().filter_map(|cell| lengths_of(cell));
    let deadlines: Vec<u64> = durations.map(|d| d.deadline_ns).collect();
    let first = *deadlines.first()?;
    let same = deadlines.iter().all(|ns| *ns == first);
    (same && first > 0).then_some(first)
}

/// A run that missed its deadline: whose, which, and the lengths of all.
type Missed<'a> = (&'a str, &'a MissedRun, &'a DurationFigures);

fn missed_rows(lines: &[Missed<'_>]) -> Table {
    let head = |title: &str| column(title, "", true);
    let time = |ns: u64| Entry::text(numbers::time(ns as f64));
    Grid::new()
        .head(column("subject", "", false), |line: &Missed<'_>| {
            Entry::text(line.0)
        })
        .head(head(BLOCK), |(_, run, _)| Entry::text(run.block_number()))
        .head(head("run"), |(_, run, _)| {
            Entry::text(numbers::count(run.run))
        })
        .head(head("took"), |(_, run, _)| time(run.ns))
        .head(head("over the deadline by"), |(_, run, of)| {
            time(run.ns.saturating_sub(of.deadline_ns))
        })
        .head(head("began after about"), |(_, run, of)| {
            let began = median(of.mean_ns).map(|mean| mean * run.run as f64);
            Entry::text(began.map_or_else(|| numbers::NOTHING.to_owned(), numbers::time))
        })
        .rows(lines)
}
