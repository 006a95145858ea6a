//! Whether enough separate slow periods stand behind a far percentile.
//!
//! One pause of a server delays every request that is in flight, and a slow second many that follow each other: a thousand
//! slow requests may be one event. So periods are counted by time, by whoever saw the requests: those whose times overlap
//! are one. Trials add up, because they are separate in time.

use prony_record::Histogram;

use crate::units::Share;

/// Separate periods that a far percentile must rest on.
pub const PERIODS_MIN: u64 = 10;

/// What stands behind a far percentile of one cell.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tail {
    /// Requests slower than the percentile, all trials together.
    pub beyond: u64,
    /// Separate periods in which they were slow, at the least, of the trials that know it.
    pub periods: u64,
}

impl Tail {
    /// Adds a trial: of its requests those beyond the quantile `q` by rank, and in how many periods these were slow, where
    /// that is known.
    pub fn add(&mut self, histogram: &Histogram, q: Share, periods: Option<u64>) {
        let total = histogram.total();
        let beyond = total - (libm::ceil(q.0.clamp(0.0, 1.0) * total as f64) as u64).min(total);
        self.beyond = self.beyond.saturating_add(beyond);
        self.periods = self.periods.saturating_add(periods.unwrap_or_default());
    }

    /// Whether at least 10 separate periods are certain.
    pub fn is_enough(&self) -> bool {
        self.periods >= PERIODS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(count: u64) -> Histogram {
        Histogram {
            counts: vec![(1, count)],
            ..Histogram::default()
        }
    }

    #[test]
    fn many_slow_requests_may_be_few_periods() {
        let mut tail = Tail::default();
        // 900 of 900,000 are beyond p99.9.
        tail.add(&histogram(900_000), Share(0.999), Some(3));
        assert_eq!((tail.beyond, tail.periods), (900, 3));
        tail.add(&histogram(900_000), Share(0.999), Some(6));
        assert_eq!(tail.periods, 9);
        assert!(!tail.is_enough());
        tail.add(&histogram(1_000), Share(0.999), Some(1));
        assert!(tail.is_enough());
    }

    #[test]
    fn what_is_not_known_is_not_enough() {
        let mut tail = Tail::default();
        tail.add(&histogram(1_000_000), Share(0.999), None);
        assert_eq!((tail.beyond, tail.periods), (1_000, 0));
        assert!(!tail.is_enough());
    }

    #[test]
    fn an_empty_histogram_is_nothing() {
        let mut tail = Tail::default();
        tail.add(&histogram(0), Share(0.999), None);
        assert_eq!(tail, Tail::default());
    }
}
