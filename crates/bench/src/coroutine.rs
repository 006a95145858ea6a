//! A coroutine awaits an event; a second one, which it spawns and which goes through
//! the loop's queue of tasks, sets the event and so resumes the first.

use std::cell::Cell;
use std::rc::Rc;

use prony_runtime::coroutines::{AutoEvent, Coroutines};

use crate::crew::{Share, at_once};
use crate::{BenchError, Done, Order, Work};

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "coroutines", resumes)
}

/// What the two coroutines of a round share.
#[derive(Default)]
struct Shared {
    event: AutoEvent,
    sum: Cell<u64>,
}

impl Shared {
    fn add(&self, number: u64) {
        self.sum.set(self.sum.get().wrapping_add(number));
    }
}

fn resumes(order: &Order) -> Result<Share, BenchError> {
    let count = order.count;
    let checksum = prony_engine::run(&order.config(), |handle| async move {
        let coroutines = Coroutines::new(&handle);
        let own = coroutines.clone();
        let first = coroutines.spawn(async move {
            let shared = Rc::new(Shared::default());
            for round in 0..count {
                let theirs = shared.clone();
                let second = async move {
                    theirs.add(round);
                    theirs.event.set();
                };
                own.spawn(second).detach();
                shared.event.wait().await;
                shared.add(1);
            }
            shared.sum.get()
        });
        first.await
    })?;
    let checksum = checksum.map_err(|error| BenchError::Wrong {
        work: Work::Coroutine,
        wrong: error.to_string(),
    })?;
    Ok(Share { bytes: 0, checksum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_coroutines_run_in_every_round() {
        let order = Order {
            count: 100,
            threads: 2,
            ..Order::default()
        };
        let line = run(&order).unwrap().line;
        assert_eq!(line.count, 200);
        // 0 to 99 by the second ones, and one a round by the first.
        assert_eq!(line.checksum, (2 * (99 * 50 + 100)).to_string());
    }
}
