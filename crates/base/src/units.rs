//! Units as newtypes, so that a point in time cannot be added to another and
//! a count cannot pass for a duration.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Events per second: requests, bytes or other things counted over a length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct PerSecond(pub f64);

impl PerSecond {
    /// The rate of `count` events in `length`; 0 where that is no time at all, in which nothing was measured.
    pub fn of(count: u64, length: Nanos) -> PerSecond {
        match length {
            Nanos::ZERO => PerSecond(0.0),
            _ => PerSecond(count as f64 / length.as_secs_f64()),
        }
    }
}

/// A length of time in nanoseconds. Addition saturates: no trial lasts 584 years.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// The longest length of time there is; used for "no limit".
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `count` microseconds.
    pub const fn from_micros(count: u64) -> Nanos {
        Nanos(count.saturating_mul(1_000))
    }

    /// `count` milliseconds.
    pub const fn from_millis(count: u64) -> Nanos {
        Nanos(count.saturating_mul(1_000_000))
    }

    /// `count` seconds.
    pub const fn from_secs(count: u64) -> Nanos {
        Nanos(count.saturating_mul(1_000_000_000))
    }

    /// This length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This length in microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, factor: u64) -> Nanos {
        Nanos(self.0.saturating_mul(factor))
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits and the unit that a reader expects: `840ns`,
    /// `28.0us`, `4.59ms`, `1.07s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{}ns", self.0),
            1_000..1_000_000 => (self.0 as f64 / 1e3, "us"),
            1_000_000..1_000_000_000 => (self.0 as f64 / 1e6, "ms"),
            _ => (self.0 as f64 / 1e9, "s"),
        };
        let decimals = if value < 10.0 {
            2
        } else if value < 100.0 {
            1
        } else {
            0
        };
        write!(f, "{value:.decimals$}{unit}")
    }
}

/// A point on a monotonic clock, in nanoseconds since that clock's own origin.
/// Two instants compare only when they come from the same clock.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(pub u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Instant = Instant(0);
    /// Later than every other instant; used for "never".
    pub const NEVER: Instant = Instant(u64::MAX);

    /// Time from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Instant) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The same moment on another clock, on which the moment `from` is `to`; never stays never. What cannot be told there wraps around.
    #[must_use]
    pub fn rebased(self, from: Instant, to: Instant) -> Instant {
        match self {
            Instant::NEVER => self,
            Instant(at) => Instant(at.wrapping_sub(from.0).wrapping_add(to.0)),
        }
    }
}

impl Add<Nanos> for Instant {
    type Output = Instant;
    fn add(self, length: Nanos) -> Instant {
        Instant(self.0.saturating_add(length.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_over_a_length_and_zero_over_none() {
        assert_eq!(PerSecond::of(3, Nanos::from_millis(1_500)), PerSecond(2.0));
        assert_eq!(PerSecond::of(0, Nanos::from_secs(1)), PerSecond(0.0));
        assert_eq!(PerSecond::of(7, Nanos::ZERO), PerSecond(0.0));
    }

    #[test]
    fn a_length_of_time_reads_with_three_digits_and_its_unit() {
        let shown = |n: u64| Nanos(n).to_string();
        assert_eq!(shown(840), "840ns");
        assert_eq!(shown(28_000), "28.0us");
        assert_eq!(shown(4_590_000), "4.59ms");
        assert_eq!(shown(272_470_000), "272ms");
        assert_eq!(shown(1_070_000_000), "1.07s");
    }

    #[test]
    fn a_moment_is_told_by_another_clock_and_back() {
        let (here, there) = (Instant(1_000), Instant(50));
        assert_eq!(Instant(1_030).rebased(here, there), Instant(80));
        assert_eq!(Instant(80).rebased(there, here), Instant(1_030));
        assert_eq!(Instant(990).rebased(here, there), Instant(40));
        assert_eq!(Instant::NEVER.rebased(here, there), Instant::NEVER);
    }

    #[test]
    fn never_stays_never_whatever_is_added() {
        assert_eq!(Instant::NEVER + Nanos::from_secs(1), Instant::NEVER);
    }

    #[test]
    fn an_instant_before_another_is_zero_after_it() {
        assert_eq!(Instant(5).since(Instant(9)), Nanos::ZERO);
    }
}
