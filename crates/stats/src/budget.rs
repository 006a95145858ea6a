//! How a given time is best spent: how many blocks, and how long each window.

use crate::BLOCKS_INTERVAL_MIN;
use crate::power::detectable;
use crate::special::chi_square_quantile;
use crate::units::Share;

/// Windows that are chosen from, in seconds: those that people would say.
pub const WINDOWS: [f64; 13] = [
    0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 30.0,
];
/// The least part of the variation of a pilot's comparisons that is taken to lie between trials, however long their
/// windows are: the three blocks of a pilot may see none of it. Half costs up to 5 % of resolution where there is none, and
/// spares up to 20 % where most lies there (docs/decisions/visits.md).
pub const BETWEEN_MIN: f64 = 0.5;
/// The part of pilots whose comparisons really vary by no more than is taken for the most.
const CAUTIOUS: f64 = 0.9;
/// Blocks that are planned at the most.
const BLOCKS_MAX: usize = 1_000;

/// What a pilot showed of the comparisons of one workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PilotNoise {
    /// Variance of the logarithms of their ratios within each comparison, pooled.
    pub variance: f64,
    /// The part of it that their windows' own unevenness explains: it falls as windows grow longer.
    pub within: f64,
    /// Degrees of freedom of `variance`: few tell it badly.
    pub degrees: f64,
    /// The part of it that is taken to lie between trials at the least ([`BETWEEN_MIN`] where a pilot tells it).
    pub between_min: f64,
}

impl PilotNoise {
    /// By how much the deviation may be larger than was seen: nine of ten pilots with as many degrees of freedom see one that is at least
    /// the real one divided by this (the interval of a variance by chi-square; R. Browne, "On the use of a pilot sample for sample size
    /// determination", Statistics in Medicine 14, 1995).
    fn uncertainty(&self) -> f64 {
        let degrees = self.degrees.max(1.0);
        chi_square_quantile(1.0 - CAUTIOUS, degrees)
            .map_or(1.0, |low| (degrees / low).sqrt().max(1.0))
    }
}

/// What a block costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCost {
    /// Trials that have a window.
    pub windows: f64,
    /// Seconds of all else: starting, checking, warming up, stopping, and programs that run to their end.
    pub beside_s: f64,
}

/// What a time is spent on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocation {
    /// Blocks.
    pub blocks: usize,
    /// Length of each window in seconds.
    pub window_s: f64,
    /// The smallest difference that 80 % of such runs are expected to claim, in the workload that varies the most.
    pub detectable: Share,
    /// The most that it is in nine of ten cases: few blocks of a pilot tell little of how figures vary.
    pub detectable_max: Share,
    /// Seconds that it takes.
    pub seconds: f64,
}

/// All that a design is chosen by.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// What a block costs.
    pub cost: BlockCost,
    /// What the pilot showed, by workload.
    pub noise: Vec<PilotNoise>,
    /// Length of the pilot's windows in seconds.
    pub window_s: f64,
    /// Comparisons that are claimed together.
    pub comparisons: usize,
    /// Windows to choose from, in seconds: [`WINDOWS`], or the one that there is.
    pub windows: Vec<f64>,
}

impl Design {
    /// Spends at most `seconds` so that the smallest difference that would be claimed is as small as it can be, in the
    /// workload in which it is the largest: many short windows where trials differ however long they are, few long ones
    /// where starting a trial is dear and its rate uneven (T. Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable
    /// Time", ISMM 2013, of which this tries each window instead of the formula, as the quantiles of few blocks count,
    /// too). `None` where not even the shortest windows leave time for the blocks that an interval needs.
    pub fn spend(&self, seconds: f64) -> Option<Allocation> {
        let with = |&window: &f64| {
            let block = self.cost.beside_s + self.cost.windows * window;
            self.allocation(((seconds / block) as usize).min(BLOCKS_MAX), window)
        };
        let all = self.windows.iter().filter_map(with);
        all.min_by(|a, b| a.detectable.0.total_cmp(&b.detectable.0))
    }

