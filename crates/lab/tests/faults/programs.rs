//! Programs that are run to their end, and what goes wrong with them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prony_lab::launch::{Resolved, Wanted};
use prony_lab::supervise::{Order, ProgramOrder, Ran, Report, Supervisor};
use prony_record::{
    Cell, Exit, Outcome, Phase, Plan, PlannedProgram, PlannedSetting, PlannedSubject,
    PlannedWorkload, ProgramReport, SCHEMA, Source, StopRule, Trial,
};

use crate::fixture::{Fixture, Isolation, cores, wait_line};

/// What a right program prints when it was asked for ten things.
const LINE: &str = r#"{"measure":"things","threads":1,"count":10,"elapsed_ns":5,"checksum":"55"}"#;
const MIB: u64 = 1 << 20;

/// A test by its name.
pub type Named = (&'static str, fn(Isolation));

/// The tests of this module.
pub const TESTS: [Named; 10] = [
    (
        "a_program_is_measured_to_its_end",
        a_program_is_measured_to_its_end,
    ),
    (
        "faults_of_programs_are_recorded",
        faults_of_programs_are_recorded,
    ),
    (
        "what_a_program_leaves_behind_is_killed_and_named",
        what_a_program_leaves_behind_is_killed_and_named,
    ),
    (
        "a_program_that_keeps_failing_is_left_out",
        a_program_that_keeps_failing_is_left_out,
    ),
    (
        "an_interrupted_program_is_run_again",
        an_interrupted_program_is_run_again,
    ),
    (
        "nothing_of_a_program_outlives_a_killed_run",
        nothing_of_a_program_outlives_a_killed_run,
    ),
    (
        "threads_builds_and_environment_of_a_value_reach_the_program",
        threads_builds_and_environment_of_a_value_reach_the_program,
    ),
    ("memory_is_the_programs_own", memory_is_the_programs_own),
    (
        "the_loss_of_any_process_above_a_program_is_recorded",
        the_loss_of_any_process_above_a_program_is_recorded,
    ),
    (
        "a_kernel_setting_is_put_back_whatever_happens",
        a_kernel_setting_is_put_back_whatever_happens,
    ),
];

const REASONS: [&str; 10] = [
    "endless: Measure: it had not ended after 3.00s; its last line: begun",
    "stubborn: Measure: it had not ended after 3.00s; it printed nothing",
    "crash: Measure: it was ended by signal 11; it printed nothing",
    "garbage: Verify: line 1 of its output, `{\"measure\":7`: EOF while parsing an object, at column 12",
    "silent: Verify: it printed no measurement: a line of JSON with `measure`",
    "other: Verify: line 1 of its output, `{\"measure\":\"things\",\"threads\":1,\"count\":…`: \
     it counts 20 things, and 10 on each of 1 threads were asked for",
    "exits: Measure: it exited with status 3; its last line: no such work",
    "absent: Start: `/nowhere/to/be/found` cannot be started: No such file or directory (os error 2)",
    "floods: Measure: it printed more than 16 MiB",
    "preloads: Verify: what the experiment preloads was left out: ERROR: ld.so: object \
     '/nowhere/libmissing.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.",
];

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub fn program(name: &str, command: &[&str]) -> PlannedSubject {
    PlannedSubject {
        id: name.to_owned(),
        source: Source::Command {
            dir: "/".to_owned(),
        },
        program: words(command),
        program_threads: 1,
        stop: StopRule {
            signal: "TERM".to_owned(),
            timeout_ns: 200_000_000,
        },
        ..PlannedSubject::default()
    }
}

/// A shell script, in which `$line` is a right line.
fn script(name: &str, text: &str) -> PlannedSubject {
    let mut script = program(name, &["/bin/sh", "-c", text]);
    script
        .program_env
        .insert("line".to_owned(), LINE.to_owned());
    script
}

/// One cell a subject; each run may take `timeout_ms`.
pub fn plan(subjects: Vec<PlannedSubject>, blocks: u32, timeout_ms: u64) -> Plan {
    let cell = |subject: &PlannedSubject| Cell {
        id: format!("{} work n=10", subject.id),
        subject: subject.id.clone(),
        workload: "work".to_owned(),
        count: Some(10),
        ..Cell::default()
    };
    let cells: Vec<Cell> = subjects.iter().map(cell).collect();
    let order = (0..u32::try_from(cells.len()).expect("few cells")).collect();
    Plan {
        schema: SCHEMA,
        blocks,
        cores: cores(),
        subjects,
        workloads: vec![PlannedWorkload {
            name: "work".to_owned(),
            timeout_ns: timeout_ms * 1_000_000,
            program: Some(PlannedProgram {
                work: "counting".to_owned(),
                counts: vec![10],
                args: words(&["--injection", "constructor"]),
            }),
            ..PlannedWorkload::default()
        }],
        cells,
        order: vec![order; blocks as usize],
        ..Plan::default()
    }
}

pub fn failure(trials: &[Trial], subject: &str) -> (Phase, String) {
    let own = |trial: &&Trial| trial.cell.starts_with(&format!("{subject} "));
    let trial = trials.iter().find(own).expect(subject);
    match &trial.outcome {
        Outcome::Failed { phase, reason } => (*phase, reason.clone()),
        other => panic!("{subject} ended as {other:?}"),
    }
}

fn a_program_is_measured_to_its_end(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    // It leaves time to user mode and kernel in a child that it waits for.
    let busy = "(i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done); echo talk >&2; echo \"$line\"";
    let run = fixture.run(&plan(vec![script("busy", busy)], 2, 60_000), &[]);
    assert_eq!(run.trials.len(), 2);
    for trial in &run.trials {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        let report = trial.program.as_ref().expect("a report");
        assert_eq!((report.lines.len(), report.lines[0].count), (1, 10));
        assert_eq!(report.lines[0].checksum, "55");
        assert!(report.user_ns > 1_000_000, "{report:?}");
        assert!(report.wall_ns >= report.user_ns / 2, "{report:?}");
        assert_eq!(trial.window_ns, report.wall_ns);
        assert_eq!(trial.processes.len(), 1);
        assert_eq!(trial.processes[0].exit, Some(Exit::Code { code: 0 }));
        assert_eq!(
            trial.processes[0].command[3..],
            ["--injection", "constructor"]
        );
        assert!(trial.canary.is_some() && trial.left_behind.is_empty());
        assert_eq!(trial.log_tail, ["talk"]);
        assert_eq!(trial.isolation.process_namespace, !isolation.is_empty());
        use Phase::{Measure, Prepare, Start, Stop, Verify};
        let phases: Vec<Phase> = trial.phases.iter().map(|span| span.phase).collect();
        assert_eq!(phases, [Prepare, Start, Measure, Verify, Stop]);
    }
}

fn faults_of_programs_are_recorded(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut preloads = script("preloads", "echo \"$line\"");
    let library = "/nowhere/libmissing.so".to_owned();
    preloads
        .program_env
        .insert("LD_PRELOAD".to_owned(), library);
    let subjects = vec![
        script("endless", "echo begun; exec sleep 600"),
        script("stubborn", "trap '' TERM; while :; do sleep 600; done"),
        script("crash", "kill -SEGV $$"),
        script("garbage", "echo '{\"measure\":7'"),
        script("silent", "echo talk"),
        script(
            "other",
            "echo '{\"measure\":\"things\",\"threads\":1,\"count\":20,\"elapsed_ns\":5}'",
        ),
        script("exits", "echo \"$line\"; echo no such work >&2; exit 3"),
        program("absent", &["/nowhere/to/be/found"]),
        script("floods", "exec yes"),
        preloads,
        script("good", "echo \"$line\""),
    ];
    let run = fixture.run(&plan(subjects, 1, 3_000), &[]);
    let reason = |subject: &str| {
        let (phase, reason) = failure(&run.trials, subject);
        format!("{subject}: {phase:?}: {reason}")
    };
    let names = [
        "endless", "stubborn", "crash", "garbage", "silent", "other", "exits", "absent", "floods",
        "preloads",
    ];
    // Two isolations run this code, which an inline snapshot does not allow.
    assert_eq!(names.map(reason), REASONS);
    let good = run.trials.last().expect("the last one");
    assert_eq!(good.outcome, Outcome::Measured, "{good:#?}");
    let crash = &run.trials[2].processes[0];
    let signal = Some(Exit::Signal {
        signal: 11,
        asked: false,
    });
    assert_eq!(crash.exit, signal);
}

fn what_a_program_leaves_behind_is_killed_and_named(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let leaves = "setsid sleep 600 & setsid sleep 601 & echo \"$line\"";
    let run = fixture.run(&plan(vec![script("leaves", leaves)], 1, 20_000), &[]);
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let sleeps = |name: &&String| name.starts_with("sleep (");
    assert_eq!(
        trial.left_behind.iter().filter(sleeps).count(),
        2,
        "{trial:#?}"
    );
}

fn a_program_that_keeps_failing_is_left_out(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&plan(vec![script("fails", "exit 1")], 5, 20_000), &[]);
    assert_eq!(run.trials.len(), 2);
}

