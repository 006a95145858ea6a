//! One at a time, or a few at a time, across an `await`.
//! Not for: threads; tasks of one loop that do not wait while they hold something need
//! no lock at all.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::permits::Permits;

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
    permits: Permits,
    value: RefCell<T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex {
            permits: Permits::new(1, 1),
            value: RefCell::new(value),
        }
    }

    /// Locks it, once no other task holds it.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        // The permits never end, so this is no error.
        let _ = self.permits.acquire().await;
        self.guard()
    }

    /// Locks it, unless a task holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.permits.try_acquire().then(|| self.guard())
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            // Free, because there is one permit.
            value: Some(self.value.borrow_mut()),
            permits: &self.permits,
        }
    }

    /// The number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.permits.waiting()
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
        let (held, waiting) = (self.permits.available() == 0, self.waiting());
        write!(f, "Mutex(held: {held}, waiting: {waiting})")
    }
}

/// Holds a [`Mutex`]; dropping it lets the next one in.
#[must_use = "a mutex is held for as long as its guard is there"]
pub struct MutexGuard<'a, T> {
    /// There until it is dropped.
    value: Option<RefMut<'a, T>>,
    permits: &'a Permits,
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
        self.permits.release();
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
    permits: Permits,
}

impl Semaphore {
    /// So many permits.
    pub fn new(permits: usize) -> Semaphore {
        Semaphore {
            permits: Permits::new(permits, permits),
        }
    }

    /// Waits for a permit.
    pub async fn acquire(&self) -> Permit<'_> {
        // The permits never end, so this is no error.
        let _ = self.permits.acquire().await;
        Permit {
            permits: &self.permits,
        }
    }

    /// A permit, if one is free.
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.permits.try_acquire().then_some(()).map(|()| Permit {
            permits: &self.permits,
        })
    }

    /// Permits that are free.
    pub fn free(&self) -> usize {
        self.permits.available()
    }

    /// The number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.permits.waiting()
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
    permits: &'a Permits,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.permits.release();
    }
}
