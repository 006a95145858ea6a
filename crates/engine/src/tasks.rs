//! The executor: tasks at numbered places, and a list of those that are due.
//! Not for: anything that knows sockets or time; the memory of a task (`raw`).
//!
//! Waking puts a task's number on the list, once; the loop polls what is on it.
//! A poll may wake, spawn and cancel tasks, so nothing is borrowed across it.

mod raw;
mod table;
mod waiter;
mod waker;

use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread;

pub use self::raw::JoinOutcome;
use self::raw::{JoinHandle, Payload, TaskRef};
pub use self::table::TaskId;
use self::table::{MAIN, Taken};
pub(crate) use self::waiter::Waiter;
pub use self::waker::TaskWaker;
pub(crate) use self::waker::{Entered, RunQueue};
use self::waker::{Polling, here, waker};

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

/// Counts of how the tasks of a loop have ended so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Tasks that were started.
    pub spawned: u64,
    /// Tasks that ran to their end.
    pub finished: u64,
    /// Tasks that panicked, and were spawned so that this is a result.
    pub panicked: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Times that a task was polled, the main task too.
    pub polls: u64,
}

/// All tasks of one loop.
pub(crate) struct Tasks {
    pub loop_id: u16,
    pub queue: Rc<RunQueue>,
    panicked: Cell<u64>,
    cancelled: Cell<u64>,
    polls: Cell<u64>,
    /// A task whose panic is unwinding, to become its result.
    unwinding: Cell<Option<TaskRef>>,
    /// Called with the panic of a task whose result is not taken.
    on_unseen_panic: Cell<fn(Payload)>,
}

