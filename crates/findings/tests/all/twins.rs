//! Every finding has a case that provokes it, and the nearest one that does not: its healthy twin. One table of both, by code;
//! what else is told of each stands in the other files.

use std::collections::BTreeSet;

use prony_findings::{Code, Finding};
use prony_record::{CheckLevel, CheckResult, Ended, Outcome, Phase, Role, StepOutcome, Trial};

use super::rules::{SECOND, WINDOW, found, lacks, reported};
use super::{clients, generator, programs, rules, searches, services};

/// A finding's code, the findings of what provokes it, and those of its healthy twin.
type Twins = (Code, fn() -> Vec<Finding>, fn() -> Vec<Finding>);

/// By code, rising.
const TWINS: &[Twins] = &[
    (
        Code::P001,
        || found(rules::with_own_share(500)),
        || found(rules::with_own_share(499)),
    ),
    (Code::P002, || refused(1), || refused(0)),
    (Code::P003, || closed(101), || closed(100)),
    (Code::P004, || overflowed(1), || overflowed(0)),
    (Code::P005, || mean(799_000.0), || mean(799_600.0)),
    (Code::P006, || timed_out(1), || timed_out(0)),
    (Code::P007, || cpu_of_subject(106), || cpu_of_subject(105)),
    (Code::P008, || drifting(8_900), || drifting(9_100)),
    (Code::P009, || canary(1_021_000), || canary(1_019_900)),
    (
        Code::P010,
        || rules::six_blocks(1, Phase::Measure),
        || found(|trial| trial.outcome = ended_early(trial)),
    ),
    (Code::P011, || split(false), || split(true)),
    (Code::P012, || bytes(121), || bytes(120)),
    (
        Code::P013,
        || took(5 * programs::MS - 1),
        || took(5 * programs::MS),
    ),
    (Code::P014, || worked(75), || worked(76)),
    (Code::P015, || checksum("bad"), || checksum("c0ffee")),
    (
        Code::P016,
        || programs::marked(272_166_912, 0),
        || programs::marked(272_166_912, 1),
    ),
    (Code::P017, || programs::missed(1), || programs::missed(0)),
    (Code::P018, || requests(1), || requests(0)),
    (Code::P019, || wall(1601), || wall(1600)),
    (
        Code::P020,
        || clients::busy(900, 951),
        || clients::busy(900, 949),
    ),
    (Code::P021, || threads(2), || threads(1)),
    (Code::P022, || untimed(511), || untimed(510)),
    (
        Code::P023,
        || after(1_006, Some(1_006)),
        || after(1_007, Some(1_007)),
    ),
    (
        Code::P024,
        || after(1_007, Some(1_006)),
        || after(1_007, Some(1_007)),
    ),
    (
        Code::P025,
        || after(1_508, Some(1_507)),
        || after(1_507, Some(1_507)),
    ),
    (
        Code::P026,
        || beside(Role::Front),
        || beside(Role::Generator),
    ),
    (
        Code::P027,
        || services::with_instances(2, &[0]),
        || services::with_instances(2, &[0, 1]),
    ),
    (Code::P028, || frozen(10), || frozen(2)),
    (
        Code::P029,
        || found(reported(generator::overloaded)),
        || found(reported(|load| generator::waited(load, 9_950))),
    ),
    (
        Code::P030,
        || rules::beside_wrk(1.12),
        || rules::beside_wrk(1.09),
    ),
    (
        Code::P031,
        || searches::found(None, StepOutcome::Missed),
        || searches::found(Some(searches::HIGHEST), StepOutcome::Missed),
    ),
    (
        Code::P032,
        || found(rules::slept(200, 200, 80)),
        || found(rules::slept(199, 200, 80)),
    ),
];

fn refused(count: u64) -> Vec<Finding> {
    found(reported(move |load| {
        load.counts.connect_failed.refused = count
    }))
}

fn closed(count: u64) -> Vec<Finding> {
    found(reported(move |load| {
        load.connections_closed_by_server = count
    }))
}

