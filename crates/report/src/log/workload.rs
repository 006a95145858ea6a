//! One workload of an entry: its tables, where its latencies lie, what failed.
//!
//! Not for: what is said of the differences between entries (`page`).

use super::entry::{CellEntry, Latency, Section};
use crate::escape::{html, markdown, markdown_block};
use crate::grid::Grid;
use crate::lists::distinct;
use crate::markdown::table;
use crate::numbers::{self, NOTHING};
use crate::part::column;
use crate::table::{Column, Entry as Text, Table};

/// Kinds of errors by their names in the records, and in words.
const KINDS: [(&str, &str); 18] = [
    ("refused", "connection refused"),
    ("reset", "connection reset"),
    ("closed", "closed before the answer was whole"),
    ("timeout", "no answer in time"),
    ("protocol", "answer that is not HTTP"),
    ("wrong_answer", "wrong answer"),
    ("check", "answer that failed a check"),
    ("system", "error of the system"),
    ("connect_refused", "refused while connecting"),
    ("connect_reset", "reset while connecting"),
    ("connect_closed", "closed while connecting"),
    ("connect_timeout", "not let in in time"),
    (
        "connect_protocol",
        "answer that is not HTTP, while connecting",
    ),
    ("connect_wrong_answer", "wrong answer while connecting"),
    ("connect_system", "error of the system while connecting"),
    ("unexpected_status", "unexpected status"),
    ("drain_failed", "failed after the window"),
    ("abandoned", "never answered"),
];
/// The counters that have columns of their own where any rose.
const QUEUE: [&str; 2] = ["listen overflows", "listen drops"];

