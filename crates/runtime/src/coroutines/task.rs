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
use prony_engine::{Handle, JoinOutcome, Task, TaskId};
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
    /// Watched tasks that panicked: to the engine they have finished.
    panicked: Cell<u64>,
    named: RefCell<BTreeMap<u64, Rc<str>>>,
    last_name: Cell<u64>,
}

/// A snapshot of a loop's tasks: what runs, and what has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tasks {
    /// Tasks that have not ended.
    pub alive: u64,
    /// Tasks that ran to their end.
    pub finished: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks that were cancelled; the timer of a scope's deadline is a task too.
    pub cancelled: u64,
    /// Times that a task was polled.
    pub polls: u64,
    /// The names of the living tasks that have one, oldest first.
    pub names: Vec<String>,
}

impl Coroutines {
    /// The tasks of this loop. Panics that are not taken as results are logged from now on.
    pub fn new(handle: &Handle) -> Coroutines {
        handle.on_unseen_panic(|payload| log_unseen("(no name)", &message_of(payload)));
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
        Join(Kind::Plain(self.handle.spawn_caught(work)))
    }

    /// Starts a task that has a name in [`snapshot`](Coroutines::snapshot) and in
    /// what is logged about it.
    pub fn spawn_named<F>(&self, name: impl Into<Rc<str>>, work: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_watched(work, Some(name.into()), None)
    }

    /// Starts a task, and calls `on_end` with how it ended, once its future is gone.
    pub(super) fn spawn_watched<F>(
        &self,
        work: F,
        name: Option<Rc<str>>,
        on_end: Option<Box<dyn FnOnce(How)>>,
    ) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let ending = Ending {
            number: self.registry.keep_name(name.as_ref()),
            registry: self.registry.clone(),
            name,
            on_end,
            is_over: false,
        };
        let work = Some(work);
        Join(Kind::Watched(self.handle.spawn(Watched { work, ending })))
    }

    /// Takes a snapshot of the loop's tasks: what has ended, and the names of those
    /// that were started through this and its clones.
    pub fn snapshot(&self) -> Tasks {
        let counts = self.handle.task_counts();
        let watched = self.registry.panicked.get();
        let ended = counts.finished + counts.panicked + counts.cancelled;
        let names = self.registry.named.borrow();
        Tasks {
            alive: counts.spawned - ended,
            finished: counts.finished - watched,
            panicked: counts.panicked + watched,
            cancelled: counts.cancelled,
            polls: counts.polls,
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
    /// Keeps the name of a living task; yields under which number.
    fn keep_name(&self, name: Option<&Rc<str>>) -> Option<u64> {
        let mut named = self.named.borrow_mut();
        if named.len() >= NAMES_MAX {
            return None;
        }
        let number = self.last_name.get() + 1;
        self.last_name.set(number);
        named.insert(number, name?.clone());
        Some(number)
    }
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Finished,
    Panicked(String),
    Cancelled,
}

/// Tells of the end of a task, once, whatever it is.
struct Ending {
    registry: Rc<Registry>,
    number: Option<u64>,
    name: Option<Rc<str>>,
    on_end: Option<Box<dyn FnOnce(How)>>,
    is_over: bool,
}

impl Ending {
    fn tell(&mut self, how: How) {
        self.is_over = true;
        if let Some(number) = self.number {
            self.registry.named.borrow_mut().remove(&number);
        }
        if let Some(on_end) = self.on_end.take() {
            on_end(how);
        }
    }

    fn panicked(&mut self, payload: Box<dyn Any + Send>) -> Panicked {
        let count = &self.registry.panicked;
        count.set(count.get() + 1);
        let message = message_of(payload);
        self.tell(How::Panicked(message.clone()));
        Panicked {
            name: self.name.clone(),
            message: Some(message),
        }
    }
}

pin_project! {
    /// The future of a task that reports how it ended, whether it panics
    /// while it runs or while it is dropped.
    struct Watched<F> {
        #[pin]
        work: Option<F>,
        ending: Ending,
    }

    impl<F> PinnedDrop for Watched<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.ending.is_over {
                return;
            }
            // Cancelled. A panic in that is only logged.
            let dropped = catch_unwind(AssertUnwindSafe(|| this.work.set(None)));
            if let Err(payload) = dropped {
                let name = this.ending.name.as_deref().unwrap_or("(no name)");
                log_unseen(name, &message_of(payload));
            }
            this.ending.tell(How::Cancelled);
        }
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = Result<F::Output, Panicked>;

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
                this.ending.tell(How::Finished);
                Poll::Ready(Ok(value))
            }
            Err(payload) => {
                // What is left of the future; a second panic is ignored.
                let _ = catch_unwind(AssertUnwindSafe(|| this.work.set(None)));
                Poll::Ready(Err(this.ending.panicked(payload)))
            }
        }
    }
}

