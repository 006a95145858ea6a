//! Decides whether a loop looks for news for a moment before it sleeps: to be put to sleep and
//! woken costs two threads tens of microseconds, which is more than many an answer takes.
//! It learns from what came of it, and gives the core up where others want it. Not for: looking (`turn`).

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use prony_base::{Instant, Nanos};

/// To be put to sleep and woken takes about as long at the most: a sleep that was longer than a look by no more than this
/// might have been one.
const WAKE_UP_MAX: Nanos = Nanos::from_micros(80);
/// Looks that may be in vain after a single one that was not.
const GAIN: u32 = 2;
const CREDIT_MAX: u32 = 16;
/// Short sleeps between two attempts, once all were in vain.
const SLEEPS_MAX: u32 = 4096;
/// The core is looked at so often, while the thread looks for news.
const CORE_CHECK_EVERY: Nanos = Nanos::from_millis(20);
/// The part of the time that the thread may have waited for its core; more than that twice in a row is no chance.
const CORE_SHARED_FROM: f64 = 0.02;
/// It then sleeps for so long, and twice as long each time that it is so again; while the core is its own, for as much less.
const GIVEN_UP_MIN: Nanos = Nanos::from_millis(500);
const GIVEN_UP_MAX: Nanos = Nanos::from_secs(32);

/// What was learned of the waits so far.
pub(crate) struct Patience {
    /// The longest look.
    pub limit: Nanos,
    /// Looks in vain that are still allowed.
    credit: u32,
    /// Short sleeps until the next attempt, and after the one before it.
    sleeps_left: u32,
    sleeps: u32,
    /// The time that was spent looking.
    pub spun: Nanos,
    /// Set where others may want the core.
    core: Option<CoreShare>,
}

impl Patience {
    /// For looks of up to `limit`; none where that is nothing, or the kernel does not say whether others want a core that is not the
    /// thread's own.
    pub fn new(limit: Nanos, core_is_own: bool) -> Option<Patience> {
        if limit == Nanos::ZERO {
            return None;
        }
        let core = match core_is_own {
            true => None,
            false => Some(CoreShare::open()?),
        };
        Some(Patience {
            limit,
            credit: 0,
            sleeps_left: 1,
            sleeps: 1,
            spun: Nanos::ZERO,
            core,
        })
    }

    /// Whether to look before sleeping.
    pub fn is_worthwhile(&mut self, now: Instant) -> bool {
        self.credit > 0 && self.core.as_mut().is_none_or(|core| core.is_own(now))
    }

    /// A look took so long, and found something or did not.
    pub fn looked(&mut self, length: Nanos, has_found: bool) {
        self.spun += length;
        if has_found {
            self.credit = (self.credit + GAIN).min(CREDIT_MAX);
            self.sleeps = 1;
            return;
        }
        self.credit -= 1;
        if self.credit == 0 {
            self.sleeps = (self.sleeps * 2).min(SLEEPS_MAX);
            self.sleeps_left = self.sleeps;
        }
    }

    /// The thread has slept for so long.
    pub fn slept(&mut self, length: Nanos) {
        if length > self.limit + WAKE_UP_MAX || self.credit > 0 {
            return;
        }
        self.sleeps_left -= 1;
        if self.sleeps_left == 0 {
            self.sleeps_left = self.sleeps;
            self.credit = 1;
        }
    }
}

/// Whether the thread has its core to itself: by how long it waited to run, as the scheduler counts it.
struct CoreShare {
    schedstat: File,
    checked: Instant,
    waited: Nanos,
    /// Others wanted the core when it was looked at last.
    is_wanted: bool,
    given_up_until: Instant,
    given_up_for: Nanos,
}

impl CoreShare {
    /// Of the calling thread.
    fn open() -> Option<CoreShare> {
        let schedstat = File::open("/proc/thread-self/schedstat").ok()?;
        let waited = waited_in(&schedstat)?;
        Some(CoreShare {
            schedstat,
            checked: Instant::ZERO,
            waited,
            is_wanted: false,
            given_up_until: Instant::ZERO,
            given_up_for: GIVEN_UP_MIN,
        })
    }

