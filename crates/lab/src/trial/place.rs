//! Where the servers of a trial listen: ports for all of them, chosen before any is
//! started. Pure but for looking for free ports and a host's address.
//!
//! In a network of their own the subject has [`SERVER_PORT`] and the others the ports that
//! follow; elsewhere each has one that is free.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};

use prony_record::{Source, Trial};

use crate::launch::{SERVER_PORT, SERVER_PORTS};
use crate::network::Network;
use crate::supervise::TrialOrder;
use crate::target::Target;

/// Where a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Where to connect.
    pub address: SocketAddr,
    /// What `Host` says.
    pub authority: String,
}

impl Place {
    /// Where a peer is to be that is reached over `network`.
    pub fn of_peer(network: &Network, trial: &Trial) -> io::Result<Place> {
        let port = ports(trial.isolation.network_namespace, 0, 1)?[0];
        Ok(Place::at(network.peer_address(), port))
    }

    fn of_url(url: &str) -> io::Result<Place> {
        let target = Target::parse(url).map_err(io::Error::other)?;
        let authority = target.authority();
        let mut addresses = (target.host.as_str(), target.port).to_socket_addrs()?;
        let address = addresses
            .next()
            .ok_or_else(|| io::Error::other(format!("`{authority}` has no address")))?;
        Ok(Place { address, authority })
    }

    fn at(ip: IpAddr, port: u16) -> Place {
        let address = SocketAddr::new(ip, port);
        Place {
            address,
            authority: address.to_string(),
        }
    }
}

/// Where all of a trial are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Places {
    /// The instances of the subject, at least one.
    pub instances: Vec<Place>,
    /// The backing services, in the order of the order.
    pub backings: Vec<Place>,
    /// The proxy in front of the instances.
    pub front: Option<Place>,
}

impl Places {
    /// Where those of `order` are or are to be.
    pub fn find(order: &TrialOrder, trial: &Trial) -> io::Result<Places> {
        let url = match &order.subject.source {
            Source::Url { url } => Some(Place::of_url(url)?),
            _ => None,
        };
        let instances = if url.is_some() { 0 } else { instances(order) };
        let backings = order.backings.len();
        let count = instances + backings + usize::from(order.front.is_some());
        let ports = ports(trial.isolation.network_namespace, 0, count)?;
        let mut places = ports.into_iter().map(Place::of_port);
        Ok(Places {
            instances: match url {
                Some(place) => vec![place],
                None => places.by_ref().take(instances).collect(),
            },
            backings: places.by_ref().take(backings).collect(),
            front: places.next(),
        })
    }

    /// The same with other places for the instances, which are started anew: the ports that
    /// they had may still be held by connections that have ended.
    pub fn anew(&self, trial: &Trial) -> io::Result<Places> {
        let used = self.instances.len() + self.backings.len() + usize::from(self.front.is_some());
        let ports = ports(
            trial.isolation.network_namespace,
            used,
            self.instances.len(),
        )?;
        Ok(Places {
            instances: ports.into_iter().map(Place::of_port).collect(),
            ..self.clone()
        })
    }

    /// What is asked: the front, or all instances where there is none.
    pub fn entries(&self) -> &[Place] {
        match &self.front {
            Some(front) => std::slice::from_ref(front),
            None => &self.instances,
        }
    }

    /// `HOST:PORT` of each instance, as a front is told them.
    pub fn upstreams(&self) -> String {
        let each = self.instances.iter().map(|place| place.authority.as_str());
        each.collect::<Vec<_>>().join(",")
    }
}

impl Place {
    fn of_port(port: u16) -> Place {
        Place::at(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
    }
}

/// Processes of the subject that are started.
pub fn instances(order: &TrialOrder) -> usize {
    order.cell.around.instances.max(1) as usize
}

/// `count` different ports. `own`: the network is the trial's own, where `used` of the
/// servers' ports have been given away. Another process may take one that is only free
/// before its server does; that one then fails to start, and says so.
fn ports(own: bool, used: usize, count: usize) -> io::Result<Vec<u16>> {
    if !own {
        let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let held: Vec<TcpListener> = (0..count).map(bind).collect::<io::Result<_>>()?;
        let port = |held: &TcpListener| Ok(held.local_addr()?.port());
        return held.iter().map(port).collect();
    }
    if used + count > usize::from(SERVER_PORTS) {
        let reason = format!("more than {SERVER_PORTS} servers in a trial");
        return Err(io::Error::other(reason));
    }
    let all = SERVER_PORT..SERVER_PORT + SERVER_PORTS;
    Ok(all.skip(used).take(count).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ports_of_a_trial_are_all_different(used in 0_usize..140, count in 0_usize..140) {
            match ports(true, used, count) {
                Ok(ports) => {
                    let before = super::ports(true, 0, used).unwrap();
                    let all: std::collections::BTreeSet<u16> = before.iter().chain(&ports).copied().collect();
                    prop_assert_eq!(all.len(), used + count);
                }
                Err(_) => prop_assert!(used + count > usize::from(SERVER_PORTS)),
            }
        }
    }

    #[test]
    fn free_ports_are_all_different() {
        let ports = ports(false, 0, 16).unwrap();
        let all: std::collections::BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(all.len(), 16);
    }
}
