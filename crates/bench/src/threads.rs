//! Threads that do the same work at the same time.

use std::sync::{Barrier, OnceLock};
use std::thread::{self, Builder};

use prony_base::{Instant, Nanos, clock};
use prony_record::ProgramLine;

use crate::{BenchError, Done, Order};

/// The result of one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadResult {
    /// Bytes that it worked through.
    pub bytes: u64,
    /// Sum over its results.
    pub checksum: u64,
}

/// Does `work` on as many threads as ordered, the calling one being the first, and adds
/// up what they did.
pub fn at_once(
    order: &Order,
    measure: &str,
    work: impl Fn(&Order) -> Result<ThreadResult, BenchError> + Sync,
) -> Result<Done, BenchError> {
    let timed = |_| {
        let start = clock::monotonic();
        let result = work(order);
        result.map(|result| (start, clock::monotonic(), result))
    };
    let results = on_threads(order.threads, &Builder::new, timed)?;
    Ok(Done {
        line: sum(order, measure, &results),
        notes: Vec::new(),
    })
}

/// Does `work` on so many threads, the calling one being the first and its number 0. They
/// begin together, when all are there; where one cannot be had, none begins.
pub fn on_threads<T: Send>(
    threads: u32,
    builder: &dyn Fn() -> Builder,
    work: impl Fn(u32) -> Result<T, BenchError> + Sync,
) -> Result<Vec<T>, BenchError> {
    let barrier = Barrier::new(threads as usize);
    let all_are_there = OnceLock::<bool>::new();
    let work = |number| {
        barrier.wait();
        work(number)
    };
    let (work, all_are_there) = (&work, &all_are_there);
    thread::scope(|scope| {
        let start = |number| {
            let waits = move || all_are_there.wait().then(|| work(number));
            builder().spawn_scoped(scope, waits)
        };
        let others: Result<Vec<_>, _> = (1..threads).map(start).collect();
        // Whoever waits is let go in any case.
        let _ = all_are_there.set(others.is_ok());
        let others = others.map_err(BenchError::Thread)?;
        let mut done = vec![work(0)];
        for other in others {
            let ended = other.join().ok().flatten();
            done.push(ended.unwrap_or(Err(BenchError::Panicked)));
        }
        done.into_iter().collect()
    })
}

fn sum(order: &Order, measure: &str, results: &[(Instant, Instant, ThreadResult)]) -> ProgramLine {
    let first = results.iter().map(|(start, _, _)| *start).min();
    let last = results.iter().map(|(_, end, _)| *end).max();
    let elapsed = last
        .zip(first)
        .map_or(Nanos(0), |(last, first)| last.since(first));
    let checksum = results.iter().fold(0_u64, |sum, (_, _, result)| {
        sum.wrapping_add(result.checksum)
    });
    ProgramLine {
        measure: measure.to_owned(),
        threads: order.threads,
        count: order.count * u64::from(order.threads),
        elapsed_ns: elapsed.0,
        bytes: results.iter().map(|(_, _, result)| result.bytes).sum(),
        checksum: checksum.to_string(),
        ..ProgramLine::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_number() {
        let done = on_threads(4, &Builder::new, Ok).expect("four threads");
        assert_eq!(done, [0, 1, 2, 3]);
    }

    #[test]
    fn a_thread_that_could_not_be_had_left_the_others_waiting() {
        let count = std::cell::Cell::new(0);
        let builder = || {
            count.set(count.get() + 1);
            match count.get() {
                2 => Builder::new().stack_size(1 << 60),
                _ => Builder::new(),
            }
        };
        let done = on_threads(4, &builder, |_| Ok(()));
        assert!(matches!(done, Err(BenchError::Thread(_))), "{done:?}");
    }
}
