//! Each finding provoked, and just not provoked.

use prony_findings::{Code, Finding, Records, Severity, Value, Verdict, findings, verdict};
use prony_record::{
    Canary, CanaryPair, Cell, CheckLevel, CheckResult, CoreUse, Cores, Exit, GeneratorKind,
    Isolation, LatencyNs, LoadReport, Outcome, Pace, Phase, Plan, PlannedSubject, PlannedWorkload,
    ProcessRecord, Role, Slices, ThreadCpu, ThreadRecord, Trial, Visit,
};

pub const SECOND: u64 = 1_000_000_000;
pub const WINDOW: u64 = 10 * SECOND;
const CONNECTIONS: u32 = 100;

/// A plan of two subjects with one cell each.
pub fn plan() -> Plan {
    let subject = |id: &str| PlannedSubject {
        id: id.to_owned(),
        threads: 1,
        ..PlannedSubject::default()
    };
    let cell = |id: &str| Cell {
        id: format!("{id} ping"),
        subject: id.to_owned(),
        workload: "ping".to_owned(),
        connections: CONNECTIONS,
        ..Cell::default()
    };
    Plan {
        cores: Cores {
            subject: vec![0],
            generator: vec![1],
            ..Cores::default()
        },
        reference: Some("b".to_owned()),
        subjects: ["a", "b"].map(subject).into(),
        workloads: vec![PlannedWorkload {
            name: "ping".to_owned(),
            timeout_ns: 2 * SECOND,
            ..PlannedWorkload::default()
        }],
        cells: ["a", "b"].map(cell).into(),
        ..Plan::default()
    }
}

/// A trial with nothing to find: a million requests in 10 s, 100 in flight.
pub fn good(cell: &str, block: u32) -> Trial {
    let thread = |cpu_ns| ThreadRecord {
        cpu_ns,
        ..ThreadRecord::default()
    };
    let process = |role, cpu_ns| ProcessRecord {
        role,
        cpu_ns,
        threads: vec![thread(cpu_ns)],
        exit: Some(Exit::Code { code: 0 }),
        ..ProcessRecord::default()
    };
    let core = |core, role, busy_ns| CoreUse {
        core,
        role: Some(role),
        busy_ns,
        steal_ns: 0,
        ksoftirqd_ns: None,
    };
    let canary = Canary {
        compute_ns: 1_000_000,
        syscalls_ns: 1_000_000,
    };
    Trial {
        cell: cell.to_owned(),
        block,
        outcome: Outcome::Measured,
        window_ns: WINDOW,
        sampled_ns: WINDOW,
        load: Some(load()),
        processes: vec![
            process(Role::Subject, WINDOW * 9 / 10),
            process(Role::Generator, WINDOW / 2),
        ],
        cores: vec![
            core(0, Role::Subject, WINDOW * 94 / 100),
            core(1, Role::Generator, WINDOW / 2),
        ],
        canary: Some(CanaryPair {
            before: canary,
            after: canary,
        }),
        isolation: Isolation {
            network_namespace: true,
            process_namespace: true,
            pinned: true,
        },
        ..Trial::default()
    }
}

fn load() -> LoadReport {
    let mut load = LoadReport {
        connections: CONNECTIONS,
        window_ns: WINDOW,
        completed: 1_000_000,
        rate_per_s: 100_000.0,
        received_bytes: 100_000_000,
        latency_ns: LatencyNs {
            count: 1_000_000,
            mean: 1_000_000.0,
            max: 5_000_000,
            ..LatencyNs::default()
        },
        slices: Slices {
            slice_ns: SECOND / 10,
            completed: vec![10_000; 100],
        },
        threads_cpu: vec![ThreadCpu {
            name: "load".to_owned(),
            cpu_ns: WINDOW / 2,
            spun_ns: 0,
        }],
        ..LoadReport::default()
    };
    load.counts.completed = load.completed;
    load.counts.in_flight = 100;
    load.counts.drained = 100;
    load
}

/// Findings on cell `a`, of which two trials were changed by `change`, beside a good cell `b`.
pub fn found(change: impl Fn(&mut Trial)) -> Vec<Finding> {
    in_plan(&plan(), change)
}

