//! Coroutines: tasks, scopes, and what they wait for.
//!
//! # What for
//! Many things at once on one thread, each written as if it were alone: a task is an
//! `async` block that runs until it waits. Everything here belongs to one loop of
//! [`prony_engine`] and stays on its thread, so that nothing here locks. Not for: values
//! between threads (`prony_engine::mailbox`, [`crate::events`]), sockets (`prony_engine`).
//!
//! # Tasks
//! [`Coroutines`] starts tasks and counts how they end. A [`Join`] is awaited for the
//! result; a panic is a result too, and never the end of the loop.
//!
//! ```
//! use prony_runtime::coroutines::{Coroutines, TaskError};
//!
//! prony_engine::run(&Default::default(), |handle| async move {
//!     let coroutines = Coroutines::new(&handle);
//!     let answer = coroutines.spawn(async { 6 * 7 });
//!     let endless = coroutines.spawn_named("endless", std::future::pending::<()>());
//!     assert_eq!(answer.await, Ok(42));
//!     assert_eq!(coroutines.snapshot().names, ["endless"]);
//!     endless.cancel();
//!     assert_eq!(endless.await, Err(TaskError::Cancelled));
//! })
//! .unwrap();
//! ```
//!
//! Dropping a `Join` cancels its task, and [`detach`](Join::detach) lets it run on its
//! own. A [`Scope`] holds many tasks and ends them all: when it is dropped or closed, or
//! when its deadline passes.
//!
//! # What tasks wait for
//! - [`AutoEvent`]: something has happened; one waiter goes on each time.
//! - [`ManualEvent`]: something is the case; all waiters go on until it is not.
//! - [`Mutex`] and [`Semaphore`]: one at a time, or so many at a time, in the order in
//!   which they came.
//! - [`channel`]: values from many tasks to one; a sender waits while it is full.
//! - [`Generator`]: values made one at a time, when they are asked for.
//! - [`Interval`]: a time that comes again and again; [`Handle::sleep`] waits once, and
//!   [`Handle::timeout`] gives up on something.
//!
//! All of them are plain futures: combinators such as those of the `futures` crate work.
//! Any of them may be dropped at any `await`: a waiter that is dropped takes nothing with
//! it, and what it was given already goes to the next one.
//!
//! ```
//! use prony_base::Nanos;
//! use prony_runtime::coroutines::{Coroutines, Elapsed, Scope, channel};
//!
//! prony_engine::run(&Default::default(), |handle| async move {
//!     let coroutines = Coroutines::new(&handle);
//!     let scope = Scope::new(&coroutines);
//!     let (sender, mut receiver) = channel(16);
//!     for worker in 0..3 {
//!         let sender = sender.clone();
//!         scope
//!             .spawn_named(format!("worker {worker}"), async move {
//!                 sender.send(worker).await.unwrap();
//!                 std::future::pending::<()>().await;
//!             })
//!             .detach();
//!     }
//!     let mut sum = 0;
//!     for _ in 0..3 {
//!         sum += receiver.recv().await.unwrap();
//!     }
//!     assert_eq!(sum, 3);
//!     let nothing_more = handle.timeout(Nanos::from_micros(10), receiver.recv()).await;
//!     assert_eq!(nothing_more, Err(Elapsed));
//!     assert_eq!(scope.close().await.cancelled, 3);
//! })
//! .unwrap();
//! ```
//!
//! # What it costs
//! `cargo bench -p prony-runtime --bench coroutines` measures it. A task is one piece of
//! memory, used again for the next of its size; in a steady state nothing here allocates.
//!
//! [`Handle::sleep`]: prony_engine::Handle::sleep
//! [`Handle::timeout`]: prony_engine::Handle::timeout

mod channel;
mod events;
mod generator;
mod mutex;
mod permits;
mod scope;
mod task;
mod time;
mod waiters;

pub use channel::{Receiver, SendError, Sender, TrySendError, channel};
pub use events::{AutoEvent, AutoWait, ManualEvent};
pub use generator::{Generator, Yielder};
pub use mutex::{Mutex, MutexGuard, Permit, Semaphore};
pub use prony_engine::{Elapsed, Sleep};
pub use scope::{Ended, FAILURES_MAX, Failure, Scope};
pub use task::{Coroutines, Join, NAMES_MAX, TaskError, Tasks};
pub use time::{Interval, Missed, Tick};
