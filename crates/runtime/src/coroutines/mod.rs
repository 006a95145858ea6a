//! Coroutines: tasks, scopes, and what they wait for.

mod events;
mod gate;
mod task;
mod waiters;

pub use events::{AutoEvent, AutoWait, ManualEvent};
pub use task::{Coroutines, Join, NAMES_MAX, TaskError, Tasks};
