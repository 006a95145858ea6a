//! Tasks that end together.
//! Not for: a task by itself (`task`), time-outs of one future (`time`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::rc::{Rc, Weak};

use prony_base::{Instant, Nanos};
use prony_engine::TaskId;

use super::events::ManualEvent;
use super::task::{Coroutines, How, Join};

/// Most failures of which a scope keeps the message; all are counted.
pub const FAILURES_MAX: usize = 64;

/// Tasks that end together: when the scope is dropped or closed, or its deadline
/// passes, all its tasks are cancelled, those of the scopes in it as well.
///
/// A child belongs to the scope from the beginning: its [`Join`] may be awaited,
/// dropped (which cancels that child) or detached (which leaves it to the scope).
///
/// ```
/// use prony_runtime::coroutines::{Coroutines, Scope};
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let coroutines = Coroutines::new(&handle);
///     let scope = Scope::new(&coroutines);
///     scope.spawn(std::future::pending::<()>()).detach();
///     scope.spawn(async { panic!("out of paper") }).detach();
///     handle.yield_now().await;
///     assert_eq!(scope.alive(), 1);
///
///     let ended = scope.close().await;
///     assert_eq!((ended.failed, ended.cancelled), (1, 1));
///     assert_eq!(ended.failures[0].message, "out of paper");
///     assert_eq!(handle.tasks(), 0);
/// })
/// .unwrap();
/// ```
#[must_use = "dropping a Scope cancels its tasks"]
pub struct Scope {
    inside: Rc<Inside>,
}

/// Counts of how the children of a scope have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Children that ran to their end.
    pub finished: u64,
    /// Children that panicked.
    pub failed: u64,
    /// Children that were cancelled.
    pub cancelled: u64,
    /// The first [`FAILURES_MAX`] panics.
    pub failures: Vec<Failure>,
}

/// A child of a scope that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The child's name, where it has one.
    pub name: Option<String>,
    /// The message of the panic.
    pub message: String,
}

struct Inside {
    /// The scope that this one is in, and its number there.
    outer: Option<(Weak<Inside>, u64)>,
    coroutines: Coroutines,
    is_closed: Cell<bool>,
    /// Living children by the order in which they were started.
    children: RefCell<BTreeMap<u64, Child>>,
    last: Cell<u64>,
    /// Living tasks among the children.
    alive: Cell<usize>,
    ended: RefCell<Ended>,
    /// Set while no child lives.
    empty: ManualEvent,
    deadline: RefCell<Option<Join<()>>>,
}

#[derive(Clone)]
enum Child {
    Task(TaskId),
    Scope(Weak<Inside>),
}

impl Scope {
    /// A scope without children.
    pub fn new(coroutines: &Coroutines) -> Scope {
        Scope::with_outer(coroutines, None)
    }

    fn with_outer(coroutines: &Coroutines, outer: Option<(Weak<Inside>, u64)>) -> Scope {
        let inside = Inside {
            outer,
            coroutines: coroutines.clone(),
            is_closed: Cell::new(false),
            children: RefCell::default(),
            last: Cell::new(0),
            alive: Cell::new(0),
            ended: RefCell::default(),
            empty: ManualEvent::new(),
            deadline: RefCell::default(),
        };
        inside.empty.set();
        Scope {
            inside: Rc::new(inside),
        }
    }

    /// A scope that ends with this one, or before.
    pub fn nested(&self) -> Scope {
        let number = self.inside.next_number();
        let outer = Some((Rc::downgrade(&self.inside), number));
        let nested = Scope::with_outer(&self.inside.coroutines, outer);
        nested.inside.is_closed.set(self.is_closed());
        let child = Child::Scope(Rc::downgrade(&nested.inside));
        self.inside.children.borrow_mut().insert(number, child);
        nested
    }

    /// Starts a child. In a scope that is closed it does not start, and awaiting it
    /// gives [`TaskError::Cancelled`](super::TaskError::Cancelled).
    pub fn spawn<F>(&self, work: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(None, work)
    }

    /// Starts a child with a name, which its failure is reported with.
    pub fn spawn_named<F>(&self, name: impl Into<Rc<str>>, work: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(Some(name.into()), work)
    }

