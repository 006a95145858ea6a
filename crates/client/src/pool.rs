//! The connections of a client: which are idle, how many there may be, and which request
//! waits for one.
//!
//! Generic over what it keeps: connections that carry one exchange at a time ([`Exclusive`])
//! and, for each host, those that many share ([`Multiplexed`]). Not for: making connections
//! (`connect`) or speaking over them (`h1`, `http2`).
//!
//! Each connection holds a [`Slot`], which counts it. A request that has to wait stands in
//! its host's line with a ticket; a free slot goes to the lowest ticket that can use it.
//!
//! Pipelining happens in the line: as a connection passes from one request to the next,
//! waiting requests that may be pipelined are sent over it, and it passes to them in that
//! order.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, SendBuf, Task};
use prony_wire::Method;

use super::error::{Error, Kind, RequestPhase};
use super::line::{Line, Mark, Queued};
use super::origin::Origin;
use super::settings::Settings;

/// Hosts that are remembered before those without a connection are forgotten.
const HOSTS_MAX: usize = 1024;

/// A connection that carries one exchange at a time.
pub(super) trait Exclusive: 'static {
    /// Whether it can still be used: the peer has neither closed it nor sent anything. Wakes
    /// `cx` once that changes.
    fn is_alive(&mut self, cx: &mut Context<'_>) -> bool;

    /// Whether further requests may be sent before the responses to earlier ones.
    fn can_pipeline(&self) -> bool;

    /// Sends a whole request behind those in flight; false where it refuses.
    fn post_pipelined(&mut self, head: SendBuf) -> bool;

    /// Receives the response of a pipelined request that was cancelled, with a body of at most
    /// `bytes_max`; whether the connection can be used again, and since when it is idle.
    fn skip_response(
        &mut self,
        method: Method,
        bytes_max: u64,
        now: Instant,
    ) -> impl Future<Output = Option<Instant>>;
}

/// The connections of one host that many requests share.
pub(super) trait Multiplexed: Default + 'static {
    /// How many carry nothing.
    fn idle(&self) -> usize;

    /// How many requests wait for one.
    fn waiting(&self) -> usize;

    /// Drops those that have ended, and those idle for `limit`; when the next one will have
    /// been.
    fn evict(&self, now: Instant, limit: Nanos) -> Option<Instant>;

    /// Drops all; requests in flight go on.
    fn clear(&self);
}

/// One scheme, host and port, with its connections.
pub(super) struct Host<C, M> {
    pub origin: Origin,
    /// As in a Host header.
    pub authority: String,
    /// Idle connections, the one that has been idle for longest first.
    idle: RefCell<Vec<Box<Pooled<C, M>>>>,
    line: RefCell<Line<Waiter<C, M>>>,
    open: Cell<usize>,
    pub shared: Rc<M>,
}

/// A connection and what the pool knows of it.
pub(super) struct Pooled<C, M> {
    /// Before the slot: when the connection breaks, these are back in line before its slot is
    /// given away.
    pipelined: Pipelined<C, M>,
    slot: Slot<C, M>,
    born: Instant,
    idle_since: Instant,
    connection: C,
}

impl<C, M> Pooled<C, M> {
    /// Puts a new connection into its slot.
    pub fn new(slot: Slot<C, M>, connection: C, now: Instant) -> Box<Pooled<C, M>> {
        Box::new(Pooled {
            pipelined: Pipelined {
                host: slot.host.clone(),
                waiters: VecDeque::new(),
            },
            slot,
            born: now,
            idle_since: now,
            connection,
        })
    }

    /// Closes it; its slot can be used for another connection.
    pub fn into_slot(self) -> Slot<C, M> {
        self.slot
    }
}

impl<C: Exclusive, M: Multiplexed> Pooled<C, M> {
    /// Returns it to its pool; idle since `now`.
    pub fn release(self: Box<Self>, now: Instant) {
        let pool = self.slot.pool.clone();
        pool.release(self, now);
    }
}

impl<C, M> Deref for Pooled<C, M> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C, M> DerefMut for Pooled<C, M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

/// A request in line.
struct Waiter<C, M> {
    ticket: u64,
    mark: Mark,
    granted: RefCell<Option<Granted<C, M>>>,
    waker: Cell<Option<Waker>>,
    /// The request, as long as it may be pipelined.
    pending: RefCell<Option<Pending>>,
    /// The request was pipelined: with this method, at this time.
    sent: Cell<Option<(Method, Instant)>>,
    /// It was pipelined in vain: the connection broke.
    is_lost: Cell<bool>,
    /// The request was cancelled.
    is_cancelled: Cell<bool>,
}

