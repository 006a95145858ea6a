//! The networks between a client that is measured and its peer: loopback as it is, and
//! those of an experiment, which have a rate, a delay or an MTU of their own.
//!
//! A network says which address the peer listens on, starts the peer on its side, and
//! what a document calls it. The client is always on the trial's own side.
//!
//! Not for: starting anything ([`crate::trial`] does), or what is measured over it.
//!
//! ```
//! use prony_lab::network::Network;
//! let network = Network::set_up(None)?;
//! assert_eq!((network.peer_address().to_string().as_str(), network.words()), ("127.0.0.1", "loopback"));
//! # Ok::<(), String>(())
//! ```

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use prony_record::PlannedNetwork;

/// Why a machine cannot have a network.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Refusal {
    /// In one sentence.
    pub reason: String,
    /// The command that would change it; empty where there is none.
    pub remedy: String,
}

/// Whether this machine can have `network` in a trial; `None`: it can.
pub fn refusal(network: &PlannedNetwork) -> Option<Refusal> {
    let name = &network.name;
    Some(Refusal {
        reason: format!("the network `{name}` cannot be made: this Prony knows loopback only"),
        remedy: String::new(),
    })
}

/// A network that is there as long as this lives.
#[derive(Debug)]
pub struct Network {
    peer_address: IpAddr,
    words: String,
}

impl Network {
    /// Sets up `network`, or loopback as it is. Errors: the step and the system's reason.
    pub fn set_up(network: Option<&PlannedNetwork>) -> Result<Network, String> {
        if let Some(refusal) = network.and_then(refusal) {
            return Err(refusal.reason);
        }
        Ok(Network::loopback())
    }

    /// Loopback of the caller's own network.
    pub fn loopback() -> Network {
        Network {
            peer_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            words: "loopback".to_owned(),
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

    /// Runs `action` on the peer's side (what it starts stays there), then returns to the
    /// client's. Errors: one of the two ways was refused.
    pub fn on_peers_side<T>(&self, action: impl FnOnce() -> T) -> io::Result<T> {
        Ok(action())
    }
}
