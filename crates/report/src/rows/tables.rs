//! The tables of rows: rates and latencies, CPU time and memory of each process, and what was kept of
//! what was acknowledged; and what tables of all combinations say of services besides.

use prony_findings::Code;
use prony_record::{Ended, PlannedRow};

use super::figures::{CounterFigures, ProcessFigures, ROLES};
use super::sections::{Rows, Section, share};
use crate::figure::{ALL, in_blocks, spread_word};
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers::{self, BYTES, COUNT, MICROS, NOTHING, RATE};
use crate::part::{
    Captioned, captioned, column, detail, limit_entry, median, plain, ratio_word, verdicts_differ,
};
use crate::table::{self, Column, ERRORS, Entry, ON_CPU, ON_TITLE, Shown, Table};

/// What a row has beside its rate and its ratio.
const OF_ROWS: [Metric; 7] = [
    Metric::MEAN,
    Metric::DEVIATION,
    Metric::P50,
    Metric::P75,
    Metric::P99,
    Metric::P99_9,
    Metric::RECEIVED,
];
const SECONDS: Shown = Shown::new("deviation", "service.seconds.deviation_per_s", RATE)
    .below("over seconds")
    .detail();
const ACKNOWLEDGED: Shown =
    Shown::new("acknowledged", "service.counter.acknowledged", COUNT).below(ALL);
const COUNTED: Shown = Shown::new("counted", "service.counter.counted", COUNT).marked(ON_COUNTED);
const KEPT: Shown = Shown::new("kept", "service.counter.kept", COUNT);
/// Codes of the findings that are footnotes on what was counted.
const ON_COUNTED: &[Code] = &[Code::P023, Code::P025];
/// The same on what was lost.
const ON_LOST: &[Code] = &[Code::P024];

/// Of each role but the generator, which has none.
const MEMORY: [Shown; 4] = [
    memory("memory subject", "service.memory_peak_bytes.subject"),
    memory("virtual subject", Metric::VIRTUAL_MEMORY.shown.path),
    memory("memory front", "service.memory_peak_bytes.front"),
    memory("memory backing", "service.memory_peak_bytes.backing"),
];

const fn memory(title: &'static str, path: &'static str) -> Shown {
    Shown::new(title, path, BYTES).below("peak").detail()
}

impl Notes {
    /// The tables of a section with one number of connections.
    pub(super) fn tables(&self, section: &Section<'_>, rows: &Rows<'_>) -> Vec<Captioned> {
        let mut tables = vec![plain(self.rates(rows))];
        if !rows.cells().is_empty() {
            let caption = "CPU time, memory and what was the limit";
            tables.push(captioned(caption, self.costs(rows)));
        }
        if section.workload.counter.is_some() {
            let caption = "Durability: what was acknowledged, counted and kept";
            tables.push(captioned(caption, self.durability(rows)));
        }
        tables
    }

    /// A table with a line for each row: its title with its notes on `codes`, and then figures.
    fn titled<'a, 'f>(&'f self, codes: &'f [Code]) -> Grid<'f, &'a CellFigures> {
        Grid::new().head(column("", "", false), move |cell| Entry {
            below: table::blocks_of(cell).unwrap_or_default(),
            ..self.on(cell, codes, Entry::text(&*cell.label))
        })
    }

    fn rates(&self, rows: &Rows<'_>) -> Table {
        let cells = rows.cells();
        let all = rows.rows.iter();
        let baselines = distinct(all.filter_map(|(row, _)| row.baseline.as_ref()));
        let ratio = match &baselines[..] {
            [one] => format!("beside “{one}”"),
            _ => "beside its baseline".to_owned(),
        };
        let several = baselines.len() > 1;
        let word = spread_word(cells.iter().filter_map(|c| c.rate_per_s));
        let mut grid = self
            .titled(ON_TITLE)
            .shown(self, [Metric::RATE.shown.below(word), SECONDS])
            .figure(column(ratio, ratio_word(&cells), true), |cell| {
                let ratio = cell.ratio.as_ref();
                ratio.map_or_else(
                    || Entry::text(NOTHING),
                    |of| table::change("ratio.ratio", of),
                )
            });
        if several {
            grid = grid.figure(column("baseline", "", false), |cell| {
                let title = cell.row().and_then(|row| row.baseline.clone());
                Entry::text(title.unwrap_or_else(|| NOTHING.to_owned()))
            });
        }
        let crowded = several && verdicts_differ(&cells);
        let metrics = OF_ROWS.map(|metric| match metric.key == Metric::P50.key && crowded {
            true => metric.shown.detail(),
            false => metric.shown,
        });
        grid = grid.shown(self, metrics).shown(self, [ERRORS]);
        list(rows, grid)
    }

