//! Where the processes of a trial listen, and how they are started: ports, placeholders and settings resolved. Pure but
//! for looking for free ports and a host's address.
//!
//! In a network of their own the subject has [`SERVER_PORT`] and the others the ports that
//! follow; elsewhere each has one that is free. All are chosen before any is started.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prony_base::Nanos;
use prony_program::sibling;
use prony_record::{Cell, PlannedClient, PlannedProgram, PlannedSubject, Source, Trial, Work};
use prony_tls::{CertificateText, KEY_FILE};
use prony_wire::Method;

use crate::counts::ANSWER_BYTES_MAX;
use crate::exchange::{self, Answer, Destination, KeptBody, Trust};
use crate::experiment::spoken::PROTOCOL;
use crate::experiment::words::{ORIGINALS, fill};
use crate::experiment::{Spoken, THREADS};
use crate::launch::{Resolved, SERVER_PORT, SERVER_PORTS};
use crate::network::Network;
use crate::plan::client::seconds;
use crate::supervise::TrialOrder;
use prony_load::target;

/// How long each part of an answer may be waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The place of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The address to connect to.
    pub address: SocketAddr,
    /// What `Host` says.
    pub authority: String,
    /// What its certificate must be; `None`: there is no TLS.
    pub trust: Option<Trust>,
}

impl Place {
    /// The place of a peer that is reached over `network`.
    pub fn for_peer(network: &Network, trial: &Trial) -> io::Result<Place> {
        let port = ports(trial.isolation.network_namespace, 0, 1)?[0];
        Ok(Place::at(network.peer_address(), port))
    }

    fn from_url(url: &str) -> io::Result<Place> {
        let target = target::read(url).map_err(io::Error::other)?;
        let authority = target.host_and_port();
        let mut addresses = (target.host.as_str(), target.port).to_socket_addrs()?;
        let address = addresses
            .next()
            .ok_or_else(|| io::Error::other(format!("`{authority}` has no address")))?;
        Ok(Place {
            address,
            authority,
            trust: target.is_secure.then_some(Trust::Machine),
        })
    }

    /// Requests `path` on a connection of its own. Of the body only the start is kept, so that the largest
    /// payload costs no memory.
    pub fn request(&self, method: &Method, path: &str) -> Result<Answer, String> {
        let keep = KeptBody::Start(ANSWER_BYTES_MAX);
        exchange::once(&self.destination(), (method, path), ANSWER_TIMEOUT, keep)
    }

    /// It, as one connects to it.
    pub fn destination(&self) -> Destination<'_> {
        Destination {
            address: self.address,
            authority: &self.authority,
            trust: self.trust.as_ref(),
        }
    }

    fn with(self, trust: &Option<Trust>) -> Place {
        Place {
            trust: trust.clone(),
            ..self
        }
    }

    fn at(ip: IpAddr, port: u16) -> Place {
        let address = SocketAddr::new(ip, port);
        Place {
            address,
            authority: address.to_string(),
            trust: None,
        }
    }
}

