//! Findings on numbers that services keep and on what stands around them, each provoked and just not
//! provoked; and what the other rules make of rows and of kills.

use std::collections::BTreeMap;

use prony_findings::{Code, Finding, Records, Severity, findings};
use prony_record::{
    Around, Cell, Cores, CounterReport, Ended, LatencyNs, LoadReport, Outcome, Plan,
    PlannedCounter, PlannedRow, PlannedSubject, PlannedWorkload, ProcessRecord, Role, Trial,
};

const SECOND: u64 = 1_000_000_000;

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    pairs.collect()
}

/// Two rows of one subject: `Plain`, and `Behind` beside it.
pub fn plan(ended_by: Option<Ended>, of_behind: &[(&str, &str)]) -> Plan {
    let row = |title: &str, pairs: &[(&str, &str)], baseline: Option<&str>| PlannedRow {
        title: title.to_owned(),
        subject: "a".to_owned(),
        settings: settings(pairs),
        baseline: baseline.map(str::to_owned),
    };
    let cell = |id: &str, pairs: &[(&str, &str)]| Cell {
        id: id.to_owned(),
        subject: "a".to_owned(),
        workload: "clicks".to_owned(),
        connections: 100,
        settings: settings(pairs),
        ..Cell::default()
    };
    Plan {
        cores: Cores {
            subject: vec![0],
            generator: vec![1],
            ..Cores::default()
        },
        subjects: vec![PlannedSubject {
            id: "a".to_owned(),
            threads: 1,
            ..PlannedSubject::default()
        }],
        workloads: vec![PlannedWorkload {
            name: "clicks".to_owned(),
            timeout_ns: 2 * SECOND,
            rows: vec![
                row("Plain", &[], None),
                row("Behind", of_behind, Some("Plain")),
            ],
            counter: Some(PlannedCounter {
                path: "/".to_owned(),
                adds: 500,
                ended_by,
            }),
            ..PlannedWorkload::default()
        }],
        cells: vec![cell("plain", &[]), cell("behind", of_behind)],
        ..Plan::default()
    }
}

pub const PROXY: &[(&str, &str)] = &[("proxy", "nginx")];

fn good(cell: &str, block: u32) -> Trial {
    let mut load = LoadReport {
        connections: 100,
        window_ns: 10 * SECOND,
        completed: 1_000_000,
        received_bytes: 100_000_000,
        latency_ns: LatencyNs {
            count: 1_000_000,
            mean: 1_000_000.0,
            max: 5_000_000,
            ..LatencyNs::default()
        },
        ..LoadReport::default()
    };
    (load.counts.completed, load.counts.in_flight) = (load.completed, 100);
    Trial {
        cell: cell.to_owned(),
        block,
        outcome: Outcome::Measured,
        window_ns: 10 * SECOND,
        sampled_ns: 10 * SECOND,
        load: Some(load),
        processes: vec![process(Role::Subject, 5 * SECOND)],
        counter: Some(CounterReport {
            before: 7,
            acknowledged: 1_000,
            unanswered: 500,
            after: Some(1_007),
            kept: Some(1_007),
        }),
        ..Trial::default()
    }
}

pub fn process(role: Role, cpu_ns: u64) -> ProcessRecord {
    ProcessRecord {
        role,
        cpu_ns,
        ..ProcessRecord::default()
    }
}

/// Findings on two blocks of which the trials of `behind` were changed.
pub fn found(plan: &Plan, change: impl Fn(&mut Trial)) -> Vec<Finding> {
    let mut trials: Vec<Trial> = (0..2)
        .flat_map(|n| [good("plain", n), good("behind", n)])
        .collect();
    let behind = trials.iter_mut().filter(|t| t.cell == "behind");
    behind.for_each(change);
    findings(&Records::new(plan, &trials))
}

pub fn counted(change: impl Fn(&mut CounterReport)) -> impl Fn(&mut Trial) {
    move |trial| change(trial.counter.as_mut().expect("a number"))
}

fn codes(found: &[Finding]) -> Vec<(Code, Severity)> {
    assert!(found.iter().all(|f| f.cell == "behind"), "{found:#?}");
    found.iter().map(|f| (f.code, f.severity)).collect()
}

