//! Tables of programs: the times of one work, what settings do, what more threads do.

use prony_findings::Code;

use super::across::{Effect, Efficiency};
use super::context::Context;
use super::figures::ProgramFigures;
use super::works::{self, Rows};
use super::{Part, plain};
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::numbers::{self, NOTHING};
use crate::part::{column, detail, figures_word, median, ratio_word, ratios_word, with_ends};
use crate::ratio::RatioFigure;
use crate::settings::{Settings, THREADS, with_settings};
use crate::table::{self, Entry, Table};

/// Codes of the findings that are footnotes on a subject: other work among them.
pub const ON_SUBJECT: &[Code] = &[Code::P010, Code::P012, Code::P015, Code::P017];
/// The same on a time.
pub const ON_ELAPSED: &[Code] = &[Code::P007, Code::P008, Code::P013, Code::P014];
/// The same on memory.
pub const ON_MEMORY: &[Code] = &[Code::P016];

impl<'a> Context<'a> {
    /// A row for each cell, by threads and then with usual settings first; with the size where
    /// `sizes`.
    pub(super) fn times_table(&self, cells: &[&'a CellFigures], sizes: bool) -> Table {
        let programs: Vec<&ProgramFigures> =
            cells.iter().filter_map(|c| c.program.as_ref()).collect();
        let mut grid = self.subjects(&self.varying(cells));
        if sizes {
            grid = grid.head(column("n", "", true), |cell| {
                let count = cell.program.as_ref().map_or(0, |p| p.count);
                Entry::text(numbers::count(count))
            });
        }
        let word = figures_word(programs.iter().filter_map(|p| p.elapsed_ns));
        grid = grid
            .figure(column("elapsed", word, true), |cell| {
                let figure = cell.program.as_ref().and_then(|p| p.elapsed_ns);
                let path = "program.elapsed_ns.median";
                let elapsed = Entry::figure(path, median(figure), numbers::time);
                let mut elapsed = with_ends(elapsed, figure, numbers::times);
                if figure.is_some_and(|of| table::is_of_two_groups(of.is_interval(), of.blocks)) {
                    elapsed.remark = "range of two groups";
                }
                self.notes.on(cell, ON_ELAPSED, elapsed)
            })
            .figure(detail(column(rate_title(&programs), "", true)), |cell| {
                Metric::RATE.entry(cell)
            });
        if programs.iter().any(|p| p.handled.is_some()) {
            grid = grid.figure(column("handled", "", true), |cell| {
                let part = cell
                    .program
                    .as_ref()
                    .and_then(|p| Some((p.handled?, p.count)));
                Entry::text(part.map_or_else(|| "all".to_owned(), numbers::part_of))
            });
        }
        if programs.iter().any(|p| p.bytes_per_s.is_some()) {
            grid = grid.figure(detail(column("MB/s", "", true)), |cell| {
                let rate = median(cell.program.as_ref().and_then(|p| p.bytes_per_s));
                Entry::figure("program.bytes_per_s.median", rate, megabytes)
            });
        }
        if cells.iter().any(|c| c.ratio.is_some()) {
            let reference = self.run.plan.reference.as_deref().unwrap_or(NOTHING);
            let head = column(format!("ratio to {reference}"), ratio_word(cells), true);
            grid = grid.figure(head, ratio);
        }
        let grid = grid
            .figure(detail(column("CPU", "", true)), |cell| {
                let cpu = median(cell.program.as_ref().and_then(|p| p.cpu_ns));
                Entry::figure("program.cpu_ns.median", cpu, numbers::time)
            })
            .figure(detail(column("memory", "", true)), |cell| self.memory(cell));
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

    pub(super) fn memory(&self, cell: &CellFigures) -> Entry {
        self.notes.on(cell, ON_MEMORY, Metric::MEMORY.entry(cell))
    }

    /// What the settings do.
    pub(super) fn effects(&self) -> Option<Part> {
        let effects = &self.own.across.effects;
        effects.first()?;
        let mut columns = distinct(effects.iter().map(|e| e.workload.as_deref()));
        let keys = distinct(effects.iter().map(change_of));
        // What sums the others up stands last.
        columns.sort_by_key(Option::is_none);
        let mut grid = Grid::new()
            .head(
                column("subject", "", false),
                |key: &(&str, &str, &str, &str)| Entry::text(key.3),
            )
            .head(column("setting", "", false), |(setting, value, base, _)| {
                Entry::text(format!("{setting}: {value} over {base}"))
            });
        let word = ratios_word(effects.iter().map(|e| &e.ratio));
        for workload in columns {
            let title = workload.map_or("all together", |w| works::title(&self.run.plan, w));
            grid = grid.head(column(title, word, true), move |key| {
                let mut all = effects.iter().enumerate();
                let found =
                    all.find(|(_, e)| change_of(e) == *key && e.workload.as_deref() == workload);
                // Three decimals: effects of settings are small. What an interval that holds 1 means stands above.
                let show = |ratio: f64| format!("{ratio:.3}");
                found.map_or_else(
                    || Entry::text(NOTHING),
                    |(at, e)| across_entry("effects", at, &e.ratio, show),
                )
            });
        }
        Some(Part {
            title: "What the settings do".to_owned(),
            before: vec![EFFECTS.to_owned()],
            tables: vec![plain(grid.rows(&keys))],
            ..Part::default()
        })
    }

    /// What more threads do.
    pub(super) fn efficiency(&self) -> Option<Part> {
        let timed = self.timed();
        let all = self.own.across.efficiencies.iter().enumerate();
        let shown: Vec<(usize, &Efficiency)> = all
            .filter(|(_, e)| timed.contains(&(e.workload.as_str(), Some(e.count))))
            .collect();
        shown.first()?;
        let of_rows = shown
            .iter()
            .map(|(_, e)| (&*e.workload, &*e.subject, &e.settings));
        let rows = Rows::new(&self.run.plan, &of_rows.collect::<Vec<_>>());
        let key_of = |e: &'a Efficiency| rows.key(&e.subject, &e.settings);
        let (keys, varying) = rows.arranged(shown.iter().map(|(_, e)| key_of(e)).collect());
        let columns = shown
            .iter()
            .map(|(_, e)| (&*e.workload, rows.rest(&e.settings)));
        let columns: Vec<(&str, Settings)> = distinct(columns);
        let numbers_of_threads = distinct(shown.iter().map(|(_, e)| (e.threads, e.most)));
        let is_of =
            |e: &'a Efficiency, line: &Line<'_>| e.threads == line.1 && key_of(e) == *line.0;
        let lines = numbers_of_threads.into_iter().flat_map(|(threads, most)| {
            let lines = keys.iter().map(move |key| (key, threads, most));
            lines.filter(|line| shown.iter().any(|(_, e)| is_of(e, line)))
        });
        let lines: Vec<Line<'_>> = lines.collect();
        let mut grid = of_row(&varying, |line: &Line<'_>| line.0)
            .head(column("threads", "", true), |line| {
                Entry::text(line.1.to_string())
            })
            .head(column("possible", "", true), |line| {
                Entry::text(numbers::ratio(line.2))
            });
        let word = ratios_word(shown.iter().map(|(_, e)| &e.ratio));
        for (workload, rest) in &columns {
            let title = with_settings(works::title(&self.run.plan, workload), rest);
            let found = |line: &Line<'_>| {
                let fits = |(_, e): &&(usize, &'a Efficiency)| {
                    is_of(e, line) && e.workload == *workload && rows.rest(&e.settings) == *rest
                };
                shown.iter().find(fits)
            };
            grid = grid.head(column(title, word, true), move |line| {
                // That it is not shown to differ from 1 is the best that can be, and no remark.
                found(line).map_or_else(
                    || Entry::text(NOTHING),
                    |(at, e)| across_entry("efficiencies", *at, &e.ratio, numbers::ratio),
                )
            });
        }
        Some(Part {
            title: "What more threads do".to_owned(),
            before: vec![EFFICIENCY.to_owned()],
            tables: vec![plain(grid.rows(&lines))],
            ..Part::default()
        })
    }
}

/// A line of what more threads do: its row, how many threads, and the most that these can.
type Line<'a> = (&'a works::RowKey<'a>, u32, f64);

/// A table with, so far, the subject of each row and those of its settings that are shown.
pub fn of_row<'f, R: Copy + 'f>(
    shown: &[(usize, &'f str)],
    key: fn(R) -> &'f works::RowKey<'f>,
) -> Grid<'f, R> {
    let mut grid = Grid::new().head(column("subject", "", false), move |about| {
        Entry::text(key(about).0)
    });
    for (at, name) in shown.iter().copied() {
        grid = grid.head(column(name, "", false), move |about| {
            Entry::text(key(about).1[at].unwrap_or(NOTHING))
        });
    }
    grid
}

const EFFECTS: &str = "Rate with a value of the setting over the rate with its first value, all else equal, in the \
     same block: over 1 is faster. Where other settings vary, too, it is the geometric mean over their \
     combinations; all together gives each work the same weight. An interval that holds 1 shows no \
     difference.";
const EFFICIENCY: &str = "Efficiency: rate with k threads over k times the rate with one thread, in the same block. At 1, k \
     threads do k times the work in the same time. Where there are fewer cores than threads no more than \
     cores ÷ threads is possible.";

fn rate_title(programs: &[&ProgramFigures]) -> String {
    let measured = programs.iter().filter(|p| !p.measure.is_empty());
    let mut measures: Vec<&str> = measured.map(|p| p.measure.as_str()).collect();
    measures.dedup();
    match measures[..] {
        [one] => format!("{one}/s"),
        _ => "count/s".to_owned(),
    }
}

fn megabytes(bytes_per_s: f64) -> String {
    numbers::three(bytes_per_s / 1e6)
}

fn change_of(effect: &Effect) -> (&str, &str, &str, &str) {
    (
        &effect.setting,
        &effect.value,
        &effect.base,
        &effect.subject,
    )
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
    match ratio {
        _ if ratio < 0.9995 => numbers::three(ratio),
        _ if ratio < 10.0 => numbers::ratio(ratio),
        _ => numbers::three(ratio),
    }
}

/// A ratio that several cells make together, whose conclusion what stands above the table tells.
fn across_entry(list: &str, at: usize, ratio: &RatioFigure, show: fn(f64) -> String) -> Entry {
    Entry {
        remark: "",
        ..table::of_ratio(format!("/programs/{list}/{at}/ratio/ratio"), ratio, show)
    }
}
