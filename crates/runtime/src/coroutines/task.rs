//! Tasks whose panics are results: spawning, joining, counting.
//! Not for: when a task runs (`prony_engine`), ending many together (`scope`).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use prony_engine::{Handle, Task, TaskId};
use serde::Serialize;

/// Most living tasks whose names are kept; further ones are counted, and nameless.
pub const NAMES_MAX: usize = 65_536;

/// Starts tasks on one loop and knows how they ended. Cheap to clone; stays on its
/// thread. Clones share their counters.
///
/// ```
/// use prony_runtime::coroutines::{Coroutines, TaskError};
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let coroutines = Coroutines::new(&handle);
///     let sum = coroutines.spawn(async { 1 + 1 });
///     assert_eq!(sum.await, Ok(2));
///
///     let failing = coroutines.spawn_named("divider", async { 1 / "".len() });
///     assert!(matches!(failing.await, Err(TaskError::Panicked(_))));
///     assert_eq!(coroutines.snapshot().panicked, 1);
/// })
/// .unwrap();
/// ```
#[derive(Clone)]
pub struct Coroutines {
    handle: Handle,
    registry: Rc<Registry>,
}

#[derive(Default)]
struct Registry {
    spawned: Cell<u64>,
    finished: Cell<u64>,
    panicked: Cell<u64>,
    cancelled: Cell<u64>,
    named: RefCell<BTreeMap<u64, Rc<str>>>,
}

fn add_one(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

/// What a loop's tasks are doing and have done, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tasks {
    /// Tasks that have not ended.
    pub alive: u64,
    /// Tasks that ran to their end.
    pub finished: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Times that any task of the loop was polled, also of those that were started
    /// without these counters.
    pub polls: u64,
    /// The names of the living tasks that have one, oldest first.
    pub names: Vec<String>,
}

impl Coroutines {
    /// Tasks of this loop, counted from zero.
    pub fn new(handle: &Handle) -> Coroutines {
        Coroutines {
            handle: handle.clone(),
            registry: Rc::default(),
        }
    }

    /// The loop.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Starts a task.
    #[inline(always)]
    pub fn spawn<F>(&self, work: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(work, None)
    }

    /// Starts a task that has a name in [`snapshot`](Coroutines::snapshot) and in
    /// what is logged about it.
    pub fn spawn_named<F>(&self, name: impl Into<Rc<str>>, work: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(work, Some(Box::new(Extra::named(Some(name.into())))))
    }

    #[inline(always)]
    pub(super) fn start<F>(&self, work: F, mut extra: Option<Box<Extra>>) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let number = self.registry.spawned.get();
        self.registry.spawned.set(number + 1);
        if let Some(extra) = &mut extra {
            self.registry.keep_name(number, extra);
        }
        let guarded = Guarded {
            work: Some(work),
            ending: Ending {
                registry: self.registry.clone(),
                number,
                extra,
                is_over: false,
            },
        };
        Join {
            task: Some(self.handle.spawn(guarded)),
        }
    }

    /// What the tasks are doing and have done.
    pub fn snapshot(&self) -> Tasks {
        let registry = &*self.registry;
        let (finished, panicked, cancelled) = (
            registry.finished.get(),
            registry.panicked.get(),
            registry.cancelled.get(),
        );
        let names = registry.named.borrow();
        Tasks {
            alive: registry.spawned.get() - finished - panicked - cancelled,
            finished,
            panicked,
            cancelled,
            polls: self.handle.stats().polls,
            names: names.values().map(|name| name.to_string()).collect(),
        }
    }
}

impl fmt::Debug for Coroutines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl Registry {
    fn keep_name(&self, number: u64, extra: &mut Extra) {
        let mut named = self.named.borrow_mut();
        if let Some(name) = &extra.name
            && named.len() < NAMES_MAX
        {
            named.insert(number, name.clone());
        }
    }
}

/// What only some tasks have.
pub(super) struct Extra {
    pub name: Option<Rc<str>>,
    /// Told how the task ended, once its future is gone.
    pub on_end: Option<Box<dyn FnOnce(How)>>,
}

impl Extra {
    pub fn named(name: Option<Rc<str>>) -> Extra {
        Extra { name, on_end: None }
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Finished,
    Panicked(String),
    Cancelled,
}

/// Counts the end of a task, once, whatever it is.
struct Ending {
    registry: Rc<Registry>,
    number: u64,
    extra: Option<Box<Extra>>,
    is_over: bool,
}

impl Ending {
    fn name(&self) -> Option<Rc<str>> {
        self.extra.as_ref()?.name.clone()
    }

    #[inline]
    fn finished(&mut self) {
        self.is_over = true;
        add_one(&self.registry.finished);
        if self.extra.is_some() {
            self.tell(How::Finished);
        }
    }

