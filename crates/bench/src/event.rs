//! Events are pushed, all of them before the first is dispatched; a handler sees each.
//!
//! The handler is a coroutine, a plain function, or left out ([`Handling`]). The checksum is
//! what the handler adds up, inside of the clock; without one it is the number of dispatches
//! that the queue counted, because nobody sees an event then.

use std::cell::Cell;
use std::rc::Rc;

use prony_runtime::events::{Events, Meta, Options, Originator, Priority, Registration};

use crate::threads::{ThreadResult, at_once};
use crate::{BenchError, Done, Handling, Order, Payload, Work};

/// What is pushed: the number and the originator are what the queue gives every event.
struct Loaded<P>(P);

/// The payload of an event, beside what the queue gives it.
trait Load: Copy + 'static {
    /// The payload of the event with this number.
    fn from_id(id: u64) -> Self;
    /// The sum of its words.
    fn sum(self) -> u64;
}

impl Load for () {
    fn from_id(_: u64) -> Self {}

    fn sum(self) -> u64 {
        0
    }
}

impl Load for [u64; 4] {
    fn from_id(id: u64) -> Self {
        [id, id + 1, id + 2, id + 3]
    }

    fn sum(self) -> u64 {
        self.into_iter().fold(0, u64::wrapping_add)
    }
}

/// The sums of the handler.
#[derive(Default)]
struct Seen {
    number: Cell<u64>,
    sum: Cell<u64>,
}

impl Seen {
    fn note(&self, id: u64, load: impl Load) {
        let number = self.number.get() + 1;
        self.number.set(number);
        let weighed = id.wrapping_mul(number % 7 + 1);
        let sum = self.sum.get().wrapping_add(weighed);
        self.sum.set(sum.wrapping_add(load.sum()));
    }
}

/// The first priority; the others follow it.
const PRIORITY: u64 = 1_000;

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(
        order,
        "events",
        match order.payload {
            Payload::None => dispatched::<()>,
            Payload::Words => dispatched::<[u64; 4]>,
        },
    )
}

/// Pushes as many as ordered, and waits until all are dispatched.
async fn pushed_then_dispatched<P: Load>(events: &Events, order: &Order) {
    let emitter = events.emitter().from(Originator(1));
    let priorities = u64::from(order.priorities);
    for index in 0..order.count {
        let priority = Priority(PRIORITY + index % priorities);
        // There is room for all of them; what were refused would be missed in the end.
        let _ = emitter.push_at(priority, Loaded(P::from_id(index + 1)));
    }
    events.drain().await;
}

fn handler<P: Load>(events: &Events, how: Handling, seen: Rc<Seen>) -> Option<Registration> {
    match how {
        Handling::Coroutine => Some(events.on_async(move |event: &Loaded<P>, meta| {
            let (seen, id, load) = (seen.clone(), meta.id.0, event.0);
            async move { seen.note(id, load) }
        })),
        Handling::Plain => {
            let note = move |event: &Loaded<P>, meta: &Meta| seen.note(meta.id.0, event.0);
            Some(events.on(note))
        }
        Handling::None => None,
    }
}

fn dispatched<P: Load>(order: &Order) -> Result<ThreadResult, BenchError> {
    let (counts, seen) = prony_engine::run(&order.config(), |handle| async move {
        let options = Options {
            waiting_max: order.count,
            ..Options::default()
        };
        let events = Events::with_options(&handle, options);
        let seen = Rc::new(Seen::default());
        let handler = handler::<P>(&events, order.handling, seen.clone());
        pushed_then_dispatched::<P>(&events, order).await;
        drop(handler);
        (events.stats().counts, seen)
    })?;
    let wrong = |what: &str, number| BenchError::Wrong {
        work: Work::Event,
        wrong: format!("{number} of {} events were {what}", order.count),
    };
    if (counts.pushed, counts.dispatched) != (order.count, order.count) {
        return Err(wrong("dispatched", counts.dispatched));
    }
    let checksum = match order.handling {
        Handling::None => counts.dispatched,
        _ if seen.number.get() != order.count => return Err(wrong("seen", seen.number.get())),
        _ => seen.sum.get(),
    };
    Ok(ThreadResult { bytes: 0, checksum })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dispatch by priority, then in the order of pushing, by a sorted list.
    fn by_sorting(order: &Order) -> u64 {
        let priorities = u64::from(order.priorities);
        let ids = (0..order.count).map(|i| (i % priorities, i + 1));
        let mut ids: Vec<(u64, u64)> = ids.collect();
        ids.sort_unstable();
        let load = |id: u64| match order.payload {
            Payload::None => 0,
            Payload::Words => 4 * id + 6,
        };
        let weighed = (1..)
            .zip(&ids)
            .map(|(k, (_, id))| id * (k % 7 + 1) + load(*id));
        weighed.sum()
    }

    #[test]
    fn all_are_seen_in_the_order_of_their_priorities() {
        for handling in [Handling::Coroutine, Handling::Plain] {
            for (payload, priorities, threads) in [
                (Payload::None, 1, 1),
                (Payload::None, 8, 2),
                (Payload::Words, 8, 1),
                (Payload::Words, 1, 2),
            ] {
                let order = Order {
                    count: 1_000,
                    priorities,
                    threads,
                    handling,
                    payload,
                    ..Order::default()
                };
                let line = run(&order).unwrap().line;
                let expected = by_sorting(&order) * u64::from(threads);
                assert_eq!(line.checksum, expected.to_string(), "{order:?}");
            }
        }
    }

    #[test]
    fn without_a_handler_the_queue_counts() {
        let order = Order {
            count: 100,
            threads: 2,
            handling: Handling::None,
            ..Order::default()
        };
        assert_eq!(run(&order).unwrap().line.checksum, "200");
    }
}
