//! The generator against servers on plain sockets.

mod counts;
mod faults;
mod server;
