//! One type of event in one queue: where its events wait, who handles them, and how
//! one event goes from the one to the other.
//!
//! Everything that knows the type `E` is here; the queue (`queue`) sees channels
//! through [`AnyChannel`], once per run of events, not once per event.

use std::any::{Any, type_name};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::callbacks::Callbacks;
use super::lane::{Item, Lane, Spares};
use super::levels::{Claim, Levels};
use super::queue::Core;
use super::stats::{Counts, PriorityStats, TypeStats};
use super::types::{AnyEvent, EventId, Flow, Meta, Originator, Outcome, Priority, Verdict};

/// A handler of one type.
pub(super) type OnEvent<E> = dyn FnMut(&E, &Meta) -> Flow;
/// An interceptor before handlers.
pub(super) type Before<E> = dyn FnMut(&E, &Meta) -> Verdict;
/// An interceptor after handlers.
pub(super) type After<E> = dyn FnMut(&E, &Meta, Outcome);

struct Lanes<E> {
    /// By slot of the level.
    by_slot: Vec<Option<Lane<E>>>,
    spares: Spares<E>,
    /// Counters of lanes that were given up.
    retired: Counts,
}

/// One type of event in one queue.
pub(super) struct Channel<E> {
    /// Its place in the queue's table.
    pub index: u32,
    lanes: RefCell<Lanes<E>>,
    /// How many handlers and interceptors there are of this type.
    watchers: Rc<Cell<u32>>,
    pub before: Rc<Callbacks<Before<E>>>,
    pub handlers: Rc<Callbacks<OnEvent<E>>>,
    pub after: Rc<Callbacks<After<E>>>,
}

/// What a queue asks of a channel without knowing its type.
pub(super) trait AnyChannel {
    /// Delivers claimed events until something more urgent is there; yields how
    /// many were left.
    fn dispatch(&self, core: &Core, claim: &Claim) -> u32;
    /// Drops the event that `skip` older ones of the level stand before; yields
    /// its number.
    fn drop_one(&self, slot: u32, skip: usize) -> Option<u64>;
    /// The level's slot is given up.
    fn retire(&self, slot: u32);
    fn stats(&self, levels: &Levels) -> TypeStats;
}

impl<E: 'static> Channel<E> {
    pub fn new(index: u32) -> Channel<E> {
        let watchers = Rc::default();
        Channel {
            index,
            lanes: RefCell::new(Lanes {
                by_slot: Vec::new(),
                spares: Spares::new(),
                retired: Counts::default(),
            }),
            before: Callbacks::new(&watchers),
            handlers: Callbacks::new(&watchers),
            after: Callbacks::new(&watchers),
            watchers,
        }
    }

    /// Puts an event into its lane; true when it is the first one there.
    #[inline]
    pub fn put(&self, slot: u32, id: u64, event: E) -> bool {
        let mut lanes = self.lanes.borrow_mut();
        let Lanes {
            by_slot, spares, ..
        } = &mut *lanes;
        let is_new = !matches!(by_slot.get(slot as usize), Some(Some(_)));
        if is_new {
            make_lane(by_slot, slot);
        }
        if let Some(Some(lane)) = by_slot.get_mut(slot as usize) {
            lane.counts.pushed += 1;
            lane.counts.waiting += 1;
            lane.counts.waiting_peak = lane.counts.waiting_peak.max(lane.counts.waiting);
            lane.push(Item { id, event }, spares);
        }
        is_new
    }

    /// The next event. When nobody watches, it is counted as unhandled at once.
    #[inline]
    fn take(&self, slot: u32, is_watched: bool) -> Option<Item<E>> {
        let mut lanes = self.lanes.borrow_mut();
        let Lanes {
            by_slot, spares, ..
        } = &mut *lanes;
        let lane = by_slot.get_mut(slot as usize)?.as_mut()?;
        let item = lane.pop(spares)?;
        lane.counts.waiting -= 1;
        lane.counts.dispatched += 1;
        lane.counts.unhandled += u64::from(!is_watched);
        Some(item)
    }

    fn count(&self, slot: u32, outcome: Outcome) {
        let mut lanes = self.lanes.borrow_mut();
        if let Some(Some(lane)) = lanes.by_slot.get_mut(slot as usize) {
            match outcome {
                Outcome::Unhandled => lane.counts.unhandled += 1,
                Outcome::Withheld => {
                    lane.counts.dispatched -= 1;
                    lane.counts.withheld += 1;
                }
                Outcome::Handled | Outcome::Dropped => {}
            }
        }
    }

    /// Shows an event to interceptors and handlers.
    fn deliver(&self, core: &Core, slot: u32, event: &E, meta: &Meta) {
        let awaited = core.completions.begin(meta.id.0);
        let outcome = self.offer(core, event, meta);
        self.count(slot, outcome);
        self.after.each(&core.shared, |after| {
            after(event, meta, outcome);
            true
        });
        let any = AnyEvent::new(event);
        core.after_any.each(&core.shared, |after| {
            after(&any, meta, outcome);
            true
        });
        core.completions.end(awaited, outcome);
    }

    fn offer(&self, core: &Core, event: &E, meta: &Meta) -> Outcome {
        let mut verdict = Verdict::Pass;
        let any = AnyEvent::new(event);
        core.before_any.each(&core.shared, |before| {
            verdict = before(&any, meta);
            verdict == Verdict::Pass
        });
        if verdict == Verdict::Pass {
            self.before.each(&core.shared, |before| {
                verdict = before(event, meta);
                verdict == Verdict::Pass
            });
        }
        if verdict == Verdict::Withhold {
            return Outcome::Withheld;
        }
        if self.handlers.is_empty() {
            return Outcome::Unhandled;
        }
        self.handlers
            .each(&core.shared, |handler| handler(event, meta) == Flow::Next);
        Outcome::Handled
    }
}