/// A panic on its way to the task that awaits this one. Logged where none does.
struct Panicked {
    name: Option<Rc<str>>,
    message: Option<String>,
}

impl Drop for Panicked {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            log_unseen(self.name.as_deref().unwrap_or("(no name)"), &message);
        }
    }
}

fn log_unseen(task: &str, message: &str) {
    tracing::error!(
        task,
        panic = message,
        "a task panicked, and nobody awaits it"
    );
}

/// The message of a panic. A payload that is no text is only named as such.
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

/// The reason why a task has no result.
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
pub struct Join<T>(Kind<T>);

enum Kind<T> {
    Plain(Task<T>),
    Watched(Task<Result<T, Panicked>>),
    /// Its scope had ended.
    NeverStarted,
}

impl<T> Join<T> {
    pub(super) fn never_started() -> Join<T> {
        Join(Kind::NeverStarted)
    }

    pub(super) fn id(&self) -> Option<TaskId> {
        match &self.0 {
            Kind::Plain(task) => Some(task.id()),
            Kind::Watched(task) => Some(task.id()),
            Kind::NeverStarted => None,
        }
    }

    /// Ends the task: its future is dropped now, or, when it calls this itself, after
    /// the poll that it is in. Awaiting it then gives [`TaskError::Cancelled`], unless
    /// it had ended before.
    pub fn cancel(&self) {
        match &self.0 {
            Kind::Plain(task) => task.cancel(),
            Kind::Watched(task) => task.cancel(),
            Kind::NeverStarted => {}
        }
    }

    /// True when the task ran to its end or panicked.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Plain(task) => task.is_finished(),
            Kind::Watched(task) => task.is_finished(),
            Kind::NeverStarted => false,
        }
    }

    /// Detaches the handle: the task runs on its own. Should it panic, that is counted and logged.
    #[inline(always)]
    pub fn detach(self) {
        match self.0 {
            Kind::Plain(task) => task.detach(),
            Kind::Watched(task) => task.detach(),
            Kind::NeverStarted => {}
        }
    }
}

impl<T> Future for Join<T> {
    type Output = Result<T, TaskError>;

    /// Asked again after its result, it gives [`TaskError::Cancelled`].
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Kind::Plain(task) => task.poll_outcome(cx).map(|outcome| match outcome {
                JoinOutcome::Value(value) => Ok(value),
                JoinOutcome::Panicked(payload) => Err(TaskError::Panicked(message_of(payload))),
                JoinOutcome::Cancelled => Err(TaskError::Cancelled),
            }),
            Kind::Watched(task) => task.poll_outcome(cx).map(|outcome| match outcome {
                JoinOutcome::Value(Ok(value)) => Ok(value),
                JoinOutcome::Value(Err(mut panicked)) => {
                    let message = panicked.message.take().unwrap_or_default();
                    Err(TaskError::Panicked(message))
                }
                JoinOutcome::Panicked(payload) => Err(TaskError::Panicked(message_of(payload))),
                JoinOutcome::Cancelled => Err(TaskError::Cancelled),
            }),
            Kind::NeverStarted => Poll::Ready(Err(TaskError::Cancelled)),
        }
    }
}
