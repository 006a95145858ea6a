//! What differs of an entry from the one before it: the commits between them, and how and where it was measured.
//!
//! Not for: what figures did (`history`).

use super::entry::{Entry, digits};
use crate::escape::{clean, markdown, markdown_code};
use crate::markdown::filled;

/// Commits up to that of an entry that it keeps.
pub const COMMITS_KEPT: usize = 50;
/// Commits of an entry that its table has.
const COMMITS_MAX: usize = 12;

/// What changed from one entry to the next.
#[derive(Debug, Default)]
pub struct Changed {
    /// Commits with the first lines of their messages, newest first. Where it is not known what lies between, that of the entry alone.
    commits: Vec<[String; 2]>,
    /// Conditions with what they were (empty: they were not there) and what they are.
    conditions: Vec<[String; 3]>,
    is_first: bool,
}

impl Changed {
    /// What `entry` differs in from the one `before` it.
    pub fn of(before: Option<&Entry>, entry: &Entry) -> Changed {
        let old = before.map_or_else(Vec::new, conditions);
        let now = conditions(entry);
        let value = |of: &[(String, String)], name: &str| {
            let found = of.iter().find(|(own, _)| own == name);
            found.map_or_else(String::new, |(_, value)| value.clone())
        };
        let added = now
            .iter()
            .map(|(name, new)| [name.clone(), value(&old, name), new.clone()]);
        let gone = old.iter().filter(|(name, _)| value(&now, name).is_empty());
        let gone = gone.map(|(name, was)| [name.clone(), was.clone(), String::new()]);
        Changed {
            commits: commits(before, entry),
            conditions: added.chain(gone).filter(|[_, was, is]| was != is).collect(),
            is_first: before.is_none(),
        }
    }

    /// In a few words: the newest commit, or else the conditions.
    pub fn words(&self) -> String {
        let names: Vec<&str> = self.conditions.iter().map(|[name, ..]| &**name).collect();
        match (self.commits.as_slice(), names.as_slice()) {
            ([], _) if self.is_first => "no git".to_owned(),
            ([], []) => "nothing".to_owned(),
            ([], names) => clean(&names.join(", ")),
            ([[_, subject]], _) => clean(subject),
            ([[_, subject], ..], _) => format!("{} ({})", clean(subject), self.more(1)),
        }
    }

    /// How many commits there are beside so many.
    fn more(&self, shown: usize) -> String {
        let all = self.commits.len();
        let least = if all < COMMITS_KEPT { "" } else { "at least " };
        format!("and {least}{} more", all - shown)
    }

    /// As tables.
    pub fn tables(&self) -> String {
        let mut text = match (self.is_first, self.commits.len() + self.conditions.len()) {
            (true, _) => "**What was measured:**\n".to_owned(),
            (false, 0) => return "**What changed:** nothing.\n".to_owned(),
            (false, _) => "**What changed:**\n".to_owned(),
        };
        let commit = |[commit, subject]: &[String; 2]| {
            let commit = match commit.as_str() {
                "" => String::new(),
                commit => markdown_code(digits(commit)),
            };
            vec![commit, markdown(subject)]
        };
        let shown = self.commits.iter().take(COMMITS_MAX).map(commit);
        let more = self.commits.len() > COMMITS_MAX;
        let more = more.then(|| vec![String::new(), self.more(COMMITS_MAX)]);
        let commits: Vec<Vec<String>> = shown.chain(more).collect();
        let head = ["commit", "what it changes"];
        text.push_str(&block(&filled(&head, 0..0, &commits)));
        let row = |of: &[String; 3]| of.iter().map(|text| markdown(text)).collect();
        let conditions: Vec<Vec<String>> = self.conditions.iter().map(row).collect();
        let table = filled(&["condition", "before", "now"], 0..0, &conditions);
        // All of them are many, and later entries do not repeat them.
        text.push_str(&match self.is_first {
            true => format!("\n<details><summary>Conditions</summary>\n\n{table}\n\n</details>\n"),
            false => block(&table),
        });
        text
    }
}

/// A table with an empty line before it, where there is one.
pub fn block(table: &str) -> String {
    match table.is_empty() {
        true => String::new(),
        false => format!("\n{table}\n"),
    }
}

/// How and where an entry was measured, and what.
fn conditions(entry: &Entry) -> Vec<(String, String)> {
    let prony = ("Prony".to_owned(), entry.prony.clone());
    let pairs = [&entry.subjects, &entry.settings, &entry.machine];
    let pairs = pairs.into_iter().flatten();
    let pairs = pairs.map(|pair| (pair.name.clone(), pair.value.clone()));
    std::iter::once(prony).chain(pairs).collect()
}

/// The commits of `entry` that the one `before` it did not have, and what was not committed.
fn commits(before: Option<&Entry>, entry: &Entry) -> Vec<[String; 2]> {
    let uncommitted = |entry: &Entry| match (&entry.revised, &entry.code) {
        (None, Some(code)) => code.changes_sha256.clone(),
        _ => String::new(),
    };
    let changes = uncommitted(entry);
    let is_new = !changes.is_empty() && before.map(uncommitted).as_ref() != Some(&changes);
    let words = format!("changes that are not committed ({})", digits(&changes));
    let changes = is_new.then_some([String::new(), words]);
    let own = entry.commit();
    if own.is_empty() || before.is_some_and(|before| before.commit() == own) {
        return changes.into_iter().collect();
    }
    let is_known = |commit: &str| {
        before.is_none_or(|before| {
            before.commit() == commit || before.commits.iter().any(|of| of.commit == commit)
        })
    };
    let kept = entry.commits.iter().filter(|of| !is_known(&of.commit));
    let kept = kept.map(|of| [of.commit.clone(), of.subject.clone()]);
    let mut new: Vec<[String; 2]> = kept.collect();
    if new.is_empty() {
        // Older than what was kept, or of before commits were.
        let of_entry = entry.commits.iter().find(|of| of.commit == own);
        let of_code = entry.code.as_ref().filter(|code| code.commit == own);
        let subject = of_entry.map(|of| &of.subject);
        let subject = subject.or(of_code.map(|code| &code.subject));
        let named = entry.revised.as_ref().map(|revised| &revised.revision);
        let subject = subject.or(named).cloned().unwrap_or_default();
        new.push([own.to_owned(), subject]);
    }
    new.extend(changes);
    new
}
