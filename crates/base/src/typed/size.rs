//! Sizes as they are typed: `512`, `64KiB`, `200MiB`, `1GiB`; a bare number is bytes.

/// Reads a size in bytes. For use as a clap value parser.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write it as 512, 64KiB, 200MiB or 1GiB");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit: u64 = match &text[digits..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = number.checked_mul(unit);
    let bytes = bytes.filter(|&bytes| bytes <= 1 << 50);
    bytes.ok_or_else(|| format!("`{text}` is more than a pebibyte"))
}

/// The same, for options of which zero makes no sense.
pub fn parse_positive(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err(format!("`{text}` is no size at all")),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("512"), Ok(512));
        assert_eq!(parse("64KiB"), Ok(65_536));
        assert_eq!(parse("200MiB"), Ok(209_715_200));
        assert_eq!(parse("1GiB"), Ok(1 << 30));
    }

    #[test]
    fn what_is_no_size_is_said() {
        for wrong in [
            "",
            "KiB",
            "-1",
            "1.5MiB",
            "64KB",
            "64 KiB",
            "99999999999GiB",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse_positive("0KiB").is_err());
    }
}
