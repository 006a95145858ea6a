//! The parts of an experiment that are about clients: what they are asked to do, against
//! which peer, over which network. Pure.
//!
//! Not for: what a client is ([`crate::subject`]).

use std::ops::RangeInclusive;

use prony_base::Nanos;
use prony_record::{AnswerChecks, Arrival, DOWNLOADS, PlannedNetwork, RequestTemplate};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{self, Fields, Problems};
use super::keys::{self, check_placeholders, read_name, read_title};
use super::types::{
    CONNECTIONS_MAX_DEFAULT, ClientWork, Connections, Experiment, Network, SubjectEntry, Workload,
};
use super::words::{self, CLIENT_PLACEHOLDERS, START_PLACEHOLDERS, short};
use super::{find_max, folder, service};
use crate::diagnosis::{Diagnosis, suggest};
use crate::subject::client;

/// The network that needs no entry.
pub const LOOPBACK: &str = "loopback";
/// Path of what downloads read, and where a peer serves its payload.
pub const PAYLOAD_PATH: &str = "/testpayload";
/// Bytes of a payload.
const PAYLOAD: RangeInclusive<u64> = 1..=1 << 40;
/// Bits a second of a network.
const RATE: RangeInclusive<u64> = 8_000..=1_000_000_000_000;
const DELAY: RangeInclusive<Nanos> = Nanos::from_micros(1)..=Nanos::from_secs(60);
const MTU: RangeInclusive<u64> = 576..=65_535;
const MTU_USUAL: u32 = 1_500;
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
/// Keys of a workload that are about requests of Prony's own, or the works of programs.
const OF_OTHERS: [&str; 5] = ["request", "scenario", "expect", "arrival", "count"];

/// `[[peer]]`.
pub fn read_peer(table: Fields<'_, '_>, p: &mut Problems) -> Option<SubjectEntry> {
    let example = "ref = \"c/nginx\"";
    let refusal = |key: &str| {
        let message = format!("`{key}` cannot be a peer: it cannot say what it counts");
        let help = format!("a peer is a folder with a subject.toml that has [counts]: {example}");
        (message, help)
    };
    let kind = folder::Kind {
        example,
        refusal: &refusal,
        placeholders: &START_PLACEHOLDERS,
        elsewhere: &[("threads", "`peer_threads` of a [[workload]] says it")],
        name_fault: &|_| None,
    };
    folder::read(table, &kind, p)
}

