//! One subject against the declared reference, block by block.

use serde::{Deserialize, Serialize};

use crate::moderated::Variance;
use crate::quantile::sorted;
use crate::special::t_quantile;
use crate::summary::{Spread, Warning, warnings};
use crate::units::Ratio;
use crate::{BLOCKS_INTERVAL_MIN, CONFIDENCE, SpreadKind};

/// How two cells compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Blocks in which both have a value.
    pub blocks: usize,
    /// Geometric mean of the blocks' ratios: the exponential of the mean logarithm, on
    /// which the interval is centred.
    pub ratio: Ratio,
    /// Interval of the ratio, or range of the blocks' ratios.
    pub spread: Spread<Ratio>,
    /// What may be said.
    pub conclusion: Conclusion,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// What a comparison allows to say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Nothing: there is no interval.
    #[default]
    NotClaimed,
    /// The interval holds 1.
    NoDifferenceShown,
    /// The whole interval is above 1.
    Higher,
    /// The whole interval is below 1.
    Lower,
}

impl Conclusion {
    /// Whether it is that the two differ.
    pub fn is_difference(self) -> bool {
        matches!(self, Conclusion::Higher | Conclusion::Lower)
    }
}

/// Compares `(value, reference)` of the same blocks, by itself: see [`compare_at`], at [`CONFIDENCE`].
pub fn compare(pairs: &[(f64, f64)]) -> Option<Comparison> {
    compare_at(pairs, CONFIDENCE)
}

/// The confidence of each of `count` intervals that all hold together with [`CONFIDENCE`] at least, also where their means go
/// together (Z. Šidák, "Rectangular confidence regions for the means of multivariate normal distributions", 1967). Of none it is
/// that of one.
pub fn simultaneous(count: usize) -> f64 {
    libm::pow(CONFIDENCE, 1.0 / count.max(1) as f64)
}

/// Compares `(value, reference)` of the same blocks: see [`compare_by`], with the pairs' own variance.
pub fn compare_at(pairs: &[(f64, f64)], confidence: f64) -> Option<Comparison> {
    compare_by(pairs, confidence, Variance::from_pairs(pairs))
}

/// Compares `(value, reference)` of the same blocks, where their logarithms have this variance. From 6 pairs the
/// spread is Student's t interval on the paired log ratios (which takes these as independent
/// and about normal) of this confidence, and there is a conclusion. Where the ratios stand in two groups, it
/// reaches over both; and where one of these is above 1 and the other below, as with fewer pairs, it is their range and nothing is
/// claimed. A pair with a value that is not finite and positive is left out. `None` without any.
pub fn compare_by(
    pairs: &[(f64, f64)],
    confidence: f64,
    variance: Option<Variance>,
) -> Option<Comparison> {
    compare_from(BLOCKS_INTERVAL_MIN, pairs, confidence, variance)
}

/// [`compare_by`], with an interval from so many pairs on: where the variance is known by more than these.
pub fn compare_from(
    least: usize,
    pairs: &[(f64, f64)],
    confidence: f64,
    variance: Option<Variance>,
) -> Option<Comparison> {
    let logs = logs(pairs);
    if logs.is_empty() {
        return None;
    }
    let ratios: Vec<f64> = logs.iter().map(|&log| libm::exp(log)).collect();
    let warnings = warnings(pairs.len() - logs.len(), &ratios, BLOCKS_INTERVAL_MIN);
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let range = (ratios[0], ratios[ratios.len() - 1]);
    let modes = warnings.iter().find_map(Warning::modes);
    let is_split = modes.is_some_and(|of| of.low < 1.0 && of.high > 1.0);
    let half = match logs.len() < least || is_split {
        true => None,
        false => half_width(variance, logs.len(), confidence),
    };
    let (kind, low, high) = match (half, modes) {
        (None, _) => (SpreadKind::Range, range.0, range.1),
        (Some(half), modes) => {
            let (low, high) = (libm::exp(mean - half), libm::exp(mean + half));
            match modes {
                Some(_) => (SpreadKind::Interval, low.min(range.0), high.max(range.1)),
                None => (SpreadKind::Interval, low, high),
            }
        }
    };
    Some(Comparison {
        blocks: logs.len(),
        ratio: Ratio(libm::exp(mean)),
        spread: Spread {
            kind,
            low: Ratio(low),
            high: Ratio(high),
        },
        conclusion: conclude(kind, low, high),
        warnings,
    })
}

/// The logarithms of the pairs' ratios, rising. Of what is not finite and positive the logarithm is not finite, and left
/// out here.
pub(crate) fn logs(pairs: &[(f64, f64)]) -> Vec<f64> {
    let log_ratio = |&(value, reference): &(f64, f64)| libm::log(value) - libm::log(reference);
    sorted(&pairs.iter().map(log_ratio).collect::<Vec<_>>())
}

/// Half the width of Student's interval of the mean of `count` logarithms.
fn half_width(variance: Option<Variance>, count: usize, confidence: f64) -> Option<f64> {
    let Variance { variance, degrees } = variance?;
    Some(t_quantile(0.5 + confidence / 2.0, degrees)? * (variance / count as f64).sqrt())
}

