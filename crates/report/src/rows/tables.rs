//! The tables of rows: rates and latencies, CPU time and memory of each process, and what was kept of
//! what was acknowledged; and what tables of all combinations say of services besides.

use prony_findings::Code;
use prony_record::{Ended, PlannedRow};

use super::figures::{CounterFigures, ROLES};
use super::sections::{Context, Rows, Section, quoted, share};
use crate::clients::words::more;
use crate::figures::{CellFigures, Figure};
use crate::grid::Grid;
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};
use crate::part::{
    Captioned, captioned, column, detail, figures_word, limit_entry, median, plain, ratio_word,
    verdicts_differ, with_ends,
};
use crate::table::{self, Column, Entry, ON_CPU, ON_ERRORS, ON_RATE, ON_TITLE, Table};

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
/// Codes of the findings that are footnotes on what was counted.
const ON_COUNTED: &[Code] = &[Code::P023, Code::P025];
/// The same on what was lost.
const ON_LOST: &[Code] = &[Code::P024];

impl<'a> Context<'a> {
    /// The tables of a section with one number of connections.
    pub(super) fn tables(&self, section: &Section<'a>, rows: &Rows<'a>) -> Vec<Captioned> {
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
    fn titled<'f>(&'f self, codes: &'f [Code]) -> Grid<'f, &'a CellFigures> {
        Grid::new().head(column("", "", false), move |cell| Entry {
            below: table::blocks_of(cell).unwrap_or_default(),
            ..self.notes.on(cell, codes, Entry::text(&*cell.label))
        })
    }

    fn rates(&self, rows: &Rows<'a>) -> Table {
        let cells = rows.cells();
        let baselines = baselines(rows);
        let ratio = match &baselines[..] {
            [one] => format!("ratio to {}", quoted(one)),
            _ => "ratio".to_owned(),
        };
        let several = baselines.len() > 1;
        let rates = figures_word(cells.iter().filter_map(|c| c.rate_per_s));
        let mut grid = self
            .titled(ON_TITLE)
            .figure(column("requests/s", rates, true), |cell| {
                let rate = self.places.entry(cell, Metric::RATE);
                let rate = with_ends(rate, cell.rate_per_s, numbers::rates);
                self.notes.on(cell, ON_RATE, rate)
            })
            .figure(detail(column("deviation", "over seconds", true)), deviation)
            .figure(column(ratio, ratio_word(&cells), true), ratio_entry);
        if several {
            grid = grid.figure(column("baseline", "", false), |cell| {
                let title = cell.row().and_then(|row| row.baseline.clone());
                Entry::text(title.unwrap_or_else(|| NOTHING.to_owned()))
            });
        }
        let crowded = several && verdicts_differ(&cells);
        for metric in OF_ROWS {
            let head = Column {
                details: metric.details || metric.key == Metric::P50.key && crowded,
                ..metric.head()
            };
            grid = grid.figure(head, move |cell| metric.of_server(cell));
        }
        grid = grid.figure(column("errors", "", true), |cell| {
            self.notes.on(cell, ON_ERRORS, table::errors(cell))
        });
        list(rows, grid)
    }

    fn costs(&self, rows: &Rows<'a>) -> Table {
        let cells = rows.cells();
        let roles = || ROLES.into_iter().map(|(_, role)| role);
        let mut grid = self.titled(&[]);
        for role in roles().filter(|role| cells.iter().any(|c| cpu(c, role).is_some())) {
            grid = grid.figure(column(format!("CPU {role}"), "µs/req", true), move |cell| {
                let codes = if role == "subject" { ON_CPU } else { &[] };
                self.notes.on(cell, codes, cpu_entry(cell, role))
            });
        }
        let busy = "busy: subject's side, generator";
        grid = grid.figure(column("limit", busy, false), limit);
        let with_memory =
            |role: &&str| *role != "generator" && cells.iter().any(|c| memory(c, role).is_some());
        for role in roles().filter(with_memory) {
            let head = detail(column(format!("memory {role}"), "peak", true));
            grid = grid.figure(head, move |cell| {
                let path = format!("service.memory_peak_bytes.{role}.median");
                Entry::figure(path, median(memory(cell, role)), numbers::bytes)
            });
        }
        list(rows, grid)
    }

