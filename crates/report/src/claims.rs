//! Claims: what one figure is against that of its baseline, how sure that is, and what may be said of it.
//!
//! Every ratio of a document is a [`RatioFigure`], made from pairs of values of the same blocks. When all are there,
//! [`settle`] gives them their intervals: those of one metric hold together ([`prony_stats::simultaneous`]), so that no
//! sentence says more than the numbers beside it. What cannot be used enters no claim; a figure that is a bound makes a
//! claim in one direction only; and where a copy of the baseline differs from it, nothing is claimed of that metric.
//!
//! Not for: sentences.

use std::collections::{BTreeMap, BTreeSet};

use prony_findings::{Case, Verdict, measure};
use prony_record::{NEVER, Plan, Role, Trial};
use prony_stats::{
    BLOCKS_INTERVAL_MIN, Comparison, Conclusion, SpreadKind, compare, compare_at, detectable,
    pooled_deviation, simultaneous,
};
use serde::Serialize;

use crate::Run;
use crate::clients::steps::Step;
use crate::figures::{CellFigures, latency_of};
use crate::programs::across::Across;

/// Confidence of the intervals, taken together, by which copies of baselines are seen to differ from them.
const COPY_CONFIDENCE: f64 = 0.99;

/// What is compared beside the rate, with its key in `summary.json`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Metric {
    /// Requests, or what a program counts, a second.
    Rate,
    /// Median latency.
    P50,
    /// The latency that one request in a hundred exceeds.
    P99,
    /// CPU time of the subject a request.
    Cpu,
}

impl Metric {
    /// Those that a server has beside its rate.
    pub const BESIDE_RATE: [Metric; 3] = [Metric::P50, Metric::P99, Metric::Cpu];

    /// All of them.
    pub const ALL: [Metric; 4] = [Metric::Rate, Metric::P50, Metric::P99, Metric::Cpu];

    /// Its unit in files; what a request is, is a count of a program.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Rate => "requests/s",
            Metric::P50 | Metric::P99 => "ns",
            Metric::Cpu => "ns/request",
        }
    }

    /// Which way is better: `higher` or `lower`.
    pub fn better(self) -> &'static str {
        match self {
            Metric::Rate => "higher",
            Metric::P50 | Metric::P99 | Metric::Cpu => "lower",
        }
    }

    /// Its value in each measured block of a cell.
    pub fn values(self, run: &Run, case: &Case<'_>) -> Vec<(u32, f64)> {
        let of_server = |trial: &Trial| Some((trial.block, self.of_trial(run, trial)?));
        match self {
            Metric::Rate => case.rates(),
            // Those of the closed loop before a search are no figures of its cell.
            Metric::P50 | Metric::P99 if case.is_search() => Vec::new(),
            _ => case.measured().filter_map(of_server).collect(),
        }
    }

    /// Its key.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Rate => "rate",
            Metric::P50 => "p50",
            Metric::P99 => "p99",
            Metric::Cpu => "cpu_subject",
        }
    }

    /// Its value in a trial of a server.
    fn of_trial(self, run: &Run, trial: &Trial) -> Option<f64> {
        let latency = |name, q| {
            let ns = latency_of(run, trial, name, q).filter(|ns| *ns < NEVER);
            ns.map(|ns| ns as f64)
        };
        match self {
            Metric::Rate => Some(measure::rate(trial.load.as_ref()?)?.0),
            Metric::P50 => latency("p50", 0.5),
            Metric::P99 => latency("p99", 0.99),
            Metric::Cpu => Some(measure::cpu_per_request(trial, Role::Subject)?.0),
        }
    }

    /// Whether a figure that is a bound (the generator was the limit) is one from below. `None`: it is none at all.
    fn is_bound_below(self) -> Option<bool> {
        match self {
            Metric::Rate => Some(true),
            Metric::P50 | Metric::P99 => Some(false),
            Metric::Cpu => None,
        }
    }
}

