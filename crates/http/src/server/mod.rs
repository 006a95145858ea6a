//! One server on one loop: accepts connections, hands each to a task, counts,
//! and stops gracefully.
//!
//! # A graceful stop
//!
//! What the kernel has accepted until then is taken in, and what has arrived on
//! any connection is answered, with `connection: close`. A connection at rest
//! is kept for `stop_idle_grace`, for a request that is on its way. All this
//! within `stop_timeout`. A [`Stopper`] stops a server in another way: where others
//! listen on the same socket, they take what comes to the kernel's backlog from then on.

mod connection;
mod share;
mod shared;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use prony_base::Nanos;
use prony_engine::{Accepted, Handle, Listener, Receiver, Stream, Task};

use crate::counters::Counters;
use crate::options::ServerOptions;
use crate::request::Request;
use crate::response::Response;

pub use share::{Taker, share_out};
pub(crate) use shared::{Link, PIECE_BYTES, Shared};

/// Pause after a failed attempt to accept, which is mostly for want of
/// descriptors: some connection has to close first.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(10);
/// Turns of the loop without a new connection after which the backlog is empty.
const QUIET_TURNS: u32 = 2;
/// Connections taken in after the listener has stopped. Under load there may always be
/// one more, and where others listen they take what remains.
const REST_MAX: usize = 4096;

/// Answers requests. One handler serves all connections of a loop; those of one
/// connection are answered one after another.
pub trait Handler {
    /// Answers `request` through `response`. What awaits nothing costs nothing
    /// over a plain call.
    fn handle(&self, request: &Request<'_>, response: &mut Response) -> impl Future<Output = ()>;
}

/// Where a server's connections come from.
pub enum Source {
    /// A listener of the server's own loop.
    Listener(Listener),
    /// Another loop accepts them and hands them over, until it drops the sender,
    /// which begins this server's graceful stop.
    HandedOver(Receiver<Accepted>),
}

/// How a server is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// Whether the kernel's backlog is taken in until it is empty. False where others
    /// listen on the same socket: then only what waits there at that moment is.
    pub takes_backlog: bool,
    /// How long a connection at rest is kept for a request that may be on its way.
    pub idle_grace: Nanos,
}

/// Stops a [`Server`] gracefully.
#[derive(Clone)]
pub struct Stopper {
    room: Rc<Room>,
}

impl Stopper {
    /// Stops it, from now on within `stop_timeout`. Said again, it changes only how
    /// long connections at rest are kept, and only to a shorter time.
    pub fn stop(&self, stopping: Stopping) {
        match self.room.shared.stop() {
            None => {
                self.room.stopping.set(Some(stopping));
                if let Some(waker) = self.room.stopped.take() {
                    waker.wake();
                }
            }
            Some(_) => {
                self.room.shared.hasten(stopping.idle_grace);
                self.room.rouse();
            }
        }
    }
}

/// Tells of the connections of a [`Server`] that end. One task at a time may wait.
pub struct Endings {
    room: Rc<Room>,
}

impl Endings {
    /// Waits until more than `count` connections have ended since the server began;
    /// yields how many.
    pub async fn beyond(&self, count: u64) -> u64 {
        poll_fn(|cx| {
            let closed = self.room.shared.counters.closed.get();
            if closed > count {
                return Poll::Ready(closed);
            }
            self.room.on_ending.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// A server on one loop.
pub struct Server<H> {
    room: Rc<Room>,
    handler: Rc<H>,
}

impl<H: Handler + 'static> Server<H> {
    /// A server on the loop of `handle`.
    pub fn new(handle: &Handle, options: ServerOptions, handler: H) -> Server<H> {
        Server {
            room: Rc::new(Room {
                shared: Rc::new(Shared::new(handle, options)),
                connections: RefCell::default(),
                next_id: Cell::new(0),
                waiting: Cell::new(None),
                stopping: Cell::new(None),
                stopped: Cell::new(None),
                on_ending: Cell::new(None),
            }),
            handler: Rc::new(handler),
        }
    }

    /// What it counts, to be read from any thread.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.room.shared.counters
    }

    /// What stops it, beside the future that [`run`](Server::run) is given.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            room: self.room.clone(),
        }
    }

    /// What tells of the ends of its connections.
    pub fn endings(&self) -> Endings {
        Endings {
            room: self.room.clone(),
        }
    }

