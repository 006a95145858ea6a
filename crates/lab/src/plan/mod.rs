//! From an experiment, its subjects and a machine to the [`Plan`]: what is run,
//! what is not and why, in which order, with how many connections.
//!
//! [`plan`] is a pure function. Around it, in this order: [`Experiment::load`],
//! [`subject::load_all`], [`Facts::gather`], [`plan()`],
//! [`estimate`], then [`build`](crate::build) for each subject and [`settle`].
//!
//! Not for: starting anything.
//!
//! # Rules
//!
//! - A subject that needs what the machine lacks is not run; the others are.
//! - A reference that is not run has no replacement: there are no ratios then, and
//!   the plan says so. A substitute would change what the document claims.
//! - A subject whose endpoints lack a workload's path has no cell of it. It is
//!   named as not run only where it then has no cell at all.
//! - One cap on connections holds for all cells ([`crate::cap`]).
//! - `--only` selects cells by a part of the subject's or the cell's id, or by a
//!   pattern with `*` and `?`; several select what any of them selects.

mod cores;
mod facts;
mod order;
mod select;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use prony_base::Nanos;
use prony_record::{
    Arrival, Cell, ConnectionCap, NotRun, Plan, PlannedSetting, PlannedSubject, PlannedWorkload,
    SCHEMA,
};

use crate::cap;
use crate::experiment::{Connections, Exclusion, Experiment, Setting, Workload};
use crate::subject::{self, Subject};

pub use facts::{Facts, on_path};
pub use order::order;
pub use settle::settle;

/// Cells of a plan at the most.
pub const CELLS_MAX: usize = 5_000;

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `--quick`.
    pub quick: bool,
    /// `--only`, each time that it was given.
    pub only: Vec<String>,
    /// `--blocks`.
    pub blocks: Option<u32>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// The words after `prony`.
    pub command: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// `--only` selects nothing.
    NothingSelected {
        /// What was given.
        only: Vec<String>,
        /// The ids of all cells.
        cells: Vec<String>,
    },
    /// Nothing of the experiment can run here.
    NothingRuns {
        /// Why, each.
        not_run: Vec<NotRun>,
    },
    /// The experiment leaves no cell by its own words.
    NoCells,
    /// More than [`CELLS_MAX`].
    TooManyCells,
}

/// Ids that a message lists at the most.
const LISTED_MAX: usize = 40;

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NothingSelected { only, cells } => {
                let only = crate::diagnosis::quoted(only);
                writeln!(f, "--only {only} selects none of the {} cells:", cells.len())?;
                for cell in cells.iter().take(LISTED_MAX) {
                    writeln!(f, "  {cell}")?;
                }
                match cells.len().saturating_sub(LISTED_MAX) {
                    0 => Ok(()),
                    more => writeln!(f, "  and {more} more"),
                }
            }
            PlanError::NothingRuns { not_run } => {
                writeln!(f, "none of the subjects can run on this machine:")?;
                for missing in not_run {
                    write!(f, "  {}: {}", missing.what, missing.reason)?;
                    match missing.remedy.as_str() {
                        "" => writeln!(f)?,
                        remedy => writeln!(f, "; to change it: {remedy}")?,
                    }
                }
                Ok(())
            }
            PlanError::NoCells => f.write_str(
                "the experiment has no cell: no subject answers the path of a workload, or all are excluded",
            ),
            PlanError::TooManyCells => write!(
                f,
                "the experiment has more than {CELLS_MAX} cells; give fewer connections, settings or subjects",
            ),
        }
    }
}

impl std::error::Error for PlanError {}