/// A figure over that of its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatioFigure {
    /// The baseline's cell.
    pub reference_cell: String,
    /// Geometric mean of the blocks' ratios.
    pub ratio: f64,
    /// Lower end of range or interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// `range` or `interval`.
    pub spread: &'static str,
    /// Blocks in which both were measured.
    pub blocks: usize,
    /// `not-claimed`, `no-difference-shown`, `higher` or `lower`.
    pub conclusion: &'static str,
    /// `at-least` or `at-most`: how the ratio is to be read where one of the two figures is a bound; else empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub bound: &'static str,
    /// Why nothing is claimed although there is an interval; else empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub unclaimed: &'static str,
    /// What it was made from: `(value, baseline)` by block.
    #[serde(skip)]
    pairs: Vec<(f64, f64)>,
}

/// Why nothing is claimed: a figure is a bound, which does not settle it.
pub const BY_BOUND: &str = "a figure is a bound";
/// Why nothing is claimed: a copy of the baseline differs from it.
pub const BY_COPY: &str = "a copy of the baseline differs from it";

impl RatioFigure {
    /// The ratio of pairs `(value, baseline)`, with an interval of its own until it is [settled](settle).
    pub fn of(reference_cell: &str, pairs: Vec<(f64, f64)>) -> Option<RatioFigure> {
        let compared = compare(&pairs)?;
        let mut figure = RatioFigure {
            reference_cell: reference_cell.to_owned(),
            ratio: compared.ratio.0,
            low: 0.0,
            high: 0.0,
            spread: "",
            blocks: compared.blocks,
            conclusion: "",
            bound: "",
            unclaimed: "",
            pairs,
        };
        figure.take(&compared);
        Some(figure)
    }

    fn take(&mut self, compared: &Comparison) {
        (self.low, self.high) = (compared.spread.low.0, compared.spread.high.0);
        self.spread = match compared.spread.kind {
            SpreadKind::Range => "range",
            SpreadKind::Interval => "interval",
        };
        self.conclusion = match compared.conclusion {
            Conclusion::NotClaimed => "not-claimed",
            Conclusion::NoDifferenceShown => "no-difference-shown",
            Conclusion::Higher => "higher",
            Conclusion::Lower => "lower",
        };
    }

    /// Gives it the interval of this confidence.
    pub fn at(&mut self, confidence: f64) {
        if let Some(compared) = compare_at(&self.pairs, confidence) {
            self.take(&compared);
        }
    }

    /// Whether it has an interval.
    pub fn is_interval(&self) -> bool {
        self.spread == "interval"
    }

    fn unclaim(&mut self, why: &'static str) {
        if self.is_interval() {
            (self.conclusion, self.unclaimed) = ("not-claimed", why);
        }
    }

    /// Where the value (`own`) or its baseline is a bound from below or from above, only one direction can be said.
    fn bind(&mut self, own: bool, baseline: bool, below: bool) {
        // The value at least so high, or the baseline at most: the ratio is at least this.
        let at_least = if below { own } else { baseline };
        let at_most = if below { baseline } else { own };
        match (at_least, at_most, self.conclusion) {
            (false, false, _) => {}
            (true, false, "higher") => self.bound = "at-least",
            (false, true, "lower") => self.bound = "at-most",
            _ => self.unclaim(BY_BOUND),
        }
    }
}

/// The ratio of `case` to `baseline` by a value of their trials, block by block.
pub fn paired(
    baseline: &Case<'_>,
    own: impl IntoIterator<Item = (u32, f64)>,
    theirs: impl IntoIterator<Item = (u32, f64)>,
) -> Option<RatioFigure> {
    let theirs: BTreeMap<u32, f64> = theirs.into_iter().collect();
    let pair = |(block, value): (u32, f64)| Some((value, *theirs.get(&block)?));
    RatioFigure::of(
        &baseline.cell.id,
        own.into_iter().filter_map(pair).collect(),
    )
}

