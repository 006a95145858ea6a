//! A first-in first-out queue of waiting tasks, which any of them may leave.
//! Not for: deciding which may go on (`permits`, `ManualEvent`).
//!
//! A waiter has a ticket, the number of its place. One that is released is marked so and
//! leaves the queue, but keeps the place until it has seen that, or is dropped without
//! having seen it and must pass on what it was given.
//!
//! Nothing is borrowed when these functions return; wakers are given back to be woken
//! or dropped then, because both may run any code.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use prony_engine::TaskWaker;

/// The place of one waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u32);

const NONE: u32 = u32::MAX;
/// The place in front of the list.
const SINGLE: Ticket = Ticket(NONE);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    Released,
}

/// Wakers in the order in which they came.
///
/// Nearly always there is one waiter, so there is one place in front of the list.
///
/// INVARIANT: that place is taken only by a task that comes while no other waits; so the
/// one that waits there came before all on the list.
pub(super) struct Waiters {
    state: Cell<State>,
    single: Cell<TaskWaker>,
    /// Waiters on the list.
    listed: Cell<usize>,
    list: RefCell<List>,
}

impl Waiters {
    pub fn new() -> Waiters {
        Waiters {
            state: Cell::new(State::Free),
            single: Cell::default(),
            listed: Cell::new(0),
            list: RefCell::new(List::new()),
        }
    }

    pub fn len(&self) -> usize {
        self.listed.get() + usize::from(self.state.get() == State::Waiting)
    }

    /// Waits behind all others.
    #[inline(always)]
    pub fn join(&self, waker: &Waker) -> Ticket {
        let waker = TaskWaker::of(waker);
        if self.state.get() != State::Free || self.listed.get() > 0 {
            return self.join_list(waker);
        }
        self.state.set(State::Waiting);
        // Forgotten, not dropped: a free place holds none.
        std::mem::forget(self.single.replace(waker));
        SINGLE
    }

    #[cold]
    fn join_list(&self, waker: TaskWaker) -> Ticket {
        self.listed.set(self.listed.get() + 1);
        Ticket(self.list.borrow_mut().join(waker))
    }

    /// Releases the first.
    #[inline]
    #[must_use]
    pub fn release_first(&self) -> Option<TaskWaker> {
        if self.state.get() != State::Waiting {
            return self.release_first_listed();
        }
        self.state.set(State::Released);
        Some(self.single.take())
    }

    #[inline]
    fn release_first_listed(&self) -> Option<TaskWaker> {
        let left = self.listed.get().checked_sub(1)?;
        self.listed.set(left);
        self.list.borrow_mut().release_first()
    }

    /// True, and the place is free, when the holder of the ticket was released. Else it
    /// waits on with this waker.
    #[inline(always)]
    pub fn poll_released(&self, ticket: Ticket, waker: &Waker) -> bool {
        if ticket != SINGLE {
            return self.poll_released_listed(ticket, waker);
        }
        if self.state.get() == State::Released {
            self.state.set(State::Free);
            return true;
        }
        drop(self.single.replace(TaskWaker::of(waker)));
        false
    }

    #[cold]
    fn poll_released_listed(&self, ticket: Ticket, waker: &Waker) -> bool {
        let waker = TaskWaker::of(waker);
        let (was_released, before) = self.list.borrow_mut().poll_released(ticket.0, waker);
        drop(before);
        was_released
    }

    /// Ends the wait. True when it had been released already and had not seen it.
    pub fn leave(&self, ticket: Ticket) -> bool {
        if ticket == SINGLE {
            drop(self.single.take());
            return self.state.replace(State::Free) == State::Released;
        }
        let (was_released, waker) = self.list.borrow_mut().leave(ticket.0);
        if !was_released {
            self.listed.set(self.listed.get() - 1);
        }
        drop(waker);
        was_released
    }
}

struct Place {
    waker: TaskWaker,
    state: State,
    before: u32,
    after: u32,
}

/// A list in numbered places. Adding, leaving and taking the first are O(1), and
/// allocate nothing once there are places enough.
///
/// INVARIANT: exactly the waiting places are linked from `first` to `last`; exactly
/// the free ones are linked from `free` on.
struct List {
    places: Vec<Place>,
    free: u32,
    first: u32,
    last: u32,
}

impl List {
    fn new() -> List {
        List {
            places: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
        }
    }

    fn join(&mut self, waker: TaskWaker) -> u32 {
        let place = Place {
            waker,
            state: State::Waiting,
            before: self.last,
            after: NONE,
        };
        let index = self.put(place);
        match self.places.get_mut(self.last as usize) {
            Some(last) => last.after = index,
            None => self.first = index,
        }
        self.last = index;
        index
    }

    fn put(&mut self, place: Place) -> u32 {
        let index = self.free;
        if let Some(free) = self.places.get_mut(index as usize) {
            self.free = free.after;
            *free = place;
            return index;
        }
        self.places.push(place);
        u32::try_from(self.places.len() - 1)
            .ok()
            .filter(|&index| index < NONE)
            .expect("under 2^32 tasks wait")
    }

    fn release_first(&mut self) -> Option<TaskWaker> {
        let index = self.first;
        let place = self.places.get_mut(index as usize)?;
        place.state = State::Released;
        let waker = std::mem::take(&mut place.waker);
        self.unlink(index);
        Some(waker)
    }

    /// Whether it was released, and a waker to drop.
    fn poll_released(&mut self, index: u32, waker: TaskWaker) -> (bool, TaskWaker) {
        let place = &mut self.places[index as usize];
        if place.state == State::Released {
            self.free(index);
            return (true, waker);
        }
        (false, std::mem::replace(&mut place.waker, waker))
    }

    /// Whether it was released, and a waker to drop.
    fn leave(&mut self, index: u32) -> (bool, TaskWaker) {
        let place = &mut self.places[index as usize];
        let was_released = place.state == State::Released;
        let waker = std::mem::take(&mut place.waker);
        if !was_released {
            self.unlink(index);
        }
        self.free(index);
        (was_released, waker)
    }

    fn unlink(&mut self, index: u32) {
        let place = &self.places[index as usize];
        let (before, after) = (place.before, place.after);
        match self.places.get_mut(before as usize) {
            Some(place) => place.after = after,
            None => self.first = after,
        }
        match self.places.get_mut(after as usize) {
            Some(place) => place.before = before,
            None => self.last = before,
        }
    }

    fn free(&mut self, index: u32) {
        let place = &mut self.places[index as usize];
        place.state = State::Free;
        place.after = self.free;
        self.free = index;
    }
}
