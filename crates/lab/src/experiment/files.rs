//! The files that a workload's requests are in: read once before planning, so that a plan names each by its digest, and what is
//! wrong with one is reported where the experiment names it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use prony_base::counted;
use prony_base::typed::requirement::LoadRequirement;
use prony_load::scenario::compiled::Scenario;
use prony_load::{LoadSpec, check_requests, check_step_name, with_environment};
use prony_record::{PlannedSource, SourceFile};

use super::sources::usual_order;
use super::types::{Experiment, WorkloadSource};
use super::words::short;
use crate::diagnosis::{Diagnoses, Diagnosis};
use crate::passed::{NAMED, Passed, To};
use crate::scenario::{ScenarioContext, ScenarioFile};
use crate::sending::{self, SentSource};

/// What stands for the server's address while nobody is sent anything.
const NO_ONE: &str = "localhost";

/// Where something is wrong with what a workload sends.
enum WrongSource {
    /// A problem in the experiment, or in a file that has no lines of its own to show.
    Here(Diagnosis),
    /// Problems in the file of its scenario.
    InScenario(Diagnoses),
}

impl Experiment {
    /// Reads the files of requests, of scenarios, of bodies and of data that its workloads name, and completes what is planned of them.
    /// They lie below the experiment's folder, unless they may be `anywhere`. Warnings on what is left out of them are added to
    /// its own.
    ///
    /// # Errors
    /// What is wrong with them, or that the environment of trials lacks a variable: of the experiment, and of each scenario.
    pub fn read_sources(&mut self, anywhere: bool) -> Result<(), Vec<Diagnoses>> {
        let (folder, seed) = (self.origin.folder.clone(), self.run.seed);
        let beside = Path::new(&self.origin.path).parent().map(Path::to_owned);
        let beside = beside.unwrap_or_default();
        let mut problems = Vec::new();
        let mut of_scenarios = Vec::new();
        let mut warnings = Vec::new();
        for workload in &mut self.workloads {
            let expected = workload.expect_body.clone();
            let Some(source) = &mut workload.source else {
                continue;
            };
            source.planned.dir = folder.display().to_string();
            source.planned.files_anywhere = anywhere;
            let read = match source.planned.scenario.is_some() {
                true => read_scenario(source, &workload.require, &beside, seed),
                false => read(source, expected.as_deref(), seed),
            };
            match read {
                Ok((first, notes)) => {
                    if source.planned.file.is_some() || source.planned.scenario.is_some() {
                        workload.request.method = first.0;
                        workload.request.path = first.1;
                    }
                    let at = source.file_at.clone();
                    let warn = |note| Diagnosis::new(at.clone(), note);
                    warnings.extend(notes.into_iter().map(warn));
                }
                Err(WrongSource::Here(problem)) => problems.push(problem),
                Err(WrongSource::InScenario(wrong)) => of_scenarios.push(wrong),
            }
        }
        self.warnings.extend(warnings);
        let here = (!problems.is_empty()).then(|| self.diagnoses(problems));
        let all: Vec<Diagnoses> = here.into_iter().chain(of_scenarios).collect();
        match all.is_empty() {
            true => Ok(()),
            false => Err(all),
        }
    }
}

/// Method and path of a request.
type MethodAndPath = (String, String);

