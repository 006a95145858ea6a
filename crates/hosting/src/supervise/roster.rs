//! Who takes connections, and which of them gets the next ([`Distribution::Least`]).
//!
//! [`Distribution::Least`]: crate::Distribution::Least

use std::cell::RefCell;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;

use super::crew::Id;
use crate::bell::Bell;
use crate::board::Board;
use crate::channel::{Channel, DESCRIPTORS_MAX, Kind};

/// Those who serve.
#[derive(Default)]
pub(super) struct Roster {
    takers: RefCell<Takers>,
    /// Somebody came.
    pub(super) changed: Bell,
}

#[derive(Default)]
struct Takers {
    list: Vec<Taker>,
    /// Who is asked first, so that ties go round.
    turn: usize,
    lines: Vec<u8>,
}

/// One who takes connections.
struct Taker {
    id: Id,
    channel: Rc<Channel>,
    line: u32,
    passed: u64,
    /// Connections open, as far as is known in this round.
    open: u64,
    /// Takes no more in this round.
    is_full: bool,
    /// Those chosen for it in this round.
    given: Vec<OwnedFd>,
}

impl Roster {
    pub(super) fn add(&self, id: Id, channel: Rc<Channel>, line: u32) {
        self.takers.borrow_mut().list.push(Taker {
            id,
            channel,
            line,
            passed: 0,
            open: 0,
            is_full: false,
            given: Vec::new(),
        });
        self.changed.ring();
    }

    pub(super) fn remove(&self, id: Id) {
        self.takers.borrow_mut().list.retain(|taker| taker.id != id);
    }

    /// Passes connections on, each to the worker with the fewest; leaves in `batch` those
    /// that nobody takes now.
    pub(super) fn pass(&self, batch: &mut Vec<OwnedFd>, board: &Board) {
        let mut takers = self.takers.borrow_mut();
        takers.look(board);
        while takers.give(batch) {
            takers.send(batch);
        }
    }
}

impl Takers {
    /// Finds out who has how many open: one read for all.
    fn look(&mut self, board: &Board) {
        let lines = self.list.iter().map(|taker| taker.line as usize + 1).max();
        let lines = board.read_first(lines.unwrap_or(0), &mut self.lines);
        let closed: Vec<u64> = lines.map(|line| line.closed).collect();
        for taker in &mut self.list {
            let closed = closed.get(taker.line as usize).copied().unwrap_or(0);
            taker.open = taker.passed.saturating_sub(closed);
            taker.is_full = false;
        }
    }

    /// Chooses for each connection; false if there is none left or nobody to take it.
    fn give(&mut self, batch: &mut Vec<OwnedFd>) -> bool {
        let mut gave = false;
        while !batch.is_empty() {
            let open = self.list.iter().map(|taker| {
                let has_room = !taker.is_full && taker.given.len() < DESCRIPTORS_MAX;
                has_room.then_some(taker.open)
            });
            let Some(chosen) = fewest(open, self.turn) else {
                break;
            };
            self.turn = chosen + 1;
            let taker = &mut self.list[chosen];
            taker.open += 1;
            taker.given.extend(batch.pop());
            gave = true;
        }
        gave
    }

    /// Sends what was chosen; what is not taken comes back.
    fn send(&mut self, batch: &mut Vec<OwnedFd>) {
        for taker in self.list.iter_mut().filter(|taker| !taker.given.is_empty()) {
            let count = taker.given.len();
            match taker.send() {
                Ok(()) => {
                    taker.passed += count as u64;
                    // The worker has its own by now: ours are to be closed.
                    taker.given.clear();
                }
                // Full, or dead, which somebody else will notice.
                Err(_) => {
                    taker.is_full = true;
                    batch.append(&mut taker.given);
                }
            }
        }
    }
}

impl Taker {
    fn send(&self) -> Result<(), Errno> {
        let mut descriptors = Vec::with_capacity(DESCRIPTORS_MAX);
        descriptors.extend(self.given.iter().map(OwnedFd::as_fd));
        let count = [descriptors.len() as u8];
        self.channel.send(Kind::Connections, &count, &descriptors)
    }
}

/// Which has the smallest number, the first from `turn` on among equals; None has no part.
fn fewest(open: impl ExactSizeIterator<Item = Option<u64>>, turn: usize) -> Option<usize> {
    let count = open.len();
    open.enumerate()
        .filter_map(|(place, open)| Some((open?, (place + count - turn % count) % count, place)))
        .min()
        .map(|(_, _, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_goes_to_the_fewest_and_ties_go_round() {
        let of = |open: &[Option<u64>], turn| fewest(open.iter().copied(), turn);
        assert_eq!(of(&[Some(3), Some(1), Some(2)], 0), Some(1));
        assert_eq!(of(&[Some(1), Some(1), Some(1)], 1), Some(1));
        assert_eq!(of(&[Some(1), Some(1), Some(1)], 3), Some(0));
        assert_eq!(of(&[Some(1), None, Some(1)], 1), Some(2));
        assert_eq!(of(&[None, None], 0), None);
        assert_eq!(of(&[], 5), None);
    }

    /// Workers that take up to so many messages, by number, and a batch to pass.
    fn pass(takers: &[(u64, bool)], connections: usize) -> (Vec<usize>, usize) {
        let (roster, board) = (Roster::default(), Board::new().unwrap());
        let mut others = Vec::new();
        for (place, &(passed, is_alive)) in takers.iter().enumerate() {
            let (channel, other) = Channel::pair().unwrap();
            roster.add(place as u64, Rc::new(channel), place as u32);
            roster.takers.borrow_mut().list[place].passed = passed;
            others.extend(is_alive.then(|| (place, Channel::of(other))));
        }
        let socket = || OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut batch: Vec<OwnedFd> = (0..connections).map(|_| socket()).collect();
        roster.pass(&mut batch, &board);
        let mut taken = vec![0; takers.len()];
        let mut buffer = vec![0; 1024];
        for (place, channel) in &others {
            while let crate::channel::Received::Message(message) = channel.receive(&mut buffer) {
                assert_eq!(message.text, [message.descriptors.len() as u8]);
                taken[*place] += message.descriptors.len();
            }
        }
        (taken, batch.len())
    }

    #[test]
    fn a_batch_fills_up_those_who_have_fewer() {
        assert_eq!(
            pass(&[(5, true), (0, true), (2, true)], 8),
            (vec![0, 5, 3], 0)
        );
    }

    #[test]
    fn what_a_dead_worker_does_not_take_goes_to_the_others() {
        assert_eq!(pass(&[(0, false), (9, true)], 70), (vec![0, 70], 0));
    }

    #[test]
    fn what_nobody_takes_is_kept_in_hand() {
        assert_eq!(pass(&[(0, false)], 3), (vec![0], 3));
        assert_eq!(pass(&[], 3), (vec![], 3));
    }
}
