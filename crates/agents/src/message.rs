//! What a controller and its agents say to each other.
//!
//! A message is a line of JSON in an envelope ([`crate::link`]). Times are on the `CLOCK_MONOTONIC` of the agent that says or hears
//! them; the controller knows how far that is from its own ([`crate::offset`]).

use prony_base::Instant;
use prony_load::{PartResult, ToldTotals};
use prony_record::LoadSpec;
use serde::{Deserialize, Serialize};

/// Version of the messages: two programs that differ in it do not work together.
pub const VERSION: u32 = 1;

/// Who speaks. The first message of either side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Greeting {
    /// [`VERSION`].
    pub version: u32,
    /// Version and commit of the program, such as `prony 0.2.0 (0123abc)`.
    pub program: String,
    /// Name of its machine.
    pub machine: String,
    /// Cores that it may use there.
    pub cores: u32,
}

/// What a controller says to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToAgent {
    /// Who speaks.
    Hello(Greeting),
    /// Asks for the time, and says that the controller is there.
    Ping {
        /// Number of the question.
        number: u64,
    },
    /// A part of a file that the load needs, in base64, appended to those before it.
    File {
        /// Which.
        file: WorkFile,
        /// The bytes.
        part: String,
    },
    /// What to do. The agent connects and says that it is ready.
    Work {
        /// The load, with the part that is this agent's.
        spec: Box<LoadSpec>,
        /// Whoever asked for it owns the target, though its address is public.
        is_owned: bool,
    },
    /// Begin at this moment.
    Go {
        /// On the agent's clock.
        at: Instant,
    },
    /// An open pace goes on at so many requests a second, over all agents.
    Rate {
        /// Requests a second.
        rate_per_s: f64,
    },
    /// End the load now, and say what it came to.
    Stop,
}

/// A file that a load names.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkFile {
    /// The rows of `--data`.
    Data,
    /// An authority that is trusted, by its place.
    Authority(u32),
    /// The client's certificate.
    Certificate,
    /// Its key.
    Key,
}

/// What an agent says to its controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromAgent {
    /// Who speaks.
    Hello(Greeting),
    /// The time.
    Pong {
        /// Number of the question.
        number: u64,
        /// When it was heard, on the agent's clock.
        at: Instant,
    },
    /// All connections were tried.
    Ready {
        /// How many are open.
        opened: u64,
    },
    /// The load has begun.
    Begun {
        /// On the agent's clock.
        at: Instant,
    },
    /// A second of the window is over.
    Second {
        /// Its number, from 0.
        number: u64,
        /// What is told of it.
        totals: Box<ToldTotals>,
    },
    /// Completed and failed in the window so far.
    SoFar {
        /// Requests completed.
        completed: u64,
        /// Requests and attempts to connect that failed.
        failed: u64,
    },
    /// The load is over.
    Finished {
        /// What it came to.
        part: Box<PartResult>,
    },
    /// There is no load, or no result of it.
    Failed {
        /// Why.
        why: String,
    },
}
