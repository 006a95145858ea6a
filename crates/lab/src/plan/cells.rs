//! The cells of an experiment regardless of the machine, and the settings and rates that these cells use. Pure.
//!
//! Not for: which of them are run ([`super::plan`]).

use std::collections::{BTreeMap, BTreeSet};

use prony_base::Nanos;
use prony_record::{Around, Arrival, Cell, ConnectionCap, PlannedSetting};
use toml::Spanned;

use super::inputs::Inputs;
use super::options::{CELLS_MAX, PlanError};
use super::sizes::{once, quick_ones};
use super::{program, topology};
use crate::experiment::keys;
use crate::experiment::spoken::{self, Spoken};
use crate::experiment::types::{Written, is_listed};
use crate::experiment::{
    Connections, Exclusion, Experiment, Parts, Quick, Row, Setting, SettingTopology, THREADS,
    Workload,
};
use crate::subject::Subject;

/// With fewer connections than this, a thread of the generator has nothing to do between two answers.
const FEW_CONNECTIONS: usize = 8;
/// An answer that is there within this time finds the generator awake.
const LOOK_MAX: Nanos = Nanos::from_millis(1);

/// The size of a cell.
#[derive(Clone, Copy)]
enum Size {
    /// Connections as requested and as capped, and requests a second where the arrival has rates.
    Connections(Connections, u32, Option<f64>),
    /// A number of repetitions of a program's work.
    Count(u64),
}

fn sizes(inputs: &Inputs<'_>, workload: &Workload) -> Vec<Size> {
    let quick = inputs.quick();
    if let Some(work) = &workload.work {
        let counts = program::counts(work, quick);
        return counts.into_iter().map(Size::Count).collect();
    }
    let rates = rates(&workload.arrival, quick);
    let with_rates = |(requested, number)| {
        let size = move |rate: &Option<f64>| Size::Connections(requested, number, *rate);
        rates.iter().map(size)
    };
    let connections = connections(workload, &inputs.connection_cap, quick);
    connections.into_iter().flat_map(with_rates).collect()
}

