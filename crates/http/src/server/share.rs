//! One listener, several loops: connections are shared out evenly.
//!
//! Not by `SO_REUSEPORT`, where the kernel draws a loop for each connection: of
//! few connections all may fall to one loop, and a measurement repeated has
//! another outcome. Here each goes to the loop with the fewest open, at the price
//! of one mailbox message per connection.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use prony_engine::{Accepted, Handle, Listener, SendError, Sender};

use super::{ACCEPT_PAUSE, QUIET_TURNS};
use crate::counters::Counters;

/// A loop that takes connections.
pub struct Taker {
    sender: Sender<Accepted>,
    counters: Arc<Counters>,
    given: u64,
    connections_max: u64,
}

impl Taker {
    /// The loop whose [`Server`](crate::Server) has these counters and receives
    /// from this mailbox. It is given connections without a limit.
    pub fn new(sender: Sender<Accepted>, counters: Arc<Counters>) -> Taker {
        Taker {
            sender,
            counters,
            given: 0,
            connections_max: u64::MAX,
        }
    }

    /// The same, which is given no more than so many at once: as many as its server takes,
    /// so that others wait in the kernel's backlog and not in its mailbox.
    pub fn with_connections_max(self, connections_max: usize) -> Taker {
        Taker {
            connections_max: connections_max as u64,
            ..self
        }
    }

    /// Connections given to it that are not closed again.
    fn open(&self) -> u64 {
        self.given.saturating_sub(self.counters.closed.get())
    }

    fn is_full(&self) -> bool {
        self.open() >= self.connections_max
    }
}

/// Accepts connections and gives each to the taker with the fewest open, until
/// `stop` is ready or a taker is gone. While all have as many as they may, the others
/// wait in the kernel's backlog. Then the backlog is shared out, too, and
/// the takers' mailboxes are closed, which begins their graceful stop.
///
/// A connection for a loop whose mailbox is full is closed at once.
pub async fn share_out(
    handle: &Handle,
    listener: Listener,
    mut takers: Vec<Taker>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut turn = 0;
    loop {
        let next = {
            let mut accepting = pin!(accept(handle, &listener, &takers));
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
                if !give(&mut takers, &mut turn, accepted) {
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
                give(&mut takers, &mut turn, accepted);
            }
            Poll::Ready(Err(_)) => break,
            Poll::Pending => {
                quiet += 1;
                handle.yield_now().await;
            }
        }
    }
}

/// The next connection that somebody may take.
async fn accept(handle: &Handle, listener: &Listener, takers: &[Taker]) -> io::Result<Accepted> {
    // The ends of connections are counted on other threads, and told to nobody.
    while takers.iter().all(Taker::is_full) {
        handle.sleep(ACCEPT_PAUSE).await;
    }
    listener.accept_unattached().await
}

/// Gives a connection away; false if the taker is gone. `turn` moves on, so that
/// ties go round.
fn give(takers: &mut [Taker], turn: &mut usize, accepted: Accepted) -> bool {
    let count = takers.len();
    let by_turn = (0..count).map(|place| (*turn + place) % count);
    let key = |&place: &usize| (takers[place].is_full(), takers[place].open());
    let Some(chosen) = by_turn.min_by_key(key) else {
        return false;
    };
    *turn = chosen + 1;
    let taker = &mut takers[chosen];
    match taker.sender.send(accepted) {
        Ok(()) => {
            taker.given += 1;
            true
        }
        Err(SendError::Full(accepted)) => {
            drop(accepted);
            true
        }
        Err(SendError::Closed(_)) => false,
    }
}
