//! What stands around a server, and the number that it keeps: all of it right, and each
//! part of it wrong.

use prony_record::{
    Around, CounterReport, Ended, Exit, Outcome, Output, Phase, Plan, PlannedCounter,
    PlannedSubject, ProcessRecord, Role, Trial, layout,
};

use crate::fixture::{Fixture, Isolation, plan, subject};
use crate::killed;
use crate::programs::Named;

/// The tests of this module.
pub const TESTS: [Named; 17] = [
    ("services_stand_around_a_server", services_stand_around),
    ("instances_get_their_share_without_a_front", instances_alone),
    ("a_backing_that_is_not_ready_is_named", backing_not_ready),
    ("a_backing_that_dies_in_the_window_is_named", backing_dies),
    ("a_front_that_is_not_ready_is_named", front_not_ready),
    ("an_instance_that_dies_is_named", instance_dies),
    ("what_a_service_does_not_count_is_seen", uncounted),
    ("what_a_service_invents_is_seen", invented),
    ("a_number_that_cannot_be_read_fails_the_trial", unreadable),
    ("instances_that_never_agree_fail_the_trial", never_agree),
    ("what_is_kept_over_a_stop_is_all", kept_over_a_stop),
    (
        "what_is_kept_over_a_kill_is_what_was_written",
        kept_over_a_kill,
    ),
    ("what_is_not_written_is_lost_in_a_kill", lost_in_a_kill),
    (
        "instances_keep_their_number_in_a_backing",
        kept_in_a_backing,
    ),
    (
        "a_subject_prints_to_where_it_is_told_and_who_reads_a_terminal_was_charged_to_nobody",
        outputs,
    ),
    (
        "any_service_killed_at_any_moment_leaves_a_result_and_nobody_else",
        killed::any_of_services,
    ),
    ("what_holds_a_pipe_or_terminal_open_is_ended", held_open),
];

/// A subject that counts, with environment of its own.
fn counter(env: &[(&str, &str)]) -> PlannedSubject {
    let mut subject = subject("counter", env);
    subject.env.insert("INSTANCE".into(), "{instance}".into());
    subject
}

/// A service that is ready when it listens.
fn service(name: &str, env: &[(&str, &str)]) -> PlannedSubject {
    let mut service = subject(name, env);
    service.ready.sign = prony_record::ReadyKind::Port;
    service.ready.text.clear();
    service
}

fn store(env: &[(&str, &str)]) -> PlannedSubject {
    let mut store = service("store", env);
    store.env.insert("WORK".into(), "{work}".into());
    store
}

fn front(env: &[(&str, &str)]) -> PlannedSubject {
    let mut front = service("front", env);
    front.env.insert("UPSTREAMS".into(), "{upstreams}".into());
    front
}

/// The same, but it never listens.
fn silent(mut service: PlannedSubject) -> PlannedSubject {
    let script = "echo keeps silent; exec sleep 600";
    service.start = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    service.ready.timeout_ns = 1_000_000_000;
    service
}

/// What stands around the subject, and its number.
#[derive(Default)]
struct With {
    store: Option<PlannedSubject>,
    front: Option<PlannedSubject>,
    around: Around,
    counts: Option<Option<Ended>>,
}

fn instances(instances: u32) -> Around {
    Around {
        instances,
        ..Around::default()
    }
}

fn planned(mut subject: PlannedSubject, with: With) -> Plan {
    if with.store.is_some() {
        let place = "{test/store}".to_owned();
        subject.env.insert("STORE".to_owned(), place);
    }
    let mut plan = plan(vec![subject], 1, 300);
    plan.workloads[0].counter = with.counts.map(|ended_by| PlannedCounter {
        path: "/count".to_owned(),
        adds: 1,
        ended_by,
    });
    plan.cells[0].around = Around {
        backings: with.store.iter().map(|store| store.id.clone()).collect(),
        front: with.front.as_ref().map(|front| front.id.clone()),
        ..with.around
    };
    plan.backings.extend(with.store);
    plan.fronts.extend(with.front);
    plan
}

/// The one trial of a plan; nobody is left behind.
fn trial(isolation: Isolation, plan: &Plan) -> Trial {
    let stored = Fixture::new(isolation).run(plan, &[]);
    let [trial] = stored.trials.as_slice() else {
        panic!("not one trial: {:#?}", stored.trials);
    };
    trial.clone()
}

fn measured(isolation: Isolation, plan: &Plan) -> Trial {
    let trial = trial(isolation, plan);
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    trial
}

