//! Events are pushed, all of them before the first is dispatched.
//!
//! No handler is registered, so nobody sees the events: that all were dispatched is told by
//! the queue's own counters. In which order is told by a second pass of the same size,
//! outside of the clock, which an interceptor watches: it gives the checksum.

use std::cell::Cell;
use std::rc::Rc;

use prony_engine::Handle;
use prony_runtime::events::{Events, Options, Originator, Priority};

use crate::crew::{Share, at_once};
use crate::{BenchError, Done, Order, Work};

/// What is pushed: the number and the originator are what the queue gives every event.
struct Plain;

/// The first priority; the others follow it.
const PRIORITY: u64 = 1_000;

pub fn run(order: &Order) -> Result<Done, BenchError> {
    let mut done = at_once(order, "events", dispatched)?;
    let checksum = watched(order)?.wrapping_mul(u64::from(order.threads));
    done.line.checksum = checksum.to_string();
    Ok(done)
}

fn queue(handle: &Handle, order: &Order) -> Events {
    let options = Options {
        waiting_max: order.count,
        ..Options::default()
    };
    Events::with_options(handle, options)
}

/// Pushes as many as ordered, and waits until all are dispatched.
async fn pushed_then_dispatched(events: &Events, order: &Order) {
    let plain = events.emitter().from(Originator(1));
    let priorities = u64::from(order.priorities);
    for index in 0..order.count {
        let priority = Priority(PRIORITY + index % priorities);
        // There is room for all of them; what were refused would be missed in the end.
        let _ = plain.push_at(priority, Plain);
    }
    events.drain().await;
}

fn wrong(dispatched: u64, count: u64) -> BenchError {
    BenchError::Wrong {
        work: Work::Event,
        wrong: format!("{dispatched} of {count} events were dispatched"),
    }
}

fn dispatched(order: &Order) -> Result<Share, BenchError> {
    let counts = prony_engine::run(&order.config(), |handle| async move {
        let events = queue(&handle, order);
        pushed_then_dispatched(&events, order).await;
        events.stats().counts
    })?;
    match (counts.pushed, counts.dispatched) == (order.count, order.count) {
        true => Ok(Share::default()),
        false => Err(wrong(counts.dispatched, order.count)),
    }
}

/// The sum that shows the order of dispatch.
fn watched(order: &Order) -> Result<u64, BenchError> {
    let (number, sum) = prony_engine::run(&order.config(), |handle| async move {
        let events = queue(&handle, order);
        let seen = Rc::new(Cell::new((0_u64, 0_u64)));
        let theirs = seen.clone();
        let watch = events.after(move |_: &Plain, meta, _| {
            let (number, sum) = theirs.get();
            let weight = (number + 1) % 7 + 1;
            theirs.set((number + 1, sum.wrapping_add(meta.id.0.wrapping_mul(weight))));
        });
        pushed_then_dispatched(&events, order).await;
        drop(watch);
        seen.get()
    })?;
    match number == order.count {
        true => Ok(sum),
        false => Err(wrong(number, order.count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dispatch by priority, then in the order of pushing, by a sorted list.
    fn by_sorting(count: u64, priorities: u64) -> u64 {
        let mut ids: Vec<(u64, u64)> = (0..count).map(|i| (i % priorities, i + 1)).collect();
        ids.sort_unstable();
        let weighed = (1..).zip(&ids).map(|(k, (_, id))| id * (k % 7 + 1));
        weighed.sum()
    }

    #[test]
    fn all_are_dispatched_in_the_order_of_their_priorities() {
        for priorities in [1, 8] {
            for threads in [1, 2] {
                let order = Order {
                    count: 1_000,
                    priorities,
                    threads,
                    ..Order::default()
                };
                let line = run(&order).unwrap().line;
                let expected = by_sorting(1_000, u64::from(priorities)) * u64::from(threads);
                assert_eq!(line.checksum, expected.to_string());
            }
        }
    }
}
