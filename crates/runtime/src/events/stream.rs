//! Events as values that a coroutine awaits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::callbacks::Registration;
use super::types::Meta;

pub(super) struct Buffer<E> {
    queue: RefCell<VecDeque<(E, Meta)>>,
    limit: usize,
    missed: Cell<u64>,
    waker: Cell<Option<Waker>>,
}

impl<E: Clone> Buffer<E> {
    pub fn new(limit: usize) -> Buffer<E> {
        Buffer {
            queue: RefCell::default(),
            limit: limit.max(1),
            missed: Cell::new(0),
            waker: Cell::new(None),
        }
    }

    /// Keeps a copy, if there is room.
    pub fn offer(&self, event: &E, meta: &Meta) {
        if self.queue.borrow().len() >= self.limit {
            self.missed.set(self.missed.get() + 1);
            return;
        }
        let copy = (event.clone(), *meta);
        self.queue.borrow_mut().push_back(copy);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Copies of the events of one type, in the order in which they are dispatched,
/// from the moment at which the stream was made.
///
/// It holds at most its limit unread; what comes beyond that is
/// [missed](EventStream::missed).
pub struct EventStream<E> {
    buffer: Rc<Buffer<E>>,
    _registration: Registration,
}

impl<E> EventStream<E> {
    pub(super) fn new(buffer: Rc<Buffer<E>>, registration: Registration) -> EventStream<E> {
        EventStream {
            buffer,
            _registration: registration,
        }
    }

    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> (E, Meta) {
        poll_fn(|cx| match self.try_next() {
            Some(next) => Poll::Ready(next),
            None => {
                self.buffer.waker.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }

    /// An event that is there already.
    pub fn try_next(&mut self) -> Option<(E, Meta)> {
        self.buffer.queue.borrow_mut().pop_front()
    }

    /// Events that were not copied because as many were unread as may be.
    pub fn missed(&self) -> u64 {
        self.buffer.missed.get()
    }
}

impl<E> fmt::Debug for EventStream<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.buffer.queue.borrow().len();
        write!(f, "EventStream({unread} unread)")
    }
}
