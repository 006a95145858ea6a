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
        figures(&cells, &section.kind),
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

/// What must be known of a figure before it is read, with the codes that say why; nothing of a sound one.
fn limit(cell: &CellEntry) -> String {
    let says = match cell.verdict.as_str() {
        "" | "valid" => return String::new(),
        "invalid" => "cannot be used",
        other => other,
    };
    format!(" (**{says}**: {})", cell.codes.join(", "))
}

fn error_count(cell: &CellEntry) -> u64 {
    let counts = cell.errors.values();
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

fn figures(cells: &[&CellEntry], kind: &str) -> String {
    let row = |cell: &&CellEntry| {
        let rate = cell.rate_per_s.map(numbers::rate);
        let ends = cell.ends.filter(|_| rate.is_some() && cell.blocks > 1);
        let ends = ends.map(|(low, high)| numbers::rates(low, high));
        let latency = |get: fn(&Latency) -> Option<f64>| cell.latency.as_ref().and_then(get);
        let time = |ns: Option<f64>| ns.map_or_else(String::new, numbers::time);
        let failed = match (cell.completed, error_count(cell)) {
            _ if kind == "program" => String::new(),
            (0, 0) => NOTHING.to_owned(),
            (_, count) => numbers::count(count),
        };
        vec![
            format!("{}{}", place(cell), limit(cell)),
            rate.unwrap_or_else(|| markdown(&cell.absent)),
            ends.unwrap_or_default(),
            time(latency(|l| l.p50)),
            time(latency(|l| l.p99)),
            time(cell.cpu_ns),
            failed,
        ]
    };
    let rows: Vec<Vec<String>> = cells.iter().map(row).collect();
    let rate = ["requests/s", "rate/s"][usize::from(kind == "program")];
    let head = [
        PLACE,
        rate,
        "blocks from–to",
        "p50",
        "p99",
        "CPU/request",
        "errors",
    ];
    filled(&head, 1..7, &rows)
}

/// What failed, and what the kernel counted meanwhile; a sentence where nothing did.
fn errors(cells: &[&CellEntry]) -> String {
    let has_any = |cell: &&&CellEntry| {
        error_count(cell) > 0 || QUEUE.iter().any(|name| cell.counters.contains_key(*name))
    };
    let error = |(name, count): (&String, &u64)| {
        let known = KINDS.iter().find(|(known, _)| known == name);
        let words = known.map_or_else(|| name.replace('_', " "), |(_, words)| (*words).to_owned());
        format!("{} × {words}", numbers::count(*count))
    };
    let counter = |(name, count): (&String, &u64)| format!("{name} {}", numbers::count(*count));
    let row = |cell: &&CellEntry| {
        let slowest = (cell.connect_max_ns > 0).then(|| numbers::time(cell.connect_max_ns as f64));
        let mut counters: Vec<String> = cell.counters.iter().map(counter).collect();
        if !cell.own_counters && !counters.is_empty() {
            counters.push("host-wide".to_owned());
        }
        vec![
            place(cell),
            numbers::count(cell.completed),
            slowest.unwrap_or_default(),
            cell.errors.iter().map(error).collect::<Vec<_>>().join(", "),
            counters.join(", "),
        ]
    };
    let rows: Vec<Vec<String>> = cells.iter().filter(has_any).map(row).collect();
    let head = [
        PLACE,
        "right answers",
        "slowest connect",
        "errors of whole runs",
        "the kernel counted",
    ];
    let is_measured = cells.iter().any(|cell| cell.rate_per_s.is_some());
    match rows.is_empty() && is_measured {
        true => "Errors: none.".to_owned(),
        false => filled(&head, 1..3, &rows),
    }
}

/// Where the latencies lie, folded away; nothing where none are known.
fn distribution(cells: &[&CellEntry]) -> String {
    let row = |cell: &&CellEntry| {
        let latency = cell.latency.as_ref()?;
        let within = latency.percentiles.iter();
        let within =
            within.map(|(percent, ns)| format!("{percent} % {}", numbers::time(*ns as f64)));
        let within: Vec<String> = within.collect();
        let slowest = (latency.max > 0).then(|| numbers::time(latency.max as f64));
        let row = vec![place(cell), slowest.unwrap_or_default(), within.join(" · ")];
        (!within.is_empty()).then_some(row)
    };
    let rows: Vec<Vec<String>> = cells.iter().filter_map(row).collect();
    let table = filled(&[PLACE, "slowest", "so many requests within"], 1..2, &rows);
    let title = "<details><summary>Distribution of latency</summary>";
    Some(format!("{title}\n\n{table}\n\n</details>"))
        .filter(|_| !rows.is_empty())
        .unwrap_or_default()
}
