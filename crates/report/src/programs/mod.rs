//! Subjects that are programs, run to their end: what a document says of them.
//!
//! `figures` has the numbers of a cell, `across` those that several cells make together, `works` says
//! which workloads and rows belong together; `context` is what sections are made from; `tables`, `growth`, `deadlines` and
//! `pictures` lay them out, `words` puts them into sentences. A document that has only
//! servers has none of this, and one that has both has this after the servers.
//!
//! Not for: the numbers that servers and programs share (rate, ratio, memory), which are in
//! `crate::figures`.

pub mod across;
pub mod context;
mod deadlines;
pub mod figures;
mod growth;
mod pictures;
mod tables;
pub mod words;
mod works;

use prony_record::Plan;

use self::context::{Context, heading};
use crate::Run;
use crate::answer::chart;
use crate::answer::ranking::{BY_RATE, By, RankedQuestion, Ranking};
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::notes::Notes;
use crate::numbers::{COUNT, TIME};
pub use crate::part::{Captioned, Part};
use crate::part::{captioned, named, plain};
use crate::plots::Picture;
use crate::settings::{is_usual, with_settings};
use across::Across;
use figures::DurationFigures;
pub use works::title;
use works::{Family, Kind};

/// Whether the run has programs.
pub fn any(plan: &Plan) -> bool {
    plan.cells.iter().any(|cell| cell.count.is_some())
        || plan.workloads.iter().any(|w| w.program.is_some())
}

/// Who does each work the soonest, with the fewest threads and the usual values of the other settings. What one program alone does answers
/// no question where others are compared.
pub fn questions<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<RankedQuestion<'a>> {
    let plan = &run.plan;
    let own: Vec<&CellFigures> = cells.iter().filter(|c| c.program.is_some()).collect();
    let usual = |c: &&CellFigures| works::is_timed(c) && is_usual(plan, &c.settings);
    let timed: Vec<&CellFigures> = own.iter().copied().filter(usual).collect();
    let first = works::all_threads(plan, &timed).into_iter().next();
    let question = |workload: &str| {
        let count = across::main_count(&timed, workload);
        let is_in = |c: &&CellFigures| {
            c.workload == workload
                && works::count(c) == count
                && Some(works::threads(plan, c)) == first
        };
        let subjects = timed.iter().copied().filter(is_in);
        let title = heading(works::title(plan, workload), count);
        let subjects = subjects.map(|c| (c.subject.clone(), c));
        RankedQuestion::new(title, BY_TIME, subjects.collect())
    };
    let workloads = distinct(timed.iter().map(|c| c.workload.as_str()));
    let mut all: Vec<RankedQuestion<'_>> = workloads.into_iter().map(question).collect();
    if all.iter().any(|of| of.subjects.len() > 1) {
        all.retain(|of| of.subjects.len() > 1);
    }
    all.extend(lengths(run, &own));
    all
}

/// How long the runs of a job take, and who misses the fewest deadlines, all combinations of settings beside each other.
fn lengths<'a>(run: &Run, own: &[&'a CellFigures]) -> Vec<RankedQuestion<'a>> {
    let average = By {
        heading: "average run",
        path: "program.durations.mean_ns",
        ..BY_LENGTH
    };
    let longest = By {
        heading: "longest run",
        path: "program.durations.max_ns",
        ..BY_LENGTH
    };
    let missed = By {
        heading: "deadlines missed",
        path: "program.durations.missed_count",
        unit: COUNT,
        ..BY_LENGTH
    };
    let with_deadline = |c: &&CellFigures| lengths_of(c).is_some_and(|of| of.deadline_ns > 0);
    let question = |(workload, by): (&str, By)| {
        let cells = own.iter().copied().filter(|c| c.workload == workload);
        let label = |c: &'a CellFigures| (with_settings(&c.subject, &c.settings), c);
        let title = format!("{}: {}", title(&run.plan, workload), by.heading);
        RankedQuestion::new(title, by, cells.filter(with_deadline).map(label).collect())
    };
    let workloads = own.iter().filter(|c| with_deadline(c));
    let workloads = distinct(workloads.map(|c| c.workload.as_str()));
    let all = workloads.into_iter();
    all.flat_map(|workload| [average, longest, missed].map(|by| (workload, by)))
        .map(question)
        .collect()
}

const BY_TIME: By = By {
    heading: "time",
    path: "program.elapsed_ns",
    unit: TIME,
    falls: true,
    ..BY_RATE
};
/// Nothing is claimed of lengths of runs.
const BY_LENGTH: By = By {
    ratio: None,
    ..BY_TIME
};

fn lengths_of(cell: &CellFigures) -> Option<&DurationFigures> {
    cell.program.as_ref()?.durations.as_ref()
}

/// The parts of the document, in order.
pub fn parts(run: &Run, cells: &[CellFigures], across: &Across, notes: &Notes) -> Vec<Part> {
    let cells = cells.iter().filter(|c| c.program.is_some()).collect();
    let context = Context {
        run,
        notes,
        cells,
        across,
    };
    let families = works::families(&run.plan, &context.cells);
    let mut parts: Vec<Part> = context.overview(&families).into_iter().collect();
    parts.extend(families.iter().map(|family| match family.kind {
        Kind::Timed => context.times(family),
        Kind::Lengths => context.lengths(family),
        Kind::Sweep => context.sweep(family),
    }));
    parts.extend(context.effects());
    parts.extend(context.efficiency());
    named(parts, 'p')
}

impl<'a> Context<'a> {
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
            let table = self.times_table(&cells, false);
            part.tables.push(captioned(caption, table));
            if at == 0 {
                part.title = title;
                part.pictures.extend(self.rates_picture(&cells));
            }
        }
        part.before = self.asked(family, &family.workloads());
        part
    }

    /// Rates with all settings, the highest first.
    fn rates_picture(&self, cells: &[&'a CellFigures]) -> Option<Picture> {
        let label =
            |cell: &&'a CellFigures| (self.unusual_label(&cell.subject, &cell.settings), *cell);
        let title = "Rate a second (settings have their first value unless named)".to_owned();
        let heading = "a second";
        let by = By { heading, ..BY_RATE };
        let question = RankedQuestion::new(title, by, cells.iter().map(label).collect());
        Some(chart::picture(&Ranking::from_question(&question)?))
    }
}