fn in_plan(plan: &Plan, change: impl Fn(&mut Trial)) -> Vec<Finding> {
    let mut trials: Vec<Trial> = (0..2)
        .flat_map(|n| [good("a ping", n), good("b ping", n)])
        .collect();
    trials
        .iter_mut()
        .filter(|t| t.cell == "a ping")
        .for_each(change);
    findings(&Records::new(plan, &trials))
}

/// Changes the generator's report.
pub fn reported(change: impl Fn(&mut LoadReport)) -> impl Fn(&mut Trial) {
    move |trial| change(trial.load.as_mut().expect("a report"))
}

/// The one finding that there is, which has the code, on `a`.
#[track_caller]
pub fn only(code: Code, severity: Severity, found: &[Finding]) -> Finding {
    assert_eq!(found.len(), 1, "{found:#?}");
    let finding = &found[0];
    assert_eq!(
        (finding.code, finding.severity),
        (code, severity),
        "{finding:#?}"
    );
    assert_eq!((&*finding.cell, &*finding.subject), ("a ping", "a"));
    finding.clone()
}

#[track_caller]
pub fn none(found: &[Finding]) {
    assert_eq!(found, []);
}

pub fn evidence(finding: &Finding, what: &str) -> f64 {
    let found = finding.evidence.iter().find(|e| e.what == what);
    match found.map(|e| &e.value) {
        Some(Value::Number { value, .. }) => *value,
        other => panic!("{what}: {other:?} in {finding:#?}"),
    }
}

#[test]
fn good_trials_have_no_finding() {
    none(&found(|_| {}));
    assert_eq!(verdict(&[]), Verdict::Valid);
}

#[test]
fn p001_the_generators_core_is_full_and_the_subjects_is_not() {
    let full = with_own_share(500);
    let finding = only(Code::P001, Severity::Bound, &found(full));
    assert_eq!(finding.blocks, [0, 1]);
    assert_eq!(
        evidence(&finding, "generator's busiest core or thread"),
        0.95
    );
    assert_eq!(evidence(&finding, "subject's busiest core or thread"), 0.94);
    let thread = reported(|load| load.threads_cpu[0].cpu_ns = WINDOW * 96 / 100);
    only(Code::P001, Severity::Bound, &found(thread));
}

#[test]
fn p001_in_a_third_of_the_blocks_bounds_nothing_and_in_more_it_does() {
    let full = with_own_share(500);
    let in_blocks = |count: u32| {
        let plan = Plan {
            blocks: 6,
            ..plan()
        };
        let mut trials: Vec<Trial> = (0..6)
            .flat_map(|n| [good("a ping", n), good("b ping", n)])
            .collect();
        let is_full = |t: &&mut Trial| t.cell == "a ping" && t.block < count;
        for trial in trials.iter_mut().filter(is_full) {
            full(trial);
            trial.processes[1].cpu_ns = WINDOW * 95 / 100;
        }
        findings(&Records::new(&plan, &trials))
    };
    let few = only(Code::P001, Severity::Note, &in_blocks(2));
    assert_eq!(few.blocks, [0, 1]);
    assert!(few.meaning.starts_with("In a few of the blocks"), "{few:?}");
    let more = only(Code::P001, Severity::Bound, &in_blocks(3));
    assert_eq!(more.blocks, [0, 1, 2]);
}

/// The generator's core is full, and its own threads used this many thousandths of the window.
pub fn with_own_share(thousandths: u64) -> impl Fn(&mut Trial) {
    move |trial| {
        trial.cores[1].busy_ns = WINDOW * 95 / 100;
        trial.load.as_mut().expect("a load").cpu_ns = WINDOW * thousandths / 1_000;
    }
}

#[test]
fn p001_not_when_the_generators_core_is_full_of_other_programs() {
    none(&found(with_own_share(499)));
}

#[test]
fn p001_not_below_its_threshold_nor_when_both_are_full() {
    none(&found(|trial| trial.cores[1].busy_ns = WINDOW * 949 / 1000));
    none(&found(|trial| {
        trial.cores[1].busy_ns = WINDOW;
        trial.cores[0].busy_ns = WINDOW * 95 / 100;
    }));
    none(&found(|trial| {
        trial.cores[1].busy_ns = WINDOW;
        trial.processes[0].threads[0].cpu_ns = WINDOW * 96 / 100;
    }));
}

