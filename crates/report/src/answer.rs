//! The short answer: a few sentences that the data allow, and those that they forbid.

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::{Code, Verdict};
use prony_stats::{BLOCKS_INTERVAL_MIN, median};
use serde::Serialize;

use crate::Run;
use crate::clients::{self, steps::Step};
use crate::figures::CellFigures;
use crate::numbers;
use crate::open;
use crate::programs::answer::Point;
use crate::programs::{self, across::Across};
use crate::rows;
use crate::table;

/// Names in a sentence before it says how many more there are.
const NAMES_MAX: usize = 12;

/// The short answer in the order in which it is read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// What was done, and what is said of servers, a paragraph each.
    pub before: Vec<String>,
    /// What is said of programs, of tables with rows and of clients.
    pub points: Vec<Point>,
    /// What speaks against some of it.
    pub after: Vec<String>,
}

/// The answer that the data allow.
pub fn answer(run: &Run, cells: &[CellFigures], across: Option<&Across>, steps: &[Step]) -> Answer {
    let mut before = of_servers(run, cells);
    let programs: Vec<&CellFigures> = cells.iter().filter(|c| c.program.is_some()).collect();
    let mut points = Vec::new();
    let said = across.and_then(|across| programs::answer::points(run, &programs, across));
    if let Some((claim, of_programs)) = said {
        before.push(claim);
        points = of_programs;
    }
    points.extend(rows::words::points(run, cells));
    if let Some((claim, of_clients)) = clients::answer::points(run, cells, steps) {
        before.push(claim);
        points.extend(of_clients);
    }
    let mut after = Vec::new();
    if before.is_empty() {
        before.push(nothing(run, cells));
    } else {
        // Where lengths of runs are measured, the rate is no figure.
        let lengths = |c: &&CellFigures| c.program.is_some() && !programs::is_timed(c);
        let measured = cells
            .iter()
            .filter(|c| c.rate_per_s.is_some() && !lengths(c));
        after.extend(resolution(&measured.collect::<Vec<_>>()));
        after.extend(reservations(cells));
    }
    Answer {
        before,
        points,
        after,
    }
}

/// The sentences on servers; none where no cell of one was measured.
fn of_servers(run: &Run, cells: &[CellFigures]) -> Vec<String> {
    let servers: Vec<&CellFigures> = cells.iter().filter(|c| c.is_server()).collect();
    let measured = servers.iter().copied().filter(|c| c.rate_per_s.is_some());
    let measured: Vec<&CellFigures> = measured.collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let mut said = vec![claim(run, servers.len(), &measured)];
    for group in groups(cells) {
        let own = measured.iter().copied().filter(|c| group.has(c));
        said.extend(of_group(&group, &own.collect::<Vec<_>>()));
    }
    said
}

/// What the cells of one table have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the workload.
    pub workload: String,
    /// Connections.
    pub connections: u32,
    /// Requests that are to start a second, where a rate is said.
    pub asked_per_s: Option<f64>,
}

impl Group {
    fn of(cell: &CellFigures) -> Group {
        Group {
            workload: cell.workload.clone(),
            connections: cell.connections,
            asked_per_s: cell.asked_per_s,
        }
    }

    /// Whether `cell` is one of a server in all combinations, of this workload and size.
    pub fn has(&self, cell: &CellFigures) -> bool {
        cell.is_combined() && *self == Group::of(cell)
    }

    /// Its cells.
    pub fn cells<'a>(&self, cells: &'a [CellFigures]) -> Vec<&'a CellFigures> {
        cells.iter().filter(|cell| self.has(cell)).collect()
    }

    /// Its size in words: `100 connections`, `100 connections at 1.00 k requests/s`.
    pub fn size(&self) -> String {
        let connections = numbers::counted(u64::from(self.connections), "connection");
        match self.asked_per_s {
            Some(rate) => format!("{connections} at {} requests/s", numbers::rate(rate)),
            None => connections,
        }
    }
}

