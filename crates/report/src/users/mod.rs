//! What a document says of users that do steps: their iterations, and each step by itself.
//!
//! Not for: what all requests together came to, which is in the tables of servers; a step's requests are among them.

pub mod figures;

use self::figures::{CellStep, CellUsers};
use crate::figure::{Figure, INFINITE};
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::numbers;
use crate::part::{Captioned, Context, captioned, column, figures_word};
use crate::table::{COUNT, Entry, RATE, Shown, Table, Unit};
use crate::words::paragraph;

const ITERATIONS: [Shown; 7] = [
    Shown::of("iterations/s", "rate_per_s", RATE).with_ends(),
    Shown::of("started", "iterations.started", COUNT).detail(),
    Shown::of("completed", "iterations.completed", COUNT),
    Shown::of("abandoned", "iterations.abandoned", COUNT),
    Shown::of("unfinished", "iterations.unfinished", COUNT).detail(),
    Shown::of("p50", "duration_ns.p50", TIME).with_ends(),
    Shown::of("p99", "duration_ns.p99", TIME).with_ends(),
];
const STEPS: [Shown; 7] = [
    Shown::of("sent", "counts.sent", COUNT),
    Shown::of("completed", "counts.completed", COUNT),
    Shown::of("failed", "failed", COUNT),
    Shown::of("in flight", "counts.in_flight", COUNT).detail(),
    Shown::of("completed/s", "rate_per_s", RATE)
        .with_ends()
        .detail(),
    Shown::of("p50", "latency_ns.p50", TIME).with_ends(),
    Shown::of("p99", "latency_ns.p99", TIME).with_ends(),
];
/// Times, of which the longer may never have ended.
const TIME: Unit = Unit::with_ends(numbers::time, ends);

/// A scenario or a step of a cell.
struct Line<'a> {
    cell: &'a CellFigures,
    /// Where it is in the cell.
    place: String,
    name: String,
    /// What stands below how many failed.
    failed: String,
    rate: Option<Figure>,
    time: Option<&'a Figure>,
}

/// The tables of the users of these cells; none where there are no users, or nothing was measured.
pub fn tables<Own>(context: &Context<'_, Own>, cells: &[&CellFigures]) -> Vec<Captioned> {
    let measured = cells.iter().copied().filter(|cell| cell.is_measured());
    let with: Vec<(&CellFigures, &CellUsers)> = measured
        .filter_map(|cell| Some((cell, cell.users.as_ref()?)))
        .collect();
    if with.is_empty() {
        return Vec::new();
    }
    let several = with.iter().any(|(_, users)| users.scenarios.len() > 1);
    let scenarios = with.iter().flat_map(|(cell, users)| scenarios(cell, users));
    let steps = with.iter().flat_map(|(cell, users)| steps(cell, users));
    let (scenarios, steps): (Vec<_>, Vec<_>) = (scenarios.collect(), steps.collect());
    let named = several.then_some("scenario");
    vec![
        captioned(
            paragraph("users: iterations"),
            table(context, &scenarios, named, ITERATIONS),
        ),
        captioned(
            paragraph("users: steps"),
            table(context, &steps, Some("step"), STEPS),
        ),
    ]
}

fn scenarios<'a>(cell: &'a CellFigures, users: &'a CellUsers) -> impl Iterator<Item = Line<'a>> {
    let all = users.scenarios.iter().enumerate();
    all.map(move |(at, of)| Line {
        cell,
        place: format!("users.scenarios.{at}."),
        name: of.name.clone(),
        failed: String::new(),
        rate: of.rate_per_s,
        time: of.duration_ns.get("p50"),
    })
}

fn steps<'a>(cell: &'a CellFigures, users: &'a CellUsers) -> impl Iterator<Item = Line<'a>> {
    let all = users.steps.iter().enumerate();
    all.map(move |(at, of)| Line {
        cell,
        place: format!("users.steps.{at}."),
        name: match users.scenarios.len() {
            0 | 1 => of.name.clone(),
            _ => format!("{}: {}", of.scenario, of.name),
        },
        failed: kinds(of),
        rate: of.rate_per_s,
        time: of.latency_ns.get("p50"),
    })
}

fn table<Own>(
    context: &Context<'_, Own>,
    lines: &[Line<'_>],
    named: Option<&str>,
    columns: [Shown; 7],
) -> Table {
    let rates = figures_word(lines.iter().filter_map(|of| of.rate));
    let times = figures_word(lines.iter().filter_map(|of| of.time.copied()));
    let mut grid = Grid::new().head(column("subject", "", false), |of: &Line<'_>| {
        Entry::text(&*of.cell.label)
    });
    if let Some(named) = named {
        grid = grid.head(column(named, "", false), |of| Entry::text(&*of.name));
    }
    for shown in columns {
        let shown = match shown.title {
            "p50" | "p99" => shown.below(times),
            title if title.ends_with("/s") => shown.below(rates),
            _ => shown,
        };
        grid = grid.figure(shown.head(), move |of| {
            let mut entry = context.entry_of(of.cell, &of.place, &shown);
            if shown.title == "failed" {
                entry.below.clone_from(&of.failed);
            }
            entry
        });
    }
    let mut table = grid.rows(lines);
    for (row, of) in table.rows.iter_mut().zip(lines) {
        row.cell.clone_from(&of.cell.cell);
    }
    table
}

/// The ends of a time, as far as it ended.
fn ends(low: f64, high: f64) -> String {
    match (low < INFINITE, high < INFINITE) {
        (true, true) => numbers::times(low, high),
        (true, false) => format!("{}–{}", numbers::time(low), numbers::time(high)),
        (false, _) => String::new(),
    }
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