impl<C, M> Queued for Waiter<C, M> {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

/// A whole request that may be pipelined.
pub(super) struct Pending {
    pub head: SendBuf,
    pub method: Method,
}

/// The requests that are pipelined on a connection, in the order of their responses. Dropped
/// with it, they are first in line again, to be sent alone.
struct Pipelined<C, M> {
    host: Rc<Host<C, M>>,
    waiters: VecDeque<Rc<Waiter<C, M>>>,
}

impl<C, M> Drop for Pipelined<C, M> {
    #[inline]
    fn drop(&mut self) {
        while let Some(waiter) = self.waiters.pop_back() {
            if !waiter.is_cancelled.get() {
                waiter.sent.set(None);
                waiter.is_lost.set(true);
                self.host.line.borrow_mut().push_front(waiter);
            }
        }
    }
}

/// What the pool gives to a request: a connection, or the right to make one.
pub(super) enum Granted<C, M> {
    /// A connection that was used before; with when the request was pipelined on it, where it
    /// was.
    Used(Box<Pooled<C, M>>, Option<Instant>),
    /// The right to make one.
    Slot(Slot<C, M>),
}

/// The place of one connection in the counts.
pub(super) struct Slot<C, M> {
    pool: Rc<Pool<C, M>>,
    pub host: Rc<Host<C, M>>,
}

impl<C, M> Slot<C, M> {
    /// The pool that counts it.
    pub fn pool(&self) -> &Rc<Pool<C, M>> {
        &self.pool
    }
}

impl<C, M> Drop for Slot<C, M> {
    fn drop(&mut self) {
        self.host.open.set(self.host.open.get() - 1);
        self.pool.open.set(self.pool.open.get() - 1);
        self.pool.grant_slots();
    }
}

/// All connections of a client.
pub(super) struct Pool<C, M> {
    handle: Handle,
    hosts: RefCell<HashMap<Origin, Rc<Host<C, M>>>>,
    open: Cell<usize>,
    waiting: Cell<usize>,
    next_ticket: Cell<u64>,
    closed: Cell<bool>,
    watch: RefCell<Option<Task<()>>>,
    watching: Cell<bool>,
    /// Requests that were pipelined.
    pipelined: Cell<u64>,
    /// Of these, those sent again because their connection broke.
    resent: Cell<u64>,
    per_host_max: usize,
    pipelining_max: usize,
    drain_bytes_max: u64,
    all_max: usize,
    queue_max: usize,
    idle_timeout: Nanos,
    age_max: Nanos,
}

impl<C: Exclusive, M: Multiplexed> Pool<C, M> {
    /// An empty pool with the limits of `settings`.
    pub fn new(handle: &Handle, settings: &Settings) -> Rc<Pool<C, M>> {
        Rc::new(Pool {
            handle: handle.clone(),
            hosts: RefCell::default(),
            open: Cell::new(0),
            waiting: Cell::new(0),
            next_ticket: Cell::new(0),
            closed: Cell::new(false),
            watch: RefCell::new(None),
            watching: Cell::new(false),
            pipelined: Cell::new(0),
            resent: Cell::new(0),
            pipelining_max: settings.pipelining_max,
            drain_bytes_max: settings.drain_bytes_max,
            per_host_max: settings.connections_per_host_max.max(1),
            all_max: settings.connections_max.max(1),
            queue_max: settings.queue_max,
            idle_timeout: settings.idle_timeout,
            age_max: settings.connection_age_max,
        })
    }

    /// The entry of an origin, created where there is none.
    pub fn host(&self, origin: Origin) -> Rc<Host<C, M>> {
        let mut hosts = self.hosts.borrow_mut();
        if let Some(host) = hosts.get(&origin) {
            return host.clone();
        }
        if hosts.len() >= HOSTS_MAX {
            hosts.retain(|_, host| host.open.get() > 0 || Rc::strong_count(host) > 1);
        }
        let host = Rc::new(Host {
            authority: origin.authority(),
            origin: origin.clone(),
            idle: RefCell::default(),
            line: RefCell::default(),
            open: Cell::new(0),
            shared: Rc::default(),
        });
        hosts.insert(origin, host.clone());
        host
    }

