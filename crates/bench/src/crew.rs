//! Threads that do the same work at the same time.

use std::sync::Barrier;
use std::thread;

use prony_base::{Instant, Nanos, clock};
use prony_record::ProgramLine;

use crate::{BenchError, Done, Order};

/// What one thread did.
#[derive(Clone, Debug, Default)]
pub struct Share {
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
    work: impl Fn(&Order) -> Result<Share, BenchError> + Sync,
) -> Result<Done, BenchError> {
    let barrier = Barrier::new(order.threads as usize);
    let timed = || {
        barrier.wait();
        let start = clock::monotonic();
        let share = work(order);
        share.map(|share| (start, clock::monotonic(), share))
    };
    let shares = thread::scope(|scope| {
        let others: Vec<_> = (1..order.threads).map(|_| scope.spawn(timed)).collect();
        let mut shares = vec![timed()];
        for other in others {
            shares.push(other.join().unwrap_or(Err(BenchError::Panicked)));
        }
        shares.into_iter().collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Done {
        line: sum(order, measure, &shares),
        notes: Vec::new(),
    })
}

fn sum(order: &Order, measure: &str, shares: &[(Instant, Instant, Share)]) -> ProgramLine {
    let first = shares.iter().map(|(start, _, _)| *start).min();
    let last = shares.iter().map(|(_, end, _)| *end).max();
    let elapsed = last
        .zip(first)
        .map_or(Nanos(0), |(last, first)| last.since(first));
    let checksum = shares
        .iter()
        .fold(0_u64, |sum, (_, _, share)| sum.wrapping_add(share.checksum));
    ProgramLine {
        measure: measure.to_owned(),
        threads: order.threads,
        count: order.count * u64::from(order.threads),
        elapsed_ns: elapsed.0,
        bytes: shares.iter().map(|(_, _, share)| share.bytes).sum(),
        checksum: checksum.to_string(),
        ..ProgramLine::default()
    }
}
