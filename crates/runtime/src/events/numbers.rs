//! The numbers of the events that wait in one lane, oldest first, as runs.
//!
//! Events of one type come in a row, or in turn with those of other types, so that their
//! numbers rise by equal steps. Such a run is two words, whatever its length: the events of
//! a stream need no memory for their numbers. Any two numbers are a run, so that in no order
//! do they need more than eight bytes each, unless four billion others lie between them.
//! Not for: the events themselves (`lane`).

use super::rows::{Rows, Spares};

/// Numbers that rise by equal steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Run {
    first: u64,
    /// Of no meaning where there are fewer than two; then the most likely one.
    step: u32,
    count: u32,
}

impl Run {
    fn of(number: u64) -> Run {
        Run {
            first: number,
            step: 1,
            count: 1,
        }
    }

    /// Adds a number behind the others, where it goes on with their step.
    #[inline]
    fn add(&mut self, number: u64) -> bool {
        let next = u64::from(self.step) * u64::from(self.count);
        if number == self.first.wrapping_add(next) && self.count < u32::MAX {
            self.count += 1;
            return true;
        }
        self.add_second(number)
    }

    /// The second number says what the step is.
    fn add_second(&mut self, number: u64) -> bool {
        if self.count != 1 {
            return false;
        }
        let Ok(step) = u32::try_from(number - self.first) else {
            return false;
        };
        (self.step, self.count) = (step, 2);
        true
    }
}

/// The numbers of a lane, which rise.
///
/// INVARIANT: the oldest run is empty only when all are; the youngest is empty only when
/// there is none but the oldest.
#[derive(Default)]
pub(super) struct Numbers {
    oldest: Run,
    between: Rows<Run>,
    youngest: Run,
    spares: Spares<Run>,
}

impl Numbers {
    fn last(&mut self) -> &mut Run {
        match self.youngest.count {
            0 => &mut self.oldest,
            _ => &mut self.youngest,
        }
    }

    /// Adds a number that is greater than all that are here, and than all that were.
    #[inline]
    pub fn push(&mut self, number: u64) {
        if !self.last().add(number) {
            self.begin(number);
        }
    }

    #[cold]
    fn begin(&mut self, number: u64) {
        let run = Run::of(number);
        if self.oldest.count == 0 {
            self.oldest = run;
            return;
        }
        let full = std::mem::replace(&mut self.youngest, run);
        if full.count > 0 {
            self.between.push(full, &mut self.spares);
        }
    }

    /// Adds so many numbers in a row.
    pub fn extend(&mut self, first: u64, count: u64) {
        let mut left = first..first + count;
        while let Some(number) = left.next() {
            self.push(number);
            let last = self.last();
            if last.step == 1 {
                let room = u64::from(u32::MAX - last.count);
                let more = room.min(left.end - left.start);
                last.count += more as u32;
                left.start += more;
            }
        }
    }

    /// Takes the oldest. Only where there is one.
    #[inline(always)]
    pub fn pop(&mut self) -> u64 {
        let number = self.oldest.first;
        // Past the last number it may run over, and then nothing comes after it.
        self.oldest.first = number.wrapping_add(u64::from(self.oldest.step));
        self.oldest.count -= 1;
        if self.oldest.count == 0 && self.youngest.count > 0 {
            self.go_on();
        }
        number
    }

    #[cold]
    fn go_on(&mut self) {
        self.oldest = match self.between.pop(&mut self.spares) {
            Some(next) => next,
            None => std::mem::take(&mut self.youngest),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn runs(numbers: &Numbers) -> usize {
        let ends = [numbers.oldest, numbers.youngest];
        ends.iter().filter(|run| run.count > 0).count() + numbers.between.len()
    }

    #[test]
    fn equal_steps_are_one_run_and_others_one_for_two_numbers_at_most() {
        let mut numbers = Numbers::default();
        (0..1_000).for_each(|number| numbers.push(5 + number * 8));
        assert_eq!(runs(&numbers), 1);
        numbers.extend(10_000, 1 << 40);
        // The first of them still goes on with the step of eight, or does not: one more.
        assert!(runs(&numbers) <= 2 + (1 << 40 >> 32) + 1);
        let mut numbers = Numbers::default();
        let squares = (1..=1_000_u64).map(|number| number * number);
        squares.for_each(|number| numbers.push(number));
        assert_eq!(runs(&numbers), 500);
    }

    #[test]
    fn numbers_that_lie_far_apart_are_runs_of_one() {
        let mut numbers = Numbers::default();
        let far = [1, 1 << 33, 1 << 34, u64::MAX];
        far.into_iter().for_each(|number| numbers.push(number));
        assert_eq!(far.map(|_| numbers.pop()), far);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u64),
        Extend(u64, u64),
        Pop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..4_u64).prop_map(Step::Push),
            (1..4_u64, 1..9_u64).prop_map(|(gap, count)| Step::Extend(gap, count)),
            (1..12_usize).prop_map(Step::Pop),
        ]
    }

    proptest! {
        /// Beside a plain queue of numbers.
        #[test]
        fn they_leave_as_they_came(steps in proptest::collection::vec(step(), 0..200)) {
            let (mut numbers, mut plain) = (Numbers::default(), VecDeque::new());
            let mut last = 0;
            for step in steps {
                match step {
                    Step::Push(gap) => {
                        last += gap;
                        numbers.push(last);
                        plain.push_back(last);
                    }
                    Step::Extend(gap, count) => {
                        numbers.extend(last + gap, count);
                        plain.extend(last + gap..last + gap + count);
                        last += gap + count - 1;
                    }
                    Step::Pop(count) => {
                        for _ in 0..count.min(plain.len()) {
                            prop_assert_eq!(Some(numbers.pop()), plain.pop_front());
                        }
                    }
                }
                prop_assert_eq!(numbers.oldest.count == 0, plain.is_empty());
            }
        }
    }
}
