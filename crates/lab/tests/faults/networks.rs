//! Clients that are measured over a network of its own between them and their peer.

use std::path::Path;
use std::process::Child;

use prony_lab::launch::{self, Wanted};
use prony_lab::network;
use prony_record::{Outcome, Phase, Plan, PlannedNetwork, Role, Trial};
use rustix::process::Signal;

use crate::clients::{asked, client, peer, plan};
use crate::fixture::{self, Fixture, Isolation, Missing, wait_line};
use crate::killed::ends_in_time;
use crate::programs::{Named, failure};

/// The tests of this module.
pub const TESTS: [Named; 4] = [
    (
        "a_server_beyond_a_network_is_measured_and_counted_on_both_sides",
        a_server_beyond_a_network_is_measured_and_counted_on_both_sides,
    ),
    (
        "a_network_limits_what_passes_and_is_told",
        a_network_limits_what_passes_and_is_told,
    ),
    (
        "the_death_of_a_peer_beyond_a_network_is_recorded",
        the_death_of_a_peer_beyond_a_network_is_recorded,
    ),
    (
        "nothing_of_a_network_outlives_whoever_is_killed",
        nothing_of_a_network_outlives_whoever_is_killed,
    ),
];

const BITS_PER_S: u64 = 80_000_000;
/// What may pass at once after a pause: 1 ms of the rate, up to a power of two.
const BURST_BYTES: u64 = 16 << 10;
const MTU: u32 = 576;
/// Headers of IPv4 and TCP.
const HEADERS: u64 = 40;
const PAYLOAD: u64 = 1 << 20;
const CONNECTIONS: u64 = 4;
const WORDS: &str = "two network namespaces joined by veth, MTU 576, \
     80 Mbit/s each way (tbf, burst 16 KiB, queue 50 ms)";

fn slow() -> PlannedNetwork {
    PlannedNetwork {
        name: "slow".to_owned(),
        rate_bits_per_s: Some(BITS_PER_S),
        mtu: MTU,
        ..PlannedNetwork::default()
    }
}

/// What these tests need and this machine lacks.
pub fn missing() -> Option<Missing> {
    let own = std::env::current_exe().expect("this binary");
    let [all, ..] = Wanted::BY_STRENGTH;
    network::refusal(&slow(), &own, all).map(|refusal| ("networks", refusal.reason))
}

/// The same over the network.
fn over_network(mut plan: Plan) -> Plan {
    plan.networks = vec![slow()];
    asked(&mut plan).network = "slow".to_owned();
    plan.workloads[0].timeout_ns = 60_000_000_000;
    plan
}

fn downloads() -> Plan {
    let mut plan = over_network(plan(vec![client("right", "")], peer(&[]), 1));
    let asked = asked(&mut plan);
    asked.work = "downloads".to_owned();
    asked.path = "/testpayload".to_owned();
    asked.payload_bytes = PAYLOAD;
    plan
}

fn a_network_limits_what_passes_and_is_told(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&downloads(), &[]);
    let [trial] = &run.trials[..] else {
        panic!("one trial: {:#?}", run.trials);
    };
    holds(trial);
}

fn a_server_beyond_a_network_is_measured_and_counted_on_both_sides(isolation: Isolation) {
    let mut plan = fixture::plan(vec![fixture::good()], 1, 500);
    plan.networks = vec![slow()];
    plan.cells[0].around.network = "slow".to_owned();
    let run = Fixture::new(isolation).run(&plan, &[]);
    let [trial] = &run.trials[..] else {
        panic!("one trial: {:#?}", run.trials);
    };
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let load = trial.load.as_ref().expect("a report");
    assert!(load.completed > 0 && load.errors.is_empty(), "{load:#?}");
    // The connections that the server accepted are counted on its side, and stand where those of loopback do.
    let rise = |name: &str| trial.kernel.rise(name);
    assert!(
        rise("TcpPassiveOpens") >= 4 && rise("TcpActiveOpens") >= 4,
        "{:?}",
        trial.kernel
    );
    let server = trial
        .processes
        .iter()
        .find(|process| process.role == Role::Subject);
    let command = &server.expect("a server").command;
    assert!(
        command.iter().any(|word| word == "10.199.0.2"),
        "{command:?}"
    );
    none_in_sight();
}

