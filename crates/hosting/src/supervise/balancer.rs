//! The workers that connections are passed to, and which of them gets the next ([`Distribution::Least`]).
//!
//! [`Distribution::Least`]: crate::Distribution::Least

use std::cell::RefCell;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use rustix::io::Errno;

use super::pool::Id;
use crate::bell::Bell;
use crate::board::{Board, Line};
use crate::channel::{Channel, DESCRIPTORS_MAX, MessageKind};

/// A worker whose last beat is so many intervals old is stuck, or as good as: what it is
/// given waits, until it turns again or has ended.
const BEATS_MISSED: u64 = 2;

/// The workers that serve.
pub(super) struct Balancer {
    /// The age of a beat from which on its worker is passed over.
    stale_after: Nanos,
    targets: RefCell<Targets>,
    /// Connections that workers had not taken in when they ended.
    orphans: RefCell<Vec<OwnedFd>>,
    /// Rung when a worker was added.
    pub(super) changed: Bell,
}

#[derive(Default)]
struct Targets {
    list: Vec<Target>,
    /// The worker that comes first, so that ties go round.
    turn: usize,
    lines: Vec<u8>,
}

/// A worker that connections are passed to.
struct Target {
    id: Id,
    channel: Rc<Channel>,
    line: u32,
    passed: u64,
    /// Connections open, as far as is known in this round.
    open: u64,
    /// Connections that it can have open at once: where it has no descriptors for more,
    /// they wait in the kernel's backlog, and do not get lost on their way to it.
    connections_max: u64,
    /// Its loop has not turned for some time.
    is_stuck: bool,
    /// Takes no more in this round.
    is_full: bool,
    /// Those chosen for it in this round.
    given: Vec<OwnedFd>,
}

impl Balancer {
    /// Of workers that beat so often.
    pub(super) fn new(beat_interval: Nanos) -> Balancer {
        Balancer {
            stale_after: Nanos(BEATS_MISSED * beat_interval.0),
            targets: RefCell::default(),
            orphans: RefCell::default(),
            changed: Bell::default(),
        }
    }

    pub(super) fn add(&self, id: Id, channel: Rc<Channel>, line: u32) {
        self.targets.borrow_mut().list.push(Target {
            id,
            channel,
            line,
            passed: 0,
            open: 0,
            connections_max: 0,
            is_stuck: false,
            is_full: false,
            given: Vec::new(),
        });
        self.changed.ring();
    }

    pub(super) fn remove(&self, id: Id) {
        self.targets
            .borrow_mut()
            .list
            .retain(|target| target.id != id);
    }

    /// Removes a worker that has ended, and keeps what it had not taken in for the others.
    pub(super) fn orphan(&self, id: Id, connections: Vec<OwnedFd>) {
        self.remove(id);
        self.orphans.borrow_mut().extend(connections);
    }

    /// Passes on what workers that ended had not taken in, as far as somebody takes it.
    pub(super) fn pass_orphans(&self, board: &Board, now: Instant) {
        let mut orphans = self.orphans.borrow_mut();
        if !orphans.is_empty() {
            self.pass(&mut orphans, board, now);
        }
    }

    /// Passes connections on, each to the worker with the fewest, and to one that is stuck
    /// only where nobody else takes it; leaves in `batch` those that nobody takes now.
    pub(super) fn pass(&self, batch: &mut Vec<OwnedFd>, board: &Board, now: Instant) {
        let mut targets = self.targets.borrow_mut();
        targets.look(board, Instant(now.0.saturating_sub(self.stale_after.0)));
        while targets.give(batch) {
            targets.send(batch);
        }
    }
}

impl Targets {
    /// Finds out who has how many open, and who has not been heard of since `stale`: one
    /// read for all.
    fn look(&mut self, board: &Board, stale: Instant) {
        let lines = self
            .list
            .iter()
            .map(|target| target.line as usize + 1)
            .max();
        let lines = board.read_first(lines.unwrap_or(0), &mut self.lines);
        let known: Vec<Line> = lines.collect();
        for target in &mut self.list {
            let known = known.get(target.line as usize).copied();
            let line = known.unwrap_or_default();
            target.open = target.passed.saturating_sub(line.closed);
            target.connections_max = line.connections_max;
            target.is_stuck = line.beat_ns < stale.0;
            target.is_full = false;
        }
    }

