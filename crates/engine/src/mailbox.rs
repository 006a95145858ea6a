//! Values from any thread to a task of one loop: a bounded queue.
//! Not for: tasks of the same loop among themselves, which can share a `RefCell`.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

use crate::sync::{Arc, Mutex, MutexGuard};

struct MailboxState<T> {
    queue: VecDeque<T>,
    limit: usize,
    waker: Option<Waker>,
    senders: usize,
    receiver_gone: bool,
}

/// A mailbox that holds at most `limit` values (at least one). The receiver
/// belongs to one loop's task; senders go to any thread.
pub fn mailbox<T: Send>(limit: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Mutex::new(MailboxState {
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

fn lock<T>(shared: &Mutex<MailboxState<T>>) -> MutexGuard<'_, MailboxState<T>> {
    // A panic while it was held left the queue as it was: nothing runs inside.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reason why a value was not sent, with the value.
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

/// Sends values to a mailbox, from any thread.
pub struct Sender<T> {
    shared: Arc<Mutex<MailboxState<T>>>,
}

impl<T: Send> Sender<T> {
    /// Sends a value and wakes the receiver; many sends in a row cost one
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

    /// Whether the receiver is gone: nothing that is put in will be taken.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared).receiver_gone
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
    shared: Arc<Mutex<MailboxState<T>>>,
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
            let before = shared.waker.replace(cx.waker().clone());
            drop(shared);
            // A foreign waker may run any code when dropped, so not under the lock.
            drop(before);
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
        let left = (std::mem::take(&mut shared.queue), shared.waker.take());
        drop(shared);
        // Values may run any code when dropped, so not under the lock.
        drop(left);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::future::block_on;
    use loom::thread;

    #[test]
    fn loom_values_arrive_once_and_in_order_and_then_the_end() {
        loom::model(|| {
            let (sender, mut receiver) = mailbox(2);
            let other = thread::spawn(move || {
                sender.send(1).unwrap();
                sender.send(2).unwrap();
            });
            block_on(async move {
                assert_eq!(receiver.recv().await, Some(1));
                assert_eq!(receiver.recv().await, Some(2));
                assert_eq!(receiver.recv().await, None);
            });
            other.join().unwrap();
        });
    }

    #[test]
    fn loom_two_senders_lose_nothing() {
        loom::model(|| {
            let (sender, mut receiver) = mailbox(2);
            let theirs = sender.clone();
            let other = thread::spawn(move || theirs.send(1).unwrap());
            sender.send(2).unwrap();
            drop(sender);
            let mut got = block_on(async {
                let both = (receiver.recv().await, receiver.recv().await);
                assert_eq!(receiver.recv().await, None);
                [both.0.unwrap(), both.1.unwrap()]
            });
            other.join().unwrap();
            got.sort_unstable();
            assert_eq!(got, [1, 2]);
        });
    }

    #[test]
    fn loom_a_value_for_a_receiver_that_goes_comes_back_or_is_dropped_once() {
        loom::model(|| {
            let token = Arc::new(());
            let (sender, receiver) = mailbox(1);
            let theirs = token.clone();
            let other = thread::spawn(move || match sender.send(theirs) {
                Ok(()) => {}
                Err(SendError::Closed(value)) => drop(value),
                Err(SendError::Full(_)) => panic!("it holds one"),
            });
            drop(receiver);
            other.join().unwrap();
            assert_eq!(Arc::strong_count(&token), 1);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Wake};

    use super::*;

    /// Wakes nothing, and holds a sender.
    struct Holds(#[expect(dead_code, reason = "it is dropped with this")] Sender<u32>);

    impl Wake for Holds {
        fn wake(self: std::sync::Arc<Holds>) {}
    }

    #[test]
    fn a_waker_that_is_dropped_may_use_the_mailbox() {
        let (sender, mut receiver) = mailbox(1);
        let holder = Waker::from(std::sync::Arc::new(Holds(sender.clone())));
        {
            let mut waiting = pin!(receiver.recv());
            let mut cx = Context::from_waker(&holder);
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
            drop(holder);
            // It replaces the other waker, which took the lock again, for ever.
            let mut cx = Context::from_waker(Waker::noop());
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
        }
        drop(sender);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(receiver.recv()).poll(&mut cx).is_ready());
    }

    #[test]
    fn a_sender_sees_that_the_receiver_is_gone() {
        let (sender, receiver) = mailbox::<u32>(1);
        assert!(!sender.is_closed());
        drop(receiver);
        assert!(sender.is_closed());
    }

    #[test]
    fn a_receiver_that_goes_lets_its_waker_go() {
        let (sender, mut receiver) = mailbox(1);
        let holder = std::sync::Arc::new(Holds(sender.clone()));
        let waker = Waker::from(holder.clone());
        let mut cx = Context::from_waker(&waker);
        assert!(pin!(receiver.recv()).poll(&mut cx).is_pending());
        drop((receiver, waker));
        assert_eq!(std::sync::Arc::strong_count(&holder), 1);
        assert_eq!(sender.send(1), Err(SendError::Closed(1)));
    }
}
