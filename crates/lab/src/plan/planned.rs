//! The parts of a plan that are parts of its experiment, as far as its cells need them. Pure.

use prony_base::Nanos;
use prony_record::{
    Arrival, Cell, Cores, FindMax, PlannedCounter, PlannedSetting, PlannedSubject, PlannedWorkload,
};

use super::options::Options;
use super::{client, program, rows, topology};
use crate::experiment::{Counter, Experiment, Search, Setting, THREADS};
use crate::subject::{Repository, Subject};

pub fn planned_subjects(
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

pub fn planned_services(
    experiment: &Experiment,
    services: &[Subject],
    cells: &[Cell],
    cores: &Cores,
) -> Vec<PlannedSubject> {
    topology::used(services, cells)
        .map(|service| planned_subject(experiment, service, cores))
        .collect()
}

pub fn planned_subject(
    experiment: &Experiment,
    subject: &Subject,
    cores: &Cores,
) -> PlannedSubject {
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
        build_dir: String::new(),
        build_key: String::new(),
        files_sha256: String::new(),
        repositories: subject
            .revision
            .iter()
            .cloned()
            .chain(subject.repositories.iter().map(named))
            .collect(),
        version: String::new(),
        client: client.cmd,
        client_env: client.env,
        client_translate: client.translate,
        counts: subject.counts.clone(),
        copy_of: None,
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

pub fn planned_workloads(
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
            expect_status: workload.expect_status,
            expect_content_type: workload.expect_content_type.clone(),
            expect_body: workload.expect_body.clone(),
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
        });
    }
    planned
}

fn planned_counter(counter: &Counter) -> PlannedCounter {
    PlannedCounter {
        path: counter.path.clone(),
        adds: counter.adds,
        ended_by: counter.kept,
    }
}

/// The different values, in order.
pub fn once<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut different = Vec::new();
    for value in values {
        if !different.contains(&value) {
            different.push(value);
        }
    }
    different
}

pub fn planned_settings(experiment: &Experiment, cells: &[Cell]) -> Vec<PlannedSetting> {
    let used = |s: &&Setting| {
        cells
            .iter()
            .any(|cell| cell.settings.contains_key(s.name.get_ref()))
    };
    let values = |setting: &Setting| match setting.name.get_ref().as_str() {
        // As the cells have them, where "cores" is a number.
        THREADS => once(
            cells
                .iter()
                .filter_map(|c| c.settings.get(THREADS).cloned()),
        ),
        _ => setting.values.clone(),
    };
    let planned = |setting: &Setting| PlannedSetting {
        name: setting.name.get_ref().clone(),
        values: values(setting),
        env: setting.env.clone(),
        args: setting.args.clone(),
        env_of: setting.env_of.clone(),
        sysctl: setting.sysctl.clone(),
        backing_of: setting
            .topology
            .backings
            .iter()
            .map(|(value, names)| (value.clone(), plain(names)))
            .collect(),
        front_of: setting
            .topology
            .fronts
            .iter()
            .map(|(value, name)| (value.clone(), name.get_ref().clone()))
            .collect(),
        output_of: setting.topology.outputs.clone(),
    };
    experiment
        .settings
        .iter()
        .filter(used)
        .map(planned)
        .collect()
}

fn plain(names: &[toml::Spanned<String>]) -> Vec<String> {
    names.iter().map(|name| name.get_ref().clone()).collect()
}

/// `[run]` as a run keeps to it.
pub struct Times {
    /// Rounds over all cells.
    pub blocks: u32,
    /// Measured window.
    pub duration: Nanos,
    /// Warm-up.
    pub warmup: Nanos,
}

/// `[run]`, what `--quick` makes of it, `--blocks` and `--duration`.
pub fn run_of(experiment: &Experiment, options: &Options) -> Times {
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
pub fn subjects_of(cells: &[Cell]) -> impl Iterator<Item = &str> {
    let mut seen: Vec<&str> = Vec::new();
    for cell in cells {
        if !seen.contains(&cell.subject.as_str()) {
            seen.push(&cell.subject);
        }
    }
    seen.into_iter()
}

/// The arrival of a workload with the rates that its `cells` have.
pub fn planned_arrival<'a>(arrival: &Arrival, cells: impl Iterator<Item = &'a Cell>) -> Arrival {
    let mut planned = arrival.clone();
    if let Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s } = &mut planned {
        *rates_per_s = once(cells.filter_map(|cell| cell.rate_per_s));
    }
    planned
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
