//! What is required of a measurement, as it is typed: `p99 < 20ms`, `errors < 0.1%`, `rate > 5k`.
//!
//! One grammar for every place that takes requirements: a figure, a comparison, and a bound in the figure's unit. Not for: judging.

use std::fmt;
use std::str::FromStr;

use super::{duration, rate, share, size};
use crate::Nanos;

/// A figure of a measurement that something can be required of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequiredFigure {
    /// Completed requests a second.
    Rate,
    /// Bytes received a second.
    Bytes,
    /// Errors as a share of the requests that ended.
    Errors,
    /// The mean latency.
    Mean,
    /// A percentile of latency, above 0 and below 100.
    Percentile(f64),
    /// The longest latency.
    Max,
}

/// How a figure is to compare with its bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Comparator {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// A figure, and what it must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requirement {
    /// What is compared.
    pub figure: RequiredFigure,
    /// How.
    pub comparator: Comparator,
    /// With what: requests or bytes a second, a share (0.01 is 1 %), or nanoseconds.
    pub bound: f64,
}

/// A requirement of a load, or of a step of its scenario: `p99 < 20ms`, `login p99 < 20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadRequirement {
    /// The name of the step; `None`: all requests.
    pub step: Option<String>,
    /// What is required.
    pub what: Requirement,
}

/// The percentiles that are kept of a step.
pub const STEP_PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99];

/// What may be required, for messages.
const FORM: &str = "write a figure, < or >, and a bound: 'p99 < 20ms', 'errors < 0.1%', 'rate > 5k'; figures are rate, bytes, errors, \
mean, max, and percentiles such as p50, p99, p99.9";

impl Comparator {
    /// Whether `value` is as it must be. No value that is not a number is.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparator::Below => value < bound,
            Comparator::AtMost => value <= bound,
            Comparator::Above => value > bound,
            Comparator::AtLeast => value >= bound,
        }
    }

    /// Whether the figure may not be too high.
    pub fn is_upper(self) -> bool {
        matches!(self, Comparator::Below | Comparator::AtMost)
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparator::Below => "<",
            Comparator::AtMost => "<=",
            Comparator::Above => ">",
            Comparator::AtLeast => ">=",
        })
    }
}

impl RequiredFigure {
    /// Whether it is a time.
    pub fn is_latency(self) -> bool {
        !matches!(
            self,
            RequiredFigure::Rate | RequiredFigure::Bytes | RequiredFigure::Errors
        )
    }

    /// A value in its unit: `1.23ms`, `0.42%`, `5.1k/s`.
    pub fn shown(self, value: f64) -> String {
        match self {
            _ if value.is_nan() => "-".to_owned(),
            _ if value.is_infinite() => "∞".to_owned(),
            RequiredFigure::Errors => percent(value),
            RequiredFigure::Rate => format!("{}/s", digits(value, &[(1e6, "M"), (1e3, "k")])),
            RequiredFigure::Bytes => {
                let units = [
                    (1_073_741_824.0, "GiB"),
                    (1_048_576.0, "MiB"),
                    (1_024.0, "KiB"),
                ];
                format!("{}/s", digits(value, &units))
            }
            _ => Nanos(value as u64).to_string(),
        }
    }

    fn bound(self, text: &str) -> Result<f64, String> {
        match self {
            // A bound of 0 is one that any request, or any error, breaks.
            RequiredFigure::Rate => rate::number_of(text.strip_suffix("/s").unwrap_or(text)),
            RequiredFigure::Bytes => {
                size::parse(text.strip_suffix("/s").unwrap_or(text)).map(|bytes| bytes as f64)
            }
            RequiredFigure::Errors => share::parse(text),
            _ => duration::parse(text).map(|bound| bound.0 as f64),
        }
    }
}

/// Per cent with as many digits as a small share needs.
fn percent(value: f64) -> String {
    let percents = value * 100.0;
    match percents {
        0.0 => "0%".to_owned(),
        p => {
            // Two digits of a small share, as it is typed.
            let decimals = (1.0 - p.log10().floor()).clamp(2.0, 12.0) as usize;
            format!("{}%", trimmed(format!("{p:.decimals$}")))
        }
    }
}

fn digits(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units.iter().find(|(size, _)| value >= *size);
    let (size, unit) = unit.copied().unwrap_or((1.0, ""));
    let value = value / size;
    let decimals = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{}{unit}", trimmed(format!("{value:.decimals$}")))
}

/// Without zeros at the end that say nothing.
fn trimmed(number: String) -> String {
    match number.contains('.') {
        true => number
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => number,
    }
}

impl fmt::Display for RequiredFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequiredFigure::Rate => f.write_str("rate"),
            RequiredFigure::Bytes => f.write_str("bytes"),
            RequiredFigure::Errors => f.write_str("errors"),
            RequiredFigure::Mean => f.write_str("mean"),
            RequiredFigure::Percentile(percent) => write!(f, "p{percent}"),
            RequiredFigure::Max => f.write_str("max"),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.figure.is_latency() {
            true => duration::typed(Nanos(self.bound as u64)),
            false => self.figure.shown(self.bound),
        };
        write!(f, "{} {} {bound}", self.figure, self.comparator)
    }
}

impl FromStr for RequiredFigure {
    type Err = String;

