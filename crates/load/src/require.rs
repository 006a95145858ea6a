//! Whether a run is as was required, and how surely that can be said: `p99 < 20ms`, `errors < 0.1%`.
//!
//! The figure decides. What an interval over the run's seconds adds is whether another run of the same might decide otherwise. Of a
//! percentile it is the interval of the share of requests above the bound, which is compared with the share that may be: that asks the
//! same, and needs no values but counts.

use prony_base::typed::requirement::{Comparator, LoadRequirement, RequiredFigure, Requirement};
use prony_base::{Nanos, PerSecond};
use prony_record::{Histogram, LatencyNs, LoadReport, NEVER, RequirementOutcome, StepReport};
use prony_stats::{MeanInterval, quantile, ratio_over_seconds, seconds, share_over_seconds};

use crate::interval::{INTERVAL, LoadInterval, LoadTotals};
use crate::run::LoadResult;

/// The figure of a step; its errors are those of the window. Where users wait without end, times have none, as most users are in no step
/// yet.
fn figure_of_step(figure: RequiredFigure, step: &StepReport, is_overloaded: bool) -> f64 {
    let (of, latency) = (&step.counts, &step.latency_ns);
    let failed = of.failed.total();
    let value = match figure {
        RequiredFigure::Rate => return step.rate_per_s,
        RequiredFigure::Errors => {
            return share(failed + of.unexpected_status, failed + of.completed);
        }
        _ if latency.count == 0 => return f64::NAN,
        _ if is_overloaded => NEVER,
        RequiredFigure::Mean if latency.infinite == 0 => return latency.mean,
        RequiredFigure::Max => latency.max,
        RequiredFigure::Percentile(percent) => latency.percentile(percent).unwrap_or(NEVER),
        RequiredFigure::Mean | RequiredFigure::Bytes => NEVER,
    };
    match value {
        NEVER => f64::INFINITY,
        value => value as f64,
    }
}

/// What came of a requirement of a step.
fn outcome_of_step(step: &str, what: &Requirement, report: &LoadReport) -> RequirementOutcome {
    let found = report.scenario.as_ref().and_then(|of| of.step(step));
    let is_overloaded = (report.arrivals.as_ref()).is_some_and(|arrivals| arrivals.overloaded);
    let value = found.map_or(f64::NAN, |found| {
        figure_of_step(what.figure, found, is_overloaded)
    });
    let none = ToldInterval {
        of: "",
        interval: None,
        why: "a step has no interval",
        against: what.bound,
        is_upper: what.comparator.is_upper(),
    };
    let outcome = outcome(what, value, none);
    RequirementOutcome {
        requirement: format!("{step} {}", outcome.requirement),
        sentence: format!("{step} {}", outcome.sentence),
        ..outcome
    }
}

/// Whether `name` is that of one step of `steps`, each of which is given with the name of its flow; where several flows have a step of
/// that name, theirs stands before it: `buyer: order`.
///
/// # Errors
/// Why it is not.
pub fn check_step_name(steps: &[(&str, &str)], name: &str) -> Result<(), String> {
    let same = steps.iter().filter(|(_, step)| *step == name);
    let same: Vec<&str> = same.map(|(flow, _)| *flow).collect();
    let is_whole = |(flow, step): &(&str, &str)| format!("{flow}: {step}") == name;
    match same[..] {
        [flow, _, ..] => Err(format!(
            "the scenarios {} have a step of that name: write '{flow}: {name} …'",
            same.join(", ")
        )),
        [] if !steps.iter().any(is_whole) => {
            let names: Vec<&str> = steps.iter().map(|(_, step)| *step).collect();
            Err(format!(
                "there is no step of that name, but {}",
                names.join(", ")
            ))
        }
        _ => Ok(()),
    }
}

/// Requirements of a run, and what its seconds say of them.
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    list: Vec<LoadRequirement>,
    /// Of each, its part and the whole in each second that was whole.
    parts: Vec<Vec<(f64, f64)>>,
}

/// An interval, or why there is none; and what it is of.
struct ToldInterval {
    of: &'static str,
    interval: Option<(f64, f64)>,
    why: &'static str,
    /// What the interval is compared with.
    against: f64,
    /// Whether a high value breaks the requirement.
    is_upper: bool,
}

