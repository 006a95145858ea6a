//! Rates and numbers of things as they are typed: `1000`, `2.5k`, `1M`; and rates that change, as `0:100,30s:1000`.

use super::duration;
use crate::Nanos;

/// Largest rate that is read, a second: one a nanosecond.
pub const RATE_MAX: f64 = 1e9;
/// Points that [`stages`] reads at the most.
pub const POINTS_MAX: usize = 1_000;

/// Reads a rate a second, more than 0. For use as a clap value parser.
pub fn parse(text: &str) -> Result<f64, String> {
    match parse_any(text)? {
        0.0 => Err(format!(
            "a rate of {text} asks for nothing: it must be more than 0"
        )),
        rate => Ok(rate),
    }
}

/// Reads a rate a second; 0, too.
pub fn number_of(text: &str) -> Result<f64, String> {
    parse_any(text)
}

/// The same, where 0 is a pause.
fn parse_any(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a rate: write it as 1000, 0.5, 2.5k or 1M, a second");
    let rate = number(text).ok_or_else(wrong)?;
    match rate <= RATE_MAX {
        true => Ok(rate),
        false => Err(format!("a rate of {text} is more than {RATE_MAX} a second")),
    }
}

/// Reads a number of things: `400`, `10k`, `1M`. For use as a clap value parser.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a whole number: write it as 400, 10k or 1M");
    let number = number(text).ok_or_else(wrong)?;
    // Above this a float is no longer every whole number.
    if number.fract() != 0.0 || number > 9e15 {
        return Err(wrong());
    }
    Ok(number as u64)
}

/// Reads points of time and rate, `0:100,30s:1000,60s:1000`: their times grow, and at least one rate is not 0.
pub fn stages(text: &str) -> Result<Vec<(Nanos, f64)>, String> {
    let mut points: Vec<(Nanos, f64)> = Vec::new();
    for point in text.split(',') {
        let point = point.trim();
        let Some((at, rate)) = point.split_once(':') else {
            return Err(format!(
                "`{point}` is no point: write TIME:RATE, such as 30s:1000"
            ));
        };
        let at = duration::parse(at.trim())?;
        if let Some((before, _)) = points.last().filter(|(before, _)| at <= *before) {
            let before = duration::typed(*before);
            return Err(format!(
                "`{point}` does not come after {before}: the times must grow"
            ));
        }
        points.push((at, parse_any(rate.trim())?));
        if points.len() > POINTS_MAX {
            return Err(format!("there are more than {POINTS_MAX} points"));
        }
    }
    match points.iter().any(|(_, rate)| *rate > 0.0) {
        true => Ok(points),
        false => Err("all rates are 0: nothing would be sent".to_owned()),
    }
}

fn number(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c != '.' && !c.is_ascii_digit());
    let (digits, unit) = text.split_at(split.unwrap_or(text.len()));
    let unit = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    Some(number * unit).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_fraction_and_a_unit() {
        assert_eq!(parse("1000"), Ok(1_000.0));
        assert_eq!(parse("0.5"), Ok(0.5));
        assert_eq!(parse("2.5k"), Ok(2_500.0));
        assert_eq!(parse("1M"), Ok(1e6));
        assert_eq!(count("10k"), Ok(10_000));
        assert_eq!(count("0"), Ok(0));
    }

    #[test]
    fn what_is_no_rate_is_said() {
        for wrong in [
            "", "k", "-1", "1 k", "1e3", "NaN", "inf", "2G", "1kk", "1/s",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for zero in ["0", "0.0", "0k"] {
            assert!(parse(zero).unwrap_err().contains("more than 0"), "{zero}");
        }
        for wrong in ["", "1.5", "-3", "99999999999999999999"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stages_are_points_whose_times_grow() {
        let read = stages("0:100, 30s:1k,1m:0").unwrap();
        let points = [(0, 100.0), (30, 1_000.0), (60, 0.0)];
        assert_eq!(read, points.map(|(at, rate)| (Nanos::from_secs(at), rate)));
        for (wrong, why) in [
            ("", "TIME:RATE"),
            ("100", "TIME:RATE"),
            ("0:100,0:200", "the times must grow"),
            ("5s:1,3s:2", "does not come after 5s"),
            ("0:0,9s:0", "nothing would be sent"),
            ("0:x", "is not a rate"),
            ("x:1", "is not a length of time"),
        ] {
            let said = stages(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
        let many = vec!["1:1"; POINTS_MAX + 2].join(",");
        assert!(stages(&many).is_err());
    }
}
