//! What a pilot, or the first trial of each server, tells of a run that is still to be: how its figures vary, and what a trial costs.
//!
//! Nothing of a pilot is in any figure: it chooses the number of blocks and the length of their windows, before the
//! first of them, so that looking at results ends no run.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_findings::{Case, Records};
use prony_record::{GeneratorKind, Plan, Trial};
use prony_stats::{
    BETWEEN_MIN, BlockCost, Design, PilotNoise, Share, WINDOWS, independent, pooled_deviation,
    window_variance,
};

use crate::cells::baseline;
use crate::claims::{Resolution, resolutions};
use crate::ratio::turns;
use crate::{Run, view};

/// What a pilot tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Pilot {
    /// What blocks and windows are chosen by.
    pub design: Design,
    /// Seconds from one trial to the next, on average.
    pub trial_s: f64,
    /// Seconds that the pilot took, without what it had to build.
    pub spent_s: f64,
}

/// What the pilot `run` tells of runs of its experiment with `cells` cells. `None` where nothing of it was measured twice.
pub fn pilot(run: &Run, cells: usize) -> Option<Pilot> {
    let records = Records::new(&run.plan, &run.trials);
    let mut compared: BTreeMap<&str, Vec<Comparison>> = BTreeMap::new();
    for case in records.cases() {
        let workload = &*case.cell.workload;
        let own = Comparison::of(&case, baseline(&case).as_ref());
        compared.entry(workload).or_default().push(own);
    }
    let ratios = |of: &Vec<Comparison>| of.iter().filter(|of| of.is_ratio).count();
    let comparisons = compared.values().map(ratios).max().unwrap_or(0);
    for of in compared.values_mut() {
        // What is compared with nothing counts only where nothing is compared at all.
        of.retain(|of| of.is_ratio || comparisons == 0);
    }
    let noise: Vec<PilotNoise> = compared.values().filter_map(|of| noise(of)).collect();
    let is_known = compared.values().flatten().any(|of| !of.within.is_empty());
    let window_s = run.plan.duration_ns as f64 / 1e9;
    if noise.is_empty() {
        return None;
    }
    let trial_s = apart_s(&run.trials);
    let design = Design {
        cost: cost(&records, cells, trial_s, window_s),
        noise,
        window_s,
        comparisons: comparisons.max(1),
        // What a longer window would gain is known of servers only.
        windows: match is_known {
            true => WINDOWS.to_vec(),
            false => vec![window_s],
        },
    };
    Some(Pilot {
        design,
        trial_s,
        spent_s: trial_s * own(&run.trials).count() as f64,
    })
}

/// How the logarithm of a ratio of a server and its copy is taken to vary where no pilot tells it, as standard deviations: from start to start,
/// and at least so much within a second of window in turns. Of 64 starts each of servers in C, Rust, Go and Node it was up to 2.4 %, and 2.0 to 4.5 %.
const BETWEEN_STARTS: f64 = 0.02;
const WITHIN_MIN: f64 = 0.025;
/// By how many degrees of freedom that is known.
const DEGREES: f64 = 5.0;

