//! What a document says of searches for the highest rate that keeps an objective: figures, a table, sentences; and the
//! picture of latency against offered rate, which open loops at several rates have, too.
//!
//! Not for: how a search is done (`prony_load::find_max`), or what a highest rate is against another's ([`crate::claims`]).

pub mod figures;
mod pictures;
mod sections;
mod tables;

use prony_record::Plan;

pub use self::pictures::curve;
use self::sections::{Section, sections};
use crate::Run;
use crate::answer::ranking::{BY_RATE, By, RankedQuestion};
use crate::figures::{CellFigures, labelled};
use crate::groups::{Group, groups};
use crate::lists::distinct;
use crate::notes::Notes;
use crate::part::{Context, Part, named, plain};
use crate::plots::Picture;
use crate::plots::cells::cpu;
use crate::programs;
use crate::words::paragraph;

/// Rates of an open workload from which its latencies are drawn against them.
const RATES_MIN: usize = 3;

/// The parts of a document: one for each number of connections of a search, and one for each open workload with enough rates.
pub fn parts(run: &Run, cells: &[CellFigures], notes: &Notes) -> Vec<Part> {
    let context = Context::of(run, cells, notes, ());
    let mut parts: Vec<Part> = Vec::new();
    for section in sections(run, cells) {
        let labelled = labelled(&section.cells);
        let cpu = cpu(&labelled);
        let cpu = Picture {
            title: format!("{}, in the closed loop before", cpu.title),
            ..cpu
        };
        let (group, objective) = (&section.group, section.objective());
        let title = programs::title(&run.plan, &group.workload);
        parts.push(Part {
            title: format!(
                "{title}, {}: highest rate that keeps {objective}",
                group.size()
            ),
            before: vec![tables::before(&section)],
            pictures: curve(&labelled).into_iter().chain([cpu]).collect(),
            tables: vec![plain(tables::of_section(&context, &section))],
            after: Vec::from_iter(tables::after(&section)),
            ..Part::default()
        });
    }
    let mut parts = named(parts, 's');
    parts.extend(named(of_open_loops(run, cells), 'l'));
    parts
}

/// Whether the plan looks for a highest rate.
pub fn any(plan: &Plan) -> bool {
    plan.workloads.iter().any(|w| w.find_max.is_some())
}

/// Who keeps an objective up to the highest rate.
pub fn questions<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<RankedQuestion<'a>> {
    let question = |section: Section<'a>| RankedQuestion {
        title: format!(
            "{}, {}, {}",
            section.group.workload,
            section.group.size(),
            section.objective()
        ),
        by: By {
            heading: "highest requests/s",
            ..BY_RATE
        },
        subjects: labelled(&section.cells),
        without: None,
    };
    sections(run, cells).into_iter().map(question).collect()
}

/// Latency against rate of open workloads.
fn of_open_loops(run: &Run, cells: &[CellFigures]) -> Vec<Part> {
    let mut parts = Vec::new();
    let of_size = |group: Group| Group {
        asked_per_s: None,
        ..group
    };
    let asked = groups(cells)
        .into_iter()
        // The latency of users' requests is that of their steps, few of which start when a user arrives.
        .filter(|of| of.asked_per_s.is_some() && !of.of_users);
    for group in distinct(asked.map(of_size)) {
        let alike = |c: &&CellFigures| c.is_combined() && of_size(Group::of(c)) == group;
        let own: Vec<&CellFigures> = cells.iter().filter(alike).collect();
        let mut rates: Vec<f64> = own.iter().filter_map(|c| c.asked_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        if rates.len() < RATES_MIN {
            continue;
        }
        let title = programs::title(&run.plan, &group.workload);
        parts.push(Part {
            title: format!("{title}, {}: latency against offered rate", group.size()),
            before: vec![paragraph("search: open loops")],
            pictures: vec![pictures::of_open_loops(&own)],
            ..Part::default()
        });
    }
    parts
}
