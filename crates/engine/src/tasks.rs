//! The executor: tasks at numbered places, and a list of those that are due.
//! Not for: anything that knows sockets or time; the memory of a task (`raw`).
//!
//! Waking puts a task's number on the list, once; the loop polls what is on it.
//! A poll may wake, spawn and cancel tasks, so nothing is borrowed across it.

mod raw;
mod table;
mod waker;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use self::raw::{Listing, Outcome, Pieces, Share};
use self::table::Table;
pub use self::table::TaskId;
pub use self::waker::TaskWaker;
use crate::remote;

/// The tasks of a loop, and those that are due, each at most once, first woken first.
pub(crate) struct RunQueue {
    table: Table,
    /// To be woken by the next run: wakers that others made, because they may run
    /// any code and nothing may be borrowed then; and tasks that yielded.
    later: RefCell<VecDeque<Waker>>,
}

impl RunQueue {
    /// Makes the task at `index` due. One that is not there is skipped later.
    #[inline]
    pub fn wake(&self, index: u32) {
        self.table.wake(index);
    }

    pub fn is_empty(&self) -> bool {
        !self.table.is_any_due() && self.later.borrow().is_empty()
    }

    /// Wakes in the next turn, after the kernel was asked.
    pub fn wake_next_turn(&self, waker: Waker) {
        self.later.borrow_mut().push_back(waker);
    }

    fn wake_later_ones(&self) {
        let count = self.later.borrow().len();
        for _ in 0..count {
            let next = self.later.borrow_mut().pop_front();
            if let Some(waker) = next {
                waker.wake();
            }
        }
    }
}

thread_local! {
    /// The loop whose tasks this thread polls now, and its tasks.
    static POLLING: Cell<(u16, *const Tasks)> = const { Cell::new((0, ptr::null())) };
}

/// Marks a loop as the one whose tasks are polled on this thread, until dropped.
///
/// INVARIANT: the pointer in `POLLING` is null, or that of tasks which a `Polling` on
/// this thread borrows.
struct Polling<'a> {
    before: (u16, *const Tasks),
    _tasks: &'a Tasks,
}

impl Polling<'_> {
    fn new(tasks: &Tasks) -> Polling<'_> {
        Polling {
            before: POLLING.replace((tasks.loop_id, tasks)),
            _tasks: tasks,
        }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        POLLING.set(self.before);
    }
}

/// The tasks of the loop that polls on this thread now, if it is that one.
///
/// It is the short way, also where the long one is at hand: the pointer comes from a
/// fixed place, so that the processor need not wait for the task that it polls in
/// order to reach the tables. A round of waking and spawning is a chain of such waits.
///
/// # Safety
/// The reference is not used after the poll that this is called from.
#[inline(always)]
unsafe fn here<'a>(loop_id: u16) -> Option<&'a Tasks> {
    let (polled, tasks) = POLLING.get();
    if polled != loop_id {
        return None;
    }
    // SAFETY: by the invariant of `Polling` they are alive as long as they stand there,
    // which is until that poll ends.
    unsafe { tasks.as_ref() }
}

/// Wakes a task of the loop whose tasks this thread polls now, which is the way that
/// most wakes go. False when that is not the loop in question.
#[inline]
pub(crate) fn wake_here(loop_id: u16, index: u32) -> bool {
    // SAFETY: it is not used after this function, which the poll waits for.
    let Some(tasks) = (unsafe { here(loop_id) }) else {
        return false;
    };
    tasks.queue.wake(index);
    true
}

/// The place of the main task, which is not boxed and may borrow.
const MAIN: u32 = 0;

/// The main task of a loop: polled where it is, because it may borrow what the
/// loop does not own.
pub(crate) struct Main<'a> {
    future: Option<Pin<&'a mut dyn Future<Output = ()>>>,
    finished: bool,
}

impl<'a> Main<'a> {
    pub fn new(future: Pin<&'a mut dyn Future<Output = ()>>) -> Main<'a> {
        Main {
            future: Some(future),
            finished: false,
        }
    }

    /// For turns after the main task.
    pub fn none() -> Main<'static> {
        Main {
            future: None,
            finished: false,
        }
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(future) = &mut self.future
            && future.as_mut().poll(cx).is_ready()
        {
            self.future = None;
            self.finished = true;
        }
    }
}

/// All tasks of one loop.
pub(crate) struct Tasks {
    pub loop_id: u16,
    pub queue: Rc<RunQueue>,
    pieces: Pieces,
    polls: Cell<u64>,
}

