//! Wakes of a loop's tasks by other threads: a list of task numbers behind a
//! lock, and one event descriptor that ends the loop's wait, written only while it waits.
//!
//! Loops are found through one registry of the process. Not for: wakers (`tasks`), which
//! come here for a loop of another thread.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64 as Counter;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use rustix::event::{EventfdFlags, eventfd};

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, fence};

/// Loops that may be alive in one process at a time.
const LOOPS_MAX: usize = 1 << 16;

/// Which tasks other threads have woken, and whether the loop sleeps.
///
/// A waker first notes the task, then looks whether the loop sleeps; the loop first
/// notes that it sleeps, then looks whether a task was noted. With a fence between the
/// two steps on both sides at least one sees the other, so that no wake is lost; and a
/// loop that is awake costs its wakers no system call.
#[derive(Debug)]
struct Wakes {
    /// One more than the task that was woken first, or zero; and [`LISTED`].
    first: OwnLine<AtomicU64>,
    /// The others, when several are woken between two drains.
    others: OwnLine<Mutex<Vec<u32>>>,
    asleep: AtomicBool,
}

/// Set in `first` when there are others.
const LISTED: u64 = 1 << 63;

/// Has its cache lines to itself, so that a loop that spins on one thing does not
/// slow down a thread that changes another. Two lines, because processors fetch pairs.
#[repr(align(128))]
#[derive(Debug)]
struct OwnLine<T>(T);

impl Wakes {
    fn new() -> Wakes {
        Wakes {
            first: OwnLine(AtomicU64::new(0)),
            others: OwnLine(Mutex::new(Vec::new())),
            asleep: AtomicBool::new(false),
        }
    }

    /// Notes a task. True for the one waker that has to end the loop's sleep.
    fn add(&self, task: u32) -> bool {
        let number = u64::from(task) + 1;
        let noted = self
            .first
            .0
            .compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed);
        if noted.is_err() {
            let mut others = self.others.0.lock().unwrap_or_else(PoisonError::into_inner);
            others.push(task);
            drop(others);
            self.first.0.fetch_or(LISTED, Ordering::AcqRel);
        }
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel)
    }

    fn is_pending(&self) -> bool {
        self.first.0.load(Ordering::Acquire) != 0
    }

    /// False when the loop must not sleep, because a task was noted.
    fn fall_asleep(&self) -> bool {
        // Exchanged, not stored: it then comes after what wakers did with it before.
        self.asleep.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.is_pending() {
            self.wake_up();
            return false;
        }
        true
    }

    fn wake_up(&self) {
        self.asleep.swap(false, Ordering::AcqRel);
    }

    fn drain(&self, out: &mut Vec<u32>) {
        let noted = self.first.0.swap(0, Ordering::AcqRel);
        if let Some(task) = (noted & !LISTED).checked_sub(1) {
            out.push(task as u32);
        }
        if noted & LISTED != 0 {
            // A waker that adds to the list after this sets the flag after this.
            let mut others = self.others.0.lock().unwrap_or_else(PoisonError::into_inner);
            out.append(&mut others);
        }
    }
}

/// The side of a loop that other threads see.
pub(crate) struct Remote {
    wakes: Wakes,
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
            wakes: Wakes::new(),
            event,
        })
    }

    /// The descriptor that becomes readable when another thread ends the loop's sleep.
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
        if self.wakes.add(task)
            && let Some(event) = &self.event
        {
            // The counter cannot overflow in the life of a process: one for each sleep.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// True when [`drain`](Remote::drain) would yield something.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.wakes.is_pending()
    }

    /// The loop is about to wait. False when it must not, because a task was woken.
    pub fn fall_asleep(&self) -> bool {
        self.wakes.fall_asleep()
    }

    /// The loop waits no longer; from now on nothing writes its event descriptor.
    pub fn wake_up(&self) {
        self.wakes.wake_up();
    }

    /// Moves the tasks that other threads woke to the end of `out`.
    pub fn drain(&self, out: &mut Vec<u32>) {
        self.wakes.drain(out);
    }
}

