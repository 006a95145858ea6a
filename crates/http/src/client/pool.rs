//! The connections of a client: which are at rest, how many there may be, and who
//! waits for one. Not for: making them (`connect`) or speaking over them (`h1`).
//!
//! A connection holds a [`Slot`], which counts it; whoever waits stands in its host's
//! line with a ticket, and room goes to the lowest ticket that can use it.
//!
//! Pipelining is the line's: as a connection passes from one request to the next, those
//! who wait and may are sent over it, and the connection is theirs in that order.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, SendBuf, Task};
use prony_wire::Method;

use super::error::{Error, Kind, Phase};
use super::h1::Connection;
use super::http2::Sharing;
use super::line::{Line, Mark, Stands};
use super::response::read_away;
use super::settings::Settings;
use super::target::Origin;

/// Hosts that are remembered before those without a connection are forgotten.
const HOSTS_MAX: usize = 1024;

/// One scheme, host and port, with its connections.
pub(super) struct Host {
    pub origin: Origin,
    /// As in a Host header.
    pub authority: String,
    /// At rest, the one that rests longest first.
    #[expect(
        clippy::vec_box,
        reason = "answers hold them boxed: here they only change hands"
    )]
    idle: RefCell<Vec<Box<Connection>>>,
    line: RefCell<Line<Waiter>>,
    open: Cell<usize>,
    /// Those that speak HTTP/2.
    pub sharing: Rc<Sharing>,
}

/// Somebody in line.
struct Waiter {
    ticket: u64,
    mark: Mark,
    granted: RefCell<Option<Granted>>,
    waker: Cell<Option<Waker>>,
    /// Its request, as long as it may be sent behind others.
    ahead: RefCell<Option<Ahead>>,
    /// Its request went out behind others: with this method, at this time.
    sent: Cell<Option<(Method, Instant)>>,
    /// It was sent in vain: the connection broke.
    is_lost: Cell<bool>,
    /// Nobody waits for the answer any more.
    is_gone: Cell<bool>,
}

impl Stands for Waiter {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

/// A whole request that may be sent behind others.
pub(super) struct Ahead {
    pub head: SendBuf,
    pub method: Method,
}

/// Those whose requests are out on a connection, in the order of the answers. Dropped with
/// it, they stand first in line again, and are sent alone.
pub(super) struct Behind {
    host: Rc<Host>,
    waiters: VecDeque<Rc<Waiter>>,
}

impl Behind {
    pub fn new(host: &Rc<Host>) -> Behind {
        Behind {
            host: host.clone(),
            waiters: VecDeque::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }
}

impl Drop for Behind {
    #[inline]
    fn drop(&mut self) {
        while let Some(waiter) = self.waiters.pop_back() {
            if !waiter.is_gone.get() {
                waiter.sent.set(None);
                waiter.is_lost.set(true);
                self.host.line.borrow_mut().push_front(waiter);
            }
        }
    }
}

/// What a request gets to go on with.
pub(super) enum Granted {
    /// A connection that was used before; with when the request went out over it, where it
    /// has.
    Used(Box<Connection>, Option<Instant>),
    /// The right to make one.
    Room(Slot),
}

/// One connection's place in the counts.
pub(super) struct Slot {
    pool: Rc<Pool>,
    pub host: Rc<Host>,
}

impl Slot {
    /// The pool that counts it.
    pub fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.host.open.set(self.host.open.get() - 1);
        self.pool.open.set(self.pool.open.get() - 1);
        self.pool.share_room();
    }
}

/// All connections of a client.
pub(super) struct Pool {
    handle: Handle,
    hosts: RefCell<HashMap<Origin, Rc<Host>>>,
    open: Cell<usize>,
    waiting: Cell<usize>,
    next_ticket: Cell<u64>,
    closed: Cell<bool>,
    watch: RefCell<Option<Task<()>>>,
    watching: Cell<bool>,
    /// Requests sent behind others.
    pipelined: Cell<u64>,
    /// Requests sent again since a connection broke on which others were before them.
    resent: Cell<u64>,
    per_host_max: usize,
    pipelining_max: usize,
    drain_bytes_max: u64,
    all_max: usize,
    queue_max: usize,
    idle_timeout: Nanos,
    age_max: Nanos,
}

impl Pool {
    pub fn new(handle: &Handle, settings: &Settings) -> Rc<Pool> {
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

    /// The host of an origin, the same for the same.
    pub fn host(&self, origin: Origin) -> Rc<Host> {
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
            sharing: Rc::default(),
        });
        hosts.insert(origin, host.clone());
        host
    }

