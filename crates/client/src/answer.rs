//! An exchange whose response head has been received, and what carries the rest of it.

use std::net::SocketAddr;
use std::ops::Range;

use prony_base::Instant;
use prony_wire::OwnedHeaders;

use super::body::Body;
use super::connections::Http1;
use super::h1::DRAIN_TIME;
use super::http2::Exchange;
use super::state::ClientState;
use super::timing::{Timing, Version};
use super::transport::Chunk;

/// An exchange whose head has been received.
pub(super) struct Answered {
    pub source: Source,
    pub peer: SocketAddr,
    pub status: u16,
    pub version: Version,
    pub headers: OwnedHeaders,
    pub timing: Timing,
}

/// The connection or stream that a response's body comes from.
pub(super) enum Source {
    /// A connection that belongs to this response until its end.
    Http1(Box<Http1>),
    /// A stream of a shared connection, and the bytes received last.
    Http2(Box<Exchange>, Option<Chunk>),
    /// None: the response is complete, or has failed.
    Over,
}

impl Source {
    /// The bytes that were received last.
    #[inline]
    pub fn data(&self, place: Range<usize>) -> &[u8] {
        match self {
            Source::Http1(connection) => connection.data(place),
            Source::Http2(_, chunk) => {
                let chunk = chunk.as_deref().unwrap_or_default();
                chunk.get(place).unwrap_or_default()
            }
            Source::Over => &[],
        }
    }

    /// The request's body, for another try.
    pub fn take_body(&mut self, body: &mut Body) {
        match self {
            Source::Http1(connection) => connection.take_body(body),
            Source::Http2(exchange, _) => *body = exchange.take_body(),
            Source::Over => {}
        }
    }
}

/// Receives an unwanted body, if it is small, so that its connection serves the next exchange:
/// most of it usually came with the head, and reading the rest is faster than reconnecting.
pub(super) async fn discard(client: &ClientState, answered: Answered) {
    client.give_back(answered.headers);
    // The stream of a shared connection is cancelled, and the connection stays open.
    if let Source::Http1(connection) = answered.source {
        let due = client.handle().now() + DRAIN_TIME;
        drain(connection, client.settings().drain_bytes_max, due).await;
    }
}

/// Receives the rest of an unwanted body, at most `bytes_max` until `due`, and then returns the
/// connection to its pool; otherwise closes it.
pub(super) async fn drain(mut connection: Box<Http1>, bytes_max: u64, due: Instant) {
    if connection.drain(bytes_max, due).await {
        let now = connection.moved();
        connection.release(now);
    }
}
