//! Values from any thread to a task of one loop: a bounded queue.
//! Not for: tasks of the same loop among themselves, which can share a `RefCell`.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

struct Shared<T> {
    queue: VecDeque<T>,
    limit: usize,
    waker: Option<Waker>,
    senders: usize,
    receiver_gone: bool,
}

/// A mailbox that holds at most `limit` values (at least one). The receiver
/// belongs to one loop's task; senders go to any thread.
pub fn mailbox<T: Send>(limit: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Mutex::new(Shared {
        queue: VecDeque::new(),
        limit: limit.max(1),
        waker: None,
        senders: 1,
        receiver_gone: false,
    }));
    let sender = Sender {
        shared: shared.clone(),
    };
    (sender, Receiver { shared })
}

fn lock<T>(shared: &Mutex<Shared<T>>) -> MutexGuard<'_, Shared<T>> {
    // A panic while it was held left the queue as it was: nothing runs inside.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a value was not taken; it comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// The mailbox holds its limit.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Full(_) => "Full(..)",
            SendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Full(_) => "the mailbox holds its limit",
            SendError::Closed(_) => "the mailbox has no receiver any more",
        })
    }
}

impl<T> std::error::Error for SendError<T> {}

/// Puts values into a mailbox, from any thread.
pub struct Sender<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

impl<T: Send> Sender<T> {
    /// Puts a value in and wakes the receiver; many sends in a row cost one
    /// system call.
    ///
    /// # Errors
    /// [`SendError`] with the value, when the mailbox is full or closed.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        let mut shared = lock(&self.shared);
        if shared.receiver_gone {
            return Err(SendError::Closed(value));
        }
        if shared.queue.len() >= shared.limit {
            return Err(SendError::Full(value));
        }
        shared.queue.push_back(value);
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        lock(&self.shared).senders += 1;
        Sender {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.senders -= 1;
        let waker = if shared.senders == 0 {
            shared.waker.take()
        } else {
            None
        };
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Takes values out of a mailbox, in the order in which they were put in.
pub struct Receiver<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

impl<T: Send> Receiver<T> {
    /// The next value; None when it is empty and all senders are gone. Dropping
    /// the future loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| {
            let mut shared = lock(&self.shared);
            if let Some(value) = shared.queue.pop_front() {
                return Poll::Ready(Some(value));
            }
            if shared.senders == 0 {
                return Poll::Ready(None);
            }
            shared.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// A value that is there already.
    pub fn try_recv(&mut self) -> Option<T> {
        lock(&self.shared).queue.pop_front()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.receiver_gone = true;
        let left = std::mem::take(&mut shared.queue);
        drop(shared);
        // Values may run any code when dropped, so not under the lock.
        drop(left);
    }
}