    fn from_str(text: &str) -> Result<RequiredFigure, String> {
        Ok(match text {
            "rate" => RequiredFigure::Rate,
            "bytes" => RequiredFigure::Bytes,
            "errors" => RequiredFigure::Errors,
            "mean" => RequiredFigure::Mean,
            "max" => RequiredFigure::Max,
            _ => {
                let percent = text.strip_prefix('p').and_then(|of| of.parse::<f64>().ok());
                let percent = percent.ok_or_else(|| format!("`{text}` is no figure: {FORM}"))?;
                if !(percent > 0.0 && percent < 100.0) {
                    return Err(format!(
                        "`{text}` is no percentile: those between p0 and p100 are; the largest is `max`"
                    ));
                }
                RequiredFigure::Percentile(percent)
            }
        })
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Requirement, String> {
        let wrong = || format!("`{text}` is no requirement: {FORM}");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (figure, rest) = text.split_at(at);
        let (comparator, bound) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(bound), _) => (Comparator::AtMost, bound),
            (_, Some(bound)) => (Comparator::AtLeast, bound),
            _ if rest.starts_with('<') => (Comparator::Below, &rest[1..]),
            _ => (Comparator::Above, &rest[1..]),
        };
        let figure: RequiredFigure = figure.trim().parse()?;
        let bound = bound.trim();
        if bound.is_empty() {
            return Err(wrong());
        }
        let bound = figure.bound(bound)?;
        Ok(Requirement {
            figure,
            comparator,
            bound,
        })
    }
}

impl FromStr for LoadRequirement {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadRequirement, String> {
        let wrong = match text.parse() {
            Ok(what) => return Ok(LoadRequirement { step: None, what }),
            Err(wrong) => wrong,
        };
        let spaces = text.match_indices(' ');
        let mut splits = spaces.map(|(at, _)| (text[..at].trim(), text[at..].trim()));
        let found = splits.find_map(|(step, rest)| Some((step, rest.parse::<Requirement>().ok()?)));
        let (step, what) = found.ok_or(wrong)?;
        let is_kept = |percent: f64| {
            STEP_PERCENTILES
                .iter()
                .any(|of| (of - percent).abs() < 1e-9)
        };
        match what.figure {
            RequiredFigure::Bytes => Err("bytes are not counted by step".to_owned()),
            RequiredFigure::Percentile(percent) if !is_kept(percent) => Err(format!(
                "p{percent} is not kept of a step: p50, p75, p90, p99, p99.9 and p99.99 are"
            )),
            _ => Ok(LoadRequirement {
                step: Some(step.to_owned()),
                what,
            }),
        }
    }
}

impl fmt::Display for LoadRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(f, "{step} {}", self.what),
            None => self.what.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_may_name_a_step() {
        let read = |text: &str| text.parse::<LoadRequirement>();
        let both = read("log in  p99<20ms").expect("it is one");
        assert_eq!(both.step.as_deref(), Some("log in"));
        assert_eq!(both.to_string(), "log in p99 < 20ms");
        assert_eq!(read(&both.to_string()).expect("it is one"), both);
        assert_eq!(read("p99 < 20ms").expect("it is one").step, None);
        assert!(read("login p98 < 20ms").expect_err("p98").contains("p99.9"));
        assert!(read("login bytes > 5").is_err() && read("login").is_err());
    }

    #[test]
    fn a_requirement_is_read_and_said() {
        for (text, said) in [
            ("p99 < 20ms", "p99 < 20ms"),
            ("p99.9<=1.5s", "p99.9 <= 1500ms"),
            ("errors < 0.1%", "errors < 0.1%"),
            ("errors<=0", "errors <= 0%"),
            ("errors < 0.0015%", "errors < 0.0015%"),
            ("rate > 5k", "rate > 5k/s"),
            ("rate>=0.5/s", "rate >= 0.5/s"),
            ("bytes > 1MiB/s", "bytes > 1MiB/s"),
            ("mean<200us", "mean < 200us"),
            ("max < 1", "max < 1s"),
        ] {
            let read = text.parse::<Requirement>().expect(text);
            assert_eq!(read.to_string(), said);
            assert_eq!(said.parse::<Requirement>().expect(said).to_string(), said);
        }
    }

    #[test]
    fn what_is_no_requirement_says_what_would_be() {
        for (text, why) in [
            ("", "is no requirement"),
            ("p99", "is no requirement"),
            ("p99 <", "is no requirement"),
            ("p99 = 20ms", "is no requirement"),
            ("latency < 20ms", "`latency` is no figure"),
            ("p100 < 1s", "the largest is `max`"),
            ("p-1 < 1s", "no percentile"),
            ("pNaN < 1s", "no percentile"),
            ("p99 < 20", ""),
            ("p99 < 5k", "not a length of time"),
            ("errors < 20ms", "no part"),
            ("errors < 100%", "not under 100 %"),
            ("rate > 5x", "not a rate"),
            ("rate > -5", "not a rate"),
            ("bytes > 5kB", "not a size"),
        ] {
            match text.parse::<Requirement>() {
                Err(said) => assert!(!why.is_empty() && said.contains(why), "{text}: {said}"),
                Ok(read) => assert!(why.is_empty(), "{text}: {read}"),
            }
        }
    }

    #[test]
    fn exactly_the_bound_is_at_most_and_at_least_it_and_no_more() {
        let holds = |text: &str, value| {
            let of: Requirement = text.parse().expect(text);
            of.comparator.holds(value, of.bound)
        };
        assert!(!holds("p99 < 20ms", 20e6) && holds("p99 <= 20ms", 20e6));
        assert!(!holds("rate > 5k", 5e3) && holds("rate >= 5k", 5e3));
        assert!(holds("p99 < 20ms", 19_999_999.0) && holds("rate > 5k", 5_000.5));
        assert!(!holds("p99 < 20ms", f64::NAN) && !holds("rate >= 0", f64::NAN));
        assert!(!holds("p99 < 20ms", f64::INFINITY));
    }
}
