//! A figure over the blocks of a cell: its median, and how far the blocks lie apart.
//!
//! Not for: which figures there are.

use std::collections::BTreeMap;
use std::fmt::Display;

use prony_record::{Histogram, NEVER, Trial};
use prony_stats::{BLOCKS_INTERVAL_MIN, Ratio, SpreadKind, Summary, median, sorted, summarise};
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
    /// Median, and range or interval as the number of values allows.
    pub fn interval(values: impl IntoIterator<Item = f64>) -> Option<Figure> {
        let values: Vec<f64> = values.into_iter().collect();
        let summary: Summary<Ratio> = summarise(&values)?;
        let spread = summary.spread;
        Some(Figure {
            median: summary.median.0,
            low: spread.low.0,
            high: spread.high.0,
            spread: spread.kind,
            blocks: summary.blocks,
        })
    }

    /// With the range for its spread, whatever the number of blocks: only rates claim more.
    pub fn range(values: impl IntoIterator<Item = f64>) -> Option<Figure> {
        let values: Vec<f64> = values.into_iter().collect();
        let values = sorted(&values);
        Some(Figure {
            median: median(&values)?,
            low: *values.first()?,
            high: *values.last()?,
            spread: SpreadKind::Range,
            blocks: values.len(),
        })
    }

    /// What all of so many blocks come to together.
    pub fn total(value: f64, blocks: usize) -> Option<Figure> {
        let figure = Figure::range([value])?;
        Some(Figure { blocks, ..figure })
    }

    /// The [range](Figure::range) of what trials have.
    pub fn over(trials: &[&Trial], of: impl Fn(&Trial) -> Option<f64>) -> Option<Figure> {
        Figure::range(trials.iter().filter_map(|trial| of(trial)))
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

/// The same with an interval where all ended and there are enough.
pub fn latency_interval(values: &[f64]) -> Option<Figure> {
    let values = values.iter().copied();
    match values.clone().all(|ns| ns < INFINITE) {
        true => Figure::interval(values),
        false => latencies(values),
    }
}

/// Values without their blocks.
pub fn values(by_block: Vec<(u32, f64)>) -> impl Iterator<Item = f64> {
    by_block.into_iter().map(|(_, value)| value)
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

/// The head of a column of [`block_number`]s.
pub const BLOCK: &str = "block";

/// What stands below a column of counts.
pub const OF_ALL: &str = "of all blocks";
/// The same in short.
pub const ALL: &str = "all blocks";

/// A block as a reader counts them: from 1.
pub fn block_number(block: u32) -> String {
    block.saturating_add(1).to_string()
}

/// `3 of 5 blocks`.
pub fn in_blocks(part: impl Display, all: impl Display) -> String {
    format!("{part} of {all} blocks")
}

/// `block 2 of 6`, counted from 1; empty where something was in all blocks.
pub fn seen_in(seen: &[u32], all: usize) -> String {
    let numbers: Vec<String> = seen.iter().map(|at| block_number(*at)).collect();
    let word = if seen.len() == 1 { "block" } else { "blocks" };
    match seen.len() >= all {
        true => String::new(),
        false => format!("{word} {} of {all}", numbers.join(", ")),
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
pub fn latencies(values: impl IntoIterator<Item = f64>) -> Option<Figure> {
    let mut all: Vec<f64> = values.into_iter().collect();
    if all.iter().all(|ns| *ns < INFINITE) {
        return Figure::range(all);
    }
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
        let figure = latencies([1e6, INFINITE]).expect("a figure");
        assert_eq!(
            (figure.low, figure.median, figure.high),
            (1e6, INFINITE, INFINITE)
        );
        assert_eq!(crate::numbers::time(figure.median), "∞");
        let figure = latencies([1e6, 3e6, INFINITE]).expect("a figure");
        assert_eq!((figure.median, figure.high), (3e6, INFINITE));
        let json = serde_json::to_value(figure).expect("JSON");
        assert_eq!(json["high"].as_f64(), Some(INFINITE));
    }
}
