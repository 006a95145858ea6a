//! Claims: what one figure is against that of its baseline, how sure that is, and what may be said of it.
//!
//! Every ratio of a document is a [`RatioFigure`], made from pairs of values of the same blocks. When all are there,
//! [`settle`] gives them their intervals: those of a workload's rates hold together, and so do those of all other metrics of
//! the run ([`prony_stats::together`]), so that no sentence says more than the numbers beside it. Each is as wide as the
//! subject's cells of that workload, or of all where it has one in each, vary ([`prony_stats::moderated`]). What cannot be used enters no claim; a figure that is a bound makes a
//! claim in one direction only; and where a copy of the baseline differs from it, nothing is claimed of that metric.
//!
//! Not for: sentences.

use std::collections::{BTreeMap, BTreeSet};

use prony_findings::Verdict;
use prony_record::Plan;
use prony_stats::{
    BLOCKS_INTERVAL_MIN, CONFIDENCE, FirstBlocks, Siblings, Variance, detectable_by, median,
    moderated, together,
};
use serde::Serialize;

use crate::clients::steps::Step;
use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::programs::across::Across;
use crate::ratio::{RatioFigure, Unclaimed};

/// Confidence of the intervals, taken together, by which copies of baselines are seen to differ from them.
const COPY_CONFIDENCE: f64 = 0.99;

/// Gives every ratio of a document its interval and what may be said of it: see the top of this file.
pub fn settle(cells: &mut [CellFigures], across: Option<&mut Across>, steps: Option<&mut [Step]>) {
    leave_out(cells);
    let is_bound: BTreeMap<String, bool> = cells
        .iter()
        .map(|cell| (cell.cell.clone(), cell.verdict == Some(Verdict::Bound)))
        .collect();
    let mut claims: Vec<RatioClaim<'_>> = Vec::new();
    for cell in cells {
        let own = is_bound[&cell.cell];
        let (subject, workload) = (cell.subject.clone(), cell.workload.clone());
        let is_copy = cell.is_copy;
        claims.extend(ratios(cell).into_iter().map(|(metric, ratio)| RatioClaim {
            metric,
            subject: subject.clone(),
            workload: Some(workload.clone()),
            is_copy,
            bounds: (own, is_bound.get(&ratio.reference_cell) == Some(&true)),
            ratio,
        }));
    }
    let across = across.into_iter().flat_map(|across| {
        let effects = across.effects.iter_mut().map(|effect| &mut effect.ratio);
        let efficiencies = across.efficiencies.iter_mut().map(|of| &mut of.ratio);
        effects.chain(efficiencies)
    });
    let steps = steps.into_iter().flatten().map(|step| &mut step.ratio);
    claims.extend(across.chain(steps).map(RatioClaim::of_several));
    settle_claims(claims);
}

/// What one figure is against that of its baseline.
struct RatioClaim<'a> {
    ratio: &'a mut RatioFigure,
    metric: Metric,
    subject: String,
    /// `None` where several cells are compared with several.
    workload: Option<String>,
    /// That of a copy of the baseline: it is no claim, but what claims rest on.
    is_copy: bool,
    /// Whether the value and its baseline are bounds.
    bounds: (bool, bool),
}

impl<'a> RatioClaim<'a> {
    fn of_several(ratio: &'a mut RatioFigure) -> RatioClaim<'a> {
        RatioClaim {
            ratio,
            metric: Metric::RATE,
            subject: String::new(),
            workload: None,
            is_copy: false,
            bounds: (false, false),
        }
    }

    /// What it holds together with: the rates of its workload; of all else, everything in the run.
    fn family(&self) -> Option<String> {
        self.workload.clone().filter(|_| self.metric.is_rate())
    }
}

fn settle_claims(mut claims: Vec<RatioClaim<'_>>) {
    let subjects = moderate(&mut claims);
    // Those of a family hold together: each by its place.
    let mut families: BTreeMap<Option<String>, BTreeSet<usize>> = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        if claim.ratio.is_interval() && !claim.is_copy {
            families.entry(claim.family()).or_default().insert(at);
        }
    }
    let confidences: BTreeMap<Option<String>, f64> = families
        .into_iter()
        .map(|(family, places)| (family, confidence(&subjects, &places)))
        .collect();
    let copies = |claim: &&mut RatioClaim<'_>| claim.is_copy;
    let mut of_copies: BTreeMap<&str, usize> = BTreeMap::new();
    for copy in claims.iter_mut().filter(copies) {
        *of_copies.entry(copy.metric.key).or_default() += 1;
    }
    let mut differ = BTreeSet::new();
    for copy in claims.iter_mut().filter(copies) {
        let count = of_copies[copy.metric.key];
        copy.ratio.at(1.0 - (1.0 - COPY_CONFIDENCE) / count as f64);
        if copy.ratio.is_difference() {
            differ.insert(copy.metric.key);
        }
    }
    for claim in claims.iter_mut().filter(|claim| !claim.is_copy) {
        let confidence = confidences.get(&claim.family());
        claim.ratio.at(confidence.copied().unwrap_or(CONFIDENCE));
        if differ.contains(claim.metric.key) {
            claim.ratio.unclaim(Unclaimed::Copy);
        }
        if claim.ratio.is_disturbed {
            claim.ratio.unclaim(Unclaimed::Disturbed);
        }
        if let Some(below) = claim.metric.bound_below {
            let (own, baseline) = claim.bounds;
            claim.ratio.bind(own, baseline, below);
        }
    }
}