fn an_interrupted_program_is_run_again(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let ready = fixture.folder.join("ready");
    let waits = format!(
        "if [ -e {0} ]; then echo \"$line\"; else exec sleep 600; fi",
        ready.display()
    );
    let plan = plan(vec![script("waits", &waits)], 2, 60_000);
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    prony_lab::launch::signal(child.id(), rustix::process::Signal::INT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    fixture.none_left();
    let before = fixture.read();
    assert_eq!(before.trials[0].outcome, Outcome::Interrupted);
    let exit = &before.trials[0].processes[0].exit;
    let asked = matches!(exit, Some(Exit::Signal { asked: true, .. }));
    assert!(asked, "{exit:?}");
    std::fs::write(&ready, "").expect("a file");
    let run = fixture.run(&plan, &["resume"]);
    assert_eq!(run.trials.len(), 2);
    assert!(run.trials.iter().all(|t| t.outcome == Outcome::Measured));
}

fn nothing_of_a_program_outlives_a_killed_run(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let forks = "setsid sleep 600 & trap '' TERM; while :; do sleep 600; done";
    let plan = plan(vec![script("forks", forks)], 1, 60_000);
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    fixture.none_left();
}

fn threads_builds_and_environment_of_a_value_reach_the_program(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let text = "echo \"{\\\"measure\\\":\\\"things\\\",\\\"threads\\\":$1,\\\"count\\\":$(($1 * $2)),\
                \\\"elapsed_ns\\\":7,\\\"checksum\\\":\\\"$3 $4 $5 $ALLOCATOR $(nproc)\\\"}\"";
    let mut subject = program(
        "told",
        &[
            "/bin/sh",
            "-c",
            text,
            "sh",
            "{threads}",
            "{count}",
            "{work}",
            "{hardening}",
        ],
    );
    let builds = words(&["on", "off"]);
    subject
        .variants
        .insert("hardening".to_owned(), builds.clone());
    let mut plan = plan(vec![subject], 1, 20_000);
    plan.workloads[0]
        .program
        .as_mut()
        .expect("a program")
        .args
        .clear();
    let setting = |name: &str, values: &[String]| PlannedSetting {
        name: name.to_owned(),
        values: values.to_vec(),
        ..PlannedSetting::default()
    };
    let mut allocator = setting("allocator", &words(&["std", "other"]));
    allocator.args = words(&["a={value}"]);
    let only_other = BTreeMap::from([("ALLOCATOR".to_owned(), "preloaded-{value}".to_owned())]);
    allocator.env_of.insert("other".to_owned(), only_other);
    plan.settings = vec![
        setting("hardening", &builds),
        setting("threads", &words(&["1", "3"])),
        allocator,
    ];
    let first = plan.cells[0].clone();
    let chosen = [("1", "std"), ("3", "other")];
    plan.cells = chosen
        .map(|(threads, allocator)| {
            let mut cell = first.clone();
            cell.id = format!("{} threads={threads}", first.id);
            cell.settings
                .insert("threads".to_owned(), threads.to_owned());
            cell.settings
                .insert("allocator".to_owned(), allocator.to_owned());
            cell
        })
        .to_vec();
    plan.cells[1]
        .settings
        .insert("hardening".to_owned(), "off".to_owned());
    plan.order = vec![vec![0, 1]];
    let run = fixture.run(&plan, &[]);
    let said: Vec<&str> = run.trials.iter().map(checksum).collect();
    let all = if plan.cores.subject.is_empty() { 1 } else { 2 };
    assert_eq!(
        said,
        [
            "counting on a=std  1".to_owned(),
            format!("counting off a=other preloaded-other {all}")
        ]
    );
}

fn checksum(trial: &Trial) -> &str {
    let report = trial.program.as_ref();
    let lines = report.map_or(&[][..], |report| &report.lines);
    &lines
        .first()
        .unwrap_or_else(|| panic!("{trial:#?}"))
        .checksum
}

/// Starts a program as a trial does, with its parent's reports heard here.
fn started_by_a_parent(fixture: &Fixture, command: &[&str]) -> ProgramReport {
    let output = fixture.folder.join("output");
    for file in ["output", "log"] {
        std::fs::write(fixture.folder.join(file), "").expect("a file");
    }
    let order = Order::Program(ProgramOrder {
        resolved: Resolved {
            command: words(command),
            dir: "/".into(),
            ..Resolved::default()
        },
        output: output.clone(),
        log: fixture.folder.join("log"),
    });
    let own = std::env::current_exe().expect("this binary");
    let mut parent = Supervisor::start(&own, Wanted::default(), order).expect("it starts");
    let mut next = || loop {
        if let Some(report) = parent.next(Duration::from_secs(60)).expect("a report") {
            return report;
        }
    };
    assert!(matches!(next(), Report::Began { .. }));
    let Report::Ran(Ran { ended, .. }) = next() else {
        panic!("it did not end");
    };
    assert_eq!(ended.exit, Exit::Code { code: 0 });
    let mut report = ProgramReport {
        peak_bytes: ended.peak_bytes,
        ..ProgramReport::default()
    };
    let text = std::fs::read_to_string(output).expect("its output");
    // Its own mark, in KiB.
    report.wall_ns = text.trim().parse().expect("a number");
    report
}

/// The peak that the kernel kept of a program is the program's own, however large the
/// process is that asked for it.
fn memory_is_the_programs_own(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let own = std::env::current_exe().expect("this binary");
    let own = own.display().to_string();
    let marks = "while read -r name value unit; do case $name in VmHWM:) echo $value;; esac; \
                 done < /proc/self/status";
    let commands: [&[&str]; 3] = [
        &["/bin/sh", "-c", marks],
        &[&own, "__allocate", "0"],
        &[&own, "__allocate", "50"],
    ];
    let started = || commands.map(|command| started_by_a_parent(&fixture, command));
    let alone = started();
    let ballast = vec![1_u8; 100 << 20];
    let beside = started();
    std::hint::black_box(&ballast);
    for (alone, report) in alone.iter().zip(&beside) {
        let said = report.wall_ns * 1024;
        let off = report.peak_bytes.abs_diff(said);
        println!(
            "peak {} KiB, by its own mark {} KiB; without ballast {} KiB",
            report.peak_bytes / 1024,
            report.wall_ns,
            alone.peak_bytes / 1024
        );
        // The peak has what starts the program, too, which its own mark has not; both have it with and without ballast.
        assert!(off < 4 * MIB, "{} and {said}", report.peak_bytes);
        let by_ballast = report.peak_bytes.abs_diff(alone.peak_bytes);
        assert!(by_ballast < MIB, "{by_ballast}");
    }
    let [tiny, small, large] = &beside;
    assert!(tiny.peak_bytes < 8 * MIB, "{}", tiny.peak_bytes);
    let grown = large.peak_bytes - small.peak_bytes;
    assert!(grown.abs_diff(50 * MIB) < MIB, "{grown}");
}

/// Kills what of the run's own processes `is_victim` names, without the run itself.
fn kill(fixture: &Fixture, run: u32, is_victim: impl Fn(&str) -> bool) {
    let victims: Vec<u32> = fixture
        .left()
        .into_iter()
        .filter(|(pid, command)| *pid != run && is_victim(command))
        .map(|(pid, _)| pid)
        .collect();
    assert!(!victims.is_empty(), "{:?}", fixture.left());
    for pid in victims {
        prony_lab::launch::signal(pid, rustix::process::Signal::KILL);
    }
}

fn the_loss_of_any_process_above_a_program_is_recorded(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let plan = plan(vec![script("waits", "exec sleep 600")], 1, 60_000);
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    // Guard, supervisor and the program's parent.
    kill(&fixture, child.id(), |command| {
        command.contains("__supervise")
    });
    assert!(child.wait().expect("it ends").success());
    fixture.none_left();
    let (phase, reason) = failure(&fixture.read().trials, "waits");
    assert_eq!(phase, Phase::Measure, "{reason}");
}

/// A kernel setting of no consequence, but the whole machine's.
const SETTING: &str = "kernel.printk_ratelimit_burst";
/// Held by the test that changes it, which runs on both lanes.
static CHANGED: Mutex<()> = Mutex::new(());

fn a_kernel_setting_is_put_back_whatever_happens(isolation: Isolation) {
    if !prony_lab::sysctl::is_writable(SETTING) {
        return prony_testkit::skip_test_without(
            "a_kernel_setting_is_put_back_whatever_happens",
            "root",
            &format!("{SETTING} may not be written here"),
        );
    }
    let _alone = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = prony_lab::sysctl::read(SETTING).expect("it is there");
    let fixture = Fixture::new(isolation);
    let text = "echo \"{\\\"measure\\\":\\\"things\\\",\\\"threads\\\":1,\\\"count\\\":10,\\\"elapsed_ns\\\":7,\
                \\\"checksum\\\":\\\"$(cat /proc/sys/kernel/printk_ratelimit_burst)\\\"}\"; [ -e $stop ] || exec sleep 600";
    let mut subject = script("reads", text);
    let stop = fixture.folder.join("stop");
    subject
        .program_env
        .insert("stop".to_owned(), stop.display().to_string());
    let mut plan = plan(vec![subject], 1, 60_000);
    plan.settings = vec![PlannedSetting {
        name: "burst".to_owned(),
        values: words(&["17"]),
        sysctl: Some(SETTING.to_owned()),
        ..PlannedSetting::default()
    }];
    plan.cells[0]
        .settings
        .insert("burst".to_owned(), "17".to_owned());
    let now = || prony_lab::sysctl::read(SETTING).expect("it is there");
    // The supervisor is killed: the run puts it back.
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    assert_eq!(now(), "17");
    kill(&fixture, child.id(), |command| {
        command.contains("__supervise")
    });
    child.wait().expect("it ends");
    fixture.none_left();
    assert_eq!(now(), before);
    std::fs::remove_dir_all(fixture.dir()).expect("a run directory");
    // The run is killed: resuming puts it back at the latest, also for its own trial.
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    fixture.none_left();
    std::fs::write(&stop, "").expect("a file");
    let run = fixture.run(&plan, &["resume"]);
    assert_eq!(checksum(run.trials.last().expect("a trial")), "17");
    assert_eq!(now(), before);
}
