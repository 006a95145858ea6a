//! Streams and listeners as tasks see them: a key into the loop's tables, and
//! futures that look there. Not for: state (`net`) or system calls (`driver`).

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::buffers::{FileRange, Received, SendBuf};
use crate::config::{ConnectOptions, ListenOptions};
use crate::driver::socket::accept_waiting;
use crate::driver::{Blocking, Op, Role, Socket, Token};
use crate::net::{FILE_TOO_SHORT, ListenerSlot, Net, ReceiveMode, StreamSlot};
use crate::slab::Key;
use crate::stamps::Bracket;
use crate::tasks::Waiter;
use crate::turn::Core;

/// A post would have passed [`Config::post_bytes_max`](crate::Config): flush
/// first. Comes inside an [`io::Error`] of kind [`io::ErrorKind::WouldBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostLimit {
    /// Bytes that are posted and unsent.
    pub posted_bytes: usize,
    /// The limit.
    pub post_bytes_max: usize,
}

impl fmt::Display for PostLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes are posted and unsent; with these it would be more than post_bytes_max = {}",
            self.posted_bytes, self.post_bytes_max
        )
    }
}

impl std::error::Error for PostLimit {}

/// A file had fewer bytes than were to be sent of it. Comes inside an [`io::Error`] of
/// kind [`io::ErrorKind::UnexpectedEof`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTooShort;

impl fmt::Display for FileTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file has ended before the part of it that was to be sent")
    }
}

impl std::error::Error for FileTooShort {}

/// The bytes that a part of a file counts as among posted ones.
const FILE_COST: usize = 4096;

/// The error of a stream that broke with this number.
fn broken(errno: Errno) -> io::Error {
    match errno {
        FILE_TOO_SHORT => io::Error::new(io::ErrorKind::UnexpectedEof, FileTooShort),
        _ => errno.into(),
    }
}

/// A TCP connection. Dropping it closes it, after what was posted is out (or the
/// linger time has passed, and then with a reset).
pub struct Stream {
    core: Rc<Core>,
    key: Key,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.key.index)
    }
}

impl Stream {
    fn new(core: Rc<Core>, slot: StreamSlot) -> Stream {
        let key = core.net.borrow_mut().streams.insert(slot);
        Stream { core, key }
    }

