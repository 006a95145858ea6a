//! The numbers of searches, each computed once for each cell.

use prony_findings::Case;
use prony_record::{RateSearch, RateStep, StepOutcome};
use serde::Serialize;

use crate::figure::{Figure, latencies, values};
use crate::numbers;

/// Steps whose rates lie no farther apart are one point of the curve.
const POINT_MAX: f64 = 1.03;
/// Kept steps down to this part of the highest rate say what latency is there.
const THERE_MIN: f64 = 0.95;

/// What the searches of a cell found beside the rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchFigures {
    /// What was to be kept: `p99 < 10ms`.
    pub objective: String,
    /// What its figure had to stay below.
    pub below_ns: u64,
    /// Length of a step.
    pub step_ns: u64,
    /// Blocks in which the generator was the limit.
    pub blocks_at_least: usize,
    /// Blocks in which no rate kept the objective.
    pub blocks_nowhere: usize,
    /// Steps of all searches.
    pub steps: usize,
    /// Requests a second of the closed loop before the search.
    pub closed_loop_per_s: Option<Figure>,
    /// Median latency of the kept steps within 5 % of the highest rate.
    pub p50_ns: Option<Figure>,
    /// Latency against rate, over the steps in which the generator kept up; rates rise.
    pub curve: Vec<CurvePoint>,
}

/// Steps of about one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Requests that were to start a second.
    pub rate_per_s: f64,
    /// Requests that were completed a second.
    pub completed_per_s: f64,
    /// Median over the steps of their medians; 2^64 - 1: it never ended, here and below.
    pub p50_ns: f64,
    /// The same of their 99th percentiles.
    pub p99_ns: f64,
    /// The same of the objective's figure.
    pub objective_ns: f64,
    /// Steps.
    pub steps: usize,
    /// Those that kept the objective.
    pub kept: usize,
}

impl SearchFigures {
    /// The name of the objective's figure: `p99`.
    pub fn figure(&self) -> &str {
        self.objective.split(' ').next().unwrap_or_default()
    }

    /// The objective as it is read: `p99 < 10 ms`.
    pub fn objective_words(&self) -> String {
        format!("{} < {}", self.figure(), numbers::duration(self.below_ns))
    }
}

/// The figures of a search; `None` of any other cell.
pub fn of_cell(case: &Case<'_>) -> Option<SearchFigures> {
    let asked = case.workload?.find_max.as_ref()?;
    let searches: Vec<&RateSearch> = searches(case);
    let steps: Vec<&RateStep> = searches.iter().flat_map(|of| &of.steps).collect();
    let at_least = |of: &&&RateSearch| of.highest.is_some_and(|highest| highest.at_least);
    Some(SearchFigures {
        objective: asked.objective.clone(),
        below_ns: asked.below_ns,
        step_ns: asked.step_ns,
        blocks_at_least: searches.iter().filter(at_least).count(),
        blocks_nowhere: searches.iter().filter(|of| of.highest.is_none()).count(),
        steps: steps.len(),
        closed_loop_per_s: Figure::range(searches.iter().map(|of| of.closed_loop_per_s)),
        p50_ns: latencies(searches.iter().filter_map(|of| p50_there(of))),
        curve: curve(steps),
    })
}

/// The highest rate. One search has an interval of its own; where some search found none, there is none.
pub fn rate(case: &Case<'_>) -> Option<Figure> {
    let searches = searches(case);
    if searches.iter().any(|of| of.highest.is_none()) {
        return None;
    }
    if let [only] = searches[..] {
        let highest = only.highest?;
        let figure = Figure::range([highest.rate_per_s])?;
        return Some(Figure {
            low: highest.low,
            high: highest.high,
            spread: highest.spread,
            ..figure
        });
    }
    Figure::interval(values(case.rates()))
}

fn searches<'a>(case: &Case<'a>) -> Vec<&'a RateSearch> {
    case.measured()
        .filter_map(|trial| trial.search.as_ref())
        .collect()
}

fn p50_there(search: &RateSearch) -> Option<f64> {
    let highest = search.highest?.rate_per_s;
    let near = |step: &&RateStep| {
        step.outcome == StepOutcome::Kept
            && (highest * THERE_MIN..=highest).contains(&step.rate_per_s)
    };
    middle(search.steps.iter().filter(near).map(|step| step.p50_ns))
}

/// The lower middle one: a mean of a latency and one without end is neither.
fn middle(values: impl Iterator<Item = u64>) -> Option<f64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let middle = values.get(values.len().saturating_sub(1) / 2)?;
    Some(*middle as f64)
}

fn curve(mut steps: Vec<&RateStep>) -> Vec<CurvePoint> {
    steps.retain(|step| step.outcome != StepOutcome::GeneratorShort);
    steps.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let near =
        |first: &&RateStep, next: &&RateStep| next.rate_per_s <= first.rate_per_s * POINT_MAX;
    let mut points = Vec::new();
    let mut rest = &steps[..];
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|next| near(first, next)).count();
        // A rate that is no number is near to none, not even to itself.
        let (alike, others) = rest.split_at(count.max(1));
        points.extend(point(alike));
        rest = others;
    }
    points
}

fn point(steps: &[&RateStep]) -> Option<CurvePoint> {
    let of = |of: fn(&RateStep) -> u64| middle(steps.iter().map(|step| of(step)));
    let mean = |of: fn(&RateStep) -> f64| {
        steps.iter().map(|step| of(step)).sum::<f64>() / steps.len() as f64
    };
    Some(CurvePoint {
        rate_per_s: mean(|step| step.rate_per_s),
        completed_per_s: mean(|step| step.completed_per_s),
        p50_ns: of(|step| step.p50_ns)?,
        p99_ns: of(|step| step.p99_ns)?,
        objective_ns: of(|step| step.objective_ns)?,
        steps: steps.len(),
        kept: steps
            .iter()
            .filter(|step| step.outcome == StepOutcome::Kept)
            .count(),
    })
}
