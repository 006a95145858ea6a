//! Subjects that are programs, run to their end: what a document says of them.
//!
//! `figures` has the numbers of a cell, `across` those that several cells make together; `tables`
//! and `pictures` lay them out, `words` and `answer` put them into sentences. A document that has only
//! servers has none of this, and one that has both has this after the servers.
//!
//! Not for: the numbers that servers and programs share (rate, ratio, memory), which are in
//! `crate::figures`.

pub mod across;
pub mod answer;
pub mod figures;
mod pictures;
mod tables;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use prony_record::{NotRun, Plan};
use serde::Serialize;

use crate::Run;
use crate::figures::{CellFigures, name_of};
use crate::notes::Notes;
use crate::numbers;
use crate::plots::Picture;
use crate::table::Table;
use across::{Across, THREADS, distinct, main_count, without};

/// A section of the document.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    /// Its name in addresses.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What a reader must know before the tables.
    pub before: Vec<String>,
    /// Pictures.
    pub pictures: Vec<Picture>,
    /// Tables.
    pub tables: Vec<Captioned>,
    /// What stands below them.
    pub after: Vec<String>,
}

/// A table with its caption.
#[derive(Clone, Debug, Serialize)]
pub struct Captioned {
    /// What it shows; empty where the heading says it.
    pub caption: String,
    /// The table.
    pub table: Table,
}

/// What all sections are made from.
pub struct Context<'a> {
    /// The run.
    pub run: &'a Run,
    /// The figures of programs' cells, in the plan's order.
    pub cells: Vec<&'a CellFigures>,
    /// Figures of several cells.
    pub across: &'a Across,
    /// Footnotes.
    pub notes: &'a Notes,
    /// Places of the cells in `summary.json`.
    places: BTreeMap<&'a str, usize>,
    /// Settings that concern every workload whose time is measured.
    common: BTreeSet<&'a str>,
}

/// Values of settings by name.
pub type Settings = BTreeMap<String, String>;

/// Whether the run has programs.
pub fn any(plan: &Plan) -> bool {
    plan.cells.iter().any(|cell| cell.count.is_some())
        || plan.workloads.iter().any(|w| w.program.is_some())
}

/// Whether it has nothing else.
pub fn only(plan: &Plan) -> bool {
    any(plan) && plan.workloads.iter().all(|w| w.program.is_some())
}

/// The picture of the rates of the workload and size with the most figures, the first of equals.
pub fn rates(run: &Run, cells: &[CellFigures]) -> Option<Picture> {
    let (across, notes) = (Across::default(), Notes::default());
    let context = Context::new(run, cells, &across, &notes);
    let keys = context.keys().into_iter();
    let groups = keys.map(|key| (key, context.group(key.0, key.1)));
    let measured = |cells: &[&CellFigures]| cells.iter().filter(|c| c.rate_per_s.is_some()).count();
    let best = groups.reduce(|best, other| {
        if measured(&other.1) > measured(&best.1) {
            other
        } else {
            best
        }
    });
    let ((workload, count), own) = best?;
    let mut picture = pictures::rates(&own, &context.unusual_labels(&own));
    picture.id = "rate-alone".to_owned();
    picture.title = format!("{}: {}", picture.title, heading(workload, count));
    Some(picture)
}

