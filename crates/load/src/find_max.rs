//! The highest rate at which a server keeps an objective: an open loop for each rate that the search asks for.
//!
//! ```text
//! closed loop ──> first rate ──> step: lead-in, window, drain ──> kept / missed / generator short ──> next rate …
//! ```
//!
//! Each step is a run of its own, with connections of its own, and begins drained: what the last one left unanswered is
//! waited for.

use std::thread;
use std::time::Duration;

use prony_base::Nanos;
use prony_record::{
    Arrivals, HighestRate, LatencyOrigin, LoadReport, LoadSpec, NEVER, Pace, RateSearch, RateStep,
    SCHEMA, StepOutcome,
};
use prony_stats::{Found, Highest, Search, Step};

use crate::objective::Objective;
use crate::run::{LoadError, LoadResult, Observer, run};

/// By this part of its arrivals what is in flight may grow over a step: more is a queue that would go on growing.
const GROWTH_MAX: f64 = 0.002;
/// In requests: what is in flight at the two moments at which a window begins and ends differs by some anyway.
const GROWTH_MIN: f64 = 10.0;
/// The lead-in of a step, as a part of its window.
const LEAD_IN: u64 = 4;
/// Failed requests from which on a step is missed whatever its latencies are.
const FAILED_MAX: f64 = 0.01;
/// A missed step in which the generator's own delay is more than this part of the objective is the generator's doing.
const OWN_DELAY: f64 = 0.5;
/// How often, and how far apart, it is tried whether the server answers again after a step that it did not answer whole.
const RECOVERY_TRIES: u32 = 100;
const RECOVERY_PAUSE: Duration = Duration::from_millis(100);

/// Looks for the highest rate of `spec`, whose pace (constant or Poisson), latencies' origin and lead-in are this
/// function's. `spec.duration_ns` is the length of a step. `hear` is told of each step that has ended, with the number of
/// those that are still to come, about.
pub fn find_max(
    spec: &LoadSpec,
    objective: &Objective,
    observer: &mut dyn Observer,
    hear: &mut dyn FnMut(&RateStep, usize),
) -> Result<RateSearch, LoadError> {
    let closed = LoadSpec {
        pace: Pace::default(),
        latency_from: LatencyOrigin::Submitted,
        ..spec.clone()
    };
    let first = run(&closed, observer)?;
    if first.interrupted {
        return Ok(RateSearch {
            interrupted: true,
            ..nothing_yet(spec, objective, &first.report)
        });
    }
    find_max_after(&first.report, spec, objective, observer, hear)
}

/// [`find_max`] after a closed loop of the same connections has been run, whose report is `closed`.
pub fn find_max_after(
    closed: &LoadReport,
    spec: &LoadSpec,
    objective: &Objective,
    observer: &mut dyn Observer,
    hear: &mut dyn FnMut(&RateStep, usize),
) -> Result<RateSearch, LoadError> {
    let mut search = nothing_yet(spec, objective, closed);
    let window = Nanos(spec.duration_ns).as_secs_f64();
    let least = objective.requests_min() / window;
    // Half of what a closed loop reaches is kept by most.
    let begin = (search.closed_loop_per_s / 2.0).max(least);
    let unseen = growth_max(begin * window) / (begin * window);
    let unseen = unseen.min(objective.below().as_secs_f64() / window);
    let mut rates = Search::new(begin, least, unseen, spec.seed);
    if let Pace::Poisson { .. } = spec.pace {
        rates = rates.of_poisson(window);
    }
    while let (false, Some(rate)) = (search.interrupted, rates.next_rate()) {
        let spec = step_spec(spec, rate, search.steps.len() as u64);
        let outcome = run(&spec, observer)?;
        if outcome.interrupted {
            search.interrupted = true;
            break;
        }
        let (step, told) = judge(objective, rates.round(), rate, &outcome);
        rates.tell(told);
        hear(&step, rates.steps_left());
        search.steps.push(step);
        if has_left_some(&outcome.report) {
            search.interrupted = !is_drained(&spec, observer)?;
        }
    }
    search.rounds = rates.rounds();
    if let (false, Some(Found::Highest(highest))) = (search.interrupted, rates.found()) {
        search.highest = Some(highest_of(&highest));
    }
    Ok(search)
}

/// Steps of a search, as many as it usually has.
const STEPS_USUAL: u64 = 36;
/// What a step takes beside its lead-in and its window, usually.
const STEP_BESIDE: Nanos = Nanos::from_millis(100);

/// How long a search with steps of `step` usually takes, without the closed loop before it.
pub fn usual_length(step: Nanos) -> Nanos {
    (step + Nanos(step.0 / LEAD_IN) + STEP_BESIDE) * STEPS_USUAL
}

