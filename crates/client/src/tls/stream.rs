//! A connection under TLS: the session of `rustls`, which does no I/O, between a
//! transport's bytes and plain ones. Not for: settings (`super`).

use std::fmt;
use std::future::poll_fn;
use std::io::{self, BufRead as _, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use prony_base::Instant;
use prony_engine::{Bracket, Handle, SendBuf};
use prony_tls::{Offer, TlsConfig, TlsError};
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};

use crate::transport::{Chunk, Transport};

/// Most encrypted bytes that the transport holds unsent; more wait in the session.
/// A loop's [`post_bytes_max`](prony_engine::Config) must not be less.
const POSTED_BYTES_MAX: usize = 256 << 10;

/// Plain bytes that are returned at once, about: what fits into the processor's cache, so that
/// they are still there when they are read.
const PLAIN_BYTES_MAX: usize = 64 << 10;

/// Bytes of a peer that does not speak TLS that an error quotes.
const FIRST_BYTES_MAX: usize = 24;

/// A connection under TLS. Dropping it sends `close_notify` and closes it, after what was
/// posted is sent.
pub struct TlsStream {
    // Declared first: the session's last records are sent before the transport closes.
    session: Session,
    transport: Transport,
    /// Received bytes, and how many of them the session has read.
    rest: Option<(Chunk, usize)>,
    /// When the last bytes were received.
    arrived: Option<Instant>,
    handle: Handle,
}

struct Session {
    tls: ClientConnection,
    /// Decrypted bytes in order: one buffer that is lent out and comes back.
    plain: Rc<Vec<u8>>,
    /// It is lent out.
    is_lent: bool,
    /// Posted bytes that the transport has no room for yet, about.
    waiting_bytes: usize,
    /// The error that ended the connection; every later call returns it again.
    fault: Option<TlsError>,
    /// The peer's `close_notify` has come.
    ended: bool,
    /// Close this side once everything is sent.
    end_wanted: bool,
    has_received: bool,
    shows_certificate: bool,
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsStream({:?})", self.transport)
    }
}

