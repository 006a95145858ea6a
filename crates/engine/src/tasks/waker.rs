//! Wakers of a loop's tasks, and the run queue that they put tasks on.
//! Not for: polling (`tasks`), and how a loop of another thread is woken (`remote`).
//!
//! A waker is only a number (loop and task): cloning and dropping it costs nothing, and a
//! stale one at worst polls another task once for nothing, which every future allows.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::ptr;
use std::rc::Rc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::raw::{AllocationCache, TaskRef};
use super::table::{MAIN, Table};
use crate::remote;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a waker packs its loop and its task into one 64-bit pointer");

/// The tasks of a loop, and those that are due, each at most once, first woken first; and
/// what spawning needs beside them.
pub(crate) struct RunQueue {
    pub(super) table: Table<TaskRef>,
    pub(super) cache: AllocationCache,
    /// Tasks that were spawned so far.
    pub(super) spawned: Cell<u64>,
    /// To be woken by the next run: foreign wakers, because they may run any code and
    /// nothing may be borrowed then; and tasks that yielded.
    later: RefCell<VecDeque<Waker>>,
}

impl RunQueue {
    /// One that is empty, but for the main task.
    pub(super) fn new() -> RunQueue {
        let queue = RunQueue {
            table: Table::new(),
            cache: AllocationCache::new(),
            spawned: Cell::default(),
            later: RefCell::default(),
        };
        queue.wake(MAIN);
        queue
    }

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

    pub(super) fn wake_later_ones(&self) {
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
    /// The loop whose tasks this thread polls now, and its run queue.
    static POLLING: Cell<(u32, *const RunQueue)> = const { Cell::new((NO_LOOP, ptr::null())) };
}

/// No loop has this number.
const NO_LOOP: u32 = u32::MAX;

/// Marks a loop as the one whose tasks are polled on this thread, until dropped.
///
/// INVARIANT: the pointer in `POLLING` is that of a run queue which a `Polling` on this
/// thread borrows, unless the number is [`NO_LOOP`].
pub(super) struct Polling<'a> {
    before: (u32, *const RunQueue),
    _queue: &'a RunQueue,
}

impl Polling<'_> {
    pub fn new(loop_id: u16, queue: &RunQueue) -> Polling<'_> {
        Polling {
            before: POLLING.replace((loop_id.into(), queue)),
            _queue: queue,
        }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        POLLING.set(self.before);
    }
}

/// The run queue of the loop that polls on this thread now, if it is that one.
///
/// It is the short way, also where the long one is at hand: the pointer comes from a
/// fixed place, so that the processor need not wait for the task that it polls in
/// order to reach the tables. A round of waking and spawning is a chain of such waits.
///
/// # Safety
/// The reference is not used after the poll that this is called from.
#[inline(always)]
pub(super) unsafe fn here<'a>(loop_id: u16) -> Option<&'a RunQueue> {
    let (polled, queue) = POLLING.get();
    if polled != u32::from(loop_id) {
        return None;
    }
    // SAFETY: by the invariant of `Polling` it is alive as long as it is in `POLLING`,
    // which is until that poll ends.
    Some(unsafe { &*queue })
}

/// Wakes a task of the loop whose tasks this thread polls now, which is the way that
/// most wakes go. False when that is not the loop in question.
#[inline]
fn wake_here(loop_id: u16, index: u32) -> bool {
    // SAFETY: it is not used after this function, which the poll waits for.
    let Some(queue) = (unsafe { here(loop_id) }) else {
        return false;
    };
    queue.wake(index);
    true
}

thread_local! {
    /// The loop that runs on this thread now, and its list of tasks to run.
    static CURRENT: RefCell<Option<(u16, Rc<RunQueue>)>> = const { RefCell::new(None) };
}

/// Marks a loop as the one that runs on this thread until dropped.
pub(crate) struct Entered {
    before: Option<(u16, Rc<RunQueue>)>,
}