    fn costs(&self, rows: &Rows<'_>) -> Table {
        let cells = rows.cells();
        let roles = ROLES.into_iter().map(|(_, role)| role);
        let mut grid = with_cpu(self.titled(&[]), &cells, self, roles, false);
        let busy = "busy: subject's side, generator";
        grid = grid.figure(column("limit", busy, false), limit);
        grid = grid.shown(self, self.present(&cells, MEMORY));
        list(rows, grid)
    }

    fn durability(&self, rows: &Rows<'_>) -> Table {
        let cells = rows.cells();
        let ended = cells.iter().find_map(|cell| counter(cell)?.ended_by);
        let mut grid = self
            .titled(&[])
            .figure(ACKNOWLEDGED.head(), |cell| {
                self.counted(cell, &ACKNOWLEDGED, unanswered)
            })
            .figure(COUNTED.head(), |cell| self.counted(cell, &COUNTED, counted));
        if let Some(ended) = ended {
            let after = match ended {
                Ended::Stopped => "after a stop",
                Ended::Killed => "after a kill",
            };
            grid = grid.figure(KEPT.below(after).head(), |cell| {
                self.counted(cell, &KEPT, |of| (of.asked > 0).then(String::new))
            });
        }
        grid = grid.figure(column("lost", "", false), |cell| {
            let lost = counter(cell).map_or_else(|| Entry::text(NOTHING), lost);
            self.on(cell, ON_LOST, lost)
        });
        list(rows, grid)
    }

    /// A count of the number, and what stands below it; `None`: it was not asked for.
    fn counted(
        &self,
        cell: &CellFigures,
        column: &Shown,
        below: fn(&CounterFigures) -> Option<String>,
    ) -> Entry {
        let entry = self.entry(cell, column);
        match counter(cell).map(below) {
            None => entry,
            Some(None) => Entry::text("not asked"),
            Some(Some(below)) => Entry { below, ..entry },
        }
    }
}

/// The table of `rows`, of which the run may lack some.
fn list<'a>(rows: &Rows<'a>, grid: Grid<'_, &'a CellFigures>) -> Table {
    let grid = grid.verdicts(&rows.cells());
    let line = |(row, cell): &(&'a PlannedRow, Option<&'a CellFigures>)| match cell {
        Some(cell) => grid.row(cell),
        None => grid.missing(&row.title, "not run"),
    };
    let lines = rows.rows.iter().map(line).collect();
    grid.table(lines)
}

fn counter(cell: &CellFigures) -> Option<&CounterFigures> {
    cell.service.as_ref()?.counter.as_ref()
}

/// With a column of CPU time for each of these roles that any cell has.
fn with_cpu<'a, 'f>(
    mut grid: Grid<'f, &'a CellFigures>,
    cells: &[&CellFigures],
    notes: &'f Notes,
    roles: impl IntoIterator<Item = &'static str>,
    details: bool,
) -> Grid<'f, &'a CellFigures> {
    let has = |cell: &CellFigures, role: &str| {
        let service = cell.service.as_ref();
        service.is_some_and(|service| service.cpu_ns.contains_key(role))
    };
    for role in roles {
        if cells.iter().any(|cell| has(cell, role)) {
            let head = Column {
                details,
                ..column(format!("CPU {role}"), "µs/req", true)
            };
            grid = grid.figure(head, move |cell| {
                let codes = if role == "subject" { ON_CPU } else { &[] };
                notes.on(cell, codes, cpu(cell, role))
            });
        }
    }
    grid
}

