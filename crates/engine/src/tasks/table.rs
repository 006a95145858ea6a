//! Places of tasks, and the ring of those that are due.
//! Not for: polling (`tasks`), the tasks themselves (`raw`).
//!
//! A place has a number, by which it is woken, and a generation, so that a
//! [`TaskId`] kept for too long names nothing instead of a stranger.

use std::cell::UnsafeCell;

use super::MAIN;
use super::raw::Listing;

/// Names one task of a loop, also after it has ended: then it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    index: u32,
    generation: u32,
}

impl TaskId {
    pub(super) const NONE: TaskId = TaskId {
        index: u32::MAX,
        generation: 0,
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// A task is here, or is being polled.
    Taken,
    /// A task is being polled, and is to be dropped afterwards.
    Cancelled,
}

struct Place {
    /// None while it is being polled, and where none is.
    task: Option<Listing>,
    generation: u32,
    used: Use,
    is_due: bool,
}

/// INVARIANT: `due` has a power of two of entries, and at least as many as there
/// are places. A place's number stands between `first` and `end` exactly when it is
/// marked due, and then once; so the ring never runs over.
struct Lists {
    places: Vec<Place>,
    free: Vec<u32>,
    due: Vec<u32>,
    first: u32,
    end: u32,
}

/// INVARIANT: `lists` is reached through `with` only, whose closures stand in this
/// file and run nobody else's code: they drop no task, and wake nobody. So there is
/// one reference to them at a time.
pub(super) struct Table {
    lists: UnsafeCell<Lists>,
}

impl Table {
    /// One place, for the main task.
    pub fn new() -> Table {
        let main = Place {
            task: None,
            generation: 0,
            used: Use::Taken,
            is_due: false,
        };
        Table {
            lists: UnsafeCell::new(Lists {
                places: vec![main],
                free: Vec::new(),
                due: vec![0; 64],
                first: 0,
                end: 0,
            }),
        }
    }

    #[inline(always)]
    fn with<R>(&self, change: impl FnOnce(&mut Lists) -> R) -> R {
        // SAFETY: by the invariant no other reference is alive.
        change(unsafe { &mut *self.lists.get() })
    }

    /// Makes a task due.
    #[inline]
    pub fn wake(&self, index: u32) {
        self.with(|lists| lists.wake(index));
    }

    pub fn is_any_due(&self) -> bool {
        self.with(|lists| lists.first != lists.end)
    }

    /// Takes a task in, due at once.
    #[inline]
    pub fn add(&self, task: Listing) -> TaskId {
        self.with(|lists| {
            let index = match lists.free.pop() {
                Some(index) => index,
                None => lists.grow(),
            };
            let place = &mut lists.places[index as usize];
            // Forgotten, not dropped: a free place holds none.
            std::mem::forget(place.task.replace(task));
            place.used = Use::Taken;
            let generation = place.generation;
            lists.wake(index);
            TaskId { index, generation }
        })
    }

    /// The first place that is due, and its task, taken out to be polled. None for
    /// the main task, and where the task has ended.
    #[inline]
    pub fn next(&self) -> Option<(u32, Option<Listing>)> {
        self.with(|lists| {
            if lists.first == lists.end {
                return None;
            }
            let mask = lists.due.len() - 1;
            let index = lists.due[lists.first as usize & mask];
            lists.first = lists.first.wrapping_add(1);
            let place = &mut lists.places[index as usize];
            place.is_due = false;
            Some((index, place.task.take()))
        })
    }

    /// Puts a task back after a poll; or gives it back, when it was cancelled, and
    /// its place free.
    #[inline]
    pub fn put_back(&self, index: u32, task: Listing) -> Option<Listing> {
        self.with(|lists| {
            let place = &mut lists.places[index as usize];
            if place.used == Use::Taken {
                std::mem::forget(place.task.replace(task));
                return None;
            }
            lists.vacate(index);
            Some(task)
        })
    }

    /// Gives the place of a task that was taken out free.
    #[inline]
    pub fn vacate(&self, index: u32) {
        self.with(|lists| lists.vacate(index));
    }

    /// Whether there is such a task; and the task, unless it is being polled.
    pub fn cancel(&self, id: TaskId) -> (bool, Option<Listing>) {
        self.with(|lists| {
            let Some(place) = lists.places.get_mut(id.index as usize) else {
                return (false, None);
            };
            let is_there = place.used == Use::Taken && place.generation == id.generation;
            if !is_there || id.index == MAIN {
                return (false, None);
            }
            let task = place.task.take();
            match task {
                Some(_) => lists.vacate(id.index),
                None => place.used = Use::Cancelled,
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
            let taken = places.filter(|(_, place)| place.used == Use::Taken);
            let id = |(index, place): (usize, &Place)| TaskId {
                index: index as u32,
                generation: place.generation,
            };
            taken.map(id).collect()
        })
    }
}

impl Lists {
    #[inline]
    fn wake(&mut self, index: u32) {
        let Some(place) = self.places.get_mut(index as usize) else {
            return;
        };
        if place.is_due {
            return;
        }
        place.is_due = true;
        let mask = self.due.len() - 1;
        self.due[self.end as usize & mask] = index;
        self.end = self.end.wrapping_add(1);
    }

    #[inline]
    fn vacate(&mut self, index: u32) {
        let place = &mut self.places[index as usize];
        place.used = Use::Free;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
    }

    /// A new place.
    #[cold]
    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.places.len()).expect("a loop has under 2^32 tasks");
        self.places.push(Place {
            task: None,
            generation: 0,
            used: Use::Free,
            is_due: false,
        });
        if self.places.len() > self.due.len() {
            self.grow_ring();
        }
        index
    }

    /// Doubles the ring; what is due keeps its order.
    fn grow_ring(&mut self) {
        let mask = self.due.len() - 1;
        let waiting = self.end.wrapping_sub(self.first);
        let mut due: Vec<u32> = (0..waiting)
            .map(|n| self.due[self.first.wrapping_add(n) as usize & mask])
            .collect();
        due.resize(self.due.len() * 2, 0);
        (self.due, self.first, self.end) = (due, 0, waiting);
    }
}
