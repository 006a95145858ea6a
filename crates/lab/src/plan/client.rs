//! The part of a plan that is about clients: against which peers, over which networks, and
//! what they cannot do. Pure.

use prony_base::{Nanos, counted};
use prony_record::{Cell, NotRun, PlannedClient, PlannedNetwork};

use super::inputs::Inputs;
use crate::experiment::{ClientWork, Experiment, THREADS, Workload};
use crate::subject::{Client, Subject};

/// Estimate for a client that runs until its work is done, before one was measured.
const DOWNLOAD: Nanos = Nanos::from_secs(5);

/// What a workload asks of clients, with its peer by id. `peers`: those of the experiment;
/// `payload_max`: what larger payloads are cut to.
pub fn planned(client: &ClientWork, peers: &[Subject], payload_max: Option<u64>) -> PlannedClient {
    PlannedClient {
        work: client.work.clone(),
        path: client.path.clone(),
        threads: client.threads,
        peer: peer_of(client, peers).map_or_else(String::new, |peer| peer.id.clone()),
        peer_threads: client.peer_threads,
        payload_bytes: client.payload_bytes.min(payload_max.unwrap_or(u64::MAX)),
        network: client
            .network
            .as_ref()
            .map_or_else(String::new, |name| name.get_ref().clone()),
        args: client.args.clone(),
    }
}

/// The peer of a workload: the one that it names, or the only one.
pub fn peer_of<'a>(client: &ClientWork, peers: &'a [Subject]) -> Option<&'a Subject> {
    match &client.peer {
        Some(name) => peers.iter().find(|peer| peer.id == *name.get_ref()),
        None => peers.first(),
    }
}

/// The peers that cells need, in the order of the experiment.
pub fn peers<'a>(inputs: &Inputs<'a>, cells: &[Cell]) -> Vec<&'a Subject> {
    let peers = inputs.parts.peers;
    let is_needed = |peer: &&Subject| {
        let clients = cells.iter().filter_map(|cell| client_of(inputs, cell));
        let mut needed = clients.filter_map(|client| peer_of(client, peers));
        needed.any(|needed| needed.id == peer.id)
    };
    peers.iter().filter(is_needed).collect()
}

/// The networks that cells need.
pub fn networks(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<PlannedNetwork> {
    let is_needed = |network: &&PlannedNetwork| {
        let mut names = cells.iter().map(|cell| network_of(inputs, cell));
        names.any(|name| name == Some(network.name.as_str()))
    };
    let networks = inputs.experiment.networks.iter();
    let planned = networks.map(|network| &network.planned);
    planned.filter(is_needed).cloned().collect()
}

fn client_of<'a>(inputs: &Inputs<'a>, cell: &Cell) -> Option<&'a ClientWork> {
    inputs.experiment.workload_of(cell)?.client.as_ref()
}

fn network_of<'c>(inputs: &Inputs<'c>, cell: &'c Cell) -> Option<&'c str> {
    let network = client_of(inputs, cell).and_then(|client| client.network.as_ref());
    let name = match network {
        Some(name) => name.get_ref(),
        None => &cell.around.network,
    };
    (!name.is_empty()).then_some(name)
}

/// Threads that a client is told in a cell.
fn threads_of(client: &ClientWork, cell: &Cell) -> u32 {
    let setting = cell.settings.get(THREADS);
    let threads = setting.and_then(|value| value.parse().ok());
    threads.unwrap_or(client.threads)
}

/// Cells that cannot be run: more threads than connections or than the client can use, a
/// network that cannot be had.
pub fn impossible(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<NotRun> {
    let why = |cell: &Cell| {
        let crowded = client_of(inputs, cell).and_then(|client| {
            let subject = inputs.subject_of(cell)?;
            too_many_threads(client, subject.client.as_ref(), cell)
        });
        let (reason, remedy) = crowded.or_else(|| {
            let refused = inputs.facts.networks.get(network_of(inputs, cell)?)?;
            Some((refused.reason.clone(), refused.remedy.clone()))
        })?;
        Some(NotRun::new(&cell.id, reason, remedy))
    };
    cells.iter().filter_map(why).collect()
}

/// Peers of `cells` that need what is not there.
pub fn missing_peers(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<NotRun> {
    let missing = |peer: &Subject| {
        let (lacks, remedy) = inputs.facts.lacks(peer)?;
        let reason = format!("the clients' peer: {lacks}");
        Some(NotRun::new(&peer.id, reason, remedy))
    };
    peers(inputs, cells)
        .into_iter()
        .filter_map(missing)
        .collect()
}

/// Whether the peer of a cell is among what is not run.
pub fn lacks_peer(inputs: &Inputs<'_>, cell: &Cell, not_run: &[NotRun]) -> bool {
    let peer = client_of(inputs, cell).and_then(|client| peer_of(client, inputs.parts.peers));
    peer.is_some_and(|peer| not_run.iter().any(|missing| missing.what == peer.id))
}

/// A reason and its remedy.
type Why = (String, String);

fn too_many_threads(work: &ClientWork, client: Option<&Client>, cell: &Cell) -> Option<Why> {
    let threads = threads_of(work, cell);
    let beyond = client.and_then(|client| client.why_not(&work.work, threads));
    let shared = || {
        let connections = counted(cell.connections, "connection");
        format!("{threads} threads cannot share {connections}: each needs one")
    };
    let reason = beyond.or_else(|| (cell.connections < threads).then(shared))?;
    Some((reason, String::new()))
}

/// Whether the experiment has a workload of requests, to which alone a warm-up belongs.
pub fn has_requests(experiment: &Experiment) -> bool {
    experiment.workloads.iter().any(Workload::is_request)
}

/// Whether anything in the experiment lasts for the time that it says.
pub fn has_window(experiment: &Experiment) -> bool {
    let timed = |w: &Workload| w.client.as_ref().is_some_and(ClientWork::is_timed);
    has_requests(experiment) || experiment.workloads.iter().any(timed)
}

/// Whole seconds that a client is told to work for.
pub fn seconds(duration: Nanos) -> u64 {
    duration.0.div_ceil(1_000_000_000).max(1)
}

/// Estimate of how long a client runs.
pub fn estimate(client: &PlannedClient, duration: Nanos) -> Nanos {
    match client.work == prony_record::REQUESTS {
        true => Nanos::from_secs(seconds(duration)),
        false => DOWNLOAD,
    }
}