    /// The next bytes, in a pooled buffer that goes back when dropped; empty at
    /// the end of the stream. Dropping the future loses nothing. One task at a
    /// time may wait.
    ///
    /// # Errors
    /// The error that broke the connection, after everything received before.
    pub async fn recv(&self) -> io::Result<Received> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// [`recv`](Stream::recv), for hand-written futures.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<io::Result<Received>> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut net = self.core.net.borrow_mut();
        let Some(stream) = net.streams.get_mut(self.key) else {
            return Poll::Ready(Err(Errno::CONNRESET.into()));
        };
        let receive = &mut stream.receive;
        if let Some(received) = receive.queue.pop_front() {
            return Poll::Ready(Ok(received));
        }
        match (receive.ended, stream.send.error) {
            (Some(Ok(())), None) => {
                return Poll::Ready(Ok(Received::end().at(receive.ended_at)));
            }
            (Some(Err(errno)), _) | (Some(Ok(())), Some(errno)) => {
                return Poll::Ready(Err(broken(errno)));
            }
            (None, _) => {}
        }
        _before = receive.waiter.replace(waiter);
        if receive.mode != ReceiveMode::Receive {
            net.set_receive_mode(self.key, ReceiveMode::Receive, 0);
        }
        Poll::Pending
    }

    /// Throws away up to `count` of the following bytes without looking at them, in the
    /// kernel where they are still there (`MSG_TRUNC`: they are not copied); yields how
    /// many, as soon as there are some. Zero is the end of the stream (or `count` is).
    ///
    /// Dropping the future may leave its `count` to be thrown away all the same; the next
    /// call counts them before others. One task at a time may receive or discard.
    ///
    /// # Errors
    /// As of [`recv`](Stream::recv).
    pub async fn discard(&self, count: u64) -> io::Result<u64> {
        poll_fn(|cx| self.poll_discard(cx, count)).await
    }

    /// [`discard`](Stream::discard), for hand-written futures.
    pub fn poll_discard(&self, cx: &mut Context<'_>, count: u64) -> Poll<io::Result<u64>> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut net = self.core.net.borrow_mut();
        let Some(stream) = net.streams.get_mut(self.key) else {
            return Poll::Ready(Err(Errno::CONNRESET.into()));
        };
        let receive = &mut stream.receive;
        let here = receive.take_discarded(count);
        if here > 0 || count == 0 {
            return Poll::Ready(Ok(here));
        }
        match (receive.ended, stream.send.error) {
            (Some(Ok(())), None) => return Poll::Ready(Ok(0)),
            (Some(Err(errno)), _) | (Some(Ok(())), Some(errno)) => {
                return Poll::Ready(Err(broken(errno)));
            }
            (None, _) => {}
        }
        _before = receive.waiter.replace(waiter);
        net.set_receive_mode(self.key, ReceiveMode::Discard, count);
        Poll::Pending
    }

    /// Queues bytes to be sent, whole and in order, with the next turn's batch.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] with a [`PostLimit`] when too much is queued
    /// already; [`io::ErrorKind::BrokenPipe`] after
    /// [`shutdown_write`](Stream::shutdown_write); what broke the connection,
    /// in this call and in each later one.
    pub fn post(&self, bytes: impl Into<SendBuf>) -> io::Result<()> {
        let bytes = bytes.into();
        let len = bytes.as_slice().len();
        let mut net = self.core.net.borrow_mut();
        self.check_post(&mut net, len)?;
        if len == 0 {
            net.spares.give_back(bytes);
        } else {
            net.post(self.key, bytes);
        }
        Ok(())
    }

    /// Queues `len` bytes of `file` from `offset` on, behind what was posted before. They
    /// go from the kernel's cache to the socket without passing through the program, at
    /// most 2 MiB in each turn of the loop. Only 4 KiB count against the limit of what may
    /// be posted, whatever `len` is. What is changed in the file before it is out may or
    /// may not be seen.
    ///
    /// # Errors
    /// As of [`post`](Stream::post). What the kernel says about the file, later, in each
    /// call; [`io::ErrorKind::UnexpectedEof`] with a [`FileTooShort`] where it has ended
    /// before. The peer then has a part of it, and nothing more can follow; a reader
    /// gets the same error.
    pub fn send_file(&self, file: Rc<OwnedFd>, offset: u64, len: u64) -> io::Result<()> {
        let mut net = self.core.net.borrow_mut();
        self.check_post(&mut net, FILE_COST)?;
        if len > 0 {
            net.post_file(self.key, FileRange { file, offset, len });
        }
        Ok(())
    }

    /// Whether so many bytes of memory may be posted.
    fn check_post(&self, net: &mut Net, len: usize) -> io::Result<()> {
        let post_bytes_max = net.limits.post_bytes_max;
        let stream = net.streams.get_mut(self.key).ok_or(Errno::CONNRESET)?;
        let send = &stream.send;
        if let Some(errno) = send.error {
            return Err(broken(errno));
        }
        if send.end_wanted {
            return Err(Errno::PIPE.into());
        }
        let posted_bytes = send.bytes + send.files * FILE_COST;
        if posted_bytes > 0 && posted_bytes.saturating_add(len) > post_bytes_max {
            let limit = PostLimit {
                posted_bytes,
                post_bytes_max,
            };
            return Err(io::Error::new(io::ErrorKind::WouldBlock, limit));
        }
        Ok(())
    }

    /// Waits until the kernel has all posted bytes. One task at a time may wait.
    ///
    /// # Errors
    /// The error that broke the connection.
    pub async fn flush(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// [`flush`](Stream::flush), for hand-written futures.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut net = self.core.net.borrow_mut();
        let Some(stream) = net.streams.get_mut(self.key) else {
            return Poll::Ready(Err(Errno::CONNRESET.into()));
        };
        if let Some(errno) = stream.send.error {
            return Poll::Ready(Err(broken(errno)));
        }
        if stream.send.queue.is_empty() {
            return Poll::Ready(Ok(()));
        }
        _before = stream.send.waiter.replace(waiter);
        Poll::Pending
    }

    /// Bytes that are posted and that the kernel has not taken, those of files too.
    pub fn posted_bytes(&self) -> usize {
        let net = self.core.net.borrow();
        net.streams.get(self.key).map_or(0, |stream| {
            let file_bytes = usize::try_from(stream.send.file_bytes).unwrap_or(usize::MAX);
            stream.send.bytes.saturating_add(file_bytes)
        })
    }

    /// The time at which the first byte of the last post was submitted to the kernel; None before
    /// that. Where the socket had no room, when it was first offered: from there on the wait
    /// is the peer's doing.
    ///
    /// On io_uring the bracket is that of the call, which hands over bytes of several streams;
    /// of as few connected ones, as opposed to accepted ones, that it takes some 15 µs. A call
    /// that then waits has no reading of the clock in between: its bracket is 20 µs wide, within
    /// which at least 99 % of such requests were seen on the wire; every 16th call does not wait.
    pub fn submitted(&self) -> Option<Bracket> {
        let net = self.core.net.borrow();
        net.streams.get(self.key)?.send.submitted
    }

    /// Ends this side of the stream once what was posted is out; the peer's
    /// `recv` then yields the end, and its bytes still arrive here.
    pub fn shutdown_write(&self) {
        let mut net = self.core.net.borrow_mut();
        if let Some(stream) = net.streams.get_mut(self.key) {
            stream.send.end_wanted = true;
            net.touch(self.key);
        }
    }

    /// Closes at once with a reset; what is unsent is dropped.
    pub fn reset(&self) {
        self.core.net.borrow_mut().reset_stream(self.key);
    }

    /// The peer's address.
    ///
    /// # Errors
    /// The error of the kernel, when the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let net = self.core.net.borrow();
        let socket = socket_of(&net, self.key)?;
        self.core.driver.borrow().peer_addr(socket)
    }

    /// This side's address.
    ///
    /// # Errors
    /// The error of the kernel, when the connection is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let net = self.core.net.borrow();
        let socket = socket_of(&net, self.key)?;
        self.core.driver.borrow().local_addr(socket)
    }
}

