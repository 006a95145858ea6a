//! The work of one load thread, and the state that all threads of a run share.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;

use prony_base::Nanos;
use prony_engine::ConnectOptions;
use prony_record::Timestamps;

use crate::checks::{AnswerFollowers, Checks};
use crate::interval::ThreadReading;
use crate::secure::SecureTarget;

/// State that the caller and all threads of a run share.
#[derive(Debug, Default)]
pub struct RunState {
    /// Set to end the run now.
    pub stop: AtomicBool,
    /// Requests completed in the window so far.
    pub completed: AtomicU64,
    /// Requests and connects failed in the window so far.
    pub failed: AtomicU64,
    /// Bits of the rate, in requests per second, that an open pace changes to; 0: unchanged.
    pub rate: AtomicU64,
}

/// The part of a load that one thread drives.
#[derive(Clone, Debug)]
pub struct ThreadSpec {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Threads of the run.
    pub threads: u32,
    /// Its connections.
    pub connections: usize,
    /// Slots of each connection: requests that may be outstanding on it at the same time.
    pub depth: usize,
    /// Its connections speak HTTP/2.
    pub is_http2: bool,
    /// Its connections keep cookies.
    pub cookies: bool,
    /// What answers are checked by; `None`: nothing.
    pub checks: Option<Arc<Checks>>,
    /// What else follows the answers; `None`: nothing.
    pub followers: Option<Arc<dyn AnswerFollowers>>,
    /// Path of the Unix socket that connections go to; `None`: to the addresses.
    pub unix: Option<PathBuf>,
    /// `HOST:PORT` to which a proxy is asked to open a tunnel.
    pub tunnel: Option<String>,
    /// Bodies are sent once the server has answered with 100.
    pub expects_continue: bool,
    /// Most requests that it sends.
    pub requests_max: u64,
    /// Number of its first connection among those of the run.
    pub first: usize,
    /// Target addresses: connection `n` of the run goes to address `n` modulo their number; at
    /// least one.
    pub addresses: Vec<SocketAddr>,
    /// Time-out of a request.
    pub timeout: Nanos,
    /// Time-out of the first attempt to connect: not longer than the run is worth.
    pub first_timeout: Nanos,
    /// Connections that it opens at the same time.
    pub connecting_max: usize,
    /// Status codes that are expected; empty: 200 to 399.
    pub expected_status: Vec<u16>,
    /// Most arrivals that wait for a slot.
    pub queue_max: usize,
    /// Where arrival times come from.
    pub timestamps: Timestamps,
    /// Requests whose single times are kept.
    pub trace_max: usize,
    /// Requests that a connection carries at most.
    pub served_max: u64,
    /// Addresses that connections come from: connection `n` of the run from address `n` modulo their number; none: as
    /// the route says.
    pub sources: Vec<IpAddr>,
    /// With whom its connections speak TLS; `None`: plain.
    pub secure: Option<SecureTarget>,
    /// Takes its counts at the end of each second of the window; `None`: nobody wants them.
    pub readings: Option<mpsc::Sender<ThreadReading>>,
}

impl ThreadSpec {
    /// Its slots.
    pub fn slots(&self) -> usize {
        self.connections * self.depth
    }

    /// The target address of connection `index` of this thread, always the same.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.addresses[(self.first + index) % self.addresses.len()]
    }

    /// Options for opening connection `index` of this thread.
    pub fn connect_options(&self, index: usize) -> ConnectOptions {
        let own = self.first + index;
        let source = self.sources.get(own % self.sources.len().max(1));
        ConnectOptions {
            local: source.map(|&source| SocketAddr::new(source, 0)),
            timestamps: match self.timestamps {
                Timestamps::User => false,
                Timestamps::Probe => index == 0,
                Timestamps::Kernel => true,
            },
            ..ConnectOptions::default()
        }
    }
}
