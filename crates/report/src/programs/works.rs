//! What belongs together: workloads of the same work.
//!
//! A `Family` is the workloads that ask for the same work with the same arguments: a sweep over
//! sizes may be spread over several workloads, since programs differ by orders of magnitude, and so may
//! one size for the fast and another for the slow.
//! Not for: figures.

use prony_record::Plan;

use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::settings::{Settings, THREADS};

/// What a family's cells have for figures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The time of one size.
    Timed,
    /// Times over several sizes.
    Sweep,
    /// Lengths of the runs of a job.
    Lengths,
}

/// The workloads of one work with the same arguments.
#[derive(Clone, Debug)]
pub struct Family<'a> {
    /// The work.
    pub work: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// What is measured.
    pub kind: Kind,
    /// Workloads and sizes: of a single size each, the largest first, which tables over several
    /// works show; else in the plan's order.
    pub members: Vec<(&'a str, u64)>,
}

impl<'a> Family<'a> {
    /// Its workloads.
    pub fn workloads(&self) -> Vec<&'a str> {
        distinct(self.members.iter().map(|(workload, _)| *workload))
    }

    /// What a heading calls it.
    pub fn title(&self, plan: &Plan) -> String {
        let workloads = self.workloads();
        let first = workloads.first().map_or("", |name| title(plan, name));
        // Several workloads that are called alike are one thing; else only their work is.
        if workloads.iter().all(|name| title(plan, name) == first) {
            return first.to_owned();
        }
        let words = std::iter::once(self.work).chain(self.args.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The families, in the order of the cells, and sweeps after the others.
pub fn families<'a>(plan: &'a Plan, cells: &[&'a CellFigures]) -> Vec<Family<'a>> {
    let mut families: Vec<Family<'a>> = Vec::new();
    for workload in distinct(cells.iter().map(|c| c.workload.as_str())) {
        let own = cells.iter().copied().filter(|c| c.workload == workload);
        let own: Vec<&CellFigures> = own.collect();
        let counts = distinct(own.iter().filter_map(|c| count(c)));
        let kind = match own.iter().all(|c| is_timed(c)) {
            false => Kind::Lengths,
            true if counts.len() > 1 => Kind::Sweep,
            true => Kind::Timed,
        };
        let (work, args) = asked(plan, workload);
        for count in counts {
            // Lengths of runs of different sizes do not go into one table.
            let same = |f: &&mut Family<'a>| {
                kind != Kind::Lengths && (f.kind, f.work, f.args) == (kind, work, args)
            };
            match families.iter_mut().find(same) {
                Some(family) => family.members.push((workload, count)),
                None => families.push(Family {
                    work,
                    args,
                    kind,
                    members: vec![(workload, count)],
                }),
            }
        }
    }
    for family in families.iter_mut().filter(|f| f.kind == Kind::Timed) {
        family.members.sort_by_key(|m| std::cmp::Reverse(m.1));
    }
    families.sort_by_key(|family| family.kind == Kind::Sweep);
    families
}

/// The work and the arguments of a workload.
fn asked<'a>(plan: &'a Plan, workload: &'a str) -> (&'a str, &'a [String]) {
    let planned = plan.workloads.iter().find(|w| w.name == workload);
    let program = planned.and_then(|w| w.program.as_ref());
    program.map_or((workload, &[]), |p| (&p.work, &p.args))
}

/// What a heading calls a workload.
pub fn title<'a>(plan: &'a Plan, workload: &'a str) -> &'a str {
    let planned = plan.workloads.iter().find(|w| w.name == workload);
    planned.map_or(workload, |planned| planned.heading())
}

/// The threads that a cell's program is told: by the setting, or else by what the subject has
/// where none says it.
pub fn threads(plan: &Plan, cell: &CellFigures) -> String {
    if let Some(value) = cell.settings.get(THREADS) {
        return value.clone();
    }
    let subject = plan.subjects.iter().find(|s| s.id == cell.subject);
    let planned = subject.map_or(0, |s| s.program_threads);
    let own = cell.program.as_ref().map_or(0, |p| p.threads);
    [planned, own]
        .into_iter()
        .find(|n| *n > 0)
        .unwrap_or(1)
        .to_string()
}

/// The different numbers of threads, rising; what is no number stands last.
pub fn all_threads(plan: &Plan, cells: &[&CellFigures]) -> Vec<String> {
    let mut all = distinct(cells.iter().map(|c| threads(plan, c)));
    all.sort_by_key(|value| value.parse().unwrap_or(u64::MAX));
    all
}

/// How usual settings are, the threads left out: how many of them do not have their first value,
/// and the places of all their values.
pub fn unusual(plan: &Plan, settings: &Settings) -> (usize, Vec<usize>) {
    let own = plan.settings.iter().filter(|s| s.name != THREADS);
    let place = |s: &prony_record::PlannedSetting| {
        let value = settings.get(&s.name)?;
        s.values.iter().position(|other| other == value)
    };
    let places: Vec<usize> = own.map(|s| place(s).unwrap_or(0)).collect();
    (places.iter().filter(|at| **at > 0).count(), places)
}

/// How much the program of a cell was asked to do.
pub fn count(cell: &CellFigures) -> Option<u64> {
    cell.program.as_ref().map(|program| program.count)
}

/// Whether the time of its work is what is measured, rather than the lengths of runs.
pub fn is_timed(cell: &CellFigures) -> bool {
    let program = cell.program.as_ref();
    program.is_some_and(|program| program.durations.is_none())
}
