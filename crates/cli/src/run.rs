//! `prony run`: an experiment from its file to its document.
//!
//! ```text
//! read ──> plan ──> build ──> settle ──> trials ──> document
//! ```

pub mod again;
pub mod builds;
pub mod code;
mod documents;
mod folder;
mod forecast;
mod live;
mod pilot;
mod progress;
mod warm_up;
pub mod words;

use std::env;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, anyhow, bail};
use prony_base::Nanos;
use prony_lab::build::source::Revisions;
use prony_lab::doctor::{self, Tree};
use prony_lab::environment;
use prony_lab::experiment::Experiment;
use prony_lab::launch::{self, Wanted};
use prony_lab::network;
use prony_lab::plan::{self, Beside, PlanError};
use prony_lab::profile::Means;
use prony_lab::run::{Event, Options, Wrk};
use prony_lab::store;
use prony_lab::subject::{self, Subject};
use prony_lab::supervise::{self, Interrupt, Offer, SupervisedLauncher};
use prony_load::target;
use prony_program::sibling::SYSTEMS;
use prony_record::{Environment, Plan, PlannedSource, Source, layout};
use serde_json::json;

use crate::cause;
use crate::diagnoses;
use crate::home::{FoundExperiment, Home};
use crate::report;
use crate::signals::interruption;
use crate::terminal::colour;
use crate::{Ending, Streams};
use builds::{Built, not_run_line};
pub use folder::next_free;
use forecast::Forecast;
use live::LivePage;
use progress::Bar;
use words::{ByWrk, OWNED, RunWords};

/// The time of a trial beside warm-up and window, for the estimate before a run:
/// starting, verifying, stopping. During the run the estimate is of measured lengths.
const PER_TRIAL: Nanos = Nanos::from_millis(1_200);
/// Version of what `--dry-run --json` prints.
const DRY_SCHEMA: u32 = 1;
const INTERRUPTED_BUILDING: &str = "prony: interrupted while building: nothing was measured";

/// How a run comes about.
enum Course {
    /// As it is requested: where it is to reach something, by a pilot.
    AsRequested,
    /// It is the pilot of another one.
    Pilot,
    /// A pilot chose its warm-up, blocks and windows; these notes of the plan say so.
    Chosen(Vec<String>),
}

/// Runs `prony run`.
pub fn run(words: &RunWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    run_as(words, &Course::AsRequested, streams)
}

/// Runs an experiment for what it leaves in its directory: its answer is not printed.
pub fn run_quietly(words: &RunWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    run_quietly_as(words, &Course::AsRequested, streams)
}

fn run_quietly_as(
    words: &RunWords,
    course: &Course,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let (out, err) = (&mut io::sink(), &mut *streams.err);
    run_as(words, course, &mut Streams { out, err })
}

/// Runs an experiment from its file to its document.
fn run_as(words: &RunWords, course: &Course, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    refuse_url(&words.experiment)?;
    let mut home = match &words.home {
        Some(home) => home.clone(),
        None => Home::find(streams.err)?,
    };
    home.only_built = words.built;
    let found = home.experiment(&words.experiment)?;
    documents::check(words, &found.path)?;
    let interrupted = interruption()?;
    // Git needs no namespace of its own: what can be isolated here is asked for when something is measured.
    let launcher = SupervisedLauncher::new(home.prony.clone(), Wanted::default());
    let context = home.build_context(&interrupted);
    let revisions = Revisions::new(&context, &launcher);
    let Some((experiment, subjects)) = read(words, &found, &home, &revisions, streams)? else {
        return Ok(Ending::Usage);
    };
    check_targets(&subjects, words.yes_i_own_this_host)?;
    let offer = supervise::offer(&home.prony).context("no trial can be started on this machine")?;
    let run = ExperimentRun {
        words,
        course,
        experiment: &experiment,
        subjects: &subjects,
        home: &home,
        offer: &offer,
        interrupted: &interrupted,
    };
    run.run(streams)
}

/// A run whose experiment has been read.
struct ExperimentRun<'a> {
    words: &'a RunWords,
    course: &'a Course,
    experiment: &'a Experiment,
    subjects: &'a [Subject],
    home: &'a Home,
    offer: &'a Offer,
    interrupted: &'a Arc<AtomicBool>,
}