impl TlsStream {
    /// Secures a connection to `host`, a name or an address, as the settings say. The
    /// caller sets the time limit; dropping the future closes the connection.
    ///
    /// # Errors
    /// [`TlsError`] by name. Nothing was sent but the handshake.
    pub async fn handshake(
        handle: &Handle,
        transport: Transport,
        host: &str,
        config: &TlsConfig,
        offer: Offer,
    ) -> Result<TlsStream, TlsError> {
        let name = config.name_for(host)?;
        let shows_certificate = config.shows_certificate();
        let mut tls = ClientConnection::new(config.client_config(offer), name)
            .map_err(|error| TlsError::new(error, shows_certificate))?;
        // `post` bounds the buffer: it refuses while encrypted bytes wait.
        tls.set_buffer_limit(None);
        let session = Session {
            tls,
            plain: Rc::default(),
            is_lent: false,
            waiting_bytes: 0,
            fault: None,
            ended: false,
            end_wanted: false,
            has_received: false,
            shows_certificate,
        };
        let mut stream = TlsStream {
            session,
            transport,
            rest: None,
            arrived: None,
            handle: handle.clone(),
        };
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TlsError>> {
        loop {
            self.push_out()?;
            if !self.session.tls.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            let received = match ready!(self.transport.poll_recv(cx)) {
                Ok(received) => received,
                // A server that rejects the ClientHello often resets after its alert.
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            if received.is_empty() {
                return Poll::Ready(Err(TlsError::HandshakeCut));
            }
            let taken = self.session.take_in(&received);
            if let Ok(used) = taken {
                self.keep_rest(received, used);
            }
            // The client's alert, where there is one, is sent before the connection closes.
            self.push_out()?;
            taken?;
        }
    }

    /// The next plain bytes; empty at the end of the stream.
    ///
    /// # Errors
    /// A [`TlsError`] inside an [`io::Error`], after everything received before:
    /// [`TlsError::Truncated`] where the connection ended without TLS's own end.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
        loop {
            let session = &mut self.session;
            if let Some(plain) = session.lend() {
                return Poll::Ready(Ok(Chunk::Lent(plain)));
            }
            if session.ended {
                return Poll::Ready(Ok(Chunk::Shared(Bytes::new())));
            }
            if let Some(fault) = &session.fault {
                return Poll::Ready(Err(fault.clone().into()));
            }
            self.poll_push(cx)?;
            let (received, used) = match self.rest.take() {
                Some(rest) => rest,
                None => match ready!(self.transport.poll_recv(cx)) {
                    Ok(received) => {
                        self.arrived = self.transport.arrived(&received);
                        (received, 0)
                    }
                    Err(error) => return Poll::Ready(Err(self.failed(error.into()))),
                },
            };
            if received.is_empty() {
                return Poll::Ready(Err(self.failed(TlsError::Truncated)));
            }
            match self.session.take_in(&received[used..]) {
                Ok(taken) => self.keep_rest(received, used + taken),
                Err(fault) => self.session.fault = Some(fault),
            }
            self.push_out()?;
        }
    }

    /// When the encrypted bytes of the last plain ones were received.
    pub fn arrived(&self) -> Option<Instant> {
        self.arrived
    }

    /// As [`Transport::submitted`], of encrypted bytes.
    pub fn submitted(&self) -> Option<Bracket> {
        self.transport.submitted()
    }

    /// Encrypts bytes and queues them to be sent, whole and in order.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when too much is queued already, and nothing of
    /// it was taken; [`io::ErrorKind::BrokenPipe`] after
    /// [`shutdown_write`](TlsStream::shutdown_write); what broke the connection.
    pub fn post(&mut self, bytes: impl Into<SendBuf>) -> io::Result<()> {
        let bytes = bytes.into();
        if let Some(fault) = &self.session.fault {
            return Err(fault.clone().into());
        }
        if self.session.end_wanted {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.push_out()?;
        if self.session.waiting_bytes >= POSTED_BYTES_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.session.tls.writer().write_all(bytes.as_slice())?;
        self.session.waiting_bytes += bytes.as_slice().len();
        self.push_out()
    }

    /// Ready once the kernel has all posted bytes.
    ///
    /// # Errors
    /// The error that broke the connection.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.transport.poll_flush(cx))?;
            if !self.session.tls.wants_write() {
                return Poll::Ready(Ok(()));
            }
            self.push_out()?;
        }
    }

    /// Bytes that the kernel has not taken, as they are or as they will be encrypted.
    pub fn posted_bytes(&self) -> usize {
        self.transport.posted_bytes() + self.session.waiting_bytes
    }

    /// Ends this side, with TLS's own end, once what was posted is out.
    pub fn shutdown_write(&mut self) {
        self.session.end();
        // The next call that can fail reports a broken transport.
        let _ = self.push_out();
    }

    /// Closes at once with a reset; what is unsent is dropped.
    pub fn reset(&self) {
        self.transport.reset();
    }

