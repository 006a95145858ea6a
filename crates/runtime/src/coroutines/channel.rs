//! Values from many tasks to one, on the same loop.
//! Not for: other threads (`prony_engine::mailbox`, `crate::events`).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_core::Stream;
use prony_engine::TaskWaker;

use super::permits::Permits;

/// A channel that holds at most `limit` values (at least one). A sender that finds it
/// full waits, first come first.
///
/// ```
/// use prony_runtime::coroutines::{SendError, channel};
///
/// prony_engine::run(&Default::default(), |handle| async move {
///     let (sender, mut receiver) = channel(1);
///     let sending = handle.spawn(async move {
///         for number in 0..3 {
///             sender.send(number).await.unwrap(); // waits while one value is there
///         }
///     });
///     assert_eq!(receiver.recv().await, Some(0));
///     assert_eq!(receiver.recv().await, Some(1));
///     assert_eq!(receiver.recv().await, Some(2));
///     assert_eq!(receiver.recv().await, None); // the sender has gone
///     sending.await;
///
///     let (sender, receiver) = channel(1);
///     drop(receiver);
///     assert_eq!(sender.send("lost?").await, Err(SendError("lost?")));
/// })
/// .unwrap();
/// ```
pub fn channel<T>(limit: usize) -> (Sender<T>, Receiver<T>) {
    let limit = limit.max(1);
    let shared = Rc::new(ChannelState {
        values: RefCell::default(),
        capacity: Permits::new(limit, limit),
        limit,
        senders: Cell::new(1),
        receiver: Cell::default(),
    });
    let sender = Sender {
        shared: shared.clone(),
    };
    (sender, Receiver { shared })
}

struct ChannelState<T> {
    values: RefCell<VecDeque<T>>,
    /// A permit for each value that may still come; closed when the receiver has gone.
    capacity: Permits,
    limit: usize,
    senders: Cell<usize>,
    /// Woken by the next value, and by the end of the last sender.
    receiver: Cell<TaskWaker>,
}

impl<T> ChannelState<T> {
    fn put(&self, value: T) {
        self.values.borrow_mut().push_back(value);
        self.receiver.take().wake();
    }

    fn take(&self) -> Option<T> {
        let value = self.values.borrow_mut().pop_front()?;
        self.capacity.release();
        Some(value)
    }
}

/// The receiver is gone; the value comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel has no receiver any more")
    }
}

impl<T> std::error::Error for SendError<T> {}

/// The reason why a value was not sent, with the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel holds its limit.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "the channel holds its limit",
            TrySendError::Closed(_) => "the channel has no receiver any more",
        })
    }
}

impl<T> std::error::Error for TrySendError<T> {}

/// Sends values to a [`channel`]. Clones send theirs to the same one.
pub struct Sender<T> {
    shared: Rc<ChannelState<T>>,
}

impl<T> Sender<T> {
    /// Sends a value, as soon as there is room. Dropping the future sends nothing,
    /// and drops the value.
    ///
    /// # Errors
    /// [`SendError`] with the value, when the receiver is gone.
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        match self.shared.capacity.acquire().await {
            Ok(()) => {
                self.shared.put(value);
                Ok(())
            }
            Err(_) => Err(SendError(value)),
        }
    }

    /// Sends a value, if there is room.
    ///
    /// # Errors
    /// [`TrySendError`] with the value, when the channel is full or the receiver gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if self.is_closed() {
            return Err(TrySendError::Closed(value));
        }
        if !self.shared.capacity.try_acquire() {
            return Err(TrySendError::Full(value));
        }
        self.shared.put(value);
        Ok(())
    }

    /// True when the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.shared.capacity.is_closed()
    }

    /// Most values that the channel holds.
    pub fn limit(&self) -> usize {
        self.shared.limit
    }

    /// Values that are there.
    pub fn len(&self) -> usize {
        self.shared.values.borrow().len()
    }

    /// True when no value is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.shared.senders.set(self.shared.senders.get() + 1);
        Sender {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let left = self.shared.senders.get() - 1;
        self.shared.senders.set(left);
        if left == 0 {
            self.shared.receiver.take().wake();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, limit) = (self.len(), self.limit());
        write!(f, "Sender({len} of {limit})")
    }
}

/// Takes values out of a [`channel`], in the order in which they were put in. It is a
/// [`Stream`] for the combinators of `futures` too.
pub struct Receiver<T> {
    shared: Rc<ChannelState<T>>,
}

impl<T> Receiver<T> {
    /// The next value; None when it is empty and all senders are gone. Dropping the
    /// future loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// A value that is there already.
    pub fn try_recv(&mut self) -> Option<T> {
        self.shared.take()
    }

    /// Values that are there.
    pub fn len(&self) -> usize {
        self.shared.values.borrow().len()
    }

    /// True when no value is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<T>> {
        if let Some(value) = self.shared.take() {
            return Poll::Ready(Some(value));
        }
        if self.shared.senders.get() == 0 {
            return Poll::Ready(None);
        }
        self.shared.receiver.set(TaskWaker::of(cx.waker()));
        Poll::Pending
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll(cx)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.capacity.close();
        // Values may run any code when dropped, so nothing is borrowed then.
        let left = self.shared.values.take();
        drop(left);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({} of {})", self.len(), self.shared.limit)
    }
}
