//! The handle by which tasks reach their loop, and futures that wait for a time.
//! Not for: streams and listeners themselves (`stream`).

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use prony_base::{Instant, Nanos};
use rustix::net::getsockname;

use crate::config::{ConnectOptions, DriverKind, ListenOptions, LoopStats};
use crate::driver::{Coalescing, Op, Role, Socket, Token};
use crate::net::ReadableSlot;
use crate::slab::Key;
use crate::stream::{Accepted, Listener, Stream, connect_on, connect_unix_on};
use crate::tasks::{Task, TaskCounts, TaskId, Waiter};
use crate::turn::{Alarm, Core};

/// The wait between two trials to listen.
const LISTEN_AGAIN: Nanos = Nanos::from_millis(2);

/// A handle to a loop, for its tasks. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Handle {
    core: Rc<Core>,
    loop_id: u16,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.core.kind())
    }
}

impl Handle {
    pub(crate) fn new(core: Rc<Core>) -> Handle {
        let loop_id = core.tasks.loop_id;
        Handle { core, loop_id }
    }

    /// The driver that this loop runs on.
    pub fn driver(&self) -> DriverKind {
        self.core.kind()
    }

    /// Whether code on this loop may wait for other threads, and use the system's services, such as its names. False
    /// in a simulation, whose time does not pass meanwhile.
    pub fn allows_threads(&self) -> bool {
        self.core.allows_threads()
    }

    /// The reason why io_uring is not in use, where it was preferred; to be reported once.
    pub fn fallback(&self) -> Option<&str> {
        self.core.fallback.as_deref()
    }

    /// True when this loop [polls without sleeping](crate::Config::spin).
    pub fn spins(&self) -> bool {
        self.core.spin
    }

    /// Now, read from the driver's clock: `CLOCK_MONOTONIC`, or virtual time.
    pub fn now(&self) -> Instant {
        self.core.now()
    }

    /// Starts a task on this loop. Should it panic, the loop does.
    #[inline(always)]
    pub fn spawn<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> Task<T> {
        self.core.tasks.spawn_on(self.loop_id, work, false)
    }

    /// Starts a task on this loop whose panic is its result and leaves the loop alone:
    /// see [`Task::poll_outcome`].
    #[inline(always)]
    pub fn spawn_caught<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> Task<T> {
        self.core.tasks.spawn_on(self.loop_id, work, true)
    }

    /// Calls `report` from now on with the payload of each panic that is the result of a
    /// task ([`spawn_caught`](Handle::spawn_caught)) and is not taken.
    pub fn on_unseen_panic(&self, report: fn(Box<dyn Any + Send>)) {
        self.core.tasks.on_unseen_panic(report);
    }

    /// Counts how the tasks of this loop have ended so far.
    pub fn task_counts(&self) -> TaskCounts {
        self.core.tasks.counts()
    }

    /// Drops the future of a task of this loop: now, or, for the task that calls
    /// this, after the poll that it is in. False when it has ended before.
    pub fn cancel(&self, task: TaskId) -> bool {
        self.core.tasks.cancel(task)
    }

    /// Tasks of this loop that have not finished.
    pub fn tasks(&self) -> usize {
        self.core.tasks.len()
    }

    /// Waits for a length of time, counted from this call.
    pub fn sleep(&self, length: Nanos) -> Sleep {
        self.sleep_until(self.now() + length)
    }

    /// Waits until a time on this loop's clock.
    pub fn sleep_until(&self, due: Instant) -> Sleep {
        Sleep {
            core: self.core.clone(),
            due,
            timer: None,
        }
    }

    /// `work`, but at most for a length of time, counted from this call.
    pub fn timeout<F: Future>(
        &self,
        length: Nanos,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        self.timeout_at(self.now() + length, work)
    }

