//! A scenario as its file has it.

use prony_load::prepare::{LoadUrl, RequestError, RequestParts, prepare};
use prony_load::with_environment;
use prony_record::{
    PlannedFlow, PlannedStep, PreparedRequest, ScenarioFlow, ScenarioSpec, ScenarioStep,
};
use toml::Spanned;

use crate::experiment::fields::Problems;

/// Yields the value of a variable of the environment.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the file of a scenario is read with.
#[derive(Clone, Copy)]
pub struct ScenarioContext<'a> {
    /// What `{env:NAME}` is replaced by.
    pub variables: Variables<'a>,
    /// Whether other names may be columns of a data file.
    pub has_data: bool,
}

impl ScenarioContext<'_> {
    /// A text with what it takes from the environment; why it cannot have that is noted.
    pub(super) fn filled(&self, text: &Spanned<String>, p: &Problems) -> Option<String> {
        let filled = with_environment(text.get_ref(), self.variables);
        filled
            .map_err(|error| p.note(text.span(), error.to_string()))
            .ok()
    }
}

/// A scenario as its file has it, checked.
#[derive(Debug)]
pub struct ScenarioFile {
    /// The URL of its requests, without a path; `None`: it names none.
    pub url: Option<LoadUrl>,
    /// What users may do.
    pub flows: Vec<FileFlow>,
}

/// A course of steps.
#[derive(Debug)]
pub struct FileFlow {
    /// Its name.
    pub name: String,
    /// How often it is drawn beside the others.
    pub weight: u32,
    /// Its steps.
    pub steps: Vec<FileStep>,
}

/// A step: its request in parts, and what is done with the answer.
#[derive(Debug)]
pub struct FileStep {
    /// What is done with the answer.
    pub step: ScenarioStep,
    pub(super) method: String,
    pub(super) path: String,
    /// The path before anything of the environment was filled in.
    pub(super) written_path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    pub(super) expected_body: Option<String>,
}

impl ScenarioFile {
    /// What users do, without the requests.
    pub fn spec(&self) -> ScenarioSpec {
        let flow = |flow: &FileFlow| ScenarioFlow {
            name: flow.name.clone(),
            weight: flow.weight,
            steps: flow.steps.iter().map(|of| of.step.clone()).collect(),
        };
        ScenarioSpec {
            flows: self.flows.iter().map(flow).collect(),
        }
    }

    /// What a plan names of it: nothing of the environment, which may be secret.
    pub fn planned(&self) -> Vec<PlannedFlow> {
        let step = |of: &FileStep| PlannedStep {
            name: of.step.name.clone(),
            method: of.method.clone(),
            path: of.written_path.clone(),
        };
        let flow = |flow: &FileFlow| PlannedFlow {
            name: flow.name.clone(),
            weight: flow.weight,
            steps: flow.steps.iter().map(step).collect(),
        };
        self.flows.iter().map(flow).collect()
    }

    /// Whether some step has a header of this name.
    pub fn has_header(&self, name: &str) -> bool {
        let steps = self.flows.iter().flat_map(|flow| &flow.steps);
        let mut headers = steps.flat_map(|step| &step.headers);
        headers.any(|(of, _)| of.eq_ignore_ascii_case(name))
    }

    /// The requests of all steps, one flow after the other, to a server whose `Host` is `authority`. Headers of `typed` come in place
    /// of theirs.
    ///
    /// # Errors
    /// One of `typed` cannot be sent.
    pub fn requests(
        &self,
        authority: &str,
        typed: &[(String, String)],
    ) -> Result<Vec<PreparedRequest>, RequestError> {
        let steps = self.flows.iter().flat_map(|flow| &flow.steps);
        steps.map(|step| step.request(authority, typed)).collect()
    }
}

impl FileStep {
    /// Its request.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(super) fn request(
        &self,
        authority: &str,
        typed: &[(String, String)],
    ) -> Result<PreparedRequest, RequestError> {
        let is_typed = |name: &str| typed.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
        let given = self.headers.iter().filter(|(name, _)| !is_typed(name));
        let headers: Vec<_> = given.chain(typed).cloned().collect();
        let parts = RequestParts {
            method: &self.method,
            path: &self.path,
            authority,
            headers: &headers,
            body: self.body.as_bytes(),
        };
        prepare(&parts, self.expected_body.as_deref().map(str::as_bytes))
    }
}
