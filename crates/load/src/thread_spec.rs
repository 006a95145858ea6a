//! The work of one load thread, how a load is shared out over them, and the state that all threads of a run share.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;

use prony_base::Nanos;
use prony_engine::{ConnectOptions, DriverKind};
use prony_record::{HttpProtocol, LoadSpec, LoadTarget, Pace, QUEUE_MAX, Timestamps};

use crate::checks::{AnswerFaults, Checks};
use crate::coded::CodedCounts;
use crate::expected::ExpectedStatus;
use crate::follow::AnswerFollowers;
use crate::interval::ThreadReading;
use crate::pace;
use crate::scenario::compiled::Scenario;
use crate::secure::SecureTarget;
use crate::source::RequestSource;

/// Connections that all threads together open at the same time, so that a usual listen
/// backlog (128 and more) holds them.
const CONNECTING_MAX: u32 = 64;
/// A first attempt to connect may take as long as the run, or this, or the time-out if that is shorter.
const CONNECTING_MIN: Nanos = Nanos::from_secs(1);

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
    /// What its connections speak.
    pub protocol: HttpProtocol,
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
    /// Status codes that are expected of each step.
    pub expected_status: ExpectedStatus,
    /// Redirects that are followed in a row; `None`: they are answers like others.
    pub follow_max: Option<u32>,
    /// Bodies are decoded, and counted there; `None`: they are not.
    pub coded: Option<Arc<CodedCounts>>,
    /// What users do; `None`: requests have nothing to do with each other.
    pub scenario: Option<Arc<Scenario>>,
    /// Most arrivals that wait for a slot.
    pub queue_max: usize,
    /// Where arrival times come from.
    pub timestamps: Option<Timestamps>,
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

    /// Options for opening connection `index` of this thread, whose loop has this driver.
    pub fn connect_options(&self, index: usize, driver: DriverKind) -> ConnectOptions {
        let own = self.first + index;
        let source = self.sources.get(own % self.sources.len().max(1));
        ConnectOptions {
            local: source.map(|&source| SocketAddr::new(source, 0)),
            timestamps: match self.timestamps {
                // Of a hundred answers that epoll reports together, the last waits for 99 to be taken:
                // without the kernel's stamps its latency would be longer by that.
                None => driver == DriverKind::Epoll,
                Some(Timestamps::User) => false,
                Some(Timestamps::Probe) => index == 0,
                Some(Timestamps::Kernel) => true,
            },
            ..ConnectOptions::default()
        }
    }
}

/// Why connections that are closed after some requests have neither streams nor a pipeline: the others would be cut off.
const ONE_AT_A_TIME: &str =
    "a connection that carries a limited number of requests carries one at a time";

/// What the threads of a load take from outside of it. Its methods but the first are asked before the threads start.
pub trait ThreadSources: Sync {
    /// The source of thread `thread`, which has so many slots; called on that thread.
    fn source(&self, thread: u32, slots: usize) -> Box<dyn RequestSource>;

    /// What follows the answers of all connections, and its name among the checks; HTTP/1.1 only.
    fn followers(&self) -> Option<(Arc<dyn AnswerFollowers>, &'static str)> {
        None
    }

    /// The one address that the connections of `thread` go to; `None`: to those of the load in turn.
    fn address(&self, thread: u32) -> Option<SocketAddr> {
        let _ = thread;
        None
    }
}

/// Shares connections and requests out over the threads, the first ones taking the remainder.
pub fn thread_specs(
    spec: &LoadSpec,
    from: &dyn ThreadSources,
    scenario: Option<&Arc<Scenario>>,
) -> Result<Vec<ThreadSpec>, String> {
    check(spec)?;
    let worth = CONNECTING_MIN.max(Nanos(spec.warmup_ns) + Nanos(spec.duration_ns));
    let queue_max = match spec.queue_max {
        0 => QUEUE_MAX,
        limit => limit,
    };
    let addresses = addresses(spec)?;
    let sources = sources(spec)?;
    let secure = spec
        .tls
        .as_ref()
        .map(|tls| SecureTarget::new(tls, spec.protocol));
    let secure = secure.transpose();
    let secure = secure.map_err(|error| error.to_string())?;
    let (followers, followed) = from.followers().unzip();
    let checks = checks(spec, scenario, followed)?;
    let coded = spec.decodes.then(Arc::default);
    let expected_status = expected_status(spec);
    let part = |whole: u64, thread: u32| {
        whole / u64::from(spec.threads)
            + u64::from(u64::from(thread) < whole % u64::from(spec.threads))
    };
    let connections = |thread| part(u64::from(spec.connections), thread) as usize;
    let thread_spec = |thread| ThreadSpec {
        thread,
        threads: spec.threads,
        connections: connections(thread),
        depth: spec.depth.max(1) as usize,
        protocol: spec.protocol,
        cookies: spec.cookies,
        checks: checks.clone(),
        followers: followers.clone(),
        unix: spec.unix.clone(),
        tunnel: spec.tunnel.clone(),
        expects_continue: spec.expects_continue,
        first: (0..thread).map(connections).sum(),
        requests_max: spec
            .requests_max
            .map_or(u64::MAX, |requests| part(requests, thread)),
        addresses: match from.address(thread) {
            Some(address) => vec![address],
            None => addresses.clone(),
        },
        timeout: Nanos(spec.timeout_ns),
        first_timeout: Nanos(spec.timeout_ns).min(worth),
        connecting_max: (CONNECTING_MAX / spec.threads).max(1) as usize,
        expected_status: expected_status.clone(),
        follow_max: spec.follow_max,
        coded: coded.clone(),
        scenario: scenario.map(Arc::clone),
        queue_max: usize::try_from(part(queue_max, thread)).unwrap_or(usize::MAX),
        timestamps: spec.timestamps,
        trace_max: usize::try_from(part(spec.trace_max, thread)).unwrap_or(usize::MAX),
        served_max: spec.requests_per_connection.unwrap_or(u64::MAX),
        sources: sources.clone(),
        secure: secure
            .as_ref()
            .map(|secure| secure.for_thread(connections(thread))),
        readings: None,
    };
    let part = spec.part_here();
    Ok((part.first..part.end).map(thread_spec).collect())
}

