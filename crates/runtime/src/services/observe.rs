//! Reports life cycles as they happen: to observers, and as events of `tracing`
//! (target `prony_runtime::services`, level `DEBUG`; failures `WARN`).
//! Not for: how things stand (`snapshot`).

use std::rc::Rc;

use super::id::ServiceId;
use super::observers::{Change, Observer, What, is_traced};
use super::properties::Text;
use super::registry::Registry;
use super::state::{Reason, State};

/// Calls an observer with each change until it is dropped.
#[must_use = "dropping it ends the observation"]
pub struct Observation {
    registry: std::rc::Weak<Registry>,
    number: u64,
}

impl Drop for Observation {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.observers.remove(self.number);
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
        if self.is_observed() {
            self.report(id, None, What::Added);
        }
    }

    #[inline]
    pub fn note_state(&self, id: ServiceId, state: State) {
        if self.is_observed() {
            self.report(id, None, What::State(state));
        }
    }

    #[inline]
    pub fn note_removed(&self, id: ServiceId, name: Option<Text>) {
        if self.is_observed() {
            self.report(id, name, What::Removed);
        }
    }

    pub fn note_failed(&self, id: ServiceId, reason: &Reason) {
        let name = self.name(id).unwrap_or_else(|| "".into());
        tracing::warn!(service = %name, %id, %reason, "service failed");
        if self.observers.any() {
            self.report(id, Some(name), What::Failed(reason.clone()));
        }
    }

    /// Whether a change is reported to anything. Mostly it is not, and then a change
    /// costs this test alone.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.observers.any() || is_traced()
    }

    #[cold]
    fn report(&self, id: ServiceId, name: Option<Text>, what: What) {
        let name = name.or_else(|| self.name(id)).unwrap_or_else(|| "".into());
        match &what {
            What::Added => tracing::debug!(service = %name, %id, "added"),
            What::State(state) => tracing::debug!(service = %name, %id, "{state}"),
            What::Removed => tracing::debug!(service = %name, %id, "removed"),
            What::Failed(_) => {}
        }
        let at = self.now();
        self.observers.notify(&Change { id, name, at, what });
    }
}