/// The text of a workload's region.
pub fn section(section: &Section) -> String {
    let mut text = format!("### {}\n\n", markdown(&section.title));
    if !section.request.is_empty() {
        text.push_str(&format!("{}\n\n", markdown(&section.request)));
    }
    let sizes = connections(&section.cells);
    let mut folded = String::new();
    for size in &sizes {
        let own: Vec<&CellEntry> = section
            .cells
            .iter()
            .filter(|c| c.connections == *size)
            .collect();
        let caption = match *size > 0 && sizes.len() > 1 {
            true => format!("**{}**\n\n", connection_words(*size)),
            false => String::new(),
        };
        text.push_str(&format!("{caption}{}\n\n", table(&first(&own, section))));
        text.push_str(&limits(&own));
        if let Some(others) = others(&own, section) {
            folded.push_str(&format!("{caption}{}\n\n", table(&others)));
        }
    }
    if sizes.len() == 1 && sizes[0] > 0 {
        text.push_str(&format!("With {}.\n\n", connection_words(sizes[0])));
    }
    text.push_str(&errors(section));
    if !folded.is_empty() {
        text.push_str(&format!(
            "<details><summary>Other columns</summary>\n\n{folded}</details>\n\n"
        ));
    }
    text.push_str(&distributions(section));
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn connections(cells: &[CellEntry]) -> Vec<u32> {
    let mut sizes: Vec<u32> = cells.iter().map(|cell| cell.connections).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn connection_words(connections: u32) -> String {
    numbers::counted(u64::from(connections), "connection")
}

fn text(value: impl Into<String>) -> Text {
    Text::text(value)
}

fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> Text {
    text(value.map_or_else(|| NOTHING.to_owned(), show))
}

fn rate(cell: &CellEntry) -> Text {
    let rate = cell.rate_per_s.map(numbers::rate);
    text(rate.unwrap_or_else(|| cell.absent.clone()))
}

/// The lowest and the highest block, where there are several.
fn ends(cell: &CellEntry) -> Text {
    let ends = cell.rate_per_s.and(cell.ends);
    let ends = ends.filter(|_| cell.blocks > 1);
    text(ends.map_or_else(String::new, |(low, high)| numbers::rates(low, high)))
}

/// A latency of a table: what its head calls it, and what it is.
type OfLatency = (&'static str, fn(&Latency) -> Option<f64>);

const LATENCIES: [OfLatency; 5] = [
    ("mean", |l| Some(l.mean)),
    ("p50", |l| l.p50),
    ("p90", |l| l.p90),
    ("p99", |l| l.p99),
    ("slowest", |l| (l.max > 0).then_some(l.max as f64)),
];

fn error_count(cell: &CellEntry) -> u64 {
    cell.errors
        .values()
        .fold(0, |sum, count| sum.saturating_add(*count))
}

fn counted(cell: &CellEntry, count: u64) -> Text {
    let nothing = cell.rate_per_s.is_none() && cell.completed == 0 && count == 0;
    text(if nothing {
        NOTHING.to_owned()
    } else {
        numbers::count(count)
    })
}

/// Which columns say something in this section: spread of blocks, listen queue.
struct Told {
    spread: bool,
    queue: bool,
}

impl Told {
    fn of(cells: &[CellEntry]) -> Told {
        let risen = |cell: &CellEntry| QUEUE.iter().any(|name| cell.counters.contains_key(*name));
        Told {
            spread: cells.iter().any(|cell| cell.blocks > 1),
            queue: cells.iter().any(risen),
        }
    }
}

fn number(title: &str) -> Column {
    column(title, "", true)
}

/// A table with the column that names the subject.
fn of_subjects<'a>(section: &Section) -> Grid<'a, &'a CellEntry> {
    let subject = match section.kind.as_str() {
        "client" => "client",
        _ => "subject",
    };
    Grid::new().head(column(subject, "", false), |cell: &CellEntry| {
        text(&*cell.label)
    })
}

/// The columns that a reader wants first, seven at the most.
fn first(cells: &[&CellEntry], section: &Section) -> Table {
    let told = Told::of(&section.cells);
    let is_program = section.kind == "program";
    let rates = if is_program { "rate/s" } else { "requests/s" };
    let mut grid = of_subjects(section).head(number(rates), rate);
    if told.spread {
        grid = grid.head(number("blocks from–to"), ends);
    }
    if !is_program {
        grid = with_latencies(grid, &["p50", "p99"]);
    }
    match section.kind.as_str() {
        "program" => {}
        "client" => {
            let limit = |cell: &CellEntry| match cell.limit.as_str() {
                "" => text(NOTHING),
                limit => text(limit),
            };
            grid = grid
                .head(column("limit", "", false), limit)
                .head(number("errors"), |cell| counted(cell, error_count(cell)));
        }
        _ => {
            grid = grid
                .head(number("CPU/request"), |cell| {
                    shown(cell.cpu_ns, numbers::time)
                })
                .head(number("errors"), |cell| counted(cell, error_count(cell)));
        }
    }
    grid.rows(cells.iter().copied())
}

/// The other columns; `None` where there are none.
fn others(cells: &[&CellEntry], section: &Section) -> Option<Table> {
    let told = Told::of(&section.cells);
    if section.kind == "program" {
        return None;
    }
    let mut grid = with_latencies(of_subjects(section), &["mean", "p90", "slowest"]);
    if section.kind == "client" {
        grid = grid
            .head(number("in flight"), |cell| {
                shown(cell.in_flight, numbers::three)
            })
            .head(number("client busy"), |cell| {
                shown(cell.busy.map(|(client, _)| client), numbers::percent)
            })
            .head(number("server busy"), |cell| {
                shown(cell.busy.map(|(_, peer)| peer), numbers::percent)
            });
    } else if told.queue {
        grid = grid
            .head(number("slowest connect"), |cell| {
                let slowest = (cell.connect_max_ns > 0).then_some(cell.connect_max_ns as f64);
                shown(slowest, numbers::time)
            })
            .head(number("listen overflows"), |cell| {
                counted(cell, cell.counters.get(QUEUE[0]).copied().unwrap_or(0))
            });
    }
    Some(grid.rows(cells.iter().copied()))
}

fn with_latencies<'a>(
    mut grid: Grid<'a, &'a CellEntry>,
    names: &[&str],
) -> Grid<'a, &'a CellEntry> {
    for (name, get) in LATENCIES
        .into_iter()
        .filter(|(name, _)| names.contains(name))
    {
        grid = grid.head(number(name), move |cell| {
            shown(cell.latency.as_ref().and_then(get), numbers::time)
        });
    }
    grid
}

/// Which figures are bounds or cannot be used, with the codes that say why; nothing where all are sound.
fn limits(cells: &[&CellEntry]) -> String {
    let line = |cell: &&CellEntry| {
        let says = match cell.verdict.as_str() {
            "" | "valid" => return None,
            "invalid" => "cannot be used",
            "bound" => "is a bound",
            other => other,
        };
        let codes = match cell.codes.is_empty() {
            true => String::new(),
            false => format!(" ({})", cell.codes.join(", ")),
        };
        Some(format!("{} {says}{codes}", markdown(&cell.label)))
    };
    let all: Vec<String> = cells.iter().filter_map(line).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!("Not as it stands: {}.\n\n", all.join("; ")),
    }
}

