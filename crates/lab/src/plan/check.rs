//! Checks of an experiment against its subjects' files: roles, services, rows and counters. Pure.

use toml::Spanned;

use super::topology::{names_in, why_not_set};
use crate::diagnosis::Diagnoses;
use crate::experiment::fields::Problems;
use crate::experiment::names::declared;
use crate::experiment::words::short;
use crate::experiment::{Experiment, From, Parts, Row, Setting, Workload, service};
use crate::subject::{Role, Subject};

/// Checks that each subject has the role of its entry, that all services are used,
/// and that rows and counters are possible. `all`: in the order of
/// [`Experiment::entries`].
pub fn check_services(experiment: &Experiment, all: &[Subject]) -> Result<(), Diagnoses> {
    let problems = Problems::default();
    let p = &problems;
    let parts = experiment.split(all);
    check_roles(experiment, &parts, p);
    check_ids(experiment, &parts, p);
    check_texts(experiment, &parts, p);
    check_used(experiment, &parts, p);
    for workload in &experiment.workloads {
        check_counter(experiment, workload, parts.subjects, p);
        for row in &workload.rows {
            check_row(experiment, workload, row, &parts, p);
        }
    }
    experiment.checked(problems)
}

fn check_roles(experiment: &Experiment, parts: &Parts<'_, Subject>, p: &Problems) {
    let kind = |role: Role| match role {
        Role::Backing => "backing",
        Role::Front => "front",
        Role::Server | Role::Program | Role::Client => "subject",
    };
    let wanted = [
        ("subject", parts.subjects, &experiment.subjects),
        ("backing", parts.backings, &experiment.backings),
        ("front", parts.fronts, &experiment.fronts),
    ];
    for (wanted, subjects, entries) in wanted {
        for (subject, entry) in subjects.iter().zip(entries) {
            let actual = kind(subject.role);
            if actual != wanted {
                let message = format!("`{}` is a {actual}, not a {wanted}", subject.id);
                let help = format!("its entry is [[{actual}]]");
                p.advise(entry.place.clone(), message, help);
            }
        }
    }
}

/// Cells and what is not run name services as they name subjects.
fn check_ids(experiment: &Experiment, parts: &Parts<'_, Subject>, p: &Problems) {
    let backings = parts.backings.iter().zip(&experiment.backings);
    let fronts = parts.fronts.iter().zip(&experiment.fronts);
    let before = |id: &str, is_front: bool| {
        let mut all = parts.subjects.iter().chain(parts.peers);
        let mut backings = parts.backings.iter();
        all.any(|other| other.id == id) || (is_front && backings.any(|other| other.id == id))
    };
    let backings = backings.map(|pair| (pair, false));
    for ((service, entry), is_front) in backings.chain(fronts.map(|pair| (pair, true))) {
        if before(&service.id, is_front) {
            let message = format!("another entry is called `{}`, too", service.id);
            let help = "give one of them a `name` of its own";
            p.advise(entry.place.clone(), message, help);
        }
    }
}

/// `{NAME}` in the texts of subjects is a backing service.
fn check_texts(experiment: &Experiment, parts: &Parts<'_, Subject>, p: &Problems) {
    let backings: Vec<String> = parts.backings.iter().map(|b| b.id.clone()).collect();
    for (subject, entry) in parts.subjects.iter().zip(&experiment.subjects) {
        for name in service::named(subject.texts(), !backings.is_empty()) {
            let name = Spanned::new(entry.place.clone(), name.to_owned());
            declared("backing", &name, &backings, p);
        }
    }
}

/// Reports services that no cell starts: they were meant to be.
fn check_used(experiment: &Experiment, parts: &Parts<'_, Subject>, p: &Problems) {
    let settings = &experiment.settings;
    for (backing, entry) in parts.backings.iter().zip(&experiment.backings) {
        let of_setting = |setting: &Setting| {
            let mut named = setting.topology.backings.values().flatten();
            named.any(|name| *name.get_ref() == backing.id)
                || names_in(setting.texts(), &backing.id)
        };
        let of_subject = |subject: &Subject| names_in(subject.texts(), &backing.id);
        if !settings.iter().any(of_setting) && !parts.subjects.iter().any(of_subject) {
            let id = &backing.id;
            let message = format!("nothing starts the backing service `{id}`");
            let help = format!(
                "a setting names it: backing_of = {{ VALUE = [\"{id}\"] }}, or env with {{{id}}}"
            );
            p.advise(entry.place.clone(), message, help);
        }
    }
    for (front, entry) in parts.fronts.iter().zip(&experiment.fronts) {
        let id = &front.id;
        let mut named = settings.iter().flat_map(|s| s.topology.fronts.values());
        if !named.any(|name| name.get_ref() == id) {
            let message = format!("nothing puts the front `{id}` before a subject");
            let help = format!("a setting does: front_of = {{ VALUE = \"{id}\" }}");
            p.advise(entry.place.clone(), message, help);
        }
    }
}

/// Checks that counters which must survive a restart are of servers that Prony starts.
fn check_counter(experiment: &Experiment, workload: &Workload, subjects: &[Subject], p: &Problems) {
    let Some(counter) = workload
        .counter
        .as_ref()
        .filter(|counter| counter.ended_by.is_some())
    else {
        return;
    };
    for (subject, entry) in subjects.iter().zip(&experiment.subjects) {
        let is_named = match (workload.rows.as_slice(), &workload.subjects) {
            ([], None) => workload.paths().all(|path| subject.answers(path)),
            ([], Some(names)) => names.iter().any(|name| *name.get_ref() == subject.id),
            (rows, _) => rows.iter().any(|row| *row.subject.get_ref() == subject.id),
        };
        if is_named && matches!(entry.from, From::Url(_)) {
            let message = format!(
                "what `{}` kept cannot be asked: it is not started, and not ended, by Prony",
                subject.id
            );
            let help = "kept = \"no\", or name the subjects of this workload without it";
            p.advise(counter.place.clone(), message, help);
        }
    }
}

/// Checks that a row, which is one cell, is possible as written.
fn check_row(
    experiment: &Experiment,
    workload: &Workload,
    row: &Row,
    parts: &Parts<'_, Subject>,
    p: &Problems,
) {
    let mut subjects = parts.subjects.iter();
    let Some(subject) = subjects.find(|subject| subject.id == *row.subject.get_ref()) else {
        return;
    };
    if let Some(message) = why_not_asked(workload, subject) {
        p.note(row.subject.span(), message);
        return;
    }
    for (name, value) in &row.settings {
        let mut settings = experiment.settings.iter();
        let Some(setting) = settings.find(|setting| setting.name == *name) else {
            continue;
        };
        let written = row.written(&experiment.settings);
        let why = why_not_set(
            (setting, value.get_ref()),
            &written,
            subject,
            workload,
            parts,
        );
        if let Some((message, help)) = why {
            p.advise(name.span(), message, help);
        }
    }
}

fn why_not_asked(workload: &Workload, subject: &Subject) -> Option<String> {
    let id = &subject.id;
    if !subject.is_server() {
        return Some(format!("`{id}` is no server, and this is a `request`"));
    }
    let counter = workload
        .counter
        .as_ref()
        .map(|counter| counter.path.as_str());
    let mut paths = workload.paths().chain(counter);
    let path = paths.find(|path| !subject.answers(path))?;
    let answers = crate::diagnosis::quoted(&subject.endpoints);
    Some(format!(
        "`{id}` does not answer `{}`: it answers {answers}",
        short(path)
    ))
}
