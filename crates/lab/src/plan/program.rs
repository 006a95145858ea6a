//! The part of a plan that is about programs: which work in which sizes, which threads
//! and builds, and what no program of a subject does. Pure.

use prony_record::{Cell, Cores, NotRun, PlannedProgram};
use toml::Spanned;

use super::options::is_selected;
use super::sizes::{once, quick_ones};
use crate::experiment::spoken::{self, PROTOCOL, PROTOCOLS};
use crate::experiment::types::is_listed;
use crate::experiment::{ALL_CORES, Experiment, Setting, THREADS, Work, Workload};
use crate::subject::{Role, Subject};

/// The sizes of a work: quick ones if asked, each once.
pub fn counts(work: &Work, experiment: &Experiment, quick: bool) -> Vec<u64> {
    let kept = experiment.quick.count.as_ref().filter(|_| quick);
    let max = experiment.quick.count_max.filter(|_| quick);
    let asked = quick_ones(&work.counts, kept.map(Spanned::get_ref));
    once(
        asked
            .into_iter()
            .map(|count| count.min(max.unwrap_or(u64::MAX))),
    )
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
    name == THREADS
        && match (workload, &subject.program, &subject.client) {
            (Workload { work: Some(_), .. }, Some(program), _) => program.is_told_threads(),
            (
                Workload {
                    client: Some(_), ..
                },
                _,
                Some(client),
            ) => client.is_told_threads(),
            _ => {
                let mut texts = subject.start.iter().chain(subject.env.values());
                texts.any(|text| text.contains("{threads}"))
            }
        }
}

/// Whether `subject` offers the build, or speaks the protocol, that `value` of `setting` names.
pub fn offers(setting: &Setting, subject: &Subject, value: &str) -> bool {
    let name = setting.name.get_ref();
    if name == PROTOCOL && subject.role != Role::Backing {
        return subject.speaks(value);
    }
    let offered = subject.variants.get(name);
    offered.is_none_or(|values| values.iter().any(|own| own == value))
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
pub fn undone(experiment: &Experiment, subjects: &[Subject], only: &[String]) -> Vec<NotRun> {
    let mut undone = Vec::new();
    let mut note = |subject: &Subject, what: &str, reason: String| {
        let what = format!("{} {what}", subject.id);
        if is_selected(only, &subject.id, &what) {
            undone.push(NotRun::new(&what, reason, ""));
        }
    };
    for workload in &experiment.workloads {
        let Some(work) = &workload.work else { continue };
        for subject in subjects
            .iter()
            .filter(|s| is_listed(&workload.subjects, &s.id))
        {
            let why = subject.program.as_ref().and_then(|p| p.why_not(&work.work));
            if let Some(reason) = why {
                note(subject, workload.name.get_ref(), reason);
            }
        }
    }
    for setting in &experiment.settings {
        for subject in subjects
            .iter()
            .filter(|s| is_listed(&setting.subjects, &s.id))
        {
            let name = setting.name.get_ref();
            for value in setting
                .values
                .iter()
                .filter(|v| !offers(setting, subject, v))
            {
                let reason = why_not_offered(setting, subject);
                note(subject, &format!("{name}={value}"), reason);
            }
        }
    }
    undone
}

/// Cells of programs whose works have a size of their own, and that ask for another one.
pub fn other_sizes(experiment: &Experiment, subjects: &[Subject], cells: &[Cell]) -> Vec<NotRun> {
    let gone = |cell: &Cell| {
        let asked = cell.count?;
        let workload = experiment
            .workloads
            .iter()
            .find(|workload| *workload.name.get_ref() == cell.workload)?;
        let subject = subjects.iter().find(|subject| subject.id == cell.subject)?;
        let sizes = &subject.program.as_ref()?.sizes;
        let size = *sizes.get(&workload.work.as_ref()?.work)?;
        let reason = format!("its size of this work is {size}, and no other can be asked for");
        (size != asked).then(|| NotRun::new(&cell.id, reason, ""))
    };
    cells.iter().filter_map(gone).collect()
}