    fn start<F>(&self, name: Option<Rc<str>>, work: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let inside = &self.inside;
        if inside.is_closed.get() {
            return Join::never_started();
        }
        let number = inside.next_number();
        let (theirs, their_name) = (Rc::downgrade(inside), name.clone());
        let on_end = move |how| {
            if let Some(inside) = theirs.upgrade() {
                inside.child_ended(number, their_name.as_deref(), how);
            }
        };
        let coroutines = &inside.coroutines;
        let join = coroutines.spawn_watched(work, name, Some(Box::new(on_end)));
        if let Some(id) = join.id() {
            inside.empty.reset();
            inside.children.borrow_mut().insert(number, Child::Task(id));
            inside.alive.set(inside.alive.get() + 1);
        }
        join
    }

    /// Children that have not ended, without those of nested scopes.
    pub fn alive(&self) -> usize {
        self.inside.alive.get()
    }

    /// True once it was closed, or its deadline passed.
    pub fn is_closed(&self) -> bool {
        self.inside.is_closed.get()
    }

    /// Counts how the children have ended so far.
    pub fn ended(&self) -> Ended {
        self.inside.ended.borrow().clone()
    }

    /// Waits until no child lives, and cancels none. Children may be started meanwhile.
    pub async fn join(&self) -> Ended {
        while self.alive() > 0 {
            self.inside.empty.wait().await;
        }
        self.ended()
    }

    /// Cancels all children, those of nested scopes as well, and lets none start any
    /// more.
    pub fn cancel(&self) {
        self.inside.close();
    }

    /// Cancels all children, and waits until they are gone: at once, unless one of
    /// them is what calls this, in which case it ends here.
    pub async fn close(self) -> Ended {
        self.cancel();
        self.join().await
    }

    /// Cancels all children `length` from now, unless it is set anew.
    pub fn set_timeout(&self, length: Nanos) {
        let now = self.inside.coroutines.handle().now();
        self.set_deadline(now + length);
    }

    /// Cancels all children at a time on the loop's clock, unless it is set anew.
    pub fn set_deadline(&self, due: Instant) {
        if self.is_closed() {
            return;
        }
        let inside = Rc::downgrade(&self.inside);
        let sleep = self.inside.coroutines.handle().sleep_until(due);
        let waiting = self.inside.coroutines.spawn(async move {
            sleep.await;
            if let Some(inside) = inside.upgrade() {
                // Taken first, because closing ends the deadline, which is this task.
                if let Some(own) = inside.deadline.borrow_mut().take() {
                    own.detach();
                }
                inside.close();
            }
        });
        let before = self.inside.deadline.replace(Some(waiting));
        drop(before);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.inside.close();
        if let Some((outer, number)) = &self.inside.outer
            && let Some(outer) = outer.upgrade()
        {
            outer.children.borrow_mut().remove(number);
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (alive, closed) = (self.alive(), self.is_closed());
        write!(f, "Scope(alive: {alive}, closed: {closed})")
    }
}

impl Inside {
    fn next_number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn close(&self) {
        self.is_closed.set(true);
        let deadline = self.deadline.borrow_mut().take();
        drop(deadline);
        // The last one first. Cancelling runs their code, so nothing is borrowed.
        let mut before = u64::MAX;
        loop {
            let next = {
                let children = self.children.borrow();
                let next = children.range(..before).next_back();
                next.map(|(&number, child)| (number, child.clone()))
            };
            let Some((number, child)) = next else { return };
            before = number;
            match child {
                Child::Task(id) => {
                    self.coroutines.handle().cancel(id);
                }
                Child::Scope(nested) => {
                    if let Some(nested) = nested.upgrade() {
                        nested.close();
                    }
                }
            }
        }
    }

    fn child_ended(&self, number: u64, name: Option<&str>, how: How) {
        self.children.borrow_mut().remove(&number);
        self.ended.borrow_mut().add(name, how);
        self.alive.set(self.alive.get() - 1);
        if self.alive.get() == 0 {
            self.empty.set();
        }
    }
}

impl Ended {
    fn add(&mut self, name: Option<&str>, how: How) {
        match how {
            How::Finished => self.finished += 1,
            How::Cancelled => self.cancelled += 1,
            How::Panicked(message) => {
                self.failed += 1;
                if self.failures.len() < FAILURES_MAX {
                    let name = name.map(str::to_owned);
                    self.failures.push(Failure { name, message });
                }
            }
        }
    }
}
