//! Awaiting that one event was handled, the futures of its async handlers included.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::types::Disposition;

struct Completion {
    outcome: Cell<Disposition>,
    /// The number of shares in the event that are held.
    holders: Cell<u32>,
    waker: Cell<Option<Waker>>,
}

/// A share in an awaited event: when the last one is dropped, the event is done.
pub(super) struct Held(Rc<Completion>);

impl Held {
    fn another(&self) -> Held {
        self.0.holders.set(self.0.holders.get() + 1);
        Held(self.0.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let holders = self.0.holders.get() - 1;
        self.0.holders.set(holders);
        if holders == 0
            && let Some(waker) = self.0.waker.take()
        {
            waker.wake();
        }
    }
}

/// Waits until an event is done.
pub(super) struct Done(Rc<Completion>);

impl Future for Done {
    type Output = Disposition;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Disposition> {
        if self.0.holders.get() == 0 {
            return Poll::Ready(self.0.outcome.get());
        }
        self.0.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

/// The awaited events of one queue.
pub(super) struct Completions {
    by_id: RefCell<HashMap<u64, Held>>,
    /// The awaited event that is being delivered.
    current: RefCell<Option<Held>>,
    watchers: Rc<Cell<u32>>,
}

impl Completions {
    pub fn new(watchers: &Rc<Cell<u32>>) -> Completions {
        Completions {
            by_id: RefCell::default(),
            current: RefCell::default(),
            watchers: watchers.clone(),
        }
    }

    /// Awaits an event that was just pushed.
    pub fn wait_for(&self, id: u64) -> Done {
        let completion = Rc::new(Completion {
            // Until it is known better: it went with its queue.
            outcome: Cell::new(Disposition::Dropped),
            holders: Cell::new(1),
            waker: Cell::new(None),
        });
        self.watchers.set(self.watchers.get() + 1);
        self.by_id.borrow_mut().insert(id, Held(completion.clone()));
        Done(completion)
    }

    fn take(&self, id: u64) -> Option<Held> {
        let held = self.by_id.borrow_mut().remove(&id)?;
        self.watchers.set(self.watchers.get() - 1);
        Some(held)
    }

    /// An event is about to be delivered; it is awaited where this yields something.
    #[inline]
    pub fn begin(&self, id: u64) -> Option<Held> {
        if self.by_id.borrow().is_empty() {
            return None;
        }
        let held = self.take(id)?;
        *self.current.borrow_mut() = Some(held.another());
        Some(held)
    }

    /// The event was delivered.
    #[inline]
    pub fn end(&self, held: Option<Held>, outcome: Disposition) {
        if let Some(held) = held {
            held.0.outcome.set(outcome);
            let current = self.current.take();
            drop(current);
        }
    }

    /// A share in the event that is being delivered, where that is awaited.
    pub fn share(&self) -> Option<Held> {
        self.current.borrow().as_ref().map(Held::another)
    }

    /// An event was dropped.
    pub fn forget(&self, id: u64) {
        drop(self.take(id));
    }
}
