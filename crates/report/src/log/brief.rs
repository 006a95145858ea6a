//! The entries of a log in a few lines for a terminal.

use super::entry::Entry;
use super::history::{Account, History};
use super::page;
use crate::escape::clean;

/// A line an entry, newest last, and below them what may be claimed.
pub fn brief(history: &History) -> String {
    let row = |(before, account): (Option<&Entry>, &Account)| {
        let [changed, did] = page::summary(before, account);
        [page::title(&account.entry), changed, did].map(|words| clean(&words))
    };
    let mut rows = vec![page::HEAD.map(str::to_owned)];
    rows.extend(page::beside(history).map(row));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max();
    let [first, second] = [0, 1].map(|at| width(at).unwrap_or(0));
    let line = |[entry, changed, did]: &[String; 3]| {
        let line = format!("{entry:first$}  {changed:second$}  {did}");
        format!("{}\n", line.trim_end())
    };
    let lines: String = rows.iter().map(line).collect();
    let changes = page::changes_words(history).replace('`', "");
    format!("{lines}\n{}\n{changes}\n", page::untold_words(history))
}
