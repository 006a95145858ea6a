//! Entries beside each other: which figures are of the same thing, and what may be said of how they differ.
//!
//! Not for: how far sessions lie apart (`prony_stats::compare_sessions`), sentences (`page`).

use std::collections::BTreeMap;

use prony_base::counted;
use prony_stats::{CHANGE_SESSIONS_MIN, Conclusion, SessionComparison, change_points};

use super::between::{Session, Sides, Value, sessions};
use super::entry::{CellEntry, Entry, Section};

/// What entries are compared by: the rate, as a figure of the whole session.
const RATE: Value = |cell| cell.session;

/// Seed of the random orders of the search for change points: the same entries give the same text.
const SEED: u64 = 1;

/// All entries with what may be said of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// By date, newest last.
    pub accounts: Vec<Account>,
    /// Where figures changed, over all entries that are like the newest.
    pub changes: Vec<Change>,
    /// Figures in which changes were looked for, and entries of the one that has most.
    pub searched: (usize, usize),
}

/// One entry beside those before it. It tells of these alone, so that later entries do not change it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The entry.
    pub entry: Entry,
    /// Its figures beside those of the state before.
    pub differences: Vec<Difference>,
    /// Figures that have nothing to be compared with, by why.
    pub unlike: BTreeMap<Unlike, usize>,
}

/// The cells of an entry, each with its words: `Hello: nginx, 10 connections`.
fn placed(entry: &Entry) -> impl Iterator<Item = (String, &CellEntry)> {
    let words = |title: &str, cell: &CellEntry| match cell.connections {
        0 => format!("{title}: {}", cell.label),
        n => format!("{title}: {}, {}", cell.label, counted(n, "connection")),
    };
    let of = move |of: &'_ Section, cell: &CellEntry| words(&of.title, cell);
    let sections = entry.sections.iter();
    sections.flat_map(move |own| own.cells.iter().map(move |cell| (of(own, cell), cell)))
}

/// A figure beside that of the last other state.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The cell's `id`.
    pub cell: String,
    /// The same in words.
    pub place: String,
    /// Figures a second of the sessions of the state before.
    pub earlier: Vec<f64>,
    /// Of this state, this entry's last.
    pub later: Vec<f64>,
    /// Entries of the state before.
    pub beside: Vec<String>,
    /// What may be said.
    pub compared: SessionComparison,
}

/// Why a figure is compared with none before it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Unlike {
    /// Not measured, invalid, limited by the generator, or without all its blocks.
    NoFigure,
    /// No entry before has it.
    First,
    /// Only entries of another machine or kernel have it.
    OtherMachine,
    /// Only entries with other settings (request, blocks, window, cores) have it.
    OtherSettings,
    /// All entries before have the same state: there is nothing that could have changed it.
    SameState,
}

/// Where a figure changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The cell's `id`.
    pub cell: String,
    /// The same in words.
    pub place: String,
    /// First entry after it.
    pub entry: String,
    /// Later over earlier, by the medians.
    pub ratio: f64,
    /// How likely a step as clean is by chance.
    pub chance: f64,
}

impl Account {
    /// Differences that may be claimed.
    pub fn claimed(&self) -> impl Iterator<Item = &Difference> {
        let told = |d: &&Difference| {
            matches!(
                d.compared.conclusion,
                Conclusion::Higher | Conclusion::Lower
            )
        };
        self.differences.iter().filter(told)
    }

    /// Those of them that are lower than before.
    pub fn regressions(&self) -> impl Iterator<Item = &Difference> {
        self.claimed()
            .filter(|d| d.compared.conclusion == Conclusion::Lower)
    }
}

/// Compares `entries`, in whichever order they come.
pub fn history(entries: &[Entry]) -> History {
    let mut entries: Vec<Entry> = entries.to_vec();
    entries.sort_by_cached_key(|entry| {
        let (stands, measured) = (entry.moment_unix_ms(), entry.started_unix_ms);
        (stands, measured, entry.id.clone())
    });
    told_apart(&mut entries);
    let sorted: Vec<&Entry> = entries.iter().collect();
    let accounts = (0..sorted.len()).map(|at| account(&sorted[..at], sorted[at]));
    let (changes, searched) = changes(&sorted);
    History {
        accounts: accounts.collect(),
        changes,
        searched,
    }
}

/// A name that several runs have (a directory was removed and made again, or lies elsewhere) has a number after it
/// from the second on: `ping-001 (2)`.
fn told_apart(entries: &mut [Entry]) {
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for entry in entries {
        let number = names.entry(entry.run.clone()).or_default();
        *number += 1;
        if *number > 1 {
            entry.run = format!("{} ({number})", entry.run);
        }
    }
}

fn account(before: &[&Entry], entry: &Entry) -> Account {
    let mut account = Account {
        entry: entry.clone(),
        ..Account::default()
    };
    let mut found = Vec::new();
    for (place, cell) in placed(entry) {
        match sides(before, entry, cell) {
            Ok(sides) => found.push((place, cell, sides)),
            Err(unlike) => *account.unlike.entry(unlike).or_default() += 1,
        }
    }
    let family = found.len();
    let difference = |(place, cell, sides): (String, &CellEntry, Sides)| {
        Some(Difference {
            cell: cell.id.clone(),
            place,
            compared: sides.compared(family)?,
            earlier: sides.earlier,
            later: sides.later,
            beside: sides.beside,
        })
    };
    account.differences = found.into_iter().filter_map(difference).collect();
    account
}

fn sides(before: &[&Entry], entry: &Entry, cell: &CellEntry) -> Result<Sides, Unlike> {
    let figure = RATE(cell).ok_or(Unlike::NoFigure)?;
    let like = |other: &&Entry| other.cells().any(|c| c.id == cell.id && RATE(c).is_some());
    let here = |other: &&Entry| like(other) && other.environment == entry.environment;
    let sessions = sessions(before.iter().copied(), &entry.environment, cell, RATE);
    let Some(baseline) = sessions
        .iter()
        .rev()
        .find(|session| session.cell.state != cell.state)
    else {
        return Err(match sessions.is_empty() {
            false => Unlike::SameState,
            true if before.iter().copied().any(|e| here(&e)) => Unlike::OtherSettings,
            true if before.iter().copied().any(|e| like(&e)) => Unlike::OtherMachine,
            true => Unlike::First,
        });
    };
    let own = Session {
        entry,
        cell,
        figure,
    };
    Ok(Sides::of(*baseline, own, &sessions))
}

/// Where figures changed over the entries that are like the newest one.
fn changes<'a>(entries: &[&'a Entry]) -> (Vec<Change>, (usize, usize)) {
    let Some(newest) = entries.last() else {
        return (Vec::new(), (0, 0));
    };
    let line = |(place, cell): (String, &'a CellEntry)| {
        let sessions = sessions(entries.iter().copied(), &newest.environment, cell, RATE);
        (place, cell, sessions)
    };
    let mut lines: Vec<_> = placed(newest).map(line).collect();
    let most = lines.iter().map(|line| line.2.len()).max().unwrap_or(0);
    lines.retain(|line| line.2.len() >= CHANGE_SESSIONS_MIN);
    let family = lines.len();
    let mut changes = Vec::new();
    for (place, cell, sessions) in lines {
        let figures: Vec<f64> = sessions.iter().map(|session| session.figure).collect();
        let points = change_points(&figures, family, SEED);
        changes.extend(points.into_iter().map(|point| Change {
            cell: cell.id.clone(),
            place: place.clone(),
            entry: sessions[point.at].entry.id.clone(),
            ratio: point.ratio.0,
            chance: point.chance,
        }));
    }
    (changes, (family, most))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
