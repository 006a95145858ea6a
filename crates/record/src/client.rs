//! Of clients that are measured: what they are asked to do, over which network, against
//! which peer, and what both sides counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Histogram, LatencyNs};

/// What a client is asked to do. One cell for each number of connections of its workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedClient {
    /// `requests`: GET in a closed loop on all connections for the duration of the run;
    /// `downloads`: each connection asks once and reads to the end.
    pub work: String,
    /// Path (and query) that is asked for.
    pub path: String,
    /// Threads that the client is told to use, where no setting says it.
    pub threads: u32,
    /// `id` of the server on the fixed other side, one of [`crate::Plan::peers`].
    pub peer: String,
    /// Threads or workers that the peer is told to use.
    pub peer_threads: u32,
    /// Length of what the peer serves at `/testpayload`; 0: it is not asked to.
    pub payload_bytes: u64,
    /// Name of one of [`crate::Plan::networks`]; empty: loopback.
    pub network: String,
    /// Arguments added to the client's command.
    pub args: Vec<String>,
}

/// A network between client and peer, other than loopback as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedNetwork {
    /// Its name.
    pub name: String,
    /// What headings call it; empty: its name.
    pub title: String,
    /// Bits a second in each direction; `None`: not limited.
    pub rate_bits_per_s: Option<u64>,
    /// Delay in each direction; `None`: none added.
    pub delay_ns: Option<u64>,
    /// Longest packet of the link.
    pub mtu: u32,
}

impl PlannedNetwork {
    /// What a reader is told: the title, or the name where there is none.
    pub fn heading(&self) -> &str {
        if self.title.is_empty() {
            &self.name
        } else {
            &self.title
        }
    }
}

/// How a server tells what it has counted: an HTTP request to it, and where the numbers
/// stand in the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountsSign {
    /// Path of the request.
    pub path: String,
    /// Regular expression whose group `requests` is the number of requests so far.
    pub requests: String,
    /// Regular expression whose group `bytes` is the number of bytes of bodies sent so
    /// far; empty: it does not count them.
    pub bytes: String,
    /// The amount by which one reading raises the number of requests that the next one shows: 0 or 1.
    pub own_requests: u64,
    /// How old what it tells may be: it brings its counts up to date so often; 0: at once.
    #[serde(default)]
    pub refresh_ns: u64,
}

/// What a trial of a client recorded beside its [`crate::ProgramReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientReport {
    /// What joined the two sides, in words for a document: `loopback`, or `two network
    /// namespaces joined by veth, tbf 1 Gbit/s each way, MTU 1500`.
    pub network: String,
    /// What the peer counted from before the client started until after it had ended,
    /// without the readings themselves.
    pub peer: PeerCounts,
    /// Status of the page, asked for once before the client starts.
    pub page_status: u16,
    /// Bytes of the page's head, likewise.
    pub page_head_bytes: u64,
    /// Bytes of the page's body, likewise.
    pub page_body_bytes: u64,
    /// Output of the client's own tool before it was translated, where it was; at most
    /// 16 KiB.
    pub said: String,
}

/// What a peer counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerCounts {
    /// Requests.
    pub requests: Option<u64>,
    /// Bytes of bodies that it sent.
    pub bytes: Option<u64>,
    /// The place where it counts: `stub_status of nginx`.
    pub source: String,
}

/// What a client says of its requests, in the line of JSON that it prints
/// ([`crate::ProgramLine`]: `measure` is the work, `count` the answers read to their end,
/// `bytes` those of their bodies).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientFigures {
    /// Connections in all, over all threads.
    pub connections: u32,
    /// Requests that were sent and failed.
    pub failed: u64,
    /// The same by the client's own names.
    pub failed_by_kind: BTreeMap<String, u64>,
    /// Requests that were sent and neither answered nor failed when the client stopped
    /// counting; `None`: it does not say, so from 0 to one for each connection.
    pub in_flight: Option<u64>,
    /// Latency of the answers that were counted, from the sending of the request to the
    /// last byte of the answer; `None`: the tool gives none. A percentile that it does not
    /// give is 0.
    pub latency: Option<LatencyNs>,
    /// All of these, where the client records them.
    pub histogram: Option<Histogram>,
}

/// One figure that a program took many times: each connection's time to connect, say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// How many values.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// Standard deviation of the values.
    pub stdev: f64,
    /// Largest.
    pub max: f64,
}