#[test]
fn p002_one_refused_or_reset_connection() {
    let refused = found(reported(|load| load.counts.connect_failed.refused = 1));
    let finding = only(Code::P002, Severity::Note, &refused);
    assert_eq!(evidence(&finding, "refused while connecting"), 1.0);
    assert_eq!(
        finding.evidence.len(),
        1,
        "what did not happen is not shown"
    );
    let reset = found(reported(|load| load.counts.failed.reset = 3));
    only(Code::P002, Severity::Note, &reset);
    // 10,102 of 1,010,102: just over one in a hundred.
    let many = found(reported(|load| load.counts.failed.reset = 10_102));
    only(Code::P002, Severity::Invalid, &many);
    // It had gone before the window: its rate is not 0, but unknown.
    let gone = found(reported(|load| {
        (load.completed, load.counts.completed, load.counts.drained) = (0, 0, 0);
        load.counts.connect_failed.refused = 1;
    }));
    let of_it = gone.iter().find(|of| of.code == Code::P002);
    assert_eq!(of_it.map(|of| of.severity), Some(Severity::Invalid));
}

/// Connections that end otherwise are told by other codes, or are as they should be.
#[test]
fn p002_not_where_connections_were_let_in_and_closed_in_order() {
    none(&found(reported(|load| {
        load.counts.in_flight = 100;
        load.connections_closed_by_server = 100;
    })));
    let others = found(reported(|load| {
        load.counts.connect_failed.timeout = 1;
        load.counts.failed.closed = 1;
    }));
    only(Code::P006, Severity::Note, &others);
}

#[test]
fn p003_closings_by_their_share_of_the_answers() {
    // 1,000,100 answers in the whole run.
    let closing = |closed| found(reported(move |l| l.connections_closed_by_server = closed));
    let closes = |found: &[Finding]| {
        let finding = only(Code::P003, Severity::Note, found);
        finding
            .meaning
            .contains("although keep-alive was asked for")
    };
    assert!(closes(&closing(10_001)));
    assert!(!closes(&closing(10_000)));
    assert!(!closes(&closing(101)));
    none(&closing(100));
}

#[test]
fn p003_the_check_of_keep_alive_failed() {
    let finding = only(
        Code::P003,
        Severity::Note,
        &found(|t| t.verification = vec![lacks("keep-alive")]),
    );
    let what: Vec<&str> = finding.evidence.iter().map(|e| &*e.what).collect();
    assert_eq!(what[2], "check of keep-alive");
    none(&found(|trial| {
        trial.verification = vec![CheckResult {
            passed: true,
            ..lacks("keep-alive")
        }];
    }));
}

pub fn lacks(name: &str) -> CheckResult {
    CheckResult {
        name: name.to_owned(),
        level: CheckLevel::Capability,
        passed: false,
        detail: "closed after the first answer".to_owned(),
    }
}

#[test]
fn p004_the_kernels_counter_rose() {
    let rose = |by: u64| {
        found(move |trial| {
            trial.kernel.own_namespace = true;
            trial
                .kernel
                .before
                .insert("TcpExtListenOverflows".to_owned(), 5);
            trial
                .kernel
                .after
                .insert("TcpExtListenOverflows".to_owned(), 5 + by);
        })
    };
    let finding = only(Code::P004, Severity::Note, &rose(1));
    assert_eq!(evidence(&finding, "TcpExtListenOverflows rose by"), 1.0);
    none(&rose(0));
    let host = found(|trial| {
        trial.kernel.after.insert("TcpExtListenDrops".to_owned(), 2);
    });
    let counters = &only(Code::P004, Severity::Note, &host).evidence[2];
    assert!(
        format!("{counters:?}").contains("host-wide"),
        "{counters:?}"
    );
}

#[test]
fn p005_less_than_80_percent_in_flight() {
    let mean = |ns: f64| found(reported(move |load| load.latency_ns.mean = ns));
    let finding = only(Code::P005, Severity::Note, &mean(799_000.0));
    assert!((evidence(&finding, "in flight by Little's law") - 79.9).abs() < 1e-9);
    // The edge explains 100 × 5 ms / 10 s = 0.05 connections.
    none(&mean(799_600.0));
}

