//! The topology of a cell: the backing services of its server, the proxy in front, the number of processes, and which of
//! these this machine cannot run. Pure.
//!
//! A backing service is started in a cell if a setting's `backing_of` names it for the
//! cell's value, or if its name stands in braces in a text of the subject or of its settings:
//! a command that takes an address needs a server there.

use prony_base::counted;
use prony_record::{Around, Cell, NotRun, PlannedSubject};

use super::facts::Facts;
use super::program;
use crate::experiment::spoken::{self, PROTOCOL};
use crate::experiment::types::{Written, is_listed};
use crate::experiment::{Experiment, GENERATORS, INSTANCES, Parts, Setting, THREADS, Workload};
use crate::subject::Subject;

/// Cells that a message names at the most.
const NAMED_MAX: usize = 3;

/// Whether `{id}` stands in one of `texts`.
pub(crate) fn names_in<'a>(mut texts: impl Iterator<Item = &'a String>, id: &str) -> bool {
    let braced = format!("{{{id}}}");
    texts.any(|text| text.contains(&braced))
}

/// The topology of `subject` in a cell with these settings.
pub fn topology(
    subject: &Subject,
    written: &[Written<'_>],
    services: &Parts<'_, Subject>,
) -> Around {
    let needs = |backing: &&Subject| {
        let of_setting = |(setting, value): &Written<'_>| {
            let named = setting.topology.backings.get(*value).into_iter().flatten();
            named.into_iter().any(|name| *name.get_ref() == backing.id)
                || names_in(setting.texts_of(value), &backing.id)
        };
        names_in(subject.texts(), &backing.id) || written.iter().any(of_setting)
    };
    let backings = services.backings.iter().filter(needs);
    let of = |name: &str| {
        let mut pairs = written.iter();
        let found = pairs.find(|(setting, _)| setting.name.get_ref() == name);
        found.and_then(|(_, value)| value.parse().ok())
    };
    let topologies = written
        .iter()
        .map(|(setting, value)| (&setting.topology, *value));
    let mut fronts = topologies
        .clone()
        .filter_map(|(all, value)| all.fronts.get(value));
    let mut outputs = topologies
        .clone()
        .filter_map(|(all, value)| all.outputs.get(value));
    let mut networks = topologies.filter_map(|(all, value)| all.networks.get(value));
    Around {
        network: networks
            .next()
            .map_or_else(String::new, |name| name.get_ref().clone()),
        backings: backings.map(|backing| backing.id.clone()).collect(),
        front: fronts.next().map(|name| name.get_ref().clone()),
        instances: of(INSTANCES).unwrap_or(1),
        generators: of(GENERATORS).unwrap_or(0),
        output: outputs.next().copied().unwrap_or_default(),
    }
}

/// The services of `around`.
pub fn services_of<'a>(
    around: &'a Around,
    services: &Parts<'a, Subject>,
) -> impl Iterator<Item = &'a Subject> {
    let all = services.backings.iter().chain(services.fronts);
    all.filter(|service| uses(around, &service.id))
}

/// Whether a topology has the service `id`.
pub fn uses(around: &Around, id: &str) -> bool {
    around.backings.iter().any(|one| one == id) || around.front.as_deref() == Some(id)
}

/// Whether a setting is for servers only and has no effect on programs and clients.
pub fn is_of_servers(setting: &Setting, services: &Parts<'_, Subject>) -> bool {
    let name = setting.name.get_ref();
    let named = |backing: &Subject| names_in(setting.texts(), &backing.id);
    name == INSTANCES
        || name == GENERATORS
        || spoken::is_spoken(name)
        || !setting.topology.is_empty()
        || services.backings.iter().any(named)
}

/// The protocol of a cell with these settings.
pub fn protocol_of<'a>(written: &[Written<'a>]) -> &'a str {
    let mut pairs = written.iter();
    let found = pairs.find(|(setting, _)| setting.name.get_ref() == PROTOCOL);
    found.map_or(spoken::PLAIN, |&(_, value)| value)
}

