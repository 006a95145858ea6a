//! Places of tasks, and the ring of those that are due.
//! Not for: polling (`tasks`), the tasks themselves (`raw`), whose type is a parameter.
//!
//! A place has a number, by which it is woken, and a generation, so that a
//! [`TaskId`] kept for too long names nothing instead of another task.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr;

/// The place of the main task, which is not in the table and may borrow.
pub(super) const MAIN: u32 = 0;

/// Names one task of a loop, also after it has ended: then it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    index: u32,
    generation: u32,
}

/// Most places, so that the ring's size fits its counters.
const PLACES_MAX: u32 = 1 << 31;

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaceState {
    Free,
    /// A task is here, or is being polled.
    Taken,
    /// A task is being polled, and is to be dropped afterwards.
    Cancelled,
}

struct Place<T> {
    /// None while it is being polled, and where none is.
    task: Option<T>,
    generation: u32,
    used: PlaceState,
    is_due: bool,
}

/// INVARIANT: `due` has a power of two of entries, `mask` + 1, and at least as many as
/// there are places. A place's number lies between `first` and `end` exactly when it
/// is marked due, and then once; so the ring never runs over, and what is on it names
/// places. There are never fewer places than before.
struct Lists<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    due: Vec<u32>,
    mask: u32,
    first: u32,
    end: u32,
}

const DUE_AT_FIRST: u32 = 64;

/// INVARIANT: `lists` is reached through `with` only, whose closures are in this
/// file and run no code from elsewhere: they drop no task, and call no waker. So there is
/// one reference to them at a time.
pub(super) struct Table<T> {
    lists: UnsafeCell<Lists<T>>,
}

impl<T> Table<T> {
    /// One place, for the main task.
    pub fn new() -> Table<T> {
        let mut lists = Lists {
            places: Vec::new(),
            free: Vec::new(),
            due: vec![0; DUE_AT_FIRST as usize],
            mask: DUE_AT_FIRST - 1,
            first: 0,
            end: 0,
        };
        let main = lists.grow();
        lists.places[main as usize].used = PlaceState::Taken;
        Table {
            lists: UnsafeCell::new(lists),
        }
    }

    #[inline(always)]
    fn with<R>(&self, change: impl FnOnce(&mut Lists<T>) -> R) -> R {
        // SAFETY: by the invariant no other reference is alive.
        change(unsafe { &mut *self.lists.get() })
    }

    /// Makes a task due. One that is not there is skipped later.
    #[inline(always)]
    pub fn wake(&self, index: u32) {
        self.with(|lists| {
            if (index as usize) < lists.places.len() {
                // SAFETY: there is such a place.
                unsafe { lists.wake(index) };
            }
        });
    }

    pub fn is_any_due(&self) -> bool {
        self.with(|lists| lists.first != lists.end)
    }

    /// Takes a task in, due at once.
    #[inline(always)]
    pub fn add(&self, task: T) -> TaskId {
        self.with(move |lists| {
            let index = match lists.free.pop() {
                Some(index) => index,
                None => lists.grow(),
            };
            // SAFETY: what is free, or has just been made, is a place.
            let place = unsafe { lists.place(index) };
            debug_assert!(place.task.is_none() && place.used == PlaceState::Free);
            // Forgotten, not dropped: a free place holds none.
            std::mem::forget(place.task.replace(task));
            place.used = PlaceState::Taken;
            let generation = place.generation;
            // SAFETY: as above.
            unsafe { lists.wake(index) };
            TaskId { index, generation }
        })
    }

    /// The first place that is due, and its task, taken out to be polled. None for
    /// the main task, and where the task has ended.
    #[inline(always)]
    pub fn next(&self) -> Option<(Taken, Option<T>)> {
        self.with(|lists| {
            if lists.first == lists.end {
                return None;
            }
            let at = (lists.first & lists.mask) as usize;
            // SAFETY: by the invariant the ring has `mask` + 1 entries.
            let index = unsafe { *lists.due.get_unchecked(at) };
            lists.first = lists.first.wrapping_add(1);
            // SAFETY: by the invariant what is due is a place.
            let place = unsafe { lists.place(index) };
            place.is_due = false;
            Some((Taken(index), place.task.take()))
        })
    }

    /// Whether a task that was taken out has its place still, and was not cancelled.
    #[inline(always)]
    pub fn is_wanted(&self, taken: Taken) -> bool {
        // SAFETY: a `Taken` of this table names a place.
        self.with(|lists| unsafe { lists.place(taken.0) }.used == PlaceState::Taken)
    }

