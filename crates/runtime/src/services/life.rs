//! The trait of a service, with its start and its stop, and how they are begun.
//! Not for: when they are begun (`graph`) and what follows (`pump`).
//!
//! Most starts and stops are ready at their first poll, so a task and an
//! allocation for each would cost more than all the rest. The future is therefore
//! polled once where it is, in a box that is used again for the next service of the
//! same type; only one that is not ready goes to the loop, with its box.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::by_type::ByType;
use super::context::Context;
use super::failure::{Failure, caught};

/// A type with a start and a stop, which do nothing unless they are written.
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
    /// The reason why it cannot start; recorded, and returned to callers that wait for it.
    fn start(&self, context: &Context) -> impl Future<Output = Result<(), Failure>> {
        let _ = context;
        async { Ok(()) }
    }

    /// Ends what [`start`](Service::start) began, once for each start that
    /// succeeded. No service that requires this one runs any more; what it
    /// requires itself still does.
    ///
    /// # Errors
    /// The reason why it could not stop in order; recorded. The service counts as stopped.
    fn stop(&self, context: &Context) -> impl Future<Output = Result<(), Failure>> {
        let _ = context;
        async { Ok(()) }
    }
}

/// A start or a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
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

/// The start and the stop of all services of one type, which share the memory of their
/// futures. Its type is known to the recipe, so that a start is one call through a pointer
/// and not three.
pub(super) trait Transitions<S>: 'static {
    fn begin(&self, transition: Transition, service: Rc<S>, context: Context) -> Begun;
}

/// The transitions of a type of services; always of the same type for the same services.
pub(super) fn transitions<S: Service>() -> impl Transitions<S> + use<S> {
    StartAndStop {
        start: FuturePool::new(|service: Rc<S>, context: Context| async move {
            service.start(&context).await
        }),
        stop: FuturePool::new(|service: Rc<S>, context: Context| async move {
            service.stop(&context).await
        }),
    }
}

/// The transitions of each type of services, and the number of the type.
#[derive(Default)]
pub(super) struct Types(RefCell<ByType<(Box<dyn Any>, u32)>>);

impl Types {
    /// The transitions of `S`, made by `make` at the first call; and the number of the type.
    pub fn get<S: Service, T: 'static>(&self, make: impl FnOnce() -> T) -> (Rc<T>, u32) {
        let mut types = self.0.borrow_mut();
        let number = types.len() as u32;
        let (transitions, number) = types
            .entry(TypeId::of::<S>())
            .or_insert_with(|| (Box::new(Rc::new(make())), number));
        let transitions: &Rc<T> = transitions
            .downcast_ref()
            .expect("transitions are kept by the type of their services");
        (transitions.clone(), *number)
    }
}

struct StartAndStop<A, B> {
    start: A,
    stop: B,
}

impl<S: 'static, M, F, N, G> Transitions<S> for StartAndStop<FuturePool<M, F>, FuturePool<N, G>>
where
    M: Fn(Rc<S>, Context) -> F + 'static,
    N: Fn(Rc<S>, Context) -> G + 'static,
    F: Future<Output = Result<(), Failure>> + 'static,
    G: Future<Output = Result<(), Failure>> + 'static,
{
    #[inline]
    fn begin(&self, transition: Transition, service: Rc<S>, context: Context) -> Begun {
        match transition {
            Transition::Start => self.start.begin(service, context),
            Transition::Stop => self.stop.begin(service, context),
        }
    }
}

struct FuturePool<M, F> {
    make: M,
    /// The place of a future that is over, which holds nothing any more.
    spare: Cell<Option<Pin<Box<F>>>>,
}

impl<M, F: Future<Output = Result<(), Failure>> + 'static> FuturePool<M, F> {
    fn new(make: M) -> FuturePool<M, F> {
        FuturePool {
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
        // Nothing is to be woken: what is pending is polled again at once, by its task.
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
