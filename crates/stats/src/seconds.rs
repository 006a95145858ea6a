//! How a rate moved from second to second within one run, and logs with a line a second.
//!
//! The deviation over seconds is what many documents give beside a rate. It says how steady one run
//! was, and nothing of how far the next run may be off: that is what intervals over blocks are for
//! ([`crate::summarise`]). So the interval here is one of this run's mean alone, and there is none
//! where the seconds are seen to go together: it would be too narrow.
//!
//! Not for: reading files, choosing which seconds belong to a warm-up.

use std::fmt;

use crate::CONFIDENCE;
use crate::quantile::sorted;
use crate::special::t_quantile;
use crate::units::{Rate, Ratio};

/// Seconds below which there is no interval: fewer cannot show whether they go together.
pub const SECONDS_INTERVAL_MIN: usize = 10;
/// A serial correlation beyond so many standard errors is no chance (one-sided 95 %).
const CORRELATED_SIGMAS: f64 = 1.645;
/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// Rates of the seconds of one run, summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Seconds {
    /// Seconds that the rest rests on.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: Rate,
    /// Sample standard deviation (n - 1); `None` of a single second.
    pub deviation: Option<Rate>,
    /// Smallest.
    pub min: Rate,
    /// Largest.
    pub max: Rate,
    /// Deviation over mean; `None` without a deviation or where the mean is zero.
    pub variation: Option<Ratio>,
    /// Correlation of each second with the one after it; `None` below 3 seconds or where all are equal.
    pub serial: Option<Ratio>,
    /// Interval of the mean of this run.
    pub interval: MeanInterval,
}

/// Student's interval of a mean of seconds, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanInterval {
    /// Too few seconds to see whether they go together.
    FewSeconds,
    /// They go together: each has less to say than an independent one.
    Correlated,
    /// By [`CONFIDENCE`], taking the seconds as independent, against which nothing speaks.
    Interval {
        /// Lower end.
        low: Rate,
        /// Higher end.
        high: Rate,
    },
}

/// Sums up the finite ones of `rates`, which are in the order of their seconds. `None` without any.
pub fn seconds(rates: &[f64]) -> Option<Seconds> {
    let finite: Vec<f64> = rates.iter().copied().filter(|r| r.is_finite()).collect();
    let rising = sorted(&finite);
    let (&min, &max) = (rising.first()?, rising.last()?);
    let n = finite.len() as f64;
    let sum: f64 = finite.iter().sum();
    let divided = || finite.iter().map(|rate| rate / n).sum();
    // Huge values may overflow their sum; and rounding takes no mean beyond the values.
    let mean = if sum.is_finite() { sum / n } else { divided() };
    let mean = mean.clamp(min, max);
    let squares: f64 = finite
        .iter()
        .map(|rate| (rate - mean) * (rate - mean))
        .sum();
    let deviation = (finite.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
    let serial = serial(&finite, mean, squares);
    Some(Seconds {
        count: finite.len(),
        mean: Rate(mean),
        deviation: deviation.map(Rate),
        min: Rate(min),
        max: Rate(max),
        variation: deviation.filter(|_| mean != 0.0).map(|d| Ratio(d / mean)),
        serial: serial.map(Ratio),
        interval: interval(finite.len(), mean, deviation, serial),
    })
}

/// The first serial correlation (Box and Jenkins, "Time Series Analysis", 1970, section 2.1.5).
fn serial(rates: &[f64], mean: f64, squares: f64) -> Option<f64> {
    let pairs = rates.windows(2);
    let products: f64 = pairs.map(|p| (p[0] - mean) * (p[1] - mean)).sum();
    let of_all = products / squares;
    (rates.len() >= 3 && of_all.is_finite()).then_some(of_all)
}

fn interval(n: usize, mean: f64, deviation: Option<f64>, serial: Option<f64>) -> MeanInterval {
    let root = (n as f64).sqrt();
    // Of independent values it is about normal with a deviation of 1/√n (Bartlett, 1946).
    if serial.is_some_and(|serial| serial > CORRELATED_SIGMAS / root) {
        return MeanInterval::Correlated;
    }
    let of_student = t_quantile(0.5 + CONFIDENCE / 2.0, n as f64 - 1.0);
    match (deviation, of_student) {
        (Some(deviation), Some(t)) if n >= SECONDS_INTERVAL_MIN => MeanInterval::Interval {
            low: Rate(mean - t * deviation / root),
            high: Rate(mean + t * deviation / root),
        },
        _ => MeanInterval::FewSeconds,
    }
}

/// Rates of the whole seconds of a window that was counted in slices of `slice_ns`: a rest that is no
/// whole second is left out. Empty where no number of slices makes a second.
pub fn whole_seconds(completed: &[u64], slice_ns: u64) -> Vec<f64> {
    if slice_ns == 0 || !SECOND_NS.is_multiple_of(slice_ns) {
        return Vec::new();
    }
    let each = usize::try_from(SECOND_NS / slice_ns).unwrap_or(usize::MAX);
    let sum = |slices: &[u64]| slices.iter().map(|&n| n as f64).sum();
    completed.chunks_exact(each).map(sum).collect()
}

/// A line of a log: what was counted in a time of about a second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reading {
    /// Milliseconds that it took; more than 0.
    pub ms: u64,
    /// Requests in that time.
    pub count: u64,
}

