//! Figures of one trial of a client that both rules and documents need, each defined once.
//!
//! A client is a program with connections to a peer: its line and its times are read with
//! [`crate::measure`], and what only a client has is here: CPU time of both sides a request, Little's
//! law, and which side was at its limit. `None` where the record does not have what a figure needs.
//! Not for: figures over several trials.

use prony_base::Nanos;
use prony_record::{
    Agreement, ClientFigures, Cores, LatencyNs, PeerCounts, ProgramReport, Role, Trial, agreement,
};
use prony_stats::{Rate, Share, Time, in_flight};

use crate::limits;
use crate::measure;

/// What the client says of its requests.
pub fn figures(trial: &Trial) -> Option<&ClientFigures> {
    measure::line(trial.program.as_ref()?)?.client.as_ref()
}

/// Whether what the client counted and what its peer counted agree. `connections`: those asked for.
pub fn agrees(trial: &Trial, connections: u32) -> Option<Agreement> {
    let line = measure::line(trial.program.as_ref()?)?;
    let unknown = PeerCounts::default();
    let peer = trial.client.as_ref().map_or(&unknown, |c| &c.peer);
    Some(agreement(line, connections, peer))
}

/// Latency of the answers, where the client gives any.
pub fn latency(trial: &Trial) -> Option<&LatencyNs> {
    let latency = figures(trial)?.latency.as_ref()?;
    (latency.max > 0 || latency.mean > 0.0).then_some(latency)
}

/// Requests in flight on average by the client's own figures (Little's law):
/// count × mean latency ÷ elapsed.
pub fn little(trial: &Trial) -> Option<f64> {
    let mean = latency(trial)?.mean;
    let rate = measure::program_rate(trial.program.as_ref()?)?;
    let little = in_flight(rate, Time(mean)).0;
    (mean > 0.0 && little.is_finite()).then_some(little)
}

/// CPU time of the client an answer: in user mode, in the kernel. Its start and end are in it.
pub fn cpu_per_request(program: &ProgramReport) -> Option<(Time, Time)> {
    let count = measure::line(program)?.count as f64;
    let each = |ns: u64| Time(ns as f64 / count);
    (count > 0.0).then(|| (each(program.user_ns), each(program.system_ns)))
}

/// CPU time of the peer a request that it counted, or else that the client counted.
pub fn peer_cpu_per_request(trial: &Trial) -> Option<Time> {
    let cpu = measure::cpu(trial, Role::Peer)?;
    let counted = trial.client.as_ref().and_then(|c| c.peer.requests);
    let own = || Some(measure::line(trial.program.as_ref()?)?.count);
    let count = counted.or_else(own)? as f64;
    (count > 0.0).then(|| Time(cpu.0 as f64 / count))
}

/// Bytes of bodies a second, all connections together.
pub fn bytes_per_s(program: &ProgramReport) -> Option<Rate> {
    let line = measure::line(program)?;
    let seconds = measure::elapsed(program)?.0 / 1e9;
    (line.bytes > 0).then(|| Rate(line.bytes as f64 / seconds))
}

/// The side that was at its limit.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Limit {
    /// The client, and the peer had time left.
    Client,
    /// The peer, and the client had time left.
    Peer,
    /// Both.
    Both,
    /// Neither: each waited for the other. More connections would bring more.
    RoundTrips,
}

/// How busy both sides were: parts of the time of their busiest core or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// The client, of the time over which the samplers looked.
    pub client: Option<Share>,
    /// The peer, of the time for which the client asked it; at most 1.
    pub peer: Option<Share>,
}

impl Busy {
    /// How busy the two sides of a trial were. A core counts only where the side's own processes used half
    /// of it; else what these used does. The client's cores are as many as its threads, as far as there are.
    pub fn new(trial: &Trial, cores: &Cores) -> Busy {
        let own = by_cpu_time(trial, cores);
        Busy {
            client: largest([
                own_core(measure::busiest_core(trial, Role::Subject), own),
                thread(trial, Role::Subject),
            ]),
            peer: peer(trial),
        }
    }

    /// The side that was at the limit of 95 %; `None` where one side is not known.
    pub fn limit(&self) -> Option<Limit> {
        let full = |side: Option<Share>| Some(side?.0 >= limits::SATURATED_SHARE);
        Some(match (full(self.client)?, full(self.peer)?) {
            (true, true) => Limit::Both,
            (true, false) => Limit::Client,
            (false, true) => Limit::Peer,
            (false, false) => Limit::RoundTrips,
        })
    }
}

fn largest(shares: [Option<Share>; 2]) -> Option<Share> {
    let shares = shares.into_iter().flatten().map(|share| share.0);
    shares.reduce(f64::max).map(Share)
}

fn thread(trial: &Trial, role: Role) -> Option<Share> {
    let threads = measure::processes(trial, role).flat_map(|p| &p.threads);
    let busiest = threads.map(|thread| thread.cpu_ns).max()?;
    measure::share_of_window(trial, Nanos(busiest))
}

fn by_cpu_time(trial: &Trial, cores: &Cores) -> Option<Share> {
    let program = trial.program.as_ref()?;
    let threads = measure::line(program)?.threads.max(1);
    let own = match cores.subject.len() {
        0 => f64::from(threads),
        pinned => f64::from(threads).min(pinned as f64),
    };
    let wall = program.wall_ns as f64;
    (wall > 0.0).then(|| Share(measure::program_cpu(program).0 as f64 / wall / own))
}

/// The peer works only while it is asked: before and after that the client starts and ends, which
/// would make a full peer look idle.
fn peer(trial: &Trial) -> Option<Share> {
    let sampled = measure::sampled(trial)?.0 as f64;
    let requested = measure::elapsed(trial.program.as_ref()?).map_or(sampled, |t| t.0.min(sampled));
    let of_requested = |share: Share| Share((share.0 * sampled / requested).min(1.0));
    let used = measure::cpu(trial, Role::Peer);
    let own = used.and_then(|time| measure::share_of_window(trial, time));
    let own = own.map(of_requested);
    let core = largest([
        measure::busiest_core(trial, Role::Peer),
        measure::busiest_core(trial, Role::Generator),
    ]);
    let core = core.map(of_requested);
    largest([
        own_core(core, own),
        thread(trial, Role::Peer).map(of_requested),
    ])
}

/// The share of a core's load that a side accounts for, of which it used `own`: all of the load, or, where others
/// used most of it, what the side used.
fn own_core(core: Option<Share>, own: Option<Share>) -> Option<Share> {
    match (core, own) {
        (Some(core), Some(own)) if own.0 < limits::SATURATED_OWN_SHARE => {
            Some(Share(core.0.min(own.0)))
        }
        (core, own) => core.or(own),
    }
}
