//! Tasks that wait for a queue: senders for room, first come first served; and tasks that
//! wait until it is idle. And what the queue closes before it ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::Waker;

/// Waiting tasks, in the order in which they came. Each has a ticket, so that one that
/// gives up can leave.
#[derive(Default)]
pub(super) struct WaitQueue {
    queue: VecDeque<(u64, Option<Waker>)>,
    next: u64,
}

impl WaitQueue {
    /// Whether the holder of this ticket, or one that just came, is the first.
    pub fn is_first(&self, ticket: Option<u64>) -> bool {
        match (self.queue.front(), ticket) {
            (None, _) => true,
            (Some((first, _)), Some(ticket)) => *first == ticket,
            (Some(_), None) => false,
        }
    }

    /// Waits on, or begins to wait; yields the ticket.
    pub fn wait(&mut self, ticket: Option<u64>, waker: &Waker) -> u64 {
        if let Some(ticket) = ticket
            && let Some(index) = self.find(ticket)
        {
            self.queue[index].1 = Some(waker.clone());
            return ticket;
        }
        let ticket = self.next;
        self.next += 1;
        self.queue.push_back((ticket, Some(waker.clone())));
        ticket
    }

    fn find(&self, ticket: u64) -> Option<usize> {
        self.queue
            .binary_search_by_key(&ticket, |entry| entry.0)
            .ok()
    }

    /// No longer waits.
    pub fn leave(&mut self, ticket: u64) {
        if let Some(index) = self.find(ticket) {
            self.queue.remove(index);
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The waker of the first, to be woken when nothing is borrowed. It stays the
    /// first until it leaves.
    pub fn first(&mut self) -> Option<Waker> {
        self.queue.front_mut().and_then(|first| first.1.take())
    }

    /// The wakers of all.
    pub fn all(&mut self) -> Vec<Waker> {
        self.queue
            .iter_mut()
            .filter_map(|entry| entry.1.take())
            .collect()
    }
}

/// Tasks that wait until a queue is idle, each once.
#[derive(Default)]
pub(super) struct Idle(RefCell<Vec<Waker>>);

impl Idle {
    pub fn add(&self, waker: &Waker) {
        let mut list = self.0.borrow_mut();
        if !list.iter().any(|known| known.will_wake(waker)) {
            list.push(waker.clone());
        }
    }

    #[inline]
    pub fn wake_all(&self) {
        if !self.0.borrow().is_empty() {
            self.wake_them();
        }
    }

    #[cold]
    fn wake_them(&self) {
        let list = self.0.take();
        list.into_iter().for_each(Waker::wake);
    }
}

/// A source of events that the queue closes.
pub(super) trait Closable {
    /// Takes no more events; those that it holds still come in.
    fn close(&self);
}
