//! Which status codes are expected of the answers to each step. Without a scenario there is one step.

/// Status codes are three digits; a word of bits has 64.
const WORDS: usize = 16;

/// Sets of status codes, by step.
#[derive(Clone, Debug)]
pub struct ExpectedStatus(Box<[[u64; WORDS]]>);

impl ExpectedStatus {
    /// Those of each step; where none are given, 200 to 399.
    pub fn new<'a>(steps: impl Iterator<Item = &'a [u16]>) -> ExpectedStatus {
        let set = |codes: &[u16]| {
            let mut set = [0; WORDS];
            let usual: Vec<u16> = (200..400).collect();
            let codes = if codes.is_empty() { &usual } else { codes };
            for &code in codes {
                if let Some(word) = set.get_mut(usize::from(code / 64)) {
                    *word |= 1 << (code % 64);
                }
            }
            set
        };
        ExpectedStatus(steps.map(set).collect())
    }

    /// Whether an answer to `step` with this status is as expected.
    pub fn has(&self, step: u16, status: u16) -> bool {
        let word = self
            .0
            .get(usize::from(step))
            .and_then(|set| set.get(usize::from(status / 64)));
        word.is_some_and(|word| word >> (status % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_own_and_the_usual_ones_are_those_of_success() {
        let own: [&[u16]; 2] = [&[], &[404, 999]];
        let expected = ExpectedStatus::new(own.into_iter());
        for (step, status, is_expected) in [
            (0, 199, false),
            (0, 200, true),
            (0, 399, true),
            (0, 400, false),
            (1, 200, false),
            (1, 404, true),
            (1, 999, true),
            (1, u16::MAX, false),
            (2, 200, false),
        ] {
            assert_eq!(expected.has(step, status), is_expected, "{step} {status}");
        }
    }
}
