//! Jobs that are run again and again: how long the runs were, and which missed their deadline.

use super::context::{Context, heading};
use super::figures::{DurationFigures, MissedRun};
use super::tables::ON_ELAPSED;
use super::works::Family;
use super::{Captioned, Part, captioned, pictures, plain, works};
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::numbers;
use crate::part::{column, detail, median};
use crate::table::{Entry, Table};

/// Missed deadlines that a document lists one by one; `summary.json` has all that were recorded.
const MISSED_MAX: usize = 50;

const ABOUT: &str = "When a missed run began is its number × the average length: near enough to see whether the misses \
     come at regular times.";

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
        let deadline = common_deadline(&cells);
        if let Some(ns) = deadline {
            let deadline = numbers::duration(ns);
            before.push(format!("No run should take longer than {deadline}."));
        }
        let mut tables = vec![plain(self.lengths_table(&cells, deadline.is_none()))];
        let (missed, mut after) = self.missed_table(&cells);
        if missed.is_some() {
            after.push(ABOUT.to_owned());
        }
        tables.extend(missed);
        after.extend(self.absent(&family.members));
        let title = works::title(&self.run.plan, workload);
        Part {
            title: heading(title, Some(count)),
            before,
            pictures: pictures::histograms(&cells, &self.labels(&cells)),
            tables,
            after,
            ..Part::default()
        }
    }

    /// What settings of the cells that are the kernel's stand for.
    fn kernel_settings(&self, cells: &[&CellFigures]) -> Vec<String> {
        let settings = self.run.plan.settings.iter();
        let own = settings.filter(|s| cells.iter().any(|c| c.settings.contains_key(&s.name)));
        let said = own.filter_map(|s| {
            let sysctl = s.sysctl.as_ref()?;
            Some(format!(
                "{} is the kernel's {sysctl}, set for the time of each trial.",
                s.name
            ))
        });
        said.collect()
    }

    /// A row for each cell.
    fn lengths_table(&self, cells: &[&'a CellFigures], deadline: bool) -> Table {
        let time = |figure: &'static str, of: fn(&DurationFigures) -> Option<u64>| {
            move |cell: &'a CellFigures| {
                let ns = durations(cell).and_then(of);
                Entry::figure(figure, ns.map(|ns| ns as f64), numbers::time)
            }
        };
        let count = |figure: &'static str, of: fn(&DurationFigures) -> u64| {
            move |cell: &'a CellFigures| {
                let count = durations(cell).map(of);
                let shown = |_| numbers::count(count.unwrap_or(0));
                Entry::figure(figure, count.map(|count| count as f64), shown)
            }
        };
        let head = |title: &str| column(title, "", true);
        let p99_9 = time("program.durations.p99_9_ns", |d| d.p99_9_ns);
        let mut grid = self
            .subjects(&self.varying(cells))
            .figure(
                detail(head("min")),
                time("program.durations.min_ns", |d| Some(d.min_ns)),
            )
            .figure(
                head("max"),
                time("program.durations.max_ns", |d| Some(d.max_ns)),
            )
            .figure(head("average"), |cell| {
                let mean = median(durations(cell).and_then(|d| d.mean_ns));
                let mean = Entry::figure("program.durations.mean_ns.median", mean, numbers::time);
                self.notes.on(cell, ON_ELAPSED, mean)
            })
            .figure(
                head("missed"),
                count("program.durations.missed_count", |d| d.missed_count),
            )
            .figure(
                detail(head("runs")),
                count("program.durations.runs", |d| d.runs),
            )
            .figure(head("p99"), time("program.durations.p99_ns", |d| d.p99_ns))
            .figure(detail(head("p99.9")), move |cell| {
                let is_few = |d: &DurationFigures| d.p99_9_ns.is_some() && !d.p99_9_supported;
                Entry {
                    few: durations(cell).is_some_and(is_few),
                    ..p99_9(cell)
                }
            });
        if deadline {
            let ns = |d: &DurationFigures| Some(d.deadline_ns).filter(|ns| *ns > 0);
            let of = time("program.durations.deadline_ns", ns);
            grid = grid.figure(detail(head("deadline")), of);
        }
        let grid = grid
            .figure(detail(head("memory")), |cell| self.memory(cell))
            .verdicts(cells);
        let row = |cell: &&'a CellFigures| grid.row_if(durations(cell).is_some(), cell);
        let rows = cells.iter().map(row).collect();
        grid.table(rows)
    }

    /// Every missed deadline, up to a number, and what the table leaves out.
    pub(super) fn missed_table(
        &self,
        cells: &[&'a CellFigures],
    ) -> (Option<Captioned>, Vec<String>) {
        let labels = self.labels(cells);
        let all: Vec<(&str, &DurationFigures)> = cells
            .iter()
            .zip(&labels)
            .filter_map(|(cell, label)| Some((label.as_str(), durations(cell)?)))
            .collect();
        let with: Vec<&(&str, &DurationFigures)> =
            all.iter().filter(|(_, d)| d.missed_count > 0).collect();
        if with.is_empty() {
            let any = all.iter().any(|(_, d)| d.deadline_ns > 0);
            let said = any.then(|| "No deadline was missed.".to_owned());
            return (None, said.into_iter().collect());
        }
        let each = (MISSED_MAX / with.len()).max(1);
        let (mut lines, mut said): (Vec<Missed<'_>>, _) = (Vec::new(), Vec::new());
        for (label, durations) in with {
            let named = durations.missed.len();
            let shown = named.min(each);
            let own = durations.missed[..shown].iter();
            lines.extend(own.map(|run| (*label, *run, *durations)));
            if durations.missed_count > shown as u64 {
                said.push(format!(
                    "{label} missed {} in all: the table has {shown}, and summary.json the {} that the program \
                     named.",
                    numbers::count(durations.missed_count),
                    numbers::count(named as u64),
                ));
            }
        }
        let caption = if said.is_empty() {
            "Every missed deadline"
        } else {
            "Missed deadlines"
        };
        (Some(captioned(caption, missed_rows(&lines))), said)
    }
}

fn durations(cell: &CellFigures) -> Option<&DurationFigures> {
    cell.program.as_ref()?.durations.as_ref()
}

/// By what cells with lengths of runs are in order: fewest deadlines missed, then the smallest maximum; what cannot be used
/// after all others.
fn least_late(cell: &CellFigures) -> (bool, u64, u64) {
    match durations(cell) {
        Some(of) => (cell.is_invalid(), of.missed_count, of.max_ns),
        None => (true, u64::MAX, u64::MAX),
    }
}

/// The deadline that all cells with figures have.
fn common_deadline(cells: &[&CellFigures]) -> Option<u64> {
    let durations = cells.iter().filter_map(|cell| durations(cell));
    let deadlines: Vec<u64> = durations.map(|d| d.deadline_ns).collect();
    let first = *deadlines.first()?;
    let same = deadlines.iter().all(|ns| *ns == first);
    (same && first > 0).then_some(first)
}

/// A run that missed its deadline: whose, which, and the lengths of all.
type Missed<'a> = (&'a str, MissedRun, &'a DurationFigures);

fn missed_rows(lines: &[Missed<'_>]) -> Table {
    let time = |ns: u64| Entry::text(numbers::time(ns as f64));
    Grid::new()
        .head(column("subject", "", false), |line: &Missed<'_>| {
            Entry::text(line.0)
        })
        .head(column("block", "", true), |(_, run, _)| {
            Entry::text(run.block.saturating_add(1).to_string())
        })
        .head(column("run", "", true), |(_, run, _)| {
            Entry::text(numbers::count(run.run))
        })
        .head(column("took", "", true), |(_, run, _)| time(run.ns))
        .head(column("over the deadline by", "", true), |(_, run, of)| {
            time(run.ns.saturating_sub(of.deadline_ns))
        })
        .head(column("began after about", "", true), |(_, run, of)| {
            let began = median(of.mean_ns).map(|mean| mean * run.run as f64);
            Entry::text(began.map_or_else(|| numbers::NOTHING.to_owned(), numbers::time))
        })
        .rows(lines)
}
