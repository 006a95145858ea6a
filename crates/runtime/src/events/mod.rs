//! Typed events with priorities: a queue, its handlers and interceptors.
//!
//! For what happens in an application and concerns others: any `'static` type is an
//! event, and the code that pushes one need not know its handlers. One queue belongs to one
//! loop; threads send each other events through [inlets](Events::inlet). Not for
//! calling a service whose answer is wanted (call it), nor for values between two
//! tasks (`coroutines` has channels).
//!
//! # Pushing and handling
//! A queue dispatches by itself, as a task of the loop: the most urgent events first
//! (the lowest [`Priority`]; 1000 by default), among equals in the order in which they
//! were pushed, whatever their types. A handler stays until its [`Registration`] is
//! dropped; it gets the event and its [`Meta`]: number, originator, priority.
//!
//! ```
//! use std::{cell::RefCell, rc::Rc};
//! use prony_engine::{Config, run};
//! use prony_runtime::events::{Events, Originator, Priority};
//!
//! struct Said(&'static str);
//!
//! run(&Config::default(), async |handle| {
//!     let events = Events::new(&handle);
//!     let heard = Rc::new(RefCell::new(Vec::new()));
//!     let list = heard.clone();
//!     let listener = events.on(move |said: &Said, meta| {
//!         list.borrow_mut().push((said.0, meta.originator.0));
//!     });
//!     events.push(Said("later")).unwrap();
//!     // An emitter looks the type up once, and names its originator.
//!     let emitter = events.emitter().from(Originator(7));
//!     emitter.push_at(Priority(1), Said("first")).unwrap();
//!     events.drain().await;
//!     assert_eq!(*heard.borrow(), [("first", 7), ("later", 0)]);
//!     drop(listener);
//! }).unwrap();
//! ```
//!
//! A handler may push, and may add and take out handlers, itself included. It may
//! return [`Flow::Stop`] to keep the event from those after it. One that panics is
//! counted and logged; the rest goes on. A handler that owns the queue ([`Events`] or
//! an [`Emitter`]) keeps it alive for as long as it is registered.
//!
//! # Handlers that wait
//! [`Events::on_async`] makes a future of each event. It is polled at once, in the order of
//! the events, and becomes a task where it waits for something. Dropping the registration cancels those that have not finished. With
//! [`Events::push_and_wait`] one awaits that an event was handled, futures included.
//!
//! ```
//! use prony_engine::{Config, run};
//! use prony_base::Nanos;
//! use prony_runtime::events::{Events, Disposition};
//!
//! struct Save;
//!
//! run(&Config::default(), async |handle| {
//!     let events = Events::new(&handle);
//!     let clock = handle.clone();
//!     let _saver = events.on_async(move |_: &Save, _| {
//!         let clock = clock.clone();
//!         async move { clock.sleep(Nanos::from_micros(10)).await }
//!     });
//!     let saved = events.push_and_wait(Save).unwrap();
//!     assert_eq!(saved.await, Disposition::Handled);
//! }).unwrap();
//! ```
//!
//! # Events as values
//! A coroutine awaits the [next](Events::next) event of a type, or a
//! [stream](Events::stream) of copies; a stream holds so many unread, and counts what
//! it missed.
//!
//! ```
//! use prony_engine::{Config, run};
//! use prony_runtime::events::Events;
//!
//! #[derive(Clone)]
//! struct Click(u32);
//!
//! run(&Config::default(), async |handle| {
//!     let events = Events::new(&handle);
//!     let mut clicks = events.stream::<Click>(16);
//!     events.push(Click(3)).unwrap();
//!     let (click, _) = clicks.next().await;
//!     assert_eq!(click.0, 3);
//! }).unwrap();
//! ```
//!
//! # Interceptors
//! One [before](Events::before) handlers may withhold an event; one
//! [after](Events::after) sees what became of it. Both also for
//! [all](Events::before_any) [types](Events::after_any).
//!
//! ```
//! use prony_engine::{Config, run};
//! use prony_runtime::events::{Events, Disposition, Verdict};
//!
//! struct Order { euros: u32 }
//!
//! run(&Config::default(), async |handle| {
//!     let events = Events::new(&handle);
//!     let _limit = events.before(|order: &Order, _| match order.euros {
//!         0..=100 => Verdict::Pass,
//!         _ => Verdict::Withhold,
//!     });
//!     let _log = events.after_any(|any, meta, outcome| {
//!         println!("{} {:?}: {outcome:?}", any.name, meta.id);
//!     });
//!     let dear = events.push_and_wait(Order { euros: 500 }).unwrap();
//!     assert_eq!(dear.await, Disposition::Withheld);
//! }).unwrap();
//! ```
//!
//! # Limits and back-pressure
//! So many events may wait ([`Options::waiting_max`]; a million or so by default).
//! Beyond that a push gives the event back, or the oldest of the least urgent is
//! dropped ([`WhenFull`]). [`Events::push_wait`] waits for room, first come first served.
//!
//! ```
//! use prony_engine::{Config, run};
//! use prony_runtime::events::{Events, Options};
//!
//! run(&Config::default(), async |handle| {
//!     let options = Options { waiting_max: 1, ..Options::default() };
//!     let events = Events::with_options(&handle, options);
//!     events.push("one").unwrap();
//!     assert_eq!(events.push("two").unwrap_err().into_event(), "two");
//!     events.push_wait("two").await.unwrap();
//! }).unwrap();
//! ```
//!
//! # Between threads
//! An [`Inlet`] goes to any thread, and holds at most what it was given as its limit.
//! Many events in a row cost one system call, and none while the loop is awake. Those
//! of one sender arrive in order.
//!
//! ```
//! use prony_engine::{Config, run};
//! use prony_runtime::events::Events;
//!
//! run(&Config::default(), async |handle| {
//!     let events = Events::new(&handle);
//!     let inlet = events.inlet::<u64>(64);
//!     let sender = std::thread::spawn(move || inlet.send(41));
//!     let (number, _) = events.next::<u64>().await;
//!     assert_eq!(number, 41);
//!     sender.join().unwrap().unwrap();
//!     // Closes inlets, takes in what they hold, refuses the rest, and drains.
//!     events.close().await;
//! }).unwrap();
//! ```
//! (`next` counts from its call, before which the loop has taken in nothing.)
//!
//! # What it counts
//! [`Events::stats`] is a snapshot by type and priority, and of every handler; it
//! serialises. [`Events::set_timing`] adds the time that handlers take.
//!
//! # How it goes
//! `levels` keeps the order as runs: so many of one type in a row. `channel` has, for
//! one type, a `lane` for each priority, where events lie one behind the other in
//! chunks, and their numbers as runs (`numbers`): nothing is boxed, nothing locked. The dispatcher (`queue`) claims a run, and
//! the channel delivers it, an event at a time, until something more urgent is pushed.
//! `cargo run --release -p prony-runtime --example events` measures it, `--example
//! event_ping` the way to another thread and back.

