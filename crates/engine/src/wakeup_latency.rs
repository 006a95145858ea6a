//! Estimates how late the kernel wakes this thread, so that a loop with precise timers wakes
//! that much earlier: to be put to sleep and woken takes tens of microseconds, which the
//! kernel does not take off. Not for: waiting for the rest (`turn`).

use prony_base::{Instant, Nanos};

use crate::driver::Wait;

/// The thread is never woken earlier than this: it polls the clock until the timer is due.
const LATENCY_MAX: Nanos = Nanos::from_micros(60);
/// A wait shorter than this many times the latency is not ended early.
const WAIT_TO_LATENCY_MIN: u64 = 2;
/// The estimate falls by one of so many parts with each wake-up that was less late, and rises
/// by `RISE` such parts with each that was later: so nine of ten are not later.
const STEP: u64 = 32;
const RISE: u64 = 9;

/// The latency of wake-ups, as estimated so far.
pub(crate) struct WakeupLatency {
    estimate: Nanos,
    /// The timer for which the thread is awake already.
    awake_for: Instant,
}

impl WakeupLatency {
    pub fn new() -> WakeupLatency {
        WakeupLatency {
            estimate: Nanos(LATENCY_MAX.0 / 2),
            awake_for: Instant::ZERO,
        }
    }

    /// The wait to make at `now`, where `timer` is the next.
    pub fn wait(&mut self, timer: Instant, now: Instant) -> Wait {
        if timer == self.awake_for {
            return Wait::Not;
        }
        let is_long = timer.since(now) >= self.estimate * WAIT_TO_LATENCY_MIN;
        let ends_early = is_long && timer < Instant::NEVER;
        self.awake_for = if ends_early { timer } else { Instant::ZERO };
        if !ends_early {
            return Wait::Until(timer);
        }
        Wait::Until(Instant(timer.0 - self.estimate.0))
    }

    /// The thread was to be woken at `wanted`, and was at `now`, by nothing but the clock.
    pub fn note_wakeup(&mut self, wanted: Instant, now: Instant) {
        // A short wait may not have slept.
        if self.awake_for == Instant::ZERO {
            return;
        }
        let step = Nanos((self.estimate.0 / STEP).max(1));
        self.estimate = match now.since(wanted) > self.estimate {
            true => (self.estimate + step * RISE).min(LATENCY_MAX),
            false => self.estimate - step,
        };
    }

    /// The thread was woken by something else.
    pub fn note_interrupted(&mut self) {
        self.awake_for = Instant::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: Instant = Instant(1_000_000);

    /// When a thread is woken for [`TIMER`].
    fn woken_at(latency: &mut WakeupLatency) -> Instant {
        match latency.wait(TIMER, Instant::ZERO) {
            Wait::Until(at) => at,
            Wait::Not => panic!("it does not sleep"),
        }
    }

    /// How early a thread is woken that always was so late.
    fn estimate_after(late: Nanos) -> Nanos {
        let mut latency = WakeupLatency::new();
        for _ in 0..1_000 {
            let wanted = woken_at(&mut latency);
            latency.note_wakeup(wanted, wanted + late);
            latency.note_interrupted();
        }
        TIMER.since(woken_at(&mut latency))
    }

    #[test]
    fn a_thread_is_woken_as_much_earlier_as_it_is_late() {
        for late in [2_000, 7_000, 25_000, 50_000] {
            let latency = estimate_after(Nanos(late)).0;
            let near = late * 2 / 3..=late * 3 / 2;
            assert!(near.contains(&latency), "{latency} of {late}");
        }
        assert_eq!(estimate_after(Nanos::from_secs(1)), LATENCY_MAX);
        assert!(estimate_after(Nanos::ZERO) < Nanos(64));
    }

    #[test]
    fn it_stays_awake_for_that_timer_and_for_no_other() {
        let mut latency = WakeupLatency::new();
        let woken = woken_at(&mut latency) + Nanos(5_000);
        assert_eq!(latency.wait(TIMER, woken), Wait::Not);
        let other = TIMER + Nanos::from_secs(1);
        assert!(matches!(latency.wait(other, woken), Wait::Until(at) if at > TIMER));
    }

    #[test]
    fn a_short_wait_is_slept_to_its_end() {
        let mut latency = WakeupLatency::new();
        for end in [Instant(LATENCY_MAX.0 / 2), Instant::NEVER] {
            assert_eq!(latency.wait(end, Instant::ZERO), Wait::Until(end));
        }
    }

    #[test]
    fn a_thread_woken_by_something_else_sleeps_again() {
        let mut latency = WakeupLatency::new();
        let wanted = woken_at(&mut latency);
        latency.note_interrupted();
        assert_eq!(woken_at(&mut latency), wanted);
    }
}
