//! How long to wait before something that ended is started again.

use prony_base::Nanos;

/// The first wait.
const WAIT_MIN: Nanos = Nanos::from_millis(100);
/// The longest.
const WAIT_MAX: Nanos = Nanos::from_secs(30);
/// Who has run for so long has run well: the next wait is the first again.
const RAN_WELL: Nanos = Nanos::from_secs(10);

/// Waits that double as long as nothing runs well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    next: Nanos,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { next: WAIT_MIN }
    }
}

impl Backoff {
    /// The wait after an end that came `ran` after it was ready; zero if it never was.
    pub(super) fn after(&mut self, ran: Nanos) -> Nanos {
        if ran >= RAN_WELL {
            self.next = WAIT_MIN;
        }
        let wait = self.next;
        self.next = Nanos(wait.0 * 2).min(WAIT_MAX);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_a_minute_until_something_runs_well() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..11)
            .map(|_| backoff.after(Nanos::from_secs(9)).0 / 1_000_000)
            .collect();
        assert_eq!(
            waits,
            [
                100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000
            ]
        );
        assert_eq!(backoff.after(RAN_WELL), WAIT_MIN);
        assert_eq!(backoff.after(Nanos::ZERO), Nanos(2 * WAIT_MIN.0));
    }
}
