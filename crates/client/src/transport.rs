//! A byte stream: TCP as the engine has it, or TLS over it. One enum, so that plain TCP costs
//! one branch and no box. Not for: what the bytes mean (`h1`, `http2`).

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use prony_base::Instant;
use prony_engine::{Bracket, Received, SendBuf, Stream};

use super::tls::TlsStream;

/// Received bytes: a pooled buffer of the loop, or one of TLS. Empty at the end of the stream.
pub enum Chunk {
    /// As the loop received it; returns to its pool when dropped.
    Pooled(Received),
    /// In a buffer of TLS, which fills it again once this is dropped.
    Lent(Rc<Vec<u8>>),
    /// A part of a buffer of HTTP/2.
    Shared(Bytes),
}

impl Deref for Chunk {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Chunk::Pooled(received) => received,
            Chunk::Lent(bytes) => bytes,
            Chunk::Shared(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.len())
    }
}

/// A byte stream. Dropping it closes it, after what was posted is sent.
#[derive(Debug)]
pub enum Transport {
    /// TCP as it is.
    Plain(Stream),
    /// Under TLS.
    Tls(Box<TlsStream>),
}

impl Transport {
    /// Receives the next bytes; empty at the end of the stream. One task at a time may wait.
    ///
    /// # Errors
    /// The error that broke the connection or the layer, after everything received before.
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
        match self {
            Transport::Plain(stream) => stream
                .poll_recv(cx)
                .map(|received| received.map(Chunk::Pooled)),
            Transport::Tls(stream) => stream.poll_recv(cx),
        }
    }

    /// When the loop received `chunk`, the last one, from the kernel. None where that is not
    /// known, as at the end of a stream.
    #[inline]
    pub fn arrived(&self, chunk: &Chunk) -> Option<Instant> {
        let arrived = match (self, chunk) {
            (Transport::Plain(_), Chunk::Pooled(received)) => Some(received.arrival().reaped),
            (Transport::Plain(_), _) => None,
            (Transport::Tls(stream), _) => stream.arrived(),
        };
        arrived.filter(|&at| at > Instant::ZERO)
    }

    /// When the start of what was posted last was handed to the kernel
    /// ([`Stream::submitted`]).
    #[inline]
    pub fn submitted(&self) -> Option<Bracket> {
        match self {
            Transport::Plain(stream) => stream.submitted(),
            Transport::Tls(stream) => stream.submitted(),
        }
    }

    /// Queues bytes to be sent in order, with the next turn's batch.
    ///
    /// # Errors
    /// As of [`Stream::post`].
    #[inline]
    pub fn post(&mut self, bytes: impl Into<SendBuf>) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => stream.post(bytes),
            Transport::Tls(stream) => stream.post(bytes),
        }
    }

    /// Ready once the kernel has taken all posted bytes.
    ///
    /// # Errors
    /// The error that broke the connection.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Plain(stream) => stream.poll_flush(cx),
            Transport::Tls(stream) => stream.poll_flush(cx),
        }
    }

    /// Posted bytes that the kernel has not taken.
    #[inline]
    pub fn posted_bytes(&self) -> usize {
        match self {
            Transport::Plain(stream) => stream.posted_bytes(),
            Transport::Tls(stream) => stream.posted_bytes(),
        }
    }

    /// Closes this side once what was posted is sent.
    pub fn shutdown_write(&mut self) {
        match self {
            Transport::Plain(stream) => stream.shutdown_write(),
            Transport::Tls(stream) => stream.shutdown_write(),
        }
    }

    /// Resets the connection; what is unsent is dropped.
    pub fn reset(&self) {
        match self {
            Transport::Plain(stream) => stream.reset(),
            Transport::Tls(stream) => stream.reset(),
        }
    }

    /// The peer's address.
    ///
    /// # Errors
    /// The kernel's error, when the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Transport::Plain(stream) => stream.peer_addr(),
            Transport::Tls(stream) => stream.peer_addr(),
        }
    }
}
