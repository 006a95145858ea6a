//! The cells that an experiment means, whatever the machine lacks. Pure.
//!
//! Not for: what of them is run ([`super::plan`]).

use std::collections::{BTreeMap, BTreeSet};

use prony_record::{Around, Cell};
use toml::Spanned;

use super::{CELLS_MAX, Frame, PlanError, around, arrival, client, connections, program};
use crate::experiment::{Connections, Exclusion, Experiment, Parts, Row, Setting, Workload};
use crate::subject::Subject;

/// How much a cell asks.
#[derive(Clone, Copy)]
enum Size {
    /// Connections, as asked for and as cut, and requests a second where a rate is said.
    Connections(Connections, u32, Option<f64>),
    /// Of a program's work.
    Count(u64),
}

fn sizes(workload: &Workload, experiment: &Experiment, frame: &Frame, quick: bool) -> Vec<Size> {
    if let Some(work) = &workload.work {
        let counts = program::counts(work, experiment, quick);
        return counts.into_iter().map(Size::Count).collect();
    }
    let kept = connections(workload, experiment, &frame.connection_cap, quick);
    let rates = arrival::rates(&workload.arrival, experiment, quick);
    let of = |(asked, number)| {
        let size = move |rate: &Option<f64>| Size::Connections(asked, number, *rate);
        rates.iter().map(size)
    };
    kept.into_iter().flat_map(of).collect()
}

/// What all cells are made from.
pub(super) struct Stage<'a> {
    pub experiment: &'a Experiment,
    /// What the entries of the experiment name.
    pub parts: &'a Parts<'a, Subject>,
    pub frame: &'a Frame,
    pub quick: bool,
}

/// All cells that the experiment means, whatever the machine lacks, in the order
/// of the document: by workload and size (connections, then rate); then the rows of the workload, or by setting,
/// then by subject.
pub(super) fn candidates(stage: &Stage<'_>) -> Result<Vec<Cell>, PlanError> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for workload in &stage.experiment.workloads {
        let combinations = combinations(stage, workload)?;
        for size in sizes(workload, stage.experiment, stage.frame, stage.quick) {
            for (subject, written) in meant(stage, workload, &combinations) {
                let cell = cell(stage, subject, workload, size, &written);
                let excluded = |e| excludes(e, &cell, size, &written);
                // A subject that a setting does not concern has one cell, not one a value.
                let left_out = stage.experiment.exclude.iter().any(excluded);
                if !left_out && seen.insert(cell.id.clone()) {
                    cells.push(cell);
                }
                if cells.len() > CELLS_MAX {
                    return Err(PlanError::TooManyCells);
                }
            }
        }
    }
    Ok(cells)
}

/// A subject with the values of the settings that it has.
type Meant<'a> = (&'a Subject, Vec<Written<'a>>);

/// What a workload is asked of: its rows, or all combinations.
fn meant<'a>(
    stage: &Stage<'a>,
    workload: &'a Workload,
    combinations: &[Vec<Written<'a>>],
) -> Vec<Meant<'a>> {
    let subjects = stage.parts.subjects;
    if !workload.rows.is_empty() {
        let of_row = |row: &'a Row| {
            let mut subjects = subjects.iter();
            let subject = subjects.find(|subject| subject.id == *row.subject.get_ref())?;
            Some((subject, row.written(&stage.experiment.settings)))
        };
        return workload.rows.iter().filter_map(of_row).collect();
    }
    let mut meant = Vec::new();
    for chosen in combinations {
        for subject in subjects.iter().filter(|s| applies(workload, s)) {
            let written = settings_of(subject, workload, chosen, stage.parts);
            meant.extend(written.map(|written| (subject, written)));
        }
    }
    meant
}

/// Every choice of one value for each setting that is for `workload`; none where it has rows.
fn combinations<'a>(
    stage: &Stage<'a>,
    workload: &Workload,
) -> Result<Vec<Vec<Written<'a>>>, PlanError> {
    let mut all: Vec<Vec<Written<'a>>> = vec![Vec::new()];
    let is_meant = |setting: &&Setting| {
        let of_servers = around::is_of_servers(setting, stage.parts);
        workload.rows.is_empty()
            && is_for(setting, workload)
            && (workload.is_request() || !of_servers)
    };
    for setting in stage.experiment.settings.iter().filter(is_meant) {
        if all.len() * setting.values.len() > CELLS_MAX {
            return Err(PlanError::TooManyCells);
        }
        all = all
            .iter()
            .flat_map(|chosen| {
                setting.values.iter().map(|value| {
                    let mut longer = chosen.clone();
                    longer.push((setting, value.as_str()));
                    longer
                })
            })
            .collect();
    }
    Ok(all)
}

