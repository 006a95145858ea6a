//! The part of a plan that is about programs: which work in which sizes, which threads
//! and builds, and what no program of a subject does. Pure.

use prony_record::{Cell, Cores, NotRun, PlannedProgram};
use toml::Spanned;

use super::inputs::Inputs;
use super::sizes::{once, quick_ones};
use super::topology::names_in;
use crate::experiment::spoken::{self, PROTOCOL, PROTOCOLS};
use crate::experiment::{ALL_CORES, Experiment, Quick, Setting, THREADS, Work, Workload};
use crate::subject::{Role, Subject};

/// The sizes of a work: quick ones if asked, each once.
pub fn counts(work: &Work, quick: Option<&Quick>) -> Vec<u64> {
    let few = quick.and_then(|quick| quick.count.as_ref());
    let max = quick.and_then(|quick| quick.count_max);
    let requested = quick_ones(&work.counts, few.map(Spanned::get_ref)).into_iter();
    once(requested.map(|count| count.min(max.unwrap_or(u64::MAX))))
}

/// A work as it is planned, with the sizes that are left.
pub fn planned(work: &Work, counts: Vec<u64>) -> PlannedProgram {
    PlannedProgram {
        work: work.work.clone(),
        counts,
        args: work.args.clone(),
    }
}

/// Whether the experiment asks programs only, so that there is no generator and nothing
/// of the network is needed.
pub fn is_all_programs(experiment: &Experiment) -> bool {
    experiment.workloads.iter().all(|w| w.work.is_some())
}

/// The cores of an experiment without a generator: all are the subject's, or those that are `given` to it. The lab has what a
/// program leaves; where they are given, its own, or else those of the side that there is not.
pub fn cores(groups: &[Vec<u32>], given: Option<&Cores>) -> Cores {
    let Some(given) = given else {
        return Cores {
            subject: groups.concat(),
            ..Cores::default()
        };
    };
    Cores {
        subject: given.subject.clone(),
        generator: Vec::new(),
        lab: match given.lab.is_empty() {
            true => given.generator.clone(),
            false => given.lab.clone(),
        },
    }
}

/// The value of a setting in a cell, which says `"cores"` as the number that there are.
pub fn value_of(setting: &Setting, value: &str, workload: &Workload, cores: &Cores) -> String {
    if setting.name.get_ref() != THREADS || value != ALL_CORES {
        return value.to_owned();
    }
    let generator = if workload.work.is_some() {
        cores.generator.iter()
    } else {
        [].iter()
    };
    let mut all: Vec<&u32> = cores.subject.iter().chain(generator).collect();
    all.sort_unstable();
    all.dedup();
    all.len().max(1).to_string()
}

/// Whether a setting does something to `subject` in `workload`, beside being listed.
pub fn is_told(setting: &Setting, subject: &Subject, workload: &Workload) -> bool {
    let name = setting.name.get_ref();
    if spoken::is_spoken(name) {
        return workload.is_request();
    }
    if setting.has_effect() || subject.variants.contains_key(name) {
        return true;
    }
    let program = match workload.work {
        Some(_) => subject.program.as_ref(),
        None => subject.client.as_ref().map(|client| &client.program),
    };
    name == THREADS
        && match program.filter(|_| !workload.is_request()) {
            Some(program) => names_in(program.texts(), THREADS),
            None => names_in(subject.texts(), THREADS),
        }
}

/// Whether `subject` offers the build, or speaks the protocol, that `value` of `setting` names.
pub fn offers(setting: &Setting, subject: &Subject, value: &str) -> bool {
    let name = setting.name.get_ref();
    if name == PROTOCOL && subject.role != Role::Backing {
        return subject.speaks(value);
    }
    let offered = subject.variants.get(name);
    offered.is_none_or(|values| values.iter().any(|one| one == value))
}

/// Why `subject` has no cell with a value of `setting` that it does not offer.
pub fn why_not_offered(setting: &Setting, subject: &Subject) -> String {
    let name = setting.name.get_ref();
    if name == PROTOCOL {
        let spoken = PROTOCOLS.into_iter().filter(|one| subject.speaks(one));
        let spoken: Vec<&str> = spoken.collect();
        return format!(
            "it speaks {}, by [protocols] of its subject.toml",
            crate::diagnosis::quoted(&spoken)
        );
    }
    let offered = subject.variants.get(name).cloned().unwrap_or_default();
    format!(
        "it offers the builds {}",
        crate::diagnosis::quoted(&offered)
    )
}

/// What programs of the experiment do not do, by subject and workload, and builds that
/// they do not offer.
pub fn unsupported_works(inputs: &Inputs<'_>) -> Vec<NotRun> {
    let experiment = inputs.experiment;
    let mut undone = unsupported(inputs, |workload| workload.work.is_some());
    for setting in &experiment.settings {
        for subject in inputs.listed(&setting.subjects) {
            let is_absent = |value: &&String| !offers(setting, subject, value);
            for value in setting.values.iter().filter(is_absent) {
                let what = format!("{}={value}", setting.name.get_ref());
                undone.extend(inputs.not_run(subject, &what, why_not_offered(setting, subject)));
            }
        }
    }
    undone.extend(unsupported(inputs, |workload| workload.client.is_some()));
    undone
}

/// The workloads of this kind that subjects do not do.
fn unsupported(inputs: &Inputs<'_>, is_meant: impl Fn(&&Workload) -> bool) -> Vec<NotRun> {
    let mut undone = Vec::new();
    for workload in inputs.experiment.workloads.iter().filter(is_meant) {
        for subject in inputs.listed(&workload.subjects) {
            if let Some(Err(reason)) = can_do(workload, subject) {
                undone.extend(inputs.not_run(subject, workload.name.get_ref(), reason));
            }
        }
    }
    undone
}

/// Whether `subject` does the work of a workload of programs or clients, and why not; `None`: it is none of either.
pub fn can_do(workload: &Workload, subject: &Subject) -> Option<Result<(), String>> {
    let why_not = match (&workload.work, &workload.client) {
        (Some(work), _) => subject.program.as_ref()?.why_not(&work.work),
        (None, Some(client)) => subject.client.as_ref()?.why_not(&client.work, 1),
        (None, None) => return None,
    };
    Some(why_not.map_or(Ok(()), Err))
}

/// Cells of programs whose works have a size of their own, and that ask for another one.
pub fn other_sizes(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<NotRun> {
    let why = |cell: &Cell| {
        let count = cell.count?;
        let work = inputs.experiment.workload_of(cell)?.work.as_ref()?;
        let sizes = &inputs.subject_of(cell)?.program.as_ref()?.sizes;
        let size = *sizes.get(&work.work)?;
        let reason = format!("its size of this work is {size}, and no other can be asked for");
        (size != count).then(|| NotRun::new(&cell.id, reason, ""))
    };
    cells.iter().filter_map(why).collect()
}
