//! Any process of a trial is killed at any moment: there is a result, it says so, and nobody
//! is left.
//!
//! When somebody was killed is told by the machine's clock, and what the trial did then by its
//! own record, so that a machine that is slow at either changes no verdict:
//!
//! | killed | before the window's end | when the trial stopped already |
//! |---|---|---|
//! | the subject, a service around it, the generator | failed, and says who was killed | measured |
//! | guard, supervisor | failed: there was no report yet | either: the report may be out |
//!
//! Between the two, while what is in flight is answered, it is either: whoever is killed then
//! may be done.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use prony_base::{Random, clock};
use prony_record::{Exit, Outcome, Phase, Plan, Role, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Fixture, Isolation, good, plan};
use crate::services;

/// Longest moment at which a process is killed: a little longer than a trial.
const LATEST_MS: u64 = 900;
/// What a trial's own clock, which is written in milliseconds, may be off by.
const CLOCK_MS: u64 = 20;
/// Tries to kill somebody before the window's end, on a machine that others use, too.
const EARLY_TRIES: u32 = 50;
/// Longest that a run of one trial may take, whoever was killed.
const RUN_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Subject,
    Generator,
    /// The outermost process of the trial, which enters its namespaces.
    Guard,
    /// The process that runs the trial's services.
    Supervisor,
}

const VICTIMS: [Victim; 4] = [
    Victim::Subject,
    Victim::Generator,
    Victim::Guard,
    Victim::Supervisor,
];

impl Victim {
    fn find(self, processes: &[(u32, String)]) -> Option<u32> {
        let of = |word: &'static str| {
            let found = processes
                .iter()
                .filter(move |(_, text)| text.contains(word));
            found.map(|&(pid, _)| pid)
        };
        match self {
            Victim::Subject => of("python3").next(),
            Victim::Generator => of("__generate").next(),
            Victim::Guard => of("__supervise")
                .find(|&pid| of("__supervise").all(|other| parent(pid) != Some(other))),
            // Whom the supervisor starts has its command, too, until it becomes another program.
            Victim::Supervisor => {
                let guard = Victim::Guard.find(processes)?;
                of("__supervise").find(|&pid| parent(pid) == Some(guard))
            }
        }
    }

    /// What a failed trial says of who was killed.
    fn says(self) -> &'static str {
        match self {
            Victim::Subject => "the subject",
            Victim::Generator => "the generator ended without a result",
            Victim::Guard | Victim::Supervisor => "the supervisor ended without a result",
        }
    }

    fn role(self) -> Option<Role> {
        match self {
            Victim::Subject => Some(Role::Subject),
            Victim::Generator => Some(Role::Generator),
            Victim::Guard | Victim::Supervisor => None,
        }
    }
}

/// The number of a process's parent, while it is there.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of its program, in brackets, may hold anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// When somebody was killed, in milliseconds of the machine's clock: not before the one, and
/// not after the other.
#[derive(Clone, Copy, Debug)]
struct Kill {
    not_before: u64,
    not_after: u64,
}

fn now_ms() -> u64 {
    clock::unix_nanos() / 1_000_000
}

/// Kills the process that `find` names, if there is one now.
fn kill_one(fixture: &Fixture, find: impl Fn(&[(u32, String)]) -> Option<u32>) -> Option<Kill> {
    let pid = find(&fixture.left())?;
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let not_before = now_ms();
    kill_process(pid, Signal::KILL).ok()?;
    Some(Kill {
        not_before,
        not_after: now_ms() + 1,
    })
}

/// The record of a run's one trial, in which somebody was or was not killed.
fn only_trial(fixture: &Fixture, run: &mut Child, what: &str) -> Trial {
    let status = ends_in_time(run, what);
    assert!(status.success(), "{what}: {status}");
    fixture.none_left();
    let mut stored = fixture.read();
    assert_eq!(stored.trials.len(), 1, "{what}");
    stored.trials.remove(0)
}

/// Each of them while it is needed, then `PRONY_KILLS` of them at any moment, else 4, or 50 in
/// the long tier; one trial each.
pub fn any_process(isolation: Isolation) {
    let plan = plan(vec![good()], 1, 150);
    for victim in VICTIMS {
        while_needed(isolation, &plan, victim);
    }
    let mut random = Random::of(11, "victims");
    for kill in 0..prony_testkit::repeats("PRONY_KILLS", 4, 50) {
        let victim = VICTIMS[random.below(VICTIMS.len() as u64) as usize];
        let moment = Duration::from_millis(random.below(LATEST_MS));
        let fixture = Fixture::new(isolation);
        let mut run = fixture.start(&plan, &[]);
        std::thread::sleep(moment);
        let hit = kill_one(&fixture, |processes| victim.find(processes));
        let what = format!("kill {kill} of {victim:?} after {moment:?}: {hit:?}");
        let trial = only_trial(&fixture, &mut run, &what);
        judge(&trial, &plan, victim, hit, &what);
    }
}

/// Kills one as soon as it is there, until that was before the window's end.
fn while_needed(isolation: Isolation, plan: &Plan, victim: Victim) {
    for _ in 0..EARLY_TRIES {
        let fixture = Fixture::new(isolation);
        let mut run = fixture.start(plan, &[]);
        let mut hit = None;
        while hit.is_none() && run.try_wait().expect("a child").is_none() {
            hit = kill_one(&fixture, |processes| victim.find(processes));
        }
        let what = format!("{victim:?}, as soon as it was there: {hit:?}");
        let trial = only_trial(&fixture, &mut run, &what);
        judge(&trial, plan, victim, hit, &what);
        if matches!(trial.outcome, Outcome::Failed { .. }) {
            return;
        }
    }
    panic!("in {EARLY_TRIES} tries {victim:?} was never killed before the window's end");
}

