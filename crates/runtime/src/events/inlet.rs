//! Events from other threads: a bounded buffer behind a lock, and a task of the
//! queue's loop that empties it.
//!
//! Only the first event after a pause wakes the loop, so that many in a row cost one
//! system call, and none while the loop is busy. Events of one sender arrive in order.

use std::fmt;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use prony_engine::Handle;

use super::channel::Channel;
use super::emitter::wait_for_room;
use super::queue::Core;
use super::types::{Originator, Priority, PushError};
use super::waiting::{Closable, WaitQueue};

/// Turns in which the emptying task of a loop that spins looks for events before it
/// has itself woken again: about a millisecond.
const LOOKS_MAX: u32 = 10_000;

struct QueuedEvent<E> {
    event: E,
    priority: Priority,
    originator: Originator,
}

/// The events of an inlet. The fields that one event alone needs come first, so that they lie
/// in one or two cache lines: between cores, the time is that of moving them.
#[repr(C)]
struct InletQueue<E> {
    /// The oldest event, when there was none before it.
    first: Option<QueuedEvent<E>>,
    /// The emptying task, while there is nothing to do for it.
    pump: Option<Waker>,
    /// Events here, and those that were taken out and are not yet pushed.
    held: usize,
    limit: usize,
    /// The events after the first.
    queue: Vec<QueuedEvent<E>>,
    closed: bool,
    senders: usize,
    blocked: WaitQueue,
}

#[repr(C, align(128))]
pub(super) struct InletState<E> {
    /// There may be something to do for the emptying task: to be looked at without
    /// the lock.
    news: AtomicBool,
    state: Mutex<InletQueue<E>>,
}

impl<E> InletState<E> {
    fn lock(&self) -> MutexGuard<'_, InletQueue<E>> {
        // No code of others runs under the lock, so that a panic leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> Closable for InletState<E> {
    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.news.store(true, Ordering::Release);
        let mut wakers = state.blocked.all();
        wakers.extend(state.pump.take());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Sends events of one type into a queue from any thread. Cheap to clone; does not
/// keep the queue alive.
pub struct Inlet<E> {
    shared: Arc<InletState<E>>,
    priority: Priority,
    originator: Originator,
}

impl<E> Clone for Inlet<E> {
    fn clone(&self) -> Inlet<E> {
        self.shared.lock().senders += 1;
        Inlet {
            shared: self.shared.clone(),
            ..*self
        }
    }
}

impl<E> Drop for Inlet<E> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.senders -= 1;
        let pump = if state.senders == 0 {
            self.shared.news.store(true, Ordering::Release);
            state.pump.take()
        } else {
            None
        };
        drop(state);
        if let Some(pump) = pump {
            pump.wake();
        }
    }
}

impl<E: Send + 'static> Inlet<E> {
    /// The same for events of this priority.
    pub fn at(mut self, priority: Priority) -> Inlet<E> {
        self.priority = priority;
        self
    }

    /// The same in this name.
    pub fn from(mut self, originator: Originator) -> Inlet<E> {
        self.originator = originator;
        self
    }

    /// Sends an event; it is then on its way.
    ///
    /// # Errors
    /// [`PushError`] with the event, when the inlet holds its limit, or when the
    /// queue is closed or gone.
    pub fn send(&self, event: E) -> Result<(), PushError<E>> {
        let mut state = self.shared.lock();
        if state.closed {
            return Err(PushError::Closed(event));
        }
        if state.held >= state.limit {
            return Err(PushError::Full(event));
        }
        let pump = self.put(&mut state, event);
        drop(state);
        if let Some(pump) = pump {
            pump.wake();
        }
        Ok(())
    }

    fn put(&self, state: &mut InletQueue<E>, event: E) -> Option<Waker> {
        let queued = QueuedEvent {
            event,
            priority: self.priority,
            originator: self.originator,
        };
        if state.held == 0 {
            state.first = Some(queued);
        } else {
            state.queue.push(queued);
        }
        state.held += 1;
        self.shared.news.store(true, Ordering::Release);
        state.pump.take()
    }

    /// Waits for room, behind those that wait already, then sends. May be awaited
    /// in any runtime. Dropping the future before it is ready drops the event.
    ///
    /// # Errors
    /// [`PushError::Closed`] with the event.
    pub async fn send_wait(&self, event: E) -> Result<(), PushError<E>> {
        let mut ticket = Ticket {
            shared: &self.shared,
            number: None,
        };
        let mut event = Some(event);
        poll_fn(|cx| self.poll_send(&mut ticket, &mut event, cx)).await
    }

    fn poll_send(
        &self,
        ticket: &mut Ticket<'_, E>,
        event: &mut Option<E>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), PushError<E>>> {
        let mut state = self.shared.lock();
        let may_send = state.held < state.limit && state.blocked.is_first(ticket.number);
        if !state.closed && !may_send {
            ticket.number = Some(state.blocked.wait(ticket.number, cx.waker()));
            return Poll::Pending;
        }
        let Some(event) = event.take() else {
            return Poll::Pending;
        };
        if state.closed {
            return Poll::Ready(Err(PushError::Closed(event)));
        }
        let pump = self.put(&mut state, event);
        drop(state);
        if let Some(pump) = pump {
            pump.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl<E> fmt::Debug for Inlet<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inlet({} held)", self.shared.lock().held)
    }
}

