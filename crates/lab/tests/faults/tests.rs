//! The tests themselves.

use std::collections::HashSet;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Trial as Test};
use prony_base::{Nanos, Random};
use prony_lab::build::{CommandSpec, Finished, Launcher};
use prony_lab::launch::{Resolved, Wanted};
use prony_lab::store::Stored;
use prony_lab::supervise::SupervisedLauncher;
use prony_record::{
    Arrival, CheckResult, Exit, GeneratorKind, Outcome, Phase, ProcessRecord, Role, Trial,
};

use crate::fixture::{
    FALLBACK, Fixture, Isolation, Missing, NAMESPACES, good, plan, subject, trials_of, wait_line,
};
use crate::{clients, killed, networks, profiles, programs, roots, services, visits};

/// Runs the tests that this machine can run.
pub fn all() -> ExitCode {
    let mut tests = vec![];
    for (kind, isolation) in [("namespaces", NAMESPACES), ("fallback", FALLBACK)] {
        let missing = missing(isolation);
        let mut add = |name: &str, test: fn(Isolation)| {
            let name = format!("{kind}::{name}");
            tests.push(unless(missing.clone(), &name, move || test(isolation)));
        };
        add(
            "a_good_subject_is_measured_whole",
            a_good_subject_is_measured_whole,
        );
        add(
            "the_first_request_and_one_after_a_rest_are_timed",
            the_first_request_and_one_after_a_rest_are_timed,
        );
        add(
            "a_load_of_so_many_requests_ends_with_the_last",
            a_load_of_so_many_requests_ends_with_the_last,
        );
        add(
            "faults_are_recorded_and_the_run_goes_on",
            faults_are_recorded_and_the_run_goes_on,
        );
        add(
            "death_in_the_window_is_recorded_with_what_was_measured",
            death_in_the_window_is_recorded_with_what_was_measured,
        );
        add(
            "a_full_accept_queue_is_counted_by_the_kernel",
            a_full_accept_queue_is_counted_by_the_kernel,
        );
        add(
            "a_server_that_already_runs_is_measured",
            a_server_that_already_runs_is_measured,
        );
        add(
            "commands_end_with_all_that_they_start",
            commands_end_with_all_that_they_start,
        );
        add(
            "what_a_subject_leaves_behind_is_killed_and_named",
            what_a_subject_leaves_behind_is_killed_and_named,
        );
        add(
            "an_interrupted_trial_is_done_again",
            an_interrupted_trial_is_done_again,
        );
        add(
            "an_interrupt_is_heeded_while_a_subject_does_not_become_ready",
            an_interrupt_is_heeded_before_readiness,
        );
        add(
            "killed_at_any_moment_nothing_is_left_and_nothing_finished_is_lost",
            killed_at_any_moment,
        );
        add(
            "any_process_killed_at_any_moment_leaves_a_result_and_nobody_else",
            killed::any_process,
        );
        add(
            "the_sampler_keeps_to_the_labs_core_and_the_generator_to_its_own",
            the_sampler_keeps_to_the_labs_core_and_the_generator_to_its_own,
        );
        add("cpu_of_every_process_is_seen", cpu_of_every_process_is_seen);
        let others = programs::TESTS
            .into_iter()
            .chain(clients::TESTS)
            .chain(profiles::TESTS);
        for (name, test) in others.chain(services::TESTS).chain(visits::TESTS) {
            add(name, test);
        }
    }
    add_networks(&mut tests);
    for (name, isolation, test) in roots::TESTS {
        tests.push(unless(missing(isolation), name, test));
    }
    add_profiles(&mut tests);
    tests.push(unless(
        missing_command("wrk"),
        "wrk_checks_the_reference",
        wrk_checks_the_reference,
    ));
    tests.push(unless(
        missing_user(),
        "an_ordinary_user_can_measure",
        an_ordinary_user_can_measure,
    ));
    tests.push(unless(
        None,
        "what_a_machine_lacks_took_tests_away_without_a_word",
        what_a_machine_lacks_took_tests_away_without_a_word,
    ));
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(LANES.len());
    libtest_mimic::run(&arguments, side_by_side(tests)).exit_code()
}

/// What a test holds while it runs: without namespaces, or with them and the rest. Trials share the two cores that they are
/// pinned to, so that of each kind there is one at a time.
static LANES: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];

