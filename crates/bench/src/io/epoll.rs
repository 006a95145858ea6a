//! One loop over all connections with `epoll`, level-triggered: a socket that has more
//! than one buffer of bytes is reported again.

use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::crowd::Crowd;
use super::done::Downloads;
use super::order::{IoError, IoOrder};
use super::transfer::Wants;

/// Most events that one call tells.
const EVENTS_MAX: usize = 512;

/// Downloads over all connections.
pub fn run(order: &IoOrder, request: &[u8]) -> Result<Downloads, IoError> {
    let (sockets, mut crowd) = Crowd::open(order, request)?;
    let wrong = |errno| IoError::system("epoll", errno);
    let events_of = epoll::create(CreateFlags::CLOEXEC).map_err(wrong)?;
    let mut left = 0;
    for (number, socket) in sockets.iter().enumerate() {
        if !crowd.transfers[number].is_over() {
            let data = EventData::new_u64(number as u64);
            epoll::add(&events_of, socket, data, EventFlags::OUT).map_err(wrong)?;
            left += 1;
        }
    }
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut waits = 0;
    while left > 0 {
        waits += 1;
        events.clear();
        let patience = crowd.patience();
        match epoll::wait(&events_of, spare_capacity(&mut events), Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(wrong(errno)),
        }
        for event in &events {
            left -= go_on(&events_of, &sockets, &mut crowd, event).map_err(wrong)?;
        }
        if crowd.check() {
            left = forget_those_that_are_over(&events_of, &sockets, &crowd);
        }
    }
    Ok(crowd.finish(("epoll_wait_calls", waits)))
}

/// Goes on with one download; 1 when that was its end, else 0.
#[inline]
fn go_on(
    events_of: &OwnedFd,
    sockets: &[OwnedFd],
    crowd: &mut Crowd<'_>,
    event: &Event,
) -> Result<usize, Errno> {
    // A copy, because the field may lie where a reference may not point.
    let data = event.data;
    let number = data.u64() as usize;
    let socket = &sockets[number];
    let before = crowd.transfers[number].wants();
    match crowd.ready(number, socket.as_fd()) {
        Wants::Nothing if before != Wants::Nothing => {
            epoll::delete(events_of, socket)?;
            return Ok(1);
        }
        Wants::Read if before == Wants::Write => {
            epoll::modify(events_of, socket, data, EventFlags::IN)?;
        }
        Wants::Nothing | Wants::Read | Wants::Write => {}
    }
    Ok(0)
}

/// How many are left.
fn forget_those_that_are_over(
    events_of: &OwnedFd,
    sockets: &[OwnedFd],
    crowd: &Crowd<'_>,
) -> usize {
    let mut left = 0;
    for (transfer, socket) in crowd.transfers.iter().zip(sockets) {
        if transfer.is_over() {
            // It may have been forgotten when it ended.
            let _ = epoll::delete(events_of, socket);
        } else {
            left += 1;
        }
    }
    left
}