/// All cells of the experiment, regardless of the machine, in the order of the document: by workload and size
/// (connections, then rate); then by row of the workload, or by setting, then by subject.
pub fn candidates(inputs: &Inputs<'_>) -> Result<Vec<Cell>, PlanError> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for workload in &inputs.experiment.workloads {
        let combinations = combinations(inputs, workload)?;
        for size in sizes(inputs, workload) {
            for (subject, written) in meant(inputs, workload, &combinations) {
                let cell = cell(inputs, subject, workload, size, &written);
                let excluded = |e| excludes(e, &cell, size, &written);
                // A subject that a setting does not concern has one cell, not one a value.
                let left_out = inputs.experiment.exclude.iter().any(excluded);
                if left_out {
                    continue;
                }
                if let Some((depth, requests)) = Spoken::from_cell(&cell).contradiction() {
                    let cell = cell.id;
                    return Err(PlanError::OneAtATime {
                        cell,
                        depth,
                        requests,
                    });
                }
                if seen.insert(cell.id.clone()) {
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

/// The subjects of a workload with their settings: its rows, or all combinations.
fn meant<'a>(
    inputs: &Inputs<'a>,
    workload: &'a Workload,
    combinations: &[Vec<Written<'a>>],
) -> Vec<Meant<'a>> {
    let subjects = inputs.parts.subjects;
    if !workload.rows.is_empty() {
        let of_row = |row: &'a Row| {
            let mut subjects = subjects.iter();
            let subject = subjects.find(|subject| subject.id == *row.subject.get_ref())?;
            Some((subject, row.written(&inputs.experiment.settings)))
        };
        return workload.rows.iter().filter_map(of_row).collect();
    }
    let mut meant = Vec::new();
    for chosen in combinations {
        for subject in subjects.iter().filter(|s| applies(workload, s)) {
            let written = settings_of(subject, workload, chosen, &inputs.parts);
            meant.extend(written.map(|written| (subject, written)));
        }
    }
    meant
}

/// Every choice of one value for each setting that is for `workload`; none where it has rows.
fn combinations<'a>(
    inputs: &Inputs<'a>,
    workload: &Workload,
) -> Result<Vec<Vec<Written<'a>>>, PlanError> {
    let mut all: Vec<Vec<Written<'a>>> = vec![Vec::new()];
    let is_meant = |setting: &&Setting| {
        let of_servers = topology::is_of_servers(setting, &inputs.parts);
        workload.rows.is_empty()
            && setting.is_for(workload)
            && (workload.is_request() || !of_servers)
    };
    for setting in inputs.experiment.settings.iter().filter(is_meant) {
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

/// Whether `subject` can run `workload`.
pub fn applies(workload: &Workload, subject: &Subject) -> bool {
    let does = match workload.is_request() {
        true => {
            let counter = workload
                .counter
                .as_ref()
                .map(|counter| counter.path.as_str());
            let mut paths = workload.paths().chain(counter);
            subject.is_server() && paths.all(|path| subject.answers(path))
        }
        false => program::can_do(workload, subject) == Some(Ok(())),
    };
    let mut rows = workload.rows.iter();
    let in_rows = rows.any(|row| *row.subject.get_ref() == subject.id);
    does && (workload.rows.is_empty() || in_rows) && is_listed(&workload.subjects, &subject.id)
}

/// The values of those settings that affect `subject` in `workload`: nothing can be set
/// on a server that already runs. `None`: it, or a service of its topology, does not offer one
/// of them.
fn settings_of<'a>(
    subject: &Subject,
    workload: &Workload,
    chosen: &[Written<'a>],
    parts: &Parts<'_, Subject>,
) -> Option<Vec<Written<'a>>> {
    let may = |setting: &Setting| subject.is_started() && is_listed(&setting.subjects, &subject.id);
    let concerns = |setting: &Setting| may(setting) && program::is_told(setting, subject, workload);
    let concerning = |(setting, _): &Written<'a>| concerns(setting);
    let written: Vec<Written<'a>> = chosen.iter().copied().filter(concerning).collect();
    // A setting may choose among the builds of services that the other settings add.
    let around = topology::topology(subject, &written, parts);
    let offered_by = |name: &String| {
        let mut services = topology::services_of(&around, parts);
        services.any(|service| service.variants.contains_key(name))
    };
    let concerned = |(setting, _): &Written<'a>| {
        concerns(setting) || may(setting) && offered_by(setting.name.get_ref())
    };
    let mut written: Vec<Written<'a>> = chosen.iter().copied().filter(concerned).collect();
    let protocol = topology::protocol_of(&written);
    written.retain(|(setting, _)| spoken::has_meaning(setting.name.get_ref(), protocol));
    let mut all = std::iter::once(subject).chain(topology::services_of(&around, parts));
    let offers = |other: &Subject| {
        let mut written = written.iter();
        written.all(|(setting, value)| program::offers(setting, other, value))
    };
    all.all(offers).then_some(written)
}

fn cell(
    inputs: &Inputs<'_>,
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
        let value = program::value_of(setting, value, workload, &inputs.cores);
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
        true => topology::topology(subject, written, &inputs.parts),
        false => Around::default(),
    };
    let mut cell = Cell {
        id,
        subject: subject.id.clone(),
        workload: workload.name.get_ref().clone(),
        connections,
        rate_per_s,
        count,
        settings,
        around,
        look_before_sleep_ns: 0,
    };
    if subject.is_started() && workload.is_request() {
        cell.look_before_sleep_ns = look_before_sleep(inputs, workload, &cell).0;
    }
    cell
}

/// Longest that the generator looks for answers before it sleeps, in a closed loop: with few connections to a thread it would else
/// sleep before each, and to be woken takes both sides longer than many an answer. Only where each thread has a core, all of it, to itself.
fn look_before_sleep(inputs: &Inputs<'_>, workload: &Workload, cell: &Cell) -> Nanos {
    let is_closed = matches!(workload.arrival, Arrival::Closed) && workload.find_max.is_none();
    let own = &inputs.cores.generator;
    // Two processors that are one core slow each other down.
    let is_shared = |core: &Vec<u32>| {
        let is_of = |side: &[u32]| core.iter().any(|processor| side.contains(processor));
        is_of(own) && is_of(&inputs.cores.subject)
    };
    let is_apart = !inputs.facts.cores.iter().any(is_shared);
    let threads = match cell.around.generators {
        0 => own.len(),
        threads => threads as usize,
    };
    let is_few = (cell.connections as usize) < FEW_CONNECTIONS * threads && threads <= own.len();
    match is_closed && is_few && is_apart && Spoken::from_cell(cell).looks {
        true => LOOK_MAX,
        false => Nanos::ZERO,
    }
}

