//! `prony run`: an experiment from its file to its document.
//!
//! ```text
//! read ──> plan ──> build ──> settle ──> trials ──> document
//! ```

pub mod again;
pub mod builds;
pub mod code;
mod folder;
mod forecast;
mod kept;
mod live;
mod pilot;
mod progress;
mod warm_up;
pub mod words;

use std::env;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, anyhow, bail};
use prony_base::Nanos;
use prony_lab::build::source::Revisions;
use prony_lab::build::{self, BuildContext};
use prony_lab::doctor::{self, Tree};
use prony_lab::environment::{self, Given};
use prony_lab::experiment::Experiment;
use prony_lab::launch::{self, Wanted};
use prony_lab::network;
use prony_lab::plan::{self, Beside, Facts, PlanError};
use prony_lab::profile::Means;
use prony_lab::run::{Options, Wrk};
use prony_lab::store;
use prony_lab::subject::{self, Subject};
use prony_lab::supervise::{self, Interrupt, Offer, SupervisedLauncher};
use prony_load::target;
use prony_program::sibling::SYSTEMS;
use prony_record::{Environment, Plan, PlannedSource, Source, layout};
use serde_json::json;

use crate::cause;
use crate::home::{FoundExperiment, Home};
use crate::report::{self, Rendering};
use crate::signals::interruption;
use crate::terminal::colour;
use crate::{Ending, Streams};
use builds::{Built, not_run_line};
pub use folder::next_free;
use forecast::Forecast;
use live::LivePage;
use progress::Bar;
use words::{ByWrk, OWNED, RunWords};

/// What a trial costs beside warm-up and window, for the estimate before a run:
/// starting, verifying, stopping. During the run the estimate is of measured lengths.
const PER_TRIAL: Nanos = Nanos::from_millis(1_200);
/// Version of what `--dry-run --json` prints.
const DRY_SCHEMA: u32 = 1;
const INTERRUPTED_BUILDING: &str = "prony: interrupted while building: nothing was measured";

/// How a run comes about.
enum Course {
    /// As it is asked for: where it is to reach something, by a pilot.
    Asked,
    /// It is the pilot of another one.
    Pilot,
    /// A pilot chose its warm-up, blocks and windows; these notes of the plan say so.
    Chosen(Vec<String>),
}

/// Runs `prony run`.
pub fn run(words: &RunWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    whole(words, &Course::Asked, streams)
}

fn whole(words: &RunWords, course: &Course, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    refuse_url(&words.experiment)?;
    let mut home = match &words.home {
        Some(home) => home.clone(),
        None => Home::find(streams.err)?,
    };
    home.only_built = words.built;
    let found = home.experiment(&words.experiment)?;
    kept::check(words, &found.path)?;
    let interrupted = interruption()?;
    // Git needs no namespace of its own: what can be isolated here is asked for when something is measured.
    let launcher = SupervisedLauncher::new(home.prony.clone(), Wanted::default());
    let originals = build::source::originals();
    let context = BuildContext {
        cache: &home.cache,
        originals: originals.as_deref(),
        prony: &home.prony,
        kept: home.builds_kept,
        cancel: &interrupted,
        only_kept: false,
    };
    let revisions = Revisions::new(&context, &launcher);
    let Some((experiment, subjects)) = read(words, &found, &home, &revisions, streams)? else {
        return Ok(Ending::Usage);
    };
    check_targets(&subjects, words.yes_i_own_this_host)?;
    measured(
        (words, course),
        (&experiment, &subjects),
        &home,
        &interrupted,
        streams,
    )
}

