//! Handlers that are futures: each event makes one.
//!
//! Most are ready at their first poll, so that a task and an allocation for each would cost
//! more than all the rest. A future is therefore polled once where it is, in a box that is
//! used again for the next one; only one that is not ready becomes a task, with its box.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use prony_engine::Task;

use super::callbacks::note_panic;
use super::completion::Held;
use super::queue::Core;

/// The unfinished futures of one async handler; dropping it cancels them.
#[derive(Default)]
pub(super) struct Futures {
    tasks: RefCell<HashMap<u64, Task<()>>>,
    next: Cell<u64>,
}

/// Tells the queue that a future has gone, however it went.
struct Running {
    core: Weak<Core>,
    _held: Option<Held>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.note_finished();
        }
    }
}

/// The place of a future that is over, which holds nothing any more.
pub(super) struct Spare<W>(Option<Pin<Box<Option<W>>>>);

impl<W> Spare<W> {
    pub fn new() -> Spare<W> {
        Spare(None)
    }
}

/// A future while it is polled for the first time. Where that panics, what is left of it is
/// dropped while it unwinds; a second panic in that is ignored.
struct Polled<W>(Option<Pin<Box<Option<W>>>>);

impl<W: Future<Output = ()>> Polled<W> {
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let work = self
            .0
            .as_mut()
            .and_then(|place| place.as_mut().as_pin_mut());
        work.map_or(Poll::Ready(()), |work| work.poll(cx))
    }
}

impl<W> Drop for Polled<W> {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(place)));
        }
    }
}

impl Futures {
    /// Polls a future once, and makes a task of it where it is not ready then. Its panic in
    /// that poll is the caller's.
    #[inline]
    pub fn run<W: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        spare: &mut Spare<W>,
        core: &Weak<Core>,
        registered_at: &'static Location<'static>,
        work: W,
    ) {
        let place = match spare.0.take() {
            Some(mut place) => {
                place.set(Some(work));
                place
            }
            None => Box::pin(Some(work)),
        };
        // Nothing is to be woken: what is pending is polled again at once, by its task.
        let mut cx = Context::from_waker(Waker::noop());
        let mut polled = Polled(Some(place));
        let poll = polled.poll(&mut cx);
        let Some(mut place) = polled.0.take() else {
            return;
        };
        if poll.is_pending() {
            return self.go_on(core, registered_at, place);
        }
        place.set(None);
        spare.0 = Some(place);
    }

    /// Spawns a future that is not ready as a task of the loop.
    #[inline(never)]
    fn go_on<W: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        core: &Weak<Core>,
        registered_at: &'static Location<'static>,
        mut work: Pin<Box<Option<W>>>,
    ) {
        let Some(core) = core.upgrade() else {
            return;
        };
        core.note_started();
        let running = Running {
            core: Rc::downgrade(&core),
            _held: core.completions.share(),
        };
        let id = self.next.get();
        self.next.set(id + 1);
        let own = Rc::downgrade(self);
        let task = core.shared.handle.spawn(async move {
            let running = running;
            guarded(&running.core, registered_at, &mut work).await;
            // Before the count goes down: the task is no longer there then.
            let finished = own
                .upgrade()
                .and_then(|own| own.tasks.borrow_mut().remove(&id));
            if let Some(task) = finished {
                task.detach();
            }
        });
        self.tasks.borrow_mut().insert(id, task);
    }
}

/// `work`, with a panic as an error of its own. What is over holds nothing any more.
async fn guarded<W: Future<Output = ()>>(
    core: &Weak<Core>,
    registered_at: &'static Location<'static>,
    work: &mut Pin<Box<Option<W>>>,
) {
    poll_fn(|cx| {
        let poll = catch_unwind(AssertUnwindSafe(|| {
            let Some(going) = work.as_mut().as_pin_mut() else {
                return Poll::Ready(());
            };
            let poll = going.poll(cx);
            if poll.is_ready() {
                work.set(None);
            }
            poll
        }));
        poll.unwrap_or_else(|panic| {
            if let Some(core) = core.upgrade() {
                note_panic(&core.shared, "async handler", registered_at, &*panic);
            }
            Poll::Ready(())
        })
    })
    .await;
}
