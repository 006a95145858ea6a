//! The variance of each of several comparisons of one subject: of few blocks its own says little, and the others' say more.

use prony_base::Random;

use crate::CONFIDENCE;
use crate::compare::{logs, simultaneous};
use crate::special::{chi_square_quantile, t_distribution};

/// Chance with which what variances of one subject really differ by is taken to be larger than it looks: its median. (With 0.75,
/// intervals of simulated runs held 0.3 % more and were 2 % wider.)
const CAUTION: f64 = 0.5;

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
    /// The variance of the logarithms of a comparison's ratios, one a block.
    pub variance: f64,
    /// Its degrees of freedom (Satterthwaite's, where others have a part in it).
    pub degrees: f64,
}

impl Variance {
    /// The variance of the logarithms of `(value, reference)`; `None` of fewer than two pairs with both.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Option<Variance> {
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
/// each remains by itself. Beside them is how [alike](Siblings::alike) they were found to be.
pub fn moderated(subjects: &[Vec<Variance>]) -> (Vec<Vec<Variance>>, f64) {
    let degrees = alike(subjects);
    let of_subject = |all: &Vec<Variance>| {
        let sums = SquareSums::sum_up(all);
        all.iter()
            .map(|own| sums.by_others(*own, degrees))
            .collect()
    };
    (subjects.iter().map(of_subject).collect(), degrees)
}

/// Comparisons of one subject whose variances are [`moderated`] by each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Siblings {
    /// The degrees of freedom of the variance of each, and whether its interval is one of those that hold together.
    pub comparisons: Vec<(f64, bool)>,
    /// The degrees of freedom of the distribution from which their variances come: infinite where these are all the same, 0 where
    /// nothing tells it.
    pub alike: f64,
}

/// Runs that are drawn to see how far the worst of several comparisons is off by chance.
const DRAWS: usize = 5_000;

/// The confidence of each interval of a family, so that all hold together in [`CONFIDENCE`] of runs: by the distribution of the
/// largest distance that any of them has from its truth, in units of its own error. Runs are drawn in which the means are independent (means
/// that share a baseline go together, and then more intervals hold, after Šidák, 1967) and the variances are what [`moderated`] makes
/// of drawn ones: comparisons that share an estimate are wrong about it together. The same family has the same confidence, to the bit.
pub fn together(family: &[Siblings]) -> f64 {
    let members = |of: &Siblings| of.comparisons.iter().filter(|(_, is_in)| *is_in).count();
    let count = family.iter().map(members).sum();
    if count < 2 || family.iter().all(|of| of.comparisons.len() < 2) {
        return simultaneous(count);
    }
    let mut random = Random::of(count as u64, "together");
    let mut variances = Vec::new();
    let mut draw = || {
        let all = family
            .iter()
            .map(|of| of.drawn(&mut variances, &mut random));
        all.fold(
            (0.0, 0.0, 1.0),
            |most, own| if own.0 > most.0 { own } else { most },
        )
    };
    let mut largest: Vec<(f64, f64, f64)> = (0..DRAWS).map(|_| draw()).collect();
    largest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (_, t, degrees) = largest[((1.0 - CONFIDENCE) * DRAWS as f64) as usize];
    // Never narrower than one by itself, nor wider than where nothing is shared.
    (1.0 - 2.0 * t_distribution(-t, degrees)).clamp(CONFIDENCE, simultaneous(count))
}

impl Siblings {
    /// All that have these variances, which were found to be so [alike](Siblings::alike).
    pub fn new(own: &[Variance], alike: f64) -> Siblings {
        Siblings {
            comparisons: own.iter().map(|of| (of.degrees, true)).collect(),
            alike,
        }
    }

    /// One whose variance is its own. (How well that is known, its quantile says: any degrees will do.)
    pub fn alone() -> Siblings {
        Siblings {
            comparisons: vec![(10.0, true)],
            alike: 0.0,
        }
    }

    /// One run of its comparisons: of that of the family which is furthest off, how far as a normal deviate (D. Wallace, "Bounds on
    /// normal approximations to Student's and the chi-square distributions", 1959), Student's t, and its degrees of freedom.
    fn drawn(&self, variances: &mut Vec<(Variance, f64)>, random: &mut Random) -> (f64, f64, f64) {
        variances.clear();
        for (degrees, _) in &self.comparisons {
            let (mean, spread) = normals(random);
            // The square root of its true variance, from the cube of a normal deviate (Wilson and Hilferty, 1931).
            let part = 2.0 / (9.0 * self.alike.max(1.0));
            let scale = libm::pow((1.0 - part + spread * part.sqrt()).max(0.05), -1.5);
            let variance = scale * scale * chi_square(*degrees, random) / degrees;
            variances.push((
                Variance {
                    variance,
                    degrees: *degrees,
                },
                scale * mean,
            ));
        }
        let sums = SquareSums::sum_up(variances.iter().map(|(of, _)| of));
        let members = self.comparisons.iter().zip(&*variances);
        let off = members
            .filter(|((_, is_in), _)| *is_in)
            .map(|(_, (own, mean))| {
                let Variance { variance, degrees } = sums.by_others(*own, self.alike);
                let square = mean * mean / variance;
                let deviate = (degrees * libm::log1p(square / degrees)).sqrt();
                let deviate = deviate * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0);
                (deviate, square.sqrt(), degrees)
            });
        off.fold(
            (0.0, 0.0, 1.0),
            |most, own| if own.0 > most.0 { own } else { most },
        )
    }
}