/// Whether a copy of a baseline differs from it in a metric, so that nothing can be claimed of that.
pub fn copy_differs(cells: &[CellFigures], metric: Metric) -> bool {
    let copies = cells.iter().filter(|cell| cell.is_copy);
    let mut ratios = copies.filter_map(|cell| metric.ratio(cell));
    ratios.any(RatioFigure::is_difference)
}

/// How many ratios hold together: rates in the workload that has the most, and all others in the run.
pub fn counts(cells: &[CellFigures]) -> (usize, usize) {
    let (mut rates, mut others) = (BTreeMap::<&str, usize>::new(), 0);
    for cell in cells.iter().filter(|cell| !cell.is_copy) {
        let own = cell.ratio.iter().filter(|ratio| ratio.is_interval());
        *rates.entry(&cell.workload).or_default() += own.count();
        let client = cell.client.iter().filter_map(|of| of.cpu_ratio.as_ref());
        let all = cell.ratios.values().chain(client);
        others += all.filter(|ratio| ratio.is_interval()).count();
    }
    (rates.into_values().max().unwrap_or(0), others)
}

/// The confidence of each of those at these places, of which `subjects` says what they have in common.
fn confidence(subjects: &[(Vec<usize>, Siblings)], places: &BTreeSet<usize>) -> f64 {
    let mut alone = places.clone();
    let mut family: Vec<Siblings> = Vec::new();
    for (own, siblings) in subjects {
        if !own.iter().any(|at| places.contains(at)) {
            continue;
        }
        let mut siblings = siblings.clone();
        for (at, (_, is_in)) in own.iter().zip(&mut siblings.comparisons) {
            *is_in = alone.remove(at);
        }
        family.push(siblings);
    }
    family.extend(alone.iter().map(|_| Siblings::alone()));
    together(&family)
}

/// Comparisons of one subject, by their places.
type Subjects<'a> = BTreeMap<&'a str, Vec<usize>>;

/// Lets the variances of a subject's comparisons by one metric in one workload tell of each other; and those of all workloads in which each
/// subject has only one. Gives the places of each subject's, and how they go together.
fn moderate(claims: &mut [RatioClaim<'_>]) -> Vec<(Vec<usize>, Siblings)> {
    let mut workloads: BTreeMap<(&str, &str), Subjects<'_>> = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let ratio = &claim.ratio;
        let is_own = ratio.variance.is_some() && !ratio.by_turns && !ratio.of_runs;
        if let (Some(workload), true) = (&claim.workload, is_own) {
            let subjects = workloads.entry((claim.metric.key, workload)).or_default();
            subjects.entry(&claim.subject).or_default().push(at);
        }
    }
    let mut groups: BTreeMap<(&str, &str), Subjects<'_>> = BTreeMap::new();
    for ((metric, workload), subjects) in workloads {
        let of_one = subjects.values().all(|of| of.len() < 2);
        let group = groups.entry((metric, if of_one { "" } else { workload }));
        let group = group.or_default();
        for (subject, places) in subjects {
            group.entry(subject).or_default().extend(places);
        }
    }
    let mut all = Vec::new();
    let mut settled: Vec<(usize, Variance)> = Vec::new();
    for subjects in groups.into_values() {
        let variance = |at: &usize| claims[*at].ratio.variance;
        let own: Vec<Vec<Variance>> = subjects
            .values()
            .map(|of| of.iter().filter_map(variance).collect())
            .collect();
        let (variances, alike) = moderated(&own);
        for ((places, own), variances) in subjects.into_values().zip(own).zip(variances) {
            settled.extend(places.iter().copied().zip(variances));
            all.push((places, Siblings::new(&own, alike)));
        }
    }
    for (at, variance) in settled {
        claims[at].ratio.variance = Some(variance);
    }
    all
}

