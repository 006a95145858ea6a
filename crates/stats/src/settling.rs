//! When a program that has just started is as fast as it stays.

use crate::quantile::median;
use crate::steady::{NOISE_SIGMAS, median_error, spread};

/// Slices below which nothing is said.
pub const SETTLING_SLICES_MIN: usize = 10;
/// Slices whose median is looked at, so that a single odd one decides nothing.
const LOOKED_AT: usize = 5;
/// So far under its later level a rate counts as having reached it, where the slices' own spread explains no more: a machine that others share moves
/// as far within a second by itself, and what is left of a warm-up then is on both sides of a ratio.
const TOLERANCE: f64 = 0.05;

/// When a rate reached its later level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    /// Slices before it did; all of them where it still rose at the end.
    pub slices: usize,
    /// Whether it still rose at the end, so that its later level is not known.
    pub is_rising: bool,
}

/// When the rate of `completed`, counts of slices of equal length from the first request on, reached its later level: the
/// median of the second half. It is reached where the median of five slices is no further under it than 5 %, or than three
/// standard errors of such a median by the slices' own spread. It still rises where the last quarter is further above the
/// quarter before. `None` with fewer than ten slices, or where half of the later ones are empty.
pub fn settling(completed: &[u64]) -> Option<Settling> {
    if completed.len() < SETTLING_SLICES_MIN {
        return None;
    }
    let counts: Vec<f64> = completed.iter().map(|&n| n as f64).collect();
    let later = &counts[counts.len() / 2..];
    let level = median(later).filter(|level| *level > 0.0)?;
    let spread = spread(later, level)?;
    let tolerance = |slices: usize| TOLERANCE.max(NOISE_SIGMAS * median_error(spread, slices));
    let quarter = counts.len() / 4;
    let (last, before) = (
        median(&counts[counts.len() - quarter..])?,
        median(&counts[counts.len() - 2 * quarter..counts.len() - quarter])?,
    );
    // Two medians have √2 times the error of one.
    let is_rising = last > before * (1.0 + tolerance(quarter) * std::f64::consts::SQRT_2);
    let reached = |five: &[f64]| median(five) >= Some(level * (1.0 - tolerance(LOOKED_AT)));
    let first = counts.windows(LOOKED_AT).position(reached);
    // The median of five is that of a step once its middle is behind the step.
    let slices = match first {
        Some(0) => 0,
        Some(first) => first + LOOKED_AT / 2,
        None => counts.len(),
    };
    Some(Settling {
        slices: if is_rising { counts.len() } else { slices },
        is_rising,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_base::Random;
    use proptest::prelude::*;

    #[test]
    fn what_is_fast_from_the_start_needs_no_time() {
        let seen = settling(&[1_000; 30]).expect("enough");
        assert_eq!((seen.slices, seen.is_rising), (0, false));
    }

    #[test]
    fn a_rate_that_rises_to_the_end_never_settled() {
        let rising: Vec<u64> = (0..30).map(|at| 1_000 + 40 * at).collect();
        let seen = settling(&rising).expect("enough");
        assert_eq!((seen.slices, seen.is_rising), (30, true));
    }

    #[test]
    fn nothing_is_said_of_little_or_of_silence() {
        assert_eq!(settling(&[1_000; 9]), None);
        assert_eq!(settling(&[0; 30]), None);
    }

    #[test]
    fn a_single_slow_slice_is_no_warm_up() {
        let mut counts = [1_000; 30];
        counts[1] = 200;
        let seen = settling(&counts).expect("enough");
        assert_eq!((seen.slices, seen.is_rising), (0, false));
    }

    proptest! {
        #[test]
        fn a_step_is_found_where_it_is(step in 3_usize..15, low in 100_u64..900) {
            let counts: Vec<u64> = (0..40).map(|at| if at < step { low } else { 1_000 }).collect();
            let seen = settling(&counts).expect("enough");
            prop_assert_eq!((seen.slices, seen.is_rising), (step, false));
        }

        #[test]
        fn noise_alone_takes_few_slices_and_never_more_than_there_are(seed in any::<u64>(), noise in 0_u64..100) {
            let mut random = Random::new(seed);
            let counts: Vec<u64> = (0..30).map(|_| 1_000 + random.below(noise + 1)).collect();
            let seen = settling(&counts).expect("enough");
            prop_assert!(seen.slices <= counts.len());
            if !seen.is_rising {
                prop_assert!(seen.slices <= 15, "{seen:?}");
            }
        }
    }
}
