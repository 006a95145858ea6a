//! What every other crate may lean on, and nothing that leans on another:
//! units as newtypes ([`units`]) and as people type them ([`typed`]), the clocks of this
//! machine ([`clock`]) and random numbers that a seed reproduces ([`random`]).
//!
//! Not for: anything that knows a protocol, a file or a socket.
#![forbid(unsafe_code)]

pub mod clock;
pub mod random;
pub mod typed;
pub mod units;

pub use random::Random;
pub use units::{Instant, Nanos};
