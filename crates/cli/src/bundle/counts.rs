//! The pairs of a histogram's file as differences, which compress to half: `"counts":[[900,1],[950,2]]` to `900 1 50 2`.
//!
//! A file is coded only where decoding gives its very bytes; all others stay as they are.

/// Name of the coding in a manifest.
pub const NAME: &str = "counts";
/// What stands before the pairs.
const BEFORE: &str = "\"counts\":[";
/// What stands between what was before the pairs, the pairs, and what was behind them.
const MARK: char = '\u{1}';

/// The coded form of a histogram's file; `None` where it is none, or does not come back as it was.
pub fn coded(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let at = text.find(BEFORE)? + BEFORE.len();
    let (head, rest) = text.split_at(at);
    let end = rest.find("]]")? + 1;
    let (pairs, tail) = rest.split_at(end);
    let mut out = format!("{head}{MARK}");
    let mut last: u64 = 0;
    for pair in pairs.strip_prefix('[')?.strip_suffix(']')?.split("],[") {
        let (value, count) = pair.split_once(',')?;
        let value: u64 = value.parse().ok()?;
        out.push_str(&format!("{} {count} ", value.checked_sub(last)?));
        last = value;
    }
    out.push(MARK);
    out.push_str(tail);
    let out = out.into_bytes();
    (decoded(&out, bytes.len() as u64).as_deref() == Some(bytes)).then_some(out)
}

/// The file that [`coded`] made `bytes` of, if it has `length` bytes; it never grows beyond that.
pub fn decoded(bytes: &[u8], length: u64) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut parts = text.splitn(3, MARK);
    let (head, pairs, tail) = (parts.next()?, parts.next()?, parts.next()?);
    let mut out = head.to_owned();
    let mut last: u64 = 0;
    let mut words = pairs.split_ascii_whitespace();
    let mut is_first = true;
    while let Some(word) = words.next() {
        last = last.checked_add(word.parse().ok()?)?;
        let comma = if is_first { "" } else { "," };
        is_first = false;
        out.push_str(&format!("{comma}[{last},{}]", words.next()?));
        if out.len() as u64 > length {
            return None;
        }
    }
    out.push_str(tail);
    (out.len() as u64 == length).then(|| out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_byte_for_byte() {
        let text =
            b"{\"schema\":1,\"counts\":[[900,1],[950,2],[18446744073709551615,3]],\"x\":1}\n";
        let packed = coded(text).expect("coded");
        assert!(packed.len() < text.len());
        assert_eq!(
            decoded(&packed, text.len() as u64).as_deref(),
            Some(&text[..])
        );
        // A length that is not its own is refused, before more than that is made.
        assert_eq!(decoded(&packed, 20), None);
        assert_eq!(decoded(&packed, 1 << 40), None);
    }

    #[test]
    fn what_would_not_come_back_is_not_coded() {
        for text in [
            "",
            "{}",
            "{\"counts\":[]}",
            "{\"counts\":[[1, 2]]}",
            "{\"counts\":[[2,1],[1,1]]}",
            "{\"counts\":[[01,1]]}",
            "{\"counts\":[[1,1,1]]}",
            "{\"counts\":[[1,\u{1}]]}",
        ] {
            match coded(text.as_bytes()) {
                None => {}
                Some(packed) => assert_eq!(
                    decoded(&packed, text.len() as u64).as_deref(),
                    Some(text.as_bytes())
                ),
            }
        }
        assert_eq!(coded(b"{\"counts\":[[1, 2]]}"), None);
    }
}
