//! How long the rest of a run will take, from the trials that have ended. Pure.

use std::collections::BTreeMap;

use prony_base::Nanos;

/// What a trial takes beside warm-up and window, before one was seen.
const OVERHEAD: Nanos = Nanos::from_secs(2);

/// Lengths of trials by cell.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Warm-up and window.
    planned: Nanos,
    /// By cell: what its search takes after that.
    searches: BTreeMap<String, Nanos>,
    /// By cell: how many, and their length in all.
    seen: BTreeMap<String, (u64, Nanos)>,
}

impl Pace {
    /// A pace of trials that measure for `planned` with their warm-up, and those of some cells for longer.
    pub fn new(planned: Nanos, searches: BTreeMap<String, Nanos>) -> Pace {
        Pace {
            planned,
            searches,
            seen: BTreeMap::new(),
        }
    }

    /// A trial of `cell` took `length`.
    pub fn note(&mut self, cell: &str, length: Nanos) {
        let (count, sum) = self.seen.entry(cell.to_owned()).or_default();
        *count += 1;
        *sum += length;
    }

    /// How long trials of these cells will take: as long as their like did, or as long
    /// as planned with what others took beside that.
    pub fn left<'a>(&self, cells: impl Iterator<Item = &'a str>) -> Nanos {
        let overhead = self.overhead();
        cells.fold(Nanos::ZERO, |sum, cell| {
            let measured = self.seen.get(cell).map(|(count, all)| Nanos(all.0 / count));
            sum + measured.unwrap_or_else(|| self.planned_of(cell) + overhead)
        })
    }

    fn planned_of(&self, cell: &str) -> Nanos {
        let search = self.searches.get(cell).copied();
        self.planned + search.unwrap_or(Nanos::ZERO)
    }

    /// What trials that measured took beside it, on average. A trial that failed early
    /// says nothing about one that does not.
    fn overhead(&self) -> Nanos {
        let seen = self.seen.iter();
        let means = seen.map(|(cell, (count, all))| (self.planned_of(cell), Nanos(all.0 / count)));
        let over: Vec<Nanos> = means
            .filter(|(planned, mean)| mean >= planned)
            .map(|(planned, mean)| mean - planned)
            .collect();
        match over.len() as u64 {
            0 => OVERHEAD,
            count => Nanos(over.iter().fold(Nanos::ZERO, |sum, &one| sum + one).0 / count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_was_seen_is_judged_by_itself_and_others_by_the_average() {
        let mut pace = Pace::new(
            Nanos::from_secs(10),
            BTreeMap::from([("searches".to_owned(), Nanos::from_secs(80))]),
        );
        let left = |pace: &Pace, cells: &[&str]| pace.left(cells.iter().copied());
        assert_eq!(left(&pace, &["a", "b"]), Nanos::from_secs(24));
        pace.note("a", Nanos::from_secs(11));
        pace.note("a", Nanos::from_secs(13));
        assert_eq!(left(&pace, &["a"]), Nanos::from_secs(12));
        pace.note("fails", Nanos::from_secs(1));
        assert_eq!(left(&pace, &["b"]), Nanos::from_secs(12));
        assert_eq!(left(&pace, &["fails"]), Nanos::from_secs(1));
        assert_eq!(left(&pace, &[]), Nanos::ZERO);
        assert_eq!(left(&pace, &["searches"]), Nanos::from_secs(92));
        pace.note("searches", Nanos::from_secs(94));
        assert_eq!(left(&pace, &["b"]), Nanos::from_secs(13));
    }
}
