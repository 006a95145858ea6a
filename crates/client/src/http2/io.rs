//! A transport as `h2` wants its connection: tokio's two traits, and nothing else
//! of tokio.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use prony_engine::Handle;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::SENDING_BYTES_MAX;
use crate::tls::TlsError;
use crate::transport::{Chunk, Transport};

pub(super) struct Io {
    handle: Handle,
    transport: Transport,
    /// Received, and read up to `used`.
    chunk: Option<Chunk>,
    used: usize,
}

impl Io {
    pub fn new(handle: &Handle, transport: Transport) -> Io {
        Io {
            handle: handle.clone(),
            transport,
            chunk: None,
            used: 0,
        }
    }

    /// Posts what `fill` writes, unless too much is unsent already.
    fn poll_post(
        &mut self,
        cx: &mut Context<'_>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<io::Result<usize>> {
        if self.transport.posted_bytes() >= SENDING_BYTES_MAX {
            ready!(self.transport.poll_flush(cx))?;
        }
        let mut bytes = self.handle.take_buffer();
        fill(&mut bytes);
        let count = bytes.len();
        Poll::Ready(self.transport.post(bytes).map(|()| count))
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let io = self.get_mut();
        let chunk = match io.chunk.take() {
            Some(chunk) => chunk,
            None => {
                io.used = 0;
                match ready!(io.transport.poll_recv(cx)) {
                    Ok(chunk) => chunk,
                    // Frames delimit bodies, so a missing close_notify truncates nothing.
                    Err(error) if matches!(TlsError::within(&error), Some(TlsError::Truncated)) => {
                        return Poll::Ready(Ok(()));
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        };
        let rest = &chunk[io.used..];
        let count = rest.len().min(out.remaining());
        out.put_slice(&rest[..count]);
        if count < rest.len() {
            io.used += count;
            io.chunk = Some(chunk);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_post(cx, |out| out.extend_from_slice(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_post(cx, |out| {
            for part in parts {
                out.extend_from_slice(part);
            }
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Posted bytes are sent with the loop's next turn without being waited for.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().transport.shutdown_write();
        Poll::Ready(Ok(()))
    }
}
