//! The order of downloads, and the errors that prevent them: an order is checked before anything is done.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use prony_base::Nanos;
use prony_engine::Receive;
use thiserror::Error;

use super::answer::Version;
use crate::BenchError;

/// Most connections of one run.
pub const CONNECTIONS_MAX: u32 = 100_000;
/// Most runs.
pub const ITERATIONS_MAX: u32 = 100_000;
/// Largest buffer of a connection, or of each part of a vectored read.
pub const BUFFER_BYTES_MAX: usize = 64 << 20;
/// Buffers that one vectored read may have.
pub const VECTORED_MAX: usize = 16;
/// Largest and smallest buffer of the ring's pool.
const RING_BUFFER_BYTES: std::ops::RangeInclusive<usize> = 64..=1 << 20;

/// How the program learns that bytes are there, and takes them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Strategy {
    /// A thread for each connection, which waits in `recv()`.
    Threads,
    /// One thread and `poll()`.
    #[default]
    Poll,
    /// One thread and `epoll`, level-triggered.
    Epoll,
    /// One thread and io_uring, by the engine.
    Ring,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 4] = [
        Strategy::Threads,
        Strategy::Poll,
        Strategy::Epoll,
        Strategy::Ring,
    ];

    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Threads => "threads",
            Strategy::Poll => "poll",
            Strategy::Epoll => "epoll",
            Strategy::Ring => "ring",
        }
    }
}

/// The owner of a receive buffer, where one thread serves all connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Buffers {
    /// All connections', one after the other: it stays in the cache.
    #[default]
    Shared,
    /// Each connection has its own, as in the original.
    Own,
}

/// The downloads to do, and how.
#[derive(Clone, Debug)]
pub struct IoOrder {
    /// The server.
    pub address: SocketAddr,
    /// The path to request.
    pub path: String,
    /// The version of HTTP in which it is requested.
    pub version: Version,
    /// Connections at once, each for one download.
    pub connections: u32,
    /// Runs, one after the other.
    pub iterations: u32,
    /// How.
    pub strategy: Strategy,
    /// How the ring receives.
    pub receive: Receive,
    /// Most bytes that one call takes; with `vectored`, into each part.
    pub buffer_bytes: usize,
    /// Of `poll` and `epoll`; a thread has its own in any case, the ring a pool.
    pub buffers: Buffers,
    /// Of `poll` and `epoll`: read from a socket until it has nothing, while the others wait.
    pub drains: bool,
    /// Most buffers of the ring's pool.
    pub ring_buffers: u32,
    /// Buffers that one read fills in turn; 1: a plain `recv`.
    pub vectored: u32,
    /// Throw the body away in the kernel: it is counted and not seen.
    pub discard: bool,
    /// Never sleep while waiting.
    pub spin: bool,
    /// Bytes that each body must have; `None`: what the server says.
    pub payload_bytes: Option<u64>,
    /// Longest that nothing may happen on a connection.
    pub timeout: Nanos,
    /// Look at this process's memory while it runs.
    pub memory: bool,
    /// A file for what the scheduler did with each thread, seen every 10 ms.
    pub schedule: Option<PathBuf>,
}

impl IoOrder {
    /// 100 connections, once, by `poll()` with one buffer of 64 KiB.
    pub fn new(address: SocketAddr) -> IoOrder {
        IoOrder {
            address,
            path: "/testpayload".to_owned(),
            version: Version::default(),
            connections: 100,
            iterations: 1,
            strategy: Strategy::default(),
            receive: Receive::default(),
            buffer_bytes: 64 << 10,
            buffers: Buffers::default(),
            drains: false,
            ring_buffers: 16,
            vectored: 1,
            discard: false,
            spin: false,
            payload_bytes: None,
            timeout: Nanos::from_secs(10),
            memory: true,
            schedule: None,
        }
    }

    /// Threads that do the downloads.
    pub(super) fn threads(&self) -> u32 {
        match self.strategy {
            Strategy::Threads => self.connections,
            Strategy::Poll | Strategy::Epoll | Strategy::Ring => 1,
        }
    }

    /// Name of the count of calls by which bytes are taken.
    pub(super) fn receive_call(&self) -> &'static str {
        match self.vectored {
            1 => "recv_calls",
            _ => "readv_calls",
        }
    }

    pub(super) fn check(&self) -> Result<(), IoError> {
        let wrong = |what: String| Err(IoError::Order(what));
        if self.connections == 0 || self.connections > CONNECTIONS_MAX {
            return wrong(format!("connections must be from 1 to {CONNECTIONS_MAX}"));
        }
        if self.iterations == 0 || self.iterations > ITERATIONS_MAX {
            return wrong(format!("iterations must be from 1 to {ITERATIONS_MAX}"));
        }
        if self.buffer_bytes == 0 || self.buffer_bytes > BUFFER_BYTES_MAX {
            return wrong(format!(
                "a buffer must have from 1 to {BUFFER_BYTES_MAX} bytes"
            ));
        }
        if self.vectored == 0 || self.vectored as usize > VECTORED_MAX {
            return wrong(format!(
                "a vectored read takes from 1 to {VECTORED_MAX} buffers"
            ));
        }
        if self.timeout == Nanos::ZERO {
            return wrong("a time-out of zero is too short for anything".to_owned());
        }
        if !self.path.starts_with('/') || self.path.bytes().any(|byte| byte <= b' ' || byte == 127)
        {
            return wrong(format!("`{}` is not a path", self.path.escape_debug()));
        }
        if self.strategy == Strategy::Ring {
            return self.check_ring();
        }
        match (self.discard, self.vectored) {
            (true, 2..) => wrong(
                "what is thrown away in the kernel needs no buffers: leave out one of discard and vectored"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn check_ring(&self) -> Result<(), IoError> {
        let wrong = |what: &str| Err(IoError::Order(what.to_owned()));
        if self.vectored > 1 {
            return wrong("the ring takes one buffer of its pool at a time: no vectored reads");
        }
        if self.buffers == Buffers::Own {
            return wrong("the ring's buffers are a pool: no connection has its own");
        }
        if !RING_BUFFER_BYTES.contains(&self.buffer_bytes) {
            return wrong("a buffer of the ring must have from 64 bytes to 1 MiB");
        }
        if !(1..=prony_engine::RECV_BUFFERS_LIMIT).contains(&self.ring_buffers) {
            return wrong("the ring's pool must have from 1 to 32768 buffers");
        }
        Ok(())
    }
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum IoError {
    /// An order that cannot be followed.
    #[error("{0}")]
    Order(String),
    /// A system call that no download can do without failed.
    #[error("{call}: {cause}")]
    System {
        /// The call.
        call: &'static str,
        /// The error of the kernel.
        cause: io::Error,
    },
    /// The file for what the scheduler did cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// A thread could not be had, or panicked.
    #[error("{0}")]
    Thread(#[from] BenchError),
    /// The engine's loop could not start or go on.
    #[error("{0}")]
    Engine(#[from] prony_engine::Error),
}

impl IoError {
    pub(super) fn system(call: &'static str, errno: rustix::io::Errno) -> IoError {
        IoError::System {
            call,
            cause: errno.into(),
        }
    }
}
