//! What a document says of users that do steps: their iterations, and each step by itself.
//!
//! Not for: what all requests together came to, which is in the tables of servers; a step's requests are among them.

pub mod figures;

use self::figures::{CellScenario, CellStep};
use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::numbers::{self, NOTHING};
use crate::part::{Captioned, captioned, column, detail, figures_word, with_ends};
use crate::table::{Column, Entry, Table};

const OF_ITERATIONS: &str = "Iterations: ways of users through their steps, from when the first request was due to the last answer, think times \
     included. Times are of those that ended in the windows, counts of all blocks, warm-up included";
const OF_STEPS: &str = "Steps: sent in all blocks, warm-up included; completed and failed in the windows; percentiles at the median over the \
     blocks";

/// A scenario of a cell, by its place among all of the cell.
type ScenarioOf<'a> = (&'a CellFigures, usize, &'a CellScenario);
/// A step of a cell, likewise.
type StepOf<'a> = (&'a CellFigures, usize, &'a CellStep);

/// The tables of the users of these cells; none where there are no users, or nothing was measured.
pub fn tables(cells: &[&CellFigures]) -> Vec<Captioned> {
    let measured = cells.iter().copied().filter(|cell| cell.is_measured());
    let with_users: Vec<&CellFigures> = measured.filter(|cell| cell.users.is_some()).collect();
    if with_users.is_empty() {
        return Vec::new();
    }
    vec![
        captioned(OF_ITERATIONS, iterations(&with_users)),
        captioned(OF_STEPS, steps(&with_users)),
    ]
}

/// Whether the file of a cell has several scenarios.
fn has_several(cell: &CellFigures) -> bool {
    cell.users
        .as_ref()
        .is_some_and(|users| users.scenarios.len() > 1)
}

fn iterations(cells: &[&CellFigures]) -> Table {
    let all: Vec<ScenarioOf<'_>> = cells.iter().flat_map(|cell| scenarios_of(cell)).collect();
    let rates = figures_word(all.iter().filter_map(|(_, _, of)| of.rate_per_s));
    let times = all
        .iter()
        .filter_map(|(_, _, of)| of.duration_ns.get("p50"));
    let times = figures_word(times.copied());
    let mut grid: Grid<'_, ScenarioOf<'_>> = Grid::new()
        .head(column("subject", "", false), |of: ScenarioOf<'_>| {
            Entry::text(&*of.0.label)
        });
    if cells.iter().any(|cell| has_several(cell)) {
        grid = grid.head(column("scenario", "", false), |of| Entry::text(&*of.2.name));
    }
    let count = |name: &'static str, get: fn(&CellScenario) -> u64| {
        move |(_, at, of): ScenarioOf<'_>| {
            counted(format!("users.scenarios.{at}.iterations.{name}"), get(of))
        }
    };
    let time = |name: &'static str| {
        move |(cell, at, of): ScenarioOf<'_>| match (cell.is_overloaded(), name) {
            // It has the waiting for a connection in it, which grows for as long as the run lasts.
            (true, "p50") => Entry::text("overloaded"),
            (true, _) => Entry::text(NOTHING),
            (false, _) => {
                let path = format!("users.scenarios.{at}.duration_ns.{name}.median");
                let figure = of.duration_ns.get(name).copied();
                let entry = Entry::figure(path, figure.map(|of| of.median), numbers::time);
                with_ends(entry, figure, ends)
            }
        }
    };
    grid = grid
        .figure(column("iterations/s", rates, true), |(_, at, of)| {
            let path = format!("users.scenarios.{at}.rate_per_s.median");
            let entry = Entry::figure(path, of.rate_per_s.map(|of| of.median), numbers::rate);
            with_ends(entry, of.rate_per_s, numbers::rates)
        })
        .figure(
            hidden("started"),
            count("started", |of| of.iterations.started),
        )
        .figure(
            shown("completed"),
            count("completed", |of| of.iterations.completed),
        )
        .figure(
            shown("abandoned"),
            count("abandoned", |of| of.iterations.abandoned),
        )
        .figure(
            hidden("unfinished"),
            count("unfinished", |of| of.iterations.unfinished),
        )
        .figure(column("p50", times, true), time("p50"))
        .figure(column("p99", times, true), time("p99"));
    with_cells(grid.rows(all.iter().copied()), all.iter().map(|of| of.0))
}

