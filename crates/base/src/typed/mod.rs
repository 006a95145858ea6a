//! Units as people type them, on a command line or in a file.

pub mod duration;
pub mod rate;
pub mod requirement;
pub mod share;
pub mod size;
