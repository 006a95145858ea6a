//! Builds the subjects of a plan, one after the other, and says how that went.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use indicatif::ProgressBar;
use prony_base::Untrusted;
use prony_lab::build::{self, BuildContext, BuildOutcome};
use prony_lab::plan;
use prony_lab::subject::Subject;
use prony_lab::supervise::{Offer, SupervisedLauncher};
use prony_program::sibling::SYSTEMS;
use prony_record::{NotRun, Plan, Software};

use crate::Streams;
use crate::home::Home;

/// A plan whose subjects are built. The builds are not removed, by another Prony either,
/// as long as this lives.
pub struct Built {
    /// The rest of the plan.
    pub plan: Plan,
    _outcomes: Vec<(String, BuildOutcome)>,
}

/// Builds what the plan needs, or with [`Home::only_built`] takes what has been built, and settles it. `None`: the user ended it.
pub fn build(
    plan: Plan,
    subjects: &[Subject],
    home: &Home,
    offer: &Offer,
    interrupted: &Arc<AtomicBool>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Built>> {
    let launcher = SupervisedLauncher::new(home.prony.clone(), offer.wanted);
    let mut context = BuildContext {
        only_kept: true,
        ..home.build_context(interrupted)
    };
    let mut wanted: BTreeSet<&str> = plan::processes(&plan).map(|of| of.id.as_str()).collect();
    // A subject that is a peer, too, is built once.
    let refused = without_systems(&plan);
    let first = |subject: &Subject| match refused.get(&subject.id) {
        Some(failed) => BuildOutcome::Failed(failed.clone()),
        None => build::build(subject, &context, &launcher),
    };
    let mut outcomes: Vec<(&Subject, BuildOutcome)> = subjects
        .iter()
        .filter(|subject| wanted.remove(subject.id.as_str()))
        .map(|subject| (subject, first(subject)))
        .collect();
    if !home.only_built {
        say_due(&outcomes, &context, streams)?;
        context.only_kept = false;
    }
    for (subject, outcome) in &mut outcomes {
        if is_due(outcome) && !home.only_built {
            let spinner = spinner(&subject.id);
            *outcome = build::build(subject, &context, &launcher);
            spinner.finish_and_clear();
        }
        if interrupted.load(Relaxed) {
            return Ok(None);
        }
        match outcome {
            BuildOutcome::Ready(ready) if ready.cached || ready.dir.is_empty() => {}
            BuildOutcome::Ready(_) => writeln!(streams.err, "  built {}", subject.id)?,
            BuildOutcome::Failed(failed) => {
                if failed.due {
                    failed.reason += "; without --built it is built first";
                }
                let missing = failed.not_run(&subject.id);
                writeln!(streams.err, "{}", not_run_line(&missing))?
            }
        }
    }
    let named = outcomes.into_iter();
    let outcomes: Vec<(String, BuildOutcome)> = named
        .map(|(subject, outcome)| (subject.id.clone(), outcome))
        .collect();
    // What the builds change, such as a reference that cannot be built, is printed before anything is measured.
    let known = plan.notes.len();
    let plan = plan::settle(plan, &outcomes);
    for note in &plan.notes[known..] {
        writeln!(streams.err, "  note: {note}")?;
    }
    Ok(Some(Built {
        plan,
        _outcomes: outcomes,
    }))
}

/// The subjects that need the program `prony-systems` where it cannot be had, by their ids, and why; `./prony` builds it.
fn without_systems(plan: &Plan) -> BTreeMap<String, build::Failed> {
    let needing = plan::processes(plan).filter(|subject| plan::needs_systems(plan, subject));
    let ids: Vec<String> = needing.map(|subject| subject.id.clone()).collect();
    if ids.is_empty() {
        return BTreeMap::new();
    }
    let Err(error) = SYSTEMS.path() else {
        return BTreeMap::new();
    };
    let text = format!("{error:#}");
    let (why, remedy) = text.split_once("; ").unwrap_or((&text, ""));
    let failed = build::Failed {
        remedy: remedy.to_owned(),
        ..build::Failed::new(why)
    };
    ids.into_iter().map(|id| (id, failed.clone())).collect()
}

fn is_due(outcome: &BuildOutcome) -> bool {
    matches!(outcome, BuildOutcome::Failed(failed) if failed.due)
}

/// Prints what is built before anything is measured, and how long that took last time.
fn say_due(
    outcomes: &[(&Subject, BuildOutcome)],
    context: &BuildContext<'_>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let due = outcomes.iter().filter(|(_, outcome)| is_due(outcome));
    let each = due.map(|(subject, _)| match build::last_time(subject, context) {
        Some(took) => format!("{} ({took} last time)", subject.id),
        None => format!("{} (time not known)", subject.id),
    });
    let each: Vec<String> = each.collect();
    if !each.is_empty() {
        writeln!(streams.err, "  built first: {}", each.join(", "))?;
    }
    Ok(())
}

/// The line about something that is not run: why, and what would change that.
pub fn not_run_line(missing: &NotRun) -> String {
    let remedy = match missing.remedy.as_str() {
        "" => String::new(),
        remedy => format!("; to change it: {remedy}"),
    };
    format!("  not run: {}: {}{remedy}", missing.what, missing.reason)
}

fn spinner(id: &str) -> ProgressBar {
    let spinner = ProgressBar::no_length();
    spinner.set_message(format!(
        "building {} (once for each change of its sources)",
        Untrusted(id)
    ));
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}

/// The tools that the subjects of a plan are built and run with, by what they say of themselves.
pub fn software(plan: &Plan, subjects: &[Subject]) -> Vec<Software> {
    let planned = |subject: &&Subject| {
        let mut all = plan::processes(plan);
        all.any(|planned| planned.id == subject.id)
    };
    let tools: BTreeSet<&str> = subjects
        .iter()
        .filter(planned)
        .flat_map(|subject| &subject.needs.commands)
        .map(String::as_str)
        .collect();
    let software = tools.into_iter().filter_map(|tool| {
        Some(Software {
            name: tool.to_owned(),
            version: version(tool)?,
        })
    });
    software.collect()
}

/// The first line that a tool prints when asked for its version.
fn version(tool: &str) -> Option<String> {
    let ask = match tool {
        "go" => "version",
        "nginx" | "lighttpd" | "haproxy" | "wrk" => "-v",
        "ab" => "-V",
        _ => "--version",
    };
    let output = Command::new(tool).arg(ask).output().ok()?;
    let text = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    let line = String::from_utf8_lossy(&text)
        .lines()
        .next()?
        .trim()
        .to_owned();
    (!line.is_empty()).then_some(line)
}
