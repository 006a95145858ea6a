//! Subjects that are programs, run to their end: what a document says of them.
//!
//! `figures` has the numbers of a cell, `across` those that several cells make together, `works` says
//! which workloads and rows belong together; `overview`, `tables`, `growth`, `deadlines` and
//! `pictures` lay them out, `words` and `answer` put them into sentences. A document that has only
//! servers has none of this, and one that has both has this after the servers.
//!
//! Not for: the numbers that servers and programs share (rate, ratio, memory), which are in
//! `crate::figures`.

pub mod across;
pub mod answer;
mod deadlines;
pub mod figures;
mod growth;
mod overview;
mod pictures;
mod tables;
pub mod words;
mod works;

use std::collections::BTreeMap;

use prony_base::plural;
use prony_record::{NotRun, Plan};

use crate::Run;
use crate::figures::CellFigures;
use crate::notes::Notes;
use crate::numbers;
use crate::part::plain;
pub use crate::part::{Captioned, Part};
use crate::plots::Picture;
use across::{Across, THREADS, distinct, main_count};
pub use works::title;
use works::{Family, Kind};

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
}

/// Values of settings by name.
pub type Settings = BTreeMap<String, String>;

/// Whether the run has programs.
pub fn any(plan: &Plan) -> bool {
    plan.cells.iter().any(|cell| cell.count.is_some())
        || plan.workloads.iter().any(|w| w.program.is_some())
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
    let mut picture = context.rates_picture(&own);
    picture.id = "rate-alone".to_owned();
    picture.title = format!(
        "{}: {}",
        picture.title,
        heading(works::title(&run.plan, workload), count)
    );
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
            cells: own,
            across,
            notes,
            places: places.map(|(at, cell)| (&*cell.cell, at)).collect(),
        }
    }

    /// The sections, in order.
    pub fn parts(&self) -> Vec<Part> {
        let families = works::families(&self.run.plan, &self.cells);
        let mut parts: Vec<Part> = self.overview(&families).into_iter().collect();
        parts.extend(families.iter().map(|family| match family.kind {
            Kind::Timed => self.times(family),
            Kind::Lengths => self.lengths(family),
            Kind::Sweep => self.sweep(family),
        }));
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

    /// How long a work took, a table for each workload.
    fn times(&self, family: &Family<'a>) -> Part {
        let mut part = Part::default();
        let plan = &self.run.plan;
        for (at, (workload, count)) in family.members.iter().enumerate() {
            let cells = self.group(workload, Some(*count));
            let title = heading(works::title(plan, workload), Some(*count));
            let caption = match at {
                0 => String::new(),
                _ if title == part.title => "The same, measured again".to_owned(),
                _ => title.clone(),
            };
            part.tables.push(Captioned {
                caption,
                table: self.times_table(&cells, false),
            });
            if at == 0 {
                part.title = title;
                part.pictures.push(self.rates_picture(&cells));
            }
        }
        part.before = self.asked(family, &family.workloads());
        part.after = self.absent(&family.members);
        part
    }

    fn rates_picture(&self, cells: &[&'a CellFigures]) -> Picture {
        let cells = self.arranged(cells);
        pictures::rates(&cells, &self.unusual_labels(&cells))
    }

    /// The cells by number of threads, then with usual values of the settings first, then by subject.
    fn arranged(&self, cells: &[&'a CellFigures]) -> Vec<&'a CellFigures> {
        let plan = &self.run.plan;
        let mut cells = cells.to_vec();
        cells.sort_by_cached_key(|c| {
            let threads = works::threads(plan, c).parse().unwrap_or(u64::MAX);
            let subject = plan.subjects.iter().position(|s| s.id == c.subject);
            (threads, works::unusual(plan, &c.settings), subject)
        });
        cells
    }

    /// What the programs were asked to do.
    fn asked(&self, family: &Family<'_>, workloads: &[&str]) -> Vec<String> {
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
    fn absent(&self, members: &[(&str, u64)]) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        for not in &self.run.plan.not_run {
            let subjects = self.run.plan.subjects.iter();
            let mut rests = subjects.filter_map(|subject| {
                let of = |(workload, count): &(&str, u64)| {
                    concerned(not, &subject.id, workload, Some(*count))
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
            if !said.contains(&sentence) {
                said.push(sentence);
            }
        }
        if !said.is_empty() {
            let list = said.join(" ");
            said = vec![format!("Not in the table: {list}")];
        }
        said
    }

    /// Names of the settings that differ among `cells`: the threads, and the others in the plan's
    /// order.
    fn varying(&self, cells: &[&CellFigures]) -> Vec<&'a str> {
        let names = self.run.plan.settings.iter().map(|s| s.name.as_str());
        let differs = |name: &&str| match *name {
            THREADS => works::all_threads(&self.run.plan, cells).len() > 1,
            name => distinct(cells, |c| c.settings.get(name)).len() > 1,
        };
        let mut varying: Vec<&str> = names.filter(differs).collect();
        varying.sort_by_key(|name| *name != THREADS);
        varying
    }

    /// The cells' labels, without what all have in common.
    fn labels(&self, cells: &[&CellFigures]) -> Vec<String> {
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
    fn unusual_labels(&self, cells: &[&CellFigures]) -> Vec<String> {
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

/// Whether the time of its work is what is measured, rather than the lengths of runs.
pub fn is_timed(cell: &CellFigures) -> bool {
    let program = cell.program.as_ref();
    program.is_some_and(|program| program.durations.is_none())
}

/// `start, n = 10,000`.
fn heading(title: &str, count: Option<u64>) -> String {
    match count {
        Some(count) => format!("{title}, n = {}", numbers::count(count)),
        None => title.to_owned(),
    }
}

/// `1 thread`, `2 threads`, or the value where it is no number.
fn threads_word(value: &str) -> String {
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
