//! Whether the names in an experiment are each used once and refer to something.

use toml::Spanned;

use super::fields::Problems;
use super::{Connections, Experiment};
use crate::diagnosis::{Diagnoses, Diagnosis, suggest};

/// What can be checked without the subjects' own files.
pub(super) fn check_within(experiment: &Experiment, p: &mut Problems) {
    let workloads: Vec<&Spanned<String>> = experiment.workloads.iter().map(|w| &w.name).collect();
    let settings: Vec<&Spanned<String>> = experiment.settings.iter().map(|s| &s.name).collect();
    twice("workload", &workloads, p);
    twice("setting", &settings, p);
    for name in &settings {
        if ["subject", "workload", "connections"].contains(&name.get_ref().as_str()) {
            let message = format!("a setting cannot be called `{}`", name.get_ref());
            p.note(Diagnosis::new(name.span(), message));
        }
    }
    for exclusion in &experiment.exclude {
        if let Some(name) = &exclusion.workload {
            known("workload", name, &texts(&workloads), p);
        }
        for (name, value) in &exclusion.settings {
            let found = experiment.settings.iter().find(|s| s.name == *name);
            match found {
                None => unknown_key(name, &texts(&settings), p),
                Some(setting) => {
                    let values: Vec<&str> = setting.values.iter().map(String::as_str).collect();
                    known_value(name, value, &values, p);
                }
            }
        }
    }
    check_quick(experiment, p);
}

fn texts<'a>(names: &[&'a Spanned<String>]) -> Vec<&'a str> {
    names.iter().map(|name| name.get_ref().as_str()).collect()
}

fn unknown_key(name: &Spanned<String>, settings: &[&str], p: &mut Problems) {
    let mut keys = vec!["subject", "workload", "connections"];
    keys.extend(settings);
    let message = format!("unknown key `{}` in exclude = [{{…}}]", name.get_ref());
    let help = suggest(name.get_ref(), "key", &keys);
    p.note(Diagnosis::new(name.span(), message).help(help));
}

/// Notes every name but the first of those that are the same.
fn twice(kind: &str, names: &[&Spanned<String>], p: &mut Problems) {
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            let message = format!("two {kind}s are called `{}`", name.get_ref());
            let help = format!("give each {kind} a `name` of its own");
            p.note(Diagnosis::new(name.span(), message).help(help));
        }
    }
}

fn known(kind: &str, name: &Spanned<String>, right: &[&str], p: &mut Problems) {
    if !right.contains(&name.get_ref().as_str()) {
        let message = format!("there is no {kind} `{}` in this experiment", name.get_ref());
        let help = suggest(name.get_ref(), kind, right);
        p.note(Diagnosis::new(name.span(), message).help(help));
    }
}

fn known_value(
    setting: &Spanned<String>,
    value: &Spanned<String>,
    right: &[&str],
    p: &mut Problems,
) {
    if !right.contains(&value.get_ref().as_str()) {
        let message = format!(
            "setting `{}` has no value `{}`",
            setting.get_ref(),
            value.get_ref()
        );
        let help = suggest(value.get_ref(), "value", right);
        p.note(Diagnosis::new(value.span(), message).help(help));
    }
}

/// A quick number of connections must be one of some workload, or it would be
/// passed over in silence.
fn check_quick(experiment: &Experiment, p: &mut Problems) {
    let Some(kept) = &experiment.quick.connections else {
        return;
    };
    let asked = |count: &Connections| {
        let mut workloads = experiment.workloads.iter();
        workloads.any(|workload| workload.connections.contains(count))
    };
    let other = kept.get_ref().iter().find(|count| !asked(count));
    if let Some(Connections::Exactly(count)) = other
        && !experiment.workloads.is_empty()
    {
        let message = format!("[run.quick] has {count} connections, and no workload does");
        let help = "a quick run does fewer of the same cells, never others";
        p.note(Diagnosis::new(kept.span(), message).help(help));
    }
}

/// Checks the names that refer to subjects, whose ids are `ids` in the order of
/// the experiment's entries.
pub fn check_names(experiment: &Experiment, ids: &[String]) -> Result<(), Diagnoses> {
    let mut problems = Problems::default();
    let p = &mut problems;
    for (index, (id, entry)) in ids.iter().zip(&experiment.subjects).enumerate() {
        if ids[..index].contains(id) {
            let message = format!("two subjects are called `{id}`");
            let help = "give one of them a `name` of its own";
            p.note(Diagnosis::new(entry.place.clone(), message).help(help));
        }
    }
    let right: Vec<&str> = ids.iter().map(String::as_str).collect();
    let run = experiment.run.reference.iter();
    let workloads = experiment
        .workloads
        .iter()
        .flat_map(|w| w.subjects.iter().flatten());
    let settings = experiment
        .settings
        .iter()
        .flat_map(|s| s.subjects.iter().flatten());
    let exclude = experiment.exclude.iter().filter_map(|e| e.subject.as_ref());
    for name in run.chain(workloads).chain(settings).chain(exclude) {
        known("subject", name, &right, p);
    }
    if problems.0.is_empty() {
        return Ok(());
    }
    Err(experiment.diagnoses(problems.0))
}