    /// Chooses for each connection; false if there is none left or nobody to take it.
    fn give(&mut self, batch: &mut Vec<OwnedFd>) -> bool {
        let mut gave = false;
        while !batch.is_empty() {
            let open = self.list.iter().map(|target| {
                let has_room = !target.is_full
                    && target.open < target.connections_max
                    && target.given.len() < DESCRIPTORS_MAX;
                has_room.then_some((target.is_stuck, target.open))
            });
            let Some(chosen) = fewest(open, self.turn) else {
                break;
            };
            self.turn = chosen + 1;
            let target = &mut self.list[chosen];
            target.open += 1;
            // First come, first served, where there are more than the workers can take.
            target.given.push(batch.remove(0));
            gave = true;
        }
        gave
    }

    /// Sends what was chosen; what is not taken comes back.
    fn send(&mut self, batch: &mut Vec<OwnedFd>) {
        for target in self
            .list
            .iter_mut()
            .filter(|target| !target.given.is_empty())
        {
            let count = target.given.len();
            match target.send() {
                Ok(()) => {
                    target.passed += count as u64;
                    // The worker has its own by now: ours are to be closed.
                    target.given.clear();
                }
                // Full, or dead, which somebody else will notice.
                Err(_) => {
                    target.is_full = true;
                    batch.append(&mut target.given);
                }
            }
        }
    }
}

impl Target {
    fn send(&self) -> Result<(), Errno> {
        let mut descriptors = Vec::with_capacity(DESCRIPTORS_MAX);
        descriptors.extend(self.given.iter().map(OwnedFd::as_fd));
        let count = [descriptors.len() as u8];
        self.channel
            .send(MessageKind::Connections, &count, &descriptors)
    }
}

/// Which has the smallest number, the first from `turn` on among equals; None has no part.
fn fewest<N: Ord>(open: impl ExactSizeIterator<Item = Option<N>>, turn: usize) -> Option<usize> {
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

    const INTERVAL: Nanos = Nanos::from_secs(1);
    const NOW: Instant = Instant(10_000_000_000);

    const OPEN_MAX: u64 = 100;

    /// Workers that were passed so many, by whether they are there, and a batch to pass.
    fn pass(targets: &[(u64, bool)], connections: usize) -> (Vec<usize>, usize) {
        pass_beating(targets, &vec![NOW; targets.len()], connections)
    }

    /// The same, by when each beat last.
    fn pass_beating(
        targets: &[(u64, bool)],
        beats: &[Instant],
        connections: usize,
    ) -> (Vec<usize>, usize) {
        let (balancer, board) = (Balancer::new(INTERVAL), Board::new().unwrap());
        for (place, beat) in beats.iter().enumerate() {
            let beat_ns = beat.0;
            let line = Line {
                beat_ns,
                connections_max: OPEN_MAX,
                ..Line::default()
            };
            board.write(place as u32, line);
        }
        let mut others = Vec::new();
        for (place, &(passed, is_alive)) in targets.iter().enumerate() {
            let (channel, other) = Channel::pair().unwrap();
            balancer.add(place as u64, Rc::new(channel), place as u32);
            balancer.targets.borrow_mut().list[place].passed = passed;
            others.extend(is_alive.then(|| (place, Channel::from_socket(other))));
        }
        let socket = || OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut batch: Vec<OwnedFd> = (0..connections).map(|_| socket()).collect();
        balancer.pass(&mut batch, &board, NOW);
        let mut taken = vec![0; targets.len()];
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
    fn a_stuck_worker_got_connections_though_others_were_not() {
        let stuck = Instant(NOW.0 - 2 * INTERVAL.0 - 1);
        let late = Instant(NOW.0 - 2 * INTERVAL.0);
        let targets = [(0, true), (90, true), (9, true)];
        assert_eq!(
            pass_beating(&targets, &[stuck, NOW, late], 20),
            (vec![0, 0, 20], 0)
        );
        assert_eq!(
            pass_beating(&targets, &[stuck, stuck, stuck], 20),
            (vec![14, 0, 6], 0)
        );
        let dead = [(0, true), (0, false)];
        assert_eq!(pass_beating(&dead, &[stuck, NOW], 3), (vec![3, 0], 0));
    }

    #[test]
    fn workers_without_descriptors_were_passed_connections_that_got_lost() {
        let targets = [(OPEN_MAX - 2, true), (OPEN_MAX, true), (OPEN_MAX - 1, true)];
        assert_eq!(pass(&targets, 20), (vec![2, 0, 1], 17));
        let dead = [(0, false), (OPEN_MAX - 2, true)];
        assert_eq!(pass(&dead, 20), (vec![0, 2], 18));
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
