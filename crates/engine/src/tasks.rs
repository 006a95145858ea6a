//! The executor: tasks at numbered places, and a list of those that are due.
//! Not for: anything that knows sockets or time.
//!
//! Waking puts a task's number on the list, once; the loop polls what is on it.
//! A poll may wake, spawn and cancel tasks, so no borrow is held across it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::remote;
use crate::slab::{Key, Slab};

type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks that are due, each at most once, first woken first.
#[derive(Default)]
pub(crate) struct RunQueue {
    lists: RefCell<Lists>,
    /// To be woken by the next run: wakers that others made, because they may run
    /// any code and nothing may be borrowed then; and tasks that yielded.
    later: RefCell<VecDeque<Waker>>,
}

#[derive(Default)]
struct Lists {
    due: VecDeque<u32>,
    is_due: Vec<bool>,
}

impl RunQueue {
    /// Makes the task at `index` due. One that is not there is skipped later.
    pub fn wake(&self, index: u32) {
        let mut lists = self.lists.borrow_mut();
        let Lists { due, is_due } = &mut *lists;
        if let Some(flag) = is_due.get_mut(index as usize)
            && !*flag
        {
            *flag = true;
            due.push_back(index);
        }
    }

    fn make_room(&self, index: u32) {
        let mut lists = self.lists.borrow_mut();
        if lists.is_due.len() <= index as usize {
            lists.is_due.resize(index as usize + 1, false);
        }
    }

    fn next(&self) -> Option<u32> {
        let mut lists = self.lists.borrow_mut();
        let index = lists.due.pop_front()?;
        lists.is_due[index as usize] = false;
        Some(index)
    }

    pub fn is_empty(&self) -> bool {
        self.lists.borrow().due.is_empty() && self.later.borrow().is_empty()
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

struct Slot {
    /// None while the task is being polled.
    future: Option<LocalFuture>,
    cancelled: bool,
}

/// All tasks of one loop.
pub(crate) struct Tasks {
    pub loop_id: u16,
    pub queue: Rc<RunQueue>,
    slots: RefCell<Slab<Slot>>,
    polls: Cell<u64>,
}

impl Tasks {
    pub fn new(loop_id: u16) -> Rc<Tasks> {
        let mut slots = Slab::new();
        slots.insert(Slot {
            future: None,
            cancelled: false,
        });
        let queue: Rc<RunQueue> = Rc::default();
        queue.make_room(MAIN);
        queue.wake(MAIN);
        Rc::new(Tasks {
            loop_id,
            queue,
            slots: RefCell::new(slots),
            polls: Cell::new(0),
        })
    }

    /// Adds a task, due at once.
    pub fn spawn<T: 'static>(self: &Rc<Tasks>, work: impl Future<Output = T> + 'static) -> Task<T> {
        let join = Rc::new(Join {
            result: Cell::new(None),
            finished: Cell::new(false),
            waiter: RefCell::new(None),
        });
        let theirs = join.clone();
        let future = Box::pin(async move {
            theirs.finish(work.await);
        });
        let slot = Slot {
            future: Some(future),
            cancelled: false,
        };
        let key = self.slots.borrow_mut().insert(slot);
        self.queue.make_room(key.index);
        self.queue.wake(key.index);
        Task {
            join,
            tasks: self.clone(),
            key,
        }
    }

    /// Polls due tasks, at most `polls_max` of them, so that a task that always
    /// wakes itself cannot keep the loop from the kernel. Stops when the main
    /// task has finished.
    pub fn run(&self, main: &mut Main<'_>, polls_max: usize) {
        self.queue.wake_later_ones();
        for _ in 0..polls_max {
            let Some(index) = self.queue.next() else {
                return;
            };
            self.polls.set(self.polls.get() + 1);
            if index != MAIN {
                self.poll(index);
                continue;
            }
            let waker = remote::waker(self.loop_id, MAIN);
            main.poll(&mut Context::from_waker(&waker));
            if main.is_finished() {
                return;
            }
        }
    }

    fn poll(&self, index: u32) {
        let taken = {
            let mut slots = self.slots.borrow_mut();
            let Some((key, slot)) = slots.at_mut(index) else {
                return;
            };
            slot.future.take().map(|future| (key, future))
        };
        let Some((key, mut future)) = taken else {
            return;
        };
        let waker = remote::waker(self.loop_id, index);
        let done = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        let mut slots = self.slots.borrow_mut();
        if let Some(slot) = slots.get_mut(key)
            && !done
            && !slot.cancelled
        {
            slot.future = Some(future);
            return;
        }
        slots.remove(key);
        drop(slots);
        // Dropping a future runs its owner's code, so nothing may be borrowed.
        drop(future);
    }

    fn cancel(&self, key: Key) {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.get_mut(key) else {
            return;
        };
        if slot.future.is_none() {
            slot.cancelled = true;
            return;
        }
        let slot = slots.remove(key);
        drop(slots);
        drop(slot);
    }

    /// Drops every task, and those that are spawned by dropping them.
    pub fn cancel_all(&self) {
        while self.len() > 0 {
            let keys = self.slots.borrow().keys();
            for key in keys.into_iter().filter(|key| key.index != MAIN) {
                self.cancel(key);
            }
        }
    }

    /// Spawned tasks that have not finished.
    pub fn len(&self) -> usize {
        self.slots.borrow().len() - 1
    }

    /// Times that a task was polled.
    pub fn polls(&self) -> u64 {
        self.polls.get()
    }
}

struct Join<T> {
    result: Cell<Option<T>>,
    finished: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl<T> Join<T> {
    fn finish(&self, value: T) {
        self.result.set(Some(value));
        self.finished.set(true);
        let waiter = self.waiter.borrow_mut().take();
        if let Some(waker) = waiter {
            waker.wake();
        }
    }
}

/// A spawned task: await it for its result; drop it to cancel the task;
/// [`detach`](Task::detach) it to let the task run on its own.
#[must_use = "dropping a Task cancels it: await it, keep it or detach it"]
pub struct Task<T> {
    join: Rc<Join<T>>,
    tasks: Rc<Tasks>,
    key: Key,
}

impl<T> Task<T> {
    /// Lets the task run to its end, its result unseen.
    pub fn detach(mut self) {
        // A key that names nothing: the drop below then cancels nothing.
        self.key.index = u32::MAX;
    }

    /// True when the result is there (or was taken).
    pub fn is_finished(&self) -> bool {
        self.join.finished.get()
    }

    #[cfg(test)]
    fn take(&self) -> Option<T> {
        self.join.result.take()
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// Polled again after it was ready, it stays pending for ever.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(value) = self.join.result.take() {
            return Poll::Ready(value);
        }
        *self.join.waiter.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.tasks.cancel(self.key);
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
