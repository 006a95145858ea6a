//! Jobs that are run again and again: how long the runs were, and which missed their deadline.

use prony_findings::Verdict;

use super::context::{Context, heading};
use super::figures::{DurationFigures, MissedRun};
use super::tables::{self, ON_ELAPSED, column, median, verdict_column, verdicts_differ};
use super::works::Family;
use super::{Captioned, Part, pictures, plain, works};
use crate::figures::CellFigures;
use crate::numbers;
use crate::table::{self, Column, Entry, Row, Table, row_of};

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
            pictures_last: true,
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
        let varying = self.varying(cells);
        let verdict = verdicts_differ(cells);
        let mut columns = vec![column("subject", "", false)];
        columns.extend(varying.iter().map(|name| column(*name, "", false)));
        let mut titles = vec!["min", "max", "average", "missed", "runs", "p99", "p99.9"];
        titles.extend(deadline.then_some("deadline"));
        titles.push("memory");
        let is_detail =
            |title: &str| matches!(title, "min" | "runs" | "p99.9" | "deadline" | "memory");
        columns.extend(titles.into_iter().map(|title| Column {
            details: is_detail(title),
            ..column(title, "", true)
        }));
        columns.extend(verdict.then(verdict_column));
        let row = |cell: &&CellFigures| {
            let head = self.row_head(cell, &varying);
            let durations = cell.program.as_ref().and_then(|p| p.durations.as_ref());
            let entries = match durations {
                Some(durations) => {
                    let mut entries = head;
                    let marks = self.notes.marks(&cell.cell, ON_ELAPSED);
                    entries.extend(lengths_entries(durations, marks, deadline));
                    entries.push(self.memory(cell));
                    entries.extend(verdict.then(|| Entry::text(table::verdict_text(cell))));
                    entries
                }
                None => tables::unmeasured(cell, head, columns.len(), verdict),
            };
            row_of(cell, entries)
        };
        let rows = cells.iter().map(row).collect();
        Table { columns, rows }
    }

    /// Every missed deadline, up to a number, and what the table leaves out.
    pub(super) fn missed_table(
        &self,
        cells: &[&'a CellFigures],
    ) -> (Option<Captioned>, Vec<String>) {
        let labels = self.labels(cells);
        let durations = |c: &'a CellFigures| c.program.as_ref()?.durations.as_ref();
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
        let (mut rows, mut said) = (Vec::new(), Vec::new());
        for (label, durations) in with {
            let named = durations.missed.len();
            let shown = named.min(each);
            rows.extend(
                durations.missed[..shown]
                    .iter()
                    .map(|run| missed_row(label, *run, durations)),
            );
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
        let columns = vec![
            column("subject", "", false),
            column("block", "", true),
            column("run", "", true),
            column("took", "", true),
            column("over the deadline by", "", true),
            column("began after about", "", true),
        ];
        let table = Captioned {
            caption: caption.to_owned(),
            table: Table { columns, rows },
        };
        (Some(table), said)
    }
}

fn lengths_entries(durations: &DurationFigures, marks: Vec<usize>, deadline: bool) -> Vec<Entry> {
    let time = |figure: &'static str, ns: Option<u64>| {
        Entry::figure(figure, ns.map(|ns| ns as f64), numbers::time)
    };
    let count = |figure: &'static str, count: u64| Entry {
        text: numbers::count(count),
        ..Entry::figure(figure, Some(count as f64), numbers::three)
    };
    let mean = median(durations.mean_ns);
    let mut p99_9 = time("program.durations.p99_9_ns", durations.p99_9_ns);
    p99_9.few = durations.p99_9_ns.is_some() && !durations.p99_9_supported;
    let mut entries = vec![
        time("program.durations.min_ns", Some(durations.min_ns)),
        time("program.durations.max_ns", Some(durations.max_ns)),
        Entry {
            marks,
            ..Entry::figure("program.durations.mean_ns.median", mean, numbers::time)
        },
        count("program.durations.missed_count", durations.missed_count),
        count("program.durations.runs", durations.runs),
        time("program.durations.p99_ns", durations.p99_ns),
        p99_9,
    ];
    if deadline {
        let ns = Some(durations.deadline_ns).filter(|ns| *ns > 0);
        entries.push(time("program.durations.deadline_ns", ns));
    }
    entries
}

/// By what cells with lengths of runs are in order: fewest deadlines missed, then the smallest maximum; what cannot be used
/// after all others.
fn least_late(cell: &CellFigures) -> (bool, u64, u64) {
    let durations = cell.program.as_ref().and_then(|p| p.durations.as_ref());
    match durations {
        Some(of) => (
            cell.verdict == Some(Verdict::Invalid),
            of.missed_count,
            of.max_ns,
        ),
        None => (true, u64::MAX, u64::MAX),
    }
}

/// The deadline that all cells with figures have.
fn common_deadline(cells: &[&CellFigures]) -> Option<u64> {
    let durations = cells
        .iter()
        .filter_map(|c| c.program.as_ref()?.durations.as_ref());
    let deadlines: Vec<u64> = durations.map(|d| d.deadline_ns).collect();
    let first = *deadlines.first()?;
    let same = deadlines.iter().all(|ns| *ns == first);
    (same && first > 0).then_some(first)
}

fn missed_row(label: &str, run: MissedRun, durations: &DurationFigures) -> Row {
    let over = run.ns.saturating_sub(durations.deadline_ns);
    let began = median(durations.mean_ns).map(|mean| mean * run.run as f64);
    Row {
        entries: vec![
            Entry::text(label),
            Entry::text(run.block.to_string()),
            Entry::text(numbers::count(run.run)),
            Entry::text(numbers::time(run.ns as f64)),
            Entry::text(numbers::time(over as f64)),
            Entry::text(began.map_or_else(|| numbers::NOTHING.to_owned(), numbers::time)),
        ],
        ..Row::default()
    }
}