#[inline(always)]
fn add_one(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

/// The default for panics that are not taken as results: the panic hook has printed them.
fn forget_panic(payload: Payload) {
    // A payload may panic itself when it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
}

impl Tasks {
    pub fn new(loop_id: u16) -> Rc<Tasks> {
        Rc::new(Tasks {
            loop_id,
            queue: Rc::new(RunQueue::new()),
            panicked: Cell::default(),
            cancelled: Cell::default(),
            polls: Cell::default(),
            unwinding: Cell::default(),
            on_unseen_panic: Cell::new(forget_panic),
        })
    }

    /// Adds a task, due at once, to this loop, of which the number is known too.
    // Inlined, so that the future is made where it stays.
    #[inline(always)]
    pub fn spawn_on<T: 'static>(
        self: &Rc<Tasks>,
        loop_id: u16,
        work: impl Future<Output = T> + 'static,
        catches: bool,
    ) -> Task<T> {
        // SAFETY: it is not used after this function, which the poll waits for.
        let queue = match unsafe { here(loop_id) } {
            Some(queue) => queue,
            None => &*self.queue,
        };
        add_one(&queue.spawned);
        let (task_ref, join) = raw::task(work, catches, &queue.cache);
        Task {
            join: ManuallyDrop::new(join),
            id: queue.table.add(task_ref),
            tasks: self.clone(),
        }
    }

    #[cfg(test)]
    fn spawn<T: 'static>(self: &Rc<Tasks>, work: impl Future<Output = T> + 'static) -> Task<T> {
        self.spawn_on(self.loop_id, work, false)
    }

    /// Polls due tasks, at most `polls_max` of them, so that a task that always
    /// wakes itself cannot keep the loop from the kernel. Stops when the main
    /// task has finished.
    pub fn run(&self, main: &mut Main<'_>, polls_max: usize) {
        let _polling = Polling::new(self.loop_id, &self.queue);
        self.queue.wake_later_ones();
        let end = self.polls.get() + polls_max as u64;
        // Panics are caught once for many polls: that costs nothing where none is.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.poll_due(main, end))) {
            match self.unwinding.take() {
                Some(task_ref) => self.fail(task_ref, payload),
                None => resume_unwind(payload),
            }
        }
    }

    /// Polls until nothing is due, or so many polls were made in all.
    fn poll_due(&self, main: &mut Main<'_>, end: u64) {
        let queue = &*self.queue;
        let loop_id = self.loop_id;
        while self.polls.get() < end {
            let Some((taken, task_ref)) = queue.table.next() else {
                return;
            };
            add_one(&self.polls);
            // Dropping a waker of a loop does nothing, and is left out.
            let task_waker = ManuallyDrop::new(waker(loop_id, taken.index()));
            let mut cx = Context::from_waker(&task_waker);
            if let Some(task_ref) = task_ref {
                self.poll(queue, taken, task_ref, &mut cx);
            } else if taken.index() == MAIN {
                main.poll(&mut cx);
                if main.is_finished() {
                    return;
                }
            }
        }
    }

    #[inline(always)]
    fn poll(&self, queue: &RunQueue, taken: Taken, task_ref: TaskRef, cx: &mut Context<'_>) {
        let table = &queue.table;
        let mut polled = Polled {
            tasks: self,
            taken,
            task_ref: ManuallyDrop::new(task_ref),
        };
        // SAFETY: what is in the table was not ready before: see below; and what
        // panicked is not put back.
        let is_ready = unsafe { polled.task_ref.poll(cx) }.is_ready();
        let task_ref = polled.done();
        if is_ready {
            table.release(taken);
            task_ref.recycle_finished(&queue.cache);
        } else if table.is_wanted(taken) {
            table.put_back(taken, task_ref);
        } else {
            table.release(taken);
            self.end_cancelled(task_ref);
        }
    }

    /// The task panicked, and the panic is unwinding.
    #[cold]
    #[inline(never)]
    fn note_panic(&self, taken: Taken, task_ref: TaskRef) {
        self.queue.table.release(taken);
        if task_ref.catches() {
            self.unwinding.set(Some(task_ref));
        }
    }

    #[cold]
    fn fail(&self, task_ref: TaskRef, payload: Payload) {
        add_one(&self.panicked);
        if let Some(unseen) = task_ref.fail(payload, &self.queue.cache) {
            self.on_unseen_panic.get()(unseen);
        }
    }

    /// This drops a future, which runs its owner's code: nothing may be borrowed.
    #[cold]
    fn end_cancelled(&self, task_ref: TaskRef) {
        add_one(&self.cancelled);
        task_ref.recycle(&self.queue.cache);
    }

    #[inline(never)]
    fn release_handle<T>(&self, join: JoinHandle<T>) {
        if let Some(unseen) = join.unseen_panic() {
            self.on_unseen_panic.get()(unseen);
        }
        join.recycle(&self.queue.cache);
    }

    pub fn on_unseen_panic(&self, report: fn(Payload)) {
        self.on_unseen_panic.set(report);
    }

    pub fn counts(&self) -> TaskCounts {
        let others = self.panicked.get() + self.cancelled.get() + self.len() as u64;
        TaskCounts {
            spawned: self.queue.spawned.get(),
            finished: self.queue.spawned.get() - others,
            panicked: self.panicked.get(),
            cancelled: self.cancelled.get(),
            polls: self.polls.get(),
        }
    }

    /// Drops a task's future: now, or after the poll that it is in.
    pub fn cancel(&self, id: TaskId) -> bool {
        let (found, task_ref) = self.queue.table.cancel(id);
        if let Some(task_ref) = task_ref {
            self.end_cancelled(task_ref);
        }
        found
    }

    /// Drops every task, and those that are spawned by dropping them. Where that
    /// panics, the others are dropped all the same; then the first panic is resumed, unless
    /// one is on its way already, because two at a time would end the process.
    pub fn cancel_all(&self) {
        let mut first = None;
        while self.len() > 0 {
            for id in self.queue.table.ids() {
                match catch_unwind(AssertUnwindSafe(|| self.cancel(id))) {
                    Err(payload) if first.is_none() => first = Some(payload),
                    Err(payload) => forget_panic(payload),
                    Ok(_) => {}
                }
            }
        }
        match first {
            Some(payload) if thread::panicking() => forget_panic(payload),
            Some(payload) => resume_unwind(payload),
            None => {}
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

/// A task while it is polled. Should it panic, its place is given free, and it is put
/// where the panic can become its result, or else dropped.
struct Polled<'a> {
    tasks: &'a Tasks,
    taken: Taken,
    task_ref: ManuallyDrop<TaskRef>,
}

impl Polled<'_> {
    #[inline(always)]
    fn done(self) -> TaskRef {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is neither used nor dropped after this.
        unsafe { ManuallyDrop::take(&mut this.task_ref) }
    }
}

impl Drop for Polled<'_> {
    // Inlined, so that nothing of it lies in memory where no task panics.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: it is neither used nor dropped after this.
        let task_ref = unsafe { ManuallyDrop::take(&mut self.task_ref) };
        self.tasks.note_panic(self.taken, task_ref);
    }
}

/// A spawned task: await it for its result; drop it to cancel the task;
/// [`detach`](Task::detach) it to let the task run on its own.
#[must_use = "dropping a Task cancels it: await it, keep it or detach it"]
pub struct Task<T> {
    /// Taken out in the end only.
    join: ManuallyDrop<JoinHandle<T>>,
    tasks: Rc<Tasks>,
    id: TaskId,
}

