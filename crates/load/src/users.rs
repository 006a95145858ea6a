//! Users in slots: each goes on there, request by request, until its last one; then the slot is free for another.
//!
//! What a user does next its source says ([`UserTurn`]); when the load ends, no user goes on.

use prony_base::{Instant, Nanos};

use crate::scenario::figures::ScenarioFigures;
use crate::slots::Due;
use crate::source::UserTurn;
use crate::window::LoadPhase;
use crate::worker::{WhenReady, Worker};

impl Worker {
    /// Whether a user may send its next request at `now`.
    fn may_go_on(&self, now: Instant) -> bool {
        !self.given_up.get() && self.phase(now) != LoadPhase::Drain
    }

    /// Whether there are users that go on.
    pub(crate) fn has_users(&self, now: Instant) -> bool {
        let has_users = self.when_ready == WhenReady::AsksUser;
        has_users && self.may_go_on(now) && self.source.borrow().users() > 0
    }

    /// Makes the user in `slot` go on, or gives the slot to another.
    pub(crate) fn ask_user(&self, slot: usize, now: Instant) {
        let turn = self.source.borrow().turn(slot);
        match turn {
            UserTurn::GoesOn(due) if self.may_go_on(now) => match due > now {
                true => self.think_until(slot, due),
                false => self.send_step(slot, due, now),
            },
            UserTurn::GoesOn(_) => {
                self.source.borrow_mut().stopped(slot);
                if self.is_open() {
                    self.take_waiting(slot, now);
                }
            }
            UserTurn::Free(_) if self.is_open() => self.take_waiting(slot, now),
            UserTurn::Free(then) if then > now => self.think_until(slot, then),
            UserTurn::Free(then) => {
                // A connection that was just opened was the server's to wait for.
                let is_new = self.lanes.borrow()[slot / self.depth].served == 0;
                self.send_next(slot, if is_new { now } else { then }, now);
            }
        }
    }

    /// Sends the next request of the user in `slot`, which was due at `due`.
    fn send_step(&self, slot: usize, due: Instant, now: Instant) {
        if !self.can_send(slot) {
            return;
        }
        // A user that waited for a connection waited for the server; any other wait is the generator's.
        let has_waited = self.lanes.borrow()[slot / self.depth].served == 0;
        self.states.borrow_mut()[slot].ready = if has_waited { now } else { due };
        let due = Due {
            intended: due,
            taken_up: due,
        };
        self.send(slot, due, now);
    }

    /// The think time of the user in `slot` has passed. It may have gone on since it was noted.
    pub(crate) fn user_due(&self, slot: usize, now: Instant) {
        let turn = self.source.borrow().turn(slot);
        let (UserTurn::GoesOn(due) | UserTurn::Free(due)) = turn;
        if due <= now && self.can_send(slot) {
            self.ask_user(slot, now);
        }
    }

    /// The window is over: users that wait for their next request do not go on, and leave their slots to arrivals that wait.
    pub(crate) fn stop_users(&self, now: Instant) {
        if self.when_ready != WhenReady::AsksUser {
            return;
        }
        for slot in 0..self.thread_spec.slots() {
            let turn = self.source.borrow().turn(slot);
            if matches!(turn, UserTurn::GoesOn(_)) && self.can_send(slot) {
                self.ask_user(slot, now);
            }
        }
    }

    /// What came of users and their steps; `None` without a scenario.
    pub(crate) fn finish_source(&self) -> Option<ScenarioFigures> {
        self.source.borrow_mut().finish()
    }

    /// The run is cut short while the request of `slot` is outstanding.
    pub(crate) fn abandon_step(&self, slot: usize, origin: LoadPhase, so_far: Nanos) {
        self.source.borrow_mut().abandoned(slot, origin, so_far);
    }
}
