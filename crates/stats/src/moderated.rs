//! The variance of each of several comparisons of one subject: of few blocks its own says little, and the others' say more.

use crate::compare::logs;
use crate::special::chi_square_quantile;

/// Chance with which what variances of one subject really differ by is taken to be larger than it looks: few comparisons tell it
/// badly, and what is taken for too alike makes intervals too narrow.
const CAUTION: f64 = 0.75;

/// By what the ratio of two servers that are measured in turns is taken to vary from start to start, as a standard deviation of its
/// logarithm, and by how many degrees of freedom that is known: 25 recorded ratios of servers in six languages varied by 2.5 to 7.8 %
/// over seven starts each, half of them by less than 4.5 %.
const RESTARTS: (f64, f64) = (0.06, 10.0);
/// Blocks from which few of them, each measured in turns, have an interval.
pub const TURNED_BLOCKS_MIN: usize = 2;

/// The variance of the mean logarithm of a block, where few blocks are measured in several turns each. `blocks`: of each, the logarithms of
/// the ratios of its turns. Turns are no restarts: how these differ two blocks cannot tell, so that what others did is added.
/// `None` of fewer than [`TURNED_BLOCKS_MIN`] blocks, or where a block has fewer than two turns.
pub fn of_turns(blocks: &[Vec<f64>]) -> Option<Variance> {
    if blocks.len() < TURNED_BLOCKS_MIN || blocks.iter().any(|turns| turns.len() < 2) {
        return None;
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let squares = |of: &[f64]| {
        let centre = mean(of);
        of.iter()
            .map(|log| (log - centre) * (log - centre))
            .sum::<f64>()
    };
    let of_mean = |turns: &Vec<f64>| {
        let count = turns.len() as f64;
        squares(turns) / (count - 1.0) / count
    };
    let within = mean(&blocks.iter().map(of_mean).collect::<Vec<_>>());
    let means: Vec<f64> = blocks.iter().map(|turns| mean(turns)).collect();
    let (deviation, prior) = RESTARTS;
    let degrees = prior + means.len() as f64 - 1.0;
    Some(Variance {
        variance: (prior * (deviation * deviation + within) + squares(&means)) / degrees,
        degrees,
    })
}

/// A variance, and what it is known by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// Of the logarithms of a comparison's ratios, one a block.
    pub variance: f64,
    /// Its degrees of freedom (Satterthwaite's, where others have a part in it).
    pub degrees: f64,
}

impl Variance {
    /// That of the logarithms of `(value, reference)`; `None` of fewer than two pairs with both.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Variance> {
        let logs = logs(pairs);
        if logs.len() < 2 {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        let degrees = (logs.len() - 1) as f64;
        Some(Variance {
            variance: squares / degrees,
            degrees,
        })
    }

    /// Its logarithm, without what estimating it by these degrees adds on average.
    fn log(&self) -> f64 {
        let of = self.degrees;
        libm::log(self.variance) + 1.0 / of + 1.0 / (3.0 * of * of)
    }

    /// The variance of the logarithm of a variance that is estimated by so many degrees, about (3 % too large at five).
    fn of_log(degrees: f64) -> f64 {
        2.0 / (degrees - 1.0)
    }
}

/// The variances of comparisons, in one list for each subject, each moderated by the others of its list: empirical Bayes as by
/// G. Smyth ("Linear models and empirical Bayes methods for assessing differential expression in microarray experiments", 2004), but
/// with a centre for each subject, so that what is steady is not taken for as noisy as what is not. By how much the variances of
/// one subject differ beyond chance, in all lists together, says what the others count; where that is much, or nothing tells it,
/// each remains by itself.
pub fn moderated(subjects: &[Vec<Variance>]) -> Vec<Vec<Variance>> {
    let degrees = alike(subjects);
    let of_subject = |all: &Vec<Variance>| {
        let own = |(at, own): (usize, &Variance)| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            by_others(*own, others.map(|(_, of)| *of), degrees)
        };
        all.iter().enumerate().map(own).collect()
    };
    subjects.iter().map(of_subject).collect()
}

/// Whether a variance can be compared with others.
fn is_usable(of: &Variance) -> bool {
    of.variance > 0.0 && of.variance.is_finite() && of.degrees > 1.0
}

