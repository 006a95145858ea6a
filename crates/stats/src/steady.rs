//! Whether the rate stayed the same over the window.

use crate::quantile::{median, median_of_sorted, sorted};
use crate::units::{Ratio, Share};

/// Slices below which nothing is said.
pub const SLICES_MIN: usize = 6;
/// Drift and spread up to this are steady.
const TOLERANCE: f64 = 0.10;
/// Slices under half the median, as a share, up to which the window is steady.
const STALLED_MAX: f64 = 0.05;
/// Counting alone spreads a count of n by the root of n; so many of that are no unsteadiness.
const COUNTING_SIGMAS: f64 = 3.0;
/// The median absolute deviation of normal values times this is their standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// How the rate moved within a window. All figures rest on medians, so that a single odd
/// slice moves none of them; such slices are counted by `stalled`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Median of the last third of the slices over that of the first third.
    pub drift: Ratio,
    /// Robust coefficient of variation: 1.4826 × median absolute deviation / median.
    pub spread: Share,
    /// Part of the slices with less than half of the median.
    pub stalled: Share,
    /// Drift (as distance from 1) and spread up to this count as steady: 0.10, or what counting
    /// so few requests alone explains, if that is more.
    pub tolerance: Share,
}

impl Steadiness {
    /// Whether drift and spread are within the tolerance and at most 5 % of the slices stalled.
    pub fn is_steady(&self) -> bool {
        (self.drift.0 - 1.0).abs() <= self.tolerance.0
            && self.spread.0 <= self.tolerance.0
            && self.stalled.0 <= STALLED_MAX
    }
}

/// Looks at the completions of slices of equal length. `None` with fewer than 6 slices or
/// where at least half of them are empty.
pub fn steadiness(completed: &[u64]) -> Option<Steadiness> {
    if completed.len() < SLICES_MIN {
        return None;
    }
    let counts: Vec<f64> = completed.iter().map(|&n| n as f64).collect();
    let middle = median_of_sorted(&sorted(&counts));
    if middle <= 0.0 {
        return None;
    }
    let third = counts.len() / 3;
    let (first, last) = (
        median(&counts[..third])?,
        median(&counts[counts.len() - third..])?,
    );
    let deviations: Vec<f64> = counts.iter().map(|n| (n - middle).abs()).collect();
    let stalled = counts.iter().filter(|&&n| n < middle / 2.0).count();
    Some(Steadiness {
        // A first third without any completion: as far from steady as can be said in a number.
        drift: Ratio(if first > 0.0 { last / first } else { f64::MAX }),
        spread: Share(MAD_TO_DEVIATION * median(&deviations)? / middle),
        stalled: Share(stalled as f64 / counts.len() as f64),
        tolerance: Share(TOLERANCE.max(COUNTING_SIGMAS / middle.sqrt())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_base::Random;
    use proptest::prelude::*;

    #[test]
    fn a_level_rate_is_steady_and_a_sloping_one_is_not() {
        let level = steadiness(&[10_000, 10_100, 9_900, 10_050, 9_950, 10_000, 10_020]).unwrap();
        assert!(level.is_steady(), "{level:?}");
        let sloping: Vec<u64> = (0..30).map(|i| 10_000 - 80 * i).collect();
        let sloping = steadiness(&sloping).unwrap();
        // Thirds have their medians at 4.5 and 24.5: 8,040 over 9,640.
        assert!((sloping.drift.0 - 8_040.0 / 9_640.0).abs() < 1e-12);
        assert!(!sloping.is_steady());
    }

    #[test]
    fn a_server_that_stalls_in_a_tenth_of_the_slices_is_not_steady() {
        let mut slices = vec![5_000_u64; 20];
        slices[9] = 0;
        assert!(
            steadiness(&slices).unwrap().is_steady(),
            "one may be chance"
        );
        slices[19] = 100;
        let seen = steadiness(&slices).unwrap();
        assert_eq!(
            (seen.drift.0, seen.spread.0, seen.stalled.0),
            (1.0, 0.0, 0.1)
        );
        assert!(!seen.is_steady());
    }

    #[test]
    fn small_counts_may_vary_as_counting_does() {
        let mut random = Random::new(5);
        // Binomial counts with a mean of 30: a deviation of about 5, or 18 %.
        let mut slice = || (0..300).filter(|_| random.chance(1, 10)).count() as u64;
        let seen = steadiness(&(0..40).map(|_| slice()).collect::<Vec<_>>()).unwrap();
        assert!(seen.spread.0 > 0.10 && seen.is_steady(), "{seen:?}");
    }

    #[test]
    fn a_start_without_any_answer_is_as_far_from_steady_as_a_number_can_say() {
        let seen = steadiness(&[0, 0, 0, 10, 10, 10, 10, 10, 10]).unwrap();
        assert_eq!((seen.drift.0, seen.stalled.0), (f64::MAX, 3.0 / 9.0));
        assert!(!seen.is_steady());
    }

    #[test]
    fn few_or_empty_slices_say_nothing() {
        assert_eq!(steadiness(&[1, 2, 3, 4, 5]), None);
        assert_eq!(steadiness(&[0; 20]), None);
    }

    proptest! {
        #[test]
        fn any_slices_are_read_without_panic(slices in prop::collection::vec(any::<u64>(), 0..30)) {
            if let Some(seen) = steadiness(&slices) {
                prop_assert!(seen.spread.0.is_finite() && seen.drift.0.is_finite());
            }
        }
    }
}
