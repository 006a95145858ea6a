//! A histogram in text: bars of equal width in a unit that fits, and counts that add up.
//!
//! Not for: percentiles, which come from all buckets.

use prony_record::Histogram;
use prony_stats::quantile;
use serde::{Deserialize, Serialize};

use crate::numbers;

/// Bars of equal width; one more holds what is slower.
const BARS: u64 = 10;
/// What the last bar of equal width reaches at the least.
const REACH: f64 = 0.99;
/// Characters of the longest bar.
const WIDTH: usize = 40;

/// A histogram by a few bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Ten of equal width, of which those at the end that are empty are left out, and one of what is slower.
    pub bars: Vec<Bar>,
    /// Smallest value, nanoseconds.
    pub min_ns: u64,
    /// Largest value, nanoseconds.
    pub max_ns: u64,
}

/// One bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// What it counts is greater than this (the first: not less), nanoseconds.
    pub above_ns: u64,
    /// And at most this.
    pub to_ns: u64,
    /// How many.
    pub count: u64,
}

/// The bars of `histogram`: each count is in exactly one. The first ten have the same width, a round number,
/// and reach from the smallest value over 99 % of all; the last one goes from there to the largest value, so
/// that one slow request does not press all others into the first bar. `None` where nothing was counted.
pub fn bars(histogram: &Histogram) -> Option<Bars> {
    let (first, last) = (histogram.counts.first()?.0, histogram.counts.last()?.0);
    let reach = quantile(histogram, REACH)?.0.clamp(first, last);
    let (start, step) = grid(first, reach);
    let edge = |index: u64| start.saturating_add(step.saturating_mul(index));
    let mut bars: Vec<Bar> = (0..BARS)
        .map(|index| Bar {
            above_ns: edge(index),
            to_ns: edge(index + 1),
            count: 0,
        })
        .collect();
    bars.push(Bar {
        above_ns: edge(BARS),
        to_ns: last.max(edge(BARS)),
        count: 0,
    });
    for &(value, count) in &histogram.counts {
        let past = value.saturating_sub(start).div_ceil(step);
        // What lies on the lower edge of the first bar belongs to it.
        let index = past.saturating_sub(1).min(BARS) as usize;
        bars[index].count = bars[index].count.saturating_add(count);
    }
    while bars.len() > 1 && bars.last().is_some_and(|bar| bar.count == 0) {
        bars.pop();
    }
    Some(Bars {
        bars,
        min_ns: first,
        max_ns: last,
    })
}

/// Where ten bars begin that reach from `first` over `reach`, and how wide each is: 1, 2, 2.5 or 5 times a
/// power of ten, and the beginning a multiple of that.
fn grid(first: u64, reach: u64) -> (u64, u64) {
    let steps = (0..19).flat_map(|power| {
        let unit = 10_u64.pow(power);
        [unit, 2 * unit, unit / 2 * 5, unit.saturating_mul(5)]
    });
    let fits = |step: &u64| {
        let start = first / step * step;
        reach.saturating_sub(start).div_ceil(*step) <= BARS
    };
    let step = steps.filter(|step| *step > 0).find(fits);
    let step = step.unwrap_or(u64::MAX / BARS);
    (first / step * step, step)
}

