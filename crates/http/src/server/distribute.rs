//! Distributes the connections of one listener evenly over several loops.
//!
//! Not by `SO_REUSEPORT`, where the kernel picks a loop at random for each connection: all of a
//! few connections may go to one loop, and a repeated measurement has another result. Here
//! each goes to the loop with the fewest open, at the price of one mailbox message per
//! connection.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use prony_base::Nanos;
use prony_engine::{Accepted, Handle, Listener, SendError, Sender};

use crate::counters::Counters;

/// Pause after a failed attempt to accept, which is mostly for want of
/// descriptors: some connection has to close first.
pub(super) const ACCEPT_PAUSE: Nanos = Nanos::from_millis(10);
/// Turns of the loop without a new connection after which the backlog is empty.
pub(super) const QUIET_TURNS: u32 = 2;
/// A loop to which connections are distributed.
pub struct AcceptTarget {
    sender: Sender<Accepted>,
    counters: Arc<Counters>,
    given: u64,
    connections_max: u64,
}

impl AcceptTarget {
    /// The loop whose [`Server`](crate::Server) has these counters and receives from this
    /// mailbox. The number of its connections is not limited.
    pub fn new(sender: Sender<Accepted>, counters: Arc<Counters>) -> AcceptTarget {
        AcceptTarget {
            sender,
            counters,
            given: 0,
            connections_max: u64::MAX,
        }
    }

    /// The same with at most so many connections open: as many as its server takes, so that
    /// others wait in the kernel's backlog and not in its mailbox.
    pub fn with_connections_max(self, connections_max: usize) -> AcceptTarget {
        AcceptTarget {
            connections_max: connections_max as u64,
            ..self
        }
    }

    /// Connections given to it that are still open.
    fn open(&self) -> u64 {
        self.given.saturating_sub(self.counters.closed.get())
    }

    fn is_full(&self) -> bool {
        self.open() >= self.connections_max
    }
}

/// Accepts connections and gives each to the target with the fewest open, until `stop` is ready
/// or a target is gone. While all targets are full, further connections wait in the kernel's
/// backlog. At the end the backlog is distributed, too, and the targets' mailboxes are closed,
/// which starts their graceful stop.
///
/// A connection for a loop whose mailbox is full is closed at once.
pub async fn distribute(
    handle: &Handle,
    listener: Listener,
    mut targets: Vec<AcceptTarget>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut turn = 0;
    loop {
        let next = {
            let mut accepting = pin!(accept(handle, &listener, &targets));
            poll_fn(|cx| {
                if stop.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                accepting.as_mut().poll(cx).map(Some)
            })
            .await
        };
        match next {
            Some(Ok(accepted)) => {
                if !give(&mut targets, &mut turn, accepted) {
                    break;
                }
            }
            Some(Err(_)) => handle.sleep(ACCEPT_PAUSE).await,
            None => break,
        }
    }
    let mut quiet = 0;
    while quiet < QUIET_TURNS {
        let mut accepting = pin!(listener.accept_unattached());
        match poll_fn(|cx| Poll::Ready(accepting.as_mut().poll(cx))).await {
            Poll::Ready(Ok(accepted)) => {
                quiet = 0;
                give(&mut targets, &mut turn, accepted);
            }
            Poll::Ready(Err(_)) => break,
            Poll::Pending => {
                quiet += 1;
                handle.yield_now().await;
            }
        }
    }
}

/// Accepts the next connection, once a target has room for it.
async fn accept(
    handle: &Handle,
    listener: &Listener,
    targets: &[AcceptTarget],
) -> io::Result<Accepted> {
    // Other threads count the ends of connections, and nothing reports them here.
    while targets.iter().all(AcceptTarget::is_full) {
        handle.sleep(ACCEPT_PAUSE).await;
    }
    listener.accept_unattached().await
}

/// Gives a connection to a target; false if that is gone. `turn` advances, so that ties are
/// broken round-robin.
fn give(targets: &mut [AcceptTarget], turn: &mut usize, accepted: Accepted) -> bool {
    let count = targets.len();
    let by_turn = (0..count).map(|place| (*turn + place) % count);
    let key = |&place: &usize| (targets[place].is_full(), targets[place].open());
    let Some(chosen) = by_turn.min_by_key(key) else {
        return false;
    };
    *turn = chosen + 1;
    let target = &mut targets[chosen];
    match target.sender.send(accepted) {
        Ok(()) => {
            target.given += 1;
            true
        }
        Err(SendError::Full(accepted)) => {
            drop(accepted);
            true
        }
        Err(SendError::Closed(_)) => false,
    }
}
