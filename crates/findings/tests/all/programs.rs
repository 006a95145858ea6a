//! Each finding on programs provoked, and just not provoked; and that those on servers are silent.

use prony_findings::{Code, Finding, Records, Severity, Unit, Value, findings};
use prony_record::{
    Canary, CanaryPair, Cell, CheckLevel, CheckResult, CoreUse, Cores, Durations, KernelCounters,
    Missed, Outcome, Plan, PlannedProgram, PlannedSubject, PlannedWorkload, ProgramLine,
    ProgramReport, Role, Trial,
};

pub const MS: u64 = 1_000_000;
const COUNT: u64 = 100_000;

/// Three subjects, each with two kinds of work.
pub fn plan() -> Plan {
    let subject = |id: &str| PlannedSubject {
        id: id.to_owned(),
        threads: 1,
        ..PlannedSubject::default()
    };
    let workload = |name: &str| PlannedWorkload {
        name: name.to_owned(),
        program: Some(PlannedProgram {
            work: name.to_owned(),
            counts: vec![COUNT],
            ..PlannedProgram::default()
        }),
        ..PlannedWorkload::default()
    };
    let cells = ["event", "start"].iter().flat_map(|work| {
        ["a", "b", "c"].map(|id| Cell {
            id: format!("{id} {work}"),
            subject: id.to_owned(),
            workload: (*work).to_owned(),
            count: Some(COUNT),
            ..Cell::default()
        })
    });
    Plan {
        cores: Cores {
            subject: vec![0, 1],
            generator: vec![],
            ..Cores::default()
        },
        reference: Some("b".to_owned()),
        subjects: ["a", "b", "c"].map(subject).into(),
        workloads: ["event", "start"].map(workload).into(),
        cells: cells.collect(),
        ..Plan::default()
    }
}

/// A run with nothing to find: 100 ms of work in a process of 102 ms.
fn good(cell: &str, block: u32) -> Trial {
    let canary = Canary {
        compute_ns: MS,
        syscalls_ns: MS,
    };
    let own = cell.bytes().map(u64::from).sum::<u64>();
    Trial {
        cell: cell.to_owned(),
        block,
        outcome: Outcome::Measured,
        program: Some(ProgramReport {
            wall_ns: 102 * MS,
            user_ns: 95 * MS,
            system_ns: 6 * MS,
            peak_bytes: (20 << 20) + own * 4096 + u64::from(block) * 4096,
            lines: vec![ProgramLine {
                measure: "events".to_owned(),
                threads: 1,
                count: COUNT,
                elapsed_ns: 100 * MS,
                checksum: "c0ffee".to_owned(),
                ..ProgramLine::default()
            }],
        }),
        canary: Some(CanaryPair {
            before: canary,
            after: canary,
        }),
        ..Trial::default()
    }
}

/// Findings where `change` was done to the trials of `cell`, in three blocks.
pub fn found(cell: &str, change: impl Fn(&mut Trial)) -> Vec<Finding> {
    in_plan(&plan(), cell, change)
}

pub fn in_plan(plan: &Plan, cell: &str, change: impl Fn(&mut Trial)) -> Vec<Finding> {
    let of_block = |block| plan.cells.iter().map(move |c| good(&c.id, block));
    let mut trials: Vec<Trial> = (0..3).flat_map(of_block).collect();
    trials
        .iter_mut()
        .filter(|t| t.cell == cell)
        .for_each(change);
    findings(&Records::new(plan, &trials))
}

pub fn report(change: impl Fn(&mut ProgramReport)) -> impl Fn(&mut Trial) {
    move |trial| change(trial.program.as_mut().expect("a program"))
}

pub fn line(change: impl Fn(&mut ProgramLine)) -> impl Fn(&mut Trial) {
    report(move |program| change(&mut program.lines[0]))
}

#[track_caller]
fn only(code: Code, severity: Severity, found: &[Finding]) -> Finding {
    assert_eq!(found.len(), 1, "{found:#?}");
    let seen = (found[0].code, found[0].severity);
    assert_eq!(seen, (code, severity), "{found:#?}");
    found[0].clone()
}

#[track_caller]
fn none(found: &[Finding]) {
    assert_eq!(found, []);
}

fn evidence<'a>(finding: &'a Finding, what: &str) -> &'a Value {
    let found = finding.evidence.iter().find(|e| e.what == what);
    &found.expect(what).value
}

#[test]
fn good_runs_have_no_finding() {
    none(&found("a event", |_| {}));
}

