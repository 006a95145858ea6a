//! A connection that speaks HTTP/2, shared by the requests on it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::Poll;

use h2::client::{Connection, SendRequest};
use h2::{Reason, client};
use prony_base::Instant;
use prony_engine::{Handle, Task};
use prony_wire::Limits;

use super::data::Data;
use super::io::Io;
use super::sharing::Sharing;
use crate::error::{Error, Kind, RequestPhase};
use crate::transport::Transport;

/// The flow-control window of a stream, in bytes: how much of a body a server may send before
/// it is read.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The flow-control window of a connection, in bytes, over all its streams.
pub const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Most streams at once on a connection, where the server allows as many.
pub const STREAMS_MAX: usize = 250;

/// A connection that speaks HTTP/2; clones share it. It closes once all clones and
/// exchanges on it are gone.
#[derive(Clone)]
pub struct Http2(pub(super) Rc<Inner>);

pub(super) struct Inner {
    pub handle: Handle,
    pub sender: RefCell<SendRequest<Data>>,
    pub peer: SocketAddr,
    pub streams: Cell<usize>,
    /// When the last request on it ended.
    idle_since: Cell<Instant>,
    sharing: Weak<Sharing>,
    is_heard: Cell<bool>,
    /// Moves the frames; None once the connection has ended.
    pub moving: Rc<Moving>,
    task: RefCell<Option<Task<()>>>,
}

/// The state of the task that moves the frames.
#[derive(Default)]
pub(super) struct Moving {
    ended: Cell<bool>,
    pub closing: Cell<bool>,
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Http2({}, {} streams)", self.0.peer, self.streams())
    }
}

impl Http2 {
    /// Starts HTTP/2 on a transport, after ALPN or with prior knowledge. Waits for the peer only
    /// where the transport has no room to send.
    ///
    /// # Errors
    /// [`Kind::Http2`], and what broke the connection.
    pub async fn begin(
        handle: &Handle,
        transport: Transport,
        limits: &Limits,
        sharing: &Rc<Sharing>,
    ) -> Result<Http2, Error> {
        let peer = transport
            .peer_addr()
            .map_err(|error| Error::io(RequestPhase::Connect, error))?;
        let io = Io::new(handle, transport);
        let begun = client::Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
            // Until the server has said how many, `h2` holds all but one back: none is refused.
            .initial_max_send_streams(1)
            .handshake::<_, Data>(io)
            .await;
        let (sender, connection) =
            begun.map_err(|error| fault(RequestPhase::Connect, &error).address(peer))?;
        let moving = Rc::new(Moving::default());
        let task = handle.spawn(move_frames(
            connection,
            moving.clone(),
            Rc::downgrade(sharing),
        ));
        Ok(Http2(Rc::new(Inner {
            handle: handle.clone(),
            sender: RefCell::new(sender),
            peer,
            streams: Cell::new(0),
            idle_since: Cell::new(handle.now()),
            sharing: Rc::downgrade(sharing),
            is_heard: Cell::new(false),
            moving,
            task: RefCell::new(Some(task)),
        })))
    }

    /// Whether it takes new requests: it has neither ended nor received a GOAWAY.
    pub fn is_open(&self) -> bool {
        if self.0.moving.ended.get() || self.0.moving.closing.get() {
            return false;
        }
        // Ready or waiting for a stream: either way no error.
        let mut sender = self.0.sender.borrow_mut();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        !matches!(sender.poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    /// Requests in flight.
    pub fn streams(&self) -> usize {
        self.0.streams.get()
    }

    /// Most requests in flight at once: the limit of the server's settings, or of its last
    /// connection's, but at most [`STREAMS_MAX`].
    pub fn streams_max(&self) -> usize {
        let announced = match self.0.is_heard.get() {
            true => Some(self.0.sender.borrow().current_max_send_streams()),
            false => self.0.sharing.upgrade().and_then(|one| one.streams_max()),
        };
        announced.map_or(STREAMS_MAX, |announced| announced.clamp(1, STREAMS_MAX))
    }

    /// Notes that the server has answered, and so has sent its settings.
    pub(super) fn heard(&self) {
        if !self.0.is_heard.replace(true)
            && let Some(sharing) = self.0.sharing.upgrade()
        {
            sharing.heard(self.streams_max());
        }
    }

    /// Whether another request could start at once.
    pub fn has_free_stream(&self) -> bool {
        self.streams() < self.streams_max() && self.is_open()
    }

    /// The time since which it carries no request; None while it carries one.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.streams() == 0).then(|| self.0.idle_since.get())
    }

    pub(super) fn stream_ended(&self) {
        let inner = &self.0;
        inner.streams.set(inner.streams.get() - 1);
        inner.idle_since.set(inner.handle.now());
        if let Some(sharing) = inner.sharing.upgrade() {
            sharing.changed();
        }
    }

    /// The server's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It ends by itself once there is no sender, after a GOAWAY to the server.
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }
}

async fn move_frames(connection: Connection<Io, Data>, moving: Rc<Moving>, sharing: Weak<Sharing>) {
    // Each exchange reports how the connection ended.
    let _ = connection.await;
    moving.ended.set(true);
    if let Some(sharing) = sharing.upgrade() {
        sharing.changed();
    }
}

/// The client's error for an error of `h2`.
pub(super) fn fault(phase: RequestPhase, error: &h2::Error) -> Error {
    if let Some(system) = error.get_io() {
        return Error::new(phase, of_io(system));
    }
    let reason = error.reason();
    let is_unhandled = error.is_remote()
        && ((error.is_reset() && reason == Some(Reason::REFUSED_STREAM))
            || (error.is_go_away() && reason == Some(Reason::NO_ERROR)));
    match is_unhandled {
        true => Error::new(phase, Kind::NotHandled(error.to_string())),
        false => Error::new(phase, Kind::Http2(error.to_string())),
    }
}

/// The same for a system error, which `h2` reports to every stream and so only lends.
fn of_io(error: &std::io::Error) -> Kind {
    match (error.raw_os_error(), error.kind()) {
        (Some(code), _) => Kind::of_io(std::io::Error::from_raw_os_error(code)),
        // What `h2` reports for an end of the connection, within a frame and between two.
        (None, std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::Other) => Kind::Truncated,
        (None, std::io::ErrorKind::BrokenPipe) => Kind::Closed,
        (None, kind) => Kind::of_io(std::io::Error::new(kind, error.to_string())),
    }
}
