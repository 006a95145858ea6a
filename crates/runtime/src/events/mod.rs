//! Typed events with priorities: a queue, its handlers and interceptors.

mod callbacks;
mod channel;
mod completion;
mod emitter;
mod handlers;
mod inlet;
mod lane;
mod levels;
mod queue;
mod stats;
mod stream;
mod types;
mod waiting;

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::rc::Rc;

use prony_engine::Handle;

use self::handlers::Futures;
use self::queue::Core;
use self::stream::Buffer;

pub use callbacks::Registration;
pub use emitter::Emitter;
pub use inlet::Inlet;
pub use stats::{Counts, EventStats, HandlerStats, PriorityStats, TypeStats};
pub use stream::EventStream;
pub use types::{
    AnyEvent, EventId, Flow, Meta, Options, Originator, Outcome, Priority, PushError, Verdict,
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

    /// Puts an event behind all others of the default priority; yields its number.
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
        let channel = self.core.channel();
        self.core
            .push(&channel, event, priority, Originator::default())
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
    ) -> Result<impl Future<Output = Outcome> + use<E>, PushError<E>> {
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

    /// Makes a future of every event of a type, which becomes a task of the loop.
    /// Dropping the registration cancels those that have not finished.
    #[track_caller]
    pub fn on_async<E: 'static, W: Future<Output = ()> + 'static>(
        &self,
        mut handler: impl FnMut(&E, &Meta) -> W + 'static,
    ) -> Registration {
        let registered_at = Location::caller();
        let futures: Rc<Futures> = Rc::default();
        let core = Rc::downgrade(&self.core);
        let call = Box::new(move |event: &E, meta: &Meta| {
            if let Some(core) = core.upgrade() {
                futures.run(&core, registered_at, handler(event, meta));
            }
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
        interceptor: impl FnMut(&E, &Meta, Outcome) + 'static,
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
        interceptor: impl FnMut(&AnyEvent<'_>, &Meta, Outcome) + 'static,
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

    /// What the queue has counted.
    pub fn stats(&self) -> EventStats {
        self.core.stats()
    }
}