    #[cold]
    fn panicked(&mut self, message: &str) {
        self.is_over = true;
        add_one(&self.registry.panicked);
        self.tell(How::Panicked(message.to_owned()));
    }

    #[cold]
    fn cancelled(&mut self) {
        self.is_over = true;
        add_one(&self.registry.cancelled);
        self.tell(How::Cancelled);
    }

    fn tell(&mut self, how: How) {
        let Some(mut extra) = self.extra.take() else {
            return;
        };
        if extra.name.is_some() {
            self.registry.named.borrow_mut().remove(&self.number);
        }
        if let Some(on_end) = extra.on_end.take() {
            on_end(how);
        }
    }
}

pin_project! {
    /// A task's future with its panics caught: while it runs, and while it is dropped.
    struct Guarded<F> {
        #[pin]
        work: Option<F>,
        ending: Ending,
    }

    impl<F> PinnedDrop for Guarded<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.ending.is_over {
                return;
            }
            match catch_unwind(AssertUnwindSafe(|| this.work.set(None))) {
                Ok(()) => this.ending.cancelled(),
                Err(payload) => drop(Panicked::new(this.ending, payload)),
            }
        }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, Panicked>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let Some(work) = this.work.as_mut().as_pin_mut() else {
                return Poll::Pending;
            };
            let value = std::task::ready!(work.poll(cx));
            // Dropped in here, because dropping it may panic too.
            this.work.set(None);
            Poll::Ready(value)
        }));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => {
                this.ending.finished();
                Poll::Ready(Ok(value))
            }
            Err(payload) => {
                // What is left of the future; a second panic tells nothing new.
                let _ = catch_unwind(AssertUnwindSafe(|| this.work.set(None)));
                Poll::Ready(Err(Panicked::new(this.ending, payload)))
            }
        }
    }
}

/// A panic on its way to who awaits the task. Logged where nobody does.
struct Panicked {
    name: Option<Rc<str>>,
    message: Option<String>,
}

impl Panicked {
    #[cold]
    fn new(ending: &mut Ending, payload: Box<dyn Any + Send>) -> Panicked {
        let name = ending.name();
        let message = message_of(payload);
        ending.panicked(&message);
        Panicked {
            name,
            message: Some(message),
        }
    }
}

impl Drop for Panicked {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            let task = self.name.as_deref().unwrap_or("(no name)");
            tracing::error!(task, message, "a task panicked, and nobody awaits it");
        }
    }
}

/// What a panic says. A payload that is no text is only named as such.
fn message_of(payload: Box<dyn Any + Send>) -> String {
    let message = match payload.downcast_ref::<&'static str>() {
        Some(text) => (*text).to_owned(),
        None => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => "a panic without a text".to_owned(),
        },
    };
    // A payload may panic itself when it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    message
}

/// Why a task has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// It panicked; this is what the panic said.
    Panicked(String),
    /// It was cancelled, by its [`Join`], its scope, or the end of its loop; or its
    /// result was taken before.
    Cancelled,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(message) => write!(f, "the task panicked: {message}"),
            TaskError::Cancelled => f.write_str("the task was cancelled"),
        }
    }
}

impl std::error::Error for TaskError {}

/// A task that was started: await it for its result; drop it to cancel the task;
/// [`detach`](Join::detach) it to let the task run on its own. See [`Coroutines`].
#[must_use = "dropping a Join cancels its task: await it, keep it or detach it"]
pub struct Join<T> {
    /// None when it was never started, because its scope had ended.
    task: Option<Task<Result<T, Panicked>>>,
}

impl<T> Join<T> {
    pub(super) fn never_started() -> Join<T> {
        Join { task: None }
    }

    pub(super) fn id(&self) -> Option<TaskId> {
        self.task.as_ref().map(Task::id)
    }

    /// Ends the task: its future is dropped now, or, when it calls this itself, after
    /// the poll that it is in. Awaiting it then gives [`TaskError::Cancelled`], unless
    /// it had ended before.
    pub fn cancel(&self) {
        if let Some(task) = &self.task {
            task.cancel();
        }
    }

    /// True when the task ran to its end or panicked.
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_some_and(Task::is_finished)
    }

    /// Lets the task run on its own. Should it panic, that is counted and logged.
    #[inline]
    pub fn detach(self) {
        if let Some(task) = self.task {
            task.detach();
        }
    }
}

impl<T> Future for Join<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(task) = &mut self.task else {
            return Poll::Ready(Err(TaskError::Cancelled));
        };
        task.poll_outcome(cx).map(|outcome| match outcome {
            Some(Ok(value)) => Ok(value),
            Some(Err(mut panicked)) => {
                let message = panicked.message.take().unwrap_or_default();
                Err(TaskError::Panicked(message))
            }
            None => Err(TaskError::Cancelled),
        })
    }
}