/// The groups of servers' cells, in the order of the cells.
pub fn groups(cells: &[CellFigures]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for group in cells.iter().filter(|c| c.is_combined()).map(Group::of) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

fn nothing(run: &Run, cells: &[CellFigures]) -> String {
    let failed = cells.iter().filter(|c| !c.trials.failed.is_empty()).count();
    let why = if failed > 0 {
        format!(
            "all {} that were tried failed, and say why below",
            cells_word(failed)
        )
    } else if run.plan.not_run.is_empty() && cells.is_empty() {
        "the plan holds no cell".to_owned()
    } else if cells.is_empty() {
        "this machine can run none of what the experiment names".to_owned()
    } else {
        "no trial has ended yet".to_owned()
    };
    format!("Nothing was measured: {why}.")
}

fn cells_word(count: usize) -> String {
    match count {
        0 => "no cell".to_owned(),
        _ => counted(count, "cell"),
    }
}

/// How much was done, and what may follow from it.
fn claim(run: &Run, cells: usize, measured: &[&CellFigures]) -> String {
    let blocks = measured
        .iter()
        .map(|c| c.trials.measured.len())
        .max()
        .unwrap_or(0);
    let done = format!(
        "{} of {} {} measured, in {} of {} each.",
        measured.len(),
        counted(cells, "cell"),
        if cells == 1 { "was" } else { "were" },
        counted(blocks, "block"),
        numbers::duration(run.plan.duration_ns),
    );
    let quick = if run.plan.quick {
        "This was a quick run. "
    } else {
        ""
    };
    if blocks < BLOCKS_INTERVAL_MIN {
        format!(
            "{quick}{done} That is enough to see orders of magnitude and faults, and too little for an \
             interval: none is claimed, and nothing is ranked."
        )
    } else {
        format!("{quick}{done} What is said below to differ does so by its 95 % interval.")
    }
}

fn of_group(group: &Group, cells: &[&CellFigures]) -> Option<String> {
    let place = format!("On {} with {}", group.workload, group.size());
    if cells.iter().any(|cell| cell.open.is_some()) {
        return open::sentence(&place, cells);
    }
    let is_invalid = |c: &&CellFigures| c.verdict == Some(Verdict::Invalid);
    let (invalid, usable): (Vec<&CellFigures>, Vec<&CellFigures>) =
        cells.iter().copied().partition(is_invalid);
    let left_out = match &invalid[..] {
        [] => String::new(),
        _ => {
            let labels: Vec<String> = invalid.iter().map(|c| c.label.clone()).collect();
            format!(
                " Left out, as their figures are invalid: {}.",
                listed(&labels)
            )
        }
    };
    if usable.is_empty() {
        return Some(format!("{place}, no figure can be used.{left_out}"));
    }
    let said = against_reference(&place, &usable).or_else(|| extent(&place, &usable))?;
    Some(said + &left_out)
}

/// How the rates of `cells` compare with that of the reference among them.
fn against_reference(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let reference = cells.iter().find(|c| c.is_reference)?;
    let mut told: BTreeMap<Told, Vec<String>> = BTreeMap::new();
    for cell in cells {
        // The copy of the reference has a sentence of its own.
        let Some(ratio) = cell.ratio.as_ref().filter(|_| !cell.is_copy) else {
            continue;
        };
        let Some(what) = Told::of(ratio.conclusion, is_bound(cell), is_bound(reference)) else {
            continue;
        };
        let name = match what {
            Told::Higher | Told::HigherAtLeast | Told::Lower => format!(
                "{} ({}, {}–{})",
                cell.label,
                numbers::ratio(ratio.ratio),
                numbers::ratio(ratio.low),
                numbers::ratio(ratio.high)
            ),
            Told::NoDifference | Told::Nothing => cell.label.clone(),
        };
        told.entry(what).or_default().push(name);
    }
    if told.is_empty() {
        return None;
    }
    let parts = told.iter().map(|(what, names)| {
        let words = match what {
            Told::Higher => "higher for",
            Told::HigherAtLeast => "higher, by so much at least, for",
            Told::Lower => "lower for",
            Told::NoDifference => "not shown to differ for",
            Told::Nothing => "not to be compared, as the generator was the limit, for",
        };
        format!("{words} {}", listed(names))
    });
    Some(format!(
        "{place}, against the {}/s of {}, the rate is {}.",
        numbers::rate(reference.rate_per_s?.median),
        reference.label,
        parts.collect::<Vec<_>>().join("; "),
    ))
}

/// What may be said of a rate beside the reference's, in the order in which it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Told {
    Higher,
    HigherAtLeast,
    Lower,
    NoDifference,
    Nothing,
}

impl Told {
    /// By the conclusion of the comparison. Where the generator was the limit a rate is a bound: the subject is at least that
    /// fast, and what the bound does not settle is not said.
    fn of(conclusion: &str, is_bound: bool, is_reference_bound: bool) -> Option<Told> {
        match conclusion {
            "higher" if is_reference_bound => Some(Told::Nothing),
            "higher" if is_bound => Some(Told::HigherAtLeast),
            "higher" => Some(Told::Higher),
            "lower" if is_bound => Some(Told::Nothing),
            "lower" => Some(Told::Lower),
            "no-difference-shown" if is_bound || is_reference_bound => Some(Told::Nothing),
            "no-difference-shown" => Some(Told::NoDifference),
            _ => None,
        }
    }
}

/// Whether its rate is the generator's rather than its own.
fn is_bound(cell: &CellFigures) -> bool {
    cell.findings.contains(&Code::P001)
}