/// The degrees of freedom of the distribution from which a subject's variances come: infinite where they are all the same.
fn alike(subjects: &[Vec<Variance>]) -> f64 {
    let (mut squares, mut freedom, mut by_chance, mut count) = (0.0, 0.0, 0.0, 0.0);
    for all in subjects {
        let usable = all.iter().filter(|of| is_usable(of));
        let logs: Vec<f64> = usable.clone().map(Variance::log).collect();
        if logs.len() < 2 {
            continue;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        squares += logs
            .iter()
            .map(|log| (log - mean) * (log - mean))
            .sum::<f64>();
        freedom += logs.len() as f64 - 1.0;
        by_chance += usable.map(|of| Variance::of_log(of.degrees)).sum::<f64>();
        count += logs.len() as f64;
    }
    let Some(low) = chi_square_quantile(1.0 - CAUTION, freedom).filter(|low| *low > 0.0) else {
        return 0.0;
    };
    let beyond = squares / low - by_chance / count;
    match beyond > 0.0 {
        true => 1.0 + 2.0 / beyond,
        false => f64::INFINITY,
    }
}

/// `own`, and what `others` say of it where variances of one subject vary as by `degrees` of freedom around their centre.
fn by_others(own: Variance, others: impl Iterator<Item = Variance>, degrees: f64) -> Variance {
    let (mut sum, mut known, mut count) = (0.0, 0.0, 0.0);
    for of in others.filter(is_usable) {
        sum += of.degrees * of.variance;
        known += of.degrees;
        count += 1.0;
    }
    if count == 0.0 || degrees <= 0.0 || !is_usable(&own) {
        return own;
    }
    // What it is off by: the others' estimates, their own distance from the centre, and that of this one.
    let prior = 1.0 / (1.0 / known + (1.0 + 1.0 / count) / degrees);
    let all = own.degrees + prior;
    Variance {
        variance: (own.degrees * own.variance + prior * sum / known) / all,
        degrees: all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_quantile;
    use prony_base::Random;

    /// Of five degrees of freedom.
    fn drawn(variance: f64, random: &mut Random) -> Variance {
        let mut normal = || normal_quantile(random.unit().clamp(1e-12, 1.0 - 1e-12)).unwrap();
        let pairs: Vec<(f64, f64)> = (0..6)
            .map(|_| (libm::exp(variance.sqrt() * normal()), 1.0))
            .collect();
        Variance::of(&pairs).unwrap()
    }

    #[test]
    fn variances_that_are_the_same_are_known_by_all_of_a_subjects() {
        let mut random = Random::new(1);
        let subjects: Vec<Vec<Variance>> = (1..=40)
            .map(|scale| {
                (0..4)
                    .map(|_| drawn(f64::from(scale), &mut random))
                    .collect()
            })
            .collect();
        let all = moderated(&subjects);
        // Four estimates of five degrees have twenty together.
        let degrees = all[0][0].degrees;
        assert!((10.0..=20.0).contains(&degrees), "{degrees}");
        let off = |of: &[Vec<Variance>]| {
            let squares = of.iter().zip(1..).flat_map(|(all, scale)| {
                all.iter()
                    .map(move |of| (of.variance / f64::from(scale) - 1.0).powi(2))
            });
            squares.sum::<f64>()
        };
        assert!(off(&all) < off(&subjects) / 2.0);
    }

    #[test]
    fn a_steady_subject_is_not_as_noisy_as_another() {
        let mut random = Random::new(2);
        let mut of = |variance| (0..6).map(|_| drawn(variance, &mut random)).collect();
        let all = moderated(&[of(1.0), of(100.0)]);
        assert!(all[0].iter().all(|of| of.variance < 4.0), "{all:?}");
        assert!(all[1].iter().all(|of| of.variance > 25.0), "{all:?}");
    }

    #[test]
    fn few_blocks_in_turns_vary_by_their_turns_and_by_restarts() {
        let steady = of_turns(&[vec![0.1; 4], vec![0.1; 4]]).unwrap();
        assert_eq!(steady.degrees, 11.0);
        assert!((steady.variance.sqrt() - 0.06 * (10.0_f64 / 11.0).sqrt()).abs() < 1e-9);
        // Blocks that lie apart, and turns that do, each add to it.
        let apart = of_turns(&[vec![0.0; 4], vec![0.4; 4]]).unwrap();
        assert!((apart.variance - (10.0 * 0.0036 + 0.08) / 11.0).abs() < 1e-9);
        let uneven = of_turns(&[vec![0.0, 0.4], vec![0.0, 0.4]]).unwrap();
        assert!((uneven.variance - 10.0 * (0.0036 + 0.04) / 11.0).abs() < 1e-9);
        assert_eq!(of_turns(&[vec![0.1; 4]]), None);
        assert_eq!(of_turns(&[vec![0.1; 4], vec![0.1]]), None);
    }

    #[test]
    fn variances_of_a_subject_that_differ_much_stay_each_by_itself() {
        let one = |variance| Variance {
            variance,
            degrees: 5.0,
        };
        let apart = vec![vec![one(1.0), one(1e4), one(1e-4), one(1e2)]];
        for (own, of) in apart[0].iter().zip(&moderated(&apart)[0]) {
            assert!(of.degrees < 6.0, "{own:?} {of:?}");
        }
        // The only one, none, and those of no variance.
        for alone in [vec![one(3.0)], vec![], vec![one(0.0), one(0.0), one(1.0)]] {
            assert_eq!(moderated(std::slice::from_ref(&alone))[0], alone);
        }
    }
}
