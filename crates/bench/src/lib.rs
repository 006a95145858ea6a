//! Works of a fixed size that measure the runtime, each run to its end.
//!
//! ```
//! use prony_bench::{Order, Work, run};
//!
//! let order = Order { count: 1_000, threads: 2, ..Order::default() };
//! let line = run(Work::Serializer, &order)?.line;
//! assert_eq!((line.measure.as_str(), line.count), ("messages", 2_000));
//! # Ok::<(), prony_bench::BenchError>(())
//! ```
//!
//! The works are those of Ichor's benchmarks, so that the same things can be set side by
//! side. Every one goes through the runtime's public face, on the path that an application's
//! events, coroutines and services take, and ends in a checksum that only the work itself
//! can have produced. Each thread has a loop of its own and does the whole work; the time is
//! from the making of the first loop to the end of the last one.
//! Not for: servers (`prony-load`), or comparing programs (`prony-lab`).
//!
//! # Central types
//! - [`Work`]: which work.
//! - [`Order`]: a work's size, threads, driver and variants.
//! - [`Done`]: what was measured, as the line of JSON that `prony bench --json` prints.
//!
//! [`io`] has one file per strategy of receiving, [`client`] drives the client library in a closed loop; each download and
//! each request ends in exactly one count. [`prony_ping`] is the smallest whole application on the runtime.
#![forbid(unsafe_code)]

pub mod client;
mod coroutine;
mod event;
pub mod io;
mod realtime;
mod requests;
mod serializer;
mod spread;
mod start;
mod start_stop;
mod threads;
mod usage;

pub use usage::peak_bytes;

use std::fmt;
use std::str::FromStr;

use prony_base::Nanos;
use prony_engine::{Config, DriverChoice};
use prony_record::ProgramLine;
use thiserror::Error;

/// Threads that a work may be done on.
pub const THREADS_MAX: u32 = 1024;

/// A work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Work {
    /// A coroutine that awaits an event which a second one sets.
    Coroutine,
    /// Events pushed, all of them, and then dispatched.
    Event,
    /// Services and a logger for each, added, started and stopped.
    Start,
    /// A service that is stopped and started, with one that requires it.
    StartStop,
    /// A message to JSON and back, compared.
    Serializer,
    /// A job with a deadline, each run scheduled by the one before.
    Realtime,
    /// Requests to the ping service over loopback.
    Ping,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 7] = [
        Work::Coroutine,
        Work::Event,
        Work::Start,
        Work::StartStop,
        Work::Serializer,
        Work::Realtime,
        Work::Ping,
    ];

    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Work::Coroutine => "coroutine",
            Work::Event => "event",
            Work::Start => "start",
            Work::StartStop => "start-stop",
            Work::Serializer => "serializer",
            Work::Realtime => "realtime",
            Work::Ping => "ping",
        }
    }

    /// A summary for a list.
    pub fn summary(self) -> &'static str {
        match self {
            Work::Coroutine => {
                "a coroutine awaits an event, set by a second one that came through the queue"
            }
            Work::Event => "events are pushed, all before the first is dispatched to its handler",
            Work::Start => "services and a logger for each are added, started and stopped",
            Work::StartStop => {
                "A requires B, and has it stopped and started by the manager; each has a logger"
            }
            Work::Serializer => {
                "a message to JSON in a fresh buffer, read back, both fields compared"
            }
            Work::Realtime => {
                "a job of about 150 us, each run scheduled by the one before; SCHED_FIFO, pinned"
            }
            Work::Ping => "requests to the ping service over loopback, two connections a thread",
        }
    }

    /// How often it is done on each thread by default.
    pub fn count(self) -> u64 {
        match self {
            Work::Coroutine | Work::Event | Work::Serializer => 5_000_000,
            Work::Start => 10_000,
            Work::StartStop => 1_000_000,
            Work::Realtime => 5_000,
            Work::Ping => 200_000,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(word: &str) -> Result<Work, String> {
        let known = Work::ALL.iter().find(|work| work.name() == word);
        known.copied().ok_or_else(|| {
            let names = Work::ALL.map(Work::name).join(", ");
            format!("unknown work `{word}`: use one of {names}")
        })
    }
}

/// How a service comes by what it requires.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Injection {
    /// It registers what it requires, and is notified when that comes and goes.
    #[default]
    Explicit,
    /// It is made with what it requires.
    Constructor,
}

