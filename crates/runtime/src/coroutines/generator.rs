//! Values made one at a time, when they are asked for.
//! Not for: values between tasks (`channel`).

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

/// Makes values one at a time: an `async` block that emits them, run only while
/// the next one is awaited.
///
/// It is no task: it runs where [`next`](Generator::next) is awaited, waits for what
/// it likes meanwhile, goes no further than one value, and ends when it is dropped. A
/// panic in it is one of the task that awaits it. It is a [`Stream`] for the combinators of
/// `futures` too.
///
/// ```
/// use prony_base::Nanos;
/// use prony_runtime::coroutines::Generator;
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let mut squares = Generator::new(async move |yielder| {
///         for number in 1..=3 {
///             handle.sleep(Nanos::from_micros(1)).await;
///             yielder.emit(number * number).await;
///         }
///     });
///     let mut sum = 0;
///     while let Some(square) = squares.next().await {
///         sum += square;
///     }
///     assert_eq!(sum, 14);
/// })
/// .unwrap();
/// ```
#[must_use = "a generator makes nothing unless it is asked"]
pub struct Generator<T> {
    /// None once it has ended.
    producer: Option<Pin<Box<dyn Future<Output = ()>>>>,
    place: Rc<Place<T>>,
}

/// The slot of a value between producer and consumer.
type Place<T> = RefCell<Option<T>>;

/// Hands the values of a [`Generator`] out.
pub struct Yielder<T> {
    place: Rc<Place<T>>,
}

impl<T> Yielder<T> {
    /// Hands a value out, and goes on when the next one is asked for. Emit one value
    /// after the other: not from inside combinators that poll only what was woken.
    pub async fn emit(&self, value: T) {
        let mut value = Some(value);
        poll_fn(|_| {
            let mut place = self.place.borrow_mut();
            let is_free = place.is_none();
            match value.take() {
                // It was taken, and another one is asked for.
                None if is_free => return Poll::Ready(()),
                None => {}
                Some(next) if is_free => *place = Some(next),
                later => value = later,
            }
            Poll::Pending
        })
        .await
    }
}

impl<T: 'static> Generator<T> {
    /// A generator of what `producer` emits.
    pub fn new<F>(producer: impl FnOnce(Yielder<T>) -> F) -> Generator<T>
    where
        F: Future<Output = ()> + 'static,
    {
        let place: Rc<Place<T>> = Rc::default();
        let yielder = Yielder {
            place: place.clone(),
        };
        Generator {
            producer: Some(Box::pin(producer(yielder))),
            place,
        }
    }
}

impl<T> Generator<T> {
    /// The next value; None when there are no more. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The values up to the first for which the producer has to wait for something: all
    /// of them, if it never does (see [`is_finished`](Generator::is_finished)).
    ///
    /// ```
    /// use prony_runtime::coroutines::Generator;
    ///
    /// let mut digits = Generator::new(async |yielder| {
    ///     for digit in "1729".chars() {
    ///         yielder.emit(digit).await;
    ///     }
    /// });
    /// assert_eq!(digits.ready_values().collect::<String>(), "1729");
    /// assert!(digits.is_finished());
    /// ```
    pub fn ready_values(&mut self) -> impl Iterator<Item = T> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(move || match self.poll(&mut cx) {
            Poll::Ready(value) => value,
            Poll::Pending => None,
        })
    }

    /// True when the producer has ended.
    pub fn is_finished(&self) -> bool {
        self.producer.is_none()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(mut producer) = self.producer.take() else {
            return Poll::Ready(None);
        };
        // Not there while it is polled, so that one that panics has ended.
        let is_pending = producer.as_mut().poll(cx).is_pending();
        if is_pending {
            self.producer = Some(producer);
        }
        let value = self.place.borrow_mut().take();
        match value {
            Some(value) => Poll::Ready(Some(value)),
            None if is_pending => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

impl<T> Unpin for Generator<T> {}

impl<T> Stream for Generator<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll(cx)
    }
}

impl<T> fmt::Debug for Generator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generator(finished: {})", self.is_finished())
    }
}
