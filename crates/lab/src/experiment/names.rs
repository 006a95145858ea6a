//! Whether the names in an experiment are each used once and refer to something.

use toml::Spanned;

use super::fields::Problems;
use super::keys::{self, differ, known, twice};
use super::types::{Connections, Experiment, Parts, THREADS};
use super::words::short;
use super::{arrival, service, sources};
use crate::diagnosis::{Diagnoses, suggest};
use crate::reference::KeyFile;
use crate::subject::Subject;

/// What can be checked without the subjects' own files.
pub(super) fn check_within(experiment: &Experiment, p: &Problems) {
    let workloads: Vec<&Spanned<String>> = experiment.workloads.iter().map(|w| &w.name).collect();
    let settings: Vec<&Spanned<String>> = experiment.settings.iter().map(|s| &s.name).collect();
    twice("workload", &workloads, p);
    twice("setting", &settings, p);
    sources::check_within(experiment, p);
    // What `exclude`, rows and claims have beside the names of settings.
    let file = KeyFile::Experiment;
    let mixed = file.tables().iter().filter(|table| table.others);
    let reserved: Vec<&str> = mixed.flat_map(|table| file.names_in(&table.id)).collect();
    for name in &settings {
        if reserved.contains(&name.get_ref().as_str()) {
            let message = format!("a setting cannot be called `{}`", name.get_ref());
            p.note(name.span(), message);
        }
    }
    for setting in &experiment.settings {
        for name in setting.workloads.iter().flatten() {
            known("workload", name, &experiment.workload_names(), p);
        }
    }
    for exclusion in &experiment.exclude {
        if let Some(name) = &exclusion.workload {
            known("workload", name, &experiment.workload_names(), p);
        }
        let place = ("exclude", "in exclude = [{…}]");
        keys::check_settings(experiment, place, &exclusion.settings, p);
    }
    check_quick(experiment, p);
    arrival::check_within(experiment, p);
    check_window(experiment, p);
    super::client::check_within(experiment, p);
    service::check_within(&experiment.settings, p);
    super::rows::check_within(experiment, p);
    super::published::check_within(experiment, p);
}

/// What a quick run keeps must be of some workload, or it would be passed over in silence.
fn check_quick(experiment: &Experiment, p: &Problems) {
    let (quick, workloads) = (&experiment.quick, &experiment.workloads);
    if workloads.is_empty() {
        return;
    }
    let is_asked = |count: &Connections| {
        let mut all = workloads.iter();
        *count == Connections::Max || all.any(|workload| workload.connections.contains(count))
    };
    check_kept(&quick.connections, is_asked, p, |count| match count {
        Connections::Exactly(count) => format!("{count} connections"),
        Connections::Max => String::new(),
    });
    let works = || {
        workloads
            .iter()
            .filter_map(|workload| workload.work.as_ref())
    };
    let is_asked = |count: &u64| works().any(|work| work.counts.contains(count));
    check_kept(&quick.count, is_asked, p, |count| {
        format!("the count {count}")
    });
    let rates = || workloads.iter().flat_map(arrival::rates_of);
    let is_asked = |rate: &f64| rates().any(|one| one == rate);
    check_kept(&quick.rates, is_asked, p, |rate| format!("the rate {rate}"));
}

/// Notes the first of `kept` that no workload asks for.
fn check_kept<T>(
    quick: &Option<Spanned<Vec<T>>>,
    is_asked: impl Fn(&T) -> bool,
    p: &Problems,
    shown: impl Fn(&T) -> String,
) {
    let Some(quick) = quick else { return };
    if let Some(other) = quick.get_ref().iter().find(|one| !is_asked(one)) {
        let message = format!("[run.quick] has {}, and no workload does", shown(other));
        let help = "a quick run does fewer of the same cells, never others";
        p.advise(quick.span(), message, help);
    }
}

/// A window means nothing where no load has a given duration, and a warm-up nothing
/// where Prony sends no requests.
fn check_window(experiment: &Experiment, p: &Problems) {
    let workloads = &experiment.workloads;
    let run = &experiment.run;
    if workloads.is_empty() || workloads.iter().any(|w| w.is_request()) {
        return;
    }
    let timed = workloads
        .iter()
        .any(|w| w.client.as_ref().is_some_and(|client| client.is_timed()));
    if !timed && let Some(span) = run.duration_at.as_ref().or(run.warmup_at.as_ref()) {
        let (message, help) = match workloads.iter().any(|w| w.client.is_some()) {
            false => (
                "this means nothing here: no workload has a `request`, and a program runs to its end",
                "leave it out; how long a program works is said by `count`",
            ),
            true => (
                "this means nothing here: no workload has a `request` or asks clients for `requests`",
                "leave it out; a download lasts as long as its `payload` takes",
            ),
        };
        p.advise(span.clone(), message, help);
        return;
    }
    if let Some(span) = &run.warmup_at {
        let message = "a warm-up means nothing here: no workload has a `request`, and a client \
                       is measured from its start to its end";
        p.advise(span.clone(), message, "leave it out");
    }
}

