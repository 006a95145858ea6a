//! One type of event in one queue: where its events wait, the handlers, and how an event
//! gets from the one to the other.
//!
//! Everything that knows the type `E` is here; the queue (`queue`) sees channels
//! through [`AnyChannel`], once per run of events, not once per event.

use std::any::{Any, type_name};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::callbacks::Callbacks;
use super::lane::Lane;
use super::levels::{Claim, Levels};
use super::queue::Core;
use super::rows::{Chunk, Spares};
use super::stats::{Counts, PriorityStats, TypeStats};
use super::types::{AnyEvent, Disposition, Flow, Meta, Originator, Priority, Verdict};

/// A handler of one type.
pub(super) type OnEvent<E> = dyn FnMut(&E, &Meta) -> Flow;
/// An interceptor before handlers.
pub(super) type Before<E> = dyn FnMut(&E, &Meta) -> Verdict;
/// An interceptor after handlers.
pub(super) type After<E> = dyn FnMut(&E, &Meta, Disposition);

struct Lanes<E> {
    /// By slot of the level.
    by_slot: Vec<Option<Lane<E>>>,
    spares: Spares<E>,
    /// Counters of lanes that were given up.
    retired: Counts,
    open: Open<E>,
    /// The only event that waits in the queue, with its number, where the queue's order
    /// does not have it yet. It is in no lane.
    alone: Option<(u64, E)>,
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
    /// The number of the first that is added; the others follow it without a gap, since
    /// any other event closes the lane.
    first_id: u64,
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
    /// The number of handlers and interceptors of this type.
    watchers: Rc<Cell<u32>>,
    pub before: Rc<Callbacks<Before<E>>>,
    pub handlers: Rc<Callbacks<OnEvent<E>>>,
    pub after: Rc<Callbacks<After<E>>>,
}