/// The rate of `case` over that of `baseline`.
pub fn rates(baseline: &Case<'_>, case: &Case<'_>) -> Option<RatioFigure> {
    let apart = measured_apart(baseline, case);
    let own = case.rates().into_iter();
    paired(
        baseline,
        own.filter(|(block, _)| !apart.contains(block)),
        baseline.rates(),
    )
}

/// The blocks in which one was visited in turns and the other was not: a ratio of theirs would hold the difference of
/// the methods. A run that was resumed may have one such.
fn measured_apart(baseline: &Case<'_>, case: &Case<'_>) -> BTreeSet<u32> {
    let method = |trial: &Trial| (trial.block, trial.visits.is_empty());
    let theirs: BTreeSet<(u32, bool)> = baseline.measured().map(method).collect();
    let own = case.measured().map(method);
    own.filter(|(block, alone)| theirs.contains(&(*block, !alone)))
        .map(|(block, _)| block)
        .collect()
}

/// What a server has beside its rate, against its baseline. CPU time a request and latency of an open loop are claimed, too;
/// its rate is the schedule's doing.
pub fn rate_against(
    run: &Run,
    baseline: &Case<'_>,
    case: &Case<'_>,
) -> BTreeMap<&'static str, RatioFigure> {
    let apart = measured_apart(baseline, case);
    let figure = |metric: Metric| {
        let own = metric.values(run, case).into_iter();
        let figure = paired(
            baseline,
            own.filter(|(block, _)| !apart.contains(block)),
            metric.values(run, baseline),
        )?;
        Some((metric.key(), figure))
    };
    Metric::BESIDE_RATE.into_iter().filter_map(figure).collect()
}

/// Gives every ratio of a document its interval and what may be said of it: see the top of this file.
pub fn settle(cells: &mut [CellFigures], across: Option<&mut Across>, steps: Option<&mut [Step]>) {
    leave_out(cells);
    let (mut of_programs, mut of_steps) = (Vec::new(), Vec::new());
    if let Some(across) = across {
        let effects = across.effects.iter_mut().map(|effect| &mut effect.ratio);
        let efficiencies = across.efficiencies.iter_mut().map(|of| &mut of.ratio);
        of_programs.extend(effects.chain(efficiencies));
    }
    if let Some(steps) = steps {
        of_steps.extend(steps.iter_mut().map(|step| &mut step.ratio));
    }
    let is_bound: BTreeMap<String, bool> = cells
        .iter()
        .map(|cell| (cell.cell.clone(), cell.verdict == Some(Verdict::Bound)))
        .collect();
    let mut families: BTreeMap<Metric, Family<'_>> = BTreeMap::new();
    let rates = families.entry(Metric::Rate).or_default();
    rates.claims.extend(of_programs);
    rates.claims.extend(of_steps);
    for cell in cells {
        let own = is_bound[&cell.cell];
        for (metric, ratio) in ratios(cell) {
            let family = families.entry(metric).or_default();
            let baseline = is_bound.get(&ratio.1.reference_cell);
            let bounds = (own, baseline.copied().unwrap_or(false));
            match ratio.0 {
                true => family.copies.push(ratio.1),
                false => {
                    family.bounds.push((family.claims.len(), bounds));
                    family.claims.push(ratio.1);
                }
            }
        }
    }
    for (metric, family) in families {
        family.settle(metric);
    }
}

/// All ratios of a cell, each with whether it is that of a copy of the baseline.
fn ratios(cell: &mut CellFigures) -> Vec<(Metric, (bool, &mut RatioFigure))> {
    let is_copy = cell.is_copy;
    let rate = cell.ratio.iter_mut().map(|ratio| (Metric::Rate, ratio));
    let client = cell.client.as_mut().and_then(|c| c.cpu_ratio.as_mut());
    let client = client.into_iter().map(|ratio| (Metric::Cpu, ratio));
    let metric = |key: &str| {
        let mut all = Metric::BESIDE_RATE.into_iter();
        all.find(|metric| metric.key() == key)
    };
    let others = cell.ratios.iter_mut();
    let others = others.filter_map(|(key, ratio)| Some((metric(key)?, ratio)));
    rate.chain(client)
        .chain(others)
        .map(|(metric, ratio)| (metric, (is_copy, ratio)))
        .collect()
}

