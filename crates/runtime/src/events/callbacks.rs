//! A list of callbacks that may change while it is being called, and the guard
//! that takes one out again.
//! Not for: what is called when (`channel`).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::{Rc, Weak};

use prony_base::Nanos;
use prony_engine::Handle;

use super::stats::HandlerStats;

/// One callback.
struct Callback<F: ?Sized> {
    id: u64,
    kind: &'static str,
    registered_at: &'static Location<'static>,
    calls: Cell<u64>,
    panics: Cell<u64>,
    time: Cell<Nanos>,
    time_max: Cell<Nanos>,
    is_removed: Cell<bool>,
    call: RefCell<Box<F>>,
}

/// The state that the calls of all callbacks of one queue share.
pub(super) struct CallContext {
    pub handle: Handle,
    pub timing: Cell<bool>,
    pub panics: Cell<u64>,
}

/// Callbacks in the order of their registration.
///
/// One that is added during a call is not called in it; one that is removed is not
/// called any more, and is dropped after the call if it removed itself.
pub(super) struct Callbacks<F: ?Sized> {
    /// Shared with the calls under way, so that a change meanwhile makes a new one.
    list: RefCell<Rc<Vec<Rc<Callback<F>>>>>,
    next_id: Cell<u64>,
    /// Callbacks alive here and in the lists that share this counter.
    watchers: Rc<Cell<u32>>,
    len: Cell<u32>,
}

impl<F: ?Sized + 'static> Callbacks<F> {
    pub fn new(watchers: &Rc<Cell<u32>>) -> Rc<Callbacks<F>> {
        Rc::new(Callbacks {
            list: RefCell::default(),
            next_id: Cell::new(0),
            watchers: watchers.clone(),
            len: Cell::new(0),
        })
    }

    /// Adds a callback until its guard is dropped.
    pub fn add(
        self: &Rc<Self>,
        kind: &'static str,
        registered_at: &'static Location<'static>,
        call: Box<F>,
    ) -> Registration {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let callback = Callback {
            id,
            kind,
            registered_at,
            calls: Cell::new(0),
            panics: Cell::new(0),
            time: Cell::default(),
            time_max: Cell::default(),
            is_removed: Cell::new(false),
            call: RefCell::new(call),
        };
        Rc::make_mut(&mut self.list.borrow_mut()).push(Rc::new(callback));
        self.len.set(self.len.get() + 1);
        self.watchers.set(self.watchers.get() + 1);
        let list: Weak<dyn Removable> = Rc::<Self>::downgrade(self);
        Registration { list, id }
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.len.get()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// Calls each with `visit` until that says false. A panic is counted, logged,
    /// and the rest goes on.
    #[inline]
    pub fn each(&self, shared: &CallContext, visit: impl FnMut(&mut F) -> bool) {
        if !self.is_empty() {
            self.call_each(shared, visit);
        }
    }

    fn call_each(&self, shared: &CallContext, mut visit: impl FnMut(&mut F) -> bool) {
        let list = self.list.borrow().clone();
        for callback in list.iter() {
            if !callback.is_removed.get() && !callback.visit(shared, &mut visit) {
                break;
            }
        }
    }

    /// Gives `turn` the only callback again and again, with the count of its calls, until
    /// that says false; or until calls are to be timed, or the callback was removed. A panic
    /// is counted, logged, and the next turn goes on. The callback is found once, and panics
    /// are caught once for many calls, which costs nothing where there is none.
    pub fn call_only(
        &self,
        shared: &CallContext,
        mut turn: impl FnMut(&mut F, &Cell<u64>) -> bool,
    ) {
        let list = self.list.borrow().clone();
        let [callback] = &list[..] else {
            return;
        };
        let Ok(mut call) = callback.call.try_borrow_mut() else {
            return;
        };
        let may_go_on = || !callback.is_removed.get() && !shared.timing.get();
        loop {
            let turns = || while may_go_on() && turn(&mut call, &callback.calls) {};
            match catch_unwind(AssertUnwindSafe(turns)) {
                Ok(()) => return,
                Err(panic) => callback.note_panic(shared, &*panic),
            }
        }
    }

    pub fn stats(&self) -> Vec<HandlerStats> {
        let list = self.list.borrow();
        list.iter()
            .map(|callback| HandlerStats {
                kind: callback.kind,
                registered_at: callback.registered_at.to_string(),
                calls: callback.calls.get(),
                panics: callback.panics.get(),
                time: callback.time.get(),
                time_max: callback.time_max.get(),
            })
            .collect()
    }
}

impl<F: ?Sized> Callback<F> {
    fn visit(&self, shared: &CallContext, visit: &mut impl FnMut(&mut F) -> bool) -> bool {
        let Ok(mut call) = self.call.try_borrow_mut() else {
            return true;
        };
        self.calls.set(self.calls.get() + 1);
        let began = shared.timing.get().then(|| shared.handle.now());
        let outcome = catch_unwind(AssertUnwindSafe(|| visit(&mut call)));
        if let Some(began) = began {
            let took = shared.handle.now().since(began);
            self.time.set(self.time.get() + took);
            self.time_max.set(self.time_max.get().max(took));
        }
        outcome.unwrap_or_else(|panic| {
            self.note_panic(shared, &*panic);
            true
        })
    }

    #[cold]
    fn note_panic(&self, shared: &CallContext, panic: &(dyn std::any::Any + Send)) {
        self.panics.set(self.panics.get() + 1);
        note_panic(shared, self.kind, self.registered_at, panic);
    }
}

/// Counts and logs what a callback or its future threw.
pub(super) fn note_panic(
    shared: &CallContext,
    kind: &str,
    registered_at: &Location<'_>,
    panic: &(dyn std::any::Any + Send),
) {
    shared.panics.set(shared.panics.get() + 1);
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("something that is no text");
    tracing::error!(kind, %registered_at, panic = text, "a callback for events panicked");
}

/// A list out of which a callback can be taken.
trait Removable {
    fn remove(&self, id: u64);
}

impl<F: ?Sized> Removable for Callbacks<F> {
    fn remove(&self, id: u64) {
        let mut list = self.list.borrow_mut();
        // Numbers rise in the order of registration.
        let Ok(index) = list.binary_search_by_key(&id, |callback| callback.id) else {
            return;
        };
        let removed = Rc::make_mut(&mut list).remove(index);
        drop(list);
        removed.is_removed.set(true);
        self.len.set(self.len.get() - 1);
        self.watchers.set(self.watchers.get() - 1);
        // What it captured may run any code when dropped, so nothing is borrowed.
        drop(removed);
    }
}

/// Keeps a handler or an interceptor registered: dropping it takes it out, at
/// once, and cancels the unfinished futures of an async handler.
#[must_use = "dropping a Registration takes the handler out again: keep it or leak it with `forever`"]
pub struct Registration {
    list: Weak<dyn Removable>,
    id: u64,
}

impl Registration {
    /// Leaves the handler registered for as long as the queue lives.
    pub fn forever(mut self) {
        struct Nothing;
        impl Removable for Nothing {
            fn remove(&self, _: u64) {}
        }
        self.list = Weak::<Nothing>::new();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            list.remove(self.id);
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.id)
    }
}
