//! The counters of a queue, as values to be shown or written as JSON.

use prony_base::Nanos;
use serde::Serialize;

/// Counters of some events. At every moment
/// `pushed = dispatched + withheld + dropped + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Events that the queue took.
    pub pushed: u64,
    /// Events whose turn came and that no interceptor withheld.
    pub dispatched: u64,
    /// Events that an interceptor withheld.
    pub withheld: u64,
    /// Events that were dropped to make room for younger ones.
    pub dropped: u64,
    /// Of those dispatched: events that no handler saw.
    pub unhandled: u64,
    /// Events that wait now.
    pub waiting: u64,
    /// The most that ever waited at once.
    pub waiting_peak: u64,
}

impl Counts {
    /// The sum of two; their peaks may have been at different times, so that the
    /// peak of a sum is only the larger of them.
    pub(super) fn plus(&self, other: &Counts) -> Counts {
        Counts {
            pushed: self.pushed + other.pushed,
            dispatched: self.dispatched + other.dispatched,
            withheld: self.withheld + other.withheld,
            dropped: self.dropped + other.dropped,
            unhandled: self.unhandled + other.unhandled,
            waiting: self.waiting + other.waiting,
            waiting_peak: self.waiting_peak.max(other.waiting_peak),
        }
    }
}

/// Counters of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PriorityStats {
    /// The priority. None: of priorities that were given up, because many were
    /// used and no event waits in them.
    pub priority: Option<u64>,
    /// Their counters.
    pub counts: Counts,
}

/// Counters of one type of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeStats {
    /// The type's name, with its path.
    pub name: &'static str,
    /// All its events. The peak is that of its fullest priority.
    pub counts: Counts,
    /// The same by priority, most urgent first.
    pub priorities: Vec<PriorityStats>,
    /// Its handlers and interceptors.
    pub handlers: Vec<HandlerStats>,
}

/// The counters of one handler or interceptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandlerStats {
    /// `before`, `handler`, `async handler` or `after`.
    pub kind: &'static str,
    /// The place in the source where it was registered: file and line.
    pub registered_at: String,
    /// Calls.
    pub calls: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Time spent in calls while [timing](super::Events::set_timing) was on. Of an
    /// async handler: in making its future, not in the future itself.
    pub time: Nanos,
    /// The longest of these calls.
    pub time_max: Nanos,
}

/// A snapshot of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventStats {
    /// All events.
    pub counts: Counts,
    /// Pushes that were refused because the queue was full or closed.
    pub refused: u64,
    /// Handlers and interceptors that panicked, their futures included.
    pub panics: u64,
    /// Futures of async handlers that have not finished.
    pub running: u64,
    /// By priority, most urgent first.
    pub priorities: Vec<PriorityStats>,
    /// By type, in the order of their first use.
    pub types: Vec<TypeStats>,
    /// Interceptors of all types.
    pub interceptors: Vec<HandlerStats>,
}