/// Resolves everything. `subjects` are those of the experiment's entries, in order.
pub fn plan(
    experiment: &Experiment,
    subjects: &[Subject],
    facts: &Facts,
    options: &Options,
) -> Result<Plan, PlanError> {
    let asked_max = experiment
        .workloads
        .iter()
        .map(|w| w.connections_max)
        .max()
        .unwrap_or(1);
    let connection_cap = cap::cap(&facts.limits, asked_max);
    let all = candidates(experiment, subjects, &connection_cap, options.quick)?;
    if all.is_empty() {
        return Err(PlanError::NoCells);
    }
    let selected = select_only(&all, &options.only)?;
    let mut not_run = missing(subjects, &selected, facts);
    if not_run.len() == subjects_of(&selected).count() {
        return Err(PlanError::NothingRuns { not_run });
    }
    let cells: Vec<Cell> = selected
        .into_iter()
        .filter(|cell| not_run.iter().all(|gone| gone.what != cell.subject))
        .collect();
    not_run.extend(not_applicable(experiment, subjects, &all, &options.only));
    let run = run_of(experiment, options);
    let cores = cores::split(&facts.cores, experiment.run.threads);
    let mut plan = Plan {
        schema: SCHEMA,
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        experiment: experiment.origin.path.clone(),
        experiment_sha256: experiment.sha256.clone(),
        command: options.command.clone(),
        quick: options.quick,
        seed: options.seed.unwrap_or(experiment.run.seed),
        blocks: run.blocks,
        duration_ns: run.duration.0,
        warmup_ns: run.warmup.0,
        reference: experiment
            .run
            .reference
            .as_ref()
            .map(|name| name.get_ref().clone()),
        subjects: planned_subjects(subjects, &cells, cores.subject.len() as u32),
        workloads: planned_workloads(experiment, &cells),
        settings: planned_settings(experiment, &cells),
        notes: notes_on_cap(experiment, &connection_cap, options.quick),
        order: Vec::new(),
        cores,
        connection_cap,
        cells,
        not_run,
    };
    settle::finish(&mut plan);
    Ok(plan)
}

/// How long the run takes, if a trial costs `per_trial` beside warm-up and window.
/// Builds are not in it.
pub fn estimate(plan: &Plan, per_trial: Nanos) -> Nanos {
    let one = Nanos(plan.warmup_ns) + Nanos(plan.duration_ns) + per_trial;
    one * (plan.cells.len() as u64).saturating_mul(u64::from(plan.blocks))
}

/// The estimate as a line for people: `22 cells in 6 blocks: 132 trials, about 29 min`.
pub fn estimate_line(plan: &Plan, per_trial: Nanos) -> String {
    let seconds = estimate(plan, per_trial).0.div_ceil(1_000_000_000);
    let about = match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    };
    let (cells, blocks) = (plan.cells.len(), u64::from(plan.blocks));
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    format!(
        "{cells} cell{} in {blocks} block{}: {} trials, about {about}",
        plural(cells as u64),
        plural(blocks),
        cells as u64 * blocks
    )
}

struct Times {
    blocks: u32,
    duration: Nanos,
    warmup: Nanos,
}

/// `[run]`, what `--quick` makes of it, and `--blocks`.
fn run_of(experiment: &Experiment, options: &Options) -> Times {
    let (run, quick) = (&experiment.run, &experiment.quick);
    let mut times = Times {
        blocks: run.blocks,
        duration: run.duration,
        warmup: run.warmup,
    };
    if options.quick {
        times.blocks = quick.blocks.unwrap_or(run.blocks.min(2));
        times.duration = quick
            .duration
            .unwrap_or(run.duration.min(Nanos::from_secs(1)));
        times.warmup = quick
            .warmup
            .unwrap_or(run.warmup.min(Nanos::from_millis(300)));
    }
    times.blocks = options.blocks.unwrap_or(times.blocks).max(1);
    times
}