fn is_fallback(name: &str) -> bool {
    name.starts_with("fallback::")
}

/// The tests of both lanes in turns, so that neither waits for the end of the other.
fn side_by_side(tests: Vec<Test>) -> Vec<Test> {
    let (fallback, others): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|test| is_fallback(test.name()));
    let mut others = others.into_iter();
    let mut ordered = Vec::new();
    for test in fallback {
        ordered.extend(others.next());
        ordered.push(test);
    }
    ordered.extend(others);
    ordered
}

/// Networks need more than namespaces: iproute2 and the kernel's tbf.
fn add_networks(tests: &mut Vec<Test>) {
    let without = missing(NAMESPACES).or_else(networks::missing);
    for (name, test) in networks::TESTS {
        let name = format!("namespaces::{name}");
        tests.push(unless(without.clone(), &name, move || test(NAMESPACES)));
    }
    let name = "an_ordinary_user_has_networks_too";
    let without = without.or_else(missing_user);
    tests.push(unless(without, name, || {
        networks::an_ordinary_user_has_networks_too(&stage_of_user());
    }));
    let name = "fallback::a_network_without_namespaces_is_refused";
    tests.push(unless(missing(FALLBACK), name, || {
        networks::a_network_without_namespaces_is_refused(FALLBACK);
    }));
}

/// Of profiles, those that need strace, and an ordinary user's.
fn add_profiles(tests: &mut Vec<Test>) {
    let strace = missing_command("strace");
    for (kind, isolation) in [("namespaces", NAMESPACES), ("fallback", FALLBACK)] {
        let without = missing(isolation).or_else(|| strace.clone());
        let name = format!("{kind}::where_perf_is_refused_strace_counts");
        tests.push(unless(without, &name, move || {
            profiles::where_perf_is_refused_strace_counts(isolation);
        }));
    }
    let name = "an_ordinary_user_can_profile";
    tests.push(unless(missing_user(), name, || {
        profiles::an_ordinary_user_can_profile(&stage_of_user());
    }));
}

/// A test that is skipped where something is missing, once its turn comes: one that was not
/// asked for is not named.
fn unless(missing: Option<Missing>, name: &str, test: impl FnOnce() + Send + 'static) -> Test {
    let own = name.to_owned();
    Test::ignorable_test(name, move || match missing {
        Some((what, why)) => {
            prony_testkit::skip_test_without(&own, what, &why);
            Ok(Completion::ignored_with(why))
        }
        None => {
            let lane = &LANES[usize::from(is_fallback(&own))];
            let _alone = lane.lock().unwrap_or_else(PoisonError::into_inner);
            test();
            Ok(Completion::Completed)
        }
    })
}

/// This program again, on a machine without a single command.
fn what_a_machine_lacks_took_tests_away_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("list");
    let lacking = [
        "namespaces::a_good_subject_is_measured_whole",
        "fallback::a_good_subject_is_measured_whole",
        "namespaces::a_network_limits_what_passes_and_is_told",
        "wrk_checks_the_reference",
    ];
    let without_commands = |name: &str, nothing: &str| {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", name]);
        command.env("PATH", "/nowhere").env("PRONY_SKIPPED", &list);
        let output = command.env("PRONY_SKIP_NOTHING", nothing).output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said)
    };
    for name in lacking {
        let (passed, said) = without_commands(name, "0");
        assert!(passed && said.contains(" 1 ignored;"), "{name}: {said}");
        let listed = std::fs::read_to_string(&list).expect("what was skipped");
        let last = listed.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("{name}: ")), "{listed}");
        let (passed, said) = without_commands(name, "1");
        assert!(!passed && said.contains(" 1 failed;"), "{name}: {said}");
    }
}

