//! Figures that several cells of programs make together: what a setting does, what more threads
//! do, how time grows with size. Each comparison is made within a block, and the blocks are what
//! intervals are drawn from.

use std::collections::BTreeMap;

use prony_findings::{Records, measure};
use prony_record::PlannedSetting;
use prony_stats::{Growth, SpreadKind, scaling};
use serde::Serialize;

use super::works::{count, is_timed};
use crate::Run;
use crate::figures::{CellFigures, Figure};
use crate::lists::{distinct, push_under};
use crate::ratio::RatioFigure;
use crate::settings::{Settings, THREADS, without};

/// Under this, what a process does once may show in the time of the smallest size.
pub const START_UP_NS: f64 = 10e6;

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Across {
    /// What each value of a setting does beside its first one.
    pub effects: Vec<Effect>,
    /// What more threads do beside one.
    pub efficiencies: Vec<Efficiency>,
    /// How time grows with size.
    pub scaling: Vec<ScalingFigure>,
}

/// The rate with one value of a setting over that with the first, all else equal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The subject.
    pub subject: String,
    /// The setting.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// Its first value.
    pub base: String,
    /// The workload; `None`: all of them, each with the same weight.
    pub workload: Option<String>,
    /// Pairs of cells that it rests on.
    pub pairs: usize,
    /// The ratio of rates; its `reference_cell` is empty.
    pub ratio: RatioFigure,
}

/// The rate with several threads over that of as many times one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Efficiency {
    /// The subject.
    pub subject: String,
    /// The workload.
    pub workload: String,
    /// How much each thread does.
    pub count: u64,
    /// Settings but for the threads.
    pub settings: BTreeMap<String, String>,
    /// Threads.
    pub threads: u32,
    /// The cell with that many.
    pub cell: String,
    /// The most that the cores of the subject allow: below 1 where there are fewer of them.
    pub most: f64,
    /// The ratio; its `reference_cell` is the one with one thread.
    pub ratio: RatioFigure,
}

/// How the time of one subject grows with the size of the work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingFigure {
    /// The subject.
    pub subject: String,
    /// The workload.
    pub workload: String,
    /// Settings.
    pub settings: BTreeMap<String, String>,
    /// Sizes and medians of the elapsed time, in nanoseconds, of all cells measured.
    pub points: Vec<(u64, f64)>,
    /// Blocks.
    pub blocks: usize,
    /// The exponent.
    pub exponent: f64,
    /// Lower end of range or interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// What the ends are.
    pub spread: SpreadKind,
    /// Exponent over the smaller half of the sizes.
    pub small_end: f64,
    /// Exponent over the larger half.
    pub large_end: f64,
    /// `not-claimed`, `curved`, `too-wide`, `consistent` or `between`.
    pub growth: &'static str,
    /// What may be said of it.
    pub says: String,
    /// Whether the smallest size takes so little time that what is done once shows in it.
    pub start_up: bool,
}

impl ScalingFigure {
    /// The exponent with its spread.
    pub fn figure(&self) -> Figure {
        Figure {
            median: self.exponent,
            low: self.low,
            high: self.high,
            spread: self.spread,
            blocks: self.blocks,
        }
    }
}

/// Computes them from the records.
pub fn across(run: &Run, records: &Records<'_>, cells: &[CellFigures]) -> Across {
    // What is invalid is compared with nothing.
    let sound = |c: &&CellFigures| c.program.is_some() && !c.is_invalid();
    let programs: Vec<&CellFigures> = cells.iter().filter(sound).collect();
    Across {
        effects: effects(records, &programs),
        efficiencies: efficiencies(run, records, &programs),
        scaling: scalings(records, &programs),
    }
}

/// The size of a workload that tables over several workloads show: the one that most cells
/// measured, the largest of these.
pub fn main_count(cells: &[&CellFigures], workload: &str) -> Option<u64> {
    let mut measured: BTreeMap<u64, usize> = BTreeMap::new();
    for cell in cells.iter().filter(|c| c.workload == workload) {
        *measured.entry(count(cell)?).or_default() += usize::from(cell.is_measured());
    }
    let most = measured
        .into_iter()
        .max_by_key(|(count, cells)| (*cells, *count));
    most.map(|(count, _)| count)
}

/// Log ratios by block.
type Logs = BTreeMap<u32, f64>;