/// A channel of which the queue does not know the type.
pub(super) trait AnyChannel {
    /// Delivers claimed events until something more urgent is there.
    fn dispatch(&self, core: &Core, claim: &Claim);
    /// Delivers the event that is alone, as if it were claimed.
    fn deliver_alone(&self, core: &Core, claim: &Claim);
    /// Moves the event that is alone into its lane, because others come.
    fn settle(&self, slot: u32);
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
                spares: Spares::default(),
                retired: Counts::default(),
                open: Open {
                    priority: 0,
                    originator: 0,
                    slot: 0,
                    chunk: Chunk::new(),
                    before: 0,
                    first_id: 0,
                },
                alone: None,
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
            lane.push(id, event, spares);
        }
        is_new
    }

    /// Keeps the only event that waits. Only where its lane is there.
    #[inline(always)]
    pub fn put_alone(&self, id: u64, event: E) {
        // There was none, so that nothing is dropped.
        self.lanes.borrow_mut().alone = Some((id, event));
    }

    /// Adds an event to the open lane, if it is this one's. Only for the channel
    /// that the queue knows to be open.
    #[inline]
    pub fn put_open(&self, event: E, priority: Priority, originator: Originator) -> Result<(), E> {
        let mut lanes = self.lanes.borrow_mut();
        if !lanes.open.takes(priority, originator) {
            return Err(event);
        }
        lanes.open.chunk.push_back(event);
        Ok(())
    }

    /// Opens a lane, whose next event has the number `first_id`.
    pub fn open(&self, slot: u32, priority: Priority, originator: Originator, first_id: u64) {
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
                first_id,
            };
        }
    }

    /// Works on one lane.
    #[inline(always)]
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
    #[inline(always)]
    fn take(&self, slot: u32, is_watched: bool) -> Option<(u64, E)> {
        let taken = self.with_lane(slot, |lane, spares| {
            lane.note_length();
            let item = lane.pop(spares)?;
            lane.note_dispatched(is_watched);
            Some(item)
        });
        taken.flatten()
    }

    /// Delivers the next of the claimed events; false when there is none.
    #[inline]
    fn deliver_next(&self, core: &Core, claim: &Claim) -> bool {
        let is_watched = self.is_watched(core);
        let Some((id, event)) = self.take(claim.slot, is_watched) else {
            return false;
        };
        core.note_taken(1);
        self.deliver_taken(core, claim, is_watched, id, event);
        true
    }

    #[inline(always)]
    fn is_watched(&self, core: &Core) -> bool {
        self.watchers.get() + core.watchers.get() > 0
    }

    #[inline(always)]
    fn deliver_taken(&self, core: &Core, claim: &Claim, is_watched: bool, id: u64, event: E) {
        if is_watched {
            self.hand_over(core, claim.slot, &event, &claim.meta(id));
        }
        drop_event(event);
    }

    /// Delivers events without handlers and interceptors. No code but ours runs meanwhile, so that
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

    /// Delivers events as long as one handler is all that watches them, which is how it
    /// mostly is. What is the same for all of them is then done once.
    fn deliver_to_one(&self, core: &Core, claim: &Claim) {
        let is_alone = || core.watchers.get() == 0 && self.watchers.get() == 1;
        if claim.count < 2 || !is_alone() || self.handlers.len() != 1 {
            return;
        }
        // Out here, where it outlasts a handler that panics with it.
        let mut current: Option<E> = None;
        self.handlers.call_only(&core.shared, |handler, calls| {
            drop_event(current.take());
            if core.claim_left() == 0 || core.must_stop() || !is_alone() {
                return false;
            }
            let Some((id, event)) = self.take(claim.slot, true) else {
                return false;
            };
            core.note_taken(1);
            calls.set(calls.get() + 1);
            handler(current.insert(event), &claim.meta(id));
            true
        });
        drop_event(current);
    }

    /// Shows an event to handlers, where there are no interceptors.
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
        if outcome != Disposition::Handled {
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

    fn offer(&self, core: &Core, event: &E, meta: &Meta) -> Disposition {
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
            return Disposition::Withheld;
        }
        if self.handlers.is_empty() {
            return Disposition::Unhandled;
        }
        self.handlers
            .each(&core.shared, |handler| handler(event, meta) == Flow::Next);
        Disposition::Handled
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
        self.deliver_to_one(core, claim);
        while core.claim_left() > 0 && !core.must_stop() {
            if !self.deliver_next(core, claim) {
                break;
            }
        }
    }

    fn deliver_alone(&self, core: &Core, claim: &Claim) {
        let is_watched = self.is_watched(core);
        let mut lanes = self.lanes.borrow_mut();
        if let Some(Some(lane)) = lanes.by_slot.get_mut(claim.slot as usize) {
            lane.note_alone(is_watched);
        }
        let alone = lanes.alone.take();
        drop(lanes);
        if let Some((id, event)) = alone {
            core.note_gone(1);
            self.deliver_taken(core, claim, is_watched, id, event);
        }
    }

    fn settle(&self, slot: u32) {
        let alone = self.lanes.borrow_mut().alone.take();
        if let Some((id, event)) = alone {
            self.put(slot, id, event);
        }
    }

    fn drop_oldest(&self, slot: u32) -> Option<u64> {
        let dropped = self.with_lane(slot, |lane, spares| {
            lane.note_length();
            let item = lane.pop(spares)?;
            lane.note_outcome(Disposition::Dropped);
            Some(item)
        });
        let (id, event) = dropped.flatten()?;
        drop_event(event);
        Some(id)
    }

    fn close(&self) -> (u32, u64) {
        let mut lanes = self.lanes.borrow_mut();
        let (slot, first_id) = (lanes.open.slot, lanes.open.first_id);
        let added = (lanes.open.chunk.len() - lanes.open.before) as u64;
        let chunk = std::mem::take(&mut lanes.open.chunk);
        drop(lanes);
        self.with_lane(slot, |lane, _| lane.close(chunk, first_id, added));
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
