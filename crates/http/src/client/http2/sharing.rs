//! Which connections of a host speak HTTP/2 and may be shared, and who waits for room
//! on one. Not for: making them (`connect`), or those of HTTP/1, which nobody shares.
//!
//! Where HTTP/2 is possible the first connection is made by one request while the
//! others wait for what comes of it; that a host speaks HTTP/1 is remembered.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use prony_base::{Instant, Nanos};

use super::Http2;
use crate::client::error::{Error, Kind, Phase};
use crate::client::line::{Line, Mark, Stands};
use crate::client::pool::Slot;

/// The shared connections of one host.
#[derive(Default)]
pub(in crate::client) struct Sharing {
    entries: RefCell<Vec<Entry>>,
    line: RefCell<Line<Waiter>>,
    connecting: Cell<usize>,
    /// The last one that was to be made was not: nobody waits for another's try then.
    has_failed: Cell<bool>,
    /// The server was offered HTTP/2 and took HTTP/1.
    is_http1: Cell<bool>,
    /// How many requests at once the server allowed last.
    streams_max: Cell<Option<usize>>,
}

struct Entry {
    http2: Http2,
    born: Instant,
    slot: Slot,
}

#[derive(Default)]
struct Waiter {
    waker: Cell<Option<Waker>>,
    /// It was its turn to look, and it has not looked yet.
    is_called: Cell<bool>,
    mark: Mark,
}

impl Stands for Waiter {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

/// How a request of a host that may speak HTTP/2 goes on.
pub(in crate::client) enum Shared {
    /// On this connection.
    Room(Http2),
    /// On one that it makes, while the others wait.
    Connect(Connecting),
    /// As ever: the host speaks HTTP/1.
    Http1,
}

/// The right to make the next connection alone; dropping it lets the next one try.
pub(in crate::client) struct Connecting(Rc<Sharing>);

impl Connecting {
    /// A connection came about that can be shared.
    pub fn done(self, http2: &Http2, slot: Slot, now: Instant) {
        self.0.add(http2, slot, now);
        self.0.has_failed.set(false);
    }

    /// One of HTTP/1 came about.
    pub fn done_by_http1(self) {
        self.0.is_http1.set(true);
        self.0.has_failed.set(false);
    }

    /// None came about.
    pub fn failed(self) {
        self.0.has_failed.set(true);
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.0.connecting.set(self.0.connecting.get() - 1);
        self.0.call_all();
    }
}

impl Sharing {
    /// A stream on a shared connection, or how to go on without. Waits, in the order of
    /// asking, while all are full or the first is being made. `is_certain`: HTTP/1 is
    /// out of the question. `age_max`: older connections take no more requests.
    ///
    /// # Errors
    /// [`Kind::QueueFull`].
    pub async fn obtain(
        self: &Rc<Sharing>,
        is_certain: bool,
        (queue_max, age_max): (usize, Nanos),
        (now, may_add): (Instant, impl Fn() -> bool),
    ) -> Result<Shared, Error> {
        self.prune(|entry| now.since(entry.born) >= age_max);
        let mut standing: Option<Standing> = None;
        poll_fn(|cx| {
            let may_look = standing
                .as_ref()
                .is_none_or(|one| one.waiter.is_called.get())
                && (standing.is_some() || self.line.borrow().is_empty());
            if may_look && let Some(shared) = self.look(is_certain, &may_add) {
                return Poll::Ready(Ok(shared));
            }
            if standing.is_none() {
                if self.line.borrow().len() >= queue_max {
                    let kind = Kind::QueueFull(queue_max);
                    return Poll::Ready(Err(Error::new(Phase::Queue, kind)));
                }
                standing = Some(Standing::new(self));
            }
            if let Some(one) = &standing {
                one.wait(cx);
            }
            Poll::Pending
        })
        .await
    }

    fn look(self: &Rc<Sharing>, is_certain: bool, may_add: impl Fn() -> bool) -> Option<Shared> {
        if self.is_http1.get() && !is_certain {
            return Some(Shared::Http1);
        }
        let entries = self.entries.borrow();
        if let Some(entry) = entries.iter().find(|entry| entry.http2.has_room()) {
            return Some(Shared::Room(entry.http2.clone()));
        }
        let is_first = !entries.iter().any(|entry| entry.http2.is_open());
        drop(entries);
        let is_being_made = self.connecting.get() > 0 && !self.has_failed.get();
        if is_being_made || !(is_first || may_add()) {
            return None;
        }
        self.connecting.set(self.connecting.get() + 1);
        Some(Shared::Connect(Connecting(self.clone())))
    }

