//! Regular times, on the timers of the engine.
//! Not for: waiting once (`Handle::sleep`), giving up on something (`Handle::timeout`).

use std::fmt;

use prony_base::{Instant, Nanos};
use prony_engine::Handle;

/// The policy of an [`Interval`] for ticks whose time passed while no task waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// Leaves them out, and keeps to the grid: the next tick is the next multiple of the
    /// period after the first. [`Tick::missed`] says how many were left out.
    #[default]
    Skip,
    /// Makes up for them: one tick at once for each.
    Burst,
    /// Moves the grid: the next tick comes a whole period after the late one.
    Delay,
}

/// A time that comes again and again. Built on the loop's clock, so that a simulated
/// loop has simulated ticks.
///
/// ```
/// use prony_base::Nanos;
/// use prony_runtime::coroutines::{Interval, Missed};
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let mut every = Interval::new(&handle, Nanos::from_micros(50), Missed::Skip);
///     let first = every.tick().await.due;
///     let second = every.tick().await;
///     let periods = 1 + second.missed;
///     assert_eq!(second.due.since(first), Nanos(50_000 * periods));
/// })
/// .unwrap();
/// ```
pub struct Interval {
    handle: Handle,
    next: Instant,
    period: Nanos,
    missed: Missed,
}

/// One time of an [`Interval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The time at which it was due; it comes then or later.
    pub due: Instant,
    /// Ticks before it that were left out; always zero but with [`Missed::Skip`].
    pub missed: u64,
}

impl Interval {
    /// Ticks now, and then once each `period` (at least a nanosecond).
    pub fn new(handle: &Handle, period: Nanos, missed: Missed) -> Interval {
        Interval::from(handle, handle.now(), period, missed)
    }

    /// Ticks at `first`, and then once each `period` (at least a nanosecond).
    pub fn from(handle: &Handle, first: Instant, period: Nanos, missed: Missed) -> Interval {
        Interval {
            handle: handle.clone(),
            next: first,
            period: Nanos(period.0.max(1)),
            missed,
        }
    }

    /// Waits for the next tick. Dropping the future loses none.
    pub async fn tick(&mut self) -> Tick {
        self.handle.sleep_until(self.next).await;
        let (due, now) = (self.next, self.handle.now());
        let late = now.since(due);
        let tick = match self.missed {
            Missed::Skip => {
                let missed = late.0 / self.period.0;
                let due = due + Nanos(missed * self.period.0);
                Tick { due, missed }
            }
            Missed::Burst | Missed::Delay => Tick { due, missed: 0 },
        };
        self.next = match self.missed {
            Missed::Skip | Missed::Burst => tick.due + self.period,
            Missed::Delay => now + self.period,
        };
        tick
    }

    /// The time at which the next tick is due.
    pub fn due(&self) -> Instant {
        self.next
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (period, missed) = (self.period, self.missed);
        write!(f, "Interval({period}, {missed:?})")
    }
}
