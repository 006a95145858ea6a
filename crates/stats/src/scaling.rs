//! How time grows with the size of the work: the exponent `p` of `time = constant × size^p`.
//!
//! For a sweep over sizes of which every block has one time each. Within a block the exponent
//! is the least-squares slope of log time over log size; the blocks' slopes are then the values
//! that an interval is drawn from, since the block is the unit of repetition. (One summary a
//! unit, then an ordinary analysis of the summaries: Matthews, Altman, Campbell and Royston,
//! "Analysis of serial measurements in medical research", BMJ 300, 1990. Points of one block
//! share its disturbances, so that the interval of a single regression over all points would be
//! too narrow.)
//!
//! Not for: telling `n` from `n log n`, whose exponent over any three decades is 1.1 and less.

use crate::SpreadKind;
use crate::quantile::{median_of_sorted, sorted};
use crate::special::t_quantile;
use crate::summary::{Spread, Warning, warnings};
use crate::units::Exponent;
use crate::{BLOCKS_INTERVAL_MIN, CONFIDENCE};

/// Sizes that a block must have.
pub const SIZES_MIN: usize = 3;
/// Largest size over the smallest, at the least.
pub const SIZES_FACTOR_MIN: f64 = 10.0;
/// Local exponents that lie farther apart than this are a curve, if the blocks bear it out.
pub const CURVATURE_MIN: f64 = 0.10;
/// An interval wider than this to either side holds too much to be called consistent with
/// anything.
pub const HALF_WIDTH_MAX: f64 = 0.15;
/// Distance within which an end of the interval counts as on a whole number: what two decimals,
/// as a document shows them, cannot tell.
pub const RESOLUTION: f64 = 0.005;
/// Highest whole power that is looked for.
const DEGREE_MAX: u32 = 4;

/// How the time of one family of cells grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// Blocks that had enough sizes.
    pub blocks: usize,
    /// Distinct sizes, the most of any block.
    pub sizes: usize,
    /// Smallest size of any block.
    pub smallest: f64,
    /// Largest size of any block.
    pub largest: f64,
    /// Mean of the blocks' slopes where there is an interval, else their median.
    pub exponent: Exponent,
    /// Interval of the exponent, or range of the blocks' slopes.
    pub spread: Spread<Exponent>,
    /// Exponent over the smaller half of the sizes.
    pub small_end: Exponent,
    /// Exponent over the larger half of the sizes.
    pub large_end: Exponent,
    /// What may be said.
    pub growth: Growth,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// What a [`Scaling`] allows to say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Growth {
    /// Nothing: there is no interval.
    NotClaimed,
    /// No single power fits: the two ends grow differently.
    Curved,
    /// The interval holds too much.
    TooWide,
    /// The interval holds this whole power (to two decimals) and no other: consistent with it, not
    /// proof of it.
    Consistent(u32),
    /// The interval is narrow and holds no whole power.
    Between,
}

/// One block's slopes.
struct Slopes {
    overall: f64,
    small: f64,
    large: f64,
}