#[test]
fn p005_what_time_outs_explain_is_no_gap() {
    let with_timeouts = |timeouts| {
        let found = found(reported(move |load| {
            load.latency_ns.mean = 500_000.0;
            load.counts.failed.timeout = timeouts;
        }));
        found.iter().any(|finding| finding.code == Code::P005)
    };
    // Each holds a connection for 2 s of 10 s: 150 explain 30 of 100.
    assert!(!with_timeouts(150));
    assert!(with_timeouts(149));
}

#[test]
fn p005_what_was_never_answered_is_no_gap_and_eighty_percent_is_none() {
    let found_with = |mean: f64, abandoned| {
        let found = found(reported(move |load| {
            load.latency_ns.mean = mean;
            (load.counts.drained, load.counts.abandoned) = (0, abandoned);
        }));
        found.iter().any(|finding| finding.code == Code::P005)
    };
    // Each waited for 2 s of 10 s: 150 explain 30 of 100.
    assert!(!found_with(500_000.0, 150));
    assert!(found_with(500_000.0, 149));
    assert!(!found_with(800_000.0, 0));
    assert!(found_with(799_999.0, 0));
}

#[test]
fn p005_more_in_flight_than_there_are_cannot_be() {
    let mean = |ns: f64| found(reported(move |load| load.latency_ns.mean = ns));
    only(Code::P005, Severity::Invalid, &mean(1_021_000.0));
    none(&mean(1_019_000.0));
}

/// As a window of 100 ms had them: of those that were answered in it, so many had begun before.
#[test]
fn p005_answers_to_what_began_before_a_window_were_counted_with_times_of_others() {
    let began = |before: u64| {
        found(reported(move |load| {
            load.latency_ns.mean = 1_060_000.0;
            load.latency_ns.count = load.completed - before;
        }))
    };
    none(&began(40_000));
    only(Code::P005, Severity::Invalid, &began(30_000));
}

/// Each of five visits may begin with requests that had waited for a pause of the machine, and end with others.
#[test]
fn p005_the_edges_of_visits_were_those_of_one_window() {
    let in_visits = |visits: usize, mean: f64, drained: u64| {
        found(move |trial| {
            let load = trial.load.as_mut().expect("a report");
            (load.latency_ns.mean, load.latency_ns.max) = (mean, 4 * SECOND);
            load.counts.drained = drained;
            trial.visits = vec![Visit::default(); visits];
        })
    };
    // 500 × 4 s / 10 s = 200 connections, and 2 % of 100.
    none(&in_visits(5, 3_019_000.0, 500));
    only(
        Code::P005,
        Severity::Invalid,
        &in_visits(5, 3_021_000.0, 500),
    );
    // What turns of the warm-up left is no more than that.
    only(
        Code::P005,
        Severity::Invalid,
        &in_visits(5, 3_021_000.0, 5_000),
    );
    only(
        Code::P005,
        Severity::Invalid,
        &in_visits(0, 1_421_000.0, 500),
    );
}

/// Connections, rate and mean latency as wrk printed them in published runs that do not add up.
#[test]
fn p005_finds_the_gaps_of_published_runs() {
    let gap = |connections: u32, seconds: u64, completed: u64, mean_us: f64, timeouts: u64| {
        let found = found(reported(move |load| {
            load.connections = connections;
            load.window_ns = seconds * SECOND;
            (load.completed, load.latency_ns.mean) = (completed, mean_us * 1e3);
            load.latency_ns.max = 0;
            load.counts.failed.timeout = timeouts;
        }));
        found.iter().any(|finding| finding.code == Code::P005)
    };
    assert!(!gap(20_000, 60, 4_382_499, 270_410.0, 0), "99 %");
    assert!(gap(20_000, 10, 1_185_278, 64_980.0, 120), "38 %");
    assert!(gap(20_000, 10, 374_703, 95_100.0, 223), "18 %");
    assert!(
        gap(20_000, 10, 131_805, 462_340.0, 3_652),
        "30 %, of which time-outs explain some"
    );
    assert!(gap(2, 10, 418_099, 20.80, 0), "43 %");
    assert!(gap(2, 10, 152_519, 155.23, 0), "117 %");
}