impl ExperimentRun<'_> {
    /// Plans, builds, measures and renders.
    fn run(&self, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
        let words = self.words;
        let mut planned = match self.plan()? {
            Ok(planned) => planned,
            Err(wrong) => return without_plan(&wrong, streams),
        };
        let aim = pilot::aim(words, self.experiment.run.aim);
        if let Course::Pilot = self.course {
            // It is to say how figures vary: a profile is in none, and none is to be held against what is required.
            planned.profile = None;
            planned.workloads.iter_mut().for_each(|w| w.require.clear());
        }
        if words.dry_run {
            planned.notes.extend(aim.map(pilot::decides));
            return dry(words, &planned, self.subjects, streams);
        }
        let warm_up = warm_up::requested(words, &self.experiment.run, &planned);
        match (self.course, aim) {
            (Course::AsRequested, Some(aim)) => {
                return pilot::run(words, aim, warm_up, &planned, streams);
            }
            (Course::Chosen(notes), _) => planned.notes.extend(notes.iter().cloned()),
            _ => {}
        }
        writeln!(streams.err, "{}", summary(words, &planned).join("\n"))?;
        let (subjects, offer, interrupted) = (self.subjects, self.offer, self.interrupted);
        let built = builds::build(planned, subjects, self.home, offer, interrupted, streams)?;
        let Some(Built { plan, .. }) = &built else {
            writeln!(streams.err, "{INTERRUPTED_BUILDING}")?;
            return Ok(Ending::Interrupted);
        };
        if plan.cells.is_empty() {
            let missing = not_run(plan).join("\n");
            writeln!(streams.err, "{missing}\nprony: nothing is left to measure")?;
            return Ok(Ending::Invalid);
        }
        self.measure_and_render(plan, streams)
    }

    fn measure_and_render(&self, plan: &Plan, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
        let dir = folder::choose(self.words)?;
        let environment = self.environment(plan)?;
        writeln!(streams.err, "  who runs what: {}", launch::privileges())?;
        if environment.driver != "ring" {
            writeln!(streams.err, "  the load runs on {}", environment.driver)?;
        }
        let mut live = match self.course {
            // Nothing of a pilot is a result.
            Course::Pilot => None,
            _ if !self.words.open => None,
            _ => Some(LivePage::start(plan, &dir, streams)?),
        };
        let measured = self.measure(plan, environment, &dir, live.as_mut(), streams);
        let finished = measured.and_then(|measured| Ok((measured, report::render_into(&dir)?)));
        live.into_iter().for_each(LivePage::end);
        let resuming = || again::resuming(self.words, &dir);
        let (is_complete, rendering) = match finished {
            Ok(finished) => finished,
            Err(error) => {
                // The machine may have refused something in the middle of the run.
                if cause::ending(&error) == Ending::Failed && dir.join(layout::PLAN).exists() {
                    let hint = "what was measured is kept; to continue when this is fixed";
                    writeln!(streams.err, "prony: {hint}:\n  {}", resuming())?;
                }
                return Err(error);
            }
        };
        rendering.print(self.words.json, Some(&dir), streams)?;
        if is_complete {
            return Ok(rendering.ending());
        }
        let hint = match self.course {
            Course::Pilot => "during the pilot: there is no result".to_owned(),
            _ => format!("to continue it:\n  {}", resuming()),
        };
        writeln!(streams.err, "prony: interrupted; {hint}")?;
        Ok(Ending::Interrupted)
    }

    /// The plan, or why there is none.
    fn plan(&self) -> anyhow::Result<Result<Plan, PlanError>> {
        let (words, experiment, subjects) = (self.words, self.experiment, self.subjects);
        let (home, offer) = (self.home, self.offer);
        let refusal = |n: &_| network::refusal(n, &home.prony, offer.wanted);
        let facts = home.facts(subjects, offer.isolation.network_namespace);
        let facts = facts.with_settings(experiment);
        let facts = facts.with_networks(experiment, refusal);
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

    /// The machine and the software with which figures are measured.
    fn environment(&self, plan: &Plan) -> anyhow::Result<Environment> {
        let commit = env!("PRONY_COMMIT");
        // A repository around the user's cache is not that of what was unpacked there.
        let folder = &self.experiment.origin.folder;
        let code = (!self.home.is_copy(folder)).then(|| code::of_folder(folder));
        Ok(environment::collect(Environment {
            prony_version: env!("CARGO_PKG_VERSION").to_owned(),
            prony_commit: commit.to_owned(),
            prony_sha256: code::of_this_program(commit),
            systems_sha256: match plan::processes(plan).any(|of| plan::needs_systems(plan, of)) {
                true => code::of_file(&SYSTEMS.beside(&self.home.prony)),
                false => String::new(),
            },
            code: code.flatten(),
            driver: crate::driver::in_force()?,
            software: builds::software(plan, self.subjects),
            facts: environment::isolation_facts(self.offer),
            checks: doctor::in_brief(&Tree::here()),
            ..Environment::default()
        }))
    }

    /// Does the trials. `false`: the user ended the run.
    fn measure(
        &self,
        plan: &Plan,
        environment: Environment,
        dir: &Path,
        mut live: Option<&mut LivePage>,
        streams: &mut Streams<'_>,
    ) -> anyhow::Result<bool> {
        let path = env::var_os("PATH").filter(|_| is_cross_checked(self.words));
        let options = Options {
            dir: dir.to_owned(),
            resume: self.words.resume.is_some(),
            prony: self.home.prony.clone(),
            wanted: self.offer.wanted,
            driver: crate::driver::chosen()?,
            wrk: path.and_then(|path| Wrk::find(&path)),
            profile: means(plan),
            // Where a time was given, all of it is planned.
            again: matches!(self.course, Course::AsRequested),
            check_only: false,
            interrupt: Interrupt::by_flag(Arc::clone(self.interrupted)),
        };
        let mut bar = Bar::new(plan, streams.err)?;
        let mut forecast = match self.course {
            Course::Chosen(_) => Forecast::new(plan, dir),
            Course::AsRequested | Course::Pilot => None,
        };
        let mut hear = |event: Event<'_>| {
            bar.event(&event);
            if let Some(live) = &mut live {
                live.event(&event);
            }
            if let Some(forecast) = forecast.take_if(|of| of.is_due(&event)) {
                forecast.say(&mut bar);
            }
        };
        let outcome = prony_lab::run::run(plan, environment, &options, &mut hear);
        bar.finish();
        Ok(!outcome?.interrupted && !self.interrupted.load(Relaxed))
    }
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
    let Some(mut experiment) = diagnoses::printed(read, streams)? else {
        return Ok(None);
    };
    for revised in &words.revision {
        let done = experiment.take_at(&revised.subject, &revised.revision);
        done.map_err(|why| anyhow!("--revision {revised}: {why}"))?;
    }
    if !experiment.warnings.is_empty() {
        let warnings = experiment.diagnoses(experiment.warnings.clone());
        let text = warnings.render_warnings(colour());
        streams.err.write_all(text.as_bytes())?;
    }
    let subjects = subject::load_all_at(&experiment, &home.subjects, Some(revisions));
    let subjects = diagnoses::printed(subjects, streams)?;
    Ok(subjects.map(|subjects| (experiment, subjects)))
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

