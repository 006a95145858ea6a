//! P004, P007 and P009: what the kernel and the machine did meanwhile.

use prony_base::Nanos;
use prony_record::{CanaryPair, ProcessRecord, Role, Trial};

use super::{Seen, limits, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::measure;
use crate::records::Case;

const OVERFLOW: (&str, &str) = (
    "The queue of connections that wait to be accepted was full and the kernel dropped some: clients \
     tried again after a second or more, or failed.",
    "Raise the subject's backlog (and net.core.somaxconn, which caps it), or let it accept faster.",
);
const COUNTERS: [&str; 2] = ["TcpExtListenOverflows", "TcpExtListenDrops"];

/// P004: one of the kernel's two counters of full listen queues rose.
pub(super) fn listen_overflow(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P004, case.measured(), |trial| {
        let rises = COUNTERS.map(|name| (name, trial.kernel.rise(name)));
        let most = rises
            .iter()
            .map(|&(_, rise)| rise)
            .max()
            .filter(|&rise| rise > 0)?;
        let mut evidence: Vec<Evidence> = rises
            .iter()
            .map(|&(name, rise)| Evidence::count(format!("{name} rose by"), rise))
            .collect();
        evidence.push(Evidence::text(
            "counters",
            if trial.kernel.own_namespace {
                "of this trial's own network namespace"
            } else {
                "host-wide: other programs may have caused them"
            },
        ));
        Some(Seen::suspect(most as f64, OVERFLOW, evidence))
    })
}

const MORE_THREADS: (&str, &str) = (
    "The program used more CPU time than the threads that it says it worked with have: something in \
     it (a collector, a compiler, a pool) worked beside them.",
    "Tell its runtime its number of threads with {threads}, or read the figure as one of more cores.",
);
const MORE_CORES: (&str, &str) = (
    "The subject used more CPU time than its cores have: it ran on others too, maybe on the \
     generator's, and compares with no subject that kept to its cores.",
    "Let the run pin the subject (it says at the start why it could not), or tell the subject its \
     number of threads with {threads}.",
);

/// P007: CPU time of the subject's processes over 1.05 × its cores × the window; of a program
/// over 1.05 × its threads × its wall time.
pub(super) fn more_cores(case: &Case<'_>) -> Vec<Finding> {
    if case.is_program() || case.is_client() {
        return more_threads(case);
    }
    worst(case, Code::P007, case.measured(), |trial| {
        let pinned = case.records.plan.cores.subject.len() as f64;
        let instances = case.cell.around.instances.max(1);
        let told = f64::from(case.subject?.threads) * f64::from(instances);
        let cores = if pinned > 0.0 { pinned } else { told };
        let used = measure::share_of_window(trial, measure::cpu(trial, Role::Subject)?)?.0;
        if cores <= 0.0 || used <= limits::CORES_OVER * cores {
            return None;
        }
        let processes = measure::processes(trial, Role::Subject).count();
        let evidence = vec![
            Evidence::number("used", used, Unit::Cores),
            Evidence::number("declared", cores, Unit::Cores),
            Evidence::count("processes", processes as u64),
        ];
        Some(Seen::suspect(used / cores, MORE_CORES, evidence))
    })
}

fn more_threads(case: &Case<'_>) -> Vec<Finding> {
    let runs = case.runs().map(|(trial, _)| trial);
    worst(case, Code::P007, runs, |trial| {
        let program = trial.program.as_ref()?;
        let told = f64::from(measure::line(program)?.threads);
        let long = program.wall_ns >= limits::RUNNING_WALL_NS_MIN;
        let used = measure::program_cpu(program).0 as f64 / program.wall_ns as f64;
        if !long || told <= 0.0 || used <= limits::CORES_OVER * told {
            return None;
        }
        let evidence = vec![
            Evidence::number("used", used, Unit::Cores),
            Evidence::number("threads that did the work", told, Unit::Count),
        ];
        Some(Seen::suspect(used / told, MORE_THREADS, evidence))
    })
}

