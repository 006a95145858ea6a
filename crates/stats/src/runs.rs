//! Runs of one experiment at different times: how much farther a ratio may be off than the blocks of its runs lie apart.
//!
//! What differs from one run to the next, such as where code and data lie or what the machine does beside, is the same in all blocks of
//! a run. Of a few runs one comparison tells it badly; all of them together tell it better.
//!
//! Not for: two states that were measured in different runs ([`compare_sessions`](crate::compare_sessions)).

use crate::Variance;
use crate::power::independent;

/// What the runs of one comparison show: one-way analysis of variance of the logarithms of its ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinedRuns {
    /// Variance of blocks about the mean of their run.
    pub within: Variance,
    /// Mean square of the runs' means about the common one, as a variance of blocks: as large as `within` where runs differ by no more
    /// than their blocks explain.
    pub between: Variance,
}

impl JoinedRuns {
    /// Of `(value, baseline)`, and the run that each is of. `None` of fewer than two runs, or where none has two blocks.
    pub fn of(pairs: &[(f64, f64)], runs: &[u32]) -> Option<JoinedRuns> {
        let mut logs: Vec<(u32, f64)> = pairs
            .iter()
            .zip(runs)
            .map(|((value, baseline), run)| (*run, libm::log(value / baseline)))
            .filter(|(_, log)| log.is_finite())
            .collect();
        logs.sort_by_key(|(run, _)| *run);
        let mean = |of: &[(u32, f64)]| of.iter().map(|(_, log)| log).sum::<f64>() / of.len() as f64;
        let whole = mean(&logs);
        let (mut within, mut between, mut count) = (0.0, 0.0, 0_usize);
        for run in logs.chunk_by(|one, next| one.0 == next.0) {
            let own = mean(run);
            within += run
                .iter()
                .map(|(_, log)| (log - own) * (log - own))
                .sum::<f64>();
            between += run.len() as f64 * (own - whole) * (own - whole);
            count += 1;
        }
        let variance = |squares: f64, degrees: usize| {
            (degrees > 0).then(|| Variance {
                variance: squares / degrees as f64,
                degrees: degrees as f64,
            })
        };
        Some(JoinedRuns {
            within: variance(within, logs.len() - count.min(logs.len()))?,
            between: variance(between, count.checked_sub(1)?)?,
        })
    }
}

/// By how much the variance of a block is to be multiplied so that the mean over all runs is as uncertain as it is, and what that is known
/// by: the mean of the F statistics of all comparisons, in lists of those that have their baseline in common. Never less than 1.
/// It takes runs to differ by the same multiple of their blocks' deviation in all comparisons. `None` without any.
pub fn runs_apart(comparisons: &[Vec<JoinedRuns>]) -> Option<Variance> {
    let all = || comparisons.iter().flatten();
    let known = |of: &&JoinedRuns| of.within.variance > 0.0;
    // F has this mean where runs differ by nothing, if its denominator has more than two degrees of freedom.
    let unbiased = |degrees: f64| ((degrees - 2.0) / degrees).max(0.0);
    let ratio =
        |of: &JoinedRuns| of.between.variance / of.within.variance * unbiased(of.within.degrees);
    let count = all().filter(known).count();
    let sum: f64 = all().filter(known).map(ratio).sum();
    let of_list = |list: &Vec<JoinedRuns>| {
        let degrees = list.iter().map(|of| of.between.degrees);
        independent(list.len()) * degrees.fold(0.0, f64::max)
    };
    (count > 0).then(|| Variance {
        variance: (sum / count as f64).max(1.0),
        degrees: comparisons
            .iter()
            .filter(|of| !of.is_empty())
            .map(of_list)
            .sum(),
    })
}