fn works(command: &[&str]) -> bool {
    let (program, arguments) = command.split_first().expect("a command");
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn missing_command(name: &'static str) -> Option<Missing> {
    prony_testkit::find(name)
        .is_none()
        .then(|| (name, format!("{name} is not on PATH")))
}

/// What all of these tests need.
fn missing(isolation: Isolation) -> Option<Missing> {
    if !works(&["python3", "--version"]) {
        return Some(("python3", "python3 is not on PATH".to_owned()));
    }
    if !isolation.is_empty() {
        let own = std::env::current_exe().expect("this binary");
        let offer = prony_lab::supervise::offer(&own).expect("the least always works");
        if !(offer.wanted.processes && offer.wanted.network) {
            let why = format!("no namespaces here: {}", offer.refused[0]);
            return Some(("namespaces", why));
        }
    }
    None
}

fn only<'a>(run: &'a Stored, name: &str) -> &'a Trial {
    let trials = trials_of(run, name);
    assert_eq!(trials.len(), 1, "{name}: {trials:#?}");
    trials[0]
}

fn check<'a>(trial: &'a Trial, name: &str) -> &'a CheckResult {
    let found = trial.verification.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("no check {name} in {:?}", trial.verification))
}

fn failure(trial: &Trial) -> (Phase, &str) {
    match &trial.outcome {
        Outcome::Failed { phase, reason } => (*phase, reason),
        other => panic!("{} ended as {other:?}", trial.cell),
    }
}

fn process(trial: &Trial, role: Role) -> &ProcessRecord {
    let found = trial
        .processes
        .iter()
        .filter(|process| process.role == role);
    found
        .max_by_key(|process| process.cpu_ns)
        .unwrap_or_else(|| panic!("no {role:?}: {trial:#?}"))
}

fn a_good_subject_is_measured_whole(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&plan(vec![good()], 1, 700), &[]);
    let trial = only(&run, "slow-start");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let load = trial.load.as_ref().expect("a load report");
    assert!(load.completed > 0 && load.errors.is_empty(), "{load:#?}");
    let histogram = run.histogram(trial).expect("readable").expect("recorded");
    let latency = load.latency_ns;
    assert_eq!(histogram.total(), latency.count - latency.infinite);
    for name in [
        "status",
        "content-type",
        "echo",
        "reused",
        "keep-alive",
        "pipelining",
        "split",
    ] {
        assert!(check(trial, name).passed, "{:?}", check(trial, name));
    }
    let subject = process(trial, Role::Subject);
    let generator = process(trial, Role::Generator);
    for process in [subject, generator] {
        assert!(
            process.cpu_ns > 1_000_000 && process.cpu_ns < 2 * trial.sampled_ns,
            "{process:#?}"
        );
        assert!(
            !process.threads.is_empty() && process.memory.end_bytes > 0,
            "{process:#?}"
        );
        assert!(
            process.memory.peak_bytes >= Some(process.memory.end_bytes),
            "{process:#?}"
        );
        assert!(
            process.memory.virtual_peak_bytes >= process.memory.peak_bytes,
            "{process:#?}"
        );
    }
    assert!(
        subject
            .command
            .iter()
            .any(|word| word.ends_with("server.py")),
        "{subject:#?}"
    );
    assert!(subject.memory.startup_peak_bytes > 0);
    assert_eq!(generator.exit, Some(Exit::Code { code: 0 }));
    assert!(
        subject.exit.is_some() && trial.left_behind.is_empty(),
        "{trial:#?}"
    );
    assert!(trial.sampled_ns > 0 && trial.window_ns > 0);
    assert!(trial.sampler_cpu_ns.is_some_and(|ns| ns > 0));
    let starting = trial.phases.iter();
    let starting = starting.filter(|span| [Phase::Start, Phase::Ready].contains(&span.phase));
    let starting: u64 = starting.map(|span| span.length_ns).sum();
    assert!(trial.ready_ns.is_some_and(|ns| ns > 0 && ns <= starting));
    assert!(trial.first_answer_ns.is_some_and(|ns| ns > 0) && trial.after_rest_ns.is_none());
    assert_eq!(
        trial.isolation.process_namespace,
        isolation.contains(&"processes")
    );
    assert_eq!(trial.kernel.own_namespace, isolation.contains(&"network"));
    assert!(
        trial.kernel.rise("TcpPassiveOpens") >= 4,
        "{:?}",
        trial.kernel
    );
    assert!(trial.canary.is_some() && !trial.cores.is_empty());
    let phases: Vec<Phase> = trial.phases.iter().map(|span| span.phase).collect();
    use Phase::{Drain, Measure, Prepare, Ready, Start, Stop, Verify, WarmUp};
    assert_eq!(
        phases,
        [Prepare, Start, Ready, Verify, WarmUp, Measure, Drain, Stop]
    );
}

