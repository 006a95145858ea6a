//! The queue itself: takes events in, and hands runs of them to their channels in
//! the order of their priority.
//! Not for: what depends on an event's type (`channel`), nor order (`levels`).

use std::any::{TypeId, type_name};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::{Rc, Weak};
use std::sync::{self, Arc};
use std::task::{Context, Poll, Waker};

use prony_engine::{Handle, Task, TaskWaker};

use super::callbacks::{CallContext, Callbacks};
use super::channel::{AnyChannel, Channel, Entry};
use super::completion::Completions;
use super::levels::{Claim, Levels};
use super::stats::{Counts, EventStats, PriorityStats};
use super::types::{
    AnyEvent, Disposition, EventId, Meta, Options, Originator, Priority, PushError, Verdict,
    WhenFull,
};
use super::waiting::{Closable, Idle, WaitQueue};

/// A `TypeId` is a good hash already.
#[derive(Default)]
struct TypeHasher(u64);

impl Hasher for TypeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(5) ^ u64::from_ne_bytes(word);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}

#[derive(Default)]
struct Table {
    by_type: HashMap<TypeId, u32, BuildHasherDefault<TypeHasher>>,
    entries: Vec<Entry>,
    /// The type that was found last, and where.
    last: Cell<Option<(TypeId, u32)>>,
}

impl Table {
    #[inline]
    fn find<E: 'static>(&self) -> Option<&Entry> {
        let wanted = TypeId::of::<E>();
        let index = match self.last.get() {
            Some((found, index)) if found == wanted => index,
            _ => {
                let index = *self.by_type.get(&wanted)?;
                self.last.set(Some((wanted, index)));
                index
            }
        };
        self.entries.get(index as usize)
    }
}

