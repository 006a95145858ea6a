//! Numbers as a reader wants them: three significant digits and a unit that fits.

use crate::ratio::OpenSide;
use prony_base::plural;
use prony_record::NEVER;

use crate::ratio::RatioFigure;

/// A value that cannot be given.
pub const NOTHING: &str = "–";

/// A unit: how many make one of it, and what it is called.
type Scale = (f64, &'static str);

const COUNTS: &[Scale] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
const TIMES: &[Scale] = &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const KIB: f64 = 1024.0;
const SIZES: &[Scale] = &[
    (1.0, "B"),
    (KIB, "KiB"),
    (KIB * KIB, "MiB"),
    (KIB * KIB * KIB, "GiB"),
];

/// The largest unit in which `value`, rounded to three digits, is at least 1.
fn fitting(scales: &'static [Scale], value: f64) -> &'static Scale {
    let fits = |scale: &&Scale| value.abs() / scale.0 >= 0.9995;
    scales.iter().rev().find(fits).unwrap_or(&scales[0])
}

fn joined(number: String, unit: &str) -> String {
    if unit.is_empty() {
        number
    } else {
        format!("{number} {unit}")
    }
}

fn scaled(scales: &'static [Scale], value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let scale = fitting(scales, value);
    joined(three(value / scale.0), scale.1)
}

/// Two ends in the unit of the higher: `85.1–88.9 k`.
fn scaled_ends(scales: &'static [Scale], low: f64, high: f64) -> String {
    if !(low.is_finite() && high.is_finite()) {
        return NOTHING.to_owned();
    }
    let scale = fitting(scales, high);
    let (low, high) = (three(low / scale.0), three(high / scale.0));
    joined(format!("{low}–{high}"), scale.1)
}

/// Three significant digits, as far as they stand behind the point: `4.59`, `67.2`, `1340`.
pub fn three(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 => 0,
        _ if size < 0.0009995 => return format!("{value:.2e}"),
        _ if size < 0.009995 => 5,
        _ if size < 0.09995 => 4,
        _ if size < 0.9995 => 3,
        _ if size < 9.995 => 2,
        _ if size < 99.95 => 1,
        _ => 0,
    };
    if size >= 1e15 {
        return format!("{value:.2e}");
    }
    format!("{value:.decimals$}")
}

/// A rate, without its unit: `87.0 k`.
pub fn rate(per_second: f64) -> String {
    scaled(COUNTS, per_second)
}

/// A time with its unit: `4.59 ms`.
///
/// One that never ended ([`NEVER`]) is `∞`.
pub fn time(ns: f64) -> String {
    match ns == NEVER as f64 {
        true => "∞".to_owned(),
        false => scaled(TIMES, ns),
    }
}

/// A size with its unit: `45.2 MiB`.
pub fn bytes(count: f64) -> String {
    scaled(SIZES, count)
}

/// The unit of a figure, by which it is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FigureUnit {
    /// A second, which its words say.
    #[default]
    Rate,
    /// A second, which is written behind it.
    PerSecond,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// A part of a whole.
    Percent,
    /// A ratio.
    Ratio,
    /// A count, or any other number.
    Number,
    /// Three digits, in units of so much, which the head of a column says.
    Of(u64),
}

/// Numbers of things.
pub const COUNT: FigureUnit = FigureUnit::Number;
/// Times.
pub const TIME: FigureUnit = FigureUnit::Time;
/// Times in microseconds.
pub const MICROS: FigureUnit = FigureUnit::Of(1_000);
/// Times in seconds.
pub const SECONDS: FigureUnit = FigureUnit::Of(1_000_000_000);
/// Sizes.
pub const BYTES: FigureUnit = FigureUnit::Bytes;
/// Bytes a second in MiB.
pub const MIB: FigureUnit = FigureUnit::Of(1 << 20);
/// Numbers a second.
pub const RATE: FigureUnit = FigureUnit::Rate;

impl FigureUnit {
    /// The scales of its numbers, and what stands behind them.
    fn scales(self) -> Option<(&'static [Scale], &'static str)> {
        match self {
            FigureUnit::Rate => Some((COUNTS, "")),
            FigureUnit::PerSecond => Some((COUNTS, "/s")),
            FigureUnit::Time => Some((TIMES, "")),
            FigureUnit::Bytes => Some((SIZES, "")),
            FigureUnit::BytesPerSecond => Some((SIZES, "/s")),
            _ => None,
        }
    }

    /// A value with its unit.
    pub fn text(self, value: f64) -> String {
        match (self.scales(), self) {
            (_, FigureUnit::Time) => time(value),
            (Some((scales, behind)), _) => scaled(scales, value) + behind,
            (None, FigureUnit::Percent) => percent(value),
            (None, FigureUnit::Ratio) => ratio(value),
            (None, FigureUnit::Of(one)) => three(value / one as f64),
            // Averages of a few things need not be whole.
            (None, _) if value.abs() < 100.0 && value.fract() != 0.0 => three(value),
            (None, _) if (0.0..1e15).contains(&value) => count(value.round() as u64),
            (None, _) => three(value),
        }
    }

    /// Two ends of one.
    pub fn ends(self, low: f64, high: f64) -> String {
        match self.scales() {
            Some(_) if high == NEVER as f64 => format!("{}–{}", self.text(low), self.text(high)),
            Some((scales, behind)) => scaled_ends(scales, low, high) + behind,
            None => format!("{}–{}", self.text(low), self.text(high)),
        }
    }

    /// Whether round numbers of it are powers of two.
    pub fn is_binary(self) -> bool {
        matches!(self, BYTES | MIB | FigureUnit::BytesPerSecond)
    }
}

