//! Lengths of time as they are typed: `500ms`, `10s`, `2m`, `1h`; a bare number is seconds, as in wrk.

use crate::Nanos;

/// Reads a length of time, of one part or of several (`1m30s`). For use as a clap value parser.
pub fn parse(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("`{text}` is not a length of time: write it as 500ms, 10s, 2m or 1h");
    let (mut length, mut rest, mut last_ns) = (0.0, text, f64::INFINITY);
    while !rest.is_empty() || length == 0.0 && last_ns.is_infinite() {
        let is_digit = |c: char| c == '.' || c.is_ascii_digit();
        let (digits, after) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (unit, after) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        let unit_ns = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            // Seconds need no unit where they are all that there is.
            "" if last_ns.is_infinite() => 1e9,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3_600e9,
            _ => return Err(wrong()),
        };
        if unit_ns >= last_ns {
            return Err(wrong());
        }
        length += number * unit_ns;
        (rest, last_ns) = (after, unit_ns);
    }
    if !length.is_finite() || length > 1e9 * 86_400.0 * 365.0 {
        return Err(format!("`{text}` is longer than a year"));
    }
    Ok(Nanos(length.round() as u64))
}

/// The same, for options of which zero makes no sense.
pub fn parse_positive(text: &str) -> Result<Nanos, String> {
    match parse(text)? {
        Nanos::ZERO => Err(format!("`{text}` is no time at all")),
        length => Ok(length),
    }
}

/// A length of time as [`parse`] reads it back, to the nanosecond: `1500ms`.
pub fn typed(length: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.iter().find(|(ns, _)| length.0.is_multiple_of(*ns));
    let (ns, unit) = whole.copied().unwrap_or((1, "ns"));
    format!("{}{unit}", length.0 / ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_read_back_as_it_was() {
        for (length, text) in [
            (Nanos::from_secs(90), "90s"),
            (Nanos::from_millis(1_500), "1500ms"),
            (Nanos(1_001), "1001ns"),
        ] {
            assert_eq!(typed(length), text);
            assert_eq!(parse(text), Ok(length));
        }
    }

    #[test]
    fn lengths_are_read_as_wrk_reads_them_and_finer() {
        let read = |text| parse(text).unwrap();
        assert_eq!(read("10"), Nanos::from_secs(10));
        assert_eq!(read("2m"), Nanos::from_secs(120));
        assert_eq!(read("1h"), Nanos::from_secs(3_600));
        assert_eq!(read("1.5s"), Nanos::from_millis(1_500));
        assert_eq!(read("250us"), Nanos::from_micros(250));
        assert_eq!(read("1m30s"), Nanos::from_secs(90));
        assert_eq!(read("1h0m1.5s"), Nanos::from_millis(3_601_500));
    }

    #[test]
    fn what_is_no_length_of_time_is_said() {
        for wrong in [
            "",
            "s",
            "10 s",
            "-1s",
            "1d",
            "1.2.3s",
            "NaN",
            "inf",
            "1e9s",
            "1s1m",
            "1m1m",
            "1m30",
            "30s5",
            "99999999999h",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse_positive("0s").is_err());
    }
}