fn failed(isolation: Isolation, plan: &Plan) -> (Phase, String, Trial) {
    let trial = trial(isolation, plan);
    match trial.outcome.clone() {
        Outcome::Failed { phase, reason } => (phase, reason, trial),
        other => panic!("{other:?}: {trial:#?}"),
    }
}

fn report(trial: &Trial) -> CounterReport {
    trial.counter.clone().expect("a counter")
}

/// Processes of a role whose command names this server.
fn running<'a>(trial: &'a Trial, role: Role, server: &str) -> Vec<&'a ProcessRecord> {
    let named = |process: &&ProcessRecord| {
        let path = format!("/{server}/server.py");
        process.role == role && process.command.iter().any(|word| word.ends_with(&path))
    };
    trial.processes.iter().filter(named).collect()
}

/// A trial with one of everything, in which the subject is stopped and started anew.
pub fn whole() -> Plan {
    let with = With {
        store: Some(store(&[])),
        front: Some(front(&[])),
        around: instances(2),
        counts: Some(Some(Ended::Stopped)),
    };
    planned(counter(&[]), with)
}

fn services_stand_around(isolation: Isolation) {
    let with = With {
        store: Some(store(&[])),
        front: Some(front(&[])),
        around: Around {
            generators: 2,
            ..instances(2)
        },
        counts: Some(None),
    };
    let trial = measured(isolation, &planned(counter(&[]), with));
    let load = trial.load.as_ref().expect("a load report");
    assert!(load.errors.is_empty() && load.completed > 0, "{load:#?}");
    assert_eq!(load.threads, 2);
    for (role, server, count) in [
        (Role::Backing, "store", 1),
        (Role::Front, "front", 1),
        (Role::Subject, "counter", 2),
    ] {
        let found = running(&trial, role, server);
        assert_eq!(found.len(), count, "{role:?}: {:#?}", trial.processes);
        for process in found {
            assert!(process.cpu_ns > 0, "{process:#?}");
            assert_eq!(process.exit, Some(Exit::Code { code: 0 }), "{process:#?}");
        }
    }
    let counter = report(&trial);
    assert_eq!(counter.acknowledged, load.counts.acknowledged);
    assert_eq!(counter.after, Some(counter.before + counter.acknowledged));
    assert_eq!(
        (counter.uncounted(), counter.invented(), counter.kept),
        (Some(0), 0, None)
    );
    // The checks were counted before.
    assert!(counter.before > 0 && trial.left_behind.is_empty());
    let phases: Vec<Phase> = trial.phases.iter().map(|span| span.phase).collect();
    use Phase::{Drain, Measure, Prepare, Ready, Start, Stop, Verify, WarmUp};
    assert_eq!(
        phases,
        [Prepare, Start, Ready, Verify, WarmUp, Measure, Drain, Stop]
    );
}

fn instances_alone(isolation: Isolation) {
    let with = With {
        around: instances(2),
        counts: Some(None),
        ..With::default()
    };
    let trial = measured(isolation, &planned(counter(&[]), with));
    let both = running(&trial, Role::Subject, "counter");
    assert_eq!(both.len(), 2, "{:#?}", trial.processes);
    assert!(
        both.iter().all(|process| process.cpu_ns > 1_000_000),
        "{both:#?}"
    );
    // Each counts for itself; together that is all.
    let counter = report(&trial);
    assert_eq!(counter.after, Some(counter.before + counter.acknowledged));
}

fn backing_not_ready(isolation: Isolation) {
    let with = With {
        store: Some(silent(store(&[]))),
        ..With::default()
    };
    let (phase, reason, trial) = failed(isolation, &planned(counter(&[]), with));
    assert_eq!(phase, Phase::Start);
    assert!(
        reason.starts_with("the backing test/store was not ready after"),
        "{reason}"
    );
    assert!(reason.ends_with("its last line: keeps silent"), "{reason}");
    assert!(
        running(&trial, Role::Subject, "counter").is_empty(),
        "{trial:#?}"
    );
}

fn backing_dies(isolation: Isolation) {
    let with = With {
        // The instances tell it ten times a second; it dies well after the load began.
        store: Some(store(&[("DIES_AFTER", "20")])),
        ..With::default()
    };
    let mut plan = planned(counter(&[]), with);
    plan.duration_ns = 3_000_000_000;
    let (phase, reason, trial) = failed(isolation, &plan);
    assert!(phase >= Phase::Verify, "{phase:?}: {reason}");
    assert!(
        reason.starts_with("the backing test/store was ended by signal 9"),
        "{reason}"
    );
    assert!(trial.left_behind.is_empty(), "{trial:#?}");
}

