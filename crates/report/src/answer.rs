//! The short answer: a few sentences that the data allow, and those that they forbid.

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::{Code, Verdict};
use prony_stats::BLOCKS_INTERVAL_MIN;
use serde::Serialize;

use crate::Run;
use crate::claims::{self, RatioFigure};
use crate::clients::{self, steps::Step};
use crate::figures::CellFigures;
use crate::numbers;
use crate::open;
use crate::programs::answer::Point;
use crate::programs::{self, across::Across};
use crate::rows;
use crate::search;
use crate::table;

/// Names in a sentence before it says how many more there are.
const NAMES_MAX: usize = 20;
/// Figures that are all named in a sentence; of more, the outermost and the baseline's.
pub const RANKED_MAX: usize = 5;
/// Cells in a reservation before it gives their number instead: the tables mark each.
const CELLS_MAX: usize = 3;

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
    /// That of a cell.
    pub fn of(cell: &CellFigures) -> Group {
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
        "{} of {} {} measured, in {} of {} each{}",
        measured.len(),
        counted(cells, "cell"),
        if cells == 1 { "was" } else { "were" },
        counted(blocks, "block"),
        numbers::duration(run.plan.duration_ns),
        match &run.plan.visits {
            Some(visits) => format!(
                ", visited in turns of {}",
                numbers::duration(visits.length_ns)
            ),
            None => String::new(),
        },
    );
    format!("{done}: {}", what_follows(run, blocks))
}

/// What may be said of figures of so many blocks.
pub fn what_follows(run: &Run, blocks: usize) -> String {
    if blocks >= BLOCKS_INTERVAL_MIN {
        return "what is said below to differ does so with 95 % confidence, all comparisons of one kind taken together."
            .to_owned();
    }
    let quick = if run.plan.quick { " (a quick run)" } else { "" };
    format!(
        "one look{quick}, which shows orders of magnitude and faults. No comparison is claimed and nobody is ranked: \
         that takes {BLOCKS_INTERVAL_MIN} blocks or more."
    )
}

fn of_group(group: &Group, cells: &[&CellFigures]) -> Option<String> {
    let place = format!("On {} with {}", group.workload, group.size());
    if cells.iter().any(|cell| cell.open.is_some()) {
        return open::sentence(&place, cells);
    }
    let is_invalid = |c: &&CellFigures| c.verdict == Some(Verdict::Invalid);
    let (invalid, usable): (Vec<&CellFigures>, Vec<&CellFigures>) =
        cells.iter().copied().partition(is_invalid);
    let left_out = left_out(&invalid);
    if usable.is_empty() {
        return Some(format!("{place}, no figure can be used.{left_out}"));
    }
    let said = against_reference(&place, &usable).or_else(|| extent(&place, &usable))?;
    Some(said + &left_out)
}

/// What is named as invalid at the end of a sentence; nothing where none is.
pub fn left_out(invalid: &[&CellFigures]) -> String {
    if invalid.is_empty() {
        return String::new();
    }
    let named: Vec<String> = invalid.iter().map(|c| why_invalid(c, &c.label)).collect();
    format!(" Left out, as invalid: {}.", listed(&named))
}

/// `axum (P006, requests failed: 48 of 3381)`.
fn why_invalid(cell: &CellFigures, name: &str) -> String {
    let failed = match cell.invalid_by.contains(&Code::P006) {
        true => format!(
            ": {} of {}",
            cell.errors,
            cell.errors.saturating_add(cell.completed)
        ),
        false => String::new(),
    };
    format!("{name} ({}{failed})", titles(&cell.invalid_by))
}

fn titles(codes: &[Code]) -> String {
    let title = |code: &Code| format!("{}, {}", code.as_str(), code.title());
    codes.iter().map(title).collect::<Vec<_>>().join("; ")
}

/// How the rates of `cells` compare with that of the reference among them.
pub fn against_reference(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let reference = cells.iter().find(|c| c.is_reference)?;
    let mut told: BTreeMap<Told, Vec<(f64, String)>> = BTreeMap::new();
    for cell in cells {
        // The copy of the reference has a sentence of its own.
        let Some(ratio) = cell.ratio.as_ref().filter(|_| !cell.is_copy) else {
            continue;
        };
        let Some(what) = Told::of(ratio) else {
            continue;
        };
        let name = match what {
            Told::Faster | Told::Slower => {
                format!("{} {}", cell.label, numbers::change_of(ratio))
            }
            Told::NoDifference => match cpu(cell) {
                Some(cpu) => format!("{} (CPU a request {cpu})", cell.label),
                None => cell.label.clone(),
            },
            Told::NotByBound | Told::NotByCopy => cell.label.clone(),
        };
        told.entry(what).or_default().push((ratio.ratio, name));
    }
    if told.is_empty() {
        return None;
    }
    let mut parts: Vec<String> = lead(reference, cells).into_iter().collect();
    for (what, names) in &mut told {
        // The highest first.
        names.sort_by(|a, b| b.0.total_cmp(&a.0));
        let names: Vec<String> = names.iter().map(|(_, name)| name.clone()).collect();
        parts.push(format!("{} {}", what.words(), listed(&names)));
    }
    Some(format!(
        "{place}, against the {}/s of {}: {}.",
        numbers::rate(reference.rate_per_s?.median),
        reference.label,
        parts.join("; "),
    ))
}