/// What failed, and what the kernel counted meanwhile; a sentence where nothing did.
fn errors(section: &Section) -> String {
    let mut lines = String::new();
    for cell in &section.cells {
        let queue = QUEUE.iter().any(|name| cell.counters.contains_key(*name));
        if error_count(cell) == 0 && !queue {
            continue;
        }
        let kind = |(name, count): (&String, &u64)| {
            let word = KINDS.iter().find(|(known, _)| known == name);
            format!(
                "{} × {}",
                numbers::count(*count),
                word.map_or(name.as_str(), |(_, word)| word)
            )
        };
        let mut parts: Vec<String> = cell.errors.iter().map(kind).collect();
        if parts.is_empty() {
            parts.push("no error".to_owned());
        }
        lines.push_str(&format!(
            "- {}, {}: {} beside {} right answers",
            markdown(&cell.label),
            connection_words(cell.connections),
            parts.join(", "),
            numbers::count(cell.completed),
        ));
        if !cell.counters.is_empty() {
            let counter =
                |(name, count): (&String, &u64)| format!("{name} {}", numbers::count(*count));
            let counters: Vec<String> = cell.counters.iter().map(counter).collect();
            let whose = if cell.own_counters { "" } else { ", host-wide" };
            lines.push_str(&format!(". Kernel{whose}: {}", counters.join(", ")));
        }
        lines.push('\n');
    }
    let any = section.cells.iter().any(|cell| cell.rate_per_s.is_some());
    match (lines.is_empty(), any) {
        (false, _) => format!(
            "Error distribution (whole runs; rates above are of right answers in the window alone):\n\n{lines}\n"
        ),
        (true, true) => "Errors: none.\n\n".to_owned(),
        (true, false) => String::new(),
    }
}

/// Where the latencies of each subject lie, folded away.
fn distributions(section: &Section) -> String {
    let with_bars = |cell: &&CellEntry| cell.latency.as_ref().is_some_and(|l| l.bars.is_some());
    let drawn = section.cells.iter().filter(with_bars);
    let labels = distinct(drawn.map(|cell| cell.label.as_str()));
    let mut out = String::new();
    for label in labels {
        let own = section
            .cells
            .iter()
            .filter(with_bars)
            .filter(|cell| cell.label == label);
        let mut lines: Vec<String> = Vec::new();
        for cell in own {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(distribution(cell));
        }
        let block = markdown_block(lines.iter().map(String::as_str), "");
        out.push_str(&format!(
            "<details><summary>Latency distribution: {}</summary>\n\n{block}\n</details>\n\n",
            html(label)
        ));
    }
    out
}

fn distribution(cell: &CellEntry) -> Vec<String> {
    let Some((latency, bars)) = cell
        .latency
        .as_ref()
        .and_then(|l| Some((l, l.bars.as_ref()?)))
    else {
        return Vec::new();
    };
    let blocks = prony_base::counted(cell.blocks, "block");
    let mut lines = vec![format!(
        "{}: {} in {blocks}, from {} to {}",
        connection_words(cell.connections),
        numbers::counted(bars.total(), "request"),
        numbers::time(bars.min_ns as f64),
        numbers::time(bars.max_ns as f64),
    )];
    lines.extend(bars.lines().into_iter().map(|line| format!("  {line}")));
    let percentile =
        |(percent, ns): &(f64, u64)| format!("{percent} % {}", numbers::time(*ns as f64));
    let percentiles: Vec<String> = latency.percentiles.iter().map(percentile).collect();
    for part in percentiles.chunks(4) {
        lines.push(format!("  within: {}", part.join(" · ")));
    }
    lines
}
