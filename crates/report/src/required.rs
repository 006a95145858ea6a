//! What an experiment requires of its cells, `p99 < 20ms`, and whether they are so.
//!
//! The figure over the blocks, their median, decides, as the figure of a run does for `prony load`. Whether the 95 % interval over
//! the blocks lies on the same side of the bound says whether that is certain: where it does not, or where there are too few
//! blocks for an interval, it cannot be told whether another run would come out the same.
//!
//! Not for: what may be required and how it is written (`prony_base::typed::requirement`).

use prony_base::typed::requirement::{LoadRequirement, RequiredFigure, Requirement};
use prony_findings::{Case, Records, measure};
use prony_record::{LoadReport, PlannedWorkload, RequirementOutcome, Trial};
use prony_stats::{BLOCKS_INTERVAL_MIN, quantile};
use serde::Serialize;

use crate::Run;
use crate::figure::{INFINITE, latency_interval};
use crate::metrics::stored;

/// Outcomes that the answer lists one by one.
const LISTED_MAX: usize = 6;

/// What came of a requirement in a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellRequirement {
    /// The cell's `id`.
    pub cell: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: RequirementOutcome,
}

impl CellRequirement {
    /// With the cell it is of: `mine hello c=50: p99 < 20ms: …`.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.cell, self.outcome.sentence)
    }
}

/// What comes of requirements in each cell of `run`: of those that its workload has by `list`.
pub fn required(
    run: &Run,
    list: &dyn Fn(&str, &PlannedWorkload) -> Vec<LoadRequirement>,
) -> Vec<CellRequirement> {
    let records = Records::new(&run.plan, &run.trials);
    let of_case = |case: Case<'_>| {
        let cell = case.cell;
        let workload = run.plan.workloads.iter().find(|w| w.name == cell.workload);
        let requirements = workload.map_or_else(Vec::new, |of| list(&cell.subject, of));
        let outcome = |requirement: &LoadRequirement| CellRequirement {
            cell: cell.id.clone(),
            outcome: outcome(run, &case, requirement),
        };
        requirements.iter().map(outcome).collect::<Vec<_>>()
    };
    records.cases().flat_map(of_case).collect()
}

/// Those that the plan itself has.
pub fn planned(run: &Run) -> Vec<CellRequirement> {
    required(run, &|_, workload| {
        let all = workload.require.iter();
        all.filter_map(|text| text.parse().ok()).collect()
    })
}

/// What the answer says of them: how many are as required, those that are not, and those of which it cannot be told.
pub fn lines(all: &[CellRequirement]) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let held = all.iter().filter(|of| of.outcome.held).count();
    let mut lines = vec![format!("Required: {held} of {} held.", all.len())];
    let is_open = |of: &&CellRequirement| !of.outcome.held || of.outcome.sure != Some(true);
    let mut listed: Vec<&CellRequirement> = all.iter().filter(is_open).collect();
    listed.sort_by_key(|of| of.outcome.held);
    let sentences = listed.iter().take(LISTED_MAX).map(|of| of.sentence());
    lines.extend(sentences);
    if listed.len() > LISTED_MAX {
        let left = listed.len() - LISTED_MAX;
        lines.push(format!("Of {left} more: `summary.json`."));
    }
    lines
}

fn outcome(run: &Run, case: &Case<'_>, requirement: &LoadRequirement) -> RequirementOutcome {
    let values = case
        .measured()
        .filter_map(|trial| value(run, trial, requirement));
    let outcome = judged(&requirement.what, &values.collect::<Vec<f64>>());
    match &requirement.step {
        None => outcome,
        Some(step) => RequirementOutcome {
            requirement: format!("{step} {}", outcome.requirement),
            sentence: format!("{step} {}", outcome.sentence),
            ..outcome
        },
    }
}

