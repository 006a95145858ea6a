//! Trials that profile a server: what the machine permits is seen, and what it does not is said.

use prony_lab::profile::{self, Means, TOO_BRIEF};
use prony_lab::store::Stored;
use prony_record::{GeneratorKind, Outcome, Plan, ProfileReport, Trial};

use crate::fixture::{Fixture, Isolation, good, plan};
use crate::{clients, programs};

/// A test and its name.
type Named = (&'static str, fn(Isolation));

pub const TESTS: [Named; 3] = [
    (
        "a_busy_server_is_profiled_after_all_blocks",
        a_busy_server_is_profiled_after_all_blocks,
    ),
    (
        "where_nothing_is_permitted_a_profile_says_so_and_has_the_threads",
        where_nothing_is_permitted_a_profile_says_so_and_has_the_threads,
    ),
    (
        "programs_and_clients_are_profiled_from_start_to_end",
        programs_and_clients_are_profiled_from_start_to_end,
    ),
];

/// One trial that is measured, and those that profile.
fn to_profile() -> Plan {
    let mut plan = plan(vec![good()], 1, 300);
    plan.profile = Some(prony_record::PlannedProfile {
        window_ns: 1_000_000_000,
        ..profile::planned()
    });
    plan
}

/// The trial of this generator, and what it saw.
fn seen(run: &Stored, generator: GeneratorKind) -> (&Trial, &ProfileReport) {
    let found = run.trials.iter().find(|trial| trial.generator == generator);
    let trial = found.expect("a trial that profiles");
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:?}");
    (trial, trial.profile.as_ref().expect("a profile"))
}

fn has_threads(profile: &ProfileReport) {
    let busiest = profile.threads.iter().max_by_key(|thread| thread.cpu_ns);
    let busiest = busiest.expect("a thread");
    assert!(busiest.cpu_ns > 0, "{profile:?}");
    assert_eq!(busiest.name, "python3");
}

/// What is permitted was seen and adds up; what is not is said.
fn is_whole(run: &Stored, pass: &profile::Pass) {
    let (trial, profile) = seen(run, GeneratorKind::Profile);
    assert_eq!(trial.histogram, None);
    let load = trial.load.as_ref().expect("a load");
    assert_eq!(load.unbalanced(), None);
    assert!(load.completed > 0, "{load:?}");
    has_threads(profile);
    if pass.samples.is_none() {
        assert_eq!((profile.rate_per_s, profile.samples), (0, 0));
    } else {
        let (name, folded) = run.folded(trial).expect("readable").expect("stacks");
        assert_eq!(profile.folded.as_deref(), Some(name.as_str()));
        let counts = folded
            .lines()
            .map(|line| line.rsplit(' ').next().expect("a count"));
        let counts: u64 = counts
            .map(|count| count.parse::<u64>().expect("a number"))
            .sum();
        assert_eq!(counts, profile.samples);
        assert!(counts > 0, "{folded}");
        assert!(
            folded.lines().all(|line| line.starts_with("python3;")),
            "{folded}"
        );
    }
    if pass.tracepoint.is_some() {
        let calls: u64 = profile.threads.iter().filter_map(|t| t.syscalls).sum();
        assert_eq!(profile.syscalls_by.as_deref(), Some("perf"));
        // An answer cannot be sent without one.
        assert!(calls >= load.completed / 2, "{calls} of {}", load.completed);
    }
    assert_eq!(profile.refused, pass.refused);
}

/// What this process may do, its children may, too.
fn passes() -> Vec<profile::Pass> {
    Means::find(&std::env::var_os("PATH").unwrap_or_default()).passes()
}

fn a_busy_server_is_profiled_after_all_blocks(isolation: Isolation) {
    // Its folder holds the stacks.
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&to_profile(), &["profile"]);
    let passes = passes();
    assert_eq!(run.trials.len(), 1 + passes.len());
    assert_eq!(run.trials[0].generator, GeneratorKind::Prony);
    assert_eq!(run.trials[0].profile, None);
    is_whole(&run, &passes[0]);
}