/// Processes that slept so many times for each thousand requests, and a subject whose core was as busy as that.
pub fn slept(subject: u64, generator: u64, busy: u64) -> impl Fn(&mut Trial) {
    move |trial| {
        let requests = trial.load.as_ref().expect("a report").completed;
        for process in &mut trial.processes {
            process.switches_voluntary = requests / 1_000
                * match process.role {
                    Role::Subject => subject,
                    _ => generator,
                };
        }
        trial.cores[0].busy_ns = WINDOW / 100 * busy;
        trial.load.as_mut().expect("a report").latency_ns.p50 = 200_000;
    }
}

#[test]
fn p032_both_sides_sleep_once_in_five_requests() {
    let finding = only(Code::P032, Severity::Note, &found(slept(520, 200, 80)));
    assert_eq!(evidence(&finding, "sleeps of the subject a request"), 0.52);
    assert_eq!(evidence(&finding, "sleeps of the generator a request"), 0.2);
    none(&found(slept(520, 199, 80)));
    none(&found(slept(10, 1_000, 80)));
    // Its pool of threads sleeps, and it is full all the same.
    none(&found(slept(520, 520, 95)));
    let waits = |trial: &mut Trial| {
        slept(520, 520, 80)(trial);
        trial.load.as_mut().expect("a report").latency_ns.p50 = 200_001;
    };
    none(&found(waits));
    let thinks = |trial: &mut Trial| {
        slept(520, 520, 80)(trial);
        trial.load.as_mut().expect("a report").pace = Pace::Closed { think_ns: 1 };
    };
    none(&found(thinks));
    // A file may say anything, and of two processes more than a count holds.
    let absurd = |trial: &mut Trial| {
        slept(520, 520, 80)(trial);
        for process in &mut trial.processes {
            process.switches_voluntary = u64::MAX;
        }
        trial.processes.extend(trial.processes.clone());
    };
    assert!(found(absurd).iter().any(|of| of.code == Code::P032));
}

#[test]
fn p006_one_failure_and_the_wrong_answer_that_makes_invalid() {
    let late = found(reported(|load| load.counts.failed.timeout = 1));
    let finding = only(Code::P006, Severity::Note, &late);
    assert_eq!(evidence(&finding, "timed out"), 1.0);
    assert_eq!(verdict(&late), Verdict::Valid);
    let wrong = found(reported(|load| load.counts.failed.wrong_answer = 1));
    only(Code::P006, Severity::Invalid, &wrong);
    assert_eq!(verdict(&wrong), Verdict::Invalid);
}

#[test]
fn p006_one_percent_of_failures_is_invalid_and_named() {
    let late = |count| found(reported(move |load| load.counts.failed.timeout = count));
    let finding = only(Code::P006, Severity::Invalid, &late(10_102));
    assert_eq!(evidence(&finding, "timed out"), 10_102.0);
    only(Code::P006, Severity::Note, &late(10_000));
    // Of two kinds together, each of which is less.
    let both = found(reported(|load| {
        load.counts.failed.timeout = 6_000;
        load.counts.unexpected_status = 6_000;
    }));
    only(Code::P006, Severity::Invalid, &both);

    let unexpected = |count| found(reported(move |load| load.counts.unexpected_status = count));
    only(Code::P006, Severity::Invalid, &unexpected(10_000));
    only(Code::P006, Severity::Note, &unexpected(9_999));
}

#[test]
fn p007_more_cpu_time_than_the_cores_have() {
    let used =
        |percent: u64| found(move |trial| trial.processes[0].cpu_ns = WINDOW * percent / 100);
    let finding = only(Code::P007, Severity::Invalid, &used(106));
    assert_eq!(evidence(&finding, "used"), 1.06);
    none(&used(105));
}

#[test]
fn p007_unpinned_the_threads_that_it_was_told_to_use_count() {
    let mut plan = plan();
    plan.cores = Cores::default();
    plan.subjects[0].threads = 2;
    let used = |percent: u64| {
        in_plan(&plan, move |trial| {
            trial.processes[0].cpu_ns = WINDOW * percent / 100
        })
    };
    only(Code::P007, Severity::Invalid, &used(211));
    none(&used(209));
}