/// How long one may take at the most, if each of its steps takes as long as `timeout` lets it.
pub fn longest_length(step: Nanos, timeout: Nanos) -> Nanos {
    let recovery = Nanos(RECOVERY_PAUSE.as_nanos() as u64) * u64::from(RECOVERY_TRIES);
    (step + Nanos(step.0 / LEAD_IN) + timeout * 3 + recovery) * Search::STEPS_MAX as u64
}

fn nothing_yet(spec: &LoadSpec, objective: &Objective, closed: &LoadReport) -> RateSearch {
    RateSearch {
        schema: SCHEMA,
        generator: closed.generator.clone(),
        target: spec.target.clone(),
        threads: spec.threads,
        connections: spec.connections,
        objective: objective.to_string(),
        step_ns: spec.duration_ns,
        closed_loop_per_s: closed.rate_per_s,
        steps: Vec::new(),
        rounds: Vec::new(),
        highest: None,
        interrupted: false,
    }
}

fn highest_of(highest: &Highest) -> HighestRate {
    let rate = &highest.rate_per_s;
    HighestRate {
        rate_per_s: rate.median.0,
        low: rate.spread.low.0,
        high: rate.spread.high.0,
        spread: rate.spread.kind,
        at_least: highest.at_least,
    }
}

/// `spec` at a rate: spaced as it is in `spec`, evenly if that is none.
fn step_spec(spec: &LoadSpec, rate_per_s: f64, number: u64) -> LoadSpec {
    LoadSpec {
        pace: match spec.pace {
            Pace::Poisson { .. } => Pace::Poisson { rate_per_s },
            _ => Pace::Constant { rate_per_s },
        },
        latency_from: LatencyOrigin::Intended,
        warmup_ns: spec.duration_ns / LEAD_IN,
        // Each step has arrivals of its own.
        seed: spec.seed.wrapping_add(number),
        ..spec.clone()
    }
}

/// By how many requests what waits and what is in flight may grow over a step of so many arrivals.
fn growth_max(arrivals: f64) -> f64 {
    (arrivals * GROWTH_MAX).max(GROWTH_MIN)
}

fn judge(objective: &Objective, round: usize, rate: f64, outcome: &LoadResult) -> (RateStep, Step) {
    let report = &outcome.report;
    let arrivals = report.arrivals.unwrap_or_default();
    let figure = objective.of(&outcome.histogram, &report.latency_ns);
    let mut step = RateStep {
        round,
        rate_per_s: rate,
        completed_per_s: report.rate_per_s,
        p50_ns: report.latency_ns.p50,
        p99_ns: report.latency_ns.p99,
        objective_ns: figure,
        lateness_ns: report.delay.map_or(0, |delay| delay.lateness_ns.p99),
        growth: growth(report, &arrivals),
        failed: failed(report, &arrivals),
        outcome: StepOutcome::Kept,
        why: String::new(),
        counts: report.counts,
        arrivals,
        latency_ns: report.latency_ns,
    };
    let (told, why) = told(objective, &step);
    step.why = why;
    step.outcome = match told {
        Step::Kept => StepOutcome::Kept,
        Step::Missed => StepOutcome::Missed,
        Step::GeneratorShort => StepOutcome::GeneratorShort,
    };
    (step, told)
}

/// By how many requests what waited or was in flight grew over the window.
fn growth(report: &LoadReport, arrivals: &Arrivals) -> i64 {
    let ended = report.counts.completed + report.counts.failed.total();
    arrivals.in_window as i64 - ended as i64
}

/// Requests without a right answer.
fn failed(report: &LoadReport, arrivals: &Arrivals) -> u64 {
    let counts = &report.counts;
    let ended = counts.failed.total() + counts.unexpected_status + counts.drain_failed;
    ended + counts.abandoned + arrivals.waiting + arrivals.dropped
}

/// What became of the objective, and why it was not kept.
fn told(objective: &Objective, step: &RateStep) -> (Step, String) {
    let arrivals = &step.arrivals;
    let below = objective.below();
    let all = arrivals.in_window as f64;
    let why = if step.objective_ns >= below.0 {
        let figure = match step.objective_ns {
            NEVER => "is without end".to_owned(),
            ns => format!("is {}", Nanos(ns)),
        };
        format!("{} {figure}", objective.figure())
    } else if step.growth as f64 > growth_max(all) {
        format!(
            "what waits or is in flight grew by {} of {all} requests",
            step.growth
        )
    } else if step.failed as f64 > all * FAILED_MAX {
        format!("{} of {all} requests failed", step.failed)
    } else {
        String::new()
    };
    if arrivals.generator_short {
        let short = "the generator did not keep up with the rate while connections were idle";
        return (Step::GeneratorShort, short.to_owned());
    }
    if why.is_empty() {
        return (Step::Kept, why);
    }
    if step.lateness_ns as f64 > below.0 as f64 * OWN_DELAY {
        let late = Nanos(step.lateness_ns);
        let why = format!("{why}; the generator itself was late by {late} (99th percentile)");
        return (Step::GeneratorShort, why);
    }
    (Step::Missed, why)
}

