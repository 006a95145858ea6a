//! Servers that are visited in turns, and what goes wrong with them.

use std::time::Duration;

use prony_base::Random;
use prony_record::{Outcome, Phase, Plan, PlannedSubject, PlannedVisits, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Fixture, Isolation, good, plan, subject, trials_of, wait_line};
use crate::killed::{ends_in_time, kill_after};
use crate::programs::Named;

/// The tests of this module.
pub const TESTS: [Named; 7] = [
    (
        "neighbours_stand_still_while_one_is_visited_and_no_latency_holds_that",
        neighbours_stand_still,
    ),
    (
        "one_that_does_not_bear_the_pause_is_measured_by_itself_with_what_it_is_compared_with",
        one_that_does_not_bear_the_pause,
    ),
    (
        "one_that_dies_of_the_pause_is_measured_by_itself_with_what_it_is_compared_with",
        one_that_dies_of_the_pause,
    ),
    (
        "one_that_dies_in_its_turn_leaves_the_others_theirs",
        one_that_dies_in_its_turn,
    ),
    (
        "interrupted_visits_leave_nobody_stopped_and_are_done_again",
        interrupted_visits,
    ),
    (
        "visits_killed_at_any_moment_leave_nobody_stopped_and_lose_nothing_finished",
        visits_killed_at_any_moment,
    ),
    (
        "a_supervisor_killed_among_visits_takes_only_its_own_with_it",
        a_supervisor_killed_among_visits,
    ),
];

/// Visits of 100 ms, `visits` of them in each block.
fn in_turns(subjects: Vec<PlannedSubject>, blocks: u32, visits: u64) -> Plan {
    Plan {
        visits: Some(PlannedVisits {
            length_ns: 100_000_000,
            lead_in_ns: 15_000_000,
            fresh: Vec::new(),
        }),
        ..plan(subjects, blocks, 100 * visits)
    }
}

/// A second one without fault.
fn other() -> PlannedSubject {
    subject("drowsy", &[])
}

/// What a drowsy server, or its child, said last of how long it stood still.
fn stood_still_ms(trial: &Trial, who: &str) -> u64 {
    let start = format!("{who} stood still for ");
    let lines = trial.log_tail.iter().rev();
    let mut own = lines.filter_map(|line| line.strip_prefix(start.as_str()));
    let last = own.next().and_then(|rest| rest.strip_suffix(" ms"));
    let text = last.unwrap_or_else(|| panic!("no word of the {who}: {:#?}", trial.log_tail));
    text.parse().expect("a number")
}

fn assert_whole(trial: &Trial, visits: usize) {
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    assert_eq!(trial.visits.len(), visits, "{:?}", trial.notes);
    assert_eq!(trial.left_behind, Vec::<String>::new());
    let load = trial.load.as_ref().expect("it was measured");
    let sum = |of: fn(&prony_record::Visit) -> u64| trial.visits.iter().map(of).sum::<u64>();
    assert_eq!(load.completed, sum(|visit| visit.completed));
    assert_eq!(load.window_ns, sum(|visit| visit.window_ns));
    assert_eq!(trial.window_ns, load.window_ns);
    let rate = load.completed as f64 / (load.window_ns as f64 / 1e9);
    assert!((load.rate_per_s - rate).abs() < 1e-6 * rate);
    let counts = &load.counts;
    let ended = counts.warmup_completed + counts.warmup_failed + counts.completed;
    assert_eq!(
        counts.sent,
        ended + counts.failed.total() + counts.in_flight
    );
    assert!(
        counts.completed > 0 && counts.failed.total() == 0,
        "{counts:?}"
    );
    // What its processes used is what they used in the visits, each by its own reading.
    let subjects = trial.processes.iter();
    let subjects = subjects.filter(|process| process.role == prony_record::Role::Subject);
    let used: u64 = subjects.map(|process| process.cpu_ns).sum();
    assert!(used > 0);
    assert_eq!(used, sum(|visit| visit.subject_cpu_ns));
}

fn neighbours_stand_still(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let plan = in_turns(vec![good(), other()], 2, 6);
    let run = fixture.run(&plan, &[]);
    assert_eq!(run.trials.len(), 4);
    for trial in &run.trials {
        assert_whole(trial, 6);
        // A request that was out when its server was stopped would have taken as long as the neighbour's turn, which is
        // never shorter than its lead-in and window; and there would be one on each connection in all turns but one.
        let shortest = 102_000_000;
        let latencies = run.histogram(trial).expect("a file").expect("a histogram");
        let long = latencies.counts.iter().filter(|(ns, _)| *ns >= shortest);
        let long: u64 = long.map(|(_, count)| count).sum();
        assert!(long < 4 * 5 / 2, "{long} latencies are as long as a pause");
    }
    for trial in trials_of(&run, "drowsy") {
        for who in ["server", "child"] {
            let still = stood_still_ms(trial, who);
            assert!(still >= 102, "the {who} stood still for {still} ms only");
        }
    }
}

