//! One event loop per thread: tasks, timers, sockets; drivers ring, epoll and sim.
//!
//! # What for
//! [`run`] runs a future, and the tasks that it [spawns](Handle::spawn), on the
//! calling thread. Tasks sleep, set time-outs, listen, connect, [`recv`](Stream::recv)
//! and [`post`](Stream::post), [`send_file`](Stream::send_file) and
//! [`discard`](Stream::discard); nearly all the CPU time of a request is then the
//! kernel's. Threads talk by [`mailbox`]. Not for: HTTP (`prony-http`), services and
//! typed events (`prony-runtime`), reading files, names, TLS, UDP.
//!
//! ```
//! use prony_engine::{Config, ListenOptions, run};
//!
//! let answer = run(&Config::default(), |handle| async move {
//!     let listener = handle.listen("127.0.0.1:0".parse().unwrap(), &ListenOptions::default())?;
//!     let address = listener.local_addr();
//!     let server = handle.spawn(async move {
//!         let (stream, _) = listener.accept().await?;
//!         let bytes = stream.recv().await?;
//!         stream.post(bytes.to_ascii_uppercase())
//!     });
//!     let stream = handle.connect(address).await?;
//!     stream.post("ping")?;
//!     server.await?;
//!     Ok::<_, std::io::Error>(stream.recv().await?.to_vec())
//! });
//! assert_eq!(answer.unwrap().unwrap(), b"PING");
//! ```
//!
//! # How it goes
//! One turn of the loop is `turn::Core::turn`, which fits on a screen:
//!
//! 1. Tasks that are due are polled (`tasks`). What they ask for only changes state
//!    (`net`): bytes are queued, an operation is noted.
//! 2. `Net::flush` turns what was asked into operations, each with a token that
//!    names its owner and the owner's generation, and submits them as one batch.
//! 3. The driver waits, not past the next timer (`wheel`), and lists completions.
//! 4. `Net::complete` takes them in and makes tasks due. A token whose owner has gone
//!    names nothing. No task ever runs inside 2, 3 or 4.
//!
//! A driver is a trait of a few functions (`driver`), used through one pointer once
//! per turn: `ring` is io_uring, `epoll` serves where that is not allowed, and [`sim`]
//! is a network in which a seed decides everything that can go wrong.
//!
//! # Rules
//! - A loop and all that belongs to it stays on its thread (`!Send`); wakers may go
//!   anywhere, because a waker is only a number (`remote`).
//! - [`Received`] is a guard over a pooled buffer. Posted bytes belong to the loop
//!   until the kernel is done with them, whatever happens to stream, task or loop.
//! - Dropping a future cancels its wait and loses no data: what has arrived or been
//!   accepted is there for the next call.
//! - In steady state nothing is allocated per operation. Every queue has its limit in
//!   [`Config`] or [`ListenOptions`].
//!
//! # Central types
//! - [`Handle`]: the loop, as its tasks see it: spawns, sleeps, listens, connects.
//! - [`Stream`]: one connection: receives, posts, sends files, discards.
//! - [`Config`]: the driver and every limit of a loop.
//!
//! # Inside
//! A task is one allocation, shared by the loop and the holder of its [`Task`] (`tasks`). [`thread`] pins threads, locks
//! memory and sets real-time priorities. Each call into the kernel lies between two readings of the clock, which travel with the
//! completion (`stamps`): when posted bytes were handed over and when received ones arrived, the latter by the kernel's own
//! time stamps where the driver has them.
//!
//! Bulk transfers: receives and discards (`MSG_TRUNC`) on one stream are never outstanding together; files go out by
//! sendfile, in order with the posted bytes; on the ring a few receive buffers serve all connections in turn.
//!
//! # Invariants
//! - A loop and its tasks never leave their thread.
//! - Completions never run inside submission or reaping. A token carries a generation, so that a stale completion names nothing.
//! - A dropped future is cancelled, and its buffer lives until the kernel has released it.
//! - A loop announces that it sleeps before its last look for work, and a waker queues its task before it looks whether the loop
//!   sleeps: no wake-up is lost, and waking a loop that is awake costs no system call.
//! - All drivers pass one shared test file.

mod alarm;
mod buffers;
mod config;
mod driver;
mod handle;
mod mailbox;
mod net;
mod pages;
mod patience;
mod remote;
mod run;
pub mod sim;

mod slab;
mod stamps;
mod stream;
mod sync;
mod tasks;
pub mod thread;
mod turn;
mod wakeup_latency;
mod wheel;

pub use alarm::Alarm;
pub use buffers::{Received, SendBuf};
pub use config::{
    Config, ConnectOptions, DriverChoice, DriverKind, Error, ListenOptions, LoopStats,
    RECV_BUFFERS_LIMIT, Receive,
};
pub use handle::{Elapsed, Handle, Sleep};
pub use mailbox::{Receiver, SendError, Sender, mailbox};
pub use pages::prefer_huge_pages;
pub use run::run;
pub use stamps::{Arrival, Bracket};
pub use stream::{Accepted, FileTooShort, Listener, PostLimit, Stream};
pub use tasks::{JoinOutcome, Task, TaskCounts, TaskId, TaskWaker};
