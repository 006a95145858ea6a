//! From an experiment, its subjects and the facts about a machine to the [`Plan`]. Pure.
//!
//! The rules are those of [`super`]. Not for: which cells there are ([`super::cells`]).

use std::collections::BTreeMap;

use prony_base::{Nanos, Untrusted, counted};
use prony_record::{
    Cell, ConnectionCap, Cores, FindMax, METHOD, NotRun, Plan, PlannedCounter, PlannedSubject,
    PlannedWorkload, SCHEMA,
};

use super::cells::{
    CellInputs, Frame, applies, candidates, connections, planned_arrival, planned_settings,
};
use super::cores;
use super::facts::Facts;
use super::options::{Options, PlanError, is_selected};
use super::sizes::once;
use super::{client, copies, program, published, rows, settle, threads, topology, values, visits};
use crate::cap;
use crate::experiment::words::SYSTEMS;
use crate::experiment::{Connections, Counter, Experiment, Parts, Search, Workload};
use crate::profile;
use crate::subject::{Repository, Subject};

/// Resolves everything. `all` are the subjects that the experiment's entries name, in the
/// order of [`Experiment::entries`] ([`crate::subject::load_all`]).
pub fn plan(
    experiment: &Experiment,
    all: &[Subject],
    facts: &Facts,
    options: &Options,
) -> Result<Plan, PlanError> {
    if options.duration.is_some() && !client::has_window(experiment) {
        return Err(PlanError::NoWindow);
    }
    cores::check(experiment, facts, options)?;
    let parts = experiment.split(all);
    let frame = frame(experiment, facts, options);
    let (cells, not_run) = choose(experiment, &parts, facts, &frame, options)?;
    let run = run_of(experiment, options);
    let Frame {
        connection_cap,
        cores,
    } = frame;
    let mut plan = Plan {
        schema: SCHEMA,
        method: METHOD,
        title: Untrusted(experiment.title.clone()),
        question: Untrusted(experiment.question.clone()),
        experiment: experiment.origin.path.clone(),
        experiment_sha256: experiment.sha256.clone(),
        command: options.command.clone(),
        quick: options.quick,
        seed: options.seed.unwrap_or(experiment.run.seed),
        blocks: run.blocks,
        duration_ns: run.duration.0,
        warmup_ns: run.warmup.0,
        visits: visits::chosen(options, &experiment.run),
        profile: (options.profile || experiment.run.profile).then(profile::planned),
        reference: experiment
            .run
            .reference
            .as_ref()
            .map(|name| name.get_ref().clone()),
        subjects: planned_subjects(experiment, parts.subjects, &cells, &cores),
        workloads: planned_workloads(experiment, &cells, parts.peers, &cores, options),
        settings: planned_settings(experiment, &cells),
        peers: client::peers(experiment, parts.peers, &cells)
            .into_iter()
            .map(|peer| planned_subject(experiment, peer, &cores))
            .collect(),
        backings: planned_services(experiment, parts.backings, &cells, &cores),
        fronts: planned_services(experiment, parts.fronts, &cells, &cores),
        networks: client::networks(experiment, &cells),
        notes: notes_on_cap(experiment, &connection_cap, options.quick),
        published: published::published(experiment, &connection_cap, &cores),
        order: Vec::new(),
        joined: BTreeMap::new(),
        cores,
        connection_cap,
        cells,
        not_run,
    };
    if experiment.run.copy && !options.quick {
        copies::add(&mut plan);
    }
    let given = cores::given(experiment, options).is_some();
    let crowds = threads::notes(experiment, &plan, given);
    plan.notes.extend(crowds);
    settle::finish(&mut plan);
    if visits::said(options, &experiment.run).is_none() {
        visits::leave_where_nobody_is_visited(&mut plan);
    }
    Ok(plan)
}

/// All that a plan starts: subjects, peers, backing services, fronts.
pub fn processes(plan: &Plan) -> impl Iterator<Item = &PlannedSubject> {
    let subjects = plan.subjects.iter().chain(&plan.peers);
    subjects.chain(&plan.backings).chain(&plan.fronts)
}