/// Why a row of `workload` cannot set `setting` to `value` for `subject`, and the remedy.
/// `written`: all settings of the row.
pub(crate) fn why_not_set(
    (setting, value): Written<'_>,
    written: &[Written<'_>],
    subject: &Subject,
    workload: &Workload,
    services: &Parts<'_, Subject>,
) -> Option<(String, String)> {
    let (id, name) = (&subject.id, setting.name.get_ref());
    if !subject.is_started() {
        let message = format!("nothing can be set on `{id}`, which already runs");
        return Some((message, String::new()));
    }
    if !is_listed(&setting.subjects, &subject.id) {
        let message = format!("the setting `{name}` is not for `{id}`, by its `subjects`");
        return Some((message, format!("add \"{id}\" to them")));
    }
    if !setting.is_for(workload) {
        let pairs = workload.name.get_ref();
        let message = format!("the setting `{name}` is not for `{pairs}`, by its `workloads`");
        return Some((message, format!("add \"{pairs}\" to them")));
    }
    let protocol = protocol_of(written);
    if !spoken::has_meaning(name, protocol) {
        let message =
            format!("the setting `{name}` says nothing where the protocol is `{protocol}`");
        return Some((message, "leave it out of this row".to_owned()));
    }
    let around = topology(subject, written, services);
    let of_services = || services_of(&around, services);
    let offered = |other: &&Subject| other.variants.contains_key(name);
    if !program::is_told(setting, subject, workload) && !of_services().any(|s| offered(&s)) {
        let message = format!("the setting `{name}` changes nothing about `{id}`");
        let help = match name.as_str() {
            THREADS => "`{threads}` stands neither in its command nor in its environment",
            _ => {
                "it has neither `env` nor `args`, and nothing in this row offers builds by this name"
            }
        };
        return Some((message, help.to_owned()));
    }
    let mut all = std::iter::once(subject).chain(of_services());
    let other = all.find(|pairs| !program::offers(setting, pairs, value))?;
    let message = match name == PROTOCOL {
        true => format!("`{}` does not speak `{value}`", other.id),
        false => format!(
            "`{}` does not offer the build `{value}` of `{name}`",
            other.id
        ),
    };
    Some((message, program::why_not_offered(setting, other)))
}

/// The services that cells need, in the order of the experiment.
pub fn used<'a>(services: &'a [Subject], cells: &[Cell]) -> impl Iterator<Item = &'a Subject> {
    let needed = |service: &&Subject| cells.iter().any(|cell| uses(&cell.around, &service.id));
    services.iter().filter(needed)
}

/// Services of `cells` whose needs this machine lacks.
pub fn missing(services: &Parts<'_, Subject>, cells: &[Cell], facts: &Facts) -> Vec<NotRun> {
    let all = used(services.backings, cells).chain(used(services.fronts, cells));
    let missing = |service: &Subject| {
        let (reason, remedy) = facts.lacks(service)?;
        let reason = with_cells(&reason, &service.id, cells);
        Some(NotRun::new(&service.id, reason, remedy))
    };
    all.filter_map(missing).collect()
}

/// The reason why the service `id` is unavailable, with the cells that are left out with it.
pub fn with_cells(reason: &str, id: &str, cells: &[Cell]) -> String {
    let skipped = cells.iter().filter(|cell| uses(&cell.around, id));
    let skipped: Vec<&str> = skipped.map(|cell| cell.id.as_str()).collect();
    let named = crate::diagnosis::quoted(&skipped[..skipped.len().min(NAMED_MAX)]);
    match skipped.len().saturating_sub(NAMED_MAX) {
        0 => format!("{reason}; left out with it: {named}"),
        more => format!("{reason}; left out with it: {named} and {more} more"),
    }
}

/// Whether a service of the cell is among what is not run.
pub fn lacks(cell: &Cell, not_run: &[NotRun]) -> bool {
    not_run
        .iter()
        .any(|skipped| uses(&cell.around, &skipped.what))
}

/// Cells with fewer connections than processes, except those that are not run anyway.
pub fn impossible(cells: &[Cell], not_run: &[NotRun]) -> Vec<NotRun> {
    let too_few = |cell: &Cell| {
        let around = &cell.around;
        let direct = around.front.is_none() && cell.connections < around.instances;
        let (processes, what) = match cell.connections < around.generators {
            true => (around.generators, "threads of the generator"),
            false if direct => (around.instances, "instances"),
            false => return None,
        };
        let connections = counted(cell.connections, "connection");
        let reason = format!("{processes} {what} cannot share {connections}: each needs one");
        Some(NotRun::new(&cell.id, reason, ""))
    };
    let of_server = |cell: &&Cell| cell.connections > 0 && !lacks(cell, not_run);
    cells.iter().filter(of_server).filter_map(too_few).collect()
}

/// Whether any subject of the experiment has a proxy in front.
pub fn has_front(experiment: &Experiment) -> bool {
    experiment
        .settings
        .iter()
        .any(|s| !s.topology.fronts.is_empty())
}

/// Keeps only the services that `cells` need.
pub fn retain(planned: &mut Vec<PlannedSubject>, cells: &[Cell]) {
    planned.retain(|service| cells.iter().any(|cell| uses(&cell.around, &service.id)));
}
