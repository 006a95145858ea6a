//! What differs of an entry from the one before it: the commits between them, and how and where it was measured.
//!
//! Not for: what figures did (`history`).

use prony_record::Fact;

use super::entry::{Commit, Entry, digits};
use crate::escape::{clean, markdown, markdown_code};
use crate::lists::distinct;
use crate::markdown::filled;

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
    let commits = block(&commits);
    match before {
        // All of them are many, and later entries do not repeat them.
        None => format!(
            "**What was measured:**\n{commits}\n<details><summary>Conditions</summary>\n\n{conditions}\n\n</details>\n"
        ),
        Some(_) if commits.is_empty() && conditions.is_empty() => {
            "**What changed:** nothing.\n".to_owned()
        }
        Some(_) => format!("**What changed:**\n{commits}{}", block(&conditions)),
    }
}

/// A table with an empty line before it, where there is one.
pub fn block(table: &str) -> String {
    match table.is_empty() {
        true => String::new(),
        false => format!("\n{table}\n"),
    }
}

/// How and where an entry was measured otherwise than the one before it: what, as it was (empty: it was not there), and as it is.
fn conditions(before: Option<&Entry>, entry: &Entry) -> Vec<[String; 3]> {
    let old = before.map_or_else(Vec::new, Entry::conditions);
    let new = entry.conditions();
    let value = |of: &[Fact], name: &str| {
        let found = of.iter().find(|fact| fact.name == name);
        found.map_or_else(String::new, |fact| fact.value.clone())
    };
    let names = distinct(new.iter().chain(&old).map(|fact| &fact.name));
    let row = |name: &String| [name.clone(), value(&old, name), value(&new, name)];
    let rows = names.into_iter().map(row);
    rows.filter(|[_, was, is]| was != is).collect()
}

/// The commits of `entry` that the one `before` it did not have, newest first, and what was not committed. Where it is not known what
/// lies between, that of the entry alone.
fn commits(before: Option<&Entry>, entry: &Entry) -> Vec<[String; 2]> {
    let own = entry.commit();
    let mut new: Vec<[String; 2]> = Vec::new();
    if !own.is_empty() && before.is_none_or(|before| before.commit() != own) {
        let row = |of: &Commit| [of.commit.clone(), of.subject.clone()];
        new.extend(unknown(before, entry).into_iter().map(row));
        if new.is_empty() {
            let kept = entry.commits.iter().find(|of| of.commit == own);
            let subject = kept.map_or_else(|| entry.subject(), |of| &of.subject);
            new.push([own.to_owned(), subject.to_owned()]);
        }
    }
    let changes = entry.uncommitted();
    if !changes.is_empty() && before.is_none_or(|before| before.uncommitted() != changes) {
        let words = format!("changes that are not committed ({})", digits(changes));
        new.push([String::new(), words]);
    }
    new
}

/// The commits that `entry` kept, without those up to the one `before` it.
fn unknown<'a>(before: Option<&Entry>, entry: &'a Entry) -> Vec<&'a Commit> {
    let all = entry.commits.iter();
    match before {
        None => all.collect(),
        // It was kept before entries had commits: what is older than its own was there as well.
        Some(before) if before.commits.is_empty() => {
            let at = all.clone().position(|of| of.commit == before.commit());
            all.take(at.unwrap_or(0)).collect()
        }
        Some(before) => {
            let is_known = |of: &&Commit| {
                of.commit == before.commit()
                    || before.commits.iter().any(|own| own.commit == of.commit)
            };
            all.filter(|of| !is_known(of)).collect()
        }
    }
}
