//! The generator against servers on plain sockets.

mod counts;
mod faults;
mod intervals;
mod server;
