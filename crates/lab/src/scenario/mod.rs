//! The file of a scenario: users that do steps, as `prony load --scenario FILE` and a workload of an experiment take it. One TOML file;
//! what is wrong with it is said with its place. Its keys: docs/scenarios.md.
//!
//! Not for: doing it (`prony-load`).

mod file;
mod read;
mod step;

use std::path::Path;

use crate::diagnosis::Diagnoses;
use crate::experiment::fields::{Origin, Problems, read_file};

pub use file::{FileFlow, FileStep, ScenarioFile, Variables};

impl ScenarioFile {
    /// Reads and checks the file at `path`; `{env:NAME}` in it is replaced by what `variables` has. `has_data`: other names may be
    /// columns of a data file.
    ///
    /// # Errors
    /// All that is wrong with it, with its place.
    pub fn load(
        path: &Path,
        variables: Variables<'_>,
        has_data: bool,
    ) -> Result<ScenarioFile, Diagnoses> {
        ScenarioFile::load_as(path, &path.display().to_string(), variables, has_data)
    }

    /// The same with another `name` in messages than that of the path.
    ///
    /// # Errors
    /// As there.
    pub fn load_as(
        path: &Path,
        name: &str,
        variables: Variables<'_>,
        has_data: bool,
    ) -> Result<ScenarioFile, Diagnoses> {
        let read = read_file(path).map_err(|wrong| Diagnoses {
            path: name.to_owned(),
            ..wrong
        });
        let (text, origin) = read?;
        let origin = Origin::new(name, origin.folder);
        ScenarioFile::parse(&text, &origin, variables, has_data)
    }

    /// Checks the text of a scenario. Pure; all problems are reported together.
    ///
    /// # Errors
    /// All that is wrong with it, with its place.
    pub fn parse(
        text: &str,
        origin: &Origin,
        variables: Variables<'_>,
        has_data: bool,
    ) -> Result<ScenarioFile, Diagnoses> {
        let problems = Problems::default();
        let file = read::scenario(text, variables, has_data, &problems);
        problems.checked(file, &origin.path, text)
    }
}

#[cfg(test)]
mod tests;