impl Requirements {
    /// Nothing is known yet.
    pub fn new(list: Vec<LoadRequirement>) -> Requirements {
        let parts = vec![Vec::new(); list.len()];
        Requirements { list, parts }
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes a second of the run. What is no whole second counts for the figures and not for the intervals.
    pub fn interval(&mut self, interval: &LoadInterval) {
        if interval.end - interval.start != INTERVAL {
            return;
        }
        for (requirement, parts) in self.list.iter().zip(&mut self.parts) {
            if requirement.step.is_none() {
                parts.push(part(&requirement.what, interval));
            }
        }
    }

    /// What came of each.
    pub fn outcomes(&self, of: &LoadResult) -> Vec<RequirementOutcome> {
        let all = self.list.iter().zip(&self.parts);
        all.map(|(requirement, parts)| {
            let what = &requirement.what;
            if let Some(step) = &requirement.step {
                return outcome_of_step(step, what, &of.report);
            }
            let value = figure(what.figure, &of.report, &of.histogram);
            outcome(what, value, told(what, parts))
        })
        .collect()
    }
}

/// What a second adds to the interval of a requirement.
fn part(requirement: &Requirement, interval: &LoadInterval) -> (f64, f64) {
    let latencies = || interval.latency.count() as f64;
    match requirement.figure {
        RequiredFigure::Rate => (interval.completed as f64, 1.0),
        RequiredFigure::Bytes => (interval.received_bytes as f64, 1.0),
        RequiredFigure::Errors => (interval.errors as f64, interval.ended as f64),
        RequiredFigure::Percentile(_) => (
            interval.latency.above(Nanos(requirement.bound as u64)) as f64,
            latencies(),
        ),
        RequiredFigure::Mean => {
            let summary = interval.latency.summary();
            let ended = (summary.count - summary.infinite) as f64;
            (summary.mean * ended, ended)
        }
        RequiredFigure::Max => (0.0, 0.0),
    }
}

/// What the seconds say.
fn told(requirement: &Requirement, parts: &[(f64, f64)]) -> ToldInterval {
    let mut against = requirement.bound;
    let (of, found) = match requirement.figure {
        RequiredFigure::Rate | RequiredFigure::Bytes => {
            let values: Vec<f64> = parts.iter().map(|part| part.0).collect();
            (
                "mean of the seconds",
                seconds(&values).map(|of| of.interval),
            )
        }
        RequiredFigure::Errors => ("share of errors", share_over_seconds(parts).map(|of| of.1)),
        RequiredFigure::Mean => ("mean latency", ratio_over_seconds(parts).map(|of| of.1)),
        RequiredFigure::Percentile(percent) => {
            // A percentile is below a bound where no more than the rest is above it, and the other way round.
            against = 1.0 - percent / 100.0;
            (
                "share above the bound",
                share_over_seconds(parts).map(|of| of.1),
            )
        }
        RequiredFigure::Max => ("", None),
    };
    let why = match (requirement.figure, found) {
        (RequiredFigure::Max, _) => "a maximum has no interval",
        (_, Some(MeanInterval::Correlated)) => "no interval: its seconds go together",
        _ => "no interval: it takes ten whole seconds",
    };
    let interval = match found {
        Some(MeanInterval::Interval { low, high }) => Some((low.0, high.0)),
        _ => None,
    };
    let is_upper = requirement.comparator.is_upper();
    ToldInterval {
        of,
        interval,
        why,
        against,
        is_upper,
    }
}

/// The figure of a whole run; infinite where it falls among requests that never ended, `NaN` where nothing was measured.
fn figure(figure: RequiredFigure, report: &LoadReport, histogram: &Histogram) -> f64 {
    match figure {
        RequiredFigure::Rate => report.rate_per_s,
        RequiredFigure::Bytes => PerSecond::of(report.received_bytes, Nanos(report.window_ns)).0,
        RequiredFigure::Errors => {
            let never = report.arrivals.map_or(0, |of| of.waiting + of.dropped);
            let totals = LoadTotals {
                counts: report.counts,
                ..LoadTotals::default()
            };
            share(totals.errors() + never, totals.ended() + never)
        }
        of => latency(of, &report.latency_ns, &|q| {
            quantile(histogram, q).map(|at| at.0)
        }),
    }
}

/// The same of a run so far that took `elapsed`.
fn figure_so_far(figure: RequiredFigure, of: &LoadTotals, elapsed: Nanos) -> f64 {
    match figure {
        RequiredFigure::Rate => PerSecond::of(of.counts.completed, elapsed).0,
        RequiredFigure::Bytes => PerSecond::of(of.received_bytes, elapsed).0,
        RequiredFigure::Errors => share(of.errors(), of.ended()),
        figure => {
            let histogram = of.latency.histogram();
            let at = |q| quantile(&histogram, q).map(|at| at.0);
            latency(figure, &of.latency.summary(), &at)
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// A figure of latencies, of which `at` has the quantiles of those that ended.
fn latency(figure: RequiredFigure, all: &LatencyNs, at: &dyn Fn(f64) -> Option<u64>) -> f64 {
    let ended = all.count - all.infinite;
    if all.count == 0 {
        return f64::NAN;
    }
    let value = match figure {
        RequiredFigure::Mean if all.infinite == 0 => return all.mean,
        RequiredFigure::Max => all.max,
        RequiredFigure::Percentile(percent) if ended > 0 => {
            let share = percent / 100.0 * all.count as f64 / ended as f64;
            // Within rounding of 1 is all that ended.
            match share <= 1.0 + f64::EPSILON * 8.0 {
                true => at(share.min(1.0)).unwrap_or(NEVER).min(all.max),
                false => NEVER,
            }
        }
        _ => NEVER,
    };
    match value {
        NEVER => f64::INFINITY,
        value => value as f64,
    }
}

fn outcome(requirement: &Requirement, value: f64, told: ToldInterval) -> RequirementOutcome {
    let held = requirement.comparator.holds(value, requirement.bound);
    let sure = told
        .interval
        .filter(|_| value.is_finite())
        .map(|(low, high)| {
            let (below, above) = (high < told.against, low > told.against);
            match held == told.is_upper {
                true => below,
                false => above,
            }
        });
    RequirementOutcome {
        requirement: requirement.to_string(),
        value: value.is_finite().then_some(value),
        bound: requirement.bound,
        held,
        sure,
        interval_of: sure.map_or_else(String::new, |_| told.of.to_owned()),
        low: sure.and(told.interval).map(|of| of.0),
        high: sure.and(told.interval).map(|of| of.1),
        sentence: sentence(requirement, value, held, sure, &told),
    }
}

fn sentence(
    requirement: &Requirement,
    value: f64,
    held: bool,
    sure: Option<bool>,
    told: &ToldInterval,
) -> String {
    let figure = requirement.figure;
    let came = match value {
        v if v.is_nan() => "nothing was measured".to_owned(),
        v if v.is_infinite() => "it falls among requests that never ended".to_owned(),
        v => {
            let by = (v - requirement.bound).abs();
            let side = match v > requirement.bound {
                true => "above",
                false => "below",
            };
            match by == 0.0 {
                true => format!("{} is exactly the bound", figure.shown(v)),
                false => format!(
                    "{} is {} {side} the bound",
                    figure.shown(v),
                    figure.shown(by)
                ),
            }
        }
    };
    let word = if held { "held" } else { "missed" };
    let shown = |value: f64| match figure {
        RequiredFigure::Percentile(_) => RequiredFigure::Errors.shown(value),
        figure => figure.shown(value),
    };
    let how = match (sure, told.interval) {
        (Some(sure), Some((low, high))) => {
            let of = match figure {
                RequiredFigure::Percentile(_) => format!(
                    "; {} to {} of requests took longer than {}, where {} may (95 %)",
                    shown(low),
                    shown(high),
                    figure.shown(requirement.bound),
                    shown(told.against)
                ),
                _ => format!("; 95 %: {} to {}", shown(low), shown(high)),
            };
            let unsure =
                "the bound is within the interval, so that another run may come out otherwise";
            match sure {
                true => of,
                false => format!("{of}: {unsure}"),
            }
        }
        _ if value.is_finite() => format!("; {}", told.why),
        _ => String::new(),
    };
    format!("{requirement}: {word}: {came}{how}")
}

/// Conditions on which a run ends before its time, looked at once a second, of all of the run so far.
#[derive(Clone, Debug, Default)]
pub struct StopConditions(pub Vec<Requirement>);

impl StopConditions {
    /// The first that is true at the end of `interval`, in a sentence. What was not measured yet is no reason.
    pub fn reached(&self, interval: &LoadInterval) -> Option<String> {
        let so_far = |figure| figure_so_far(figure, &interval.total, interval.end);
        let mut all = self.0.iter().map(|of| (of, so_far(of.figure)));
        let (condition, value) =
            all.find(|(of, value)| of.comparator.holds(*value, of.bound) || is_never(of, *value))?;
        let after = interval.end;
        let value = condition.figure.shown(value);
        Some(format!(
            "stopped after {after} of the window: {condition} (it was {value})"
        ))
    }
}

/// A latency that never ended is above each bound.
fn is_never(of: &Requirement, value: f64) -> bool {
    value.is_infinite() && matches!(of.comparator, Comparator::Above | Comparator::AtLeast)
}

#[cfg(test)]
mod tests {
    use prony_record::Counts;

    use super::*;
    use crate::Latencies;

    #[test]
    fn a_requirement_of_a_step_is_judged_by_its_figures() {
        let read = |text: &str| text.parse::<LoadRequirement>();
        let both = read("log in p99 < 20ms").expect("it is one");
        assert_eq!(both.step.as_deref(), Some("log in"));
        assert_eq!(both.what.to_string(), "p99 < 20ms");
        let mut report = LoadReport {
            scenario: Some(prony_record::ScenarioReport {
                steps: vec![StepReport {
                    name: "log in".to_owned(),
                    latency_ns: LatencyNs {
                        count: 5,
                        p99: 25_000_000,
                        max: NEVER,
                        infinite: 1,
                        ..LatencyNs::default()
                    },
                    ..StepReport::default()
                }],
                ..prony_record::ScenarioReport::default()
            }),
            ..LoadReport::default()
        };
        let outcome = outcome_of_step("log in", &both.what, &report);
        assert!(!outcome.held);
        assert_eq!(outcome.requirement, "log in p99 < 20ms");
        assert!(
            outcome
                .sentence
                .starts_with("log in p99 < 20ms: missed: 25"),
            "{}",
            outcome.sentence
        );
        let max = "max < 1s".parse().expect("it is one");
        assert!(!outcome_of_step("log in", &max, &report).held);
        report.scenario = None;
        assert!(!outcome_of_step("log in", &both.what, &report).held);
    }

    /// Twenty seconds; `second` gives completed, errors, and latencies in milliseconds.
    fn ran(text: &str, second: impl Fn(u64) -> (u64, u64, Vec<u64>)) -> RequirementOutcome {
        let mut requirements = Requirements::new(vec![text.parse().expect(text)]);
        let mut all = Latencies::default();
        let mut counts = Counts::default();
        for number in 0..20 {
            let (completed, errors, latencies) = second(number);
            let mut latency = Latencies::default();
            latencies
                .iter()
                .for_each(|ms| latency.record(Nanos::from_millis(*ms)));
            (0..errors).for_each(|_| latency.record_never());
            all.add(&latency);
            counts.completed += completed;
            counts.failed.timeout += errors;
            requirements.interval(&LoadInterval {
                number,
                start: INTERVAL * number,
                end: INTERVAL * (number + 1),
                completed,
                errors,
                failed: errors,
                ended: completed + errors,
                latency,
                ..LoadInterval::default()
            });
        }
        let report = LoadReport {
            window_ns: Nanos::from_secs(20).0,
            rate_per_s: counts.completed as f64 / 20.0,
            completed: counts.completed,
            counts,
            latency_ns: all.summary(),
            ..LoadReport::default()
        };
        let of = LoadResult {
            report,
            histogram: all.histogram(),
            trace: Vec::new(),
            fallback: None,
            interrupted: false,
            failed_answers: Vec::new(),
            observed: Vec::new(),
        };
        requirements.outcomes(&of).remove(0)
    }

    /// 1000 requests a second, give or take; one in a hundred, give or take, takes 30 ms and the others 10 ms.
    fn busy(number: u64) -> (u64, u64, Vec<u64>) {
        let slow = 10 + (number * 7) % 5 - 2;
        let mut latencies = vec![10; 1_000 - slow as usize];
        latencies.extend(vec![30; slow as usize]);
        (1_000 + (number * 13) % 7 - 3, 0, latencies)
    }

    #[test]
    fn on_either_side_of_the_interval_it_is_sure_and_within_it_is_not() {
        for (text, held, sure) in [
            ("rate > 900", true, Some(true)),
            ("rate > 1001", false, Some(false)),
            ("rate >= 1000", true, Some(false)),
            ("rate > 1100", false, Some(true)),
            ("rate < 1100", true, Some(true)),
            ("p99 < 50ms", true, Some(true)),
            ("p90 < 20ms", true, Some(true)),
            ("p99 < 20ms", true, Some(false)),
            ("p99.9 < 20ms", false, Some(true)),
            ("p99.9 > 20ms", true, Some(true)),
            ("mean < 11ms", true, Some(true)),
            ("mean < 10ms", false, Some(true)),
            ("errors < 0.1%", true, Some(true)),
            ("errors < 0.001%", true, Some(false)),
            ("max < 1s", true, None),
            ("max < 20ms", false, None),
        ] {
            let came = ran(text, busy);
            assert_eq!((came.held, came.sure), (held, sure), "{came:?}");
        }
    }

    #[test]
    fn exactly_at_the_bound_it_is_neither_below_nor_surely_at_most() {
        let even = |_| (1_000, 0, vec![10; 1_000]);
        let came = ran("rate > 1k", even);
        assert!(!came.held);
        assert!(
            came.sentence.contains("1k/s is exactly the bound"),
            "{}",
            came.sentence
        );
        assert!(ran("rate >= 1k", even).held);
        let half = |number: u64| (999 + number % 2 * 2, 0, vec![10; 1_000]);
        let came = ran("rate >= 1000", half);
        assert_eq!((came.held, came.sure), (true, Some(false)), "{came:?}");
    }

    #[test]
    fn what_never_ended_misses_every_bound_and_says_so() {
        let came = ran("p99 < 10s", |number| (900, 100 + number % 3, vec![10; 900]));
        assert_eq!((came.held, came.value, came.sure), (false, None, None));
        assert!(
            came.sentence
                .ends_with("missed: it falls among requests that never ended"),
            "{}",
            came.sentence
        );
        let came = ran("errors < 5%", |number| {
            (900, 100 + (number * 7) % 5, vec![10; 900])
        });
        assert_eq!((came.held, came.sure), (false, Some(true)), "{came:?}");
        let nothing = ran("p99 < 10s", |_| (0, 0, Vec::new()));
        assert!(
            !nothing.held && nothing.sentence.contains("nothing was measured"),
            "{nothing:?}"
        );
    }

    #[test]
    fn the_sentence_says_by_how_much_and_how_surely() {
        let said = |text| ran(text, busy).sentence;
        let long = said("p99.9 < 20ms");
        assert!(
            long.starts_with("p99.9 < 20ms: missed: 30.0ms is 10.0ms above the bound; 0."),
            "{long}"
        );
        assert!(
            long.ends_with("of requests took longer than 20.0ms, where 0.1% may (95 %)"),
            "{long}"
        );
        let unsure = said("rate > 1000");
        assert!(
            unsure.contains("the bound is within the interval"),
            "{unsure}"
        );
        assert!(said("max < 20ms").ends_with("; a maximum has no interval"));
    }

    #[test]
    fn a_run_stops_on_what_is_true_so_far_and_not_on_what_is_not_known() {
        let stop = |text: &str, total: LoadTotals| {
            let conditions = StopConditions(vec![text.parse().expect(text)]);
            conditions.reached(&LoadInterval {
                end: INTERVAL * 2,
                total,
                ..LoadInterval::default()
            })
        };
        let mut total = LoadTotals::default();
        for text in ["errors > 1%", "p99 > 1ms", "max > 1ms"] {
            assert_eq!(stop(text, LoadTotals::default()), None, "{text}");
        }
        total.counts.completed = 98;
        total.counts.failed.reset = 2;
        total.latency.record(Nanos::from_millis(5));
        total.latency.record_never();
        let said = stop("errors > 1%", total.clone());
        assert_eq!(
            said.as_deref(),
            Some("stopped after 2.00s of the window: errors > 1% (it was 2%)")
        );
        assert_eq!(stop("errors > 2%", total.clone()), None);
        assert!(stop("errors >= 2%", total.clone()).is_some());
        assert!(stop("rate < 50", total.clone()).is_some());
        assert!(
            stop("max > 1h", total)
                .expect("one never ended")
                .ends_with("(it was ∞)")
        );
    }
}
