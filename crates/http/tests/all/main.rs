//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.
//! `allocations` counts those of its process: it is a program of its own.

mod by_hand;
mod server;
mod server_http2;
mod sim;
mod world;