/// On a machine with two cores the lab's is the subject's, which only a test asks for.
fn the_sampler_keeps_to_the_labs_core_and_the_generator_to_its_own(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut plan = plan(vec![good()], 1, 200);
    if plan.cores.subject.is_empty() {
        prony_testkit::skip("a machine with two cores");
        return;
    }
    plan.cores.lab = plan.cores.subject.clone();
    let run = fixture.run(&plan, &[]);
    let trial = only(&run, "slow-start");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let logs = std::fs::read_dir(fixture.dir().join("logs")).expect("its logs");
    let mut logs = logs.map(|entry| entry.expect("a log").path());
    let is_generators =
        |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".generator.log");
    let log = logs.find(is_generators).expect("the generator's log");
    let said = std::fs::read_to_string(log).expect("what it said");
    assert_eq!(said.lines().next(), Some("generator on 1, sampler on 0"));
}

fn the_first_request_and_one_after_a_rest_are_timed(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut plan = plan(vec![subject("warms-up", &[])], 1, 300);
    plan.workloads[0].rest_ns = 300_000_000;
    let run = fixture.run(&plan, &[]);
    let trial = only(&run, "warms-up");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let (first, rested) = (trial.first_answer_ns, trial.after_rest_ns);
    assert!(first.is_some_and(|ns| ns >= 40_000_000), "{first:?}");
    assert!(rested.is_some_and(|ns| ns >= 80_000_000), "{rested:?}");
    let checking = trial.phases.iter().find(|span| span.phase == Phase::Verify);
    let checking = checking.expect("it was checked").length_ns;
    assert!(
        checking >= 300_000_000 + first.unwrap_or(0) + rested.unwrap_or(0),
        "{checking}"
    );
}

/// Its window of ten minutes is over with the last request, and nothing is sampled for longer.
fn a_load_of_so_many_requests_ends_with_the_last(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut plan = plan(vec![good()], 1, 600_000);
    plan.workloads[0].requests_max = Some(37);
    plan.warmup_ns = 600_000_000_000;
    let run = fixture.run(&plan, &[]);
    let trial = only(&run, "slow-start");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let load = trial.load.as_ref().expect("its load");
    assert_eq!((load.completed, load.counts.warmup_completed), (37, 0));
    assert_eq!(
        (trial.window_ns, load.requests_max),
        (load.window_ns, Some(37))
    );
    let sampled = load.window_ns..60_000_000_000;
    assert!(sampled.contains(&trial.sampled_ns), "{trial:#?}");
    assert!(process(trial, Role::Subject).cpu_ns > 0);
}

fn faults_are_recorded_and_the_run_goes_on(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut never = subject("never-ready", &[]);
    never.ready.timeout_ns = 1_500_000_000;
    let mut absent = subject("absent", &[]);
    absent.start = vec!["/nowhere/to/be/found".to_owned()];
    absent.source = prony_record::Source::Unknown;
    let mut exits = subject("exits", &[]);
    exits.source = prony_record::Source::Unknown;
    exits.start = ["/bin/sh", "-c", "echo no such option >&2; exit 3"]
        .map(str::to_owned)
        .to_vec();
    let subjects = vec![
        subject("wrong-sequence", &[]),
        never,
        absent,
        exits,
        subject("closes", &[]),
        good(),
    ];
    let run = fixture.run(&plan(subjects, 3, 500), &[]);

    // A cell that fails before the load is tried twice, and never measured.
    assert_eq!(trials_of(&run, "wrong-sequence").len(), 2);
    let wrong = trials_of(&run, "wrong-sequence")[0];
    let (phase, reason) = failure(wrong);
    assert!(
        phase == Phase::Verify && reason.contains("`echo`"),
        "{reason}"
    );
    assert!(wrong.load.is_none() && wrong.window_ns == 0);

    let never = trials_of(&run, "never-ready")[0];
    let (phase, reason) = failure(never);
    assert!(
        phase == Phase::Ready && reason.contains("not ready after 1.50s"),
        "{reason}"
    );
    assert_eq!(never.log_tail.len(), 3, "{never:#?}");
    assert!(reason.ends_with(&never.log_tail[2]), "{reason}");

    let (phase, reason) = failure(trials_of(&run, "absent")[0]);
    assert!(
        phase == Phase::Start && reason.contains("/nowhere/to/be/found"),
        "{reason}"
    );
    let (phase, reason) = failure(trials_of(&run, "exits")[0]);
    assert_eq!(phase, Phase::Ready);
    assert_eq!(
        reason,
        "the subject exited with status 3 before it was ready; its last line: no such option"
    );

    for trial in trials_of(&run, "closes") {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        assert!(!check(trial, "keep-alive").passed);
    }
    assert_eq!(trials_of(&run, "slow-start").len(), 3);
    assert!(
        trials_of(&run, "slow-start")
            .iter()
            .all(|trial| trial.outcome == Outcome::Measured)
    );
}