/// Whether the server may still be at work on what was never answered.
fn has_left_some(report: &LoadReport) -> bool {
    let counts = &report.counts;
    counts.abandoned > 0 || counts.failed.timeout > 0 || report.drain_cut
}

/// Waits until the server answers a single request again; `false` where the observer ended that.
fn is_drained(spec: &LoadSpec, observer: &mut dyn Observer) -> Result<bool, LoadError> {
    let single = LoadSpec {
        threads: 1,
        connections: 1,
        warmup_ns: 0,
        duration_ns: NEVER,
        requests_max: Some(1),
        pace: Pace::default(),
        latency_from: LatencyOrigin::Submitted,
        ..spec.clone()
    };
    for _ in 0..RECOVERY_TRIES {
        match run(&single, observer) {
            Ok(outcome) if outcome.interrupted => return Ok(false),
            Ok(outcome) if outcome.report.counts.completed > 0 => return Ok(true),
            // It may not even take connections.
            Ok(_) | Err(LoadError::Unreachable { .. }) => thread::sleep(RECOVERY_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Err(LoadError::Unreachable {
        address: spec.target.address.clone(),
        reason: "it has not answered since a step of more than it can bear".to_owned(),
        failure: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a thousand requests at p99 < 10 ms that kept it, changed.
    fn step(change: impl FnOnce(&mut RateStep)) -> (Step, String) {
        let mut step = RateStep {
            objective_ns: 9_000_000,
            arrivals: Arrivals {
                in_window: 1_000,
                ..Arrivals::default()
            },
            ..RateStep::default()
        };
        change(&mut step);
        told(&"p99<10ms".parse().expect("an objective"), &step)
    }

    #[test]
    fn a_step_says_why_it_did_not_keep_the_objective() {
        assert_eq!(step(|_| {}), (Step::Kept, String::new()));
        let (told, why) = step(|step| step.objective_ns = 12_000_000);
        assert_eq!((told, &*why), (Step::Missed, "p99 is 12.0ms"));
        let (told, why) = step(|step| step.objective_ns = NEVER);
        assert_eq!((told, &*why), (Step::Missed, "p99 is without end"));
        assert_eq!(step(|step| step.growth = 10).0, Step::Kept);
        let (told, why) = step(|step| step.growth = 11);
        assert_eq!(told, Step::Missed);
        assert_eq!(
            why,
            "what waits or is in flight grew by 11 of 1000 requests"
        );
        assert_eq!(step(|step| step.failed = 10).0, Step::Kept);
        let (told, why) = step(|step| step.failed = 11);
        assert_eq!((told, &*why), (Step::Missed, "11 of 1000 requests failed"));
    }

    #[test]
    fn what_the_generator_did_is_not_the_servers() {
        let (told, why) = step(|step| step.arrivals.generator_short = true);
        assert_eq!(told, Step::GeneratorShort);
        assert!(why.contains("did not keep up with the rate"), "{why}");
        let late = |step: &mut RateStep| step.lateness_ns = 6_000_000;
        assert_eq!(step(late).0, Step::Kept);
        let (told, why) = step(|step| {
            late(step);
            step.objective_ns = 10_000_000;
        });
        assert_eq!(told, Step::GeneratorShort);
        assert_eq!(
            why,
            "p99 is 10.0ms; the generator itself was late by 6.00ms (99th percentile)"
        );
    }

    #[test]
    fn what_began_and_did_not_end_is_growth_and_what_got_no_right_answer_has_failed() {
        let mut report = LoadReport::default();
        report.counts.completed = 100;
        report.counts.failed.timeout = 1;
        report.counts.unexpected_status = 2;
        report.counts.drain_failed = 4;
        report.counts.abandoned = 8;
        let arrivals = Arrivals {
            in_window: 150,
            waiting: 16,
            dropped: 32,
            ..Arrivals::default()
        };
        assert_eq!(growth(&report, &arrivals), 49);
        assert_eq!(failed(&report, &arrivals), 63);
    }
}
