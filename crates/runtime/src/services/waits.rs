//! Futures that await changes of the registry.
//! Not for: what has changed (`graph`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Weak;
use std::task::Waker;

use super::id::ServiceId;

/// The changes that a future awaits.
#[derive(Clone, Copy)]
pub(super) enum Awaited {
    /// Of one service: its state, whether it is wanted, its removal; or that all is quiet.
    One(ServiceId),
    /// That no action is queued and no start or stop is under way.
    All,
}

type Wait = Weak<RefCell<Option<Waker>>>;

/// The wakers of futures that await changes of the registry. A change wakes only the
/// futures that it concerns: N futures that wait for a service each are polled O(N) times
/// in all.
#[derive(Default)]
pub(super) struct Waits {
    /// By the place of the service.
    ones: RefCell<BTreeMap<u32, Vec<Wait>>>,
    all: RefCell<Vec<Wait>>,
}

impl Waits {
    pub fn add(&self, of: Awaited, wait: Wait) {
        match of {
            Awaited::One(id) => push(self.ones.borrow_mut().entry(id.index()).or_default(), wait),
            Awaited::All => push(&mut self.all.borrow_mut(), wait),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ones.borrow().is_empty() && self.all.borrow().is_empty()
    }

    /// Wakes the futures that await one of these services.
    pub fn wake_ones(&self, services: &[u32]) {
        for service in services {
            let waits = self.ones.borrow_mut().remove(service);
            wake(waits.unwrap_or_default());
        }
    }

    pub fn wake_all(&self) {
        let ones = std::mem::take(&mut *self.ones.borrow_mut());
        ones.into_values().for_each(wake);
        wake(self.all.take());
    }
}

/// Adds one; where there is no room, those whose futures are gone make room first.
fn push(waits: &mut Vec<Wait>, wait: Wait) {
    if waits.len() == waits.capacity() {
        waits.retain(|wait| wait.strong_count() > 0);
    }
    waits.push(wait);
}

fn wake(waits: Vec<Wait>) {
    for waker in waits.iter().filter_map(|wait| wait.upgrade()?.take()) {
        waker.wake();
    }
}