/// The lines about a plan before anything is done: how much it is, for how long, what a reader must know of it, what is not
/// run.
fn summary(words: &RunWords, plan: &Plan) -> Vec<String> {
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

/// The trials of this machine that are in no figure.
fn beside(words: &RunWords, plan: &Plan) -> Beside {
    let on_path = || env::var("PATH").is_ok_and(|path| plan::on_path("wrk", &path));
    Beside {
        wrk: is_cross_checked(words) && on_path(),
        passes: means(plan).map_or(0, |means| means.passes().len() as u64),
    }
}

/// The means of profiling that this machine permits, where the plan profiles servers.
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
    let mut lines = summary(words, plan);
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

/// The search of each trial of a workload after its window.
fn searches(plan: &Plan) -> impl Iterator<Item = String> {
    let line = |w: &prony_record::PlannedWorkload| {
        let search = w.find_max.as_ref()?;
        let (name, objective, step) = (&w.name, &search.objective, Nanos(search.step_ns));
        Some(format!(
            "  {name}: after each window the highest rate that keeps {objective}, in about 36 steps of {step}"
        ))
    };
    plan.workloads.iter().filter_map(line)
}

/// The actions of the users of a workload.
fn users(plan: &Plan) -> impl Iterator<Item = String> {
    let line = |w: &prony_record::PlannedWorkload| {
        w.source.as_ref()?.scenario.as_ref()?;
        Some(format!("  {}: {}", w.name, prony_report::sent(w, false)))
    };
    plan.workloads.iter().filter_map(line)
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
        let others = words.iter().filter(|word| *word != OWNED);
        others.cloned().collect()
    };
    if same(&plan.command) != same(&options.command) {
        bail!(
            "{} holds the run of `prony {}`; resume it with the same words",
            dir.display(),
            again::in_shell(&plan.command)
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

/// A line for each that is not run here, with what would change it.
fn not_run(plan: &Plan) -> Vec<String> {
    plan.not_run.iter().map(not_run_line).collect()
}
