//! Handlers that are futures: each event makes one, and each becomes a task.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;

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

impl Futures {
    /// Runs a future as a task of the loop.
    pub fn run(
        self: &Rc<Self>,
        core: &Rc<Core>,
        registered_at: &'static Location<'static>,
        work: impl Future<Output = ()> + 'static,
    ) {
        core.note_started();
        let running = Running {
            core: Rc::downgrade(core),
            _held: core.completions.share(),
        };
        let id = self.next.get();
        self.next.set(id + 1);
        let own = Rc::downgrade(self);
        let task = core.shared.handle.spawn(async move {
            let running = running;
            guarded(&running.core, registered_at, work).await;
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

/// `work`, with a panic as an error of its own.
async fn guarded(
    core: &Weak<Core>,
    registered_at: &'static Location<'static>,
    work: impl Future<Output = ()>,
) {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let poll = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        poll.unwrap_or_else(|panic| {
            if let Some(core) = core.upgrade() {
                note_panic(&core.shared, "async handler", registered_at, &*panic);
            }
            Poll::Ready(())
        })
    })
    .await;
}