    /// Connections that are open or being opened, and how many of them are idle.
    pub fn connections(&self) -> (usize, usize) {
        let hosts = self.hosts.borrow();
        let idle = |host: &Rc<Host<C, M>>| host.idle.borrow().len() + host.shared.idle();
        let idle = hosts.values().map(idle).sum();
        (self.open.get(), idle)
    }

    /// Requests in line.
    pub fn waiting(&self) -> usize {
        let hosts = self.hosts.borrow();
        let shared = hosts.values().map(|host| host.shared.waiting());
        self.waiting.get() + shared.sum::<usize>()
    }

    /// Requests that were pipelined, and those of them sent again because their connection broke.
    pub fn pipelined(&self) -> (u64, u64) {
        (self.pipelined.get(), self.resent.get())
    }

    /// Whether a host may have another connection without closing an idle one.
    pub fn has_free_slot(&self, host: &Host<C, M>) -> bool {
        host.open.get() < self.per_host_max && self.open.get() < self.all_max
    }

    /// Notes that a shared connection is idle, so that it is closed after the idle time-out.
    pub fn became_idle(self: &Rc<Self>) {
        if !self.watching.get() && !self.closed.get() {
            self.watch_idle();
        }
    }

    /// A connection to `host`, or a slot for one, first come, first served. `fresh`: none that
    /// was used before, if there can be another. `pending`: the request, where it may be
    /// pipelined while it waits.
    ///
    /// # Errors
    /// [`Kind::QueueFull`].
    pub async fn acquire(
        self: &Rc<Self>,
        host: &Rc<Host<C, M>>,
        fresh: bool,
        pending: impl Fn() -> Option<Pending>,
    ) -> Result<Granted<C, M>, Error> {
        let mut guard: Option<WaitGuard<'_, C, M>> = None;
        poll_fn(|cx| {
            if let Some(guard) = &guard {
                return guard.poll(cx).map(Ok);
            }
            if let Some(granted) = self.try_acquire(host, fresh, cx) {
                return Poll::Ready(Ok(granted));
            }
            if self.waiting.get() >= self.queue_max {
                let kind = Kind::QueueFull(self.queue_max);
                return Poll::Ready(Err(Error::new(RequestPhase::Queue, kind)));
            }
            let new = WaitGuard::new(self, host, pending());
            guard.insert(new).poll(cx).map(Ok)
        })
        .await
    }

    #[inline]
    fn try_acquire(
        self: &Rc<Self>,
        host: &Rc<Host<C, M>>,
        fresh: bool,
        cx: &mut Context<'_>,
    ) -> Option<Granted<C, M>> {
        if !fresh {
            while let Some(mut connection) = host.take_newest() {
                if connection.is_alive(cx) {
                    return Some(Granted::Used(connection, None));
                }
            }
        }
        if !host.line.borrow().is_empty() {
            return None;
        }
        if host.open.get() >= self.per_host_max {
            drop(host.take_oldest());
        } else if self.open.get() >= self.all_max {
            drop(self.take_oldest());
        }
        self.slot(host).map(Granted::Slot)
    }

    /// Takes back a connection that carries nothing: for the first in line, for later, or, where
    /// another host waits for the slot, to be closed.
    #[inline]
    pub fn release(self: &Rc<Self>, mut connection: Box<Pooled<C, M>>, now: Instant) {
        connection.idle_since = now;
        let too_old = now.since(connection.born) >= self.age_max;
        let may_stay = !(too_old || self.idle_timeout == Nanos::ZERO);
        if self.closed.get() || (!may_stay && connection.pipelined.waiters.is_empty()) {
            return;
        }
        let host = connection.slot.host.clone();
        if self.waiting.get() > 0 || !connection.pipelined.waiters.is_empty() {
            if may_stay {
                self.pipeline(&mut connection, &host, now);
            }
            match self.hand_on(connection, &host, now) {
                Some(left) if self.open.get() < self.all_max => connection = left,
                _ => return,
            }
        }
        host.idle.borrow_mut().push(connection);
        if !self.watching.get() {
            self.watch_idle();
        }
    }

