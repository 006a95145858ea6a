//! A ratio of paired figures: what one is against its baseline's, block by block, with its interval.
//!
//! Not for: what may be said of all ratios of a document together, which is in `claims`.

use std::collections::{BTreeMap, BTreeSet};

use prony_findings::Case;
use prony_record::{Plan, Trial, Visit};
use prony_stats::{
    BLOCKS_INTERVAL_MIN, CONFIDENCE, Comparison, Conclusion, SpreadKind, TURNED_BLOCKS_MIN,
    Variance, compare, compare_from, of_turns,
};
use serde::{Deserialize, Serialize};

use crate::figure::Figure;

/// A figure over that of its baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RatioFigure {
    /// The baseline's cell.
    pub reference_cell: String,
    /// Geometric mean of the blocks' ratios.
    pub ratio: f64,
    /// Lower end of range or interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// What the ends are.
    pub spread: SpreadKind,
    /// Blocks in which both were measured.
    pub blocks: usize,
    /// What may be said.
    pub conclusion: Conclusion,
    /// How the ratio is to be read where one of the two figures is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<OpenSide>,
    /// Why nothing is claimed although there is an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unclaimed: Option<Unclaimed>,
    /// Blocks that others disturbed on either side, and that are in none of its figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u32>,
    /// Whether others disturbed over a third of its blocks.
    #[serde(skip)]
    pub is_disturbed: bool,
    /// What it was made from: `(value, baseline)` by block.
    #[serde(skip)]
    pub pairs: Vec<(f64, f64)>,
    /// How much their logarithms vary: of these alone, or of what else tells it.
    #[serde(skip)]
    pub variance: Option<Variance>,
    /// Whether that is of several runs that are joined ([`Variance::of_runs`]).
    #[serde(skip)]
    pub of_runs: bool,
    /// Whether that is of few blocks in turns ([`of_turns`]).
    #[serde(skip)]
    pub by_turns: bool,
    /// Confidence of its interval.
    #[serde(skip)]
    pub confidence: f64,
}

/// On which side a figure is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenSide {
    /// It may be any higher.
    AtLeast,
    /// It may be any lower.
    AtMost,
}

impl OpenSide {
    /// What stands before a figure of this kind.
    pub fn words(bound: Option<OpenSide>) -> &'static str {
        match bound {
            Some(OpenSide::AtLeast) => "at least ",
            Some(OpenSide::AtMost) => "at most ",
            None => "",
        }
    }

    /// The ends of a figure of this kind, of which one is then open.
    pub fn ends(bound: Option<OpenSide>, low: f64, high: f64) -> (f64, f64) {
        match bound {
            Some(OpenSide::AtLeast) => (low, f64::INFINITY),
            Some(OpenSide::AtMost) => (0.0, high),
            None => (low, high),
        }
    }
}

/// Why nothing is claimed of a ratio that has an interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(into = "&'static str")]
pub enum Unclaimed {
    /// A figure is a bound, which does not settle it.
    Bound,
    /// Others used the cores for too long.
    Disturbed,
    /// A copy of the baseline differs from it.
    Copy,
}

impl From<Unclaimed> for &'static str {
    fn from(why: Unclaimed) -> &'static str {
        match why {
            Unclaimed::Bound => "a figure is a bound",
            Unclaimed::Disturbed => "others disturbed over a third of its blocks",
            Unclaimed::Copy => "a copy of the baseline differs from it",
        }
    }
}

impl RatioFigure {
    /// The ratio of pairs `(value, baseline)`, with an interval of its own until it is [settled](crate::claims::settle).
    pub fn from_pairs(reference_cell: &str, pairs: Vec<(f64, f64)>) -> Option<RatioFigure> {
        let compared = compare(&pairs)?;
        let mut figure = RatioFigure {
            reference_cell: reference_cell.to_owned(),
            ratio: compared.ratio.0,
            blocks: compared.blocks,
            variance: Variance::from_pairs(&pairs),
            confidence: CONFIDENCE,
            pairs,
            ..RatioFigure::default()
        };
        figure.take(&compared);
        Some(figure)
    }

    fn take(&mut self, compared: &Comparison) {
        (self.low, self.high) = (compared.spread.low.0, compared.spread.high.0);
        self.spread = compared.spread.kind;
        self.conclusion = compared.conclusion;
    }

    /// The same of its `blocks`, where these are of several runs that are joined. `None` where fewer than two of them have it.
    pub fn by_runs(mut self, plan: &Plan, blocks: &[u32]) -> Option<RatioFigure> {
        if plan.joined.is_empty() {
            return Some(self);
        }
        let run_of = |block: &u32| plan.joined.get(block).copied();
        let runs: Option<Vec<u32>> = blocks.iter().map(run_of).collect();
        self.variance = Some(Variance::of_runs(&self.pairs, &runs?)?);
        self.of_runs = true;
        self.at(CONFIDENCE);
        Some(self)
    }

    /// Its interval and conclusion at another confidence.
    pub fn at(&mut self, confidence: f64) {
        let least = match self.by_turns {
            true => TURNED_BLOCKS_MIN,
            false => BLOCKS_INTERVAL_MIN,
        };
        let compared = compare_from(least, &self.pairs, confidence, self.variance);
        if let Some(compared) = compared {
            self.confidence = confidence;
            self.take(&compared);
        }
    }

    /// The value and its baseline: the geometric means over the blocks that the ratio is of, so that it is one over the other.
    pub fn sides(&self) -> (f64, f64) {
        let is_in = |pair: &&(f64, f64)| {
            [pair.0, pair.1]
                .iter()
                .all(|of| *of > 0.0 && of.is_finite())
        };
        let pairs = || self.pairs.iter().filter(is_in);
        let mean = |logs: f64| libm::exp(logs / pairs().count() as f64);
        let own = pairs().map(|pair| libm::log(pair.0)).sum();
        (mean(own), mean(pairs().map(|pair| libm::log(pair.1)).sum()))
    }