    /// Shares a connection from now on.
    pub fn add(&self, http2: &Http2, slot: Slot, now: Instant) {
        self.is_http1.set(false);
        let entry = Entry {
            http2: http2.clone(),
            born: now,
            slot,
        };
        self.entries.borrow_mut().push(entry);
    }

    /// Those over which nothing is under way.
    pub fn idle(&self) -> usize {
        let entries = self.entries.borrow();
        let idle = entries.iter().filter(|entry| entry.http2.streams() == 0);
        idle.count()
    }

    /// Requests in line.
    pub fn waiting(&self) -> usize {
        self.line.borrow().len()
    }

    /// Lets ended connections go, and those that have rested since before `limit`
    /// ago; when the next one will have.
    pub fn evict(&self, now: Instant, limit: Nanos) -> Option<Instant> {
        self.prune(|entry| {
            let rests_since = entry.http2.rests_since();
            rests_since.is_some_and(|since| since + limit <= now)
        });
        let entries = self.entries.borrow();
        let resting = entries.iter().filter_map(|entry| entry.http2.rests_since());
        resting.min().map(|since| since + limit)
    }

    /// Lets all go; requests under way go on.
    pub fn clear(&self) {
        self.prune(|_| true);
    }

    /// How many requests at once the server allowed last.
    pub(super) fn streams_max(&self) -> Option<usize> {
        self.streams_max.get()
    }

    /// The server allows so many requests at once on a connection.
    pub(super) fn heard(&self, streams_max: usize) {
        self.streams_max.set(Some(streams_max));
        self.call_all();
    }

    /// A stream has ended, or a connection has: whoever is first in line may look.
    pub(super) fn changed(&self) {
        self.prune(|_| false);
        self.call_first();
        let entries = self.entries.borrow();
        let slots: Vec<_> = entries
            .iter()
            .filter(|entry| entry.http2.streams() == 0)
            .map(|entry| entry.slot.pool().clone())
            .collect();
        drop(entries);
        for pool in slots {
            pool.rested();
        }
    }

    /// Lets go what has ended and what `is_over`.
    fn prune(&self, is_over: impl Fn(&Entry) -> bool) {
        let mut entries = self.entries.borrow_mut();
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut *entries)
            .into_iter()
            .partition(|entry| !entry.http2.is_open() || is_over(entry));
        *entries = left;
        drop(entries);
        // Nothing is borrowed while their slots go to others.
        drop(over);
    }

    fn call_first(&self) {
        let line = self.line.borrow();
        let first = line.iter().find(|waiter| !waiter.is_called.get());
        let first = first.cloned();
        // Waking may run any code, which may leave the line.
        drop(line);
        if let Some(waiter) = first {
            waiter.call();
        }
    }

    fn call_all(&self) {
        let all: Vec<_> = self.line.borrow().iter().cloned().collect();
        for waiter in all {
            waiter.call();
        }
    }
}

impl Waiter {
    fn call(&self) {
        self.is_called.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Stands in line until dropped.
struct Standing {
    sharing: Rc<Sharing>,
    waiter: Rc<Waiter>,
}

impl Standing {
    fn new(sharing: &Rc<Sharing>) -> Standing {
        let waiter = Rc::<Waiter>::default();
        sharing.line.borrow_mut().push_back(waiter.clone());
        Standing {
            sharing: sharing.clone(),
            waiter,
        }
    }

    fn wait(&self, cx: &Context<'_>) {
        self.waiter.is_called.set(false);
        self.waiter.waker.set(Some(cx.waker().clone()));
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.sharing.line.borrow_mut().leave(&self.waiter);
        // It may lie in line for a while yet, with nothing in it.
        drop(self.waiter.waker.take());
        // Room that it was called for and did not take, or more than it took.
        if self.waiter.is_called.get() {
            self.sharing.call_first();
        }
    }
}