/// The socket of a stream that is not being closed.
fn socket_of(net: &Net, key: Key) -> io::Result<Socket> {
    let stream = net.streams.get(key).ok_or(Errno::NOTCONN)?;
    match stream.closing {
        None => Ok(stream.socket),
        Some(_) => Err(Errno::NOTCONN.into()),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let left = self.core.net.borrow_mut().drop_stream(self.key);
        drop(left);
    }
}

/// Connects; dropping the future closes the half-made connection.
pub(crate) async fn connect_on(
    core: Rc<Core>,
    address: SocketAddr,
    options: &ConnectOptions,
) -> io::Result<Stream> {
    let socket = core.driver.borrow_mut().open(address, options)?;
    let mut slot = StreamSlot::new(socket);
    slot.connecting = true;
    slot.is_client = true;
    slot.receive.is_stamped = options.timestamps;
    let stream = Stream::new(core, slot);
    let token = Token::new(Role::Connect, stream.key);
    stream
        .core
        .net
        .borrow_mut()
        .queue_op(Op::Connect(socket, address), token);
    poll_fn(|cx| poll_connected(&stream, cx)).await?;
    Ok(stream)
}

/// Connects to a socket of this machine that has a path. The kernel says at once whether it can.
pub(crate) fn connect_unix_on(core: Rc<Core>, path: &Path) -> io::Result<Stream> {
    let blocking = core.blocking.ok_or(io::ErrorKind::Unsupported)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    blocking.set(&socket)?;
    let mut slot = StreamSlot::new(Socket::own(socket));
    slot.is_client = true;
    Ok(Stream::new(core, slot))
}

fn poll_connected(stream: &Stream, cx: &Context<'_>) -> Poll<io::Result<()>> {
    let _before;
    let waiter = Waiter::of(cx, stream.core.tasks.loop_id);
    let mut net = stream.core.net.borrow_mut();
    let Some(slot) = net.streams.get_mut(stream.key) else {
        return Poll::Ready(Err(Errno::CONNABORTED.into()));
    };
    match slot.connected {
        Some(result) => Poll::Ready(result.map_err(io::Error::from)),
        None => {
            _before = slot.connect_waiter.replace(waiter);
            Poll::Pending
        }
    }
}

/// An accepted connection without a loop, on its way to another thread.
/// Dropping it closes it.
#[derive(Debug)]
pub struct Accepted {
    fd: OwnedFd,
    /// The way in which it blocks, where that is known.
    blocking: Option<Blocking>,
}

/// A connection that another process accepted.
impl From<OwnedFd> for Accepted {
    fn from(fd: OwnedFd) -> Accepted {
        Accepted { fd, blocking: None }
    }
}

/// For another process.
impl From<Accepted> for OwnedFd {
    fn from(accepted: Accepted) -> OwnedFd {
        accepted.fd
    }
}

impl Accepted {
    /// Gives it to the loop of `core`.
    pub(crate) fn attach(self, core: Rc<Core>) -> io::Result<Stream> {
        let blocking = core.blocking.ok_or(io::ErrorKind::Unsupported)?;
        if self.blocking != Some(blocking) {
            blocking.set(&self.fd)?;
        }
        Ok(Stream::new(core, StreamSlot::new(Socket::own(self.fd))))
    }
}

/// A listening socket. Dropping it closes it and resets connections that it
/// accepted and no task took.
pub struct Listener {
    core: Rc<Core>,
    key: Key,
    local: SocketAddr,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({})", self.local)
    }
}