#[test]
fn p008_a_rate_that_drifts_or_stalls() {
    let drifting = |last: u64| {
        found(reported(move |load| {
            load.slices.completed[67..].fill(last);
        }))
    };
    let finding = only(Code::P008, Severity::Note, &drifting(8_900));
    assert_eq!(evidence(&finding, "last third over first third"), 0.89);
    none(&drifting(9_100));
    let stalling = |slices: usize| {
        found(reported(move |load| {
            load.slices.completed[10..10 + slices].fill(0)
        }))
    };
    only(Code::P008, Severity::Note, &stalling(6));
    none(&stalling(5));
}

#[test]
fn blocks_that_lie_apart_are_in_the_interval_and_no_finding() {
    none(&found(|trial| {
        let load = trial.load.as_mut().expect("a report");
        load.completed = [800_000, 1_200_000][trial.block as usize];
        load.latency_ns.mean = 1e12 / load.completed as f64;
    }));
}

#[test]
fn p008_blocks_in_two_groups() {
    let (plan, groups) = (
        plan(),
        [
            1_000_000_u64,
            1_001_000,
            1_002_000,
            1_050_000,
            1_051_000,
            1_052_000,
        ],
    );
    let trials_of = |counts: &[u64]| {
        let trial = |(block, &completed): (usize, &u64)| {
            let mut trial = good("a ping", block as u32);
            let load = trial.load.as_mut().expect("a report");
            load.completed = completed;
            load.received_bytes = completed * 100;
            trial
        };
        counts.iter().enumerate().map(trial).collect::<Vec<_>>()
    };
    let found = |counts: &[u64]| findings(&Records::new(&plan, &trials_of(counts)));
    let in_two: Vec<_> = found(&groups)
        .into_iter()
        .filter(|f| f.code == Code::P008)
        .collect();
    assert_eq!(
        evidence(&only(Code::P008, Severity::Note, &in_two), "lower group"),
        100_100.0
    );
    assert!(found(&groups[..5]).iter().all(|f| f.code != Code::P008));
}

/// Findings where all trials of the run are changed.
pub fn of_run(change: impl Fn(&mut Trial)) -> Vec<Finding> {
    let plan = plan();
    let mut trials: Vec<Trial> = (0..2)
        .flat_map(|n| [good("a ping", n), good("b ping", n)])
        .collect();
    trials.iter_mut().for_each(change);
    findings(&Records::new(&plan, &trials))
}

/// The one note on the run that there is.
#[track_caller]
fn only_on_the_run(found: &[Finding]) -> Finding {
    let [finding] = found else {
        panic!("one finding: {found:?}")
    };
    assert_eq!(
        (finding.code, finding.severity, &*finding.cell),
        (Code::P009, Severity::Note, "")
    );
    finding.clone()
}

#[test]
fn p009_the_canary_drifted() {
    let took = |after: u64| {
        of_run(move |t| t.canary.as_mut().expect("a canary").after.syscalls_ns = after)
    };
    none(&took(1_019_900));
    only_on_the_run(&took(979_000));
    let finding = only_on_the_run(&took(1_101_000));
    let drift = evidence(&finding, "canary, after against before, at the median");
    assert!((drift - 0.101).abs() < 1e-12);
    // In one trial others used a tenth of the subject's core.
    let finding = only_on_the_run(&of_run(|trial| {
        if (trial.block, &*trial.cell) == (1, "b ping") {
            trial.processes[0].cpu_ns -= WINDOW / 10;
        }
    }));
    let blocks = "blocks in which others used a core";
    assert!(
        format!("{finding:?}").contains(&format!(
            "what: \"{blocks}\", value: Text {{ text: \"1\" }}"
        )),
        "{finding:?}"
    );
    // One trial in four says nothing of the run.
    none(&of_run(|trial| {
        if (trial.block, &*trial.cell) == (1, "a ping") {
            trial.canary.as_mut().expect("a canary").after.syscalls_ns = 2_000_000;
        }
    }));
}

