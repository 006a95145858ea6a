//! Tables of programs: the times of one work, what settings do, what more threads do.

use prony_findings::Code;

use super::across::{Effect, Efficiency};
use super::context::{Context, with_settings};
use super::figures::ProgramFigures;
use super::works::{self, Rows};
use super::{Part, plain};
use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::numbers::{self, NOTHING};
use crate::part::with_ends;
pub use crate::part::{
    column, detail, median, ratios_word, spread_word, unmeasured, verdict_column, verdicts_differ,
};
use crate::ratio::RatioFigure;
use crate::settings::{Settings, THREADS};
use crate::table::{self, Column, Entry, Row, Table, row_of};

/// Codes of the findings that are footnotes on a subject: other work among them.
pub const ON_SUBJECT: &[Code] = &[Code::P010, Code::P012, Code::P015, Code::P017];
/// The same on a time.
pub const ON_ELAPSED: &[Code] = &[Code::P007, Code::P008, Code::P013, Code::P014];
/// The same on memory.
pub const ON_MEMORY: &[Code] = &[Code::P016];

/// Which columns a table of times has.
struct Shown<'a> {
    varying: Vec<&'a str>,
    sizes: bool,
    bytes: bool,
    ratio: bool,
    verdict: bool,
}

impl<'a> Context<'a> {
    /// A row for each cell, by threads and then with usual settings first; with the size where
    /// `sizes`.
    pub(super) fn times_table(&self, cells: &[&'a CellFigures], sizes: bool) -> Table {
        let programs: Vec<&ProgramFigures> =
            cells.iter().filter_map(|c| c.program.as_ref()).collect();
        let shown = Shown {
            varying: self.varying(cells),
            sizes,
            bytes: programs.iter().any(|p| p.bytes_per_s.is_some()),
            ratio: cells.iter().any(|c| c.ratio.is_some()),
            verdict: verdicts_differ(cells),
        };
        let columns = self.times_columns(cells, &programs, &shown);
        let row = |cell: &&CellFigures| {
            let entries = self.times_row(cell, &shown, columns.len());
            row_of(cell, entries)
        };
        let rows = self.arranged(cells).iter().map(row).collect();
        Table { columns, rows }
    }

    fn times_columns(
        &self,
        cells: &[&CellFigures],
        programs: &[&ProgramFigures],
        shown: &Shown<'_>,
    ) -> Vec<Column> {
        let mut columns = vec![column("subject", "", false)];
        columns.extend(shown.varying.iter().map(|name| column(*name, "", false)));
        if shown.sizes {
            columns.push(column("n", "", true));
        }
        let elapsed = programs.iter().filter_map(|p| p.elapsed_ns);
        let word = spread_word(elapsed.map(|f| (f.is_interval(), f.blocks)));
        columns.push(column("elapsed", word, true));
        columns.push(detail(column(rate_title(programs), "", true)));
        if shown.bytes {
            columns.push(detail(column("MB/s", "", true)));
        }
        if shown.ratio {
            let word = ratios_word(cells.iter().filter_map(|c| c.ratio.as_ref()));
            let reference = self.run.plan.reference.as_deref().unwrap_or(NOTHING);
            columns.push(column(format!("ratio to {reference}"), word, true));
        }
        columns.push(detail(column("CPU", "", true)));
        columns.push(detail(column("memory", "", true)));
        if shown.verdict {
            columns.push(verdict_column());
        }
        columns
    }

    fn times_row(&self, cell: &CellFigures, shown: &Shown<'_>, width: usize) -> Vec<Entry> {
        let mut entries = self.row_head(cell, &shown.varying);
        if shown.sizes {
            let count = cell.program.as_ref().map_or(0, |p| p.count);
            entries.push(Entry::text(numbers::count(count)));
        }
        let program = match &cell.program {
            Some(program) if !cell.trials.measured.is_empty() => program,
            _ => return unmeasured(cell, entries, width, shown.verdict),
        };
        let elapsed = median(program.elapsed_ns);
        let elapsed = Entry::figure("program.elapsed_ns.median", elapsed, numbers::time);
        let mut elapsed = with_ends(elapsed, program.elapsed_ns, numbers::times);
        elapsed.marks = self.notes.marks(&cell.cell, ON_ELAPSED);
        entries.push(elapsed);
        entries.push(Metric::RATE.entry(cell));
        if shown.bytes {
            let rate = median(program.bytes_per_s);
            entries.push(Entry::figure("program.bytes_per_s.median", rate, megabytes));
        }
        if shown.ratio {
            entries.push(ratio(cell));
        }
        let cpu = median(program.cpu_ns);
        entries.push(Entry::figure("program.cpu_ns.median", cpu, numbers::time));
        entries.push(self.memory(cell));
        if shown.verdict {
            entries.push(Entry::text(table::verdict_text(cell)));
        }
        entries
    }

    /// Subject, and its values of the settings that vary.
    pub(super) fn row_head(&self, cell: &CellFigures, varying: &[&str]) -> Vec<Entry> {
        let name = Entry {
            text: cell.subject.clone(),
            below: table::standing(cell),
            marks: self.notes.marks(&cell.cell, ON_SUBJECT),
            ..Entry::default()
        };
        let value = |name: &&str| match *name {
            THREADS => Entry::text(works::threads(&self.run.plan, cell)),
            name => Entry::text(cell.settings.get(name).map_or(NOTHING, String::as_str)),
        };
        std::iter::once(name)
            .chain(varying.iter().map(value))
            .collect()
    }

    pub(super) fn memory(&self, cell: &CellFigures) -> Entry {
        let mut entry = Metric::MEMORY.entry(cell);
        entry.marks = self.notes.marks(&cell.cell, ON_MEMORY);
        entry
    }

    /// What the settings do.
    pub(super) fn effects(&self) -> Option<Part> {
        let effects = &self.across.effects;
        effects.first()?;
        let mut columns: Vec<Option<&str>> = Vec::new();
        let mut keys: Vec<(&str, &str, &str, &str)> = Vec::new();
        for effect in effects {
            let column = effect.workload.as_deref();
            if !columns.contains(&column) {
                columns.push(column);
            }
            if !keys.contains(&change_of(effect)) {
                keys.push(change_of(effect));
            }
        }
        // What sums the others up stands last.
        columns.sort_by_key(Option::is_none);
        let row = |key: &(&'a str, &'a str, &'a str, &'a str)| {
            let (setting, value, base, subject) = *key;
            let mut entries = vec![
                Entry::text(subject),
                Entry::text(format!("{setting}: {value} over {base}")),
            ];
            entries.extend(columns.iter().map(|workload| {
                let fits = |(_, e): &(usize, &Effect)| {
                    change_of(e) == *key && e.workload.as_deref() == *workload
                };
                let found = effects.iter().enumerate().find(fits);
                found.map_or_else(
                    || Entry::text(NOTHING),
                    |(at, e)| effect_entry(at, &e.ratio),
                )
            }));
            Row {
                entries,
                ..Row::default()
            }
        };
        let word = ratios_word(effects.iter().map(|e| &e.ratio));
        let mut heads = vec![column("subject", "", false), column("setting", "", false)];
        heads.extend(columns.iter().map(|workload| {
            let title = workload.map_or("all together", |w| works::title(&self.run.plan, w));
            column(title, word, true)
        }));
        Some(Part {
            title: "What the settings do".to_owned(),
            before: vec![EFFECTS.to_owned()],
            tables: vec![plain(Table {
                rows: keys.iter().map(row).collect(),
                columns: heads,
            })],
            ..Part::default()
        })
    }

    /// What more threads do.
    pub(super) fn efficiency(&self) -> Option<Part> {
        let timed = self.timed();
        let all = self.across.efficiencies.iter().enumerate();
        let shown: Vec<(usize, &Efficiency)> = all
            .filter(|(_, e)| timed.contains(&(e.workload.as_str(), Some(e.count))))
            .collect();
        shown.first()?;
        let of_rows = shown
            .iter()
            .map(|(_, e)| (&*e.workload, &*e.subject, &e.settings));
        let rows = Rows::new(&self.run.plan, &of_rows.collect::<Vec<_>>());
        let keys = shown.iter().map(|(_, e)| rows.key(&e.subject, &e.settings));
        let (keys, varying) = rows.arranged(keys.collect());
        let (mut numbers_of_threads, mut columns) = (Vec::new(), Vec::new());
        for (_, e) in &shown {
            let column: (&str, Settings) = (&e.workload, rows.rest(&e.settings));
            if !columns.contains(&column) {
                columns.push(column);
            }
            if !numbers_of_threads.contains(&(e.threads, e.most)) {
                numbers_of_threads.push((e.threads, e.most));
            }
        }
        let mut lines = Vec::new();
        for (threads, most) in numbers_of_threads {
            for key in &keys {
                let found = columns.iter().map(|(workload, rest)| {
                    let fits = |(_, e): &&(usize, &Efficiency)| {
                        (e.threads, &*e.workload) == (threads, *workload)
                            && rows.key(&e.subject, &e.settings) == *key
                            && rows.rest(&e.settings) == *rest
                    };
                    shown.iter().find(fits)
                });
                let found: Vec<Option<&(usize, &Efficiency)>> = found.collect();
                if found.iter().any(Option::is_some) {
                    let mut entries = row_start(key, &varying);
                    entries.push(Entry::text(threads.to_string()));
                    entries.push(Entry::text(numbers::ratio(most)));
                    entries.extend(found.into_iter().map(efficiency_entry));
                    lines.push(Row {
                        entries,
                        ..Row::default()
                    });
                }
            }
        }
        let word = ratios_word(shown.iter().map(|(_, e)| &e.ratio));
        let mut heads = vec![column("subject", "", false)];
        heads.extend(varying.iter().map(|(_, name)| column(*name, "", false)));
        heads.extend([column("threads", "", true), column("possible", "", true)]);
        heads.extend(columns.iter().map(|(workload, rest)| {
            let title = works::title(&self.run.plan, workload);
            column(with_settings(title, rest), word, true)
        }));
        Some(Part {
            title: "What more threads do".to_owned(),
            before: vec![EFFICIENCY.to_owned()],
            tables: vec![plain(Table {
                rows: lines,
                columns: heads,
            })],
            ..Part::default()
        })
    }
}

/// The subject of a row and those of its settings that are shown.
pub fn row_start(key: &works::RowKey<'_>, shown: &[(usize, &str)]) -> Vec<Entry> {
    let value = |(at, _): &(usize, &str)| Entry::text(key.1[*at].unwrap_or(NOTHING));
    let name = std::iter::once(Entry::text(key.0));
    name.chain(shown.iter().map(value)).collect()
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

/// Three decimals: effects of settings are small.
fn effect_entry(at: usize, ratio: &RatioFigure) -> Entry {
    let path = format!("/programs/effects/{at}/ratio/ratio");
    let entry = table::of_ratio(path, ratio, |ratio| format!("{ratio:.3}"));
    Entry {
        // What an interval that holds 1 means stands above the table.
        remark: "",
        ..entry
    }
}

fn efficiency_entry(found: Option<&(usize, &Efficiency)>) -> Entry {
    let Some((at, efficiency)) = found else {
        return Entry::text(NOTHING);
    };
    let path = format!("/programs/efficiencies/{at}/ratio/ratio");
    let entry = table::of_ratio(path, &efficiency.ratio, numbers::ratio);
    Entry {
        // That it is not shown to differ from 1 is the best that can be, and no remark.
        remark: "",
        ..entry
    }
}
