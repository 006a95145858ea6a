//! HTTP/2 over one transport, by the `h2` crate: many requests at once on one
//! connection.
//!
//! For: a connection that many requests share ([`Http2`]), and one request on it
//! ([`Exchange`]), whose body goes out while its answer comes in.
//! Not for: deciding that HTTP/2 is spoken (ALPN does, or the settings), and pushes,
//! which are refused.
//!
//! `h2` does the frames; a task on the engine's loop moves them. Of tokio there are
//! only the two traits that `h2` reads and writes by (`io`). What a peer may make us
//! keep is bounded: a window of [`STREAM_WINDOW_BYTES`] a stream, which opens again
//! as the body is read, and [`CONNECTION_WINDOW_BYTES`] for all streams together.

mod data;
mod exchange;
mod io;
mod sharing;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::Poll;

use h2::client::{Connection, SendRequest};
use h2::{Reason, client};
use prony_base::Instant;
use prony_engine::{Handle, Task};
use prony_wire::{Header, Limits, Method};

pub(super) use exchange::Exchange;
pub(super) use sharing::{Shared, Sharing};

use self::data::Data;
use self::io::Io;
use super::body::Body;
use super::error::{Error, Kind, Phase};
use super::h1::Waits;
use super::transport::Transport;

/// Bytes of one body that may come before they are read.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// Bytes of all bodies of one connection that may come before they are read.
pub const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Requests at once on a connection, where the server allows as many.
pub const STREAMS_MAX: usize = 250;

/// A request's head.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: Method,
    /// Whether the scheme is https.
    pub secure: bool,
    /// Host and port.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Header lines. Those that only HTTP/1 knows are left out: Connection, Host,
    /// Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade.
    pub headers: Vec<Header<'a>>,
}

/// A connection that speaks HTTP/2; clones share it. It closes once all clones and
/// their exchanges are gone.
#[derive(Clone)]
pub struct Http2(Rc<Inner>);

struct Inner {
    handle: Handle,
    sender: RefCell<SendRequest<Data>>,
    peer: SocketAddr,
    streams: Cell<usize>,
    /// When the last request on it ended.
    rested: Cell<Instant>,
    sharing: Weak<Sharing>,
    is_heard: Cell<bool>,
    /// Moves the frames; None once the connection has ended.
    moving: Rc<Moving>,
    task: RefCell<Option<Task<()>>>,
}

/// What the task that moves the frames has come to.
#[derive(Default)]
struct Moving {
    ended: Cell<bool>,
    closing: Cell<bool>,
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Http2({}, {} streams)", self.0.peer, self.streams())
    }
}