    /// `work`, but at most until a time on this loop's clock. Costs nothing when
    /// `work` is ready at once, and reads no clock.
    pub fn timeout_at<F: Future>(
        &self,
        due: Instant,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        let mut sleep = self.sleep_until(due);
        async move {
            let mut work = pin!(work);
            poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(value) => Poll::Ready(Ok(value)),
                Poll::Pending => sleep.wait(cx).map(|()| Err(Elapsed)),
            })
            .await
        }
    }

    /// Wakes the polling task in the next turn, once the kernel has been asked: for hand-written
    /// futures, as [`yield_now`](Handle::yield_now) is for others.
    pub fn wake_next_turn(&self, cx: &Context<'_>) {
        self.core.tasks.queue.wake_next_turn(cx.waker().clone());
    }

    /// Yields to the other tasks that are due, and to the kernel.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            self.core.tasks.queue.wake_next_turn(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// The error of the kernel: address in use, permission denied.
    pub fn listen(&self, address: SocketAddr, options: &ListenOptions) -> io::Result<Listener> {
        let (socket, local) = self.core.driver.borrow_mut().listen(address, options)?;
        Ok(Listener::new(self.core.clone(), socket, local, options))
    }

    /// [`listen`](Handle::listen), which tries again for up to `patience` while the address is
    /// in use. A program that was killed while its loop accepted by io_uring listens on until
    /// the kernel has taken the ring apart, some time after it has reported the program's
    /// end: a program that is started in its place must wait for that.
    ///
    /// # Errors
    /// The error of the kernel; [`io::ErrorKind::AddrInUse`] not before `patience` is over.
    pub async fn listen_within(
        &self,
        address: SocketAddr,
        options: &ListenOptions,
        patience: Nanos,
    ) -> io::Result<Listener> {
        let until = self.now() + patience;
        loop {
            match self.listen(address, options) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && self.now() < until => {
                    self.sleep(LISTEN_AGAIN).await;
                }
                listened => return listened,
            }
        }
    }

    /// Accepts on a socket that listens already, such as one that another process
    /// opened; of `options` only `accept_queue_max` counts.
    ///
    /// # Errors
    /// The error of the kernel: no socket with an address of its own. In a simulated loop,
    /// [`io::ErrorKind::Unsupported`].
    pub fn listen_on(&self, socket: OwnedFd, options: &ListenOptions) -> io::Result<Listener> {
        let blocking = self.core.blocking.ok_or(io::ErrorKind::Unsupported)?;
        let local = getsockname(&socket)?.try_into()?;
        blocking.set(&socket)?;
        let socket = Socket::own(socket);
        Ok(Listener::new(self.core.clone(), socket, local, options))
    }

    /// Takes in a connection that another loop or process accepted.
    ///
    /// # Errors
    /// The error of the kernel; in a simulated loop, [`io::ErrorKind::Unsupported`].
    pub fn attach(&self, accepted: Accepted) -> io::Result<Stream> {
        accepted.attach(self.core.clone())
    }

    /// Connects to `address`, with `TCP_NODELAY`.
    ///
    /// # Errors
    /// The error of the kernel: refused, unreachable, no free port or descriptor.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<Stream> {
        connect_on(self.core.clone(), address, &ConnectOptions::default()).await
    }

    /// [`connect`](Handle::connect) in a certain way.
    ///
    /// # Errors
    /// The error of the kernel; also about the local address: not this machine's, in use.
    pub async fn connect_with(
        &self,
        address: SocketAddr,
        options: &ConnectOptions,
    ) -> io::Result<Stream> {
        connect_on(self.core.clone(), address, options).await
    }

    /// Connects to the Unix socket at `path`.
    ///
    /// # Errors
    /// The error of the kernel: none there, refused; [`io::ErrorKind::WouldBlock`] where its backlog is full: try again.
    /// [`io::ErrorKind::Unsupported`] in a simulated loop.
    pub fn connect_unix(&self, path: &Path) -> io::Result<Stream> {
        connect_unix_on(self.core.clone(), path)
    }

    /// Waits until a descriptor, such as a signal pipe's, is readable. One task
    /// at a time may wait for a descriptor.
    ///
    /// # Errors
    /// The error of the kernel: a descriptor that cannot be polled. In a simulated
    /// loop, [`io::ErrorKind::Unsupported`].
    pub async fn readable(&self, fd: impl AsFd) -> io::Result<()> {
        // SAFETY: `fd` keeps it open as long as this future, with which the wait ends.
        let socket = unsafe { Socket::from_raw(fd.as_fd().as_raw_fd()) };
        let waiting = Readable::new(self.core.clone(), socket);
        poll_fn(|cx| waiting.poll(cx)).await
    }

    /// An empty vector, with the room of one that was sent before where there
    /// is one. Fill it and [`post`](Stream::post) it.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.core.net.borrow_mut().spares.take()
    }

    /// From now on a turn that waits may go on waiting, until `completions` have
    /// come or `wait` is over since it began: fewer system calls and wake-ups,
    /// for a latency of at most `wait` more. Timers keep their time. A `wait`
    /// under a microsecond, or fewer than two completions: no longer (the default).
    ///
    /// On io_uring it is in force from Linux 6.12. On epoll it is a pause of at
    /// most a millisecond that nothing ends early, left out after a turn with so
    /// many events. A loop that spins or is simulated has none. What is in force
    /// is in [`stats`](Handle::stats).
    pub fn set_coalescing(&self, completions: u32, wait: Nanos) {
        let coalescing = Coalescing { completions, wait };
        self.core.driver.borrow_mut().coalesce(coalescing);
    }

    /// Turns of the loop so far.
    pub fn turns(&self) -> u64 {
        self.core.turns()
    }

    /// Counters of the loop so far.
    pub fn stats(&self) -> LoopStats {
        self.core.stats()
    }
}