/// What was read, planned, built, measured and rendered.
fn measured(
    (words, course): (&RunWords, &Course),
    (experiment, subjects): (&Experiment, &[Subject]),
    home: &Home,
    interrupted: &Arc<AtomicBool>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let offer = supervise::offer(&home.prony).context("no trial can be started on this machine")?;
    let mut planned = match plan(words, experiment, subjects, home, &offer)? {
        Ok(planned) => planned,
        Err(wrong) => return without_plan(&wrong, streams),
    };
    let aim = pilot::aim(words, experiment.run.aim);
    if let Course::Pilot = course {
        // It is to say how figures vary: a profile is in none, and none is to be held against what is required.
        planned.profile = None;
        planned.workloads.iter_mut().for_each(|w| w.require.clear());
    }
    if words.dry_run {
        planned.notes.extend(aim.map(pilot::decides));
        return dry(words, &planned, subjects, streams);
    }
    let own = warm_up::asked(words, &experiment.run, &planned);
    match (course, aim) {
        (Course::Asked, Some(aim)) => return pilot::run(words, aim, own, &planned, streams),
        (Course::Chosen(notes), _) => planned.notes.extend(notes.iter().cloned()),
        _ => {}
    }
    writeln!(streams.err, "{}", said_before(words, &planned).join("\n"))?;
    let built = builds::build(planned, subjects, home, &offer, interrupted, streams)?;
    let Some(Built { plan, .. }) = &built else {
        writeln!(streams.err, "{INTERRUPTED_BUILDING}")?;
        return Ok(Ending::Interrupted);
    };
    if plan.cells.is_empty() {
        return nothing_is_left(plan, streams);
    }
    let dir = folder::choose(words)?;
    let environment = machine(plan, experiment, subjects, &offer, home)?;
    writeln!(streams.err, "  who runs what: {}", launch::who_runs_what())?;
    if environment.driver != "ring" {
        writeln!(streams.err, "  the load runs on {}", environment.driver)?;
    }
    let mut live = live_page(words, course, plan, &dir, streams)?;
    let measured = measure(
        words,
        course,
        plan,
        environment,
        home,
        &offer,
        &dir,
        live.as_mut(),
        interrupted,
        streams,
    );
    let finished = measured.and_then(|measured| Ok((measured, report::render_into(&dir)?)));
    live.into_iter().for_each(LivePage::end);
    if let Err(error) = &finished {
        say_what_is_kept(words, &dir, error, streams)?;
    }
    let (is_whole, rendering) = finished?;
    say_done(words, &dir, &rendering, streams)?;
    if !is_whole {
        say_interrupted(words, course, &dir, streams)?;
        return Ok(Ending::Interrupted);
    }
    Ok(rendering.ending())
}

fn nothing_is_left(plan: &Plan, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let missing = not_run(plan).join("\n");
    writeln!(streams.err, "{missing}\nprony: nothing is left to measure")?;
    Ok(Ending::Invalid)
}

