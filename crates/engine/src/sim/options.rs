//! The faults of a simulated network.

use prony_base::Nanos;

/// The faults of a simulated network, and how often they happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// A message on a link takes from 1 ns to this.
    pub delay_max: Nanos,
    /// Receives yield fewer bytes than have arrived, a third of the time.
    pub short_reads: bool,
    /// Sends take fewer bytes than there is room for, a third of the time.
    pub short_writes: bool,
    /// Sends, in a million, at which the connection is reset.
    pub resets_per_million: u32,
    /// Connects, in a million, that are refused although there is a listener.
    pub refusals_per_million: u32,
    /// Bytes that may be under way or unread on one link before its sender waits.
    pub link_bytes_max: usize,
    /// While a loop is due, the simulation steps without it once in this many steps;
    /// 0 for never.
    pub slow_loops_one_in: u32,
}

impl Default for SimOptions {
    /// Everything but resets and refusals.
    fn default() -> SimOptions {
        SimOptions {
            delay_max: Nanos::from_micros(200),
            short_reads: true,
            short_writes: true,
            resets_per_million: 0,
            refusals_per_million: 0,
            link_bytes_max: 64 << 10,
            slow_loops_one_in: 8,
        }
    }
}