/// Completes a source that is a scenario, whose file messages name as it lies `beside` the experiment; method and path of its first
/// step.
fn read_scenario(
    source: &mut WorkloadSource,
    required: &[LoadRequirement],
    beside: &Path,
    seed: u64,
) -> Result<(MethodAndPath, Vec<String>), WrongSource> {
    let (file_at, data_at) = (source.file_at.clone(), source.data_at.clone());
    let planned = source.planned.clone();
    let file = planned.scenario.clone().unwrap_or_default().file;
    let shown = beside.join(&file.path);
    let path = Path::new(&planned.dir).join(&file.path);
    digest(source.planned.data.as_mut(), &planned).map_err(wrong(&data_at))?;
    check_environment(&source.planned).map_err(|(why, help)| {
        WrongSource::Here(Diagnosis::new(source.place.clone(), why).help(help))
    })?;
    let sha256 = sending::sha256_of(&planned, &file.path).map_err(wrong(&file_at))?;
    let (named, read) = with_names(&path, &shown, source.planned.data.is_some());
    check_passed(&named).map_err(|(why, help)| {
        let why = format!("{}: {why}", shown.display());
        WrongSource::Here(Diagnosis::new(file_at.clone(), why).help(help))
    })?;
    let flows = read.map_err(WrongSource::InScenario)?.planned();
    let scenario = source.planned.scenario.get_or_insert_default();
    (scenario.file.sha256, scenario.flows) = (sha256, flows);
    for step in required.iter().filter_map(|of| of.step.as_deref()) {
        check_step_name(&scenario.names(), step)
            .map_err(|why| format!("what is required of `{}`: {why}", short(step)))
            .map_err(wrong(&source.require_at))?;
    }
    let steps = scenario.flows.iter().flat_map(|flow| &flow.steps);
    let lines: Vec<MethodAndPath> = steps
        .map(|step| (step.method.clone(), step.path.clone()))
        .collect();
    let paths: BTreeSet<String> = lines.iter().map(|(_, path)| path.clone()).collect();
    source.paths = paths.into_iter().collect();
    source.planned.count = lines.len() as u64;
    let sent = sending::from_source(&source.planned, None, NO_ONE).map_err(wrong(&file_at))?;
    let at = match source.planned.data {
        Some(_) => &data_at,
        None => &file_at,
    };
    Scenario::new(&sent.into_spec(alone(seed))).map_err(wrong(at))?;
    Ok((lines.into_iter().next().unwrap_or_default(), Vec::new()))
}

/// The scenario, and what it takes from the environment: the values are those of trials, and empty where they have none.
fn with_names(
    path: &Path,
    shown: &Path,
    has_data: bool,
) -> (BTreeSet<String>, Result<ScenarioFile, Diagnoses>) {
    let passed = Passed::here(To::Trials);
    let named = RefCell::new(BTreeSet::new());
    let value = |name: &str| {
        named.borrow_mut().insert(name.to_owned());
        let mut variables = passed.variables();
        let found = variables.find(|(of, _)| *of == name);
        let value = found.map(|(_, value)| value.to_string_lossy().into_owned());
        Some(value.unwrap_or_default())
    };
    let shown = shown.display().to_string();
    let context = ScenarioContext {
        variables: &value,
        has_data,
    };
    let read = ScenarioFile::load_as(path, &shown, &context);
    (named.into_inner(), read)
}

/// Completes one source; method and path of its first request, and what is left out.
fn read(
    source: &mut WorkloadSource,
    expected: Option<&str>,
    seed: u64,
) -> Result<(MethodAndPath, Vec<String>), WrongSource> {
    let (at, file_at, data_at) = (
        source.place.clone(),
        source.file_at.clone(),
        source.data_at.clone(),
    );
    let planned = source.planned.clone();
    digest(source.planned.file.as_mut(), &planned).map_err(wrong(&file_at))?;
    digest(source.planned.data.as_mut(), &planned).map_err(wrong(&data_at))?;
    check_environment(&source.planned)
        .map_err(|(why, help)| WrongSource::Here(Diagnosis::new(at.clone(), why).help(help)))?;
    let place = match source.planned.file {
        Some(_) => file_at,
        None => at,
    };
    let sent = sending::from_source(&source.planned, expected, NO_ONE).map_err(wrong(&place))?;
    let is_weighted = sent.requests.iter().any(|request| request.weight > 0);
    let planned = &mut source.planned;
    if planned.file.is_some() {
        planned.order = usual_order(
            source.is_order_said.then_some(planned.order),
            is_weighted,
            sent.requests.len(),
        );
    }
    let is_in_turn = source.is_order_said && planned.order == prony_record::RequestOrder::InTurn;
    if planned.file.is_some() && is_weighted && is_in_turn {
        let why = "`order = \"in-turn\"` sends each request as often as the others, and the file gives weights";
        let wrong = Diagnosis::new(place, why).help("leave one of them out");
        return Err(WrongSource::Here(wrong));
    }
    planned.count = sent.requests.len() as u64;
    planned.format.clone_from(&sent.format);
    planned.bodies.clone_from(&sent.bodies);
    let paths: BTreeSet<&String> = sent.lines.iter().map(|(_, path)| path).collect();
    source.paths = paths.into_iter().cloned().collect();
    let first = sent.lines.first().cloned().unwrap_or_default();
    let notes = notes(&sent);
    let place = match planned.data {
        Some(_) => data_at,
        None => place,
    };
    check_requests(&sent.into_spec(alone(seed))).map_err(wrong(&place))?;
    Ok((first, notes))
}

