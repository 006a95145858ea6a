//! A number of permits and a queue for them: what auto-reset events, mutexes,
//! semaphores and bounded channels have in common.
//! Not for: applications, which use those.
//!
//! Fair: a released permit goes to the task that has waited longest, and no other overtakes
//! on the way. A waiter that is dropped after a permit was given to it, and before it saw
//! that, passes it on.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::waiters::{Ticket, Waiters};

/// Permits, at most `permits_max` of them unused.
///
/// INVARIANT: while there are permits, no task waits.
pub(super) struct Permits {
    unused: Cell<usize>,
    permits_max: usize,
    is_closed: Cell<bool>,
    waiters: Waiters,
}

/// There will be no more permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

impl Permits {
    pub fn new(permits: usize, permits_max: usize) -> Permits {
        Permits {
            unused: Cell::new(permits),
            permits_max,
            is_closed: Cell::new(false),
            waiters: Waiters::new(),
        }
    }

    /// Waits for a permit, and takes it.
    #[inline]
    pub fn acquire(&self) -> Acquire<'_> {
        Acquire {
            permits: self,
            ticket: None,
        }
    }

    /// Takes a permit that is there.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        match self.unused.get().checked_sub(1) {
            Some(left) => {
                debug_assert_eq!(self.waiters.len(), 0);
                self.unused.set(left);
                true
            }
            None => false,
        }
    }

    /// Releases a permit: to the task that has waited longest, else for the next. One over the
    /// most that may lie unused is lost.
    #[inline]
    pub fn release(&self) {
        match self.waiters.release_first() {
            Some(waker) => waker.wake(),
            None => self.unused.set(self.permits_max.min(self.unused.get() + 1)),
        }
    }

    /// Takes all unused permits away; yields whether there were any.
    pub fn forget_all(&self) -> bool {
        self.unused.take() > 0
    }

    /// Ends all waits, now and later, with [`Closed`].
    pub fn close(&self) {
        self.is_closed.set(true);
        while let Some(waker) = self.waiters.release_first() {
            waker.wake();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Permits that are there.
    pub fn available(&self) -> usize {
        self.unused.get()
    }

    /// The number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

/// Waits for a permit.
pub(super) struct Acquire<'a> {
    permits: &'a Permits,
    ticket: Option<Ticket>,
}

impl Acquire<'_> {
    fn outcome(&self) -> Poll<Result<(), Closed>> {
        match self.permits.is_closed() {
            true => Poll::Ready(Err(Closed)),
            false => Poll::Ready(Ok(())),
        }
    }
}

impl Future for Acquire<'_> {
    type Output = Result<(), Closed>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let Some(ticket) = self.ticket else {
            if self.permits.is_closed() || self.permits.try_acquire() {
                return self.outcome();
            }
            self.ticket = Some(self.permits.waiters.join(cx.waker()));
            return Poll::Pending;
        };
        if !self.permits.waiters.poll_released(ticket, cx.waker()) {
            return Poll::Pending;
        }
        self.ticket = None;
        self.outcome()
    }
}

impl Drop for Acquire<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket
            && self.permits.waiters.leave(ticket)
        {
            self.permits.release();
        }
    }
}
