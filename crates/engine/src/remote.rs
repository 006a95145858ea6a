//! How another thread wakes a task of a loop: a list of task numbers behind a
//! lock, and one event descriptor that ends the loop's wait.
//!
//! A waker is only a number (loop and task): cloning and dropping it costs
//! nothing, and a stale one at worst polls a stranger once for nothing, which
//! every future allows. Loops are found through one registry of the process.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{RawWaker, RawWakerVTable, Waker};

use rustix::event::{EventfdFlags, eventfd};

use crate::tasks::{self, RunQueue};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a waker packs its loop and its task into one 64-bit pointer");

/// Loops that may be alive in one process at a time.
const LOOPS_MAX: usize = 1 << 16;

/// The side of a loop that other threads see.
pub(crate) struct Remote {
    woken: Mutex<Vec<u32>>,
    pending: AtomicBool,
    /// None for a simulated loop, which never sleeps.
    event: Option<OwnedFd>,
}

impl Remote {
    pub fn with_event() -> rustix::io::Result<Arc<Remote>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Remote::new(Some(event)))
    }

    pub fn without_event() -> Arc<Remote> {
        Remote::new(None)
    }

    fn new(event: Option<OwnedFd>) -> Arc<Remote> {
        Arc::new(Remote {
            woken: Mutex::new(Vec::new()),
            pending: AtomicBool::new(false),
            event,
        })
    }

    /// The descriptor that becomes readable when another thread has woken a task.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.event.as_ref().map(AsFd::as_fd)
    }

    /// Makes the event descriptor unreadable again.
    pub fn clear_event(&self) {
        if let Some(event) = &self.event {
            let mut count = [0_u8; 8];
            // An error means that it was not readable, which is what is wanted.
            let _ = rustix::io::read(event, &mut count[..]);
        }
    }

    fn wake(&self, task: u32) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.push(task);
        drop(woken);
        if !self.pending.swap(true, Ordering::AcqRel)
            && let Some(event) = &self.event
        {
            // The counter cannot overflow: one write per drain.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// True when [`drain`](Remote::drain) would yield something.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Moves the tasks that other threads woke to the end of `out`.
    pub fn drain(&self, out: &mut Vec<u32>) {
        // Before the lock: a wake after this writes the event again.
        self.pending.store(false, Ordering::Release);
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        out.append(&mut woken);
    }
}

static LOOPS: RwLock<Vec<Option<Arc<Remote>>>> = RwLock::new(Vec::new());

/// A loop's entry in the registry; taken out when dropped.
pub(crate) struct Registration {
    pub loop_id: u16,
}

impl Registration {
    pub fn new(remote: Arc<Remote>) -> Option<Registration> {
        let mut loops = LOOPS.write().unwrap_or_else(PoisonError::into_inner);
        let free = loops.iter().position(Option::is_none);
        let index = match free {
            Some(index) => {
                loops[index] = Some(remote);
                index
            }
            None if loops.len() < LOOPS_MAX => {
                loops.push(Some(remote));
                loops.len() - 1
            }
            None => return None,
        };
        Some(Registration {
            loop_id: index as u16,
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut loops = LOOPS.write().unwrap_or_else(PoisonError::into_inner);
        loops[usize::from(self.loop_id)] = None;
    }
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
pub(crate) fn waker(loop_id: u16, index: u32) -> Waker {
    let number = usize::from(loop_id) << 32 | index as usize;
    let data = std::ptr::without_provenance(number);
    // SAFETY: the data is a number that is never followed as a pointer, so the
    // functions of the table are valid for any data, on any thread, any number
    // of times, and after the task and its loop are gone.
    unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
}

/// Loop and task of a waker made here; None for a stranger's.
pub(crate) fn names(waker: &Waker) -> Option<(u16, u32)> {
    std::ptr::eq(waker.vtable(), &VTABLE).then(|| unpack(waker.data()))
}

fn unpack(data: *const ()) -> (u16, u32) {
    let number = data.addr();
    ((number >> 32) as u16, number as u32)
}

fn wake_number(data: *const ()) {
    let (loop_id, index) = unpack(data);
    if !tasks::wake_here(loop_id, index) {
        wake_elsewhere(loop_id, index);
    }
}

/// Wakes a task of a loop that does not poll on this thread now.
#[cold]
#[inline(never)]
pub(crate) fn wake_elsewhere(loop_id: u16, index: u32) {
    let here = CURRENT.try_with(|current| match &*current.borrow() {
        Some((running, queue)) if *running == loop_id => {
            queue.wake(index);
            true
        }
        _ => false,
    });
    // Off the loop's thread, or while this thread's locals are being torn down.
    if !here.unwrap_or(false) {
        let loops = LOOPS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(remote)) = loops.get(usize::from(loop_id)) {
            remote.wake(index);
        }
    }
}
