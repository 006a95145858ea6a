//! The times of single requests, for who wants to look at each.

use prony_base::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::recorder::Answer;

/// The times of one request that was answered, on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTimes {
    /// Number of the connection, from 0, over all threads.
    pub connection: u32,
    /// Its local port, by which a capture knows it.
    pub local_port: u16,
    /// When the schedule wanted it to start.
    pub intended: Instant,
    /// When it was handed to the kernel, at the earliest.
    pub submitted: Instant,
    /// By how much later that may have been.
    pub submitted_within: Nanos,
    /// When the first byte of the answer came, as the latency counts it.
    pub first_byte: Instant,
    /// When the last byte came, as the latency counts it.
    pub last_byte: Instant,
    /// By how much earlier it may have been in the socket. Where the thread slept, since it fell asleep. The kernel's own
    /// work between a packet and the socket is not in it: beside a capture one in a hundred is some microseconds too small.
    pub picked_up_within: Nanos,
    /// Whether the thread slept in the kernel when it came.
    pub slept: bool,
    /// When the generator had dealt with it.
    pub processed: Instant,
    /// Status code of the answer.
    pub status: u16,
}

impl RequestTimes {
    /// Tells them by another clock, on which the moment `from` is `to`.
    pub fn rebase(&mut self, from: Instant, to: Instant) {
        for at in [
            &mut self.intended,
            &mut self.submitted,
            &mut self.first_byte,
            &mut self.last_byte,
            &mut self.processed,
        ] {
            *at = at.rebased(from, to);
        }
    }
}

/// The times of the first requests of a thread; keeping one allocates nothing.
#[derive(Debug, Default)]
pub struct Trace {
    kept: Vec<RequestTimes>,
}

impl Trace {
    /// Room for `limit` requests.
    pub fn new(limit: usize) -> Trace {
        Trace {
            kept: Vec::with_capacity(limit),
        }
    }

    /// Keeps the times of `answer`, if there is room.
    pub fn keep(&mut self, connection: u32, local_port: u16, answer: &Answer) {
        if self.kept.len() == self.kept.capacity() {
            return;
        }
        let times = &answer.times;
        let last = times.last_byte;
        self.kept.push(RequestTimes {
            connection,
            local_port,
            intended: times.intended,
            submitted: times.submitted.from,
            submitted_within: times.submitted.width(),
            first_byte: times.first_byte,
            last_byte: times.done(),
            picked_up_within: match last.kernel {
                Some(_) => Nanos::ZERO,
                None => last.reaped.since(last.since),
            },
            slept: last.slept,
            processed: times.processed,
            status: answer.status,
        });
    }

    /// What was kept.
    pub fn into_kept(self) -> Vec<RequestTimes> {
        self.kept
    }
}
