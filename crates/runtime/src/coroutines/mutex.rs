//! One at a time, or a few at a time, across an `await`.
//! Not for: threads; tasks of one loop that do not wait while they hold something need
//! no lock at all.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::gate::Gate;

/// A value that one task at a time may hold, also while it waits for something.
///
/// Fair: the task that has waited longest is next, and none overtakes. A waiter that is
/// dropped loses its own turn alone. A panic of a holder lets the next one in: the
/// value is as it left it.
///
/// ```
/// use prony_base::Nanos;
/// use prony_runtime::coroutines::Mutex;
/// use std::rc::Rc;
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let total = Rc::new(Mutex::new(0));
///     let (theirs, own) = (total.clone(), handle.clone());
///     let adding = handle.spawn(async move {
///         let mut total = theirs.lock().await;
///         let before = *total;
///         own.sleep(Nanos::from_micros(1)).await;
///         *total = before + 1;
///     });
///     handle.yield_now().await;
///     *total.lock().await += 1;
///     adding.await;
///     assert_eq!(Rc::into_inner(total).unwrap().into_inner(), 2);
/// })
/// .unwrap();
/// ```
pub struct Mutex<T> {
    gate: Gate,
    value: RefCell<T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex {
            gate: Gate::new(1, 1),
            value: RefCell::new(value),
        }
    }

    /// Locks it, once no other task holds it.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        // The gate is never closed, so this is no error.
        let _ = self.gate.enter().await;
        self.guard()
    }

    /// Locks it, unless a task holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.gate.try_enter().then(|| self.guard())
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            // Free, because the gate lets one in at a time.
            value: Some(self.value.borrow_mut()),
            gate: &self.gate,
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, waiting) = (self.gate.permits() == 0, self.waiting());
        write!(f, "Mutex(held: {held}, waiting: {waiting})")
    }
}

/// Holds a [`Mutex`]; dropping it lets the next one in.
#[must_use = "a mutex is held for as long as its guard is there"]
pub struct MutexGuard<'a, T> {
    /// There until it is dropped.
    value: Option<RefMut<'a, T>>,
    gate: &'a Gate,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("there until it is dropped")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("there until it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // First, because the next one may be let in by this very call.
        self.value = None;
        self.gate.give();
    }
}

/// A number of permits, for things of which only so many may go on at a time. Fair, as
/// [`Mutex`] is.
///
/// ```
/// use prony_runtime::coroutines::Semaphore;
///
/// prony_engine::run(&Default::default(), |_| async {
///     let two = Semaphore::new(2);
///     let first = two.acquire().await;
///     let _second = two.acquire().await;
///     assert!(two.try_acquire().is_none());
///     drop(first);
///     assert!(two.try_acquire().is_some());
/// })
/// .unwrap();
/// ```
pub struct Semaphore {
    gate: Gate,
}

impl Semaphore {
    /// So many permits.
    pub fn new(permits: usize) -> Semaphore {
        Semaphore {
            gate: Gate::new(permits, permits),
        }
    }

    /// Waits for a permit.
    pub async fn acquire(&self) -> Permit<'_> {
        // The gate is never closed, so this is no error.
        let _ = self.gate.enter().await;
        Permit { gate: &self.gate }
    }

    /// A permit, if one is free.
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.gate
            .try_enter()
            .then_some(())
            .map(|()| Permit { gate: &self.gate })
    }

    /// Permits that are free.
    pub fn free(&self) -> usize {
        self.gate.permits()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.gate.waiting()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (free, waiting) = (self.free(), self.waiting());
        write!(f, "Semaphore(free: {free}, waiting: {waiting})")
    }
}

/// A permit of a [`Semaphore`]; dropping it gives it back.
#[must_use = "a permit is given back when it is dropped"]
pub struct Permit<'a> {
    gate: &'a Gate,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.gate.give();
    }
}