fn overflowed(by: u64) -> Vec<Finding> {
    found(move |trial| {
        let counter = || "TcpExtListenOverflows".to_owned();
        trial.kernel.before.insert(counter(), 5);
        trial.kernel.after.insert(counter(), 5 + by);
    })
}

fn mean(ns: f64) -> Vec<Finding> {
    found(reported(move |load| load.latency_ns.mean = ns))
}

fn timed_out(count: u64) -> Vec<Finding> {
    found(reported(move |load| load.counts.failed.timeout = count))
}

fn cpu_of_subject(percent: u64) -> Vec<Finding> {
    found(move |trial| trial.processes[0].cpu_ns = WINDOW * percent / 100)
}

fn drifting(last: u64) -> Vec<Finding> {
    found(reported(move |load| load.slices.completed[67..].fill(last)))
}

fn canary(after_ns: u64) -> Vec<Finding> {
    rules::of_run(move |trial| {
        trial.canary.as_mut().expect("a canary").after.syscalls_ns = after_ns;
    })
}

/// A trial that a person ended did not fail.
fn ended_early(trial: &Trial) -> Outcome {
    match trial.block {
        1 => Outcome::Interrupted,
        _ => Outcome::Measured,
    }
}

fn split(passed: bool) -> Vec<Finding> {
    found(move |trial| {
        trial.verification = vec![CheckResult {
            level: CheckLevel::Capability,
            passed,
            ..lacks("split")
        }];
    })
}

fn bytes(each: u64) -> Vec<Finding> {
    found(reported(move |load| load.received_bytes = each * 1_000_000))
}

fn took(ns: u64) -> Vec<Finding> {
    programs::found("a event", programs::line(move |line| line.elapsed_ns = ns))
}

fn worked(ms: u64) -> Vec<Finding> {
    let used = programs::report(move |program| program.user_ns = ms * programs::MS);
    programs::found("a event", used)
}

fn checksum(of_a: &'static str) -> Vec<Finding> {
    let printed = programs::line(move |line| line.checksum = of_a.to_owned());
    programs::found("a event", printed)
}

fn requests(more: u64) -> Vec<Finding> {
    clients::found(clients::peer(move |peer| {
        peer.requests = peer.requests.map(|count| count + more);
    }))
}

fn wall(ms: u64) -> Vec<Finding> {
    clients::found(move |trial| {
        trial.program.as_mut().expect("a program").wall_ns = ms * clients::MS;
    })
}

fn threads(count: u32) -> Vec<Finding> {
    clients::found(clients::line(move |line| line.threads = count))
}

fn untimed(count: u64) -> Vec<Finding> {
    clients::found(clients::latency(move |latency| latency.count -= count))
}

fn after(load: u64, start: Option<u64>) -> Vec<Finding> {
    let plan = services::plan(Some(Ended::Stopped), services::PROXY);
    let numbers = services::counted(move |counter| {
        (counter.after, counter.kept) = (Some(load), start);
    });
    services::found(&plan, numbers)
}

fn beside(role: Role) -> Vec<Finding> {
    let plan = services::plan(None, services::PROXY);
    services::found(&plan, |trial| {
        trial.processes.push(services::process(role, 3 * SECOND));
    })
}

fn frozen(slices: usize) -> Vec<Finding> {
    found(reported(move |load| {
        generator::frozen(load, 50, 50 + slices)
    }))
}

#[test]
fn every_code_is_provoked_and_has_a_healthy_twin() {
    let in_table: Vec<Code> = TWINS.iter().map(|(code, _, _)| *code).collect();
    assert_eq!(in_table, Code::ALL);
    for (code, provoked, healthy) in TWINS {
        let codes: BTreeSet<Code> = provoked().iter().map(|finding| finding.code).collect();
        assert!(codes.contains(code), "{code} is not provoked: {codes:?}");
        assert_eq!(healthy(), [], "the twin of {code}");
    }
}