/// What is invalid, or stands against what is, has no ratio.
fn leave_out(cells: &mut [CellFigures]) {
    let invalid: Vec<String> = cells
        .iter()
        .filter(|cell| cell.verdict == Some(Verdict::Invalid))
        .map(|cell| cell.cell.clone())
        .collect();
    for cell in cells {
        let is_out = |ratio: &RatioFigure| {
            invalid.contains(&cell.cell) || invalid.contains(&ratio.reference_cell)
        };
        cell.ratio = cell.ratio.take().filter(|ratio| !is_out(ratio));
        cell.ratios.retain(|_, ratio| !is_out(ratio));
        if let Some(client) = &mut cell.client {
            client.cpu_ratio = client.cpu_ratio.take().filter(|ratio| !is_out(ratio));
        }
    }
}

/// All claims of one metric in a document.
#[derive(Default)]
struct Family<'a> {
    claims: Vec<&'a mut RatioFigure>,
    /// Place among these, and whether the value and its baseline are bounds.
    bounds: Vec<(usize, (bool, bool))>,
    /// Copies of baselines: these are no claims, but what the claims rest on.
    copies: Vec<&'a mut RatioFigure>,
}

impl Family<'_> {
    fn settle(mut self, metric: Metric) {
        let of_copy = 1.0 - (1.0 - COPY_CONFIDENCE) / self.copies.len().max(1) as f64;
        let mut copies_differ = false;
        for copy in &mut self.copies {
            copy.at(of_copy);
            copies_differ |= matches!(copy.conclusion, "higher" | "lower");
        }
        let count = self
            .claims
            .iter()
            .filter(|claim| claim.is_interval())
            .count();
        for claim in &mut self.claims {
            claim.at(simultaneous(count));
            if copies_differ {
                claim.unclaim(BY_COPY);
            }
        }
        if let Some(below) = metric.is_bound_below() {
            for (at, (own, baseline)) in self.bounds {
                self.claims[at].bind(own, baseline, below);
            }
        }
    }
}

/// What a run could have told of the rates of one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolution {
    /// The workload.
    pub workload: String,
    /// Pairs of the comparisons that have the fewest.
    pub blocks: usize,
    /// Comparisons of rates in the document, which hold together.
    pub comparisons: usize,
    /// Standard deviation of the paired logarithms, pooled over the workload's comparisons.
    pub deviation: f64,
    /// The smallest difference that would be claimed in 80 % of such runs: 0.05 is 5 %. `None`: nothing is claimed.
    pub detectable: Option<f64>,
}