#[test]
fn p009_time_was_stolen_or_waited_for() {
    let stolen = |ns: u64| of_run(move |trial| trial.cores[0].steal_ns = ns);
    none(&stolen(WINDOW / 100));
    let finding = only_on_the_run(&stolen(WINDOW / 50));
    assert_eq!(evidence(&finding, "taken by the hypervisor"), 0.02);
    // All trials alike: none of it is in a ratio. Alternating between cells and blocks, all of it may be.
    let apart = "taken, deviation between trials of a block";
    assert_eq!(evidence(&finding, apart), 0.0);
    let alternating = only_on_the_run(&of_run(|trial| {
        let taken = (trial.block == 1) == (trial.cell == "a ping");
        trial.cores[0].steal_ns = u64::from(taken) * WINDOW / 10;
    }));
    let deviation = evidence(&alternating, apart);
    assert!((deviation - 0.1).abs() < 1e-9, "{deviation}");
    // A tick of 10 ms in one of four trials.
    none(&found(|trial| trial.cores[0].steal_ns = WINDOW / 60));
    let waited = |ns: u64| of_run(move |trial| trial.processes[0].threads[0].delay_ns = ns);
    none(&waited(WINDOW / 100));
    only_on_the_run(&waited(WINDOW / 50));
}

#[test]
fn p009_threads_that_share_a_core_wait_for_each_other() {
    none(&found(|trial| {
        let mut second = trial.processes[0].threads[0].clone();
        second.delay_ns = WINDOW / 2;
        trial.processes[0].threads.push(second);
    }));
}

#[test]
fn p010_a_trial_failed() {
    let failed = found(|trial| {
        if trial.block == 1 {
            trial.outcome = Outcome::Failed {
                phase: Phase::Verify,
                reason: "the body differs".to_owned(),
            };
            trial.log_tail = vec!["oh".to_owned()];
        }
    });
    let finding = only(Code::P010, Severity::Invalid, &failed);
    assert_eq!(finding.blocks, [1]);
    let json = serde_json::to_string(&finding.evidence).expect("JSON");
    assert_eq!(
        json,
        r#"[{"what":"blocks measured","value":{"kind":"text","text":"1 of 2"}},"#.to_owned()
            + r#"{"what":"phase","value":{"kind":"text","text":"checking its answers"}},"#
            + r#"{"what":"reason","value":{"kind":"text","text":"the body differs"}},"#
            + r#"{"what":"last lines of its output","value":{"kind":"lines","lines":["oh"]}}]"#
    );
}

/// Findings on cell `a` in six blocks, the first `count` of which failed in `phase`.
pub fn six_blocks(count: u32, phase: Phase) -> Vec<Finding> {
    let mut trials: Vec<Trial> = (0..6)
        .flat_map(|n| [good("a ping", n), good("b ping", n)])
        .collect();
    let failing = |t: &&mut Trial| t.cell == "a ping" && t.block < count;
    for trial in trials.iter_mut().filter(failing) {
        trial.outcome = Outcome::Failed {
            phase,
            reason: "it ended by signal 9".to_owned(),
        };
    }
    findings(&Records::new(&plan(), &trials))
}

#[test]
fn p010_one_failed_block_of_six_made_the_whole_cell_invalid() {
    for count in [1, 2] {
        let seen = six_blocks(count, Phase::Measure);
        let finding = only(Code::P010, Severity::Note, &seen);
        assert!(finding.meaning.contains("the other blocks"));
        assert_eq!(verdict(&seen), Verdict::Valid);
    }
    // Half of the blocks: what is left speaks of the good days.
    let seen = six_blocks(3, Phase::Measure);
    only(Code::P010, Severity::Invalid, &seen);
    // A wrong answer is no chance.
    only(Code::P010, Severity::Invalid, &six_blocks(1, Phase::Verify));
}

#[test]
fn p010_of_failures_that_are_as_bad_the_first_is_shown() {
    let failed = found(|trial| {
        trial.outcome = Outcome::Failed {
            phase: Phase::Verify,
            reason: format!("in block {}", trial.block),
        };
    });
    let finding = only(Code::P010, Severity::Invalid, &failed);
    assert_eq!(finding.blocks, [0, 1]);
    let text = "in block 0".to_owned();
    assert_eq!(finding.evidence[1].value, Value::Text { text });
}

