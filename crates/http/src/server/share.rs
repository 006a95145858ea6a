//! One listener, several loops: connections are shared out evenly.
//!
//! Not by `SO_REUSEPORT`, where the kernel draws a loop for each connection: of
//! few connections all may fall to one loop, and a measurement repeated has
//! another outcome. Here each goes to the loop with the fewest open, at the price
//! of one mailbox message per connection.

use std::future::{Future, poll_fn};
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
}

impl Taker {
    /// The loop whose [`Server`](crate::Server) has these counters and receives
    /// from this mailbox.
    pub fn new(sender: Sender<Accepted>, counters: Arc<Counters>) -> Taker {
        Taker {
            sender,
            counters,
            given: 0,
        }
    }

    /// Connections given to it that are not closed again.
    fn open(&self) -> u64 {
        self.given.saturating_sub(self.counters.closed.get())
    }
}

/// Accepts connections and gives each to the taker with the fewest open, until
/// `stop` is ready or a taker is gone. Then the backlog is shared out, too, and
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
        let mut accepting = pin!(listener.accept_unattached());
        let next = poll_fn(|cx| {
            if stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            accepting.as_mut().poll(cx).map(Some)
        });
        match next.await {
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

/// Gives a connection away; false if the taker is gone. `turn` moves on, so that
/// ties go round.
fn give(takers: &mut [Taker], turn: &mut usize, accepted: Accepted) -> bool {
    let count = takers.len();
    let by_turn = (0..count).map(|place| (*turn + place) % count);
    let Some(chosen) = by_turn.min_by_key(|&place| takers[place].open()) else {
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
