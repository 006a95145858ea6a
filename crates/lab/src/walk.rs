//! Whether a server does what the steps of a scenario expect, before it is measured: of each scenario in the file one user does all steps
//! once, one after the other.
//!
//! It is Prony's generator that does them, with one connection and without think times: what is taken from an answer, filled into the
//! next request and checked is then what the load does. Not for: requests that have nothing to do with each other ([`crate::verify`]).

use prony_base::{Nanos, counted};
use prony_load::scenario::compiled::Scenario;
use prony_load::{LoadResult, Observer};
use prony_record::{
    CheckLevel, CheckResult, LatencyOrigin, LoadSpec, Pace, PlannedScenario, PlannedStep,
    ScenarioFlow, ScenarioSpec, ScenarioStep, StepReport, ThinkTime,
};

use crate::exchange::shown;

/// The check that says how many steps were done.
pub const STEPS: &str = "steps";
/// Longest time for all steps of a user.
const USER_TIME_MAX: Nanos = Nanos::from_secs(60);
/// Status codes that a message names one by one.
const CODES_MAX: usize = 8;

/// Hears nothing of a walk.
struct Unheard;

impl Observer for Unheard {}

/// Lets a user do each scenario of `load`, whose steps are those of `planned`. Each answer may take `timeout`. The users have the numbers
/// behind `before`.
pub fn walk(
    load: &LoadSpec,
    planned: &PlannedScenario,
    before: u64,
    timeout: Nanos,
) -> Vec<CheckResult> {
    let walked = walk_all(load, planned, before, timeout);
    let steps = walked.as_ref().map(|&steps| counted(steps, "step"));
    let extent = steps.map_or_else(|_| String::new(), |steps| format!("all of {steps}"));
    let mut check = CheckResult::new(STEPS, CheckLevel::Must, walked.map(drop));
    check.detail += &extent;
    vec![check]
}

/// How many steps were done, or what went wrong with the first that was not.
fn walk_all(
    load: &LoadSpec,
    planned: &PlannedScenario,
    before: u64,
    timeout: Nanos,
) -> Result<usize, String> {
    let scenario = Scenario::new(load)?.ok_or("there is no scenario")?;
    let has_several = planned.flows.len() > 1;
    for (number, flow) in planned.flows.iter().enumerate() {
        let spec = user_spec(load, &scenario, number, before + number as u64, timeout)?;
        let name = match has_several {
            true => format!("scenario `{}`: ", flow.name),
            false => String::new(),
        };
        let result = prony_load::run(&spec, &mut Unheard).map_err(|why| format!("{name}{why}"))?;
        if let Some(why) = failed(&spec, &flow.steps, &result) {
            return Err(format!("{name}{why}"));
        }
    }
    Ok(scenario.steps.len())
}

/// The load that is one user's way through the flow with this number; its `{counter}` comes behind `before`.
fn user_spec(
    load: &LoadSpec,
    scenario: &Scenario,
    number: usize,
    before: u64,
    timeout: Nanos,
) -> Result<LoadSpec, String> {
    let (Some(flow), Some(steps_of)) =
        (scenario.spec.flows.get(number), scenario.flows.get(number))
    else {
        return Err("the scenario is not the one that was planned".to_owned());
    };
    let answers = 1 + load.follow_max.unwrap_or_default();
    let step = |step: &ScenarioStep| {
        let mut checks = step.checks.clone().unwrap_or_default();
        (checks.keep_max, checks.observe_max) = (1, answers);
        ScenarioStep {
            checks: Some(checks),
            think: ThinkTime::default(),
            goes_on: false,
            ..step.clone()
        }
    };
    let mut uses_data = false;
    for step in steps_of.first..steps_of.end {
        let request = scenario.request(&load.requests[step].bytes, step)?;
        uses_data |= request.columns().any(|place| place < scenario.columns);
    }
    let steps = (steps_of.end - steps_of.first) as u64;
    Ok(LoadSpec {
        further: Vec::new(),
        threads: 1,
        connections: 1,
        warmup_ns: 0,
        duration_ns: (timeout * (steps + 1)).min(USER_TIME_MAX).0,
        requests_max: Some(1),
        timeout_ns: timeout.0,
        pace: Pace::default(),
        latency_from: LatencyOrigin::Submitted,
        // Values that are drawn are others than those of the load, and of other users.
        seed: !load.seed.wrapping_add(before),
        counter_from: before,
        requests: load.requests[steps_of.first..steps_of.end].to_vec(),
        data: load.data.clone().filter(|_| uses_data),
        scenario: Some(ScenarioSpec {
            flows: vec![ScenarioFlow {
                steps: flow.steps.iter().map(step).collect(),
                ..flow.clone()
            }],
        }),
        ..load.clone()
    })
}

