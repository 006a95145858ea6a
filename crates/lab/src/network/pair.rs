//! A network between the trial's side and the peer's, and the peer's side itself: a thread in a network namespace of its
//! own, which runs there what it is given, one action after the other.
//!
//! A thread and no process, because namespaces and capabilities belong to threads: what it
//! starts is a child of the supervisor like all else, and its namespace needs no name by
//! which another process could enter it, so that none can be left behind. With it, the
//! supervisor can give up its capabilities before the trial begins.
//!
//! Not for: the shape of the network ([`super::shape`]).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use prony_record::PlannedNetwork;

use super::shape::{self, Shape};
use super::tools::{self, Refusal};
use crate::launch::{self, Entered, LaunchError};
use crate::sample::machine;

/// What the names of counters of the peer's namespace begin with.
pub const PEER: &str = "peer.";

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
            return Err(Refusal::new("a trial has no network namespace of its own"));
        }
        let shape = Shape::new(network).map_err(Refusal::new)?;
        let side = Side::open().map_err(|error| {
            Refusal::new(format!("the peer's namespace cannot be had: {error}"))
        })?;
        tools::run(&shape.at_client(side.thread()))?;
        let steps = shape.at_peer();
        let give_up = entered.by_user_namespace;
        let furnished = side.run(move || {
            tools::run(&steps)?;
            let given_up = match give_up {
                true => launch::give_up_capabilities(),
                false => Ok(()),
            };
            given_up.map_err(|error| Refusal::new(error.to_string()))
        });
        furnished.map_err(|error| Refusal::new(error.to_string()))??;
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

type Job = Box<dyn FnOnce() + Send>;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Side {
    jobs: SyncSender<Job>,
    thread: i32,
}

impl Side {
    /// Starts a thread that leaves the caller's network namespace for a new one.
    pub fn open() -> io::Result<Side> {
        let (jobs, list) = sync_channel(1);
        let (sender, receiver) = sync_channel(1);
        let begin = move || begin(&sender, &list);
        thread::Builder::new()
            .name("peer's side".to_owned())
            .spawn(begin)?;
        let thread = receiver
            .recv()
            .map_err(|_| side_ended())?
            .map_err(io::Error::other)?;
        Ok(Side { jobs, thread })
    }

    /// The number of the thread, by which the kernel finds its namespace.
    pub fn thread(&self) -> i32 {
        self.thread
    }

    /// Does `action` there and waits for it. Errors: the thread has ended.
    pub fn run<T: Send + 'static>(
        &self,
        action: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (sender, receiver) = sync_channel(1);
        let job = move || {
            // The caller waits for the result, unless it is about to end.
            let _ = sender.send(action());
        };
        self.jobs.send(Box::new(job)).map_err(|_| side_ended())?;
        receiver.recv().map_err(|_| side_ended())
    }
}

fn side_ended() -> io::Error {
    io::Error::other("the thread on the peer's side has ended")
}

/// The thread's whole life.
fn begin(sender: &SyncSender<Result<i32, LaunchError>>, list: &Receiver<Job>) {
    let entered = launch::leave_network().and_then(|()| launch::furnish_network());
    let number = rustix::thread::gettid().as_raw_nonzero().get();
    let begun = entered.is_ok();
    if sender.send(entered.map(|()| number)).is_err() || !begun {
        return;
    }
    for job in list {
        job();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_an_error_not_a_hang() {
        let (jobs, list) = sync_channel(1);
        drop(list);
        let side = Side { jobs, thread: 1 };
        let error = side.run(|| ()).expect_err("nobody is there");
        assert_eq!(error.to_string(), "the thread on the peer's side has ended");
    }

    #[test]
    fn an_action_that_panics_is_an_error_not_a_hang() {
        let (jobs, list) = sync_channel::<Job>(1);
        let thread = thread::spawn(move || list.into_iter().for_each(|job| job()));
        let side = Side { jobs, thread: 1 };
        assert_eq!(side.run(|| 7).expect("it is there"), 7);
        let panics = || -> i32 { std::panic::resume_unwind(Box::new(())) };
        side.run(panics).expect_err("it panicked");
        thread.join().expect_err("the thread is gone with it");
    }
}
