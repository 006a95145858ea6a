//! `ip` and `tc` of iproute2: where they are, running them, and why a network cannot be had.
//!
//! Not for: their arguments ([`super::shape`]).

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::{Deserialize, Serialize};

use super::shape::Step;
use crate::launch::{self, SYSTEM_FOLDERS, found_in};

const REMEDY: &str = "apt-get install -y iproute2";

/// Why a machine cannot have a network.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason, in one sentence.
    pub reason: String,
    /// The command that would change it; empty where there is none.
    pub remedy: String,
}

impl Refusal {
    /// One without a remedy.
    pub(super) fn new(reason: impl Into<String>) -> Refusal {
        Refusal {
            reason: reason.into(),
            remedy: String::new(),
        }
    }
}

/// The path of `tool`: in a folder of `path`, the variable PATH, or among the system's.
pub fn find(tool: &str, path: &str) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    found_in(tool, folders.filter(|folder| folder.is_absolute()))
}

/// Takes the steps, up to the first that is refused.
pub fn run(steps: &[Step]) -> Result<(), Refusal> {
    let path = std::env::var("PATH").unwrap_or_default();
    for step in steps {
        let place = find(step.tool, &path).ok_or_else(|| missing(step.tool))?;
        let failed = |error| Refusal::new(format!("`{}`: {error}", step.words()));
        let output = output(&place, step).map_err(failed)?;
        if !output.status.success() {
            return Err(refused(step, &String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

fn output(place: &Path, step: &Step) -> std::io::Result<Output> {
    let mut command = Command::new(place);
    command
        .args(&step.arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    launch::start(&mut command)?.wait_with_output()
}

/// The refusal for a tool that is not there.
pub fn missing(tool: &str) -> Refusal {
    Refusal {
        reason: format!("`{tool}` of iproute2 is not on PATH"),
        remedy: REMEDY.to_owned(),
    }
}

/// The error output of a tool that failed, as a reason.
fn refused(step: &Step, message: &str) -> Refusal {
    let line = message.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("it failed without a word").trim();
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    let line = line.trim_end_matches('.');
    match &step.discipline {
        Some(kind) if line.contains("kind is unknown") => Refusal {
            reason: format!("this kernel has no {kind}, which {}", purpose(kind)),
            remedy: format!("modprobe sch_{kind}"),
        },
        _ => Refusal::new(format!("`{}`: {line}", step.words())),
    }
}

fn purpose(kind: &str) -> &'static str {
    match kind {
        "netem" => "delays packets",
        _ => "limits a rate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(discipline: Option<&'static str>) -> Step {
        Step {
            tool: "tc",
            arguments: ["qdisc", "add"].map(str::to_owned).to_vec(),
            discipline,
        }
    }

    #[test]
    fn a_discipline_that_the_kernel_lacks_is_named_with_what_would_bring_it() {
        let message = "Error: Specified qdisc kind is unknown.\n";
        let refusal = refused(&step(Some("netem")), message);
        assert_eq!(
            refusal.reason,
            "this kernel has no netem, which delays packets"
        );
        assert_eq!(refusal.remedy, "modprobe sch_netem");
        let refusal = refused(&step(Some("tbf")), "RTNETLINK answers: Invalid argument\n");
        assert_eq!(
            refusal.reason,
            "`tc qdisc add`: RTNETLINK answers: Invalid argument"
        );
        assert!(refusal.remedy.is_empty());
        assert_eq!(
            refused(&step(None), "").reason,
            "`tc qdisc add`: it failed without a word"
        );
    }

    #[test]
    fn tools_are_found_on_path_and_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        assert_eq!(find("no-such-tool", &path), None);
        let file = folder.path().join("no-such-tool");
        std::fs::write(&file, "").expect("a file");
        assert_eq!(find("no-such-tool", &path), None, "not executable");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, executable).expect("a mode");
        assert_eq!(find("no-such-tool", &path), Some(file));
        assert_eq!(find("no-such-tool", "relative"), None);
    }

    #[test]
    fn a_tool_that_is_not_there_has_a_remedy() {
        let absent = Step {
            tool: "no-such-tool",
            ..step(None)
        };
        let refusal = run(&[absent]).expect_err("it is not there");
        assert_eq!(refusal.reason, "`no-such-tool` of iproute2 is not on PATH");
        assert_eq!(refusal.remedy, "apt-get install -y iproute2");
    }
}
