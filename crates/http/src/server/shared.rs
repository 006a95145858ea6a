//! What all connections of one server have in common, and the sending side of
//! one connection, with its back-pressure.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, SendBuf, Stream};
use prony_wire::DateCache;

use crate::counters::Counters;
use crate::options::ServerOptions;
use crate::wait::Alarm;

/// Most bytes of one send. A larger answer goes out in pieces of this, so that a
/// client that takes it slowly is seen to take it.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

const SECOND_NANOS: u64 = 1_000_000_000;

/// What the connections of one server share.
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) options: ServerOptions,
    pub(crate) counters: Arc<Counters>,
    /// The clock, read once per turn of the loop: the turn, and its time.
    clock: Cell<(u64, Instant)>,
    date: RefCell<Date>,
    stop: Cell<Option<Stop>>,
}

/// A graceful stop under way.
#[derive(Clone, Copy)]
pub(crate) struct Stop {
    /// Until when a connection at rest may bring another request.
    pub(crate) idle_due: Instant,
    /// How long one may that comes to rest later.
    pub(crate) idle_grace: Nanos,
    /// Until when everything is to be over.
    pub(crate) due: Instant,
}

struct Date {
    cache: DateCache,
    text: [u8; 29],
    /// When the next second starts.
    due: Instant,
}

impl Shared {
    pub(crate) fn new(handle: &Handle, options: ServerOptions) -> Shared {
        Shared {
            handle: handle.clone(),
            options,
            counters: Arc::default(),
            clock: Cell::new((u64::MAX, Instant::ZERO)),
            date: RefCell::new(Date {
                cache: DateCache::default(),
                text: [b' '; 29],
                due: Instant::ZERO,
            }),
            stop: Cell::new(None),
        }
    }

    /// About now: the time at which this turn of the loop first asked.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        let turn = self.handle.turns();
        let (of_turn, now) = self.clock.get();
        if of_turn == turn {
            return now;
        }
        let now = self.handle.now();
        self.clock.set((turn, now));
        now
    }

    /// The Date header's value.
    #[inline]
    pub(crate) fn date(&self) -> [u8; 29] {
        let now = self.now();
        let mut date = self.date.borrow_mut();
        if now >= date.due {
            date.renew(now, (self.options.unix_nanos)());
        }
        date.text
    }

    /// The graceful stop under way, if there is one.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.stop.get()
    }

    /// Starts a graceful stop.
    pub(crate) fn begin_stop(&self, idle_grace: Nanos) -> Stop {
        let now = self.handle.now();
        let stop = Stop {
            idle_due: now + idle_grace,
            idle_grace,
            due: now + self.options.stop_timeout,
        };
        self.stop.set(Some(stop));
        stop
    }

    /// In a stop under way, connections at rest are kept no longer than this from now on.
    pub(crate) fn hasten(&self, idle_grace: Nanos) {
        if let Some(stop) = self.stop.get() {
            let idle_due = stop.idle_due.min(self.handle.now() + idle_grace);
            let idle_grace = stop.idle_grace.min(idle_grace);
            self.stop.set(Some(Stop {
                idle_due,
                idle_grace,
                ..stop
            }));
        }
    }

    /// `due`, or the end of a stop under way where that is earlier.
    pub(crate) fn before_stop(&self, due: Instant) -> Instant {
        self.stop.get().map_or(due, |stop| due.min(stop.due))
    }
}

impl Date {
    #[cold]
    fn renew(&mut self, now: Instant, unix_nanos: u64) {
        let text = self.cache.at(unix_nanos / SECOND_NANOS).as_bytes();
        // It has as many bytes in every year that a clock can show.
        if let Ok(text) = text.try_into() {
            self.text = text;
        }
        self.due = now + Nanos(SECOND_NANOS - unix_nanos % SECOND_NANOS);
    }
}

/// One connection's stream, and the answers that are to go out on it.
pub(crate) struct Link {
    pub(crate) shared: Rc<Shared>,
    pub(crate) stream: Stream,
    /// Answers made and not yet posted.
    pub(crate) out: Vec<u8>,
    pub(crate) alarm: Alarm,
    /// The client's address, once somebody asked for it.
    pub(crate) peer: Option<SocketAddr>,
}

impl Link {
    /// The buffer for answers, with the room of one that was sent before.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = self.shared.handle.take_buffer();
        }
        &mut self.out
    }

    /// Posts the answers made so far, waiting while too much is unsent.
    ///
    /// # Errors
    /// What broke the connection; [`io::ErrorKind::TimedOut`] if the client
    /// takes nothing.
    #[inline]
    pub(crate) async fn send(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.out);
        if out.len() <= PIECE_BYTES {
            return self.send_piece(SendBuf::Owned(out)).await;
        }
        for piece in out.chunks(PIECE_BYTES) {
            let mut bytes = self.shared.handle.take_buffer();
            bytes.extend_from_slice(piece);
            self.send_piece(SendBuf::Owned(bytes)).await?;
        }
        Ok(())
    }

    /// Posts one buffer of at most [`PIECE_BYTES`], waiting before if too much
    /// is unsent.
    #[inline]
    pub(crate) async fn send_piece(&mut self, bytes: SendBuf) -> io::Result<()> {
        let posted = self.stream.posted_bytes();
        let length = bytes.as_slice().len();
        if posted > 0 && posted + length > self.shared.options.response_buffer_bytes_max {
            self.sent().await?;
        }
        self.shared.counters.bytes_out.add(length as u64);
        self.stream.post(bytes)
    }

    /// Posts a part of a file, and waits if too much is unsent.
    pub(crate) async fn send_file(
        &mut self,
        file: Rc<OwnedFd>,
        offset: u64,
        length: u64,
    ) -> io::Result<()> {
        self.stream.send_file(file, offset, length)?;
        self.shared.counters.bytes_out.add(length);
        if self.stream.posted_bytes() > self.shared.options.response_buffer_bytes_max {
            self.sent().await?;
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

    /// Waits until everything posted is in the kernel's hands.
    pub(crate) async fn sent(&mut self) -> io::Result<()> {
        let mut left = self.stream.posted_bytes();
        let mut due = self.shared.handle.now() + self.shared.options.write_timeout;
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(sent) = self.stream.poll_flush(cx) {
                    return Poll::Ready(sent);
                }
                if self.poll_alarm(due, cx).is_pending() {
                    return Poll::Pending;
                }
                let now = self.shared.handle.now();
                let still_left = self.stream.posted_bytes();
                if still_left == left || self.shared.before_stop(Instant::NEVER) <= now {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                left = still_left;
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
