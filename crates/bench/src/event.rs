//! Events are pushed, all of them before the first is dispatched: no handler is
//! registered, and an interceptor's view of the order goes into the checksum.

use std::cell::Cell;
use std::rc::Rc;

use prony_runtime::events::{Events, Options, Originator, Priority};

use crate::crew::{Share, at_once};
use crate::{BenchError, Done, Order, Work};

/// What is pushed: the number and the originator are what the queue gives every event.
struct Plain;

/// The first priority; the others follow it.
const PRIORITY: u64 = 1_000;

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "events", pushed_then_dispatched)
}

fn pushed_then_dispatched(order: &Order) -> Result<Share, BenchError> {
    let (count, priorities) = (order.count, u64::from(order.priorities));
    let sum = prony_engine::run(&order.config(), |handle| async move {
        let events = Events::with_options(
            &handle,
            Options {
                waiting_max: count,
                ..Options::default()
            },
        );
        let (dispatched, sum) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(0_u64)));
        let (number, theirs) = (dispatched.clone(), sum.clone());
        let _watch = events.after(move |_: &Plain, meta, _| {
            number.set(number.get() + 1);
            let weight = number.get() % 7 + 1;
            theirs.set(theirs.get().wrapping_add(meta.id.0.wrapping_mul(weight)));
        });
        let plain = events.emitter().from(Originator(1));
        for index in 0..count {
            let priority = Priority(PRIORITY + index % priorities);
            if plain.push_at(priority, Plain).is_err() {
                break;
            }
        }
        events.drain().await;
        (dispatched.get() == count).then(|| sum.get())
    })?;
    match sum {
        Some(checksum) => Ok(Share { bytes: 0, checksum }),
        None => Err(BenchError::Wrong {
            work: Work::Event,
            wrong: "not every event was dispatched".to_owned(),
        }),
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
            let order = Order {
                count: 1_000,
                priorities,
                ..Order::default()
            };
            let line = run(&order).unwrap().line;
            let expected = by_sorting(1_000, u64::from(priorities));
            assert_eq!(line.checksum, expected.to_string());
        }
    }
}