fn excludes(exclusion: &Exclusion, cell: &Cell, size: Size, written: &[Written<'_>]) -> bool {
    let is = |name: &Option<Spanned<String>>, value: &str| {
        name.as_ref().is_none_or(|name| name.get_ref() == value)
    };
    let connections = exclusion.connections.is_none_or(|count| match size {
        Size::Connections(wanted, cut, _) => count == wanted || count == Connections::Exactly(cut),
        Size::Count(_) => false,
    });
    let setting = |(name, value): &(Spanned<String>, Spanned<String>)| {
        written
            .iter()
            .any(|(setting, chosen)| setting.name == *name && chosen == value.get_ref())
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

/// The connections of a workload: those of a quick run if it is one, capped, each once.
pub fn connections(
    workload: &Workload,
    cap: &ConnectionCap,
    quick: Option<&Quick>,
) -> Vec<(Connections, u32)> {
    let few = quick.and_then(|quick| quick.connections.as_ref());
    let requested = quick_ones(&workload.connections, few.map(Spanned::get_ref));
    let most = quick.and_then(|quick| quick.connections_max);
    let most = most.unwrap_or(u32::MAX).min(cap.connections_max);
    let mut cut: Vec<(Connections, u32)> = Vec::with_capacity(requested.len());
    for count in requested {
        let number = workload.number_of(count).min(most);
        if cut.iter().all(|&(_, before)| before != number) {
            cut.push((count, number));
        }
    }
    cut
}

/// The rates of a workload's cells: those of a quick run if it is one; one `None` where rate is not an axis.
fn rates(arrival: &Arrival, quick: Option<&Quick>) -> Vec<Option<f64>> {
    let (Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s }) = arrival else {
        return vec![None];
    };
    let few = quick.and_then(|quick| quick.rates.as_ref());
    let rates = quick_ones(rates_per_s, few.map(Spanned::get_ref));
    rates.into_iter().map(Some).collect()
}

pub fn planned_settings(experiment: &Experiment, cells: &[Cell]) -> Vec<PlannedSetting> {
    let planned = |setting: &Setting| {
        let name = setting.name.get_ref();
        let in_cells = cells.iter().filter_map(|cell| cell.settings.get(name));
        let in_cells: Vec<String> = once(in_cells).into_iter().cloned().collect();
        let SettingTopology {
            backings, fronts, ..
        } = &setting.topology;
        (!in_cells.is_empty()).then(|| PlannedSetting {
            name: name.clone(),
            values: match name.as_str() {
                // As the cells have them, where "cores" is a number.
                THREADS => in_cells,
                _ => setting.values.clone(),
            },
            env: setting.env.clone(),
            args: setting.args.clone(),
            env_of: setting.env_of.clone(),
            sysctl: setting.sysctl.clone(),
            backing_of: by_value(backings, |names| keys::texts(names.clone())),
            front_of: by_value(fronts, |name| name.get_ref().clone()),
            output_of: setting.topology.outputs.clone(),
        })
    };
    experiment.settings.iter().filter_map(planned).collect()
}

fn by_value<T, U>(map: &BTreeMap<String, T>, plain: impl Fn(&T) -> U) -> BTreeMap<String, U> {
    let entry = |(value, of)| (String::clone(value), plain(of));
    map.iter().map(entry).collect()
}

/// The arrival of a workload with the rates that its `cells` have.
pub fn planned_arrival<'a>(arrival: &Arrival, cells: impl Iterator<Item = &'a Cell>) -> Arrival {
    let mut planned = arrival.clone();
    if let Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s } = &mut planned {
        *rates_per_s = once(cells.filter_map(|cell| cell.rate_per_s));
    }
    planned
}
