//! Values of settings that this machine cannot have: each is named once, however many cells it takes with it. Pure.

use std::iter;

use prony_record::{Cell, NotRun};

use super::facts::Facts;
use super::inputs::Inputs;
use crate::experiment::Setting;
use crate::preload;

/// A value of a setting, as what is not run is called.
fn label(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// The values that `cells` have and this machine has not.
pub fn missing(inputs: &Inputs<'_>, cells: &[Cell]) -> Vec<NotRun> {
    let experiment = inputs.experiment;
    let mut skipped: Vec<NotRun> = Vec::new();
    let environments = experiment.settings.iter();
    let mut environments =
        environments.flat_map(|of| iter::once(&of.env).chain(of.env_of.values()));
    let has_own_folders = environments.any(preload::names_folders);
    for setting in &experiment.settings {
        let name = setting.name.get_ref();
        for cell in cells {
            let Some(value) = cell.settings.get(name) else {
                continue;
            };
            let what = label(name, value);
            if skipped.iter().any(|other| other.what == what) {
                continue;
            }
            let has_value = |cell: &&Cell| cell.settings.get(name) == Some(value);
            let mut with_value = cells.iter().filter(has_value);
            let is_here =
                !has_own_folders && with_value.all(|cell| has_usual_folders(inputs, cell));
            if let Some((reason, remedy)) = lacks(setting, value, is_here, inputs.facts) {
                skipped.push(NotRun::new(&what, reason, remedy));
            }
        }
    }
    skipped
}

/// Whether a value of the cell is among what is not run.
pub fn is_among(cell: &Cell, not_run: &[NotRun]) -> bool {
    let mut settings = cell.settings.iter();
    settings.any(|(name, value)| {
        let what = label(name, value);
        not_run.iter().any(|skipped| skipped.what == what)
    })
}

/// Whether the loader of a cell's subject looks where it always does: not in a root file system, nor in folders that the
/// subject's environment names.
fn has_usual_folders(inputs: &Inputs<'_>, cell: &Cell) -> bool {
    inputs.subject_of(cell).is_none_or(|subject| {
        let lacks = inputs.facts.why_missing(&subject.needs).is_some();
        subject.root_if(lacks).is_none() && !subject.environments().any(preload::names_folders)
    })
}

/// Why there is no such value here, and the command that would change it.
fn lacks(
    setting: &Setting,
    value: &str,
    with_libraries: bool,
    facts: &Facts,
) -> Option<(String, String)> {
    if let Some(found) = unwritable(setting, value, facts) {
        return Some(found);
    }
    let env = with_libraries.then(|| setting.env_with(value))?;
    let name = facts.absent_library(&env)?;
    Some((preload::why_absent(&name), facts.library_remedy(&name)))
}

/// A value of a kernel setting that may not be written and is another one now.
fn unwritable(setting: &Setting, value: &str, facts: &Facts) -> Option<(String, String)> {
    let name = setting.sysctl.as_ref()?;
    match facts.kernel.get(name) {
        None => Some((format!("the kernel has no setting {name}"), String::new())),
        Some(here) if here.writable || here.value == *value => None,
        Some(here) => Some((
            format!("{name} is {} and may not be written", here.value),
            format!("sysctl -w {name}={value}"),
        )),
    }
}
