//! Tables of programs.

use super::across::{Effect, Efficiency, ScalingFigure, THREADS, decimals, distinct};
use super::figures::{DurationFigures, MissedRun, ProgramFigures};
use super::{
    Captioned, Context, Part, Settings, heading, not_run, pictures, plain, threads_word,
    with_settings,
};
use crate::figures::{CellFigures, Figure, RatioFigure, name_of};
use crate::numbers::{self, NOTHING};
use crate::table::{self, Column, Entry, Row, Table, row_of};
use prony_findings::Code;

/// Missed deadlines that a document lists one by one; `summary.json` has all that were recorded.
const MISSED_MAX: usize = 50;

/// Codes of the findings that are footnotes on a column.
const ON_SUBJECT: &[Code] = &[Code::P010, Code::P012, Code::P017];
const ON_ELAPSED: &[Code] = &[Code::P007, Code::P008, Code::P009, Code::P013, Code::P014];
const ON_MEMORY: &[Code] = &[Code::P016];
const ON_CHECKSUM: &[Code] = &[Code::P015];

fn column(title: impl Into<String>, below: &'static str, numeric: bool) -> Column {
    Column {
        title: title.into(),
        below,
        numeric,
        markdown_only: false,
    }
}

fn verdict_column() -> Column {
    Column {
        markdown_only: true,
        ..column("verdict", "", false)
    }
}

/// `95 % interval` where some figure has one.
fn spread_word(interval: bool) -> &'static str {
    if interval { "95 % interval" } else { "range" }
}

fn median(figure: Option<Figure>) -> Option<f64> {
    figure.map(|f| f.median)
}

/// A median with its range or interval below it.
fn with_ends(mut entry: Entry, figure: Option<Figure>, show: fn(f64, f64) -> String) -> Entry {
    // The range of one block would repeat its value.
    if let Some(of) = figure.filter(|of| of.blocks > 1) {
        entry.below = show(of.low, of.high);
    }
    entry
}

impl<'a> Context<'a> {
    /// A row for each cell of one workload and size.
    pub(super) fn times_table(&self, cells: &[&CellFigures]) -> Table {
        let varying = self.varying(cells);
        let programs: Vec<&ProgramFigures> =
            cells.iter().filter_map(|c| c.program.as_ref()).collect();
        let interval = |of: fn(&ProgramFigures) -> Option<Figure>| {
            programs
                .iter()
                .filter_map(|p| of(p))
                .any(|f| f.is_interval())
        };
        let bytes = programs.iter().any(|p| p.bytes_per_s.is_some());
        let mut columns = vec![column("subject", "", false)];
        columns.extend(varying.iter().map(|name| column(*name, "", false)));
        columns.push(column(
            "elapsed",
            spread_word(interval(|p| p.elapsed_ns)),
            true,
        ));
        columns.push(column(rate_title(&programs), "", true));
        if bytes {
            columns.push(column("MB/s", "", true));
        }
        columns.push(self.ratio_column(cells));
        for title in ["wall", "CPU user", "CPU system", "memory peak"] {
            columns.push(column(title, "", true));
        }
        columns.push(column("checksum", "", false));
        columns.push(verdict_column());
        let row = |cell: &&CellFigures| {
            let entries = self.times_row(cell, &varying, bytes, columns.len());
            row_of(cell, entries)
        };
        let rows = cells.iter().map(row).collect();
        Table { columns, rows }
    }

    fn ratio_column(&self, cells: &[&CellFigures]) -> Column {
        let interval = |c: &&CellFigures| c.ratio.as_ref().is_some_and(|r| r.spread == "interval");
        match &self.run.plan.reference {
            Some(id) => column(
                format!("rate, ratio to {id}"),
                spread_word(cells.iter().any(interval)),
                true,
            ),
            None => column("rate, ratio", "", true),
        }
    }