/// What makes no sense of a load, whatever is sent.
fn check(spec: &LoadSpec) -> Result<(), String> {
    let wrong = |text: &str| Err(text.to_owned());
    if spec.in_turns && spec.pace != Pace::default() {
        return wrong("only a closed loop without think time can be driven in turns");
    }
    if spec.threads == 0 || spec.connections < spec.threads {
        return wrong("there must be at least one connection for each thread");
    }
    let part = spec.part_here();
    if part.threads() == 0 || part.end > spec.threads {
        return wrong("a part of a load has at least one of its threads, and no other");
    }
    if spec.requests.is_empty() {
        return wrong("there is no request to send");
    }
    if spec.follow_max.is_some() && spec.depth > 1 && spec.protocol == HttpProtocol::Http1 {
        return wrong(
            "redirects are not followed in a pipeline: its next request is on its way before they come",
        );
    }
    if spec.follow_max.is_some() && matches!(spec.pace, Pace::Closed { think_ns: 1.. }) {
        return wrong("redirects are not followed with a think time: do that in a scenario");
    }
    if spec.decodes && spec.depth > 1 && spec.protocol == HttpProtocol::Http1 {
        return wrong("bodies are not decoded in a pipeline");
    }
    match spec.requests_per_connection {
        Some(0) => return wrong("a connection must carry at least one request"),
        Some(_) if spec.depth > 1 => return wrong(ONE_AT_A_TIME),
        _ => {}
    }
    pace::check(&spec.pace).map_err(|error| error.to_string())
}

/// What answers are checked by; `None`: nothing. `followed`: with a check that a follower does.
fn checks(
    spec: &LoadSpec,
    scenario: Option<&Arc<Scenario>>,
    followed: Option<&str>,
) -> Result<Option<Arc<Checks>>, String> {
    if let Some(scenario) = scenario {
        return Ok(Some(Arc::clone(&scenario.checks)));
    }
    let faults = AnswerFaults::of(spec);
    if spec.checks.is_none() && followed.is_none() && faults == AnswerFaults::default() {
        return Ok(None);
    }
    let of = spec.checks.clone().unwrap_or_default();
    Checks::with_faults(&of, followed, faults).map(Some)
}

/// Which status codes are expected of each step.
fn expected_status(spec: &LoadSpec) -> ExpectedStatus {
    let expected = match &spec.scenario {
        None => ExpectedStatus::new(std::iter::once(spec.expected_status.as_slice())),
        Some(scenario) => {
            let steps = scenario.flows.iter().flat_map(|flow| &flow.steps);
            ExpectedStatus::new(steps.map(|step| step.expected_status.as_slice()))
        }
    };
    match spec.follow_max {
        None => expected,
        // What is expected is expected of the final answer, and redirects that are not followed have failed.
        Some(_) => expected.and(&[301, 302, 303, 307, 308]),
    }
}

/// Where connections go, in turn.
fn addresses(spec: &LoadSpec) -> Result<Vec<SocketAddr>, String> {
    let parse = |target: &LoadTarget| {
        let wrong = |_| format!("`{}` is not an address with a port", target.address);
        target.address.parse().map_err(wrong)
    };
    let targets = std::iter::once(&spec.target).chain(&spec.further);
    targets.map(parse).collect()
}

/// Where connections come from, in turn.
fn sources(spec: &LoadSpec) -> Result<Vec<IpAddr>, String> {
    let parse = |text: &String| {
        let wrong = |_| format!("`{text}` is not an address to come from");
        text.parse().map_err(wrong)
    };
    spec.sources.iter().map(parse).collect()
}