impl Tasks {
    pub fn new(loop_id: u16) -> Rc<Tasks> {
        let queue = RunQueue {
            table: Table::new(),
            later: RefCell::default(),
        };
        queue.wake(MAIN);
        Rc::new(Tasks {
            loop_id,
            queue: Rc::new(queue),
            pieces: Pieces::new(),
            polls: Cell::new(0),
        })
    }

    /// Adds a task, due at once, to this loop, of which the number is known too.
    // Inlined, so that the future is made where it stays.
    #[inline(always)]
    pub fn spawn_on<T: 'static>(
        self: &Rc<Tasks>,
        loop_id: u16,
        work: impl Future<Output = T> + 'static,
    ) -> Task<T> {
        // SAFETY: it is not used after this function, which the poll waits for.
        let tasks = unsafe { here(loop_id) }.unwrap_or(self);
        let (listing, share) = raw::task(work, &tasks.pieces);
        Task {
            share: ManuallyDrop::new(share),
            id: tasks.queue.table.add(listing),
            tasks: self.clone(),
        }
    }

    #[cfg(test)]
    fn spawn<T: 'static>(self: &Rc<Tasks>, work: impl Future<Output = T> + 'static) -> Task<T> {
        self.spawn_on(self.loop_id, work)
    }

    /// Polls due tasks, at most `polls_max` of them, so that a task that always
    /// wakes itself cannot keep the loop from the kernel. Stops when the main
    /// task has finished.
    pub fn run(&self, main: &mut Main<'_>, polls_max: usize) {
        let _polling = Polling::new(self);
        self.queue.wake_later_ones();
        for _ in 0..polls_max {
            let Some((index, listing)) = self.queue.table.next() else {
                return;
            };
            self.polls.set(self.polls.get() + 1);
            // Dropping a waker of a loop does nothing, and is left out.
            let waker = ManuallyDrop::new(remote::waker(self.loop_id, index));
            let mut cx = Context::from_waker(&waker);
            if let Some(listing) = listing {
                self.poll(index, listing, &mut cx);
            } else if index == MAIN {
                main.poll(&mut cx);
                if main.is_finished() {
                    return;
                }
            }
        }
    }

    #[inline]
    fn poll(&self, index: u32, mut listing: Listing, cx: &mut Context<'_>) {
        let table = &self.queue.table;
        let vacate = VacateOnPanic { table, index };
        let polled = listing.poll(cx);
        std::mem::forget(vacate);
        let ended = match polled {
            Poll::Pending => table.put_back(index, listing),
            Poll::Ready(()) => {
                table.vacate(index);
                Some(listing)
            }
        };
        if let Some(listing) = ended {
            // This may drop a future, which runs its owner's code: nothing is borrowed.
            listing.recycle(&self.pieces);
        }
    }

    /// Drops a task's future: now, or after the poll that it is in.
    pub fn cancel(&self, id: TaskId) -> bool {
        let (found, listing) = self.queue.table.cancel(id);
        if let Some(listing) = listing {
            listing.recycle(&self.pieces);
        }
        found
    }

    /// Drops every task, and those that are spawned by dropping them.
    pub fn cancel_all(&self) {
        while self.len() > 0 {
            for id in self.queue.table.ids() {
                self.cancel(id);
            }
        }
    }

    /// Spawned tasks that have not finished.
    pub fn len(&self) -> usize {
        self.queue.table.len()
    }

    /// Times that a task was polled.
    pub fn polls(&self) -> u64 {
        self.polls.get()
    }
}

/// Gives a task's place free when the task panics.
struct VacateOnPanic<'a> {
    table: &'a Table,
    index: u32,
}

impl Drop for VacateOnPanic<'_> {
    fn drop(&mut self) {
        self.table.vacate(self.index);
    }
}

/// A spawned task: await it for its result; drop it to cancel the task;
/// [`detach`](Task::detach) it to let the task run on its own.
#[must_use = "dropping a Task cancels it: await it, keep it or detach it"]
pub struct Task<T> {
    /// Taken out in the end only.
    share: ManuallyDrop<Share<T>>,
    tasks: Rc<Tasks>,
    id: TaskId,
}

impl<T> Task<T> {
    /// Lets the task run to its end, its result unseen.
    pub fn detach(mut self) {
        // The drop below then cancels nothing.
        self.id = TaskId::NONE;
    }

    /// True when the result is there (or was taken).
    pub fn is_finished(&self) -> bool {
        self.share.is_finished()
    }

    /// Names the task, to cancel it by [`Handle::cancel`](crate::Handle::cancel)
    /// from elsewhere.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Drops the task's future: now, or, when the task calls this itself, after the
    /// poll that it is in. A result that is there already stays there.
    pub fn cancel(&self) {
        self.tasks.cancel(self.id);
    }