/// Whether `workload` is among those that a setting is for.
pub(super) fn is_for(setting: &Setting, workload: &Workload) -> bool {
    let names = setting.workloads.as_ref();
    names.is_none_or(|names| names.iter().any(|n| n.get_ref() == workload.name.get_ref()))
}

/// Whether a list of subjects, if there is one, holds `subject`.
pub(super) fn is_listed(names: &Option<Vec<Spanned<String>>>, subject: &Subject) -> bool {
    let listed =
        |names: &Vec<Spanned<String>>| names.iter().any(|name| *name.get_ref() == subject.id);
    names.as_ref().is_none_or(listed)
}

pub(super) fn applies(workload: &Workload, subject: &Subject) -> bool {
    let does = match (&workload.work, &workload.client) {
        (None, None) => {
            let counter = workload.counter.as_ref();
            let answers_counter = counter.is_none_or(|counter| subject.answers(&counter.path));
            subject.is_server() && subject.answers(&workload.request.path) && answers_counter
        }
        (_, Some(asked)) => client::does(asked, subject),
        (Some(work), None) => {
            let program = subject.program.as_ref();
            program.is_some_and(|program| program.why_not(&work.work).is_none())
        }
    };
    let mut rows = workload.rows.iter();
    let in_rows = rows.any(|row| *row.subject.get_ref() == subject.id);
    does && (workload.rows.is_empty() || in_rows) && is_listed(&workload.subjects, subject)
}

/// A setting and its value as the experiment writes it.
pub(super) type Written<'a> = (&'a Setting, &'a str);

/// The values of those settings that concern `subject` in `workload`: nothing can be set
/// on a server that already runs. `None`: it, or what stands around it, does not offer one
/// of them.
fn settings_of<'a>(
    subject: &Subject,
    workload: &Workload,
    chosen: &[Written<'a>],
    parts: &Parts<'_, Subject>,
) -> Option<Vec<Written<'a>>> {
    let may = |setting: &Setting| subject.is_started() && is_listed(&setting.subjects, subject);
    let concerns = |setting: &Setting| may(setting) && program::is_told(setting, subject, workload);
    let own = |(setting, _): &Written<'a>| concerns(setting);
    let written: Vec<Written<'a>> = chosen.iter().copied().filter(own).collect();
    // A setting may choose among the builds of what the others put around the subject.
    let around = around::around(subject, &written, parts);
    let offered_by = |name: &String| {
        let mut services = around::services_of(&around, parts);
        services.any(|service| service.variants.contains_key(name))
    };
    let concerned = |(setting, _): &Written<'a>| {
        concerns(setting) || may(setting) && offered_by(setting.name.get_ref())
    };
    let written: Vec<Written<'a>> = chosen.iter().copied().filter(concerned).collect();
    let mut all = std::iter::once(subject).chain(around::services_of(&around, parts));
    let offers = |other: &Subject| {
        let mut own = written.iter();
        own.all(|(setting, value)| program::offers(setting, other, value))
    };
    all.all(offers).then_some(written)
}

fn cell(
    stage: &Stage<'_>,
    subject: &Subject,
    workload: &Workload,
    size: Size,
    written: &[Written<'_>],
) -> Cell {
    let (connections, count, rate_per_s, size) = match size {
        Size::Connections(_, number, None) => (number, None, None, format!("c={number}")),
        Size::Connections(_, number, Some(rate)) => {
            (number, None, Some(rate), format!("c={number} rate={rate}"))
        }
        Size::Count(count) => (0, Some(count), None, format!("n={count}")),
    };
    let shown = |&(setting, value): &Written<'_>| {
        let value = program::value_of(setting, value, workload, &stage.frame.cores);
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
    let around = match workload.is_request() {
        true => around::around(subject, written, stage.parts),
        false => Around::default(),
    };
    Cell {
        id,
        subject: subject.id.clone(),
        workload: workload.name.get_ref().clone(),
        connections,
        rate_per_s,
        count,
        settings,
        around,
    }
}

fn excludes(exclusion: &Exclusion, cell: &Cell, size: Size, written: &[Written<'_>]) -> bool {
    let is = |name: &Option<Spanned<String>>, value: &str| {
        name.as_ref().is_none_or(|name| name.get_ref() == value)
    };
    let connections = exclusion.connections.is_none_or(|count| match size {
        Size::Connections(asked, cut, _) => count == asked || count == Connections::Exactly(cut),
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
        && exclusion
            .rate
            .is_none_or(|rate| cell.rate_per_s == Some(rate))
        && exclusion.settings.iter().all(setting)
}