/// What the trials that choose the warm-up tell of the run `planned`, whose warm-up is then `warm_up`: what starting costs, and how
/// uneven windows are. How servers differ from start to start is taken from others. `None` where the run has no servers alone, or nothing
/// to compare them with.
pub fn by_first_trials(run: &Run, planned: &Plan, warm_up: Nanos) -> Option<Pilot> {
    let records = Records::new(&run.plan, &run.trials);
    let (mut within, mut comparisons) = (BTreeMap::<&str, Vec<f64>>::new(), BTreeMap::new());
    for case in records.cases() {
        // The second half: in the first one the server warms up.
        let unevenness = case.measured().filter_map(|trial| unevenness(trial, 0.5));
        let own = within.entry(&case.cell.workload).or_default();
        own.extend(unevenness);
        let is_compared = baseline(&case).is_some();
        *comparisons.entry(&case.cell.workload).or_default() += usize::from(is_compared);
    }
    let comparisons: usize = comparisons.into_values().max()?;
    if comparisons == 0 || records.cases().any(|case| !is_of_server(&case)) {
        return None;
    }
    let window_s = run.plan.duration_ns as f64 / 1e9;
    let noise = within.into_values().filter(|of| !of.is_empty()).map(|of| {
        // Of both sides, in a second: half of a window is seen. Slices that follow upon each other show less than turns do.
        let seen = 2.0 * of.iter().sum::<f64>() / of.len() as f64 * window_s / 2.0;
        let within = seen.max(WITHIN_MIN * WITHIN_MIN);
        PilotNoise {
            variance: BETWEEN_STARTS * BETWEEN_STARTS + within,
            within,
            degrees: DEGREES,
            between_min: 0.0,
        }
    });
    let noise: Vec<PilotNoise> = noise.collect();
    let trial_s = apart_s(&run.trials);
    let cells = planned.cells.len() as f64;
    let starts_s = (trial_s - window_s).max(0.0) + warm_up.as_secs_f64();
    (!noise.is_empty()).then_some(Pilot {
        design: Design {
            cost: BlockCost {
                windows: cells * turns_of(planned),
                beside_s: cells * starts_s,
            },
            noise,
            window_s: 1.0,
            comparisons,
            windows: WINDOWS.to_vec(),
        },
        trial_s: starts_s,
        spent_s: 0.0,
    })
}

/// Between which values the smallest difference in rate comes out that the whole `run` will tell, in nine of ten such runs, by its blocks
/// so far. The workload that tells the least decides. `None` where too few blocks are measured.
pub fn forecast(run: &Run) -> Option<(Share, Share)> {
    let cells = view::compute(run).cells;
    let of_workload = |of: Resolution| of.first_blocks().forecast(run.plan.blocks as usize);
    let all = resolutions(&run.plan, &cells)
        .into_iter()
        .filter_map(of_workload);
    let most = |one: Share, other: Share| if one.0 > other.0 { one } else { other };
    all.reduce(|one, other| (most(one.0, other.0), most(one.1, other.1)))
}

fn is_of_server(case: &Case<'_>) -> bool {
    !case.is_program() && !case.is_client() && !case.is_search()
}

fn own(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    trials
        .iter()
        .filter(|trial| trial.generator == GeneratorKind::Prony)
}

/// Seconds from one trial to the next, on average.
fn apart_s(trials: &[Trial]) -> f64 {
    if own(trials).any(|trial| !trial.visits.is_empty()) {
        return share_s(trials);
    }
    let starts: Vec<u64> = own(trials).map(|trial| trial.started_unix_ms).collect();
    let (first, last) = (starts.iter().min(), starts.iter().max());
    let length_ms = last.copied().unwrap_or(0) - first.copied().unwrap_or(0);
    length_ms as f64 / 1e3 / starts.len().saturating_sub(1).max(1) as f64
}

/// A trial's share of all the time: those that are alive together begin together.
fn share_s(trials: &[Trial]) -> f64 {
    let ended = |trial: &Trial| {
        let last = trial.phases.last();
        let length_ms = last.map_or(0, |p| p.start_ns.saturating_add(p.length_ns) / 1_000_000);
        trial.started_unix_ms.saturating_add(length_ms)
    };
    let first = own(trials).map(|trial| trial.started_unix_ms).min();
    let last = own(trials).map(ended).max();
    let length_ms = last.unwrap_or(0).saturating_sub(first.unwrap_or(0));
    length_ms as f64 / 1e3 / own(trials).count().max(1) as f64
}

struct Comparison {
    is_ratio: bool,
    /// `(value, baseline)`, or 1 for that.
    pairs: Vec<(f64, f64)>,
    /// Of each of these trials, or pairs of visited ones, the variance of the comparison that the windows' own
    /// unevenness makes.
    within: Vec<f64>,
}