impl<T> Task<T> {
    /// Detaches the handle: the task runs to its end, its result unseen.
    #[inline(always)]
    pub fn detach(self) {
        let mut detached = ManuallyDrop::new(self);
        // SAFETY: they are neither used nor dropped after this.
        let (join, tasks) = unsafe {
            let join = ManuallyDrop::take(&mut detached.join);
            (join, ptr::read(&detached.tasks))
        };
        match join.detach_running() {
            // The common case: there is nothing to free or to report.
            None => drop(tasks),
            Some(join) => tasks.release_handle(join),
        }
    }

    /// True when the result is there (or was taken).
    pub fn is_finished(&self) -> bool {
        self.join.is_finished()
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

    /// Polls for how the task ended: as awaiting it, but with panics and cancellation as values.
    #[inline]
    pub fn poll_outcome(&mut self, cx: &Context<'_>) -> Poll<JoinOutcome<T>> {
        match self.join.poll(cx.waker()) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }

    #[cfg(test)]
    fn take(&self) -> Option<T> {
        match self.join.poll(std::task::Waker::noop()) {
            Some(JoinOutcome::Value(value)) => Some(value),
            _ => None,
        }
    }
}

// The result does not lie in the `Task`, so moving one moves no T.
impl<T> Unpin for Task<T> {}

impl<T> Future for Task<T> {
    type Output = T;

    /// Polled again after it was ready, or polled after the task was cancelled, it
    /// stays pending for ever. A panic that is a result is resumed here.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.poll_outcome(cx) {
            Poll::Ready(JoinOutcome::Value(value)) => Poll::Ready(value),
            Poll::Ready(JoinOutcome::Panicked(payload)) => resume_unwind(payload),
            Poll::Ready(JoinOutcome::Cancelled) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<T> Drop for Task<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this is the only place that takes it, and it is not used after.
        let join = unsafe { ManuallyDrop::take(&mut self.join) };
        // Should dropping the future panic, the join handle is dropped while unwinding.
        if !join.is_finished() {
            self.tasks.cancel(self.id);
        }
        self.tasks.release_handle(join);
    }
}

