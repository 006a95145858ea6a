//! What hosts of web applications share, whatever language those are written in:
//! settings ([`Words`], [`Settings`]), worker processes and the supervisor that looks
//! after them ([`supervise`], [`work`]), static files ([`files`]) and the access log
//! ([`access`]).
//!
//! Not for: any application's language (`prony-host`, `prony-wsgi`).
//!
//! # How it goes
//! The host's command calls [`supervise`] with the command that starts a worker. Each
//! worker is a process of its own, started anew and not forked, whose standard input is
//! a Unix socket to the supervisor; it calls [`work`] with a function that loads the
//! application. With `--workers 0` the command calls [`alone`] instead, and serves in
//! its own process.
//!
//! # Central types
//! - [`Settings`]: the command line, checked; sent to workers as JSON.
//! - [`Post`]: what an application is given when a worker loads it.
//! - [`Distribution`]: how connections reach workers: to the one with the fewest, by a shared socket, or by the kernel.
//!
//! # Inside
//! The supervisor is a pure machine, events and the time in, orders out, with processes and signals around it. A worker gets its
//! orders over a Unix socket, and reports that it is alive and how many connections it can take on a line of a file in memory. Static files are opened
//! beneath their directory by the kernel (`openat2`).
//!
//! # Invariants
//! - Every process that was started is reaped.
//! - No worker outlives its supervisor.
//! - Replacing workers loses no request.
#![forbid(unsafe_code)]

pub mod access;
mod alone;
mod bell;
mod board;
mod channel;
mod connection_limit;
mod ending;
pub mod files;
mod post;
mod settings;
mod signals;
mod site;
mod sockets;
mod supervise;
mod worker;

pub use alone::{alone, raise_descriptor_limit};
pub use ending::{Ended, Error, LoadError};
pub use post::Post;
pub use settings::{Distribution, Settings, Words};
pub use supervise::supervise;
pub use worker::work;

/// The version of this crate. A supervisor and its workers, which may be programs of their own, have to have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Lines of a head that are about the connection and so the server's, not an
/// application's (RFC 9110, section 7.6.1; `Trailers` and `Proxy-Connection` are in use).
pub const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];
