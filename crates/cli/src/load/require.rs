//! Requirements of a load, and conditions that end it early.

use std::fmt::Write as _;

use anyhow::bail;
use clap::Args;
use prony_base::typed::requirement::{LoadRequirement, Requirement};
use prony_load::check_step_name;
use prony_record::ScenarioSpec;

use super::watch::JudgedLoad;

/// Words about what a load must come to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requirements")]
pub struct JudgedWords {
    /// Fail (exit code 1) unless this holds: 'p99 < 20ms', 'errors < 0.1%', 'rate > 5k'; several with commas between, or each by itself. Figures: rate,
    /// bytes (a second), errors (a share), mean, max, percentiles such as p99.9; of a scenario's step with its name before:
    /// 'login p99 < 20ms'
    #[arg(long, value_name = "REQUIREMENT", value_parser = load_requirement, value_delimiter = ',', conflicts_with = "find_max")]
    pub require: Vec<LoadRequirement>,
    /// End the run early, and fail, as soon as this holds of the run so far: 'errors > 1%'; looked at once a second
    #[arg(long, value_name = "CONDITION", value_parser = requirement, conflicts_with = "find_max")]
    pub stop_on: Vec<Requirement>,
}

/// Reads a requirement.
pub fn requirement(text: &str) -> Result<Requirement, String> {
    text.parse()
}

fn load_requirement(text: &str) -> Result<LoadRequirement, String> {
    text.parse()
}

/// The steps that requirements name must be there.
pub fn check_steps(words: &JudgedWords, scenario: Option<&ScenarioSpec>) -> anyhow::Result<()> {
    let flows = scenario.iter().flat_map(|scenario| &scenario.flows);
    let steps: Vec<(&str, &str)> = flows
        .flat_map(|flow| flow.steps.iter().map(|step| (&*flow.name, &*step.name)))
        .collect();
    for step in words.require.iter().filter_map(|of| of.step.as_deref()) {
        if steps.is_empty() {
            bail!("--require '{step} …': a step is one of --scenario, which is not given");
        }
        if let Err(why) = check_step_name(&steps, step) {
            bail!("--require '{step} …': {why}");
        }
    }
    Ok(())
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