/// All ratios of a cell.
fn ratios(cell: &mut CellFigures) -> Vec<(Metric, &mut RatioFigure)> {
    let rate = cell.ratio.iter_mut().map(|ratio| (Metric::RATE, ratio));
    let client = cell.client.as_mut().and_then(|c| c.cpu_ratio.as_mut());
    let client = client.into_iter().map(|ratio| (Metric::CPU, ratio));
    let metric = |key: &str| {
        let mut all = Metric::beside_rate();
        all.find(|metric| metric.key == key)
    };
    let others = cell.ratios.iter_mut();
    let others = others.filter_map(|(key, ratio)| Some((metric(key)?, ratio)));
    rate.chain(client).chain(others).collect()
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

/// What a run could have told of the rates of one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolution {
    /// The workload.
    pub workload: String,
    /// Pairs of the comparisons that have the fewest.
    pub blocks: usize,
    /// Comparisons of rates in the workload, which hold together.
    pub comparisons: usize,
    /// Standard deviation of the paired logarithms, over the workload's comparisons.
    pub deviation: f64,
    /// What the middle one of these is known by, in degrees of freedom.
    pub degrees: f64,
    /// All ratios that it is of, and the confidence of each interval, so that all hold together.
    #[serde(skip)]
    pub basis: (usize, f64),
    /// The smallest difference that would be claimed in 80 % of such runs: 0.05 is 5 %. `None`: nothing is claimed.
    pub detectable: Option<f64>,
}

impl Resolution {
    /// What the blocks so far tell of more of them.
    pub fn first_blocks(&self) -> FirstBlocks {
        let (comparisons, confidence) = self.basis;
        FirstBlocks {
            blocks: self.blocks,
            comparisons,
            deviation: self.deviation,
            degrees: self.degrees,
            confidence,
        }
    }
}

