//! The parts of an experiment that are about clients: what they are asked to do, against
//! which peer, over which network. Pure.
//!
//! Not for: what a client is ([`crate::subject`]).

use std::ops::RangeInclusive;

use prony_base::Nanos;
use prony_record::{DOWNLOADS, PlannedNetwork};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, Problems};
use super::keys::{self, check_placeholders};
use super::types::{ClientWork, Experiment, Network, SubjectEntry, Workload};
use super::words::{self, CLIENT_PLACEHOLDERS, START_PLACEHOLDERS, short};
use super::{find_max, folder, service, sources};

/// The network that needs no entry.
pub const LOOPBACK: &str = "loopback";
/// Path of what downloads read, and where a peer serves its payload.
pub const PAYLOAD_PATH: &str = "/testpayload";
/// Bytes of a payload.
const PAYLOAD: RangeInclusive<u64> = 1..=1 << 40;
/// Bits a second of a network.
const RATE: RangeInclusive<u64> = 8_000..=1_000_000_000_000;
/// Keys of a workload that are about clients.
const OF_CLIENTS: [&str; 7] = [
    "client",
    "path",
    "peer",
    "threads",
    "peer_threads",
    "network",
    "payload",
];

/// `[[peer]]`.
pub fn read_peer(table: &Fields<'_>) -> Option<SubjectEntry> {
    let message = "`{key}` cannot be a peer: it cannot say what it counts";
    let help = "a peer is a folder with a subject.toml that has [counts]: ref = \"c/nginx\"";
    folder::read(table, (message, help), &START_PLACEHOLDERS)
}

/// `[[network]]`.
pub fn read_network(table: &Fields<'_>) -> Option<Network> {
    let name: Option<Spanned<String>> = table.get("name");
    if name.iter().any(|name| name.get_ref() == LOOPBACK) {
        let message = "a network cannot be called `loopback`: that is the one without an entry";
        table.note("name", message, "");
    }
    if table.given(&["rate", "delay", "mtu"]).is_empty() {
        let message = "this network is loopback: it has no `rate`, no `delay` and no `mtu`";
        let help = "add a line such as: rate = \"1gbit\", or delay = \"1ms\"";
        table.problems.advise(table.span.clone(), message, help);
    }
    let delay = table.get("delay").map(|delay: Nanos| delay.0);
    let planned = PlannedNetwork {
        name: name.clone().map(Spanned::into_inner).unwrap_or_default(),
        title: table.value("title"),
        rate_bits_per_s: amount(table, "rate", words::rate, RATE),
        delay_ns: delay,
        mtu: table.value("mtu"),
    };
    Some(Network {
        planned,
        name: name?,
    })
}

/// The length of a payload, in bytes.
pub fn payload(table: &Fields<'_>, key: &'static str) -> Option<u64> {
    amount(table, key, words::bytes, PAYLOAD)
}

/// An amount with its unit, in `range`.
fn amount(
    table: &Fields<'_>,
    key: &'static str,
    read: fn(&str) -> Result<u64, String>,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    if let Some(DeValue::Integer(_)) = table.raw(key).map(Spanned::get_ref) {
        table.note(key, format!("`{key}` is a text with its unit"), "");
        return None;
    }
    table.parsed(key, |text| {
        let (least, most) = (range.start(), range.end());
        let amount = read(text).and_then(|amount| match range.contains(&amount) {
            true => Ok(amount),
            false => Err(format!("`{}` is not from {least} to {most}", short(text))),
        });
        amount.map_err(|why| format!("`{key}` cannot be used: {why}"))
    })
}

