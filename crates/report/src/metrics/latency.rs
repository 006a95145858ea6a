//! Latency: percentiles over the blocks, and the largest of all.

use prony_findings::{Case, Code};
use prony_record::{Histogram, LatencyNs, NEVER, Trial};
use prony_stats::quantile;

use super::metric::{Better, Metric};
use crate::Run;
use crate::numbers;
use crate::table::{Shown, TIME};

/// Percentiles that a cell has, with their names.
pub const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// How a latency is shown. Connecting is not in it.
const fn of(title: &'static str, path: &'static str) -> Shown {
    Shown::of(title, path, TIME).marked(&[Code::P003])
}

/// Median latency.
pub const P50: Metric = Metric {
    key: "p50",
    shown: of("p50", "latency_ns.p50"),
    column: "p50_ns",
    unit: "ns",
    bench: "p50-ns",
    better: Better::Lower,
    compared: "p50",
    alone: numbers::time,
    claimed: true,
    bound_below: Some(false),
    values: |run, case| values(run, case, 0.5),
    own: Some(|cell| Some(cell.latency_ns.get("p50")?.median)),
};

/// The latency that one request in four exceeds.
pub const P75: Metric = Metric {
    key: "p75",
    shown: of("p75", "latency_p75_ns").detail(),
    column: "p75_ns",
    claimed: false,
    own: None,
    values: |run, case| values(run, case, 0.75),
    compared: "p75",
    ..P50
};

/// Mean latency of all requests; none of a block in which some was never answered.
pub const MEAN: Metric = Metric {
    key: "mean",
    shown: of("mean", "latency_mean_ns").detail(),
    column: "mean_ns",
    claimed: false,
    own: None,
    values: |_, case| of_all(case, |latency| latency.mean),
    compared: "mean",
    ..P50
};

/// Standard deviation of the latencies of a block, as wrk prints it.
pub const DEVIATION: Metric = Metric {
    key: "stdev",
    shown: of("standard deviation", "latency_stdev_ns")
        .below("of requests")
        .detail(),
    column: "stdev_ns",
    claimed: false,
    own: None,
    values: |_, case| of_all(case, |latency| latency.stdev),
    compared: "standard deviation",
    ..P50
};

/// The latency that one request in ten exceeds.
pub const P90: Metric = Metric {
    key: "p90",
    shown: of("p90", "latency_ns.p90").detail(),
    column: "p90_ns",
    claimed: false,
    values: |run, case| values(run, case, 0.9),
    own: Some(|cell| Some(cell.latency_ns.get("p90")?.median)),
    compared: "p90",
    ..P50
};

/// The latency that one request in a hundred exceeds.
pub const P99: Metric = Metric {
    key: "p99",
    shown: of("p99", "latency_ns.p99"),
    column: "p99_ns",
    bench: "p99-ns",
    values: |run, case| values(run, case, 0.99),
    own: Some(|cell| Some(cell.latency_ns.get("p99")?.median)),
    compared: "p99",
    ..P50
};

/// The latency that one request in a thousand exceeds.
pub const P99_9: Metric = Metric {
    key: "p99_9",
    shown: of("p99.9", "latency_ns.p99_9")
        .supported("p99_9_supported")
        .detail(),
    column: "p99_9_ns",
    claimed: false,
    values: |run, case| values(run, case, 0.999),
    own: Some(|cell| Some(cell.latency_ns.get("p99_9")?.median)),
    compared: "p99.9",
    ..P50
};

/// The largest latency of all blocks.
pub const MAX: Metric = Metric {
    key: "max",
    shown: of("max", "latency_max_ns").detail(),
    column: "max_ns",
    claimed: false,
    values: |_, _| Vec::new(),
    own: Some(|cell| cell.latency_max_ns.map(|ns| ns as f64)),
    compared: "max",
    ..P50
};

/// A percentile of each measured block, those that never ended left out. Those of the closed loop before a search are no
/// figures of its cell.
fn values(run: &Run, case: &Case<'_>, q: f64) -> Vec<(u32, f64)> {
    if case.is_search() {
        return Vec::new();
    }
    let each = case.measured().filter_map(|trial| {
        let ns = latency_of(run, trial, q).filter(|ns| *ns < NEVER)?;
        Some((trial.block, ns as f64))
    });
    each.collect()
}

/// What each measured block says of the latencies of all its requests; nothing where some was never answered.
fn of_all(case: &Case<'_>, of: fn(&LatencyNs) -> f64) -> Vec<(u32, f64)> {
    if case.is_search() {
        return Vec::new();
    }
    let each = case.measured().filter_map(|trial| {
        let latency = &trial.load.as_ref()?.latency_ns;
        let whole = latency.count > 0 && latency.infinite == 0;
        whole.then(|| (trial.block, of(latency)))
    });
    each.collect()
}

/// The histogram of a trial, where the run directory has it.
pub fn stored<'a>(run: &'a Run, trial: &Trial) -> Option<&'a Histogram> {
    run.histograms.get(trial.histogram.as_ref()?)
}

/// A percentile of a trial, nanoseconds; [`NEVER`]: among the requests that were never answered.
pub fn latency_of(run: &Run, trial: &Trial, q: f64) -> Option<u64> {
    let load = trial.load.as_ref()?;
    // A histogram has only latencies that ended.
    match stored(run, trial).filter(|_| load.latency_ns.infinite == 0) {
        Some(histogram) => quantile(histogram, q).map(|ns| ns.0),
        None if load.latency_ns.count > 0 => load.latency_ns.percentile(100.0 * q),
        None => None,
    }
}
