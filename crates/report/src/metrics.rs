//! The registry of metrics: what is measured of a cell, each with its name, unit, direction, source, format and marks.
//!
//! A metric is a constant here and a place in [`Metric::ALL`]. From there `summary.json`, `summary.csv`, the exports, the tables of
//! servers and `compare` take it; none of them names it again ([`crate::published`] does). What a cell has of it, it has at the path of its column.
//! Not for: what only one kind of work has (counts, checksums, processes), which is in that kind's `figures`.

use prony_findings::{Case, Code, measure};
use prony_record::{Histogram, LatencyNs, NEVER, Role, Trial};
use prony_stats::quantile;

use crate::Run;
use crate::clients::figures::cpu;
use crate::figure::{Figure, by_block, values};
use crate::figures::{CellFigures, Measured};
use crate::numbers::{BYTES, FigureUnit, MICROS, RATE, TIME};
use crate::ratio::RatioFigure;
use crate::table::{ON_CPU, ON_RATE, Shown};

/// Percentiles that a cell has, with their names.
pub const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// What a cell has in a place of its own, and not among what is [measured](Measured).
const OWN: [&str; 3] = ["rate_per_s", "latency_ns", "latency_max_ns"];

/// Where the value of a trial comes from.
#[derive(Clone, Copy)]
enum MetricSource {
    /// What is done a second ([`Case::rates`]).
    Rates,
    /// A quantile of the latencies, those that never ended left out.
    Quantile(f64),
    /// What a load says of all its latencies; nothing where some request was never answered.
    Latencies(fn(&LatencyNs) -> f64),
    /// The trial of a server.
    Server(fn(&Trial) -> Option<f64>),
    /// The same of what older runs did not record: a cell without it has no such figure, not an empty one.
    Newer(fn(&Trial) -> Option<f64>),
    /// Any trial.
    Any(fn(&Trial) -> Option<f64>),
    /// There is one of all trials together.
    All,
}

/// What is measured of a cell.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Its key among ratios and in exports: `p50`.
    pub key: &'static str,
    /// How tables show it, and where it is in a cell of `summary.json`.
    pub shown: Shown,
    /// Its column in `summary.csv`, which ends in its unit; empty: it has columns of its own there.
    pub column: &'static str,
    /// Its unit in exports; what a request is, is a count of a program.
    pub unit: &'static str,
    /// Its unit with its name in it, as benchstat wants it; empty: it is not compared with a baseline and not exported trial by trial.
    pub bench: &'static str,
    /// Whether less of it is better.
    pub falls: bool,
    /// What a comparison calls it.
    pub compared: &'static str,
    /// How it is shown by itself, with its unit where no name says it.
    pub alone: FigureUnit,
    /// Whether a figure that is a bound (the generator was the limit) is one from below. `None`: it is none at all.
    pub bound_below: Option<bool>,
    source: MetricSource,
}

/// A latency. Connecting is not in it. Where the generator was the limit, it is at most so long.
const fn latency(
    key: &'static str,
    title: &'static str,
    path: &'static str,
    column: &'static str,
    source: MetricSource,
) -> Metric {
    Metric {
        key,
        shown: Shown::new(title, path, TIME).marked(&[Code::P003]),
        column,
        unit: "ns",
        bench: "",
        falls: true,
        compared: title,
        alone: TIME,
        bound_below: Some(false),
        source,
    }
}

/// A time of starting.
const fn start(
    key: &'static str,
    title: &'static str,
    path: &'static str,
    source: MetricSource,
) -> Metric {
    Metric {
        shown: Shown::new(title, path, TIME),
        bound_below: None,
        ..latency(key, title, path, path, source)
    }
}

const P75: MetricSource = MetricSource::Quantile(0.75);
const P90: MetricSource = MetricSource::Quantile(0.9);
const READY: MetricSource = MetricSource::Server(|trial| Some(measure::time_to_ready(trial)?.0));
const FIRST: MetricSource = MetricSource::Server(|trial| Some(measure::first_answer(trial)?.0));
const AFTER_REST: MetricSource = MetricSource::Server(|trial| Some(measure::after_rest(trial)?.0));