    /// Connections that are open or being opened, and how many of them are at rest.
    pub fn connections(&self) -> (usize, usize) {
        let hosts = self.hosts.borrow();
        let idle = |host: &Rc<Host>| host.idle.borrow().len() + host.sharing.idle();
        let idle = hosts.values().map(idle).sum();
        (self.open.get(), idle)
    }

    /// Requests in line.
    pub fn waiting(&self) -> usize {
        let hosts = self.hosts.borrow();
        let shared = hosts.values().map(|host| host.sharing.waiting());
        self.waiting.get() + shared.sum::<usize>()
    }

    /// Exchanges that were begun behind others, and those of them that were so in vain.
    pub fn pipelined(&self) -> (u64, u64) {
        (self.pipelined.get(), self.resent.get())
    }

    /// Whether a host may have another connection, without taking one from others.
    pub fn has_room(&self, host: &Host) -> bool {
        host.open.get() < self.per_host_max && self.open.get() < self.all_max
    }

    /// A shared connection rests, and is to be closed after the idle time-out.
    pub fn rested(self: &Rc<Pool>) {
        if !self.watching.get() && !self.closed.get() {
            self.watch_idle();
        }
    }

    /// A connection to `host`, or room for one, in the order of asking. `fresh`: none
    /// that was used before, if there can be another. `ahead`: the request, where it may be
    /// sent behind others if it has to wait.
    ///
    /// # Errors
    /// [`Kind::QueueFull`].
    pub async fn acquire(
        self: &Rc<Pool>,
        host: &Rc<Host>,
        fresh: bool,
        ahead: impl Fn() -> Option<Ahead>,
    ) -> Result<Granted, Error> {
        let mut standing: Option<Standing<'_>> = None;
        poll_fn(|cx| {
            if let Some(standing) = &standing {
                return standing.poll(cx).map(Ok);
            }
            if let Some(granted) = self.try_acquire(host, fresh, cx) {
                return Poll::Ready(Ok(granted));
            }
            if self.waiting.get() >= self.queue_max {
                let kind = Kind::QueueFull(self.queue_max);
                return Poll::Ready(Err(Error::new(Phase::Queue, kind)));
            }
            let new = Standing::new(self, host, ahead());
            standing.insert(new).poll(cx).map(Ok)
        })
        .await
    }

    #[inline]
    fn try_acquire(
        self: &Rc<Pool>,
        host: &Rc<Host>,
        fresh: bool,
        cx: &mut Context<'_>,
    ) -> Option<Granted> {
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
        self.room(host).map(Granted::Room)
    }

