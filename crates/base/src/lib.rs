//! The foundation of every other crate, which depends on no other:
//! units as newtypes ([`units`]) and as people type them ([`typed`]), the clocks of this
//! machine ([`clock`]), random numbers that a seed reproduces ([`random`]) and words after numbers ([`words`]).
//!
//! Not for: anything that knows a protocol, a file or a socket.
#![forbid(unsafe_code)]

pub mod clock;
pub mod random;
pub mod typed;
pub mod units;
pub mod words;

pub use random::Random;
pub use units::{Instant, Nanos};
pub use words::{counted, plural};
