//! A batch of sends that one call hands to the kernel, and the moment at which it did.
//!
//! They are submitted so that they never wait (`MSG_DONTWAIT`) and complete within the call
//! that submits them; and so that only what went wrong has a completion: whole sends, which
//! are nearly all, cost none, and end no wait. Once the kernel has consumed the submissions
//! and lost no completion, a send without a completion has succeeded.
//! Not for: sends that wait for room, which are operations like any other.

use prony_base::{Instant, Nanos};

use crate::driver::{Sending, Token};
use crate::stamps::Bracket;

/// Most sends of one batch, where they are to be timed. A send over loopback takes some 3 to
/// 8 µs, the receiver's part of the kernel's work included, and the bracket of each is that of
/// the batch.
const BATCH_SENDS_MAX: usize = 8;
/// The width aimed at for the brackets of timed sends: batches are as large as
/// the machine allows within that. Each call more costs; a quarter is left for what varies.
const WIDTH_AIM: Nanos = Nanos::from_micros(15);
/// In a call that then waits the clock is not read after the sends. A capture of the packets
/// (`.ci/truth latency`) has 99.5 to 99.9 % of such batches on the wire within this time, also where the
/// call itself takes longer because it wakes the receiver.
const SENT_WITHIN: Nanos = Nanos::from_micros(20);
/// By what part of it the estimate of what a send takes follows each measurement, up or down:
/// so it is the median, whatever else may have had the processor now and then.
const STEP: u64 = 32;
/// Calls that hand over a batch and wait, until one is made without waiting, to be measured.
const WAITING_CALLS_MAX: u32 = 15;

/// A send without a completion so far.
#[derive(Clone, Copy)]
pub(super) struct PendingSend {
    pub token: Token,
    pub len: u64,
}

/// Sends that are about to be handed over, or were and are not known to be done.
pub(super) struct SendBatch {
    sends: Vec<PendingSend>,
    /// A task waits for one of them.
    is_awaited: bool,
    /// The time of one of them may be asked for.
    is_timed: bool,
    /// Before the first call that may have handed over one of them.
    from: Option<Instant>,
    at: Bracket,
    /// A call that handed over sends and did not wait has been measured.
    is_measured: bool,
    /// The usual duration of a send; more than nothing.
    send_takes: Nanos,
    /// Calls since then that did wait.
    waiting_calls: u32,
}