/// The time that a [`timeout`](Handle::timeout) allowed has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time allowed has passed")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}

/// Waits until a time; dropping it takes its timer back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    core: Rc<Core>,
    due: Instant,
    timer: Option<Key>,
}

impl Sleep {
    /// The time at which it ends.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Polls without looking at the clock first.
    fn wait(&mut self, cx: &Context<'_>) -> Poll<()> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut timers = self.core.timers.borrow_mut();
        match self.timer {
            None => self.timer = Some(timers.add(self.due, Alarm::Wake(waiter))),
            Some(timer) => match timers.get_mut(timer) {
                Some(alarm) => _before = std::mem::replace(alarm, Alarm::Wake(waiter)),
                None => return Poll::Ready(()),
            },
        }
        Poll::Pending
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.is_none() && self.core.now() >= self.due {
            return Poll::Ready(());
        }
        self.wait(cx)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            let cancelled = self.core.timers.borrow_mut().cancel(timer);
            drop(cancelled);
        }
    }
}

struct Readable {
    core: Rc<Core>,
    key: Key,
}

impl Readable {
    fn new(core: Rc<Core>, socket: Socket) -> Readable {
        let mut net = core.net.borrow_mut();
        let key = net.readables.insert(ReadableSlot {
            socket,
            result: None,
            waiter: Waiter::Nothing,
        });
        net.queue_op(Op::Readable(socket), Token::new(Role::Readable, key));
        drop(net);
        Readable { core, key }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut net = self.core.net.borrow_mut();
        let Some(slot) = net.readables.get_mut(self.key) else {
            return Poll::Pending;
        };
        match slot.result {
            Some(result) => Poll::Ready(result.map_err(io::Error::from)),
            None => {
                _before = slot.waiter.replace(waiter);
                Poll::Pending
            }
        }
    }
}

impl Drop for Readable {
    fn drop(&mut self) {
        let left = self.core.net.borrow_mut().forget_readable(self.key);
        drop(left);
    }
}
