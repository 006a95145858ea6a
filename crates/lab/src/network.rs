//! The networks between a client that is measured and its peer: loopback as it is, and
//! those of an experiment, which have a rate, a delay or an MTU of their own.
//!
//! ```text
//! trial's namespace          peer's namespace, held by a thread of the supervisor
//!   client 10.199.0.1 ══ veth ══ 10.199.0.2 peer
//!          tbf, netem            tbf, netem
//! ```
//!
//! A network says which address the peer listens on, starts the peer on its side, and
//! what a document calls it. The client is always on the trial's own side. The peer's
//! namespace has no name and no file: it is gone with the thread and the processes in it,
//! and a veth pair goes with either of its ends. Both ends are made by `ip` and `tc`, which
//! a reader can repeat by hand.
//!
//! Not for: starting anything ([`crate::trial`] does), or what is measured over it.
//!
//! ```
//! use prony_lab::network::Network;
//! let network = Network::loopback();
//! assert_eq!((network.peer_address().to_string().as_str(), network.words()), ("127.0.0.1", "loopback"));
//! ```

mod pair;
mod probe;
mod shape;
mod tools;

pub use pair::{Network, PEER};
pub use probe::refusal;
pub use tools::Refusal;