/// What the run could have told, by workload, in the plan's order.
pub fn resolutions(plan: &Plan, cells: &[CellFigures]) -> Vec<Resolution> {
    let claims = cells.iter().filter(|c| !c.is_copy);
    let intervals = claims.filter_map(|c| c.ratio.as_ref());
    let comparisons = intervals.filter(|ratio| ratio.is_interval()).count();
    let of_workload = |name: &str| {
        let own = cells.iter().filter(|c| c.workload == name);
        let own: Vec<&RatioFigure> = own.filter_map(|c| c.ratio.as_ref()).collect();
        let pairs: Vec<Vec<(f64, f64)>> = own.iter().map(|ratio| ratio.pairs.clone()).collect();
        let enough = own.iter().map(|ratio| ratio.blocks);
        let blocks = enough.clone().filter(|n| *n >= BLOCKS_INTERVAL_MIN).min();
        let blocks = blocks.or(enough.max())?;
        let deviation = pooled_deviation(&pairs)?;
        Some(Resolution {
            workload: name.to_owned(),
            blocks,
            comparisons,
            deviation,
            detectable: detectable(deviation, blocks, comparisons).map(|share| share.0),
        })
    };
    let names = plan.workloads.iter().map(|workload| &*workload.name);
    names.filter_map(of_workload).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six blocks whose logarithms lie `apart` around that of `ratio`.
    fn around(ratio: f64, apart: f64) -> RatioFigure {
        let steps = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5];
        let pairs = steps.map(|step: f64| (ratio * libm::exp(step * apart), 1.0));
        RatioFigure::of("baseline", pairs.to_vec()).expect("pairs")
    }

    fn settled(metric: Metric, ratios: &mut [RatioFigure], bounds: &[(usize, (bool, bool))]) {
        let family = Family {
            claims: ratios.iter_mut().collect(),
            bounds: bounds.to_vec(),
            copies: Vec::new(),
        };
        family.settle(metric);
    }

    #[test]
    fn twenty_intervals_hold_together_and_one_by_itself() {
        let mut one = [around(1.05, 0.02)];
        settled(Metric::Rate, &mut one, &[]);
        assert_eq!(one[0].conclusion, "higher");
        let mut many = vec![around(1.05, 0.02); 20];
        settled(Metric::Rate, &mut many, &[]);
        // The quantiles of Student's distribution with five degrees of freedom at 0.975 and at 1 - 0.05 / 40.
        let half = |of: &RatioFigure| libm::log(of.high / of.ratio);
        assert!((half(&many[0]) / half(&one[0]) - 5.604 / 2.571).abs() < 0.01);
        assert_eq!(many[0].conclusion, "no-difference-shown");
        // Those without an interval take nothing from the others.
        let pairs = vec![(1.0, 1.0); 5];
        let mut with_few = vec![RatioFigure::of("baseline", pairs).expect("pairs"); 20];
        with_few.push(around(1.05, 0.02));
        settled(Metric::Rate, &mut with_few, &[]);
        assert_eq!(with_few[20], one[0]);
    }

    #[test]
    fn a_bound_is_claimed_in_one_direction_only() {
        let said = |metric, ratio, own, baseline| {
            let mut ratios = [around(ratio, 0.001)];
            settled(metric, &mut ratios, &[(0, (own, baseline))]);
            let [of] = ratios;
            (of.conclusion, of.bound, of.unclaimed)
        };
        let nothing = ("not-claimed", "", BY_BOUND);
        // A rate that is at least so high.
        assert_eq!(
            said(Metric::Rate, 1.5, true, false),
            ("higher", "at-least", "")
        );
        assert_eq!(said(Metric::Rate, 0.5, true, false), nothing);
        assert_eq!(said(Metric::Rate, 1.0, true, false), nothing);
        assert_eq!(
            said(Metric::Rate, 0.5, false, true),
            ("lower", "at-most", "")
        );
        assert_eq!(said(Metric::Rate, 1.5, false, true), nothing);
        assert_eq!(said(Metric::Rate, 1.5, true, true), nothing);
        assert_eq!(said(Metric::Rate, 1.5, false, false), ("higher", "", ""));
        // A latency that is at most so long.
        assert_eq!(
            said(Metric::P99, 0.5, true, false),
            ("lower", "at-most", "")
        );
        assert_eq!(said(Metric::P99, 1.5, true, false), nothing);
        assert_eq!(
            said(Metric::P99, 1.5, false, true),
            ("higher", "at-least", "")
        );
        // CPU time is what was used, whoever was the limit.
        assert_eq!(said(Metric::Cpu, 1.5, true, true), ("higher", "", ""));
    }

    #[test]
    fn a_copy_that_differs_takes_all_claims_of_its_metric_back() {
        let settled = |of_copy: f64| {
            let (mut claim, mut copy) = (around(2.0, 0.001), around(of_copy, 0.001));
            let family = Family {
                claims: vec![&mut claim],
                bounds: Vec::new(),
                copies: vec![&mut copy],
            };
            family.settle(Metric::Rate);
            (claim.conclusion, claim.unclaimed, copy.conclusion)
        };
        assert_eq!(settled(1.0005), ("higher", "", "no-difference-shown"));
        assert_eq!(settled(1.01), ("not-claimed", BY_COPY, "higher"));
    }
}
