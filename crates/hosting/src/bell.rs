//! A word from one task to another of the same loop: "look again".

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Rung by anyone, heard by one task; rung twice before it is heard, it is heard once.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Ready once it was rung since it was heard last.
    pub(crate) async fn heard(&self) {
        poll_fn(|cx| {
            if self.rung.take() {
                return Poll::Ready(());
            }
            self.waker.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }
}