    fn durability(&self, rows: &Rows<'a>) -> Table {
        let cells = rows.cells();
        let ended = cells.iter().find_map(|cell| counter(cell)?.ended_by);
        let of = |cell: &'a CellFigures, make: fn(&CounterFigures) -> Entry| {
            counter(cell).map_or_else(|| Entry::text(NOTHING), make)
        };
        let mut grid = self
            .titled(&[])
            .figure(column("acknowledged", "all blocks", true), |cell| {
                of(cell, acknowledged)
            })
            .figure(column("counted", "", true), |cell| {
                self.notes.on(cell, ON_COUNTED, of(cell, counted))
            });
        if let Some(ended) = ended {
            let head = column("kept", after_what(ended), true);
            grid = grid.figure(head, |cell| of(cell, kept));
        }
        grid = grid.figure(column("lost", "", false), |cell| {
            self.notes.on(cell, ON_LOST, of(cell, lost))
        });
        list(rows, grid)
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

/// Titles of the rows that others stand beside, in the order of the table.
fn baselines<'a>(rows: &Rows<'a>) -> Vec<&'a String> {
    let all = rows.rows.iter();
    distinct(all.filter_map(|(row, _)| row.baseline.as_ref()))
}

fn deviation(cell: &CellFigures) -> Entry {
    let seconds = cell.service.as_ref().and_then(|service| service.seconds);
    let value = seconds.map(|seconds| seconds.deviation_per_s);
    let mut entry = Entry::figure("service.seconds.deviation_per_s", value, numbers::rate);
    if let Some(seconds) = seconds {
        entry.below = format!("{} s", seconds.count);
    }
    entry
}

fn ratio_entry(cell: &CellFigures) -> Entry {
    let Some(ratio) = &cell.ratio else {
        return Entry::text(NOTHING);
    };
    let show = |value| match ratio.conclusion {
        "higher" | "lower" => more(value),
        _ => format!("{} ×", numbers::ratio(value)),
    };
    let mut entry = table::of_ratio("ratio.ratio", ratio, numbers::ratio);
    entry.text = show(ratio.ratio);
    entry
}

fn cpu(cell: &CellFigures, role: &str) -> Option<Figure> {
    cell.service.as_ref()?.cpu_ns.get(role).copied()
}

fn memory(cell: &CellFigures, role: &str) -> Option<Figure> {
    cell.service.as_ref()?.memory_peak_bytes.get(role).copied()
}

/// CPU time of a role; below it that of each kind of process, where there are several.
fn cpu_entry(cell: &CellFigures, role: &str) -> Entry {
    let path = format!("service.cpu_ns.{role}.median");
    let mut entry = Entry::figure(path, median(cpu(cell, role)), numbers::micros);
    let processes = cell.service.iter().flat_map(|service| &service.processes);
    let own: Vec<_> = processes.filter(|process| process.role == role).collect();
    let word = |process: &&super::figures::ProcessFigures| {
        let name = match process.count {
            0 | 1 => process.name.clone(),
            count => format!("{count} × {}", process.name),
        };
        let value = median(process.cpu_ns).map_or_else(|| NOTHING.to_owned(), numbers::micros);
        format!("{name} {value}")
    };
    if own.len() > 1 {
        entry.below = own.iter().map(word).collect::<Vec<_>>().join(", ");
    } else if let Some(one) = own.first().filter(|one| one.count > 1 || role != "subject") {
        entry.below = match one.count {
            0 | 1 => one.name.clone(),
            count => format!("{count} × {}", one.name),
        };
    }
    entry
}