fn scenarios_of(cell: &CellFigures) -> Vec<ScenarioOf<'_>> {
    let users = cell.users.iter();
    let all = users.flat_map(|users| users.scenarios.iter().enumerate());
    all.map(|(at, of)| (cell, at, of)).collect()
}

fn steps_of(cell: &CellFigures) -> Vec<StepOf<'_>> {
    let users = cell.users.iter();
    let all = users.flat_map(|users| users.steps.iter().enumerate());
    all.map(|(at, of)| (cell, at, of)).collect()
}

fn steps(cells: &[&CellFigures]) -> Table {
    let all: Vec<StepOf<'_>> = cells.iter().flat_map(|cell| steps_of(cell)).collect();
    let rates = figures_word(all.iter().filter_map(|(_, _, of)| of.rate_per_s));
    let times = all.iter().filter_map(|(_, _, of)| of.latency_ns.get("p50"));
    let times = figures_word(times.copied());
    let count = |name: &'static str, get: fn(&CellStep) -> u64| {
        move |(_, at, of): StepOf<'_>| counted(format!("users.steps.{at}.{name}"), get(of))
    };
    let time = |name: &'static str| {
        move |(cell, at, of): StepOf<'_>| match (cell.is_overloaded(), name) {
            // It grows for as long as the run lasts.
            (true, "p50") => Entry::text("overloaded"),
            (true, _) => Entry::text(NOTHING),
            (false, _) => {
                let path = format!("users.steps.{at}.latency_ns.{name}.median");
                let figure = of.latency_ns.get(name).copied();
                let entry = Entry::figure(path, figure.map(|of| of.median), numbers::time);
                with_ends(entry, figure, ends)
            }
        }
    };
    let grid: Grid<'_, StepOf<'_>> = Grid::new()
        .head(column("subject", "", false), |of: StepOf<'_>| {
            Entry::text(&*of.0.label)
        })
        .head(column("step", "", false), |of| Entry::text(name_of(of)))
        .figure(shown("sent"), count("counts.sent", |of| of.counts.sent))
        .figure(
            shown("completed"),
            count("counts.completed", |of| of.counts.completed),
        )
        .figure(shown("failed"), |(_, at, of)| Entry {
            below: kinds(of),
            ..counted(format!("users.steps.{at}.failed"), of.failed)
        })
        .figure(
            hidden("in flight"),
            count("counts.in_flight", |of| of.counts.in_flight),
        )
        .figure(detail(column("completed/s", rates, true)), |(_, at, of)| {
            let path = format!("users.steps.{at}.rate_per_s.median");
            let entry = Entry::figure(path, of.rate_per_s.map(|of| of.median), numbers::rate);
            with_ends(entry, of.rate_per_s, numbers::rates)
        })
        .figure(column("p50", times, true), time("p50"))
        .figure(column("p99", times, true), time("p99"));
    with_cells(grid.rows(all.iter().copied()), all.iter().map(|of| of.0))
}

/// `login`; with its scenario where the file has several.
fn name_of((cell, _, step): StepOf<'_>) -> String {
    match has_several(cell) {
        true => format!("{}: {}", step.scenario, step.name),
        false => step.name.clone(),
    }
}

fn shown(title: &str) -> Column {
    column(title, "", true)
}

fn hidden(title: &str) -> Column {
    detail(shown(title))
}

/// The ends of a time, as far as it ended.
fn ends(low: f64, high: f64) -> String {
    match (low < INFINITE, high < INFINITE) {
        (true, true) => numbers::times(low, high),
        (true, false) => format!("{}–{}", numbers::time(low), numbers::time(high)),
        (false, _) => String::new(),
    }
}

/// A count of the figures.
fn counted(path: String, count: u64) -> Entry {
    Entry::figure(path, Some(count as f64), |_| numbers::count(count))
}

/// What failed of a step by its kind, and what was not sent.
fn kinds(of: &CellStep) -> String {
    let kinds = of.errors.iter();
    let mut all: Vec<String> = kinds
        .map(|(kind, count)| format!("{} {}", kind.replace('_', " "), numbers::count(*count)))
        .collect();
    for (what, count) in [
        ("not sent for want of a value", of.counts.lacking),
        ("in the warm-up", of.counts.warmup_failed),
    ] {
        if count > 0 {
            all.push(format!("{what} {}", numbers::count(count)));
        }
    }
    all.join(", ")
}

/// The table with the cell that each row is of.
fn with_cells<'a>(mut table: Table, cells: impl Iterator<Item = &'a CellFigures>) -> Table {
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.cell.clone_from(&cell.cell);
    }
    table
}
