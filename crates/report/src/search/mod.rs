//! What a document says of searches for the highest rate that keeps an objective: figures, a table, sentences; and the
//! picture of latency against offered rate, which open loops at several rates have, too.
//!
//! Not for: how a search is done (`prony_load::find_max`), or what a highest rate is against another's ([`crate::claims`]).

pub mod figures;
mod pictures;

use figures::SearchFigures;
use prony_record::{Plan, PlannedWorkload};

pub use self::pictures::curve;
use crate::answer::ranking::{BY_RATE, By, RankedQuestion};
use crate::figure::spread_word;
use crate::figures::{CellFigures, labelled};
use crate::grid::{Grid, verdict};
use crate::groups::{Group, groups};
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers::{self, COUNT, RATE, TIME};
use crate::part::{Part, column, detail, named, plain, ratio_word, verdict_column};
use crate::plots::Picture;
use crate::plots::cells::cpu;
use crate::sent::sent;
use crate::servers::{name, remark};
use crate::table::{self, ERRORS, Entry, ON_TITLE, Shown, Table};
use crate::words::paragraph;
use crate::{Run, programs};

/// The cells of one workload and number of connections that look for a highest rate, the highest first.
struct Section<'a> {
    workload: &'a PlannedWorkload,
    /// What its cells have in common.
    group: Group,
    /// They themselves; at least one.
    cells: Vec<&'a CellFigures>,
    /// The objective in words: `p99 < 10 ms`.
    objective: String,
}

/// All of them, in the order of the plan.
fn sections<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<Section<'a>> {
    let searched = cells.iter().filter(|cell| cell.search.is_some());
    let section = |group: Group| {
        let own = searched
            .clone()
            .filter(|cell| Group::from_cell(cell) == group);
        let mut cells: Vec<&CellFigures> = own.collect();
        let rate = |cell: &CellFigures| Metric::RATE.value(cell).unwrap_or(-1.0);
        cells.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        let mut workloads = run.plan.workloads.iter();
        Some(Section {
            workload: workloads.find(|w| w.name == group.workload)?,
            objective: cells.first()?.search.as_ref()?.objective_words(),
            group,
            cells,
        })
    };
    let groups = distinct(searched.clone().map(Group::from_cell));
    groups.into_iter().filter_map(section).collect()
}

/// Rates of an open workload from which its latencies are drawn against them.
const RATES_MIN: usize = 3;

/// The parts of a document: one for each number of connections of a search, and one for each open workload with enough rates.
pub fn parts(run: &Run, cells: &[CellFigures], notes: &Notes) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for section in sections(run, cells) {
        let labelled = labelled(&section.cells);
        let cpu = cpu(&labelled);
        let cpu = Picture {
            title: format!("{}, in the closed loop before", cpu.title),
            ..cpu
        };
        let (group, objective) = (&section.group, &section.objective);
        let title = programs::title(&run.plan, &group.workload);
        parts.push(Part {
            title: format!(
                "{title}, {}: highest rate that keeps {objective}",
                group.size()
            ),
            before: vec![before(&section)],
            pictures: curve(&labelled).into_iter().chain([cpu]).collect(),
            tables: vec![plain(table(run, notes, &section))],
            after: Vec::from_iter(after(&section)),
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
    let heading = "highest requests/s";
    let by = By { heading, ..BY_RATE };
    let question = |section: Section<'a>| {
        let (group, objective) = (&section.group, &section.objective);
        let title = format!("{}, {}, {objective}", group.workload, group.size());
        RankedQuestion::new(title, by, labelled(&section.cells))
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
        let alike = |c: &&CellFigures| c.is_combined() && of_size(Group::from_cell(c)) == group;
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

const COLUMNS: [Shown; 5] = [
    Shown::new("p50 there", "search.p50_ns", TIME),
    Shown::new("closed loop, requests/s", "search.closed_loop_per_s", RATE),
    Metric::CPU.shown,
    ERRORS,
    Shown::new("steps", "search.steps", COUNT).detail(),
];

/// A row for each cell, the highest rate first.
fn table(run: &Run, notes: &Notes, section: &Section<'_>) -> Table {
    let word = spread_word(section.cells.iter().filter_map(|cell| cell.rate_per_s));
    let reference = run.plan.reference.as_ref();
    let ratio = reference.map_or_else(|| "ratio".to_owned(), |id| format!("ratio to {id}"));
    let grid = Grid::new()
        .head(column("subject", "", false), |c| {
            notes.on(c, ON_TITLE, name(c))
        })
        .figure(column("highest requests/s", word, true), |c| {
            highest(notes, c)
        })
        .figure(
            column(ratio, ratio_word(&section.cells), true),
            table::ratio,
        )
        .shown(notes, COLUMNS)
        .figure(detail(column("steps kept", "", true)), |c| {
            let curve = c.search.iter().flat_map(|search| &search.curve);
            let kept: usize = curve.map(|point| point.kept).sum();
            Entry::text(numbers::count(kept as u64))
        })
        .head(detail(verdict_column()), verdict);
    let has_figures = |c: &CellFigures| c.search.is_some() && c.is_measured();
    let cells = section.cells.iter();
    let rows = cells.map(|c| grid.row_if(has_figures(c), c)).collect();
    grid.table(rows)
}

fn highest(notes: &Notes, cell: &CellFigures) -> Entry {
    let entry = notes.entry(cell, &Metric::RATE.shown);
    let is_nowhere = |search: &SearchFigures| search.blocks_nowhere > 0;
    let text = match (
        cell.rate_per_s,
        cell.search.as_ref().is_some_and(is_nowhere),
    ) {
        (Some(rate), _) => {
            return Entry {
                // One search has an interval of its own.
                below: RATE.ends(rate.low, rate.high),
                remark: remark(cell),
                ..entry
            };
        }
        (None, true) => "none found".to_owned(),
        (None, false) => table::absence(cell).to_owned(),
    };
    Entry { text, ..entry }
}

/// What a reader must know before the table.
fn before(section: &Section<'_>) -> String {
    let planned = section.workload.find_max.as_ref();
    let step = numbers::duration(planned.map_or(0, |of| of.step_ns));
    let how = paragraph("search: steps").replace("{step}", &step);
    format!("{}. {how}", sent(section.workload, false))
}

/// What stands below the table.
fn after(section: &Section<'_>) -> Option<String> {
    let mut rates = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let is_one = rates.any(|rate| rate.ends().is_none());
    is_one.then(|| paragraph("search: one"))
}
