//! The tables of rows: rates and latencies, CPU time and memory of each process, and what was kept of
//! what was acknowledged; and what tables of all combinations say of services besides.

use prony_findings::Code;
use prony_record::PlannedRow;

use super::figures::{CounterFigures, ROLES};
use super::sections::{Context, Rows, Section, quoted, share};
use super::words;
use crate::clients::words::more;
use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers::{self, NOTHING};
use crate::part::{
    Captioned, column, detail, median, plain, ratios_word, spread_word, verdict_column,
    verdicts_differ, with_ends,
};
use crate::table::{self, Column, Entry, ON_CPU, ON_ERRORS, ON_RATE, ON_TITLE, Row, Table};

/// Codes of the findings that are footnotes on what was counted.
const ON_COUNTED: &[Code] = &[Code::P023, Code::P025];
/// The same on what was lost.
const ON_LOST: &[Code] = &[Code::P024];

/// Latencies of a row.
const LATENCIES: [Metric; 3] = [Metric::P50, Metric::P99, Metric::P99_9];

/// How the entries of a row are made from its figures.
type Entries<'b> = &'b dyn Fn(&CellFigures) -> Vec<Entry>;

impl<'a> Context<'a> {
    /// The tables of a section with one number of connections.
    pub(super) fn tables(&self, section: &Section<'a>, rows: &Rows<'a>) -> Vec<Captioned> {
        let mut tables = vec![plain(self.rates(rows))];
        if !rows.cells().is_empty() {
            tables.push(Captioned {
                caption: "CPU time, memory and what was the limit".to_owned(),
                table: self.costs(rows),
            });
        }
        if section.workload.counter.is_some() {
            tables.push(Captioned {
                caption: "Durability: what was acknowledged, counted and kept".to_owned(),
                table: self.durability(rows),
            });
        }
        tables
    }

    /// A table with a line for each row: its title, and what `entries` makes of its figures.
    fn list(
        &self,
        rows: &Rows<'a>,
        mut columns: Vec<Column>,
        marks: &[Code],
        entries: Entries<'_>,
    ) -> Table {
        columns.insert(0, column("", "", false));
        let verdict = verdicts_differ(&rows.cells());
        if verdict {
            columns.push(verdict_column());
        }
        let width = columns.len();
        let line = |(row, cell): &(&'a PlannedRow, Option<&'a CellFigures>)| {
            let mut head = Entry::text(row.title.clone());
            let Some(cell) = cell else {
                let mut all = vec![head, Entry::text("not run")];
                all.resize(width, Entry::text(NOTHING));
                return Row {
                    class: "missing".to_owned(),
                    entries: all,
                    ..Row::default()
                };
            };
            head.marks = self.notes.marks(&cell.cell, marks);
            head.below = table::blocks_of(cell).unwrap_or_default();
            if cell.trials.measured.is_empty() {
                let all = crate::part::unmeasured(cell, vec![head], width, verdict);
                return table::row_of(cell, all);
            }
            let mut all = vec![head];
            all.extend(entries(cell));
            if verdict {
                all.push(Entry::text(table::verdict_text(cell)));
            }
            table::row_of(cell, all)
        };
        let rows = rows.rows.iter().map(line).collect();
        Table { columns, rows }
    }

    fn rates(&self, rows: &Rows<'a>) -> Table {
        let cells = rows.cells();
        let of_rates = cells.iter().filter_map(|c| c.rate_per_s);
        let rates = spread_word(of_rates.map(|f| (f.is_interval(), f.blocks)));
        let ratios = ratios_word(cells.iter().filter_map(|c| c.ratio.as_ref()));
        let baselines = baselines(rows);
        let ratio = match &baselines[..] {
            [one] => format!("ratio to {}", quoted(one)),
            _ => "ratio".to_owned(),
        };
        let several = baselines.len() > 1;
        let mut columns = vec![
            column("requests/s", rates, true),
            detail(column("deviation", "over seconds", true)),
            column(ratio, ratios, true),
        ];
        if several {
            columns.push(column("baseline", "", false));
        }
        let crowded = several && verdicts_differ(&cells);
        let latency = |metric: Metric| Column {
            details: metric.details || metric.key == Metric::P50.key && crowded,
            ..metric.head()
        };
        columns.extend(LATENCIES.map(latency));
        columns.push(column("errors", "", true));
        let entries = |cell: &CellFigures| {
            let rate = self.places.entry(cell, Metric::RATE);
            let mut rate = with_ends(rate, cell.rate_per_s, numbers::rates);
            rate.marks = self.notes.marks(&cell.cell, ON_RATE);
            let mut entries = vec![rate, deviation(cell), ratio_entry(cell)];
            if several {
                let title = cell.row().and_then(|row| row.baseline.clone());
                entries.push(Entry::text(title.unwrap_or_else(|| NOTHING.to_owned())));
            }
            entries.extend(latencies(cell));
            let mut errors = table::errors(cell);
            errors.marks = self.notes.marks(&cell.cell, ON_ERRORS);
            entries.push(errors);
            entries
        };
        self.list(rows, columns, ON_TITLE, &entries)
    }

