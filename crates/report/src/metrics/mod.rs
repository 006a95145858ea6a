//! The registry of metrics: what is measured of a cell, each with its name, unit, direction, values, format and marks.
//!
//! A metric is a constant in one of the files here and a line in [`Metric::ALL`]. From there `summary.json`,
//! `summary.csv`, the exports, the tables of servers, `compare` and the claims take it; none of them names it again.
//! Not for: what only one kind of work has (counts, checksums, processes), which is in that kind's `figures`.

mod cpu;
mod latency;
mod memory;
mod rate;

use prony_findings::{Case, Code};

use crate::Run;
use crate::figures::{CellFigures, Figure, Measured};
use crate::ratio::RatioFigure;
use crate::table::{Column, Entry};

pub use latency::{latency_of, stored};

/// What is measured of a cell.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Its key among ratios and in exports: `p50`.
    pub key: &'static str,
    /// Where it is in a cell of `summary.json`: `latency_ns.p50.median`.
    pub path: &'static str,
    /// Its column in `summary.csv`, which ends in its unit; empty: it has columns of its own there.
    pub column: &'static str,
    /// Its unit in exports; what a request is, is a count of a program.
    pub unit: &'static str,
    /// Its unit with its name in it, as benchstat wants it.
    pub bench: &'static str,
    /// Which way is better: `higher` or `lower`.
    pub better: &'static str,
    /// Whether it is compared with a baseline and exported trial by trial.
    pub claimed: bool,
    /// Whether a figure that is a bound (the generator was the limit) is one from below. `None`: it is none at all.
    pub bound_below: Option<bool>,
    /// Whether the cell has it in [`Measured`], by the range of its values, rather than in a place of its own.
    pub measured: bool,
    /// Its value in each measured block of a cell, in [`Metric::unit`]; empty where there is only one of all blocks.
    pub values: fn(&Run, &Case<'_>) -> Vec<(u32, f64)>,
    /// Its value of all blocks together.
    pub value: fn(&CellFigures) -> Option<f64>,
    /// What a table calls it.
    pub title: &'static str,
    /// The unit below that; empty: the figures say it.
    pub below: &'static str,
    /// Whether it stands in the appendix only.
    pub details: bool,
    /// How a table shows it.
    pub show: fn(f64) -> String,
    /// Whether a table marks it where too few separate slow episodes stand behind it.
    pub rests_on_episodes: bool,
    /// Findings that are footnotes on it.
    pub marks: &'static [Code],
}

impl Metric {
    /// Requests, or what a program counts, a second.
    pub const RATE: Metric = rate::RATE;
    /// Median latency.
    pub const P50: Metric = latency::P50;
    /// The latency that one request in a hundred exceeds.
    pub const P99: Metric = latency::P99;
    /// CPU time of the subject a request.
    pub const CPU: Metric = cpu::SUBJECT;
    /// Peak resident memory of the subject.
    pub const MEMORY: Metric = memory::PEAK;

    /// All of them, in the order of tables and columns.
    pub const ALL: [Metric; 9] = [
        rate::RATE,
        latency::P50,
        latency::P90,
        latency::P99,
        latency::P99_9,
        latency::MAX,
        cpu::SUBJECT,
        cpu::GENERATOR,
        memory::PEAK,
    ];

    /// Those that are compared with a baseline and exported trial by trial.
    pub fn claimed() -> impl Iterator<Item = Metric> {
        Metric::ALL.into_iter().filter(|metric| metric.claimed)
    }

    /// Those of them that a server has beside its rate.
    pub fn beside_rate() -> impl Iterator<Item = Metric> {
        Metric::claimed().filter(|metric| metric.key != Metric::RATE.key)
    }

    /// Those that the cell has in [`Measured`], each with its figure.
    pub fn measured(run: &Run, case: &Case<'_>) -> Measured {
        let own = Metric::ALL.into_iter().filter(|metric| metric.measured);
        let figure = |metric: Metric| {
            let values = (metric.values)(run, case).into_iter();
            let values: Vec<f64> = values.map(|(_, value)| value).collect();
            let name = metric.path.trim_end_matches(".median");
            (name, Figure::range(&values))
        };
        Measured::of(own.map(figure).collect())
    }

    /// Its ratio to the baseline.
    pub fn ratio(self, cell: &CellFigures) -> Option<&RatioFigure> {
        match self.key == Metric::RATE.key {
            true => cell.ratio.as_ref(),
            false => cell.ratios.get(self.key),
        }
    }

    /// The head of its column in a table.
    pub fn head(self) -> Column {
        Column {
            title: self.title.to_owned(),
            below: self.below.into(),
            numeric: true,
            markdown_only: false,
            details: self.details,
        }
    }

    /// Its figure in a table.
    pub fn entry(self, cell: &CellFigures) -> Entry {
        Entry::figure(self.path, (self.value)(cell), self.show)
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
        for of in [|m: &Metric| m.key, |m| m.path, |m| m.title] as [fn(&Metric) -> &'static str; 3]
        {
            assert_eq!(names(of).len(), Metric::ALL.len());
            assert!(!names(of).contains(""));
        }
        // Only what has a value in each block can be claimed, and only that has a direction.
        for metric in Metric::claimed() {
            assert!(
                ["higher", "lower"].contains(&metric.better),
                "{}",
                metric.key
            );
            assert!(
                !metric.unit.is_empty() && !metric.bench.is_empty(),
                "{}",
                metric.key
            );
        }
    }
}
