//! The peer's side: a thread in a network namespace of its own, which does there what it is
//! given, one thing after the other.
//!
//! A thread and no process, because namespaces and capabilities belong to threads: what it
//! starts is a child of the supervisor like all else, and its namespace needs no name by
//! which another process could enter it, so that none can be left behind. With it, the
//! supervisor can give up its capabilities before the trial begins.
//!
//! Not for: what the namespace is furnished with ([`super::shape`]).

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::launch::{self, LaunchError};

type Job = Box<dyn FnOnce() + Send>;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Side {
    jobs: SyncSender<Job>,
    thread: i32,
}

impl Side {
    /// Starts a thread that leaves the caller's network namespace for a new one.
    pub fn open() -> io::Result<Side> {
        let (jobs, list) = sync_channel(1);
        let (tell, told) = sync_channel(1);
        let begin = move || begin(&tell, &list);
        thread::Builder::new()
            .name("peer's side".to_owned())
            .spawn(begin)?;
        let thread = told.recv().map_err(|_| gone())?.map_err(io::Error::other)?;
        Ok(Side { jobs, thread })
    }

    /// The number of the thread, by which the kernel finds its namespace.
    pub fn thread(&self) -> i32 {
        self.thread
    }

    /// Does `action` there and waits for it. Errors: the thread has ended.
    pub fn run<T: Send + 'static>(
        &self,
        action: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (tell, told) = sync_channel(1);
        let job = move || {
            // Who asked waits for the answer, unless it is about to end.
            let _ = tell.send(action());
        };
        self.jobs.send(Box::new(job)).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread on the peer's side has ended")
}

/// The thread's whole life.
fn begin(tell: &SyncSender<Result<i32, LaunchError>>, list: &Receiver<Job>) {
    let entered = launch::leave_network().and_then(|()| launch::furnish_network());
    let number = rustix::thread::gettid().as_raw_nonzero().get();
    let begun = entered.is_ok();
    if tell.send(entered.map(|()| number)).is_err() || !begun {
        return;
    }
    for job in list {
        job();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_an_error_not_a_hang() {
        let (jobs, list) = sync_channel(1);
        drop(list);
        let side = Side { jobs, thread: 1 };
        let error = side.run(|| ()).expect_err("nobody is there");
        assert_eq!(error.to_string(), "the thread on the peer's side has ended");
    }

    #[test]
    fn an_action_that_panics_is_an_error_not_a_hang() {
        let (jobs, list) = sync_channel::<Job>(1);
        let thread = thread::spawn(move || list.into_iter().for_each(|job| job()));
        let side = Side { jobs, thread: 1 };
        assert_eq!(side.run(|| 7).expect("it is there"), 7);
        let panics = || -> i32 { std::panic::resume_unwind(Box::new(())) };
        side.run(panics).expect_err("it panicked");
        thread.join().expect_err("the thread is gone with it");
    }
}
