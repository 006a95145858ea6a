//! What a document says of searches for the highest rate that keeps an objective: figures, a table, sentences; and the
//! picture of latency against offered rate, which open loops at several rates have, too.
//!
//! Not for: how a search is done (`prony_load::find_max`), or what a highest rate is against another's ([`crate::claims`]).

pub mod figures;
mod pictures;
mod sections;
mod tables;

use prony_record::Plan;

use self::sections::{Section, sections};
use crate::Run;
use crate::answer::ranking::{BY_RATE, By, RankedQuestion};
use crate::figures::{CellFigures, measured};
use crate::groups::{Group, groups};
use crate::lists::{distinct, most};
use crate::notes::Notes;
use crate::part::{Context, Part, plain};
use crate::plots::{Picture, Plot, picture};
use crate::programs;
use crate::words::paragraph;

/// Rates of an open workload from which its latencies are drawn against them.
const RATES_MIN: usize = 3;

/// The parts of a document: one for each number of connections of a search, and one for each open workload with enough rates.
pub fn parts(run: &Run, cells: &[CellFigures], notes: &Notes) -> Vec<Part> {
    let context = Context::of(run, cells, notes, ());
    let mut parts: Vec<Part> = Vec::new();
    for section in sections(run, cells) {
        let id = format!("s{}", parts.len() + 1);
        let (group, objective) = (&section.group, section.objective());
        let title = programs::title(&run.plan, &group.workload);
        parts.push(Part {
            title: format!(
                "{title}, {}: highest rate that keeps {objective}",
                group.size()
            ),
            before: vec![tables::before(&section)],
            pictures: drawn(&id, &section),
            tables: vec![plain(tables::of_section(&context, &section))],
            after: Vec::from_iter(tables::after(&section)),
            id,
            ..Part::default()
        });
    }
    parts.extend(of_open_loops(run, cells));
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
        subjects: section
            .cells
            .iter()
            .map(|c| (c.label.clone(), *c))
            .collect(),
        without: None,
    };
    sections(run, cells).into_iter().map(question).collect()
}

fn drawn(id: &str, section: &Section<'_>) -> Vec<Picture> {
    let mut rates = picture(Plot::Rate, id, &section.cells);
    "Highest rate, requests a second".clone_into(&mut rates.title);
    let mut cpu = picture(Plot::Cpu, id, &section.cells);
    cpu.title = format!("{}, in the closed loop before", cpu.title);
    vec![pictures::of_search(id, section), rates, cpu]
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
        let id = format!("l{}", parts.len() + 1);
        let title = programs::title(&run.plan, &group.workload);
        parts.push(Part {
            title: format!("{title}, {}: latency against offered rate", group.size()),
            before: vec![paragraph("search: open loops")],
            pictures: vec![pictures::of_open_loops(&id, &own)],
            id,
            ..Part::default()
        });
    }
    parts
}

/// The picture of a kind of the search with the most figures, the first of equals; `None` where there is no search.
pub fn alone(run: &Run, cells: &[CellFigures], plot: Plot) -> Option<Picture> {
    let best = most(sections(run, cells), |section| measured(&section.cells))?;
    let at = match plot {
        Plot::Latency => 0,
        Plot::Rate => 1,
        Plot::Cpu => 2,
    };
    let mut picture = drawn("alone", &best).swap_remove(at);
    let group = &best.group;
    picture.title = format!("{}: {}, {}", picture.title, group.workload, group.size());
    Some(picture)
}
