//! Little's law: in a steady state, what is in a system on average is the rate at which it
//! comes times the time that it stays (J. D. C. Little, "A Proof for the Queuing Formula:
//! L = λW", 1961).

use crate::units::{Connections, Rate, Time};

/// Connections that had a request in flight on average, by the rate of completed requests
/// and their mean latency (not the median).
pub fn in_flight(rate: Rate, mean_latency: Time) -> Connections {
    Connections(rate.0 * (mean_latency.0 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates and mean latencies as wrk printed them in two published runs.
    #[test]
    fn published_rates_and_latencies_give_the_connections_in_flight() {
        let full = in_flight(Rate(72_971.55), Time(270.41e6));
        assert!((full.0 / 20_000.0 - 0.987).abs() < 0.001, "{full:?}");
        let starved = in_flight(Rate(117_676.17), Time(64.98e6));
        assert!((starved.0 / 20_000.0 - 0.382).abs() < 0.001, "{starved:?}");
    }
}