/// Two independent normal deviates (Box and Muller, 1958).
fn normals(random: &mut Random) -> (f64, f64) {
    let radius = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
    let (sin, cos) = libm::sincos(std::f64::consts::TAU * random.unit());
    (radius * cos, radius * sin)
}

/// A chi-square deviate: of two degrees of freedom it is exponential, and of one the square of a normal one.
fn chi_square(degrees: f64, random: &mut Random) -> f64 {
    let degrees = degrees as u32;
    let logs = (0..degrees / 2).map(|_| libm::log(1.0 - random.unit()));
    let even = -2.0 * logs.sum::<f64>();
    let odd = if degrees % 2 == 1 {
        normals(random).0
    } else {
        0.0
    };
    even + odd * odd
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

/// What the variances of one subject are together: of those that can be compared, the sum of squares, its degrees of freedom, their number.
struct SquareSums(f64, f64, f64);

impl SquareSums {
    fn sum_up<'a>(all: impl IntoIterator<Item = &'a Variance>) -> SquareSums {
        let usable = all.into_iter().filter(|of| is_usable(of));
        usable.fold(SquareSums(0.0, 0.0, 0.0), |sum, of| {
            SquareSums(
                sum.0 + of.degrees * of.variance,
                sum.1 + of.degrees,
                sum.2 + 1.0,
            )
        })
    }

    /// `own`, which is one of them, and what the others say of it where variances of one subject vary as by `degrees` of freedom around
    /// their centre.
    fn by_others(&self, own: Variance, degrees: f64) -> Variance {
        if self.2 < 2.0 || degrees <= 0.0 || !is_usable(&own) {
            return own;
        }
        let squares = own.degrees * own.variance;
        let (others, known, count) = (self.0 - squares, self.1 - own.degrees, self.2 - 1.0);
        // What it is off by: the others' estimates, their own distance from the centre, and that of this one.
        let prior = 1.0 / (1.0 / known + (1.0 + 1.0 / count) / degrees);
        let all = own.degrees + prior;
        Variance {
            variance: (squares + prior * others.max(0.0) / known) / all,
            degrees: all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal_quantile, t_quantile};
    use prony_base::Random;

    /// Of five degrees of freedom.
    fn drawn(variance: f64, random: &mut Random) -> Variance {
        let mut normal = || normal_quantile(random.unit().clamp(1e-12, 1.0 - 1e-12)).unwrap();
        let pairs: Vec<(f64, f64)> = (0..6)
            .map(|_| (libm::exp(variance.sqrt() * normal()), 1.0))
            .collect();
        Variance::from_pairs(&pairs).unwrap()
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
        let (all, alike) = moderated(&subjects);
        assert!(alike > 10.0, "{alike}");
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
        let (all, _) = moderated(&[of(1.0), of(100.0)]);
        assert!(all[0].iter().all(|of| of.variance < 4.0), "{all:?}");
        assert!(all[1].iter().all(|of| of.variance > 25.0), "{all:?}");
    }

    /// The studentized maximum modulus, by integration: of so many independent means and one variance.
    #[test]
    fn intervals_that_share_a_variance_have_the_quantiles_of_the_maximum() {
        for (count, own, quantile) in [(4, 5.0, 2.7214), (10, 2.0, 3.1140), (20, 5.0, 3.0894)] {
            let of = |alike| Siblings {
                comparisons: vec![(own, true); count],
                alike,
            };
            let shared = together(&[of(f64::INFINITY)]);
            let t = t_quantile(0.5 + shared / 2.0, own * count as f64).unwrap();
            assert!((t / quantile - 1.0).abs() < 0.01, "{count}: {t}");
            assert_eq!(shared, together(&[of(f64::INFINITY)]));
            // Comparisons that tell nothing of each other are as wide as independent ones, and a single one has its own width.
            assert_eq!(
                together(&vec![Siblings::alone(); count]),
                simultaneous(count)
            );
            assert!((together(&[of(0.0)]) - simultaneous(count)).abs() < 1e-3);
            let mut one = of(10.0);
            one.comparisons
                .iter_mut()
                .skip(1)
                .for_each(|of| of.1 = false);
            assert_eq!(together(&[one]), CONFIDENCE);
        }
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
        for (own, of) in apart[0].iter().zip(&moderated(&apart).0[0]) {
            assert!(of.degrees < 6.0, "{own:?} {of:?}");
        }
        // The only one, none, and those of no variance.
        for alone in [vec![one(3.0)], vec![], vec![one(0.0), one(0.0), one(1.0)]] {
            assert_eq!(moderated(std::slice::from_ref(&alone)).0[0], alone);
        }
    }
}