#[cold]
fn make_lane<E>(by_slot: &mut Vec<Option<Lane<E>>>, slot: u32) {
    let index = slot as usize;
    if by_slot.len() <= index {
        by_slot.resize_with(index + 1, || None);
    }
    by_slot[index] = Some(Lane::new());
}

/// Drops an event, which may run any code, also code that panics.
#[inline]
fn drop_event<E>(event: E) {
    if std::mem::needs_drop::<E>()
        && let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(event)))
    {
        drop(panic);
        tracing::error!(event = type_name::<E>(), "an event panicked when dropped");
    }
}

impl<E: 'static> AnyChannel for Channel<E> {
    fn dispatch(&self, core: &Core, claim: &Claim) -> u32 {
        let mut left = claim.count;
        while left > 0 {
            let is_watched = self.watchers.get() + core.watchers.get() > 0;
            let Some(item) = self.take(claim.slot, is_watched) else {
                break;
            };
            left -= 1;
            core.note_taken(left);
            if is_watched {
                let meta = Meta {
                    id: EventId(item.id),
                    originator: Originator(claim.originator),
                    priority: Priority(claim.priority),
                };
                self.deliver(core, claim.slot, &item.event, &meta);
            }
            drop_event(item.event);
            if core.must_stop() {
                break;
            }
        }
        left
    }

    fn drop_one(&self, slot: u32, skip: usize) -> Option<u64> {
        let mut lanes = self.lanes.borrow_mut();
        let Lanes {
            by_slot, spares, ..
        } = &mut *lanes;
        let lane = by_slot.get_mut(slot as usize)?.as_mut()?;
        let item = lane.remove(skip, spares)?;
        lane.counts.waiting -= 1;
        lane.counts.dropped += 1;
        drop(lanes);
        drop_event(item.event);
        Some(item.id)
    }

    fn retire(&self, slot: u32) {
        let mut lanes = self.lanes.borrow_mut();
        if let Some(place) = lanes.by_slot.get_mut(slot as usize)
            && let Some(lane) = place.take()
        {
            lanes.retired = lanes.retired.plus(&lane.counts);
        }
    }

    fn stats(&self, levels: &Levels) -> TypeStats {
        let lanes = self.lanes.borrow();
        let mut by_priority = BTreeMap::new();
        for (slot, lane) in lanes.by_slot.iter().enumerate() {
            if let Some(lane) = lane {
                by_priority.insert(levels.priority(slot as u32), lane.counts);
            }
        }
        let mut priorities: Vec<PriorityStats> = by_priority
            .into_iter()
            .map(|(priority, counts)| PriorityStats {
                priority: Some(priority),
                counts,
            })
            .collect();
        if lanes.retired != Counts::default() {
            priorities.push(PriorityStats {
                priority: None,
                counts: lanes.retired,
            });
        }
        let counts = priorities
            .iter()
            .fold(Counts::default(), |sum, one| sum.plus(&one.counts));
        let mut handlers = self.before.stats();
        handlers.extend(self.handlers.stats());
        handlers.extend(self.after.stats());
        TypeStats {
            name: type_name::<E>(),
            counts,
            priorities,
            handlers,
        }
    }
}

/// A channel of the type `E`, found without knowing it.
pub(super) struct Entry {
    pub channel: Rc<dyn AnyChannel>,
    pub any: Rc<dyn Any>,
}

impl Entry {
    pub fn new<E: 'static>(channel: Rc<Channel<E>>) -> Entry {
        Entry {
            channel: channel.clone(),
            any: channel,
        }
    }
}