/// What the run could have told, by workload, in the plan's order; of ratios that are [settled](settle).
pub fn resolutions(plan: &Plan, cells: &[CellFigures]) -> Vec<Resolution> {
    let of_workload = |name: &str| {
        let own = cells.iter().filter(|c| c.workload == name);
        let all = own.clone().filter_map(|c| c.ratio.as_ref());
        let claims = own.filter(|c| !c.is_copy).filter_map(|c| c.ratio.as_ref());
        let mut claims = claims.filter(|ratio| ratio.is_interval());
        let comparisons = claims.clone().count();
        let confidence = claims.next().map_or(CONFIDENCE, |ratio| ratio.confidence);
        let enough = all.clone().map(|ratio| ratio.blocks);
        let blocks = enough.clone().filter(|n| *n >= BLOCKS_INTERVAL_MIN).min();
        let blocks = blocks.or(enough.max())?;
        let variances: Vec<Variance> = all.filter_map(|ratio| ratio.variance).collect();
        let squares: f64 = variances.iter().map(|of| of.variance).sum();
        let degrees = median(&variances.iter().map(|of| of.degrees).collect::<Vec<_>>())?;
        let deviation = (squares / variances.len() as f64).sqrt();
        let detectable = detectable_by(deviation, blocks, degrees, confidence);
        Some(Resolution {
            workload: name.to_owned(),
            blocks,
            comparisons,
            deviation,
            degrees,
            basis: (variances.len(), confidence),
            detectable: detectable.map(|share| share.0),
        })
    };
    let names = plan.workloads.iter().map(|workload| &*workload.name);
    names.filter_map(of_workload).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::OpenSide;
    use prony_stats::Conclusion::{Higher, Lower, NoDifferenceShown, NotClaimed};

    /// Six blocks whose logarithms lie `apart` around that of `ratio`.
    fn around(ratio: f64, apart: f64) -> RatioFigure {
        let steps = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5];
        let pairs = steps.map(|step: f64| (ratio * libm::exp(step * apart), 1.0));
        RatioFigure::from_pairs("baseline", pairs.to_vec()).expect("pairs")
    }

    /// Each of another subject.
    fn settled(metric: Metric, ratios: &mut [RatioFigure], bounds: (bool, bool)) {
        let claims = ratios.iter_mut().enumerate().map(|(at, ratio)| RatioClaim {
            metric,
            subject: at.to_string(),
            workload: Some("ping".to_owned()),
            bounds,
            ..RatioClaim::of_several(ratio)
        });
        settle_claims(claims.collect());
    }

    #[test]
    fn twenty_intervals_hold_together_and_one_by_itself() {
        let mut one = [around(1.05, 0.02)];
        settled(Metric::RATE, &mut one, (false, false));
        assert_eq!(one[0].conclusion, Higher);
        let mut many = vec![around(1.05, 0.02); 20];
        settled(Metric::RATE, &mut many, (false, false));
        // The quantiles of Student's distribution with five degrees of freedom at 0.975 and at (1 + 0.95^(1/20)) / 2.
        let half = |of: &RatioFigure| libm::log(of.high / of.ratio);
        assert!((half(&many[0]) / half(&one[0]) - 5.573 / 2.571).abs() < 0.01);
        assert_eq!(many[0].conclusion, NoDifferenceShown);
        // Those without an interval take nothing from the others.
        let pairs = vec![(1.0, 1.0); 5];
        let mut with_few = vec![RatioFigure::from_pairs("baseline", pairs).expect("pairs"); 20];
        with_few.push(around(1.05, 0.02));
        settled(Metric::RATE, &mut with_few, (false, false));
        assert_eq!(with_few[20], one[0]);
    }

    #[test]
    fn rates_of_a_workload_are_a_family_and_all_else_of_the_run_another() {
        let mut ratios = vec![around(1.05, 0.02); 8];
        let claims = ratios.iter_mut().enumerate().map(|(at, ratio)| RatioClaim {
            metric: [Metric::RATE, Metric::P50][at / 4],
            subject: at.to_string(),
            workload: Some(["ping", "hello"][at % 2].to_owned()),
            ..RatioClaim::of_several(ratio)
        });
        settle_claims(claims.collect());
        let half = |of: &RatioFigure| libm::log(of.high / of.ratio);
        // Two rates in each workload; four medians in both. Student's quantiles at 1 - 0.05 / 4 and at 1 - 0.05 / 8.
        assert!((half(&ratios[4]) / half(&ratios[0]) - 3.810 / 3.163).abs() < 0.01);
        assert_eq!(half(&ratios[0]), half(&ratios[3]));
        assert_eq!(half(&ratios[4]), half(&ratios[7]));
    }

    #[test]
    fn a_subjects_other_sizes_tell_how_it_varies() {
        let mut ratios = vec![around(1.05, 0.02); 4];
        let claims = ratios.iter_mut().map(|ratio| RatioClaim {
            subject: "axum".to_owned(),
            workload: Some("ping".to_owned()),
            ..RatioClaim::of_several(ratio)
        });
        settle_claims(claims.collect());
        let mut apart = vec![around(1.05, 0.02); 4];
        settled(Metric::RATE, &mut apart, (false, false));
        let half = |of: &RatioFigure| libm::log(of.high / of.ratio);
        assert!(half(&ratios[0]) < 0.8 * half(&apart[0]));
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
        assert_eq!(settled(Verdict::Valid), (Some(Higher), 1));
        assert_eq!(settled(Verdict::Invalid), (None, 0));
    }

    #[test]
    fn a_bound_is_claimed_in_one_direction_only() {
        let said = |metric, ratio, own, baseline| {
            let mut ratios = [around(ratio, 0.001)];
            settled(metric, &mut ratios, (own, baseline));
            let [of] = ratios;
            (of.conclusion, of.bound, of.unclaimed)
        };
        let nothing = (NotClaimed, None, Some(Unclaimed::Bound));
        // A rate that is at least so high.
        assert_eq!(
            said(Metric::RATE, 1.5, true, false),
            (Higher, Some(OpenSide::AtLeast), None)
        );
        assert_eq!(said(Metric::RATE, 0.5, true, false), nothing);
        assert_eq!(said(Metric::RATE, 1.0, true, false), nothing);
        assert_eq!(
            said(Metric::RATE, 0.5, false, true),
            (Lower, Some(OpenSide::AtMost), None)
        );
        assert_eq!(said(Metric::RATE, 1.5, false, true), nothing);
        assert_eq!(said(Metric::RATE, 1.5, true, true), nothing);
        assert_eq!(said(Metric::RATE, 1.5, false, false), (Higher, None, None));
        // A latency that is at most so long.
        assert_eq!(
            said(Metric::P99, 0.5, true, false),
            (Lower, Some(OpenSide::AtMost), None)
        );
        assert_eq!(said(Metric::P99, 1.5, true, false), nothing);
        assert_eq!(
            said(Metric::P99, 1.5, false, true),
            (Higher, Some(OpenSide::AtLeast), None)
        );
        // CPU time is what was used, whoever was the limit.
        assert_eq!(said(Metric::CPU, 1.5, true, true), (Higher, None, None));
    }

    #[test]
    fn a_copy_that_differs_takes_all_claims_of_its_metric_back() {
        let settled = |of_copy: f64| {
            let (mut claim, mut copy) = (around(2.0, 0.001), around(of_copy, 0.001));
            let of_copy = RatioClaim {
                is_copy: true,
                ..RatioClaim::of_several(&mut copy)
            };
            settle_claims(vec![RatioClaim::of_several(&mut claim), of_copy]);
            (claim.conclusion, claim.unclaimed, copy.conclusion)
        };
        assert_eq!(settled(1.0005), (Higher, None, NoDifferenceShown));
        assert_eq!(settled(1.01), (NotClaimed, Some(Unclaimed::Copy), Higher));
    }
}
