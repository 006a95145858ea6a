//! One event loop per thread: tasks, timers, sockets; drivers ring, epoll and sim.

mod buffers;
mod config;
mod driver;
mod handle;
mod mailbox;
mod net;
mod remote;
mod slab;
mod stream;
mod tasks;
mod turn;
mod wheel;

pub use buffers::{Received, SendBuf};
pub use config::{
    Config, DriverChoice, DriverKind, Error, ListenOptions, LoopStats, RECV_BUFFERS_LIMIT,
};
pub use handle::{Elapsed, Handle, Sleep};
pub use mailbox::{Receiver, SendError, Sender, mailbox};
pub use stream::{Listener, PostLimit, Stream};
pub use tasks::Task;
pub use turn::run;
