//! What the command line says of a plan, and why there is none.

use std::fmt;

use prony_base::{Nanos, counted};
use prony_record::NotRun;

/// Cells of a plan at the most.
pub const CELLS_MAX: usize = 5_000;

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `--quick`.
    pub quick: bool,
    /// `--only`, each time that it was given.
    pub only: Vec<String>,
    /// `--blocks`.
    pub blocks: Option<u32>,
    /// `--duration`.
    pub duration: Option<Nanos>,
    /// `--visits`; zero is `off`.
    pub visits: Option<Nanos>,
    /// Whether the narrowest intervals are asked for (`--budget`, `--precision`): what can be visited is visited, unless
    /// something else is said.
    pub aims: bool,
    /// `--profile`.
    pub profile: bool,
    /// `--seed`.
    pub seed: Option<u64>,
    /// The words after `prony`.
    pub command: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// `--only` selects nothing.
    NothingSelected {
        /// What was given.
        only: Vec<String>,
        /// The ids of all cells.
        cells: Vec<String>,
    },
    /// Nothing of the experiment can run here.
    NothingRuns {
        /// Why, each.
        not_run: Vec<NotRun>,
    },
    /// The experiment leaves no cell by its own words.
    NoCells,
    /// More than [`CELLS_MAX`].
    TooManyCells,
    /// `--duration`, and nothing lasts for a given time.
    NoWindow,
}

/// Ids that a message lists at the most.
const LISTED_MAX: usize = 40;

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NothingSelected { only, cells } => {
                let only = crate::diagnosis::quoted(only);
                writeln!(f, "--only {only} selects none of the {}:", counted(cells.len(), "cell"))?;
                for cell in cells.iter().take(LISTED_MAX) {
                    writeln!(f, "  {cell}")?;
                }
                match cells.len().saturating_sub(LISTED_MAX) {
                    0 => Ok(()),
                    more => writeln!(f, "  and {more} more"),
                }
            }
            PlanError::NothingRuns { not_run } => {
                writeln!(f, "none of the subjects can run on this machine:")?;
                for missing in not_run {
                    write!(f, "  {}: {}", missing.what, missing.reason)?;
                    match missing.remedy.as_str() {
                        "" => writeln!(f)?,
                        remedy => writeln!(f, "; to change it: {remedy}")?,
                    }
                }
                Ok(())
            }
            PlanError::NoCells => f.write_str(
                "the experiment has no cell: no subject answers the path or does the work of a workload, or all are excluded",
            ),
            PlanError::NoWindow => f.write_str(
                "--duration means nothing here: no workload of the experiment lasts for a given time, its programs \
                 and downloads run to their end",
            ),
            PlanError::TooManyCells => write!(
                f,
                "the experiment has more than {CELLS_MAX} cells; give fewer connections, settings or subjects",
            ),
        }
    }
}

impl std::error::Error for PlanError {}