fn death_in_the_window_is_recorded_with_what_was_measured(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    // A thousand pings a second, so that the thousandth is one second after the first: far from the beginning and the end
    // of the window, also where the supervisor is told late that it began, or a busy machine answers a third of them.
    let subjects = vec![subject("dies", &[("DIES_AFTER", "1000")]), good()];
    let mut plan = plan(subjects, 1, 3_000);
    plan.warmup_ns = 20_000_000;
    let rate = 1_000.0;
    plan.workloads[0].arrival = Arrival::Constant {
        rates_per_s: vec![rate],
    };
    for cell in &mut plan.cells {
        cell.rate_per_s = Some(rate);
    }
    let run = fixture.run(&plan, &[]);
    let trial = only(&run, "dies");
    let (phase, reason) = failure(trial);
    assert_eq!(phase, Phase::Measure, "{reason}");
    assert!(reason.contains("was ended by signal 9"), "{reason}");
    let load = trial
        .load
        .as_ref()
        .expect("the generator reports all the same");
    assert!(load.completed > 0 && !load.errors.is_empty(), "{load:#?}");
    let killed = Exit::Signal {
        signal: 9,
        asked: false,
    };
    let subject = process(trial, Role::Subject);
    assert_eq!(subject.exit, Some(killed), "{trial:#?}");
    assert_eq!(only(&run, "slow-start").outcome, Outcome::Measured);
}

fn what_a_subject_leaves_behind_is_killed_and_named(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&plan(vec![subject("leaks-children", &[])], 1, 300), &[]);
    let trial = only(&run, "leaks-children");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    assert_eq!(trial.left_behind.len(), 1, "{:?}", trial.left_behind);
    assert!(
        trial.left_behind[0].starts_with("sleep ("),
        "{:?}",
        trial.left_behind
    );
    let leaked = trial
        .processes
        .iter()
        .find(|process| process.name == "sleep")
        .expect("followed");
    assert_eq!(leaked.role, Role::Subject);
    let killed = Exit::Signal {
        signal: 9,
        asked: true,
    };
    assert_eq!(leaked.exit, Some(killed));
}

fn a_full_accept_queue_is_counted_by_the_kernel(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut plan = plan(vec![subject("tiny-backlog", &[])], 1, 500);
    plan.cells[0].connections = 50;
    plan.workloads[0].timeout_ns = 10_000_000_000;
    let run = fixture.run(&plan, &[]);
    let trial = only(&run, "tiny-backlog");
    assert!(
        trial.kernel.rise("TcpExtListenOverflows") > 0,
        "{:?}",
        trial.kernel
    );
}

fn a_server_that_already_runs_is_measured(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let port = prony_testkit::free_port();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/subjects");
    let mut server = Command::new("python3")
        .args(["-B", "slow-start/server.py", "--port", &port.to_string()])
        .env("PYTHONPATH", &folder)
        .env("SLOW_START_S", "0")
        .current_dir(&folder)
        .spawn()
        .expect("python3");
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            std::time::Instant::now() < deadline,
            "the server did not start"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut by_url = good();
    by_url.start.clear();
    by_url.source = prony_record::Source::Url {
        url: format!("http://localhost:{port}"),
    };
    let run = fixture.run(&plan(vec![by_url], 1, 300), &[]);
    assert!(
        server.try_wait().expect("it is ours").is_none(),
        "it was not ours to stop"
    );
    server.kill().expect("it can be killed");
    server.wait().expect("it ends");
    let trial = only(&run, "slow-start");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    assert!(
        trial
            .processes
            .iter()
            .all(|process| process.role == Role::Generator)
    );
    assert!(!trial.isolation.network_namespace && !trial.kernel.own_namespace);
}