impl Reading {
    /// Requests a second.
    pub fn rate(self) -> f64 {
        // Multiplied first: of a whole second it is the very count.
        self.count as f64 * 1e3 / self.ms as f64
    }
}

/// A line of a log that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for BadLine {}

/// The lines of a log after its first, which is a header: `… NNNms: COUNT …`. White space before the
/// first line and after the last is no line.
pub fn readings(log: &str) -> Result<Vec<Reading>, BadLine> {
    let skipped = log.len() - log.trim_start().len();
    let before = log[..skipped].matches('\n').count();
    let lines = log.trim().lines().enumerate().skip(1);
    lines
        .map(|(at, text)| {
            reading(text).map_err(|reason| BadLine {
                line: before + at + 1,
                reason,
            })
        })
        .collect()
}

fn reading(line: &str) -> Result<Reading, String> {
    const FORM: &str =
        "a line is `… MILLISECONDSms: COUNT …`, such as `second 1 1000ms: 270262 requests`";
    let mut parts = line.split("ms:");
    let (Some(time), Some(rest), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("it does not have `ms:` once; {FORM}"));
    };
    let time = time.split_whitespace().next_back().unwrap_or_default();
    let count = rest.split_whitespace().next().unwrap_or_default();
    let number = |text: &str, what: &str| -> Result<u64, String> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let read = text.parse().ok().filter(|_| digits);
        read.ok_or_else(|| format!("the {what} is not a whole number; {FORM}"))
    };
    let ms = number(time, "time before `ms:`")?;
    if ms == 0 {
        return Err("it took 0 ms, from which no rate follows".to_owned());
    }
    let count = number(count, "count after `ms:`")?;
    Ok(Reading { ms, count })
}

/// The log of one run, which [`readings`] reads: its header, which is not empty, and a line for each of
/// `counts`, the requests of whole seconds. With `none_failed` each says that none did.
pub fn log(header: &str, counts: &[u64], none_failed: bool) -> String {
    let failed = if none_failed { ", 0 failed" } else { "" };
    let mut log = format!("{}\n", header.replace(['\n', '\r'], " "));
    for (at, count) in counts.iter().enumerate() {
        log.push_str(&format!(
            "second {} 1000ms: {count} requests{failed}\n",
            at + 1
        ));
    }
    log
}

