//! Requests that were posted and have not ended, and the slots that they are in. Not for: what becomes of them (`worker`).

use prony_base::Instant;
use prony_engine::{Arrival, Bracket};

use crate::origin::{Times, arrived};
use crate::slots::Due;

/// A slot: room for one outstanding request. Connection `n` has the slots from `n` times their number on each.
#[derive(Default)]
pub struct SlotState {
    pub outstanding: Option<Outstanding>,
    /// When the slot became ready for its next request.
    pub(crate) ready: Instant,
    /// A request of this slot has ended, on this connection or an earlier one.
    pub(crate) has_ended: bool,
}

/// A request that was posted and has not ended.
#[derive(Clone, Copy)]
pub struct Outstanding {
    pub(crate) due: Due,
    pub(crate) ready: Instant,
    pub(crate) posted: Instant,
    pub(crate) first_byte: Option<Instant>,
    /// The request itself asked for the connection to be closed.
    pub(crate) closes: bool,
    /// The step of a scenario that it is.
    pub(crate) step: u16,
}

impl Outstanding {
    /// Its times so far, if it ends at `last_byte`.
    pub(crate) fn times(
        &self,
        submitted: Option<Bracket>,
        last_byte: Arrival,
        processed: Instant,
    ) -> Times {
        let at_once = Bracket {
            from: self.posted,
            to: self.posted,
        };
        Times {
            intended: self.due.intended,
            taken_up: self.due.taken_up,
            ready: self.ready,
            // An earlier stamp is the previous request's: the connection broke before this one went out.
            submitted: submitted
                .filter(|at| at.from >= self.posted)
                .unwrap_or(at_once),
            first_byte: self.first_byte.unwrap_or(arrived(&last_byte)),
            last_byte,
            processed,
        }
    }
}
