//! What is required of a load, and on what it ends before its time.

use std::fmt::Write as _;

use anyhow::bail;
use clap::Args;
use prony_base::typed::requirement::Requirement;
use prony_load::LoadRequirement;
use prony_record::ScenarioSpec;

use super::watch::JudgedLoad;

/// Words about what a load must come to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requirements")]
pub struct JudgedWords {
    /// Fail (exit code 1) unless this holds: 'p99 < 20ms', 'errors < 0.1%', 'rate > 5k'; several may follow each other. Figures: rate,
    /// bytes (a second), errors (a share), mean, max, percentiles such as p99.9; of a scenario's step with its name before:
    /// 'login p99 < 20ms'
    #[arg(long, value_name = "REQUIREMENT", value_parser = load_requirement, conflicts_with = "find_max")]
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
    let names: Vec<&str> = steps.iter().map(|&(_, step)| step).collect();
    let required = words.require.iter().filter_map(|of| of.step.as_deref());
    for step in required {
        let same: Vec<&str> = steps
            .iter()
            .filter(|of| of.1 == step)
            .map(|of| of.0)
            .collect();
        if let [flow, _, ..] = same[..] {
            bail!(
                "--require '{step} …': the scenarios {} have a step of that name: write '{flow}: {step} …'",
                same.join(", ")
            );
        }
        let is_whole = |of: &&(&str, &str)| format!("{}: {}", of.0, of.1) == step;
        if same.is_empty() && !steps.iter().any(|of| is_whole(&of)) {
            bail!(
                "--require '{step} …': {}",
                match names.is_empty() {
                    true => "a step is one of --scenario, which is not given".to_owned(),
                    false => format!("there is no step of that name, but {}", names.join(", ")),
                }
            );
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