impl SendBatch {
    pub fn new() -> SendBatch {
        SendBatch {
            sends: Vec::with_capacity(BATCH_SENDS_MAX),
            is_awaited: false,
            is_timed: false,
            from: None,
            at: Bracket::default(),
            is_measured: false,
            send_takes: WIDTH_AIM,
            waiting_calls: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sends.is_empty()
    }

    /// Whether there are as many as should share a bracket.
    pub fn is_full(&self) -> bool {
        let fit = WIDTH_AIM.0 / self.send_takes.0;
        self.sends.len() as u64 >= fit.clamp(1, BATCH_SENDS_MAX as u64)
    }

    pub fn add(&mut self, send: PendingSend, sending: Sending) {
        self.sends.push(send);
        self.is_awaited |= sending.is_awaited;
        self.is_timed |= sending.is_timed;
    }

    /// Whether the call that hands these over may go on to wait for something else.
    pub fn may_wait(&self) -> bool {
        !self.is_awaited
    }

    /// Whether it is time for a call that does not wait.
    pub fn is_to_be_measured(&self) -> bool {
        self.is_timed && (!self.is_measured || self.waiting_calls >= WAITING_CALLS_MAX)
    }

    /// A call from `before` to `after` has handed these over, or some of them.
    pub fn handed_over(&mut self, before: Instant, after: Instant, waited: bool) {
        let count = self.sends.len();
        let is_first = self.from.is_none();
        let from = *self.from.get_or_insert(before);
        let to = if waited && is_first {
            self.waiting_calls += 1;
            // Those before the last one were made whole.
            let others = self.send_takes * count.saturating_sub(1) as u64;
            after.min(before + SENT_WITHIN.max(others))
        } else {
            after
        };
        if !waited && is_first {
            let took = after.since(before);
            self.is_measured = true;
            self.waiting_calls = 0;
            let usual = self.send_takes.0;
            let step = (usual / STEP).max(1);
            self.send_takes = Nanos(match took.0 / count.max(1) as u64 > usual {
                true => usual + step,
                false => (usual - step).max(1),
            });
        }
        self.at = Bracket { from, to };
    }

    /// The time at which they were submitted.
    pub fn at(&self) -> Bracket {
        self.at
    }

    /// Takes one out that has a completion. False where it is none of these.
    pub fn remove(&mut self, token: Token) -> bool {
        let place = self.sends.iter().position(|send| send.token == token);
        place.map(|place| self.sends.swap_remove(place)).is_some()
    }

    /// The kernel is done with all of them: yields those that succeeded.
    pub fn settle(&mut self) -> impl Iterator<Item = PendingSend> {
        self.is_awaited = false;
        self.is_timed = false;
        self.from = None;
        self.sends.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Role;
    use crate::slab::Key;

    fn send(index: u32) -> PendingSend {
        let key = Key {
            index,
            generation: 1,
        };
        PendingSend {
            token: Token::new(Role::Send, key),
            len: 10,
        }
    }

    const TIMED: Sending = Sending {
        waits: false,
        is_awaited: false,
        is_timed: true,
        is_last: false,
    };

    fn add_sends(count: u32, batch: &mut SendBatch) {
        for index in 0..count {
            batch.add(send(index), TIMED);
        }
    }

    #[test]
    fn a_call_that_waits_has_handed_over_its_sends_soon() {
        let mut batch = SendBatch::new();
        add_sends(2, &mut batch);
        assert!(batch.is_to_be_measured());
        batch.handed_over(Instant(1_000), Instant(1_300), false);
        assert_eq!(batch.at().width(), Nanos(300));
        assert_eq!(batch.settle().count(), 2);
        for _ in 0..WAITING_CALLS_MAX {
            add_sends(3, &mut batch);
            assert!(!batch.is_to_be_measured());
            batch.handed_over(Instant(5_000), Instant(900_000), true);
            assert_eq!(batch.at().width(), SENT_WITHIN.max(batch.send_takes * 2));
            assert_eq!(batch.settle().count(), 3);
        }
        // A call that ended sooner is its own bracket.
        add_sends(1, &mut batch);
        assert!(batch.is_to_be_measured());
        batch.handed_over(Instant(5_000), Instant(5_100), true);
        assert_eq!(batch.at().width(), Nanos(100));
    }

    /// How many fit after calls that took so long for each send.
    fn fitting(batch: &mut SendBatch, one: u64) -> usize {
        for _ in 0..400 {
            add_sends(1, batch);
            batch.handed_over(Instant(0), Instant(one), false);
            assert_eq!(batch.settle().count(), 1);
        }
        let fit = (0..100).take_while(|&index| {
            let is_full = batch.is_full();
            batch.add(send(index), TIMED);
            !is_full
        });
        let fit = fit.count();
        assert!(batch.settle().count() > fit);
        fit
    }

    #[test]
    fn batches_are_as_large_as_their_bracket_may_be() {
        let mut batch = SendBatch::new();
        assert_eq!(fitting(&mut batch, 3_500), 4);
        assert_eq!(fitting(&mut batch, 7_000), 2);
        assert_eq!(fitting(&mut batch, 40_000), 1);
        assert_eq!(fitting(&mut batch, 10), BATCH_SENDS_MAX);
        // Once interrupted, a batch says nothing about the next.
        assert_eq!(fitting(&mut batch, 4_500), 3);
        add_sends(1, &mut batch);
        batch.handed_over(Instant(0), Instant(5_000_000), false);
        assert_eq!(batch.settle().count(), 1);
        assert!(!batch.is_full());
        add_sends(2, &mut batch);
        assert!(!batch.is_full());
    }

    #[test]
    fn what_is_not_timed_is_not_measured() {
        let mut batch = SendBatch::new();
        batch.add(send(0), Sending::default());
        assert!(!batch.is_to_be_measured());
        batch.add(send(1), TIMED);
        assert!(batch.is_to_be_measured());
    }

    #[test]
    fn sends_that_took_two_calls_may_have_gone_with_either() {
        let mut batch = SendBatch::new();
        add_sends(1, &mut batch);
        batch.handed_over(Instant(100), Instant(200), false);
        batch.handed_over(Instant(500), Instant(900), true);
        assert_eq!(batch.at().from, Instant(100));
        assert_eq!(batch.at().to, Instant(900));
    }

    #[test]
    fn a_send_with_a_completion_is_not_taken_for_sent() {
        let mut batch = SendBatch::new();
        add_sends(3, &mut batch);
        assert!(batch.remove(send(1).token));
        assert!(!batch.remove(send(1).token));
        let left: Vec<u32> = batch.settle().map(|send| send.token.key.index).collect();
        assert_eq!(left, [0, 2]);
        assert!(batch.is_empty());
    }
}
