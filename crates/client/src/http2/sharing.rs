//! The HTTP/2 connections of one host, and the requests that wait for a stream on one.
//! Not for: making connections (`connect`), or those of HTTP/1, which carry one exchange at
//! a time (`pool`).
//!
//! Where HTTP/2 is possible, one request makes the first connection while the others wait
//! for the result. That a host speaks only HTTP/1 is remembered.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use prony_base::{Instant, Nanos};

use super::connection::Http2;
use crate::error::{Error, Kind, RequestPhase};
use crate::h1;
use crate::line::{Line, Mark, Queued};
use crate::pool::{self, Multiplexed};

type Slot = pool::Slot<h1::Connection, Sharing>;

/// The shared connections of one host.
#[derive(Default)]
pub(crate) struct Sharing {
    entries: RefCell<Vec<Entry>>,
    line: RefCell<Line<Waiter>>,
    connecting: Cell<usize>,
    /// The last attempt to connect failed: requests no longer wait for another's attempt.
    has_failed: Cell<bool>,
    /// The server was offered HTTP/2 and took HTTP/1.
    is_http1: Cell<bool>,
    /// The limit on streams that the server last set.
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
    /// It was called to look for a stream, and has not looked yet.
    is_called: Cell<bool>,
    mark: Mark,
}

impl Queued for Waiter {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

/// How a request to a host that may support HTTP/2 is sent.
pub(crate) enum Route {
    /// As a stream of this connection.
    Stream(Http2),
    /// On a connection that it makes, while the others wait.
    Connect(Connecting),
    /// Over HTTP/1: the host speaks nothing else.
    Http1,
}

/// The right to make the next connection alone; dropping it lets the next request try.
pub(crate) struct Connecting(Rc<Sharing>);

impl Connecting {
    /// Adds the connection, which can be shared.
    pub fn done(self, http2: &Http2, slot: Slot, now: Instant) {
        self.0.add(http2, slot, now);
        self.0.has_failed.set(false);
    }

    /// Notes that the connection speaks HTTP/1.
    pub fn done_by_http1(self) {
        self.0.is_http1.set(true);
        self.0.has_failed.set(false);
    }

    /// Notes that connecting failed.
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

impl Multiplexed for Sharing {
    fn idle(&self) -> usize {
        let entries = self.entries.borrow();
        let idle = entries.iter().filter(|entry| entry.http2.streams() == 0);
        idle.count()
    }

    fn waiting(&self) -> usize {
        self.line.borrow().len()
    }

    fn evict(&self, now: Instant, limit: Nanos) -> Option<Instant> {
        self.prune(|entry| {
            let idle_since = entry.http2.idle_since();
            idle_since.is_some_and(|since| since + limit <= now)
        });
        let entries = self.entries.borrow();
        let idle = entries.iter().filter_map(|entry| entry.http2.idle_since());
        idle.min().map(|since| since + limit)
    }

    fn clear(&self) {
        self.prune(|_| true);
    }
}

impl Sharing {
    /// Obtains a stream of a shared connection, or another way to go on. Waits, first come,
    /// first served, while all are full or the first is being made. `is_certain`: HTTP/1 is
    /// ruled out. `age_max`: older connections take no more requests.
    ///
    /// # Errors
    /// [`Kind::QueueFull`].
    pub async fn obtain(
        self: &Rc<Sharing>,
        is_certain: bool,
        (queue_max, age_max): (usize, Nanos),
        (now, may_add): (Instant, impl Fn() -> bool),
    ) -> Result<Route, Error> {
        self.prune(|entry| now.since(entry.born) >= age_max);
        let mut guard: Option<StreamGuard> = None;
        poll_fn(|cx| {
            let may_look = guard.as_ref().is_none_or(|one| one.waiter.is_called.get())
                && (guard.is_some() || self.line.borrow().is_empty());
            if may_look && let Some(route) = self.look(is_certain, &may_add) {
                return Poll::Ready(Ok(route));
            }
            if guard.is_none() {
                if self.line.borrow().len() >= queue_max {
                    let kind = Kind::QueueFull(queue_max);
                    return Poll::Ready(Err(Error::new(RequestPhase::Queue, kind)));
                }
                guard = Some(StreamGuard::new(self));
            }
            if let Some(one) = &guard {
                one.wait(cx);
            }
            Poll::Pending
        })
        .await
    }

    fn look(self: &Rc<Sharing>, is_certain: bool, may_add: impl Fn() -> bool) -> Option<Route> {
        if self.is_http1.get() && !is_certain {
            return Some(Route::Http1);
        }
        let entries = self.entries.borrow();
        if let Some(entry) = entries.iter().find(|entry| entry.http2.has_free_stream()) {
            return Some(Route::Stream(entry.http2.clone()));
        }
        let is_first = !entries.iter().any(|entry| entry.http2.is_open());
        drop(entries);
        let is_being_made = self.connecting.get() > 0 && !self.has_failed.get();
        if is_being_made || !(is_first || may_add()) {
            return None;
        }
        self.connecting.set(self.connecting.get() + 1);
        Some(Route::Connect(Connecting(self.clone())))
    }

    /// Adds a connection to share.
    pub fn add(&self, http2: &Http2, slot: Slot, now: Instant) {
        self.is_http1.set(false);
        let entry = Entry {
            http2: http2.clone(),
            born: now,
            slot,
        };
        self.entries.borrow_mut().push(entry);
    }

    /// The limit on streams that the server last set.
    pub(super) fn streams_max(&self) -> Option<usize> {
        self.streams_max.get()
    }

    /// Notes the server's limit on streams.
    pub(super) fn heard(&self, streams_max: usize) {
        self.streams_max.set(Some(streams_max));
        self.call_all();
    }

    /// Notes that a stream or a connection has ended: the first request in line looks again.
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
            pool.became_idle();
        }
    }

    /// Drops connections that have ended and those that are `is_over`.
    fn prune(&self, is_over: impl Fn(&Entry) -> bool) {
        let mut entries = self.entries.borrow_mut();
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut *entries)
            .into_iter()
            .partition(|entry| !entry.http2.is_open() || is_over(entry));
        *entries = left;
        drop(entries);
        // Nothing may be borrowed while their slots are granted to others.
        drop(over);
    }

    fn call_first(&self) {
        let line = self.line.borrow();
        let first = line.iter().find(|waiter| !waiter.is_called.get());
        let first = first.cloned();
        // Waking may run code that changes the line.
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

/// A place in line, given up when dropped.
struct StreamGuard {
    sharing: Rc<Sharing>,
    waiter: Rc<Waiter>,
}

impl StreamGuard {
    fn new(sharing: &Rc<Sharing>) -> StreamGuard {
        let waiter = Rc::<Waiter>::default();
        sharing.line.borrow_mut().push_back(waiter.clone());
        StreamGuard {
            sharing: sharing.clone(),
            waiter,
        }
    }

    fn wait(&self, cx: &Context<'_>) {
        self.waiter.is_called.set(false);
        self.waiter.waker.set(Some(cx.waker().clone()));
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.sharing.line.borrow_mut().leave(&self.waiter);
        // The waiter may stay in the line for a while, but holds nothing.
        drop(self.waiter.waker.take());
        // A free stream that it was called for and did not take, or more than one.
        if self.waiter.is_called.get() {
            self.sharing.call_first();
        }
    }
}
