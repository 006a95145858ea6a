//! The phases of a load: warm-up, the measured window, the drain after it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prony_base::{Instant, Nanos};
use prony_record::Turn;

/// The phase of a load that a moment lies in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoadPhase {
    /// Load before the measured window.
    WarmUp,
    /// The window.
    Measured,
    /// No further request starts; those in flight are answered.
    Drain,
}

/// The measured window, shared by all threads of a run. Its end may be moved
/// forward once it is known that the run ends early, never back.
#[derive(Debug)]
pub struct Window {
    begin: Instant,
    start: Instant,
    end: AtomicU64,
}

impl Window {
    /// The window of a run whose load begins at `begin`.
    pub fn new(begin: Instant, warmup: Nanos, duration: Nanos) -> Window {
        let start = begin + warmup;
        Window {
            begin,
            start,
            end: AtomicU64::new((start + duration).0),
        }
    }

    /// The window of a turn that begins at `begin`.
    pub fn of(begin: Instant, turn: &Turn) -> Window {
        let (start, end) = (turn.window_start_ns, turn.window_end_ns);
        Window {
            begin,
            start: Instant(start),
            end: AtomicU64::new(end.max(start)),
        }
    }

    /// The first moment of the load, before the warm-up.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// Its first moment.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The first moment after it.
    pub fn end(&self) -> Instant {
        Instant(self.end.load(Relaxed))
    }

    /// How long it is.
    pub fn length(&self) -> Nanos {
        self.end().since(self.start)
    }

    /// The same window, for one thread, which ends at `now` if it would end later.
    pub fn ending_at(&self, now: Instant) -> Window {
        let own = Window {
            begin: self.begin,
            start: self.start,
            end: AtomicU64::new(self.end().0),
        };
        own.cut(now);
        own
    }

    /// Ends the window at `now` if it would end later: the user interrupted the run.
    pub fn cut(&self, now: Instant) {
        self.end.fetch_min(now.0.max(self.start.0), Relaxed);
    }

    /// The phase that the moment `at` lies in.
    pub fn phase(&self, at: Instant) -> LoadPhase {
        if at < self.start {
            LoadPhase::WarmUp
        } else if at < self.end() {
            LoadPhase::Measured
        } else {
            LoadPhase::Drain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_lies_in_one_phase() {
        let window = Window::new(Instant(100), Nanos(10), Nanos(50));
        let phases = [100, 109, 110, 159, 160].map(|at| window.phase(Instant(at)));
        assert_eq!(
            phases,
            [
                LoadPhase::WarmUp,
                LoadPhase::WarmUp,
                LoadPhase::Measured,
                LoadPhase::Measured,
                LoadPhase::Drain
            ]
        );
    }

    #[test]
    fn a_cut_moves_the_end_forward_and_never_before_the_start() {
        let window = Window::new(Instant(100), Nanos(10), Nanos(50));
        window.cut(Instant(130));
        assert_eq!(window.end(), Instant(130));
        window.cut(Instant(150));
        assert_eq!(window.end(), Instant(130));
        window.cut(Instant(90));
        assert_eq!(window.end(), Instant(110));
    }
}
