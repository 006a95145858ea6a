//! What a Range header asks for (RFC 9110, section 14): one range of bytes, or else it is
//! as if it were not there. Not for: conditions, or several ranges in one answer.

use std::ops::RangeInclusive;

/// What of a representation is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// All of it.
    Whole,
    /// These bytes, which are there.
    Part(RangeInclusive<u64>),
    /// None that are there.
    Unsatisfiable,
}

impl Range {
    /// What the header's value asks for of `total` bytes.
    pub fn of(range: &[u8], total: u64) -> Range {
        let Some((first, last)) = one_range(range) else {
            return Range::Whole;
        };
        let end = total.saturating_sub(1);
        match (first, last) {
            (Some(first), Some(last)) if last < first => Range::Whole,
            (Some(first), _) if first >= total => Range::Unsatisfiable,
            (Some(first), last) => Range::Part(first..=last.unwrap_or(end).min(end)),
            (None, Some(count)) if count == 0 || total == 0 => Range::Unsatisfiable,
            (None, Some(count)) => Range::Part(total.saturating_sub(count)..=end),
            (None, None) => Range::Whole,
        }
    }
}

fn one_range(range: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, set) = str::from_utf8(range).ok()?.split_once('=')?;
    let (first, last) = set.trim_matches([' ', '\t']).split_once('-')?;
    let is_bytes = unit.eq_ignore_ascii_case("bytes");
    is_bytes.then_some((place(first)?, place(last)?))
}

/// Digits alone, or nothing; a place that no number holds is behind every end.
fn place(digits: &str) -> Option<Option<u64>> {
    if digits.is_empty() {
        return Some(None);
    }
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| Some(digits.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_a_part() {
        for (range, part) in [
            ("bytes=0-0", 0..=0),
            ("bytes=0-", 0..=99),
            ("bytes=10-19", 10..=19),
            ("bytes=90-1000", 90..=99),
            ("bytes=99-", 99..=99),
            ("bytes=-1", 99..=99),
            ("bytes=-1000", 0..=99),
            ("Bytes= 5-6 ", 5..=6),
            ("bytes=7-99999999999999999999", 7..=99),
            ("bytes=-99999999999999999999", 0..=99),
        ] {
            assert_eq!(
                Range::of(range.as_bytes(), 100),
                Range::Part(part),
                "{range}"
            );
        }
    }

    #[test]
    fn a_range_behind_the_end_is_nothing() {
        for range in [
            "bytes=100-",
            "bytes=100-200",
            "bytes=-0",
            "bytes=99999999999999999999-",
        ] {
            assert_eq!(
                Range::of(range.as_bytes(), 100),
                Range::Unsatisfiable,
                "{range}"
            );
        }
        assert_eq!(Range::of(b"bytes=0-", 0), Range::Unsatisfiable);
        assert_eq!(Range::of(b"bytes=-5", 0), Range::Unsatisfiable);
    }

    #[test]
    fn what_is_not_one_range_of_bytes_is_not_heeded() {
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=1",
            "bytes=2-1",
            "bytes=a-b",
            "bytes=1-2,4-5",
            "bytes=+1-2",
            "bytes=1--2",
            "lines=1-2",
            "bytes=1 - 2",
        ] {
            assert_eq!(Range::of(range.as_bytes(), 100), Range::Whole, "{range}");
        }
        assert_eq!(Range::of(b"bytes=\xff-", 100), Range::Whole);
    }
}
