//! Tables of programs: every work beside the others, the times of one, what settings do, what more threads do.

use prony_findings::Code;

use super::across::{Effect, Efficiency, main_count};
use super::context::{Context, heading, threads_word};
use super::figures::ProgramFigures;
use super::works::{self, Family, Kind};
use super::{Part, captioned, plain};
use crate::figure::spread_word;
use crate::figures::CellFigures;
use crate::grid::{Crossed, Grid, crossed};
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::numbers::{self, BYTES, FigureUnit, NOTHING, RATE, TIME};
use crate::part::{column, ratio_word};
use crate::ratio::RatioFigure;
use crate::settings::{THREADS, without};
use crate::table::{self, Column, Entry, Shown, Table};
use crate::words::paragraph;

/// Codes of the findings that are footnotes on a subject: other work among them.
pub const ON_SUBJECT: &[Code] = &[Code::P010, Code::P012, Code::P015, Code::P017];
/// The same on a time.
pub const ON_ELAPSED: &[Code] = &[Code::P007, Code::P008, Code::P013, Code::P014];
/// The same on memory.
const ON_MEMORY: &[Code] = &[Code::P016];

/// Time of the work.
const ELAPSED: Shown = Shown::new("elapsed", "program.elapsed_ns", TIME).marked(ON_ELAPSED);
/// What is counted, a second.
const COUNTED: Shown = Shown::new("", "rate_per_s", RATE).detail();
const SPEED: Shown = Shown::new("MB/s", "program.bytes_per_s", MEGABYTES).detail();
const MEGABYTES: FigureUnit = FigureUnit::Of(1_000_000);
const CPU: Shown = Shown::new("CPU", "program.cpu_ns", TIME).detail();
/// The most memory of the process.
pub const MEMORY: Shown = Shown::new("memory", "memory_peak_bytes", BYTES)
    .marked(ON_MEMORY)
    .detail();