impl Comparison {
    fn of(case: &Case<'_>, baseline: Option<&Case<'_>>) -> Comparison {
        let theirs: Option<BTreeMap<u32, f64>> =
            baseline.map(|of| of.rates().into_iter().collect());
        let pair = |(block, rate): (u32, f64)| match &theirs {
            Some(theirs) => Some((rate, *theirs.get(&block)?)),
            None => Some((rate, 1.0)),
        };
        let trials = case.measured();
        let trials = trials.chain(baseline.into_iter().flat_map(Case::measured));
        let sides = if baseline.is_some() { 2.0 } else { 1.0 };
        let alone = trials.filter_map(|trial| Some(sides * unevenness(trial, 0.0)?));
        let paired = baseline
            .map(|of| visited_pairs(case, of))
            .unwrap_or_default();
        Comparison {
            is_ratio: baseline.is_some(),
            pairs: case.rates().into_iter().filter_map(pair).collect(),
            within: match paired.is_empty() {
                true => alone.collect(),
                false => paired,
            },
        }
    }
}

/// Of each block in which both were visited: the variance of the mean over the logarithms of the ratios of its rounds.
fn visited_pairs(case: &Case<'_>, baseline: &Case<'_>) -> Vec<f64> {
    let of_block = |logs: Vec<f64>| {
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        squares / (count - 1.0) / count
    };
    turns(baseline, case).map(of_block).collect()
}

/// How uneven a trial's window is, without a part of it at the beginning.
fn unevenness(trial: &Trial, skipped: f64) -> Option<f64> {
    // The window of a search's trial has no part in what it found.
    let load = trial.load.as_ref().filter(|_| trial.search.is_none())?;
    let slices = &load.slices.completed;
    let slices = slices.iter().skip((slices.len() as f64 * skipped) as usize);
    window_variance(&slices.map(|count| *count as f64).collect::<Vec<_>>())
}

fn noise(comparisons: &[Comparison]) -> Option<PilotNoise> {
    let pairs: Vec<Vec<(f64, f64)>> = comparisons.iter().map(|of| of.pairs.clone()).collect();
    let deviation = pooled_deviation(&pairs)?;
    let within: Vec<f64> = comparisons
        .iter()
        .flat_map(|of| of.within.clone())
        .collect();
    let pairs = |of: &Comparison| of.pairs.len().saturating_sub(1);
    let freedom: usize = comparisons.iter().map(pairs).sum();
    let shared = comparisons.iter().filter(|of| of.is_ratio).count().max(1);
    let freedom = freedom as f64 * independent(shared) / shared as f64;
    Some(PilotNoise {
        variance: deviation * deviation,
        degrees: freedom,
        within: match within.len() {
            0 => 0.0,
            count => within.iter().sum::<f64>() / count as f64,
        },
        between_min: BETWEEN_MIN,
    })
}

/// What a turn takes beside lead-in and window.
const TURN_BESIDE_NS: u64 = 10_000_000;

/// Time in turns for each second of window: each visit has its lead-in, and processes are stopped and go on.
fn turns_of(plan: &Plan) -> f64 {
    plan.visits.as_ref().map_or(1.0, |visits| {
        let length = visits.length_ns.max(1);
        (length + visits.lead_in_ns + TURN_BESIDE_NS) as f64 / length as f64
    })
}

/// What a block of `cells` cells costs.
fn cost(records: &Records<'_>, cells: usize, trial_s: f64, window_s: f64) -> BlockCost {
    let has_window = |case: &Case<'_>| !case.is_program() && window_s > 0.0;
    let windows = records.cases().filter(has_window).count();
    let share = windows as f64 / records.plan.cells.len().max(1) as f64 * turns_of(records.plan);
    BlockCost {
        windows: cells as f64 * share,
        beside_s: cells as f64 * (trial_s - share * window_s).max(0.0),
    }
}
