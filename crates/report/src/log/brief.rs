//! The entries of a log in a few lines for a terminal.

use super::history::{Account, History};
use super::page;
use crate::escape::clean;
use crate::numbers;

/// A line an entry, newest last, and below each what may be claimed.
pub fn brief(history: &History) -> String {
    let row = |account: &Account| {
        let entry = &account.entry;
        [
            numbers::moment(entry.moment_unix_ms()),
            clean(&entry.run),
            clean(&page::state_words(entry)),
            page::verdict_words(entry),
            clean(&page::since_words(account)),
        ]
    };
    let mut rows =
        vec![["date", "run", "code", "verdict", "since the state before"].map(str::to_owned)];
    rows.extend(history.accounts.iter().map(row));
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let padded: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(word, width)| format!("{word}{}", " ".repeat(width - word.chars().count())))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&page::changes_words(history).replace('`', ""));
    text.push('\n');
    text
}
