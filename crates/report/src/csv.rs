//! The figures as comma-separated values, a row a cell, units in the names of the columns.
//!
//! A run that has only servers alone has only their columns; what programs, clients and services have
//! besides is to the right of them, and empty for the others. A column is a line below: its name, and what a cell has in it;
//! those of the [metrics](crate::metrics) are theirs.
//! Not for: findings and comparisons of several cells, which `summary.json` has.

use prony_record::NEVER;

use crate::clients::figures::{ClientFigures, SpreadFigure};
use crate::escape;
use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::open::figures::OpenFigures;
use crate::programs::figures::{DurationFigures, ProgramFigures};
use crate::rows::figures::{CounterFigures, ProcessFigures, ServiceFigures};
use crate::search::figures::SearchFigures;

/// The name of a column, and what a cell has in it by its figures of one kind.
type Of<T> = (&'static str, fn(&T) -> String);

/// A latency that never ended, as programs read it.
const INFINITE: &str = "inf";

/// What every run has, before the metrics.
const HEAD: &[Of<CellFigures>] = &[
    ("cell", |c| c.cell.clone()),
    ("subject", |c| c.subject.clone()),
    ("workload", |c| c.workload.clone()),
    ("connections", |c| c.connections.to_string()),
    ("settings", settings),
    ("verdict", |c| {
        text(
            c.verdict
                .map(|verdict| format!("{verdict:?}").to_lowercase()),
        )
    }),
    ("blocks_measured", |c| c.trials.measured.len().to_string()),
    ("trials_failed", |c| c.trials.failed.len().to_string()),
    ("rate_per_s", |c| median(c.rate_per_s)),
    ("rate_low_per_s", |c| number(c.rate_per_s.map(|r| r.low))),
    ("rate_high_per_s", |c| number(c.rate_per_s.map(|r| r.high))),
    ("rate_spread", |c| text(c.rate_per_s.map(|r| r.spread))),
    ("ratio", |c| number(c.ratio.as_ref().map(|r| r.ratio))),
    ("ratio_low", |c| number(c.ratio.as_ref().map(|r| r.low))),
    ("ratio_high", |c| number(c.ratio.as_ref().map(|r| r.high))),
    ("conclusion", |c| {
        text(c.ratio.as_ref().map(|r| r.conclusion))
    }),
];

/// What every run has, after the metrics.
const TAIL: &[Of<CellFigures>] = &[
    ("completed", |c| c.completed.to_string()),
    ("errors", |c| c.errors.to_string()),
    ("findings", |c| {
        let codes: Vec<&str> = c.findings.iter().map(|code| code.as_str()).collect();
        codes.join(" ")
    }),
];

/// What a run with programs has besides.
const PROGRAMS: &[Of<ProgramFigures>] = &[
    ("count", |p| p.count.to_string()),
    ("threads", |p| p.threads.to_string()),
    ("measure", |p| p.measure.to_string()),
    ("elapsed_ns", |p| median(p.elapsed_ns)),
    ("elapsed_low_ns", |p| number(p.elapsed_ns.map(|e| e.low))),
    ("elapsed_high_ns", |p| number(p.elapsed_ns.map(|e| e.high))),
    ("elapsed_spread", |p| text(p.elapsed_ns.map(|e| e.spread))),
    ("bytes_per_s", |p| median(p.bytes_per_s)),
    ("wall_ns", |p| median(p.wall_ns)),
    ("cpu_user_ns", |p| median(p.cpu_user_ns)),
    ("cpu_system_ns", |p| median(p.cpu_system_ns)),
    ("checksum", |p| p.checksum.to_string()),
];

/// What it has of lengths of runs.
const DURATIONS: &[Of<DurationFigures>] = &[
    ("runs", |d| d.runs.to_string()),
    ("run_min_ns", |d| d.min_ns.to_string()),
    ("run_mean_ns", |d| median(d.mean_ns)),
    ("run_p99_ns", |d| text(d.p99_ns)),
    ("run_p99_9_ns", |d| text(d.p99_9_ns)),
    ("run_max_ns", |d| d.max_ns.to_string()),
    ("deadline_ns", |d| d.deadline_ns.to_string()),
    ("missed", |d| d.missed_count.to_string()),
];

/// What a run with clients has besides.
const CLIENTS: &[Of<ClientFigures>] = &[
    ("work", |c| c.work.to_string()),
    ("peer", |c| c.peer.to_string()),
    ("network", |c| c.network.to_string()),
    ("client_threads", |c| c.threads.to_string()),
    ("peer_threads", |c| c.peer_threads.to_string()),
    ("client_elapsed_ns", |c| median(c.elapsed_ns)),
    ("client_wall_ns", |c| median(c.wall_ns)),
    ("cpu_user_ns_per_request", |c| median(c.cpu_user_ns)),
    ("cpu_system_ns_per_request", |c| median(c.cpu_system_ns)),
    ("cpu_peer_ns_per_request", |c| median(c.cpu_peer_ns)),
    ("cpu_ratio", |c| {
        number(c.cpu_ratio.as_ref().map(|r| r.ratio))
    }),
    ("client_bytes_per_s", |c| median(c.bytes_per_s)),
    ("in_flight", |c| median(c.in_flight)),
    ("busy_client", |c| median(c.busy_client)),
    ("busy_peer", |c| median(c.busy_peer)),
    ("limit", |c| c.limit.to_string()),
    ("in_flight_said", |c| text(c.counts.in_flight)),
    ("requests_by_peer", |c| text(c.counts.by_peer)),
    ("blocks_compared", |c| c.counts.compared.to_string()),
    ("blocks_agreed", |c| c.counts.agree.to_string()),
    ("discards", |c| c.discards.to_string()),
    ("socket_ns", |c| mean(c, "socket_ns")),
    ("setup_ns", |c| mean(c, "setup_ns")),
    ("connect_ns", |c| mean(c, "connect_ns")),
    ("first_byte_ns", |c| mean(c, "first_byte_ns")),
    ("download_ns", |c| mean(c, "download_ns")),
    ("download_min_ns", |c| spread(c, "download_ns", |s| s.min)),
    ("download_max_ns", |c| spread(c, "download_ns", |s| s.max)),
    ("download_stdev_ns", |c| {
        spread(c, "download_ns", |s| s.stdev.median)
    }),
    ("rate_bytes_per_s", |c| median(c.download_bytes_per_s)),
    ("run_ns", |c| mean(c, "run_ns")),
    ("pss_bytes", |c| mean(c, "pss_bytes")),
    ("stall_max_ns", |c| spread(c, "stall_ns", |s| s.max)),
];

/// What a run with tables with rows, or with anything around a server, has besides.
const SERVICES: &[Of<ServiceFigures>] = &[
    ("row", |s| text(s.row.as_ref().map(|row| row.title.clone()))),
    ("baseline", |s| {
        text(s.row.as_ref().and_then(|row| row.baseline.clone()))
    }),
    ("front", |s| text(s.front.clone())),
    ("backings", |s| s.backings.join(" ")),
    ("instances", |s| s.instances.to_string()),
    ("generators", |s| s.generators.to_string()),
    ("output", |s| format!("{:?}", s.output).to_lowercase()),
    ("deviation_over_seconds_per_s", |s| {
        number(s.seconds.map(|s| s.deviation_per_s))
    }),
    ("seconds", |s| text(s.seconds.map(|s| s.count))),
    ("cpu_front_ns_per_request", |s| {
        median(s.cpu_ns.get("front").copied())
    }),
    ("cpu_backing_ns_per_request", |s| {
        median(s.cpu_ns.get("backing").copied())
    }),
    ("cpu_by_process_ns_per_request", by_process),
    ("memory_peak_front_bytes", |s| {
        median(s.memory_peak_bytes.get("front").copied())
    }),
    ("memory_peak_backing_bytes", |s| {
        median(s.memory_peak_bytes.get("backing").copied())
    }),
    ("busy_subject", |s| median(s.busy_subject)),
    ("busy_generator", |s| median(s.busy_generator)),
    ("limit", |s| s.limit.to_string()),
];

/// What it has of numbers; of one that was not asked for, what became of it is empty.
const COUNTERS: &[Of<CounterFigures>] = &[
    ("acknowledged", |t| t.acknowledged.to_string()),
    ("unanswered", |t| t.unanswered.to_string()),
    ("counted", |t| text((t.read > 0).then_some(t.counted))),
    ("uncounted", |t| text((t.read > 0).then_some(t.uncounted))),
    ("kept", |t| text((t.asked > 0).then_some(t.kept))),
    ("lost", |t| text((t.asked > 0).then_some(t.lost))),
    ("blocks_asked", |t| t.asked.to_string()),
    ("blocks_lost", |t| {
        text((t.asked > 0).then_some(t.blocks_lost))
    }),
    ("invented", |t| t.invented.to_string()),
];

/// The rate that was asked for: a cell has it before it is measured.
const ASKED: &[Of<CellFigures>] = &[("rate_asked_per_s", |c| number(c.asked_per_s))];

/// What a run with open loops has besides.
const OPEN: &[Of<OpenFigures>] = &[
    ("rate_drawn_per_s", |o| median(o.drawn_per_s)),
    ("waiting_max", |o| o.waiting_max.to_string()),
    ("never_sent", |o| o.never_sent.to_string()),
    ("blocks_overloaded", |o| o.blocks_overloaded.to_string()),
    ("blocks_generator_short", |o| {
        o.blocks_generator_short.to_string()
    }),
];

/// What a run with searches for a highest rate has besides; the rate is theirs.
const SEARCHES: &[Of<SearchFigures>] = &[
    ("objective", |s| s.objective.to_string()),
    ("objective_below_ns", |s| s.below_ns.to_string()),
    ("step_ns", |s| s.step_ns.to_string()),
    ("steps", |s| s.steps.to_string()),
    ("closed_loop_per_s", |s| median(s.closed_loop_per_s)),
    ("p50_at_highest_ns", |s| median(s.p50_ns)),
    ("blocks_at_least", |s| s.blocks_at_least.to_string()),
    ("blocks_nowhere", |s| s.blocks_nowhere.to_string()),
];

/// A column: its name, and what it has of a cell by the kinds of cells that have it.
type Column = (&'static str, Vec<Box<dyn Fn(&CellFigures) -> String>>);

/// All cells.
pub fn csv(cells: &[CellFigures]) -> String {
    let columns = columns(cells);
    let line = |fields: Vec<String>| fields.join(",") + "\n";
    let mut text = line(columns.iter().map(|(name, _)| (*name).to_owned()).collect());
    for cell in cells {
        let field = |(_, values): &Column| {
            // A cell is of one kind, so that at most one of the values says something.
            let mut all = values.iter().map(|value| value(cell));
            csv_field(&all.find(|text| !text.is_empty()).unwrap_or_default())
        };
        text.push_str(&line(columns.iter().map(field).collect()));
    }
    text
}

/// The columns of a file: one that two kinds of cells have is there once, with what the cell's own kind says.
fn columns(cells: &[CellFigures]) -> Vec<Column> {
    let any = |has: fn(&CellFigures) -> bool| cells.iter().any(has);
    let mut columns = Vec::new();
    add(&mut columns, HEAD, |c| Some(c));
    for metric in Metric::ALL.into_iter().filter(|m| !m.column.is_empty()) {
        let value = move |cell: &CellFigures| number(metric.value(cell));
        columns.push((metric.column, vec![Box::new(value)]));
    }
    add(&mut columns, TAIL, |c| Some(c));
    if any(|c| c.program.is_some()) {
        add(&mut columns, PROGRAMS, |c| c.program.as_ref());
        add(&mut columns, DURATIONS, |c| {
            c.program.as_ref()?.durations.as_ref()
        });
    }
    if any(|c| c.client.is_some()) {
        add(&mut columns, CLIENTS, |c| c.client.as_ref());
    }
    if any(|c| c.service.is_some()) {
        add(&mut columns, SERVICES, |c| c.service.as_ref());
        add(&mut columns, COUNTERS, |c| {
            c.service.as_ref()?.counter.as_ref()
        });
    }
    if any(|c| c.open.is_some()) {
        add(&mut columns, ASKED, |c| Some(c));
        add(&mut columns, OPEN, |c| c.open.as_ref());
    }
    if any(|c| c.search.is_some()) {
        add(&mut columns, SEARCHES, |c| c.search.as_ref());
    }
    columns
}

fn add<T: 'static>(
    columns: &mut Vec<Column>,
    fields: &'static [Of<T>],
    part: fn(&CellFigures) -> Option<&T>,
) {
    for &(name, of) in fields {
        let value = move |cell: &CellFigures| part(cell).map_or_else(String::new, of);
        match columns.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(Box::new(value)),
            None => columns.push((name, vec![Box::new(value)])),
        }
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value == NEVER as f64 => INFINITE.to_owned(),
        Some(value) if value.is_finite() => value.to_string(),
        _ => String::new(),
    }
}

fn median(figure: Option<Figure>) -> String {
    number(figure.map(|figure| figure.median))
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn settings(cell: &CellFigures) -> String {
    let settings = cell.settings.iter();
    let settings: Vec<String> = settings.map(|(k, v)| format!("{k}={v}")).collect();
    settings.join(" ")
}

fn spread(client: &ClientFigures, name: &str, of: fn(&SpreadFigure) -> f64) -> String {
    number(client.figures.get(name).map(of))
}

fn mean(client: &ClientFigures, name: &str) -> String {
    spread(client, name, |s| s.mean.median)
}

fn by_process(service: &ServiceFigures) -> String {
    let process = |process: &ProcessFigures| {
        let ns = median(process.cpu_ns);
        format!("{}/{}:{ns}", process.role, process.name)
    };
    let all = service.processes.iter();
    all.map(process).collect::<Vec<_>>().join(" ")
}

/// A field by RFC 4180. One that a spreadsheet would take for a formula is kept from that.
fn csv_field(text: &str) -> String {
    let text = escape::clean(text);
    let formula =
        text.starts_with(['=', '+', '@']) || text.starts_with('-') && text.parse::<f64>().is_err();
    let text = if formula { format!("'{text}") } else { text };
    if text.contains([',', '"']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}
