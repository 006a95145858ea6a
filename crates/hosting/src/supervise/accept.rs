//! Accepts connections and has them passed to workers ([`Distribution::Least`]).
//!
//! [`Distribution::Least`]: crate::Distribution::Least

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use prony_base::Nanos;
use prony_engine::{Handle, Listener};

use super::balancer::Balancer;
use crate::bell::Bell;
use crate::board::Board;

/// Connections that are passed on together. So many may be in hand while no worker takes
/// any; the others wait in the kernel's backlog, which tells their clients.
pub(super) const BATCH_MAX: usize = 64;
/// Pause after a failed attempt to accept, which is mostly for want of descriptors, and
/// while no worker takes what is in hand.
const PAUSE: Nanos = Nanos::from_millis(10);
/// How long after the end of the host somebody may still take what is in hand.
const LAST_TRY: Nanos = Nanos::from_secs(1);
/// Turns of the loop without a new connection after which the backlog is empty.
const QUIET_TURNS: u32 = 2;

/// Accepts and passes on connections until `stop` is rung, and then those in the backlog.
pub(super) async fn accept(
    handle: Handle,
    listener: Listener,
    balancer: Rc<Balancer>,
    board: Rc<Board>,
    stop: Rc<Bell>,
) {
    let mut stopping = pin!(stop.heard());
    let mut batch: Vec<OwnedFd> = Vec::with_capacity(BATCH_MAX);
    loop {
        let mut accepting = pin!(listener.accept_unattached());
        let first = poll_fn(|cx| match stopping.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => accepting.as_mut().poll(cx).map(Some),
        });
        match first.await {
            Some(Ok(first)) => batch.push(first.into()),
            Some(Err(_)) => handle.sleep(PAUSE).await,
            None => break,
        }
        fill(&listener, &mut batch).await;
        loop {
            balancer.pass(&mut batch, &board, handle.now());
            if batch.is_empty() {
                break;
            }
            // In case of a stop, what is in hand is tried again below.
            let _ = handle.timeout(PAUSE, balancer.changed.heard()).await;
            let stopped = poll_fn(|cx| Poll::Ready(stopping.as_mut().poll(cx).is_ready())).await;
            if stopped {
                return rest(&handle, &listener, batch, &balancer, &board).await;
            }
        }
    }
    rest(&handle, &listener, batch, &balancer, &board).await;
}

/// Passes on what waits in the backlog; what no worker takes in time is closed, which tells the clients.
async fn rest(
    handle: &Handle,
    listener: &Listener,
    mut batch: Vec<OwnedFd>,
    balancer: &Balancer,
    board: &Board,
) {
    let due = handle.now() + LAST_TRY;
    let mut quiet = 0;
    while quiet < QUIET_TURNS && handle.now() < due {
        let before = batch.len();
        fill(listener, &mut batch).await;
        quiet = if batch.len() > before { 0 } else { quiet + 1 };
        balancer.pass(&mut batch, board, handle.now());
        match batch.is_empty() {
            true => handle.yield_now().await,
            false => {
                quiet = 0;
                handle.sleep(PAUSE).await;
            }
        }
    }
}

/// Takes what has been accepted already.
async fn fill(listener: &Listener, batch: &mut Vec<OwnedFd>) {
    while batch.len() < BATCH_MAX {
        let mut accepting = pin!(listener.accept_unattached());
        match poll_fn(|cx| Poll::Ready(accepting.as_mut().poll(cx))).await {
            Poll::Ready(Ok(accepted)) => batch.push(accepted.into()),
            Poll::Ready(Err(_)) | Poll::Pending => break,
        }
    }
}
