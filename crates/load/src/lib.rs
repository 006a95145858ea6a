//! The load generator: drives one HTTP server in a closed loop and counts every
//! request once.
//!
//! [`run`] takes a resolved [`LoadSpec`] and blocks until the run has ended;
//! an [`Observer`] hears when the measured window is, and how far the run has
//! come. One thread is one event loop; a connection is one task on it, with one
//! request outstanding.
//!
//! ```text
//! connect all ──> warm-up ──> window ──> drain
//!                 part::WarmUp  Measured   Drain: nothing starts, the rest is answered or times out
//! ```
//!
//! Each request has a time at which it was sent, one at which its first byte
//! came and one at which it was done, each read from the clock when the engine
//! hands over that completion; latency is done − sent. A thread with many connections
//! may wait a little for more completions (`coalescing`); the report says how long.
//!
//! Not for: verifying a server's answers in depth (the lab does), choosing what
//! to send (a [`RequestSource`] does), printing.
#![forbid(unsafe_code)]

mod coalescing;
mod connection;
pub mod prepare;
mod recorder;
mod run;
#[cfg(test)]
mod sim_tests;
mod source;
mod window;
mod worker;

pub use prony_record::{LoadReport, LoadSpec};
pub use recorder::summary;
pub use run::{LoadError, Observer, Outcome, run};
pub use source::{Cycle, Request, RequestSource};
