//! Runs that were not interleaved: what may be said of two states that were measured in different sessions.
//!
//! Not for: cells of one run, whose blocks were interleaved ([`compare`](crate::compare())).

use crate::special::{t_distribution, t_quantile};
use crate::units::Ratio;
use crate::{CONFIDENCE, Conclusion, Spread, SpreadKind};

/// Degrees of freedom that the variance between sessions needs before anything is claimed: those of six
/// sessions of one state, as a ratio needs six blocks. Several states count together: two of four
/// sessions each have six.
pub const SESSION_DEGREES_MIN: usize = 5;

/// How often a change of the size of the resolution is told.
const POWER: f64 = 0.8;

/// Two states, by the sessions in which each was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionComparison {
    /// Geometric mean of the later state's sessions over that of the earlier one's.
    pub ratio: Ratio,
    /// Interval of the ratio, all comparisons of the family together; `None`: nothing tells how far
    /// sessions lie apart.
    pub interval: Option<Spread<Ratio>>,
    /// Standard deviation between sessions of one state, as a part of the figure; `None` where no state
    /// was measured twice.
    pub between: Option<f64>,
    /// Degrees of freedom that it rests on.
    pub degrees: usize,
    /// Smallest true change that a comparison like this one tells in four of five cases, as a part: 0.05 is 5 %.
    /// That is of a rise; of a fall it is a little less.
    pub resolution: Option<f64>,
    /// What may be said.
    pub conclusion: Conclusion,
}

