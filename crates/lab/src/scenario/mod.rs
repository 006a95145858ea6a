//! The file of a scenario: users that do steps, as `prony load --scenario FILE` and a workload of an experiment take it. One TOML file;
//! what is wrong with it is said with its place. Its keys: docs/scenarios.md.
//!
//! Not for: doing it (`prony-load`).

mod file;
mod read;
mod step;

use std::path::Path;

use crate::diagnosis::Diagnoses;
use crate::experiment::fields::{Problems, read_file};

pub use file::{FileFlow, FileStep, ScenarioContext, ScenarioFile, Variables};

impl ScenarioFile {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// All that is wrong with it, with its place.
    pub fn load(path: &Path, context: &ScenarioContext<'_>) -> Result<ScenarioFile, Diagnoses> {
        ScenarioFile::load_as(path, &path.display().to_string(), context)
    }

    /// The same with another `name` in messages than that of the path.
    ///
    /// # Errors
    /// As there.
    pub fn load_as(
        path: &Path,
        name: &str,
        context: &ScenarioContext<'_>,
    ) -> Result<ScenarioFile, Diagnoses> {
        let read = read_file(path).map_err(|wrong| Diagnoses {
            path: name.to_owned(),
            ..wrong
        });
        let (text, _) = read?;
        ScenarioFile::parse(&text, name, context)
    }

    /// Checks the text of a scenario, which messages call `name`. Pure; all problems are reported together.
    ///
    /// # Errors
    /// All that is wrong with it, with its place.
    pub fn parse(
        text: &str,
        name: &str,
        context: &ScenarioContext<'_>,
    ) -> Result<ScenarioFile, Diagnoses> {
        let problems = Problems::default();
        let file = read::scenario(text, context, &problems);
        problems.checked(file, name, text)
    }
}

#[cfg(test)]
mod tests;
