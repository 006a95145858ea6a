//! One figure of one cell over its blocks.

use prony_base::Random;

use crate::modes::{TwoModes, two_modes};
use crate::quantile::{interpolated, median_of_sorted, sorted};
use crate::units::Quantity;
use crate::{BLOCKS_BOOTSTRAP_MIN, BLOCKS_INTERVAL_MIN, CONFIDENCE};

/// Resamples of a bootstrap interval.
pub const RESAMPLES: usize = 10_000;

/// A figure over blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary<U> {
    /// Blocks that it rests on.
    pub blocks: usize,
    /// Median over the blocks.
    pub median: U,
    /// How far it may be off, or how far the blocks lie apart.
    pub spread: Spread<U>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// Two ends, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread<U> {
    /// What the ends are.
    pub kind: SpreadKind,
    /// Lower end.
    pub low: U,
    /// Higher end.
    pub high: U,
}

/// What the ends of a [`Spread`] are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SpreadKind {
    /// Smallest and largest value seen: says nothing of what would be seen next.
    Range,
    /// A confidence interval of [`CONFIDENCE`].
    Interval,
}

/// What a reader of a figure must know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// Too few blocks for an interval.
    FewBlocks {
        /// Blocks that there were.
        blocks: usize,
        /// Blocks that an interval needs.
        needed: usize,
    },
    /// The values stand in two groups: the median describes neither.
    TwoModes(TwoModes),
    /// Values that are no numbers, or not positive where a ratio needs that, were left out.
    LeftOut {
        /// How many.
        count: usize,
    },
}

impl<U: Quantity> Summary<U> {
    /// Range of the blocks, or width of the interval, over the median. `None` where that is zero.
    pub fn relative_width(&self) -> Option<f64> {
        let width = (self.spread.high.value() - self.spread.low.value()) / self.median.value();
        width.is_finite().then_some(width)
    }
}

/// Summarises one value a block. From 10 blocks, and in one group, the spread is a percentile
/// bootstrap interval of the median (Efron and Tibshirani, "An Introduction to the Bootstrap",
/// 1993, chapter 13: 10,000 resamples drawn with `seed`); else the range. (The bias-corrected
/// variants need the jackknife, which is inconsistent for a median.) `None` without any value.
pub fn summarise<U: Quantity>(values: &[f64], seed: u64) -> Option<Summary<U>> {
    let kept = sorted(values);
    if kept.is_empty() {
        return None;
    }
    let warnings = warnings(values.len() - kept.len(), &kept, BLOCKS_BOOTSTRAP_MIN);
    let spread = if warnings.iter().any(Warning::forbids_interval) {
        (SpreadKind::Range, kept[0], kept[kept.len() - 1])
    } else {
        let (low, high) = bootstrap(&kept, seed);
        (SpreadKind::Interval, low, high)
    };
    Some(Summary {
        blocks: kept.len(),
        median: U::of(median_of_sorted(&kept)),
        spread: Spread {
            kind: spread.0,
            low: U::of(spread.1),
            high: U::of(spread.2),
        },
        warnings,
    })
}

impl Warning {
    pub(crate) fn forbids_interval(&self) -> bool {
        !matches!(self, Warning::LeftOut { .. })
    }
}

/// The warnings of `kept` values, of which `needed` would give an interval.
pub(crate) fn warnings(left_out: usize, kept: &[f64], needed: usize) -> Vec<Warning> {
    debug_assert!(needed >= BLOCKS_INTERVAL_MIN);
    let mut found = Vec::new();
    if left_out > 0 {
        found.push(Warning::LeftOut { count: left_out });
    }
    if kept.len() < needed {
        let blocks = kept.len();
        found.push(Warning::FewBlocks { blocks, needed });
    }
    found.extend(two_modes(kept).map(Warning::TwoModes));
    found
}

