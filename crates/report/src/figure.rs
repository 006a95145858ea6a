//! A figure over the blocks of a cell: its median, and how far the blocks lie apart.
//!
//! Not for: which figures there are.

use std::collections::BTreeMap;

use prony_record::{Histogram, NEVER, Trial};
use prony_stats::{BLOCKS_INTERVAL_MIN, Quantity, SpreadKind, Summary, median, sorted, summarise};
use serde::{Deserialize, Serialize};

/// A latency that never ended, as figures hold it.
pub const INFINITE: f64 = NEVER as f64;

/// A figure over the blocks of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Median over the blocks.
    pub median: f64,
    /// Lower end of range or interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// What the ends are.
    pub spread: SpreadKind,
    /// Blocks that it rests on.
    pub blocks: usize,
}

impl Figure {
    /// Median, and range or interval as the number of blocks allows.
    pub fn of<U: Quantity>(values: &[f64]) -> Option<Figure> {
        let summary: Summary<U> = summarise(values)?;
        Some(Figure {
            median: summary.median.value(),
            low: summary.spread.low.value(),
            high: summary.spread.high.value(),
            spread: summary.spread.kind,
            blocks: summary.blocks,
        })
    }

    /// With the range for its spread, whatever the number of blocks: only rates claim more.
    pub fn range(values: &[f64]) -> Option<Figure> {
        let kept = sorted(values);
        Some(Figure {
            median: median(&kept)?,
            low: *kept.first()?,
            high: *kept.last()?,
            spread: SpreadKind::Range,
            blocks: kept.len(),
        })
    }

    /// The [range](Figure::range) of what trials have.
    pub fn over(trials: &[&Trial], of: impl Fn(&Trial) -> Option<f64>) -> Option<Figure> {
        let values: Vec<f64> = trials.iter().filter_map(|trial| of(trial)).collect();
        Figure::range(&values)
    }

    /// Whether low and high are a confidence interval.
    pub fn is_interval(&self) -> bool {
        self.spread == SpreadKind::Interval
    }

    /// Low and high, where they tell more than the median does: those of a single value repeat it.
    pub fn ends(&self) -> Option<(f64, f64)> {
        (self.blocks > 1).then_some((self.low, self.high))
    }

    /// Whether low and high are the range only because the blocks stand in two groups, beside intervals of others: enough blocks there are.
    pub fn is_of_two_groups(&self) -> bool {
        !self.is_interval() && self.blocks >= BLOCKS_INTERVAL_MIN
    }
}

/// What low and high of a column's figures are: nothing where each has only one value.
pub fn spread_word(figures: impl IntoIterator<Item = Figure>) -> &'static str {
    let (mut is_interval, mut has_ends) = (false, false);
    for figure in figures {
        is_interval |= figure.is_interval();
        has_ends |= figure.ends().is_some();
    }
    match (is_interval, has_ends) {
        (true, _) => "95 % interval",
        (false, true) => "range",
        (false, false) => "",
    }
}

/// The values of trials, each with its block.
pub fn by_block<'a>(
    trials: impl Iterator<Item = &'a Trial>,
    of: impl Fn(&'a Trial) -> Option<f64>,
) -> Vec<(u32, f64)> {
    let value = |trial: &'a Trial| Some((trial.block, of(trial)?));
    trials.filter_map(value).collect()
}

/// Histograms of several blocks as one.
pub fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for &(value, count) in histograms.flat_map(|of| &of.counts) {
        let sum = counts.entry(value).or_default();
        *sum = sum.saturating_add(count);
    }
    Histogram {
        counts: counts.into_iter().collect(),
        ..Histogram::default()
    }
}

/// Blocks by a name that each has, and the name of the most of them; empty: none has one.
pub fn by_name(
    names: impl Iterator<Item = &'static str>,
) -> (BTreeMap<&'static str, u32>, &'static str) {
    let mut blocks = BTreeMap::new();
    names.for_each(|name| *blocks.entry(name).or_default() += 1);
    let most = blocks.iter().max_by_key(|(_, blocks)| **blocks);
    let most = most.map_or("", |(name, _)| *name);
    (blocks, most)
}

/// A latency over the blocks. One that never ended makes the middle of two infinite, too.
pub fn latencies(values: &[f64]) -> Option<Figure> {
    let ended: Vec<f64> = values.iter().copied().filter(|ns| *ns < INFINITE).collect();
    let figure = Figure::range(&ended);
    if ended.len() == values.len() {
        return figure;
    }
    let mut all = values.to_vec();
    all.sort_by(f64::total_cmp);
    let (below, above) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    Some(Figure {
        median: if above < INFINITE {
            f64::midpoint(below, above)
        } else {
            INFINITE
        },
        low: all[0],
        high: INFINITE,
        spread: SpreadKind::Range,
        blocks: all.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_that_never_ended_is_no_part_of_a_mean() {
        let figure = latencies(&[1e6, INFINITE]).expect("a figure");
        assert_eq!(
            (figure.low, figure.median, figure.high),
            (1e6, INFINITE, INFINITE)
        );
        assert_eq!(crate::numbers::time(figure.median), "∞");
        let figure = latencies(&[1e6, 3e6, INFINITE]).expect("a figure");
        assert_eq!((figure.median, figure.high), (3e6, INFINITE));
        let json = serde_json::to_value(figure).expect("JSON");
        assert_eq!(json["high"].as_f64(), Some(INFINITE));
    }
}