const DRIFTED: (&str, &str) = (
    "The machine itself changed speed or was busy with something else during the trial.",
    "Close what else runs, fix the processor's frequency, use a machine of \
     your own rather than a shared one, and run more blocks.",
);

/// P009: the canary drifted by over 2 %, or over 1 % of the window went to the hypervisor or to
/// waiting for a core that nobody else should have used; suspect from 10 % and 5 %.
pub(super) fn drifted(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P009, case.complete(), |trial| {
        let drift = trial.canary.as_ref().and_then(drift);
        let steal = trial
            .cores
            .iter()
            .filter(|c| c.role.is_some())
            .map(|c| c.steal_ns)
            .max();
        let steal = steal.and_then(|ns| measure::share_of_window(trial, Nanos(ns)));
        let delay = foreign_delay(case, trial);
        let wait = (limits::WAIT_SHARE, limits::WAIT_SHARE_SUSPECT);
        let signs = [
            (
                "canary, after over before",
                drift,
                (limits::CANARY_DRIFT, limits::CANARY_DRIFT_SUSPECT),
            ),
            ("taken by the hypervisor", steal.map(|s| s.0), wait),
            ("waited for its own core", delay, wait),
        ];
        let over = signs.iter().filter_map(|&(what, value, (info, suspect))| {
            let value = value.filter(|v| v.abs() > info)?;
            Some((what, value, value.abs() > suspect))
        });
        let over: Vec<(&str, f64, bool)> = over.collect();
        let badness = over.iter().map(|sign| sign.1.abs()).reduce(f64::max)?;
        let suspect = over.iter().any(|sign| sign.2);
        let evidence = over
            .iter()
            .map(|sign| Evidence::number(sign.0, sign.1, Unit::Share))
            .collect();
        let severity = if suspect {
            Severity::Suspect
        } else {
            Severity::Info
        };
        Some(Seen::suspect(badness, DRIFTED, evidence).severity(severity))
    })
}

/// The larger drift of the canary's two kinds of work: 0.03 took 3 % longer after than before.
fn drift(pair: &CanaryPair) -> Option<f64> {
    let of = |before: u64, after: u64| {
        (before > 0 && after > 0).then(|| after as f64 / before as f64 - 1.0)
    };
    let compute = of(pair.before.compute_ns, pair.after.compute_ns);
    let syscalls = of(pair.before.syscalls_ns, pair.after.syscalls_ns);
    let farther = |a: f64, b: f64| if b.abs() > a.abs() { b } else { a };
    [compute, syscalls].into_iter().flatten().reduce(farther)
}

/// The longest run-queue delay of a thread of a side that has no more working threads than
/// cores, so that none of its own kept it waiting. (A front or backing shares the subject's cores.)
fn foreign_delay(case: &Case<'_>, trial: &Trial) -> Option<f64> {
    if !trial.isolation.pinned {
        return None;
    }
    let cores = &case.records.plan.cores;
    let generator = [Role::Generator, Role::Peer];
    let subject = [Role::Subject, Role::Backing, Role::Front];
    let sides = [
        (&generator[..], cores.generator.len()),
        (&subject[..], cores.subject.len()),
    ];
    let delays = sides
        .into_iter()
        .filter_map(|(roles, cores)| side_delay(trial, roles, cores));
    delays.reduce(f64::max)
}

fn side_delay(trial: &Trial, roles: &[Role], cores: usize) -> Option<f64> {
    let of_side = |p: &&ProcessRecord| roles.contains(&p.role);
    let threads = trial
        .processes
        .iter()
        .filter(of_side)
        .flat_map(|p| &p.threads);
    let share = |ns: u64| measure::share_of_window(trial, Nanos(ns)).map_or(0.0, |s| s.0);
    let working: Vec<_> = threads
        .filter(|t| share(t.cpu_ns) >= limits::WAIT_SHARE)
        .collect();
    if working.len() > cores {
        return None;
    }
    working.iter().map(|t| share(t.delay_ns)).reduce(f64::max)
}
