//! What a service is: its start and its stop, and how they are begun.
//! Not for: when they are begun (`graph`) and what follows (`pump`).
//!
//! Most starts and stops are ready at their first poll, so a task and an
//! allocation for each would cost more than all the rest. The future is therefore
//! polled once where it is, in a box that is used again for the next service of the
//! same type; only one that is not ready goes to the loop, with its box.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::context::Context;

/// What can be started and stopped. Both do nothing unless they are written.
///
/// ```
/// use prony_runtime::services::{Context, Failure, Service};
///
/// struct Greeter {
///     greeting: String,
/// }
///
/// impl Service for Greeter {
///     async fn start(&self, context: &Context) -> Result<(), Failure> {
///         if self.greeting.is_empty() {
///             return Err(Failure::new("a greeter needs a greeting"));
///         }
///         println!("{}: {}", context.name(), self.greeting);
///         Ok(())
///     }
/// }
/// ```
pub trait Service: 'static {
    /// Makes the service ready for its dependents. It runs once all that is
    /// required runs. One that fails, panics or takes too long is not stopped
    /// afterwards: it gives back what it has taken itself, where needed by `Drop`.
    ///
    /// # Errors
    /// Why it cannot start; recorded, and told to those who wait for it.
    fn start(&self, context: &Context) -> impl Future<Output = Result<(), Failure>> {
        let _ = context;
        async { Ok(()) }
    }

    /// Ends what [`start`](Service::start) began, once for each start that
    /// succeeded. Nobody who requires this service runs any more; what it
    /// requires itself still does.
    ///
    /// # Errors
    /// What went wrong; recorded. The service counts as stopped.
    fn stop(&self, context: &Context) -> impl Future<Output = Result<(), Failure>> {
        let _ = context;
        async { Ok(()) }
    }
}

/// Why a service could not start or stop: a sentence. Made from any error by `?`.
///
/// It is one word, so that a result of a start is one, which the compiler hands
/// over in a register.
pub struct Failure(Box<Message>);

struct Message(String);

impl Failure {
    /// A failure that says this.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(Box::new(Message(message.into())))
    }
}

impl<E: std::error::Error> From<E> for Failure {
    /// The error and what caused it, in one line.
    fn from(error: E) -> Failure {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Failure::new(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?})", self.0.0)
    }
}

/// Which way a service goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Start,
    Stop,
}

pub(super) type Going = Pin<Box<dyn Future<Output = Result<(), Failure>>>>;

/// A start or stop that was polled once.
pub(super) enum Begun {
    Done(Result<(), Failure>),
    Panicked(Failure),
    Pending(Going),
}

/// Runs user code; the message of its panic where there was one. The code's own
/// state may be left half changed, but none of ours: nothing of it is borrowed.
#[inline]
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic))
}

#[cold]
fn panic_message(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::new(text.unwrap_or_else(|| "a panic without a message".to_owned()))
}

/// Wraps a future of the user's: its panic becomes a value, and what panics in
/// its drop is silenced, because the service has failed already.
pub(super) struct Guarded(Option<Going>);

impl Guarded {
    pub fn new(future: Going) -> Guarded {
        Guarded(Some(future))
    }
}

impl Future for Guarded {
    type Output = Result<Result<(), Failure>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else {
            return Poll::Pending;
        };
        match caught(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let future = self.0.take();
        let _ = caught(|| drop(future));
    }
}

/// What all services of one type share: how they are begun. Its type is known to
/// the recipe, so that a start is one call through a pointer and not three.
pub(super) trait Kind<S>: 'static {
    fn begin(&self, way: Way, service: Rc<S>, context: Context) -> Begun;
}

/// The kind of a type of services; always of the same type for the same services.
pub(super) fn kind<S: Service>() -> impl Kind<S> + use<S> {
    Ways {
        start: Pool::new(|service: Rc<S>, context: Context| async move {
            service.start(&context).await
        }),
        stop: Pool::new(
            |service: Rc<S>, context: Context| async move { service.stop(&context).await },
        ),
    }
}

struct Ways<A, B> {
    start: A,
    stop: B,
}

impl<S: 'static, M, F, N, G> Kind<S> for Ways<Pool<M, F>, Pool<N, G>>
where
    M: Fn(Rc<S>, Context) -> F + 'static,
    N: Fn(Rc<S>, Context) -> G + 'static,
    F: Future<Output = Result<(), Failure>> + 'static,
    G: Future<Output = Result<(), Failure>> + 'static,
{
    #[inline]
    fn begin(&self, way: Way, service: Rc<S>, context: Context) -> Begun {
        match way {
            Way::Start => self.start.begin(service, context),
            Way::Stop => self.stop.begin(service, context),
        }
    }
}

/// Which transitions of a kind are timed.
#[derive(Clone, Copy, Default)]
pub(super) struct Sampling(u8);

/// Transitions of one type that were quick in a row before only some are timed.
const QUICK_BEFORE_SAMPLING: u8 = 8;
/// Then one in this many is.
const SAMPLED_ONE_IN: u8 = 128;

impl Sampling {
    /// Whether the next transition should be timed. The clock costs as much as
    /// the transitions of a small service, so that of types whose last ones were
    /// quick only one in [`SAMPLED_ONE_IN`] is.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        if self.0 < QUICK_BEFORE_SAMPLING {
            return true;
        }
        self.0 += 1;
        let is_due = self.0 == QUICK_BEFORE_SAMPLING + SAMPLED_ONE_IN;
        if is_due {
            self.0 = QUICK_BEFORE_SAMPLING;
        }
        is_due
    }

    /// Takes note of a timed transition.
    pub fn was_quick(&mut self, quick: bool) {
        let before = self.0;
        self.0 = match quick {
            true => before
                .max(1)
                .saturating_add(u8::from(before < QUICK_BEFORE_SAMPLING)),
            false => 0,
        };
    }
}

struct Pool<M, F> {
    make: M,
    /// The place of a future that is over, which holds nothing any more.
    spare: Cell<Option<Pin<Box<F>>>>,
}

impl<M, F: Future<Output = Result<(), Failure>> + 'static> Pool<M, F> {
    fn new(make: M) -> Pool<M, F> {
        Pool {
            make,
            spare: Cell::new(None),
        }
    }

    #[inline]
    fn begin<S>(&self, service: Rc<S>, context: Context) -> Begun
    where
        M: Fn(Rc<S>, Context) -> F,
    {
        let future = (self.make)(service, context);
        let mut place = match self.spare.take() {
            Some(mut place) => {
                place.set(future);
                place
            }
            None => Box::pin(future),
        };
        // Nobody is to be woken: what is pending is polled again at once, by its task.
        let mut cx = std::task::Context::from_waker(Waker::noop());
        match caught(|| place.as_mut().poll(&mut cx)) {
            Ok(Poll::Ready(result)) => {
                self.spare.set(Some(place));
                Begun::Done(result)
            }
            Ok(Poll::Pending) => Begun::Pending(place),
            Err(panic) => {
                let _ = caught(|| drop(place));
                Begun::Panicked(panic)
            }
        }
    }
}
