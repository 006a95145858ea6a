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
use prony_record::{LatencyOrigin, LoadReport, LoadSpec, LoadTarget, NEVER, Pace, SCHEMA};
use prony_stats::{Found, Highest, Search, SpreadKind, Step};
use serde::Serialize;

use crate::objective::Objective;
use crate::run::{LoadError, Observer, Outcome, run};

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

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateSearch {
    /// Schema version.
    pub schema: u32,
    /// Name and version of the generator.
    pub generator: String,
    /// What was driven.
    pub target: LoadTarget,
    /// Threads used.
    pub threads: u32,
    /// Connections of each step.
    pub connections: u32,
    /// What was to be kept: `p99 < 10ms`.
    pub objective: String,
    /// Length of each step's window.
    pub step_ns: u64,
    /// Requests a second of the closed loop before the first step.
    pub closed_loop_per_s: f64,
    /// Every step, in order.
    pub steps: Vec<RateStep>,
    /// Requests a second that each round found.
    pub rounds: Vec<f64>,
    /// The outcome; `None` where it was interrupted, or no rate keeps the objective.
    pub highest: Option<HighestRate>,
    /// Whether the observer ended it.
    pub interrupted: bool,
}

/// The highest rate that keeps the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HighestRate {
    /// Median of the rounds, requests a second.
    pub rate_per_s: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// `interval` of 95 %; `range` where the rounds stand in two groups, so that there is none.
    pub spread: &'static str,
    /// The generator was the limit: the server keeps the objective at least so far.
    pub at_least: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateStep {
    /// Of which round, from 1; 0 before the first.
    pub round: usize,
    /// Requests that were to start a second.
    pub rate_per_s: f64,
    /// Requests that were completed a second.
    pub completed_per_s: f64,
    /// Median latency, from when a request was to start; `u64::MAX`: never ended, here and below.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The figure of the objective.
    pub objective_ns: u64,
    /// The same percentile, or the 99th, of what the generator added before sending.
    pub lateness_ns: u64,
    /// By how many requests what was in flight grew over the window.
    pub growth: i64,
    /// Requests without a right answer.
    pub failed: u64,
    /// `kept`, `missed` or `generator-short`.
    pub outcome: &'static str,
}

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
    let mut search = RateSearch {
        schema: SCHEMA,
        generator: first.report.generator.clone(),
        target: spec.target.clone(),
        threads: spec.threads,
        connections: spec.connections,
        objective: objective.to_string(),
        step_ns: spec.duration_ns,
        closed_loop_per_s: first.report.rate_per_s,
        steps: Vec::new(),
        rounds: Vec::new(),
        highest: None,
        interrupted: first.interrupted,
    };
    let window = Nanos(spec.duration_ns).as_secs_f64();
    let least = objective.requests_min() / window;
    // Half of what a closed loop reaches is kept by most.
    let begin = (search.closed_loop_per_s / 2.0).max(least);
    let unseen = growth_max(begin * window) / (begin * window);
    let unseen = unseen.min(objective.below().as_secs_f64() / window);
    let mut rates = Search::new(begin, least, unseen, spec.seed);
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
        search.highest = Some(HighestRate::of(&highest));
    }
    Ok(search)
}

impl HighestRate {
    fn of(highest: &Highest) -> HighestRate {
        let rate = &highest.rate_per_s;
        HighestRate {
            rate_per_s: rate.median.0,
            low: rate.spread.low.0,
            high: rate.spread.high.0,
            spread: match rate.spread.kind {
                SpreadKind::Interval => "interval",
                SpreadKind::Range => "range",
            },
            at_least: highest.at_least,
        }
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

/// By how many requests what is in flight may grow over a step of so many arrivals.
fn growth_max(arrivals: f64) -> f64 {
    (arrivals * GROWTH_MAX).max(GROWTH_MIN)
}

fn judge(objective: &Objective, round: usize, rate: f64, outcome: &Outcome) -> (RateStep, Step) {
    let report = &outcome.report;
    let ended = report.counts.completed + report.counts.failed.total();
    let arrivals = report.arrivals.unwrap_or_default();
    let growth = arrivals.in_window as i64 - ended as i64;
    let failed = report.counts.failed.total()
        + report.counts.unexpected_status
        + report.counts.drain_failed
        + report.counts.abandoned
        + arrivals.waiting
        + arrivals.dropped;
    let figure = objective.of(&outcome.histogram, &report.latency_ns);
    let lateness = report.delay.map_or(0, |delay| delay.lateness_ns.p99);
    let below = objective.below().0;
    let grows = growth as f64 > growth_max(arrivals.in_window as f64);
    let fails = failed as f64 > arrivals.in_window as f64 * FAILED_MAX;
    let told = if arrivals.generator_short {
        Step::GeneratorShort
    } else if figure < below && !grows && !fails {
        Step::Kept
    } else if lateness as f64 > below as f64 * OWN_DELAY {
        Step::GeneratorShort
    } else {
        Step::Missed
    };
    let step = RateStep {
        round,
        rate_per_s: rate,
        completed_per_s: report.rate_per_s,
        p50_ns: report.latency_ns.p50,
        p99_ns: report.latency_ns.p99,
        objective_ns: figure,
        lateness_ns: lateness,
        growth,
        failed,
        outcome: match told {
            Step::Kept => "kept",
            Step::Missed => "missed",
            Step::GeneratorShort => "generator-short",
        },
    };
    (step, told)
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
    })
}
