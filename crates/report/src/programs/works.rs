//! What belongs together: workloads of the same work, and cells that make one row.
//!
//! A `Family` is the workloads that ask for the same work with the same arguments: a sweep over
//! sizes may be spread over several workloads, since programs differ by orders of magnitude, and so may
//! one size for the fast and another for the slow. `Rows` says which settings make the rows of a
//! table over several workloads, some of which may not have all of them.
//! Not for: figures.

use std::collections::{BTreeMap, BTreeSet};

use prony_record::Plan;

use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::settings::{Settings, THREADS, first_value};

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
        let counts = distinct(
            own.iter()
                .map(|c| c.program.as_ref().map_or(0, |p| p.count)),
        );
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
    let told = subject.map_or(0, |s| s.program_threads);
    let own = cell.program.as_ref().map_or(0, |p| p.threads);
    [told, own]
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

/// Which settings make the rows of a table over several workloads.
pub struct Rows<'a> {
    plan: &'a Plan,
    /// Settings of the rows, in the plan's order.
    names: Vec<&'a str>,
    /// Those of them that each subject has.
    of_subject: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

/// What makes a row: the subject, and by setting its value; `None`: it has no such setting.
pub type RowKey<'a> = (&'a str, Vec<Option<&'a str>>);

impl<'a> Rows<'a> {
    /// Of all that is shown: workload, subject, settings. A setting that one of several workloads
    /// alone has belongs to its column, not to the rows.
    pub fn new(plan: &'a Plan, shown: &[(&'a str, &'a str, &'a Settings)]) -> Rows<'a> {
        let mut workloads = BTreeSet::new();
        let mut by_setting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (workload, _, settings) in shown {
            workloads.insert(*workload);
            for name in settings.keys() {
                by_setting.entry(name).or_default().insert(workload);
            }
        }
        let of_rows = |name: &&str| {
            let own = by_setting.get(name).map_or(0, BTreeSet::len);
            *name != THREADS && own > 0 && (own > 1 || workloads.len() == 1)
        };
        let names = plan.settings.iter().map(|s| s.name.as_str());
        let names: Vec<&str> = names.filter(of_rows).collect();
        let mut of_subject: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, subject, settings) in shown {
            let own = settings.keys().map(String::as_str);
            of_subject.entry(subject).or_default().extend(own);
        }
        Rows {
            plan,
            names,
            of_subject,
        }
    }

    /// The row of a subject with these settings. A workload that does not have a setting was done
    /// with its usual value.
    pub fn key(&self, subject: &'a str, settings: &'a Settings) -> RowKey<'a> {
        let has = |name: &str| {
            self.of_subject
                .get(subject)
                .is_some_and(|s| s.contains(name))
        };
        let value = |name: &&'a str| {
            let usual = || first_value(self.plan, name).filter(|_| has(name));
            settings.get(*name).or_else(usual).map(String::as_str)
        };
        (subject, self.names.iter().map(value).collect())
    }

    /// What belongs to the column: settings that are neither the rows' nor the threads.
    pub fn rest(&self, settings: &Settings) -> Settings {
        let mut rest = settings.clone();
        rest.retain(|name, _| name != THREADS && !self.names.contains(&name.as_str()));
        rest
    }

    /// The different keys, those with usual values first, and places and names of the settings
    /// that differ among them.
    pub fn arranged(&self, keys: Vec<RowKey<'a>>) -> (Vec<RowKey<'a>>, Vec<(usize, &'a str)>) {
        let mut rows = distinct(keys);
        let place = |subject: &str| self.plan.subjects.iter().position(|s| s.id == subject);
        rows.sort_by_cached_key(|(subject, values)| {
            let named = self.names.iter().zip(values);
            let settings = named.filter_map(|(k, v)| Some(((*k).to_owned(), (*v)?.to_owned())));
            (unusual(self.plan, &settings.collect()), place(subject))
        });
        let varies = |at: usize| rows.iter().any(|row| row.1[at] != rows[0].1[at]);
        let names = self.names.iter().copied().enumerate();
        let shown = names.filter(|(at, _)| varies(*at)).collect();
        (rows, shown)
    }
}

/// Whether the time of its work is what is measured, rather than the lengths of runs.
pub fn is_timed(cell: &CellFigures) -> bool {
    let program = cell.program.as_ref();
    program.is_some_and(|program| program.durations.is_none())
}
