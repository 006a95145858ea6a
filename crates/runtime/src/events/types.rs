//! The small types of the queue: the data and the disposition of an event, and the settings
//! of a queue.

use std::any::{Any, type_name};
use std::fmt;

use serde::Serialize;

/// The urgency of an event: a lower number goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Priority(pub u64);

impl Default for Priority {
    /// 1000, which leaves room on both sides.
    fn default() -> Priority {
        Priority(1000)
    }
}

/// The originator of an event: a number that the application chooses, such as that of a
/// service. Zero is no particular one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Originator(pub u64);

/// The number of an event: in one queue each is greater than those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct EventId(pub u64);

/// The data that come with every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Its number.
    pub id: EventId,
    /// Its originator.
    pub originator: Originator,
    /// Its urgency.
    pub priority: Priority,
}

/// An event as an interceptor of all types sees it.
#[derive(Clone, Copy)]
pub struct AnyEvent<'a> {
    /// The name of its type, with its path.
    pub name: &'static str,
    /// The event, to be asked for its type.
    pub event: &'a dyn Any,
}

impl<'a> AnyEvent<'a> {
    pub(super) fn new<E: 'static>(event: &'a E) -> AnyEvent<'a> {
        AnyEvent {
            name: type_name::<E>(),
            event,
        }
    }
}

impl fmt::Debug for AnyEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyEvent({})", self.name)
    }
}

/// Whether handlers after this one see the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// They do.
    #[default]
    Next,
    /// They do not.
    Stop,
}

/// A handler that returns nothing lets the next one have the event.
impl From<()> for Flow {
    fn from((): ()) -> Flow {
        Flow::Next
    }
}

/// Whether an interceptor lets an event through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Handlers see it, unless another interceptor withholds it.
    Pass,
    /// No handler sees it.
    Withhold,
}

/// The end of the delivery of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Disposition {
    /// At least one handler saw it. Futures of async handlers have finished where
    /// this answers [`push_and_wait`](super::Events::push_and_wait), and have been
    /// started where an interceptor sees it.
    Handled,
    /// There was no handler.
    Unhandled,
    /// An interceptor withheld it.
    Withheld,
    /// It was dropped to make room, or the queue went.
    Dropped,
}

/// The reason why an event was refused, with the event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PushError<E> {
    /// As many events wait as may.
    Full(E),
    /// The queue was closed, or is gone.
    Closed(E),
}

impl<E> PushError<E> {
    /// The event that was not taken.
    pub fn into_event(self) -> E {
        match self {
            PushError::Full(event) | PushError::Closed(event) => event,
        }
    }

    /// True when there may be room later.
    pub fn is_full(&self) -> bool {
        matches!(self, PushError::Full(_))
    }
}

impl<E> fmt::Debug for PushError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PushError::Full(_) => "Full(..)",
            PushError::Closed(_) => "Closed(..)",
        })
    }
}

impl<E> fmt::Display for PushError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PushError::Full(_) => "as many events wait as the queue's limit allows",
            PushError::Closed(_) => "the event queue is closed",
        })
    }
}

impl<E> std::error::Error for PushError<E> {}

/// The policy for an event for which there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Return it to the caller of the push.
    #[default]
    Refuse,
    /// Drop the oldest of the least urgent events that wait. One that is itself
    /// less urgent than all that wait is refused.
    DropOldest,
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most events that may wait, of all types and priorities together.
    pub waiting_max: u64,
    /// The policy for an event beyond that.
    pub when_full: WhenFull,
    /// Events dispatched before other tasks and the kernel have their turn.
    pub batch_max: u32,
    /// Most unfinished futures of async handlers; the queue dispatches no further
    /// while there are so many. One event may pass it by its number of handlers.
    pub running_max: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            waiting_max: 1 << 20,
            when_full: WhenFull::Refuse,
            batch_max: 1024,
            running_max: 1 << 16,
        }
    }
}
