//! Known stalls of the whole server, by which measuring tools are checked.
//!
//! Every loop's thread blocks from the same moments on, for the same time, so that
//! all connections see it, new ones included. The moments are on
//! `CLOCK_MONOTONIC`, which is one for all processes of the machine.

use std::thread;

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Handle, Receiver};

/// The longest period, and with it the longest stall.
pub const EVERY_MAX: Nanos = Nanos::from_secs(3_600);

/// Stalls of length `length` at `first`, `first + every`, and so on; none
/// where `every` or `length` is zero.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Order {
    pub first: Instant,
    pub every: Nanos,
    pub length: Nanos,
}

impl Order {
    /// No more stalls.
    pub const NONE: Order = Order {
        first: Instant::NEVER,
        every: Nanos::ZERO,
        length: Nanos::ZERO,
    };

    /// The start of the stall under way, else of the next one.
    fn next(&self, now: Instant) -> Instant {
        if self.every == Nanos::ZERO || now <= self.first {
            return self.first;
        }
        let late = now.since(self.first).0;
        let begun = self.first + self.every * (late / self.every.0);
        if now < begun + self.length {
            begun
        } else {
            begun + self.every
        }
    }
}

/// Blocks this loop's thread as ordered, until no more orders can come.
pub async fn obey(handle: Handle, mut orders: Receiver<Order>) {
    let mut order = Order::NONE;
    loop {
        let start = order.next(clock::monotonic());
        match handle.timeout_at(start, orders.recv()).await {
            Ok(Some(new)) => order = new,
            Ok(None) => return,
            Err(_elapsed) => block_until(start + order.length),
        }
    }
}

fn block_until(end: Instant) {
    loop {
        let left = end.since(clock::monotonic());
        if left == Nanos::ZERO {
            return;
        }
        thread::sleep(left.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_come_at_multiples_of_the_period_and_last_as_long_as_ordered() {
        let order = Order {
            first: Instant(1_000),
            every: Nanos(100),
            length: Nanos(10),
        };
        for (now, next) in [
            (0, 1_000),
            (1_000, 1_000),
            (1_009, 1_000),
            (1_010, 1_100),
            (1_205, 1_200),
        ] {
            assert_eq!(order.next(Instant(now)), Instant(next), "at {now}");
        }
        assert_eq!(Order::NONE.next(Instant(5)), Instant::NEVER);
    }
}