/// Who is the fastest, where the intervals say it; nothing where no ratio may be told. One of which nothing may be told
/// (its rate, or that of the reference, is a bound) may be the fastest, too.
fn lead(reference: &CellFigures, cells: &[&CellFigures]) -> Option<String> {
    let others = cells.iter().filter(|c| !c.is_copy);
    let all = others.filter_map(|c| Some((*c, c.ratio.as_ref()?)));
    let (told, untold): (Vec<_>, Vec<_>) = all
        .filter(|(_, ratio)| ratio.is_interval())
        .partition(|(_, ratio)| ratio.unclaimed.is_empty());
    if told.is_empty() {
        return None;
    }
    let untold = untold.into_iter().map(|(c, _)| c.label.clone());
    let faster = told
        .iter()
        .filter(|(_, ratio)| ratio.conclusion == "higher");
    let Some((first, best)) = faster.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) else {
        let is_first = told.iter().all(|(_, ratio)| ratio.conclusion == "lower");
        let untold: Vec<String> = untold.collect();
        return Some(match (is_first, untold.is_empty()) {
            (true, true) => format!("fastest is {}", reference.label),
            (true, false) => format!("fastest is {} or {}", reference.label, untold.join(" or ")),
            (false, _) => format!("none is shown to be faster than {}", reference.label),
        });
    };
    // One that is at least so fast may be faster than the first.
    let near = |(other, ratio): &&(&CellFigures, &RatioFigure)| {
        other.cell != first.cell && (ratio.high >= best.low || ratio.bound == "at-least")
    };
    let near = told.iter().filter(near).map(|(c, _)| c.label.clone());
    let near: Vec<String> = near.chain(untold).collect();
    Some(match near.len() {
        0 => format!("fastest is {}", first.label),
        1..=CELLS_MAX => format!(
            "fastest is {}, or {}, as their intervals overlap",
            first.label,
            near.join(" or ")
        ),
        many => format!(
            "fastest is {}, or one of {many} others, as their intervals overlap",
            first.label
        ),
    })
}

/// The CPU time a request beside the reference's, where it is shown to differ.
fn cpu(cell: &CellFigures) -> Option<String> {
    let ratio = cell.ratios.get(claims::Metric::Cpu.key())?;
    matches!(ratio.conclusion, "higher" | "lower").then(|| numbers::change_of(ratio))
}

/// What may be said of a rate beside the reference's, in the order in which it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Told {
    Faster,
    Slower,
    NoDifference,
    NotByBound,
    NotByCopy,
}

impl Told {
    fn of(ratio: &RatioFigure) -> Option<Told> {
        match (ratio.conclusion, ratio.unclaimed) {
            ("higher", _) => Some(Told::Faster),
            ("lower", _) => Some(Told::Slower),
            ("no-difference-shown", _) => Some(Told::NoDifference),
            (_, claims::BY_BOUND) => Some(Told::NotByBound),
            (_, claims::BY_COPY) => Some(Told::NotByCopy),
            _ => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Told::Faster => "faster:",
            Told::Slower => "slower:",
            Told::NoDifference => "no difference shown:",
            Told::NotByBound => "not to be told, as the generator was the limit:",
            Told::NotByCopy => {
                "not to be told, as a copy of the reference came out different, too:"
            }
        }
    }
}

/// The rates, the highest first.
fn extent(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let rates = cells.iter().filter_map(|cell| {
        let rate = cell.rate_per_s?.median;
        let least = if is_bound(cell) { "at least " } else { "" };
        Some(Ranked {
            figure: rate,
            shown: format!("{} {least}{}", cell.label, numbers::rate(rate)),
            is_baseline: cell.is_reference,
        })
    });
    let said = ranked(rates.collect(), " requests/s")?;
    Some(format!("{place}: {said}."))
}

/// One of several whose figures are named together.
pub struct Ranked {
    /// What they are sorted by, the highest first.
    pub figure: f64,
    /// Its name and its figure as they are shown.
    pub shown: String,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
}

/// `a 9, b 7 and c 5 requests/s`; of more than [`RANKED_MAX`] the three highest, the baseline and the lowest: the others
/// stand in a table, in which they are found faster than in a sentence. `None`: of none.
pub fn ranked(mut all: Vec<Ranked>, unit: &str) -> Option<String> {
    all.sort_by(|a, b| b.figure.total_cmp(&a.figure));
    let shown = |of: &[Ranked]| of.iter().map(|r| r.shown.clone()).collect::<Vec<_>>();
    if all.len() <= RANKED_MAX {
        return (!all.is_empty()).then(|| format!("{}{unit}", listed(&shown(&all))));
    }
    let (highest, rest) = all.split_at(3);
    let (lowest, between) = rest.split_last()?;
    let mut said = format!(
        "the highest of {} are {}{unit}",
        all.len(),
        listed(&shown(highest))
    );
    if let Some(baseline) = between.iter().find(|r| r.is_baseline) {
        said.push_str(&format!("; the baseline, {}", baseline.shown));
    }
    said.push_str(&format!("; the lowest, {}", lowest.shown));
    Some(said)
}

/// Whether its rate is the generator's rather than its own.
fn is_bound(cell: &CellFigures) -> bool {
    cell.findings.contains(&Code::P001)
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
    for cell in others.filter(|c| c.verdict == Some(Verdict::Invalid)) {
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
