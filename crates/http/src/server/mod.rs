//! One server on one loop: accepts connections, hands each to a task, counts,
//! and stops gracefully.
//!
//! # A graceful stop
//!
//! Connections that the kernel has accepted until then are accepted, and requests that have
//! arrived are answered, with `connection: close`. An idle connection is kept for
//! `stop_idle_grace`, for a request that is on its way. All this within `stop_timeout`. A
//! [`ShutdownHandle`] can stop a server in another way: where others listen on the same socket,
//! they accept what reaches the kernel's backlog from then on.

mod connection;
mod distribute;
mod ending;
mod handler;
mod http2;
mod incoming;
mod output;
mod serve;
mod state;
mod wire;

pub use distribute::{AcceptTarget, distribute};
pub use handler::Handler;
pub(crate) use output::{Output, SEND_BYTES_MAX};
pub use serve::{CloseEvents, Server, ShutdownHandle, Source, Stopping};
pub(crate) use wire::Wire;
