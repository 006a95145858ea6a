//! Claims: what one figure is against that of its baseline, how sure that is, and what may be said of it.
//!
//! Every ratio of a document is a [`RatioFigure`], made from pairs of values of the same blocks. When all are there,
//! [`settle`] gives them their intervals: those of one metric hold together ([`prony_stats::simultaneous`]), so that no
//! sentence says more than the numbers beside it. What cannot be used enters no claim; a figure that is a bound makes a
//! claim in one direction only; and where a copy of the baseline differs from it, nothing is claimed of that metric.
//!
//! Not for: sentences.

use std::collections::BTreeMap;

use prony_findings::Verdict;
use prony_record::Plan;
use prony_stats::{BLOCKS_INTERVAL_MIN, detectable, pooled_deviation, simultaneous};
use serde::Serialize;

use crate::clients::steps::Step;
use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::programs::across::Across;
use crate::ratio::{BY_COPY, RatioFigure};

/// Confidence of the intervals, taken together, by which copies of baselines are seen to differ from them.
const COPY_CONFIDENCE: f64 = 0.99;

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
    let mut families: BTreeMap<&'static str, Family<'_>> = BTreeMap::new();
    let rates = families.entry(Metric::RATE.key).or_default();
    rates.claims.extend(of_programs);
    rates.claims.extend(of_steps);
    for cell in cells {
        let own = is_bound[&cell.cell];
        for (metric, ratio) in ratios(cell) {
            let family = families.entry(metric.key).or_default();
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
    for metric in Metric::claimed() {
        if let Some(family) = families.remove(metric.key) {
            family.settle(metric);
        }
    }
}

/// All ratios of a cell, each with whether it is that of a copy of the baseline.
fn ratios(cell: &mut CellFigures) -> Vec<(Metric, (bool, &mut RatioFigure))> {
    let is_copy = cell.is_copy;
    let rate = cell.ratio.iter_mut().map(|ratio| (Metric::RATE, ratio));
    let client = cell.client.as_mut().and_then(|c| c.cpu_ratio.as_mut());
    let client = client.into_iter().map(|ratio| (Metric::CPU, ratio));
    let metric = |key: &str| {
        let mut all = Metric::beside_rate();
        all.find(|metric| metric.key == key)
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
        .filter(|cell| cell.is_invalid())
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
        if let Some(below) = metric.bound_below {
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
    use crate::ratio::BY_BOUND;

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
        settled(Metric::RATE, &mut one, &[]);
        assert_eq!(one[0].conclusion, "higher");
        let mut many = vec![around(1.05, 0.02); 20];
        settled(Metric::RATE, &mut many, &[]);
        // The quantiles of Student's distribution with five degrees of freedom at 0.975 and at 1 - 0.05 / 40.
        let half = |of: &RatioFigure| libm::log(of.high / of.ratio);
        assert!((half(&many[0]) / half(&one[0]) - 5.604 / 2.571).abs() < 0.01);
        assert_eq!(many[0].conclusion, "no-difference-shown");
        // Those without an interval take nothing from the others.
        let pairs = vec![(1.0, 1.0); 5];
        let mut with_few = vec![RatioFigure::of("baseline", pairs).expect("pairs"); 20];
        with_few.push(around(1.05, 0.02));
        settled(Metric::RATE, &mut with_few, &[]);
        assert_eq!(with_few[20], one[0]);
    }

    #[test]
    fn a_ratio_to_what_is_invalid_was_claimed() {
        let settled = |verdict| {
            let baseline = CellFigures {
                cell: "baseline".to_owned(),
                verdict: Some(verdict),
                ..CellFigures::default()
            };
            let value = CellFigures {
                cell: "value".to_owned(),
                ratio: Some(around(1.5, 0.001)),
                ratios: [(Metric::P99.key, around(0.5, 0.001))].into(),
                ..CellFigures::default()
            };
            let mut cells = [baseline, value];
            settle(&mut cells, None, None);
            let [_, value] = cells;
            let rate = value.ratio.map(|ratio| ratio.conclusion);
            (rate, value.ratios.len())
        };
        assert_eq!(settled(Verdict::Valid), (Some("higher"), 1));
        assert_eq!(settled(Verdict::Invalid), (None, 0));
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
            said(Metric::RATE, 1.5, true, false),
            ("higher", "at-least", "")
        );
        assert_eq!(said(Metric::RATE, 0.5, true, false), nothing);
        assert_eq!(said(Metric::RATE, 1.0, true, false), nothing);
        assert_eq!(
            said(Metric::RATE, 0.5, false, true),
            ("lower", "at-most", "")
        );
        assert_eq!(said(Metric::RATE, 1.5, false, true), nothing);
        assert_eq!(said(Metric::RATE, 1.5, true, true), nothing);
        assert_eq!(said(Metric::RATE, 1.5, false, false), ("higher", "", ""));
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
        assert_eq!(said(Metric::CPU, 1.5, true, true), ("higher", "", ""));
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
            family.settle(Metric::RATE);
            (claim.conclusion, claim.unclaimed, copy.conclusion)
        };
        assert_eq!(settled(1.0005), ("higher", "", "no-difference-shown"));
        assert_eq!(settled(1.01), ("not-claimed", BY_COPY, "higher"));
    }
}