#[test]
fn p010_an_interrupted_trial_is_no_failure_and_the_last_record_of_a_trial_counts() {
    none(&found(|trial| {
        if trial.block == 1 {
            trial.outcome = Outcome::Interrupted;
        }
    }));
    let mut first = good("a ping", 0);
    first.outcome = Outcome::Failed {
        phase: Phase::Start,
        reason: String::new(),
    };
    let plan = plan();
    none(&findings(&Records::new(&plan, &[first, good("a ping", 0)])));
}

#[test]
fn p011_a_capability_is_missing() {
    let lacking = |name: &'static str, level| {
        found(move |trial| {
            trial.verification = vec![CheckResult {
                level,
                ..lacks(name)
            }]
        })
    };
    only(
        Code::P011,
        Severity::Note,
        &lacking("split", CheckLevel::Capability),
    );
    none(&lacking("split", CheckLevel::Must));
}

#[test]
fn p012_answers_of_another_size_than_the_references() {
    let size = |bytes: u64| {
        found(reported(move |load| {
            load.received_bytes = bytes * 1_000_000
        }))
    };
    only(Code::P012, Severity::Note, &size(121));
    only(Code::P012, Severity::Note, &size(83));
    none(&size(120));
    none(&size(84));
}

#[test]
fn trials_by_another_generator_have_no_part_in_it() {
    let plan = plan();
    let mut trial = good("a ping", 0);
    trial.generator = GeneratorKind::Wrk;
    trial.load.as_mut().expect("a report").counts.failed.timeout = 9;
    none(&findings(&Records::new(&plan, &[trial])));
}

/// Findings where wrk got so many times the rate of Prony's blocks.
pub fn beside_wrk(factor: f64) -> Vec<Finding> {
    let own = [good("a ping", 0), good("a ping", 1)];
    let mut by_wrk = good("a ping", 0);
    by_wrk.generator = GeneratorKind::Wrk;
    let load = by_wrk.load.as_mut().expect("a report");
    load.rate_per_s *= factor;
    load.completed = (load.completed as f64 * factor) as u64;
    let trials = [own[0].clone(), own[1].clone(), by_wrk];
    findings(&Records::new(&plan(), &trials))
}

#[test]
fn p030_wrk_got_another_rate() {
    let of = beside_wrk;
    none(&of(1.0));
    none(&of(1.09));
    none(&of(0.91));
    for factor in [1.12, 0.88] {
        let finding = only(Code::P030, Severity::Note, &of(factor));
        let (wrk, least) = (
            evidence(&finding, "wrk"),
            evidence(&finding, "Prony, slowest block"),
        );
        assert!((wrk / least - factor).abs() < 0.001, "{finding:?}");
    }
}

#[test]
fn the_pages_name_the_thresholds_that_the_rules_use() {
    use prony_findings::limits;
    let percent = |share: f64| format!("{} %", (share * 100.0).round());
    for (code, text) in [
        (Code::P001, percent(limits::SATURATED_SHARE)),
        (Code::P001, percent(limits::SATURATED_OWN_SHARE)),
        (Code::P001, percent(limits::GENERATOR_SHARE)),
        (Code::P001, percent(limits::GENERATOR_BOUND_SHARE)),
        (Code::P001, percent(limits::BOUND_BLOCKS_SHARE)),
        (Code::P028, percent(limits::FROZEN_SHARE)),
        (Code::P003, percent(limits::CLOSED_SHARE)),
        (Code::P005, percent(limits::IN_FLIGHT_SHARE)),
        (Code::P005, percent(1.0 + limits::IN_FLIGHT_OVER)),
        (Code::P002, percent(limits::FAILED_SHARE)),
        (Code::P006, percent(limits::FAILED_SHARE)),
        (Code::P007, format!("{} ×", limits::CORES_OVER)),
        (Code::P009, percent(limits::CANARY_DRIFT)),
        (Code::P009, percent(limits::WAIT_SHARE)),
        (Code::P012, format!("{} times", limits::BYTES_RATIO)),
        (Code::P030, percent(limits::GENERATORS_APART)),
    ] {
        assert!(code.page().contains(&text), "{code} says {text}");
    }
}