/// Whatever a server's rules look at may stand in the record of a program.
#[test]
fn what_is_of_servers_only_is_silent() {
    none(&found("a event", |trial| {
        let counter = ("TcpExtListenOverflows".to_owned(), 7);
        trial.kernel = KernelCounters {
            after: [counter].into(),
            ..KernelCounters::default()
        };
        trial.verification = vec![CheckResult {
            name: "pipelining".to_owned(),
            level: CheckLevel::Capability,
            passed: false,
            detail: String::new(),
        }];
        trial.cores = vec![CoreUse {
            core: 1,
            role: Some(Role::Generator),
            busy_ns: 102 * MS,
            steal_ns: 0,
            ksoftirqd_ns: None,
        }];
    }));
}

#[test]
fn p007_more_cpu_time_than_its_threads_have() {
    let busy = |ms: u64| found("a event", report(move |p| p.user_ns = ms * MS));
    let finding = only(Code::P007, Severity::Note, &busy(150));
    assert!(finding.meaning.contains("program"));
    none(&busy(100));
    // Of a run that is shorter than the kernel's accounting is fine, nothing is said.
    none(&found(
        "a event",
        report(|p| {
            (p.wall_ns, p.user_ns) = (19 * MS, 40 * MS);
            p.lines[0].elapsed_ns = 18 * MS;
        }),
    ));
}

#[test]
fn p009_the_canary_and_the_hypervisor_beside_programs_too() {
    let of_run = |change: &dyn Fn(&mut Trial)| {
        let plan = plan();
        let of_block = |block| plan.cells.iter().map(move |c| good(&c.id, block));
        let mut trials: Vec<Trial> = (0..2).flat_map(of_block).collect();
        trials.iter_mut().for_each(change);
        let found = findings(&Records::new(&plan, &trials));
        let named = found.iter().map(|f| (f.code, f.cell.clone()));
        named.collect::<Vec<_>>()
    };
    let on_run: Vec<(Code, String)> = vec![(Code::P009, String::new())];
    let drift = |ns: u64| {
        move |trial: &mut Trial| trial.canary.as_mut().expect("a canary").after.compute_ns = ns
    };
    assert_eq!(of_run(&drift(1_030_000)), on_run);
    assert_eq!(of_run(&drift(1_019_000)), []);
    let steal = |ns: u64| {
        move |trial: &mut Trial| {
            trial.cores = vec![CoreUse {
                core: 0,
                role: Some(Role::Subject),
                busy_ns: 0,
                steal_ns: ns,
                ksoftirqd_ns: None,
            }];
        }
    };
    assert_eq!(of_run(&steal(2 * MS)), on_run);
    assert_eq!(of_run(&steal(MS)), []);
}

#[test]
fn p010_a_run_that_failed() {
    let failed = found("a event", |trial| {
        trial.outcome = Outcome::Failed {
            phase: prony_record::Phase::Measure,
            reason: "it ended with status 3".to_owned(),
        };
    });
    only(Code::P010, Severity::Invalid, &failed);
}

#[test]
fn p012_other_bytes_for_each_thing_counted() {
    let bytes = |own: u64| {
        let plan = plan();
        let of_block = |block| plan.cells.iter().map(move |c| good(&c.id, block));
        let mut trials: Vec<Trial> = (0..2).flat_map(of_block).collect();
        for trial in &mut trials {
            let each = if trial.cell == "a event" { own } else { 100 };
            let program = trial.program.as_mut().expect("a program");
            program.lines[0].bytes = each * COUNT;
        }
        findings(&Records::new(&plan, &trials))
    };
    let finding = only(Code::P012, Severity::Note, &bytes(121));
    assert_eq!(finding.evidence[0].what, "bytes for each counted");
    none(&bytes(120));
    only(Code::P012, Severity::Note, &bytes(83));
}

#[test]
fn p013_too_short() {
    let short = |ns: u64| found("a event", line(move |l| l.elapsed_ns = ns));
    let finding = only(Code::P013, Severity::Bound, &short(5 * MS - 1));
    assert_eq!(finding.blocks, [0, 1, 2]);
    none(&short(5 * MS));
}

#[test]
fn p013_the_shortest_run_is_shown() {
    let seen = found("a event", |trial| {
        let ns = [2_100_000, 2_000_000, 2_050_000][trial.block as usize];
        line(|l| l.elapsed_ns = ns)(trial);
    });
    let finding = only(Code::P013, Severity::Bound, &seen);
    let shown = Value::Number {
        value: 2e6,
        unit: Unit::Nanoseconds,
    };
    assert_eq!(finding.evidence[0].value, shown);
}

