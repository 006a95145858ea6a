//! Change points: from which session on a figure is another one, without anybody saying where to look.
//!
//! Not for: two states that are known ([`compare_sessions`](crate::compare_sessions())), which needs fewer
//! sessions to tell.

use prony_base::Random;

use crate::units::Ratio;
use crate::{CONFIDENCE, median};

/// Sessions under which no change point is looked for. With seven, even a perfect step could be chance: of all
/// orders of seven values, 1 in 10 has as clean a step somewhere (after the third or after the fourth). With eight,
/// 1 in 35 has.
pub const CHANGE_SESSIONS_MIN: usize = 8;
/// Orders that are drawn to tell chance from change.
const ORDERS: u32 = 20_000;

/// A place where a figure changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first session after it.
    pub at: usize,
    /// Median of the figures after it (up to the next change) over that before (from the last).
    pub ratio: Ratio,
    /// Share of random orders of the same figures that have as clean a step somewhere.
    pub chance: f64,
}

/// The change points of `figures`, one a session in the order of their dates, rising. `family` is how many such
/// histories are looked at together.
///
/// Pettitt's statistic ("A Non-Parametric Approach to the Change-Point Problem", Applied Statistics 28,
/// 1979): the largest excess, over all places, of pairs that rise across the place over pairs that fall. It
/// looks at ranks, so that one slow session makes no change, and moves none. How likely it is by chance is counted in random orders
/// drawn with `seed`, as his approximation is rough for few values. Where it is less likely than 5 % over `family`,
/// the place is a change, and both sides are searched in turn, as in Scott and Knott's
/// binary segmentation (Biometrics 30, 1974). Sessions that drift together look like change: what this
/// finds is where to look, not what caused it.
pub fn change_points(figures: &[f64], family: usize, seed: u64) -> Vec<ChangePoint> {
    if figures.iter().any(|figure| !figure.is_finite()) {
        return Vec::new();
    }
    let level = (1.0 - CONFIDENCE) / family.max(1) as f64;
    let mut random = Random::of(seed, "change points");
    let mut cuts = Vec::new();
    search(figures, 0, level, &mut random, &mut cuts);
    cuts.sort_by_key(|&(at, _)| at);
    let ends: Vec<usize> = [0]
        .into_iter()
        .chain(cuts.iter().map(|&(at, _)| at))
        .chain([figures.len()])
        .collect();
    let middle = |from: usize, to: usize| median(&figures[from..to]).unwrap_or(f64::NAN);
    let point = |(index, &(at, chance)): (usize, &(usize, f64))| ChangePoint {
        at,
        ratio: Ratio(middle(at, ends[index + 2]) / middle(ends[index], at)),
        chance,
    };
    cuts.iter().enumerate().map(point).collect()
}

fn search(
    figures: &[f64],
    offset: usize,
    level: f64,
    random: &mut Random,
    cuts: &mut Vec<(usize, f64)>,
) {
    if figures.len() < CHANGE_SESSIONS_MIN {
        return;
    }
    let mut scores = scores(figures);
    let excess = excess(&scores);
    let at = place(figures);
    let allowed = (level * f64::from(ORDERS + 1)) as u32;
    let mut as_clean = 0;
    for _ in 0..ORDERS {
        shuffle(&mut scores, random);
        as_clean += u32::from(self::excess(&scores) >= excess);
        if as_clean >= allowed {
            return;
        }
    }
    // The order that was seen is one of the possible ones: the chance is never zero.
    let chance = f64::from(as_clean + 1) / f64::from(ORDERS + 1);
    cuts.push((offset + at, chance));
    // Half for both sides together, so that all searches of a history come to no more than twice the level.
    search(&figures[..at], offset, level / 4.0, random, cuts);
    search(&figures[at..], offset + at, level / 4.0, random, cuts);
}

/// Of each figure, how many lie below it, less those above: Σ_j sgn(x_i - x_j). They stay with the figures in
/// whichever order these are.
fn scores(figures: &[f64]) -> Vec<i64> {
    let sign = |value: f64, other: f64| i64::from(value > other) - i64::from(value < other);
    let score = |value: &f64| figures.iter().map(|other| sign(*value, *other)).sum();
    figures.iter().map(score).collect()
}

