//! A share, or a mean, of one run with an interval from its seconds: each second is a group of requests that go together.
//!
//! The figure is a ratio of two sums over the seconds, and its interval is that of a ratio estimator: of what each second has beyond
//! its share of the whole (W. G. Cochran, "Sampling Techniques", 1977, section 2.11). As for a rate ([`seconds`]), there is none where
//! the seconds are few or are seen to go together.

use crate::CONFIDENCE;
use crate::seconds::{MeanInterval, seconds};
use crate::special::normal_quantile;
use crate::units::Rate;

/// The sum of the first over the sum of the second, with its interval. `None` where the second is nothing, or a value is not finite.
pub fn ratio_over_seconds(parts: &[(f64, f64)]) -> Option<(f64, MeanInterval)> {
    let (of, total) = parts.iter().fold((0.0, 0.0), |(of, total), part| {
        (of + part.0, total + part.1)
    });
    let ratio = of / total;
    if !ratio.is_finite() || total <= 0.0 {
        return None;
    }
    let beyond: Vec<f64> = parts.iter().map(|part| part.0 - ratio * part.1).collect();
    let each = total / parts.len() as f64;
    let interval = match seconds(&beyond)?.interval {
        MeanInterval::Interval { low, high } => MeanInterval::Interval {
            low: Rate(ratio + low.0 / each),
            high: Rate(ratio + high.0 / each),
        },
        none => none,
    };
    Some((ratio, interval))
}

/// The same of a share, of which each pair has a part and its whole: never narrower than that of as many independent requests (E. B.
/// Wilson, 1927), so that no error in a thousand requests is not taken for none at all.
pub fn share_over_seconds(parts: &[(f64, f64)]) -> Option<(f64, MeanInterval)> {
    let (share, interval) = ratio_over_seconds(parts)?;
    let n: f64 = parts.iter().map(|part| part.1).sum();
    let interval = match interval {
        MeanInterval::Interval { low, high } => {
            let (least, most) = wilson(share, n)?;
            MeanInterval::Interval {
                low: Rate(low.0.min(least).max(0.0)),
                high: Rate(high.0.max(most).min(1.0)),
            }
        }
        none => none,
    };
    Some((share, interval))
}

/// Wilson's interval of a share of `n`.
fn wilson(share: f64, n: f64) -> Option<(f64, f64)> {
    let z = normal_quantile(0.5 + CONFIDENCE / 2.0)?;
    let square = z * z / n;
    let middle = (share + square / 2.0) / (1.0 + square);
    let half = z / (1.0 + square) * (share * (1.0 - share) / n + square / (4.0 * n)).sqrt();
    Some((middle - half, middle + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(of: Option<(f64, MeanInterval)>) -> (f64, f64, f64) {
        match of {
            Some((value, MeanInterval::Interval { low, high })) => (value, low.0, high.0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_ratio_has_the_interval_of_its_seconds() {
        // Ten seconds, by turns 9 and 11 of 100: deviation 1.054, t(9) = 2.262, over the root of ten.
        let parts: Vec<(f64, f64)> = (0..10)
            .map(|n| (9.0 + f64::from(n % 2) * 2.0, 100.0))
            .collect();
        let (value, low, high) = ends(ratio_over_seconds(&parts));
        assert!((value - 0.1).abs() < 1e-12);
        assert!(
            (high - 0.1 - 0.00754).abs() < 1e-5 && (low + high - 0.2).abs() < 1e-9,
            "{low} {high}"
        );
        // Independent requests tell less than that.
        let (_, low, high) = ends(share_over_seconds(&parts));
        assert!(low < 0.085 && high > 0.118, "{low} {high}");
    }

    #[test]
    fn no_error_among_a_thousand_may_be_one_in_three_hundred() {
        let (value, low, high) = ends(share_over_seconds(&[(0.0, 100.0); 10]));
        assert!(
            value == 0.0 && low == 0.0 && (high - 0.00383).abs() < 1e-4,
            "{high}"
        );
    }

    #[test]
    fn there_is_none_of_few_seconds_or_of_such_as_go_together() {
        let few = ratio_over_seconds(&[(1.0, 10.0); 9]);
        assert_eq!(few, Some((0.1, MeanInterval::FewSeconds)));
        let parts: Vec<(f64, f64)> = (0..20).map(|n| (f64::from(n), 100.0)).collect();
        assert_eq!(
            ratio_over_seconds(&parts).map(|of| of.1),
            Some(MeanInterval::Correlated)
        );
        assert_eq!(ratio_over_seconds(&[]), None);
        assert_eq!(ratio_over_seconds(&[(1.0, 0.0)]), None);
        assert_eq!(share_over_seconds(&[(f64::NAN, 1.0)]), None);
    }
}