    /// The peer's address.
    ///
    /// # Errors
    /// The error of the kernel, if the connection is closed.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.transport.peer_addr()
    }

    /// The protocol that the server chose (ALPN): `h2`, `http/1.1`, or none.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.session.tls.alpn_protocol()
    }

    /// True when the server chose HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.protocol() == Some(b"h2")
    }

    /// True when the handshake went on from an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.session.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The version spoken, such as `TLS 1.3`.
    pub fn version(&self) -> &'static str {
        match self.session.tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS",
        }
    }

    /// The server's certificates in DER, its own first.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.session.tls.peer_certificates().unwrap_or_default();
        all.iter().map(|certificate| certificate.as_ref())
    }

    fn keep_rest(&mut self, received: Chunk, used: usize) {
        if used < received.len() {
            self.rest = Some((received, used));
        }
    }

    fn failed(&mut self, fault: TlsError) -> io::Error {
        self.session.fault = Some(fault.clone());
        fault.into()
    }

    /// Hands encrypted bytes to the transport, as far as they have room there.
    fn push_out(&mut self) -> io::Result<()> {
        let session = &mut self.session;
        if session.tls.wants_write() {
            let posted_bytes = self.transport.posted_bytes();
            if posted_bytes >= POSTED_BYTES_MAX {
                return Ok(());
            }
            let mut bounded = Bounded {
                bytes: self.handle.take_buffer(),
                room: POSTED_BYTES_MAX - posted_bytes,
            };
            while session.tls.wants_write() && bounded.room > 0 {
                session.tls.write_tls(&mut bounded)?;
            }
            session.waiting_bytes = match session.tls.wants_write() {
                true => session
                    .waiting_bytes
                    .saturating_sub(bounded.bytes.len())
                    .max(1),
                false => 0,
            };
            self.transport.post(bounded.bytes)?;
        }
        if self.session.tls.wants_write() {
            return Ok(());
        }
        if self.session.end_wanted {
            self.transport.shutdown_write();
        }
        Ok(())
    }

    /// [`push_out`](TlsStream::push_out), to be woken where bytes are left.
    fn poll_push(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.session.tls.wants_write() {
            match self.transport.poll_flush(cx) {
                Poll::Ready(flushed) => flushed?,
                Poll::Pending => break,
            }
            self.push_out()?;
        }
        Ok(())
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        if self.session.fault.is_none() && !self.session.tls.is_handshaking() {
            self.session.end();
        }
        // There is no caller left to report an error to.
        let _ = self.push_out();
    }
}

impl Session {
    fn end(&mut self) {
        if !std::mem::replace(&mut self.end_wanted, true) {
            self.tls.send_close_notify();
        }
    }

    /// The plain bytes, if there are any that were not handed on.
    fn lend(&mut self) -> Option<Rc<Vec<u8>>> {
        let is_new = !self.is_lent && !self.plain.is_empty();
        self.is_lent |= is_new;
        is_new.then(|| self.plain.clone())
    }

    /// Takes in what came until there are plain bytes enough, and puts them behind those that
    /// are there; how many bytes were taken.
    fn take_in(&mut self, received: &[u8]) -> Result<usize, TlsError> {
        if !std::mem::replace(&mut self.has_received, true) && !begins_as_tls(received) {
            let first = &received[..received.len().min(FIRST_BYTES_MAX)];
            return Err(TlsError::NotTls(first.to_vec()));
        }
        let mut rest = received;
        while !rest.is_empty() && !self.ended {
            if self.tls.read_tls(&mut rest)? == 0 {
                break;
            }
            let state = self.tls.process_new_packets();
            let plain_bytes = self.take_plain()?;
            match state {
                Ok(state) => self.ended = state.peer_has_closed(),
                Err(error) => return Err(TlsError::new(error, self.shows_certificate)),
            }
            if plain_bytes >= PLAIN_BYTES_MAX {
                return Ok(received.len() - rest.len());
            }
        }
        // What follows the peer's close_notify is ignored.
        Ok(received.len())
    }

    /// How many plain bytes there are then to be handed on.
    fn take_plain(&mut self) -> io::Result<usize> {
        let mut reader = self.tls.reader();
        loop {
            let bytes = match reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let count = bytes.len();
            if count == 0 {
                break;
            }
            ready_buffer(&mut self.plain, &mut self.is_lent).extend_from_slice(bytes);
            reader.consume(count);
        }
        Ok(if self.is_lent { 0 } else { self.plain.len() })
    }
}

/// The buffer that was lent if it is back, or a new one, or as it is.
fn ready_buffer<'a>(plain: &'a mut Rc<Vec<u8>>, is_lent: &mut bool) -> &'a mut Vec<u8> {
    if std::mem::take(is_lent) {
        match Rc::get_mut(plain) {
            Some(back) => back.clear(),
            None => *plain = Rc::default(),
        }
    }
    // It is not shared now, so that nothing is copied.
    Rc::make_mut(plain)
}

/// A vector with a limit on its length.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        self.bytes.extend_from_slice(&bytes[..count]);
        self.room -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The first byte of every TLS record is its type, of which there are five.
fn begins_as_tls(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|first| (20..=24).contains(first))
}