#[test]
fn p014_a_program_that_waits() {
    let used = |ms: u64| found("a event", report(move |p| p.user_ns = ms * MS));
    only(Code::P014, Severity::Note, &used(75));
    none(&used(76));
}

#[test]
fn p014_threads_that_wait_are_told_for_information() {
    let used = |threads: u32, ms: u64| {
        let change = report(move |p| {
            p.lines[0].threads = threads;
            p.user_ns = ms * MS;
        });
        found("a event", change)
    };
    only(Code::P014, Severity::Note, &used(2, 150));
    none(&used(2, 158));
    // Eight threads on two cores can use two cores.
    none(&used(8, 158));
    let mut free = plan();
    free.cores = Cores::default();
    let change = report(|p| {
        p.lines[0].threads = 8;
        p.user_ns = 158 * MS;
    });
    only(
        Code::P014,
        Severity::Note,
        &in_plan(&free, "a event", change),
    );
}

#[test]
fn p015_the_reference_says_what_is_right() {
    let wrong = line(|l| l.checksum = "bad".to_owned());
    let finding = only(Code::P015, Severity::Invalid, &found("a event", wrong));
    let right = Value::Text {
        text: "c0ffee".to_owned(),
    };
    assert_eq!(evidence(&finding, "of b"), &right);
    none(&found("a event", line(|l| l.checksum.clear())));
    // If the reference stands alone, the others differ from it.
    let others = found("b event", line(|l| l.checksum = "bad".to_owned()));
    let codes: Vec<(Code, &str)> = others.iter().map(|f| (f.code, &*f.cell)).collect();
    assert_eq!(codes, [(Code::P015, "a event"), (Code::P015, "c event")]);
}

#[test]
fn p015_without_a_reference_the_most_decide() {
    let mut plan = plan();
    plan.reference = None;
    let wrong = in_plan(&plan, "a event", line(|l| l.checksum = "bad".to_owned()));
    let finding = only(Code::P015, Severity::Invalid, &wrong);
    assert_eq!(finding.cell, "a event");
    assert!(finding.evidence.iter().any(|e| e.what == "of b, c"));
}

#[test]
fn p015_another_number_of_threads_is_other_work() {
    let two = line(|l| {
        (l.threads, l.checksum) = (2, "other".to_owned());
    });
    let seen = found("a event", two);
    assert!(seen.iter().all(|f| f.code != Code::P015), "{seen:#?}");
}

/// Findings where each work of `a` has this peak from a block on.
pub fn marked(bytes: u64, from: u32) -> Vec<Finding> {
    let plan = plan();
    let mut trials: Vec<Trial> = (0..3)
        .flat_map(|block| plan.cells.iter().map(move |c| good(&c.id, block)))
        .collect();
    for trial in trials.iter_mut().filter(|t| t.cell.starts_with("a ")) {
        if trial.block >= from {
            trial.program.as_mut().expect("a program").peak_bytes = bytes;
        }
    }
    findings(&Records::new(&plan, &trials))
}

#[test]
fn p016_one_peak_for_different_work() {
    let seen = marked(272_166_912, 0);
    let cells: Vec<(Code, Severity, &str)> = seen
        .iter()
        .map(|f| (f.code, f.severity, &*f.cell))
        .collect();
    assert_eq!(
        cells,
        [
            (Code::P016, Severity::Note, "a event"),
            (Code::P016, Severity::Note, "a start"),
        ]
    );
    // Small peaks are the program itself, and one block that differs shows that they are its own.
    none(&marked((16 << 20) - 4096, 0));
    none(&marked(272_166_912, 1));
}

/// Findings where so many of 20,000 runs missed their deadline.
pub fn missed(count: u64) -> Vec<Finding> {
    found(
        "a event",
        line(move |l| {
            let list = (0..count).map(|run| Missed {
                run: 1000 + run,
                ns: 3 * MS,
            });
            l.durations = Some(Durations {
                count: 20_000,
                max_ns: 3 * MS,
                deadline_ns: 2 * MS,
                missed: list.collect(),
                missed_count: count,
                ..Durations::default()
            });
        }),
    )
}

#[test]
fn p017_every_missed_deadline_is_for_information() {
    none(&missed(0));
    let finding = only(Code::P017, Severity::Note, &missed(9));
    // Four figures, and five runs by name.
    assert_eq!(finding.evidence.len(), 9);
    evidence(&finding, "run 1004");
}