/// Pettitt's statistic of the cleanest step: the largest |U(t)|, with U(t) = U(t-1) + score(t).
fn excess(scores: &[i64]) -> i64 {
    let mut here = 0_i64;
    let excess = |score: &i64| {
        here += score;
        here.abs()
    };
    scores.iter().map(excess).max().unwrap_or(0)
}

/// How many figures lie before the change: there they lie nearest to the medians of both sides. (Pettitt's own place is
/// moved by ranks within a side.) The lowest and the highest eighth count as what lies next to them, so that a slow
/// session at an end is no side of its own.
fn place(figures: &[f64]) -> usize {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let eighth = figures.len() / 8;
    let (low, high) = (sorted[eighth], sorted[figures.len() - 1 - eighth]);
    let within: Vec<f64> = figures.iter().map(|v| v.clamp(low, high)).collect();
    let apart = |side: &[f64]| {
        let middle = median(side).unwrap_or(0.0);
        side.iter().map(|v| (v - middle).abs()).sum::<f64>()
    };
    let both = |at: &usize| apart(&within[..*at]) + apart(&within[*at..]);
    (1..figures.len())
        .min_by(|a, b| both(a).total_cmp(&both(b)))
        .unwrap_or(1)
}

fn shuffle(values: &mut [i64], random: &mut Random) {
    for last in (1..values.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        values.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noisy(random: &mut Random, level: f64) -> f64 {
        let length = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
        let z = length * libm::cos(std::f64::consts::TAU * random.unit());
        level * libm::exp(0.01 * z)
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut random = Random::new(1);
        let figures: Vec<f64> = (0..16)
            .map(|i| noisy(&mut random, if i < 9 { 100.0 } else { 80.0 }))
            .collect();
        let found = change_points(&figures, 1, 7);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].at, 9);
        assert!((found[0].ratio.0 - 0.8).abs() < 0.02);
        assert!(found[0].chance < 0.01);
    }

    #[test]
    fn two_steps_are_two_changes_in_their_order() {
        let mut random = Random::new(2);
        let level = |i| match i {
            0..12 => 100.0,
            12..24 => 130.0,
            _ => 70.0,
        };
        let figures: Vec<f64> = (0..36).map(|i| noisy(&mut random, level(i))).collect();
        let at: Vec<usize> = change_points(&figures, 1, 7).iter().map(|c| c.at).collect();
        assert_eq!(at, [12, 24]);
        // Each against the medians of its neighbours.
        let ratios: Vec<f64> = change_points(&figures, 1, 7)
            .iter()
            .map(|c| c.ratio.0)
            .collect();
        assert!((ratios[0] - 1.3).abs() < 0.03, "{ratios:?}");
        assert!((ratios[1] - 70.0 / 130.0).abs() < 0.03, "{ratios:?}");
    }

    /// Of the 70 orders of eight values in two groups, two are a perfect step.
    #[test]
    fn the_chance_is_the_share_of_orders_with_as_clean_a_step() {
        let perfect = [1.0, 1.1, 1.2, 1.3, 9.0, 9.1, 9.2, 9.3];
        let found = change_points(&perfect, 1, 7);
        // Four standard errors of a share of 20,000.
        assert!((found[0].chance - 1.0 / 35.0).abs() < 0.0048, "{found:?}");
        assert_eq!(change_points(&perfect, 0, 7), found);
        assert_eq!(change_points(&perfect, 2, 7), []);
        let falling: Vec<f64> = perfect.iter().map(|figure| 10.0 - figure).collect();
        assert_eq!(change_points(&falling, 1, 7)[0].chance, found[0].chance);
    }

    /// What is no change by itself, at 1 in 35, is none beside another one either: each side has a quarter
    /// of the level.
    #[test]
    fn a_side_of_a_change_must_be_clearer_than_a_whole_history() {
        let mut random = Random::new(8);
        let mut figures = vec![1.0, 1.1, 1.2, 1.3, 9.0, 9.1, 9.2, 9.3];
        figures.extend((0..24).map(|_| noisy(&mut random, 1_000.0)));
        let at = |figures: &[f64]| -> Vec<usize> {
            change_points(figures, 1, 7).iter().map(|c| c.at).collect()
        };
        assert_eq!(at(&figures), [8]);
        figures.reverse();
        assert_eq!(at(&figures), [24]);
    }

    #[test]
    fn a_history_with_a_figure_that_is_none_is_not_searched() {
        let perfect = [1.0, 1.1, 1.2, 1.3, 1.4, 9.0, 9.1, 9.2, 9.3];
        for nothing in [f64::NAN, f64::INFINITY] {
            let mut figures = perfect;
            figures[8] = nothing;
            assert_eq!(change_points(&figures, 1, 7), []);
        }
    }

    #[test]
    fn every_order_is_drawn_as_often() {
        let mut random = Random::new(9);
        let mut times = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut values = [1, 2, 3];
            shuffle(&mut values, &mut random);
            *times.entry(values).or_insert(0) += 1;
        }
        assert_eq!(times.len(), 6);
        // Four standard errors of a count of 1,000 in 6,000.
        assert!(
            times.values().all(|n| (885..=1_115).contains(n)),
            "{times:?}"
        );
    }

    #[test]
    fn seven_sessions_are_too_few_and_one_slow_session_is_no_change() {
        assert_eq!(
            change_points(&[1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0], 1, 7),
            []
        );
        let perfect = [1.0, 1.1, 1.2, 1.3, 9.0, 9.1, 9.2, 9.3];
        assert_eq!(change_points(&perfect, 1, 7)[0].at, 4);
        assert_eq!(change_points(&perfect, 10, 7), []);
        let mut slow = [100.0; 20];
        slow[12] = 10.0;
        assert_eq!(change_points(&slow, 1, 7), []);
    }

    #[test]
    fn one_slow_session_at_an_end_does_not_draw_the_place() {
        let mut random = Random::new(5);
        for _ in 0..20 {
            let mut figures: Vec<f64> = (0..19)
                .map(|i| noisy(&mut random, if i < 10 { 100.0 } else { 110.0 }))
                .collect();
            figures.push(50.0);
            assert_eq!(place(&figures), 10, "{figures:?}");
        }
    }

    #[test]
    fn an_eighth_at_each_end_is_moved_in_and_no_more() {
        let step = |low: usize, high: usize| [vec![100.0; low], vec![120.0; high]].concat();
        // Five of 23 are more than an eighth, and stay a side.
        assert_eq!(place(&step(18, 5)), 18);
        assert_eq!(place(&step(5, 18)), 5);
        // Two of 16 are an eighth, and are none.
        let mut two_slow = step(7, 9);
        two_slow[..2].fill(1.0);
        assert_eq!(place(&two_slow), 7);
        let mut two_fast = step(7, 9);
        two_fast[14..].fill(9_000.0);
        assert_eq!(place(&two_fast), 7);
    }

    /// Few against many: by ranks alone, the place would be off in every third history.
    #[test]
    fn a_short_side_is_cut_where_it_begins() {
        let mut random = Random::new(6);
        for _ in 0..20 {
            let figures: Vec<f64> = (0..16)
                .map(|i| noisy(&mut random, if i < 12 { 100.0 } else { 120.0 }))
                .collect();
            assert_eq!(place(&figures), 12, "{figures:?}");
        }
    }

    /// A/A: of 300 histories in which nothing changed 5 % are 15; four standard errors above are 30.
    #[test]
    fn histories_in_which_nothing_changed_have_no_more_than_is_stated() {
        let mut random = Random::new(3);
        let wrong = (0..300)
            .filter(|&seed| {
                let figures: Vec<f64> = (0..12).map(|_| noisy(&mut random, 100.0)).collect();
                !change_points(&figures, 1, seed).is_empty()
            })
            .count();
        assert!(wrong <= 30, "{wrong} of 300");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(prony_testkit::seeds(24, 400) as u32))]
        #[test]
        fn changes_rise_and_any_figures_are_searched_without_panic(
            figures in prop::collection::vec(any::<f64>(), 0..24), family in 0_usize..4, seed in any::<u64>(),
        ) {
            let found = change_points(&figures, family, seed);
            prop_assert!(found.windows(2).all(|pair| pair[0].at < pair[1].at));
            prop_assert!(found.iter().all(|c| c.at > 0 && c.at < figures.len()));
        }
    }
}