    fn times_row(
        &self,
        cell: &CellFigures,
        varying: &[&str],
        bytes: bool,
        width: usize,
    ) -> Vec<Entry> {
        let mut entries = self.row_head(cell, varying);
        let program = match &cell.program {
            Some(program) if !cell.trials.measured.is_empty() => program,
            _ => return self.unmeasured(cell, entries, width),
        };
        let elapsed = median(program.elapsed_ns);
        let elapsed = Entry::figure("program.elapsed_ns.median", elapsed, numbers::time);
        let mut elapsed = with_ends(elapsed, program.elapsed_ns, numbers::times);
        elapsed.marks = self.notes.marks(&cell.cell, ON_ELAPSED);
        entries.push(elapsed);
        let rate = median(cell.rate_per_s);
        entries.push(Entry::figure("rate_per_s.median", rate, numbers::rate));
        if bytes {
            let rate = median(program.bytes_per_s);
            entries.push(Entry::figure("program.bytes_per_s.median", rate, megabytes));
        }
        entries.push(ratio(cell));
        for (figure, value) in [
            ("program.wall_ns.median", program.wall_ns),
            ("program.cpu_user_ns.median", program.cpu_user_ns),
            ("program.cpu_system_ns.median", program.cpu_system_ns),
        ] {
            entries.push(Entry::figure(figure, median(value), numbers::time));
        }
        entries.push(self.memory(cell));
        let mut checksum = Entry::text(checksum_word(cell, program));
        checksum.marks = self.notes.marks(&cell.cell, ON_CHECKSUM);
        entries.push(checksum);
        entries.push(Entry::text(table::verdict_text(cell)));
        entries
    }

    /// Subject, and its values of the settings that vary.
    fn row_head(&self, cell: &CellFigures, varying: &[&str]) -> Vec<Entry> {
        let name = Entry {
            text: name_of(&self.run.plan, &cell.subject).to_owned(),
            below: table::standing(cell).to_owned(),
            marks: self.notes.marks(&cell.cell, ON_SUBJECT),
            ..Entry::default()
        };
        let value = |name: &&str| {
            let value = cell.settings.get(*name);
            Entry::text(value.map_or(NOTHING, String::as_str))
        };
        std::iter::once(name)
            .chain(varying.iter().map(value))
            .collect()
    }

    /// A row without figures.
    fn unmeasured(&self, cell: &CellFigures, head: Vec<Entry>, width: usize) -> Vec<Entry> {
        let mut entries = head;
        entries.push(Entry::text(table::absence(cell)));
        entries.resize(width.max(1) - 1, Entry::text(NOTHING));
        entries.push(Entry::text(table::verdict_text(cell)));
        entries
    }

    fn memory(&self, cell: &CellFigures) -> Entry {
        let peak = median(cell.memory_peak_bytes);
        let mut entry = Entry::figure("memory_peak_bytes.median", peak, numbers::bytes);
        entry.marks = self.notes.marks(&cell.cell, ON_MEMORY);
        entry
    }

    /// Time and memory of every build of every subject over all works, a table for each number
    /// of threads. `None` with fewer than two works, whose table says it all.
    pub(super) fn overview(&self) -> Option<Part> {
        let shown: Vec<&CellFigures> = self
            .timed()
            .into_iter()
            .flat_map(|(workload, count)| self.group(workload, count))
            .collect();
        let columns = distinct(&shown, |c| self.column_key(c));
        if distinct(&shown, |c| c.workload.as_str()).len() < 2 {
            return None;
        }
        let threads = distinct(&shown, |c| c.settings.get(THREADS));
        let table = |value: Option<&String>| {
            let own = shown.iter().copied();
            let own: Vec<&CellFigures> = own.filter(|c| c.settings.get(THREADS) == value).collect();
            Captioned {
                caption: value.map_or_else(String::new, |v| threads_word(v)),
                table: self.overview_table(&columns, &own),
            }
        };
        Some(Part {
            title: "Overview".to_owned(),
            before: vec![
                "Median time of the work by the program's own clock, and peak memory of its process. \
                 Each thread does the whole of the work."
                    .to_owned(),
            ],
            tables: threads.into_iter().map(table).collect(),
            ..Part::default()
        })
    }

