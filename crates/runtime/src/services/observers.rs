//! Changes in the life of services, and the functions that are called with them.
//! Not for: when a change happens (`observe`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::Instant;

use super::failure::caught;
use super::id::ServiceId;
use super::properties::Text;
use super::state::{Reason, State};

/// A change in the life of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The service.
    pub id: ServiceId,
    /// Its name.
    pub name: Text,
    /// When, on the clock of the loop, exact to a turn.
    pub at: Instant,
    /// The kind.
    pub what: What,
}

/// The kind of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was added.
    Added,
    /// It came into this state.
    State(State),
    /// Its start or stop failed.
    Failed(Reason),
    /// It was removed.
    Removed,
}

pub(super) type Observer = Rc<dyn Fn(&Change)>;

/// The observers of one registry.
#[derive(Default)]
pub(super) struct Observers {
    list: RefCell<Vec<(u64, Observer)>>,
    any: Cell<bool>,
    next: Cell<u64>,
}

impl Observers {
    /// Whether there is one.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.get()
    }

    pub fn add(&self, observer: Observer) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.list.borrow_mut().push((number, observer));
        self.any.set(true);
        number
    }

    pub fn remove(&self, number: u64) {
        let mut list = self.list.borrow_mut();
        let place = list.iter().position(|&(of, _)| of == number);
        let removed = place.map(|place| list.remove(place));
        self.any.set(!list.is_empty());
        drop(list);
        drop(removed);
    }

    pub fn notify(&self, change: &Change) {
        let observers = self.list.borrow().clone();
        for (_, observer) in observers {
            if let Err(panic) = caught(|| observer(change)) {
                tracing::warn!(%panic, "an observer of services panicked");
            }
        }
    }
}

/// Whether a subscriber of `tracing` may record life cycles.
#[inline]
pub(super) fn is_traced() -> bool {
    tracing::level_filters::LevelFilter::current() >= tracing::Level::DEBUG
}