fn conclude(kind: SpreadKind, low: f64, high: f64) -> Conclusion {
    match kind {
        SpreadKind::Range => Conclusion::NotClaimed,
        SpreadKind::Interval if low > 1.0 => Conclusion::Higher,
        SpreadKind::Interval if high < 1.0 => Conclusion::Lower,
        SpreadKind::Interval => Conclusion::NoDifferenceShown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_quantile;
    use prony_base::Random;
    use proptest::prelude::*;

    /// Ten paired differences of Student, "The Probable Error of a Mean", 1908 (sleep data):
    /// mean 1.58, standard deviation 1.2300, 95 % interval 0.7001 to 2.4599.
    #[test]
    fn students_own_pairs_give_the_published_interval() {
        let differences = [1.2_f64, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let pairs: Vec<(f64, f64)> = differences.iter().map(|d| (libm::exp(*d), 1.0)).collect();
        let seen = compare(&pairs).unwrap();
        assert_eq!(seen.spread.kind, SpreadKind::Interval);
        assert!((libm::log(seen.ratio.0) - 1.58).abs() < 1e-9);
        assert!((libm::log(seen.spread.low.0) - 0.7001142).abs() < 1e-6);
        assert!((libm::log(seen.spread.high.0) - 2.4598858).abs() < 1e-6);
        assert_eq!(seen.conclusion, Conclusion::Higher);
    }

    #[test]
    fn five_blocks_claim_nothing_however_far_apart() {
        let seen = compare(&[(200.0, 100.0); 5]).unwrap();
        assert_eq!(seen.conclusion, Conclusion::NotClaimed);
        assert_eq!(seen.spread.kind, SpreadKind::Range);
        assert_eq!(
            seen.warnings,
            [Warning::FewBlocks {
                blocks: 5,
                needed: 6
            }]
        );
    }

    #[test]
    fn an_interval_that_holds_one_shows_no_difference() {
        let pairs: Vec<_> = [0.98, 1.03, 1.0, 0.99, 1.02, 1.01].map(|r| (r, 1.0)).into();
        assert_eq!(
            compare(&pairs).unwrap().conclusion,
            Conclusion::NoDifferenceShown
        );
        let equal = compare(&[(7.0, 7.0); 6]).unwrap();
        assert_eq!(
            (equal.ratio.0, equal.conclusion),
            (1.0, Conclusion::NoDifferenceShown)
        );
    }

    #[test]
    fn two_groups_withhold_a_claim_only_on_both_sides_of_one() {
        let of = |ratios: [f64; 6]| compare(&ratios.map(|r| (r, 1.0))).unwrap();
        let both = of([0.8, 0.801, 0.802, 1.1, 1.101, 1.102]);
        assert_eq!(both.conclusion, Conclusion::NotClaimed);
        assert_eq!(both.spread.kind, SpreadKind::Range);
        // A rate of 4.7 times as much, in two groups 3 % apart.
        let one = of([4.69, 4.695, 4.69, 4.86, 4.87, 4.865]);
        assert!(matches!(one.warnings[..], [Warning::TwoModes(_)]));
        assert_eq!(one.conclusion, Conclusion::Higher);
        assert!(one.spread.low.0 <= 4.69 && one.spread.high.0 >= 4.87);
    }

    #[test]
    fn a_variance_that_is_known_better_makes_the_interval_narrower() {
        let pairs = [0.98, 1.03, 1.0, 0.99, 1.02, 1.01].map(|r| (r, 1.0));
        let own = Variance::from_pairs(&pairs).unwrap();
        let width = |variance| {
            let of = compare_by(&pairs, 0.95, Some(variance)).unwrap().spread;
            libm::log(of.high.0 / of.low.0)
        };
        let better = Variance {
            degrees: 20.0,
            ..own
        };
        // Student's quantiles of 5 and of 20 degrees of freedom.
        assert!((width(better) / width(own) - 2.0860 / 2.5706).abs() < 1e-3);
    }

    #[test]
    fn a_block_without_a_rate_is_left_out() {
        let seen = compare(&[(0.0, 5.0), (5.0, f64::NAN), (10.0, 5.0)]).unwrap();
        assert_eq!(seen.blocks, 1);
        assert!((seen.ratio.0 - 2.0).abs() < 1e-12);
        assert_eq!(seen.warnings[0], Warning::LeftOut { count: 2 });
        for nothing in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for pair in [(nothing, 5.0), (5.0, nothing), (nothing, nothing)] {
                assert_eq!(compare(&[pair]), None, "{pair:?}");
            }
        }
    }

    /// An A/A comparison: with equal cells the interval excludes 1 in about one of twenty.
    #[test]
    fn equal_cells_are_called_different_about_as_often_as_the_interval_says() {
        let mut random = Random::new(3);
        let mut noisy =
            || libm::exp(0.03 * normal_quantile(random.unit().clamp(1e-9, 0.999_999)).unwrap());
        let wrong = (0..1_000)
            .filter(|_| {
                let pairs: Vec<(f64, f64)> = (0..8).map(|_| (noisy(), noisy())).collect();
                compare(&pairs).unwrap().conclusion.is_difference()
            })
            .count();
        assert!((25..=75).contains(&wrong), "{wrong} of 1000");
    }

    proptest! {
        #[test]
        fn swapping_the_sides_inverts_the_ratio(
            pairs in prop::collection::vec((1e-3_f64..1e9, 1e-3_f64..1e9), 1..12),
        ) {
            let there = compare(&pairs).unwrap();
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let back = compare(&swapped).unwrap();
            prop_assert!((there.ratio.0 * back.ratio.0 - 1.0).abs() < 1e-9);
            let slack = 1.0 + 1e-9;
            prop_assert!(there.spread.low.0 <= there.ratio.0 * slack);
            prop_assert!(there.ratio.0 <= there.spread.high.0 * slack);
        }

        #[test]
        fn any_pairs_are_compared_without_panic(
            pairs in prop::collection::vec((any::<f64>(), any::<f64>()), 0..12),
        ) {
            let _ = compare(&pairs);
        }
    }
}