    /// Pipelines requests of the line on a connection that is passing to the next one.
    fn pipeline(&self, connection: &mut Pooled<C, M>, host: &Host<C, M>, now: Instant) {
        if !connection.can_pipeline() {
            return;
        }
        while connection.pipelined.waiters.len() < self.pipelining_max {
            let first = host.line.borrow().first().cloned();
            let Some(first) = first.filter(|one| one.pending.borrow().is_some()) else {
                return;
            };
            let Some(pending) = first.pending.take() else {
                return;
            };
            if !connection.post_pipelined(pending.head) {
                return;
            }
            self.pipelined.set(self.pipelined.get() + 1);
            host.line.borrow_mut().pop_front();
            first.sent.set(Some((pending.method, now)));
            connection.pipelined.waiters.push_back(first);
        }
    }

    /// Passes a connection to the request whose response comes next on it, or else to the first
    /// in line; returns it where there is none.
    fn hand_on(
        self: &Rc<Self>,
        mut connection: Box<Pooled<C, M>>,
        host: &Host<C, M>,
        now: Instant,
    ) -> Option<Box<Pooled<C, M>>> {
        if let Some(next) = connection.pipelined.waiters.pop_front() {
            match next.sent.get() {
                Some((method, _)) if next.is_cancelled.get() => {
                    let skip = skip_response(connection, method, self.drain_bytes_max, now);
                    self.handle.spawn(skip).detach();
                }
                sent => next.grant(Granted::Used(connection, sent.map(|(_, at)| at))),
            }
            return None;
        }
        let Some(first) = host.line.borrow_mut().pop_front() else {
            return Some(connection);
        };
        first.grant(Granted::Used(connection, None));
        None
    }

    /// The connection that has been idle for longest, of all hosts.
    fn take_oldest(&self) -> Option<Box<Pooled<C, M>>> {
        let hosts = self.hosts.borrow();
        let idle = hosts
            .values()
            .filter_map(|host| Some((host.idle.borrow().first()?.idle_since, host)));
        let (_, host) = idle.min_by_key(|(since, _)| *since)?;
        host.take_oldest()
    }

    /// Starts the task that closes what is idle for too long: one timer for all connections.
    fn watch_idle(self: &Rc<Self>) {
        if self.idle_timeout == Nanos::MAX {
            return;
        }
        self.watching.set(true);
        let (pool, handle) = (Rc::downgrade(self), self.handle.clone());
        let task = self.handle.spawn(watch(pool, handle));
        // The task before it has ended, or there was none.
        drop(self.watch.replace(Some(task)));
    }

    /// Closes what has been idle for too long; when to look again.
    fn evict(&self) -> Option<Instant> {
        let now = self.handle.now();
        let mut over = Vec::new();
        let mut next: Option<Instant> = None;
        for host in self.hosts.borrow().values() {
            let mut idle = host.idle.borrow_mut();
            let ends = |one: &Pooled<C, M>| one.idle_since + self.idle_timeout;
            let count = idle.iter().take_while(|one| ends(one) <= now).count();
            over.extend(idle.drain(..count));
            next = next
                .into_iter()
                .chain(idle.first().map(|one| ends(one)))
                .min();
        }
        drop(over);
        let hosts: Vec<_> = self.hosts.borrow().values().cloned().collect();
        let shared = hosts
            .iter()
            .filter_map(|host| host.shared.evict(now, self.idle_timeout));
        next.into_iter().chain(shared).min()
    }

    /// Closes all idle connections, and keeps none from now on.
    pub fn close(&self) {
        self.closed.set(true);
        let hosts: Vec<_> = self.hosts.borrow().values().cloned().collect();
        for host in hosts {
            drop(host.idle.take());
            host.shared.clear();
        }
        drop(self.watch.take());
    }
}

impl<C, M> Pool<C, M> {
    fn slot(self: &Rc<Self>, host: &Rc<Host<C, M>>) -> Option<Slot<C, M>> {
        if host.open.get() >= self.per_host_max || self.open.get() >= self.all_max {
            return None;
        }
        host.open.set(host.open.get() + 1);
        self.open.set(self.open.get() + 1);
        Some(Slot {
            pool: self.clone(),
            host: host.clone(),
        })
    }

