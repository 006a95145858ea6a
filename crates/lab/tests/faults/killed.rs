//! Any process of a trial is killed at any moment: there is a result and nobody is left.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use prony_base::Random;
use prony_record::{Exit, Outcome, Phase, Role, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::services;
use crate::stage::{Isolation, Stage, good, plan};

/// Longest moment at which a process is killed: a little longer than a trial.
const LATEST_MS: u64 = 900;
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

/// `PRONY_KILLS` kills, else 8, or 50 in the long tier; one trial each.
pub fn any_process(isolation: Isolation) {
    let kills = prony_testkit::repeats("PRONY_KILLS", 8, 50);
    let mut random = Random::of(11, "victims");
    let mut hits = 0;
    for kill in 0..kills {
        let victim = VICTIMS[random.below(VICTIMS.len() as u64) as usize];
        let moment = Duration::from_millis(random.below(LATEST_MS));
        let stage = Stage::new(isolation);
        let plan = plan(vec![good()], 1, 150);
        let mut run = stage.start(&plan, &[]);
        std::thread::sleep(moment);
        let hit = kill_one(&stage, victim);
        hits += u32::from(hit);
        let status = ends_in_time(
            &mut run,
            &format!("kill {kill} of {victim:?} after {moment:?}"),
        );
        let what = format!("kill {kill} of {victim:?} after {moment:?}, hit: {hit}");
        assert!(status.success(), "{what}: {status}");
        stage.none_left();
        let stored = stage.read();
        assert_eq!(stored.trials.len(), 1, "{what}");
        judge(&stored.trials[0], victim, hit, &what);
    }
    assert!(hits > 0, "nobody was there to be killed in {kills} tries");
}

/// Of a trial with services, `PRONY_KILLS` processes, else 6, or 50 in the long tier; one trial each. Whichever it is,
/// there is a result, and it says so.
pub fn any_of_services(isolation: Isolation) {
    let kills = prony_testkit::repeats("PRONY_KILLS", 6, 50);
    let mut random = Random::of(12, "services");
    let mut hits = 0;
    let servers = ["/store/server.py", "/front/server.py", "/tally/server.py"];
    for kill in 0..kills {
        let server = servers[random.below(servers.len() as u64) as usize];
        let stage = Stage::new(isolation);
        let mut run = stage.start(&services::whole(), &[]);
        stage.wait_for(|command| command.contains(server));
        std::thread::sleep(Duration::from_millis(random.below(LATEST_MS)));
        let processes = stage.left();
        let found = processes
            .iter()
            .find(|(_, command)| command.contains(server));
        let pid = found.and_then(|found| Pid::from_raw(i32::try_from(found.0).ok()?));
        let hit = pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok());
        hits += u32::from(hit);
        let what = format!("kill {kill} of {server}, hit: {hit}");
        assert!(ends_in_time(&mut run, &what).success(), "{what}");
        stage.none_left();
        let stored = stage.read();
        let [trial] = stored.trials.as_slice() else {
            panic!("{what}: {:#?}", stored.trials);
        };
        match &trial.outcome {
            Outcome::Measured => {}
            Outcome::Failed { reason, .. } => assert!(hit, "{what}: {reason}"),
            Outcome::Interrupted => panic!("{what}: nobody interrupted it"),
        }
    }
    assert!(hits > 0, "nobody was there to be killed in {kills} tries");
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

/// Kills the victim, if it is there now.
fn kill_one(stage: &Stage, victim: Victim) -> bool {
    let processes = stage.left();
    let of = |word: &str| -> Vec<&(u32, String)> {
        processes
            .iter()
            .filter(|(_, command)| command.contains(word))
            .collect()
    };
    let supervisors = of("__supervise");
    let found = match victim {
        Victim::Generator => of("__generate").first().map(|found| found.0),
        Victim::Guard => supervisors.iter().map(|found| found.0).min(),
        Victim::Supervisor if supervisors.len() > 1 => {
            supervisors.iter().map(|found| found.0).max()
        }
        Victim::Supervisor => None,
        Victim::Subject => of("python3").first().map(|found| found.0),
    };
    let pid = found.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

fn judge(trial: &Trial, victim: Victim, hit: bool, what: &str) {
    match &trial.outcome {
        Outcome::Measured => {}
        Outcome::Failed { reason, .. } => {
            assert!(hit, "{what}: {reason}");
            assert!(!reason.is_empty(), "{what}");
        }
        Outcome::Interrupted => panic!("{what}: nobody interrupted it"),
    }
    // Whoever was killed while it was followed has that in its record.
    let role = match victim {
        Victim::Subject => Role::Subject,
        Victim::Generator => Role::Generator,
        Victim::Guard | Victim::Supervisor => return,
    };
    let stopping = trial
        .phases
        .iter()
        .any(|span| span.phase == Phase::Stop && span.length_ns > 0);
    let own = trial.processes.iter().find(|process| process.role == role);
    if let (true, true, Some(process)) = (hit, stopping, own) {
        // Where `python3` is a script, what was killed may have been a child of its shell,
        // which then says so by its own status.
        let killed = matches!(
            process.exit,
            Some(Exit::Signal { signal: 9, .. } | Exit::Code { code: 137 })
        );
        let ended = matches!(trial.outcome, Outcome::Measured);
        assert!(
            killed || ended,
            "{what}: {:?}, {:?}",
            process.exit,
            trial.outcome
        );
    }
}
