//! A run that is given a time, or a precision: what is tried first decides on blocks and windows, then comes the run.
//!
//! ```text
//! warm-up ──────────> what a trial costs ────────────────────> blocks and windows, said beforehand ──> run
//!          └> pilot ──> how figures vary, what a trial costs ─┘
//! ```
//!
//! A time is spent by what starting costs, and by how blocks of other servers differed: a pilot would take half of a minute.
//! There is one where a precision is asked for, and for what is no server.
//!
//! The pilot is a run of its own in the folder `pilot` of the run directory, the trials that choose the warm-up one in
//! `warm-up`. Nothing of it is in any figure, and nothing
//! that the run finds ends it earlier or later.

use std::path::Path;

use prony_base::typed::duration;
use prony_base::{Nanos, counted};
use prony_lab::experiment::Aim;
use prony_lab::plan;
use prony_record::{Outcome, Plan, layout};
use prony_report::Run;
use prony_report::pilot::{Pilot, by_first_trials, pilot};
use prony_stats::{Allocation, BLOCKS_INTERVAL_MIN, WINDOWS};

use super::warm_up::{self, ChosenWarmUp};
use super::words::{ByWrk, RunWords, describe, percent, typed};
use super::{Course, PER_TRIAL, beside, folder, forecast, run_quietly_as};
use crate::report;
use crate::{Ending, Streams};

/// Blocks of a pilot: the fewest whose differences have a deviation that is worth the name.
const BLOCKS: u32 = 3;
/// Windows of a pilot; shorter where the experiment's own are.
const WINDOW: Nanos = Nanos::from_secs(1);

/// The aim of `words` or the experiment, where neither says blocks or windows on the command line.
pub fn aim(words: &RunWords, of_experiment: Option<Aim>) -> Option<Aim> {
    let budget = words.budget.map(Aim::Budget);
    let typed = budget.or(words.precision.map(Aim::Precision));
    let is_fixed =
        words.quick || words.blocks.is_some() || words.duration.is_some() || words.resume.is_some();
    typed.or(of_experiment.filter(|_| !is_fixed))
}

/// The note of a dry run about an aim.
pub fn decides(aim: Aim) -> String {
    format!(
        "a pilot chooses other blocks and windows for {}, so that the time is another, too",
        describe(aim)
    )
}

/// A pilot of `planned`, then the run that it decides on. `requested`: the warm-up that is asked for.
pub fn run(
    words: &RunWords,
    aim: Aim,
    requested: Option<Nanos>,
    planned: &Plan,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    if let Some(why) = cannot_be_met(aim, requested, planned) {
        writeln!(streams.err, "prony: {why}")?;
        return Ok(Ending::Usage);
    }
    let dir = folder::choose(words)?;
    let warmed = match warmed_up(words, aim, requested, planned, &dir, streams)? {
        Ok(warmed) => warmed,
        Err(ending) => return Ok(ending),
    };
    let words = &RunWords {
        warmup: warmed.length.or(words.warmup),
        // The time is for the comparison.
        cross_check: words.cross_check.or(Some(ByWrk::No)),
        ..words.clone()
    };
    let by_starts = warmed.pilot.filter(|_| matches!(aim, Aim::Budget(_)));
    let is_piloted = by_starts.is_none();
    let mut pilot = match by_starts {
        Some(pilot) => *pilot,
        None => match first(words, planned, &dir, streams)? {
            Ok(pilot) => pilot,
            Err(ending) => return Ok(ending),
        },
    };
    pilot.spent_s += warmed.spent_s;
    let chosen = match choose(&pilot, aim, words, planned) {
        Ok(chosen) => chosen,
        Err(why) => {
            writeln!(streams.err, "prony: {why}")?;
            return Ok(Ending::Usage);
        }
    };
    let window = Nanos((chosen.window_s * 1e9).round() as u64);
    let window = (planned.duration_ns > 0).then_some(window);
    let what = words_of(&chosen, window, planned);
    let minutes = (chosen.seconds / 60.0).ceil();
    let (by, expected) = grounds(&chosen, is_piloted);
    writeln!(
        streams.err,
        "Chosen: {what}, about {minutes} min{expected}."
    )?;
    let note = format!(
        "{what} were chosen for {}, before the first of them, by {by}.",
        describe(aim),
    );
    let words = RunWords {
        blocks: Some(chosen.blocks as u32),
        duration: window,
        out: Some(dir),
        ..fixed(words, planned)
    };
    let notes = [note, warmed.note];
    let notes = notes.into_iter().filter(|note| !note.is_empty()).collect();
    super::run_as(&words, &Course::Chosen(notes), streams)
}