impl Metric {
    /// Requests, or what a program counts, a second. `summary.csv` has its ends beside it.
    pub const RATE: Metric = Metric {
        key: "rate",
        shown: Shown::new("requests/s", "rate_per_s", RATE)
            .with_ends()
            .marked(ON_RATE),
        column: "",
        unit: "requests/s",
        bench: "req/s",
        falls: false,
        compared: "requests/s",
        alone: RATE,
        bound_below: Some(true),
        source: MetricSource::Rates,
    };
    /// Bytes of answers received a second, heads included.
    pub const RECEIVED: Metric = Metric {
        key: "received",
        shown: Shown::new(
            "received",
            "received_bytes_per_s",
            FigureUnit::BytesPerSecond,
        )
        .below("a second")
        .detail(),
        column: "received_bytes_per_s",
        unit: "B/s",
        bench: "",
        compared: "received a second",
        alone: FigureUnit::BytesPerSecond,
        source: MetricSource::Server(|trial| {
            let load = trial.load.as_ref()?;
            Some(measure::rate(load)?.0 * measure::bytes_per_answer(load)?.0)
        }),
        ..Metric::RATE
    };
    /// Median latency.
    pub const P50: Metric = Metric {
        bench: "p50-ns",
        ..latency(
            "p50",
            "p50",
            "latency_ns.p50",
            "p50_ns",
            MetricSource::Quantile(0.5),
        )
    };
    /// The latency that one request in four exceeds.
    pub const P75: Metric = latency("p75", "p75", "latency_p75_ns", "p75_ns", P75).detail();
    const P90: Metric = latency("p90", "p90", "latency_ns.p90", "p90_ns", P90).detail();
    /// The latency that one request in a hundred exceeds.
    pub const P99: Metric = Metric {
        bench: "p99-ns",
        ..latency(
            "p99",
            "p99",
            "latency_ns.p99",
            "p99_ns",
            MetricSource::Quantile(0.99),
        )
    };
    /// The latency that one request in a thousand exceeds.
    pub const P99_9: Metric = Metric {
        shown: Shown::new("p99.9", "latency_ns.p99_9", TIME)
            .marked(&[Code::P003])
            .supported("p99_9_supported")
            .detail(),
        ..latency(
            "p99_9",
            "p99.9",
            "",
            "p99_9_ns",
            MetricSource::Quantile(0.999),
        )
    };
    const MAX: Metric =
        latency("max", "max", "latency_max_ns", "max_ns", MetricSource::All).detail();
    /// Mean latency of all requests.
    pub const MEAN: Metric = {
        let source = MetricSource::Latencies(|latency| latency.mean);
        latency("mean", "mean", "latency_mean_ns", "mean_ns", source).detail()
    };
    /// Standard deviation of the latencies of a trial, as wrk prints it.
    pub const DEVIATION: Metric = Metric {
        shown: Shown::new("standard deviation", "latency_stdev_ns", TIME)
            .marked(&[Code::P003])
            .below("of requests")
            .detail(),
        compared: "standard deviation",
        ..latency(
            "stdev",
            "",
            "",
            "stdev_ns",
            MetricSource::Latencies(|of| of.stdev),
        )
    };
    /// CPU time of the subject a request.
    pub const CPU: Metric = Metric {
        key: "cpu_subject",
        shown: Shown::new("CPU subject", "cpu_subject_ns", MICROS)
            .below("µs/req")
            .marked(ON_CPU),
        column: "cpu_subject_ns_per_request",
        unit: "ns/request",
        bench: "cpu-ns/req",
        falls: true,
        compared: "CPU a request",
        alone: TIME,
        // It is what was used, whoever was the limit.
        bound_below: None,
        source: MetricSource::Server(|t| Some(measure::cpu_per_request(t, Role::Subject)?.0)),
    };
    const CPU_GENERATOR: Metric = Metric {
        key: "cpu_generator",
        shown: Shown::new("CPU generator", "cpu_generator_ns", MICROS)
            .below("µs/req")
            .detail(),
        column: "cpu_generator_ns_per_request",
        bench: "",
        compared: "CPU of the generator a request",
        source: MetricSource::Server(|t| {
            Some(measure::generator_cpu_per_request(t.load.as_ref()?)?.0)
        }),
        ..Metric::CPU
    };
    /// Peak resident memory of the subject's largest process, in the window or a program's whole run.
    pub const MEMORY: Metric = Metric {
        key: "memory_peak",
        shown: Shown::new("memory peak", "memory_peak_bytes", BYTES).detail(),
        column: "memory_peak_bytes",
        unit: "B",
        bench: "peak-B",
        compared: "memory peak",
        alone: BYTES,
        source: MetricSource::Any(|trial| match &trial.program {
            Some(run) => Some(run.peak_bytes as f64),
            None => Some(measure::memory_peak(trial, Role::Subject)?.0),
        }),
        ..Metric::CPU
    };
    /// Peak virtual memory of a server's largest process, from its start to the end of the window. It is compared with nothing: how
    /// much is reserved says little of what is used.
    pub const VIRTUAL_MEMORY: Metric = Metric {
        key: "virtual_peak",
        shown: Shown::new("virtual memory", "virtual_peak_bytes", BYTES)
            .below("peak")
            .detail(),
        column: "virtual_peak_bytes",
        bench: "",
        compared: "virtual memory",
        source: MetricSource::Newer(|t| Some(measure::virtual_peak(t, Role::Subject)?.0)),
        ..Metric::MEMORY
    };
    /// How long starting took: until the ready sign, with an HTTP sign its first answer (older runs have none); for the first of the workload's
    /// requests after it; and for one after nothing had been asked for as long as the workload says.
    pub const OF_START: [Metric; 3] = [
        Metric {
            bench: "ready-ns",
            ..start("ready", "time to ready", "ready_ns", READY)
        },
        start("first", "first request", "first_answer_ns", FIRST),
        Metric {
            compared: "request after a rest",
            ..start("after-rest", "after a rest", "after_rest_ns", AFTER_REST)
        },
    ];