/// The exponent of `blocks`, each a list of `(size, time)` in any order. From 6 blocks, and
/// in one group, the spread is Student's t interval of the mean slope; else it is the range and
/// nothing is claimed. A block with under 3 sizes, or sizes over less than a factor 10, is left
/// out and counted. A point that is not finite and positive is no point. `None` without a block.
///
/// The growth is curved where the exponents of the smaller and the larger half of the sizes
/// differ by over 0.1 on average and the interval of that difference (under 6 blocks: the
/// blocks' range, from 2 blocks) does not hold zero. Then no whole power is named.
pub fn scaling(blocks: &[Vec<(f64, f64)>]) -> Option<Scaling> {
    let points: Vec<Vec<(f64, f64)>> = blocks.iter().filter_map(|b| usable(b)).collect();
    let slopes: Vec<Slopes> = points.iter().map(|block| slopes(block)).collect();
    if slopes.is_empty() {
        return None;
    }
    let of = |which: fn(&Slopes) -> f64| -> Vec<f64> { slopes.iter().map(which).collect() };
    let overall = of(|s| s.overall);
    let warnings = warnings(
        blocks.len() - slopes.len(),
        &sorted(&overall),
        BLOCKS_INTERVAL_MIN,
    );
    let claims = !warnings.iter().any(Warning::forbids_interval);
    let (exponent, spread) = centre(&overall, claims);
    let curved = is_curved(&of(|s| s.large - s.small), claims);
    let ends = |block: &Vec<(f64, f64)>| (block[0].0, block[block.len() - 1].0);
    Some(Scaling {
        blocks: slopes.len(),
        sizes: points.iter().map(Vec::len).max().unwrap_or(0),
        smallest: libm::exp(
            points
                .iter()
                .map(|b| ends(b).0)
                .fold(f64::INFINITY, f64::min),
        ),
        largest: libm::exp(points.iter().map(|b| ends(b).1).fold(f64::MIN, f64::max)),
        exponent: Exponent(exponent),
        spread,
        small_end: Exponent(median_of_sorted(&sorted(&of(|s| s.small)))),
        large_end: Exponent(median_of_sorted(&sorted(&of(|s| s.large)))),
        growth: growth(&spread, curved),
        warnings,
    })
}

/// The logarithms of a block's points by rising size, a repeated size once with the mean of
/// its log times; `None` where they are too few or too close.
fn usable(block: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    // Of what is not finite and positive the logarithm is not finite.
    let mut logs: Vec<(f64, f64)> = block
        .iter()
        .map(|&(size, time)| (libm::log(size), libm::log(time)))
        .filter(|(size, time)| size.is_finite() && time.is_finite())
        .collect();
    logs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let merged: Vec<(f64, f64)> = logs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| {
            (
                same[0].0,
                mean(&same.iter().map(|p| p.1).collect::<Vec<_>>()),
            )
        })
        .collect();
    let (first, last) = (merged.first()?, merged.last()?);
    let wide = last.0 - first.0 >= libm::log(SIZES_FACTOR_MIN) - 1e-9;
    (merged.len() >= SIZES_MIN && wide).then_some(merged)
}

fn slopes(points: &[(f64, f64)]) -> Slopes {
    // An odd number shares the size in the middle.
    let half = points.len().div_ceil(2);
    Slopes {
        overall: slope(points),
        small: slope(&points[..half]),
        large: slope(&points[points.len() - half..]),
    }
}

