//! What is required of a load, and on what it ends before its time.

use std::fmt::Write as _;

use clap::Args;
use prony_base::typed::requirement::Requirement;

use super::watch::JudgedLoad;

/// Words about what a load must come to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requirements")]
pub struct JudgedWords {
    /// Fail (exit code 1) unless this holds: 'p99 < 20ms', 'errors < 0.1%', 'rate > 5k'; several may follow each other. Figures: rate,
    /// bytes (a second), errors (a share), mean, max, percentiles such as p99.9
    #[arg(long, value_name = "REQUIREMENT", value_parser = requirement, conflicts_with = "find_max")]
    pub require: Vec<Requirement>,
    /// End the run early, and fail, as soon as this holds of the run so far: 'errors > 1%'; looked at once a second
    #[arg(long, value_name = "CONDITION", value_parser = requirement, conflicts_with = "find_max")]
    pub stop_on: Vec<Requirement>,
}

/// Reads a requirement.
pub fn requirement(text: &str) -> Result<Requirement, String> {
    text.parse()
}

/// The lines about requirements after a run; empty where nothing was required.
pub fn text(judged: &JudgedLoad) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for outcome in &judged.requirements {
        let _ = writeln!(text, "Required:     {}", outcome.sentence);
    }
    if let Some(stopped) = &judged.stopped {
        let _ = writeln!(text, "Ended early:  {stopped}");
    }
    text
}
