//! Services with dependencies, typed events with priorities, coroutines: on the engine.
#![forbid(unsafe_code)]

pub mod coroutines;
pub mod events;
pub mod realtime;
pub mod services;