fn bootstrap(values: &[f64], seed: u64) -> (f64, f64) {
    let mut random = Random::of(seed, "bootstrap");
    let mut sample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for place in &mut sample {
                *place = values[random.below(values.len() as u64) as usize];
            }
            sample.sort_unstable_by(f64::total_cmp);
            median_of_sorted(&sample)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    (
        interpolated(&medians, tail),
        interpolated(&medians, 1.0 - tail),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, normal_quantile};
    use proptest::prelude::*;

    #[test]
    fn few_blocks_have_a_range_and_say_so() {
        let seen = summarise::<Rate>(&[10.0, 12.0, 11.0], 1).unwrap();
        assert_eq!(seen.median, Rate(11.0));
        assert_eq!(seen.spread.kind, SpreadKind::Range);
        assert_eq!(
            (seen.spread.low, seen.spread.high),
            (Rate(10.0), Rate(12.0))
        );
        assert_eq!(
            seen.warnings,
            [Warning::FewBlocks {
                blocks: 3,
                needed: 10
            }]
        );
    }

    /// The distribution of a resampled median is known exactly for an odd number of values
    /// (Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979, section 3): it is at
    /// most the k-th of n values if at least (n+1)/2 of n draws fall on the first k.
    #[test]
    fn the_interval_agrees_with_the_exact_bootstrap_of_the_median() {
        let n = 11_u32;
        let values: Vec<f64> = (1..=n).map(f64::from).collect();
        let at_most = |k: u32| -> f64 {
            let p = f64::from(k) / f64::from(n);
            let choose = |j: u32| (0..j).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
            (n.div_ceil(2)..=n)
                .map(|j| {
                    choose(j) * libm::pow(p, f64::from(j)) * libm::pow(1.0 - p, f64::from(n - j))
                })
                .sum()
        };
        let exact = |q: f64| (1..=n).find(|&k| at_most(k) >= q).map(f64::from);
        let seen = summarise::<Rate>(&values, 7).unwrap();
        assert_eq!(seen.spread.kind, SpreadKind::Interval);
        assert_eq!(Some(seen.spread.low.0), exact(0.025));
        assert_eq!(Some(seen.spread.high.0), exact(0.975));
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        let mut random = Random::new(2);
        let held = (0..100)
            .filter(|&seed| {
                let value = |_| normal_quantile(random.unit().clamp(1e-9, 0.999_999)).unwrap();
                let values: Vec<f64> = (0..12).map(value).map(|z| 100.0 + z).collect();
                let spread = summarise::<Rate>(&values, seed).unwrap().spread;
                spread.kind == SpreadKind::Interval
                    && (spread.low.0..=spread.high.0).contains(&100.0)
            })
            .count();
        assert!((88..=100).contains(&held), "{held} of 100");
    }

    #[test]
    fn two_modes_have_no_interval() {
        let mut values = vec![100.0, 100.5, 101.0, 100.2, 100.7, 100.9];
        values.extend([80.0, 80.5, 80.2, 80.4]);
        let seen = summarise::<Rate>(&values, 1).unwrap();
        assert_eq!(seen.spread.kind, SpreadKind::Range);
        assert!(matches!(seen.warnings[..], [Warning::TwoModes(_)]));
    }

    #[test]
    fn what_is_no_number_is_left_out_and_counted() {
        let seen = summarise::<Rate>(&[f64::NAN, 5.0, f64::INFINITY], 1).unwrap();
        assert_eq!(seen.median, Rate(5.0));
        assert_eq!(seen.warnings[0], Warning::LeftOut { count: 2 });
        assert_eq!(summarise::<Rate>(&[f64::NAN], 1), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(prony_testkit::seeds(48, 1_000) as u32))]
        #[test]
        fn the_median_lies_within_the_spread_and_order_does_not_matter(
            mut values in prop::collection::vec(-1e300_f64..1e300, 1..14), seed in any::<u64>(),
        ) {
            let seen = summarise::<Rate>(&values, seed).unwrap();
            prop_assert!(seen.spread.low <= seen.median && seen.median <= seen.spread.high);
            values.reverse();
            prop_assert_eq!(summarise::<Rate>(&values, seed), Some(seen));
        }
    }
}
