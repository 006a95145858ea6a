//! Quantiles of histograms and medians of a few values.

use prony_base::Nanos;
use prony_record::Histogram;

/// The `q` quantile (0 to 1) of a histogram, by nearest rank: the highest value of the first
/// bucket by whose end at least `ceil(q * total)` values were counted (and at least one). So
/// it is never below the true quantile, and above it by at most the width of a bucket.
/// `None` where nothing was counted, or `q` is not in 0 to 1.
pub fn quantile(histogram: &Histogram, q: f64) -> Option<Nanos> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let total = histogram.total();
    // A product like 0.999 * 1000 is not exact: what is within rounding of a whole rank is that rank.
    let exact = q * total as f64;
    let rank = (libm::ceil(exact - exact * 4.0 * f64::EPSILON) as u64).clamp(1, total.max(1));
    let mut seen = 0_u64;
    for &(value, count) in &histogram.counts {
        seen = seen.saturating_add(count);
        if seen >= rank {
            return Some(Nanos(value));
        }
    }
    None
}

/// The finite ones of `values`, rising.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    finite
}

/// The median of the finite ones of `values`: of an even number the mean of the two in the
/// middle. `None` where there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    let finite = sorted(values);
    (!finite.is_empty()).then(|| median_of_sorted(&finite))
}

/// INVARIANT of the caller: `sorted` is rising and not empty.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        // Halved first: two huge values do not overflow.
        sorted[middle - 1] / 2.0 + sorted[middle] / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(counts: &[(u64, u64)]) -> Histogram {
        Histogram {
            counts: counts.to_vec(),
            ..Histogram::default()
        }
    }

    #[test]
    fn a_quantile_is_the_value_at_its_rank() {
        let thousand: Vec<(u64, u64)> = (1..=1000).map(|v| (v, 1)).collect();
        let h = histogram(&thousand);
        for (q, expected) in [
            (0.0, 1),
            (0.5, 500),
            (0.9, 900),
            (0.99, 990),
            (0.999, 999),
            (0.9999, 1000),
            (1.0, 1000),
        ] {
            assert_eq!(quantile(&h, q), Some(Nanos(expected)), "{q}");
        }
    }

    #[test]
    fn an_empty_histogram_and_a_senseless_quantile_have_none() {
        assert_eq!(quantile(&histogram(&[]), 0.5), None);
        assert_eq!(quantile(&histogram(&[(5, 1)]), 1.5), None);
        assert_eq!(quantile(&histogram(&[(5, 1)]), f64::NAN), None);
    }

    #[test]
    fn the_median_of_few_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::NAN, 7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    proptest! {
        #[test]
        fn a_quantile_agrees_with_the_sorted_values(
            mut values in prop::collection::vec(0_u64..50, 1..200),
            thousandths in 0_u64..=1000,
        ) {
            values.sort_unstable();
            let mut counts: Vec<(u64, u64)> = Vec::new();
            for &v in &values {
                match counts.last_mut() {
                    Some(last) if last.0 == v => last.1 += 1,
                    _ => counts.push((v, 1)),
                }
            }
            let rank = (thousandths * values.len() as u64).div_ceil(1000).max(1);
            let expected = values[rank as usize - 1];
            let found = quantile(&histogram(&counts), thousandths as f64 / 1000.0);
            prop_assert_eq!(found, Some(Nanos(expected)));
        }

        #[test]
        fn any_histogram_is_read_without_panic(
            counts in prop::collection::vec(any::<(u64, u64)>(), 0..5), q in any::<f64>(),
        ) {
            let _ = quantile(&histogram(&counts), q);
        }
    }
}