/// Rates of several logs of the same time, line by line: of each line the sum of their rates. As many
/// as the shortest log has lines.
pub fn combined(logs: &[Vec<Reading>]) -> Vec<f64> {
    let lines = logs.iter().map(Vec::len).min().unwrap_or(0);
    let of_line = |line: usize| logs.iter().map(|log| log[line].rate()).sum();
    (0..lines).map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal_quantile;
    use prony_base::Random;
    use proptest::prelude::*;

    /// By hand: 2, 4, 4, 4, 5, 5, 7, 9 have mean 5 and squared deviations 32 in all; 32 / 7 = 4.571…, whose
    /// root is 2.13809. (With n instead of n - 1 it would be 2.)
    #[test]
    fn mean_and_sample_deviation_are_those_worked_out_by_hand() {
        let seen = seconds(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((seen.count, seen.mean), (8, Rate(5.0)));
        assert_eq!((seen.min, seen.max), (Rate(2.0), Rate(9.0)));
        assert!((seen.deviation.unwrap().0 - 2.138_089_935_299_395).abs() < 1e-12);
        assert!((seen.variation.unwrap().0 - 0.427_617_987_059_879).abs() < 1e-12);
        // Deviations -3 -1 -1 -1 0 0 2 4: products 3 + 1 + 1 + 0 + 0 + 0 + 8 = 13, of 32.
        assert_eq!(seen.serial, Some(Ratio(13.0 / 32.0)));
        assert_eq!(seen.interval, MeanInterval::FewSeconds);
    }

    /// Ten values of Student's (1908), whose order alternates enough to be no trend: mean 1.58,
    /// interval 0.7001 to 2.4599.
    #[test]
    fn ten_seconds_have_students_interval() {
        let seen = seconds(&[1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]).unwrap();
        let MeanInterval::Interval { low, high } = seen.interval else {
            panic!("{seen:?}");
        };
        assert!((low.0 - 0.700_114_2).abs() < 1e-6 && (high.0 - 2.459_885_8).abs() < 1e-6);
    }

    #[test]
    fn seconds_that_go_together_have_no_interval() {
        let slope: Vec<f64> = (0..30).map(|i| 1_000.0 + 10.0 * f64::from(i)).collect();
        let seen = seconds(&slope).unwrap();
        assert!(seen.serial.unwrap().0 > 0.8, "{seen:?}");
        assert_eq!(seen.interval, MeanInterval::Correlated);
    }

    #[test]
    fn one_second_has_no_deviation_and_equal_ones_no_correlation() {
        let one = seconds(&[7.0]).unwrap();
        assert_eq!(
            (one.deviation, one.variation, one.serial),
            (None, None, None)
        );
        assert_eq!(one.interval, MeanInterval::FewSeconds);
        let equal = seconds(&[7.0; 12]).unwrap();
        assert_eq!((equal.deviation, equal.serial), (Some(Rate(0.0)), None));
        let (low, high) = (Rate(7.0), Rate(7.0));
        assert_eq!(equal.interval, MeanInterval::Interval { low, high });
        assert_eq!(seconds(&[]), None);
        assert_eq!(seconds(&[f64::NAN]), None);
    }

    #[test]
    fn the_interval_holds_the_true_mean_about_as_often_as_it_says() {
        let mut random = Random::new(11);
        let (mut held, mut given) = (0, 0);
        for _ in 0..1_000 {
            let mut value = || normal_quantile(random.unit().clamp(1e-9, 0.999_999)).unwrap();
            let rates: Vec<f64> = (0..20).map(|_| 100.0 + value()).collect();
            if let MeanInterval::Interval { low, high } = seconds(&rates).unwrap().interval {
                given += 1;
                held += u32::from((low.0..=high.0).contains(&100.0));
            }
        }
        assert!((900..=990).contains(&given), "{given}");
        let share = f64::from(held) / f64::from(given);
        assert!((0.92..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn values_whose_sum_overflows_have_a_mean() {
        let seen = seconds(&[f64::MAX, f64::MAX, 0.0, f64::MAX]).unwrap();
        assert!((seen.mean.0 / f64::MAX - 0.75).abs() < 1e-15, "{seen:?}");
    }

    #[test]
    fn slices_make_whole_seconds() {
        let slices: Vec<u64> = (1..=25).collect();
        assert_eq!(whole_seconds(&slices, 100_000_000), [55.0, 155.0]);
        assert_eq!(whole_seconds(&slices[..9], 100_000_000), [0.0; 0]);
        assert_eq!(whole_seconds(&slices[..2], 1_000_000_000), [1.0, 2.0]);
        assert_eq!(whole_seconds(&slices, 0), [0.0; 0]);
        assert_eq!(whole_seconds(&slices, 300_000_000), [0.0; 0]);
        assert_eq!(whole_seconds(&slices, u64::MAX), [0.0; 0]);
    }

    const LOG: &str = "Starting 12 clients for 3 seconds\n\
        second 1 1000ms: 270262 requests, 0 failed\n\
        second 2 999ms: 270000 requests, 0 failed\n\
        [12:00:03] 1001ms: 5 ok\n";

    #[test]
    fn a_log_is_read_without_its_first_line() {
        let read = readings(LOG).unwrap();
        let expected = [(1000, 270_262), (999, 270_000), (1001, 5)];
        assert_eq!(read, expected.map(|(ms, count)| Reading { ms, count }));
        assert!((read[1].rate() - 270_270.270_27).abs() < 1e-4);
        assert_eq!(
            Reading {
                ms: 1_000,
                count: 1_003
            }
            .rate(),
            1_003.0
        );
        assert_eq!(readings("only a header\n"), Ok(Vec::new()));
        assert_eq!(readings(""), Ok(Vec::new()));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (line, reason) in [
            ("1000 270262", "`ms:` once"),
            ("1ms: 2 ms: 3", "`ms:` once"),
            ("", "`ms:` once"),
            ("second 0ms: 5", "0 ms"),
            ("second -1ms: 5", "time before `ms:` is not a whole number"),
            ("ms: 5", "time before `ms:` is not a whole number"),
            ("1000ms: 270,262", "count after `ms:` is not a whole number"),
            ("1000ms:", "count after `ms:` is not a whole number"),
            ("1000ms: 99999999999999999999", "count after `ms:`"),
        ] {
            let log = format!("\nheader\n1000ms: 1\n{line}\n1000ms: 1\n");
            let bad = readings(&log).unwrap_err();
            assert_eq!(bad.line, 4, "{line:?}");
            assert!(bad.to_string().contains(reason), "{line:?}: {bad}");
        }
    }

    #[test]
    fn logs_of_the_same_time_are_added_line_by_line() {
        let log = |of: &[(u64, u64)]| -> Vec<Reading> {
            let readings = of.iter().map(|&(ms, count)| Reading { ms, count });
            readings.collect()
        };
        let (one, other) = (
            log(&[(1000, 10), (500, 10), (1000, 9)]),
            log(&[(1000, 1), (1000, 2)]),
        );
        assert_eq!(combined(&[one.clone(), other]), [11.0, 22.0]);
        assert_eq!(combined(&[one]), [10.0, 20.0, 9.0]);
        assert_eq!(combined(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_the_ends_and_moving_all_moves_only_it(
            rates in prop::collection::vec(0.0_f64..1e6, 2..40), by in 0.0_f64..1e6,
        ) {
            let seen = seconds(&rates).unwrap();
            let slack = 1e-9 * (1.0 + seen.max.0);
            prop_assert!(seen.min.0 - slack <= seen.mean.0 && seen.mean.0 <= seen.max.0 + slack);
            let half_range = (seen.max.0 - seen.min.0) * 0.75;
            prop_assert!(seen.deviation.unwrap().0 <= half_range + slack);
            let moved: Vec<f64> = rates.iter().map(|rate| rate + by).collect();
            let moved = seconds(&moved).unwrap();
            prop_assert!((moved.mean.0 - seen.mean.0 - by).abs() < 1e-6);
            prop_assert!((moved.deviation.unwrap().0 - seen.deviation.unwrap().0).abs() < 1e-6);
        }

        #[test]
        fn what_is_written_as_a_log_is_read_again(
            counts in prop::collection::vec(any::<u64>(), 0..20), none_failed in any::<bool>(),
            header in "[a-z ]{0,9}[\n:]?ms: [0-9x]",
        ) {
            let log = log(&header, &counts, none_failed);
            let expected: Vec<Reading> =
                counts.iter().map(|&count| Reading { ms: 1_000, count }).collect();
            prop_assert_eq!(readings(&log), Ok(expected));
        }

        #[test]
        fn any_text_and_any_numbers_are_read_without_panic(
            log in "[\\x00-\\x7f\n:ms0-9é ]{0,60}", rates in prop::collection::vec(any::<f64>(), 0..12),
            slices in prop::collection::vec(any::<u64>(), 0..12), slice in any::<u64>(),
        ) {
            let _ = readings(&log);
            let _ = seconds(&rates);
            let _ = whole_seconds(&slices, slice);
        }
    }
}
