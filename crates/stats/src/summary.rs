//! One figure of one cell over its blocks.

use prony_record::SpreadKind;

use crate::modes::{TwoModes, two_modes};
use crate::quantile::{median_of_sorted, sorted};
use crate::units::Quantity;
use crate::{BLOCKS_INTERVAL_MIN, CONFIDENCE};

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

/// Summarises one value a block. From [`BLOCKS_INTERVAL_MIN`] blocks, and in one group, the spread is an interval for the
/// median with [`CONFIDENCE`]. Two of the values in order hold the median with a confidence that does not depend on their
/// distribution (Conover, "Practical Nonparametric Statistics", 3rd edition 1999, section 3.2), but only with that of
/// whole steps: of eight the smallest and the largest do with 99.2 %, the next two with 93.0 %. Between these the ends are
/// interpolated (Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics", Statistics &
/// Probability Letters 4, 1986, pages 75 to 79), but not over a gap that is wider than all between the inner two: beyond it
/// may be another mode, which the median may be next to. Else it is the range. `None` without any value.
pub fn summarise<U: Quantity>(values: &[f64]) -> Option<Summary<U>> {
    let finite = sorted(values);
    if finite.is_empty() {
        return None;
    }
    let warnings = warnings(values.len() - finite.len(), &finite, BLOCKS_INTERVAL_MIN);
    let spread = if warnings.iter().any(Warning::forbids_interval) {
        (SpreadKind::Range, finite[0], finite[finite.len() - 1])
    } else {
        let (low, high) = ends(&finite);
        (SpreadKind::Interval, low, high)
    };
    Some(Summary {
        blocks: finite.len(),
        median: U::new(median_of_sorted(&finite)),
        spread: Spread {
            kind: spread.0,
            low: U::new(spread.1),
            high: U::new(spread.2),
        },
        warnings,
    })
}

impl Warning {
    pub(crate) fn modes(&self) -> Option<TwoModes> {
        match self {
            Warning::TwoModes(modes) => Some(*modes),
            _ => None,
        }
    }

    pub(crate) fn forbids_interval(&self) -> bool {
        !matches!(self, Warning::LeftOut { .. })
    }
}

/// The warnings of `kept` values, of which `needed` would give an interval.
pub(crate) fn warnings(left_out: usize, finite: &[f64], needed: usize) -> Vec<Warning> {
    debug_assert!(needed >= BLOCKS_INTERVAL_MIN);
    let mut found = Vec::new();
    if left_out > 0 {
        found.push(Warning::LeftOut { count: left_out });
    }
    if finite.len() < needed {
        let blocks = finite.len();
        found.push(Warning::FewBlocks { blocks, needed });
    }
    found.extend(two_modes(finite).map(Warning::TwoModes));
    found
}

/// The ends of the median's interval, of values in order, of which there are [`BLOCKS_INTERVAL_MIN`] at least.
fn ends(sorted: &[f64]) -> (f64, f64) {
    let count = sorted.len();
    let Inwards { rank, share } = inwards(count);
    let within = sorted[count - 1 - rank] - sorted[rank];
    let between = |outer: f64, inner: f64| match (inner - outer).abs() > within {
        true => outer,
        // Each weighed before they are added: two huge values do not overflow.
        false => (1.0 - share) * outer + share * inner,
    };
    let low = between(sorted[rank - 1], sorted[rank]);
    let high = between(sorted[count - rank], sorted[count - 1 - rank]);
    // Rounding may put an end past the median of values that are all but equal.
    let median = median_of_sorted(sorted);
    (low.min(median), high.max(median))
}

/// How far within the values in order the ends of an interval lie.
struct Inwards {
    /// Rank from either end, from 1, of the outer of the two values between which an end lies.
    rank: usize,
    /// Share of the way to the next one inwards.
    share: f64,
}