mod callbacks;
mod channel;
mod completion;
mod emitter;
mod handlers;
mod inlet;
mod lane;
mod levels;
mod numbers;
mod queue;
mod rows;
mod stats;
mod stream;
mod types;
mod waiting;

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::rc::Rc;

use prony_engine::Handle;

use self::handlers::{Futures, Spare};
use self::queue::Core;
use self::stream::Buffer;

pub use callbacks::Registration;
pub use emitter::Emitter;
pub use inlet::Inlet;
pub use stats::{Counts, EventStats, HandlerStats, PriorityStats, TypeStats};
pub use stream::EventStream;
pub use types::{
    AnyEvent, Disposition, EventId, Flow, Meta, Options, Originator, Priority, PushError, Verdict,
    WhenFull,
};

/// The event queue of a loop. Cheap to clone; stays on its thread. When the last
/// clone and the last [`Emitter`] go, so does the queue, with what waits in it.
#[derive(Clone)]
pub struct Events {
    core: Rc<Core>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({} waiting)", self.core.waiting())
    }
}

impl Events {
    /// A queue with the default limits, and its dispatcher as a task of the loop.
    pub fn new(handle: &Handle) -> Events {
        Events::with_options(handle, Options::default())
    }

    /// A queue with these limits.
    pub fn with_options(handle: &Handle, options: Options) -> Events {
        Events {
            core: Core::new(handle, options),
        }
    }

    /// Pushes events of one type without looking the type up each time.
    pub fn emitter<E: 'static>(&self) -> Emitter<E> {
        Emitter::new(&self.core)
    }

    /// Pushes an event behind all others of the default priority; yields its number.
    ///
    /// # Errors
    /// [`PushError`] with the event, when there is no room or the queue is closed.
    #[inline]
    pub fn push<E: 'static>(&self, event: E) -> Result<EventId, PushError<E>> {
        self.push_at(Priority::default(), event)
    }

    /// The same at this priority.
    ///
    /// # Errors
    /// As [`push`](Events::push).
    #[inline]
    pub fn push_at<E: 'static>(
        &self,
        priority: Priority,
        event: E,
    ) -> Result<EventId, PushError<E>> {
        self.core.push_by_type(event, priority)
    }

    /// Waits for room, behind those that wait already, then pushes.
    ///
    /// # Errors
    /// [`PushError::Closed`] with the event.
    pub async fn push_wait<E: 'static>(&self, event: E) -> Result<EventId, PushError<E>> {
        self.emitter().push_wait(event).await
    }

    /// Pushes an event and waits until it was handled, the futures of its async
    /// handlers included.
    ///
    /// # Errors
    /// As [`push`](Events::push), at once.
    pub fn push_and_wait<E: 'static>(
        &self,
        event: E,
    ) -> Result<impl Future<Output = Disposition> + use<E>, PushError<E>> {
        self.emitter().push_and_wait(event)
    }

    /// Sends events of one type into this queue from other threads; holds at most
    /// `limit` (at least one) that have not come in.
    pub fn inlet<E: Send + 'static>(&self, limit: usize) -> Inlet<E> {
        inlet::open(&self.core, limit)
    }
}