    /// All of them, in the order of tables and columns.
    pub const ALL: [Metric; 17] = [
        Metric::RATE,
        Metric::MEAN,
        Metric::DEVIATION,
        Metric::P50,
        Metric::P75,
        Metric::P90,
        Metric::P99,
        Metric::P99_9,
        Metric::MAX,
        Metric::CPU,
        Metric::CPU_GENERATOR,
        Metric::MEMORY,
        Metric::VIRTUAL_MEMORY,
        Metric::RECEIVED,
        Metric::OF_START[0],
        Metric::OF_START[1],
        Metric::OF_START[2],
    ];

    const fn detail(self) -> Metric {
        let shown = self.shown.detail();
        Metric { shown, ..self }
    }

    /// The one with this key.
    pub fn with_key(key: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.key == key)
    }

    /// Those that are compared with a baseline and exported trial by trial.
    pub fn claimed() -> impl Iterator<Item = Metric> {
        let all = Metric::ALL.into_iter();
        all.filter(|metric| !metric.bench.is_empty())
    }

    /// Those of them that a server has beside its rate.
    pub fn beside_rate() -> impl Iterator<Item = Metric> {
        Metric::claimed().filter(|metric| !metric.is_rate())
    }

    /// Those that the cell has in [`Measured`], each with its figure. CPU time of a client is an answer's, by the kernel's account of it.
    pub fn measured(run: &Run, case: &Case<'_>) -> Measured {
        let figure = |metric: Metric| {
            let by_block = match metric.key == Metric::CPU.key && case.is_client() {
                true => by_block(case.complete(), |trial| cpu(trial.program.as_ref()?)),
                false => metric.by_block(run, case),
            };
            let figure = Figure::range(values(by_block));
            (figure.is_some() || !metric.is_newer()).then_some((metric.shown.path, figure))
        };
        let all = Metric::ALL.into_iter();
        Measured(
            all.filter(|of| of.is_measured())
                .filter_map(figure)
                .collect(),
        )
    }

    /// Its values in a cell, in [`Metric::unit`]; none where there is only one of all trials. The latencies of the
    /// closed loop before a search are no figures of its cell.
    pub fn by_block(self, run: &Run, case: &Case<'_>) -> Vec<(u32, f64)> {
        let is_search = case.is_search();
        match self.source {
            MetricSource::Rates => case.rates(),
            MetricSource::Quantile(_) | MetricSource::Latencies(_) if is_search => Vec::new(),
            MetricSource::Quantile(q) => by_block(case.measured(), |trial| {
                let ns = latency_of(run, trial, q).filter(|ns| *ns < NEVER)?;
                Some(ns as f64)
            }),
            MetricSource::Latencies(of) => by_block(case.measured(), |trial| {
                let latency = &trial.load.as_ref()?.latency_ns;
                (latency.count > 0 && latency.infinite == 0).then(|| of(latency))
            }),
            MetricSource::Server(of) | MetricSource::Newer(of) => by_block(case.measured(), of),
            MetricSource::Any(of) => by_block(case.complete(), of),
            MetricSource::All => Vec::new(),
        }
    }

    /// Which way is better, as exports have it.
    pub fn better(self) -> &'static str {
        if self.falls { "lower" } else { "higher" }
    }

    /// Its value over all trials.
    pub fn value(self, cell: &CellFigures) -> Option<f64> {
        cell.number(self.shown.path)
    }

    /// By how much a ratio to the baseline between these ends is worse, as a part: 0.05 is 5 % worse, a negative one is
    /// better. Both ends, the nearer to better first.
    pub fn worse(self, low: f64, high: f64) -> (f64, f64) {
        match self.falls {
            true => (low - 1.0, high - 1.0),
            false => (1.0 - high, 1.0 - low),
        }
    }

    /// Whether it is how much is done a second.
    pub fn is_rate(self) -> bool {
        self.key == Metric::RATE.key
    }

    /// Whether older runs did not record it.
    fn is_newer(self) -> bool {
        matches!(self.source, MetricSource::Newer(_))
    }

    /// Whether a table of these cells has a column of it.
    pub fn is_in<'a>(self, cells: impl IntoIterator<Item = &'a CellFigures>) -> bool {
        let mut cells = cells.into_iter();
        !self.is_newer() || cells.any(|cell| self.value(cell).is_some())
    }

    /// Whether a cell has it in [`Measured`].
    pub fn is_measured(self) -> bool {
        let place = self.shown.path.split('.').next();
        !OWN.iter().any(|own| Some(*own) == place)
    }

    /// Its ratio to the baseline.
    pub fn ratio(self, cell: &CellFigures) -> Option<&RatioFigure> {
        match self.is_rate() {
            true => cell.ratio.as_ref(),
            false => cell.ratios.get(self.key),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_metric_has_names_of_its_own() {
        let names = |of: fn(&Metric) -> &'static str| -> BTreeSet<&'static str> {
            Metric::ALL.iter().map(of).collect()
        };
        let all: [fn(&Metric) -> &'static str; 4] = [
            |m| m.key,
            |m| m.shown.path,
            |m| m.shown.title,
            |m| m.compared,
        ];
        for of in all {
            assert_eq!(names(of).len(), Metric::ALL.len());
            assert!(!names(of).contains(""));
        }
        for metric in Metric::ALL {
            let found = Metric::with_key(metric.key).map(|of| of.shown.path);
            assert_eq!(found, Some(metric.shown.path));
        }
        assert!(Metric::with_key("speed").is_none());
        assert_eq!(Metric::RATE.worse(0.5, 0.75), (0.25, 0.5));
        assert_eq!(Metric::P99.worse(0.5, 0.75), (-0.5, -0.25));
        let benches: BTreeSet<&str> = Metric::claimed().map(|metric| metric.bench).collect();
        assert_eq!(benches.len(), Metric::claimed().count());
        // Only what has a value in each trial can be claimed, and only that has a direction.
        for metric in Metric::claimed() {
            assert!(
                !metric.unit.is_empty() && !metric.bench.is_empty(),
                "{}",
                metric.key
            );
        }
    }
}
