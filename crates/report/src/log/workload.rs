//! One workload of an entry: its figures, what failed, where its latencies lie.
//!
//! Not for: what is said of the differences between entries (`page`).

use super::entry::{CellEntry, Latency, Section};
use crate::escape::markdown;
use crate::markdown::filled;
use crate::numbers::{self, NOTHING};

/// Kinds of errors in words, where their names in the records are not clear.
const KINDS: [(&str, &str); 6] = [
    ("closed", "closed before the answer was whole"),
    ("protocol", "answer that is not HTTP"),
    ("check", "answer that failed a check"),
    ("system", "error of the system"),
    ("drain_failed", "failed after the window"),
    ("abandoned", "never answered"),
];
/// The counters of a listen queue, which are told also where nothing failed.
const QUEUE: [&str; 2] = ["listen overflows", "listen drops"];
/// What stands in the first column.
const PLACE: &str = "subject, connections";

/// The text of a workload's region.
pub fn section(section: &Section) -> String {
    let mut cells: Vec<&CellEntry> = section.cells.iter().collect();
    cells.sort_by_key(|cell| cell.connections);
    let mut parts = vec![
        format!("### {}", markdown(&section.title)),
        markdown(&section.request),
        figures(&cells, section.kind == "program"),
        errors(&cells),
        distribution(&cells),
    ];
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

/// `prony-wsgi, 100`
fn place(cell: &CellEntry) -> String {
    match cell.connections {
        0 => markdown(&cell.label),
        connections => markdown(&format!("{}, {connections}", cell.label)),
    }
}

/// The same with what must be known of its figures before they are read, and the codes that say why; nothing of sound ones.
fn place_and_limit(cell: &CellEntry) -> String {
    let limit = match cell.verdict.as_str() {
        "" | "valid" => return place(cell),
        "invalid" => "cannot be used",
        other => other,
    };
    format!("{} (**{limit}**: {})", place(cell), cell.codes.join(", "))
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(String::new, numbers::time)
}

fn figures(cells: &[&CellEntry], is_program: bool) -> String {
    let row = |cell: &&CellEntry| {
        let rate = cell.rate_per_s.map(numbers::rate);
        let ends = cell.ends.filter(|_| rate.is_some() && cell.blocks > 1);
        let latency = |get: fn(&Latency) -> Option<f64>| cell.latency.as_ref().and_then(get);
        let failed = match (cell.completed, cell.error_count()) {
            _ if is_program => String::new(),
            (0, 0) => NOTHING.to_owned(),
            (_, count) => numbers::count(count),
        };
        [
            place_and_limit(cell),
            rate.unwrap_or_else(|| markdown(&cell.absent)),
            ends.map_or_else(String::new, |(low, high)| numbers::rates(low, high)),
            time(latency(|l| l.p50)),
            time(latency(|l| l.p99)),
            time(cell.cpu_ns),
            failed,
        ]
    };
    let head = [
        PLACE,
        if is_program { "rate/s" } else { "requests/s" },
        "blocks from–to",
        "p50",
        "p99",
        "CPU/request",
        "errors",
    ];
    filled(head, 1..7, cells.iter().map(row))
}

/// What failed, and what the kernel counted meanwhile; a sentence where nothing did.
fn errors(cells: &[&CellEntry]) -> String {
    let has_any = |cell: &&&CellEntry| {
        let mut counters = cell.counters.keys();
        cell.error_count() > 0 || counters.any(|name| QUEUE.contains(&&**name))
    };
    let error = |(name, count): (&String, &u64)| {
        let known = KINDS.iter().find(|(known, _)| known == name);
        let words = known.map_or_else(|| name.replace('_', " "), |(_, words)| (*words).to_owned());
        format!("{} × {words}", numbers::count(*count))
    };
    let counter = |(name, count): (&String, &u64)| format!("{name} {}", numbers::count(*count));
    let row = |cell: &&CellEntry| {
        let slowest = Some(cell.connect_max_ns as f64).filter(|ns| *ns > 0.0);
        let mut counters: Vec<String> = cell.counters.iter().map(counter).collect();
        if !cell.own_counters && !counters.is_empty() {
            counters.push("host-wide".to_owned());
        }
        [
            place(cell),
            numbers::count(cell.completed),
            time(slowest),
            cell.errors.iter().map(error).collect::<Vec<_>>().join(", "),
            counters.join(", "),
        ]
    };
    let head = [
        PLACE,
        "right answers",
        "slowest connect",
        "errors of whole runs",
        "the kernel counted",
    ];
    let table = filled(head, 1..3, cells.iter().filter(has_any).map(row));
    let is_measured = cells.iter().any(|cell| cell.rate_per_s.is_some());
    match table.is_empty() && is_measured {
        true => "Errors: none.".to_owned(),
        false => table,
    }
}

/// Where the latencies lie, folded away; nothing where none are known.
fn distribution(cells: &[&CellEntry]) -> String {
    let within = |(percent, ns): &(f64, u64)| format!("{percent} % {}", numbers::time(*ns as f64));
    let row = |cell: &&CellEntry| {
        let latency = cell.latency.as_ref()?;
        let slowest = Some(latency.max as f64).filter(|ns| *ns > 0.0);
        let within: Vec<String> = latency.percentiles.iter().map(within).collect();
        (!within.is_empty()).then(|| [place(cell), time(slowest), within.join(" · ")])
    };
    let head = [PLACE, "slowest", "so many requests within"];
    let table = filled(head, 1..2, cells.iter().filter_map(row));
    let title = "<details><summary>Distribution of latency</summary>";
    match table.is_empty() {
        true => table,
        false => format!("{title}\n\n{table}\n\n</details>"),
    }
}