/// The connections of a workload: quick ones if asked, cut to the cap, each once.
fn connections(
    workload: &Workload,
    experiment: &Experiment,
    cap: &ConnectionCap,
    quick: bool,
) -> Vec<(Connections, u32)> {
    let mut asked = workload.connections.clone();
    if let Some(kept) = experiment.quick.connections.as_ref().filter(|_| quick) {
        let few: Vec<Connections> = asked
            .iter()
            .copied()
            .filter(|c| kept.get_ref().contains(c))
            .collect();
        asked.truncate(1);
        if !few.is_empty() {
            asked = few;
        }
    }
    let mut cut: Vec<(Connections, u32)> = Vec::with_capacity(asked.len());
    for count in asked {
        let number = match count {
            Connections::Exactly(number) => number,
            Connections::Max => workload.connections_max,
        };
        let number = number.min(cap.connections_max);
        if cut.iter().all(|&(_, before)| before != number) {
            cut.push((count, number));
        }
    }
    cut
}

/// All cells that the experiment means, whatever the machine lacks, in the order
/// of the document: by workload, connections and setting, then by subject.
fn candidates(
    experiment: &Experiment,
    subjects: &[Subject],
    cap: &ConnectionCap,
    quick: bool,
) -> Result<Vec<Cell>, PlanError> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let combinations = combinations(&experiment.settings)?;
    for workload in &experiment.workloads {
        for (asked, connections) in connections(workload, experiment, cap, quick) {
            for chosen in &combinations {
                for subject in subjects.iter().filter(|s| applies(workload, s)) {
                    let settings = settings_of(subject, &experiment.settings, chosen);
                    let cell = cell(subject, workload, connections, settings);
                    let excluded = experiment.exclude.iter().any(|e| excludes(e, &cell, asked));
                    // A subject that a setting does not concern has one cell, not one a value.
                    if !excluded && seen.insert(cell.id.clone()) {
                        cells.push(cell);
                    }
                }
                if cells.len() > CELLS_MAX {
                    return Err(PlanError::TooManyCells);
                }
            }
        }
    }
    Ok(cells)
}

/// Every choice of one value for each setting, as indices.
fn combinations(settings: &[Setting]) -> Result<Vec<Vec<usize>>, PlanError> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for setting in settings {
        if all.len() * setting.values.len() > CELLS_MAX {
            return Err(PlanError::TooManyCells);
        }
        all = all
            .iter()
            .flat_map(|chosen| {
                (0..setting.values.len()).map(|value| {
                    let mut longer = chosen.clone();
                    longer.push(value);
                    longer
                })
            })
            .collect();
    }
    Ok(all)
}

fn applies(workload: &Workload, subject: &Subject) -> bool {
    let listed =
        |names: &Vec<toml::Spanned<String>>| names.iter().any(|n| *n.get_ref() == subject.id);
    workload.subjects.as_ref().is_none_or(listed) && subject.answers(&workload.request.path)
}

/// The values of those settings that concern `subject`: nothing can be set on a
/// server that already runs.
fn settings_of(
    subject: &Subject,
    settings: &[Setting],
    chosen: &[usize],
) -> BTreeMap<String, String> {
    let concerns = |setting: &Setting| {
        let listed =
            |names: &Vec<toml::Spanned<String>>| names.iter().any(|n| *n.get_ref() == subject.id);
        subject.is_started() && setting.subjects.as_ref().is_none_or(listed)
    };
    let pairs = settings
        .iter()
        .zip(chosen)
        .filter(|(setting, _)| concerns(setting));
    pairs
        .map(|(setting, &value)| {
            (
                setting.name.get_ref().clone(),
                setting.values[value].clone(),
            )
        })
        .collect()
}

fn cell(
    subject: &Subject,
    workload: &Workload,
    connections: u32,
    settings: BTreeMap<String, String>,
) -> Cell {
    let mut id = format!("{} {} c={connections}", subject.id, workload.name.get_ref());
    for (name, value) in &settings {
        let plain = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '"');
        match plain {
            true => id.push_str(&format!(" {name}={value}")),
            false => id.push_str(&format!(" {name}={value:?}")),
        }
    }
    Cell {
        id,
        subject: subject.id.clone(),
        workload: workload.name.get_ref().clone(),
        connections,
        count: None,
        settings,
    }
}