    /// Puts a task back after a poll.
    #[inline(always)]
    pub fn put_back(&self, taken: Taken, task: T) {
        let task = ManuallyDrop::new(Some(task));
        self.with(|lists| {
            debug_assert!(lists.places[taken.0 as usize].task.is_none());
            // SAFETY: a `Taken` of this table names a place; nothing is there to
            // be dropped, because what was there was taken out.
            unsafe {
                ptr::write(
                    &mut lists.place(taken.0).task,
                    ManuallyDrop::into_inner(task),
                )
            };
        });
    }

    /// Frees the place of a task that was taken out.
    #[inline(always)]
    pub fn release(&self, taken: Taken) {
        // SAFETY: a `Taken` of this table names a place.
        self.with(move |lists| unsafe { lists.release(taken.0) });
    }

    /// Whether there is such a task; and the task, unless it is being polled.
    pub fn cancel(&self, id: TaskId) -> (bool, Option<T>) {
        self.with(|lists| {
            let Some(place) = lists.places.get_mut(id.index as usize) else {
                return (false, None);
            };
            let is_there = place.used == PlaceState::Taken && place.generation == id.generation;
            if !is_there || id.index == MAIN {
                return (false, None);
            }
            let task = place.task.take();
            match task {
                // SAFETY: it was just looked at.
                Some(_) => unsafe { lists.release(id.index) },
                None => place.used = PlaceState::Cancelled,
            }
            (true, task)
        })
    }

    /// Tasks, without the main task.
    pub fn len(&self) -> usize {
        self.with(|lists| lists.places.len() - lists.free.len() - 1)
    }

    /// The tasks that are there now, without the main task, lowest place first.
    pub fn ids(&self) -> Vec<TaskId> {
        self.with(|lists| {
            let places = lists.places.iter().enumerate().skip(MAIN as usize + 1);
            let taken = places.filter(|(_, place)| place.used == PlaceState::Taken);
            let id = |(index, place): (usize, &Place<T>)| TaskId {
                index: index as u32,
                generation: place.generation,
            };
            taken.map(id).collect()
        })
    }
}

/// The place of a task that was taken out to be polled.
///
/// INVARIANT: of the table that it is given back to; made by `next` only.
#[derive(Clone, Copy)]
pub(super) struct Taken(u32);

impl Taken {
    pub fn index(self) -> u32 {
        self.0
    }
}

impl<T> Lists<T> {
    /// # Safety
    /// There is such a place.
    #[inline(always)]
    unsafe fn place(&mut self, index: u32) -> &mut Place<T> {
        debug_assert!((index as usize) < self.places.len());
        // SAFETY: as the caller says.
        unsafe { self.places.get_unchecked_mut(index as usize) }
    }

    /// # Safety
    /// There is such a place.
    #[inline(always)]
    unsafe fn wake(&mut self, index: u32) {
        // SAFETY: as the caller says.
        let place = unsafe { self.place(index) };
        if place.is_due {
            return;
        }
        place.is_due = true;
        debug_assert!(self.end.wrapping_sub(self.first) <= self.mask);
        let at = (self.end & self.mask) as usize;
        // SAFETY: by the invariant the ring has `mask` + 1 entries.
        unsafe { *self.due.get_unchecked_mut(at) = index };
        self.end = self.end.wrapping_add(1);
    }

    /// # Safety
    /// There is such a place.
    #[inline(always)]
    unsafe fn release(&mut self, index: u32) {
        // SAFETY: as the caller says.
        let place = unsafe { self.place(index) };
        debug_assert!(place.task.is_none() && place.used != PlaceState::Free);
        place.used = PlaceState::Free;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
    }

    /// A new place. By the C convention because nothing may unwind from here, into a caller
    /// that holds a task: no memory and too many tasks end the process.
    #[cold]
    #[inline(never)]
    extern "C" fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.places.len())
            .ok()
            .filter(|&index| index < PLACES_MAX)
            .expect("a loop has at most 2^31 tasks");
        if self.places.len() == self.due.len() {
            self.grow_ring();
        }
        self.places.push(Place {
            task: None,
            generation: 0,
            used: PlaceState::Free,
            is_due: false,
        });
        index
    }

    /// Doubles the ring; what is due keeps its order.
    fn grow_ring(&mut self) {
        let waiting = self.end.wrapping_sub(self.first);
        let entry = |n: u32| self.due[(self.first.wrapping_add(n) & self.mask) as usize];
        let mut due: Vec<u32> = (0..waiting).map(entry).collect();
        due.resize(self.due.len() * 2, 0);
        self.mask = self.mask * 2 + 1;
        debug_assert!(due.len().is_power_of_two() && due.len() - 1 == self.mask as usize);
        (self.due, self.first, self.end) = (due, 0, waiting);
    }
}