#[test]
fn a_number_that_comes_out_right_is_no_finding() {
    let found = found(&plan(Some(Ended::Stopped), PROXY), |_| {});
    assert_eq!(codes(&found), []);
}

#[test]
fn p023_one_acknowledged_and_not_counted() {
    let plan = plan(None, PROXY);
    let off = |after| {
        codes(&found(
            &plan,
            counted(move |t| (t.after, t.kept) = (after, None)),
        ))
    };
    assert_eq!(off(Some(1_006)), [(Code::P023, Severity::Invalid)]);
    assert_eq!(off(Some(1_007)), []);
    assert_eq!(off(None), []);
}

#[test]
fn p024_a_loss_is_invalid_after_a_stop_and_the_price_after_a_kill() {
    let lost = |ended, pairs| {
        codes(&found(
            &plan(Some(ended), pairs),
            counted(|t| t.kept = Some(1_006)),
        ))
    };
    assert_eq!(
        lost(Ended::Stopped, PROXY),
        [(Code::P024, Severity::Invalid)]
    );
    assert_eq!(lost(Ended::Killed, PROXY), [(Code::P024, Severity::Note)]);
    let forgets: &[_] = &[("backend", "none")];
    assert_eq!(
        lost(Ended::Stopped, forgets),
        [(Code::P024, Severity::Note)]
    );
    let memory: &[_] = &[("ack", "memory")];
    assert_eq!(lost(Ended::Killed, memory), [(Code::P024, Severity::Note)]);
    let synced: &[_] = &[("ack", "synced")];
    assert_eq!(
        lost(Ended::Killed, synced),
        [(Code::P024, Severity::Invalid)]
    );
}

/// What was acknowledged is there again, and of what was not answered any part may be.
#[test]
fn p024_not_where_all_that_was_acknowledged_is_there_again() {
    for ended in [Ended::Stopped, Ended::Killed] {
        for pairs in [PROXY, &[("ack", "synced")], &[("backend", "none")]] {
            for kept in [1_007, 1_008, 1_507] {
                let after = counted(|t| (t.after, t.kept) = (Some(kept), Some(kept)));
                assert_eq!(codes(&found(&plan(Some(ended), pairs), after)), []);
            }
        }
    }
    // Not started anew: nothing was asked.
    let not_asked = counted(|t| t.kept = None);
    assert_eq!(codes(&found(&plan(None, PROXY), not_asked)), []);
}

#[test]
fn p025_one_more_than_all_that_was_sent() {
    let plan = plan(Some(Ended::Stopped), PROXY);
    let seen = |after, kept| {
        let numbers = (Some(after), Some(kept));
        codes(&found(&plan, counted(move |t| (t.after, t.kept) = numbers)))
    };
    assert_eq!(seen(1_507, 1_507), []);
    assert_eq!(seen(1_508, 1_507), [(Code::P025, Severity::Invalid)]);
    assert_eq!(seen(1_507, 1_508), [(Code::P025, Severity::Invalid)]);
}

#[test]
fn p026_a_front_or_a_backing_service_on_the_subjects_cores() {
    let plan = plan(None, PROXY);
    for role in [Role::Front, Role::Backing] {
        let found = found(&plan, |trial| {
            trial.processes.push(process(role, 3 * SECOND))
        });
        assert_eq!(codes(&found), [(Code::P026, Severity::Note)]);
        assert_eq!(found[0].blocks, [0, 1]);
        let evidence = format!("{:?}", found[0].evidence);
        assert!(
            evidence.contains("0.5") && evidence.contains("0.3"),
            "{evidence}"
        );
    }
}

/// What runs on other cores, or is the subject itself, takes nothing from it.
#[test]
fn p026_not_for_the_generator_and_the_subjects_own_processes() {
    let found = found(&plan(None, PROXY), |trial| {
        trial.processes.push(process(Role::Subject, 3 * SECOND));
        trial.processes.push(process(Role::Generator, 9 * SECOND));
    });
    assert_eq!(codes(&found), []);
}