fn front_not_ready(isolation: Isolation) {
    let with = With {
        front: Some(silent(front(&[]))),
        ..With::default()
    };
    let (phase, reason, _) = failed(isolation, &planned(counter(&[]), with));
    assert_eq!(phase, Phase::Ready);
    assert!(
        reason.starts_with("the front test/front was not ready after"),
        "{reason}"
    );
}

fn instance_dies(isolation: Isolation) {
    let with = With {
        around: instances(2),
        ..With::default()
    };
    let subject = counter(&[("DIES_AFTER", "60"), ("DIES", "1")]);
    let (phase, reason, trial) = failed(isolation, &planned(subject, with));
    assert!(phase >= Phase::Verify, "{phase:?}: {reason}");
    assert!(
        reason.starts_with("the subject's instance 1 was ended by signal 9"),
        "{reason}"
    );
    let other = running(&trial, Role::Subject, "counter");
    let asked = |process: &&&ProcessRecord| process.exit == Some(Exit::Code { code: 0 });
    assert_eq!(other.iter().filter(asked).count(), 1, "{other:#?}");
}

fn counting(env: &[(&str, &str)], ended_by: Option<Ended>) -> Plan {
    let with = With {
        counts: Some(ended_by),
        ..With::default()
    };
    planned(counter(env), with)
}

fn uncounted(isolation: Isolation) {
    let counter = report(&measured(isolation, &counting(&[("LOSES", "10")], None)));
    let (missing, sent) = (counter.uncounted().expect("asked"), counter.acknowledged);
    assert!(missing.abs_diff(sent / 10) <= 1, "{counter:?}");
    assert_eq!(counter.invented(), 0);
}

fn invented(isolation: Isolation) {
    let counter = report(&measured(isolation, &counting(&[("INVENTS", "10")], None)));
    assert!(
        counter.invented().abs_diff(counter.acknowledged / 10) <= 1,
        "{counter:?}"
    );
    assert_eq!(counter.uncounted(), Some(0));
}

fn unreadable(isolation: Isolation) {
    let mut plan = counting(&[], None);
    if let Some(counter) = &mut plan.workloads[0].counter {
        counter.path = "/nowhere".to_owned();
    }
    let (phase, reason, _) = failed(isolation, &plan);
    assert_eq!(phase, Phase::Verify);
    assert!(
        reason.ends_with("status 404 and begins `not found`"),
        "{reason}"
    );
}

/// Two instances, only one of which knows the store.
fn never_agree(isolation: Isolation) {
    let with = With {
        store: Some(store(&[])),
        around: instances(2),
        counts: Some(None),
        ..With::default()
    };
    let mut plan = planned(counter(&[]), with);
    let script = "[ $INSTANCE = 0 ] || unset STORE; exec \"$@\"";
    let words = ["/bin/sh", "-c", script, "sh"].map(str::to_owned);
    plan.subjects[0].start.splice(0..0, words);
    let (phase, reason, _) = failed(isolation, &plan);
    // Before the load they may agree: the checks ask both for as much.
    assert!(
        phase == Phase::Verify || phase == Phase::Drain,
        "{phase:?}: {reason}"
    );
    assert!(
        reason.contains("the instances do not agree on it: "),
        "{reason}"
    );
}

fn kept_over_a_stop(isolation: Isolation) {
    let trial = measured(
        isolation,
        &counting(&[("KEEP", "{work}/n")], Some(Ended::Stopped)),
    );
    let counter = report(&trial);
    assert_eq!(counter.kept, counter.after);
    assert_eq!(
        (counter.lost(), counter.uncounted(), counter.invented()),
        (Some(0), Some(0), 0)
    );
    // Only the one that was measured is in the record.
    let ran = running(&trial, Role::Subject, "counter");
    assert_eq!(ran.len(), 1, "{ran:#?}");
    assert_eq!(ran[0].exit, Some(Exit::Code { code: 0 }));
}

