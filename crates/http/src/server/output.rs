//! The sending side of one connection, with its back-pressure.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use prony_base::Instant;
use prony_engine::SendBuf;

use super::state::ServerState;
use super::wire::Wire;
use prony_engine::Alarm;

/// Most bytes of one send. A larger response is sent in parts of this, so that progress shows
/// with a client that reads it slowly.
pub(crate) const SEND_BYTES_MAX: usize = 64 << 10;

/// The stream of one connection, and the responses that are to be sent on it.
pub(crate) struct Output {
    pub(crate) shared: Rc<ServerState>,
    pub(crate) stream: Wire,
    /// Responses that are encoded and not yet posted.
    pub(crate) out: Vec<u8>,
    pub(crate) alarm: Alarm,
    /// The client's address, once it was read.
    pub(crate) peer: Option<SocketAddr>,
}

impl Output {
    /// The buffer for responses, with the memory of one that was sent before.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = self.shared.handle.take_buffer();
        }
        &mut self.out
    }

    /// Posts the responses encoded so far; waits while too much is unsent.
    ///
    /// # Errors
    /// What broke the connection; [`io::ErrorKind::TimedOut`] if the client
    /// reads nothing.
    #[inline]
    pub(crate) async fn send(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.out);
        if out.len() <= SEND_BYTES_MAX {
            return self.send_buffer(SendBuf::Owned(out)).await;
        }
        for part in out.chunks(SEND_BYTES_MAX) {
            let mut bytes = self.shared.handle.take_buffer();
            bytes.extend_from_slice(part);
            self.send_buffer(SendBuf::Owned(bytes)).await?;
        }
        Ok(())
    }

    /// Posts one buffer of at most [`SEND_BYTES_MAX`]; first waits if too much is unsent.
    #[inline]
    pub(crate) async fn send_buffer(&mut self, bytes: SendBuf) -> io::Result<()> {
        if let Wire::Http2(_) = self.stream {
            return self.send_framed(bytes.as_slice()).await;
        }
        let posted = self.stream.posted_bytes();
        let length = bytes.as_slice().len();
        if posted > 0 && posted + length > self.shared.options.response_buffer_bytes_max {
            self.sent().await?;
        }
        self.note_out(length as u64);
        self.stream.post(bytes)
    }

    /// Of HTTP/2: gives a part of a body to the stream as it takes it. Until then it stays with its caller, so that
    /// nothing is held for it.
    pub(crate) async fn send_framed(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.in_time(|stream, _| stream.poll_room()).await?;
            let (part, after) = rest.split_at(rest.len().min(room));
            if let Wire::Http2(stream) = &self.stream {
                stream.data(part, false)?;
            }
            rest = after;
        }
        Ok(())
    }

    /// Counts bytes handed over for sending: of HTTP/2 the connection does, with its frames.
    #[inline]
    fn note_out(&self, bytes: u64) {
        if !matches!(self.stream, Wire::Http2(_)) {
            self.shared.counters.bytes_out.add(bytes);
        }
    }

    /// Posts a part of a file, and waits if too much is unsent.
    pub(crate) async fn send_file(
        &mut self,
        file: Rc<OwnedFd>,
        offset: u64,
        length: u64,
    ) -> io::Result<()> {
        let (mut offset, end) = (offset, offset + length);
        while offset < end {
            let room = self.in_time(|stream, _| stream.poll_room()).await? as u64;
            let length = room.min(end - offset);
            let posted = self.stream.send_file(&file, offset, length)?;
            offset += posted;
            self.note_out(posted);
            if self.stream.posted_bytes() > self.shared.options.response_buffer_bytes_max {
                self.sent().await?;
            }
        }
        Ok(())
    }

    /// The client's address; None where the connection is gone already.
    #[inline]
    pub(crate) fn peer(&mut self) -> Option<SocketAddr> {
        if self.peer.is_none() {
            self.peer = self.stream.peer_addr().ok();
        }
        self.peer
    }

    /// Waits until the kernel has taken everything posted.
    pub(crate) async fn sent(&mut self) -> io::Result<()> {
        self.in_time(Wire::poll_flush).await
    }

    /// Waits for the client, for as long as it takes some of what was posted now and then.
    async fn in_time<T>(
        &mut self,
        mut poll: impl FnMut(&mut Wire, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        let mut seen = self.stream.progress();
        let mut due = self.shared.handle.now() + self.shared.options.write_timeout;
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(done) = poll(&mut self.stream, cx) {
                    return Poll::Ready(done);
                }
                if self.poll_alarm(due, cx).is_pending() {
                    return Poll::Pending;
                }
                let now = self.shared.handle.now();
                let progress = self.stream.progress();
                if progress == seen || self.shared.before_stop(Instant::NEVER) <= now {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                seen = progress;
                due = now + self.shared.options.write_timeout;
            }
        })
        .await
    }

    /// Ready once `due`, or the end of a stop, has passed.
    pub(crate) fn poll_alarm(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.shared.before_stop(due);
        self.alarm.poll(&self.shared.handle, due, cx)
    }
}