/// CPU time of a role; below it that of each kind of process, where there are several.
fn cpu(cell: &CellFigures, role: &str) -> Entry {
    let service = cell.service.as_ref();
    let path = format!("service.cpu_ns.{role}");
    let processes = service.into_iter().flat_map(|service| &service.processes);
    let own: Vec<_> = processes.filter(|process| process.role == role).collect();
    let name = |process: &ProcessFigures| match process.count {
        0 | 1 => process.name.clone(),
        count => format!("{count} × {}", process.name),
    };
    let with_time = |process: &&ProcessFigures| {
        let time = median(process.cpu_ns).map_or_else(|| NOTHING.to_owned(), |ns| MICROS.text(ns));
        format!("{} {time}", name(process))
    };
    Entry {
        below: match own[..] {
            [] => String::new(),
            [one] if one.count < 2 && role == "subject" => String::new(),
            [one] => name(one),
            _ => own.iter().map(with_time).collect::<Vec<_>>().join(", "),
        },
        ..Entry::figure(format!("{path}.median"), cell.number(&path), |ns| {
            MICROS.text(ns)
        })
    }
}

fn limit(cell: &CellFigures) -> Entry {
    let Some(of) = &cell.service else {
        return Entry::text(NOTHING);
    };
    let name = match of.limit {
        "subject" => "subject's side",
        name => name,
    };
    let busy = [of.busy_subject, of.busy_generator];
    limit_entry(name, (of.limit, &of.limits), busy)
}

fn unanswered(counter: &CounterFigures) -> Option<String> {
    Some(match counter.unanswered {
        0 => String::new(),
        count => format!("+ {} unanswered", numbers::count(count)),
    })
}

fn counted(counter: &CounterFigures) -> Option<String> {
    if counter.read == 0 {
        return None;
    }
    let beyond = counter.counted.saturating_sub(counter.read_acknowledged);
    Some(match (counter.uncounted, counter.invented, beyond) {
        (0, 0, 0) => "all".to_owned(),
        (0, 0, more) => format!("all, and {} unanswered", numbers::count(more)),
        (0, more, _) => format!("{} too many", numbers::count(more)),
        (missing, ..) => format!(
            "{} missing, {}",
            numbers::count(missing),
            share(missing, counter.read_acknowledged)
        ),
    })
}

fn lost(counter: &CounterFigures) -> Entry {
    let mut lost = Entry::text(lost_words(counter));
    if counter.lost > 0 && counter.asked > 1 && !counter.keeps_nothing {
        lost.below = format!("in {}", in_blocks(counter.blocks_lost, counter.asked));
    }
    lost
}

/// The columns that a table of all combinations has besides: CPU time of what is around its servers, and
/// what became of their numbers.
pub fn more_columns<'a, 'f>(
    grid: Grid<'f, &'a CellFigures>,
    cells: &[&CellFigures],
    notes: &'f Notes,
) -> Grid<'f, &'a CellFigures> {
    let grid = with_cpu(grid, cells, notes, ["front", "backing"], true);
    if cells.iter().all(|cell| counter(cell).is_none()) {
        return grid;
    }
    grid.head(detail(column("durability", "", false)), move |cell| {
        let came = counter(cell).map_or_else(|| NOTHING.to_owned(), came_of);
        let codes = [ON_COUNTED, ON_LOST].concat();
        notes.on(cell, &codes, Entry::text(came))
    })
}

/// `none lost`, `lost 20 (0.004 %)`, `not asked`; of a row that states it `keeps nothing`.
fn lost_words(counter: &CounterFigures) -> String {
    match (counter.asked, counter.lost) {
        (0, _) => "not asked".to_owned(),
        (_, lost) if counter.keeps_nothing && lost > 0 => "keeps nothing".to_owned(),
        (_, 0) if counter.asked_unanswered > 0 => format!(
            "none seen lost (up to {} could hide)",
            numbers::count(counter.asked_unanswered)
        ),
        (_, 0) => "none lost".to_owned(),
        (_, lost) => format!(
            "lost {} ({})",
            numbers::count(lost),
            share(lost, counter.asked_acknowledged)
        ),
    }
}

/// What became of a number, in one entry of a table: `all counted, none lost`.
fn came_of(counter: &CounterFigures) -> String {
    let counted = match (counter.uncounted, counter.invented) {
        (0, 0) if counter.read == 0 => None,
        (0, 0) => Some("all counted".to_owned()),
        (0, more) => Some(format!("{} too many", numbers::count(more))),
        (missing, _) => Some(format!("{} not counted", numbers::count(missing))),
    };
    let kept = counter.ended_by.map(|_| lost_words(counter));
    let words: Vec<String> = counted.into_iter().chain(kept).collect();
    match words.is_empty() {
        true => "not asked".to_owned(),
        false => words.join(", "),
    }
}
