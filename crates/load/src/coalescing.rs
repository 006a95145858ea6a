//! How long a thread may wait for more answers before it takes those that are there.
//!
//! A server that answers one request at a time wakes the generator for each one;
//! waiting for a few serves several with one system call. The price is latency, so
//! the wait is a small share of the latency that there is anyway, and there is none
//! where too little would come of it. Not for: waiting itself, which the engine does.

use prony_base::Nanos;

/// The wait is at most one part in so many of the median latency.
pub const SHARE: u64 = 32;
/// And at most this.
const WAIT_MAX: Nanos = Nanos::from_micros(50);
/// A shorter wait is not worth its timer.
const WAIT_MIN: Nanos = Nanos::from_micros(6);
/// Where fewer answers than this are to be expected during the wait, it costs more
/// than it saves.
const EXPECTED_MIN: u64 = 3;
/// So many answers are enough for one system call.
const ANSWERS_MAX: u64 = 64;

/// The number of answers that end the wait of a thread with so many connections
/// and this median latency, and the length of the wait; zero for none.
pub fn rule(connections: usize, median: Nanos) -> (u32, Nanos) {
    let connections = connections as u64;
    let wait = WAIT_MAX.min(Nanos(median.0 / SHARE));
    // Little's law: answers a second = requests in flight / latency.
    let expected = connections.saturating_mul(wait.0) / median.0.max(1);
    if wait < WAIT_MIN || expected < EXPECTED_MIN {
        return (0, Nanos::ZERO);
    }
    ((connections / 4).min(ANSWERS_MAX) as u32, wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wait_is_never_more_than_its_share_of_the_median(connections in 0_usize..100_000, median in 0_u64..10_000_000_000) {
            let (answers, wait) = rule(connections, Nanos(median));
            prop_assert!(wait.0 * SHARE <= median && wait <= WAIT_MAX);
            prop_assert!(answers as usize <= connections / 4 && u64::from(answers) <= ANSWERS_MAX);
            prop_assert_eq!(answers == 0, wait == Nanos::ZERO);
        }
    }

    #[test]
    fn nobody_waits_where_little_would_come_of_it() {
        let none = (0, Nanos::ZERO);
        let millisecond = Nanos::from_millis(1);
        // No answer yet; few connections; fast answers; a slow server.
        assert_eq!(rule(100, Nanos::ZERO), none);
        assert_eq!(rule(95, millisecond), none);
        assert_eq!(rule(1_000, Nanos::from_micros(180)), none);
        assert_eq!(rule(100, millisecond * 2), none);
        assert_eq!(rule(96, millisecond), (24, Nanos(31_250)));
        assert_eq!(rule(400, millisecond * 6), (64, Nanos::from_micros(50)));
        assert_eq!(rule(400, millisecond * 7), none);
        assert_eq!(
            rule(10_000, millisecond * 100),
            (64, Nanos::from_micros(50))
        );
    }
}
