//! What all sections on programs are made from, and what they call things.

use prony_base::plural;

use super::across::Across;
use super::works::{self, Family, Kind};
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::notes::Notes;
use crate::settings::{Settings, THREADS, with_settings};
use crate::words::paragraph;
use crate::{Run, numbers};

/// What the sections are made from.
pub struct Context<'a> {
    /// The run.
    pub run: &'a Run,
    /// Footnotes.
    pub notes: &'a Notes,
    /// The figures of programs' cells, in the plan's order.
    pub cells: Vec<&'a CellFigures>,
    /// Figures of several cells.
    pub across: &'a Across,
}

impl<'a> Context<'a> {
    /// The cells of one workload and size.
    pub(super) fn group(&self, workload: &str, count: Option<u64>) -> Vec<&'a CellFigures> {
        let cells = self.cells.iter().copied();
        let own = cells.filter(|c| c.workload == workload && works::count(c) == count);
        own.collect()
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
            (works::count(c), threads)
        };
        cells.sort_by(|a, b| {
            let leader = b.standing().total_cmp(&a.standing());
            amount(a).cmp(&amount(b)).then(leader)
        });
        cells
    }

    /// What the programs were asked to do.
    pub(super) fn asked(&self, family: &Family<'_>, workloads: &[&str]) -> Vec<String> {
        let mut lines = Vec::new();
        // Where a title stands above the tables, the name of the work tells nothing more.
        let plan = &self.run.plan;
        let named = |name: &&str| works::title(plan, name) != *name || *name == family.work;
        if !family.args.is_empty() {
            let args = family.args.join(" ");
            lines.push(format!(
                "The work is {}, with the arguments {args}.",
                family.work
            ));
        } else if family.kind != Kind::Sweep && !workloads.iter().all(named) {
            lines.push(format!("The work is {}.", family.work));
        }
        let own = self
            .cells
            .iter()
            .filter(|c| workloads.contains(&c.workload.as_str()));
        let mut further = own.filter_map(|c| c.program.as_ref());
        if further.any(|p| p.lines_left_out > 0) {
            lines.push(paragraph("programs: lines"));
        }
        lines
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

    /// A subject with only those of its settings that do not have their first value, and these in short. What lacks a setting has its first value.
    pub(super) fn unusual_label(&self, subject: &str, settings: &Settings) -> String {
        let planned = self.run.plan.settings.iter();
        let named = planned.filter_map(|setting| {
            let value = settings.get(&setting.name)?;
            let name = &setting.name;
            (setting.values.first() != Some(value)).then(|| match &**name {
                THREADS => threads_word(value),
                // A word says by itself what it is of, but for these.
                _ if value.len() < 4 || value.parse::<f64>().is_ok() || value == "false" => {
                    format!("{name}={value}")
                }
                _ => value.clone(),
            })
        });
        let words: Vec<String> = std::iter::once(subject.to_owned()).chain(named).collect();
        words.join(", ")
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