/// Between what the rates of `cells` lie.
fn extent(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let rates = cells.iter().filter_map(|c| Some(c.rate_per_s?.median));
    let rates: Vec<f64> = rates.collect();
    let lowest = rates.iter().copied().reduce(f64::min)?;
    let highest = rates.iter().copied().reduce(f64::max)?;
    Some(match rates.len() {
        1 => format!(
            "{place}, {} reached {} requests/s.",
            cells[0].label,
            numbers::rate(lowest)
        ),
        n => format!(
            "{place}, the medians of the {n} subjects lie between {} and {} requests/s.",
            numbers::rate(lowest),
            numbers::rate(highest),
        ),
    })
}

/// `a, b and c`, or `a, b and 7 more`.
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        _ if names.len() > NAMES_MAX => {
            let shown = names[..NAMES_MAX].join(", ");
            format!("{shown} and {} more", names.len() - NAMES_MAX)
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How small a difference this run could have shown.
fn resolution(measured: &[&CellFigures]) -> Option<String> {
    let copies: Vec<String> = measured
        .iter()
        .filter(|c| c.is_copy)
        .filter_map(|c| {
            let ratio = c.ratio.as_ref()?;
            Some(format!(
                "{} ({}–{}, {})",
                numbers::ratio(ratio.ratio),
                numbers::ratio(ratio.low),
                numbers::ratio(ratio.high),
                c.cell
            ))
        })
        .collect();
    if !copies.is_empty() {
        return Some(format!(
            "A copy of the reference, run as a subject of its own, came out at a ratio of {}: \
             differences of that size are this run's own noise.",
            listed(&copies)
        ));
    }
    let widths = measured.iter().filter_map(|c| {
        let rate = c.rate_per_s.filter(|rate| rate.blocks > 1)?;
        let width = (rate.high - rate.low) / rate.median;
        width.is_finite().then_some(width)
    });
    let widths: Vec<f64> = widths.collect();
    let widest = widths.iter().copied().reduce(f64::max)?;
    let middle = median(&widths)?;
    let interval = measured
        .iter()
        .filter_map(|c| c.rate_per_s)
        .any(|rate| rate.is_interval());
    let what = if interval {
        "The intervals of the rates are as wide as"
    } else {
        "The blocks of one cell lie apart by"
    };
    let missing = match measured.iter().all(|c| c.row().is_some()) {
        true => {
            "No row was run a second time as a row of its own, so there is nothing to tell by which smaller \
             differences between rows are real."
        }
        false => {
            "No copy of the reference was run, so there is nothing to tell by which smaller differences \
             between subjects are real."
        }
    };
    Some(format!(
        "{what} {} of the rate at the median and {} at the most. {missing}",
        numbers::percent(middle),
        numbers::percent(widest)
    ))
}

/// What speaks against some of the figures.
fn reservations(cells: &[CellFigures]) -> Vec<String> {
    let with = |code: Code| -> Vec<String> {
        let has = cells.iter().filter(|c| c.findings.contains(&code));
        has.map(|c| c.cell.clone()).collect()
    };
    let mut said = Vec::new();
    let saturated = with(Code::P001);
    if !saturated.is_empty() {
        said.push(format!(
            "The generator, not the subject, was the limit in {}: at least this fast.",
            listed(&saturated)
        ));
    }
    let failed = cells.iter().filter(|c| c.findings.contains(&Code::P010));
    let named = |c: &CellFigures| match table::blocks_of(c) {
        Some(blocks) => format!("{} (figures of {blocks})", c.cell),
        None => c.cell.clone(),
    };
    let failed: Vec<String> = failed.map(named).collect();
    if !failed.is_empty() {
        said.push(format!("Trials failed in {}.", listed(&failed)));
    }
    let count = |verdict| cells.iter().filter(|c| c.verdict == Some(verdict)).count();
    said.extend(disturbed(cells));
    let (suspect, invalid) = (count(Verdict::Suspect), count(Verdict::Invalid));
    if suspect + invalid > 0 {
        said.push(format!(
            "By the findings below, the figures of {} are suspect and those of {} invalid, of {} in all.",
            cells_word(suspect),
            cells_word(invalid),
            cells.len()
        ));
    }
    let missing = cells.iter().filter(|c| c.verdict.is_none()).count();
    if missing > 0 {
        said.push(format!(
            "No trial of {} has ended yet.",
            cells_word(missing)
        ));
    }
    said
}

/// Whether it was the machine rather than the subjects.
fn disturbed(cells: &[CellFigures]) -> Option<String> {
    let measured = cells.iter().filter(|c| c.rate_per_s.is_some()).count();
    let with = |code: Code| cells.iter().filter(|c| c.findings.contains(&code)).count();
    let (drifted, unstable) = (with(Code::P009), with(Code::P008));
    // In fewer cells the footnotes are enough.
    if drifted * 2 < measured || drifted < 2 {
        return None;
    }
    let unstable = match unstable {
        0 => String::new(),
        n => format!(", and the rate was not stable in {n}"),
    };
    Some(format!(
        "The machine was busy with something else or changed its speed in {drifted} of the {measured} \
         cells measured{unstable}: it is not a quiet machine."
    ))
}