/// Checks that each peer can be one, and is not called as a subject that is another. The
/// peers follow the subjects in `all`.
pub fn check_peers(experiment: &Experiment, all: &[Subject]) -> Result<(), Diagnoses> {
    let problems = Problems::default();
    let Parts {
        subjects, peers, ..
    } = experiment.split(all);
    for (peer, entry) in peers.iter().zip(&experiment.peers) {
        if peer.start.is_empty() || peer.counts.is_none() {
            let what = match peer.start.is_empty() {
                true => "[start]",
                false => "[counts]",
            };
            let message = format!("`{}` cannot be a peer: its file has no {what}", peer.id);
            let help =
                "a peer is a server that says what it has counted: see `prony docs contract`";
            problems.advise(entry.place.clone(), message, help);
        }
        let other = |subject: &&Subject| subject.id == peer.id && subject.source != peer.source;
        if subjects.iter().any(|subject| other(&subject)) {
            let message = format!("a subject is called `{}`, too, and is another one", peer.id);
            let help = "give one of them a `name` of its own";
            problems.advise(entry.place.clone(), message, help);
        }
    }
    experiment.checked(problems)
}

/// Checks the names that refer to subjects, peers and services, whose ids are `ids` in the
/// order of [`Experiment::entries`].
pub fn check_names(experiment: &Experiment, ids: &[String]) -> Result<(), Diagnoses> {
    let problems = Problems::default();
    let p = &problems;
    let parts = experiment.split(ids);
    let (ids, peers) = (parts.subjects, parts.peers);
    differ("subject", ids, &experiment.subjects, p);
    differ("peer", peers, &experiment.peers, p);
    check_service_names(experiment, &parts, p);
    let clients = experiment.workloads.iter();
    let clients = clients.filter_map(|workload| workload.client.as_ref());
    for name in clients.filter_map(|client| client.peer.as_ref()) {
        known("peer", name, peers, p);
    }
    let mut names: Vec<&Spanned<String>> = experiment.run.reference.iter().collect();
    for workload in &experiment.workloads {
        names.extend(workload.subjects.iter().flatten());
        names.extend(workload.rows.iter().map(|row| &row.subject));
    }
    names.extend(
        experiment
            .settings
            .iter()
            .flat_map(|s| s.subjects.iter().flatten()),
    );
    names.extend(experiment.exclude.iter().filter_map(|e| e.subject.as_ref()));
    for name in names {
        known("subject", name, ids, p);
    }
    experiment.checked(problems)
}

/// Checks that every setting changes something, which only the subjects' files can tell
/// of one that chooses among their builds.
pub fn check_settings(experiment: &Experiment, subjects: &[Subject]) -> Result<(), Diagnoses> {
    let problems = Problems::default();
    for setting in &experiment.settings {
        let name = setting.name.get_ref();
        let offered: Vec<&str> = subjects
            .iter()
            .filter_map(|subject| subject.variants.get(name))
            .flatten()
            .map(String::as_str)
            .collect();
        if !offered.is_empty() {
            for value in setting
                .values
                .iter()
                .filter(|v| !offered.contains(&v.as_str()))
            {
                let message = format!("no subject offers the build `{value}` of `{name}`");
                let help = suggest(value, "build", &offered);
                problems.advise(setting.name.span(), message, help);
            }
        } else if !setting.has_effect() && name != THREADS {
            let message = format!(
                "the setting `{name}` changes nothing: it has neither `env` nor `args`, and no subject offers builds by this name"
            );
            let help = "env = { RUST_LOG = \"{value}\" }, or args = [\"--log\", \"{value}\"]";
            problems.advise(setting.name.span(), message, help);
        }
    }
    experiment.checked(problems)
}

/// Checks the names that refer to backing services and fronts.
fn check_service_names(experiment: &Experiment, ids: &Parts<'_, String>, p: &Problems) {
    differ("backing service", ids.backings, &experiment.backings, p);
    differ("front", ids.fronts, &experiment.fronts, p);
    let Parts {
        backings, fronts, ..
    } = ids;
    for setting in &experiment.settings {
        for name in setting.topology.backings.values().flatten() {
            declared("backing", name, backings, p);
        }
        for name in setting.topology.fronts.values() {
            declared("front", name, fronts, p);
        }
        let span = setting.name.span();
        for name in service::named(setting.texts(), !backings.is_empty()) {
            let name = Spanned::new(span.clone(), name.to_owned());
            declared("backing", &name, backings, p);
        }
    }
}

/// Notes a service that has no entry.
pub(crate) fn declared(kind: &str, name: &Spanned<String>, right: &[String], p: &Problems) {
    if !right.is_empty() {
        known(kind, name, right, p);
    } else {
        let text = short(name.get_ref());
        let message = format!("there is no {kind} `{text}` in this experiment");
        let help = format!("[[{kind}]]\nref = \"{text}\"");
        p.advise(name.span(), message, help);
    }
}