/// The places of all servers of a trial.
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
    /// The places of the servers of `order`, on the far side of `network`. Where the subject is to speak TLS, the
    /// certificate of this trial is made, in its folder.
    pub fn find(order: &TrialOrder, network: &Network, trial: &Trial) -> io::Result<Places> {
        let trust = match Spoken::from_cell(&order.cell).is_secure {
            true => Some(Trust::Certificate(certificate(order, network)?)),
            false => None,
        };
        let url = match &order.subject.source {
            Source::Url { url } => Some(Place::from_url(url)?),
            _ => None,
        };
        let instances = if url.is_some() { 0 } else { instances(order) };
        let backings = order.backings.len();
        let count = instances + backings + usize::from(order.front.is_some());
        let ports = ports(trial.isolation.network_namespace, 0, count)?;
        let address = network.peer_address();
        let mut places = ports.into_iter().map(|port| Place::at(address, port));
        Ok(Places {
            instances: match url {
                Some(place) => vec![place],
                None => {
                    let instances = places.by_ref().take(instances);
                    instances.map(|place| place.with(&trust)).collect()
                }
            },
            backings: places.by_ref().take(backings).collect(),
            front: places.next(),
        })
    }

    /// The same with other places for the instances, which are started anew: the ports that
    /// they had may still be held by connections that have ended.
    pub fn anew(&self, trial: &Trial) -> io::Result<Places> {
        // Only those that are started anew come here, and all are where the first is.
        let address = self
            .instances
            .first()
            .map_or(Ipv4Addr::LOCALHOST.into(), |place| place.address.ip());
        let used = self.instances.len() + self.backings.len() + usize::from(self.front.is_some());
        let ports = ports(
            trial.isolation.network_namespace,
            used,
            self.instances.len(),
        )?;
        let first = self.instances.first();
        let trust = first.and_then(|place| place.trust.clone());
        let place = |port| Place::at(address, port).with(&trust);
        Ok(Places {
            instances: ports.into_iter().map(place).collect(),
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

/// Makes the certificate of a trial for the address of its servers. It is trusted by what asks them in this trial, and
/// gone with the trial's folder.
fn certificate(order: &TrialOrder, network: &Network) -> io::Result<PathBuf> {
    let names = [network.peer_address().to_string(), "localhost".to_owned()];
    let made = CertificateText::self_signed(&names).map_err(io::Error::other)?;
    Ok(made.write(&order.work_dir)?.certificate)
}

/// Processes of the subject that are started.
pub fn instances(order: &TrialOrder) -> usize {
    order.cell.around.instances.max(1) as usize
}

/// `count` different ports. `has_own_network`: the network is the trial's own, where `used` of the
/// servers' ports have been given away. Another process may take one that is only free
/// before its server does; that one then fails to start, and says so.
fn ports(has_own_network: bool, used: usize, count: usize) -> io::Result<Vec<u16>> {
    if !has_own_network {
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

/// The command of an instance of the subject (the first is 0), with its placeholders and
/// the cell's settings put in. `place`: where that instance is to be.
pub fn resolve(order: &TrialOrder, places: &Places, instance: usize, place: &Place) -> Resolved {
    let subject = &order.subject;
    let threads = order.cell.settings.get(THREADS).cloned();
    let threads = threads.unwrap_or_else(|| subject.threads.to_string());
    let mut values = server_values(&order.work_dir, place, threads, 0);
    values.extend(braced([("instance", instance.to_string())]));
    values.extend(backing_values(order, places));
    values.extend(folders(order, subject, &order.cell));
    if let Some(Trust::Certificate(certificate)) = &place.trust {
        let files = [
            ("certificate", certificate.clone()),
            ("key", certificate.with_file_name(KEY_FILE)),
        ];
        values.extend(braced(
            files.map(|(name, file)| (name, file.display().to_string())),
        ));
    }
    let protocol = order.cell.settings.get(PROTOCOL);
    let more = protocol.and_then(|protocol| subject.protocols.get(protocol));
    let resolved = filled(subject, Work::Server, more.into_iter().flatten(), &values);
    with_settings(order, &values, resolved)
}

/// The command of a backing service. `work`: the folder that is its own.
pub fn resolve_backing(
    order: &TrialOrder,
    backing: &PlannedSubject,
    place: &Place,
    work: &Path,
) -> Resolved {
    resolve_service(
        order,
        backing,
        server_values(work, place, threads_of(backing), 0),
    )
}

/// The command of the proxy in front of the subject, likewise.
pub fn resolve_front(
    order: &TrialOrder,
    front: &PlannedSubject,
    places: &Places,
    place: &Place,
    work: &Path,
) -> Resolved {
    let mut values = server_values(work, place, threads_of(front), 0);
    values.push(("{upstreams}".to_owned(), places.upstreams()));
    resolve_service(order, front, values)
}

/// Fills in the command of a backing, a front or a peer, which have no settings: those are the subject's.
fn resolve_service(order: &TrialOrder, server: &PlannedSubject, mut values: Values) -> Resolved {
    values.extend(folders(order, server, &Cell::default()));
    filled(server, Work::Server, [], &values)
}

fn threads_of(server: &PlannedSubject) -> String {
    server.threads.max(1).to_string()
}

/// `{NAME}` of each backing service: where it is.
fn backing_values(order: &TrialOrder, places: &Places) -> Values {
    let backings = order.backings.iter().zip(&places.backings);
    let value = |(backing, place): (&PlannedSubject, &Place)| {
        (format!("{{{}}}", backing.id), place.authority.clone())
    };
    backings.map(value).collect()
}

/// The peer's command. Settings are the client's, not the peer's.
pub fn resolve_peer(
    order: &TrialOrder,
    peer: &PlannedSubject,
    client: &PlannedClient,
    place: &Place,
) -> Resolved {
    let threads = client.peer_threads.max(1).to_string();
    let values = server_values(&order.work_dir, place, threads, client.payload_bytes);
    resolve_service(order, peer, values)
}

fn server_values(work: &Path, place: &Place, threads: String, payload_bytes: u64) -> Values {
    braced([
        ("host", place.address.ip().to_string()),
        ("port", place.address.port().to_string()),
        ("threads", threads),
        ("work", work.display().to_string()),
        ("payload_bytes", payload_bytes.to_string()),
    ])
}

/// Values by placeholders of these names.
fn braced<const N: usize>(values: [(&str, String); N]) -> Values {
    let value = |(name, value)| (format!("{{{name}}}"), value);
    values.map(value).into()
}

/// The program's command, likewise. `{work}` is the name of the work here.
pub fn resolve_program(order: &TrialOrder, program: &PlannedProgram, threads: u32) -> Resolved {
    let count = order.cell.count.unwrap_or(0);
    let mut values = braced([
        ("work", program.work.clone()),
        ("count", count.to_string()),
        ("threads", threads.to_string()),
    ]);
    values.extend(folders(order, &order.subject, &order.cell));
    let work = Work::Program(program);
    let resolved = filled(&order.subject, work, &program.args, &values);
    with_settings(order, &values, resolved)
}

/// The client's command, and the one that translates what it printed (empty: none does).
/// `place`: where its peer is, as it reaches it.
pub fn resolve_client(
    order: &TrialOrder,
    client: &PlannedClient,
    threads: u32,
    place: &Place,
) -> (Resolved, Resolved) {
    let subject = &order.subject;
    let connections = order.cell.connections;
    let per_thread = connections / threads.max(1);
    let mut values = braced([
        ("url", format!("http://{}{}", place.authority, client.path)),
        ("host", place.address.ip().to_string()),
        ("port", place.address.port().to_string()),
        ("path", client.path.clone()),
        ("threads", threads.to_string()),
        ("connections", connections.to_string()),
        ("connections_per_thread", per_thread.to_string()),
        ("seconds", seconds(Nanos(order.duration_ns)).to_string()),
        ("payload_bytes", client.payload_bytes.to_string()),
        ("work", client.work.clone()),
    ]);
    values.extend(folders(order, subject, &order.cell));
    let resolved = filled(subject, Work::Client(client), &client.args, &values);
    let translate = subject.client_translate.iter();
    // Settings are the client's, not those of what reads its output.
    let translation = Resolved {
        command: translate.map(|word| fill(word, &values)).collect(),
        ..resolved.clone()
    };
    (with_settings(order, &values, resolved), translation)
}

type Values = Vec<(String, String)>;

/// Folders, the prony binary, and the builds that `cell` chooses.
fn folders(order: &TrialOrder, subject: &PlannedSubject, cell: &Cell) -> Values {
    let systems = sibling::SYSTEMS.beside(&order.prony);
    let mut values = braced([
        ("dir", dir(subject)),
        ("build", subject.build_dir.clone()),
        (ORIGINALS, subject.originals_dir.clone()),
        ("prony", order.prony.display().to_string()),
        ("systems", systems.display().to_string()),
    ]);
    for (name, offered) in &subject.variants {
        let chosen = cell.settings.get(name).or(offered.first());
        let value = chosen.cloned().unwrap_or_default();
        values.push((format!("{{{name}}}"), value));
    }
    values
}

fn dir(subject: &PlannedSubject) -> String {
    match &subject.source {
        Source::Folder { dir } | Source::Command { dir } => dir.clone(),
        Source::Url { .. } | Source::Unknown => String::new(),
    }
}

/// The command by which a subject does `work`, with the words that are added and the values put in.
fn filled<'a>(
    subject: &'a PlannedSubject,
    work: Work<'_>,
    more: impl IntoIterator<Item = &'a String>,
    values: &Values,
) -> Resolved {
    let (command, env) = subject.command(work);
    let words = command.iter().chain(more);
    Resolved {
        command: words.map(|word| fill(word, values)).collect(),
        env: fill_all(env, values),
        dir: dir(subject).into(),
        root: subject.root_dir.clone().into(),
        capabilities: subject.capabilities.clone(),
    }
}

/// Adds what the cell's settings add.
fn with_settings(order: &TrialOrder, values: &Values, mut resolved: Resolved) -> Resolved {
    for setting in &order.settings {
        let Some(value) = order.cell.settings.get(&setting.name) else {
            continue;
        };
        let mut values = values.clone();
        values.push(("{value}".to_owned(), value.clone()));
        let args = setting.args.iter().map(|word| fill(word, &values));
        resolved.command.extend(args);
        resolved.env.extend(fill_all(&setting.env, &values));
        if let Some(env) = setting.env_of.get(value) {
            resolved.env.extend(fill_all(env, &values));
        }
    }
    resolved
}

fn fill_all(texts: &BTreeMap<String, String>, values: &Values) -> BTreeMap<String, String> {
    let filled = |(name, text): (&String, &String)| (name.clone(), fill(text, values));
    texts.iter().map(filled).collect()
}

#[cfg(test)]
mod tests {
    use prony_record::{PlannedSetting, PlannedWorkload};
    use proptest::prelude::*;

    use super::*;
    use crate::supervise::Generator;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// An order of a subject that is both server and program, with these settings.
    fn order(settings: &[(&str, &str)]) -> TrialOrder {
        let pair = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let offered = texts(&["on", "off"]);
        let setting = |name: &str| PlannedSetting {
            name: name.to_owned(),
            ..PlannedSetting::default()
        };
        let mut allocator = setting("allocator");
        allocator.args = texts(&["--allocator={value}"]);
        allocator.env = [pair(&("ALL", "{value} {threads}"))].into();
        let preloaded = [pair(&("LD_PRELOAD", "{dir}/lib{value}.so"))].into();
        allocator.env_of = [("mimalloc".to_owned(), preloaded)].into();
        TrialOrder {
            cell: Cell {
                count: Some(7),
                settings: settings.iter().map(pair).collect(),
                ..Cell::default()
            },
            subject: PlannedSubject {
                source: Source::Folder {
                    dir: "/s".to_owned(),
                },
                start: texts(&["{build}/{hardening}", "{threads}", "{work}", "{port}"]),
                threads: 3,
                program: texts(&["{build}/{hardening}", "{threads}", "{work}", "{count}"]),
                build_dir: "/b".to_owned(),
                variants: [("hardening".to_owned(), offered)].into(),
                ..PlannedSubject::default()
            },
            workload: PlannedWorkload::default(),
            backings: Vec::new(),
            front: None,
            settings: vec![setting("hardening"), setting(THREADS), allocator],
            cores: Default::default(),
            warmup_ns: 0,
            duration_ns: 0,
            in_turns: false,
            check_only: false,
            block: 0,
            position: 0,
            seed: 0,
            generator: Generator::Prony,
            driver: String::new(),
            prony: "/prony".into(),
            work_dir: "/w".into(),
            run_dir: "/r".into(),
            file_stem: String::new(),
            peer: None,
            network: None,
        }
    }

    fn place(port: u16) -> Place {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Place {
            address,
            authority: address.to_string(),
            trust: None,
        }
    }

    fn places(instances: &[u16]) -> Places {
        Places {
            instances: instances.iter().copied().map(place).collect(),
            backings: vec![place(90)],
            front: Some(place(91)),
        }
    }

    #[test]
    fn services_around_a_server_are_told_of_each_other() {
        let server = |id: &str, words: &[&str]| PlannedSubject {
            id: id.to_owned(),
            start: texts(words),
            threads: 2,
            ..PlannedSubject::default()
        };
        let mut order = order(&[("allocator", "x")]);
        order.subject.start = texts(&["{instance}", "{port}", "{backing/redis}", "{backing/x}"]);
        order.settings[2].args = texts(&["redis://{backing/redis}/{instance}"]);
        order.settings[2].env.clear();
        order.backings = vec![server(
            "backing/redis",
            &["{port}", "{work}", "{upstreams}"],
        )];
        let front = server("front/nginx", &["{port}", "{upstreams}", "{threads}"]);
        let places = places(&[81, 82]);
        let second = resolve(&order, &places, 1, &places.instances[1]);
        let words = [
            "1",
            "82",
            "127.0.0.1:90",
            "{backing/x}",
            "redis://127.0.0.1:90/1",
        ];
        assert_eq!(second.command, words);
        let (place, work) = (&places.backings[0], Path::new("/w/redis"));
        let backing = resolve_backing(&order, &order.backings[0], place, work);
        assert_eq!(backing.command, ["90", "/w/redis", "{upstreams}"]);
        let place = places.front.as_ref().unwrap();
        let front = resolve_front(&order, &front, &places, place, work);
        assert_eq!(front.command, ["91", "127.0.0.1:81,127.0.0.1:82", "2"]);
        assert!(front.env.is_empty());
    }

    #[test]
    fn server_and_program_are_told_builds_threads_and_settings() {
        let place = place(81);
        let resolve =
            |order: &TrialOrder, place: &Place| super::resolve(order, &places(&[81]), 0, place);
        let work = PlannedProgram {
            work: "start".to_owned(),
            args: texts(&["-x", "{count}"]),
            ..PlannedProgram::default()
        };
        let usual = order(&[]);
        let server = resolve(&usual, &place);
        assert_eq!(server.command, ["/b/on", "3", "/w", "81"]);
        let program = resolve_program(&usual, &work, 1);
        assert_eq!(program.command, ["/b/on", "1", "start", "7", "-x", "7"]);
        assert!(program.env.is_empty() && program.dir == Path::new("/s"));
        let chosen = order(&[
            ("hardening", "off"),
            ("threads", "9"),
            ("allocator", "mimalloc"),
        ]);
        let server = resolve(&chosen, &place);
        assert_eq!(
            server.command,
            ["/b/off", "9", "/w", "81", "--allocator=mimalloc"]
        );
        assert_eq!(server.env["ALL"], "mimalloc 9");
        assert_eq!(server.env["LD_PRELOAD"], "/s/libmimalloc.so");
        let std = resolve(&order(&[("allocator", "std")]), &place);
        assert!(!std.env.contains_key("LD_PRELOAD"));
    }

    #[test]
    fn a_client_is_told_whom_to_ask_and_its_peer_what_to_serve() {
        let place = place(81);
        let work = PlannedClient {
            work: "requests".to_owned(),
            path: "/x".to_owned(),
            peer_threads: 5,
            payload_bytes: 9,
            args: texts(&["-p", "{path}"]),
            ..PlannedClient::default()
        };
        let mut order = order(&[("allocator", "mimalloc"), ("hardening", "off")]);
        order.cell.connections = 10;
        order.duration_ns = 1_500_000_000;
        order.subject.client = texts(&[
            "{build}/{hardening}",
            "{connections}/{connections_per_thread}/{threads}",
            "{seconds}",
            "{url}",
            "{host}:{port}",
            "{work}",
        ]);
        order.subject.client_translate = texts(&["{dir}/t", "{connections}"]);
        let (client, translate) = resolve_client(&order, &work, 4, &place);
        let words = [
            "/b/off",
            "10/2/4",
            "2",
            "http://127.0.0.1:81/x",
            "127.0.0.1:81",
            "requests",
            "-p",
            "/x",
            "--allocator=mimalloc",
        ];
        assert_eq!(client.command, words);
        assert_eq!(client.env["LD_PRELOAD"], "/s/libmimalloc.so");
        assert_eq!(translate.command, ["/s/t", "10"]);
        assert!(translate.env.is_empty() && translate.dir == client.dir);
        let peer = PlannedSubject {
            start: texts(&[
                "{build}/{hardening}",
                "{originals}/thing",
                "{threads}",
                "{payload_bytes}",
                "{port}",
            ]),
            originals_dir: "/o".to_owned(),
            ..order.subject.clone()
        };
        let peer = resolve_peer(&order, &peer, &work, &place);
        assert_eq!(peer.command, ["/b/on", "/o/thing", "5", "9", "81"]);
        assert!(peer.env.is_empty());
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_is_not_filled_again() {
        let values = [
            ("{dir}", "/a/{port}".to_owned()),
            ("{port}", "80".to_owned()),
        ];
        assert_eq!(
            fill("{dir}:{port} {other} {", &values),
            "/a/{port}:80 {other} {"
        );
    }

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
