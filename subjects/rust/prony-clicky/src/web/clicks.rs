//! Numbers as they stand in requests and answers: clicks in, totals out. Without a copy on
//! the heap, because this is the hot path.

/// Clicks that one request may bring.
pub const CLICKS_MAX: u64 = 500;

/// The clicks that a body says: decimal digits, at most three of them, from 0 to
/// [`CLICKS_MAX`]. No sign, no space, no exponent.
#[inline]
pub fn parse(body: &[u8]) -> Option<u64> {
    if body.is_empty() || body.len() > 3 {
        return None;
    }
    let mut clicks = 0;
    for byte in body {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        clicks = clicks * 10 + u64::from(digit);
    }
    (clicks <= CLICKS_MAX).then_some(clicks)
}

/// A number in decimal, where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    bytes: [u8; 20],
    start: usize,
}

/// Two digits at once: halves the divisions.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

impl Digits {
    /// The digits of `number`.
    #[inline]
    pub fn of(mut number: u64) -> Digits {
        let mut bytes = [0; 20];
        let mut start = 20;
        while number >= 100 {
            let pair = 2 * (number % 100) as usize;
            number /= 100;
            start -= 2;
            bytes[start..start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        }
        if number >= 10 {
            let pair = 2 * number as usize;
            start -= 2;
            bytes[start..start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        } else {
            start -= 1;
            bytes[start] = b'0' + number as u8;
        }
        Digits { bytes, start }
    }

    /// As bytes of ASCII.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_that_is_allowed_is_read_and_no_other() {
        for clicks in 0..=2_000_u64 {
            let expected = (clicks <= CLICKS_MAX).then_some(clicks);
            assert_eq!(parse(clicks.to_string().as_bytes()), expected);
        }
        assert_eq!(parse(b"007"), Some(7));
        for wrong in [
            "", "-1", "+1", "501", "1e2", " 5", "5 ", "5\n", "0x1", "1.0", "0500", "٣", "\0",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_a_parser_of_text_would(body in prop::collection::vec(any::<u8>(), 0..6)) {
            let text = std::str::from_utf8(&body).ok();
            let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let expected = digits
                .filter(|text| text.len() <= 3)
                .and_then(|text| text.parse().ok())
                .filter(|&clicks| clicks <= CLICKS_MAX);
            prop_assert_eq!(parse(&body), expected);
        }

        #[test]
        fn digits_are_those_of_the_standard_library(number in any::<u64>(), shift in 0..64) {
            let number = number >> shift;
            prop_assert_eq!(Digits::of(number).as_bytes().to_vec(), number.to_string().into_bytes());
        }
    }

    #[test]
    fn the_ends_have_their_digits() {
        for number in [0, 9, 10, 99, 100, 101, 999, 1_000, u64::MAX] {
            assert_eq!(Digits::of(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