/// `[[network]]`.
pub fn read_network(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Network> {
    let name = read_name(&mut table, p);
    if !table.has("name") {
        table.missing("name", "name = \"gigabit\"", p);
    }
    if let Some(name) = name.iter().find(|name| name.get_ref() == LOOPBACK) {
        let message = "a network cannot be called `loopback`: that is the one without an entry";
        p.note(Diagnosis::new(name.span(), message));
    }
    let title = read_title(&mut table, p);
    let rate = amount(&mut table, "rate", words::rate, RATE, p);
    let delay = table.duration("delay", DELAY, p);
    let mtu = table.whole("mtu", MTU, p);
    if !table.has("rate") && !table.has("delay") && !table.has("mtu") {
        let message = "this network is loopback: it has no `rate`, no `delay` and no `mtu`";
        let help = "add a line such as: rate = \"1gbit\", or delay = \"1ms\"";
        p.note(Diagnosis::new(table.span.clone(), message).help(help));
    }
    table.finish(&[], p);
    let name = name?;
    Some(Network {
        planned: PlannedNetwork {
            name: name.get_ref().clone(),
            title,
            rate_bits_per_s: rate,
            delay_ns: delay.map(|delay| delay.0),
            mtu: mtu.map_or(MTU_USUAL, |mtu| mtu as u32),
        },
        name,
    })
}

/// The length of a payload, in bytes.
pub fn payload(table: &mut Fields<'_, '_>, key: &'static str, p: &mut Problems) -> Option<u64> {
    amount(table, key, words::bytes, PAYLOAD, p)
}

/// An amount with its unit, in `range`.
fn amount(
    table: &mut Fields<'_, '_>,
    key: &'static str,
    read: fn(&str) -> Result<u64, String>,
    range: RangeInclusive<u64>,
    p: &mut Problems,
) -> Option<u64> {
    let value = table.value(key)?;
    if let DeValue::Integer(_) = value.get_ref() {
        let message = format!("`{key}` is a text with its unit");
        p.note(Diagnosis::new(value.span(), message));
        return None;
    }
    let text = fields::text(key, value, p)?;
    let inside = |amount: u64| match range.contains(&amount) {
        true => Ok(amount),
        false => Err(format!(
            "`{}` is not from {} to {}",
            short(text.get_ref()),
            range.start(),
            range.end()
        )),
    };
    match read(text.get_ref()).and_then(inside) {
        Ok(amount) => Some(amount),
        Err(why) => {
            p.note(Diagnosis::new(
                text.span(),
                format!("`{key}` cannot be used: {why}"),
            ));
            None
        }
    }
}

/// A `[[workload]]` with a `client`.
pub fn read_workload(
    name: Option<Spanned<String>>,
    mut table: Fields<'_, '_>,
    p: &mut Problems,
) -> Option<Workload> {
    let work = read_work(&mut table, p);
    refuse_others(&mut table, p);
    let downloads = work.as_deref() == Some(DOWNLOADS);
    let path = read_path(&mut table, downloads, p);
    let one = |value: Option<u64>| value.map_or(1, |count| count as u32);
    let threads = one(table.whole("threads", keys::THREADS, p));
    let peer_threads = one(table.whole("peer_threads", keys::THREADS, p));
    let peer = table.text("peer", p);
    let network = table.text("network", p);
    let network = network.filter(|name| name.get_ref() != LOOPBACK);
    let payload = payload(&mut table, "payload", p);
    if downloads && !table.has("payload") {
        table.missing("payload", "payload = \"200MiB\"", p);
    }
    let args = keys::texts(table.texts("args", p).unwrap_or_default());
    check_placeholders(&args, &CLIENT_PLACEHOLDERS, &table.span_of("args"), p);
    let (connections, connections_max) = read_connections(&mut table, p);
    let timeout = keys::timeout(&mut table, p);
    service::refuse_without_request(&mut table, p);
    find_max::refuse(&mut table, p);
    let subjects = table.texts("subjects", p);
    let title = read_title(&mut table, p);
    let span = table.span.clone();
    table.finish(&[], p);
    let path = path?;
    Some(Workload {
        name: name.unwrap_or_else(|| Spanned::new(span, keys::name_of_path(&path))),
        title,
        work: None,
        client: Some(ClientWork {
            work: work?,
            path,
            threads,
            peer,
            peer_threads,
            network,
            payload_bytes: payload.unwrap_or(0),
            args,
        }),
        request: RequestTemplate::default(),
        source: None,
        require: Vec::new(),
        expect_status: 0,
        expect_content_type: None,
        expect_body: None,
        expect_checks: AnswerChecks::default(),
        arrival: Arrival::Closed,
        connections,
        connections_max,
        timeout,
        subjects,
        rows: Vec::new(),
        counter: None,
        find_max: None,
        rest: None,
    })
}

fn read_work(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<String> {
    let work = table.text("client", p)?;
    let typed = work.get_ref().as_str();
    if !client::WORKS.contains(&typed) {
        let message = format!("`{}` is no work of clients", short(typed));
        let help = suggest(typed, "work", &client::WORKS);
        p.note(Diagnosis::new(work.span(), message).help(help));
        return None;
    }
    Some(work.into_inner())
}

fn refuse_others(table: &mut Fields<'_, '_>, p: &mut Problems) {
    for key in OF_OTHERS {
        let Some(value) = table.value(key) else {
            continue;
        };
        let message = format!("`{key}` cannot go with `client`");
        let help = match key {
            "count" => "how much a client does is said by [run] duration, or by `payload`",
            _ => "a client sends requests of its own; path = \"/hello\" says what it asks for",
        };
        p.note(Diagnosis::new(value.span(), message).help(help));
    }
}

fn read_path(table: &mut Fields<'_, '_>, downloads: bool, p: &mut Problems) -> Option<String> {
    if downloads && !table.has("path") {
        return Some(PAYLOAD_PATH.to_owned());
    }
    let path = table.text_needed("path", "path = \"/hello\"", p)?;
    keys::check_path(&path, p);
    Some(path.into_inner())
}

fn read_connections(table: &mut Fields<'_, '_>, p: &mut Problems) -> (Vec<Connections>, u32) {
    let max = table.whole("max", keys::CONNECTIONS, p);
    let max = max.map_or(CONNECTIONS_MAX_DEFAULT, |count| count as u32);
    let place = table.value("connections");
    let list = place.and_then(|value| keys::connections(value, p));
    if let (Some(value), Some(list)) = (place, &list) {
        keys::check_below_max(value.span(), list, max, p);
    }
    (list.unwrap_or_else(|| vec![Connections::Exactly(10)]), max)
}

/// Keys of clients in a workload that is not for them.
pub fn refuse_without_client(table: &mut Fields<'_, '_>, p: &mut Problems) {
    for key in OF_CLIENTS {
        if let Some(value) = table.value(key) {
            let message = format!("`{key}` is for a workload of clients");
            let help = "client = \"requests\" (or \"downloads\") makes it one";
            p.note(Diagnosis::new(value.span(), message).help(help));
        }
    }
}

/// What can be checked without the peers' own files.
pub fn check_within(experiment: &Experiment, p: &mut Problems) {
    let networks: Vec<&Spanned<String>> = experiment.networks.iter().map(|n| &n.name).collect();
    keys::twice("network", &networks, p);
    let right: Vec<&str> = networks
        .iter()
        .map(|name| name.get_ref().as_str())
        .collect();
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
        p.note(Diagnosis::new(span.clone(), message).help(help));
    }
}

/// Which peer must be clear.
fn check_peer(experiment: &Experiment, workload: &Workload, client: &ClientWork, p: &mut Problems) {
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
    p.note(Diagnosis::new(span, message).help(help));
}
