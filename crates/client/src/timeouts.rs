//! The time that a request has: in all, and for each of its waits.

use prony_base::{Instant, Nanos};

/// The time from the start of a request to its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub started: Instant,
    /// When it has to be done.
    pub due: Instant,
    /// The length of its overall time-out.
    pub total: Nanos,
}

/// The time-outs of one exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// From the request's last byte to the response's first.
    pub first_byte: Nanos,
    /// Without any progress.
    pub stall: Nanos,
    /// The length of the overall time-out.
    pub total: Nanos,
    /// When the overall time-out passes.
    pub due: Instant,
}

impl Timeouts {
    /// No time-outs: the caller limits the exchange.
    pub const NEVER: Timeouts = Timeouts {
        first_byte: Nanos::MAX,
        stall: Nanos::MAX,
        total: Nanos::MAX,
        due: Instant::NEVER,
    };
}