/// The mean of several by block, over the blocks that all have.
fn mean_logs(all: &[Logs]) -> Logs {
    let Some(first) = all.first() else {
        return Logs::new();
    };
    let of_block = |block: &u32| -> Option<f64> {
        let logs: Option<Vec<f64>> = all.iter().map(|logs| logs.get(block).copied()).collect();
        Some(logs?.iter().sum::<f64>() / all.len() as f64)
    };
    let means = first
        .keys()
        .filter_map(|block| Some((*block, of_block(block)?)));
    means.collect()
}

/// The rate of one cell over that of another.
fn log_ratios(records: &Records<'_>, value: &CellFigures, base: &CellFigures) -> Logs {
    let base: BTreeMap<u32, f64> = base.case(records).rates().into_iter().collect();
    let log =
        |(block, rate): (u32, f64)| Some((block, libm::log(rate) - libm::log(*base.get(&block)?)));
    let rates = value.case(records).rates();
    rates.into_iter().filter_map(log).collect()
}

fn ratio_of(records: &Records<'_>, reference_cell: &str, logs: &Logs) -> Option<RatioFigure> {
    let pairs: Vec<(f64, f64)> = logs.values().map(|log| (libm::exp(*log), 1.0)).collect();
    let blocks: Vec<u32> = logs.keys().copied().collect();
    RatioFigure::from_pairs(reference_cell, pairs)?.by_runs(records.plan, &blocks)
}

/// Subject, workload and size.
fn work(cell: &CellFigures) -> (&str, &str, Option<u64>) {
    (&cell.subject, &cell.workload, count(cell))
}

fn effects(records: &Records<'_>, cells: &[&CellFigures]) -> Vec<Effect> {
    let cells = cells.iter().copied().filter(|c| is_timed(c));
    let cells: Vec<&CellFigures> = cells.collect();
    let subjects = distinct(cells.iter().map(|c| c.subject.as_str()));
    let mut found = Vec::new();
    for setting in records.plan.settings.iter().filter(|s| s.name != THREADS) {
        for value in setting.values.iter().skip(1) {
            for subject in &subjects {
                found.extend(of_change(records, &cells, (setting, value, subject)));
            }
        }
    }
    found
}

/// What a value of a setting does to a subject: one effect a workload, and all together where there are several.
fn of_change(
    records: &Records<'_>,
    cells: &[&CellFigures],
    (setting, value, subject): (&PlannedSetting, &str, &str),
) -> Vec<Effect> {
    let base = setting.values[0].as_str();
    let effect = |workload: Option<&str>, pairs: usize, logs: &Logs| {
        Some(Effect {
            subject: subject.to_owned(),
            setting: setting.name.clone(),
            value: value.to_owned(),
            base: base.to_owned(),
            workload: workload.map(str::to_owned),
            pairs,
            ratio: ratio_of(records, "", logs)?,
        })
    };
    let has = |cell: &CellFigures, value: &str| {
        cell.settings.get(&setting.name).map(String::as_str) == Some(value)
    };
    let rest = |cell: &CellFigures| without(&cell.settings, &setting.name);
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for workload in distinct(cells.iter().map(|c| c.workload.as_str())) {
        let same_work = (subject, workload, main_count(cells, workload));
        let own = || cells.iter().filter(|c| work(c) == same_work);
        // Each with the one that differs in nothing else.
        let pairs = own().filter(|with| has(with, value)).filter_map(|with| {
            let other = own().find(|of| has(of, base) && rest(of) == rest(with))?;
            Some(log_ratios(records, with, other))
        });
        let pairs: Vec<Logs> = pairs.filter(|logs| !logs.is_empty()).collect();
        let logs = mean_logs(&pairs);
        if let Some(effect) = effect(Some(workload), pairs.len(), &logs) {
            found.push(effect);
            all.push(logs);
        }
    }
    if found.len() > 1 {
        let pairs = found.iter().map(|of| of.pairs).sum();
        found.extend(effect(None, pairs, &mean_logs(&all)));
    }
    found
}

/// Cores that a program's threads have; 0: not known.
pub fn cores(run: &Run) -> u32 {
    match measure::program_cores(&run.plan.cores) {
        0 => run.environment.cpus,
        pinned => u32::try_from(pinned).unwrap_or(u32::MAX),
    }
}