    fn is_own(&mut self, now: Instant) -> bool {
        if now < self.given_up_until {
            return false;
        }
        if now.since(self.checked) < CORE_CHECK_EVERY {
            return true;
        }
        let waited = waited_in(&self.schedstat).unwrap_or(Nanos(u64::MAX));
        self.judge(now, waited)
    }

    /// Judges by what the thread has waited in all up to `now`.
    fn judge(&mut self, now: Instant, waited: Nanos) -> bool {
        let length = now.since(self.checked);
        let share = waited.0.saturating_sub(self.waited.0) as f64 / length.0.max(1) as f64;
        (self.checked, self.waited) = (now, waited);
        let was_wanted = std::mem::replace(&mut self.is_wanted, share >= CORE_SHARED_FROM);
        if !self.is_wanted {
            self.given_up_for = (self.given_up_for - length).max(GIVEN_UP_MIN);
        } else if was_wanted {
            self.given_up_until = now + self.given_up_for;
            self.given_up_for = (self.given_up_for * 2).min(GIVEN_UP_MAX);
            return false;
        }
        true
    }
}

/// The time that a thread has waited to run, the second number of its `schedstat`.
fn waited_in(schedstat: &File) -> Option<Nanos> {
    let mut text = [0; 64];
    let length = schedstat.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split(' ').nth(1)?.parse().ok().map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Nanos = Nanos::from_micros(10);

    fn patience() -> Patience {
        Patience::new(Nanos::from_micros(20), false).expect("the scheduler counts")
    }

    /// Short sleeps until the next attempt.
    fn sleeps_until_worthwhile(patience: &mut Patience) -> u32 {
        (1..10_000)
            .find(|_| {
                patience.slept(MOMENT);
                patience.credit > 0
            })
            .expect("an attempt")
    }

    #[test]
    fn a_loop_looks_after_short_sleeps_and_goes_on_while_it_pays() {
        let mut patience = patience();
        patience.slept(Nanos::from_millis(5));
        assert_eq!(patience.credit, 0, "a long sleep teaches nothing");
        assert_eq!(sleeps_until_worthwhile(&mut patience), 1);
        for _ in 0..100 {
            // Every third look finds something.
            patience.looked(MOMENT, true);
            patience.looked(MOMENT, false);
            patience.looked(MOMENT, false);
            assert!(patience.credit > 0);
        }
        assert_eq!(patience.spun, MOMENT * 300);
    }

    #[test]
    fn attempts_in_vain_become_rare_and_one_success_makes_them_frequent() {
        let mut patience = patience();
        let mut between = Vec::new();
        for _ in 0..14 {
            between.push(sleeps_until_worthwhile(&mut patience));
            patience.looked(MOMENT, false);
        }
        assert_eq!(between[..5], [1, 2, 4, 8, 16]);
        assert_eq!(between[13], SLEEPS_MAX);
        sleeps_until_worthwhile(&mut patience);
        patience.looked(MOMENT, true);
        while patience.credit > 0 {
            patience.looked(MOMENT, false);
        }
        assert_eq!(sleeps_until_worthwhile(&mut patience), 2);
    }

    #[test]
    fn a_core_that_others_want_is_given_up_for_longer_each_time() {
        let mut core = CoreShare::open().expect("the scheduler counts");
        core.waited = Nanos::ZERO;
        let at = |millis: u64| Instant::ZERO + Nanos::from_millis(millis);
        let mut judge = |now, waited| core.judge(at(now), Nanos::from_millis(waited));
        assert!(judge(1_000, 1));
        assert!(judge(2_000, 101), "once may be chance");
        assert!(!judge(2_100, 201));
        assert!(!judge(2_600, 301), "after 500 ms it is as it was");
        assert!(judge(3_600, 302), "after 1 s it is its own");
        assert!(judge(3_700, 402));
        assert!(!judge(3_800, 502));
        assert!(
            !core.is_own(at(4_799)),
            "1 s, as a second of its own went before"
        );
    }
}
