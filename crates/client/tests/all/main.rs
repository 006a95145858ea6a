//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod blocking;
mod faults;
mod hostile;
mod http2;
mod http2_server;
mod pipelining;
mod policies;
mod policy;
mod proxy;
mod requests;
mod secure;
mod servers;
mod sim;
mod tls;
mod tls_servers;
mod world;
