//! The pool of this client: connections of HTTP/1, and those of HTTP/2 that requests share.

use std::task::Context;

use prony_base::Instant;
use prony_engine::SendBuf;
use prony_wire::Method;

use super::h1::Connection;
use super::http2::Sharing;
use super::pool::{self, Exclusive};

/// The pool of a client.
pub(super) type Pool = pool::Pool<Connection, Sharing>;
/// A host in it.
pub(super) type Host = pool::Host<Connection, Sharing>;
/// A connection of HTTP/1 in it.
pub(super) type Http1 = pool::Pooled<Connection, Sharing>;
/// A place for a connection in it.
pub(super) type Slot = pool::Slot<Connection, Sharing>;

impl Exclusive for Connection {
    #[inline]
    fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        Connection::is_alive(self, cx)
    }

    fn can_pipeline(&self) -> bool {
        Connection::can_pipeline(self)
    }

    fn post_pipelined(&mut self, head: SendBuf) -> bool {
        Connection::post_pipelined(self, head)
    }

    async fn skip_response(
        &mut self,
        method: Method,
        bytes_max: u64,
        now: Instant,
    ) -> Option<Instant> {
        let reusable = Connection::skip_response(self, method, bytes_max, now).await;
        reusable.then(|| self.moved())
    }
}
