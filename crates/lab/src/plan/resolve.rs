//! From an experiment, its subjects and the facts about a machine to the [`Plan`]. Pure.
//!
//! The rules are those of [`super`]. Not for: which cells there are ([`super::cells`]).

use std::collections::BTreeMap;

use prony_base::{Nanos, Untrusted, counted};
use prony_record::{
    Cell, ConnectionCap, Cores, FindMax, METHOD, NotRun, Plan, PlannedCounter, PlannedSubject,
    PlannedWorkload, SCHEMA, Work,
};

use super::cells::{applies, candidates, connections, planned_arrival, planned_settings};
use super::cores;
use super::facts::Facts;
use super::inputs::Inputs;
use super::options::{Options, PlanError, is_selected};
use super::sizes::once;
use super::{client, copies, program, published, rows, settle, threads, topology, values, visits};
use crate::cap;
use crate::experiment::words::SYSTEMS;
use crate::experiment::{Counter, Experiment, Search, Workload};
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
    let inputs = inputs(experiment, all, facts, options);
    let (cells, not_run) = choose(&inputs)?;
    let run = run_of(experiment, options);
    let parts = &inputs.parts;
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
        subjects: planned_subjects(&inputs, &cells),
        workloads: planned_workloads(&inputs, &cells),
        settings: planned_settings(experiment, &cells),
        peers: planned(&inputs, client::peers(&inputs, &cells).into_iter()),
        backings: planned(&inputs, topology::used(parts.backings, &cells)),
        fronts: planned(&inputs, topology::used(parts.fronts, &cells)),
        networks: client::networks(&inputs, &cells),
        notes: notes_on_cap(&inputs),
        published: published::published(experiment, &inputs.connection_cap, &inputs.cores),
        order: Vec::new(),
        joined: BTreeMap::new(),
        cores: inputs.cores.clone(),
        connection_cap: inputs.connection_cap.clone(),
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
    if visits::requested_length(options, &experiment.run).is_none() {
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
    let mut cells = plan.cells.iter().filter(|cell| cell.subject == subject.id);
    let is_measured = plan
        .subjects
        .iter()
        .any(|cells_of| cells_of.id == subject.id);
    let mut settings = plan.settings.iter();
    let is_set = settings.any(|of| of.args.iter().chain(of.env.values()).any(is_it));
    let runs = |cell: &Cell| {
        let work = plan.workload_of(cell).map_or(Work::Server, |of| of.work());
        let translates = matches!(work, Work::Client(_));
        subject.mentions(work, SYSTEMS) || translates && subject.client_translate.iter().any(is_it)
    };
    is_measured && is_set
        || !is_measured && subject.mentions(Work::Server, SYSTEMS)
        || cells.any(runs)
}

/// The cells that are run, and what is not.
fn choose(inputs: &Inputs<'_>) -> Result<(Vec<Cell>, Vec<NotRun>), PlanError> {
    let possible = candidates(inputs)?;
    if possible.is_empty() {
        return Err(PlanError::NoCells);
    }
    let selected = select_only(&possible, &inputs.options.only)?;
    let mut not_run = missing(inputs, &selected);
    let mut found = client::missing_peers(inputs, &selected);
    found.extend(values::missing(inputs, &selected));
    found.extend(program::other_sizes(inputs, &selected));
    found.extend(client::impossible(inputs, &selected));
    let lacking = topology::missing(&inputs.parts, &selected, inputs.facts);
    let impossible = topology::impossible(&selected, &lacking);
    found.extend(lacking.into_iter().chain(impossible));
    for skipped in found {
        if not_run.iter().all(|other| other.what != skipped.what) {
            not_run.push(skipped);
        }
    }
    let is_skipped = |cell: &Cell| {
        let mut all = not_run.iter();
        all.any(|skipped| skipped.what == cell.subject || skipped.what == cell.id)
            || client::lacks_peer(inputs, cell, &not_run)
            || topology::lacks(cell, &not_run)
            || values::is_among(cell, &not_run)
    };
    let cells: Vec<Cell> = selected
        .into_iter()
        .filter(|cell| !is_skipped(cell))
        .collect();
    if cells.is_empty() {
        return Err(PlanError::NothingRuns { not_run });
    }
    not_run.extend(program::unsupported_works(inputs));
    // One whose every work is named already is not named again as a whole.
    let is_named = |skipped: &NotRun| {
        let start = format!("{} ", skipped.what);
        not_run.iter().any(|other| other.what.starts_with(&start))
    };
    let mut unreached = not_applicable(inputs, &possible);
    unreached.retain(|skipped| !is_named(skipped));
    not_run.extend(unreached);
    Ok((cells, not_run))
}

