//! The ends of a connection.

use std::future::poll_fn;
use std::task::Poll;

use super::state::ServerState;
use super::wire::Wire;
use prony_engine::Alarm;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client has closed its side, or no request is in progress.
    Orderly,
    /// The client may still be sending; closing now could make its kernel discard the last
    /// response unread (RFC 9112, section 9.6).
    Linger,
    /// The connection is of no use.
    Reset,
    /// It goes on in HTTP/2; the bytes of that are in the body of what is incoming.
    Http2,
}

impl Ending {
    /// That of a connection from which nothing more can be received: a fault of TLS is told to the client.
    pub(super) fn of_broken(wire: &Wire) -> Ending {
        match wire.owes_alert() {
            true => Ending::Linger,
            false => Ending::Reset,
        }
    }
}

/// After the end of this side: discards what is received until the client closes its own.
pub(super) async fn linger(shared: &ServerState, wire: &mut Wire, alarm: &mut Alarm) {
    let due = shared.handle.now() + shared.options.linger_timeout;
    let mut left = shared.options.linger_bytes_max;
    poll_fn(|cx| {
        loop {
            match wire.poll_discard(cx) {
                Poll::Ready(Ok(count)) if (1..=left).contains(&count) => left -= count,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return alarm.poll(&shared.handle, shared.before_stop(due), cx),
            }
        }
    })
    .await
}
