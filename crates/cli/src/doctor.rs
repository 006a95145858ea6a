//! `prony doctor`: what of this machine spoils measurements, how much, and what mends it.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use prony_lab::doctor::change::{self, Done};
use prony_lab::doctor::{self, Tree, read};
use prony_record::{MachineCheck, MachineState};
use serde_json::json;

use crate::cause::CannotWrite;
use crate::lines::wrapped;
use crate::{Ending, Streams};

/// Version of what `--json` prints.
const SCHEMA: u32 = 1;
/// The note of what `--fix` has changed, in the state folder.
const NOTE: &str = "doctor-changes.json";
/// How far the second and further lines of an entry are moved in.
const INDENT: usize = 10;

/// `prony doctor`
#[derive(Debug, Args)]
#[command(
    after_help = "Takes a few seconds. What can be neither read nor measured is reported as unknown, with the \
     reason.\n\n--fix writes the governor, turbo, io_uring, local ports and somaxconn where they spoil measurements \
     and may be written (with sudo), and first saves their old values in $PRONY_STATE, else $XDG_STATE_HOME/prony, \
     else ~/.local/state/prony. --undo restores them, except those that have been changed since; so does a restart \
     of the machine.\n\nExit codes: 0 nothing spoils measurements, or everything was fixed or restored; 1 something \
     does, or a change was refused; 2 wrong usage."
)]
pub struct DoctorWords {
    /// Fix what can be undone, and print what was changed
    #[arg(long, conflicts_with = "undo")]
    pub fix: bool,
    /// Restore what --fix has changed
    #[arg(long)]
    pub undo: bool,
    /// Check a folder with a copy of /proc and /sys instead of this machine; nothing is measured then
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs `prony doctor`.
pub fn run(words: &DoctorWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let state = state_folder()?;
    let note = state.join(NOTE);
    let tree = match &words.root {
        Some(root) if !root.is_dir() => {
            anyhow::bail!("--root {}: no such folder", root.display())
        }
        Some(root) => Tree::at(root),
        None => Tree::here(),
    };
    if words.undo {
        let done = change::undo(&tree, &note).with_context(CannotWrite::at(&note))?;
        return print_changes(words, &done, "put back", streams);
    }
    if words.fix {
        let changes = change::wanted(&tree);
        let done = change::make(&tree, &changes, &note).with_context(CannotWrite::at(&note))?;
        return print_changes(words, &done, "changed", streams);
    }
    let checks = match &words.root {
        Some(_) => read::all(&tree),
        None => doctor::in_full(&tree, &state),
    };
    if words.json {
        let value = json!({"schema": SCHEMA, "checks": checks});
        writeln!(streams.out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else {
        writeln!(streams.out, "{}", text(&checks))?;
        let changed = change::noted(&note).with_context(CannotWrite::at(&note))?;
        if !changed.is_empty() {
            let line = format!(
                "changed by --fix, and not put back yet: {}; to put it back: prony doctor --undo",
                changed.len()
            );
            writeln!(streams.out, "{}", wrapped("", 0, &line))?;
        }
    }
    let spoils = |check: &MachineCheck| check.state == MachineState::Spoils;
    Ok(Ending::failed_if(checks.iter().any(spoils)))
}

/// Where Prony keeps what outlives a run and belongs to no folder of the user's.
fn state_folder() -> anyhow::Result<PathBuf> {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state = named("PRONY_STATE");
    let xdg = || named("XDG_STATE_HOME").map(|folder| folder.join("prony"));
    let home = || named("HOME").map(|folder| folder.join(".local/state/prony"));
    state
        .or_else(xdg)
        .or_else(home)
        .context("there is no state folder: set PRONY_STATE to one")
}

fn print_changes(
    words: &DoctorWords,
    done: &[Done],
    verb: &str,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    if words.json {
        let value = json!({"schema": SCHEMA, "changes": done});
        writeln!(streams.out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else if done.is_empty() {
        writeln!(streams.out, "nothing to be {verb}")?;
    }
    for one in done.iter().filter(|_| !words.json) {
        let (path, old, new) = (&one.change.path, &one.change.old, &one.change.new);
        let line = match &one.refused {
            Some(why) => format!("not {verb}: {path}\n  {why}"),
            None if words.undo => format!("{verb}: {path}\n  {new} -> {old}"),
            None => format!("{verb}: {path}\n  {old} -> {new}"),
        };
        writeln!(streams.out, "{line}")?;
    }
    let is_refused = |one: &Done| one.refused.is_some();
    Ok(Ending::failed_if(done.iter().any(is_refused)))
}

/// The checks for people: what spoils first, what is healthy last.
fn text(checks: &[MachineCheck]) -> String {
    let states = [
        (MachineState::Spoils, "spoils", "spoil figures"),
        (MachineState::Unknown, "unknown", "unknown"),
        (MachineState::Healthy, "healthy", "healthy"),
    ];
    let mut lines = Vec::new();
    let mut counts = Vec::new();
    for (state, word, counted) in states {
        let before = lines.len();
        let checks = checks.iter().filter(|check| check.state == state);
        lines.extend(checks.map(|check| entry(check, word)));
        counts.push(format!("{} {counted}", lines.len() - before));
    }
    lines.push(counts.join(", "));
    lines.join("\n")
}

fn entry(check: &MachineCheck, word: &str) -> String {
    let first = format!("{word:<INDENT$}");
    let mut text = wrapped(&first, INDENT, &format!("{}: {}", check.name, check.found));
    let indent = " ".repeat(INDENT);
    if !check.effect.is_empty() {
        text.push('\n');
        text.push_str(&wrapped(&indent, INDENT, &check.effect));
    }
    if !check.remedy.is_empty() {
        // To be copied: never broken.
        text.push_str(&format!("\n{indent}-> {}", check.remedy));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spoils_comes_first_with_what_mends_it() {
        let check = |name: &str, state, remedy: &str| MachineCheck {
            name: name.to_owned(),
            state,
            found: "128".to_owned(),
            effect: if remedy.is_empty() {
                String::new()
            } else {
                "connections overflow".to_owned()
            },
            remedy: remedy.to_owned(),
            ..MachineCheck::default()
        };
        let checks = [
            check("clock", MachineState::Healthy, ""),
            check("turbo", MachineState::Unknown, ""),
            check(
                "somaxconn",
                MachineState::Spoils,
                "sudo sysctl -w net.core.somaxconn=4096",
            ),
        ];
        assert_eq!(
            text(&checks),
            "spoils    somaxconn: 128\n          connections overflow\n          -> sudo sysctl -w net.core.somaxconn=4096\n\
             unknown   turbo: 128\nhealthy   clock: 128\n1 spoil figures, 1 unknown, 1 healthy"
        );
    }
}
