//! A scenario, checked and compiled: shared by all threads of a load.

use std::sync::Arc;

use prony_base::Nanos;
use prony_record::{
    AnswerChecks, BodyForm, CheckCount, HttpProtocol, LoadSpec, ScenarioReport, ScenarioSpec,
    ScenarioStep,
};

use super::figures::ScenarioFigures;
use super::take::CompiledTake;
use crate::checks::{AnswerFaults, Checks, FailedAnswer, ObservedAnswer};
use crate::fields::{names_in, spans};
use crate::filled::{FilledRequest, ValuePlace};
use crate::rows::{DataFile, RowShare};
use crate::window::Window;

/// One step, compiled.
#[derive(Debug)]
pub struct CompiledStep {
    /// Its checks.
    pub checks: Arc<Checks>,
    /// The number of its first check among those of all steps; what it takes comes behind its checks.
    pub first_check: u16,
    /// What it takes.
    pub takes: Vec<CompiledTake>,
    /// The places of the taken values that its request needs.
    pub needs: Vec<usize>,
}

/// The steps of a flow, by their places among all.
#[derive(Clone, Debug)]
pub struct FlowSteps {
    /// The first.
    pub first: usize,
    /// Behind the last.
    pub end: usize,
}

/// A scenario that can be done.
#[derive(Debug)]
pub struct Scenario {
    /// What was asked for.
    pub spec: ScenarioSpec,
    /// All steps.
    pub steps: Vec<CompiledStep>,
    /// The flows.
    pub flows: Vec<FlowSteps>,
    /// The names of the fields that are columns of the data file, and then of those that are taken.
    pub names: Vec<String>,
    /// How many of these are columns.
    pub columns: usize,
    /// The data file.
    pub data: Option<Arc<DataFile>>,
    /// Where the checks of all steps are counted.
    pub checks: Arc<Checks>,
    /// Cookies and values stay from one iteration of a user to its next.
    pub keeps: bool,
}