/// Least-squares slope. INVARIANT of the caller: at least two distinct abscissae.
fn slope(points: &[(f64, f64)]) -> f64 {
    let x = mean(&points.iter().map(|p| p.0).collect::<Vec<_>>());
    let y = mean(&points.iter().map(|p| p.1).collect::<Vec<_>>());
    let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let variance: f64 = points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    covariance / variance
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and interval where that may be claimed, else median and range.
fn centre(values: &[f64], claims: bool) -> (f64, Spread<Exponent>) {
    let finite = sorted(values);
    let interval = half_width(&finite).filter(|_| claims);
    let (kind, middle, low, high) = match interval {
        Some(half) => {
            let middle = mean(&finite);
            (SpreadKind::Interval, middle, middle - half, middle + half)
        }
        None => {
            let middle = median_of_sorted(&finite);
            (
                SpreadKind::Range,
                middle,
                finite[0],
                finite[finite.len() - 1],
            )
        }
    };
    let (low, high) = (Exponent(low), Exponent(high));
    (middle, Spread { kind, low, high })
}

/// Half the width of Student's interval of the mean; `None` for a single value.
fn half_width(values: &[f64]) -> Option<f64> {
    let degrees = (values.len() - 1) as f64;
    let middle = mean(values);
    let squares: f64 = values.iter().map(|v| (v - middle) * (v - middle)).sum();
    let error = (squares / degrees / values.len() as f64).sqrt();
    let half = t_quantile(0.5 + CONFIDENCE / 2.0, degrees)? * error;
    half.is_finite().then_some(half)
}

fn is_curved(differences: &[f64], claims: bool) -> bool {
    let (middle, spread) = centre(differences, claims);
    // The range of one block is a point, which never holds zero.
    if differences.len() < 2 {
        return false;
    }
    let one_sign = spread.low.0 > 0.0 || spread.high.0 < 0.0;
    one_sign && middle.abs() > CURVATURE_MIN
}

fn growth(spread: &Spread<Exponent>, curved: bool) -> Growth {
    let (low, high) = (spread.low.0 - RESOLUTION, spread.high.0 + RESOLUTION);
    if curved {
        return Growth::Curved;
    }
    if spread.kind == SpreadKind::Range {
        return Growth::NotClaimed;
    }
    if (spread.high.0 - spread.low.0) / 2.0 > HALF_WIDTH_MAX {
        return Growth::TooWide;
    }
    let holds = |degree: &u32| (low..=high).contains(&f64::from(*degree));
    match (0..=DEGREE_MAX).find(holds) {
        Some(degree) => Growth::Consistent(degree),
        None => Growth::Between,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_quantile;
    use prony_base::Random;
    use proptest::prelude::*;

    /// `blocks` of sizes from 1,000 up by factors of 10, with noise of the log times.
    fn blocks(count: usize, noise: f64, time: impl Fn(f64) -> f64) -> Vec<Vec<(f64, f64)>> {
        let mut random = Random::new(5);
        let mut wobble = || {
            let z = normal_quantile(random.unit().clamp(1e-9, 0.999_999)).unwrap();
            libm::exp(noise * z)
        };
        (0..count)
            .map(|_| {
                let sizes = [1e3, 3e3, 1e4, 3e4, 1e5];
                sizes.map(|n| (n, time(n) * wobble())).into()
            })
            .collect()
    }

    #[test]
    fn a_line_is_consistent_with_one_and_a_square_with_two() {
        for (degree, power) in [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)] {
            let seen = scaling(&blocks(8, 0.02, |n| 5.0 * libm::pow(n, power))).unwrap();
            assert_eq!(seen.growth, Growth::Consistent(degree), "{seen:?}");
            assert_eq!(seen.spread.kind, SpreadKind::Interval);
            assert!((seen.exponent.0 - power).abs() < 0.02);
            assert_eq!((seen.blocks, seen.sizes), (8, 5));
            assert!((seen.smallest - 1e3).abs() < 1e-6 && (seen.largest - 1e5).abs() < 1e-4);
        }
    }

    /// Student's ten values (1908) as the exponents of ten blocks: mean 1.58, interval 0.7001 to 2.4599.
    #[test]
    fn the_exponents_of_the_blocks_give_students_interval() {
        let powers = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let sweep = powers.map(|power| [1e3, 1e4, 1e5].map(|n| (n, libm::pow(n, power))).into());
        let seen = scaling(&sweep).unwrap();
        assert_eq!(seen.spread.kind, SpreadKind::Interval);
        assert!((seen.exponent.0 - 1.58).abs() < 1e-9);
        assert!((seen.spread.low.0 - 0.700_114_2).abs() < 1e-6, "{seen:?}");
        assert!((seen.spread.high.0 - 2.459_885_8).abs() < 1e-6, "{seen:?}");
        assert_eq!(seen.growth, Growth::TooWide);
    }

    #[test]
    fn what_lies_between_is_not_rounded_to_a_whole_power() {
        let seen = scaling(&blocks(8, 0.02, |n| libm::pow(n, 1.4))).unwrap();
        assert_eq!(seen.growth, Growth::Between);
        assert!((seen.exponent.0 - 1.4).abs() < 0.02);
    }

    #[test]
    fn a_constant_at_the_start_is_a_curve_and_no_power() {
        // A start of 1 ms and 100 ns each: 0.2 at the small end, 0.9 at the large.
        let seen = scaling(&blocks(8, 0.02, |n| 1e6 + 100.0 * n)).unwrap();
        assert_eq!(seen.growth, Growth::Curved);
        assert!(seen.small_end.0 < 0.4 && seen.large_end.0 > 0.6, "{seen:?}");
        // Told under six blocks, too, where no power would be named anyway.
        let few = scaling(&blocks(2, 0.02, |n| 1e6 + 100.0 * n)).unwrap();
        assert_eq!(few.growth, Growth::Curved);
        let one = scaling(&blocks(1, 0.02, |n| 1e6 + 100.0 * n)).unwrap();
        assert_eq!(one.growth, Growth::NotClaimed);
    }

    #[test]
    fn few_blocks_have_a_range_and_claim_nothing() {
        let seen = scaling(&blocks(5, 0.02, |n| n)).unwrap();
        assert_eq!(seen.growth, Growth::NotClaimed);
        assert_eq!(seen.spread.kind, SpreadKind::Range);
        let (blocks, needed) = (5, 6);
        assert_eq!(seen.warnings, [Warning::FewBlocks { blocks, needed }]);
    }

    #[test]
    fn a_wide_interval_is_consistent_with_nothing() {
        let seen = scaling(&blocks(6, 1.5, |n| n)).unwrap();
        assert!(
            matches!(seen.growth, Growth::TooWide | Growth::NotClaimed),
            "{seen:?}"
        );
    }

    #[test]
    fn one_size_two_sizes_and_a_narrow_sweep_have_no_exponent() {
        assert_eq!(scaling(&[]), None);
        assert_eq!(scaling(&[vec![(1e4, 1.0)]]), None);
        assert_eq!(scaling(&[vec![(1e3, 1.0), (1e5, 9.0)]]), None);
        let narrow = vec![(1e3, 1.0), (2e3, 2.0), (9e3, 9.0)];
        assert_eq!(scaling(&[narrow]), None);
        let just = vec![(1e3, 1.0), (2e3, 2.0), (1e4, 10.0)];
        assert!(scaling(&[just]).is_some());
    }

    #[test]
    fn a_block_that_lost_its_sizes_is_left_out_and_counted() {
        let mut sweep = blocks(7, 0.02, |n| n);
        sweep[3].truncate(2);
        let seen = scaling(&sweep).unwrap();
        assert_eq!(seen.blocks, 6);
        assert_eq!(seen.warnings, [Warning::LeftOut { count: 1 }]);
        assert_eq!(seen.growth, Growth::Consistent(1));
    }

    #[test]
    fn the_interval_holds_the_true_exponent_about_as_often_as_it_says() {
        let mut random = Random::new(11);
        let held = (0..200)
            .filter(|_| {
                let mut point = |n: f64| {
                    let z = normal_quantile(random.unit().clamp(1e-9, 0.999_999)).unwrap();
                    (n, n * libm::exp(0.05 * z))
                };
                let sweep: Vec<_> = (0..8)
                    .map(|_| [1e3, 1e4, 1e5].map(&mut point).into())
                    .collect();
                let spread = scaling(&sweep).unwrap().spread;
                (spread.low.0..=spread.high.0).contains(&1.0)
            })
            .count();
        assert!((180..=198).contains(&held), "{held} of 200");
    }

    proptest! {
        #[test]
        fn units_and_order_do_not_matter_and_a_pure_power_is_found(
            power in 0.0_f64..3.5, constant in 1e-3_f64..1e6, unit in 1e-6_f64..1e6,
            few in 1_usize..9,
        ) {
            let pure = blocks(few, 0.0, |n| constant * libm::pow(n, power));
            let seen = scaling(&pure).unwrap();
            prop_assert!((seen.exponent.0 - power).abs() < 1e-6);
            prop_assert!((seen.small_end.0 - seen.large_end.0).abs() < 1e-6);
            prop_assert!(seen.growth != Growth::Curved);
            let other: Vec<Vec<(f64, f64)>> = pure
                .iter()
                .map(|b| b.iter().rev().map(|&(n, t)| (n, t * unit)).collect())
                .collect();
            let again = scaling(&other).unwrap();
            prop_assert!((seen.exponent.0 - again.exponent.0).abs() < 1e-6);
        }

        #[test]
        fn any_points_are_taken_without_panic(
            sweep in prop::collection::vec(prop::collection::vec(any::<(f64, f64)>(), 0..6), 0..9),
        ) {
            if let Some(seen) = scaling(&sweep) {
                prop_assert!(seen.spread.low <= seen.exponent && seen.exponent <= seen.spread.high);
            }
        }
    }
}