/// A `[[workload]]` with a `client`.
pub fn read_workload(table: &Fields<'_>) -> Option<Workload> {
    let work: Option<String> = table.get("client");
    refuse_others(table);
    let downloads = work.as_deref() == Some(DOWNLOADS);
    let path = read_path(table, downloads);
    let network: Option<Spanned<String>> = table.get("network");
    if downloads && !table.has("payload") {
        table.missing("payload", table.example("payload"));
    }
    let args = table.value("args");
    check_placeholders(table, "args", &args, &CLIENT_PLACEHOLDERS);
    let client = ClientWork {
        work: work.clone().unwrap_or_default(),
        path: path.clone().unwrap_or_default(),
        threads: table.value("threads"),
        peer: table.get("peer"),
        peer_threads: table.value("peer_threads"),
        network: network.filter(|name| name.get_ref() != LOOPBACK),
        payload_bytes: payload(table, "payload").unwrap_or(0),
        args,
    };
    let (connections, connections_max) = keys::connections(table, 10);
    let workload = Workload {
        client: Some(client),
        connections,
        connections_max,
        timeout: keys::timeout(table),
        ..keys::workload(
            table,
            &keys::name_of_path(path.as_deref().unwrap_or_default()),
        )
    };
    work.and(path).map(|_| workload)
}

/// Keys of requests of Prony's own, or of the works of programs, in a workload of clients.
fn refuse_others(table: &Fields<'_>) {
    service::refuse_without_request(table);
    find_max::refuse(table);
    let message = "`{key}` cannot go with `client`";
    let help = "how much a client does is said by [run] duration, or by `payload`";
    table.refuse(&["count"], message, help);
    let help = "a client sends requests of its own; path = \"/hello\" says what it asks for";
    table.refuse(&["request", "require", "expect", "arrival"], message, help);
    table.refuse(&sources::KEYS, message, help);
}

fn read_path(table: &Fields<'_>, downloads: bool) -> Option<String> {
    let usual = downloads.then(|| PAYLOAD_PATH.to_owned());
    if usual.is_none() && !table.has("path") {
        table.missing("path", table.example("path"));
    }
    table.get("path").or(usual)
}

/// Keys of clients in a workload that is not for them.
pub fn refuse_without_client(table: &Fields<'_>) {
    let message = "`{key}` is for a workload of clients";
    let help = "client = \"requests\" (or \"downloads\") makes it one";
    table.refuse(&OF_CLIENTS, message, help);
}

/// What can be checked without the peers' own files.
pub fn check_within(experiment: &Experiment, p: &Problems) {
    let networks: Vec<&Spanned<String>> = experiment.networks.iter().map(|n| &n.name).collect();
    keys::twice("network", &networks, p);
    let right: Vec<&String> = networks.iter().map(|name| name.get_ref()).collect();
    let settings = experiment.settings.iter();
    for name in settings.flat_map(|setting| setting.topology.networks.values()) {
        keys::known("network", name, &right, p);
    }
    let mut timed = false;
    for workload in &experiment.workloads {
        let Some(client) = &workload.client else {
            continue;
        };
        timed |= client.is_timed();
        if let Some(name) = &client.network {
            keys::known("network", name, &right, p);
        }
        check_peer(experiment, workload, client, p);
    }
    let duration = experiment.run.duration;
    if let Some(span) = experiment.run.duration_at.as_ref()
        && timed
        && !duration.0.is_multiple_of(1_000_000_000)
    {
        let message = format!("clients are told whole seconds, and this is {duration}");
        let help = format!("duration = \"{}s\"", duration.0.div_ceil(1_000_000_000));
        p.advise(span.clone(), message, help);
    }
}

/// Which peer must be clear.
fn check_peer(experiment: &Experiment, workload: &Workload, client: &ClientWork, p: &Problems) {
    let message = match (experiment.peers.len(), &client.peer) {
        (0, _) => "a workload of clients needs a peer: there is no [[peer]]",
        (1, _) | (_, Some(_)) => return,
        _ => "which of the peers? a workload names one where there are several",
    };
    let span = match &client.peer {
        Some(name) => name.span(),
        None => workload.name.span(),
    };
    let help = match experiment.peers.len() {
        0 => "[[peer]]\nref = \"c/nginx\"",
        _ => "peer = \"c/nginx\"",
    };
    p.advise(span, message, help);
}