fn where_nothing_is_permitted_a_profile_says_so_and_has_the_threads(isolation: Isolation) {
    let run = Fixture::new(isolation).run(&to_profile(), &["profile", "no-perf", "no-strace"]);
    assert_eq!(run.trials.len(), 2);
    let (_, profile) = seen(&run, GeneratorKind::Profile);
    has_threads(profile);
    assert_eq!((profile.samples, &profile.folded), (0, &None));
    assert_eq!(profile.syscalls_by, None);
    assert!(
        profile.refused[0].starts_with("no CPU samples"),
        "{profile:?}"
    );
    assert!(
        profile.refused[1].starts_with("system calls are not counted"),
        "{profile:?}"
    );
}

/// A program that is busy until it has been looked at, however slow this machine is: it reads its own clock.
const BUSY: &str = "import time\nwhile time.process_time() < 0.5: pass\nprint('{\"measure\":\"work\",\"threads\":1,\"count\":10,\"elapsed_ns\":1000,\"checksum\":\"\"}')";

fn programs_and_clients_are_profiled_from_start_to_end(isolation: Isolation) {
    let program = programs::program("busy", &["/usr/bin/env", "python3", "-c", BUSY]);
    let mut of_program = programs::plan(vec![program], 1, 20_000);
    of_program.profile = Some(profile::planned());
    let mut of_client = clients::plan(
        vec![clients::client("sound", "sound")],
        clients::peer(&[]),
        1,
    );
    of_client.profile = Some(profile::planned());
    for (plan, least_ns) in [(of_program, 1), (of_client, 0)] {
        let fixture = Fixture::new(isolation);
        let run = fixture.run(&plan, &["profile"]);
        // strace has nothing to do with either.
        assert_eq!(run.trials.len(), 2);
        let (trial, profile) = seen(&run, GeneratorKind::Profile);
        assert!(trial.program.is_some(), "{trial:?}");
        let used: u64 = profile.threads.iter().map(|thread| thread.cpu_ns).sum();
        assert!(used >= least_ns, "{profile:?}");
        let folded = run.folded(trial).expect("readable");
        assert_eq!(folded.is_some(), profile.samples > 0);
        let mut refused = passes()[0].refused.clone();
        // A client that does next to nothing may have ended before anybody looked.
        if least_ns == 0 && profile.refused.iter().any(|said| said == TOO_BRIEF) {
            assert_eq!(profile.samples, 0, "{profile:?}");
            refused.push(TOO_BRIEF.to_owned());
        }
        assert_eq!(profile.refused, refused);
    }
}

/// strace counts at least a system call for each request, in a trial of its own.
pub fn where_perf_is_refused_strace_counts(isolation: Isolation) {
    let run = Fixture::new(isolation).run(&to_profile(), &["profile", "no-perf"]);
    assert_eq!(run.trials.len(), 3);
    let (trial, profile) = seen(&run, GeneratorKind::ProfileStrace);
    assert_eq!(profile.refused, Vec::<String>::new());
    assert_eq!(profile.syscalls_by.as_deref(), Some("strace"));
    let load = trial.load.as_ref().expect("a load");
    let calls: u64 = profile.syscalls.values().sum();
    assert!(calls >= load.counts.sent, "{calls} of {:?}", load.counts);
    assert!(load.counts.sent > 0);
}

/// Of an ordinary user: whatever is permitted is seen, all else said; and the run goes on.
pub fn an_ordinary_user_can_profile(fixture: &Fixture) {
    let run = fixture.run(&to_profile(), &["profile"]);
    let (trial, profile) = seen(&run, GeneratorKind::Profile);
    has_threads(profile);
    // The number of the tracepoint is root's to read.
    assert!(!profile.refused.is_empty(), "{profile:?}");
    assert_eq!(
        profile.samples > 0,
        run.folded(trial).expect("readable").is_some()
    );
    assert!(!profile.kernel || profile.rate_per_s > 0);
}
