//! The queue of events that the supervisor has not handled yet.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::pool::{Event, Id};
use crate::bell::Bell;

/// The events that the tasks of the loop report to the supervisor.
#[derive(Default)]
pub(super) struct Events {
    happened: RefCell<VecDeque<Happened>>,
    bell: Bell,
}

#[derive(Debug)]
pub(super) enum Happened {
    Event(Event),
    /// The process has ended and is to be collected.
    Exited(Id),
}

impl Events {
    pub(super) fn put(&self, event: Event) {
        self.push(Happened::Event(event));
    }

    pub(super) fn exited(&self, id: Id) {
        self.push(Happened::Exited(id));
    }

    fn push(&self, happened: Happened) {
        self.happened.borrow_mut().push_back(happened);
        self.bell.ring();
    }

    /// The first, if there is one.
    pub(super) fn take(&self) -> Option<Happened> {
        self.happened.borrow_mut().pop_front()
    }

    /// Waits until there is one.
    pub(super) async fn some(&self) {
        while self.happened.borrow().is_empty() {
            self.bell.heard().await;
        }
    }
}