/// Whether what the plan does with a subject names the program `prony-systems`, in a command, its environment, or what a setting adds.
pub fn needs_systems(plan: &Plan, subject: &PlannedSubject) -> bool {
    let is_it = |text: &String| text.contains(SYSTEMS);
    let is_client = |cell: &Cell| plan.workload_of(cell).is_some_and(|of| of.client.is_some());
    let serves = || subject.start.iter().chain(subject.env.values()).any(is_it);
    let mut own = plan.cells.iter().filter(|cell| cell.subject == subject.id);
    let is_measured = plan.subjects.iter().any(|own| own.id == subject.id);
    let mut settings = plan.settings.iter();
    let is_set = settings.any(|of| of.args.iter().chain(of.env.values()).any(is_it));
    let runs = |cell: &Cell| match cell.count {
        Some(_) => (subject.program.iter())
            .chain(subject.program_env.values())
            .any(is_it),
        None if is_client(cell) => (subject.client.iter())
            .chain(subject.client_env.values())
            .chain(&subject.client_translate)
            .any(is_it),
        None => serves(),
    };
    is_measured && is_set || !is_measured && serves() || own.any(runs)
}

/// The cells that are run, and what is not.
fn choose(
    experiment: &Experiment,
    parts: &Parts<'_, Subject>,
    facts: &Facts,
    frame: &Frame,
    options: &Options,
) -> Result<(Vec<Cell>, Vec<NotRun>), PlanError> {
    let (subjects, peers) = (parts.subjects, parts.peers);
    let inputs = CellInputs {
        experiment,
        parts,
        frame,
        quick: options.quick,
    };
    let possible = candidates(&inputs)?;
    if possible.is_empty() {
        return Err(PlanError::NoCells);
    }
    let selected = select_only(&possible, &options.only)?;
    let mut not_run = missing(subjects, &selected, facts);
    let mut found = client::missing_peers(experiment, peers, &selected, facts);
    found.extend(values::missing(experiment, subjects, &selected, facts));
    found.extend(program::other_sizes(experiment, subjects, &selected));
    found.extend(client::impossible(experiment, subjects, &selected, facts));
    let lacking = topology::missing(parts, &selected, facts);
    let impossible = topology::impossible(&selected, &lacking);
    found.extend(lacking.into_iter().chain(impossible));
    for gone in found {
        if not_run.iter().all(|other| other.what != gone.what) {
            not_run.push(gone);
        }
    }
    let gone = |cell: &Cell| {
        let mut gone = not_run.iter();
        gone.any(|gone| gone.what == cell.subject || gone.what == cell.id)
            || client::lacks_peer(experiment, peers, cell, &not_run)
            || topology::lacks(cell, &not_run)
            || values::is_among(cell, &not_run)
    };
    let cells: Vec<Cell> = selected.into_iter().filter(|cell| !gone(cell)).collect();
    if cells.is_empty() {
        return Err(PlanError::NothingRuns { not_run });
    }
    not_run.extend(program::undone(experiment, subjects, &options.only));
    not_run.extend(client::undone(experiment, subjects, &options.only));
    let unreached = not_applicable(experiment, subjects, &possible, &options.only);
    // One whose every work is named already is not named again as a whole.
    let is_named = |gone: &NotRun| {
        let start = format!("{} ", gone.what);
        not_run.iter().any(|other| other.what.starts_with(&start))
    };
    let unnamed: Vec<NotRun> = unreached
        .into_iter()
        .filter(|gone| !is_named(gone))
        .collect();
    not_run.extend(unnamed);
    Ok((cells, not_run))
}

/// An experiment of programs has no generator, and nothing of the network limits it.
fn frame(experiment: &Experiment, facts: &Facts, options: &Options) -> Frame {
    let given = cores::given(experiment, options);
    if program::is_all_programs(experiment) {
        return Frame {
            connection_cap: ConnectionCap::default(),
            cores: program::cores(&facts.cores, given),
        };
    }
    let asked = experiment.workloads.iter().map(|w| w.connections_max);
    Frame {
        connection_cap: cap::cap(
            &facts.limits,
            asked.max().unwrap_or(1),
            topology::has_front(experiment),
        ),
        cores: cores::split(&facts.cores, experiment.run.threads, given),
    }
}

fn select_only(all: &[Cell], only: &[String]) -> Result<Vec<Cell>, PlanError> {
    let on = |cell: &&Cell| is_selected(only, &cell.subject, &cell.id);
    let selected: Vec<Cell> = all.iter().filter(on).cloned().collect();
    if selected.is_empty() {
        return Err(PlanError::NothingSelected {
            only: only.to_vec(),
            cells: all.iter().map(|cell| cell.id.clone()).collect(),
        });
    }
    Ok(selected)
}

