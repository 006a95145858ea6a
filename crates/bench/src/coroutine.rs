//! A coroutine awaits an event; a second one, which it spawns and which goes through
//! the loop's queue of tasks, sets the event and so resumes the first.

use std::cell::Cell;
use std::rc::Rc;

use prony_runtime::coroutines::{AutoEvent, Coroutines};

use crate::crew::{Share, at_once};
use crate::{BenchError, Done, Order};

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "coroutines", resumes)
}

fn resumes(order: &Order) -> Result<Share, BenchError> {
    let count = order.count;
    let checksum = prony_engine::run(&order.config(), |handle| async move {
        let coroutines = Coroutines::new(&handle);
        let event = Rc::new(AutoEvent::new());
        let sum = Rc::new(Cell::new(0_u64));
        for round in 0..count {
            let (event_theirs, sum_theirs) = (event.clone(), sum.clone());
            let second = async move {
                sum_theirs.set(sum_theirs.get().wrapping_add(round));
                event_theirs.set();
            };
            coroutines.spawn(second).detach();
            event.wait().await;
            sum.set(sum.get().wrapping_add(1));
        }
        sum.get()
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