impl Scenario {
    /// Checks and compiles the scenario of a load, and opens its data file; `None`: it has none.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn new(spec: &LoadSpec) -> Result<Option<Arc<Scenario>>, String> {
        let Some(scenario) = &spec.scenario else {
            return Ok(None);
        };
        check_load(spec)?;
        check_names(scenario)?;
        let all: Vec<&ScenarioStep> = scenario.flows.iter().flat_map(|of| &of.steps).collect();
        if all.len() != spec.requests.len() {
            let requests = spec.requests.len();
            return Err(format!("{} steps have {requests} requests", all.len()));
        }
        let data = spec.data.as_ref();
        let data = data.map(|data| DataFile::open(&data.path, data.order, RowShare::of(spec)));
        let data = data.transpose().map_err(|error| error.to_string())?;
        let mut names = data
            .as_ref()
            .map_or_else(Vec::new, |of| of.columns().to_vec());
        let columns = names.len();
        for take in all.iter().flat_map(|step| &step.takes) {
            check_taken_name(&take.name, &names[..columns])?;
            if !names.contains(&take.name) {
                names.push(take.name.clone());
            }
        }
        let (steps, checks) = compiled(&all, &names, AnswerFaults::of(spec))?;
        let mut compiled = Scenario {
            spec: scenario.clone(),
            flows: flows(scenario),
            steps,
            names,
            columns,
            data,
            checks,
            keeps: all.iter().any(|step| step.once) && !spec.pace.is_open(),
        };
        compiled.find_needs(spec)?;
        Ok(Some(Arc::new(compiled)))
    }

    /// The step with this number.
    pub fn step(&self, number: usize) -> &ScenarioStep {
        let flow = self.flow_of(number);
        let place = number - self.flows[flow].first;
        &self.spec.flows[flow].steps[place]
    }

    /// The flow of a step.
    pub fn flow_of(&self, step: usize) -> usize {
        self.flows.partition_point(|flow| flow.end <= step)
    }

    /// The request of a step, compiled. Its fields were checked.
    ///
    /// # Errors
    /// A name in braces that is no field.
    pub fn request(&self, bytes: &[u8], step: usize) -> Result<FilledRequest, String> {
        let place = match self.step(step).body {
            BodyForm::AsIs => ValuePlace::Body,
            BodyForm::Form => ValuePlace::Form,
            BodyForm::Json => ValuePlace::Json,
        };
        FilledRequest::compile_step(bytes, &self.names, place).map_err(|error| error.to_string())
    }

    /// What came of a window of `length`; `counts`: of all checks.
    pub fn report(
        &self,
        figures: &ScenarioFigures,
        counts: &[CheckCount],
        length: Nanos,
    ) -> ScenarioReport {
        let flows: Vec<&str> = self.spec.flows.iter().map(|of| of.name.as_str()).collect();
        let names = self.spec.flows.iter().flat_map(|flow| {
            let steps = flow.steps.iter();
            steps.map(|step| (flow.name.as_str(), step.name.as_str()))
        });
        let checks = self.steps.iter().map(|step| {
            let first = usize::from(step.first_check);
            let count = step.checks.count_of_checks() + step.takes.len();
            let own = counts.get(first..first + count);
            own.unwrap_or_default().to_vec()
        });
        let bare = checks
            .zip(names.clone())
            .map(|(checks, (_, name))| bare(checks, name));
        figures.report(length, &flows, &names.collect::<Vec<_>>(), bare.collect())
    }

    /// Failed answers are kept of this window, and of no other time.
    pub fn measured_in(&self, window: &Arc<Window>) {
        for step in &self.steps {
            step.checks.measured_in(window);
        }
    }

    /// The failed answers that were kept.
    pub fn kept(&self) -> Vec<FailedAnswer> {
        let steps = self.steps.iter().enumerate();
        let kept = steps.flat_map(|(number, step)| {
            let name = self.step(number).name.clone();
            let kept = step.checks.kept().into_iter();
            kept.map(move |answer| FailedAnswer {
                check: format!("{name}: {}", answer.check),
                ..answer
            })
        });
        kept.collect()
    }

    /// The answers that were observed, one step after the other.
    pub fn observed(&self) -> Vec<ObservedAnswer> {
        let steps = self.steps.iter();
        steps.flat_map(|step| step.checks.observed()).collect()
    }

    /// Checks all fields of all requests, and notes which taken values each needs: they must be taken in a step before.
    fn find_needs(&mut self, spec: &LoadSpec) -> Result<(), String> {
        let mut uses_data = self.data.is_none();
        for (flow, own) in self.spec.flows.iter().zip(&self.flows) {
            let mut known = vec![false; self.names.len()];
            for (number, step) in (own.first..own.end).zip(&flow.steps) {
                let request = self.request(&spec.requests[number].bytes, number);
                let request = request.map_err(|why| format!("step `{}`: {why}", step.name))?;
                let mut needs = Vec::new();
                for place in request.columns() {
                    if place < self.columns {
                        uses_data = true;
                    } else if !known[place] {
                        return Err(not_taken(&step.name, &self.names[place]));
                    } else if !needs.contains(&place) {
                        needs.push(place);
                    }
                }
                for take in &self.steps[number].takes {
                    known[take.place] = true;
                }
                self.steps[number].needs = needs;
            }
        }
        match uses_data {
            true => Ok(()),
            false => Err(format!(
                "no step has a column of the data file: {{{}}}",
                self.names[..self.columns].join("}, {")
            )),
        }
    }
}

/// The names of checks without that of their step.
fn bare(checks: Vec<CheckCount>, step: &str) -> Vec<CheckCount> {
    let bare = |of: CheckCount| CheckCount {
        check: of
            .check
            .strip_prefix(step)
            .and_then(|of| of.strip_prefix(": "))
            .unwrap_or(&of.check)
            .to_owned(),
        ..of
    };
    checks.into_iter().map(bare).collect()
}

/// Why a step cannot have a value.
fn not_taken(step: &str, name: &str) -> String {
    format!("step `{step}` needs {{{name}}}, which no step before it takes")
}

