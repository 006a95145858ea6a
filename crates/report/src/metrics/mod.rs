//! Metrics.

use prony_findings::{Case, measure};
use prony_record::{Histogram, LoadReport, NEVER, Role, Trial};
use prony_stats::quantile;

use crate::Run;

/// What is compared beside the rate, with its key in `summary.json`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Metric {
    /// Requests, or what a program counts, a second.
    Rate,
    /// Median latency.
    P50,
    /// The latency that one request in a hundred exceeds.
    P99,
    /// CPU time of the subject a request.
    Cpu,
}

impl Metric {
    /// Those that a server has beside its rate.
    pub const BESIDE_RATE: [Metric; 3] = [Metric::P50, Metric::P99, Metric::Cpu];

    /// All of them.
    pub const ALL: [Metric; 4] = [Metric::Rate, Metric::P50, Metric::P99, Metric::Cpu];

    /// Its unit in files; what a request is, is a count of a program.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Rate => "requests/s",
            Metric::P50 | Metric::P99 => "ns",
            Metric::Cpu => "ns/request",
        }
    }

    /// Which way is better: `higher` or `lower`.
    pub fn better(self) -> &'static str {
        match self {
            Metric::Rate => "higher",
            Metric::P50 | Metric::P99 | Metric::Cpu => "lower",
        }
    }

    /// Its value in each measured block of a cell.
    pub fn values(self, run: &Run, case: &Case<'_>) -> Vec<(u32, f64)> {
        let of_server = |trial: &Trial| Some((trial.block, self.of_trial(run, trial)?));
        match self {
            Metric::Rate => case.rates(),
            // Those of the closed loop before a search are no figures of its cell.
            Metric::P50 | Metric::P99 if case.is_search() => Vec::new(),
            _ => case.measured().filter_map(of_server).collect(),
        }
    }

    /// Its key.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Rate => "rate",
            Metric::P50 => "p50",
            Metric::P99 => "p99",
            Metric::Cpu => "cpu_subject",
        }
    }

    /// Its value in a trial of a server.
    fn of_trial(self, run: &Run, trial: &Trial) -> Option<f64> {
        let latency = |name, q| {
            let ns = latency_of(run, trial, name, q).filter(|ns| *ns < NEVER);
            ns.map(|ns| ns as f64)
        };
        match self {
            Metric::Rate => Some(measure::rate(trial.load.as_ref()?)?.0),
            Metric::P50 => latency("p50", 0.5),
            Metric::P99 => latency("p99", 0.99),
            Metric::Cpu => Some(measure::cpu_per_request(trial, Role::Subject)?.0),
        }
    }

    /// Whether a figure that is a bound (the generator was the limit) is one from below. `None`: it is none at all.
    pub fn is_bound_below(self) -> Option<bool> {
        match self {
            Metric::Rate => Some(true),
            Metric::P50 | Metric::P99 => Some(false),
            Metric::Cpu => None,
        }
    }
}

pub fn stored<'a>(run: &'a Run, trial: &Trial) -> Option<&'a Histogram> {
    run.histograms.get(trial.histogram.as_ref()?)
}

/// A percentile of a trial, nanoseconds; [`NEVER`](prony_record::NEVER): among the requests that were never answered.
pub fn latency_of(run: &Run, trial: &Trial, name: &str, q: f64) -> Option<u64> {
    let load = trial.load.as_ref()?;
    // A histogram has only latencies that ended.
    match stored(run, trial).filter(|_| load.latency_ns.infinite == 0) {
        Some(histogram) => quantile(histogram, q).map(|ns| ns.0),
        None => (load.latency_ns.count > 0).then(|| reported(load, name)),
    }
}

fn reported(load: &LoadReport, quantile: &str) -> u64 {
    let latency = &load.latency_ns;
    match quantile {
        "p50" => latency.p50,
        "p90" => latency.p90,
        "p99" => latency.p99,
        "p99_9" => latency.p99_9,
        _ => latency.p99_99,
    }
}