/// Selected subjects that need what is not there.
fn missing(subjects: &[Subject], selected: &[Cell], facts: &Facts) -> Vec<NotRun> {
    let wanted: Vec<&str> = subjects_of(selected).collect();
    let selected = subjects.iter().filter(|s| wanted.contains(&s.id.as_str()));
    let gone = selected.filter_map(|subject| {
        let (reason, remedy) = facts.lacks(subject)?;
        Some(NotRun::new(&subject.id, reason, remedy))
    });
    gone.collect()
}

/// Subjects that no workload reaches, unless `--only` asks for others.
fn not_applicable(
    experiment: &Experiment,
    subjects: &[Subject],
    all: &[Cell],
    only: &[String],
) -> Vec<NotRun> {
    let asked = |s: &Subject| is_selected(only, &s.id, &s.id);
    let reached: Vec<&str> = subjects_of(all).collect();
    let unreached = subjects
        .iter()
        .filter(|s| !reached.contains(&s.id.as_str()) && asked(s));
    let reason = |subject: &Subject| {
        if experiment.workloads.iter().any(|w| applies(w, subject)) {
            return "the experiment leaves out all of its cells".to_owned();
        }
        if !subject.is_server() {
            let what = match subject.program.is_some() {
                true => "program",
                false => "client",
            };
            return format!("it is a {what}, and no workload asks for a work that it does");
        }
        let has_rows =
            |w: &Workload| !w.rows.is_empty() && w.paths().all(|path| subject.answers(path));
        if experiment.workloads.iter().any(has_rows) {
            return "no row of a table names it".to_owned();
        }
        if !client::has_requests(experiment) {
            return "it is a server, and no workload has a request".to_owned();
        }
        format!(
            "it answers {}, and no workload asks for that",
            crate::diagnosis::quoted(&subject.endpoints)
        )
    };
    let entry = |subject: &Subject| NotRun::new(&subject.id, reason(subject), "");
    unreached.map(entry).collect()
}

/// What the cap changed, said once a workload.
fn notes_on_cap(experiment: &Experiment, cap: &ConnectionCap, quick: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let most = experiment.quick.connections_max.filter(|_| quick);
    let most = most.unwrap_or(u32::MAX);
    for workload in experiment.workloads.iter().filter(|w| w.work.is_none()) {
        let kept = connections(workload, experiment, cap, quick);
        let asked = |count: Connections| match count {
            Connections::Exactly(number) => number,
            Connections::Max => workload.connections_max,
        };
        for (count, number) in kept
            .iter()
            .filter(|&&(count, number)| asked(count).min(most) > number)
        {
            notes.push(format!(
                "{}: {} cut to {number} ({})",
                workload.name.get_ref(),
                counted(asked(*count), "connection"),
                cap.limited_by
            ));
        }
    }
    notes
}

fn planned_subjects(
    experiment: &Experiment,
    subjects: &[Subject],
    cells: &[Cell],
    cores: &Cores,
) -> Vec<PlannedSubject> {
    let used: Vec<&str> = subjects_of(cells).collect();
    subjects
        .iter()
        .filter(|s| used.contains(&s.id.as_str()))
        .map(|subject| planned_subject(experiment, subject, cores))
        .collect()
}

fn planned_services(
    experiment: &Experiment,
    services: &[Subject],
    cells: &[Cell],
    cores: &Cores,
) -> Vec<PlannedSubject> {
    topology::used(services, cells)
        .map(|service| planned_subject(experiment, service, cores))
        .collect()
}

fn planned_subject(experiment: &Experiment, subject: &Subject, cores: &Cores) -> PlannedSubject {
    let threads = u32::try_from(cores.subject.len()).unwrap_or(1);
    let program = subject.program.clone().unwrap_or_default();
    let client = subject.client.clone().unwrap_or_default();
    let of_program = subject.threads.or(experiment.run.threads).unwrap_or(1);
    PlannedSubject {
        id: subject.id.clone(),
        name: subject.name.clone(),
        language: subject.language.clone(),
        summary: subject.summary.clone(),
        source: subject.source.clone(),
        endpoints: subject.endpoints.clone(),
        start: subject.start.clone(),
        env: subject.env.clone(),
        capabilities: subject.needs.capabilities.clone(),
        ready: subject.ready.clone(),
        stop: subject.stop.clone(),
        threads: subject.threads.unwrap_or(threads.max(1)),
        program: program.cmd,
        program_env: program.env,
        program_threads: subject.program.as_ref().map_or(0, |_| of_program),
        program_output: program.output,
        variants: subject.variants.clone(),
        protocols: subject.protocols.clone(),
        repositories: subject
            .revision
            .iter()
            .cloned()
            .chain(subject.repositories.iter().map(named))
            .collect(),
        client: client.cmd,
        client_env: client.env,
        client_translate: client.translate,
        counts: subject.counts.clone(),
        ..PlannedSubject::default()
    }
}

