//! What a server is told before it starts: limits and time-outs.
//! Not for: the loop's own sizes, which are [`prony_engine::Config`]'s.

use prony_base::{Nanos, clock};
use prony_wire::{Header, Limits};

use crate::budget::Budget;

/// What [`ServerOptions::body_memory`] is by default.
pub const BODY_MEMORY_BYTES: u64 = 256 << 20;

/// Limits of one [`Server`](crate::Server). A time of [`Nanos::MAX`] is "never".
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Sizes of heads and bodies. A body is collected before its handler runs,
    /// so a connection can hold `body_bytes_max` bytes of memory, and all of them
    /// together what `body_memory` allows.
    pub limits: Limits,
    /// Memory of all bodies that come in several pieces, from their first piece until
    /// they are answered. A request for whose body there is none left is answered 503.
    /// Copies of these options share it, so that several loops have one limit.
    pub body_memory: Budget,
    /// Connections open at once; more stay in the kernel's backlog (and the
    /// loop's accept queue) until one closes.
    pub connections_max: usize,
    /// How long a connection may rest between requests.
    pub idle_timeout: Nanos,
    /// How long a head may take from its first byte. The answer is 408.
    pub header_timeout: Nanos,
    /// How long a body may bring nothing. The answer is 408.
    pub body_timeout: Nanos,
    /// Bytes that a body has to bring each second, from `body_timeout` after its head on:
    /// so much later than that, and as many bytes by this, it has to be whole. The answer
    /// is 408. 0 for any.
    pub body_rate_min: u64,
    /// How long the client may take nothing of what is sent to it. Then the
    /// connection is reset. It is looked at once in this time, so that it may
    /// take twice as long.
    pub write_timeout: Nanos,
    /// Bytes of answers that may wait on one connection, of HTTP/2 on all of its streams
    /// together, before nothing more is read or made for it. One answer that is made whole
    /// may exceed it.
    pub response_buffer_bytes_max: usize,
    /// After a last answer, how long the client may take to see it and close.
    pub linger_timeout: Nanos,
    /// Bytes that are received and thrown away meanwhile, before a reset.
    pub linger_bytes_max: usize,
    /// In a graceful stop, how long a connection at rest is kept for a request
    /// that may be on its way; then it is closed.
    pub stop_idle_grace: Nanos,
    /// How long a graceful stop may take; what remains then is reset.
    pub stop_timeout: Nanos,
    /// Header lines of every answer, also of those that the server gives by itself to
    /// what breaks a rule or a limit. Without those that a handler may not give.
    pub headers: Vec<Header<'static>>,
    /// Speak TLS, with this certificate; a handshake has `header_timeout`. None: plain.
    #[cfg(feature = "tls")]
    pub tls: Option<prony_tls::ServerTls>,
    /// Speak HTTP/2 as well: to clients that begin with its preface, and under TLS to those that choose it. A handler
    /// sees such a request as one of HTTP/1.1, with what `:authority` says as its Host.
    pub http2: bool,
    /// Nanoseconds since the Unix epoch, for the Date header.
    pub unix_nanos: fn() -> u64,
}

impl ServerOptions {
    /// How long a body may take as a whole of which so many bytes have come.
    pub(crate) fn body_time(&self, bytes: u64) -> Nanos {
        match u128::from(bytes) * 1_000_000_000 / u128::from(self.body_rate_min.max(1)) {
            _ if self.body_rate_min == 0 => Nanos::MAX,
            of_rate => {
                let of_rate = u64::try_from(of_rate).unwrap_or(u64::MAX);
                Nanos(self.body_timeout.0.saturating_add(of_rate))
            }
        }
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            limits: Limits::for_requests(),
            body_memory: Budget::new(BODY_MEMORY_BYTES),
            connections_max: 100_000,
            idle_timeout: Nanos::from_secs(75),
            header_timeout: Nanos::from_secs(20),
            body_timeout: Nanos::from_secs(30),
            body_rate_min: 500,
            write_timeout: Nanos::from_secs(30),
            response_buffer_bytes_max: 256 * 1024,
            linger_timeout: Nanos::from_secs(2),
            linger_bytes_max: 64 << 20,
            stop_idle_grace: Nanos::from_millis(100),
            stop_timeout: Nanos::from_secs(4),
            headers: Vec::new(),
            #[cfg(feature = "tls")]
            tls: None,
            http2: false,
            unix_nanos: clock::unix_nanos,
        }
    }
}
