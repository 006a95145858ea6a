//! Pushing events of one type: at once, with back-pressure, or until they are done.

use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use super::channel::Channel;
use super::queue::Core;
use super::types::{Disposition, EventId, Originator, Priority, PushError};

/// Pushes events of one type into one queue: the quickest way, because the type
/// was looked up once. Cheap to clone; keeps the queue alive.
pub struct Emitter<E> {
    core: Rc<Core>,
    channel: Rc<Channel<E>>,
    priority: Priority,
    originator: Originator,
}

impl<E> Clone for Emitter<E> {
    fn clone(&self) -> Emitter<E> {
        Emitter {
            core: self.core.clone(),
            channel: self.channel.clone(),
            ..*self
        }
    }
}

impl<E: 'static> Emitter<E> {
    pub(super) fn new(core: &Rc<Core>) -> Emitter<E> {
        Emitter {
            core: core.clone(),
            channel: core.channel(),
            priority: Priority::default(),
            originator: Originator::default(),
        }
    }

    /// The same for events of this priority.
    pub fn at(mut self, priority: Priority) -> Emitter<E> {
        self.priority = priority;
        self
    }

    /// The same in this name.
    pub fn from(mut self, originator: Originator) -> Emitter<E> {
        self.originator = originator;
        self
    }

    /// Pushes an event behind all others of its priority; yields its number.
    ///
    /// # Errors
    /// [`PushError`] with the event, when there is no room or the queue is closed.
    #[inline]
    pub fn push(&self, event: E) -> Result<EventId, PushError<E>> {
        self.core
            .push(&self.channel, event, self.priority, self.originator)
    }

    /// The same at another priority.
    ///
    /// # Errors
    /// As [`push`](Emitter::push).
    #[inline]
    pub fn push_at(&self, priority: Priority, event: E) -> Result<EventId, PushError<E>> {
        self.core
            .push(&self.channel, event, priority, self.originator)
    }

    /// Waits for room, behind those that wait already, then puts the event in.
    /// Dropping the future drops the event.
    ///
    /// # Errors
    /// [`PushError::Closed`] with the event.
    pub async fn push_wait(&self, event: E) -> Result<EventId, PushError<E>> {
        if !wait_for_room(&Rc::downgrade(&self.core)).await {
            return Err(PushError::Closed(event));
        }
        let id = self
            .core
            .accept(&self.channel, event, self.priority, self.originator);
        Ok(id)
    }

    /// Pushes an event and waits until it was handled, the futures of its async
    /// handlers included. Dropping the future leaves the event where it is.
    ///
    /// # Errors
    /// As [`push`](Emitter::push), at once.
    pub fn push_and_wait(
        &self,
        event: E,
    ) -> Result<impl Future<Output = Disposition> + use<E>, PushError<E>> {
        let id = self.push(event)?;
        Ok(self.core.completions.wait_for(id.0))
    }
}

impl<E> fmt::Debug for Emitter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("priority", &self.priority.0)
            .field("originator", &self.originator.0)
            .finish_non_exhaustive()
    }
}

/// A place in the line for room.
struct Ticket<'a> {
    core: &'a Weak<Core>,
    number: Option<u64>,
}

impl Ticket<'_> {
    /// Ready with true when there is room and it is ours to take; with false when
    /// the queue is closed or gone.
    fn poll(&mut self, cx: &Context<'_>) -> Poll<bool> {
        let Some(core) = self.core.upgrade() else {
            return Poll::Ready(false);
        };
        if core.is_closed() {
            return Poll::Ready(false);
        }
        if core.has_room() && core.blocked_senders.borrow().is_first(self.number) {
            return Poll::Ready(true);
        }
        let ticket = core
            .blocked_senders
            .borrow_mut()
            .wait(self.number, cx.waker());
        self.number = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Ticket<'_> {
    /// Wakes the next sender, which may have been waiting for this one.
    fn drop(&mut self) {
        if let (Some(number), Some(core)) = (self.number, self.core.upgrade()) {
            core.blocked_senders.borrow_mut().leave(number);
            core.wake_next_sender();
        }
    }
}

/// Waits until an event may come in, which must follow at once. False when the
/// queue is closed or gone. Holds no strong reference while it waits.
pub(super) async fn wait_for_room(core: &Weak<Core>) -> bool {
    let mut ticket = Ticket { core, number: None };
    poll_fn(|cx| ticket.poll(cx)).await
}
