//! The registry of metrics: what is measured of a cell, each with its name, unit, direction, values, format and marks.
//!
//! A metric is a constant in one of the files here and a line in [`Metric::ALL`]. From there `summary.json`,
//! `summary.csv`, the exports, the tables of servers, `compare` and the claims take it; none of them names it again.
//! Not for: what only one kind of work has (counts, checksums, processes), which is in that kind's `figures`.

mod cpu;
mod latency;
mod memory;
mod metric;
mod rate;
mod start;

use prony_findings::Case;

use crate::Run;
use crate::figures::{Figure, Measured};

pub use latency::{QUANTILES, latency_of, stored};
pub use metric::Metric;

impl Metric {
    /// Requests, or what a program counts, a second.
    pub const RATE: Metric = rate::RATE;
    /// Mean latency.
    pub const MEAN: Metric = latency::MEAN;
    /// Standard deviation of latency.
    pub const DEVIATION: Metric = latency::DEVIATION;
    /// The latency that one request in four exceeds.
    pub const P75: Metric = latency::P75;
    /// Bytes received a second.
    pub const RECEIVED: Metric = rate::RECEIVED;
    /// Median latency.
    pub const P50: Metric = latency::P50;
    /// The latency that one request in a hundred exceeds.
    pub const P99: Metric = latency::P99;
    /// The latency that one request in a thousand exceeds.
    pub const P99_9: Metric = latency::P99_9;
    /// CPU time of the subject a request.
    pub const CPU: Metric = cpu::SUBJECT;
    /// Peak memory of the subject.
    pub const MEMORY: Metric = memory::PEAK;
    /// How long starting took: until the ready sign, for the first request, and for one after a rest.
    pub const OF_START: [Metric; 3] = [start::READY, start::FIRST, start::AFTER_REST];

    /// All of them, in the order of tables and columns.
    pub const ALL: [Metric; 16] = [
        rate::RATE,
        latency::MEAN,
        latency::DEVIATION,
        latency::P50,
        latency::P75,
        latency::P90,
        latency::P99,
        latency::P99_9,
        latency::MAX,
        cpu::SUBJECT,
        cpu::GENERATOR,
        memory::PEAK,
        rate::RECEIVED,
        start::READY,
        start::FIRST,
        start::AFTER_REST,
    ];

    /// The one with this key.
    pub fn with_key(key: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.key == key)
    }

    /// Those that are compared with a baseline and exported trial by trial.
    pub fn claimed() -> impl Iterator<Item = Metric> {
        Metric::ALL.into_iter().filter(|metric| metric.claimed)
    }

    /// Those of them that a server has beside its rate.
    pub fn beside_rate() -> impl Iterator<Item = Metric> {
        Metric::claimed().filter(|metric| !metric.is_rate())
    }

    /// Those that the cell has in [`Measured`], each with its figure.
    pub fn measured(run: &Run, case: &Case<'_>) -> Measured {
        let own = Metric::ALL
            .into_iter()
            .filter(|metric| metric.own.is_none());
        let figure = |metric: Metric| {
            let values = (metric.values)(run, case).into_iter();
            let values: Vec<f64> = values.map(|(_, value)| value).collect();
            (metric.shown.path, Figure::range(&values))
        };
        Measured::of(own.map(figure).collect())
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
        // Only what has a value in each block can be claimed, and only that has a direction.
        for metric in Metric::claimed() {
            assert!(
                !metric.unit.is_empty() && !metric.bench.is_empty(),
                "{}",
                metric.key
            );
        }
    }
}
