//! Runs of one experiment that were made at different times, as one run.
//!
//! Their blocks are added. Which run each is of stays known ([`Plan::joined`]), because what differs from one run to the next is in no
//! difference between the blocks of one ([`prony_stats::Variance::of_runs`]).
//!
//! Not for: two states of the code, which stand beside each other ([`compare`](crate::compare)).

use std::collections::BTreeSet;

use prony_base::{Nanos, counted};
use prony_record::{Plan, PlannedSubject};

use crate::Run;
use crate::log::place;
use crate::numbers::moment;

/// Blocks that a run has at the most, with profiles and what was measured again: more than a plan may ask for.
const BLOCKS_MAX: u32 = 1_000_000;

/// `runs` as one, with the plan, the machine and the analysis of the first.
///
/// # Errors
/// One did not do the same as the first, or is there twice: its place among them, and why in words that follow its name.
pub fn joined(runs: Vec<Run>) -> Result<Run, (usize, String)> {
    let Some(first) = runs.first() else {
        return Ok(Run::default());
    };
    let mut starts = BTreeSet::new();
    for (number, run) in runs.iter().enumerate() {
        let why = match starts.insert(run.environment.started_unix_ms) {
            true => differs(first, run),
            false => Some("began when another one did: each run counts once".to_owned()),
        };
        if let Some(why) = why {
            return Err((number, why));
        }
    }
    let each = first.plan.blocks;
    let mut whole = Run {
        plan: first.plan.clone(),
        environment: first.environment.clone(),
        analysis: first.analysis.clone(),
        ..Run::default()
    };
    whole.plan.blocks = each * runs.len() as u32;
    whole.plan.order.clear();
    let moments: Vec<String> = starts.into_iter().map(moment).collect();
    // How blocks were chosen is of one run, what this machine lacks of all.
    let of_all = |note: &String| runs.iter().all(|run| run.plan.notes.contains(note));
    whole.plan.notes.retain(of_all);
    whole.plan.notes.push(format!(
        "{} of this experiment are joined, {} planned in each: {}. The intervals of ratios have in them what differs from run to run; those of single figures and of \
         exponents have not.",
        counted(runs.len(), "run"),
        counted(each as usize, "block"),
        moments.join(", ")
    ));
    // Profiles, and what was measured again, have numbers after those of the plan.
    let mut further = whole.plan.blocks;
    for (number, run) in (0..).zip(runs) {
        let last = run.trials.iter().map(|trial| trial.block + 1).max();
        let moved = |block: u32| match block < each {
            true => number * each + block,
            false => further + block - each,
        };
        add(&mut whole, run, number, moved);
        further += last.unwrap_or(0).saturating_sub(each);
    }
    Ok(whole)
}

/// Why a run cannot be joined with the first.
fn differs(first: &Run, run: &Run) -> Option<String> {
    let (own, other) = (&first.plan, &run.plan);
    let blocks = run.trials.iter().map(|trial| trial.block);
    if let Some(block) = blocks
        .chain([other.blocks])
        .find(|block| *block >= BLOCKS_MAX)
    {
        return Some(format!("has a block {block}, which no run has"));
    }
    if own.experiment_sha256 != other.experiment_sha256 {
        return Some("is of another experiment, or of another state of its file".to_owned());
    }
    if own.quick || other.quick {
        return Some("is a quick run, or the first is: a first look is not joined".to_owned());
    }
    if own.method != other.method || place(&first.environment) != place(&run.environment) {
        return Some("was made on another machine, or by another method".to_owned());
    }
    let is_same = |(own, other): (&PlannedSubject, &PlannedSubject)| state(own) == state(other);
    let mut both = own.subjects.iter().zip(&other.subjects);
    if let Some((changed, _)) = both.find(|both| !is_same(*both)) {
        return Some(format!(
            "has another state of {}: compare them (prony compare)",
            changed.id
        ));
    }
    if asked(own) != asked(other) {
        return Some("measured other cells, or on other cores".to_owned());
    }
    (times(own) != times(other)).then(|| {
        let [own, other] = [times(own), times(other)];
        format!("has {other}; the first has {own}. Say --blocks, --duration, --warmup and --visits in all: a budget chooses anew")
    })
}

/// What a subject was built from, and says that it is.
fn state(subject: &PlannedSubject) -> impl PartialEq + use<'_> {
    let files = (&subject.build_key, &subject.files_sha256);
    (&subject.id, files, &subject.start, &subject.version)
}

/// What of a plan is the same in runs that can be joined.
fn asked(plan: &Plan) -> impl PartialEq + use<'_> {
    let mut workloads = plan.workloads.clone();
    for source in workloads.iter_mut().filter_map(|w| w.source.as_mut()) {
        // Where its files lay; what is in them stands beside it.
        source.dir.clear();
    }
    (&plan.cells, workloads, &plan.settings, &plan.cores)
}

/// How often and for how long is measured: with the run for a unit all are to weigh the same.
fn times(plan: &Plan) -> String {
    let visits = plan.visits.as_ref();
    let visits = visits.map_or("no visits".to_owned(), |visits| {
        format!("visits of {}", Nanos(visits.length_ns))
    });
    format!(
        "{} with windows of {}, {visits} and {} of warm-up",
        counted(plan.blocks as usize, "block"),
        Nanos(plan.duration_ns),
        Nanos(plan.warmup_ns)
    )
}

/// Adds what `run`, the one of this number, has measured: each block as the one that it is `moved` to.
fn add(whole: &mut Run, mut run: Run, number: u32, moved: impl Fn(u32) -> u32) {
    // Files have the same names in each run directory.
    let named = |name: String| format!("{number}/{name}");
    for trial in &mut run.trials {
        trial.block = moved(trial.block);
        whole.plan.joined.insert(trial.block, number);
        trial.histogram = trial.histogram.take().map(named);
        if let Some(profile) = &mut trial.profile {
            profile.folded = profile.folded.take().map(named);
        }
    }
    let histograms = run.histograms.into_iter();
    let histograms = histograms.map(|(name, of)| (named(name), of));
    whole.histograms.extend(histograms);
    let profiles = run.profiles.into_iter();
    let profiles = profiles.map(|(name, of)| (named(name), of));
    whole.profiles.extend(profiles);
    whole.trials.append(&mut run.trials);
    whole.plan.order.append(&mut run.plan.order);
}