impl Variance {
    /// This one of blocks, multiplied by that of [`runs_apart`]. Its degrees of freedom are Satterthwaite's of a product: relative
    /// variances add; one is the least that has quantiles.
    #[must_use]
    pub fn times(self, apart: Variance) -> Variance {
        Variance {
            variance: self.variance * apart.variance,
            degrees: (1.0 / (1.0 / self.degrees + 1.0 / apart.degrees)).max(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_base::Random;

    use super::*;
    use crate::{compare_by, normal_quantile};

    #[test]
    fn the_squares_are_those_of_the_textbook() {
        // Runs of 1, 2, 3 and 3, 4, 5: means 2 and 4, one about each in degrees of 4, and 6 between in one.
        let pairs = [1.0, 2.0, 3.0, 3.0, 4.0, 5.0].map(|log: f64| (libm::exp(log), 1.0));
        let of = JoinedRuns::of(&pairs, &[0, 0, 0, 1, 1, 1]).expect("two runs");
        assert!((of.within.variance - 1.0).abs() < 1e-12);
        assert!((of.between.variance - 6.0).abs() < 1e-12);
        assert_eq!((of.within.degrees, of.between.degrees), (4.0, 1.0));
        assert_eq!(JoinedRuns::of(&pairs, &[0; 6]), None);
        assert_eq!(JoinedRuns::of(&pairs[..2], &[0, 1]), None);
        assert_eq!(JoinedRuns::of(&[], &[]), None);
        // F = 6, of which half is what few degrees of freedom make of it.
        let apart = runs_apart(&[vec![of]]).expect("one");
        assert!((apart.variance - 3.0).abs() < 1e-12);
        assert_eq!(apart.degrees, 1.0);
        let alike = JoinedRuns {
            between: of.within,
            ..of
        };
        assert_eq!(runs_apart(&[vec![alike]]).expect("one").variance, 1.0);
        assert_eq!(runs_apart(&[Vec::new()]), None);
    }

    /// Runs that differ by `apart` deviations of their blocks, in comparisons with one baseline: how many of the intervals hold.
    fn held(runs: u32, comparisons: usize, apart: f64, tries: u32) -> f64 {
        const BLOCKS: u32 = 10;
        let mut random = Random::of(u64::from(runs), &format!("{comparisons} {apart}"));
        let mut normal = || {
            let uniform = (random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64;
            normal_quantile(uniform).expect("inside") / 2_f64.sqrt()
        };
        let mut held = 0;
        for _ in 0..tries {
            let mut sides = vec![Vec::new(); comparisons + 1];
            for side in &mut sides {
                for _ in 0..runs {
                    let run = apart * normal();
                    side.extend((0..BLOCKS).map(|_| libm::exp(0.01 * (run + normal()))));
                }
            }
            let of_run: Vec<u32> = (0..runs)
                .flat_map(|run| vec![run; BLOCKS as usize])
                .collect();
            let pairs = |side: &Vec<f64>| -> Vec<(f64, f64)> {
                side.iter().copied().zip(sides[0].iter().copied()).collect()
            };
            let pairs: Vec<_> = sides[1..].iter().map(pairs).collect();
            let of = pairs
                .iter()
                .map(|pairs| JoinedRuns::of(pairs, &of_run).expect("runs"));
            let of: Vec<JoinedRuns> = of.collect();
            let apart = runs_apart(std::slice::from_ref(&of)).expect("some");
            for (pairs, of) in pairs.iter().zip(of) {
                let seen = compare_by(pairs, 0.95, Some(of.within.times(apart))).expect("pairs");
                held += u32::from(seen.spread.low.0 <= 1.0 && seen.spread.high.0 >= 1.0);
            }
        }
        f64::from(held) / f64::from(tries * comparisons as u32)
    }

    #[test]
    fn intervals_hold_whatever_runs_differ_by() {
        let long = std::env::var_os("PRONY_LONG").is_some();
        let tries = if long { 20_000 } else { 400 };
        for (runs, comparisons) in [(2, 1), (2, 2), (2, 8), (3, 1), (5, 4)] {
            for apart in [0.0, 0.3, 1.0, 3.0] {
                let share = held(runs, comparisons, apart, tries);
                println!("{runs} runs, {comparisons} comparisons, {apart} apart: {share:.3}");
                let slack = 3.0 * (0.05 * 0.95 / f64::from(tries)).sqrt();
                assert!(
                    share >= 0.94 - slack,
                    "{runs} {comparisons} {apart}: {share}"
                );
            }
        }
    }
}