fn kept_over_a_kill(isolation: Isolation) {
    let env = [("KEEP", "{work}/n"), ("KEEP_EACH", "1")];
    let trial = measured(isolation, &counting(&env, Some(Ended::Killed)));
    let counter = report(&trial);
    assert_eq!(
        (counter.after, counter.lost(), counter.invented()),
        (None, Some(0), 0)
    );
    assert!(counter.kept > Some(counter.before), "{counter:?}");
    let ran = running(&trial, Role::Subject, "counter");
    let (signal, asked) = (9, true);
    assert_eq!(ran[0].exit, Some(Exit::Signal { signal, asked }));
    let load = trial.load.expect("a load report");
    assert!(
        load.errors.is_empty(),
        "nothing broke in the window: {load:#?}"
    );
}

fn lost_in_a_kill(isolation: Isolation) {
    let plan = counting(&[("KEEP", "{work}/n")], Some(Ended::Killed));
    let counter = report(&measured(isolation, &plan));
    assert_eq!(counter.kept, Some(0));
    assert_eq!(counter.lost(), Some(counter.acknowledged));
}

fn kept_in_a_backing(isolation: Isolation) {
    for ended_by in [Ended::Stopped, Ended::Killed] {
        let with = With {
            store: Some(store(&[])),
            front: Some(front(&[])),
            around: instances(2),
            counts: Some(Some(ended_by)),
        };
        let trial = measured(isolation, &planned(counter(&[]), with));
        let counter = report(&trial);
        let kept = counter.kept.expect("they were asked");
        assert!(
            kept > 0 && counter.invented() == 0,
            "{ended_by:?}: {counter:?}"
        );
        if ended_by == Ended::Stopped {
            assert_eq!(counter.lost(), Some(0), "{counter:?}");
        }
        // It lived through all of it.
        let store = running(&trial, Role::Backing, "store");
        assert_eq!(store[0].exit, Some(Exit::Code { code: 0 }));
    }
}

fn printing(output: Output, env: &[(&str, &str)]) -> Plan {
    let with = With {
        around: Around {
            output,
            ..Around::default()
        },
        ..With::default()
    };
    planned(counter(env), with)
}

fn outputs(isolation: Isolation) {
    for output in [Output::File, Output::Pipe, Output::Terminal, Output::Null] {
        let fixture = Fixture::new(isolation);
        let stored = fixture.run(&printing(output, &[("LINES", "1")]), &[]);
        let trial = &stored.trials[0];
        assert_eq!(trial.outcome, Outcome::Measured, "{output:?}: {trial:#?}");
        let logs = std::fs::read_dir(fixture.dir().join(layout::LOGS)).expect("logs");
        // The generator says in its own where it runs.
        let is_subjects = |log: &std::fs::DirEntry| {
            !log.file_name()
                .to_string_lossy()
                .ends_with(".generator.log")
        };
        let texts = logs
            .flatten()
            .filter(is_subjects)
            .map(|log| std::fs::read_to_string(log.path()).expect("text"));
        let text: String = texts.collect();
        let first = text.lines().next().unwrap_or("").to_owned();
        let terminal = output == Output::Terminal;
        match output {
            Output::Null => assert_eq!((text.as_str(), trial.log_tail.len()), ("", 0)),
            _ => {
                assert_eq!(first == "terminal", terminal, "{output:?}: {first}");
                let last = trial.log_tail.last().map(String::as_str);
                assert_eq!(last, Some("ended"), "{output:?}: {trial:#?}");
                let load = trial.load.as_ref().expect("a load report");
                let lines = text
                    .lines()
                    .filter(|line| line.starts_with("ping "))
                    .count();
                assert!(lines as u64 > load.counts.sent, "{output:?}: {lines}");
            }
        }
        // Who reads a terminal was a thread of Prony's on the generator's cores, charged to nobody.
        // `cat` is told of a terminal's end by an error.
        let end = match output {
            Output::File | Output::Null => None,
            Output::Pipe => Some(0),
            Output::Terminal => Some(1),
        };
        let processes = trial.processes.iter();
        let readers: Vec<&ProcessRecord> = processes.filter(|p| p.name == "cat").collect();
        assert_eq!(readers.len(), usize::from(end.is_some()), "{output:?}");
        for reader in readers {
            let exit = end.map(|code| Exit::Code { code });
            assert_eq!((reader.role, &reader.exit), (Role::Subject, &exit));
            assert!(reader.cpu_ns > 0, "{reader:#?}");
        }
    }
}

fn held_open(isolation: Isolation) {
    for output in [Output::Pipe, Output::Terminal] {
        let trial = measured(isolation, &printing(output, &[("LEAVES", "1")]));
        let named = trial
            .left_behind
            .iter()
            .any(|name| name.starts_with("sleep ("));
        assert!(named, "{output:?}: {:?}", trial.left_behind);
    }
}