fn excludes(exclusion: &Exclusion, cell: &Cell, asked: Connections) -> bool {
    let is = |name: &Option<toml::Spanned<String>>, value: &str| {
        name.as_ref().is_none_or(|name| name.get_ref() == value)
    };
    let connections = exclusion
        .connections
        .is_none_or(|count| count == asked || count == Connections::Exactly(cell.connections));
    let setting = |(name, value): &(toml::Spanned<String>, toml::Spanned<String>)| {
        cell.settings.get(name.get_ref()) == Some(value.get_ref())
    };
    is(&exclusion.subject, &cell.subject)
        && is(&exclusion.workload, &cell.workload)
        && connections
        && exclusion.settings.iter().all(setting)
}

fn select_only(all: &[Cell], only: &[String]) -> Result<Vec<Cell>, PlanError> {
    if only.is_empty() {
        return Ok(all.to_vec());
    }
    let on = |cell: &&Cell| {
        only.iter()
            .any(|p| select::selects(p, &cell.subject, &cell.id))
    };
    let selected: Vec<Cell> = all.iter().filter(on).cloned().collect();
    if selected.is_empty() {
        return Err(PlanError::NothingSelected {
            only: only.to_vec(),
            cells: all.iter().map(|cell| cell.id.clone()).collect(),
        });
    }
    Ok(selected)
}

/// The different subjects of `cells`, in order.
fn subjects_of(cells: &[Cell]) -> impl Iterator<Item = &str> {
    let mut seen: Vec<&str> = Vec::new();
    for cell in cells {
        if !seen.contains(&cell.subject.as_str()) {
            seen.push(&cell.subject);
        }
    }
    seen.into_iter()
}

/// Selected subjects that need what is not there.
fn missing(subjects: &[Subject], selected: &[Cell], facts: &Facts) -> Vec<NotRun> {
    let wanted: Vec<&str> = subjects_of(selected).collect();
    let mut gone = Vec::new();
    for subject in subjects.iter().filter(|s| wanted.contains(&s.id.as_str())) {
        let lacks = facts.missing(&subject.needs);
        if lacks.is_empty() {
            continue;
        }
        let mut reason = lacks.join(", ");
        if !subject.needs.when.is_empty() {
            reason.push_str(&format!(" (needs {})", subject.needs.when));
        }
        gone.push(NotRun {
            what: subject.id.clone(),
            reason,
            remedy: facts.remedy(&subject.needs),
        });
    }
    gone
}

/// Subjects that no workload reaches, unless `--only` asks for others.
fn not_applicable(
    experiment: &Experiment,
    subjects: &[Subject],
    all: &[Cell],
    only: &[String],
) -> Vec<NotRun> {
    let asked =
        |s: &Subject| only.is_empty() || only.iter().any(|p| select::selects(p, &s.id, &s.id));
    let reached: Vec<&str> = subjects_of(all).collect();
    let unreached = subjects
        .iter()
        .filter(|s| !reached.contains(&s.id.as_str()) && asked(s));
    let reason = |subject: &Subject| {
        let paths: Vec<&str> = experiment
            .workloads
            .iter()
            .map(|w| w.request.path.as_str())
            .collect();
        if paths.iter().any(|path| subject.answers(path)) {
            return "the experiment leaves out all of its cells".to_owned();
        }
        format!(
            "it answers {}, and no workload asks for that",
            crate::diagnosis::quoted(&subject.endpoints)
        )
    };
    let entry = |subject: &Subject| NotRun {
        what: subject.id.clone(),
        reason: reason(subject),
        remedy: String::new(),
    };
    unreached.map(entry).collect()
}