static LOOPS: RwLock<Vec<Option<Arc<Remote>>>> = RwLock::new(Vec::new());

/// Changes with every change of `LOOPS`.
static GENERATION: Counter = Counter::new(0);

thread_local! {
    /// The loop that this thread woke last and the generation in which it was found,
    /// so that threads that wake each other need not write the registry's lock.
    static FOUND: RefCell<(u64, u16, Weak<Remote>)> = const { RefCell::new((0, 0, Weak::new())) };
}

/// The side that other threads see of a loop that is alive.
fn find(loop_id: u16) -> Option<Arc<Remote>> {
    // Read before the registry: at worst what is found is taken for older than it is.
    let generation = GENERATION.load(Ordering::Acquire);
    let known = FOUND.try_with(|found| {
        let found = found.borrow();
        let is_current = found.0 == generation && found.1 == loop_id;
        if is_current { found.2.upgrade() } else { None }
    });
    if let Ok(Some(remote)) = known {
        return Some(remote);
    }
    let loops = LOOPS.read().unwrap_or_else(PoisonError::into_inner);
    let remote = loops.get(usize::from(loop_id))?.clone()?;
    drop(loops);
    // An error means that this thread's locals are being torn down.
    let _ = FOUND.try_with(|found| {
        found.replace((generation, loop_id, Arc::downgrade(&remote)));
    });
    Some(remote)
}

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
        GENERATION.fetch_add(1, Ordering::AcqRel);
        Some(Registration {
            loop_id: index as u16,
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut loops = LOOPS.write().unwrap_or_else(PoisonError::into_inner);
        loops[usize::from(self.loop_id)] = None;
        GENERATION.fetch_add(1, Ordering::AcqRel);
    }
}

/// Wakes a task of a loop, from any thread. Nothing happens where the loop is gone.
pub(crate) fn wake(loop_id: u16, index: u32) {
    if let Some(remote) = find(loop_id) {
        remote.wake(index);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    /// A counter like that of an event descriptor.
    #[derive(Default)]
    struct Event {
        count: Mutex<u64>,
        changed: Condvar,
    }

    impl Event {
        fn write(&self) {
            *self.count.lock().unwrap() += 1;
            self.changed.notify_one();
        }

        /// Sleeps until it was written. A model without a write is a deadlock,
        /// which loom reports.
        fn wait(&self) {
            let mut count = self.count.lock().unwrap();
            while *count == 0 {
                count = self.changed.wait(count).unwrap();
            }
            *count = 0;
        }
    }

    /// One loop: drains, and sleeps when there was nothing, until so many tasks came.
    fn run_until(wakes: &Wakes, event: &Event, count: usize) -> Vec<u32> {
        let mut woken = Vec::new();
        while woken.len() < count {
            if wakes.fall_asleep() {
                event.wait();
            }
            wakes.wake_up();
            if wakes.is_pending() {
                wakes.drain(&mut woken);
            }
        }
        woken
    }

    fn model(wakers: u32, each: u32) {
        let mut all_orders = loom::model::Builder::new();
        // More than three make it last hours, and are rarely what it takes.
        all_orders.preemption_bound = Some(3);
        all_orders.check(move || {
            let shared = Arc::new((Wakes::new(), Event::default()));
            let threads: Vec<_> = (0..wakers)
                .map(|waker| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        for task in 0..each {
                            if shared.0.add(waker * 10 + task) {
                                shared.1.write();
                            }
                        }
                    })
                })
                .collect();
            let mut woken = run_until(&shared.0, &shared.1, (wakers * each) as usize);
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            woken.sort_unstable();
            let all = (0..wakers).flat_map(|waker| (0..each).map(move |task| waker * 10 + task));
            assert_eq!(woken, all.collect::<Vec<_>>());
        });
    }

    #[test]
    fn loom_no_wake_of_one_thread_is_lost() {
        model(1, 2);
    }

    #[test]
    fn loom_no_wake_of_two_threads_is_lost_or_doubled() {
        model(2, 1);
    }
}
