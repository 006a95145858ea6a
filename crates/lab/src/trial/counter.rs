//! The number that a service keeps: how it is read out of an answer, and when it has come
//! to rest. Pure.
//!
//! What was acknowledged must be in the number, but not at once: instances that share a
//! backing service each know what the others counted only after a while. So a number is
//! read again and again until it can be no other, or does not change any more.
//!
//! Not for: asking ([`crate::exchange`]), or judging what is missing
//! ([`prony_record::CounterReport`]).

use prony_base::{Instant, Nanos};

/// How long a number must stay as it is where it may well be right.
const QUICK: Nanos = Nanos::from_millis(250);
/// How long where there is a reason to doubt it: longer than a service takes that tells
/// its store once a second what it has counted.
const SLOW: Nanos = Nanos::from_millis(2_500);
/// Characters of an answer that a message shows.
const SHOWN_CHARS_MAX: usize = 60;

/// The number in an answer: decimal, with space around it at the most.
pub fn number(status: u16, body: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(body);
    let start: String = text.trim().chars().take(SHOWN_CHARS_MAX).collect();
    let shown = start.escape_debug();
    if status != 200 {
        return Err(format!(
            "the answer has status {status} and begins `{shown}`"
        ));
    }
    let digits = text.trim();
    let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = digits.parse().ok().filter(|_| only_digits);
    parsed.ok_or_else(|| format!("the answer is no number but begins `{shown}`"))
}

/// What the number must be, as far as that is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// The least that it must come to.
    pub least: u64,
    /// The most that it may come to.
    pub most: u64,
}

/// A number on its way to rest.
#[derive(Debug)]
pub struct Resting {
    expected: Option<Expected>,
    /// The instances have one number together, and not each its own.
    shared: bool,
    /// What it was when it last changed, and when that was.
    since: Option<(u64, Instant)>,
    seen: Vec<u64>,
}

impl Resting {
    /// A number of which nothing is known yet. `shared`: several instances keep it together;
    /// otherwise what each has is added up.
    pub fn new(expected: Option<Expected>, shared: bool) -> Resting {
        Resting {
            expected,
            shared,
            since: None,
            seen: Vec::new(),
        }
    }

    /// Takes what each instance said at `now`; the number, once it rests.
    pub fn add(&mut self, now: Instant, readings: &[u64]) -> Option<u64> {
        self.seen = readings.to_vec();
        let Some(number) = self.combine(readings) else {
            self.since = None;
            return None;
        };
        let exact =
            |expected: Expected| expected.least == expected.most && expected.least == number;
        if self.expected.is_some_and(exact) {
            return Some(number);
        }
        match self.since {
            Some((before, since)) if before == number => {
                (now.since(since) >= self.patience(number, readings)).then_some(number)
            }
            _ => {
                self.since = Some((number, now));
                None
            }
        }
    }

    /// The one number; `None`: they do not agree.
    fn combine(&self, readings: &[u64]) -> Option<u64> {
        if !self.shared {
            return Some(
                readings
                    .iter()
                    .fold(0, |sum, &number| sum.saturating_add(number)),
            );
        }
        let first = *readings.first()?;
        readings.iter().all(|&one| one == first).then_some(first)
    }

    fn patience(&self, number: u64, readings: &[u64]) -> Nanos {
        let too_few = self
            .expected
            .is_some_and(|expected| number < expected.least);
        // Two that have not heard of each other may have counted as much by chance.
        let by_chance = self.shared && readings.len() > 1;
        if too_few || by_chance { SLOW } else { QUICK }
    }

    /// Why it does not rest, in words.
    pub fn unrest(&self) -> String {
        let seen: Vec<String> = self.seen.iter().map(u64::to_string).collect();
        let seen = seen.join(", ");
        match self.since {
            None => format!("the instances do not agree on it: {seen}"),
            Some(_) => format!("it does not come to rest; it is {seen} now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Nanos = Nanos::from_millis(50);

    /// Readings 50 ms apart until the number rests: the number and how many it took.
    fn settle(
        resting: &mut Resting,
        readings: impl Iterator<Item = Vec<u64>>,
    ) -> Option<(u64, usize)> {
        let mut now = Instant(1);
        for (index, readings) in readings.enumerate() {
            now = now + STEP;
            if let Some(number) = resting.add(now, &readings) {
                return Some((number, index + 1));
            }
        }
        None
    }

    fn exactly(number: u64) -> Option<Expected> {
        Some(Expected {
            least: number,
            most: number,
        })
    }

    #[test]
    fn a_number_that_can_be_no_other_is_taken_at_once() {
        let readings = [vec![3], vec![5], vec![7]];
        let mut resting = Resting::new(exactly(5), false);
        assert_eq!(settle(&mut resting, readings.into_iter()), Some((5, 2)));
    }

    #[test]
    fn a_number_that_is_too_small_is_waited_for_longer() {
        let of = |expected| {
            settle(
                &mut Resting::new(expected, false),
                std::iter::repeat(vec![4]),
            )
        };
        assert_eq!(of(None), Some((4, 6)));
        assert_eq!(of(exactly(3)), Some((4, 6)), "too many: more will not help");
        assert_eq!(of(exactly(5)), Some((4, 51)));
    }

    #[test]
    fn instances_that_share_a_number_must_agree_and_stay_so() {
        let mut resting = Resting::new(None, true);
        // Both counted as much before they heard of each other.
        let by_chance = std::iter::repeat_n(vec![5, 5], 20);
        let apart = std::iter::repeat_n(vec![10, 5], 3);
        let readings = by_chance
            .chain(apart)
            .chain(std::iter::repeat(vec![10, 10]));
        assert_eq!(settle(&mut resting, readings), Some((10, 23 + 51)));
        let mut never = Resting::new(exactly(5), true);
        assert_eq!(
            settle(&mut never, std::iter::repeat_n(vec![5, 6], 999)),
            None
        );
        assert_eq!(never.unrest(), "the instances do not agree on it: 5, 6");
    }

    #[test]
    fn instances_with_numbers_of_their_own_are_added_up() {
        let mut resting = Resting::new(exactly(11), false);
        assert_eq!(resting.add(Instant(1), &[5, 6]), Some(11));
    }

    #[test]
    fn only_a_number_is_a_number() {
        assert_eq!(number(200, b" 42\n"), Ok(42));
        assert_eq!(number(200, b"18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "+1", "-1", "1e2", "18446744073709551616", "<html>"] {
            let error = number(200, wrong.as_bytes()).expect_err(wrong);
            assert!(error.contains(&format!("`{wrong}`")), "{error}");
        }
        let error = number(404, b"7").unwrap_err();
        assert!(error.contains("status 404"), "{error}");
    }

    proptest! {
        #[test]
        fn no_answer_makes_reading_panic(status in 0_u16..1000, body in prop::collection::vec(any::<u8>(), 0..200)) {
            let read = number(status, &body);
            prop_assert!(status == 200 || read.is_err());
        }
    }
}