fn wrk_checks_the_reference() {
    let fixture = Fixture::new(FALLBACK);
    let run = fixture.run(
        &plan(vec![good(), subject("closes", &[])], 2, 1_000),
        &["wrk"],
    );
    let by_wrk: Vec<&Trial> = run
        .trials
        .iter()
        .filter(|trial| trial.generator == GeneratorKind::Wrk)
        .collect();
    assert_eq!((run.trials.len(), by_wrk.len()), (5, 1));
    let trial = by_wrk[0];
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    assert_eq!(trial.cell, "test/slow-start ping c=4");
    let load = trial.load.as_ref().expect("a report");
    assert!(
        load.rate_per_s > 0.0 && load.completed > 0 && load.latency_ns.p99 > 0,
        "{load:#?}"
    );
    assert!(
        load.generator.starts_with("wrk ") && load.errors.is_empty(),
        "{load:#?}"
    );
    assert!(process(trial, Role::Subject).cpu_ns > 0 && process(trial, Role::Generator).cpu_ns > 0);
}

fn commands_end_with_all_that_they_start(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let wanted = Wanted {
        processes: isolation.contains(&"processes"),
        network: false,
    };
    let launcher = SupervisedLauncher::new(std::env::current_exe().expect("this binary"), wanted);
    let log = fixture.folder.join("log");
    let run = |script: &str, timeout: Nanos, cancel: bool| {
        let command = CommandSpec {
            resolved: Resolved {
                command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
                dir: fixture.folder.clone(),
                env: [fixture.mark()].into(),
                ..Resolved::default()
            },
            rooted: None,
            log: log.clone(),
            timeout_ns: timeout.0,
        };
        let finished = launcher.run(&command, &AtomicBool::new(cancel));
        fixture.none_left();
        finished
    };
    let minute = Nanos::from_secs(60);
    assert_eq!(run("pwd; exit 3", minute, false), Ok(Finished::Code(3)));
    let printed = std::fs::read_to_string(&log).expect("a log");
    assert_eq!(printed.trim_end(), fixture.folder.display().to_string());
    assert_eq!(run("kill -KILL $$", minute, false), Ok(Finished::Signal(9)));
    assert_eq!(
        run("setsid sleep 600 & exit 0", minute, false),
        Ok(Finished::Code(0))
    );
    let briefly = Nanos::from_millis(300);
    assert_eq!(
        run("setsid sleep 600 & wait", briefly, false),
        Ok(Finished::TimedOut)
    );
    assert_eq!(run("sleep 600", minute, true), Ok(Finished::Interrupted));
}

fn cpu_of_every_process_is_seen(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&plan(vec![subject("two-threads", &[])], 1, 700), &[]);
    let trial = only(&run, "two-threads");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let busy: Vec<u64> = trial
        .processes
        .iter()
        .filter(|process| process.role == Role::Subject)
        .map(|process| process.cpu_ns)
        .filter(|&cpu| cpu > 2_000_000)
        .collect();
    assert!(busy.len() >= 2, "{:#?}", trial.processes);
}

fn an_interrupted_trial_is_done_again(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let plan = plan(vec![good()], 2, 400);
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    prony_lab::launch::signal(child.id(), rustix::process::Signal::INT);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    fixture.none_left();
    let before = fixture.read();
    assert_eq!(before.trials.len(), 1);
    assert_eq!(before.trials[0].outcome, Outcome::Interrupted);
    assert!(
        before.trials[0]
            .processes
            .iter()
            .all(|process| process.exit.is_some())
    );
    let run = fixture.run(&plan, &["resume"]);
    assert_eq!(run.trials.len(), 2);
    assert!(
        run.trials
            .iter()
            .all(|trial| trial.outcome == Outcome::Measured)
    );
}

