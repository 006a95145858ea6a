//! Whether a few values stand in two groups, as when a cell runs in one of two states: their
//! median then describes neither.

use crate::quantile::{median_of_sorted, sorted};

/// Values below which two groups cannot be told from chance.
const VALUES_MIN: usize = 6;
/// Each group has at least this many: one odd value is an outlier, not a mode.
const GROUP_MIN: usize = 2;
/// The gap must be this many times the wider group's range …
const GAP_TO_RANGE: f64 = 4.0;
/// … and this share of the median, under which two modes do not matter.
const GAP_TO_MEDIAN: f64 = 0.02;

/// Two groups of values with nothing between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoModes {
    /// Median of the lower group.
    pub low: f64,
    /// Median of the higher group.
    pub high: f64,
    /// Values in the lower group.
    pub low_count: usize,
    /// Values in the higher group.
    pub high_count: usize,
}

/// Finds two groups among `values` (positive; what is not finite is left out): split at the
/// widest gap that leaves at least 2 on each side, they count as two if that gap is at least
/// 4 times the range of either group and at least 2 % of the median. Needs 6 values. For
/// normally distributed values this is wrong in under 1 % of the cases (a test counts them).
pub fn two_modes(values: &[f64]) -> Option<TwoModes> {
    let values = sorted(values);
    if values.len() < VALUES_MIN {
        return None;
    }
    let gap = |at: usize| values[at] - values[at - 1];
    let split = (GROUP_MIN..=values.len() - GROUP_MIN)
        .reduce(|best, at| if gap(at) > gap(best) { at } else { best })?;
    let (low, high) = values.split_at(split);
    let range = |group: &[f64]| group[group.len() - 1] - group[0];
    let wide = gap(split) >= GAP_TO_RANGE * range(low).max(range(high));
    let matters = gap(split) >= GAP_TO_MEDIAN * median_of_sorted(&values).abs() && gap(split) > 0.0;
    (wide && matters).then(|| TwoModes {
        low: median_of_sorted(low),
        high: median_of_sorted(high),
        low_count: low.len(),
        high_count: high.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_quantile;
    use prony_base::Random;

    #[test]
    fn two_groups_are_found_and_described() {
        let found = two_modes(&[100.0, 81.0, 101.0, 80.0, 99.0, 80.5, 100.5]).unwrap();
        assert_eq!((found.low, found.low_count), (80.5, 3));
        assert_eq!((found.high, found.high_count), (100.25, 4));
    }

    #[test]
    fn one_outlier_five_values_and_a_small_gap_are_not_two_modes() {
        assert_eq!(two_modes(&[100.0, 100.1, 100.2, 100.3, 100.4, 50.0]), None);
        assert_eq!(two_modes(&[100.0, 100.0, 50.0, 50.0, 50.0]), None);
        assert_eq!(two_modes(&[100.0, 100.0, 100.0, 101.0, 101.0, 101.0]), None);
        assert_eq!(two_modes(&[5.0; 8]), None);
    }

    #[test]
    fn a_gap_of_four_times_the_wider_range_and_of_two_percent_is_just_enough() {
        let gap = |to: f64| two_modes(&[100.0, 100.0, 101.0, to, to, to + 1.0]).is_some();
        assert!(gap(105.0) && !gap(104.9));
        // The wider of both groups decides, whichever it is.
        assert_eq!(two_modes(&[100.0, 100.0, 102.0, 106.0, 106.0, 107.0]), None);
        assert_eq!(two_modes(&[100.0, 100.0, 101.0, 105.0, 105.0, 107.0]), None);
        // The median is 100 in both.
        assert!(two_modes(&[99.0, 99.0, 99.0, 101.0, 101.0, 101.0]).is_some());
        assert_eq!(
            two_modes(&[99.01, 99.01, 99.01, 100.99, 100.99, 100.99]),
            None
        );
    }

    #[test]
    fn zeros_are_one_group() {
        assert_eq!(two_modes(&[0.0; 6]), None);
    }

    #[test]
    fn the_widest_gap_splits_and_leaves_two_on_each_side() {
        let found = two_modes(&[10.0, 10.1, 20.0, 20.1, 20.0, 20.2, 20.1]).unwrap();
        assert_eq!((found.low_count, found.high_count), (2, 5));
        let found = two_modes(&[10.0, 10.1, 10.0, 10.2, 20.0, 20.1]).unwrap();
        assert_eq!((found.low_count, found.high_count), (4, 2));
    }

    #[test]
    fn normal_values_seldom_look_like_two_modes() {
        let mut random = Random::new(11);
        for n in [6, 8, 12, 20] {
            let wrong = (0..2_000)
                .filter(|_| {
                    let value = |_| {
                        let p = random.unit().clamp(1e-9, 1.0 - 1e-9);
                        100.0 + 10.0 * normal_quantile(p).unwrap()
                    };
                    two_modes(&(0..n).map(value).collect::<Vec<_>>()).is_some()
                })
                .count();
            assert!(wrong < 20, "{wrong} of 2000 with {n} values");
        }
    }
}
