//! How bytes are taken from a socket that has some: `recv`, `readv`, or thrown away in the
//! kernel. Not for: waiting until it has some.

use std::array;
use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, recv};

use super::order::{IoOrder, VECTORED_MAX};
use super::transfer::Transfer;

/// Most bytes that are thrown away by one call. The call needs room of that size, but writes
/// nothing there, so that the kernel never gives memory for it.
const DISCARD_BYTES_MAX: usize = 8 << 20;

/// The outcome of one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Taken {
    /// Bytes, or the end of the stream; the transfer knows.
    Some,
    /// The socket had none, or the time allowed for waiting was over.
    None,
}

/// Where received bytes go, and how.
pub struct Buffer {
    bytes: Vec<u8>,
    /// Room for what is thrown away, never touched; empty: nothing is.
    discarded: Vec<u8>,
    /// Length of each part of a vectored read; the length of all: a plain one.
    each: usize,
    /// Calls so far.
    pub calls: u64,
}

impl Buffer {
    /// The buffer that an order asks for.
    pub fn new(order: &IoOrder) -> Buffer {
        let discarded = if order.discard { DISCARD_BYTES_MAX } else { 0 };
        Buffer {
            // Both come from the kernel zeroed and untouched.
            bytes: vec![0; order.buffer_bytes * order.vectored as usize],
            discarded: vec![0; discarded],
            each: order.buffer_bytes,
            calls: 0,
        }
    }

    /// Takes what one call gives and hands it to the transfer.
    #[inline]
    pub fn take(&mut self, fd: BorrowedFd<'_>, transfer: &mut Transfer) -> Taken {
        self.calls += 1;
        let taken = if !self.discarded.is_empty() && transfer.discardable().is_some() {
            self.discard(fd, transfer)
        } else if self.each < self.bytes.len() {
            self.vectored(fd, transfer)
        } else {
            recv(fd, &mut self.bytes[..], RecvFlags::empty())
                .map(|(count, _)| transfer.received(&self.bytes[..count]))
        };
        match taken {
            Ok(()) => Taken::Some,
            Err(Errno::AGAIN) => Taken::None,
            Err(Errno::INTR) => Taken::Some,
            Err(errno) => {
                transfer.broke(errno.into());
                Taken::Some
            }
        }
    }

    /// On TCP, MSG_TRUNC drops bytes instead of copying them, and says how many.
    fn discard(&mut self, fd: BorrowedFd<'_>, transfer: &mut Transfer) -> Result<(), Errno> {
        let wanted = transfer.discardable().unwrap_or(1);
        let room = usize::try_from(wanted).map_or(DISCARD_BYTES_MAX, |w| w.min(DISCARD_BYTES_MAX));
        let (_, count) = recv(fd, &mut self.discarded[..room], RecvFlags::TRUNC)?;
        transfer.discarded(count as u64);
        Ok(())
    }

    fn vectored(&mut self, fd: BorrowedFd<'_>, transfer: &mut Transfer) -> Result<(), Errno> {
        let mut parts: [IoSliceMut<'_>; VECTORED_MAX] =
            array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut used = 0;
        for (part, bytes) in parts.iter_mut().zip(self.bytes.chunks_mut(self.each)) {
            *part = IoSliceMut::new(bytes);
            used += 1;
        }
        let count = readv(fd, &mut parts[..used])?;
        transfer.received_vectored(self.bytes.chunks(self.each), count);
        Ok(())
    }
}