impl<'a> Context<'a> {
    /// Of the `cells` those that are programs'.
    pub fn new(
        run: &'a Run,
        cells: &'a [CellFigures],
        across: &'a Across,
        notes: &'a Notes,
    ) -> Context<'a> {
        let own: Vec<&CellFigures> = cells.iter().filter(|c| c.program.is_some()).collect();
        let places = cells.iter().enumerate();
        Context {
            run,
            common: common_settings(&own),
            cells: own,
            across,
            notes,
            places: places.map(|(at, cell)| (&*cell.cell, at)).collect(),
        }
    }

    /// The sections, in order.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.overview().into_iter().collect();
        parts.extend(self.groups());
        parts.extend(self.scaling());
        parts.extend(self.effects());
        parts.extend(self.efficiency());
        for (at, part) in parts.iter_mut().enumerate() {
            part.id = format!("p{}", at + 1);
            for (number, picture) in part.pictures.iter_mut().enumerate() {
                picture.id = format!("{}-{}", part.id, number + 1);
            }
        }
        parts
    }

    /// Where a figure of a cell is in `summary.json`.
    fn path(&self, cell: &CellFigures, figure: &str) -> String {
        let place = self.places.get(&*cell.cell).copied().unwrap_or(0);
        format!("/cells/{place}/{}", figure.replace('.', "/"))
    }

    /// Name of a subject.
    fn name(&self, subject: &'a str) -> &'a str {
        name_of(&self.run.plan, subject)
    }

    /// The workloads whose time is measured, at the size that tables over several of them show.
    fn timed(&self) -> Vec<(&'a str, Option<u64>)> {
        let timed: Vec<&CellFigures> = self.cells.iter().copied().filter(|c| is_timed(c)).collect();
        let workloads = distinct(&timed, |c| c.workload.as_str());
        workloads
            .into_iter()
            .map(|w| (w, main_count(&timed, w)))
            .collect()
    }

    /// The cells of one workload and size.
    fn group(&self, workload: &str, count: Option<u64>) -> Vec<&'a CellFigures> {
        let own = |c: &&&CellFigures| {
            c.workload == workload && c.program.as_ref().map(|p| p.count) == count
        };
        self.cells.iter().filter(own).copied().collect()
    }

    /// The workloads and sizes, in the plan's order.
    fn keys(&self) -> Vec<(&'a str, Option<u64>)> {
        distinct(&self.cells, |c| {
            (c.workload.as_str(), c.program.as_ref().map(|p| p.count))
        })
    }

    /// A table for each workload and size, as the plan has them.
    fn groups(&self) -> Vec<Part> {
        let groups = self.keys().into_iter();
        groups
            .map(|(workload, count)| {
                let cells = self.group(workload, count);
                if cells.iter().any(|cell| !is_timed(cell)) {
                    self.lengths(workload, count, &cells)
                } else {
                    self.times(workload, count, &cells)
                }
            })
            .collect()
    }

    /// How long the work took.
    fn times(&self, workload: &str, count: Option<u64>, cells: &[&CellFigures]) -> Part {
        Part {
            title: heading(workload, count),
            before: self.asked(workload, cells),
            pictures: vec![pictures::rates(cells, &self.unusual_labels(cells))],
            tables: vec![plain(self.times_table(cells))],
            after: self.absent(workload, count),
            ..Part::default()
        }
    }

    /// How long the runs of a job were.
    fn lengths(&self, workload: &str, count: Option<u64>, cells: &[&'a CellFigures]) -> Part {
        let mut tables = vec![plain(self.lengths_table(cells))];
        let (missed, words) = self.missed_table(cells);
        tables.extend(missed);
        let mut after = words;
        after.extend(self.absent(workload, count));
        Part {
            title: heading(workload, count),
            before: self.asked(workload, cells),
            pictures: pictures::histograms(cells, &self.labels(cells)),
            tables,
            after,
            ..Part::default()
        }
    }

    /// What the programs were asked to do.
    fn asked(&self, workload: &str, cells: &[&CellFigures]) -> Vec<String> {
        let planned = self.run.plan.workloads.iter().find(|w| w.name == workload);
        let program = planned.and_then(|w| w.program.as_ref());
        let mut said = Vec::new();
        if let Some(program) = program.filter(|p| !p.args.is_empty() || p.work != workload) {
            let args = program.args.join(" ");
            let args = if args.is_empty() {
                String::new()
            } else {
                format!(", with the arguments {args}")
            };
            said.push(format!("The work is {}{args}.", program.work));
        }
        let further = cells.iter().filter_map(|c| c.program.as_ref());
        if further.map(|p| p.lines_left_out).max().unwrap_or(0) > 0 {
            said.push(
                "Some programs printed more than one line of figures: only the first is shown here, and \
                 memory, wall and CPU time are of all that such a program did."
                    .to_owned(),
            );
        }
        said
    }

    /// Who is not in the table, and why.
    fn absent(&self, workload: &str, count: Option<u64>) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        for not in &self.run.plan.not_run {
            let subjects = self.run.plan.subjects.iter();
            let mut rests = subjects.filter_map(|subject| {
                let rest = concerned(not, &subject.id, workload, count)?;
                Some((self.name(&subject.id), rest))
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
            said.push(format!("{name}{rest}: {reason}."));
        }
        if !said.is_empty() {
            let list = said.join(" ");
            said = vec![format!("Not in the table: {list}")];
        }
        said
    }

    /// Names of the settings that differ among `cells`, in the plan's order.
    fn varying(&self, cells: &[&CellFigures]) -> Vec<&'a str> {
        let names = self.run.plan.settings.iter().map(|s| s.name.as_str());
        let differs = |name: &&str| distinct(cells, |c| c.settings.get(*name)).len() > 1;
        names.filter(differs).collect()
    }

    /// The cells' labels, without what all have in common.
    fn labels(&self, cells: &[&CellFigures]) -> Vec<String> {
        let varying = self.varying(cells);
        let label = |cell: &&CellFigures| {
            let own = cell.settings.iter();
            let own = own.filter(|(name, _)| varying.contains(&name.as_str()));
            let settings: Settings = own.map(|(k, v)| (k.clone(), v.clone())).collect();
            with_settings(name_of(&self.run.plan, &cell.subject), &settings)
        };
        cells.iter().map(label).collect()
    }

    /// The cells' labels with only those settings that do not have their first value.
    fn unusual_labels(&self, cells: &[&CellFigures]) -> Vec<String> {
        let label = |cell: &&CellFigures| {
            let mut settings = cell.settings.clone();
            settings.retain(|name, value| {
                figures::first_value(&self.run.plan, name).is_none_or(|first| first != value)
            });
            with_settings(name_of(&self.run.plan, &cell.subject), &settings)
        };
        cells.iter().map(label).collect()
    }

    /// Settings of a row of a table over several workloads, but for the threads.
    fn common_of(&self, settings: &Settings) -> Settings {
        let mut own = without(settings, THREADS);
        own.retain(|name, _| self.common.contains(&name.as_str()));
        own
    }

    /// Settings of a column: those that only some workloads have.
    fn special_of(&self, settings: &Settings) -> Settings {
        let mut own = without(settings, THREADS);
        own.retain(|name, _| !self.common.contains(&name.as_str()));
        own
    }
}

