//! What differs of an entry from the one before it: the commits between them, and how and where it was measured.
//!
//! Not for: what figures did (`history`).

use super::entry::{Commit, Entry};
use crate::escape::{clean, markdown, markdown_code};
use crate::markdown::filled;
use crate::sections::differing;
use crate::words::digits;

/// Commits up to that of an entry that it keeps.
pub const COMMITS_KEPT: usize = 50;
/// Commits of an entry that its table has.
const COMMITS_MAX: usize = 12;

/// What changed, in a few words: the newest commit, or else the conditions.
pub fn words(before: Option<&Entry>, entry: &Entry) -> String {
    let conditions = conditions(before, entry).into_iter();
    let conditions: Vec<String> = conditions.map(|[name, ..]| name).collect();
    match &commits(before, entry)[..] {
        [] if before.is_none() => "no git".to_owned(),
        [] if conditions.is_empty() => "nothing".to_owned(),
        [] => clean(&conditions.join(", ")),
        [[_, subject]] => clean(subject),
        all @ [[_, subject], ..] => format!("{} ({})", clean(subject), more(all.len(), 1)),
    }
}

/// How many commits there are beside those shown.
fn more(all: usize, shown: usize) -> String {
    let least = if all < COMMITS_KEPT { "" } else { "at least " };
    format!("and {least}{} more", all - shown)
}

/// What changed, as tables.
pub fn tables(before: Option<&Entry>, entry: &Entry) -> String {
    let mut commits = commits(before, entry);
    if commits.len() > COMMITS_MAX {
        let rest = more(commits.len(), COMMITS_MAX);
        commits.truncate(COMMITS_MAX);
        commits.push([String::new(), rest]);
    }
    let commit =
        |[commit, subject]: [String; 2]| [markdown_code(digits(&commit)), markdown(&subject)];
    let commits = filled(
        ["commit", "what it changes"],
        0..0,
        commits.into_iter().map(commit),
    );
    let conditions = conditions(before, entry).into_iter();
    let conditions = conditions.map(|of| of.map(|text| markdown(&text)));
    let conditions = filled(["condition", "before", "now"], 0..0, conditions);
    let commits = spaced(&commits);
    match before {
        // All of them are many, and later entries do not repeat them.
        None => format!(
            "**What was measured:**\n{commits}\n<details><summary>Conditions</summary>\n\n{conditions}\n\n</details>\n"
        ),
        Some(_) if commits.is_empty() && conditions.is_empty() => {
            "**What changed:** nothing.\n".to_owned()
        }
        Some(_) => format!("**What changed:**\n{commits}{}", spaced(&conditions)),
    }
}

/// A table with an empty line before it, where there is one.
pub fn spaced(table: &str) -> String {
    match table.is_empty() {
        true => String::new(),
        false => format!("\n{table}\n"),
    }
}

/// How and where an entry was measured otherwise than the one before it: what, as it was (empty: it was not there), and as it is.
fn conditions(before: Option<&Entry>, entry: &Entry) -> Vec<[String; 3]> {
    let old = before.map_or_else(Vec::new, Entry::conditions);
    let rows = differing(&entry.conditions(), &old).into_iter();
    rows.map(|[name, is, was]| [name, was, is]).collect()
}

/// The commits of `entry` that the one `before` it did not have, newest first, and what was not committed. Where it is not known what
/// lies between, that of the entry alone.
fn commits(before: Option<&Entry>, entry: &Entry) -> Vec<[String; 2]> {
    let [own, words, changes] = entry.measured_commit();
    let [own_before, _, changes_before] = before.map_or([""; 3], Entry::measured_commit);
    let mut new = Vec::new();
    if !own.is_empty() && own != own_before {
        let row = |of: &Commit| [of.commit.clone(), of.subject.clone()];
        new.extend(between(before, entry).map(row));
        if new.is_empty() {
            let kept = entry.commits.iter().find(|of| of.commit == own);
            new.push([own, kept.map_or(words, |of| &of.subject)].map(str::to_owned));
        }
    }
    if !changes.is_empty() && changes != changes_before {
        let words = format!("changes that are not committed ({})", digits(changes));
        new.push([String::new(), words]);
    }
    new
}

/// The commits that `entry` kept, without those that the one `before` it had.
fn between<'a>(before: Option<&Entry>, entry: &'a Entry) -> impl Iterator<Item = &'a Commit> {
    let all = entry.commits.iter();
    let [own, ..] = before.map_or([""; 3], Entry::measured_commit);
    let kept = before.map_or(&[][..], |before| &before.commits);
    let count = match before {
        // Kept before entries had commits, it had all that are older than its own.
        Some(_) if kept.is_empty() => all.clone().position(|of| of.commit == own).unwrap_or(0),
        _ => all.len(),
    };
    all.take(count)
        .filter(move |of| of.commit != own && !kept.contains(of))
}
