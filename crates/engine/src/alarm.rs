//! Waiting with a limit that moves: a timer that is set once and looked at again
//! when it goes off, so that a busy connection does not touch it per request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::{Handle, Sleep};
use prony_base::Instant;

/// A timer for one task's waits, of which each has its own time limit.
#[derive(Default)]
pub struct Alarm {
    sleep: Option<Sleep>,
}

impl Alarm {
    /// Ready once `due` has passed. Limits that are later than that of the call
    /// before cost nothing until the earlier one has passed.
    pub fn poll(&mut self, handle: &Handle, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if due == Instant::NEVER {
            return Poll::Pending;
        }
        loop {
            if let Some(sleep) = &mut self.sleep
                && sleep.due() <= due
            {
                ready!(Pin::new(sleep).poll(cx));
                if handle.now() >= due {
                    self.sleep = None;
                    return Poll::Ready(());
                }
            }
            self.sleep = Some(handle.sleep_until(due));
        }
    }
}
