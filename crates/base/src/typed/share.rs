//! Parts of a whole as they are typed: `5%`, `0.05`.

/// Reads a part of a whole, under 1. For use as a clap value parser.
pub fn parse(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let share = number.parse::<f64>().ok().filter(|_| plain);
    match share.map(|share| share / scale) {
        Some(share) if share < 1.0 => Ok(share),
        Some(_) => Err(format!(
            "`{text}` is not under 100 %: write it as 5% or 0.05"
        )),
        None => Err(format!("`{text}` is no part: write it as 5% or 0.05")),
    }
}

/// The same, for options of which zero makes no sense.
pub fn parse_positive(text: &str) -> Result<f64, String> {
    match parse(text)? {
        0.0 => Err(format!("`{text}` is no part at all")),
        share => Ok(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_per_cent_or_a_number_under_one() {
        assert_eq!(parse("5%"), Ok(0.05));
        assert_eq!(parse("2.5 %"), Ok(0.025));
        assert_eq!(parse("0.05"), Ok(0.05));
        assert_eq!(parse("0"), Ok(0.0));
        assert_eq!(parse_positive("2%"), Ok(0.02));
        assert!(parse_positive("0%").is_err());
        for wrong in ["", "%", "5", "100%", "-1%", "1e-2", "inf", "nan", "5%%"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