/// The receiver of the events of [`Work::Event`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Handling {
    /// A coroutine is made of each event.
    #[default]
    Coroutine,
    /// A function is called with each event.
    Plain,
    /// Nobody sees them; the queue counts them.
    None,
}

/// The payload of an event of [`Work::Event`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Payload {
    /// Only what the queue gives it: number, originator and priority.
    #[default]
    None,
    /// Four words beside that: 32 bytes.
    Words,
}

/// How the second coroutine of [`Work::Coroutine`] comes to run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Through {
    /// An event is pushed, whose handler it is.
    #[default]
    Events,
    /// It is spawned as a task of the loop.
    Tasks,
}

/// A work and its size.
#[derive(Clone, Debug)]
pub struct Order {
    /// How often, on each thread.
    pub count: u64,
    /// Threads that do it at the same time, at least 1.
    pub threads: u32,
    /// For [`Work::Start`].
    pub injection: Injection,
    /// Different priorities among the events, at least 1.
    pub priorities: u32,
    /// For [`Work::Event`].
    pub handling: Handling,
    /// For [`Work::Event`].
    pub payload: Payload,
    /// For [`Work::Coroutine`].
    pub through: Through,
    /// What no run should exceed, for [`Work::Realtime`].
    pub deadline: Nanos,
    /// Driver of the loops.
    pub driver: DriverChoice,
}

impl Order {
    /// The settings of each thread's loop.
    fn config(&self) -> Config {
        Config {
            driver: self.driver,
            ..Config::default()
        }
    }
}

impl Default for Order {
    fn default() -> Order {
        Order {
            count: 1,
            threads: 1,
            injection: Injection::default(),
            priorities: 1,
            handling: Handling::default(),
            payload: Payload::default(),
            through: Through::default(),
            deadline: Nanos::from_millis(2),
            driver: DriverChoice::default(),
        }
    }
}

/// The result of a work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// The measurement.
    pub line: ProgramLine,
    /// Notes for the reader: what the system refused.
    pub notes: Vec<String>,
}

/// Why a work was not done.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A loop could not start or go on.
    #[error("{0}")]
    Engine(#[from] prony_engine::Error),
    /// A thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// A thread panicked.
    #[error("a thread panicked")]
    Panicked,
    /// The work was not done as it should have been.
    #[error("{work}: {wrong}")]
    Wrong {
        /// Which.
        work: Work,
        /// The error.
        wrong: String,
    },
    /// An order that cannot be followed.
    #[error("{0}")]
    Order(String),
}

/// Does a work to its end.
///
/// # Errors
/// [`BenchError`]: the order cannot be followed, the system does not let it, or the work was
/// not done as it should have been.
pub fn run(work: Work, order: &Order) -> Result<Done, BenchError> {
    if order.threads == 0 || order.threads > THREADS_MAX {
        return Err(BenchError::Order(format!(
            "threads must be from 1 to {THREADS_MAX}"
        )));
    }
    if order.count == 0 || order.priorities == 0 {
        return Err(BenchError::Order("there is nothing to do".to_owned()));
    }
    match work {
        Work::Coroutine => coroutine::run(order),
        Work::Event => event::run(order),
        Work::Start => start::run(order),
        Work::StartStop => start_stop::run(order),
        Work::Serializer => serializer::run(order),
        Work::Realtime => realtime::run(order),
        Work::Ping => requests::run(order),
    }
}
