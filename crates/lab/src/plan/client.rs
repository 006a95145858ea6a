//! The part of a plan that is about clients: against which peers, over which networks, and
//! what they cannot do. Pure.

use prony_base::{Nanos, counted};
use prony_record::{Cell, NotRun, PlannedClient, PlannedNetwork};

use super::facts::Facts;
use super::options::is_selected;
use crate::experiment::types::is_listed;
use crate::experiment::{ClientWork, Experiment, THREADS, Workload};
use crate::subject::Subject;

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
pub fn peers<'a>(
    experiment: &Experiment,
    peers: &'a [Subject],
    cells: &[Cell],
) -> Vec<&'a Subject> {
    let asked = |peer: &&Subject| {
        let own = |w: &&Workload| cells.iter().any(|cell| cell.workload == *w.name.get_ref());
        let clients = experiment
            .workloads
            .iter()
            .filter(own)
            .filter_map(|w| w.client.as_ref());
        clients
            .filter_map(|client| peer_of(client, peers))
            .any(|own| own.id == peer.id)
    };
    peers.iter().filter(asked).collect()
}

/// The networks that cells need.
pub fn networks(experiment: &Experiment, cells: &[Cell]) -> Vec<PlannedNetwork> {
    let asked = |network: &&PlannedNetwork| {
        cells
            .iter()
            .any(|cell| network_of(experiment, cell) == Some(network.name.as_str()))
    };
    let planned = experiment.networks.iter().map(|network| &network.planned);
    planned.filter(asked).cloned().collect()
}

fn client_of<'a>(experiment: &'a Experiment, cell: &Cell) -> Option<&'a ClientWork> {
    let workload = experiment
        .workloads
        .iter()
        .find(|w| *w.name.get_ref() == cell.workload)?;
    workload.client.as_ref()
}

fn network_of<'a>(experiment: &'a Experiment, cell: &Cell) -> Option<&'a str> {
    let of_servers = Some(cell.around.network.as_str()).filter(|name| !name.is_empty());
    let name = match client_of(experiment, cell) {
        Some(client) => client.network.as_ref().map(|name| name.get_ref().as_str()),
        None => None,
    };
    // The cell's name lives as long as the experiment's: they are the same.
    let named = name.or(of_servers)?;
    let mut all = experiment.networks.iter();
    let found = all.find(|network| network.planned.name == named)?;
    Some(&found.planned.name)
}

/// Threads that a client is told in a cell.
fn threads_of(client: &ClientWork, cell: &Cell) -> u32 {
    let setting = cell.settings.get(THREADS);
    let threads = setting.and_then(|value| value.parse().ok());
    threads.unwrap_or(client.threads)
}

/// Cells that cannot be run: more threads than connections or than the client can use, a
/// network that cannot be had.
pub fn impossible(
    experiment: &Experiment,
    subjects: &[Subject],
    cells: &[Cell],
    facts: &Facts,
) -> Vec<NotRun> {
    let mut gone = Vec::new();
    for cell in cells {
        let crowded = client_of(experiment, cell).and_then(|client| {
            let subject = subjects.iter().find(|subject| subject.id == cell.subject);
            let own = subject.and_then(|subject| subject.client.as_ref());
            too_many_threads(client, own, cell)
        });
        let found = crowded.or_else(|| {
            let refused = facts.networks.get(network_of(experiment, cell)?)?;
            Some((refused.reason.clone(), refused.remedy.clone()))
        });
        if let Some((reason, remedy)) = found {
            gone.push(NotRun::new(&cell.id, reason, remedy));
        }
    }
    gone
}

/// Peers of `cells` that need what is not there.
pub fn missing_peers(
    experiment: &Experiment,
    all: &[Subject],
    cells: &[Cell],
    facts: &Facts,
) -> Vec<NotRun> {
    let missing = |peer: &Subject| {
        let (lacks, remedy) = facts.lacks(peer)?;
        let reason = format!("the clients' peer: {lacks}");
        Some(NotRun::new(&peer.id, reason, remedy))
    };
    peers(experiment, all, cells)
        .into_iter()
        .filter_map(missing)
        .collect()
}

/// Whether the peer of a cell is among what is not run.
pub fn lacks_peer(
    experiment: &Experiment,
    peers: &[Subject],
    cell: &Cell,
    not_run: &[NotRun],
) -> bool {
    let peer = client_of(experiment, cell).and_then(|client| peer_of(client, peers));
    peer.is_some_and(|peer| not_run.iter().any(|gone| gone.what == peer.id))
}

/// A reason and its remedy.
type Why = (String, String);

fn too_many_threads(
    client: &ClientWork,
    own: Option<&crate::subject::Client>,
    cell: &Cell,
) -> Option<Why> {
    let threads = threads_of(client, cell);
    let reason = own
        .and_then(|own| own.why_not(&client.work, threads))
        .or_else(|| {
            (cell.connections < threads).then(|| {
                let connections = cell.connections;
                let connections = counted(connections, "connection");
                format!("{threads} threads cannot share {connections}: each needs one")
            })
        })?;
    Some((reason, String::new()))
}

/// What clients of the experiment do not do at all, by subject and workload.
pub fn undone(experiment: &Experiment, subjects: &[Subject], only: &[String]) -> Vec<NotRun> {
    let mut undone = Vec::new();
    for workload in &experiment.workloads {
        let Some(asked) = &workload.client else {
            continue;
        };
        let listed = subjects
            .iter()
            .filter(|s| is_listed(&workload.subjects, &s.id));
        for subject in listed {
            let own = subject.client.as_ref();
            let why = own.and_then(|own| own.why_not(&asked.work, 1));
            let what = format!("{} {}", subject.id, workload.name.get_ref());
            let wanted = is_selected(only, &subject.id, &what);
            undone.extend(
                why.filter(|_| wanted)
                    .map(|why| NotRun::new(&what, why, "")),
            );
        }
    }
    undone
}

/// Whether `subject` is a client that does the work.
pub fn does(client: &ClientWork, subject: &Subject) -> bool {
    let own = subject.client.as_ref();
    own.is_some_and(|own| own.why_not(&client.work, 1).is_none())
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