#[cfg(test)]
mod random_tests;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Waker;

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
        let _entered = Entered::new(tasks.loop_id, tasks.queue.clone());
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

    /// Not known when this is compiled, so that the panic carries a `String`.
    fn tasks_of() -> String {
        "two".to_owned()
    }

    #[test]
    fn a_caught_panic_is_the_result_of_its_task_and_the_others_go_on() {
        let tasks = Tasks::new(40_005);
        let mut failing =
            tasks.spawn_on(tasks.loop_id, async { panic!("of {}", tasks_of()) }, true);
        let other = tasks.spawn(async { 7 });
        run(&tasks);
        assert_eq!(other.take(), Some(7));
        assert_eq!(tasks.len(), 0);
        assert!(failing.is_finished());
        let outcome = failing.poll_outcome(&Context::from_waker(Waker::noop()));
        let Poll::Ready(JoinOutcome::<()>::Panicked(payload)) = outcome else {
            panic!("{outcome:?} is not a panic");
        };
        assert_eq!(
            payload.downcast_ref::<String>().map(String::as_str),
            Some("of two")
        );
        let counts = tasks.counts();
        assert_eq!(
            (counts.spawned, counts.finished, counts.panicked),
            (2, 1, 1)
        );
    }

    #[test]
    fn a_caught_panic_that_nobody_asks_about_is_told() {
        thread_local!(static TOLD: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) });
        let tasks = Tasks::new(40_006);
        tasks.on_unseen_panic(|payload| {
            let text = payload.downcast_ref::<&str>().copied().unwrap_or_default();
            TOLD.with_borrow_mut(|told| told.push(text));
        });
        let fail = |text: &'static str| {
            tasks.spawn_on(
                tasks.loop_id,
                async move { std::panic::panic_any(text) },
                true,
            )
        };
        fail("detached").detach();
        let kept: Task<()> = fail("dropped");
        run(&tasks);
        assert_eq!(TOLD.take(), ["detached"]);
        drop(kept);
        assert_eq!(TOLD.take(), ["dropped"]);
    }

    #[test]
    fn a_panic_that_is_not_caught_goes_on_and_leaves_no_place_taken() {
        let tasks = Tasks::new(40_007);
        let failing: Task<()> = tasks.spawn(async { panic!("on") });
        let gone = catch_unwind(AssertUnwindSafe(|| run(&tasks)));
        assert!(gone.is_err());
        assert_eq!(tasks.len(), 0);
        assert!(!failing.is_finished());
        tasks.cancel_all();
    }

    #[test]
    fn a_cancelled_task_tells_who_awaits_it() {
        let tasks = Tasks::new(40_008);
        let mut endless = tasks.spawn(std::future::pending::<()>());
        let id = endless.id();
        let awaiting = tasks.spawn(std::future::poll_fn(move |cx| {
            endless
                .poll_outcome(cx)
                .map(|outcome| matches!(outcome, JoinOutcome::Cancelled))
        }));
        run(&tasks);
        assert_eq!(awaiting.take(), None);
        {
            let _entered = Entered::new(tasks.loop_id, tasks.queue.clone());
            assert!(tasks.cancel(id));
        }
        run(&tasks);
        assert_eq!(awaiting.take(), Some(true));
        assert!(!tasks.cancel(id), "it is gone");
    }

    #[test]
    fn a_caught_task_may_panic_while_it_is_cancelled() {
        let tasks = Tasks::new(40_009);
        let task = tasks.spawn_on(tasks.loop_id, endless_with(Bomb), true);
        run(&tasks);
        drop(task);
        assert_eq!((tasks.len(), tasks.counts().cancelled), (0, 1));
    }

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }

    async fn endless_with(bomb: Bomb) {
        let _bomb = bomb;
        std::future::pending::<()>().await;
    }

    #[test]
    fn a_panic_in_the_drop_of_a_cancelled_task_still_tells_who_awaits_it() {
        let tasks = Tasks::new(40_011);
        let mut task = tasks.spawn(endless_with(Bomb));
        let id = task.id();
        run(&tasks);
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(flag.clone());
        assert!(task.poll_outcome(&Context::from_waker(&waker)).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| tasks.cancel(id))).is_err());
        assert!(flag.0.load(Ordering::Relaxed));
        let outcome = task.poll_outcome(&Context::from_waker(&waker));
        assert!(matches!(outcome, Poll::Ready(JoinOutcome::Cancelled)));
        // Nothing is left of this one either, as Miri sees.
        let dropped = tasks.spawn(endless_with(Bomb));
        run(&tasks);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(dropped))).is_err());
        assert_eq!(tasks.len(), 0);
    }

    #[test]
    fn two_panics_in_drops_at_the_end_do_not_end_the_process() {
        let tasks = Tasks::new(40_012);
        let held = Rc::new(());
        for _ in 0..2 {
            let theirs = held.clone();
            let work = async move {
                let _theirs = theirs;
                endless_with(Bomb).await;
            };
            tasks.spawn(work).detach();
        }
        run(&tasks);
        let gone = catch_unwind(AssertUnwindSafe(|| tasks.cancel_all()));
        assert!(gone.is_err());
        assert_eq!((tasks.len(), Rc::strong_count(&held)), (0, 1));
    }

    #[test]
    fn a_panic_in_the_drop_of_a_task_that_panics_does_not_end_the_process() {
        let tasks = Tasks::new(40_013);
        let bomb = Bomb;
        let work = std::future::poll_fn(move |_| -> Poll<()> {
            let _bomb = &bomb;
            panic!("in a poll");
        });
        tasks.spawn(work).detach();
        let gone = catch_unwind(AssertUnwindSafe(|| run(&tasks)));
        let payload = gone.unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"in a poll"));
        assert_eq!(tasks.len(), 0);
    }

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_waker_kept_as_a_number_wakes_its_task_and_another_wakes_itself() {
        let tasks = Tasks::new(40_010);
        let kept: Rc<RefCell<Option<TaskWaker>>> = Rc::default();
        let (theirs, mut polls) = (kept.clone(), 0);
        let task = tasks.spawn(std::future::poll_fn(move |cx| {
            polls += 1;
            *theirs.borrow_mut() = Some(TaskWaker::of(cx.waker()));
            if polls == 2 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        run(&tasks);
        assert!(!task.is_finished());
        let waker = kept.take();
        {
            let _entered = Entered::new(tasks.loop_id, tasks.queue.clone());
            waker.into_iter().for_each(TaskWaker::wake);
        }
        run(&tasks);
        assert!(task.is_finished());
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(flag.clone());
        let stranger = TaskWaker::of(&waker);
        // Miri gives the library's table of functions more than one address, as a
        // compiler may.
        assert!(stranger.will_wake(&waker) || cfg!(miri));
        stranger.wake();
        assert!(flag.0.load(Ordering::Relaxed));
        assert!(!TaskWaker::default().will_wake(Waker::noop()));
        TaskWaker::default().wake();
    }
}
