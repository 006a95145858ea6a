//! Entries beside each other: which figures are of the same thing, and what may be said of how they differ.
//!
//! The only place where figures of different runs are compared: the entries of a log ([`history`]) and two runs
//! ([`apart`](crate::compare::apart)) both say what comes of it.
//!
//! Not for: how far sessions lie apart (`prony_stats::compare_sessions`), sentences (`page`).

use std::collections::BTreeMap;

use prony_stats::{
    CHANGE_SESSIONS_MIN, Conclusion, SessionComparison, change_points, compare_sessions,
};

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
    /// Not measured, invalid, limited by the generator, or without all its trials.
    NoFigure,
    /// No entry before has it.
    First,
    /// Only entries of another machine or kernel have it.
    OtherMachine,
    /// Only entries with other settings (request, trials, window, cores) have it.
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
    let own = Session::from_cell(entry, cell, RATE).ok_or(Unlike::NoFigure)?;
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

/// The figure of a cell that its sessions are compared by.
pub type Value = fn(&CellEntry) -> Option<f64>;

/// One figure of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its cell.
    pub cell: &'a CellEntry,
    /// The figure.
    pub figure: f64,
}

impl<'a> Session<'a> {
    /// That of a cell; `None` where it lacks the figure.
    pub fn from_cell(entry: &'a Entry, cell: &'a CellEntry, value: Value) -> Option<Session<'a>> {
        let figure = value(cell)?;
        Some(Session {
            entry,
            cell,
            figure,
        })
    }
}

/// The sessions in `entries`, in their order, that are of the same thing as `cell` of an entry of `environment`: the same request,
/// settings, trials, windows and cores, on the same machine and kernel.
pub fn sessions<'a>(
    entries: &[&'a Entry],
    environment: &str,
    cell: &CellEntry,
    value: Value,
) -> Vec<Session<'a>> {
    let session = |entry: &&'a Entry| {
        let own = entry.cells().find(|own| own.series == cell.series)?;
        Session::from_cell(entry, own, value).filter(|_| entry.environment == environment)
    };
    entries.iter().filter_map(session).collect()
}

/// Sessions by their states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sides {
    /// Figures of the state that is the baseline, by date.
    pub earlier: Vec<f64>,
    /// Of the state that is compared with it, its own session last.
    pub later: Vec<f64>,
    /// Of other states, which tell how far sessions of one lie apart.
    others: Vec<Vec<f64>>,
    /// Ids of the baseline's entries.
    pub beside: Vec<String>,
}

impl Sides {
    /// The sides of `own` and `baseline`, which is one of `sessions`; `own` is none of them. All sessions of a state
    /// stand for it. Where nothing tells the two states apart, others of that state belong to neither.
    pub fn of(baseline: Session<'_>, own: Session<'_>, sessions: &[Session<'_>]) -> Sides {
        let is_same = baseline.cell.state == own.cell.state;
        let is_baseline = |session: &&Session<'_>| match is_same {
            true => session.entry.id == baseline.entry.id,
            false => session.cell.state == baseline.cell.state,
        };
        let (mut sides, mut others) = (Sides::default(), BTreeMap::<&str, Vec<f64>>::new());
        for session in sessions {
            let is_own = !is_same && session.cell.state == own.cell.state;
            let side = match (is_baseline(&session), is_own) {
                (true, _) => &mut sides.earlier,
                (_, true) => &mut sides.later,
                _ => others.entry(&session.cell.state).or_default(),
            };
            side.push(session.figure);
        }
        sides.later.push(own.figure);
        sides.others = others.into_values().collect();
        let beside = sessions.iter().filter(is_baseline);
        sides.beside = beside.map(|session| session.entry.id.clone()).collect();
        sides
    }

    /// What may be said of them, as one of `family` comparisons whose intervals are to hold together.
    pub fn compared(&self, family: usize) -> Option<SessionComparison> {
        compare_sessions(&self.earlier, &self.later, &self.others, family)
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
