//! A thread for each connection, which waits in the kernel.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use prony_base::clock;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SocketFlags, connect};

use super::done::Downloads;
use super::order::{IoError, IoOrder};
use super::receive::{Buffer, Taken};
use super::transfer::{self, Transfer};
use crate::BenchError;

/// Stack of a thread: a download needs a few KiB of it.
const STACK_BYTES: usize = 256 << 10;

/// Makes all sockets, then a thread for each.
pub fn run(order: &IoOrder, request: &[u8]) -> Result<Downloads, IoError> {
    let sockets = (0..order.connections)
        .map(|_| transfer::socket(order, SocketFlags::empty()))
        .collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(sockets.len());
        for (fd, socket) in sockets {
            let begin = clock::monotonic();
            let thread = thread::Builder::new()
                .name("download".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || download(order, request, fd))
                .map_err(BenchError::Thread)?;
            threads.push((socket, clock::monotonic().since(begin), thread));
        }
        let mut done = Downloads::default();
        for (socket, setup, thread) in threads {
            let (mut transfer, calls) = thread.join().map_err(|_| BenchError::Panicked)?;
            (transfer.marks.socket, transfer.marks.setup) = (socket, setup);
            done.calls.add(order.receive_call(), calls);
            done.transfers.push(transfer);
        }
        Ok(done)
    })
}

fn download(order: &IoOrder, request: &[u8], fd: OwnedFd) -> (Transfer, u64) {
    let mut buffer = Buffer::new(order);
    let mut transfer = Transfer::new(order.payload_bytes);
    match ask(order, request, &fd, &mut transfer) {
        Ok(()) => receive(order, &fd, &mut buffer, &mut transfer),
        Err(Errno::AGAIN | Errno::INPROGRESS) => transfer.timed_out(order.timeout),
        Err(errno) => transfer.broke(errno.into()),
    }
    (transfer, buffer.calls)
}

/// Connects and sends the request. A time-out of the socket ends in AGAIN, of connecting
/// in INPROGRESS.
fn ask(
    order: &IoOrder,
    request: &[u8],
    fd: &OwnedFd,
    transfer: &mut Transfer,
) -> Result<(), Errno> {
    let limit = Some(Duration::from_nanos(order.timeout.0));
    for side in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(fd, side, limit)?;
    }
    connect(fd, &order.address)?;
    transfer.connected();
    // Waits until the kernel has all of it.
    transfer.write(fd.as_fd(), request);
    ioctl_fionbio(fd, order.spin)
}

fn receive(order: &IoOrder, fd: &OwnedFd, buffer: &mut Buffer, transfer: &mut Transfer) {
    while !transfer.is_over() {
        if buffer.take(fd.as_fd(), transfer) == Taken::None {
            if order.spin {
                transfer.check(clock::monotonic(), order.timeout);
            } else {
                transfer.timed_out(order.timeout);
            }
        }
    }
}
