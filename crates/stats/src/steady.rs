//! Whether the rate stayed the same over the window.

use crate::quantile::{median, median_of_sorted, sorted};
use crate::units::{Ratio, Share};

/// Slices below which nothing is said.
pub const SLICES_MIN: usize = 6;
/// Drift up to this is steady.
const TOLERANCE: f64 = 0.10;
/// Slices under half the median, as a share, up to which the window is steady.
const STALLED_MAX: f64 = 0.05;
/// The noise of the slices alone moves their thirds apart; so many standard errors of that are no drift.
pub(crate) const NOISE_SIGMAS: f64 = 3.0;
/// The median of n normal values has this times their deviation ÷ √n for its standard error (√(π/2)).
const MEDIAN_TO_MEAN_ERROR: f64 = 1.253_314_137_315_500_3;
/// The median absolute deviation of normal values times this is their standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// How the rate moved within a window. All figures rest on medians, so that a single odd
/// slice moves none of them; such slices are counted by `stalled`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Median of the last third of the slices over that of the first third.
    pub drift: Ratio,
    /// Robust coefficient of variation from slice to slice, whatever the drift: 1.4826 × median |difference of
    /// neighbours| ÷ √2 ÷ median.
    pub spread: Share,
    /// Part of the slices with less than half of the median.
    pub stalled: Share,
    /// Drift, as distance from 1, up to this counts as steady: 0.10, or what the slices' own spread explains, if that is
    /// more: three standard errors of the difference of two medians.
    pub tolerance: Share,
}

impl Steadiness {
    /// Whether the drift is within the tolerance and at most 5 % of the slices stalled.
    pub fn is_steady(&self) -> bool {
        (self.drift.0 - 1.0).abs() <= self.tolerance.0 && self.stalled.0 <= STALLED_MAX
    }
}

/// The robust coefficient of variation from slice to slice around `level`, whatever the drift: 1.4826 × median |difference of
/// neighbours| ÷ √2 ÷ level. `None` with fewer than two.
pub(crate) fn spread(counts: &[f64], level: f64) -> Option<f64> {
    let steps: Vec<f64> = counts
        .windows(2)
        .map(|two| (two[1] - two[0]).abs())
        .collect();
    Some(MAD_TO_DEVIATION * median(&steps)? / std::f64::consts::SQRT_2 / level)
}

/// The standard error of the median of so many slices that scatter by `spread`, as a part of it.
pub(crate) fn median_error(spread: f64, slices: usize) -> f64 {
    MEDIAN_TO_MEAN_ERROR * spread / (slices as f64).sqrt()
}

/// Looks at the completions of slices of equal length. `None` with fewer than 6 slices or
/// where at least half of them are empty: whether that is a freeze tells [`freeze`].
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
    let spread = spread(&counts, middle)?;
    let error = median_error(spread, third) * std::f64::consts::SQRT_2;
    let stalled = counts.iter().filter(|&&n| n < middle / 2.0).count();
    Some(Steadiness {
        // A first third without any completion: as far from steady as can be said in a number.
        drift: Ratio(if first > 0.0 { last / first } else { f64::MAX }),
        spread: Share(spread),
        stalled: Share(stalled as f64 / counts.len() as f64),
        tolerance: Share(TOLERANCE.max(NOISE_SIGMAS * error)),
    })
}

/// Empty slices in a row from which a window may have been frozen: shorter stalls are `stalled`.
const FROZEN_SLICES_MIN: usize = 3;
/// Completions that were to be expected in them: by chance alone there are none once in e³⁰ times.
const FROZEN_EXPECTED_MIN: f64 = 30.0;

/// Slices in a row without any completion, where the others had many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freeze {
    /// The most in a row.
    pub slices: usize,
    /// Part of all slices that lie in such rows.
    pub share: Share,
    /// Whether the window ends in one.
    pub at_end: bool,
}

/// Looks for slices in a row that are empty although, by the median of the slices that are not, at least 30
/// completions were to be expected in them. `None` where there are none. A window without any completion is one
/// freeze: nothing is known of what was to be expected.
pub fn freeze(completed: &[u64]) -> Option<Freeze> {
    let busy: Vec<f64> = completed
        .iter()
        .filter(|&&n| n > 0)
        .map(|&n| n as f64)
        .collect();
    let usual = median(&busy).unwrap_or(f64::INFINITY);
    let is_freeze = |row: &[u64]| {
        row.len() >= FROZEN_SLICES_MIN && row.len() as f64 * usual >= FROZEN_EXPECTED_MIN
    };
    // Each row of empty slices, with nothing between two that are not.
    let rows = || completed.split(|&n| n > 0).filter(|row| is_freeze(row));
    let slices = rows().map(<[u64]>::len).max()?;
    let all: usize = rows().map(<[u64]>::len).sum();
    let last = completed.rsplit(|&n| n > 0).next().unwrap_or_default();
    Some(Freeze {
        slices,
        share: Share(all as f64 / completed.len() as f64),
        at_end: is_freeze(last),
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
    fn a_server_that_was_frozen_for_most_of_the_window_was_taken_for_steady() {
        let mut slices = vec![0; 100];
        slices[..40].fill(1_000);
        assert_eq!(steadiness(&slices), None);
        let seen = freeze(&slices).expect("a freeze");
        assert_eq!((seen.slices, seen.share.0, seen.at_end), (60, 0.6, true));
        slices[95..].fill(900);
        let seen = freeze(&slices).expect("a freeze");
        assert_eq!((seen.slices, seen.share.0, seen.at_end), (55, 0.55, false));
    }

    #[test]
    fn a_freeze_across_the_end_of_the_window_is_one() {
        let mut slices = vec![1_000; 100];
        slices[96..].fill(0);
        let seen = freeze(&slices).expect("a freeze");
        assert_eq!((seen.slices, seen.at_end), (4, true));
        assert_eq!(freeze(&[0; 10]).expect("a freeze").slices, 10);
    }

    #[test]
    fn two_empty_slices_or_a_slow_server_are_no_freeze() {
        let mut slices = vec![1_000; 100];
        slices[50..52].fill(0);
        assert_eq!(freeze(&slices), None);
        // One answer in each third slice or so.
        let slow: Vec<u64> = (0..100).map(|at| u64::from(at % 4 == 0)).collect();
        assert_eq!(freeze(&slow), None);
        assert_eq!(freeze(&[]), None);
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