impl Http2 {
    /// Begins HTTP/2 on a transport that is for it, by ALPN or because the caller
    /// knows. Waits for nothing of the peer but room to send.
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
            .map_err(|error| Error::io(Phase::Connect, error))?;
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
            begun.map_err(|error| fault(Phase::Connect, &error).address(peer))?;
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
            rested: Cell::new(handle.now()),
            sharing: Rc::downgrade(sharing),
            is_heard: Cell::new(false),
            moving,
            task: RefCell::new(Some(task)),
        })))
    }

    /// Whether new requests can be made on it: it has neither ended nor been told by the
    /// server that it will.
    pub fn is_open(&self) -> bool {
        if self.0.moving.ended.get() || self.0.moving.closing.get() {
            return false;
        }
        // Ready or waiting for a stream: either way no error.
        let mut sender = self.0.sender.borrow_mut();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        !matches!(sender.poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    /// Requests under way.
    pub fn streams(&self) -> usize {
        self.0.streams.get()
    }

    /// Requests that may be under way at once: what the server said, or a connection to
    /// it before, but at most [`STREAMS_MAX`].
    pub fn streams_max(&self) -> usize {
        let said = match self.0.is_heard.get() {
            true => Some(self.0.sender.borrow().current_max_send_streams()),
            false => self.0.sharing.upgrade().and_then(|one| one.streams_max()),
        };
        said.map_or(STREAMS_MAX, |said| said.clamp(1, STREAMS_MAX))
    }

    /// The server has answered, and its settings came before.
    fn heard(&self) {
        if !self.0.is_heard.replace(true)
            && let Some(sharing) = self.0.sharing.upgrade()
        {
            sharing.heard(self.streams_max());
        }
    }

    /// Whether another request would start at once.
    pub fn has_room(&self) -> bool {
        self.streams() < self.streams_max() && self.is_open()
    }

    /// Since when nothing is under way on it; None while something is.
    fn rests_since(&self) -> Option<Instant> {
        (self.streams() == 0).then(|| self.0.rested.get())
    }

    fn stream_ended(&self) {
        let inner = &self.0;
        inner.streams.set(inner.streams.get() - 1);
        inner.rested.set(inner.handle.now());
        if let Some(sharing) = inner.sharing.upgrade() {
            sharing.changed();
        }
    }

    /// The server's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }

    /// Sends a request. With more under way than the server allows it waits for its turn
    /// in [`Exchange::poll_head`].
    ///
    /// # Errors
    /// [`Kind::BadRequest`] and [`Kind::BadUrl`] for what cannot be sent,
    /// [`Kind::NotHandled`] where the connection takes no more requests.
    pub async fn send(
        &self,
        head: &Head<'_>,
        body: Body,
        waits: Waits,
    ) -> Result<Exchange, (Error, Body)> {
        let request = match exchange::request(head, body.length()) {
            Ok(request) => request,
            Err(error) => return Err((error.address(self.0.peer), body)),
        };
        // One clone a request: `h2` lets each have one that waits.
        let mut sender = self.0.sender.borrow().clone();
        let ready = poll_fn(|cx| sender.poll_ready(cx)).await;
        let is_empty = matches!(body.length(), Some(0));
        let sent = ready.and_then(|()| sender.send_request(request, is_empty));
        match sent {
            Ok((answer, stream)) => {
                Ok(Exchange::new(self, answer, stream, (body, is_empty), waits))
            }
            Err(error) => {
                // Nothing of it is on the wire.
                self.0.moving.closing.set(true);
                let kind = Kind::NotHandled(error.to_string());
                Err((Error::new(Phase::Send, kind).address(self.0.peer), body))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It ends by itself once nobody can send, with a farewell to the server.
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }
}

async fn move_frames(connection: Connection<Io, Data>, moving: Rc<Moving>, sharing: Weak<Sharing>) {
    // Each exchange tells how the connection ended in its own words.
    let _ = connection.await;
    moving.ended.set(true);
    if let Some(sharing) = sharing.upgrade() {
        sharing.changed();
    }
}

/// What `h2` says, in the client's words.
fn fault(phase: Phase, error: &h2::Error) -> Error {
    if let Some(system) = error.get_io() {
        return Error::new(phase, of_io(system));
    }
    let said = error.reason();
    let is_unhandled = error.is_remote()
        && ((error.is_reset() && said == Some(Reason::REFUSED_STREAM))
            || (error.is_go_away() && said == Some(Reason::NO_ERROR)));
    match is_unhandled {
        true => Error::new(phase, Kind::NotHandled(error.to_string())),
        false => Error::new(phase, Kind::Http2(error.to_string())),
    }
}

/// `h2` tells the same failure to every stream, so that it is lent and not given.
fn of_io(error: &std::io::Error) -> Kind {
    match (error.raw_os_error(), error.kind()) {
        (Some(code), _) => Kind::of_io(std::io::Error::from_raw_os_error(code)),
        // How `h2` tells an end, within a frame and between two.
        (None, std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::Other) => Kind::Truncated,
        (None, std::io::ErrorKind::BrokenPipe) => Kind::Closed,
        (None, kind) => Kind::of_io(std::io::Error::new(kind, error.to_string())),
    }
}
