//! Life cycles as they happen, for whoever wants to hear of them, and as events of
//! `tracing` (target `prony_runtime::services`, level `DEBUG`; failures `WARN`).
//! Not for: how things stand (`snapshot`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::Instant;

use super::life::caught;
use super::properties::Text;
use super::registry::{Registry, ServiceId};
use super::state::{Reason, State};

/// Something that has happened to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which one.
    pub id: ServiceId,
    /// Its name.
    pub name: Text,
    /// When, on the clock of the loop, exact to a turn.
    pub at: Instant,
    /// What.
    pub what: What,
}

/// What has happened to a service.
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

type Observer = Rc<dyn Fn(&Change)>;

/// Who wants to hear of changes.
#[derive(Default)]
pub(super) struct Observers {
    list: RefCell<Vec<(u64, Observer)>>,
    any: Cell<bool>,
    next: Cell<u64>,
}

impl Observers {
    pub fn add(&self, observer: Observer) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.list.borrow_mut().push((number, observer));
        self.any.set(true);
        number
    }

    pub fn take(&self, number: u64) {
        let mut list = self.list.borrow_mut();
        let place = list.iter().position(|&(of, _)| of == number);
        let taken = place.map(|place| list.remove(place));
        self.any.set(!list.is_empty());
        drop(list);
        drop(taken);
    }

    fn tell(&self, change: &Change) {
        let observers = self.list.borrow().clone();
        for (_, observer) in observers {
            if let Err(panic) = caught(|| observer(change)) {
                tracing::warn!(%panic, "an observer of services panicked");
            }
        }
    }
}

/// Whether a subscriber of `tracing` may want to hear of life cycles.
#[inline]
pub(super) fn is_traced() -> bool {
    tracing::level_filters::LevelFilter::current() >= tracing::Level::DEBUG
}

/// Hears of changes until it is dropped.
#[must_use = "dropping it ends the observation"]
pub struct Observation {
    registry: std::rc::Weak<Registry>,
    number: u64,
}

impl Drop for Observation {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.observers.take(self.number);
        }
    }
}

impl Registry {
    pub fn observe(self: &Rc<Self>, observer: Observer) -> Observation {
        Observation {
            registry: Rc::downgrade(self),
            number: self.observers.add(observer),
        }
    }

    #[inline]
    pub fn note_added(&self, id: ServiceId) {
        if self.is_heard() {
            self.tell(id, None, What::Added);
        }
    }

    #[inline]
    pub fn note_state(&self, id: ServiceId, state: State) {
        if self.is_heard() {
            self.tell(id, None, What::State(state));
        }
    }

    #[inline]
    pub fn note_removed(&self, id: ServiceId, name: Option<Text>) {
        if self.is_heard() {
            self.tell(id, name, What::Removed);
        }
    }

    pub fn note_failed(&self, id: ServiceId, reason: &Reason) {
        let name = self.name(id).unwrap_or_else(|| "".into());
        tracing::warn!(service = %name, %id, %reason, "service failed");
        if self.observers.any.get() {
            self.tell(id, Some(name), What::Failed(reason.clone()));
        }
    }

    /// Whether anybody listens: most of the time nobody does, and then a change
    /// costs this look.
    #[inline]
    pub fn is_heard(&self) -> bool {
        self.observers.any.get() || is_traced()
    }

    #[cold]
    fn tell(&self, id: ServiceId, name: Option<Text>, what: What) {
        let name = name.or_else(|| self.name(id)).unwrap_or_else(|| "".into());
        match &what {
            What::Added => tracing::debug!(service = %name, %id, "added"),
            What::State(state) => tracing::debug!(service = %name, %id, "{state}"),
            What::Removed => tracing::debug!(service = %name, %id, "removed"),
            What::Failed(_) => {}
        }
        let at = self.now();
        self.observers.tell(&Change { id, name, at, what });
    }
}
