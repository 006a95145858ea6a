//! Times at which bytes were sent and received, as the drivers saw them.
//! Not for: the latency of a request, which is a difference of them.

use prony_base::{Instant, Nanos};

/// A moment that lies between two readings of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bracket {
    /// Not after the moment.
    pub from: Instant,
    /// Not before the moment.
    pub to: Instant,
}

impl Bracket {
    /// The width of the bracket: how much of the moment is unknown.
    pub fn width(self) -> Nanos {
        self.to.since(self.from)
    }
}

/// The arrival of received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The driver took them from the kernel: the clock was read right after the call that
    /// brought them.
    pub reaped: Instant,
    /// They were not there at this time: the last moment at which the kernel was asked and
    /// had nothing more. Bytes that came while no receive was outstanding on the stream may
    /// have been there before. On a busy machine the kernel may have had them, and stamped them, for a
    /// while before it brought them to the socket.
    pub since: Instant,
    /// The thread slept in the kernel between the two, so that it was woken by them or by
    /// others. Where a call may or may not have slept, this is false.
    pub slept: bool,
    /// The kernel's own stamp of the last of these bytes, on `CLOCK_MONOTONIC`; None without
    /// [`ConnectOptions::timestamps`](crate::ConnectOptions::timestamps), where the kernel
    /// refuses, and within a second of a step of its wall clock.
    pub kernel: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_is_as_wide_as_its_ends_are_apart() {
        let bracket = Bracket {
            from: Instant(5_000),
            to: Instant(7_500),
        };
        assert_eq!(bracket.width(), Nanos(2_500));
        assert_eq!(Bracket::default().width(), Nanos::ZERO);
    }
}