type BeforeAny = dyn FnMut(&AnyEvent<'_>, &Meta) -> Verdict;
type AfterAny = dyn FnMut(&AnyEvent<'_>, &Meta, Disposition);

/// Events that wait before a lane is opened for more of them: to open and to close one
/// costs more than a few pushes save.
const OPEN_FROM: u64 = 8;

/// No channel.
const NOBODY: u32 = u32::MAX;

/// The place of an event.
#[derive(Clone, Copy)]
struct Youngest {
    channel: u32,
    slot: u32,
    priority: u64,
    originator: u64,
}

impl Youngest {
    const NONE: Youngest = Youngest {
        channel: NOBODY,
        slot: 0,
        priority: 0,
        originator: 0,
    };

    #[inline]
    fn is_of(&self, channel: u32, priority: Priority, originator: Originator) -> bool {
        self.channel == channel && self.priority == priority.0 && self.originator == originator.0
    }
}

/// One queue.
pub(super) struct Core {
    pub shared: CallContext,
    pub options: Options,
    levels: RefCell<Levels>,
    table: RefCell<Table>,
    /// The number of the youngest event; also how many there were.
    last_id: Cell<u64>,
    /// Events that wait no longer.
    gone: Cell<u64>,
    /// The most that waited when it was last looked at, which is before every taking.
    waiting_peak: Cell<u64>,
    /// Most that may wait now: the option's, or zero when the queue is closed.
    limit: Cell<u64>,
    refused: Cell<u64>,
    /// Interceptors of all types, and events that are awaited.
    pub watchers: Rc<Cell<u32>>,
    pub before_any: Rc<Callbacks<BeforeAny>>,
    pub after_any: Rc<Callbacks<AfterAny>>,
    pub completions: Completions,
    /// Unfinished futures of async handlers.
    running: Cell<u64>,
    /// The channel that has a lane open, or [`NOBODY`].
    open: Cell<u32>,
    /// Channel, priority and originator of the youngest event, and the slot of its level.
    youngest: Cell<Youngest>,
    /// The youngest event is the only one, and the order does not have it yet: one event
    /// at a time is what coroutines that wake each other make, and it needs no order.
    is_alone: Cell<bool>,
    dispatching: Cell<bool>,
    /// The dispatch under way is to stop after this event.
    stop: Cell<bool>,
    /// The claim under way, and its events not yet taken.
    claim: Cell<Option<Claim>>,
    claim_left: Cell<u32>,
    /// Events of the last claim that were delivered.
    delivered: Cell<u32>,
    dispatcher: Cell<TaskWaker>,
    /// Senders that wait for room.
    pub blocked_senders: RefCell<WaitQueue>,
    idle: Idle,
    inlets: RefCell<Vec<sync::Weak<dyn Closable>>>,
    /// Inlets that may still bring events.
    inlets_open: Cell<u32>,
    /// The dispatcher and those that bring events from other threads.
    tasks: RefCell<Vec<Task<()>>>,
}

impl Core {
    pub fn new(handle: &Handle, options: Options) -> Rc<Core> {
        let watchers = Rc::default();
        let core = Rc::new(Core {
            shared: CallContext {
                handle: handle.clone(),
                timing: Cell::new(false),
                panics: Cell::new(0),
            },
            options,
            levels: RefCell::new(Levels::new()),
            table: RefCell::default(),
            last_id: Cell::new(0),
            gone: Cell::new(0),
            waiting_peak: Cell::new(0),
            limit: Cell::new(options.waiting_max),
            refused: Cell::new(0),
            before_any: Callbacks::new(&watchers),
            after_any: Callbacks::new(&watchers),
            completions: Completions::new(&watchers),
            watchers,
            running: Cell::new(0),
            open: Cell::new(NOBODY),
            youngest: Cell::new(Youngest::NONE),
            is_alone: Cell::new(false),
            dispatching: Cell::new(false),
            stop: Cell::new(false),
            claim: Cell::new(None),
            claim_left: Cell::new(0),
            delivered: Cell::new(0),
            dispatcher: Cell::default(),
            blocked_senders: RefCell::default(),
            inlets: RefCell::default(),
            inlets_open: Cell::new(0),
            idle: Idle::default(),
            tasks: RefCell::default(),
        });
        core.keep(handle.spawn(dispatcher(Rc::downgrade(&core), handle.clone())));
        core
    }

    /// Keeps a task until the queue goes.
    pub fn keep(&self, task: Task<()>) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// The channel of a type; made when it is first asked for.
    #[inline]
    pub fn channel<E: 'static>(&self) -> Rc<Channel<E>> {
        let table = self.table.borrow();
        if let Some(entry) = table.find::<E>()
            && let Ok(channel) = entry.any.clone().downcast()
        {
            return channel;
        }
        drop(table);
        self.add_channel()
    }

    #[cold]
    fn add_channel<E: 'static>(&self) -> Rc<Channel<E>> {
        let mut table = self.table.borrow_mut();
        let index = table.entries.len() as u32;
        let channel = Rc::new(Channel::new(index));
        table.entries.push(Entry::new(channel.clone()));
        table.by_type.insert(TypeId::of::<E>(), index);
        channel
    }

    fn any_channel(&self, index: u32) -> Rc<dyn AnyChannel> {
        self.table.borrow().entries[index as usize].channel.clone()
    }
}