/// Looks at each cell of `planned`, and chooses the warm-up. `Err` with how that ended, where the user ended it or nothing
/// can be measured.
fn warmed_up(
    words: &RunWords,
    aim: Aim,
    requested: Option<Nanos>,
    planned: &Plan,
    dir: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Result<ChosenWarmUp, Ending>> {
    let from_the_start = match warm_up::trials(words, aim, planned, requested, dir) {
        Ok(from_the_start) => from_the_start,
        Err(chosen) => return Ok(Ok(chosen)),
    };
    writeln!(
        streams.err,
        "Finding the warm-up that each server needs (not counted):"
    )?;
    let ending = run_quietly_as(&from_the_start, &Course::Pilot, streams)?;
    let there = dir.join(layout::WARM_UP);
    // Where nothing can be measured there is no run either.
    if matches!(ending, Ending::Interrupted | Ending::Usage) || !there.join(layout::PLAN).exists() {
        return Ok(Err(ending));
    }
    let (run, _) = report::read(&there)?;
    if run
        .trials
        .iter()
        .all(|trial| trial.outcome != Outcome::Measured)
    {
        return nothing_measured(&run, &there, streams).map(Err);
    }
    let Some(found) = prony_report::warm_up::warm_up(&run) else {
        return Ok(Ok(ChosenWarmUp::default()));
    };
    let chosen = warm_up::decided(&found, requested);
    writeln!(streams.err, "{}", chosen.note)?;
    let length = chosen.length.unwrap_or_default();
    Ok(Ok(ChosenWarmUp {
        pilot: by_first_trials(&run, planned, length).map(Box::new),
        ..chosen
    }))
}

/// Runs the pilot itself, whose figures are no result. `Err` with how that ended, where the user ended it or nothing follows from it.
fn first(
    words: &RunWords,
    planned: &Plan,
    dir: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Result<Pilot, Ending>> {
    let of_pilot = RunWords {
        blocks: Some(BLOCKS),
        cross_check: Some(ByWrk::No),
        duration: (planned.duration_ns > 0).then(|| WINDOW.min(Nanos(planned.duration_ns))),
        out: Some(dir.join(layout::PILOT)),
        json: false,
        ..fixed(words, planned)
    };
    writeln!(streams.err, "Pilot run (not counted):")?;
    let ending = run_quietly_as(&of_pilot, &Course::Pilot, streams)?;
    if matches!(ending, Ending::Interrupted | Ending::Usage) {
        return Ok(Err(ending));
    }
    let (run, _) = report::read(&dir.join(layout::PILOT))?;
    if let Some(pilot) = pilot(&run, cells_of_run(&run.plan, planned)) {
        return Ok(Ok(pilot));
    }
    nothing_measured(&run, &dir.join(layout::PILOT), streams).map(Err)
}

/// Says why a run in `dir`, by which another was to be planned, measured too little.
fn nothing_measured(run: &Run, dir: &Path, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let first = run.trials.iter().find_map(|trial| match &trial.outcome {
        Outcome::Failed { reason, .. } => Some(format!(": {}: {reason}", trial.cell)),
        _ => None,
    });
    writeln!(
        streams.err,
        "prony: too little could be measured to plan the run by{}; more is in {}",
        first.unwrap_or_default(),
        dir.join(layout::DOCUMENT).display()
    )?;
    Ok(Ending::Invalid)
}

/// `14 blocks with windows of 2s`, or `14 blocks with 10 visits of each server, 2s in all`.
fn words_of(chosen: &Allocation, window: Option<Nanos>, planned: &Plan) -> String {
    let blocks = counted(chosen.blocks, "block");
    let visits = window.and_then(|window| plan::visits_in(planned, window));
    match window {
        None => blocks,
        Some(window) if visits.is_some() => format!(
            "{blocks} with {} of each server, {} in all",
            counted(visits.unwrap_or_default(), "visit"),
            duration::typed(window)
        ),
        Some(window) => format!("{blocks} with windows of {}", duration::typed(window)),
    }
}

/// The grounds of the choice, for the document, and what can be expected of it.
fn grounds(chosen: &Allocation, is_piloted: bool) -> (String, String) {
    let blocks = counted(BLOCKS, "block");
    if is_piloted {
        let expected = format!(
            ": differences in rate of about {} or more would be claimed by 80 % of such runs (a pilot of {blocks} tells this roughly: up to {})",
            percent(chosen.detectable.0),
            percent(chosen.detectable_max.0)
        );
        let document = Path::new(layout::PILOT).join(layout::DOCUMENT);
        let by = format!(
            "a pilot of {blocks} ({}), of which nothing is in any figure{expected}",
            document.display()
        );
        return (by, expected);
    }
    // How servers vary is not known before the run.
    let later = forecast::after(chosen.blocks as u32)
        .map(|after| format!("; how small a difference it will tell is said after {after} blocks"));
    let by = "what starting took and how rates varied in the trials that chose the warm-up";
    (by.to_owned(), later.unwrap_or_default())
}

/// `words` without what is aimed at, and with the visits that follow from that.
fn fixed(words: &RunWords, planned: &Plan) -> RunWords {
    let visits = planned.visits.as_ref();
    RunWords {
        budget: None,
        precision: None,
        visits: words
            .visits
            .or(visits.map(|visits| Nanos(visits.length_ns))),
        ..words.clone()
    }
}

/// Cells of the run: those that the pilot had after what was built, and the copies that only more blocks have.
fn cells_of_run(pilot: &Plan, planned: &Plan) -> usize {
    let copies = planned.cells.iter().filter(|cell| planned.is_copy(cell));
    pilot.cells.len() + copies.count()
}

fn choose(pilot: &Pilot, aim: Aim, words: &RunWords, planned: &Plan) -> Result<Allocation, String> {
    let design = &pilot.design;
    match aim {
        Aim::Budget(time) => {
            // What wrk measures once beside, in windows of two seconds.
            let trials = plan::trials(planned, beside(words, planned));
            let checks = trials.by_wrk as f64 * (pilot.trial_s + 1.0);
            let window_s = planned.profile.as_ref().map_or(0.0, |p| p.window_ns as f64 / 1e9);
            let profiles = trials.profiled as f64 * (pilot.trial_s + window_s);
            let beside = pilot.spent_s + checks + profiles;
            design.spend(time.as_secs_f64() - beside).ok_or_else(|| {
                too_little(time, design.least() + beside)
            })
        }
        Aim::Precision(share) => design.reach(share).ok_or_else(|| {
            format!(
                "a precision of {} would take more than a thousand blocks on this machine: ask for a lower precision, or use a quieter machine",
                percent(share)
            )
        }),
    }
}

fn too_little(budget: Nanos, least_s: f64) -> String {
    format!(
        "a budget of {} is too little: what is tried first and {BLOCKS_INTERVAL_MIN} blocks of the shortest windows, under which nothing can \
         be claimed, take {}; give that, or measure less (--only)",
        typed(budget),
        typed(Nanos::from_secs(least_s.ceil() as u64))
    )
}

/// Why a budget is refused before anything is measured: warm-ups and the shortest windows alone take longer. What starting takes is
/// estimated in what is said, and known only later.
fn cannot_be_met(aim: Aim, requested: Option<Nanos>, planned: &Plan) -> Option<String> {
    let Aim::Budget(time) = aim else { return None };
    if planned.duration_ns == 0 {
        return None;
    }
    let trials = (planned.cells.len() * BLOCKS_INTERVAL_MIN) as f64;
    let loaded_s = trials * (WINDOWS[0] + requested.unwrap_or_default().as_secs_f64());
    let starts_s = trials * PER_TRIAL.as_secs_f64();
    (time.as_secs_f64() < loaded_s).then(|| too_little(time, loaded_s + starts_s))
}

#[cfg(test)]
mod tests {
    use prony_record::{Cell, PlannedVisits};
    use prony_stats::Share;

    use super::*;

    #[test]
    fn a_budget_that_cannot_be_met_was_refused_after_a_pilot() {
        let plan = Plan {
            duration_ns: 1_000_000_000,
            warmup_ns: 800_000_000,
            cells: vec![Cell::default(); 10],
            ..Plan::default()
        };
        let own = Some(Nanos(plan.warmup_ns));
        let refused = |seconds| cannot_be_met(Aim::Budget(Nanos::from_secs(seconds)), own, &plan);
        // Sixty trials of a second at the least, and of 2.2 s by what starting takes on average.
        let said = refused(59).expect("too little");
        assert!(
            said.starts_with("a budget of 59s is too little: "),
            "{said}"
        );
        assert!(said.contains("take 132s; give that"), "{said}");
        assert_eq!(refused(61), None);
        assert_eq!(cannot_be_met(Aim::Precision(0.01), own, &plan), None);
    }

    #[test]
    fn what_was_chosen_is_said_in_windows_or_in_visits() {
        let chosen = Allocation {
            blocks: 14,
            window_s: 2.0,
            detectable: Share(0.03),
            detectable_max: Share(0.08),
            seconds: 600.0,
        };
        let window = Some(Nanos::from_secs(2));
        let mut plan = Plan::default();
        plan.cells.push(Cell::default());
        assert_eq!(words_of(&chosen, None, &plan), "14 blocks");
        let said = words_of(&chosen, window, &plan);
        assert_eq!(said, "14 blocks with windows of 2s");
        plan.visits = Some(PlannedVisits {
            length_ns: 200_000_000,
            ..PlannedVisits::default()
        });
        let said = words_of(&chosen, window, &plan);
        assert_eq!(said, "14 blocks with 10 visits of each server, 2s in all");
    }
}