impl Entered {
    pub fn new(loop_id: u16, queue: Rc<RunQueue>) -> Entered {
        Entered {
            before: CURRENT.replace(Some((loop_id, queue))),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.replace(self.before.take());
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| RawWaker::new(data, &VTABLE),
    wake_number,
    wake_number,
    |_| {},
);

/// The waker of task `index` in loop `loop_id`.
pub(super) fn waker(loop_id: u16, index: u32) -> Waker {
    let number = usize::from(loop_id) << 32 | index as usize;
    let data = std::ptr::without_provenance(number);
    // SAFETY: the data is a number that is never followed as a pointer, so the
    // functions of the table are valid for any data, on any thread, any number
    // of times, and after the task and its loop are gone.
    unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
}

/// Loop and task of a waker made here; None for a foreign waker.
pub(super) fn names(waker: &Waker) -> Option<(u16, u32)> {
    std::ptr::eq(waker.vtable(), &VTABLE).then(|| unpack(waker.data()))
}

fn unpack(data: *const ()) -> (u16, u32) {
    let number = data.addr();
    ((number >> 32) as u16, number as u32)
}

fn wake_number(data: *const ()) {
    let (loop_id, index) = unpack(data);
    if !wake_here(loop_id, index) {
        wake_elsewhere(loop_id, index);
    }
}

/// Wakes a task of a loop that does not poll on this thread now.
#[cold]
#[inline(never)]
fn wake_elsewhere(loop_id: u16, index: u32) {
    let here = CURRENT.try_with(|current| match &*current.borrow() {
        Some((running, queue)) if *running == loop_id => {
            queue.wake(index);
            true
        }
        _ => false,
    });
    // Off the loop's thread, or while this thread's locals are being torn down.
    if !here.unwrap_or(false) {
        remote::wake(loop_id, index);
    }
}

/// A waker to keep for later, cheaper than a clone of it: a waker of an engine's task is
/// kept as the number that it is, and woken without a detour. For types that
/// tasks wait for. The default wakes nothing.
///
/// ```
/// use prony_engine::TaskWaker;
/// use std::cell::RefCell;
/// use std::future::poll_fn;
/// use std::task::Poll;
///
/// prony_engine::run(&Default::default(), |_| async {
///     let kept = RefCell::new(None);
///     poll_fn(|cx| {
///         if let Some(waker) = kept.borrow_mut().take() {
///             let waker: TaskWaker = waker;
///             assert!(waker.will_wake(cx.waker()));
///             return Poll::Ready(());
///         }
///         *kept.borrow_mut() = Some(TaskWaker::of(cx.waker()));
///         TaskWaker::of(cx.waker()).wake();
///         Poll::Pending
///     })
///     .await;
/// })
/// .unwrap();
/// ```
pub struct TaskWaker {
    /// Loop and task; [`NO_TASK`] where the waker is none of a loop's.
    number: u64,
    // In a box, because it is seldom there.
    foreign: Option<Box<Waker>>,
}

/// No loop has so many tasks.
const NO_TASK: u64 = u64::MAX;

impl TaskWaker {
    /// Keeps what wakes as `waker` does.
    #[inline]
    pub fn of(waker: &Waker) -> TaskWaker {
        match names(waker) {
            Some((loop_id, index)) => TaskWaker {
                number: number(loop_id, index),
                foreign: None,
            },
            None => TaskWaker::of_foreign(waker),
        }
    }

    #[cold]
    #[inline(never)]
    fn of_foreign(waker: &Waker) -> TaskWaker {
        TaskWaker {
            number: NO_TASK,
            foreign: Some(Box::new(waker.clone())),
        }
    }

    /// As [`Waker::will_wake`].
    #[inline]
    pub fn will_wake(&self, waker: &Waker) -> bool {
        match (names(waker), &self.foreign) {
            (Some((loop_id, index)), _) => self.number == number(loop_id, index),
            (None, Some(foreign)) => foreign.will_wake(waker),
            (None, None) => false,
        }
    }

    /// As [`Waker::wake`].
    #[inline(always)]
    pub fn wake(self) {
        if self.number == NO_TASK {
            return self.wake_foreign();
        }
        // A task's waker holds no foreign one, so that nothing is dropped here.
        std::mem::forget(self.foreign);
        let (loop_id, index) = ((self.number >> 32) as u16, self.number as u32);
        if !wake_here(loop_id, index) {
            wake_elsewhere(loop_id, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_foreign(self) {
        if let Some(waker) = self.foreign {
            waker.wake();
        }
    }
}

fn number(loop_id: u16, index: u32) -> u64 {
    u64::from(loop_id) << 32 | u64::from(index)
}

impl Default for TaskWaker {
    #[inline]
    fn default() -> TaskWaker {
        TaskWaker {
            number: NO_TASK,
            foreign: None,
        }
    }
}

impl fmt::Debug for TaskWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskWaker")
    }
}