    fn costs(&self, rows: &Rows<'a>) -> Table {
        let cells = rows.cells();
        let has = |of: fn(&CellFigures, &str) -> Option<Figure>| -> Vec<&'static str> {
            let names = ROLES.iter().map(|(_, name)| *name);
            let any = |name: &&str| cells.iter().any(|cell| of(cell, name).is_some());
            names.filter(any).collect()
        };
        let cpu_of = has(cpu);
        let memory_of: Vec<&str> = has(memory)
            .into_iter()
            .filter(|r| *r != "generator")
            .collect();
        let mut columns: Vec<Column> = Vec::new();
        for role in &cpu_of {
            columns.push(column(format!("CPU {role}"), "µs/req", true));
        }
        columns.push(column("limit", "busy: subject's side, generator", false));
        for role in &memory_of {
            columns.push(detail(column(format!("memory {role}"), "peak", true)));
        }
        let entries = |cell: &CellFigures| {
            let mut entries: Vec<Entry> = Vec::new();
            for role in &cpu_of {
                let mut entry = cpu_entry(cell, role);
                if *role == "subject" {
                    entry.marks = self.notes.marks(&cell.cell, ON_CPU);
                }
                entries.push(entry);
            }
            entries.push(limit(cell));
            for role in &memory_of {
                let path = format!("service.memory_peak_bytes.{role}.median");
                let value = median(memory(cell, role));
                entries.push(Entry::figure(path, value, numbers::bytes));
            }
            entries
        };
        self.list(rows, columns, &[], &entries)
    }

    fn durability(&self, rows: &Rows<'a>) -> Table {
        let cells = rows.cells();
        let counters = cells
            .iter()
            .filter_map(|c| c.service.as_ref()?.counter.as_ref());
        let ended = counters.filter_map(|counter| counter.ended_by).next();
        let mut columns = vec![
            column("acknowledged", "all blocks", true),
            column("counted", "", true),
        ];
        if let Some(ended) = ended {
            columns.push(column("kept", words::after_what(ended), true));
        }
        columns.push(column("lost", "", false));
        let entries = |cell: &CellFigures| {
            let Some(counter) = cell.service.as_ref().and_then(|s| s.counter.as_ref()) else {
                return Vec::new();
            };
            let mut entries = vec![acknowledged(counter), counted(counter)];
            entries[1].marks = self.notes.marks(&cell.cell, ON_COUNTED);
            if ended.is_some() {
                entries.push(kept(counter));
            }
            let mut lost = Entry::text(words::lost(counter));
            if counter.lost > 0 && counter.asked > 1 && !counter.keeps_nothing {
                lost.below = format!("in {} of {} blocks", counter.blocks_lost, counter.asked);
            }
            lost.marks = self.notes.marks(&cell.cell, ON_LOST);
            entries.push(lost);
            entries
        };
        let mut table = self.list(rows, columns, &[], &entries);
        let width = table.columns.len();
        for row in &mut table.rows {
            row.entries.resize(width, Entry::text(NOTHING));
        }
        table
    }
}

/// Titles of the rows that others stand beside, in the order of the table.
fn baselines(rows: &Rows<'_>) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    for (row, _) in &rows.rows {
        if let Some(title) = row
            .baseline
            .as_ref()
            .filter(|title| !titles.contains(title))
        {
            titles.push(title.clone());
        }
    }
    titles
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

fn latencies(cell: &CellFigures) -> Vec<Entry> {
    if cell.is_overloaded() {
        return ["overloaded", NOTHING, NOTHING].map(Entry::text).into();
    }
    LATENCIES.map(|metric| metric.entry(cell)).into()
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
    let Some(service) = &cell.service else {
        return Entry::text(NOTHING);
    };
    let blocks = service
        .limits
        .values()
        .fold(0_u32, |sum, n| sum.saturating_add(*n));
    let most = service.limits.get(service.limit).copied().unwrap_or(0);
    let text = match words::limit(service.limit) {
        None => "not known".to_owned(),
        Some(name) if most < blocks => format!("{name} in {most} of {blocks} blocks"),
        Some(name) => name.to_owned(),
    };
    let busy = |figure| median(figure).map_or_else(|| NOTHING.to_owned(), numbers::percent);
    Entry {
        text,
        below: format!(
            "{}, {}",
            busy(service.busy_subject),
            busy(service.busy_generator)
        ),
        ..Entry::default()
    }
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

/// Columns that a table of all combinations has besides: CPU time of what is around its servers, and
/// what became of their numbers. Each with the entries of the cells, in their order.
pub fn more_columns(cells: &[&CellFigures], notes: &Notes) -> Vec<(Column, Vec<Entry>)> {
    let mut columns = Vec::new();
    for role in ["front", "backing"] {
        if cells.iter().any(|cell| cpu(cell, role).is_some()) {
            let entries = cells.iter().map(|cell| match cpu(cell, role) {
                Some(_) => cpu_entry(cell, role),
                None => Entry::text(NOTHING),
            });
            columns.push((
                detail(column(format!("CPU {role}"), "µs/req", true)),
                entries.collect(),
            ));
        }
    }
    let counter = |cell: &&CellFigures| cell.service.as_ref()?.counter.clone();
    if cells.iter().any(|cell| counter(cell).is_some()) {
        let codes = [ON_COUNTED, ON_LOST].concat();
        let entries = cells.iter().map(|cell| Entry {
            text: counter(cell).map_or_else(|| NOTHING.to_owned(), |t| words::came_of(&t)),
            marks: notes.marks(&cell.cell, &codes),
            ..Entry::default()
        });
        columns.push((detail(column("durability", "", false)), entries.collect()));
    }
    columns
}
