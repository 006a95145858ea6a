//! Runs of one experiment that were made at different times, as one run.
//!
//! Their blocks are added. Which run each is of stays known ([`Plan::joined`]), because what differs from one run to the next is in no
//! difference between the blocks of one ([`prony_stats::JoinedRuns`]).
//!
//! Not for: two states of the code, which stand beside each other ([`compare`](crate::compare)).

use prony_base::{Nanos, counted};
use prony_record::{Plan, PlannedSubject};

use crate::Run;
use crate::log::place;

/// `runs` as one, with the plan, the machine and the analysis of the first.
///
/// # Errors
/// One did not do the same as the first: its place among them, and why in words that follow its name.
pub fn joined(runs: Vec<Run>) -> Result<Run, (usize, String)> {
    let Some(first) = runs.first() else {
        return Ok(Run::default());
    };
    for (number, run) in runs.iter().enumerate() {
        if let Some(why) = differs(first, run) {
            return Err((number, why));
        }
    }
    let blocks: u32 = runs.iter().map(|run| run.plan.blocks).sum();
    let mut whole = Run {
        plan: first.plan.clone(),
        environment: first.environment.clone(),
        analysis: first.analysis.clone(),
        ..Run::default()
    };
    whole.plan.blocks = blocks;
    whole.plan.order.clear();
    whole.plan.notes.push(format!(
        "{} of this experiment are joined, {} in all. The intervals of ratios have in them what differs from run to run; those of single figures have not.",
        counted(runs.len(), "run"),
        counted(blocks as usize, "block")
    ));
    // Profiles, and what was measured again, have numbers after those of the plan.
    let (mut planned, mut further) = (0, blocks);
    for (number, run) in (0..).zip(runs) {
        let own = run.plan.blocks;
        let all = run.trials.iter().map(|trial| trial.block + 1).max();
        let all = all.unwrap_or(own).max(own);
        let moved = |block: u32| match block < own {
            true => planned + block,
            false => further + block - own,
        };
        add(&mut whole, run, number, moved);
        (planned, further) = (planned + own, further + all - own);
    }
    Ok(whole)
}

/// Why a run cannot be joined with the first.
fn differs(first: &Run, run: &Run) -> Option<String> {
    let (own, other) = (&first.plan, &run.plan);
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
    let times = |plan: &Plan| (plan.duration_ns, plan.warmup_ns, plan.visits.clone());
    (times(own) != times(other)).then(|| {
        let [own, other] = [own, other].map(|plan| Nanos(plan.duration_ns));
        format!("has windows of {other}, or a warm-up or visits, that are not those of the first, {own}: say --blocks and --duration in both")
    })
}

/// What a subject was built from, and says that it is.
fn state(subject: &PlannedSubject) -> impl PartialEq + use<'_> {
    let files = (&subject.build_key, &subject.files_sha256);
    (&subject.id, files, &subject.start, &subject.version)
}

/// What of a plan is the same in runs that can be joined.
fn asked(plan: &Plan) -> impl PartialEq + use<'_> {
    (&plan.cells, &plan.workloads, &plan.settings, &plan.cores)
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