/// Of a trial with services, `PRONY_KILLS` processes, else 6, or 50 in the long tier; one trial
/// each. Whichever it is, there is a result, and it says so.
pub fn any_of_services(isolation: Isolation) {
    let mut random = Random::of(12, "services");
    let plan = services::whole();
    let servers = [
        ("/store/server.py", Role::Backing),
        ("/front/server.py", Role::Front),
        ("/counter/server.py", Role::Subject),
    ];
    for kill in 0..prony_testkit::repeats("PRONY_KILLS", 6, 50) {
        // Each as soon as it is there, and then any at any moment.
        let is_early = (kill as usize) < servers.len();
        let (server, role) = match is_early {
            true => servers[kill as usize],
            false => servers[random.below(servers.len() as u64) as usize],
        };
        let fixture = Fixture::new(isolation);
        let mut run = fixture.start(&plan, &[]);
        fixture.wait_for(|command| command.contains(server));
        if !is_early {
            std::thread::sleep(Duration::from_millis(random.below(LATEST_MS)));
        }
        let mut hit = None;
        // One that is about to become another program has no command line for a moment.
        for _ in 0..if is_early { EARLY_TRIES } else { 1 } {
            hit = hit.or_else(|| {
                kill_one(&fixture, |processes| {
                    let found = processes.iter().find(|(_, text)| text.contains(server));
                    found.map(|found| found.0)
                })
            });
        }
        let what = format!("kill {kill} of {server}: {hit:?}");
        let trial = only_trial(&fixture, &mut run, &what);
        match &trial.outcome {
            Outcome::Measured => assert_late(&trial, &plan, hit, &what),
            Outcome::Failed { reason, .. } => {
                assert!(hit.is_some(), "{what}: {reason}");
                assert!(says_killed(&trial, role, reason), "{what}: {:#?}", trial);
            }
            Outcome::Interrupted => panic!("{what}: nobody interrupted it"),
        }
        // Before anything is measured.
        assert!(!is_early || trial.outcome != Outcome::Measured, "{what}");
    }
}

/// The status with which a run of one trial ends; in time, or this fails.
pub fn ends_in_time(run: &mut Child, what: &str) -> ExitStatus {
    let deadline = Instant::now() + RUN_MAX;
    loop {
        if let Some(status) = run.try_wait().expect("a child") {
            return status;
        }
        assert!(Instant::now() < deadline, "{what}: no end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills a run at that moment of its life, and waits until it is gone.
pub fn kill_after(run: &mut Child, moment: Duration) {
    std::thread::sleep(moment);
    run.kill().expect("it can be killed");
    run.wait().expect("it ends");
}

/// When a phase of a trial began, and how long it was.
fn span(trial: &Trial, phase: Phase) -> Option<(u64, u64)> {
    let span = trial.phases.iter().find(|span| span.phase == phase)?;
    let began = trial.started_unix_ms + span.start_ns / 1_000_000;
    Some((began, span.length_ns / 1_000_000))
}

/// Who was killed in a trial that was measured was not needed any more.
fn assert_late(trial: &Trial, plan: &Plan, hit: Option<Kill>, what: &str) {
    let Some(kill) = hit else {
        return;
    };
    let (measure, _) = span(trial, Phase::Measure).expect("it was measured");
    let end = measure + plan.duration_ns / 1_000_000;
    assert!(
        kill.not_after + CLOCK_MS >= end,
        "{what}: killed before the window's end at {end}, and measured: {:#?}",
        trial.phases
    );
}

/// Whether a failed trial tells of the end of a process of this role, in its reason or, where
/// another failed because of it, in the process's record.
fn says_killed(trial: &Trial, role: Role, reason: &str) -> bool {
    let mut own = trial
        .processes
        .iter()
        .filter(|process| process.role == role);
    reason.contains("was ended by signal 9")
        || reason.contains("exited with status 137")
        || own.any(|process| was_killed(process.exit.as_ref()))
}

/// Where `python3` is a script, what was killed may have been a child of its shell, which then
/// says so by its own status.
fn was_killed(exit: Option<&Exit>) -> bool {
    matches!(
        exit,
        Some(Exit::Signal { signal: 9, .. } | Exit::Code { code: 137 })
    )
}

fn judge(trial: &Trial, plan: &Plan, victim: Victim, hit: Option<Kill>, what: &str) {
    let (phase, reason) = match &trial.outcome {
        Outcome::Measured => {
            assert_late(trial, plan, hit, what);
            if let (Some(kill), None) = (hit, victim.role()) {
                // The report was out, and that is what the last phase ends with.
                let (stop, length) = span(trial, Phase::Stop).expect("it stopped");
                assert!(
                    kill.not_after + CLOCK_MS >= stop + length,
                    "{what}: {trial:#?}"
                );
            }
            return;
        }
        Outcome::Failed { phase, reason } => (*phase, reason),
        Outcome::Interrupted => panic!("{what}: nobody interrupted it"),
    };
    let kill = hit.unwrap_or_else(|| panic!("{what}: nobody was killed, and it failed: {reason}"));
    assert!(
        reason.contains(victim.says()),
        "{what}: {phase:?}: {reason}"
    );
    let Some(role) = victim.role() else {
        return;
    };
    let (stop, _) = span(trial, Phase::Stop).expect("it stopped");
    assert!(
        kill.not_before <= stop + CLOCK_MS,
        "{what}: killed when the trial stopped at {stop}, and failed: {reason}"
    );
    // Whoever was killed while it was followed has that in its record.
    let own = trial.processes.iter().find(|process| process.role == role);
    if let Some(process) = own {
        assert!(was_killed(process.exit.as_ref()), "{what}: {process:?}");
    }
}
