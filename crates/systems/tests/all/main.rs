//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod bench;
mod bench_io;
mod common;
mod fetch;
mod fetch_faults;
mod host;
mod host_access;
mod host_faults;
mod host_lua;
mod host_lua54;
mod host_nibiru;
mod host_rules;
mod program;
mod scripted;
