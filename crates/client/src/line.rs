//! A first-in, first-out queue whose entries can leave from any place.
//! Not for: what they wait for (`pool`, `http2`).
//!
//! An entry that leaves stays in its place, marked, until the front reaches it or half of the
//! queue consists of such entries: leaving costs amortised O(1).

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// An entry of a [`Line`], which holds a mark that only the line changes.
pub(super) trait Queued {
    fn mark(&self) -> &Mark;
}

/// Whether the entry is in a line.
#[derive(Debug, Default)]
pub(super) struct Mark(Cell<bool>);

/// A queue of entries that can leave from any place.
#[derive(Debug)]
pub(super) struct Line<T> {
    /// INVARIANT: the first one has not left, or there is none.
    all: VecDeque<Rc<T>>,
    /// Those of `all` that have left.
    left: usize,
    /// Entries looked at, added or removed so far: the cost of the line, for tests.
    steps: u64,
}

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        Line {
            all: VecDeque::new(),
            left: 0,
            steps: 0,
        }
    }
}

impl<T: Queued> Line<T> {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many entries wait.
    pub fn len(&self) -> usize {
        self.all.len() - self.left
    }

    /// The entries that wait, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.all.iter().filter(|one| one.mark().0.get())
    }

    pub fn first(&self) -> Option<&Rc<T>> {
        self.all.front()
    }

    pub fn push_back(&mut self, one: Rc<T>) {
        self.steps += 1;
        one.mark().0.set(true);
        self.all.push_back(one);
    }

    pub fn push_front(&mut self, one: Rc<T>) {
        self.steps += 1;
        one.mark().0.set(true);
        self.all.push_front(one);
    }

    pub fn pop_front(&mut self) -> Option<Rc<T>> {
        self.steps += 1;
        let first = self.all.pop_front()?;
        first.mark().0.set(false);
        self.keep_first();
        Some(first)
    }

    /// Removes an entry, wherever it is; does nothing where it is in no line.
    pub fn leave(&mut self, one: &T) {
        self.steps += 1;
        if !one.mark().0.replace(false) {
            return;
        }
        self.left += 1;
        self.keep_first();
        if self.left * 2 > self.all.len() {
            self.steps += self.all.len() as u64;
            self.all.retain(|one| one.mark().0.get());
            self.left = 0;
        }
    }

    fn keep_first(&mut self) {
        while self.all.front().is_some_and(|one| !one.mark().0.get()) {
            self.steps += 1;
            self.all.pop_front();
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_base::Random;

    use super::*;

    #[derive(Default)]
    struct One {
        number: usize,
        mark: Mark,
    }

    impl Queued for One {
        fn mark(&self) -> &Mark {
            &self.mark
        }
    }

    fn line(count: usize) -> (Line<One>, Vec<Rc<One>>) {
        let mut line = Line::default();
        let all = (0..count).map(|number| {
            Rc::new(One {
                number,
                mark: Mark::default(),
            })
        });
        let all: Vec<_> = all.collect();
        all.iter().for_each(|one| line.push_back(one.clone()));
        (line, all)
    }

    #[test]
    fn the_whole_line_was_looked_through_at_every_departure() {
        const COUNT: usize = 10_000;
        let forwards = |place| place;
        let backwards = |place| COUNT - 1 - place;
        // 7 and 10,000 have no common divisor: each comes once.
        let across = |place| place * 7 % COUNT;
        for order in [forwards as fn(usize) -> usize, backwards, across] {
            let (mut line, all) = line(COUNT);
            for place in 0..COUNT {
                line.leave(&all[order(place)]);
            }
            assert!(line.is_empty());
            assert!(line.steps <= 6 * COUNT as u64, "{}", line.steps);
        }
        // Entries that were served leave, too, while all others wait.
        let (mut line, all) = line(COUNT);
        for one in &all {
            assert_eq!(line.pop_front().map(|first| first.number), Some(one.number));
            line.leave(one);
        }
        assert!(line.steps <= 6 * COUNT as u64, "{}", line.steps);
    }

    #[test]
    fn those_who_stay_are_served_in_their_order() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut line, all) = line(50);
            let mut expected: VecDeque<usize> = (0..50).collect();
            let mut served = Vec::new();
            while !expected.is_empty() {
                let one = random.below(50) as usize;
                match random.below(3) {
                    0 => {
                        let first = line.pop_front().map(|first| first.number);
                        assert_eq!(first, expected.pop_front());
                        served.extend(first);
                    }
                    // Sent behind another in vain, it is back in front.
                    1 if random.chance(1, 2) => {
                        if let Some(back) = served.pop() {
                            line.push_front(all[back].clone());
                            expected.push_front(back);
                        }
                    }
                    _ => {
                        line.leave(&all[one]);
                        expected.retain(|&other| other != one);
                    }
                }
                let first = line.first().map(|first| first.number);
                assert_eq!(
                    (first, line.is_empty()),
                    (expected.front().copied(), expected.is_empty())
                );
            }
        }
    }
}
