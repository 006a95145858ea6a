//! HTTP/2 over one transport, by the `h2` crate: many requests at once on one
//! connection.
//!
//! For: a connection that many requests share ([`Http2`]), those of one host ([`Sharing`]),
//! and one request on such a connection ([`Exchange`]), which sends its body while it
//! receives its response.
//! Not for: choosing HTTP/2 (ALPN or the settings do), and server push, which is refused.
//!
//! `h2` reads and writes frames; a task on the engine's loop moves them. Of tokio there are
//! only the two traits that `h2` reads and writes by (`io`). What a peer can make the client
//! buffer is bounded: a window of 1 MiB a stream, which opens again as the body is read,
//! and 8 MiB for all streams of a connection together.

mod connection;
mod data;
mod exchange;
mod io;
mod sharing;

pub(super) use connection::Http2;
pub(super) use exchange::{Exchange, Head};
pub(super) use sharing::{Route, Sharing};
