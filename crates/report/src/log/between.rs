//! Sessions of one figure beside each other: what may be said of two states that were not interleaved.
//!
//! The only place where figures of different runs are compared: the entries of a log ([`history`](super::history())) and
//! two runs ([`apart`](crate::compare::apart)) both say what comes of it.
//!
//! Not for: which entry stands against which, how far sessions lie apart (`prony_stats::compare_sessions`).

use std::collections::BTreeMap;

use prony_stats::{SessionComparison, compare_sessions};

use super::entry::{CellEntry, Entry};

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
    pub fn of(entry: &'a Entry, cell: &'a CellEntry, value: Value) -> Option<Session<'a>> {
        let figure = value(cell)?;
        Some(Session {
            entry,
            cell,
            figure,
        })
    }
}

/// The sessions in `entries`, in their order, that are of the same thing as `cell` of an entry of `environment`: the same request,
/// settings, blocks, windows and cores, on the same machine and kernel.
pub fn sessions<'a>(
    entries: &[&'a Entry],
    environment: &str,
    cell: &CellEntry,
    value: Value,
) -> Vec<Session<'a>> {
    let session = |entry: &&'a Entry| {
        let own = entry.cells().find(|own| own.series == cell.series)?;
        Session::of(entry, own, value).filter(|_| entry.environment == environment)
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