/// Events in.
impl Core {
    /// Pushes without a channel at hand.
    #[inline]
    pub fn push_by_type<E: 'static>(
        &self,
        event: E,
        priority: Priority,
    ) -> Result<EventId, PushError<E>> {
        if self.has_room() {
            // Where there is room no code of others runs, and the table may be lent.
            let table = self.table.borrow();
            if let Some(channel) = table.find::<E>().and_then(|it| it.any.downcast_ref()) {
                return Ok(self.accept(channel, event, priority, Originator::default()));
            }
        }
        self.push(&self.channel(), event, priority, Originator::default())
    }

    #[inline]
    pub fn push<E: 'static>(
        &self,
        channel: &Channel<E>,
        event: E,
        priority: Priority,
        originator: Originator,
    ) -> Result<EventId, PushError<E>> {
        if self.waiting() >= self.limit.get()
            && let Err(refused) = self.make_room(priority)
        {
            return Err(match refused {
                Refused::Full => PushError::Full(event),
                Refused::Closed => PushError::Closed(event),
            });
        }
        Ok(self.accept(channel, event, priority, originator))
    }

    /// Takes an event for which there is room.
    #[inline]
    pub fn accept<E: 'static>(
        &self,
        channel: &Channel<E>,
        event: E,
        priority: Priority,
        originator: Originator,
    ) -> EventId {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let mut event = event;
        let before = self.youngest.get();
        if id == self.gone.get() + 1 && before.is_of(channel.index, priority, originator) {
            // Nothing that is claimed waits still, so that nothing is to be stopped for it.
            channel.put_alone(id, event);
            self.is_alone.set(true);
            self.wake_dispatcher();
            return EventId(id);
        }
        if self.open.get() == channel.index {
            match channel.put_open(event, priority, originator) {
                Ok(()) => return EventId(id),
                Err(back) => event = back,
            }
        }
        self.insert(channel, event, id, priority, originator);
        EventId(id)
    }

    #[inline(never)]
    fn insert<E: 'static>(
        &self,
        channel: &Channel<E>,
        event: E,
        id: u64,
        priority: Priority,
        originator: Originator,
    ) {
        let before = self.youngest.get();
        let goes_on = before.is_of(channel.index, priority, originator);
        let mut levels = self.levels();
        let place = levels.append(priority.0, channel.index, originator.0);
        if channel.put(place.slot, id, event) {
            levels.add_user(place.slot, channel.index);
        }
        drop(levels);
        if place.preempts {
            self.stop.set(true);
        }
        if id == self.gone.get() + 1 {
            self.wake_dispatcher();
        }
        self.youngest.set(Youngest {
            channel: channel.index,
            slot: place.slot,
            priority: priority.0,
            originator: originator.0,
        });
        if goes_on && !self.dispatching.get() && self.waiting() >= OPEN_FROM {
            channel.open(place.slot, priority, originator, id + 1);
            self.open.set(channel.index);
        }
    }

    /// The order of all events, the one that was alone and the open lane's included, which
    /// is closed.
    #[inline]
    fn levels(&self) -> RefMut<'_, Levels> {
        let mut levels = self.levels.borrow_mut();
        if self.is_alone.replace(false) {
            self.settle(&mut levels);
        }
        let open = self.open.get();
        if open != NOBODY {
            self.close_lane(open, &mut levels);
        }
        levels
    }

    /// The order gets the event that was alone, and its lane does.
    #[cold]
    fn settle(&self, levels: &mut Levels) {
        let alone = self.youngest.get();
        levels.append(alone.priority, alone.channel, alone.originator);
        self.any_channel(alone.channel).settle(alone.slot);
    }

    #[inline(never)]
    fn close_lane(&self, open: u32, levels: &mut Levels) {
        self.open.set(NOBODY);
        let (slot, added) = self.any_channel(open).close();
        levels.extend(slot, added);
    }

    #[cold]
    fn make_room(&self, priority: Priority) -> Result<(), Refused> {
        // More than once only where dropping an event pushes another.
        while self.waiting() >= self.limit.get() {
            // What is claimed waits as well as the rest.
            self.end_claim();
            let least = self.levels().least_urgent();
            let may_drop = self.options.when_full == WhenFull::DropOldest
                && !self.is_closed()
                && least.is_some_and(|least| priority.0 <= least);
            if !may_drop {
                self.refused.set(self.refused.get() + 1);
                return Err(if self.is_closed() {
                    Refused::Closed
                } else {
                    Refused::Full
                });
            }
            self.drop_oldest();
        }
        Ok(())
    }

    fn drop_oldest(&self) {
        let Some((slot, channel)) = self.levels().drop_oldest() else {
            return;
        };
        self.note_gone(1);
        if let Some(id) = self.any_channel(channel).drop_oldest(slot) {
            self.completions.forget(id);
        }
    }

    /// Events that wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.last_id.get() - self.gone.get()
    }

    /// So many events wait no longer.
    #[inline]
    pub fn note_gone(&self, count: u64) {
        self.waiting_peak
            .set(self.waiting_peak.get().max(self.waiting()));
        self.gone.set(self.gone.get() + count);
    }

    /// Whether an event of a waiting sender may come in.
    pub fn has_room(&self) -> bool {
        self.waiting() < self.limit.get()
    }

    pub fn is_closed(&self) -> bool {
        self.limit.get() == 0 && self.options.waiting_max > 0
    }

    /// Refuses all events from now on.
    pub fn close(&self) {
        self.limit.set(0);
        let senders = self.blocked_senders.borrow_mut().all();
        senders.into_iter().for_each(Waker::wake);
    }

    /// The first of the waiting senders may look whether there is room.
    #[inline]
    pub fn wake_next_sender(&self) {
        if !self.blocked_senders.borrow().is_empty() && self.has_room() {
            let next = self.blocked_senders.borrow_mut().first();
            if let Some(next) = next {
                next.wake();
            }
        }
    }
}