fn one_that_does_not_bear_the_pause(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let drowsy = subject("drowsy", &[("CLOSES_AFTER_MS", "200")]);
    let plan = in_turns(vec![good(), drowsy], 2, 2);
    let run = fixture.run(&plan, &[]);
    assert_eq!(run.trials.len(), 4);
    // Both, as they are compared.
    for trial in &run.trials {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        assert!(trial.visits.is_empty(), "{:?}", trial.visits);
        let mut notes = trial.notes.iter();
        let why = "measured by itself, not in turns: test/drowsy ping c=4: after a pause of";
        let said = notes.any(|note| note.starts_with(why));
        assert!(said, "{:?}", trial.notes);
    }
}

/// A wait for the ring that is interrupted, say, and taken for an error. By itself it is never stopped.
fn one_that_dies_of_the_pause(isolation: Isolation) {
    let stage = Fixture::new(isolation);
    let dies = subject("dies", &[("GOES_ON", "1")]);
    let plan = in_turns(vec![good(), dies], 2, 2);
    let run = stage.run(&plan, &[]);
    assert_eq!(run.trials.len(), 4);
    for trial in &run.trials {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        assert!(trial.visits.is_empty(), "{:?}", trial.visits);
        let why = "measured by itself, not in turns: test/dies ping c=4: the subject was ended by signal 9";
        let said = trial.notes.iter().any(|note| note.starts_with(why));
        assert!(said, "{:?}", trial.notes);
    }
}

fn one_that_dies_in_its_turn(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    // Each turn lets it go on once: after warm-up and check, and within the visits.
    let dies = subject("dies", &[("GOES_ON", "20")]);
    let mut plan = in_turns(vec![dies, good()], 1, 40);
    plan.warmup_ns = 20_000_000;
    let run = fixture.run(&plan, &[]);
    let dead = trials_of(&run, "dies")[0];
    let Outcome::Failed { phase, reason } = &dead.outcome else {
        panic!("{dead:#?}");
    };
    assert_eq!(*phase, Phase::Measure, "{reason}");
    assert!(reason.contains("was ended by signal 9"), "{reason}");
    assert_whole(trials_of(&run, "slow-start")[0], 40);
}

fn all_measured(run: &prony_lab::store::Stored, plan: &Plan) {
    let finished = run.trials.iter();
    let finished = finished.filter(|trial| trial.outcome == Outcome::Measured);
    assert_eq!(finished.count(), plan.cells.len() * plan.blocks as usize);
}

fn interrupted_visits(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let plan = in_turns(vec![good(), other()], 1, 20);
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    prony_lab::launch::signal(child.id(), Signal::INT);
    let status = ends_in_time(&mut child, "interrupted visits");
    assert_eq!(status.code(), Some(130));
    fixture.none_left();
    let before = fixture.read();
    let is_interrupted = |trial: &Trial| trial.outcome == Outcome::Interrupted;
    assert!(
        before.trials.iter().all(is_interrupted),
        "{:#?}",
        before.trials
    );
    all_measured(&fixture.run(&plan, &["resume"]), &plan);
}

fn visits_killed_at_any_moment(isolation: Isolation) {
    let kills = prony_testkit::repeats("PRONY_KILLS", 5, 50);
    let fixture = Fixture::new(isolation);
    let plan = in_turns(vec![good(), other()], 3, 3);
    let mut random = Random::of(17, "kill visits");
    let mut finished = 0;
    for kill in 0..=kills {
        let is_there = fixture.dir().join("plan.json").exists();
        if !is_there {
            let _ = std::fs::remove_dir_all(fixture.dir());
        }
        let resume: &[&str] = if is_there { &["resume"] } else { &[] };
        if kill == kills {
            all_measured(&fixture.run(&plan, resume), &plan);
            return;
        }
        let mut child = fixture.start(&plan, resume);
        kill_after(&mut child, Duration::from_millis(random.below(4_000)));
        fixture.none_left();
        if fixture.dir().join("plan.json").exists() {
            let trials = fixture.read().trials;
            let done = trials.iter().filter(|t| t.outcome == Outcome::Measured);
            let done = done.count();
            assert!(
                done >= finished,
                "kill {kill} lost some: {done} of {finished}"
            );
            finished = done;
        }
    }
}

fn a_supervisor_killed_among_visits(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let plan = in_turns(vec![good(), other()], 1, 30);
    let mut run = fixture.start(&plan, &[]);
    wait_line(&mut run, "phase Measure");
    let left = fixture.left();
    let supervisors = left.iter().filter(|(_, text)| text.contains("__supervise"));
    let first = supervisors
        .map(|&(pid, _)| pid)
        .min()
        .expect("a supervisor");
    let pid = Pid::from_raw(i32::try_from(first).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it can be killed");
    let status = ends_in_time(&mut run, "a supervisor was killed");
    assert!(status.success(), "{status}");
    fixture.none_left();
    let trials = fixture.read().trials;
    assert_eq!(trials.len(), 2);
    let failed = trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Failed { reason, .. } => Some(reason),
        _ => None,
    });
    let failed: Vec<&String> = failed.collect();
    assert_eq!(failed.len(), 1, "{trials:#?}");
    assert!(
        failed[0].contains("the supervisor ended without a result"),
        "{failed:?}"
    );
    let other = trials
        .iter()
        .find(|trial| trial.outcome == Outcome::Measured);
    assert_whole(other.expect("the other was measured"), 30);
}