/// The page that shows the run, where one is asked for; nothing of a pilot is a result.
fn live_page(
    words: &RunWords,
    course: &Course,
    plan: &Plan,
    dir: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<LivePage>> {
    match course {
        Course::Pilot => Ok(None),
        _ if !words.open => Ok(None),
        _ => LivePage::start(plan, dir, streams).map(Some),
    }
}

/// What is to be done with a run that the user ended.
fn say_interrupted(
    words: &RunWords,
    course: &Course,
    dir: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let hint = match course {
        Course::Pilot => "during the pilot: there is no result".to_owned(),
        _ => format!("to continue it:\n  {}", again::resuming(words, dir)),
    };
    Ok(writeln!(streams.err, "prony: interrupted; {hint}")?)
}

/// After the machine has refused something in the middle of a run.
fn say_what_is_kept(
    words: &RunWords,
    dir: &Path,
    error: &anyhow::Error,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    if cause::ending(error) == Ending::Failed && dir.join(layout::PLAN).exists() {
        let again = again::resuming(words, dir);
        writeln!(
            streams.err,
            "prony: what was measured is kept; to continue when this is fixed:\n  {again}"
        )?;
    }
    Ok(())
}

/// Nothing that can run here is no mistake in the words or the file.
fn without_plan(wrong: &PlanError, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    match wrong {
        PlanError::InFile(wrong) => streams.err.write_all(wrong.render(colour()).as_bytes())?,
        _ => writeln!(streams.err, "prony: {wrong}")?,
    }
    Ok(match wrong {
        PlanError::NothingRuns { .. } => Ending::Invalid,
        _ => Ending::Usage,
    })
}

/// Reads the experiment and its subjects; what is wrong with them is printed.
fn read(
    words: &RunWords,
    found: &FoundExperiment,
    home: &Home,
    revisions: &Revisions<'_>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<(Experiment, Vec<Subject>)>> {
    let read = Experiment::load_as(&found.path, &found.shown).map_err(|wrong| vec![wrong]);
    let read = read.and_then(|mut experiment| {
        let read = experiment.read_sources(words.files_anywhere);
        read.map(|()| experiment)
    });
    let experiment = match read {
        Ok(mut experiment) => {
            for asked in &words.revision {
                let taken = experiment.take_at(&asked.subject, &asked.revision);
                taken.map_err(|why| anyhow!("--revision {asked}: {why}"))?;
            }
            if !experiment.warnings.is_empty() {
                let warnings = experiment.diagnoses(experiment.warnings.clone());
                streams
                    .err
                    .write_all(warnings.render_warnings(colour()).as_bytes())?;
            }
            experiment
        }
        Err(wrong) => {
            for wrong in wrong {
                streams.err.write_all(wrong.render(colour()).as_bytes())?;
            }
            return Ok(None);
        }
    };
    match subject::load_all_at(&experiment, &home.subjects, revisions) {
        Ok(subjects) => Ok(Some((experiment, subjects))),
        Err(wrong) => {
            for wrong in wrong {
                streams.err.write_all(wrong.render(colour()).as_bytes())?;
            }
            Ok(None)
        }
    }
}

fn refuse_url(typed: &Path) -> anyhow::Result<()> {
    if let Some(url) = typed.to_str().filter(|path| is_url(path)) {
        bail!(
            "`{url}` is a URL, and `prony run` takes an experiment's file; to drive a URL: prony load {}; to \
             measure it beside others, name it in an experiment: [[subject]] with url = \"http://HOST:PORT\"",
            again::quoted(url)
        );
    }
    Ok(())
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
}

/// Servers that already run may be anywhere: load goes only to what is the user's.
fn check_targets(subjects: &[Subject], owned: bool) -> anyhow::Result<()> {
    for subject in subjects {
        if let Source::Url { url } = &subject.source {
            let target = target::read(url)?;
            let addresses = (target.host.as_str(), target.port).to_socket_addrs();
            let addresses = addresses.with_context(|| format!("cannot look up {}", target.host))?;
            let addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
            target::check(&target.host, &addresses, owned)?;
        }
    }
    Ok(())
}

/// What is to be done, or why there is nothing.
fn plan(
    words: &RunWords,
    experiment: &Experiment,
    subjects: &[Subject],
    home: &Home,
    offer: &Offer,
) -> anyhow::Result<Result<Plan, PlanError>> {
    let path = env::var("PATH").unwrap_or_default();
    let originals = build::source::originals();
    let facts = Facts::gather(
        subjects,
        &path,
        originals.as_deref(),
        offer.isolation.network_namespace,
    )
    .with_settings(experiment)
    .with_networks(experiment, |n| {
        network::refusal(n, &home.prony, offer.wanted)
    });
    let options = plan::Options {
        quick: words.quick,
        only: words.only.clone(),
        blocks: words.blocks,
        duration: words.duration,
        warmup: words.warmup,
        visits: words.visits,
        aims: pilot::aim(words, experiment.run.aim).is_some(),
        profile: words.profile,
        cores: words.cores.clone(),
        seed: words.seed,
        command: words.command(),
    };
    Ok(match &words.resume {
        Some(dir) => Ok(resumed(dir, experiment, &options)?),
        None => plan::plan(experiment, subjects, &facts, &options),
    })
}

/// What is said of a plan before anything is done: how much it is, for how long, what a reader must know of
/// it, what is not run.
fn said_before(words: &RunWords, plan: &Plan) -> Vec<String> {
    let mut lines = vec![
        plan.title.to_string(),
        format!(
            "  {}",
            plan::estimate_line(plan, PER_TRIAL, beside(words, plan))
        ),
    ];
    let visits = plan::lines_on_visits(plan).into_iter();
    lines.extend(visits.map(|line| format!("  {line}")));
    let refused = means(plan).map_or_else(Vec::new, |means| means.refused());
    lines.extend(refused.iter().map(|why| format!("  profile: {why}")));
    lines.extend(plan.notes.iter().map(|note| format!("  note: {note}")));
    lines.extend(not_run(plan));
    lines
}

/// Whether the cells of the reference are to be measured by wrk, too.
fn is_cross_checked(words: &RunWords) -> bool {
    words.cross_check != Some(ByWrk::No)
}

/// What this machine does beside the trials that are measured.
fn beside(words: &RunWords, plan: &Plan) -> Beside {
    let on_path = || env::var("PATH").is_ok_and(|path| plan::on_path("wrk", &path));
    Beside {
        wrk: is_cross_checked(words) && on_path(),
        passes: means(plan).map_or(0, |means| means.passes().len() as u64),
    }
}

/// What this machine permits to profile with, where the plan says that servers are.
fn means(plan: &Plan) -> Option<Means> {
    let path = env::var_os("PATH").unwrap_or_default();
    plan.profile.as_ref().map(|_| Means::find(&path))
}

/// `--dry-run`: the plan, and nothing else.
fn dry(
    words: &RunWords,
    plan: &Plan,
    subjects: &[Subject],
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let built = |s: &&prony_record::PlannedSubject| {
        let mut known = subjects.iter().filter(|known| known.id == s.id);
        known.any(|known| known.build.is_some())
    };
    let built: Vec<&str> = plan::processes(plan)
        .filter(built)
        .map(|subject| subject.id.as_str())
        .collect();
    if words.json {
        let trials = plan::trials(plan, beside(words, plan));
        let value = json!({
            "schema": DRY_SCHEMA,
            "trials": trials.measured,
            "trials_by_wrk": trials.by_wrk,
            "trials_to_profile": trials.profiled,
            "estimate_ns": plan::estimate(plan, PER_TRIAL, beside(words, plan)).0,
            "built_first": built,
            "plan": plan,
        });
        writeln!(streams.out, "{}", serde_json::to_string_pretty(&value)?)?;
        return Ok(Ending::Done);
    }
    let mut lines = said_before(words, plan);
    let (window, warmup) = (Nanos(plan.duration_ns), Nanos(plan.warmup_ns));
    lines.push(format!(
        "  windows of {window} after {warmup} of warm-up; seed {}; reference: {}",
        plan.seed,
        plan.reference.as_deref().unwrap_or("none")
    ));
    let cores = plan::line_on_cores(&plan.cores);
    lines.extend(cores.map(|line| format!("  {line}")));
    lines.extend(searches(plan));
    lines.extend(users(plan));
    lines.extend(plan.cells.iter().map(|cell| format!("  cell: {}", cell.id)));
    if !built.is_empty() {
        lines.push(format!(
            "  built first, unless it has been or --built leaves it out; the time above is without that: {}",
            built.join(", ")
        ));
    }
    writeln!(streams.out, "{}", lines.join("\n"))?;
    Ok(Ending::Done)
}

/// What each trial of a workload looks for after its window.
fn searches(plan: &Plan) -> impl Iterator<Item = String> {
    let said = |w: &prony_record::PlannedWorkload| {
        let search = w.find_max.as_ref()?;
        let (name, objective, step) = (&w.name, &search.objective, Nanos(search.step_ns));
        Some(format!(
            "  {name}: after each window the highest rate that keeps {objective}, in about 36 steps of {step}"
        ))
    };
    plan.workloads.iter().filter_map(said)
}

/// What the users of a workload do.
fn users(plan: &Plan) -> impl Iterator<Item = String> {
    let said = |w: &prony_record::PlannedWorkload| {
        w.source.as_ref()?.scenario.as_ref()?;
        Some(format!("  {}: {}", w.name, prony_report::sent(w, false)))
    };
    plan.workloads.iter().filter_map(said)
}

/// The plan of the run in `dir`, which must be of this experiment and these options.
/// It is not made anew: limits such as free memory may have moved since.
fn resumed(dir: &Path, experiment: &Experiment, options: &plan::Options) -> anyhow::Result<Plan> {
    let mut plan = store::read(dir)?.plan;
    if plan.experiment_sha256 != experiment.sha256 {
        bail!(
            "{} holds a run of another experiment, or of another version of this one",
            dir.display()
        );
    }
    for workload in &experiment.workloads {
        let name = workload.name.get_ref();
        let planned = plan.workloads.iter_mut().filter(|w| w.name == *name);
        let now = workload.source.as_ref().map(|source| &source.planned);
        for workload in planned {
            if !same_source(workload.source.as_ref(), now) {
                bail!(
                    "{} holds a run with other requests of `{name}`: a file that they are in was changed since",
                    dir.display()
                );
            }
            // The folder may have been moved.
            workload.source = now.cloned();
        }
    }
    // A run of before this word was kept is resumed with it, too.
    let same = |words: &[String]| -> Vec<String> {
        let kept = words.iter().filter(|word| *word != OWNED);
        kept.cloned().collect()
    };
    if same(&plan.command) != same(&options.command) {
        bail!(
            "{} holds the run of `prony {}`; resume it with the same words",
            dir.display(),
            words_of(&plan.command)
        );
    }
    Ok(plan)
}

/// Whether two sources send the same, wherever their files lie.
fn same_source(one: Option<&PlannedSource>, other: Option<&PlannedSource>) -> bool {
    let placeless = |of: &PlannedSource| PlannedSource {
        dir: String::new(),
        ..of.clone()
    };
    one.map(placeless) == other.map(placeless)
}

fn words_of(command: &[String]) -> String {
    let quoted: Vec<String> = command.iter().map(|word| again::quoted(word)).collect();
    quoted.join(" ")
}

/// A line for each that is not run here, with what would change it.
fn not_run(plan: &Plan) -> Vec<String> {
    plan.not_run.iter().map(not_run_line).collect()
}

fn machine(
    plan: &Plan,
    experiment: &Experiment,
    subjects: &[Subject],
    offer: &Offer,
    home: &Home,
) -> anyhow::Result<Environment> {
    let commit = env!("PRONY_COMMIT");
    // A repository around the user's cache is not that of what was unpacked there.
    let folder = &experiment.origin.folder;
    let code = (!home.is_copy(folder)).then(|| code::of_folder(folder));
    Ok(environment::collect(Given {
        prony_version: env!("CARGO_PKG_VERSION").to_owned(),
        prony_commit: commit.to_owned(),
        prony_sha256: code::of_this_program(commit),
        systems_sha256: match plan::processes(plan).any(|of| plan::needs_systems(plan, of)) {
            true => code::of_file(&SYSTEMS.beside(&home.prony)),
            false => String::new(),
        },
        code: code.flatten(),
        driver: crate::driver::in_force()?,
        software: builds::software(plan, subjects),
        facts: environment::isolation_facts(offer),
        checks: doctor::in_brief(&Tree::here()),
    }))
}

/// Does the trials. `false`: the user ended the run.
#[expect(
    clippy::too_many_arguments,
    reason = "each is one thing that the run needs, named at its only call"
)]
fn measure(
    words: &RunWords,
    course: &Course,
    plan: &Plan,
    environment: Environment,
    home: &Home,
    offer: &Offer,
    dir: &Path,
    mut live: Option<&mut LivePage>,
    interrupted: &Arc<AtomicBool>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<bool> {
    let options = Options {
        dir: dir.to_owned(),
        resume: words.resume.is_some(),
        prony: home.prony.clone(),
        wanted: offer.wanted,
        driver: crate::driver::chosen()?,
        wrk: env::var_os("PATH")
            .filter(|_| is_cross_checked(words))
            .and_then(|path| Wrk::find(&path)),
        profile: means(plan),
        // Where a time was given, all of it is planned.
        again: matches!(course, Course::Asked),
        check_only: false,
        interrupt: Interrupt::by_flag(Arc::clone(interrupted)),
    };
    let mut bar = Bar::new(plan, streams.err)?;
    let mut forecast = match course {
        Course::Chosen(_) => Forecast::of(plan, dir),
        Course::Asked | Course::Pilot => None,
    };
    let outcome = prony_lab::run::run(
        plan,
        environment,
        &options,
        &mut |event: prony_lab::run::Event<'_>| {
            bar.event(&event);
            if let Some(live) = &mut live {
                live.event(&event);
            }
            if let Some(forecast) = forecast.take_if(|of| of.is_due(&event)) {
                forecast.say(&mut bar);
            }
        },
    );
    bar.finish();
    Ok(!outcome?.interrupted && !interrupted.load(Relaxed))
}

fn say_done(
    words: &RunWords,
    dir: &Path,
    rendering: &Rendering,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    if words.json {
        write!(streams.out, "{}", rendering.summary_json)?;
        return rendering.say_missed(streams);
    }
    rendering.say(dir, streams)
}