pub fn a_network_without_namespaces_is_refused(isolation: Isolation) {
    let run = Fixture::new(isolation).run(&downloads(), &[]);
    let (phase, reason) = failure(&run.trials, "right");
    assert_eq!(phase, Phase::Prepare);
    assert_eq!(reason, "a trial has no network namespace of its own");
}

/// What is true of downloads over the network, however busy the machine is.
fn holds(trial: &Trial) {
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let report = trial.client.as_ref().expect("a report");
    assert_eq!(report.network, WORDS);
    let line = &trial.program.as_ref().expect("a report").lines[0];
    assert_eq!(report.peer.bytes, Some(CONNECTIONS * PAYLOAD));
    // No byte comes before the bucket has a token for it.
    let bytes = CONNECTIONS * PAYLOAD;
    let least_ns = (bytes - BURST_BYTES) * 8 * 1_000_000_000 / BITS_PER_S;
    assert!(trial.window_ns >= least_ns, "{} ns", trial.window_ns);
    assert_eq!(line.count, CONNECTIONS);
    // The kernel's own counts, on both sides.
    let segments = bytes / (u64::from(MTU) - HEADERS);
    let rise = |name: &str| trial.kernel.rise(name);
    assert!(rise("peer.TcpOutSegs") >= segments, "{:?}", trial.kernel);
    assert!(rise("peer.IpExtOutOctets") >= bytes);
    assert!(rise("TcpInSegs") > 0 && rise("TcpActiveOpens") >= CONNECTIONS);
    assert!(rise("peer.TcpPassiveOpens") >= CONNECTIONS);
    // The peer's side accepts only, and the client's side only connects.
    assert_eq!(rise("peer.TcpActiveOpens") + rise("TcpPassiveOpens"), 0);
    let command = &trial.processes[0].command;
    let url = "http://10.199.0.2:8080/testpayload";
    assert!(command.iter().any(|word| word == url), "{command:?}");
    none_in_sight();
}

/// The ends of the pair are not, and were never, in this test's own namespace.
fn none_in_sight() {
    for name in ["to-peer", "to-client"] {
        let device = Path::new("/sys/class/net").join(name);
        assert!(!device.exists(), "{name} is here");
    }
}

fn the_death_of_a_peer_beyond_a_network_is_recorded(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let peer = peer(&[("DIES_AFTER", "3")]);
    let run = fixture.run(&over_network(plan(vec![client("right", "")], peer, 1)), &[]);
    let (phase, reason) = failure(&run.trials, "right");
    assert_eq!(phase, Phase::Measure, "{reason}");
    let killed = "the peer was ended by signal 9 before the client ended";
    assert!(reason.starts_with(killed), "{reason}");
    none_in_sight();
}

/// Starts a trial that waits in its window.
fn waiting(fixture: &Fixture) -> Child {
    let plan = over_network(plan(vec![client("forks", "forks")], peer(&[]), 1));
    let mut run = fixture.start(&plan, &[]);
    wait_line(&mut run, "phase Measure");
    fixture.wait_for(|command| command.contains("client.py"));
    run
}

fn nothing_of_a_network_outlives_whoever_is_killed(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut run = waiting(&fixture);
    run.kill().expect("it can be killed");
    run.wait().expect("it ends");
    fixture.none_left();
    // In the order of their starts: guard, supervisor, parent of the client.
    for victim in ["guard", "supervisor"] {
        let fixture = Fixture::new(isolation);
        let mut run = waiting(&fixture);
        let own = fixture.left().into_iter();
        let mut own: Vec<u32> = own
            .filter(|(_, command)| command.contains("__supervise"))
            .map(|(pid, _)| pid)
            .collect();
        own.sort_unstable();
        let pid = own[usize::from(victim == "supervisor")];
        assert!(launch::signal(pid, Signal::KILL), "{victim}");
        let status = ends_in_time(&mut run, victim);
        assert!(status.success(), "{victim}: {status}");
        fixture.none_left();
        none_in_sight();
        let (_, reason) = failure(&fixture.read().trials, "forks");
        assert!(!reason.is_empty());
    }
}

/// The same by `user`, who may do nothing of this outside of a user namespace.
pub fn an_ordinary_user_has_networks_too(fixture: &Fixture) {
    let run = fixture.run(&downloads(), &[]);
    assert_eq!(run.trials.len(), 1);
    let trial = &run.trials[0];
    holds(trial);
    let roles: Vec<Role> = trial.processes.iter().map(|process| process.role).collect();
    assert!(roles.contains(&Role::Peer), "{roles:?}");
}