    /// The same as a figure of its own.
    pub fn figure(&self) -> Figure {
        Figure {
            median: self.ratio,
            low: self.low,
            high: self.high,
            spread: self.spread,
            blocks: self.blocks,
        }
    }

    /// Whether it has an interval.
    pub fn is_interval(&self) -> bool {
        self.spread == SpreadKind::Interval
    }

    /// The ends of its interval, where that may be used.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.is_interval() && self.unclaimed.is_none()).then_some((self.low, self.high))
    }

    /// Whether the two are shown to differ.
    pub fn is_difference(&self) -> bool {
        self.conclusion.is_difference()
    }

    /// Takes back what is claimed, and says why.
    pub fn unclaim(&mut self, why: Unclaimed) {
        if self.is_interval() {
            (self.conclusion, self.unclaimed) = (Conclusion::NotClaimed, Some(why));
        }
    }

    /// Where the value (`own`) or its baseline is a bound from below or from above, only one direction can be said.
    pub fn bind(&mut self, own: bool, baseline: bool, below: bool) {
        // The value at least so high, or the baseline at most: the ratio is at least this.
        let at_least = if below { own } else { baseline };
        let at_most = if below { baseline } else { own };
        match (at_least, at_most, self.conclusion) {
            (false, false, _) => {}
            (true, false, Conclusion::Higher) => self.bound = Some(OpenSide::AtLeast),
            (false, true, Conclusion::Lower) => self.bound = Some(OpenSide::AtMost),
            _ => self.unclaim(Unclaimed::Bound),
        }
    }
}

/// The ratio of `case` to `baseline` by a value of their trials, block by block. A block that others disturbed on either side is in
/// none, as long as enough are left.
pub fn paired(
    baseline: &Case<'_>,
    case: &Case<'_>,
    own: impl IntoIterator<Item = (u32, f64)>,
    theirs: impl IntoIterator<Item = (u32, f64)>,
) -> Option<RatioFigure> {
    let theirs: BTreeMap<u32, f64> = theirs.into_iter().collect();
    let pair = |(block, value): (u32, f64)| Some((block, (value, *theirs.get(&block)?)));
    let pairs: BTreeMap<u32, (f64, f64)> = own.into_iter().filter_map(pair).collect();
    let mut out: BTreeSet<u32> = baseline.disturbed().into_keys().collect();
    out.extend(case.disturbed().into_keys());
    out.retain(|block| pairs.contains_key(block));
    let is_disturbed = 3 * out.len() > pairs.len();
    if is_disturbed || pairs.len() < out.len() + BLOCKS_INTERVAL_MIN {
        out.clear();
    }
    let kept = pairs.into_iter().filter(|(block, _)| !out.contains(block));
    let (blocks, pairs): (Vec<u32>, Vec<(f64, f64)>) = kept.unzip();
    let figure = RatioFigure::from_pairs(&baseline.cell.id, pairs)?;
    let mut figure = figure.by_runs(case.records.plan, &blocks)?;
    (figure.left_out, figure.is_disturbed) = (out.into_iter().collect(), is_disturbed);
    Some(figure)
}

/// The rate of `case` over that of `baseline`. A quick run's few blocks have an interval where they are measured in turns.
pub fn rates(baseline: &Case<'_>, case: &Case<'_>) -> Option<RatioFigure> {
    let apart = measured_apart(baseline, case);
    let own = case.rates().into_iter();
    let mut ratio = paired(
        baseline,
        case,
        own.filter(|(block, _)| !apart.contains(block)),
        baseline.rates(),
    )?;
    if case.records.plan.quick && ratio.blocks < BLOCKS_INTERVAL_MIN {
        let turns: Vec<Vec<f64>> = turns(baseline, case).collect();
        let variance = of_turns(&turns).filter(|_| turns.len() == ratio.blocks);
        if variance.is_some() {
            (ratio.variance, ratio.by_turns) = (variance, true);
            ratio.at(CONFIDENCE);
        }
    }
    Some(ratio)
}

/// Of each block in which both were visited, the logarithms of the ratios of its rounds. What a round's visits have in
/// common is in none.
pub fn turns(baseline: &Case<'_>, case: &Case<'_>) -> impl Iterator<Item = Vec<f64>> {
    let rates = |trial: &Trial| -> Vec<f64> {
        let rate = |visit: &Visit| visit.completed as f64 / visit.window_ns.max(1) as f64;
        trial.visits.iter().map(rate).collect()
    };
    case.measured().filter_map(move |trial| {
        let mut theirs = baseline.measured();
        let theirs = rates(theirs.find(|other| other.block == trial.block)?);
        let own = rates(trial);
        let both = own.iter().zip(&theirs);
        let logs = both.filter(|(a, b)| **a > 0.0 && **b > 0.0);
        let logs: Vec<f64> = logs.map(|(a, b)| libm::log(a / b)).collect();
        (own.len() == theirs.len() && logs.len() >= 2).then_some(logs)
    })
}

/// The blocks in which one was visited in turns and the other was not: a ratio of theirs would hold the difference of
/// the methods. A run that was resumed may have one such.
pub fn measured_apart(baseline: &Case<'_>, case: &Case<'_>) -> BTreeSet<u32> {
    let method = |trial: &Trial| (trial.block, trial.visits.is_empty());
    let theirs: BTreeSet<(u32, bool)> = baseline.measured().map(method).collect();
    let own = case.measured().map(method);
    own.filter(|(block, alone)| theirs.contains(&(*block, !alone)))
        .map(|(block, _)| block)
        .collect()
}