    /// Serves until `stop` is ready (or the source is dry, or its [`Stopper`] stops
    /// it), then stops gracefully. Dropping the future ends all connections at once.
    pub async fn run(self, mut source: Source, stop: impl Future<Output = ()>) {
        let Server { room, handler } = self;
        let _clear = ClearAtEnd(&room);
        let mut stop = pin!(stop);
        while let Some(next) = room.next(&mut source, stop.as_mut()).await {
            match next {
                Ok(stream) => room.start(&handler, stream),
                Err(_) => {
                    room.shared.counters.accept_errors.add(1);
                    room.shared.handle.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let stopping = room.stopping.get().unwrap_or(Stopping {
            takes_backlog: true,
            idle_grace: room.shared.options.stop_idle_grace,
        });
        let due = room.shared.begin_stop(stopping.idle_grace).due;
        let ending = room.finish(&handler, source, stopping.takes_backlog);
        // What has not ended by then is cut off by `ClearAtEnd`.
        let _ = room.shared.handle.timeout_at(due, ending).await;
    }
}

/// The connections of one server.
struct Room {
    shared: Rc<Shared>,
    connections: RefCell<BTreeMap<u64, Entry>>,
    next_id: Cell<u64>,
    /// Who waits for a connection to end.
    waiting: Cell<Option<Waker>>,
    /// What a [`Stopper`] said.
    stopping: Cell<Option<Stopping>>,
    /// Who waits for that.
    stopped: Cell<Option<Waker>>,
    /// Who wants to know of each connection's end.
    on_ending: Cell<Option<Waker>>,
}

/// One connection's task.
struct Entry {
    task: Option<Task<()>>,
    waker: Option<Waker>,
}

impl Room {
    fn len(&self) -> usize {
        self.connections.borrow().len()
    }

    /// The next connection; None once `stop` is ready or the source is dry.
    async fn next(
        &self,
        source: &mut Source,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<io::Result<Stream>> {
        let mut accepting = pin!(async {
            self.ended(self.shared.options.connections_max).await;
            source.accept(&self.shared.handle).await
        });
        poll_fn(|cx| {
            if self.stopping.get().is_some() || stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            self.stopped.set(Some(cx.waker().clone()));
            accepting.as_mut().poll(cx)
        })
        .await
    }

    /// Waits until fewer than `count` connections are open.
    async fn ended(&self, count: usize) {
        poll_fn(|cx| {
            if self.len() < count {
                return Poll::Ready(());
            }
            self.waiting.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }

    /// Serves a connection in a task of its own.
    fn start<H: Handler + 'static>(self: &Rc<Self>, handler: &Rc<H>, stream: Stream) {
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.shared.counters.accepted.add(1);
        let leave = LeaveAtEnd {
            room: self.clone(),
            id,
        };
        let handler = handler.clone();
        let task = self.shared.handle.spawn(async move {
            leave.enter().await;
            connection::serve(leave.room.shared.clone(), &*handler, stream).await;
        });
        let entry = Entry {
            task: Some(task),
            waker: None,
        };
        self.connections.borrow_mut().insert(id, entry);
    }

    /// Has each connection look again how long it is kept.
    fn rouse(&self) {
        for entry in self.connections.borrow().values() {
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }

    /// Takes in the rest of the backlog if wanted, and waits until all connections
    /// have ended.
    async fn finish<H: Handler + 'static>(
        self: &Rc<Self>,
        handler: &Rc<H>,
        mut source: Source,
        takes_backlog: bool,
    ) {
        self.rouse();
        if takes_backlog || matches!(source, Source::HandedOver(_)) {
            self.take_backlog(handler, &mut source).await;
        }
        if let Source::Listener(listener) = &source {
            for _ in 0..REST_MAX {
                let Some(stream) = listener.accept_rest().await else {
                    break;
                };
                self.start(handler, stream);
            }
        }
        drop(source);
        self.ended(1).await;
    }

    async fn take_backlog<H: Handler + 'static>(
        self: &Rc<Self>,
        handler: &Rc<H>,
        source: &mut Source,
    ) {
        let mut quiet = 0;
        while quiet < QUIET_TURNS {
            self.ended(self.shared.options.connections_max).await;
            match source.accept_now(&self.shared.handle).await {
                Some(Ok(stream)) => {
                    self.start(handler, stream);
                    quiet = 0;
                }
                Some(Err(_)) => break,
                None => {
                    quiet += 1;
                    self.shared.handle.yield_now().await;
                }
            }
        }
    }
}

impl Source {
    /// The next connection; None if there will be none.
    async fn accept(&mut self, handle: &Handle) -> Option<io::Result<Stream>> {
        match self {
            Source::Listener(listener) => Some(listener.accept_stream().await),
            Source::HandedOver(receiver) => {
                let accepted = receiver.recv().await?;
                Some(handle.attach(accepted))
            }
        }
    }

    /// A connection that is there already.
    async fn accept_now(&mut self, handle: &Handle) -> Option<io::Result<Stream>> {
        let mut accepting = pin!(self.accept(handle));
        poll_fn(|cx| match accepting.as_mut().poll(cx) {
            Poll::Ready(next) => Poll::Ready(next),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

/// Counts a connection's end, however it comes.
struct LeaveAtEnd {
    room: Rc<Room>,
    id: u64,
}

impl LeaveAtEnd {
    /// Leaves word how to wake this task. A task's waker stays the same.
    async fn enter(&self) {
        poll_fn(|cx| {
            if let Some(entry) = self.room.connections.borrow_mut().get_mut(&self.id) {
                entry.waker = Some(cx.waker().clone());
            }
            Poll::Ready(())
        })
        .await
    }
}

impl Drop for LeaveAtEnd {
    fn drop(&mut self) {
        self.room.shared.counters.closed.add(1);
        let entry = self.room.connections.borrow_mut().remove(&self.id);
        // Detached, because a task cannot cancel itself.
        if let Some(task) = entry.and_then(|entry| entry.task) {
            task.detach();
        }
        for waiting in [&self.room.waiting, &self.room.on_ending] {
            if let Some(waiting) = waiting.take() {
                waiting.wake();
            }
        }
    }
}

/// Ends all connections when the server's own future ends.
struct ClearAtEnd<'r>(&'r Rc<Room>);

impl Drop for ClearAtEnd<'_> {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.0.connections.borrow_mut());
        drop(left);
    }
}
