//! The bytes of one connection of a server: TCP as the engine has it, or TLS over it; or those of one stream of HTTP/2.
//! One enum, so that plain TCP costs one branch and no box. Not for: what the bytes mean (`connection`).

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::task::{Context, Poll};

use prony_engine::{Received, SendBuf, Stream};

#[cfg(feature = "tls")]
pub(crate) use self::secure::SecureWire;
use super::http2::sender::StreamSender;
use super::output::SEND_BYTES_MAX;

/// Received bytes; empty at the end of the stream.
pub(crate) enum WireBytes {
    /// As the loop received them.
    Pooled(Received),
    /// Decrypted, in a buffer that goes back to its connection ([`Wire::give_back`]).
    #[cfg(feature = "tls")]
    Plain(Vec<u8>),
}

impl Deref for WireBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            WireBytes::Pooled(received) => received,
            #[cfg(feature = "tls")]
            WireBytes::Plain(bytes) => bytes,
        }
    }
}

/// The bytes of one connection. Dropping it closes the connection, after what was posted is sent.
pub(crate) enum Wire {
    /// TCP as it is.
    Plain(Stream),
    /// Under TLS.
    #[cfg(feature = "tls")]
    Secure(Box<SecureWire>),
    /// One stream of HTTP/2: the body of its answer.
    Http2(StreamSender),
}

impl Wire {
    /// The TCP below, which a stream of HTTP/2 does not have to itself.
    #[inline]
    fn stream(&self) -> Option<&Stream> {
        match self {
            Wire::Plain(stream) => Some(stream),
            #[cfg(feature = "tls")]
            Wire::Secure(secure) => Some(&secure.stream),
            Wire::Http2(_) => None,
        }
    }

    #[inline]
    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<WireBytes>> {
        match self {
            Wire::Plain(stream) => stream
                .poll_recv(cx)
                .map(|received| received.map(WireBytes::Pooled)),
            #[cfg(feature = "tls")]
            Wire::Secure(secure) => secure.poll_recv(cx),
            // A request is whole before it is answered, and a stream that is reset is dropped with its answer.
            Wire::Http2(_) => Poll::Pending,
        }
    }

    /// Takes back what it yielded, once it was read.
    #[inline]
    pub(crate) fn give_back(&mut self, bytes: WireBytes) {
        match (self, bytes) {
            #[cfg(feature = "tls")]
            (Wire::Secure(secure), WireBytes::Plain(bytes)) => secure.spare = bytes,
            (_, bytes) => drop(bytes),
        }
    }

