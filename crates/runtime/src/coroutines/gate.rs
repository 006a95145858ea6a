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
pub(super) struct Gate {
    permits: Cell<usize>,
    permits_max: usize,
    is_closed: Cell<bool>,
    waiters: Waiters,
}

/// The gate was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

impl Gate {
    pub fn new(permits: usize, permits_max: usize) -> Gate {
        Gate {
            permits: Cell::new(permits),
            permits_max,
            is_closed: Cell::new(false),
            waiters: Waiters::new(),
        }
    }

    /// Waits for a permit, and takes it.
    #[inline]
    pub fn enter(&self) -> Enter<'_> {
        Enter {
            gate: self,
            ticket: None,
        }
    }

    /// Takes a permit that is there.
    #[inline]
    pub fn try_enter(&self) -> bool {
        match self.permits.get().checked_sub(1) {
            Some(left) => {
                self.permits.set(left);
                true
            }
            None => false,
        }
    }

    /// Releases a permit: to the task that has waited longest, else for the next. One over the
    /// most that may lie unused is lost.
    #[inline]
    pub fn give(&self) {
        match self.waiters.let_go() {
            Some(waker) => waker.wake(),
            None => self
                .permits
                .set(self.permits_max.min(self.permits.get() + 1)),
        }
    }

    /// Takes all unused permits away; yields whether there were any.
    pub fn take_all(&self) -> bool {
        self.permits.take() > 0
    }

    /// Ends all waits, now and later, with [`Closed`].
    pub fn close(&self) {
        self.is_closed.set(true);
        while let Some(waker) = self.waiters.let_go() {
            waker.wake();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Permits that are there.
    pub fn permits(&self) -> usize {
        self.permits.get()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

/// Waits for a permit.
pub(super) struct Enter<'a> {
    gate: &'a Gate,
    ticket: Option<Ticket>,
}

impl Enter<'_> {
    fn outcome(&self) -> Poll<Result<(), Closed>> {
        match self.gate.is_closed() {
            true => Poll::Ready(Err(Closed)),
            false => Poll::Ready(Ok(())),
        }
    }
}

impl Future for Enter<'_> {
    type Output = Result<(), Closed>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let Some(ticket) = self.ticket else {
            if self.gate.is_closed() || self.gate.try_enter() {
                return self.outcome();
            }
            self.ticket = Some(self.gate.waiters.join(cx.waker()));
            return Poll::Pending;
        };
        if !self.gate.waiters.ask(ticket, cx.waker()) {
            return Poll::Pending;
        }
        self.ticket = None;
        self.outcome()
    }
}

impl Drop for Enter<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket
            && self.gate.waiters.leave(ticket)
        {
            self.gate.give();
        }
    }
}
