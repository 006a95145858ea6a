//! Runs of one experiment at different times: how much farther a ratio may be off than the blocks of its runs lie apart.
//!
//! Not for: two states that were measured in different runs ([`compare_sessions`](crate::compare_sessions)).

use crate::Variance;

impl Variance {
    /// The variance of a block by which the mean over all blocks of several runs is as uncertain as it is: the mean square of the runs'
    /// means (one-way analysis of variance of the logarithms of `(value, baseline)`), or of the blocks within the runs where that is
    /// larger. What differs from one run to the next, such as where code and data lie or what the machine does beside, is the same in all
    /// blocks of a run, so that the run is the unit (T. Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013) and
    /// there are as many degrees of freedom as runs, less one. `runs` says which run each pair is of, and these have about as many blocks.
    /// `None` of fewer than two.
    pub fn of_runs(pairs: &[(f64, f64)], runs: &[u32]) -> Option<Variance> {
        let logs = pairs
            .iter()
            .map(|(value, baseline)| libm::log(value / baseline));
        let mut logs: Vec<(u32, f64)> = runs.iter().copied().zip(logs).collect();
        logs.retain(|(_, log)| log.is_finite());
        logs.sort_by_key(|(run, _)| *run);
        let mean = |of: &[(u32, f64)]| of.iter().map(|(_, log)| log).sum::<f64>() / of.len() as f64;
        let centre = mean(&logs);
        let (mut within, mut between, mut count) = (0.0, 0.0, 0_usize);
        for run in logs.chunk_by(|one, next| one.0 == next.0) {
            let mean_of_run = mean(run);
            let squares = run
                .iter()
                .map(|(_, log)| (log - mean_of_run) * (log - mean_of_run));
            within += squares.sum::<f64>();
            between += run.len() as f64 * (mean_of_run - centre) * (mean_of_run - centre);
            count += 1;
        }
        let degrees = count.checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
        let of_blocks = within / (logs.len() - count).max(1) as f64;
        Some(Variance {
            variance: of_blocks.max(between / degrees),
            degrees,
        })
    }
}

#[cfg(test)]
mod tests {
    use prony_base::Random;

    use super::*;
    use crate::{compare_by, normal_quantile};

    #[test]
    fn the_squares_are_those_of_the_textbook() {
        // Runs of 1, 2, 3 and 3, 4, 5: means 2 and 4, so that 6 are between them, and 1 about each.
        let pairs = [1.0, 2.0, 3.0, 3.0, 4.0, 5.0].map(|log: f64| (libm::exp(log), 1.0));
        let of = Variance::of_runs(&pairs, &[0, 0, 0, 1, 1, 1]).expect("two runs");
        assert!((of.variance - 6.0).abs() < 1e-12);
        assert_eq!(of.degrees, 1.0);
        // In other runs the means are the same: what is left is that of the blocks, 10 by four degrees.
        let of = Variance::of_runs(&pairs, &[0, 1, 0, 1, 1, 0]).expect("two runs");
        assert!((of.variance - 2.5).abs() < 1e-12, "{of:?}");
        assert_eq!(Variance::of_runs(&pairs, &[0; 6]), None);
        assert_eq!(Variance::of_runs(&[], &[]), None);
        let of = Variance::of_runs(&pairs[..2], &[0, 1]).expect("two runs");
        assert!((of.variance - 0.5).abs() < 1e-12);
    }

    /// Runs of six blocks that differ by `apart` deviations of these, on either side: how many of the intervals hold.
    fn held(runs: u32, apart: f64, tries: u32) -> f64 {
        const BLOCKS: u32 = 6;
        let mut random = Random::of(u64::from(runs), &format!("{apart}"));
        let mut normal = || {
            let uniform = (random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64;
            normal_quantile(uniform).expect("inside")
        };
        let mut held = 0;
        for _ in 0..tries {
            let (mut pairs, mut of_run) = (Vec::new(), Vec::new());
            for run in 0..runs {
                let [subject, baseline] = [apart * normal(), apart * normal()];
                for _ in 0..BLOCKS {
                    let figure = |run: f64, block: f64| libm::exp(0.01 * (run + block));
                    pairs.push((figure(subject, normal()), figure(baseline, normal())));
                    of_run.push(run);
                }
            }
            let variance = Variance::of_runs(&pairs, &of_run);
            let seen = compare_by(&pairs, 0.95, variance).expect("pairs").spread;
            held += u32::from(seen.low.0 <= 1.0 && seen.high.0 >= 1.0);
        }
        f64::from(held) / f64::from(tries)
    }

    #[test]
    fn intervals_hold_whatever_runs_differ_by() {
        let tries = prony_testkit::seeds(400, 20_000) as u32;
        for runs in [2, 3, 5] {
            for apart in [0.0, 0.3, 1.0, 3.0] {
                let share = held(runs, apart, tries);
                println!("{runs} runs, {apart} deviations apart: {share:.3}");
                let slack = 3.0 * (0.05 * 0.95 / f64::from(tries)).sqrt();
                assert!(share >= 0.945 - slack, "{runs} {apart}: {share}");
            }
        }
    }
}
