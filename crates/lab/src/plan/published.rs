//! The part of a plan that is about claims of published documents: which of its cells answer them. Pure.

use prony_record::{
    Cell, CellMetric, ConnectionCap, Cores, Measurand, Named, Plan, PlannedSetting, PublishedClaim,
};

use super::cells::{candidates, connections, planned_settings};
use super::facts::Facts;
use super::inputs::Inputs;
use super::options::Options;
use super::program;
use crate::diagnosis::{Diagnoses, Diagnosis, quoted, suggest};
use crate::experiment::{Connections, Experiment, Wanted, Workload};
use crate::subject::Subject;

/// Cells that a message lists at the most.
const LISTED_MAX: usize = 8;

/// The claims of an experiment for a machine with this cap and these cores.
pub fn published(
    experiment: &Experiment,
    cap: &ConnectionCap,
    cores: &Cores,
) -> Vec<PublishedClaim> {
    let of = |wanted: &Option<Wanted>| {
        let wanted = wanted.as_ref()?;
        Some(measurand(experiment, wanted, cap, cores))
    };
    let claims = experiment.published.iter();
    let planned = claims.map(|claim| PublishedClaim {
        text: claim.text.clone(),
        source: claim.source.clone(),
        stated: claim.stated,
        original: of(&claim.original),
        ours: of(&claim.ours),
        cores_min: claim.cores_min,
        why_not: claim.why_not.clone(),
    });
    planned.collect()
}

/// Puts the claims of an experiment in the place of those that a plan has.
pub fn republish(plan: &mut Plan, experiment: &Experiment) {
    plan.published = published(experiment, &plan.connection_cap, &plan.cores);
}

fn measurand(
    experiment: &Experiment,
    wanted: &Wanted,
    cap: &ConnectionCap,
    cores: &Cores,
) -> Measurand {
    let named = |w: &&Workload| w.name == wanted.workload;
    let workload = experiment.workloads.iter().find(named);
    let requested = wanted
        .connections
        .as_ref()
        .map(|requested| *requested.get_ref());
    let cut = |requested: Connections| {
        let all = connections(workload?, cap, None);
        let found = all.into_iter().find(|(size, _)| *size == requested);
        // Of two numbers that the cap makes one, one stands there; one that the workload has not is no cell's.
        let otherwise = match requested {
            Connections::Exactly(number) => number.min(cap.connections_max),
            Connections::Max => cap.connections_max,
        };
        Some(found.map_or(otherwise, |(_, number)| number))
    };
    let value = |name: &str, value: &str| {
        let mut settings = experiment.settings.iter();
        let setting = settings.find(|setting| setting.name.get_ref() == name);
        match (setting, workload) {
            (Some(setting), Some(workload)) => program::value_of(setting, value, workload, cores),
            _ => value.to_owned(),
        }
    };
    let settings = wanted.settings.iter();
    let settings = settings.map(|(name, given)| {
        let name = name.get_ref().clone();
        let value = value(&name, given.get_ref());
        (name, value)
    });
    let over = wanted.over.as_deref();
    Measurand {
        subject: wanted.subject.get_ref().clone(),
        workload: wanted.workload.get_ref().clone(),
        connections: requested.and_then(cut),
        count: wanted.count,
        settings: settings.collect(),
        metric: wanted.metric,
        over: over.map(|over| Box::new(measurand(experiment, over, cap, cores))),
    }
}

/// Checks that each claim names one cell of the experiment, whatever this machine lacks.
pub fn check_published(experiment: &Experiment, all: &[Subject]) -> Result<(), Diagnoses> {
    if experiment.published.is_empty() {
        return Ok(());
    }
    let inputs = Inputs {
        experiment,
        parts: experiment.split(all),
        facts: &Facts::default(),
        options: &Options::default(),
        connection_cap: ConnectionCap {
            connections_max: u32::MAX,
            ..ConnectionCap::default()
        },
        cores: Cores {
            subject: vec![0],
            generator: vec![1],
            lab: Vec::new(),
        },
    };
    // What is wrong with the cells themselves, the plan says.
    let Ok(cells) = candidates(&inputs) else {
        return Ok(());
    };
    let settings = planned_settings(experiment, &cells);
    let ids: Vec<&str> = inputs
        .parts
        .subjects
        .iter()
        .map(|s| s.id.as_str())
        .collect();
    let mut wrong = Vec::new();
    let claims = experiment.published.iter();
    let wanted = claims.flat_map(|claim| claim.original.iter().chain(&claim.ours));
    for wanted in wanted.flat_map(Wanted::both) {
        let subject = wanted.subject.get_ref();
        if !ids.contains(&subject.as_str()) {
            let message = format!("there is no subject `{subject}` in this experiment");
            let help = suggest(subject, "subject", &ids);
            wrong.push(Diagnosis::new(wanted.subject.span(), message).help(help));
            continue;
        }
        let alone = Wanted {
            over: None,
            ..wanted.clone()
        };
        let named = measurand(experiment, &alone, &inputs.connection_cap, &inputs.cores);
        wrong.extend(not_one(&named, &cells, &settings, wanted));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(experiment.diagnoses(wrong)),
    }
}

/// What is wrong where `named` is not one of `cells`.
fn not_one(
    named: &Measurand,
    cells: &[Cell],
    settings: &[PlannedSetting],
    wanted: &Wanted,
) -> Option<Diagnosis> {
    let words = named.in_words();
    let ids = |cells: Vec<&Cell>| -> Vec<String> { cells.iter().map(|c| c.id.clone()).collect() };
    let (message, near) = match named.cell(cells, settings) {
        Named::Cell(_) => return None,
        // It is of several sizes.
        Named::Several(_) if named.metric == CellMetric::Exponent => return None,
        Named::Several(several) => (
            format!("`{words}` is more than one cell; say which"),
            ids(several),
        ),
        Named::Nothing => {
            let of_workload = cells.iter().filter(|cell| cell.workload == named.workload);
            let of_both = of_workload
                .clone()
                .filter(|cell| cell.subject == named.subject);
            let of_both = ids(of_both.collect());
            let near = match of_both.is_empty() {
                true => ids(of_workload.collect()),
                false => of_both,
            };
            (format!("the experiment has no cell `{words}`"), near)
        }
    };
    let shown = quoted(&near[..near.len().min(LISTED_MAX)]);
    let more = match near.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let place = wanted.place.clone();
    Some(Diagnosis::new(place, message).help(format!("near: {shown}{more}")))
}
