//! What a metric is: names, unit, direction, values, format, marks.

use prony_findings::{Case, Code};

use crate::Run;
use crate::figures::CellFigures;
use crate::numbers::NOTHING;
use crate::ratio::RatioFigure;
use crate::table::{Column, Entry};

/// The key of the metric whose ratio has a place of its own in a cell.
pub const RATE: &str = "rate";

/// Better is more of it.
pub const HIGHER: &str = "higher";
/// Better is less of it.
pub const LOWER: &str = "lower";

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
    /// Which way is better: [`HIGHER`] or [`LOWER`].
    pub better: &'static str,
    /// What a comparison calls it.
    pub compared: &'static str,
    /// How it is shown by itself, with its unit where no name says it.
    pub alone: fn(f64) -> String,
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
    /// By how much a ratio to the baseline between these ends is worse, as a part: 0.05 is 5 % worse, a negative one is
    /// better. Both ends, the nearer to better first.
    pub fn worse(self, low: f64, high: f64) -> (f64, f64) {
        match self.better == HIGHER {
            true => (1.0 - high, 1.0 - low),
            false => (low - 1.0, high - 1.0),
        }
    }

    /// Whether it is how much is done a second.
    pub fn is_rate(self) -> bool {
        self.key == RATE
    }

    /// Its ratio to the baseline.
    pub fn ratio(self, cell: &CellFigures) -> Option<&RatioFigure> {
        match self.is_rate() {
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
            details: self.details,
            ..Column::default()
        }
    }

    /// Its figure in a table.
    pub fn entry(self, cell: &CellFigures) -> Entry {
        let entry = Entry::figure(self.path, (self.value)(cell), self.show);
        Entry {
            few: self.rests_on_episodes && entry.value.is_some() && !cell.p99_9_supported,
            ..entry
        }
    }
    /// The same of a server, of which one that does not keep up with its schedule has no latency.
    pub fn of_server(self, cell: &CellFigures) -> Entry {
        let is_lost = cell.is_overloaded() && self.path.starts_with("latency");
        match (is_lost, self.key) {
            (false, _) => self.entry(cell),
            (true, "p50") => Entry::text("overloaded"),
            (true, _) => Entry::text(NOTHING),
        }
    }
}