/// The service that waits for the sign was asked to stop, and went on waiting, until the
/// whole trial was given up and nothing of it recorded.
fn an_interrupt_is_heeded_before_readiness(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut never = subject("never-ready", &[]);
    never.ready.timeout_ns = 600_000_000_000;
    let mut run = fixture.start(&plan(vec![never], 1, 100), &[]);
    wait_line(&mut run, "phase Ready");
    prony_lab::launch::signal(run.id(), rustix::process::Signal::INT);
    let status = killed::ends_in_time(&mut run, "a run that waits for readiness");
    assert_eq!(status.code(), Some(130));
    fixture.none_left();
    let trials = fixture.read().trials;
    assert_eq!(trials.len(), 1);
    assert_eq!(trials[0].outcome, Outcome::Interrupted);
    let exit = &process(&trials[0], Role::Subject).exit;
    let asked = matches!(exit, Some(Exit::Signal { asked: true, .. }));
    assert!(asked, "{exit:?}");
}

/// Kills the main process at seeded moments (`PRONY_KILLS` of them, else 8, or 50 in the long tier) of one run
/// that is resumed each time.
fn killed_at_any_moment(isolation: Isolation) {
    let kills = prony_testkit::repeats("PRONY_KILLS", 8, 50) as u32;
    let fixture = Fixture::new(isolation);
    let plan = plan(
        vec![good(), subject("leaks-children", &[])],
        kills.max(4) / 2,
        100,
    );
    let mut random = Random::of(7, "kill");
    let mut finished: HashSet<(String, u32)> = HashSet::new();
    for kill in 0..kills {
        let resume: &[&str] = if fixture.dir().join("plan.json").exists() {
            &["resume"]
        } else {
            &[]
        };
        if resume.is_empty() {
            let _ = std::fs::remove_dir_all(fixture.dir());
        }
        let mut child = fixture.start(&plan, resume);
        std::thread::sleep(Duration::from_millis(random.below(2_500)));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        fixture.none_left();
        if !fixture.dir().join("plan.json").exists() {
            continue;
        }
        let now = done(&fixture.read());
        let lost: Vec<_> = finished.difference(&now).collect();
        assert!(lost.is_empty(), "lost by kill {kill}: {lost:?}");
        finished = now;
    }
    let resume: &[&str] = if fixture.dir().join("plan.json").exists() {
        &["resume"]
    } else {
        &[]
    };
    let run = fixture.run(&plan, resume);
    assert_eq!(done(&run).len(), 2 * plan.blocks as usize);
    assert_eq!(run.trials.len(), done(&run).len());
}

fn done(run: &Stored) -> HashSet<(String, u32)> {
    let measured = |trial: &&Trial| trial.outcome == Outcome::Measured;
    run.trials
        .iter()
        .filter(measured)
        .map(|trial| (trial.cell.clone(), trial.block))
        .collect()
}

const NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// Who is no root is the ordinary user.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn missing_user() -> Option<Missing> {
    if !is_root() {
        return missing(NAMESPACES);
    }
    let can = |words: &[&str]| works(&[&NOBODY, words].concat());
    let own = std::env::current_exe().expect("this binary");
    let own = own.display().to_string();
    if !can(&["test", "-x", &own]) {
        let why = format!("an ordinary user cannot execute {own}");
        return Some(("ordinary user", why));
    }
    if !can(&["unshare", "--user", "true"]) {
        let why = "an ordinary user may make no namespaces".to_owned();
        return Some(("namespaces", why));
    }
    (!can(&["/usr/bin/python3", "--version"]))
        .then(|| ("python3", "no /usr/bin/python3".to_owned()))
}

/// A fixture on which an ordinary user runs all.
fn stage_of_user() -> Fixture {
    let mut fixture = Fixture::new(NAMESPACES);
    if !is_root() {
        return fixture;
    }
    fixture.user = NOBODY.iter().map(|&word| word.to_owned()).collect();
    // A python3 in root's home is out of reach.
    fixture
        .user
        .extend(["/usr/bin/env".to_owned(), "PATH=/usr/bin:/bin".to_owned()]);
    std::os::unix::fs::chown(&fixture.folder, Some(65534), Some(65534)).expect("root can");
    fixture
}

fn an_ordinary_user_can_measure() {
    let fixture = stage_of_user();
    let run = fixture.run(
        &plan(vec![good(), subject("leaks-children", &[])], 1, 300),
        &[],
    );
    for trial in &run.trials {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        assert!(
            process(trial, Role::Subject).memory.peak_bytes.is_some(),
            "{trial:#?}"
        );
        assert!(trial.isolation.process_namespace && trial.isolation.network_namespace);
    }
}