    #[inline]
    pub(crate) fn post(&mut self, bytes: SendBuf) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.post(bytes),
            #[cfg(feature = "tls")]
            Wire::Secure(secure) => secure.post(bytes),
            Wire::Http2(stream) => stream.data(bytes.as_slice(), false),
        }
    }

    /// Posts a part of a file, or under TLS, where it passes through memory, its first piece; returns how much that is.
    pub(crate) fn send_file(
        &mut self,
        file: &Rc<OwnedFd>,
        offset: u64,
        length: u64,
    ) -> io::Result<u64> {
        match self {
            Wire::Plain(stream) => {
                stream.send_file(Rc::clone(file), offset, length)?;
                Ok(length)
            }
            #[cfg(feature = "tls")]
            Wire::Secure(secure) => secure.send_file(file, offset, length),
            Wire::Http2(stream) => {
                let mut bytes = Vec::new();
                read_piece(file, offset, length, &mut bytes)?;
                stream.data(&bytes, false)?;
                Ok(bytes.len() as u64)
            }
        }
    }

    #[inline]
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Wire::Http2(stream) => stream.poll_sent(),
            _ => self
                .stream()
                .map_or(Poll::Ready(Ok(())), |stream| stream.poll_flush(cx)),
        }
    }

    /// Ready with how much may be posted at once: of a stream of HTTP/2, when it has its turn.
    #[inline]
    pub(crate) fn poll_room(&self) -> Poll<io::Result<usize>> {
        match self {
            Wire::Http2(stream) => stream.poll_room(),
            _ => Poll::Ready(Ok(usize::MAX)),
        }
    }

    #[inline]
    pub(crate) fn posted_bytes(&self) -> usize {
        match self {
            Wire::Http2(stream) => stream.unsent_bytes(),
            _ => self.stream().map_or(0, Stream::posted_bytes),
        }
    }

    /// A number that changes as the client takes what is sent to it.
    pub(crate) fn progress(&self) -> u64 {
        match self {
            Wire::Http2(stream) => stream.progress(),
            _ => self.posted_bytes() as u64,
        }
    }

    /// Ends this side once what was posted is out.
    pub(crate) fn shutdown_write(&mut self) {
        self.say_end();
        if let Some(stream) = self.stream() {
            stream.shutdown_write();
        }
    }

    /// Says that nothing follows, where the layer has words for it.
    pub(crate) fn say_end(&mut self) {
        match self {
            Wire::Plain(_) | Wire::Http2(_) => {}
            #[cfg(feature = "tls")]
            Wire::Secure(secure) => secure.say_end(),
        }
    }

    /// Whether the client broke the rules of TLS, so that the connection ends with an alert.
    pub(crate) fn owes_alert(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Wire::Secure(secure) => secure.session.owes_alert(),
            _ => false,
        }
    }

    /// Throws away what comes while the client is to see this side's end; how much that is, 0 at its own.
    pub(crate) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            // It cannot be decrypted any more.
            #[cfg(feature = "tls")]
            Wire::Secure(secure) if secure.session.owes_alert() => {
                let received = secure.stream.poll_recv(cx);
                received.map(|received| received.map(|bytes| bytes.len()))
            }
            _ => {
                let received = self.poll_recv(cx);
                received.map(|received| received.map(|bytes| bytes.len()))
            }
        }
    }

    pub(crate) fn reset(&self) {
        if let Some(stream) = self.stream() {
            stream.reset();
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self.stream() {
            Some(stream) => stream.peer_addr(),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Reads the first piece of a part of a file into `bytes`, which is empty.
fn read_piece(file: &Rc<OwnedFd>, offset: u64, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let file = File::from(file.try_clone()?);
    let piece = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.resize(piece.min(SEND_BYTES_MAX), 0);
    file.read_exact_at(bytes, offset)
}

#[cfg(feature = "tls")]
mod secure {
    use std::future::poll_fn;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::rc::Rc;
    use std::task::{Context, Poll, ready};

    use prony_engine::{Handle, SendBuf, Stream};
    use prony_tls::{Advanced, Handshaking, PlainData, ServerTls, TlsError, TlsSession};

    use super::{WireBytes, read_piece};

    /// A connection under TLS.
    pub(crate) struct SecureWire {
        pub(super) stream: Stream,
        pub(super) session: Box<TlsSession>,
        handle: Handle,
        /// The memory of bytes that were decrypted before.
        pub(super) spare: Vec<u8>,
        /// The peer's end has come.
        has_ended: bool,
        has_said_end: bool,
    }

    impl SecureWire {
        /// Goes through the handshake with a client; whether it chose HTTP/2 comes with the rest. The caller sets the time limit; dropping the future closes the
        /// connection.
        pub(crate) async fn accept(
            handle: &Handle,
            stream: Stream,
            config: &ServerTls,
        ) -> Result<(SecureWire, bool), TlsError> {
            let mut handshaking = Handshaking::server(config)?;
            let (session, facts) = loop {
                let received = poll_fn(|cx| stream.poll_recv(cx)).await?;
                if received.is_empty() {
                    return Err(TlsError::HandshakeCut);
                }
                let mut out = handle.take_buffer();
                let advanced = handshaking.advance(&received, &mut out);
                let posted = stream.post(out);
                match advanced? {
                    Advanced::More(more) => handshaking = more,
                    Advanced::Done(session, facts) => {
                        posted?;
                        break (session, facts);
                    }
                }
                posted?;
            };
            let secure = SecureWire {
                stream,
                session,
                handle: handle.clone(),
                spare: Vec::new(),
                has_ended: false,
                has_said_end: false,
            };
            Ok((secure, facts.protocol == b"h2"))
        }

        pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<WireBytes>> {
            loop {
                let mut plain = std::mem::take(&mut self.spare);
                plain.clear();
                self.decrypt(&mut plain)?;
                if !plain.is_empty() || self.has_ended {
                    return Poll::Ready(Ok(WireBytes::Plain(plain)));
                }
                self.spare = plain;
                let received = ready!(self.stream.poll_recv(cx))?;
                match received.is_empty() {
                    // Requests are delimited, so that a missing end of TLS truncates nothing.
                    true => self.has_ended = true,
                    false => self.session.take_in(&received),
                }
            }
        }

        /// Appends what there is of the client's bytes.
        fn decrypt(&mut self, plain: &mut Vec<u8>) -> io::Result<()> {
            loop {
                match self.session.next_data()? {
                    PlainData::More => return Ok(()),
                    PlainData::Data(data) => plain.extend_from_slice(data),
                    PlainData::Ended => {
                        self.has_ended = true;
                        return Ok(());
                    }
                }
            }
        }

        pub(super) fn post(&mut self, bytes: SendBuf) -> io::Result<()> {
            let mut out = self.handle.take_buffer();
            self.session.encrypt(bytes.as_slice(), &mut out)?;
            if let SendBuf::Owned(mut bytes) = bytes {
                // An empty buffer that is posted goes back to the loop.
                bytes.clear();
                self.stream.post(bytes)?;
            }
            self.stream.post(out)
        }

        /// Posts one piece of a file; returns its length.
        pub(super) fn send_file(
            &mut self,
            file: &Rc<OwnedFd>,
            offset: u64,
            length: u64,
        ) -> io::Result<u64> {
            let mut bytes = self.handle.take_buffer();
            read_piece(file, offset, length, &mut bytes)?;
            let piece = bytes.len() as u64;
            self.post(SendBuf::Owned(bytes))?;
            Ok(piece)
        }

        pub(super) fn say_end(&mut self) {
            if std::mem::replace(&mut self.has_said_end, true) {
                return;
            }
            let mut out = self.handle.take_buffer();
            // Where the connection is broken there is no one left to tell.
            if self.session.close(&mut out).is_ok() {
                let _ = self.stream.post(out);
            }
        }
    }
}