enum Refused {
    Full,
    Closed,
}

/// Events out.
impl Core {
    /// Delivers at most so many events; yields how many. Zero inside a handler.
    pub fn dispatch(&self, events_max: u32) -> u32 {
        if self.dispatching.replace(true) {
            return 0;
        }
        let mut left = events_max;
        while left > 0 && self.waiting() > 0 && self.may_run() {
            if self.is_alone.replace(false) {
                self.deliver_alone();
                left -= 1;
                continue;
            }
            let claim = self.levels().claim(left);
            let Some(claim) = claim else {
                break;
            };
            left -= self.deliver(&claim);
        }
        self.dispatching.set(false);
        self.note_progress();
        events_max - left
    }

    /// Delivers the only event, which the order does not have. Nothing that is pushed
    /// meanwhile can stop it: it is taken already.
    #[inline]
    fn deliver_alone(&self) {
        let alone = self.youngest.get();
        let claim = Claim {
            slot: alone.slot,
            priority: alone.priority,
            channel: alone.channel,
            originator: alone.originator,
            count: 1,
        };
        self.any_channel(claim.channel).deliver_alone(self, &claim);
        self.wake_next_sender();
    }

    fn deliver(&self, claim: &Claim) -> u32 {
        self.stop.set(false);
        self.claim.set(Some(*claim));
        self.claim_left.set(claim.count);
        self.any_channel(claim.channel).dispatch(self, claim);
        self.end_claim();
        self.wake_next_sender();
        self.delivered.get()
    }

    /// Returns the events that are claimed and were not taken.
    fn end_claim(&self) {
        let Some(claim) = self.claim.take() else {
            return;
        };
        let left = self.claim_left.replace(0);
        self.delivered.set(claim.count - left);
        if self.is_alone.get() {
            // Nothing is left of the claim then, and what came meanwhile stays alone.
            return self.levels.borrow_mut().end_claim();
        }
        let users = self.levels().finish(&claim, left);
        if let Some(users) = users {
            self.give_up(claim.slot, users);
        }
    }

    /// The slot of a level is given up, which these types used.
    #[cold]
    fn give_up(&self, slot: u32, users: Vec<u32>) {
        self.youngest.set(Youngest::NONE);
        for user in users {
            self.any_channel(user).retire(slot);
        }
    }

    /// Events of the claim under way that are still to be taken.
    #[inline]
    pub fn claim_left(&self) -> u32 {
        self.claim_left.get()
    }

    /// A channel has taken the next events of the claim.
    #[inline]
    pub fn note_taken(&self, count: u32) {
        self.note_gone(u64::from(count));
        self.claim_left.set(self.claim_left.get() - count);
    }

    /// Whether the dispatch under way is to stop after this event.
    #[inline]
    pub fn must_stop(&self) -> bool {
        self.stop.get()
    }

    fn may_run(&self) -> bool {
        self.running.get() < self.options.running_max
    }

    /// A future of an async handler has started.
    pub fn note_started(&self) {
        self.running.set(self.running.get() + 1);
        if !self.may_run() {
            self.stop.set(true);
        }
    }

