//! The server itself: accepts connections, hands each to a task, and stops gracefully.

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

use super::connection;
use super::distribute::{ACCEPT_PAUSE, QUIET_TURNS};
use super::handler::Handler;
use super::state::ServerState;
use crate::counters::Counters;
use crate::options::ServerOptions;

/// Most connections accepted after the listener has stopped. Under load there may always be
/// one more, and where others listen they accept what remains.
const REST_MAX: usize = 4096;

/// Where a server's connections come from.
pub enum Source {
    /// A listener of the server's own loop.
    Listener(Listener),
    /// Another loop accepts them and hands them over, until it drops the sender,
    /// which begins this server's graceful stop.
    HandedOver(Receiver<Accepted>),
}

/// How a server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// Whether to accept from the kernel's backlog until it is empty. False where others listen
    /// on the same socket: then only the connections in it at that moment are accepted.
    pub takes_backlog: bool,
    /// How long an idle connection is kept for a request that may be on its way.
    pub idle_grace: Nanos,
}

/// Stops a [`Server`] gracefully.
#[derive(Clone)]
pub struct ShutdownHandle {
    connections: Rc<Connections>,
}

impl ShutdownHandle {
    /// Starts the shutdown, which takes `stop_timeout` at most. A further call can only shorten
    /// how long idle connections are kept.
    pub fn stop(&self, stopping: Stopping) {
        match self.connections.shared.stop() {
            None => {
                self.connections.stopping.set(Some(stopping));
                if let Some(waker) = self.connections.stopped.take() {
                    waker.wake();
                }
            }
            Some(_) => {
                self.connections.shared.hasten(stopping.idle_grace);
                self.connections.wake_all();
            }
        }
    }
}

/// Reports when connections of a [`Server`] have closed. One task at a time may wait.
pub struct CloseEvents {
    connections: Rc<Connections>,
}

impl CloseEvents {
    /// Waits until more than `count` connections have closed since the server began; returns
    /// how many.
    pub async fn beyond(&self, count: u64) -> u64 {
        poll_fn(|cx| {
            let closed = self.connections.shared.counters.closed.get();
            if closed > count {
                return Poll::Ready(closed);
            }
            self.connections.on_close.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// A server on one loop.
pub struct Server<H> {
    connections: Rc<Connections>,
    handler: Rc<H>,
}

impl<H: Handler + 'static> Server<H> {
    /// A server on the loop of `handle`.
    pub fn new(handle: &Handle, options: ServerOptions, handler: H) -> Server<H> {
        Server {
            connections: Rc::new(Connections {
                shared: Rc::new(ServerState::new(handle, options)),
                open: RefCell::default(),
                next_id: Cell::new(0),
                waiting: Cell::new(None),
                stopping: Cell::new(None),
                stopped: Cell::new(None),
                on_close: Cell::new(None),
            }),
            handler: Rc::new(handler),
        }
    }

    /// Its counters, which any thread can read.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.connections.shared.counters
    }

    /// A handle that stops it, beside the future that [`run`](Server::run) is given.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        ShutdownHandle {
            connections: self.connections.clone(),
        }
    }

    /// Reports when its connections have closed.
    pub fn close_events(&self) -> CloseEvents {
        CloseEvents {
            connections: self.connections.clone(),
        }
    }

    /// Serves until `stop` is ready (or the source has ended, or a [`ShutdownHandle`] stops it),
    /// then stops gracefully. Dropping the future closes all connections at once.
    pub async fn run(self, mut source: Source, stop: impl Future<Output = ()>) {
        let Server {
            connections,
            handler,
        } = self;
        let _clear = ClearAtEnd(&connections);
        let mut stop = pin!(stop);
        while let Some(next) = connections.next(&mut source, stop.as_mut()).await {
            match next {
                Ok(stream) => connections.start(&handler, stream),
                Err(_) => {
                    connections.shared.counters.accept_errors.add(1);
                    connections.shared.handle.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let stopping = connections.stopping.get().unwrap_or(Stopping {
            takes_backlog: true,
            idle_grace: connections.shared.options.stop_idle_grace,
        });
        let due = connections.shared.begin_stop(stopping.idle_grace).due;
        let ending = connections.finish(&handler, source, stopping.takes_backlog);
        // `ClearAtEnd` closes what has not ended by then.
        let _ = connections.shared.handle.timeout_at(due, ending).await;
    }
}

/// The connections of one server.
struct Connections {
    shared: Rc<ServerState>,
    open: RefCell<BTreeMap<u64, Entry>>,
    next_id: Cell<u64>,
    /// Wakes what waits for a connection to end.
    waiting: Cell<Option<Waker>>,
    /// The shutdown that was requested.
    stopping: Cell<Option<Stopping>>,
    /// Wakes what waits for that.
    stopped: Cell<Option<Waker>>,
    /// Wakes [`CloseEvents`].
    on_close: Cell<Option<Waker>>,
}

/// One connection's task.
struct Entry {
    task: Option<Task<()>>,
    waker: Option<Waker>,
}

impl Connections {
    fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// The next connection; None once `stop` is ready or the source has ended.
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
            connections: self.clone(),
            id,
        };
        let handler = handler.clone();
        let task = self.shared.handle.spawn(async move {
            leave.enter().await;
            connection::serve(leave.connections.shared.clone(), &*handler, stream).await;
        });
        let entry = Entry {
            task: Some(task),
            waker: None,
        };
        self.open.borrow_mut().insert(id, entry);
    }

    /// Wakes each connection, to check again how long it is kept.
    fn wake_all(&self) {
        for entry in self.open.borrow().values() {
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }

    /// Accepts the rest of the backlog if `takes_backlog`, and waits until all connections have
    /// ended.
    async fn finish<H: Handler + 'static>(
        self: &Rc<Self>,
        handler: &Rc<H>,
        mut source: Source,
        takes_backlog: bool,
    ) {
        self.wake_all();
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

    /// A connection that is there already; None where there is none.
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
    connections: Rc<Connections>,
    id: u64,
}

impl LeaveAtEnd {
    /// Stores this task's waker, which stays the same.
    async fn enter(&self) {
        poll_fn(|cx| {
            if let Some(entry) = self.connections.open.borrow_mut().get_mut(&self.id) {
                entry.waker = Some(cx.waker().clone());
            }
            Poll::Ready(())
        })
        .await
    }
}

impl Drop for LeaveAtEnd {
    fn drop(&mut self) {
        self.connections.shared.counters.closed.add(1);
        let entry = self.connections.open.borrow_mut().remove(&self.id);
        // Detached, because a task cannot cancel itself.
        if let Some(task) = entry.and_then(|entry| entry.task) {
            task.detach();
        }
        for waiting in [&self.connections.waiting, &self.connections.on_close] {
            if let Some(waiting) = waiting.take() {
                waiting.wake();
            }
        }
    }
}

/// Ends all connections when the server's own future ends.
struct ClearAtEnd<'r>(&'r Rc<Connections>);

impl Drop for ClearAtEnd<'_> {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.0.open.borrow_mut());
        drop(left);
    }
}
