//! How much earlier than a timer a thread is woken that is to be on time: to be put to sleep and woken
//! takes tens of microseconds, which the kernel does not take off. Not for: what is done until then.

use prony_base::{Instant, Nanos};

use crate::driver::Wait;

/// No thread is woken earlier than this: what it does until then is to look at the clock.
const LEAD_MAX: Nanos = Nanos::from_micros(60);
/// The wait must be so many times as long, or it is not worth the looking.
const WORTH: u64 = 2;
/// By what part of it the estimate falls with each wake-up that was less late, and by how many such
/// parts it rises with each that was later: so nine of ten are not later.
const STEP: u64 = 32;
const RISE: u64 = 9;

/// Learns how late a thread is woken.
pub(crate) struct Lead {
    takes: Nanos,
    /// The timer for which the thread is awake already.
    awake_for: Instant,
}

impl Lead {
    pub fn new() -> Lead {
        Lead {
            takes: Nanos(LEAD_MAX.0 / 2),
            awake_for: Instant::ZERO,
        }
    }

    /// How long to wait at `now`, where `timer` is the next.
    pub fn wait(&mut self, timer: Instant, now: Instant) -> Wait {
        if timer == self.awake_for {
            return Wait::Not;
        }
        let is_worth_it = timer.since(now) >= self.takes * WORTH && timer < Instant::NEVER;
        self.awake_for = if is_worth_it { timer } else { Instant::ZERO };
        if !is_worth_it {
            return Wait::Until(timer);
        }
        Wait::Until(Instant(timer.0 - self.takes.0))
    }

    /// The thread was to be woken at `wanted`, and was at `now`, by nothing but the clock.
    pub fn woken(&mut self, wanted: Instant, now: Instant) {
        // Who waits for a moment only may not have slept.
        if self.awake_for == Instant::ZERO {
            return;
        }
        let step = Nanos((self.takes.0 / STEP).max(1));
        self.takes = match now.since(wanted) > self.takes {
            true => (self.takes + step * RISE).min(LEAD_MAX),
            false => self.takes - step,
        };
    }

    /// The thread was woken by something else.
    pub fn disturbed(&mut self) {
        self.awake_for = Instant::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: Instant = Instant(1_000_000);

    /// When a thread is woken for [`TIMER`].
    fn woken_at(lead: &mut Lead) -> Instant {
        match lead.wait(TIMER, Instant::ZERO) {
            Wait::Until(at) => at,
            Wait::Not => panic!("it does not sleep"),
        }
    }

    /// How early the thread is woken that always is so late.
    fn lead_after(late: Nanos) -> Nanos {
        let mut lead = Lead::new();
        for _ in 0..1_000 {
            let wanted = woken_at(&mut lead);
            lead.woken(wanted, wanted + late);
            lead.disturbed();
        }
        TIMER.since(woken_at(&mut lead))
    }

    #[test]
    fn a_thread_is_woken_as_much_earlier_as_it_is_late() {
        for late in [2_000, 7_000, 25_000, 50_000] {
            let lead = lead_after(Nanos(late)).0;
            let near = late * 2 / 3..=late * 3 / 2;
            assert!(near.contains(&lead), "{lead} of {late}");
        }
        assert_eq!(lead_after(Nanos::from_secs(1)), LEAD_MAX);
        assert!(lead_after(Nanos::ZERO) < Nanos(64));
    }

    #[test]
    fn it_stays_awake_for_that_timer_and_for_no_other() {
        let mut lead = Lead::new();
        let woken = woken_at(&mut lead) + Nanos(5_000);
        assert_eq!(lead.wait(TIMER, woken), Wait::Not);
        let other = TIMER + Nanos::from_secs(1);
        assert!(matches!(lead.wait(other, woken), Wait::Until(at) if at > TIMER));
    }

    #[test]
    fn a_short_wait_is_slept_to_its_end() {
        let mut lead = Lead::new();
        for end in [Instant(LEAD_MAX.0 / 2), Instant::NEVER] {
            assert_eq!(lead.wait(end, Instant::ZERO), Wait::Until(end));
        }
    }

    #[test]
    fn who_was_woken_by_something_else_sleeps_again() {
        let mut lead = Lead::new();
        let wanted = woken_at(&mut lead);
        lead.disturbed();
        assert_eq!(woken_at(&mut lead), wanted);
    }
}