/// Whether the time of its work is what is measured, rather than the lengths of runs.
pub fn is_timed(cell: &CellFigures) -> bool {
    let program = cell.program.as_ref();
    program.is_some_and(|program| program.durations.is_none())
}

/// Names of the settings that some cell of every timed workload has.
fn common_settings<'a>(cells: &[&'a CellFigures]) -> BTreeSet<&'a str> {
    let mut by_workload: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cell in cells.iter().filter(|c| is_timed(c)) {
        let names = by_workload.entry(&cell.workload).or_default();
        names.extend(cell.settings.keys().map(String::as_str));
    }
    let common = by_workload.into_values().reduce(|a, b| &a & &b);
    common.unwrap_or_default()
}

fn plain(table: Table) -> Captioned {
    Captioned {
        caption: String::new(),
        table,
    }
}

/// `start, n = 10,000`.
fn heading(workload: &str, count: Option<u64>) -> String {
    match count {
        Some(count) => format!("{workload}, n = {}", numbers::count(count)),
        None => workload.to_owned(),
    }
}

/// `1 thread`, `2 threads`, or the value where it is no number.
fn threads_word(value: &str) -> String {
    match value {
        "1" => "1 thread".to_owned(),
        number if number.parse::<u32>().is_ok() => format!("{number} threads"),
        other => format!("threads: {other}"),
    }
}

/// `prony, allocator=mimalloc`.
fn with_settings(name: &str, settings: &Settings) -> String {
    let mut label = name.to_owned();
    for (setting, value) in settings {
        label.push_str(&format!(", {setting}={value}"));
    }
    label
}

/// Why a subject has no cell of a workload and size, if the plan says so.
fn not_run<'a>(
    plan: &'a Plan,
    subject: &str,
    workload: &str,
    count: Option<u64>,
) -> Option<&'a NotRun> {
    let concerns = |not: &&NotRun| concerned(not, subject, workload, count).is_some();
    plan.not_run.iter().find(concerns)
}

/// Whether something was not run that concerns a subject in a workload of a size: the subject
/// as a whole, its workload, or a cell, of which the settings are given.
fn concerned(not: &NotRun, subject: &str, workload: &str, count: Option<u64>) -> Option<String> {
    if not.what == subject {
        return Some(String::new());
    }
    let rest = not.what.strip_prefix(subject)?.strip_prefix(' ')?;
    let rest = rest.strip_prefix(workload)?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let (sizes, settings): (Vec<&str>, Vec<&str>) = rest
        .split_whitespace()
        .partition(|word| word.starts_with("n="));
    let own = count.map(|count| format!("n={count}"));
    let fits = sizes.iter().all(|size| Some(*size) == own.as_deref());
    fits.then(|| settings.join(" "))
}
