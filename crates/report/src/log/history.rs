//! Entries beside each other: which figures are of the same thing, and what may be said of how they differ.
//!
//! Not for: how far sessions lie apart (`prony_stats::compare_sessions`), sentences (`page`).

use std::collections::BTreeMap;

use prony_stats::{CHANGE_SESSIONS_MIN, Conclusion, SessionComparison, change_points};

use super::between::{Session, Sides, Value, sessions};
use super::entry::{CellEntry, Entry};

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
    entry.sections.iter().flat_map(|own| {
        let place = |cell: &CellEntry| format!("{}: {}", own.title, cell.place());
        own.cells.iter().map(move |cell| (place(cell), cell))
    })
}

/// A figure beside that of the last other state.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The cell's `id`.
    pub cell: String,
    /// The same in words.
    pub place: String,
    /// The sessions of the state before and of this one, figures a second.
    pub sides: Sides,
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
        let is_claimed = |of: Conclusion| matches!(of, Conclusion::Higher | Conclusion::Lower);
        let all = self.differences.iter();
        all.filter(move |d| is_claimed(d.compared.conclusion))
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
    let (mut found, mut unlike) = (Vec::new(), BTreeMap::new());
    for (place, cell) in placed(entry) {
        match sides(before, entry, cell) {
            Ok(sides) => found.push((place, cell, sides)),
            Err(why) => *unlike.entry(why).or_default() += 1,
        }
    }
    let family = found.len();
    let difference = |(place, cell, sides): (String, &CellEntry, Sides)| {
        Some(Difference {
            cell: cell.id.clone(),
            place,
            compared: sides.compared(family)?,
            sides,
        })
    };
    Account {
        entry: entry.clone(),
        differences: found.into_iter().filter_map(difference).collect(),
        unlike,
    }
}

fn sides(before: &[&Entry], entry: &Entry, cell: &CellEntry) -> Result<Sides, Unlike> {
    let own = Session::of(entry, cell, RATE).ok_or(Unlike::NoFigure)?;
    let sessions = sessions(before, &entry.environment, cell, RATE);
    let mut newest_first = sessions.iter().rev();
    if let Some(baseline) = newest_first.find(|of| of.cell.state != cell.state) {
        return Ok(Sides::of(*baseline, own, &sessions));
    }
    let is_like = |other: &&&Entry| other.cells().any(|c| c.id == cell.id && RATE(c).is_some());
    let like = before.iter().filter(is_like);
    let is_here: Vec<bool> = like.map(|of| of.environment == entry.environment).collect();
    Err(match (&sessions[..], &is_here[..]) {
        ([_, ..], _) => Unlike::SameState,
        (_, []) => Unlike::First,
        (_, is_here) if is_here.contains(&true) => Unlike::OtherSettings,
        _ => Unlike::OtherMachine,
    })
}

/// Where figures changed over the entries that are like the newest one.
fn changes(entries: &[&Entry]) -> (Vec<Change>, (usize, usize)) {
    let line = |newest: &Entry, (place, cell): (String, &CellEntry)| {
        let sessions = sessions(entries, &newest.environment, cell, RATE);
        (place, cell.id.clone(), sessions)
    };
    let newest = entries.last().into_iter();
    let lines = newest.flat_map(|newest| placed(newest).map(|of| line(newest, of)));
    let mut lines: Vec<_> = lines.collect();
    let most = lines.iter().map(|line| line.2.len()).max().unwrap_or(0);
    lines.retain(|line| line.2.len() >= CHANGE_SESSIONS_MIN);
    let family = lines.len();
    let changes = lines.iter().flat_map(|(place, cell, sessions)| {
        let figures: Vec<f64> = sessions.iter().map(|session| session.figure).collect();
        let points = change_points(&figures, family, SEED).into_iter();
        points.map(|point| Change {
            cell: cell.clone(),
            place: place.clone(),
            entry: sessions[point.at].entry.id.clone(),
            ratio: point.ratio.0,
            chance: point.chance,
        })
    });
    (changes.collect(), (family, most))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
