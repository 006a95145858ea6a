//! The cells that an experiment means, whatever the machine lacks. Pure.
//!
//! Not for: what of them is run ([`super::plan`]).

use std::collections::{BTreeMap, BTreeSet};

use prony_record::{Around, Cell, Cores};
use toml::Spanned;

use super::{CELLS_MAX, Frame, PlanError, client, connections, program};
use crate::experiment::{Connections, Exclusion, Experiment, Setting, Workload};
use crate::subject::Subject;

/// How much a cell asks.
#[derive(Clone, Copy)]
enum Size {
    /// Connections, as asked for and as cut.
    Connections(Connections, u32),
    /// Of a program's work.
    Count(u64),
}

fn sizes(workload: &Workload, experiment: &Experiment, frame: &Frame, quick: bool) -> Vec<Size> {
    if let Some(work) = &workload.work {
        let counts = program::counts(work, experiment, quick);
        return counts.into_iter().map(Size::Count).collect();
    }
    let kept = connections(workload, experiment, &frame.connection_cap, quick);
    let size = |(asked, number)| Size::Connections(asked, number);
    kept.into_iter().map(size).collect()
}

/// All cells that the experiment means, whatever the machine lacks, in the order
/// of the document: by workload, size and setting, then by subject.
pub(super) fn candidates(
    experiment: &Experiment,
    subjects: &[Subject],
    frame: &Frame,
    quick: bool,
) -> Result<Vec<Cell>, PlanError> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let combinations = combinations(&experiment.settings)?;
    for workload in &experiment.workloads {
        for size in sizes(workload, experiment, frame, quick) {
            for chosen in &combinations {
                for subject in subjects.iter().filter(|s| applies(workload, s)) {
                    let settings = &experiment.settings;
                    let Some(written) = settings_of(subject, workload, settings, chosen) else {
                        continue;
                    };
                    let cell = cell(subject, workload, size, &written, &frame.cores);
                    let excluded = |e| excludes(e, &cell, size, &written);
                    // A subject that a setting does not concern has one cell, not one a value.
                    if !experiment.exclude.iter().any(excluded) && seen.insert(cell.id.clone()) {
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

/// Whether a list of subjects, if there is one, holds `subject`.
pub(super) fn is_listed(names: &Option<Vec<Spanned<String>>>, subject: &Subject) -> bool {
    let listed =
        |names: &Vec<Spanned<String>>| names.iter().any(|name| *name.get_ref() == subject.id);
    names.as_ref().is_none_or(listed)
}

pub(super) fn applies(workload: &Workload, subject: &Subject) -> bool {
    let does = match (&workload.work, &workload.client) {
        (None, None) => subject.is_server() && subject.answers(&workload.request.path),
        (_, Some(asked)) => client::does(asked, subject),
        (Some(work), None) => {
            let program = subject.program.as_ref();
            program.is_some_and(|program| program.why_not(&work.work).is_none())
        }
    };
    does && is_listed(&workload.subjects, subject)
}

/// A setting and its value as the experiment writes it.
type Written<'a> = (&'a Setting, &'a str);

/// The values of those settings that concern `subject` in `workload`: nothing can be set
/// on a server that already runs. `None`: it does not offer one of them.
fn settings_of<'a>(
    subject: &Subject,
    workload: &Workload,
    settings: &'a [Setting],
    chosen: &[usize],
) -> Option<Vec<Written<'a>>> {
    let of_workload = |setting: &Setting| {
        let names = setting.workloads.as_ref();
        names.is_none_or(|names| names.iter().any(|n| n.get_ref() == workload.name.get_ref()))
    };
    let concerns = |setting: &Setting| {
        subject.is_started()
            && is_listed(&setting.subjects, subject)
            && of_workload(setting)
            && program::is_told(setting, subject, workload)
    };
    let pairs = settings.iter().zip(chosen);
    let written: Vec<Written<'a>> = pairs
        .filter(|(setting, _)| concerns(setting))
        .map(|(setting, &value)| (setting, setting.values[value].as_str()))
        .collect();
    let offered = |(setting, value): &Written<'a>| program::offers(setting, subject, value);
    written.iter().all(offered).then_some(written)
}

fn cell(
    subject: &Subject,
    workload: &Workload,
    size: Size,
    written: &[Written<'_>],
    cores: &Cores,
) -> Cell {
    let (connections, count, size) = match size {
        Size::Connections(_, number) => (number, None, format!("c={number}")),
        Size::Count(count) => (0, Some(count), format!("n={count}")),
    };
    let shown = |&(setting, value): &Written<'_>| {
        let value = program::value_of(setting, value, workload, cores);
        (setting.name.get_ref().clone(), value)
    };
    let settings: BTreeMap<String, String> = written.iter().map(shown).collect();
    let mut id = format!("{} {} {size}", subject.id, workload.name.get_ref());
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
        count,
        settings,
        around: Around::default(),
    }
}

fn excludes(exclusion: &Exclusion, cell: &Cell, size: Size, written: &[Written<'_>]) -> bool {
    let is = |name: &Option<Spanned<String>>, value: &str| {
        name.as_ref().is_none_or(|name| name.get_ref() == value)
    };
    let connections = exclusion.connections.is_none_or(|count| match size {
        Size::Connections(asked, cut) => count == asked || count == Connections::Exactly(cut),
        Size::Count(_) => false,
    });
    let setting = |(name, value): &(Spanned<String>, Spanned<String>)| {
        written
            .iter()
            .any(|(setting, own)| setting.name == *name && own == value.get_ref())
    };
    is(&exclusion.subject, &cell.subject)
        && is(&exclusion.workload, &cell.workload)
        && connections
        && exclusion
            .count
            .is_none_or(|count| cell.count == Some(count))
        && exclusion.settings.iter().all(setting)
}
