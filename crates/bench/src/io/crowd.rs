//! Many downloads on one thread, whichever way it learns which of them can go on.
//! Not for: that way (`poll`, `epoll`).

use std::os::fd::{BorrowedFd, OwnedFd};

use prony_base::{Instant, Nanos, clock};
use rustix::event::Timespec;
use rustix::net::SocketFlags;

use super::done::Downloads;
use super::order::{Buffers, IoError, IoOrder};
use super::receive::{Buffer, Taken};
use super::transfer::{self, Transfer, Wants};

/// The downloads of one run.
pub struct Crowd<'a> {
    order: &'a IoOrder,
    request: &'a [u8],
    /// All of them.
    pub transfers: Vec<Transfer>,
    /// One for all, or one for each.
    buffers: Vec<Buffer>,
    next_check: Instant,
}

impl<'a> Crowd<'a> {
    /// Makes the sockets, then for each its buffer, if it has one of its own, and begins to
    /// connect it.
    pub fn open(
        order: &'a IoOrder,
        request: &'a [u8],
    ) -> Result<(Vec<OwnedFd>, Crowd<'a>), IoError> {
        let made = (0..order.connections)
            .map(|_| transfer::socket(order, SocketFlags::NONBLOCK))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sockets = Vec::with_capacity(made.len());
        let mut crowd = Crowd {
            order,
            request,
            transfers: Vec::with_capacity(made.len()),
            buffers: Vec::new(),
            next_check: Instant::ZERO,
        };
        for (fd, length) in made {
            let begin = clock::monotonic();
            if order.buffers == Buffers::Own || crowd.buffers.is_empty() {
                crowd.buffers.push(Buffer::new(order));
            }
            let mut transfer = Transfer::new(order.payload_bytes);
            transfer::begin_connect(&fd, order, &mut transfer);
            transfer.marks.socket = length;
            transfer.marks.setup = clock::monotonic().since(begin);
            crowd.transfers.push(transfer);
            sockets.push(fd);
        }
        crowd.next_check = clock::monotonic() + crowd.pause();
        Ok((sockets, crowd))
    }

    /// Goes on with the download `index`, whose socket can do what it waits for. Says what
    /// it waits for then.
    #[inline]
    pub fn ready(&mut self, index: usize, fd: BorrowedFd<'_>) -> Wants {
        let transfer = &mut self.transfers[index];
        match transfer.wants() {
            Wants::Write => transfer.write(fd, self.request),
            Wants::Read => {
                let buffer = match self.order.buffers {
                    Buffers::Own => index,
                    Buffers::Shared => 0,
                };
                let buffer = &mut self.buffers[buffer];
                // Not past the next check: what others have is not looked at meanwhile.
                while buffer.take(fd, transfer) == Taken::Some
                    && self.order.drains
                    && transfer.wants() == Wants::Read
                    && clock::monotonic() < self.next_check
                {}
            }
            Wants::Nothing => {}
        }
        transfer.wants()
    }

    /// Looks for downloads of which nothing has been heard for too long, a few times in
    /// that time. True when it looked: some may be over then.
    pub fn check(&mut self) -> bool {
        let now = clock::monotonic();
        if now < self.next_check {
            return false;
        }
        for transfer in &mut self.transfers {
            transfer.check(now, self.order.timeout);
        }
        self.next_check = now + self.pause();
        true
    }

    fn pause(&self) -> Nanos {
        Nanos((self.order.timeout.0 / 4).max(1_000_000))
    }

    /// How long to wait at most for any of them.
    pub fn patience(&self) -> Timespec {
        let length = match self.order.spin {
            true => Nanos::ZERO,
            false => self.next_check.since(clock::monotonic()),
        };
        Timespec {
            tv_sec: (length.0 / 1_000_000_000) as i64,
            tv_nsec: (length.0 % 1_000_000_000) as i64,
        }
    }

    /// The downloads that were done.
    pub fn finish(self, waits: (&'static str, u64)) -> Downloads {
        let mut done = Downloads {
            transfers: self.transfers,
            ..Downloads::default()
        };
        let received = self.buffers.iter().map(|buffer| buffer.calls).sum();
        done.calls.add(self.order.receive_call(), received);
        done.calls.add(waits.0, waits.1);
        done
    }
}
