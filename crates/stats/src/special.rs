//! The distributions that intervals need: Student's t and the normal one.
//!
//! Quantiles are found by halving an interval over the distribution function: slower than an
//! approximation, and as exact as the function itself.

const FRACTION_STEPS_MAX: u32 = 500;

/// Student's t distribution function with `degrees` of freedom, from the regularised
/// incomplete beta function (Abramowitz and Stegun, 26.7.1 and 26.5.27).
pub fn t_distribution(t: f64, degrees: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The `t` under which a share `p` of Student's distribution with `degrees` of freedom lies.
/// `None` unless `0 < p < 1` and `degrees >= 1`.
pub fn t_quantile(p: f64, degrees: f64) -> Option<f64> {
    // At one degree of freedom and p = 1e-12 it is 3e11.
    let allowed = degrees.is_finite() && degrees >= 1.0;
    (allowed && p > 0.0 && p < 1.0).then(|| root(|t| t_distribution(t, degrees), p, 1e16))
}

/// The normal distribution function.
pub(crate) fn normal_distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The `z` under which a share `p` of the standard normal distribution lies.
/// `None` unless `0 < p < 1`.
pub fn normal_quantile(p: f64) -> Option<f64> {
    (p > 0.0 && p < 1.0).then(|| root(normal_distribution, p, 40.0))
}

/// The value under which a share `p` of the chi-square distribution with `degrees` of freedom lies.
/// `None` unless `0 < p < 1` and `degrees >= 1`.
pub fn chi_square_quantile(p: f64, degrees: f64) -> Option<f64> {
    let allowed = degrees.is_finite() && degrees >= 1.0;
    let limit = degrees + 40.0 * (degrees.sqrt() + 1.0);
    (allowed && p > 0.0 && p < 1.0).then(|| root(|x| chi_square_distribution(x, degrees), p, limit))
}

/// The value under which a share `p` of Snedecor's F distribution lies, of the ratio of a variance with `above` degrees of freedom to
/// one with `below` (Abramowitz and Stegun, 26.6.2). `None` unless `0 < p < 1` and both have at least one.
pub(crate) fn f_quantile(p: f64, above: f64, below: f64) -> Option<f64> {
    let has_degrees = |degrees: f64| degrees.is_finite() && degrees >= 1.0;
    let distribution = |x: f64| match x > 0.0 {
        true => incomplete_beta(above / 2.0, below / 2.0, above * x / (above * x + below)),
        false => 0.0,
    };
    (has_degrees(above) && has_degrees(below) && p > 0.0 && p < 1.0)
        .then(|| root(distribution, p, 1e6))
}

/// The chi-square distribution function with `degrees` of freedom, by the series of the incomplete gamma function (DLMF 8.11.4), all of
/// whose terms are positive.
fn chi_square_distribution(x: f64, degrees: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (half, shape) = (x / 2.0, degrees / 2.0);
    let (mut term, mut sum, mut next) = (1.0, 1.0, shape);
    while term > 1e-17 * sum {
        next += 1.0;
        term *= half / next;
        sum += term;
    }
    libm::exp(shape * libm::log(half) - half - libm::lgamma(shape + 1.0) + libm::log(sum)).min(1.0)
}

/// Where the rising `function` reaches `goal`, between `-limit` and `limit`.
fn root(function: impl Fn(f64) -> f64, goal: f64, limit: f64) -> f64 {
    let (mut low, mut high, mut middle) = (-limit, limit, 0.0);
    // Until they are neighbours, with nothing between them.
    while low < middle && middle < high {
        if function(middle) < goal {
            low = middle;
        } else {
            high = middle;
        }
        middle = low + (high - low) / 2.0;
    }
    middle
}

/// The regularised incomplete beta function `I_x(a, b)` by its continued fraction (DLMF 8.17.22),
/// on the side where that converges fast (DLMF 8.17.4 gives the other).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    // 0 at both ends, where one of the logarithms is infinite.
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
            + a * libm::log(x)
            + b * libm::log1p(-x),
    );
    if x < (a + 1.0) / (a + b + 2.0) {
        front / (a * beta_fraction(a, b, x))
    } else {
        1.0 - front / (b * beta_fraction(b, a, 1.0 - x))
    }
}

