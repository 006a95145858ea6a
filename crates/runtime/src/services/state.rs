//! The states of a service, and the fields that only few services have.
//! Not for: the steps between states (`graph`).

use std::fmt;

use prony_base::Nanos;
use prony_engine::Task;
use serde::Serialize;

/// The state of a service in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Wanted, and something that it requires does not run.
    Waiting,
    /// Its start has begun and is not over.
    Starting,
    /// Started; its dependents may use it.
    Running,
    /// To be stopped, after those that use it.
    Leaving,
    /// Its stop has begun and is not over.
    Stopping,
    /// Not wanted.
    Stopped,
    /// Its start or stop failed; it rests until it is asked to start again.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Waiting => "waiting",
            State::Starting => "starting",
            State::Running => "running",
            State::Leaving => "leaving",
            State::Stopping => "stopping",
            State::Stopped => "stopped",
            State::Failed => "failed",
        })
    }
}

/// The reason why a service failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Reason {
    /// The start said so.
    StartFailed(String),
    /// The constructor, a callback or the start panicked.
    StartPanicked(String),
    /// The start was not over in this time, and was dropped.
    StartTimedOut(Nanos),
    /// The stop said so.
    StopFailed(String),
    /// The stop panicked.
    StopPanicked(String),
    /// The stop was not over in this time, and was dropped.
    StopTimedOut(Nanos),
    /// The factory of something that it requires made nothing of use.
    NotMade(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::StartFailed(why) => write!(f, "its start failed: {why}"),
            Reason::StartPanicked(why) => write!(f, "its start panicked: {why}"),
            Reason::StartTimedOut(limit) => {
                write!(f, "its start was not over after {limit} and was dropped")
            }
            Reason::StopFailed(why) => write!(f, "its stop failed: {why}"),
            Reason::StopPanicked(why) => write!(f, "its stop panicked: {why}"),
            Reason::StopTimedOut(limit) => {
                write!(f, "its stop was not over after {limit} and was dropped")
            }
            Reason::NotMade(why) => f.write_str(why),
        }
    }
}

/// Fields that only few services have, so that the others need no memory for them.
#[derive(Default)]
pub(super) struct Rare {
    /// The reason of its last failure.
    pub reason: Option<Reason>,
    pub start_timeout: Option<Nanos>,
    pub stop_timeout: Option<Nanos>,
    /// Its start or stop, while that is under way.
    pub task: Option<Task<()>>,
}