/// A place in the line of an inlet.
struct Ticket<'a, E> {
    shared: &'a InletState<E>,
    number: Option<u64>,
}

impl<E> Drop for Ticket<'_, E> {
    /// Wakes the next sender, which may have been waiting for this one.
    fn drop(&mut self) {
        let Some(number) = self.number else {
            return;
        };
        let mut state = self.shared.lock();
        state.blocked.leave(number);
        let next = if state.held < state.limit {
            state.blocked.first()
        } else {
            None
        };
        drop(state);
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// Makes an inlet into a queue, and the task that empties it.
pub(super) fn open<E: Send + 'static>(core: &Rc<Core>, limit: usize) -> Inlet<E> {
    let state = InletQueue {
        first: None,
        pump: None,
        held: 0,
        limit: limit.max(1),
        queue: Vec::new(),
        closed: core.is_closed(),
        senders: 1,
        blocked: WaitQueue::default(),
    };
    let shared = Arc::new(InletState {
        news: AtomicBool::new(false),
        state: Mutex::new(state),
    });
    core.note_inlet(shared.clone());
    let pump = Pump {
        core: Rc::downgrade(core),
        channel: core.channel(),
        shared: shared.clone(),
        handle: core.shared.handle.clone(),
    };
    core.keep(core.shared.handle.spawn(pump.run()));
    Inlet {
        shared,
        priority: Priority::default(),
        originator: Originator::default(),
    }
}

struct Pump<E> {
    core: Weak<Core>,
    channel: Rc<Channel<E>>,
    shared: Arc<InletState<E>>,
    handle: Handle,
}

impl<E: Send + 'static> Pump<E> {
    async fn run(self) {
        let mut batch = Vec::new();
        while self.next_batch(&mut batch).await {
            let count = batch.len();
            for queued in batch.drain(..) {
                if !self.push(queued).await {
                    return;
                }
            }
            self.release(count);
        }
    }

    /// The next batch, if there will be one. On a loop that spins it looks for it for
    /// a while in every turn, which is sooner than to be woken, and cheaper for the sender.
    async fn next_batch(&self, batch: &mut Vec<QueuedEvent<E>>) -> bool {
        if self.handle.spins() {
            for _ in 0..LOOKS_MAX {
                if self.shared.news.load(Ordering::Acquire) {
                    break;
                }
                self.handle.yield_now().await;
            }
        }
        poll_fn(|cx| self.poll_batch(batch, cx)).await
    }

    /// Ready with true when there is a batch, and with false when there will be none.
    fn poll_batch(&self, batch: &mut Vec<QueuedEvent<E>>, cx: &Context<'_>) -> Poll<bool> {
        let mut state = self.shared.lock();
        self.shared.news.store(false, Ordering::Relaxed);
        batch.extend(state.first.take());
        batch.append(&mut state.queue);
        if !batch.is_empty() {
            return Poll::Ready(true);
        }
        if state.closed || state.senders == 0 {
            return Poll::Ready(false);
        }
        state.pump = Some(cx.waker().clone());
        Poll::Pending
    }

    /// False when the queue is gone.
    async fn push(&self, queued: QueuedEvent<E>) -> bool {
        if !wait_for_room(&self.core).await {
            return false;
        }
        let Some(core) = self.core.upgrade() else {
            return false;
        };
        core.accept(
            &self.channel,
            queued.event,
            queued.priority,
            queued.originator,
        );
        true
    }

    /// Events have been pushed: there is room for as many.
    fn release(&self, count: usize) {
        let mut state = self.shared.lock();
        state.held -= count;
        let next = state.blocked.first();
        drop(state);
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl<E> Drop for Pump<E> {
    fn drop(&mut self) {
        self.shared.close();
        let mut state = self.shared.lock();
        let left = (state.first.take(), std::mem::take(&mut state.queue));
        drop(state);
        drop(left);
        if let Some(core) = self.core.upgrade() {
            core.note_inlet_gone();
        }
    }
}
