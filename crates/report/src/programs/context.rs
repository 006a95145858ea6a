//! What all sections on programs are made from, and what they call things.

use prony_base::plural;
use prony_record::{NotRun, Plan};

use super::across::{Across, main_count};
use super::works::{self, Family, Kind, is_timed};
use crate::Run;
use crate::figures::CellFigures;
use crate::lists::{distinct, push_new};
use crate::notes::Notes;
use crate::numbers;
use crate::part::{self, concerned};
use crate::settings::{Settings, THREADS, with_settings};

/// What the sections are made from.
pub type Context<'a> = part::Context<'a, Programs<'a>>;

/// What the sections on programs need besides.
pub struct Programs<'a> {
    /// The figures of programs' cells, in the plan's order.
    pub cells: Vec<&'a CellFigures>,
    /// Figures of several cells.
    pub across: &'a Across,
}

impl<'a> Context<'a> {
    /// Of the `cells` those that are programs'.
    pub fn new(
        run: &'a Run,
        cells: &'a [CellFigures],
        across: &'a Across,
        notes: &'a Notes,
    ) -> Context<'a> {
        let own = cells.iter().filter(|c| c.program.is_some()).collect();
        Context::of(run, cells, notes, Programs { cells: own, across })
    }

    /// The workloads whose time is measured, at the size that tables over several of them show.
    pub(super) fn timed(&self) -> Vec<(&'a str, Option<u64>)> {
        let timed: Vec<&CellFigures> = self
            .own
            .cells
            .iter()
            .copied()
            .filter(|c| is_timed(c))
            .collect();
        let workloads = distinct(timed.iter().map(|c| c.workload.as_str()));
        workloads
            .into_iter()
            .map(|w| (w, main_count(&timed, w)))
            .collect()
    }

    /// The cells of one workload and size.
    pub(super) fn group(&self, workload: &str, count: Option<u64>) -> Vec<&'a CellFigures> {
        let own = |c: &&&CellFigures| {
            c.workload == workload && c.program.as_ref().map(|p| p.count) == count
        };
        self.own.cells.iter().filter(own).copied().collect()
    }

    /// The cells by size and number of threads, which are different amounts of work; among those of one amount the leader
    /// first, as in the tables of servers. Equals stand with usual values of the settings first, then by subject.
    pub(super) fn arranged(&self, cells: &[&'a CellFigures]) -> Vec<&'a CellFigures> {
        let plan = &self.run.plan;
        let mut cells = cells.to_vec();
        cells.sort_by_cached_key(|c| {
            let subject = plan.subjects.iter().position(|s| s.id == c.subject);
            (works::unusual(plan, &c.settings), subject)
        });
        let amount = |c: &CellFigures| {
            let threads = works::threads(plan, c).parse().unwrap_or(u64::MAX);
            (c.program.as_ref().map_or(0, |p| p.count), threads)
        };
        cells.sort_by(|a, b| {
            let leader = b.standing().total_cmp(&a.standing());
            amount(a).cmp(&amount(b)).then(leader)
        });
        cells
    }

    /// What the programs were asked to do.
    pub(super) fn asked(&self, family: &Family<'_>, workloads: &[&str]) -> Vec<String> {
        let mut said = Vec::new();
        // Where a title stands above the tables, the name of the work tells nothing more.
        let plan = &self.run.plan;
        let named = |name: &&str| works::title(plan, name) != *name || *name == family.work;
        if !family.args.is_empty() {
            let args = family.args.join(" ");
            said.push(format!(
                "The work is {}, with the arguments {args}.",
                family.work
            ));
        } else if family.kind != Kind::Sweep && !workloads.iter().all(named) {
            said.push(format!("The work is {}.", family.work));
        }
        let own = self
            .own
            .cells
            .iter()
            .filter(|c| workloads.contains(&c.workload.as_str()));
        let further = own.filter_map(|c| c.program.as_ref());
        if further.map(|p| p.lines_left_out).max().unwrap_or(0) > 0 {
            said.push(
                "Some programs printed more than one line of figures: only the first is shown here, and \
                 memory and CPU time are of all that such a program did."
                    .to_owned(),
            );
        }
        said
    }

    /// Who is not in the tables of these workloads and sizes, and why.
    pub(super) fn absent(&self, members: &[(&str, u64)]) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        for not in &self.run.plan.not_run {
            let subjects = self.run.plan.subjects.iter();
            let mut rests = subjects.filter_map(|subject| {
                let of = |(workload, count): &(&str, u64)| {
                    concerned(not, &subject.id, workload, &format!("n={count}"))
                };
                Some((subject.id.as_str(), members.iter().find_map(of)?))
            });
            let Some((name, rest)) = rests.next() else {
                continue;
            };
            let reason = not.reason.trim_end_matches('.');
            let rest = if rest.is_empty() {
                rest
            } else {
                format!(", {rest}")
            };
            let sentence = format!("{name}{rest}: {reason}.");
            // The same of several sizes is said once.
            push_new(&mut said, sentence);
        }
        if !said.is_empty() {
            let list = said.join(" ");
            said = vec![format!("Not in the table: {list}")];
        }
        said
    }

    /// Names of the settings that differ among `cells`: the threads, and the others in the plan's
    /// order.
    pub(super) fn varying(&self, cells: &[&CellFigures]) -> Vec<&'a str> {
        let names = self.run.plan.settings.iter().map(|s| s.name.as_str());
        let differs = |name: &&str| match *name {
            THREADS => works::all_threads(&self.run.plan, cells).len() > 1,
            name => distinct(cells.iter().map(|c| c.settings.get(name))).len() > 1,
        };
        let mut varying: Vec<&str> = names.filter(differs).collect();
        varying.sort_by_key(|name| *name != THREADS);
        varying
    }

    /// The cells' labels, without what all have in common.
    pub(super) fn labels(&self, cells: &[&CellFigures]) -> Vec<String> {
        let varying = self.varying(cells);
        let label = |cell: &&CellFigures| {
            let own = cell.settings.iter();
            let own = own.filter(|(name, _)| varying.contains(&name.as_str()));
            let settings: Settings = own.map(|(k, v)| (k.clone(), v.clone())).collect();
            with_settings(&cell.subject, &settings)
        };
        cells.iter().map(label).collect()
    }

    /// The cells' labels with only those settings that do not have their first value, and these in
    /// short: pictures have little room.
    pub(super) fn unusual_labels(&self, cells: &[&CellFigures]) -> Vec<String> {
        let label = |cell: &&CellFigures| {
            let mut label = cell.subject.clone();
            for setting in &self.run.plan.settings {
                let value = cell.settings.get(&setting.name);
                let Some(value) = value.filter(|value| setting.values.first() != Some(*value))
                else {
                    continue;
                };
                let value = value.as_str();
                label.push_str(", ");
                match &*setting.name {
                    THREADS => label.push_str(&threads_word(value)),
                    // A word says by itself what it is of, but for these.
                    name if value.len() < 4 || value.parse::<f64>().is_ok() || value == "false" => {
                        label.push_str(&format!("{name}={value}"));
                    }
                    _ => label.push_str(value),
                }
            }
            label
        };
        cells.iter().map(label).collect()
    }
}

/// `start, n = 10,000`.
pub fn heading(title: &str, count: Option<u64>) -> String {
    match count {
        Some(count) => format!("{title}, n = {}", numbers::count(count)),
        None => title.to_owned(),
    }
}

/// `1 thread`, `2 threads`, or the value where it is no number.
pub fn threads_word(value: &str) -> String {
    match value {
        number if number.parse::<u32>().is_ok() => {
            format!(
                "{number} {}",
                plural(number.parse().unwrap_or(0_u64), "thread")
            )
        }
        other => format!("threads: {other}"),
    }
}

/// Why a subject has no cell of a workload and size, if the plan says so.
pub fn not_run<'a>(
    plan: &'a Plan,
    subject: &str,
    workload: &str,
    count: u64,
) -> Option<&'a NotRun> {
    let size = format!("n={count}");
    let concerns = |not: &&NotRun| concerned(not, subject, workload, &size).is_some();
    plan.not_run.iter().find(concerns)
}