    /// A future of an async handler has gone.
    pub fn note_finished(&self) {
        self.running.set(self.running.get() - 1);
        self.wake_dispatcher();
        self.note_progress();
    }

    fn note_progress(&self) {
        if self.is_idle() {
            self.idle.wake_all();
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.running.get() == 0 && !self.dispatching.get()
    }

    /// Ready when nothing waits and no handler's future runs.
    pub fn poll_idle(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_idle() {
            return Poll::Ready(());
        }
        self.idle.add(cx.waker());
        Poll::Pending
    }

    /// An inlet was opened.
    pub fn note_inlet(&self, inlet: Arc<dyn Closable>) {
        let mut inlets = self.inlets.borrow_mut();
        inlets.retain(|inlet| inlet.strong_count() > 0);
        inlets.push(Arc::downgrade(&inlet));
        self.inlets_open.set(self.inlets_open.get() + 1);
    }

    /// An inlet will bring nothing more.
    pub fn note_inlet_gone(&self) {
        self.inlets_open.set(self.inlets_open.get() - 1);
        self.idle.wake_all();
    }

    /// Closes all inlets: no more events come from other threads.
    pub fn close_inlets(&self) {
        let inlets: Vec<_> = self.inlets.borrow_mut().drain(..).collect();
        for inlet in inlets.iter().filter_map(sync::Weak::upgrade) {
            inlet.close();
        }
    }

    /// Ready when all that other threads sent has been pushed.
    pub fn poll_inlets_gone(&self, cx: &Context<'_>) -> Poll<()> {
        if self.inlets_open.get() == 0 {
            return Poll::Ready(());
        }
        self.idle.add(cx.waker());
        Poll::Pending
    }

    #[inline]
    fn wake_dispatcher(&self) {
        self.dispatcher.take().wake();
    }
}

/// Dispatches batches, with a turn of the loop after each, until the queue goes.
async fn dispatcher(core: Weak<Core>, handle: Handle) {
    loop {
        let goes_on = poll_fn(|cx| match core.upgrade() {
            Some(core) => core.poll_dispatch(cx),
            None => Poll::Ready(false),
        });
        if !goes_on.await {
            return;
        }
        handle.yield_now().await;
    }
}

impl Core {
    /// Dispatches a batch. Ready with true when there is more to do; else it is woken
    /// when there is.
    fn poll_dispatch(&self, cx: &Context<'_>) -> Poll<bool> {
        let has_more = || self.waiting() > 0 && self.may_run() && !self.dispatching.get();
        if has_more() {
            self.dispatch(self.options.batch_max.max(1));
        }
        if has_more() {
            return Poll::Ready(true);
        }
        drop(self.dispatcher.replace(TaskWaker::of(cx.waker())));
        Poll::Pending
    }
}

impl Core {
    pub fn stats(&self) -> EventStats {
        let levels = self.levels();
        let table = self.table.borrow();
        let types: Vec<_> = table
            .entries
            .iter()
            .map(|entry| entry.channel.stats(&levels))
            .collect();
        let mut by_priority: BTreeMap<Option<u64>, Counts> = BTreeMap::new();
        for one in types.iter().flat_map(|one| &one.priorities) {
            let sum = by_priority.entry(one.priority).or_default();
            *sum = sum.plus(&one.counts);
        }
        let mut priorities: Vec<PriorityStats> = by_priority
            .into_iter()
            .map(|(priority, counts)| PriorityStats { priority, counts })
            .collect();
        // Those that were given up come last.
        priorities.sort_by_key(|one| (one.priority.is_none(), one.priority));
        let all = types
            .iter()
            .fold(Counts::default(), |sum, one| sum.plus(&one.counts));
        let mut interceptors = self.before_any.stats();
        interceptors.extend(self.after_any.stats());
        EventStats {
            counts: Counts {
                waiting_peak: self.waiting_peak.get().max(self.waiting()),
                ..all
            },
            refused: self.refused.get(),
            panics: self.shared.panics.get(),
            running: self.running.get(),
            priorities,
            types,
            interceptors,
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({} waiting)", type_name::<Core>(), self.waiting())
    }
}