/// Findings where `behind` has so many instances on these cores.
pub fn with_instances(instances: u32, cores: &[u32]) -> Vec<Finding> {
    let mut plan = plan(None, PROXY);
    plan.cells[1].around = Around {
        instances,
        ..Around::default()
    };
    plan.cores.subject = cores.to_vec();
    found(&plan, |_| {})
}

#[test]
fn p027_more_instances_than_cores() {
    let with = |instances, cores: &[u32]| codes(&with_instances(instances, cores));
    assert_eq!(with(2, &[0]), [(Code::P027, Severity::Note)]);
    assert_eq!(with(2, &[0, 1]), []);
    assert_eq!(with(2, &[]), []);
    assert_eq!(with(1, &[0]), []);
}

/// Whoever kills the subject under load makes the last requests fail.
#[test]
fn p006_not_for_what_a_kill_breaks_off() {
    let broken = |trial: &mut Trial| {
        let load = trial.load.as_mut().expect("a load");
        (load.counts.drain_failed, load.counts.abandoned) = (99, 1);
    };
    assert_eq!(codes(&found(&plan(Some(Ended::Killed), PROXY), broken)), []);
    let stopped = found(&plan(Some(Ended::Stopped), PROXY), broken);
    assert_eq!(codes(&stopped)[0].0, Code::P006);
}

#[test]
fn p012_of_a_row_against_the_row_that_it_stands_beside() {
    let plan = plan(None, PROXY);
    let bytes = |bytes| {
        codes(&found(&plan, move |trial| {
            trial.load.as_mut().expect("a load").received_bytes = bytes;
        }))
    };
    assert_eq!(bytes(121_000_000), [(Code::P012, Severity::Note)]);
    assert_eq!(bytes(119_000_000), []);
}

/// A generator at its limit is none while the proxy before the subject is at its own.
#[test]
fn p001_not_while_a_thread_of_the_front_is_full() {
    let saturated = |front: u64| {
        let plan = plan(None, PROXY);
        let found = found(&plan, |trial| {
            let load = trial.load.as_mut().expect("a load");
            load.threads_cpu = vec![prony_record::ThreadCpu {
                cpu_ns: 10 * SECOND,
                ..prony_record::ThreadCpu::default()
            }];
            let mut proxy = process(Role::Front, front);
            proxy.threads = vec![prony_record::ThreadRecord {
                cpu_ns: front,
                ..prony_record::ThreadRecord::default()
            }];
            trial.processes.push(proxy);
        });
        found.iter().any(|f| f.code == Code::P001)
    };
    assert!(saturated(9 * SECOND));
    assert!(!saturated(SECOND * 96 / 10));
}

/// A row stands beside the row that it names, of the same workload and with as many connections.
#[test]
fn a_row_stands_beside_the_cell_of_its_own_workload_and_connections() {
    let row = |subject: &str, baseline: Option<&str>| PlannedRow {
        title: format!("row of {subject}"),
        subject: subject.to_owned(),
        baseline: baseline.map(str::to_owned),
        ..PlannedRow::default()
    };
    let workload = |name: &str| PlannedWorkload {
        name: name.to_owned(),
        rows: vec![row("c", None), row("a", None), row("b", Some("row of a"))],
        ..PlannedWorkload::default()
    };
    let cell = |subject: &str, workload: &str, connections| Cell {
        id: format!("{subject} {workload} {connections}"),
        subject: subject.to_owned(),
        workload: workload.to_owned(),
        connections,
        ..Cell::default()
    };
    let others = [
        cell("a", "pong", 100),
        cell("a", "ping", 10),
        cell("c", "ping", 100),
        cell("a", "ping", 100),
    ];
    let own = cell("b", "ping", 100);
    let mut plan = Plan {
        workloads: ["pong", "ping"].map(workload).into(),
        cells: others.into(),
        ..Plan::default()
    };
    let records = Records::new(&plan, &[]);
    let beside = records
        .case(&own)
        .baseline_cell()
        .map(|cell| cell.id.as_str());
    assert_eq!(beside, Some("a ping 100"));
    assert_eq!(records.case(&plan.cells[3]).baseline_cell(), None);
    plan.cells.pop();
    assert_eq!(Records::new(&plan, &[]).case(&own).baseline_cell(), None);
}