/// Handlers and interceptors.
impl Events {
    /// Calls `handler` with every event of a type, after those that were registered
    /// before it. It returns nothing, or a [`Flow`].
    #[track_caller]
    pub fn on<E: 'static, F: Into<Flow>>(
        &self,
        mut handler: impl FnMut(&E, &Meta) -> F + 'static,
    ) -> Registration {
        let call = Box::new(move |event: &E, meta: &Meta| handler(event, meta).into());
        let channel = self.core.channel::<E>();
        channel.handlers.add("handler", Location::caller(), call)
    }

    /// Makes a future of every event of a type. It is polled at once, before the next
    /// event is dispatched; one that waits for something then becomes a task of the
    /// loop. Dropping the registration cancels those that have not finished.
    #[track_caller]
    pub fn on_async<E: 'static, W: Future<Output = ()> + 'static>(
        &self,
        mut handler: impl FnMut(&E, &Meta) -> W + 'static,
    ) -> Registration {
        let registered_at = Location::caller();
        let futures: Rc<Futures> = Rc::default();
        let core = Rc::downgrade(&self.core);
        let mut spare = Spare::new();
        let call = Box::new(move |event: &E, meta: &Meta| {
            let work = handler(event, meta);
            futures.run(&mut spare, &core, registered_at, work);
            Flow::Next
        });
        let channel = self.core.channel::<E>();
        channel.handlers.add("async handler", registered_at, call)
    }

    /// Shows every event of a type to an interceptor before any handler.
    #[track_caller]
    pub fn before<E: 'static>(
        &self,
        interceptor: impl FnMut(&E, &Meta) -> Verdict + 'static,
    ) -> Registration {
        let channel = self.core.channel::<E>();
        let call = Box::new(interceptor);
        channel.before.add("before", Location::caller(), call)
    }

    /// Shows every event of a type to an interceptor, with what became of it.
    #[track_caller]
    pub fn after<E: 'static>(
        &self,
        interceptor: impl FnMut(&E, &Meta, Disposition) + 'static,
    ) -> Registration {
        let channel = self.core.channel::<E>();
        let call = Box::new(interceptor);
        channel.after.add("after", Location::caller(), call)
    }

    /// Shows every event of every type to an interceptor before any handler.
    #[track_caller]
    pub fn before_any(
        &self,
        interceptor: impl FnMut(&AnyEvent<'_>, &Meta) -> Verdict + 'static,
    ) -> Registration {
        let call = Box::new(interceptor);
        self.core.before_any.add("before", Location::caller(), call)
    }

    /// Shows every event of every type to an interceptor, with what became of it.
    #[track_caller]
    pub fn after_any(
        &self,
        interceptor: impl FnMut(&AnyEvent<'_>, &Meta, Disposition) + 'static,
    ) -> Registration {
        let call = Box::new(interceptor);
        self.core.after_any.add("after", Location::caller(), call)
    }

    /// Copies of the events of a type, for a coroutine; at most `limit` (at least
    /// one) unread.
    #[track_caller]
    pub fn stream<E: Clone + 'static>(&self, limit: usize) -> EventStream<E> {
        let buffer = Rc::new(Buffer::new(limit));
        let theirs = buffer.clone();
        let registration = self.on(move |event: &E, meta| theirs.offer(event, meta));
        EventStream::new(buffer, registration)
    }

    /// Waits for the next event of a type, counted from this call (not from when
    /// the future is first polled).
    #[track_caller]
    pub fn next<E: Clone + 'static>(&self) -> impl Future<Output = (E, Meta)> + use<E> {
        let mut stream = self.stream(1);
        async move { stream.next().await }
    }
}

/// The queue as a whole.
impl Events {
    /// Events that wait.
    pub fn waiting(&self) -> u64 {
        self.core.waiting()
    }

    /// Dispatches at most so many events now, instead of when the dispatcher has
    /// its turn; yields how many. Inside a handler it does nothing.
    pub fn dispatch(&self, events_max: u32) -> u32 {
        self.core.dispatch(events_max)
    }

    /// Waits until no event waits and no future of an async handler runs.
    pub async fn drain(&self) {
        poll_fn(|cx| self.core.poll_idle(cx)).await;
    }

    /// Waits until no other thread can send any more: every [`Inlet`] is gone, and what
    /// they sent waits in the queue or was dispatched.
    pub async fn inlets_gone(&self) {
        poll_fn(|cx| self.core.poll_inlets_gone(cx)).await;
    }

    /// Ends the queue in good order: inlets are closed, and what they hold comes in;
    /// then pushes are refused; then it drains.
    pub async fn close(&self) {
        self.core.close_inlets();
        self.inlets_gone().await;
        self.core.close();
        self.drain().await;
    }

    /// Measures the time of every handler from now on, or no longer (the default),
    /// which costs two readings of the clock a call.
    pub fn set_timing(&self, on: bool) {
        self.core.shared.timing.set(on);
    }

    /// The counters of the queue.
    pub fn stats(&self) -> EventStats {
        self.core.stats()
    }
}