/// The denominator `1 + d1/(1 + d2/(1 + …))` of the fraction in DLMF 8.17.22, by Lentz's method
/// (Thompson and Barnett, "Coulomb and Bessel functions of complex arguments and order", 1986).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..FRACTION_STEPS_MAX {
        let m = f64::from(step / 2);
        let term = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / away_from_zero(1.0 + term * d);
        c = away_from_zero(1.0 + term / c);
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    away_from_zero(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Upper critical values as printed in the t table of the NIST/SEMATECH e-Handbook of
    /// Statistical Methods, 1.3.6.7.2.
    #[test]
    fn t_quantiles_are_those_of_the_published_table() {
        let table = [
            (1.0, [3.078, 6.314, 12.706, 31.821, 63.657]),
            (2.0, [1.886, 2.920, 4.303, 6.965, 9.925]),
            (5.0, [1.476, 2.015, 2.571, 3.365, 4.032]),
            (9.0, [1.383, 1.833, 2.262, 2.821, 3.250]),
            (30.0, [1.310, 1.697, 2.042, 2.457, 2.750]),
            (100.0, [1.290, 1.660, 1.984, 2.364, 2.626]),
        ];
        for (degrees, row) in table {
            for (p, expected) in [0.90, 0.95, 0.975, 0.99, 0.995].into_iter().zip(row) {
                let found = t_quantile(p, degrees).unwrap();
                assert!((found - expected).abs() <= 5.01e-4, "{degrees} {p} {found}");
            }
        }
    }

    /// Critical values as printed in the chi-square tables of the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4.
    #[test]
    fn chi_square_quantiles_are_those_of_the_published_table() {
        let table = [
            (1.0, [0.016, 2.706]),
            (2.0, [0.211, 4.605]),
            (5.0, [1.610, 9.236]),
            (10.0, [4.865, 15.987]),
            (30.0, [20.599, 40.256]),
            (100.0, [82.358, 118.498]),
        ];
        for (degrees, row) in table {
            for (p, expected) in [0.10, 0.90].into_iter().zip(row) {
                let found = chi_square_quantile(p, degrees).unwrap();
                assert!((found - expected).abs() <= 5.01e-4, "{degrees} {p} {found}");
            }
        }
        // Of many degrees it comes near the normal distribution's.
        let many = chi_square_quantile(0.1, 20_000.0).unwrap();
        assert!(
            (many / (20_000.0 - 1.2816 * 200.0) - 1.0).abs() < 1e-4,
            "{many}"
        );
        assert_eq!(chi_square_quantile(0.0, 2.0), None);
        assert_eq!(chi_square_quantile(0.1, 0.0), None);
    }

    /// Upper critical values as printed in the F table of the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.3.
    #[test]
    fn f_quantiles_are_those_of_the_published_table() {
        for (above, below, value) in [(1.0, 5.0, 6.608), (10.0, 8.0, 3.347), (20.0, 20.0, 2.124)] {
            let found = f_quantile(0.95, above, below).unwrap();
            assert!((found - value).abs() < 6e-4, "{above} {below}: {found}");
            // The lower ones are those of the inverse ratio.
            let lower = f_quantile(0.05, below, above).unwrap();
            assert!((lower * found - 1.0).abs() < 1e-9);
        }
        assert_eq!(f_quantile(0.95, 0.5, 8.0), None);
        assert_eq!(f_quantile(1.0, 5.0, 8.0), None);
    }

    /// With one and two degrees of freedom the distribution has a closed form.
    #[test]
    fn the_t_distribution_agrees_with_its_closed_forms() {
        for t in [-50.0_f64, -3.0, -0.5, 0.0, 0.1, 1.0, 2.5, 40.0] {
            let one = 0.5 + libm::atan(t) / std::f64::consts::PI;
            let two = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
            assert!((t_distribution(t, 1.0) - one).abs() < 1e-13, "{t}");
            assert!((t_distribution(t, 2.0) - two).abs() < 1e-13, "{t}");
        }
    }

    #[test]
    fn the_t_distribution_reaches_its_ends() {
        for degrees in [1.0, 5.0, 300.0] {
            assert_eq!(t_distribution(f64::NEG_INFINITY, degrees), 0.0);
            assert_eq!(t_distribution(0.0, degrees), 0.5);
            assert_eq!(t_distribution(f64::INFINITY, degrees), 1.0);
        }
    }

    /// With an even number of degrees it is a finite sum (Abramowitz and Stegun, 26.7.4), which needs no
    /// incomplete beta function.
    #[test]
    fn the_t_distribution_agrees_with_its_finite_sums() {
        for degrees in [4_u32, 10, 58, 300] {
            for t in [-6.0_f64, -1.5, -0.2, 0.4, 2.0, 5.0] {
                let n = f64::from(degrees);
                let sine = t / (n + t * t).sqrt();
                let (mut term, mut sum) = (1.0, 1.0);
                for k in (2..degrees).step_by(2) {
                    term *= (1.0 - sine * sine) * f64::from(k - 1) / f64::from(k);
                    sum += term;
                }
                let expected = 0.5 + 0.5 * sine * sum;
                let found = t_distribution(t, n);
                assert!((found - expected).abs() < 1e-12, "{degrees} {t}: {found}");
            }
        }
    }

    #[test]
    fn normal_quantiles_are_the_known_ones() {
        for (p, z) in [
            (0.5, 0.0),
            (0.84134474606854, 1.0),
            (0.975, 1.959963984540054),
            (0.995, 2.575829303548901),
        ] {
            assert!((normal_quantile(p).unwrap() - z).abs() < 1e-9, "{p}");
        }
    }

    #[test]
    fn there_is_no_quantile_outside_the_distribution() {
        for p in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(t_quantile(p, 5.0), None);
            assert_eq!(normal_quantile(p), None);
        }
        for degrees in [0.0, 0.999, -3.0, f64::INFINITY, f64::NAN] {
            assert_eq!(t_quantile(0.9, degrees), None);
        }
        assert!(t_quantile(0.9, 1.0).is_some());
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_inverse_of_its_distribution(
            p in 0.001_f64..0.999, degrees in 1.0_f64..300.0,
        ) {
            let t = t_quantile(p, degrees).unwrap();
            prop_assert!((t_distribution(t, degrees) - p).abs() < 1e-9);
            prop_assert!((t + t_quantile(1.0 - p, degrees).unwrap()).abs() < 1e-6 * (1.0 + t.abs()));
        }
    }
}