impl Bars {
    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.bars
            .iter()
            .fold(0, |sum, bar| sum.saturating_add(bar.count))
    }

    /// One line a bar: its ends in one unit for all, its count, its length.
    pub fn lines(&self) -> Vec<String> {
        let most = self.bars.iter().map(|bar| bar.count).max().unwrap_or(0);
        let equal = self.bars.len().min(BARS as usize);
        let top = self.bars[..equal].last().map_or(0, |bar| bar.to_ns);
        let (divisor, unit) = match top {
            0..10_000 => (1, "ns"),
            10_000..10_000_000 => (1_000, "µs"),
            10_000_000..10_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let step = self.bars.first().map_or(1, |bar| bar.to_ns - bar.above_ns);
        let decimals = (0..4).find(|&d| (step * 10_u64.pow(d)).is_multiple_of(divisor));
        let decimals = decimals.unwrap_or(3) as usize;
        let edge = |ns: u64| format!("{:.decimals$}", ns as f64 / divisor as f64);
        let ends = |(index, bar): (usize, &Bar)| {
            let to = edge(bar.to_ns);
            if index < BARS as usize {
                return format!("{} – {to} {unit}", edge(bar.above_ns));
            }
            format!("over {} {unit}", edge(bar.above_ns))
        };
        let ends: Vec<String> = self.bars.iter().enumerate().map(ends).collect();
        let counts: Vec<String> = self
            .bars
            .iter()
            .map(|bar| numbers::count(bar.count))
            .collect();
        let widest = |texts: &[String]| texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
        let (left, middle) = (widest(&ends), widest(&counts));
        let line = |index: usize| {
            let bar = "■".repeat(length(self.bars[index].count, most));
            format!("{:>left$}  {:>middle$}  {bar}", ends[index], counts[index])
                .trim_end()
                .to_owned()
        };
        (0..self.bars.len()).map(line).collect()
    }
}

/// Characters of a bar: none for nothing, at least one for something.
fn length(count: u64, most: u64) -> usize {
    if count == 0 {
        return 0;
    }
    let share = count as f64 / most as f64;
    ((share * WIDTH as f64).round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(counts: &[(u64, u64)]) -> Histogram {
        Histogram {
            counts: counts.to_vec(),
            ..Histogram::default()
        }
    }

    #[test]
    fn one_slow_request_does_not_press_the_others_together() {
        let mut counts: Vec<(u64, u64)> = (0..40).map(|i| (200_000 + 5_000 * i, 50)).collect();
        counts.push((300_000_000, 1));
        let shown = bars(&histogram(&counts)).unwrap();
        assert_eq!(shown.total(), 2_001);
        insta::assert_snapshot!(shown.lines().join("\n"), @r"
        200 – 220 µs  250  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        220 – 240 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        240 – 260 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        260 – 280 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        280 – 300 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        300 – 320 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        320 – 340 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        340 – 360 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        360 – 380 µs  200  ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
        380 – 400 µs  150  ■■■■■■■■■■■■■■■■■■■■■■■■
         over 400 µs    1  ■
        ");
    }

    #[test]
    fn one_value_is_one_bar_and_nothing_is_none() {
        let one = bars(&histogram(&[(1_234, 7)])).unwrap();
        assert_eq!(one.bars.len(), 1);
        assert_eq!(one.total(), 7);
        assert_eq!(bars(&histogram(&[])), None);
    }

    proptest! {
        #[test]
        fn every_count_is_in_one_bar_that_holds_its_value(
            counts in prop::collection::btree_map(any::<u64>(), 1_u64..1_000, 1..60),
        ) {
            let counts: Vec<(u64, u64)> = counts.into_iter().collect();
            let shown = bars(&histogram(&counts)).unwrap();
            let total: u64 = counts.iter().map(|&(_, count)| count).sum();
            prop_assert_eq!(shown.total(), total);
            for (index, bar) in shown.bars.iter().enumerate() {
                let inside = |v: u64| v <= bar.to_ns && (v > bar.above_ns || (index == 0 && v >= bar.above_ns));
                let own: u64 = counts.iter().filter(|&&(v, _)| inside(v)).map(|&(_, n)| n).sum();
                prop_assert_eq!(own, bar.count, "{:?}", bar);
            }
            prop_assert_eq!(shown.lines().len(), shown.bars.len());
        }

        #[test]
        fn ordinary_latencies_have_round_edges_and_all_but_the_slowest_in_equal_bars(
            counts in prop::collection::btree_map(1_000_u64..10_000_000_000, 1_u64..1_000, 1..60),
        ) {
            let counts: Vec<(u64, u64)> = counts.into_iter().collect();
            let shown = bars(&histogram(&counts)).unwrap();
            let slow = shown.bars.get(10).map_or(0, |bar| bar.count);
            prop_assert!(slow as f64 <= 0.011 * shown.total() as f64 + 1.0);
        }
    }
}
