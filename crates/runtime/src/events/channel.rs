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
use super::lane::{Chunk, Item, Lane, Spares};
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
    open: Open<E>,
}

/// The lane to which events are being added again and again, so far without another
/// type, priority or originator in between. Its last chunk is here meanwhile, and
/// neither lane nor level know what was added: half the cost of a push.
struct Open<E> {
    priority: u64,
    originator: u64,
    slot: u32,
    chunk: Chunk<E>,
    /// Events in the chunk when it was opened.
    before: usize,
}

impl<E> Open<E> {
    #[inline]
    fn takes(&self, priority: Priority, originator: Originator) -> bool {
        self.priority == priority.0
            && self.originator == originator.0
            && self.chunk.len() < self.chunk.capacity()
    }
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
    /// Delivers claimed events until something more urgent is there.
    fn dispatch(&self, core: &Core, claim: &Claim);
    /// Delivers the next of the claimed events; false when there is none.
    fn deliver_next(&self, core: &Core, claim: &Claim) -> bool;
    /// Drops the oldest event of a level; yields its number.
    fn drop_oldest(&self, slot: u32) -> Option<u64>;
    /// Closes the open lane; yields its slot and how many events were added.
    fn close(&self) -> (u32, u64);
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
                open: Open {
                    priority: 0,
                    originator: 0,
                    slot: 0,
                    chunk: Chunk::new(),
                    before: 0,
                },
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
            lane.push(Item { id, event }, spares);
        }
        is_new
    }

    /// Adds an event to the open lane, if it is this one's. Only for the channel
    /// that the queue knows to be open.
    #[inline]
    pub fn put_open(
        &self,
        event: E,
        id: u64,
        priority: Priority,
        originator: Originator,
    ) -> Result<(), E> {
        let mut lanes = self.lanes.borrow_mut();
        if !lanes.open.takes(priority, originator) {
            return Err(event);
        }
        lanes.open.chunk.push_back(Item { id, event });
        Ok(())
    }

    /// Opens a lane.
    pub fn open(&self, slot: u32, priority: Priority, originator: Originator) {
        let mut lanes = self.lanes.borrow_mut();
        let Lanes { by_slot, open, .. } = &mut *lanes;
        if let Some(Some(lane)) = by_slot.get_mut(slot as usize) {
            let chunk = lane.open();
            *open = Open {
                priority: priority.0,
                originator: originator.0,
                slot,
                before: chunk.len(),
                chunk,
            };
        }
    }

    /// Works on one lane.
    #[inline]
    fn with_lane<T>(
        &self,
        slot: u32,
        work: impl FnOnce(&mut Lane<E>, &mut Spares<E>) -> T,
    ) -> Option<T> {
        let mut lanes = self.lanes.borrow_mut();
        let Lanes {
            by_slot, spares, ..
        } = &mut *lanes;
        let lane = by_slot.get_mut(slot as usize)?.as_mut()?;
        Some(work(lane, spares))
    }

    /// The next event, to be dispatched.
    #[inline]
    fn take(&self, slot: u32, is_watched: bool) -> Option<Item<E>> {
        let taken = self.with_lane(slot, |lane, spares| {
            lane.note_length();
            let item = lane.pop(spares)?;
            lane.note_dispatched(is_watched);
            Some(item)
        });
        taken.flatten()
    }

    /// Delivers events that nobody watches. No code but ours runs meanwhile, so that
    /// it is enough to have looked once.
    fn dispatch_unwatched(&self, core: &Core, claim: &Claim) {
        let mut taken = 0;
        self.with_lane(claim.slot, |lane, spares| {
            lane.note_length();
            while taken < claim.count && lane.pop(spares).is_some() {
                lane.note_dispatched(false);
                taken += 1;
            }
        });
        core.note_taken(taken);
    }

    /// Shows an event to handlers, where there is nobody else who watches.
    #[inline]
    fn hand_over(&self, core: &Core, slot: u32, event: &E, meta: &Meta) {
        let is_plain = core.watchers.get() == 0 && self.watchers.get() == self.handlers.len();
        if !is_plain {
            return self.deliver(core, slot, event, meta);
        }
        self.handlers
            .each(&core.shared, |handler| handler(event, meta) == Flow::Next);
    }

    /// Shows an event to interceptors and handlers.
    #[inline(never)]
    fn deliver(&self, core: &Core, slot: u32, event: &E, meta: &Meta) {
        let awaited = core.completions.begin(meta.id.0);
        let outcome = self.offer(core, event, meta);
        if outcome != Outcome::Handled {
            self.with_lane(slot, |lane, _| lane.note_outcome(outcome));
        }
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
    fn dispatch(&self, core: &Core, claim: &Claim) {
        if self.watchers.get() + core.watchers.get() == 0 && !std::mem::needs_drop::<E>() {
            return self.dispatch_unwatched(core, claim);
        }
        while core.claim_left() > 0 {
            if !self.deliver_next(core, claim) || core.must_stop() {
                break;
            }
        }
    }

    #[inline]
    fn deliver_next(&self, core: &Core, claim: &Claim) -> bool {
        let is_watched = self.watchers.get() + core.watchers.get() > 0;
        let Some(item) = self.take(claim.slot, is_watched) else {
            return false;
        };
        core.note_taken(1);
        if is_watched {
            let meta = Meta {
                id: EventId(item.id),
                originator: Originator(claim.originator),
                priority: Priority(claim.priority),
            };
            self.hand_over(core, claim.slot, &item.event, &meta);
        }
        drop_event(item.event);
        true
    }

    fn drop_oldest(&self, slot: u32) -> Option<u64> {
        let dropped = self.with_lane(slot, |lane, spares| {
            lane.note_length();
            let item = lane.pop(spares)?;
            lane.note_outcome(Outcome::Dropped);
            Some(item)
        });
        let item = dropped.flatten()?;
        drop_event(item.event);
        Some(item.id)
    }

    fn close(&self) -> (u32, u64) {
        let mut lanes = self.lanes.borrow_mut();
        let slot = lanes.open.slot;
        let added = (lanes.open.chunk.len() - lanes.open.before) as u64;
        let chunk = std::mem::take(&mut lanes.open.chunk);
        drop(lanes);
        self.with_lane(slot, |lane, _| lane.close(chunk, added));
        (slot, added)
    }

    fn retire(&self, slot: u32) {
        let mut lanes = self.lanes.borrow_mut();
        if let Some(place) = lanes.by_slot.get_mut(slot as usize)
            && let Some(lane) = place.take()
        {
            lanes.retired = lanes.retired.plus(&lane.counts());
        }
    }

    fn stats(&self, levels: &Levels) -> TypeStats {
        let lanes = self.lanes.borrow();
        let mut by_priority = BTreeMap::new();
        for (slot, lane) in lanes.by_slot.iter().enumerate() {
            if let Some(lane) = lane {
                by_priority.insert(levels.priority(slot as u32), lane.counts());
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
