//! What a document says of users that do steps: their iterations, and each step by itself.
//!
//! Not for: what all requests together came to, which is in the tables of servers; a step's requests are among them.

pub mod figures;

use self::figures::{CellStep, CellUsers};
use crate::figure::spread_word;
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::notes::Notes;
use crate::numbers::{self, COUNT, RATE, TIME};
use crate::part::{Captioned, captioned, column};
use crate::table::{Entry, Shown, Table};
use crate::words::paragraph;

const ITERATIONS: [Shown; 7] = [
    Shown::new("iterations/s", "rate_per_s", RATE).with_ends(),
    Shown::new("started", "iterations.started", COUNT).detail(),
    Shown::new("completed", "iterations.completed", COUNT),
    Shown::new("abandoned", "iterations.abandoned", COUNT),
    Shown::new("unfinished", "iterations.unfinished", COUNT).detail(),
    Shown::new("p50", "duration_ns.p50", TIME).with_ends(),
    Shown::new("p99", "duration_ns.p99", TIME).with_ends(),
];
const STEPS: [Shown; 7] = [
    Shown::new("sent", "counts.sent", COUNT),
    Shown::new("completed", "counts.completed", COUNT),
    Shown::new("failed", "failed", COUNT),
    Shown::new("in flight", "counts.in_flight", COUNT).detail(),
    Shown::new("completed/s", "rate_per_s", RATE)
        .with_ends()
        .detail(),
    Shown::new("p50", "latency_ns.p50", TIME).with_ends(),
    Shown::new("p99", "latency_ns.p99", TIME).with_ends(),
];

/// A scenario or a step of a cell.
struct Line<'a> {
    cell: &'a CellFigures,
    /// Where it is in the cell.
    place: String,
    name: String,
    /// What stands below how many failed.
    failed: String,
}

/// The tables of the users of these cells; none where there are no users, or nothing was measured.
pub fn tables(notes: &Notes, cells: &[&CellFigures]) -> Vec<Captioned> {
    let measured = cells.iter().copied().filter(|cell| cell.is_measured());
    let with: Vec<(&CellFigures, &CellUsers)> = measured
        .filter_map(|cell| Some((cell, cell.users.as_ref()?)))
        .collect();
    if with.is_empty() {
        return Vec::new();
    }
    let several = with.iter().any(|(_, users)| users.scenarios.len() > 1);
    let scenarios = with.iter().flat_map(|(cell, users)| {
        let all = users.scenarios.iter().enumerate();
        all.map(move |(at, of)| Line {
            cell,
            place: format!("users.scenarios.{at}."),
            name: of.name.clone(),
            failed: String::new(),
        })
    });
    let steps = with.iter().flat_map(|(cell, users)| {
        let all = users.steps.iter().enumerate();
        all.map(move |(at, of)| Line {
            cell,
            place: format!("users.steps.{at}."),
            name: match users.scenarios.len() {
                0 | 1 => of.name.clone(),
                _ => format!("{}: {}", of.scenario, of.name),
            },
            failed: kinds(of),
        })
    });
    let named = several.then_some("scenario");
    let scenarios = table(notes, scenarios.collect(), named, ITERATIONS);
    let steps = table(notes, steps.collect(), Some("step"), STEPS);
    vec![
        captioned(paragraph("users: iterations"), scenarios),
        captioned(paragraph("users: steps"), steps),
    ]
}

fn table(notes: &Notes, lines: Vec<Line<'_>>, named: Option<&str>, columns: [Shown; 7]) -> Table {
    let mut grid = Grid::new().head(column("subject", "", false), |of: &Line<'_>| {
        Entry::text(&*of.cell.label)
    });
    if let Some(named) = named {
        grid = grid.head(column(named, "", false), |of| Entry::text(&*of.name));
    }
    for shown in columns {
        // One word for both percentiles, of which the longer may never have ended.
        let path = shown.path.replace("p99", "p50");
        let figure = |of: &Line<'_>| of.cell.figure(&format!("{}{path}", of.place));
        let shown = shown.below(spread_word(lines.iter().filter_map(figure)));
        grid = grid.figure(shown.head(), move |of| {
            let mut entry = notes.entry_of(of.cell, &of.place, &shown);
            if shown.title == "failed" {
                entry.below.clone_from(&of.failed);
            }
            entry
        });
    }
    let mut table = grid.rows(&lines);
    for (row, of) in table.rows.iter_mut().zip(&lines) {
        row.cell.clone_from(&of.cell.cell);
    }
    table
}

/// What failed of a step by its kind, and what was not sent.
fn kinds(of: &CellStep) -> String {
    let kinds = of.errors.iter();
    let kinds = kinds.map(|(kind, count)| (kind.replace('_', " "), *count));
    let rest = [
        ("not sent for want of a value", of.counts.lacking),
        ("in the warm-up", of.counts.warmup_failed),
    ];
    let rest = rest.into_iter().filter(|(_, count)| *count > 0);
    let all = kinds.chain(rest.map(|(what, count)| (what.to_owned(), count)));
    let words = all.map(|(what, count)| format!("{what} {}", numbers::count(count)));
    words.collect::<Vec<_>>().join(", ")
}
