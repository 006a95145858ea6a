//! What the command line says of a plan, which cells its `--only` selects, and why there is no plan.

use prony_base::{Nanos, counted};
use prony_record::{Cores, NotRun};
use thiserror::Error;

use crate::diagnosis::{Diagnoses, quoted};

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
    /// `--warmup`.
    pub warmup: Option<Nanos>,
    /// `--visits`; zero is `off`.
    pub visits: Option<Nanos>,
    /// Whether the narrowest intervals are asked for (`--budget`, `--precision`): what can be visited is visited, unless
    /// something else is said.
    pub aims: bool,
    /// `--profile`.
    pub profile: bool,
    /// `--cores`, which goes before the experiment's.
    pub cores: Option<Cores>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// The words after `prony`.
    pub command: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    /// `--only` selects nothing.
    #[error("{}", nothing_selected(only, cells))]
    NothingSelected {
        /// What was given.
        only: Vec<String>,
        /// The ids of all cells.
        cells: Vec<String>,
    },
    /// Nothing of the experiment can run here.
    #[error("none of the subjects can run on this machine:\n{}", not_run.iter().map(not_run_line).collect::<String>())]
    NothingRuns {
        /// Why, each.
        not_run: Vec<NotRun>,
    },
    /// The experiment leaves no cell by its own words.
    #[error(
        "the experiment has no cell: no subject answers the path or does the work of a workload, or all are excluded"
    )]
    NoCells,
    /// More than [`CELLS_MAX`].
    #[error(
        "the experiment has more than {CELLS_MAX} cells; give fewer connections, settings or subjects"
    )]
    TooManyCells,
    /// A connection that carries a limited number of requests carries one at a time.
    #[error(
        "the cell `{cell}` has both {0} = {1} and requests_per_connection = {requests}, but a connection that \
         carries a limited number of requests carries one at a time; leave such cells out:\n\
         exclude = [{{ {0} = \"{1}\", requests_per_connection = \"{requests}\" }}]",
        depth.0, depth.1
    )]
    OneAtATime {
        /// The cell's id.
        cell: String,
        /// The setting that asks for more at once, and its value.
        depth: (&'static str, u32),
        /// Requests that a connection carries.
        requests: u64,
    },
    /// `--duration`, and nothing lasts for a given time.
    #[error(
        "--duration means nothing here: no workload of the experiment lasts for a given time, its programs \
         and downloads run to their end"
    )]
    NoWindow,
    /// `--cores` names what cannot be had here.
    #[error("--cores: {message}; {help}")]
    NoSuchCores {
        /// Which, and why.
        message: String,
        /// What to do about it.
        help: String,
    },
    /// What the experiment's file says cannot be had here.
    #[error("{0}")]
    InFile(Diagnoses),
}

/// Ids that a message lists at the most.
const LISTED_MAX: usize = 40;

fn nothing_selected(only: &[String], cells: &[String]) -> String {
    let (only, count) = (quoted(only), counted(cells.len(), "cell"));
    let listed = cells.iter().take(LISTED_MAX);
    let listed: String = listed.map(|cell| format!("  {cell}\n")).collect();
    let more = match cells.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    format!("--only {only} selects none of the {count}:\n{listed}{more}")
}

fn not_run_line(missing: &NotRun) -> String {
    let remedy = match missing.remedy.as_str() {
        "" => String::new(),
        remedy => format!("; to change it: {remedy}"),
    };
    format!("  {}: {}{remedy}\n", missing.what, missing.reason)
}

/// Whether one of the patterns of `--only` selects a cell `id` of `subject`, as none does all.
pub fn is_selected(only: &[String], subject: &str, id: &str) -> bool {
    only.is_empty() || only.iter().any(|pattern| selects(pattern, subject, id))
}

/// Whether `pattern` selects a cell `id` of `subject`: as a part of either, or as
/// the whole of either where it holds `*` (any text) or `?` (one character).
/// Case does not count.
pub fn selects(pattern: &str, subject: &str, id: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let matches = |text: &str| {
        let text = text.to_lowercase();
        if pattern.contains(['*', '?']) {
            glob(&chars(&pattern), &chars(&text))
        } else {
            text.contains(&pattern)
        }
    };
    matches(subject) || matches(id)
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// Whether all of `text` matches; linear but for backing up to the last `*`.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(&c) if c == '?' || c == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((star_at, from)) => {
                    star = Some((star_at, from + 1));
                    at = star_at + 1;
                    in_text = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_and_globs_select() {
        let on = |pattern: &str| selects(pattern, "rust/axum", "rust/axum ping c=400");
        for yes in [
            "axum",
            "AXUM",
            "rust",
            "c=400",
            "rust/*",
            "*c=400",
            "rust/a?um",
            "*",
            "ping c",
        ] {
            assert!(on(yes), "{yes}");
        }
        for no in ["go/*", "c=2", "a?um", "*ping", "axum*x"] {
            assert!(!on(no), "{no}");
        }
    }

    proptest! {
        #[test]
        fn a_text_selects_itself_and_a_star_selects_all(text in "[a-z/ =0-9]{0,20}", pattern in "[a-b*?]{0,12}") {
            let text = chars(&text);
            prop_assert!(glob(&text, &text));
            prop_assert!(glob(&['*'], &text));
            let stars = chars(&pattern.replace('?', "*"));
            prop_assert!(!glob(&chars(&pattern), &text) || glob(&stars, &text));
        }
    }
}