    fn column_key(&self, cell: &'a CellFigures) -> (&'a str, Option<u64>, Settings) {
        let count = cell.program.as_ref().map(|p| p.count);
        (&cell.workload, count, self.special_of(&cell.settings))
    }

    fn overview_table(
        &self,
        columns: &[(&'a str, Option<u64>, Settings)],
        cells: &[&'a CellFigures],
    ) -> Table {
        let row_key = |c: &'a CellFigures| (c.subject.as_str(), self.common_of(&c.settings));
        let rows = distinct(cells, row_key).into_iter();
        let rows = rows.map(|(subject, common)| {
            let label = with_settings(self.name(subject), &common);
            let mut entries = vec![Entry::text(label)];
            entries.extend(columns.iter().map(|wanted| {
                let fits = |c: &&&'a CellFigures| {
                    row_key(c) == (subject, common.clone()) && self.column_key(c) == *wanted
                };
                match cells.iter().find(fits) {
                    Some(cell) => self.overview_entry(cell),
                    None => self.absence(subject, wanted.0, wanted.1),
                }
            }));
            let is_reference = self.run.plan.reference.as_deref() == Some(subject);
            Row {
                class: if is_reference { "reference" } else { "" }.to_owned(),
                entries,
                ..Row::default()
            }
        });
        let mut heads = vec![column("subject", "", false)];
        heads.extend(columns.iter().map(|(workload, count, special)| {
            column(with_settings(&heading(workload, *count), special), "", true)
        }));
        Table {
            rows: rows.collect(),
            columns: heads,
        }
    }

    fn overview_entry(&self, cell: &CellFigures) -> Entry {
        let Some(program) = cell.program.as_ref().filter(|p| p.elapsed_ns.is_some()) else {
            return Entry::text(table::absence(cell));
        };
        let path = self.path(cell, "program.elapsed_ns.median");
        let mut entry = Entry::figure(path, median(program.elapsed_ns), numbers::time);
        entry.below = median(cell.memory_peak_bytes).map_or_else(String::new, numbers::bytes);
        let codes = [ON_SUBJECT, ON_ELAPSED, ON_MEMORY, ON_CHECKSUM].concat();
        entry.marks = self.notes.marks(&cell.cell, &codes);
        entry
    }

    fn absence(&self, subject: &str, workload: &str, count: Option<u64>) -> Entry {
        Entry::text(match not_run(&self.run.plan, subject, workload, count) {
            Some(not) if not.remedy.is_empty() => "not applicable",
            Some(_) => "not run",
            None => NOTHING,
        })
    }

    /// What the settings do.
    pub(super) fn effects(&self) -> Option<Part> {
        let effects = &self.across.effects;
        let first = effects.first()?;
        let mut columns: Vec<Option<&str>> = Vec::new();
        for effect in effects {
            let column = effect.workload.as_deref();
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        // What sums the others up stands last.
        columns.sort_by_key(Option::is_none);
        let mut keys: Vec<(&str, &str, &str, &str)> = Vec::new();
        for effect in effects {
            let key = change_of(effect);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let row = |key: &(&'a str, &'a str, &'a str, &'a str)| {
            let (setting, value, base, subject) = *key;
            let mut entries = vec![
                Entry::text(self.name(subject)),
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
        let word = spread_word(first.ratio.spread == "interval");
        let mut heads = vec![column("subject", "", false), column("setting", "", false)];
        heads.extend(
            columns
                .iter()
                .map(|workload| column(workload.unwrap_or("all together"), word, true)),
        );
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
        let first = shown.first()?.1;
        let row_key =
            |e: &'a Efficiency| (e.subject.as_str(), self.common_of(&e.settings), e.threads);
        let column_key = |e: &'a Efficiency| (e.workload.as_str(), self.special_of(&e.settings));
        let (mut rows, mut columns) = (Vec::new(), Vec::new());
        for (_, e) in &shown {
            let (row, column) = ((row_key(e), e.most), column_key(e));
            if !rows.contains(&row) {
                rows.push(row);
            }
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let lines = rows.iter().map(|(key, most)| {
            let mut entries = vec![
                Entry::text(with_settings(self.name(key.0), &key.1)),
                Entry::text(key.2.to_string()),
                Entry::text(numbers::ratio(*most)),
            ];
            entries.extend(columns.iter().map(|wanted| {
                let fits = |(_, e): &&(usize, &'a Efficiency)| {
                    row_key(e) == *key && column_key(e) == *wanted
                };
                shown.iter().find(fits).map_or_else(
                    || Entry::text(NOTHING),
                    |(at, e)| efficiency_entry(*at, &e.ratio),
                )
            }));
            Row {
                entries,
                ..Row::default()
            }
        });
        let word = spread_word(first.ratio.spread == "interval");
        let mut heads = vec![
            column("subject", "", false),
            column("threads", "", true),
            column("possible", "", true),
        ];
        let names = columns
            .iter()
            .map(|(workload, s)| with_settings(workload, s));
        heads.extend(names.map(|name| column(name, word, true)));
        Some(Part {
            title: "What more threads do".to_owned(),
            before: vec![EFFICIENCY.to_owned()],
            tables: vec![plain(Table {
                rows: lines.collect(),
                columns: heads,
            })],
            ..Part::default()
        })
    }

    /// How time grows with size, a section for each workload with a sweep.
    pub(super) fn scaling(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut workloads: Vec<&str> = Vec::new();
        for figure in &self.across.scaling {
            if !workloads.contains(&figure.workload.as_str()) {
                workloads.push(&figure.workload);
            }
        }
        for workload in workloads {
            let all = self.across.scaling.iter().enumerate();
            let own: Vec<(usize, &ScalingFigure)> =
                all.filter(|(_, f)| f.workload == workload).collect();
            let mut after = Vec::new();
            if own.iter().any(|(_, f)| f.start_up) {
                after.push(START_UP.to_owned());
            }
            parts.push(Part {
                title: format!("How {workload} grows with its size"),
                before: vec![SCALING.to_owned()],
                pictures: vec![pictures::growth(self, &own)],
                tables: vec![plain(self.scaling_table(&own))],
                after,
                ..Part::default()
            });
        }
        parts
    }

    fn scaling_table(&self, figures: &[(usize, &ScalingFigure)]) -> Table {
        let names = self.run.plan.settings.iter().map(|s| s.name.as_str());
        let differs = |name: &&str| {
            let first = figures.first().map(|(_, f)| f.settings.get(*name));
            figures
                .iter()
                .any(|(_, f)| Some(f.settings.get(*name)) != first)
        };
        let varying: Vec<&str> = names.filter(differs).collect();
        let row = |(at, f): &(usize, &ScalingFigure)| {
            let value = |name: &&str| {
                let value = f.settings.get(*name);
                Entry::text(value.map_or(NOTHING, String::as_str))
            };
            let mut entries = vec![Entry::text(name_of(&self.run.plan, &f.subject))];
            entries.extend(varying.iter().map(value));
            entries.extend(scaling_entries(*at, f));
            Row {
                entries,
                ..Row::default()
            }
        };
        let interval = figures.iter().any(|(_, f)| f.spread == "interval");
        let mut columns = vec![column("subject", "", false)];
        columns.extend(varying.iter().map(|name| column(*name, "", false)));
        columns.extend([
            column("sizes", "", false),
            column("time of the smallest", "", true),
            column("of the largest", "", true),
            column("exponent", spread_word(interval), true),
            column("small end", "", true),
            column("large end", "", true),
            column("what follows", "", false),
        ]);
        Table {
            columns,
            rows: figures.iter().map(row).collect(),
        }
    }

    /// A row for each cell of a job that is run again and again.
    pub(super) fn lengths_table(&self, cells: &[&CellFigures]) -> Table {
        let varying = self.varying(cells);
        let mut columns = vec![column("subject", "", false)];
        columns.extend(varying.iter().map(|name| column(*name, "", false)));
        for title in [
            "runs",
            "min",
            "average",
            "p99",
            "p99.9",
            "max",
            "deadline",
            "missed",
            "memory peak",
        ] {
            columns.push(column(title, "", true));
        }
        columns.push(verdict_column());
        let row = |cell: &&CellFigures| {
            let head = self.row_head(cell, &varying);
            let durations = cell.program.as_ref().and_then(|p| p.durations.as_ref());
            let entries = match durations {
                Some(durations) => {
                    let mut entries = head;
                    let marks = self.notes.marks(&cell.cell, ON_ELAPSED);
                    entries.extend(lengths_entries(durations, marks));
                    entries.push(self.memory(cell));
                    entries.push(Entry::text(table::verdict_text(cell)));
                    entries
                }
                None => self.unmeasured(cell, head, columns.len()),
            };
            row_of(cell, entries)
        };
        let rows = cells.iter().map(row).collect();
        Table { columns, rows }
    }

    /// Every missed deadline, up to a number, and what the table leaves out.
    pub(super) fn missed_table(
        &self,
        cells: &[&'a CellFigures],
    ) -> (Option<Captioned>, Vec<String>) {
        let labels = self.labels(cells);
        let durations = |c: &'a CellFigures| c.program.as_ref()?.durations.as_ref();
        let all: Vec<(&str, &DurationFigures)> = cells
            .iter()
            .zip(&labels)
            .filter_map(|(cell, label)| Some((label.as_str(), durations(cell)?)))
            .collect();
        let with: Vec<&(&str, &DurationFigures)> =
            all.iter().filter(|(_, d)| d.missed_count > 0).collect();
        if with.is_empty() {
            let any = all.iter().any(|(_, d)| d.deadline_ns > 0);
            let said = any.then(|| "No deadline was missed.".to_owned());
            return (None, said.into_iter().collect());
        }
        let each = (MISSED_MAX / with.len()).max(1);
        let (mut rows, mut said) = (Vec::new(), Vec::new());
        for (label, durations) in with {
            let named = durations.missed.len();
            let shown = named.min(each);
            rows.extend(
                durations.missed[..shown]
                    .iter()
                    .map(|run| missed_row(label, *run, durations)),
            );
            if durations.missed_count > shown as u64 {
                said.push(format!(
                    "{label} missed {} in all: the table has {shown}, and summary.json the {} that the program \
                     named.",
                    numbers::count(durations.missed_count),
                    numbers::count(named as u64),
                ));
            }
        }
        let caption = if said.is_empty() {
            "Every missed deadline"
        } else {
            "Missed deadlines"
        };
        let columns = vec![
            column("subject", "", false),
            column("block", "", true),
            column("run", "", true),
            column("took", "", true),
            column("over the deadline by", "", true),
        ];
        let table = Captioned {
            caption: caption.to_owned(),
            table: Table { columns, rows },
        };
        (Some(table), said)
    }
}

const EFFECTS: &str = "Rate with a value of the setting over the rate with its first value, all else equal, in the \
     same block: over 1 is faster. Where other settings vary, too, it is the geometric mean over their \
     combinations; all together gives each work the same weight. An interval that holds 1 shows no \
     difference.";
const EFFICIENCY: &str = "Efficiency: rate with k threads over k times the rate with one thread, in the same block. At 1, k \
     threads do k times the work in the same time. Where there are fewer cores than threads no more than \
     cores ÷ threads is possible.";
const SCALING: &str = "The exponent p of time = constant × N^p: in each block the slope of the logarithms over all sizes, and \
     the interval over the blocks' slopes. What follows is said of the sizes measured and of no others.";
const START_UP: &str = "‡ The smallest size takes less than 10 ms: what a process does once shows in it, so that growth may look \
     slower at that end than it is.";

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

/// What is to be said of a checksum.
fn checksum_word(cell: &CellFigures, program: &ProgramFigures) -> &'static str {
    if cell.findings.contains(&Code::P015) {
        "differs"
    } else if program.checksum.is_empty() {
        "none"
    } else if program.checksum_others == 0 {
        "nothing to compare"
    } else {
        "agrees"
    }
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

/// Two decimals, and three digits under 1.
fn digits(ratio: f64) -> String {
    if ratio < 0.9995 {
        numbers::three(ratio)
    } else {
        numbers::ratio(ratio)
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

fn efficiency_entry(at: usize, ratio: &RatioFigure) -> Entry {
    let path = format!("/programs/efficiencies/{at}/ratio/ratio");
    let entry = table::of_ratio(path, ratio, numbers::ratio);
    Entry {
        // That it is not shown to differ from 1 is the best that can be, and no remark.
        remark: "",
        ..entry
    }
}

fn scaling_entries(at: usize, f: &ScalingFigure) -> Vec<Entry> {
    let path = |figure: &str| format!("/programs/scaling/{at}/{figure}");
    let mut exponent = Entry::figure(path("exponent"), Some(f.exponent), decimals);
    if f.blocks > 1 {
        exponent.below = format!("{}–{}", decimals(f.low), decimals(f.high));
    }
    let ends = (f.points.first(), f.points.last());
    let sizes = match ends {
        (Some(first), Some(last)) => format!(
            "{} from {} to {}",
            f.points.len(),
            numbers::count(first.0),
            numbers::count(last.0)
        ),
        _ => NOTHING.to_owned(),
    };
    let time = |place: usize, point: Option<&(u64, f64)>| {
        let value = point.map(|point| point.1);
        Entry::figure(path(&format!("points/{place}/1")), value, numbers::time)
    };
    let mark = if f.start_up { " ‡" } else { "" };
    vec![
        Entry::text(sizes),
        time(0, ends.0),
        time(f.points.len().saturating_sub(1), ends.1),
        exponent,
        Entry::figure(path("small_end"), Some(f.small_end), decimals),
        Entry::figure(path("large_end"), Some(f.large_end), decimals),
        Entry::text(format!("{}{mark}", f.says)),
    ]
}

fn lengths_entries(durations: &DurationFigures, marks: Vec<usize>) -> Vec<Entry> {
    let time = |figure: &'static str, ns: Option<u64>| {
        Entry::figure(figure, ns.map(|ns| ns as f64), numbers::time)
    };
    let count = |figure: &'static str, count: u64| Entry {
        text: numbers::count(count),
        ..Entry::figure(figure, Some(count as f64), numbers::three)
    };
    let mean = median(durations.mean_ns);
    let mut p99_9 = time("program.durations.p99_9_ns", durations.p99_9_ns);
    p99_9.few = durations.p99_9_ns.is_some() && !durations.p99_9_supported;
    let deadline = Some(durations.deadline_ns).filter(|ns| *ns > 0);
    vec![
        count("program.durations.runs", durations.runs),
        time("program.durations.min_ns", Some(durations.min_ns)),
        Entry {
            marks,
            ..Entry::figure("program.durations.mean_ns.median", mean, numbers::time)
        },
        time("program.durations.p99_ns", durations.p99_ns),
        p99_9,
        time("program.durations.max_ns", Some(durations.max_ns)),
        time("program.durations.deadline_ns", deadline),
        count("program.durations.missed_count", durations.missed_count),
    ]
}

fn missed_row(label: &str, run: MissedRun, durations: &DurationFigures) -> Row {
    let over = run.ns.saturating_sub(durations.deadline_ns);
    Row {
        entries: vec![
            Entry::text(label),
            Entry::text(run.block.to_string()),
            Entry::text(numbers::count(run.run)),
            Entry::text(numbers::time(run.ns as f64)),
            Entry::text(numbers::time(over as f64)),
        ],
        ..Row::default()
    }
}