/// Where what was wrong stands.
fn wrong(at: &Range<usize>) -> impl FnOnce(String) -> WrongSource {
    let at = at.clone();
    move |why| WrongSource::Here(Diagnosis::new(at, why))
}

/// A load of one thread that is only checked.
fn alone(seed: u64) -> LoadSpec {
    LoadSpec {
        seed,
        threads: 1,
        ..LoadSpec::default()
    }
}

/// Notes the digest of a file of `source`.
fn digest(file: Option<&mut SourceFile>, source: &PlannedSource) -> Result<(), String> {
    if let Some(file) = file {
        file.sha256 = sending::sha256_of(source, &file.path)?;
    }
    Ok(())
}

/// What of a log is not sent as it was.
fn notes(sent: &SentSource) -> Vec<String> {
    let left_out = sent.left_out.map(|(count, first)| {
        let lines = counted(count, "line");
        format!("{lines} without a request left out, the first is line {first}")
    });
    let without = (sent.without_body > 0).then(|| {
        let requests = counted(sent.without_body, "request");
        format!("{requests} other than GET and HEAD, sent without a body: a log has none")
    });
    left_out.into_iter().chain(without).collect()
}

/// Checks what the texts of a source take from the environment.
fn check_environment(planned: &PlannedSource) -> Result<(), (String, String)> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for text in sending::texts(planned) {
        let found = RefCell::new(Vec::new());
        let note = |name: &str| {
            found.borrow_mut().push(name.to_owned());
            Some(String::new())
        };
        // What is no field is reported with its line where the requests are made.
        let _ = with_environment(&text, &note);
        names.extend(found.into_inner());
    }
    check_passed(&names)
}

/// Trials have those variables of the environment that are passed to them, and no others. What is wrong with one of `names`, and what
/// to do.
fn check_passed(names: &BTreeSet<String>) -> Result<(), (String, String)> {
    let passed = Passed::here(To::Trials);
    let is_passed = |name: &str| passed.variables().any(|(of, _)| of == name);
    match names.iter().find(|name| !is_passed(name)) {
        None => Ok(()),
        Some(name) if std::env::var_os(name).is_none() => Err((
            format!("{{env:{name}}}: the environment has no {name}"),
            format!("set it, and name it in {NAMED}"),
        )),
        Some(name) => Err((
            format!("{{env:{name}}}: {name} does not reach a trial"),
            format!("name it in {NAMED}={name}, which says what else of the environment does"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_does_not_have_is_noted() {
        let of = |left_out, without_body| {
            notes(&SentSource {
                left_out,
                without_body,
                ..SentSource::default()
            })
        };
        assert_eq!(of(None, 0), Vec::<String>::new());
        assert_eq!(
            of(None, 1),
            ["1 request other than GET and HEAD, sent without a body: a log has none"]
        );
        let both = of(Some((2, 7)), 3);
        assert_eq!(
            both[0],
            "2 lines without a request left out, the first is line 7"
        );
        assert!(both[1].starts_with("3 requests "), "{both:?}");
    }

    #[test]
    fn a_variable_that_is_set_and_not_passed_is_told_from_one_that_is_not_set() {
        let wrong = |name: &str| {
            let names = BTreeSet::from([name.to_owned()]);
            check_passed(&names).expect_err("trials do not have it").0
        };
        // Cargo sets it for tests, and nobody passes it to a trial.
        let set = wrong("CARGO_PKG_NAME");
        assert!(set.ends_with("does not reach a trial"), "{set}");
        let unset = wrong("PRONY_NEVER_SET");
        assert!(
            unset.contains("the environment has no PRONY_NEVER_SET"),
            "{unset}"
        );
    }
}
