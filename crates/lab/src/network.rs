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

mod probe;
mod shape;
mod side;
mod tools;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use prony_record::PlannedNetwork;
use serde::{Deserialize, Serialize};

use crate::launch::{self, Entered};
use crate::sample::machine;
pub use probe::refusal;
use shape::Shape;
use side::Side;

/// What the names of counters of the peer's namespace begin with.
pub const PEER: &str = "peer.";

/// Why a machine cannot have a network.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// In one sentence.
    pub reason: String,
    /// The command that would change it; empty where there is none.
    pub remedy: String,
}

impl Refusal {
    fn of(reason: impl Into<String>) -> Refusal {
        Refusal {
            reason: reason.into(),
            remedy: String::new(),
        }
    }
}

/// A network that is there as long as this lives, or as what was started in it.
#[derive(Debug)]
pub struct Network {
    peer_address: IpAddr,
    words: String,
    /// `None`: the peer is on the client's side.
    side: Option<Side>,
}

impl Network {
    /// Joins the caller's network namespace to a new one, as `network` says; `None` is
    /// loopback. For a process that has entered a network namespace of its own and has not
    /// yet given up what that allowed it ([`launch::settle`]).
    pub fn set_up(network: Option<&PlannedNetwork>, entered: &Entered) -> Result<Network, Refusal> {
        let Some(network) = network else {
            return Ok(Network::loopback());
        };
        if !entered.wanted.network {
            return Err(Refusal::of("a trial has no network namespace of its own"));
        }
        let shape = Shape::of(network).map_err(Refusal::of)?;
        let side = Side::open()
            .map_err(|error| Refusal::of(format!("the peer's namespace cannot be had: {error}")))?;
        tools::run(&shape.at_client(side.thread()))?;
        let steps = shape.at_peer();
        let give_up = entered.by_user_namespace;
        let furnished = side.run(move || {
            tools::run(&steps)?;
            let given_up = match give_up {
                true => launch::give_up_capabilities(),
                false => Ok(()),
            };
            given_up.map_err(|error| Refusal::of(error.to_string()))
        });
        furnished.map_err(|error| Refusal::of(error.to_string()))??;
        Ok(Network {
            peer_address: IpAddr::V4(shape::PEER),
            words: shape.words(),
            side: Some(side),
        })
    }

    /// Loopback of the caller's own network.
    pub fn loopback() -> Network {
        Network {
            peer_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            words: "loopback".to_owned(),
            side: None,
        }
    }

    /// The address that the peer listens on, as the client reaches it.
    pub fn peer_address(&self) -> IpAddr {
        self.peer_address
    }

    /// What a document calls it.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Runs `action` on the peer's side (what it starts stays there) and waits for it. Not
    /// on the caller's thread, where there is another side. Errors: that side is gone.
    pub fn on_peers_side<T: Send + 'static>(
        &self,
        action: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        match &self.side {
            None => Ok(action()),
            Some(side) => side.run(action),
        }
    }

    /// The network counters of the peer's side, their names with [`PEER`] before them;
    /// none over loopback, where they are the client's as well.
    pub fn peer_counters(&self) -> BTreeMap<String, u64> {
        let Some(side) = &self.side else {
            return BTreeMap::new();
        };
        let counters = side.run(machine::network_counters).unwrap_or_default();
        let named = |(name, value): (String, u64)| (format!("{PEER}{name}"), value);
        counters.into_iter().map(named).collect()
    }
}
