//! The foundation of every other crate, which depends on no other:
//! units as newtypes ([`units`]) and as people type them ([`typed`]), the clocks of this
//! machine ([`clock`]), random numbers that a seed reproduces ([`random`]), words after numbers ([`words`]) and text of others ([`untrusted`]).
//!
//! Not for: anything that knows a protocol, a file or a socket.
//!
//! # Central types
//! - [`Nanos`]: a length of time. Other units ([`units`]) are newtypes, too, so that a ratio cannot be added to a time.
//! - [`Instant`]: a moment of this machine's monotonic clock.
//! - [`Random`]: a generator of random numbers, made of a seed.
//! - [`Untrusted`]: text that somebody else wrote, shown so that it steers no terminal.
#![forbid(unsafe_code)]

pub mod clock;
pub mod random;
pub mod typed;
pub mod units;
pub mod untrusted;
pub mod words;

pub use random::Random;
pub use units::{Instant, Nanos, PerSecond};
pub use untrusted::Untrusted;
pub use words::{counted, plural};
