//! The waker of an operation, for its completion.
//! Not for: wakers that futures keep (`waker`).

use std::task::{Context, Waker};

use super::waker::{RunQueue, names};

/// The waker of an operation of this loop: none, one of its tasks (a number, the common
/// case), or a foreign waker, such as one that a combinator made.
///
/// A foreign waker may run any code when it is cloned or dropped, which may call the loop
/// again. So neither happens while anything of the loop is borrowed: it is made before
/// the borrow, and the previous one is [returned](Waiter::replace) to be dropped after it.
#[derive(Default)]
pub(crate) enum Waiter {
    #[default]
    Nothing,
    Task(u32),
    Foreign(Waker),
}

impl Waiter {
    pub fn of(cx: &Context<'_>, loop_id: u16) -> Waiter {
        match names(cx.waker()) {
            Some((of_loop, task)) if of_loop == loop_id => Waiter::Task(task),
            _ => Waiter::Foreign(cx.waker().clone()),
        }
    }

    /// Sets another one; the previous one is to be dropped when nothing is borrowed any more.
    #[inline]
    #[must_use = "dropping it may run any code"]
    pub fn replace(&mut self, other: Waiter) -> Waiter {
        std::mem::replace(self, other)
    }

    pub fn is_set(&self) -> bool {
        !matches!(self, Waiter::Nothing)
    }

    /// Wakes it, once. No code of a task or a foreign waker runs here.
    #[inline]
    pub fn wake(&mut self, queue: &RunQueue) {
        if !self.is_set() {
            return;
        }
        match std::mem::take(self) {
            Waiter::Nothing => {}
            Waiter::Task(index) => queue.wake(index),
            Waiter::Foreign(waker) => queue.wake_next_turn(waker),
        }
    }
}
