//! Events without a value: something has happened, go on.
//! Not for: events with data and handlers (`crate::events`), values (`channel`).

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::permits::{Acquire, Permits};
use super::waiters::{Ticket, Waiters};

/// An event that lets one waiter go on each time it is set, first come first.
///
/// Set while no task waits, it is remembered, once: the next wait is over at once.
/// A waiter that is dropped after it was released, and before it ran, releases the next.
///
/// ```
/// use prony_runtime::coroutines::AutoEvent;
/// use std::rc::Rc;
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let event = Rc::new(AutoEvent::new());
///     let theirs = event.clone();
///     let waiting = handle.spawn(async move {
///         theirs.wait().await;
///         "went on"
///     });
///     event.set();
///     assert_eq!(waiting.await, "went on");
///     assert!(!event.is_set(), "it was used up");
/// })
/// .unwrap();
/// ```
pub struct AutoEvent {
    permits: Permits,
}

impl AutoEvent {
    /// An event that is not set.
    pub fn new() -> AutoEvent {
        AutoEvent {
            permits: Permits::new(0, 1),
        }
    }

    /// Releases the task that has waited longest; else the next to wait.
    #[inline]
    pub fn set(&self) {
        self.permits.release();
    }

    /// Forgets that it was set; false when it was not.
    pub fn reset(&self) -> bool {
        self.permits.forget_all()
    }

    /// True when the next to wait goes on at once.
    pub fn is_set(&self) -> bool {
        self.permits.available() > 0
    }

    /// The number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.permits.waiting()
    }

    /// Waits until it is set, for this waiter.
    #[inline]
    pub fn wait(&self) -> AutoWait<'_> {
        AutoWait(self.permits.acquire())
    }
}

impl Default for AutoEvent {
    fn default() -> AutoEvent {
        AutoEvent::new()
    }
}

impl fmt::Debug for AutoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (set, waiting) = (self.is_set(), self.waiting());
        write!(f, "AutoEvent(set: {set}, waiting: {waiting})")
    }
}

/// Waits for an [`AutoEvent`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct AutoWait<'a>(Acquire<'a>);

impl Future for AutoWait<'_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The permits of an event never end, so this is no error.
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}

/// An event that stays set until it is reset, and meanwhile releases every waiter.
///
/// ```
/// use prony_runtime::coroutines::ManualEvent;
/// use std::rc::Rc;
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let ready = Rc::new(ManualEvent::new());
///     let waiting: Vec<_> = (0..3)
///         .map(|number| {
///             let ready = ready.clone();
///             handle.spawn(async move {
///                 ready.wait().await;
///                 number
///             })
///         })
///         .collect();
///     ready.set();
///     for (number, task) in waiting.into_iter().enumerate() {
///         assert_eq!(task.await, number);
///     }
///     ready.wait().await; // still set
/// })
/// .unwrap();
/// ```
pub struct ManualEvent {
    is_set: Cell<bool>,
    waiters: Waiters,
}

impl ManualEvent {
    /// An event that is not set.
    pub fn new() -> ManualEvent {
        ManualEvent {
            is_set: Cell::new(false),
            waiters: Waiters::new(),
        }
    }

    /// Releases all waiting tasks, in the order in which they came, also when it is reset
    /// before they run; and all that wait later, until it is reset.
    pub fn set(&self) {
        self.is_set.set(true);
        // A task that waits again while this runs is not released twice.
        for _ in 0..self.waiting() {
            let waker = self.waiters.release_first();
            let Some(waker) = waker else { return };
            waker.wake();
        }
    }

    /// From now on one has to wait again; false when it was not set.
    pub fn reset(&self) -> bool {
        self.is_set.replace(false)
    }

    /// True when a wait would be over at once.
    pub fn is_set(&self) -> bool {
        self.is_set.get()
    }

    /// The number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Waits until it is set.
    pub async fn wait(&self) {
        let mut wait = ManualWait {
            event: self,
            ticket: None,
        };
        poll_fn(|cx| wait.poll(cx)).await;
    }
}

impl Default for ManualEvent {
    fn default() -> ManualEvent {
        ManualEvent::new()
    }
}

impl fmt::Debug for ManualEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (set, waiting) = (self.is_set(), self.waiting());
        write!(f, "ManualEvent(set: {set}, waiting: {waiting})")
    }
}

struct ManualWait<'a> {
    event: &'a ManualEvent,
    ticket: Option<Ticket>,
}

impl ManualWait<'_> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let Some(ticket) = self.ticket else {
            if self.event.is_set() {
                return Poll::Ready(());
            }
            self.ticket = Some(self.event.waiters.join(cx.waker()));
            return Poll::Pending;
        };
        if !self.event.waiters.poll_released(ticket, cx.waker()) {
            return Poll::Pending;
        }
        self.ticket = None;
        Poll::Ready(())
    }
}

impl Drop for ManualWait<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // It need not pass anything on: a set released all tasks that waited then.
            let _ = self.event.waiters.leave(ticket);
        }
    }
}