/// What a load with a scenario cannot be.
fn check_load(spec: &LoadSpec) -> Result<(), String> {
    let wrong = [
        (spec.protocol == HttpProtocol::Http2, "HTTP/2"),
        (spec.depth > 1, "a pipeline"),
        (
            spec.cookies,
            "cookies of connections: each user has its own",
        ),
        (spec.expects_continue, "Expect: 100-continue"),
        (spec.in_turns, "turns"),
        (
            spec.checks.is_some(),
            "checks of all answers: each step has its own",
        ),
    ];
    match wrong.iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(format!("a scenario does not go with {what}")),
        None => Ok(()),
    }
}

fn check_names(scenario: &ScenarioSpec) -> Result<(), String> {
    if scenario.flows.is_empty() {
        return Err("a scenario has at least one flow".to_owned());
    }
    for (place, flow) in scenario.flows.iter().enumerate() {
        let before = &scenario.flows[..place];
        if before.iter().any(|other| other.name == flow.name) {
            return Err(format!("two scenarios have the name `{}`", flow.name));
        }
        if flow.steps.iter().all(|step| step.once) {
            return Err(format!(
                "`{}` has no step that is done each time",
                flow.name
            ));
        }
        for (place, step) in flow.steps.iter().enumerate() {
            if flow.steps[..place]
                .iter()
                .any(|other| other.name == step.name)
            {
                return Err(format!("two steps have the name `{}`", step.name));
            }
            if step.think.min_ns > step.think.max_ns {
                return Err(format!(
                    "step `{}` thinks at least longer than at most",
                    step.name
                ));
            }
        }
    }
    Ok(())
}

/// Whether a value that is taken may be called `name`, where a data file has these columns.
///
/// # Errors
/// Why it may not.
pub fn check_taken_name(name: &str, columns: &[String]) -> Result<(), String> {
    let text = format!("{{{name}}}");
    if names_in(text.as_bytes()) != [name.as_bytes()] || name.contains(':') {
        return Err(format!(
            "`{name}` is no name of a field: it begins with a letter, and has letters, digits, `_`, `-` and `.`"
        ));
    }
    if spans(text.as_bytes(), &[]).is_ok() {
        return Err(format!(
            "{{{name}}} is a field already: take it by another name"
        ));
    }
    match columns.iter().any(|column| column == name) {
        true => Err(format!(
            "{{{name}}} is a column of the data file: take it by another name"
        )),
        false => Ok(()),
    }
}

fn flows(scenario: &ScenarioSpec) -> Vec<FlowSteps> {
    let mut end = 0;
    let flow = |steps: usize| {
        let first = end;
        end += steps;
        FlowSteps { first, end }
    };
    scenario
        .flows
        .iter()
        .map(|of| of.steps.len())
        .map(flow)
        .collect()
}

/// The steps with their checks and what they take, and where all checks are counted.
fn compiled(
    all: &[&ScenarioStep],
    names: &[String],
    faults: AnswerFaults,
) -> Result<(Vec<CompiledStep>, Arc<Checks>), String> {
    let none = AnswerChecks::default();
    let mut steps = Vec::new();
    for step in all {
        let of_step = |why: String| format!("step `{}`: {why}", step.name);
        let checks = Checks::new(step.checks.as_ref().unwrap_or(&none)).map_err(of_step)?;
        let mut takes = Vec::new();
        for take in &step.takes {
            let place = names.iter().position(|name| *name == take.name);
            let take = CompiledTake::new(take, place.unwrap_or(usize::MAX)).map_err(of_step)?;
            takes.push(take);
        }
        steps.push(CompiledStep {
            checks,
            first_check: 0,
            takes,
            needs: Vec::new(),
        });
    }
    let parts: Vec<_> = steps
        .iter()
        .zip(all)
        .map(|(step, of)| {
            let takes = step.takes.iter().map(|take| take.words.clone());
            (of.name.as_str(), &step.checks, takes.collect())
        })
        .collect();
    let (checks, firsts) = Checks::of_steps(&parts, faults)?;
    for (step, first) in steps.iter_mut().zip(firsts) {
        step.first_check = first;
    }
    Ok((steps, checks))
}