/// A part of a whole with one decimal at the most: `95.2 %`, `0.7 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NOTHING.to_owned();
    }
    let percents = share * 100.0;
    if percents.abs() >= 1e15 {
        return format!("{percents:.2e} %");
    }
    let decimals = usize::from(percents.abs() < 99.95);
    format!("{percents:.decimals$} %")
}

/// A ratio with two decimals, or three digits where it is small: `1.23`, `0.0456`.
pub fn ratio(value: f64) -> String {
    if (0.1..1000.0).contains(&value) {
        format!("{value:.2}")
    } else {
        three(value)
    }
}

/// A ratio as a change, with its ends: `+28 % (+4.2 to +58)`, `−91 % (−92 to −90)`; as a multiple where all of it is
/// beyond twice: `3.10 × (2.92–3.29)`; where it is a bound, `at least` before it or `or lower` behind it: `−19 % or lower (−34 to −1.9)`.
pub fn change_of(of: &RatioFigure) -> String {
    change_words(of.ratio, of.figure().ends(), of.bound)
}

/// The same of a ratio and its ends, where it has some.
pub fn change_words(of: f64, ends: Option<(f64, f64)>, bound: Option<OpenSide>) -> String {
    let (before, after) = match bound {
        Some(OpenSide::AtLeast) => ("at least ", ""),
        Some(OpenSide::AtMost) => ("", " or lower"),
        None => ("", ""),
    };
    // Of so little, a percentage tells nothing any more.
    let (is_multiple, show): (bool, fn(f64) -> String) = match (0.01..2.0).contains(&of) {
        true => (false, change),
        false => (true, ratio),
    };
    let unit = if is_multiple { "×" } else { "%" };
    let ends = ends.map_or_else(String::new, |(low, high)| {
        let between = if is_multiple { "–" } else { " to " };
        format!(" ({}{between}{})", show(low), show(high))
    });
    format!("{before}{} {unit}{after}{ends}", show(of))
}

/// `22 of 5,000,000`.
pub fn part_of((part, all): (u64, u64)) -> String {
    format!("{} of {}", count(part), count(all))
}

/// A ratio as a change in per cent, with its sign and without the unit: `+4.2`, `−91`, `0.0`.
pub fn change(ratio: f64) -> String {
    let percents = (ratio - 1.0) * 100.0;
    if !percents.is_finite() {
        return NOTHING.to_owned();
    }
    let decimals = usize::from(percents.abs() < 9.95);
    let text = format!("{:.decimals$}", percents.abs());
    let sign = match percents {
        _ if text.bytes().all(|b| matches!(b, b'0' | b'.')) => "",
        p if p < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{text}")
}

/// A count in full, by thousands: `20,000`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A round length of time in words: `10 s`, `1 min 30 s`, `2 h 5 min`.
pub fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => time(ns as f64).replace(".00 ", " ").replace(".0 ", " "),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A number with its noun: `1 connection`, `1,000 connections`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {}", count(number), plural(number, one))
}

/// A moment in UTC: `2026-03-01 14:05 UTC`. (Civil date from days: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms".)
pub fn moment(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let days = minutes / 1440 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_their_sign_and_no_zero_has_one() {
        let said = [1.282, 1.042, 1.0004, 0.9996, 1.0, 0.995, 0.0902, 0.905].map(change);
        assert_eq!(
            said,
            ["+28", "+4.2", "0.0", "0.0", "0.0", "−0.5", "−91", "−9.5"]
        );
        assert_eq!(change(f64::NAN), NOTHING);
        let mut of = RatioFigure::from_pairs("a", vec![(3.0, 1.0), (3.2, 1.0)]).expect("pairs");
        assert_eq!(change_of(&of), "3.10 × (3.00–3.20)");
        of.bound = Some(OpenSide::AtLeast);
        (of.ratio, of.low, of.high) = (1.282, 1.042, 1.579);
        assert_eq!(change_of(&of), "at least +28 % (+4.2 to +58)");
    }

    #[test]
    fn numbers_have_three_digits_and_a_fitting_unit() {
        assert_eq!(rate(87_048.8), "87.0 k");
        assert_eq!(rate(999.6), "1.00 k");
        assert_eq!(rate(999_600.0), "1.00 M");
        assert_eq!(rate(950.0), "950");
        assert_eq!(RATE.ends(9_980.0, 10_120.0), "9.98–10.1 k");
        assert_eq!(time(28_000.0), "28.0 µs");
        assert_eq!(time(999_960.0), "1.00 ms");
        assert_eq!(time(1.07e9), "1.07 s");
        assert_eq!(time(NEVER as f64), "∞");
        assert_eq!(bytes(47_400_000.0), "45.2 MiB");
        assert_eq!(MICROS.text(7_320.0), "7.32");
        assert_eq!(percent(0.9521), "95.2 %");
        assert_eq!(three(0.0), "0");
        assert_eq!(three(0.012_34), "0.0123");
        assert_eq!(ratio(1.234), "1.23");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(7), "7");
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        for text in [
            rate(f64::NAN),
            time(f64::INFINITY),
            percent(f64::NAN),
            RATE.ends(0.0, f64::NAN),
        ] {
            assert_eq!(text, NOTHING);
        }
    }

    #[test]
    fn lengths_and_moments_read_as_people_write_them() {
        assert_eq!(duration(10_000_000_000), "10 s");
        assert_eq!(duration(1_500_000_000), "1.50 s");
        assert_eq!(duration(500_000_000), "500 ms");
        assert_eq!(duration(90_000_000_000), "1 min 30 s");
        assert_eq!(duration(7_500_000_000_000), "2 h 5 min");
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_827_696_000), "2000-02-29 12:34 UTC");
        assert_eq!(moment(1_772_373_900_000), "2026-03-01 14:05 UTC");
        let _ = moment(u64::MAX);
    }
}