fn planned_subjects(subjects: &[Subject], cells: &[Cell], threads: u32) -> Vec<PlannedSubject> {
    let used: Vec<&str> = subjects_of(cells).collect();
    let planned = |subject: &Subject| PlannedSubject {
        id: subject.id.clone(),
        name: subject.name.clone(),
        language: subject.language.clone(),
        summary: subject.summary.clone(),
        source: subject.source.clone(),
        endpoints: subject.endpoints.clone(),
        start: subject.start.clone(),
        env: subject.env.clone(),
        ready: subject.ready.clone(),
        stop: subject.stop.clone(),
        threads: subject.threads.unwrap_or(threads.max(1)),
        build_dir: String::new(),
        build_key: String::new(),
        version: String::new(),
        ..PlannedSubject::default()
    };
    subjects
        .iter()
        .filter(|s| used.contains(&s.id.as_str()))
        .map(planned)
        .collect()
}

fn planned_workloads(experiment: &Experiment, cells: &[Cell]) -> Vec<PlannedWorkload> {
    let mut planned = Vec::with_capacity(experiment.workloads.len());
    for workload in &experiment.workloads {
        let name = workload.name.get_ref();
        let mut connections: Vec<u32> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.workload == *name) {
            if !connections.contains(&cell.connections) {
                connections.push(cell.connections);
            }
        }
        if connections.is_empty() {
            continue;
        }
        planned.push(PlannedWorkload {
            name: name.clone(),
            request: workload.request.clone(),
            expect_status: workload.expect_status,
            expect_content_type: workload.expect_content_type.clone(),
            expect_body: workload.expect_body.clone(),
            arrival: Arrival::Closed,
            connections,
            timeout_ns: workload.timeout.0,
            program: None,
        });
    }
    planned
}

fn planned_settings(experiment: &Experiment, cells: &[Cell]) -> Vec<PlannedSetting> {
    let used = |s: &&Setting| {
        cells
            .iter()
            .any(|cell| cell.settings.contains_key(s.name.get_ref()))
    };
    let planned = |setting: &Setting| PlannedSetting {
        name: setting.name.get_ref().clone(),
        values: setting.values.clone(),
        env: setting.env.clone(),
        args: setting.args.clone(),
        env_of: BTreeMap::new(),
        sysctl: None,
    };
    experiment
        .settings
        .iter()
        .filter(used)
        .map(planned)
        .collect()
}

/// What the cap changed, said once a workload.
fn notes_on_cap(experiment: &Experiment, cap: &ConnectionCap, quick: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for workload in &experiment.workloads {
        let kept = connections(workload, experiment, cap, quick);
        let asked = |count: Connections| match count {
            Connections::Exactly(number) => number,
            Connections::Max => workload.connections_max,
        };
        for (count, number) in kept
            .iter()
            .filter(|&&(count, number)| asked(count) > number)
        {
            notes.push(format!(
                "{}: {} connections cut to {number} ({})",
                workload.name.get_ref(),
                asked(*count),
                cap.limited_by
            ));
        }
    }
    notes
}

/// Plans `experiment` with stand-ins for its subjects; for fuzzing.
pub(crate) fn fuzz(experiment: &Experiment) {
    let subjects = subject::stand_ins(experiment);
    let ids: Vec<String> = subjects.iter().map(|subject| subject.id.clone()).collect();
    let facts = Facts {
        cores: vec![vec![0], vec![1]],
        limits: cap::Limits::example(),
        ..Facts::default()
    };
    if crate::experiment::check_names(experiment, &ids).is_err() {
        return;
    }
    for quick in [false, true] {
        let options = Options {
            quick,
            ..Options::default()
        };
        if let Ok(plan) = plan(experiment, &subjects, &facts, &options) {
            assert_eq!(plan.order.len(), plan.blocks as usize);
            assert!(plan.order.iter().all(|row| row.len() == plan.cells.len()));
        }
    }
}

#[cfg(test)]
mod tests;