/// A repository before it is fetched.
fn named(repository: &Repository) -> prony_record::Repository {
    prony_record::Repository {
        git: repository.git.clone(),
        revision: repository.revision.clone(),
        path: repository.path.clone(),
        ..prony_record::Repository::default()
    }
}

fn planned_workloads(
    experiment: &Experiment,
    cells: &[Cell],
    peers: &[Subject],
    cores: &Cores,
    options: &Options,
) -> Vec<PlannedWorkload> {
    let payload_max = experiment.quick.payload_max.filter(|_| options.quick);
    let duration = run_of(experiment, options).duration;
    let mut planned = Vec::with_capacity(experiment.workloads.len());
    for workload in &experiment.workloads {
        let name = workload.name.get_ref();
        let own = || cells.iter().filter(|cell| cell.workload == *name);
        let mut connections = once(own().map(|cell| cell.connections));
        if connections.is_empty() {
            continue;
        }
        let work = workload.work.as_ref();
        if work.is_some() {
            connections.clear();
        }
        planned.push(PlannedWorkload {
            name: name.clone(),
            title: workload.title.clone(),
            request: workload.request.clone(),
            source: workload.source.as_ref().map(|of| of.planned.clone()),
            expect_status: workload.expect_status,
            expect_content_type: workload.expect_content_type.clone(),
            expect_body: workload.expect_body.clone(),
            expect_checks: workload.expect_checks.clone(),
            require: required(experiment, workload),
            arrival: planned_arrival(&workload.arrival, own()),
            connections,
            timeout_ns: workload.timeout.0,
            program: work.map(|work| program::planned(work, once(own().filter_map(|c| c.count)))),
            client: workload
                .client
                .as_ref()
                .map(|asked| client::planned(asked, peers, payload_max)),
            rows: rows::planned(workload, &experiment.settings, cores),
            counter: workload.counter.as_ref().map(planned_counter),
            find_max: workload
                .find_max
                .map(|asked| planned_search(asked, duration, options)),
            rest_ns: workload.rest.map_or(0, |rest| rest.0),
        });
    }
    planned
}

/// What is required of the cells of a workload, each once: of programs, clients and searches nothing.
fn required(experiment: &Experiment, workload: &Workload) -> Vec<String> {
    if !workload.is_request() || workload.find_max.is_some() {
        return Vec::new();
    }
    let all = experiment.run.require.iter().chain(&workload.require);
    once(all.map(ToString::to_string))
}

fn planned_counter(counter: &Counter) -> PlannedCounter {
    PlannedCounter {
        path: counter.path.clone(),
        adds: counter.adds,
        ended_by: counter.kept,
    }
}

/// `[run]` as a run keeps to it.
struct Times {
    /// Rounds over all cells.
    blocks: u32,
    /// Measured window.
    duration: Nanos,
    /// Warm-up.
    warmup: Nanos,
}

/// `[run]`, what `--quick` makes of it, `--blocks`, `--duration` and `--warmup`.
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
    times.duration = options.duration.unwrap_or(times.duration);
    times.warmup = options.warmup.unwrap_or(times.warmup);
    if !client::has_window(experiment) {
        times.duration = Nanos::ZERO;
    }
    if !client::has_requests(experiment) {
        times.warmup = Nanos::ZERO;
    }
    times.blocks = options.blocks.unwrap_or(times.blocks).max(1);
    times
}

/// The different subjects of `cells`, in order.
fn subjects_of(cells: &[Cell]) -> impl Iterator<Item = &str> {
    once(cells.iter().map(|cell| cell.subject.as_str())).into_iter()
}

/// What is looked for. A quick run's steps are no longer than its windows (`duration`); else they are as the workload says,
/// whatever `--duration`, or a pilot, says of windows.
fn planned_search(asked: Search, duration: Nanos, options: &Options) -> FindMax {
    let step = match options.quick {
        true => asked.step.min(duration),
        false => asked.step,
    };
    FindMax {
        objective: asked.objective.to_string(),
        below_ns: asked.objective.below().0,
        step_ns: step.0,
    }
}
