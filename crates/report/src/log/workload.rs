//! One workload of an entry: its figures with what failed, and where its latencies lie.
//!
//! Not for: what is said of the differences between entries (`page`).

use super::entry::{CellEntry, ENDS, Latency, Section};
use crate::escape::markdown;
use crate::markdown::filled;
use crate::numbers::{self, NOTHING, RATE};

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

/// The text of a workload's region.
pub fn section(section: &Section) -> String {
    let mut cells: Vec<&CellEntry> = section.cells.iter().collect();
    cells.sort_by_key(|cell| cell.connections);
    let mut parts = vec![
        format!("### {}", markdown(&section.title)),
        markdown(&section.request),
        figures(&cells, section.kind == "program"),
        distribution(&cells),
    ];
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

/// What it is of, with what must be known of its figures before they are read, and the codes that say why; nothing of sound ones.
fn place(cell: &CellEntry) -> String {
    let limit = match cell.verdict.as_str() {
        "" | "valid" => return markdown(&cell.place()),
        "invalid" => "cannot be used",
        other => other,
    };
    let codes = cell.codes.join(", ");
    format!("{} (**{limit}**: {codes})", markdown(&cell.place()))
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(String::new, numbers::time)
}

fn figures(cells: &[&CellEntry], is_program: bool) -> String {
    let row = |cell: &&CellEntry| {
        let rate = cell.rate_per_s.map(numbers::rate);
        let ends = cell.shown_ends().filter(|_| rate.is_some());
        let latency = |get: fn(&Latency) -> Option<f64>| cell.latency.as_ref().and_then(get);
        [
            place(cell),
            rate.unwrap_or_else(|| markdown(&cell.absent)),
            ends.map_or_else(String::new, |(low, high)| RATE.ends(low, high)),
            time(latency(|l| l.p50)),
            time(latency(|l| l.p99)),
            time(cell.cpu_ns),
            errors(cell, is_program),
        ]
    };
    let head = [
        "subject",
        if is_program { "rate/s" } else { "requests/s" },
        ENDS,
        "p50",
        "p99",
        "CPU/request",
        "errors",
    ];
    filled(head, 1..6, cells.iter().map(row))
}

/// What failed beside how many right answers, how long it took to be let in, and what the kernel counted meanwhile.
fn errors(cell: &CellEntry, is_program: bool) -> String {
    let count = cell.errors.values().copied().fold(0, u64::saturating_add);
    let mut counters = cell.counters.keys();
    match (count, cell.completed) {
        (0, _) if is_program => return String::new(),
        (0, 0) => return NOTHING.to_owned(),
        (0, _) if !counters.any(|name| QUEUE.contains(&&**name)) => return "0".to_owned(),
        _ => {}
    }
    let error = |(name, count): (&String, &u64)| {
        let known = KINDS.iter().find(|(known, _)| known == name);
        let words = known.map_or_else(|| name.replace('_', " "), |(_, words)| (*words).to_owned());
        format!("{} × {words}", numbers::count(*count))
    };
    let counter = |(name, count): (&String, &u64)| format!("{name} {}", numbers::count(*count));
    let slowest = (cell.connect_max_ns > 0).then(|| {
        let time = numbers::time(cell.connect_max_ns as f64);
        format!("slowest connect {time}")
    });
    let host_wide = !cell.own_counters && !cell.counters.is_empty();
    let all = cell.errors.iter().map(error).chain(slowest);
    let all = all.chain(cell.counters.iter().map(counter));
    let all = all.chain(host_wide.then(|| "counters are host-wide".to_owned()));
    let (count, right) = (numbers::count(count), numbers::count(cell.completed));
    let all: Vec<String> = all.collect();
    let all = markdown(&all.join(", "));
    format!("{count} beside {right} right answers: {all}")
}

/// Where the latencies lie, folded away; nothing where none are known.
fn distribution(cells: &[&CellEntry]) -> String {
    let within = |(percent, ns): &(f64, u64)| format!("{percent} % {}", numbers::time(*ns as f64));
    let row = |cell: &&CellEntry| {
        let latency = cell.latency.as_ref()?;
        let slowest = Some(latency.max as f64).filter(|ns| *ns > 0.0);
        let within: Vec<String> = latency.percentiles.iter().map(within).collect();
        (!within.is_empty()).then(|| [markdown(&cell.place()), time(slowest), within.join(" · ")])
    };
    let head = ["subject", "slowest", "so many requests within"];
    let table = filled(head, 1..2, cells.iter().filter_map(row));
    let title = "<details><summary>Distribution of latency</summary>";
    match table.is_empty() {
        true => table,
        false => format!("{title}\n\n{table}\n\n</details>"),
    }
}
