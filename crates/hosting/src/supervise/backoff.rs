//! How long to wait before something that ended is started again.

use prony_base::Nanos;

/// The first wait of what ended soon after its start.
const WAIT_MIN: Nanos = Nanos::from_millis(100);
/// The longest of what never was ready: each try costs a start, and fails as the last one did.
const WAIT_MAX: Nanos = Nanos::from_secs(30);
/// The longest of what was ready once: a request may have ended it, or the machine be short of something for a while, and while it is away
/// nobody is answered.
const WAIT_READY_MAX: Nanos = Nanos::from_secs(1);
/// A worker that has run for this long has run well, and is replaced without a wait.
const RAN_WELL: Nanos = Nanos::from_secs(1);

/// Waits that double as long as nothing runs well. The first is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    next: Nanos,
    was_ready: bool,
}

impl Backoff {
    /// The back-off of a worker that was ready, and has not ended since.
    pub(super) fn once_ready() -> Backoff {
        Backoff {
            next: Nanos::ZERO,
            was_ready: true,
        }
    }

    /// The wait after an end that came `ran` after it was ready; `None`: it never was.
    pub(super) fn after(&mut self, ran: Option<Nanos>) -> Nanos {
        if ran.is_some_and(|ran| ran >= RAN_WELL) {
            self.next = Nanos::ZERO;
        }
        self.was_ready |= ran.is_some();
        let most = if self.was_ready {
            WAIT_READY_MAX
        } else {
            WAIT_MAX
        };
        let wait = self.next.min(most);
        self.next = Nanos(wait.0 * 2).max(WAIT_MIN);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_ms(ran: Option<Nanos>) -> Vec<u64> {
        let mut backoff = Backoff::default();
        (0..11).map(|_| backoff.after(ran).0 / 1_000_000).collect()
    }

    #[test]
    fn waits_double_up_to_half_a_minute_where_nothing_gets_ready() {
        assert_eq!(
            waits_ms(None),
            [
                0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000
            ]
        );
    }

    #[test]
    fn what_served_before_it_ended_was_away_for_half_a_minute() {
        let soon = Some(Nanos(RAN_WELL.0 - 1));
        assert_eq!(
            waits_ms(soon),
            [0, 100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000, 1000]
        );
        assert_eq!(waits_ms(Some(RAN_WELL)), [0; 11]);
    }

    /// Others had the memory that a worker's ring needs for ten seconds, and it was away for thirty more.
    #[test]
    fn what_was_ready_once_waited_for_half_a_minute_when_it_could_not_start() {
        let mut ran = Backoff::default();
        assert_eq!(ran.after(Some(RAN_WELL)), Nanos::ZERO);
        let mut renewed = Backoff::once_ready();
        assert_eq!(renewed.after(None), Nanos::ZERO);
        for mut backoff in [ran, renewed] {
            let waits = (0..6).map(|_| backoff.after(None).0 / 1_000_000);
            let waits: Vec<u64> = waits.collect();
            assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        }
    }

    #[test]
    fn what_runs_well_is_followed_at_once_however_often_others_ended_before() {
        let mut backoff = Backoff::default();
        for _ in 0..9 {
            backoff.after(None);
        }
        assert_eq!(backoff.after(Some(RAN_WELL)), Nanos::ZERO);
        assert_eq!(backoff.after(None), WAIT_MIN);
    }
}
