//! One loop over all connections with `poll()`.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::crowd::Crowd;
use super::done::Downloads;
use super::order::{IoError, IoOrder};
use super::transfer::Wants;

/// The sockets that are polled, and beside each the number of its download.
struct Polled<'a> {
    fds: Vec<PollFd<'a>>,
    numbers: Vec<usize>,
}

impl<'a> Polled<'a> {
    fn new(sockets: &'a [OwnedFd], crowd: &Crowd<'_>) -> Polled<'a> {
        let mut polled = Polled {
            fds: Vec::with_capacity(sockets.len()),
            numbers: Vec::with_capacity(sockets.len()),
        };
        for (number, socket) in sockets.iter().enumerate() {
            if !crowd.transfers[number].is_over() {
                polled.fds.push(PollFd::new(socket, PollFlags::OUT));
                polled.numbers.push(number);
            }
        }
        polled
    }

    /// The last takes its place, so go through them from the last to the first.
    fn remove(&mut self, place: usize) {
        self.fds.swap_remove(place);
        self.numbers.swap_remove(place);
    }
}

/// Downloads over all connections.
pub fn run(order: &IoOrder, request: &[u8]) -> Result<Downloads, IoError> {
    let (sockets, mut crowd) = Crowd::open(order, request)?;
    let mut polled = Polled::new(&sockets, &crowd);
    let mut polls = 0;
    while !polled.fds.is_empty() {
        polls += 1;
        match poll(&mut polled.fds, Some(&crowd.patience())) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => go_on(&sockets, &mut crowd, &mut polled),
            Err(errno) => return Err(IoError::system("poll", errno)),
        }
        if crowd.check() {
            for place in (0..polled.fds.len()).rev() {
                if crowd.transfers[polled.numbers[place]].is_over() {
                    polled.remove(place);
                }
            }
        }
    }
    Ok(crowd.finish(("poll_calls", polls)))
}

fn go_on<'a>(sockets: &'a [OwnedFd], crowd: &mut Crowd<'_>, polled: &mut Polled<'a>) {
    for place in (0..polled.fds.len()).rev() {
        if polled.fds[place].revents().is_empty() {
            continue;
        }
        let number = polled.numbers[place];
        let socket = &sockets[number];
        let before = crowd.transfers[number].wants();
        match crowd.ready(number, socket.as_fd()) {
            Wants::Nothing => polled.remove(place),
            Wants::Read if before == Wants::Write => {
                polled.fds[place] = PollFd::new(socket, PollFlags::IN);
            }
            Wants::Read | Wants::Write => {}
        }
    }
}
