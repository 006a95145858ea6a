//! Whether enough separate slow episodes stand behind a far percentile.
//!
//! One pause of a server delays every request that is in flight: a thousand slow requests may
//! be one event. A record has no time for each slow request, but in a closed loop each
//! connection has one request in flight, so one episode delays at most as many as there are
//! connections. Hence `n` slow requests on `c` connections were at least `n / c` episodes,
//! rounded up: a lower bound, which trials add up because they are separate in time.

use prony_record::Histogram;

use crate::units::Share;

/// Separate episodes that a far percentile must rest on.
pub const EPISODES_MIN: u64 = 10;

/// What stands behind a far percentile of one cell.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tail {
    /// Requests slower than the percentile, all trials together.
    pub beyond: u64,
    /// Episodes that these were at the least.
    pub episodes_min: u64,
    /// Requests counted in all.
    pub total: u64,
}

impl Tail {
    /// Adds a trial: of its requests those beyond the quantile `q` by rank, on `connections`.
    pub fn add(&mut self, histogram: &Histogram, q: Share, connections: u32) {
        let total = histogram.total();
        let beyond = total - (libm::ceil(q.0.clamp(0.0, 1.0) * total as f64) as u64).min(total);
        self.total = self.total.saturating_add(total);
        self.beyond = self.beyond.saturating_add(beyond);
        let episodes = beyond.div_ceil(u64::from(connections.max(1)));
        self.episodes_min = self.episodes_min.saturating_add(episodes);
    }

    /// Whether at least 10 episodes are certain.
    pub fn is_enough(&self) -> bool {
        self.episodes_min >= EPISODES_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64) -> Histogram {
        Histogram {
            counts: vec![(1, count)],
            ..Histogram::default()
        }
    }

    #[test]
    fn many_connections_may_share_one_episode() {
        let mut tail = Tail::default();
        // 900 of 900,000 are beyond p99.9; on 400 connections that may be 3 pauses.
        tail.add(&of(900_000), Share(0.999), 400);
        assert_eq!((tail.beyond, tail.episodes_min), (900, 3));
        tail.add(&of(900_000), Share(0.999), 400);
        assert_eq!(tail.episodes_min, 6);
        assert!(!tail.is_enough());
    }

    #[test]
    fn one_connection_has_one_slow_request_at_a_time() {
        let mut tail = Tail::default();
        tail.add(&of(10_000), Share(0.999), 1);
        assert_eq!(tail.episodes_min, 10);
        assert!(tail.is_enough());
        let mut fewer = Tail::default();
        fewer.add(&of(9_000), Share(0.999), 1);
        assert!(!fewer.is_enough());
    }

    #[test]
    fn an_empty_histogram_and_no_connections_are_nothing() {
        let mut tail = Tail::default();
        tail.add(&of(0), Share(0.999), 0);
        assert_eq!(tail, Tail::default());
    }
}