/// The figure of one trial, or of a step of its users; [`INFINITE`] where it falls among requests that never ended. Where users wait without
/// end, times of a step have none, as most users are in no step yet.
fn value(run: &Run, trial: &Trial, requirement: &LoadRequirement) -> Option<f64> {
    let load = trial.load.as_ref()?;
    let step = match &requirement.step {
        None => None,
        Some(name) => Some(load.scenario.as_ref()?.step(name)?),
    };
    let is_overloaded = step.is_some() && load.arrivals.as_ref().is_some_and(|of| of.overloaded);
    let all = step.map_or(&load.latency_ns, |step| &step.latency_ns);
    match (requirement.what.figure, step) {
        (RequiredFigure::Rate, Some(step)) => Some(step.rate_per_s),
        (RequiredFigure::Rate, None) => measure::rate(load).map(|rate| rate.0),
        (RequiredFigure::Bytes, Some(_)) => None,
        (RequiredFigure::Bytes, None) => {
            let seconds = load.window_ns as f64 / 1e9;
            (seconds > 0.0).then(|| load.received_bytes as f64 / seconds)
        }
        (RequiredFigure::Errors, Some(step)) => {
            let failed = step.counts.failed.total();
            let ended = failed.saturating_add(step.counts.completed);
            let errors = failed.saturating_add(step.counts.unexpected_status);
            (ended > 0).then(|| errors as f64 / ended as f64)
        }
        (RequiredFigure::Errors, None) => errors(load),
        _ if all.count == 0 => None,
        _ if is_overloaded => Some(INFINITE),
        (RequiredFigure::Mean, _) if all.infinite > 0 => Some(INFINITE),
        (RequiredFigure::Mean, _) => Some(all.mean),
        (RequiredFigure::Max, _) => Some(all.max as f64),
        (RequiredFigure::Percentile(percent), Some(_)) => {
            all.percentile(percent).map(|ns| ns as f64)
        }
        (RequiredFigure::Percentile(percent), None) => percentile(run, trial, load, percent),
    }
}

/// Errors as a share of the requests that ended, as `prony load` has it.
fn errors(load: &LoadReport) -> Option<f64> {
    let counts = &load.counts;
    let never = load.arrivals.map_or(0, |of| of.waiting + of.dropped);
    let ended = counts.completed
        + counts.failed.total()
        + counts.drained
        + counts.drain_failed
        + counts.abandoned
        + counts.connect_failed.total()
        + never;
    (ended > 0).then(|| (measure::errors(load) + never) as f64 / ended as f64)
}

/// A percentile of all requests, of which the histogram has those that ended; where there is no histogram, one of those that the
/// load itself has said.
fn percentile(run: &Run, trial: &Trial, load: &LoadReport, percent: f64) -> Option<f64> {
    let all = &load.latency_ns;
    let ended = all.count - all.infinite;
    let share = percent / 100.0 * all.count as f64 / ended.max(1) as f64;
    // Within rounding of 1 is all that ended.
    if ended == 0 || share > 1.0 + f64::EPSILON * 8.0 {
        return Some(INFINITE);
    }
    if let Some(histogram) = stored(run, trial) {
        return quantile(histogram, share.min(1.0)).map(|ns| ns.0.min(all.max) as f64);
    }
    all.percentile(percent).map(|ns| ns as f64)
}

/// Of the values of the blocks.
fn judged(requirement: &Requirement, values: &[f64]) -> RequirementOutcome {
    let figure = requirement.figure;
    let is_finite = values.iter().all(|value| *value < INFINITE);
    let over = latency_interval(values);
    let value = match over.map(|of| of.median) {
        None => f64::NAN,
        Some(INFINITE) => f64::INFINITY,
        Some(median) => median,
    };
    let held = requirement.comparator.holds(value, requirement.bound);
    let interval = over.filter(|of| of.is_interval() && figure != RequiredFigure::Max);
    let ends = interval.map(|of| (of.low, of.high));
    let is_on_side = |end: f64| requirement.comparator.holds(end, requirement.bound) == held;
    let sure = ends.map(|(low, high)| is_on_side(low) && is_on_side(high));
    let blocks = values.len();
    let word = match (held, sure) {
        (true, Some(true)) => "held",
        (false, Some(true)) => "broken",
        (true, _) => "held by the figure, cannot be told",
        (false, _) => "missed by the figure, cannot be told",
    };
    let came = came(requirement, value);
    let how = match (ends, figure) {
        _ if !value.is_finite() => String::new(),
        (Some((low, high)), _) => {
            let of = format!("; 95 %: {} to {}", figure.shown(low), figure.shown(high));
            match sure {
                Some(true) => of,
                _ => format!("{of}, which contains the bound"),
            }
        }
        (None, RequiredFigure::Max) => "; a maximum has no interval".to_owned(),
        (None, _) if !is_finite => {
            "; no interval: some blocks have requests that never ended".to_owned()
        }
        (None, _) if blocks < BLOCKS_INTERVAL_MIN => {
            format!("; no interval: {blocks} of the {BLOCKS_INTERVAL_MIN} blocks that it takes")
        }
        (None, _) => "; no interval: the blocks stand in two groups".to_owned(),
    };
    RequirementOutcome {
        requirement: requirement.to_string(),
        value: value.is_finite().then_some(value),
        bound: requirement.bound,
        held,
        sure,
        interval_of: ends.map_or_else(String::new, |_| "median over the blocks".to_owned()),
        low: ends.map(|of| of.0),
        high: ends.map(|of| of.1),
        sentence: format!("{requirement}: {word}: {came}{how}"),
    }
}