/// Compares the sessions of the state `later` with those of `earlier`, of which each is a figure (such as
/// the mean of a run's blocks). `others` are sessions of further states on the same machine, by state:
/// they tell of the same variance. `family` is how many comparisons are made together.
///
/// The unit is the session, not the block: what differs from one run to the next (where code and
/// data lie, what the machine does beside) is the same in all blocks of one run, and no number of blocks tells
/// how large it is. (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013: the interval
/// is made of the means of the highest level that was repeated.) On logarithms, the variance within states is
/// pooled over all states, and the interval is Student's for two means, with the degrees of freedom
/// of that pool. This takes the sessions as independent and about normal, and as equally variable in all
/// states. The confidence is that of all `family` intervals together (Dunn, "Multiple Comparisons Among
/// Means", JASA 56, 1961), so that of 20 logs in which nothing changed at most one claims anything.
///
/// Under [`SESSION_DEGREES_MIN`] nothing is claimed, and there is no interval. `None` unless both
/// states have a session with a finite, positive figure.
pub fn compare_sessions(
    earlier: &[f64],
    later: &[f64],
    others: &[Vec<f64>],
    family: usize,
) -> Option<SessionComparison> {
    let before = logs(earlier);
    let after = logs(later);
    let difference = mean(&after)? - mean(&before)?;
    let mut groups = vec![before.clone(), after.clone()];
    groups.extend(others.iter().map(|group| logs(group)));
    let (squares, degrees) = pooled(&groups);
    let between = (degrees > 0).then(|| (squares / degrees as f64).sqrt());
    let error = (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
    let times_t = |p: f64| Some(t_quantile(p, degrees as f64)? * between? * error);
    let known = degrees >= SESSION_DEGREES_MIN;
    let half = known
        .then(|| times_t(0.5 + together(family) / 2.0))
        .flatten();
    let interval = half.map(|half| Spread {
        kind: SpreadKind::Interval,
        low: Ratio(libm::exp(difference - half)),
        high: Ratio(libm::exp(difference + half)),
    });
    let conclusion = match interval {
        None => Conclusion::NotClaimed,
        Some(spread) if spread.low.0 > 1.0 => Conclusion::Higher,
        Some(spread) if spread.high.0 < 1.0 => Conclusion::Lower,
        Some(_) => Conclusion::NoDifferenceShown,
    };
    Some(SessionComparison {
        ratio: Ratio(libm::exp(difference)),
        interval,
        between,
        degrees,
        resolution: half.and_then(|half| Some(libm::expm1(half + times_t(POWER)?))),
        conclusion,
    })
}

/// How likely a difference of two states' sessions as large as this one is where nothing changed; `None`
/// where nothing tells how far sessions lie apart.
pub fn chance(comparison: &SessionComparison, earlier: usize, later: usize) -> Option<f64> {
    let error = (1.0 / earlier as f64 + 1.0 / later as f64).sqrt() * comparison.between?;
    let t = libm::log(comparison.ratio.0).abs() / error;
    let tail = t_distribution(-t, comparison.degrees as f64);
    (error > 0.0).then_some(2.0 * tail)
}

/// The confidence of each of `family` intervals that have [`CONFIDENCE`] together.
fn together(family: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / family.max(1) as f64
}

fn logs(figures: &[f64]) -> Vec<f64> {
    let logs = figures.iter().map(|figure| libm::log(*figure));
    // Of what is not finite and positive it is not finite.
    logs.filter(|log| log.is_finite()).collect()
}

/// From the first value on, so that the mean of equal values is that value to the last bit.
fn mean(values: &[f64]) -> Option<f64> {
    let first = values.first()?;
    let beyond: f64 = values.iter().map(|value| value - first).sum();
    Some(first + beyond / values.len() as f64)
}

/// Squared distances from each group's own mean, and their degrees of freedom.
fn pooled(groups: &[Vec<f64>]) -> (f64, usize) {
    groups
        .iter()
        .filter_map(|group| Some((group, mean(group)?)))
        .fold((0.0, 0), |(squares, degrees), (group, mean)| {
            let spread: f64 = group.iter().map(|v| (v - mean) * (v - mean)).sum();
            (squares + spread, degrees + group.len() - 1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_base::Random;
    use proptest::prelude::*;

    /// Student's own sleep data again ("The Probable Error of a Mean", 1908), as two unpaired groups: the
    /// published result is a difference of 1.58, 95 % interval −0.2039 to 3.3639, on 18 degrees of freedom.
    #[test]
    fn two_groups_give_the_published_interval() {
        let exp = |values: [f64; 10]| values.map(libm::exp);
        let one = exp([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]);
        let two = exp([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]);
        let seen = compare_sessions(&one, &two, &[], 1).unwrap();
        let interval = seen.interval.unwrap();
        assert_eq!(seen.degrees, 18);
        assert!((libm::log(seen.ratio.0) - 1.58).abs() < 1e-9);
        assert!((libm::log(interval.low.0) + 0.203_874).abs() < 1e-5);
        assert!((libm::log(interval.high.0) - 3.363_874).abs() < 1e-5);
        assert_eq!(seen.conclusion, Conclusion::NoDifferenceShown);
        assert!((chance(&seen, 10, 10).unwrap() - 0.079_187).abs() < 1e-5);
    }

    #[test]
    fn without_history_nothing_is_claimed_however_far_apart() {
        let seen = compare_sessions(&[100.0], &[10.0], &[], 1).unwrap();
        assert_eq!(seen.conclusion, Conclusion::NotClaimed);
        assert_eq!((seen.interval, seen.between, seen.degrees), (None, None, 0));
        let five = [100.0, 101.0, 99.0, 100.0, 100.0];
        let seen = compare_sessions(&five, &[10.0], &[], 1).unwrap();
        assert_eq!((seen.conclusion, seen.degrees), (Conclusion::NotClaimed, 4));
        assert!(seen.between.is_some());
    }

    #[test]
    fn six_sessions_of_one_state_are_a_history() {
        let six = [100.0, 101.0, 99.0, 100.0, 100.0, 100.5];
        let seen = compare_sessions(&six, &[90.0], &[], 1).unwrap();
        assert_eq!(seen.conclusion, Conclusion::Lower);
        let alike = compare_sessions(&six, &[100.2], &[], 1).unwrap();
        assert_eq!(alike.conclusion, Conclusion::NoDifferenceShown);
        assert!(alike.resolution.unwrap() < 0.03);
        let elsewhere = [six.to_vec()];
        let seen = compare_sessions(&[50.0], &[45.0], &elsewhere, 1).unwrap();
        assert_eq!(seen.conclusion, Conclusion::Lower);
    }

    #[test]
    fn more_comparisons_make_each_harder() {
        let six = [100.0, 101.0, 99.0, 100.0, 100.0, 100.5];
        let one = compare_sessions(&six, &[98.0], &[], 1).unwrap();
        let many = compare_sessions(&six, &[98.0], &[], 40).unwrap();
        assert_eq!(one.conclusion, Conclusion::Lower);
        assert_eq!(many.conclusion, Conclusion::NoDifferenceShown);
    }

    #[test]
    fn a_session_without_a_figure_is_no_session() {
        let six = [100.0, 101.0, 99.0, 100.0, 100.0, 100.5];
        let seen = compare_sessions(&six, &[90.0], &[], 1);
        for nothing in [0.0, -5.0, f64::NAN, f64::INFINITY] {
            let mut seven = six.to_vec();
            seven.push(nothing);
            assert_eq!(compare_sessions(&seven, &[nothing, 90.0], &[], 1), seen);
            assert_eq!(compare_sessions(&six, &[nothing], &[], 1), None);
        }
    }

    #[test]
    fn sessions_that_do_not_vary_say_nothing_of_chance() {
        let seen = compare_sessions(&[100.0; 6], &[100.0; 2], &[], 1).unwrap();
        assert_eq!(chance(&seen, 6, 2), None);
        assert_eq!(seen.conclusion, Conclusion::NoDifferenceShown);
        assert_eq!(
            chance(
                &SessionComparison {
                    between: None,
                    ..seen
                },
                6,
                2
            ),
            None
        );
    }

    /// How likely a difference is depends on how far it is, and not on its direction.
    #[test]
    fn a_fall_is_as_unlikely_as_a_rise_and_a_farther_one_more() {
        let six = [100.0, 101.0, 99.0, 100.0, 100.0, 100.5];
        let chance_of = |earlier: &[f64], later: &[f64]| {
            let seen = compare_sessions(earlier, later, &[], 1).unwrap();
            chance(&seen, earlier.len(), later.len()).unwrap()
        };
        let (fall, rise) = (chance_of(&six, &[98.0]), chance_of(&[98.0], &six));
        assert!(
            (fall - rise).abs() < 1e-12 && fall > 0.0 && fall < 0.05,
            "{fall}"
        );
        assert!(chance_of(&six, &[99.0]) > fall);
        // An end of an interval of 95 % has a chance of 5 %.
        let seen = compare_sessions(&six, &[98.0], &[], 1).unwrap();
        let width = libm::log(seen.interval.unwrap().high.0) - libm::log(seen.ratio.0);
        let at_end = SessionComparison {
            ratio: Ratio(libm::exp(width)),
            ..seen
        };
        assert!((chance(&at_end, 6, 1).unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn five_degrees_of_freedom_are_enough_whichever_states_they_are_of() {
        let pairs = [vec![50.0, 51.0], vec![70.0, 70.5], vec![9.0, 9.1]];
        let seen = |others: &[Vec<f64>]| {
            compare_sessions(&[100.0, 101.0], &[90.0, 91.0], others, 1).unwrap()
        };
        assert_eq!((seen(&pairs[..2]).degrees, seen(&pairs).degrees), (4, 5));
        assert_eq!(seen(&pairs[..2]).interval, None);
        assert!(seen(&pairs).interval.is_some() && seen(&pairs).resolution.is_some());
        // By hand: squared halves of the five log ratios, over five degrees.
        let half = |a: f64, b: f64| libm::log(b / a) * libm::log(b / a) / 2.0;
        let squares = half(100.0, 101.0)
            + half(90.0, 91.0)
            + half(50.0, 51.0)
            + half(70.0, 70.5)
            + half(9.0, 9.1);
        let between = seen(&pairs).between.unwrap();
        assert!((between - (squares / 5.0).sqrt()).abs() < 1e-12);
    }

    /// Standard normal (Box and Muller, 1958).
    fn normal(random: &mut Random) -> f64 {
        let length = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
        length * libm::cos(std::f64::consts::TAU * random.unit())
    }

    /// Logs in which nothing changed: `cells` figures, `sessions` runs of one state, one more of the next.
    /// Each run moves all its figures together and each by itself; returns in how many of `logs`
    /// anything is claimed.
    fn false_claims(logs: usize, cells: usize, sessions: usize, common: f64, spread: f64) -> usize {
        let mut random = Random::new(cells as u64 * 1_000 + sessions as u64);
        let mut normal = || normal(&mut random);
        let claimed = |_: &usize| {
            let runs: Vec<Vec<f64>> = (0..=sessions)
                .map(|_| {
                    let moved = common * normal();
                    (0..cells)
                        .map(|_| libm::exp(moved + spread * normal()))
                        .collect()
                })
                .collect();
            (0..cells).any(|cell| {
                let figures: Vec<f64> = runs.iter().map(|run| run[cell]).collect();
                let (earlier, later) = figures.split_at(sessions);
                let seen = compare_sessions(earlier, later, &[], cells).unwrap();
                seen.conclusion.is_difference()
            })
        };
        (0..logs).filter(claimed).count()
    }

    /// Four of five: four standard errors of a count of 1,000 are 51.
    #[test]
    fn a_change_of_the_size_of_the_resolution_is_told_in_four_of_five_cases() {
        let mut random = Random::new(4);
        let mut detected = 0;
        for _ in 0..1_000 {
            let six: Vec<f64> = (0..6)
                .map(|_| libm::exp(0.02 * normal(&mut random)))
                .collect();
            let new = 0.02 * normal(&mut random);
            let error = 0.02 * (1.0_f64 + 1.0 / 6.0).sqrt();
            let t = t_quantile(0.975, 5.0).unwrap() + t_quantile(POWER, 5.0).unwrap();
            let seen = compare_sessions(&six, &[libm::exp(new - t * error)], &[], 1).unwrap();
            detected += i32::from(seen.conclusion == Conclusion::Lower);
            let between = seen.between.unwrap() / 0.02;
            let half = libm::log1p(seen.resolution.unwrap());
            assert!((half - t * error * between).abs() < 1e-9);
        }
        assert!((749..=851).contains(&detected), "{detected} of 1000");
    }

    /// A/A: the bound is 5 % of the logs; four standard errors of a binomial count above it are 78 of 1,000 and
    /// 22 of 200.
    #[test]
    fn logs_in_which_nothing_changed_claim_no_more_than_is_stated() {
        let one = false_claims(1_000, 1, 6, 0.02, 0.02);
        assert!((25..=78).contains(&one), "{one} of 1000");
        for (cells, sessions) in [(5, 6), (20, 6), (20, 12)] {
            let seen = false_claims(200, cells, sessions, 0.03, 0.01);
            assert!(seen <= 22, "{cells} figures, {sessions} sessions: {seen}");
            let apart = false_claims(200, cells, sessions, 0.0, 0.03);
            assert!(apart <= 22, "{cells}, {sessions}: {apart}");
        }
    }

    /// What the interval of the blocks alone would have claimed, had sessions been taken for blocks.
    #[test]
    fn blocks_of_two_sessions_would_claim_far_more() {
        let mut random = Random::new(9);
        let mut normal = || normal(&mut random);
        let wrong = (0..1_000)
            .filter(|_| {
                let (one, two) = (0.02 * normal(), 0.02 * normal());
                let pairs: Vec<(f64, f64)> = (0..8)
                    .map(|_| {
                        (
                            libm::exp(one + 0.005 * normal()),
                            libm::exp(two + 0.005 * normal()),
                        )
                    })
                    .collect();
                crate::compare(&pairs).unwrap().conclusion != Conclusion::NoDifferenceShown
            })
            .count();
        assert!(wrong > 500, "{wrong} of 1000");
    }

    proptest! {
        #[test]
        fn swapping_the_states_inverts_the_ratio(
            earlier in prop::collection::vec(1e-3_f64..1e9, 1..9),
            later in prop::collection::vec(1e-3_f64..1e9, 1..9),
            family in 1_usize..50,
        ) {
            let there = compare_sessions(&earlier, &later, &[], family).unwrap();
            let back = compare_sessions(&later, &earlier, &[], family).unwrap();
            prop_assert!((libm::log(there.ratio.0) + libm::log(back.ratio.0)).abs() < 1e-6);
            let opposite = match there.conclusion {
                Conclusion::Higher => Conclusion::Lower,
                Conclusion::Lower => Conclusion::Higher,
                same => same,
            };
            prop_assert_eq!(back.conclusion, opposite);
            if let Some(spread) = there.interval {
                prop_assert!(spread.low <= there.ratio && there.ratio <= spread.high);
            }
        }

        /// Sizes and counts may be the same in every session.
        #[test]
        fn sessions_that_are_all_the_same_differed_by_rounding(
            figure in 1e-3_f64..1e9, earlier in 4_usize..60, later in 3_usize..60,
        ) {
            let seen = compare_sessions(&vec![figure; earlier], &vec![figure; later], &[], 1).unwrap();
            prop_assert_eq!(seen.conclusion, Conclusion::NoDifferenceShown);
            prop_assert_eq!((seen.ratio.0, seen.between), (1.0, Some(0.0)));
        }

        #[test]
        fn the_unit_of_the_figures_does_not_matter(
            earlier in prop::collection::vec(1.0_f64..1e6, 6..9), later in 1.0_f64..1e6, scale in 1e-3_f64..1e3,
        ) {
            let scaled: Vec<f64> = earlier.iter().map(|v| v * scale).collect();
            let one = compare_sessions(&earlier, &[later], &[], 3).unwrap();
            let two = compare_sessions(&scaled, &[later * scale], &[], 3).unwrap();
            prop_assert!((libm::log(one.ratio.0) - libm::log(two.ratio.0)).abs() < 1e-9);
        }

        #[test]
        fn any_figures_are_compared_without_panic(
            earlier in prop::collection::vec(any::<f64>(), 0..9),
            later in prop::collection::vec(any::<f64>(), 0..9),
            others in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..4), 0..3),
            family in 0_usize..5,
        ) {
            let _ = compare_sessions(&earlier, &later, &others, family);
        }
    }
}
