//! P004, P007 and P009: what the kernel and the machine did meanwhile.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_record::{CanaryPair, ProcessRecord, Role, Trial};
use prony_stats::median;

use super::seen::{Seen, of_run as of_run_finding, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::limits;
use crate::measure;
use crate::records::{Case, Records};

const OVERFLOW: (&str, &str) = (
    "The accept queue was full and the kernel dropped connections: clients retried after a second or more, or failed.",
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
        Some(Seen::note(most as f64, OVERFLOW, evidence))
    })
}

const MORE_THREADS: (&str, &str) = (
    "The program used more CPU time than the threads that it reports can use: something else in it (a garbage \
     collector, a compiler, a thread pool) ran beside them.",
    "Pass the number of threads to its runtime with {threads}, or read the figure as one of more cores.",
);
const MORE_CORES: (&str, &str) = (
    "The subject used more CPU time than its cores have: it also ran on others, maybe on the generator's, and cannot \
     be compared with subjects that kept to their cores.",
    "Let the run pin the subject (it prints at the start why it could not), or pass the number of threads to the \
     subject with {threads}.",
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
        let threads = f64::from(case.subject?.threads) * f64::from(instances);
        let cores = if pinned > 0.0 { pinned } else { threads };
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
        Some(Seen::note(used / cores, MORE_CORES, evidence).severity(Severity::Invalid))
    })
}

fn more_threads(case: &Case<'_>) -> Vec<Finding> {
    let runs = case.runs().map(|(trial, _)| trial);
    worst(case, Code::P007, runs, |trial| {
        let program = trial.program.as_ref()?;
        let threads = f64::from(measure::line(program)?.threads);
        let long = program.wall_ns >= limits::RUNNING_WALL_NS_MIN;
        let used = measure::program_cpu(program).0 as f64 / program.wall_ns as f64;
        if !long || threads <= 0.0 || used <= limits::CORES_OVER * threads {
            return None;
        }
        let evidence = vec![
            Evidence::number("used", used, Unit::Cores),
            Evidence::number("threads that did the work", threads, Unit::Count),
        ];
        Some(Seen::note(used / threads, MORE_THREADS, evidence))
    })
}

const DRIFTED: (&str, &str) = (
    "The machine's speed changed, or it was busy with something else, during this run. Blocks in which others used a \
     core are in no ratio where enough others are left; what else there was of it is in the spread of the figures, and \
     so in their intervals.",
    "Stop other programs, fix the processor's frequency, use a dedicated machine rather than a shared one; more blocks \
     narrow the intervals in any case.",
);

/// P009, once a run: over all its trials the canary drifted by over 2 % at the median, or over 1 % of the measured time
/// went to the hypervisor, or to waiting for a core that nobody else should have used. By trial such shares are too
/// coarse: the hypervisor's is counted in ticks of 10 ms. Or others used over 5 % of a core in some trials.
pub(super) fn drifted(records: &Records<'_>) -> Option<Finding> {
    let trials: Vec<(Case<'_>, &Trial)> = records
        .cases()
        .flat_map(|case| case.complete().map(move |trial| (case, trial)))
        .collect();
    let drifts = trials
        .iter()
        .filter_map(|(_, trial)| drift(trial.canary.as_ref()?));
    let drifts: Vec<f64> = drifts.map(f64::abs).collect();
    let of_run = |part: &dyn Fn(&Case<'_>, &Trial) -> Option<f64>| {
        let parts = trials.iter().filter_map(|(case, trial)| {
            let sampled = measure::sampled(trial)?.0 as f64;
            Some((part(case, trial)? * sampled, sampled))
        });
        let (part, all) = parts.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (all > 0.0).then(|| part / all)
    };
    let unshared = |part: &dyn Fn(&Case<'_>, &Trial) -> Option<f64>| {
        let parts = trials
            .iter()
            .filter_map(|(case, trial)| Some((&*trial.cell, trial.block, part(case, trial)?)));
        unshared(&parts.collect::<Vec<_>>())
    };
    let taken = |_: &Case<'_>, trial: &Trial| steal(trial);
    let signs = [
        (
            "canary, after against before, at the median",
            median(&drifts),
            Some(limits::CANARY_DRIFT),
        ),
        (
            "taken by the hypervisor",
            of_run(&taken),
            Some(limits::WAIT_SHARE),
        ),
        (
            "taken, deviation between trials of a block",
            unshared(&taken),
            None,
        ),
        (
            "waited for a core of its own",
            of_run(&foreign_delay),
            Some(limits::WAIT_SHARE),
        ),
        (
            "waited, deviation between trials of a block",
            unshared(&foreign_delay),
            None,
        ),
    ];
    let disturbed = disturbed(records);
    let over = signs.iter().any(|&(_, value, limit)| {
        let over = value.zip(limit).map(|(value, limit)| value > limit);
        over == Some(true)
    });
    let over = over || disturbed.is_some();
    let known = signs
        .iter()
        .filter_map(|&(what, value, _)| Some((what, value?)));
    let evidence = known.map(|(what, value)| Evidence::number(what, value, Unit::Share));
    let evidence = evidence.chain(disturbed).collect();
    over.then(|| of_run_finding(Code::P009, DRIFTED, evidence))
}

/// The blocks in which others disturbed some trial.
fn disturbed(records: &Records<'_>) -> Option<Evidence> {
    let blocks: BTreeMap<u32, f64> = records.cases().flat_map(|case| case.disturbed()).collect();
    let numbers: Vec<String> = blocks.keys().map(ToString::to_string).collect();
    let what = "blocks in which others used a core";
    (!numbers.is_empty()).then(|| Evidence::text(what, numbers.join(", ")))
}

/// The standard deviation of what is left of each `(cell, block, value)` without its cell's mean and its block's: what trials of
/// a block share is in no ratio, and what trials of a cell share is no disturbance. `None` where nothing is left over: of
/// fewer than two cells or blocks.
fn unshared(values: &[(&str, u32, f64)]) -> Option<f64> {
    let mut cells: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut blocks: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let add = |sum: &mut (f64, f64), value: f64| *sum = (sum.0 + value, sum.1 + 1.0);
    for &(cell, block, value) in values {
        add(cells.entry(cell).or_default(), value);
        add(blocks.entry(block).or_default(), value);
    }
    let degrees = values.len() as f64 - cells.len() as f64 - blocks.len() as f64 + 1.0;
    if degrees < 1.0 {
        return None;
    }
    let all = values.iter().map(|(.., value)| value).sum::<f64>() / values.len() as f64;
    let mean = |(sum, count): (f64, f64)| sum / count;
    let left = |&(cell, block, value): &(&str, u32, f64)| {
        value - mean(cells[cell]) - mean(blocks[&block]) + all
    };
    let squares: f64 = values.iter().map(|of| left(of) * left(of)).sum();
    Some((squares / degrees).sqrt())
}

/// The most that the hypervisor took from a core of either side, as a part of the window.
fn steal(trial: &Trial) -> Option<f64> {
    let cores = trial.cores.iter().filter(|core| core.role.is_some());
    let most = cores.map(|core| core.steal_ns).max()?;
    Some(measure::share_of_window(trial, Nanos(most))?.0)
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