    /// Gives free slots to the requests in line, lowest ticket first.
    fn grant_slots(self: &Rc<Self>) {
        while self.waiting.get() > 0 && self.open.get() < self.all_max {
            let first = {
                let hosts = self.hosts.borrow();
                let able = hosts
                    .values()
                    .filter(|host| host.open.get() < self.per_host_max);
                let first = able.filter_map(|host| Some((host.first_ticket()?, host)));
                first
                    .min_by_key(|(ticket, _)| *ticket)
                    .map(|(_, host)| host.clone())
            };
            let Some(host) = first else { return };
            let waiter = host.line.borrow_mut().pop_front();
            if let (Some(waiter), Some(slot)) = (waiter, self.slot(&host)) {
                waiter.grant(Granted::Slot(slot));
            }
        }
    }
}

async fn skip_response<C: Exclusive, M: Multiplexed>(
    mut connection: Box<Pooled<C, M>>,
    method: Method,
    bytes_max: u64,
    now: Instant,
) {
    let skipped = connection.skip_response(method, bytes_max, now).await;
    if let Some(idle_since) = skipped {
        connection.release(idle_since);
    }
}

async fn watch<C: Exclusive, M: Multiplexed>(pool: Weak<Pool<C, M>>, handle: Handle) {
    loop {
        let Some(next) = pool.upgrade().map(|pool| {
            let next = pool.evict();
            pool.watching.set(next.is_some());
            next
        }) else {
            return;
        };
        match next {
            Some(next) => handle.sleep_until(next).await,
            None => return,
        }
    }
}

impl<C, M> Host<C, M> {
    #[inline]
    fn take_newest(&self) -> Option<Box<Pooled<C, M>>> {
        self.idle.borrow_mut().pop()
    }

    fn take_oldest(&self) -> Option<Box<Pooled<C, M>>> {
        let mut idle = self.idle.borrow_mut();
        (!idle.is_empty()).then(|| idle.remove(0))
    }

    fn first_ticket(&self) -> Option<u64> {
        self.line.borrow().first().map(|waiter| waiter.ticket)
    }
}

impl<C, M> Waiter<C, M> {
    fn grant(&self, granted: Granted<C, M>) {
        self.granted.replace(Some(granted));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A place in line, given up when dropped.
struct WaitGuard<'a, C: Exclusive, M: Multiplexed> {
    pool: &'a Rc<Pool<C, M>>,
    host: &'a Rc<Host<C, M>>,
    waiter: Rc<Waiter<C, M>>,
}

impl<'a, C: Exclusive, M: Multiplexed> WaitGuard<'a, C, M> {
    fn new(
        pool: &'a Rc<Pool<C, M>>,
        host: &'a Rc<Host<C, M>>,
        pending: Option<Pending>,
    ) -> WaitGuard<'a, C, M> {
        let ticket = pool.next_ticket.get();
        pool.next_ticket.set(ticket + 1);
        pool.waiting.set(pool.waiting.get() + 1);
        let waiter = Rc::new(Waiter {
            ticket,
            mark: Mark::default(),
            granted: RefCell::new(None),
            waker: Cell::new(None),
            pending: RefCell::new(pending),
            sent: Cell::new(None),
            is_lost: Cell::new(false),
            is_cancelled: Cell::new(false),
        });
        host.line.borrow_mut().push_back(waiter.clone());
        WaitGuard { pool, host, waiter }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Granted<C, M>> {
        match self.waiter.granted.take() {
            Some(granted) => {
                if self.waiter.is_lost.get() {
                    self.pool.resent.set(self.pool.resent.get() + 1);
                }
                Poll::Ready(granted)
            }
            None => {
                self.waiter.waker.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl<C: Exclusive, M: Multiplexed> Drop for WaitGuard<'_, C, M> {
    fn drop(&mut self) {
        self.pool.waiting.set(self.pool.waiting.get() - 1);
        self.host.line.borrow_mut().leave(&self.waiter);
        self.waiter.is_cancelled.set(true);
        // The waiter may stay in the line for a while, but holds nothing.
        drop((self.waiter.pending.take(), self.waiter.waker.take()));
        // What was granted and not taken is passed on.
        match self.waiter.granted.take() {
            Some(Granted::Used(connection, None)) => {
                let since = connection.idle_since;
                self.pool.release(connection, since);
            }
            // A response is due on it: handled as if its turn came only now.
            Some(Granted::Used(mut connection, Some(_))) => {
                let now = connection.idle_since;
                connection.pipelined.waiters.push_front(self.waiter.clone());
                self.pool.release(connection, now);
            }
            Some(Granted::Slot(slot)) => drop(slot),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