fn limit(cell: &CellFigures) -> Entry {
    cell.service.as_ref().map_or_else(
        || Entry::text(NOTHING),
        |of| {
            let name = limit_words(of.limit).unwrap_or_default();
            let busy = [of.busy_subject, of.busy_generator];
            limit_entry(name, (of.limit, &of.limits), busy)
        },
    )
}

fn acknowledged(counter: &CounterFigures) -> Entry {
    let value = Some(counter.acknowledged as f64);
    let mut entry = Entry::figure("service.counter.acknowledged", value, |_| {
        numbers::count(counter.acknowledged)
    });
    if counter.unanswered > 0 {
        entry.below = format!("+ {} unanswered", numbers::count(counter.unanswered));
    }
    entry
}

fn counted(counter: &CounterFigures) -> Entry {
    if counter.read == 0 {
        return Entry::text("not asked");
    }
    let value = Some(counter.counted as f64);
    let mut entry = Entry::figure("service.counter.counted", value, |_| {
        numbers::count(counter.counted)
    });
    entry.below = match (counter.uncounted, counter.invented) {
        (0, 0) => match counter.counted.saturating_sub(counter.read_acknowledged) {
            0 => "all".to_owned(),
            more => format!("all, and {} unanswered", numbers::count(more)),
        },
        (0, more) => format!("{} too many", numbers::count(more)),
        (missing, _) => format!(
            "{} missing, {}",
            numbers::count(missing),
            share(missing, counter.read_acknowledged)
        ),
    };
    entry
}

fn kept(counter: &CounterFigures) -> Entry {
    match counter.asked {
        0 => Entry::text("not asked"),
        _ => Entry::figure("service.counter.kept", Some(counter.kept as f64), |_| {
            numbers::count(counter.kept)
        }),
    }
}

fn lost(counter: &CounterFigures) -> Entry {
    let mut lost = Entry::text(lost_words(counter));
    if counter.lost > 0 && counter.asked > 1 && !counter.keeps_nothing {
        lost.below = format!("in {} of {} blocks", counter.blocks_lost, counter.asked);
    }
    lost
}

/// The columns that a table of all combinations has besides: CPU time of what is around its servers, and
/// what became of their numbers.
pub fn more_columns<'a, 'f>(
    mut grid: Grid<'f, &'a CellFigures>,
    cells: &[&CellFigures],
    notes: &'f Notes,
) -> Grid<'f, &'a CellFigures> {
    for role in ["front", "backing"] {
        if cells.iter().any(|cell| cpu(cell, role).is_some()) {
            let head = detail(column(format!("CPU {role}"), "µs/req", true));
            grid = grid.head(head, move |cell| match cpu(cell, role) {
                Some(_) => cpu_entry(cell, role),
                None => Entry::text(NOTHING),
            });
        }
    }
    if cells.iter().any(|cell| counter(cell).is_some()) {
        grid = grid.head(detail(column("durability", "", false)), move |cell| {
            let came = counter(cell).map_or_else(|| NOTHING.to_owned(), came_of);
            let codes = [ON_COUNTED, ON_LOST].concat();
            notes.on(cell, &codes, Entry::text(came))
        });
    }
    grid
}

/// `after a stop`.
fn after_what(ended: Ended) -> &'static str {
    match ended {
        Ended::Stopped => "after a stop",
        Ended::Killed => "after a kill",
    }
}

/// What was full, as the table says it; `None`: not known.
fn limit_words(name: &str) -> Option<&'static str> {
    match name {
        "subject" => Some("subject's side"),
        "generator" => Some("generator"),
        "both" => Some("both"),
        "neither" => Some("neither"),
        _ => None,
    }
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
        (0, 0) if counter.read == 0 => "",
        (0, 0) => "all counted",
        (0, more) => &format!("{} too many", numbers::count(more)),
        (missing, _) => &format!("{} not counted", numbers::count(missing)),
    };
    let kept = match counter.ended_by {
        None => String::new(),
        Some(_) => lost_words(counter),
    };
    let parts = [counted, &kept];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    match said.is_empty() {
        true => "not asked".to_owned(),
        false => said.join(", "),
    }
}