/// What the plan is made from. An experiment of programs has no generator, and nothing of the network limits it.
fn inputs<'a>(
    experiment: &'a Experiment,
    all: &'a [Subject],
    facts: &'a Facts,
    options: &'a Options,
) -> Inputs<'a> {
    let given = cores::given(experiment, options);
    let (connection_cap, cores) = match program::is_all_programs(experiment) {
        true => (
            ConnectionCap::default(),
            program::cores(&facts.cores, given),
        ),
        false => {
            let most = experiment.workloads.iter().map(|w| w.connections_max).max();
            let has_front = topology::has_front(experiment);
            (
                cap::cap(&facts.limits, most.unwrap_or(1), has_front),
                cores::split(&facts.cores, experiment.run.threads, given),
            )
        }
    };
    Inputs {
        experiment,
        parts: experiment.split(all),
        facts,
        options,
        connection_cap,
        cores,
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
fn missing(inputs: &Inputs<'_>, selected: &[Cell]) -> Vec<NotRun> {
    let skipped = used_subjects(inputs, selected).filter_map(|subject| {
        let (reason, remedy) = inputs.facts.lacks(subject)?;
        Some(NotRun::new(&subject.id, reason, remedy))
    });
    skipped.collect()
}

/// Subjects that no workload reaches, unless `--only` asks for others.
fn not_applicable(inputs: &Inputs<'_>, all: &[Cell]) -> Vec<NotRun> {
    let experiment = inputs.experiment;
    let is_meant = |s: &Subject| is_selected(&inputs.options.only, &s.id, &s.id);
    let is_reached = |s: &Subject| all.iter().any(|cell| cell.subject == s.id);
    let subjects = inputs.parts.subjects.iter();
    let unreached = subjects.filter(|s| !is_reached(s) && is_meant(s));
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
fn notes_on_cap(inputs: &Inputs<'_>) -> Vec<String> {
    let (cap, quick) = (&inputs.connection_cap, inputs.quick());
    let most = quick.and_then(|quick| quick.connections_max);
    let most = most.unwrap_or(u32::MAX);
    let mut notes = Vec::new();
    let workloads = inputs.experiment.workloads.iter();
    for workload in workloads.filter(|w| w.work.is_none()) {
        for (count, number) in connections(workload, cap, quick) {
            let requested = workload.number_of(count);
            if requested.min(most) > number {
                let name = workload.name.get_ref();
                let requested = counted(requested, "connection");
                let limit = &cap.limited_by;
                notes.push(format!("{name}: {requested} cut to {number} ({limit})"));
            }
        }
    }
    notes
}

fn planned_subjects(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<PlannedSubject> {
    planned(inputs, used_subjects(inputs, cells))
}

/// The subjects that cells have, in the order of the experiment.
fn used_subjects<'a>(inputs: &Inputs<'a>, cells: &[Cell]) -> impl Iterator<Item = &'a Subject> {
    let is_used = move |subject: &&Subject| cells.iter().any(|cell| cell.subject == subject.id);
    inputs.parts.subjects.iter().filter(is_used)
}

fn planned<'a>(
    inputs: &Inputs<'_>,
    subjects: impl Iterator<Item = &'a Subject>,
) -> Vec<PlannedSubject> {
    let planned = |subject| planned_subject(inputs.experiment, subject, &inputs.cores);
    subjects.map(planned).collect()
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
        client: client.program.cmd,
        client_env: client.program.env,
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

fn planned_workloads(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<PlannedWorkload> {
    let (experiment, options) = (inputs.experiment, inputs.options);
    let payload_max = inputs.quick().and_then(|quick| quick.payload_max);
    let duration = run_of(experiment, options).duration;
    let mut planned = Vec::with_capacity(experiment.workloads.len());
    for workload in &experiment.workloads {
        let name = workload.name.get_ref();
        let cells_of = || cells.iter().filter(|cell| cell.workload == *name);
        let mut connections = once(cells_of().map(|cell| cell.connections));
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
            arrival: planned_arrival(&workload.arrival, cells_of()),
            connections,
            timeout_ns: workload.timeout.0,
            program: work
                .map(|work| program::planned(work, once(cells_of().filter_map(|c| c.count)))),
            client: workload
                .client
                .as_ref()
                .map(|client| client::planned(client, inputs.parts.peers, payload_max)),
            rows: rows::planned(workload, &experiment.settings, &inputs.cores),
            counter: workload.counter.as_ref().map(planned_counter),
            find_max: workload
                .find_max
                .map(|search| planned_search(search, duration, options)),
            rest_ns: workload.rest.map_or(0, |rest| rest.0),
            requests_max: workload.requests_max,
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
        ended_by: counter.ended_by,
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
        // Servers take turns within a block. A program or a client is started anew for each figure, so that its quick run
        // needs the blocks of a claim.
        let most = match client::has_requests(experiment) {
            true => 2,
            false => 6,
        };
        times.blocks = quick.blocks.unwrap_or(run.blocks.min(most));
        times.duration = quick
            .duration
            .unwrap_or(run.duration.min(Nanos::from_secs(1)));
        times.warmup = quick
            .warmup
            .unwrap_or(run.warmup.min(Nanos::from_millis(300)));
    }
    times.duration = options.duration.unwrap_or(times.duration);
    times.warmup = options.warmup.unwrap_or(times.warmup);
    if !client::has_requests(experiment) {
        times.warmup = Nanos::ZERO;
        times.duration = match client::has_window(experiment) {
            true => Nanos::from_secs(client::seconds(times.duration)),
            false => Nanos::ZERO,
        };
    }
    times.blocks = options.blocks.unwrap_or(times.blocks).max(1);
    times
}

/// What is looked for. A quick run's steps are no longer than its windows (`duration`); else they are as the workload says,
/// whatever `--duration`, or a pilot, says of windows.
fn planned_search(search: Search, duration: Nanos, options: &Options) -> FindMax {
    let step = match options.quick {
        true => search.step.min(duration),
        false => search.step,
    };
    FindMax {
        objective: search.objective.to_string(),
        below_ns: search.objective.below().0,
        step_ns: step.0,
    }
}