fn came(requirement: &Requirement, value: f64) -> String {
    let figure = requirement.figure;
    let by = figure.shown((value - requirement.bound).abs());
    match value {
        v if v.is_nan() => "nothing was measured".to_owned(),
        v if v.is_infinite() => "it falls among requests that never ended".to_owned(),
        v if v > requirement.bound => format!("{} is {by} above the bound", figure.shown(v)),
        v if v < requirement.bound => format!("{} is {by} below the bound", figure.shown(v)),
        v => format!("{} is exactly the bound", figure.shown(v)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, values: &[f64]) -> RequirementOutcome {
        judged(&text.parse().expect("a requirement"), values)
    }

    #[test]
    fn the_figure_decides_and_the_interval_says_whether_that_can_be_told() {
        let narrow = [9.0e6, 9.1e6, 9.2e6, 9.1e6, 9.0e6, 9.1e6, 9.2e6];
        let held = of("p99 < 20ms", &narrow);
        assert_eq!((held.held, held.sure), (true, Some(true)));
        assert!(
            held.sentence.starts_with("p99 < 20ms: held: 9.1"),
            "{}",
            held.sentence
        );
        let broken = of("p99 < 5ms", &narrow);
        assert_eq!((broken.held, broken.sure), (false, Some(true)));
        assert!(
            broken.sentence.contains("broken: 9.10ms is 4.10ms above"),
            "{}",
            broken.sentence
        );
        let wide = [1.0e6, 30.0e6, 2.0e6, 25.0e6, 9.0e6, 8.0e6];
        let open = of("p99 < 10ms", &wide);
        assert_eq!((open.held, open.sure), (true, Some(false)));
        assert!(
            open.sentence.contains("cannot be told"),
            "{}",
            open.sentence
        );
        let few = of("rate > 5k", &[6_000.0, 6_100.0]);
        assert_eq!((few.held, few.sure, few.low), (true, None, None));
        assert!(
            few.sentence
                .ends_with("no interval: 2 of the 6 blocks that it takes"),
            "{}",
            few.sentence
        );
    }

    #[test]
    fn nothing_and_requests_that_never_ended_hold_nothing() {
        let nothing = of("errors < 1%", &[]);
        assert_eq!((nothing.held, nothing.value), (false, None));
        assert!(nothing.sentence.ends_with("nothing was measured"));
        let never = of("p99 < 1h", &[INFINITE; 7]);
        assert_eq!((never.held, never.value, never.sure), (false, None, None));
        assert!(never.sentence.contains("never ended"), "{}", never.sentence);
        let once = of("p99 < 1h", &[1e6, 1e6, INFINITE]);
        assert_eq!((once.held, once.sure), (true, None));
    }

    #[test]
    fn the_answer_names_what_is_missed_first() {
        let cell = |name: &str, values: &[f64]| CellRequirement {
            cell: name.to_owned(),
            outcome: of("rate > 5k", values),
        };
        let all = [
            cell("a", &[6_000.0; 7]),
            cell("b", &[6_000.0]),
            cell("c", &[4_000.0; 7]),
        ];
        let lines = lines(&all);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "Required: 2 of 3 held.");
        assert!(
            lines[1].starts_with("c: rate > 5k/s: broken: 4k/s is 1k/s below the bound"),
            "{lines:?}"
        );
        assert!(lines[2].starts_with("b: "), "{lines:?}");
        assert!(super::lines(&[]).is_empty());
    }
}
