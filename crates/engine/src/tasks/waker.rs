//! Wakers to keep.
//! Not for: making wakers (`remote`).

use std::fmt;
use std::task::Waker;

use super::wake_here;
use crate::remote;

/// A waker to keep for later, cheaper than a clone of it: a waker of an engine's task is
/// kept as the number that it is, and woken without a detour. For whoever builds things
/// that tasks wait for. The default wakes nobody.
///
/// ```
/// use prony_engine::TaskWaker;
/// use std::cell::RefCell;
/// use std::future::poll_fn;
/// use std::task::Poll;
///
/// prony_engine::run(&Default::default(), |_| async {
///     let kept = RefCell::new(None);
///     poll_fn(|cx| {
///         if let Some(waker) = kept.borrow_mut().take() {
///             let waker: TaskWaker = waker;
///             assert!(waker.will_wake(cx.waker()));
///             return Poll::Ready(());
///         }
///         *kept.borrow_mut() = Some(TaskWaker::of(cx.waker()));
///         TaskWaker::of(cx.waker()).wake();
///         Poll::Pending
///     })
///     .await;
/// })
/// .unwrap();
/// ```
pub struct TaskWaker {
    /// Loop and task; [`NO_TASK`] where the waker is none of a loop's.
    number: u64,
    // In a box, because it is seldom there.
    stranger: Option<Box<Waker>>,
}

/// No loop has so many tasks.
const NO_TASK: u64 = u64::MAX;

impl TaskWaker {
    /// Keeps what wakes as `waker` does.
    #[inline]
    pub fn of(waker: &Waker) -> TaskWaker {
        match remote::names(waker) {
            Some((loop_id, index)) => TaskWaker {
                number: number(loop_id, index),
                stranger: None,
            },
            None => TaskWaker::of_stranger(waker),
        }
    }

    #[cold]
    #[inline(never)]
    fn of_stranger(waker: &Waker) -> TaskWaker {
        TaskWaker {
            number: NO_TASK,
            stranger: Some(Box::new(waker.clone())),
        }
    }

    /// As [`Waker::will_wake`].
    #[inline]
    pub fn will_wake(&self, waker: &Waker) -> bool {
        match (remote::names(waker), &self.stranger) {
            (Some((loop_id, index)), _) => self.number == number(loop_id, index),
            (None, Some(stranger)) => stranger.will_wake(waker),
            (None, None) => false,
        }
    }

    /// As [`Waker::wake`].
    #[inline(always)]
    pub fn wake(self) {
        if self.number == NO_TASK {
            return self.wake_stranger();
        }
        // A task's waker has no stranger, so that nothing is dropped here.
        std::mem::forget(self.stranger);
        let (loop_id, index) = ((self.number >> 32) as u16, self.number as u32);
        if !wake_here(loop_id, index) {
            remote::wake_elsewhere(loop_id, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_stranger(self) {
        if let Some(waker) = self.stranger {
            waker.wake();
        }
    }
}

fn number(loop_id: u16, index: u32) -> u64 {
    u64::from(loop_id) << 32 | u64::from(index)
}

impl Default for TaskWaker {
    #[inline]
    fn default() -> TaskWaker {
        TaskWaker {
            number: NO_TASK,
            stranger: None,
        }
    }
}

impl fmt::Debug for TaskWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskWaker")
    }
}