impl<'a> Context<'a> {
    /// Time and memory of every build of every subject over all works, a table for each number of threads. `None` with fewer than two
    /// works, whose table says it all. Sweeps have sections of their own.
    pub(super) fn overview(&self, families: &[Family<'a>]) -> Option<Part> {
        let timed = || families.iter().filter(|f| f.kind == Kind::Timed);
        if timed().count() < 2 {
            return None;
        }
        let member = |family: &'_ Family<'a>| {
            let largest = family.members.first().map(|first| first.1);
            let members = family.members.clone().into_iter();
            members.map(move |(workload, count)| (Some(count) != largest, workload, count))
        };
        let mut members: Vec<_> = timed().flat_map(member).collect();
        // What was measured again, smaller, stands behind all that can be compared.
        members.sort_by_key(|(is_smaller, ..)| *is_smaller);
        let cells = members.into_iter();
        let cells = cells.flat_map(|(_, workload, count)| self.group(workload, Some(count)));
        let cells: Vec<&CellFigures> = cells.collect();
        let plan = &self.run.plan;
        let place = |cell: &&CellFigures| Crossed {
            row: vec![Entry::text(
                self.unusual_label(&cell.subject, &without(&cell.settings, THREADS)),
            )],
            column: self.heading_of(cell),
            entry: self.time_and_memory(cell),
        };
        let tables = works::all_threads(plan, &cells).into_iter().map(|threads| {
            let own = cells.iter().filter(|c| works::threads(plan, c) == threads);
            let table = crossed(&["subject"], "", own.map(place).collect());
            captioned(threads_word(&threads), table)
        });
        Some(Part {
            title: "Overview".to_owned(),
            before: vec![paragraph("programs: overview")],
            tables: tables.collect(),
            ..Part::default()
        })
    }

    fn heading_of(&self, cell: &CellFigures) -> String {
        let title = works::title(&self.run.plan, &cell.workload);
        heading(title, works::count(cell))
    }

    fn time_and_memory(&self, cell: &CellFigures) -> Entry {
        if !cell.is_measured() {
            return Entry::text(table::absence(cell));
        }
        let codes = [ON_SUBJECT, ON_ELAPSED, ON_MEMORY].concat();
        let below = Metric::MEMORY
            .value(cell)
            .map_or_else(String::new, numbers::bytes);
        let elapsed = self.notes.entry(cell, &ELAPSED);
        self.notes.on(cell, &codes, Entry { below, ..elapsed })
    }

    /// A row for each cell, by threads and then with usual settings first; with the size where
    /// `sizes`.
    pub(super) fn times_table(&self, cells: &[&'a CellFigures], sizes: bool) -> Table {
        let programs: Vec<&ProgramFigures> =
            cells.iter().filter_map(|c| c.program.as_ref()).collect();
        let mut grid = self.subjects(&self.varying(cells));
        if sizes {
            grid = grid.head(column("n", "", true), |cell| {
                Entry::text(numbers::count(works::count(cell).unwrap_or(0)))
            });
        }
        let word = spread_word(programs.iter().filter_map(|p| p.elapsed_ns));
        let elapsed = ELAPSED.with_ends().below(word);
        grid = grid.figure(elapsed.head(), move |cell| {
            let mut entry = self.notes.entry(cell, &elapsed);
            let figure = cell.program.as_ref().and_then(|p| p.elapsed_ns);
            if figure.is_some_and(|of| of.is_of_two_groups()) {
                entry.remark = "range of two groups";
            }
            entry
        });
        let counted = Column {
            title: rate_title(&programs),
            ..COUNTED.head()
        };
        grid = grid.figure(counted, |cell| self.notes.entry(cell, &COUNTED));
        if programs.iter().any(|p| p.handled.is_some()) {
            grid = grid.figure(column("handled", "", true), |cell| {
                let program = cell.program.as_ref();
                let part = program.and_then(|p| Some((p.handled?, p.count)));
                Entry::text(part.map_or_else(|| "all".to_owned(), numbers::part_of))
            });
        }
        grid = grid.shown(self.notes, self.notes.present(cells, [SPEED]));
        if cells.iter().any(|c| c.ratio.is_some()) {
            let reference = self.run.plan.reference.as_deref().unwrap_or(NOTHING);
            let head = column(format!("ratio to {reference}"), ratio_word(cells), true);
            grid = grid.figure(head, ratio);
        }
        let grid = grid.shown(self.notes, [CPU, MEMORY]);
        grid.verdicts(cells).cells(&self.arranged(cells))
    }

    /// A table with a row for each cell, so far with its subject and its values of the settings that vary.
    pub(super) fn subjects<'f>(&'f self, varying: &[&'f str]) -> Grid<'f, &'a CellFigures> {
        let mut grid = Grid::new().head(column("subject", "", false), |cell| Entry {
            below: table::standing(cell),
            ..self.notes.on(cell, ON_SUBJECT, Entry::text(&*cell.subject))
        });
        for name in varying.iter().copied() {
            grid = grid.head(column(name, "", false), move |cell| match name {
                THREADS => Entry::text(works::threads(&self.run.plan, cell)),
                name => Entry::text(cell.settings.get(name).map_or(NOTHING, String::as_str)),
            });
        }
        grid
    }

    /// What the settings do.
    pub(super) fn effects(&self) -> Option<Part> {
        let effects = &self.across.effects;
        let effect = |(at, of): (usize, &Effect)| {
            let title = |w: &String| works::title(&self.run.plan, w).to_owned();
            let change = format!("{}: {} over {}", of.setting, of.value, of.base);
            // Effects of settings are small. What an interval that holds 1 means stands above.
            let show = |ratio: f64| format!("{ratio:.3}");
            Crossed {
                row: [&of.subject, &change].map(Entry::text).into(),
                column: of
                    .workload
                    .as_ref()
                    .map_or("all together".to_owned(), title),
                entry: across_entry("effects", at, &of.ratio, show),
            }
        };
        let mut all: Vec<(usize, &Effect)> = effects.iter().enumerate().collect();
        // What sums the others up stands last.
        all.sort_by_key(|(_, effect)| effect.workload.is_none());
        let word = spread_word(effects.iter().map(|e| e.ratio.figure()));
        let all = all.into_iter().map(effect).collect();
        self.across("settings", crossed(&["subject", "setting"], word, all))
    }

    /// What more threads do.
    pub(super) fn efficiency(&self) -> Option<Part> {
        let cells = self.cells.iter().copied();
        let timed: Vec<&CellFigures> = cells.filter(|c| works::is_timed(c)).collect();
        let all = self.across.efficiencies.iter().enumerate();
        let shown: Vec<(usize, &Efficiency)> = all
            .filter(|(_, e)| main_count(&timed, &e.workload) == Some(e.count))
            .collect();
        let efficiency = |(at, e): &(usize, &Efficiency)| Crossed {
            row: [
                self.unusual_label(&e.subject, &e.settings),
                e.threads.to_string(),
                numbers::ratio(e.most),
            ]
            .map(Entry::text)
            .into(),
            column: works::title(&self.run.plan, &e.workload).to_owned(),
            // That it is not shown to differ from 1 is the best that can be, and no remark.
            entry: across_entry("efficiencies", *at, &e.ratio, numbers::ratio),
        };
        let all = shown.iter().map(efficiency);
        let word = spread_word(shown.iter().map(|(_, e)| e.ratio.figure()));
        let heads = ["subject", "threads", "possible"];
        self.across("threads", crossed(&heads, word, all.collect()))
    }

    /// A section on what several cells make together; `None` where they make nothing.
    fn across(&self, what: &str, table: Table) -> Option<Part> {
        (!table.rows.is_empty()).then(|| Part {
            title: match what {
                "threads" => "What more threads do".to_owned(),
                _ => "What the settings do".to_owned(),
            },
            before: vec![paragraph(&format!("programs: {what}"))],
            tables: vec![plain(table)],
            ..Part::default()
        })
    }
}

fn rate_title(programs: &[&ProgramFigures]) -> String {
    let measured = programs.iter().filter(|p| !p.measure.is_empty());
    match distinct(measured.map(|p| &p.measure))[..] {
        [one] => format!("{one}/s"),
        _ => "count/s".to_owned(),
    }
}

/// The ratio to the reference, with three digits where it is small.
fn ratio(cell: &CellFigures) -> Entry {
    match &cell.ratio {
        Some(ratio) => table::of_ratio("ratio.ratio", ratio, digits),
        None => table::ratio(cell),
    }
}

/// Three digits, and two decimals from 1 to 10.
fn digits(ratio: f64) -> String {
    match (0.9995..10.0).contains(&ratio) {
        true => numbers::ratio(ratio),
        false => numbers::three(ratio),
    }
}

/// A ratio that several cells make together, whose conclusion what stands above the table tells.
fn across_entry(list: &str, at: usize, ratio: &RatioFigure, show: fn(f64) -> String) -> Entry {
    Entry {
        remark: "",
        ..table::of_ratio(format!("/programs/{list}/{at}/ratio/ratio"), ratio, show)
    }
}
