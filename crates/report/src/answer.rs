//! The short answer: a few sentences that the data allow, and those that they forbid.

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::Code;
use serde::Serialize;

use crate::Run;
use crate::against::{CELLS_MAX, against_reference, left_out, titles};
use crate::claims::{self};
use crate::clients::{self, steps::Step};
use crate::figures::CellFigures;
use crate::groups::{Group, groups};
use crate::numbers;
use crate::open;
use crate::programs::{self, across::Across};
use crate::ratio::RatioFigure;
use crate::rows;
use crate::search;
use crate::table;
use crate::words::{Point, claim, listed, medians};

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
    before.extend(search::words::answer(run, cells));
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
        after.extend(resolution(run, cells));
        after.extend(reservations(cells));
        after.extend(crate::machine::sentence(&run.environment));
    }
    Answer {
        before,
        points,
        after,
    }
}

/// The sentences on servers; none where no cell of one was measured.
fn of_servers(run: &Run, cells: &[CellFigures]) -> Vec<String> {
    let servers: Vec<&CellFigures> = cells
        .iter()
        .filter(|c| c.is_server() && c.search.is_none())
        .collect();
    let measured = servers.iter().copied().filter(|c| c.rate_per_s.is_some());
    let measured: Vec<&CellFigures> = measured.collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let how = |blocks: usize| {
        let each = numbers::duration(run.plan.duration_ns);
        let turns = run.plan.visits.as_ref().map_or_else(String::new, |of| {
            format!(", visited in turns of {}", numbers::duration(of.length_ns))
        });
        format!("in {} of {each} each{turns}", counted(blocks, "block"))
    };
    let mut said = vec![claim(run, servers.len(), &measured, how)];
    for group in groups(cells) {
        let own = measured.iter().copied().filter(|c| group.has(c));
        said.extend(of_group(&group, &own.collect::<Vec<_>>()));
    }
    said
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

fn of_group(group: &Group, cells: &[&CellFigures]) -> Option<String> {
    let place = format!("On {}", group.place());
    if cells.iter().any(|cell| cell.open.is_some()) {
        return open::sentence(&place, cells);
    }
    let cells = cells.iter().copied();
    let (invalid, usable): (Vec<_>, Vec<_>) = cells.partition(|c: &&CellFigures| c.is_invalid());
    let left_out = left_out(&invalid);
    if usable.is_empty() {
        return Some(format!("{place}, no figure can be used.{left_out}"));
    }
    let said = against_reference(&place, &usable).or_else(|| extent(&place, &usable))?;
    Some(said + &left_out)
}

/// The rates, the highest first.
fn extent(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let said = medians(
        cells.iter().copied(),
        |cell| cell.rate_per_s,
        |cell| (cell.label.clone(), cell.is_reference),
        (Code::P001, numbers::rate, " requests/s"),
    )?;
    Some(format!("{place}: {said}."))
}

/// What this run could have told, and how a copy of the reference came out.
fn resolution(run: &Run, cells: &[CellFigures]) -> Vec<String> {
    let mut said = Vec::new();
    let told: Vec<(String, f64, usize)> = claims::resolutions(&run.plan, cells)
        .into_iter()
        .filter(|of| of.comparisons > 0)
        .filter_map(|of| Some((of.workload, of.detectable?, of.comparisons)))
        .collect();
    said.extend(told.first().map(|(_, _, comparisons)| {
        format!(
            "What this run can tell: differences of a rate from {} on. Of such runs, 80 % would claim one of that size, \
             with {} taken together.",
            least(&told),
            counted(*comparisons, "comparison"),
        )
    }));
    let copies = cells.iter().filter(|c| c.is_copy);
    let ratios: Vec<(&CellFigures, &RatioFigure)> = copies
        .filter_map(|c| Some((c, c.ratio.as_ref()?)))
        .collect();
    let off = |ratio: &RatioFigure| (ratio.ratio - 1.0).abs();
    let farthest = ratios.iter().max_by(|a, b| off(a.1).total_cmp(&off(b.1)));
    said.extend(farthest.map(|(cell, ratio)| of_copies(&ratios, cell, ratio)));
    said
}

/// The smallest differences: by workload where these are few.
fn least(told: &[(String, f64, usize)]) -> String {
    const WORKLOADS_MAX: usize = 3;
    let each = |(workload, least, _): &(String, f64, usize)| {
        format!("{} ({workload})", numbers::percent(*least))
    };
    match told {
        [(_, least, _)] => numbers::percent(*least),
        _ if told.len() <= WORKLOADS_MAX => listed(&told.iter().map(each).collect::<Vec<_>>()),
        _ => {
            let by = |a: &&(String, f64, usize), b: &&(String, f64, usize)| a.1.total_cmp(&b.1);
            let ends = [told.iter().min_by(by), told.iter().max_by(by)];
            let ends: Vec<String> = ends.into_iter().flatten().map(each).collect();
            format!("{}, by workload,", ends.join(" to "))
        }
    }
}

/// How copies of the reference came out, of which the farthest is told.
fn of_copies(
    all: &[(&CellFigures, &RatioFigure)],
    cell: &CellFigures,
    ratio: &RatioFigure,
) -> String {
    let differ = all
        .iter()
        .any(|(_, r)| matches!(r.conclusion, "higher" | "lower"));
    let came = format!(
        "A copy of the reference, run as a subject of its own, came out at {} of its rate at the farthest ({})",
        numbers::change_of(ratio),
        cell.cell
    );
    match (ratio.is_interval(), differ) {
        (_, true) => format!(
            "{came}. That is more than chance explains (99 % interval), so that nothing is claimed of rates: something \
             distinguishes trials of the same program."
        ),
        (true, false) => format!("{came}: no more than chance explains."),
        (false, false) => format!("{came}: smaller differences are this run's own noise."),
    }
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
        let cells = match saturated.len() {
            ..=CELLS_MAX => listed(&saturated),
            many => counted(many, "cell"),
        };
        said.push(format!(
            "The generator, not the subject, was the limit in {cells}: at least this fast."
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
    // Of servers their own sentences say it.
    let others = cells.iter().filter(|c| !c.is_server());
    let mut invalid: BTreeMap<&[Code], Vec<String>> = BTreeMap::new();
    for cell in others.filter(|c| c.is_invalid()) {
        let alike = invalid.entry(&cell.invalid_by).or_default();
        alike.push(cell.cell.clone());
    }
    if !invalid.is_empty() {
        let of = |(codes, cells): (&&[Code], &Vec<String>)| {
            format!("{} ({})", listed(cells), titles(codes))
        };
        said.push(format!(
            "Invalid, and compared with nothing: {}.",
            invalid.iter().map(of).collect::<Vec<_>>().join("; ")
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
