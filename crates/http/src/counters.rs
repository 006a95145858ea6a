//! What a server counts. One loop writes, any thread reads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread adds to and any thread reads: an ordinary addition,
/// without the price of an atomic one. Two threads that add lose counts.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `more`.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of one [`Server`](crate::Server), with a cache line of their own.
///
/// Once traffic has drained, `requests` = `answered` + `aborted`, and the
/// statuses add up to `answered` + `refused`.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters {
    pub(crate) accepted: Count,
    pub(crate) closed: Count,
    pub(crate) requests: Count,
    pub(crate) answered: Count,
    pub(crate) aborted: Count,
    pub(crate) refused: Count,
    pub(crate) truncated: Count,
    pub(crate) accept_errors: Count,
    pub(crate) handshakes_failed: Count,
    pub(crate) http2_connections: Count,
    pub(crate) streams_cancelled: Count,
    pub(crate) streams_refused: Count,
    pub(crate) bytes_in: Count,
    pub(crate) bytes_out: Count,
    pub(crate) body_bytes: Count,
    /// By status, from 100.
    statuses: [Count; STATUSES],
}

const STATUSES: usize = 900;

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            accepted: Count::default(),
            closed: Count::default(),
            requests: Count::default(),
            answered: Count::default(),
            aborted: Count::default(),
            refused: Count::default(),
            truncated: Count::default(),
            accept_errors: Count::default(),
            handshakes_failed: Count::default(),
            http2_connections: Count::default(),
            streams_cancelled: Count::default(),
            streams_refused: Count::default(),
            bytes_in: Count::default(),
            bytes_out: Count::default(),
            body_bytes: Count::default(),
            statuses: std::array::from_fn(|_| Count::default()),
        }
    }
}

impl Counters {
    #[inline]
    pub(crate) fn status(&self, status: u16) {
        if let Some(count) = self.statuses.get(usize::from(status).wrapping_sub(100)) {
            count.add(1);
        }
    }

    /// Connections accepted, and of these those closed again, without looking at the rest.
    pub fn connections(&self) -> (u64, u64) {
        (self.accepted.get(), self.closed.get())
    }

    /// Requests that came whole, without looking at the rest.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// The numbers now.
    pub fn totals(&self) -> Totals {
        let statuses = self.statuses.iter().map(Count::get).zip(100..);
        Totals {
            accepted: self.accepted.get(),
            closed: self.closed.get(),
            requests: self.requests.get(),
            answered: self.answered.get(),
            aborted: self.aborted.get(),
            refused: self.refused.get(),
            truncated: self.truncated.get(),
            accept_errors: self.accept_errors.get(),
            handshakes_failed: self.handshakes_failed.get(),
            http2_connections: self.http2_connections.get(),
            streams_cancelled: self.streams_cancelled.get(),
            streams_refused: self.streams_refused.get(),
            bytes_in: self.bytes_in.get(),
            bytes_out: self.bytes_out.get(),
            body_bytes: self.body_bytes.get(),
            statuses: statuses
                .filter(|&(count, _)| count > 0)
                .map(|(count, status)| (status, count))
                .collect(),
        }
    }
}

/// The numbers of one server, or of several added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted.
    pub accepted: u64,
    /// Of these, how many are closed again.
    pub closed: u64,
    /// Requests that came whole and broke no rule.
    pub requests: u64,
    /// Of these, how many were answered to the last byte, as far as the
    /// server's side goes.
    pub answered: u64,
    /// Of these, how many never will be: the connection broke meanwhile, or the
    /// handler stopped short.
    pub aborted: u64,
    /// Requests that broke a rule or a limit or came too slowly, each answered
    /// with its status and the end of the connection.
    pub refused: u64,
    /// Requests that the connection's end cut off.
    pub truncated: u64,
    /// Failed attempts to accept a connection.
    pub accept_errors: u64,
    /// Connections whose handshake of TLS failed.
    pub handshakes_failed: u64,
    /// Connections of HTTP/2.
    pub http2_connections: u64,
    /// Streams of HTTP/2 that the client reset.
    pub streams_cancelled: u64,
    /// Streams of HTTP/2 that the server reset, because they broke a rule or a limit.
    pub streams_refused: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes handed over for sending.
    pub bytes_out: u64,
    /// Bytes of the bodies of the requests that were answered, without framing.
    pub body_bytes: u64,
    /// How many answers had each status.
    pub statuses: BTreeMap<u16, u64>,
}

impl Totals {
    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.accepted.saturating_sub(self.closed)
    }

    /// Answers with a status from `hundreds` * 100 on.
    pub fn class(&self, hundreds: u16) -> u64 {
        let range = hundreds * 100..(hundreds + 1) * 100;
        self.statuses.range(range).map(|(_, count)| count).sum()
    }

    /// Adds another server's numbers.
    pub fn add(&mut self, other: &Totals) {
        self.accepted += other.accepted;
        self.closed += other.closed;
        self.requests += other.requests;
        self.answered += other.answered;
        self.aborted += other.aborted;
        self.refused += other.refused;
        self.truncated += other.truncated;
        self.accept_errors += other.accept_errors;
        self.handshakes_failed += other.handshakes_failed;
        self.http2_connections += other.http2_connections;
        self.streams_cancelled += other.streams_cancelled;
        self.streams_refused += other.streams_refused;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.body_bytes += other.body_bytes;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_several_servers_add_up_by_status() {
        let (one, other) = (Counters::default(), Counters::default());
        one.requests.add(3);
        one.status(200);
        other.requests.add(4);
        other.status(200);
        other.status(404);
        other.status(99);
        other.status(1000);
        let mut totals = one.totals();
        totals.add(&other.totals());
        assert_eq!(totals.requests, 7);
        assert_eq!(totals.statuses, BTreeMap::from([(200, 2), (404, 1)]));
        assert_eq!(
            (totals.class(2), totals.class(4), totals.class(5)),
            (2, 1, 0)
        );
    }
}