/// What went wrong with the first step that was not done as it is to be; `None`: all were.
fn failed(spec: &LoadSpec, planned: &[PlannedStep], result: &LoadResult) -> Option<String> {
    let Some(report) = &result.report.scenario else {
        return Some("the generator did not say what came of its steps".to_owned());
    };
    let flows = spec.scenario.iter().flat_map(|scenario| &scenario.flows);
    let steps = flows.flat_map(|flow| &flow.steps);
    let mut all = steps.zip(&report.steps).zip(planned);
    let wrong = all.find_map(|((step, came), planned)| {
        let why = why_wrong(step, came, result)?;
        let (name, method, path) = (&planned.name, &planned.method, &planned.path);
        Some(format!("step `{name}` ({method} {path}): {why}"))
    });
    let unfinished = || {
        let done = report.steps.iter().filter(|step| step.counts.completed > 0);
        let length = Nanos(spec.duration_ns);
        format!(
            "a user had done {} of {} after {length}",
            done.count(),
            counted(report.steps.len(), "step")
        )
    };
    wrong.or_else(|| (report.iterations().completed == 0).then(unfinished))
}

/// What was wrong with the answer to a step.
fn why_wrong(step: &ScenarioStep, came: &StepReport, result: &LoadResult) -> Option<String> {
    let counts = &came.counts;
    let of_answer = [
        counts.unexpected_status,
        counts.failed.check,
        counts.failed.wrong_answer,
    ];
    // The user does nothing after a step that failed: the last answer is the one to it.
    let answer = result.observed.last();
    let answer = answer.filter(|of| of_answer.iter().any(|count| *count > 0) && of.status > 0);
    let answered = answer.map_or_else(String::new, |of| {
        let body = shown(&of.body);
        format!("; status {} came with the body {body}", of.status)
    });
    // An answer with another status is seldom what the checks look for.
    let is_other = |status: u16| match step.expected_status.as_slice() {
        [] => !(200..400).contains(&status),
        codes => !codes.contains(&status),
    };
    if counts.unexpected_status > 0 || answer.is_some_and(|of| is_other(of.status)) {
        return Some(format!("status {} expected{answered}", statuses(step)));
    }
    if counts.failed.wrong_answer > 0 {
        return Some(format!("its body is not the expected one{answered}"));
    }
    if counts.failed.check > 0 {
        let mut checks = came.checks.iter();
        let check = checks.find(|check| check.failed > 0);
        let last_failed = || Some(&result.failed_answers.last()?.check);
        let check = check.map(|check| &check.check).or_else(last_failed);
        let check = check.map_or("a check", String::as_str);
        return Some(format!("its answer fails `{check}`{answered}"));
    }
    let kinds: Vec<String> = came
        .errors
        .keys()
        .map(|kind| kind.replace('_', " "))
        .collect();
    (counts.failed.total() > 0).then(|| format!("no right answer: {}", kinds.join(", ")))
}

/// The status codes that a step expects.
fn statuses(step: &ScenarioStep) -> String {
    let codes: Vec<String> = step.expected_status.iter().map(u16::to_string).collect();
    match (codes.as_slice(), codes.len() > CODES_MAX) {
        ([], _) => "200 to 399".to_owned(),
        ([first, .., last], true) => {
            format!("one of {} from {first} to {last}", codes.len())
        }
        (codes, _) => codes.join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use prony_record::{LoadData, PreparedRequest, RowOrder, StepTake, TakeFrom};

    use super::*;

    #[test]
    fn the_status_codes_of_a_step_are_named() {
        let of = |expected_status: Vec<u16>| {
            statuses(&ScenarioStep {
                expected_status,
                ..ScenarioStep::default()
            })
        };
        assert_eq!(of(Vec::new()), "200 to 399");
        assert_eq!(of(vec![200, 302]), "200 or 302");
        assert_eq!(of((200..300).collect()), "one of 100 from 200 to 299");
    }

    /// A user whose steps have no column of the data file would read it for nothing, and one whose steps have one fails without.
    #[test]
    fn the_data_file_goes_with_the_users_whose_steps_have_a_column() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names.csv");
        std::fs::write(&path, "name\nanna\n").expect("written");
        let step = |name: &str, request: &str| {
            let step = ScenarioStep {
                name: name.to_owned(),
                ..ScenarioStep::default()
            };
            let request = PreparedRequest {
                method: "GET".to_owned(),
                bytes: request.as_bytes().to_vec(),
                ..PreparedRequest::default()
            };
            (step, request)
        };
        let named = step("named", "GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut first = step("first", "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        first.0.takes = vec![StepTake {
            name: "id".to_owned(),
            from: TakeFrom::Header("id".to_owned()),
        }];
        let second = step("second", "GET /{id} HTTP/1.1\r\nHost: a\r\n\r\n");
        let flow = |name: &str, steps: &[&(ScenarioStep, PreparedRequest)]| ScenarioFlow {
            name: name.to_owned(),
            weight: 1,
            steps: steps.iter().map(|of| of.0.clone()).collect(),
        };
        let load = LoadSpec {
            threads: 1,
            connections: 2,
            duration_ns: 1_000_000_000,
            requests: [&named, &first, &second].map(|of| of.1.clone()).to_vec(),
            data: Some(LoadData {
                path,
                order: RowOrder::InTurn,
            }),
            scenario: Some(ScenarioSpec {
                flows: vec![flow("a", &[&named]), flow("b", &[&first, &second])],
            }),
            ..LoadSpec::default()
        };
        let scenario = Scenario::new(&load).expect("right").expect("there");
        let data_of = |number| {
            let user = user_spec(&load, &scenario, number, 0, Nanos::from_secs(1));
            user.expect("planned").data
        };
        assert_eq!((data_of(0), data_of(1)), (load.data.clone(), None));
    }
}