    fn room(self: &Rc<Pool>, host: &Rc<Host>) -> Option<Slot> {
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

    /// Takes back a connection over which nothing is under way: for who waits, for
    /// later, or, where another host waits for the room, to be closed.
    #[inline]
    pub fn release(self: &Rc<Pool>, mut connection: Box<Connection>, now: Instant) {
        connection.rests_since = now;
        let too_old = now.since(connection.born) >= self.age_max;
        let may_rest = !(too_old || self.idle_timeout == Nanos::ZERO);
        if self.closed.get() || (!may_rest && connection.behind.is_empty()) {
            return;
        }
        let host = connection.slot.host.clone();
        if self.waiting.get() > 0 || !connection.behind.is_empty() {
            if may_rest {
                self.send_ahead(&mut connection, &host, now);
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

    /// Sends requests of those in line over a connection that is nobody's just now.
    fn send_ahead(&self, connection: &mut Connection, host: &Host, now: Instant) {
        if !connection.takes_more() {
            return;
        }
        while connection.behind.waiters.len() < self.pipelining_max {
            let first = host.line.borrow().first().cloned();
            let Some(first) = first.filter(|one| one.ahead.borrow().is_some()) else {
                return;
            };
            let Some(ahead) = first.ahead.take() else {
                return;
            };
            if !connection.post_behind(ahead.head) {
                return;
            }
            self.pipelined.set(self.pipelined.get() + 1);
            host.line.borrow_mut().pop_front();
            first.sent.set(Some((ahead.method, now)));
            connection.behind.waiters.push_back(first);
        }
    }

    /// Gives a connection to whose answer comes next over it, or else to the first in line;
    /// back where nobody wants it.
    fn hand_on(
        self: &Rc<Pool>,
        mut connection: Box<Connection>,
        host: &Host,
        now: Instant,
    ) -> Option<Box<Connection>> {
        if let Some(next) = connection.behind.waiters.pop_front() {
            match next.sent.get() {
                Some((method, _)) if next.is_gone.get() => {
                    let pool = Rc::downgrade(self);
                    let rest = read_away(connection, method, self.drain_bytes_max, now, pool);
                    self.handle.spawn(rest).detach();
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

    /// Gives what room there is to those in line, lowest ticket first.
    fn share_room(self: &Rc<Pool>) {
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
            if let (Some(waiter), Some(room)) = (waiter, self.room(&host)) {
                waiter.grant(Granted::Room(room));
            }
        }
    }

    /// Of all connections at rest, the one that rests longest.
    fn take_oldest(&self) -> Option<Box<Connection>> {
        let hosts = self.hosts.borrow();
        let resting = hosts
            .values()
            .filter_map(|host| Some((host.idle.borrow().first()?.rests_since, host)));
        let (_, host) = resting.min_by_key(|(since, _)| *since)?;
        host.take_oldest()
    }

    /// Closes what rests too long, without a timer for each.
    fn watch_idle(self: &Rc<Pool>) {
        if self.idle_timeout == Nanos::MAX {
            return;
        }
        self.watching.set(true);
        let (pool, handle) = (Rc::downgrade(self), self.handle.clone());
        let task = self.handle.spawn(watch(pool, handle));
        // The one before has ended, or there was none.
        drop(self.watch.replace(Some(task)));
    }

    /// Closes what has rested too long; when to look again.
    fn evict(&self) -> Option<Instant> {
        let now = self.handle.now();
        let mut over = Vec::new();
        let mut next: Option<Instant> = None;
        for host in self.hosts.borrow().values() {
            let mut idle = host.idle.borrow_mut();
            let ends = |one: &Connection| one.rests_since + self.idle_timeout;
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
            .filter_map(|host| host.sharing.evict(now, self.idle_timeout));
        next.into_iter().chain(shared).min()
    }

    /// Closes all connections at rest, now and from now on.
    pub fn close(&self) {
        self.closed.set(true);
        let hosts: Vec<_> = self.hosts.borrow().values().cloned().collect();
        for host in hosts {
            drop(host.idle.take());
            host.sharing.clear();
        }
        drop(self.watch.take());
    }
}

async fn watch(pool: Weak<Pool>, handle: Handle) {
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

impl Host {
    #[inline]
    fn take_newest(&self) -> Option<Box<Connection>> {
        self.idle.borrow_mut().pop()
    }

    fn take_oldest(&self) -> Option<Box<Connection>> {
        let mut idle = self.idle.borrow_mut();
        (!idle.is_empty()).then(|| idle.remove(0))
    }

    fn first_ticket(&self) -> Option<u64> {
        self.line.borrow().first().map(|waiter| waiter.ticket)
    }
}

impl Waiter {
    fn grant(&self, granted: Granted) {
        self.granted.replace(Some(granted));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Stands in line until dropped.
struct Standing<'a> {
    pool: &'a Rc<Pool>,
    host: &'a Rc<Host>,
    waiter: Rc<Waiter>,
}

impl<'a> Standing<'a> {
    fn new(pool: &'a Rc<Pool>, host: &'a Rc<Host>, ahead: Option<Ahead>) -> Standing<'a> {
        let ticket = pool.next_ticket.get();
        pool.next_ticket.set(ticket + 1);
        pool.waiting.set(pool.waiting.get() + 1);
        let waiter = Rc::new(Waiter {
            ticket,
            mark: Mark::default(),
            granted: RefCell::new(None),
            waker: Cell::new(None),
            ahead: RefCell::new(ahead),
            sent: Cell::new(None),
            is_lost: Cell::new(false),
            is_gone: Cell::new(false),
        });
        host.line.borrow_mut().push_back(waiter.clone());
        Standing { pool, host, waiter }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Granted> {
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

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.pool.waiting.set(self.pool.waiting.get() - 1);
        self.host.line.borrow_mut().leave(&self.waiter);
        self.waiter.is_gone.set(true);
        // It may lie in line for a while yet, with nothing in it.
        drop((self.waiter.ahead.take(), self.waiter.waker.take()));
        // Granted, and nobody came for it.
        match self.waiter.granted.take() {
            Some(Granted::Used(connection, None)) => {
                let since = connection.rests_since;
                self.pool.release(connection, since);
            }
            // An answer is on its way over it: as if its turn came only now.
            Some(Granted::Used(mut connection, Some(_))) => {
                let now = connection.rests_since;
                connection.behind.waiters.push_front(self.waiter.clone());
                self.pool.release(connection, now);
            }
            Some(Granted::Room(slot)) => drop(slot),
            None => {}
        }
    }
}