fn efficiencies(run: &Run, records: &Records<'_>, cells: &[&CellFigures]) -> Vec<Efficiency> {
    let threads = |cell: &CellFigures| cell.program.as_ref().map_or(0, |p| p.threads);
    let cores = f64::from(cores(run));
    let efficiency = |many: &&CellFigures| {
        let settings = without(&many.settings, THREADS);
        let same = |one: &&&CellFigures| {
            threads(one) == 1
                && work(one) == work(many)
                && without(&one.settings, THREADS) == settings
        };
        let one = cells.iter().find(same)?;
        let k = f64::from(threads(many));
        let mut logs = log_ratios(records, many, one);
        logs.values_mut().for_each(|log| *log -= libm::log(k));
        Some(Efficiency {
            subject: many.subject.clone(),
            workload: many.workload.clone(),
            count: work(many).2.unwrap_or(0),
            threads: threads(many),
            cell: many.cell.clone(),
            most: if cores > 0.0 {
                (cores / k).min(1.0)
            } else {
                1.0
            },
            ratio: ratio_of(records, &one.cell, &logs)?,
            settings,
        })
    };
    let several = |cell: &&&CellFigures| threads(cell) > 1 && is_timed(cell);
    let all = cells.iter().filter(several);
    all.filter_map(efficiency).collect()
}

fn scalings(records: &Records<'_>, cells: &[&CellFigures]) -> Vec<ScalingFigure> {
    let mut families: Vec<(_, Vec<&CellFigures>)> = Vec::new();
    for cell in cells {
        let family = (&cell.workload, &cell.subject, &cell.settings);
        push_under(&mut families, family, *cell);
    }
    let figure = |((workload, subject, settings), own): ((&String, &String, &Settings), Vec<_>)| {
        let seen = scaling(&times(records, &own))?;
        let point = |cell: &&CellFigures| {
            let program = cell.program.as_ref()?;
            Some((program.count, program.elapsed_ns?.median))
        };
        let points: BTreeMap<u64, f64> = own.iter().filter_map(point).collect();
        let first = points.values().next();
        Some(ScalingFigure {
            start_up: first.is_some_and(|ns| *ns < START_UP_NS),
            points: points.into_iter().collect(),
            blocks: seen.blocks,
            exponent: seen.exponent.0,
            low: seen.spread.low.0,
            high: seen.spread.high.0,
            spread: seen.spread.kind,
            small_end: seen.small_end.0,
            large_end: seen.large_end.0,
            growth: growth_name(seen.growth),
            says: says(&seen),
            workload: workload.clone(),
            subject: subject.clone(),
            settings: settings.clone(),
        })
    };
    families.into_iter().filter_map(figure).collect()
}

/// `(size, elapsed)` by block.
fn times(records: &Records<'_>, cells: &[&CellFigures]) -> Vec<Vec<(f64, f64)>> {
    let mut blocks: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for case in cells.iter().map(|cell| cell.case(records)) {
        for (trial, run) in case.runs() {
            if let (Some(count), Some(elapsed)) = (case.cell.count, measure::elapsed(run)) {
                let points = blocks.entry(trial.block).or_default();
                points.push((count as f64, elapsed.0));
            }
        }
    }
    blocks.into_values().collect()
}

fn growth_name(growth: Growth) -> &'static str {
    match growth {
        Growth::NotClaimed => "not-claimed",
        Growth::Curved => "curved",
        Growth::TooWide => "too-wide",
        Growth::Consistent(_) => "consistent",
        Growth::Between => "between",
    }
}

fn says(seen: &prony_stats::Scaling) -> String {
    let power = |p: prony_stats::Exponent| format!("N^{}", power(p.0));
    match seen.growth {
        Growth::NotClaimed if seen.blocks < prony_stats::BLOCKS_INTERVAL_MIN => {
            "not claimed: too few blocks".to_owned()
        }
        Growth::NotClaimed => "not claimed: the blocks fall into two groups".to_owned(),
        Growth::Curved => format!(
            "no single power: {} at the small end, {} at the large",
            power(seen.small_end),
            power(seen.large_end)
        ),
        Growth::TooWide => "not told: the interval is too wide".to_owned(),
        Growth::Consistent(degree) => format!("consistent with {}", order(degree)),
        Growth::Between => format!("grows as {}", power(seen.exponent)),
    }
}

fn order(degree: u32) -> &'static str {
    match degree {
        0 => "O(1)",
        1 => "O(N)",
        2 => "O(N²)",
        3 => "O(N³)",
        _ => "O(N⁴)",
    }
}

/// An exponent with two decimals: `1.40`.
pub fn decimals(exponent: f64) -> String {
    format!("{exponent:.2}").replace('-', "−")
}

/// An exponent with two decimals, without the zeros that end it: `1.4`, `0.97`.
pub fn power(exponent: f64) -> String {
    let text = decimals(exponent);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