    /// The shortest run that claims differences from `precision` on (0.02: 2 %) in 80 % of cases. `None` where
    /// a thousand blocks would not do.
    pub fn reach(&self, precision: f64) -> Option<Allocation> {
        let with = |&window: &f64| {
            let does = |blocks: usize| {
                let of = self.allocation(blocks, window);
                of.is_some_and(|of| of.detectable.0 <= precision)
            };
            let (mut low, mut high) = (BLOCKS_INTERVAL_MIN, BLOCKS_MAX);
            if !does(high) {
                return None;
            }
            while low < high {
                let middle = usize::midpoint(low, high);
                match does(middle) {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            self.allocation(low, window)
        };
        let all = self.windows.iter().filter_map(with);
        all.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    /// The least that [`Design::spend`] needs: the shortest windows in as many blocks as an interval needs, in seconds.
    pub fn least(&self) -> f64 {
        let shortest = self.windows.iter().copied().fold(f64::INFINITY, f64::min);
        BLOCKS_INTERVAL_MIN as f64 * (self.cost.beside_s + self.cost.windows * shortest)
    }

    fn allocation(&self, blocks: usize, window_s: f64) -> Option<Allocation> {
        let deviation = |of: &PilotNoise| {
            let between = (of.variance - of.within).max(of.variance * of.between_min);
            (between + of.within.min(of.variance) * self.window_s / window_s).sqrt()
        };
        let most = |of: &dyn Fn(&PilotNoise) -> f64| self.noise.iter().map(of).reduce(f64::max);
        let claimed = |deviation| detectable(deviation, blocks, self.comparisons);
        Some(Allocation {
            blocks,
            window_s,
            detectable: claimed(most(&deviation)?)?,
            detectable_max: claimed(most(&|of| deviation(of) * of.uncertainty())?)?,
            seconds: blocks as f64 * (self.cost.beside_s + self.cost.windows * window_s),
        })
    }
}

/// The part of the variance of a window's mean that its own unevenness makes: of the logarithm of the mean of
/// `slices`, by means of consecutive batches of them, which carry what goes on for longer than a slice. `None` of fewer
/// than four batches' slices, or without a positive mean.
pub fn window_variance(slices: &[f64]) -> Option<f64> {
    const BATCHES: usize = 5;
    let length = slices.len() / BATCHES;
    if length == 0 {
        return None;
    }
    let batches: Vec<f64> = slices
        .chunks_exact(length)
        .take(BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / length as f64)
        .collect();
    let mean = batches.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = batches
        .iter()
        .map(|of| (of / mean - 1.0) * (of / mean - 1.0))
        .sum();
    let variance = squares / (BATCHES - 1) as f64 / BATCHES as f64;
    (mean > 0.0 && variance.is_finite()).then_some(variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COST: BlockCost = BlockCost {
        windows: 10.0,
        beside_s: 12.0,
    };

    fn design(variance: f64, within: f64) -> Design {
        Design {
            cost: COST,
            noise: vec![PilotNoise {
                variance,
                within,
                degrees: 2.0,
                between_min: BETWEEN_MIN,
            }],
            window_s: 1.0,
            comparisons: 5,
            windows: WINDOWS.to_vec(),
        }
    }

    #[test]
    fn where_all_noise_lies_between_trials_windows_are_short() {
        let spent = design(0.001, 0.0).spend(1_200.0).expect("time enough");
        assert_eq!((spent.window_s, spent.blocks), (0.2, 85));
        assert!(spent.seconds <= 1_200.0);
    }

    #[test]
    fn where_it_lies_within_windows_they_are_long() {
        let design = design(0.001, 0.001);
        let spent = design.spend(1_200.0).expect("time enough");
        assert!(spent.window_s >= 1.0 && spent.window_s <= 3.0, "{spent:?}");
        let short = design.allocation(85, 0.2).expect("blocks");
        assert!(
            spent.detectable.0 < short.detectable.0 / 1.3,
            "{spent:?} {short:?}"
        );
    }

    /// A pilot of three blocks had seen little noise between them by chance, and a run of five minutes got half of the
    /// blocks that it needed.
    #[test]
    fn what_a_pilot_saw_nothing_of_between_trials_costs_little_where_there_is_most() {
        let (seen, real) = (design(0.001, 0.001), design(0.001, 0.1 * 0.001));
        let chosen = seen.spend(1_200.0).expect("time enough");
        let best = real.spend(1_200.0).expect("time enough");
        let got = real.allocation(chosen.blocks, chosen.window_s);
        let got = got.expect("blocks").detectable.0;
        assert!(got < 1.25 * best.detectable.0, "{got} {best:?}");
    }

    #[test]
    fn the_workload_that_varies_the_most_decides() {
        let mut both = design(0.001, 0.001);
        let alone = both.spend(1_200.0);
        both.noise.push(PilotNoise {
            variance: 1e-6,
            within: 0.0,
            degrees: 2.0,
            between_min: BETWEEN_MIN,
        });
        assert_eq!(both.spend(1_200.0), alone);
    }

    /// A pilot of two servers in three blocks foretold that differences of 0.6 % would be claimed; the run could claim 4.2 %.
    #[test]
    fn what_a_pilot_cannot_know_is_told() {
        let mut design = design(0.001, 0.0);
        let of_two = design.spend(1_200.0).expect("time enough");
        // Of two degrees the quantile is -2 ln 0.9.
        let factor = (2.0 / (-2.0 * libm::log(0.9_f64))).sqrt();
        let log = |share: Share| libm::log1p(share.0);
        let seen = log(of_two.detectable_max) / log(of_two.detectable);
        assert!((seen - factor).abs() < 1e-6, "{seen} {factor}");
        design.noise[0].degrees = 200.0;
        let of_many = design.spend(1_200.0).expect("time enough");
        assert_eq!(of_many.detectable, of_two.detectable);
        assert!(of_many.detectable_max.0 < 1.1 * of_many.detectable.0);
    }

    #[test]
    fn too_little_time_is_none_and_the_least_is_enough() {
        let design = design(0.001, 0.0005);
        let least = design.least();
        assert_eq!(design.spend(least - 0.1), None);
        assert_eq!(design.spend(least + 0.1).map(|of| of.blocks), Some(6));
        let nothing = Design {
            noise: Vec::new(),
            ..design
        };
        assert_eq!(nothing.spend(1e9), None);
    }

    #[test]
    fn a_precision_takes_no_longer_than_it_must() {
        let design = design(0.001, 0.0005);
        let found = design.reach(0.02).expect("it can be reached");
        assert!(found.detectable.0 <= 0.02);
        let spent = design.spend(found.seconds * 0.97).expect("time enough");
        assert!(spent.detectable.0 > 0.0195, "{found:?} {spent:?}");
        assert_eq!(super::tests::design(0.1, 0.0).reach(1e-6), None);
    }

    #[test]
    fn the_variance_of_a_window_is_that_of_its_batches() {
        let even = [100.0; 20];
        assert_eq!(window_variance(&even), Some(0.0));
        // Batches of 90, 110, 90, 110, 100: variance 0.01, and a fifth of it for their mean.
        let uneven = [90.0, 110.0, 90.0, 110.0, 100.0];
        let found = window_variance(&uneven).expect("five");
        assert!((found - 0.01 / 5.0).abs() < 1e-12, "{found}");
        assert_eq!(window_variance(&[1.0; 4]), None);
        assert_eq!(window_variance(&[0.0; 10]), None);
    }

    proptest! {
        // Each looks for a noncentral quantile a dozen times.
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn more_time_never_tells_less(
            seconds in 100.0_f64..10_000.0,
            more in 1.0_f64..3.0,
            variance in 1e-6_f64..0.1,
            part in 0.0_f64..1.5,
        ) {
            let design = design(variance, variance * part);
            let of = |seconds| design.spend(seconds).map(|of| of.detectable.0);
            if let (Some(less), Some(more)) = (of(seconds), of(seconds * more)) {
                prop_assert!(more <= less * 1.000_001);
            }
        }
    }
}
