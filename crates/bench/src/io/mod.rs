//! Downloads of one payload over many connections at once, by one strategy of input and
//! output or another (`prony bench io`).
//!
//! ```no_run
//! use prony_bench::io::{IoOrder, Strategy, run};
//!
//! let mut order = IoOrder::new("127.0.0.1:8000".parse().unwrap());
//! order.strategy = Strategy::Poll;
//! let done = run(&order, &mut |_| {})?;
//! println!("{} downloads, {} bytes", done.line.count, done.line.bytes);
//! # Ok::<(), prony_bench::io::IoError>(())
//! ```
//!
//! Each connection asks once and reads to the end. The answer must be 200 and as long as it
//! says; what breaks that fails its download by name, and the others go on. The strategies
//! differ in how a thread learns that bytes are there and how it takes them, and in nothing
//! else: `threads` and `receive`, `poll`, `epoll` and `crowd`, `ring`. Every figure is
//! defined in `docs/io-strategies.md`.
//! Not for: many requests on a connection (`prony-load`, [`crate::client`]).

mod answer;
mod crowd;
mod epoll;
mod figures;
mod memory;
mod poll;
mod receive;
mod ring;
mod schedule;
mod threads;
mod transfer;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use prony_base::{Nanos, clock};
use prony_engine::Receive;
use prony_record::ProgramLine;
use thiserror::Error;

pub use self::answer::{Failure, Phase, Version};
pub use self::receive::VECTORED_MAX;
use self::transfer::Transfer;
use crate::BenchError;
use crate::usage::Usage;

/// Most connections of one run.
pub const CONNECTIONS_MAX: u32 = 100_000;
/// Most runs.
pub const ITERATIONS_MAX: u32 = 100_000;
/// Largest buffer of a connection, or of each part of a vectored read.
pub const BUFFER_BYTES_MAX: usize = 64 << 20;
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

/// Whose a receive buffer is, where one thread serves all connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Buffers {
    /// All connections', one after the other: it stays in the cache.
    #[default]
    Shared,
    /// Each connection has its own, as in the original.
    Own,
}

/// What is to be downloaded, and how.
#[derive(Clone, Debug)]
pub struct IoOrder {
    /// The server.
    pub address: SocketAddr,
    /// What is asked for.
    pub path: String,
    /// The version that is asked for it in.
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
    fn threads(&self) -> u32 {
        match self.strategy {
            Strategy::Threads => self.connections,
            Strategy::Poll | Strategy::Epoll | Strategy::Ring => 1,
        }
    }

    /// Name of the count of calls by which bytes are taken.
    fn receive_call(&self) -> &'static str {
        match self.vectored {
            1 => "recv_calls",
            _ => "readv_calls",
        }
    }

    fn check(&self) -> Result<(), IoError> {
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
            return wrong("a time-out of zero lets nothing happen".to_owned());
        }
        if !self.path.starts_with('/') || self.path.bytes().any(|byte| byte <= b' ' || byte == 127)
        {
            return wrong(format!("`{}` is no path", self.path.escape_debug()));
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
        /// What the kernel said.
        cause: io::Error,
    },
    /// The file for what the scheduler did cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
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
    fn system(call: &'static str, errno: rustix::io::Errno) -> IoError {
        IoError::System {
            call,
            cause: errno.into(),
        }
    }
}

/// What one strategy made of one run.
#[derive(Debug, Default)]
struct Downloads {
    transfers: Vec<Transfer>,
    calls: Calls,
}

/// Counts of calls by name.
#[derive(Clone, Debug, Default)]
struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }
}

/// One run, for a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Run {
    /// Downloads that failed.
    pub failed: u64,
    /// Mean of the times to make a socket, in nanoseconds.
    pub socket_ns: f64,
    /// Mean of the times to set a download up, in nanoseconds.
    pub setup_ns: f64,
    /// Mean length of a download, in nanoseconds.
    pub download_ns: f64,
    /// Bytes of the downloads that came to their end ÷ the sum of their lengths: the rate of one of mean length.
    pub bytes_per_s: f64,
    /// Length of the run.
    pub length: Nanos,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Mean of the memory seen, in bytes; `None`: it was not looked at, or the run was too short.
    pub pss_bytes: Option<f64>,
    /// CPU time, without that of looking at memory.
    pub cpu: Nanos,
}

/// What came of an order.
#[derive(Clone, Debug, Default)]
pub struct IoDone {
    /// The measurement over all runs.
    pub line: ProgramLine,
    /// Each run.
    pub runs: Vec<Run>,
    /// Failures in words, the first of each kind.
    pub failures: Vec<String>,
    /// What a reader must know beside it.
    pub notes: Vec<String>,
}

/// Does the downloads; `tell` is told of each run when it is over.
///
/// # Errors
/// [`IoError`]: the order cannot be followed, or the system does not let it. A download that
/// fails is no error: it is counted in `line.client`.
pub fn run(order: &IoOrder, tell: &mut dyn FnMut(&Run)) -> Result<IoDone, IoError> {
    order.check()?;
    raise_descriptors();
    let request = answer::request(order.version, &order.path, order.address);
    let schedule = match &order.schedule {
        Some(path) => Some(schedule::Recorder::start(path)?),
        None => None,
    };
    let mut figures = figures::Figures::new(order);
    for _ in 0..order.iterations {
        tell(&run_once(order, &request, &mut figures)?);
    }
    let mut done = figures.finish();
    if let Some(recorder) = schedule {
        done.notes.push(recorder.finish()?);
    }
    Ok(done)
}

fn run_once(
    order: &IoOrder,
    request: &[u8],
    figures: &mut figures::Figures,
) -> Result<Run, IoError> {
    let before = Usage::of_this_process();
    let sampler = match order.memory {
        true => Some(memory::Sampler::start()?),
        false => None,
    };
    let begin = clock::monotonic();
    let done = match order.strategy {
        Strategy::Threads => threads::run(order, request),
        Strategy::Poll => poll::run(order, request),
        Strategy::Epoll => epoll::run(order, request),
        Strategy::Ring => ring::run(order, request),
    };
    let length = clock::monotonic().since(begin);
    let memory = match sampler {
        Some(sampler) => sampler.finish()?,
        None => memory::Memory::default(),
    };
    let used = Usage::of_this_process().since(before, memory.own);
    Ok(figures.add(&done?, length, &memory, used))
}

/// Lets this process have as many descriptors as it may.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where it cannot be raised, the socket that is one too many is an error that says so.
    let _ = setrlimit(Resource::Nofile, raised);
}