/// Where the ends of the median's interval lie, of `count` values in order. The median lies outside of the d-th values from
/// both ends if at most d - 1 of all lie on one side of it, of which each does by the toss of a coin. Of a confidence
/// between those of the d-th and the next, at a share I of the way, the ends lie at a share
/// (n - d) I / (d + (n - 2 d) I) of theirs (Hettmansperger and Sheather, as at [`summarise`]): exact for the Laplace
/// distribution, near for others.
fn inwards(count: usize) -> Inwards {
    let allowed = 1.0 - CONFIDENCE;
    // By logarithms: of a thousand values the chance that none lies on one side is no number any more.
    let mut chance = libm::log(2.0) * (1.0 - count as f64);
    let (mut here, mut rank) = (libm::exp(chance), 1);
    loop {
        chance += libm::log((count + 1 - rank) as f64 / rank as f64);
        let next = here + libm::exp(chance);
        if next > allowed {
            let part = (allowed - here) / (next - here);
            let (n, d) = (count as f64, rank as f64);
            let share = (n - d) * part / (d + (n - 2.0 * d) * part);
            // Under six not even the ends hold it.
            let share = share.clamp(0.0, 1.0);
            return Inwards { rank, share };
        }
        (here, rank) = (next, rank + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, normal_quantile};
    use prony_base::Random;
    use proptest::prelude::*;

    #[test]
    fn few_blocks_have_a_range_and_say_so() {
        let seen = summarise::<Rate>(&[10.0, 12.0, 11.0]).unwrap();
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
                needed: 6
            }]
        );
    }

    /// The ranks of the published table (Conover, as above, table A3, p = 1/2): of n values the interval of the median goes
    /// from between the k-th smallest and the next to between the k-th largest and the next inwards.
    #[test]
    fn the_interval_lies_next_to_the_ranks_of_the_published_table() {
        let table = [
            (6, 1),
            (7, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (11, 2),
            (12, 3),
            (15, 4),
            (20, 6),
            (30, 10),
            (50, 18),
            (3_000, 1_446),
        ];
        for (count, rank) in table {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let spread = summarise::<Rate>(&values).unwrap().spread;
            let (rank, next) = (f64::from(rank), f64::from(rank + 1));
            assert!((rank..next).contains(&spread.low.0), "{count}: {spread:?}");
            let both = spread.low.0 + spread.high.0;
            assert!((both - f64::from(count + 1)).abs() < 1e-9, "{count}");
            assert_eq!(spread.kind, SpreadKind::Interval, "{count}");
        }
    }

    /// Computed by hand from the binomial: of eight the ends miss in 2 of 256, the next two in 18, so that 5 % is
    /// 12.8 - 2 of these 16, 67.5 % of the way, and the ends lie 7 * 0.675 / (1 + 6 * 0.675) of theirs inwards.
    #[test]
    fn ends_between_two_values_lie_where_the_paper_says() {
        for (count, rank, share) in [
            (6, 1, 5.0 * 0.1 / (1.0 + 4.0 * 0.1)),
            (8, 1, 7.0 * 0.675 / (1.0 + 6.0 * 0.675)),
        ] {
            let found = inwards(count);
            assert_eq!(found.rank, rank, "{count}");
            assert!(
                (found.share - share).abs() < 1e-9,
                "{count}: {}",
                found.share
            );
        }
    }

    /// Of a lopsided distribution, too: logarithms of it are normal. Two groups are a warning, and no interval.
    #[test]
    fn the_interval_holds_the_true_median_at_least_as_often_as_it_says() {
        let mut random = Random::new(2);
        for count in [6, 8, 11, 12, 21] {
            let (mut held, mut all) = (0, 0);
            for _ in 0..prony_testkit::seeds(500, 20_000) {
                let value = |_| normal_quantile(random.unit().clamp(1e-9, 0.999_999)).unwrap();
                let values: Vec<f64> = (0..count).map(value).map(libm::exp).collect();
                let spread = summarise::<Rate>(&values).unwrap().spread;
                let is_interval = spread.kind == SpreadKind::Interval;
                all += u32::from(is_interval);
                held += u32::from(is_interval && (spread.low.0..=spread.high.0).contains(&1.0));
            }
            // Where it is 95 % just so, 500 tosses have less than 92.5 % in one of two hundred cases.
            assert!(
                f64::from(held) >= 0.925 * f64::from(all),
                "{held} of {all} by {count}"
            );
        }
    }

    #[test]
    fn two_modes_have_no_interval() {
        let mut values = vec![100.0, 100.5, 101.0, 100.2, 100.7, 100.9];
        values.extend([80.0, 80.5, 80.2, 80.4]);
        let seen = summarise::<Rate>(&values).unwrap();
        assert_eq!(seen.spread.kind, SpreadKind::Range);
        assert!(matches!(seen.warnings[..], [Warning::TwoModes(_)]));
    }

    #[test]
    fn what_is_no_number_is_left_out_and_counted() {
        let seen = summarise::<Rate>(&[f64::NAN, 5.0, f64::INFINITY]).unwrap();
        assert_eq!(seen.median, Rate(5.0));
        assert_eq!(seen.warnings[0], Warning::LeftOut { count: 2 });
        assert_eq!(summarise::<Rate>(&[f64::NAN]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(prony_testkit::seeds(48, 1_000) as u32))]
        #[test]
        fn the_median_lies_within_the_spread_and_order_does_not_matter(
            mut values in prop::collection::vec(-1e300_f64..1e300, 1..40),
        ) {
            let seen = summarise::<Rate>(&values).unwrap();
            prop_assert!(seen.spread.low <= seen.median && seen.median <= seen.spread.high);
            values.reverse();
            prop_assert_eq!(summarise::<Rate>(&values), Some(seen));
        }
    }
}
