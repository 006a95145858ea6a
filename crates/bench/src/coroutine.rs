//! A coroutine awaits an event; a second one, which came through the queue of events, sets
//! it and so resumes the first. [`Through::Tasks`]: through the loop's own queue of tasks.

use std::cell::Cell;
use std::rc::Rc;

use prony_engine::Handle;
use prony_runtime::coroutines::{AutoEvent, Coroutines, TaskError};
use prony_runtime::events::{Events, Originator};

use crate::threads::{ThreadResult, at_once};
use crate::{BenchError, Done, Order, Through, Work};

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "coroutines", resumes)
}

/// The state that the two coroutines of a round share.
#[derive(Default)]
struct Rounds {
    event: AutoEvent,
    sum: Cell<u64>,
}

impl Rounds {
    fn add(&self, number: u64) {
        self.sum.set(self.sum.get().wrapping_add(number));
    }

    /// The work of the second coroutine of a round.
    fn resume(&self, round: u64) {
        self.add(round);
        self.event.set();
    }
}

/// Asks for the second coroutine of a round.
struct Resume(u64);

fn resumes(order: &Order) -> Result<ThreadResult, BenchError> {
    let (count, through) = (order.count, order.through);
    let checksum = prony_engine::run(&order.config(), |handle| async move {
        match through {
            Through::Events => through_events(&handle, count).await,
            Through::Tasks => through_tasks(&handle, count).await,
        }
    })?;
    let checksum = checksum.map_err(|error| BenchError::Wrong {
        work: Work::Coroutine,
        wrong: error.to_string(),
    })?;
    Ok(ThreadResult { bytes: 0, checksum })
}

/// Each round pushes an event, of which the queue makes the second coroutine.
async fn through_events(handle: &Handle, count: u64) -> Result<u64, TaskError> {
    let events = Events::new(handle);
    let shared = Rc::new(Rounds::default());
    let theirs = shared.clone();
    let handler = events.on_async(move |resume: &Resume, _| {
        let (shared, round) = (theirs.clone(), resume.0);
        async move { shared.resume(round) }
    });
    let emitter = events.emitter().from(Originator(1));
    let first = Coroutines::new(handle).spawn(async move {
        for round in 0..count {
            // One at a time finds room; one that did not would be waited for in vain.
            if emitter.push(Resume(round)).is_err() {
                break;
            }
            shared.event.wait().await;
            shared.add(1);
        }
        shared.sum.get()
    });
    let sum = first.await;
    drop(handler);
    sum
}

/// Each round spawns the second coroutine as a task of the loop.
async fn through_tasks(handle: &Handle, count: u64) -> Result<u64, TaskError> {
    let coroutines = Coroutines::new(handle);
    let spawner = coroutines.clone();
    let first = coroutines.spawn(async move {
        let shared = Rc::new(Rounds::default());
        for round in 0..count {
            let theirs = shared.clone();
            spawner.spawn(async move { theirs.resume(round) }).detach();
            shared.event.wait().await;
            shared.add(1);
        }
        shared.sum.get()
    });
    first.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_coroutines_run_in_every_round() {
        for through in [Through::Events, Through::Tasks] {
            let order = Order {
                count: 100,
                threads: 2,
                through,
                ..Order::default()
            };
            let line = run(&order).unwrap().line;
            assert_eq!(line.count, 200);
            // 0 to 99 by the second ones, and one a round by the first.
            assert_eq!(line.checksum, (2 * (99 * 50 + 100)).to_string());
        }
    }
}
