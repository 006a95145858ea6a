//! What a metric is: names, unit, direction, values, format, marks.

use prony_findings::Case;

use crate::Run;
use crate::figures::CellFigures;
use crate::ratio::RatioFigure;
use crate::table::Shown;

/// The key of the metric whose ratio has a place of its own in a cell.
pub const RATE: &str = "rate";

/// Which way is better.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Better {
    /// More of it.
    Higher,
    /// Less of it.
    Lower,
}

impl Better {
    /// As exports have it.
    pub fn word(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
    }
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
    /// Its unit with its name in it, as benchstat wants it; empty: it is not claimed.
    pub bench: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What a comparison calls it.
    pub compared: &'static str,
    /// How it is shown by itself, with its unit where no name says it.
    pub alone: fn(f64) -> String,
    /// Whether it is compared with a baseline and exported trial by trial.
    pub claimed: bool,
    /// Whether a figure that is a bound (the generator was the limit) is one from below. `None`: it is none at all.
    pub bound_below: Option<bool>,
    /// Its value in each measured block of a cell, in [`Metric::unit`]; empty where there is only one of all blocks.
    pub values: fn(&Run, &Case<'_>) -> Vec<(u32, f64)>,
    /// Its value of all blocks together, where the cell has it in a place of its own; `None`: it is among what is [measured](Metric::measured).
    pub own: Option<fn(&CellFigures) -> Option<f64>>,
}

impl Metric {
    /// Its value of all blocks together.
    pub fn value(self, cell: &CellFigures) -> Option<f64> {
        match self.own {
            Some(of) => of(cell),
            None => Some(cell.measured.get(self.shown.path)?.median),
        }
    }

    /// By how much a ratio to the baseline between these ends is worse, as a part: 0.05 is 5 % worse, a negative one is
    /// better. Both ends, the nearer to better first.
    pub fn worse(self, low: f64, high: f64) -> (f64, f64) {
        match self.better {
            Better::Higher => (1.0 - high, 1.0 - low),
            Better::Lower => (low - 1.0, high - 1.0),
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
}