impl Listener {
    pub(crate) fn new(
        core: Rc<Core>,
        socket: Socket,
        local: SocketAddr,
        options: &ListenOptions,
    ) -> Listener {
        let key = core.net.borrow_mut().listeners.insert(ListenerSlot {
            socket,
            accepted: Default::default(),
            accept_queue_max: (options.accept_queue_max as usize).max(1),
            accepting: false,
            stopping: false,
            owner_gone: false,
            error: None,
            waiter: Waiter::Nothing,
        });
        Listener { core, key, local }
    }

    /// The next connection and its peer's address (`0.0.0.0:0` where the peer is
    /// gone again). Nothing is accepted before the first call; dropping the future
    /// loses no connection. One task at a time may wait.
    ///
    /// # Errors
    /// The error of the kernel, such as too many open descriptors; calling again
    /// tries again.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let stream = self.accept_stream().await?;
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let peer = stream.peer_addr().unwrap_or(nowhere);
        Ok((stream, peer))
    }

    /// As [`accept`](Listener::accept), without the peer's address, which costs a system
    /// call: [`Stream::peer_addr`] asks for it where it is wanted.
    ///
    /// # Errors
    /// As of [`accept`](Listener::accept).
    pub async fn accept_stream(&self) -> io::Result<Stream> {
        let socket = poll_fn(|cx| self.poll_accepted(cx)).await?;
        Ok(Stream::new(self.core.clone(), StreamSlot::new(socket)))
    }

    /// As [`accept`](Listener::accept), but the connection belongs to no loop
    /// yet: any thread can [`attach`](crate::Handle::attach) it to its own.
    ///
    /// # Errors
    /// As of [`accept`](Listener::accept); in a simulated loop,
    /// [`io::ErrorKind::Unsupported`].
    pub async fn accept_unattached(&self) -> io::Result<Accepted> {
        let blocking = self.core.blocking.ok_or(io::ErrorKind::Unsupported)?;
        let socket = poll_fn(|cx| self.poll_accepted(cx)).await?;
        Ok(Accepted {
            // SAFETY: taken out of the listener's queue, and known here alone.
            fd: unsafe { socket.into_fd() },
            blocking: Some(blocking),
        })
    }

    /// Accepts no more, and yields what this loop had accepted by then, and then what
    /// waits in the kernel's backlog; None once there is nothing more. For a listener
    /// whose socket others listen on as well: the kernel may have reported a connection
    /// to this loop alone, and the others would then not look for it. They still take part, so
    /// that under load there may always be one more: end it after some.
    pub async fn accept_rest(&self) -> Option<Stream> {
        let socket = match poll_fn(|cx| self.poll_rest(cx)).await {
            Some(socket) => socket,
            None => self.accept_waiting()?,
        };
        Some(Stream::new(self.core.clone(), StreamSlot::new(socket)))
    }

    /// Accepts past the driver, which has no operation that does not wait.
    fn accept_waiting(&self) -> Option<Socket> {
        let blocking = self.core.blocking?;
        let net = self.core.net.borrow();
        accept_waiting(net.listeners.get(self.key)?.socket, blocking)
    }

    fn poll_rest(&self, cx: &Context<'_>) -> Poll<Option<Socket>> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut net = self.core.net.borrow_mut();
        let Some(listener) = net.listeners.get_mut(self.key) else {
            return Poll::Ready(None);
        };
        if let Some(socket) = listener.accepted.pop_front() {
            return Poll::Ready(Some(socket));
        }
        if !listener.accepting {
            return Poll::Ready(None);
        }
        _before = listener.waiter.replace(waiter);
        if !std::mem::replace(&mut listener.stopping, true) {
            let token = Token::new(Role::Accept, self.key);
            let op = Op::Cancel(listener.socket, token);
            net.queue_op(op, token);
        }
        Poll::Pending
    }

    fn poll_accepted(&self, cx: &Context<'_>) -> Poll<io::Result<Socket>> {
        let _before;
        let waiter = Waiter::of(cx, self.core.tasks.loop_id);
        let mut net = self.core.net.borrow_mut();
        let Some(listener) = net.listeners.get_mut(self.key) else {
            return Poll::Pending;
        };
        if let Some(socket) = listener.accepted.pop_front() {
            return Poll::Ready(Ok(socket));
        }
        if let Some(errno) = listener.error.take() {
            return Poll::Ready(Err(errno.into()));
        }
        _before = listener.waiter.replace(waiter);
        if !listener.accepting {
            listener.accepting = true;
            let op = Op::Accept(listener.socket);
            net.queue_op(op, Token::new(Role::Accept, self.key));
        }
        Poll::Pending
    }

    /// The address that it listens on, with the port that it got.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let left = self.core.net.borrow_mut().close_listener(self.key);
        drop(left);
    }
}