    /// As awaiting it, but None once the task was cancelled, by whomever (or when the
    /// result was taken before).
    #[inline]
    pub fn poll_outcome(&mut self, cx: &Context<'_>) -> Poll<Option<T>> {
        match self.share.poll(Some(cx.waker())) {
            Outcome::Waiting => Poll::Pending,
            Outcome::Value(value) => Poll::Ready(Some(value)),
            Outcome::Nothing => Poll::Ready(None),
        }
    }

    #[cfg(test)]
    fn take(&self) -> Option<T> {
        match self.share.poll(None) {
            Outcome::Value(value) => Some(value),
            _ => None,
        }
    }
}

// The result does not lie in the `Task`, so moving one moves no T.
impl<T> Unpin for Task<T> {}

impl<T> Future for Task<T> {
    type Output = T;

    /// Polled again after it was ready, or polled after the task was cancelled, it
    /// stays pending for ever.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.poll_outcome(cx) {
            Poll::Ready(Some(value)) => Poll::Ready(value),
            _ => Poll::Pending,
        }
    }
}

impl<T> Drop for Task<T> {
    #[inline]
    fn drop(&mut self) {
        if self.id != TaskId::NONE && !self.share.is_finished() {
            self.tasks.cancel(self.id);
        }
        // SAFETY: this is the only place that takes it, and it is the last.
        let share = unsafe { ManuallyDrop::take(&mut self.share) };
        share.recycle(&self.tasks.pieces);
    }
}

/// Who waits for an operation of this loop: nobody, one of its tasks (a number,
/// the common case), or a waker that a combinator made.
#[derive(Default)]
pub(crate) enum Waiter {
    #[default]
    Nobody,
    Task(u32),
    Stranger(Waker),
}

impl Waiter {
    pub fn of(cx: &Context<'_>, loop_id: u16) -> Waiter {
        match remote::names(cx.waker()) {
            Some((of_loop, task)) if of_loop == loop_id => Waiter::Task(task),
            _ => Waiter::Stranger(cx.waker().clone()),
        }
    }

    pub fn is_somebody(&self) -> bool {
        !matches!(self, Waiter::Nobody)
    }

    /// Makes who waits due, once. Nothing runs here.
    #[inline]
    pub fn wake(&mut self, queue: &RunQueue) {
        if !self.is_somebody() {
            return;
        }
        match std::mem::take(self) {
            Waiter::Nobody => {}
            Waiter::Task(index) => queue.wake(index),
            Waiter::Stranger(waker) => queue.wake_next_turn(waker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct YieldOnce(bool);

    impl Future for YieldOnce {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }

    fn run(tasks: &Rc<Tasks>) {
        let _entered = remote::Entered::new(tasks.loop_id, tasks.queue.clone());
        tasks.run(&mut Main::none(), 1_000);
    }

    #[test]
    fn a_task_gives_its_result_to_who_awaits_it() {
        let tasks = Tasks::new(40_001);
        let inner = tasks.spawn(async {
            YieldOnce(false).await;
            41
        });
        let outer = tasks.spawn(async move { inner.await + 1 });
        run(&tasks);
        assert_eq!(outer.take(), Some(42));
        assert_eq!(tasks.len(), 0);
    }

    #[test]
    fn dropping_a_task_drops_its_future_and_detaching_does_not() {
        let tasks = Tasks::new(40_002);
        let held = Rc::new(());
        let (one, two) = (held.clone(), held.clone());
        let cancelled = tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop(one);
        });
        tasks
            .spawn(async move {
                std::future::pending::<()>().await;
                drop(two);
            })
            .detach();
        run(&tasks);
        drop(cancelled);
        assert_eq!(Rc::strong_count(&held), 2);
        assert_eq!(tasks.len(), 1);
        tasks.cancel_all();
        assert_eq!(Rc::strong_count(&held), 1);
    }

    #[test]
    fn a_task_that_cancels_itself_is_dropped_after_its_poll() {
        let tasks = Tasks::new(40_003);
        let own: Rc<RefCell<Option<Task<()>>>> = Rc::default();
        let theirs = own.clone();
        let task = tasks.spawn(async move {
            drop(theirs.borrow_mut().take());
            std::future::pending().await
        });
        *own.borrow_mut() = Some(task);
        run(&tasks);
        assert_eq!(tasks.len(), 0);
        assert_eq!(Rc::strong_count(&own), 1);
    }

    #[test]
    fn a_task_that_wakes_itself_for_ever_does_not_hold_the_run() {
        let tasks = Tasks::new(40_004);
        let _task = tasks.spawn(async {
            loop {
                YieldOnce(false).await;
            }
        });
        run(&tasks);
        assert!((998..=1_000).contains(&tasks.polls()));
    }
}
