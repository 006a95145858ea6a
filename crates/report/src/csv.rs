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

/// The name of a column, and what a cell has in it.
type Field = (&'static str, fn(&CellFigures) -> String);

/// A latency that never ended, as programs read it.
const INFINITE: &str = "inf";

/// What every run has, before the metrics.
const HEAD: &[Field] = &[
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
const TAIL: &[Field] = &[
    ("completed", |c| c.completed.to_string()),
    ("errors", |c| c.errors.to_string()),
    ("findings", |c| {
        let codes: Vec<&str> = c.findings.iter().map(|code| code.as_str()).collect();
        codes.join(" ")
    }),
];

/// What a run with programs has besides.
const PROGRAMS: &[Field] = &[
    ("count", |c| text(program(c).map(|p| p.count))),
    ("threads", |c| text(program(c).map(|p| p.threads))),
    ("measure", |c| text(program(c).map(|p| p.measure.clone()))),
    ("elapsed_ns", |c| median(elapsed(c))),
    ("elapsed_low_ns", |c| number(elapsed(c).map(|e| e.low))),
    ("elapsed_high_ns", |c| number(elapsed(c).map(|e| e.high))),
    ("elapsed_spread", |c| text(elapsed(c).map(|e| e.spread))),
    ("bytes_per_s", |c| {
        median(program(c).and_then(|p| p.bytes_per_s))
    }),
    ("wall_ns", |c| median(program(c).and_then(|p| p.wall_ns))),
    ("cpu_user_ns", |c| {
        median(program(c).and_then(|p| p.cpu_user_ns))
    }),
    ("cpu_system_ns", |c| {
        median(program(c).and_then(|p| p.cpu_system_ns))
    }),
    ("checksum", |c| text(program(c).map(|p| p.checksum.clone()))),
    ("runs", |c| text(durations(c).map(|d| d.runs))),
    ("run_min_ns", |c| text(durations(c).map(|d| d.min_ns))),
    ("run_mean_ns", |c| {
        median(durations(c).and_then(|d| d.mean_ns))
    }),
    ("run_p99_ns", |c| text(durations(c).and_then(|d| d.p99_ns))),
    ("run_p99_9_ns", |c| {
        text(durations(c).and_then(|d| d.p99_9_ns))
    }),
    ("run_max_ns", |c| text(durations(c).map(|d| d.max_ns))),
    ("deadline_ns", |c| text(durations(c).map(|d| d.deadline_ns))),
    ("missed", |c| text(durations(c).map(|d| d.missed_count))),
];

/// What a run with clients has besides.
const CLIENTS: &[Field] = &[
    ("work", |c| text(client(c).map(|c| c.work.clone()))),
    ("peer", |c| text(client(c).map(|c| c.peer.clone()))),
    ("network", |c| text(client(c).map(|c| c.network.clone()))),
    ("client_threads", |c| {
        text(client(c).map(|c| c.threads.clone()))
    }),
    ("peer_threads", |c| text(client(c).map(|c| c.peer_threads))),
    ("client_elapsed_ns", |c| {
        median(client(c).and_then(|c| c.elapsed_ns))
    }),
    ("client_wall_ns", |c| {
        median(client(c).and_then(|c| c.wall_ns))
    }),
    ("cpu_user_ns_per_request", |c| {
        median(client(c).and_then(|c| c.cpu_user_ns))
    }),
    ("cpu_system_ns_per_request", |c| {
        median(client(c).and_then(|c| c.cpu_system_ns))
    }),
    ("cpu_peer_ns_per_request", |c| {
        median(client(c).and_then(|c| c.cpu_peer_ns))
    }),
    ("cpu_ratio", |c| {
        number(client(c).and_then(|c| Some(c.cpu_ratio.as_ref()?.ratio)))
    }),
    ("client_bytes_per_s", |c| {
        median(client(c).and_then(|c| c.bytes_per_s))
    }),
    ("in_flight", |c| median(client(c).and_then(|c| c.in_flight))),
    ("busy_client", |c| {
        median(client(c).and_then(|c| c.busy_client))
    }),
    ("busy_peer", |c| median(client(c).and_then(|c| c.busy_peer))),
    ("limit", |c| text(client(c).map(|c| c.limit))),
    ("in_flight_said", |c| {
        text(client(c).and_then(|c| c.counts.in_flight))
    }),
    ("requests_by_peer", |c| {
        text(client(c).and_then(|c| c.counts.by_peer))
    }),
    ("blocks_compared", |c| {
        text(client(c).map(|c| c.counts.compared))
    }),
    ("blocks_agreed", |c| text(client(c).map(|c| c.counts.agree))),
    ("discards", |c| text(client(c).map(|c| c.discards))),
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
    ("rate_bytes_per_s", |c| {
        median(client(c).and_then(|c| c.download_bytes_per_s))
    }),
    ("run_ns", |c| mean(c, "run_ns")),
    ("pss_bytes", |c| mean(c, "pss_bytes")),
    ("stall_max_ns", |c| spread(c, "stall_ns", |s| s.max)),
];

/// What a run with tables with rows, or with anything around a server, has besides. Of a number that was not asked for,
/// what became of it is empty.
const SERVICES: &[Field] = &[
    ("row", |c| text(c.row().map(|row| row.title.clone()))),
    ("baseline", |c| {
        text(c.row().and_then(|row| row.baseline.clone()))
    }),
    ("front", |c| text(service(c).and_then(|s| s.front.clone()))),
    ("backings", |c| {
        text(service(c).map(|s| s.backings.join(" ")))
    }),
    ("instances", |c| text(service(c).map(|s| s.instances))),
    ("generators", |c| text(service(c).map(|s| s.generators))),
    ("output", |c| {
        text(service(c).map(|s| format!("{:?}", s.output).to_lowercase()))
    }),
    ("deviation_over_seconds_per_s", |c| {
        number(service(c).and_then(|s| Some(s.seconds?.deviation_per_s)))
    }),
    ("seconds", |c| {
        text(service(c).and_then(|s| Some(s.seconds?.count)))
    }),
    ("cpu_front_ns_per_request", |c| {
        median(service(c).and_then(|s| s.cpu_ns.get("front").copied()))
    }),
    ("cpu_backing_ns_per_request", |c| {
        median(service(c).and_then(|s| s.cpu_ns.get("backing").copied()))
    }),
    ("cpu_by_process_ns_per_request", by_process),
    ("memory_peak_front_bytes", |c| {
        median(service(c).and_then(|s| s.memory_peak_bytes.get("front").copied()))
    }),
    ("memory_peak_backing_bytes", |c| {
        median(service(c).and_then(|s| s.memory_peak_bytes.get("backing").copied()))
    }),
    ("busy_subject", |c| {
        median(service(c).and_then(|s| s.busy_subject))
    }),
    ("busy_generator", |c| {
        median(service(c).and_then(|s| s.busy_generator))
    }),
    ("limit", |c| text(service(c).map(|s| s.limit))),
    ("acknowledged", |c| text(counter(c).map(|t| t.acknowledged))),
    ("unanswered", |c| text(counter(c).map(|t| t.unanswered))),
    ("counted", |c| {
        text(counter(c).filter(|t| t.read > 0).map(|t| t.counted))
    }),
    ("uncounted", |c| {
        text(counter(c).filter(|t| t.read > 0).map(|t| t.uncounted))
    }),
    ("kept", |c| {
        text(counter(c).filter(|t| t.asked > 0).map(|t| t.kept))
    }),
    ("lost", |c| {
        text(counter(c).filter(|t| t.asked > 0).map(|t| t.lost))
    }),
    ("blocks_asked", |c| text(counter(c).map(|t| t.asked))),
    ("blocks_lost", |c| {
        text(counter(c).filter(|t| t.asked > 0).map(|t| t.blocks_lost))
    }),
    ("invented", |c| text(counter(c).map(|t| t.invented))),
];

/// What a run with open loops has besides.
const OPEN: &[Field] = &[
    ("rate_asked_per_s", |c| number(c.asked_per_s)),
    ("rate_drawn_per_s", |c| {
        median(open(c).and_then(|o| o.drawn_per_s))
    }),
    ("waiting_max", |c| text(open(c).map(|o| o.waiting_max))),
    ("never_sent", |c| text(open(c).map(|o| o.never_sent))),
    ("blocks_overloaded", |c| {
        text(open(c).map(|o| o.blocks_overloaded))
    }),
    ("blocks_generator_short", |c| {
        text(open(c).map(|o| o.blocks_generator_short))
    }),
];

/// What a run with searches for a highest rate has besides; the rate is theirs.
const SEARCHES: &[Field] = &[
    ("objective", |c| {
        text(search(c).map(|s| s.objective.clone()))
    }),
    ("objective_below_ns", |c| {
        text(search(c).map(|s| s.below_ns))
    }),
    ("step_ns", |c| text(search(c).map(|s| s.step_ns))),
    ("steps", |c| text(search(c).map(|s| s.steps))),
    ("closed_loop_per_s", |c| {
        median(search(c).and_then(|s| s.closed_loop_per_s))
    }),
    ("p50_at_highest_ns", |c| {
        median(search(c).and_then(|s| s.p50_ns))
    }),
    ("blocks_at_least", |c| {
        text(search(c).map(|s| s.blocks_at_least))
    }),
    ("blocks_nowhere", |c| {
        text(search(c).map(|s| s.blocks_nowhere))
    }),
];

/// Whether a cell has columns besides, and which.
type Family = (fn(&CellFigures) -> bool, &'static [Field]);

const FAMILIES: [Family; 5] = [
    (|c| c.program.is_some(), PROGRAMS),
    (|c| c.client.is_some(), CLIENTS),
    (|c| c.service.is_some(), SERVICES),
    (|c| c.open.is_some(), OPEN),
    (|c| c.search.is_some(), SEARCHES),
];

/// All cells.
pub fn csv(cells: &[CellFigures]) -> String {
    let columns = columns(cells);
    let line = |fields: Vec<String>| fields.join(",") + "\n";
    let mut text = line(columns.iter().map(|(name, _)| (*name).to_owned()).collect());
    for cell in cells {
        let field = |(_, values): &Column| {
            // A cell is of one kind, so that at most one of the values says something.
            let mut all = values.iter().map(|value| value.of(cell));
            csv_field(&all.find(|text| !text.is_empty()).unwrap_or_default())
        };
        text.push_str(&line(columns.iter().map(field).collect()));
    }
    text
}

/// What a column has of a cell.
enum Value {
    Metric(Metric),
    Field(fn(&CellFigures) -> String),
}

impl Value {
    fn of(&self, cell: &CellFigures) -> String {
        match self {
            Value::Metric(metric) => number((metric.value)(cell)),
            Value::Field(of) => of(cell),
        }
    }
}

/// A name, and what is below it.
type Column = (&'static str, Vec<Value>);

/// The columns of a file: one that two kinds of cells have is there once, with what the cell's own kind says.
fn columns(cells: &[CellFigures]) -> Vec<Column> {
    let field = |&(name, of): &Field| (name, Value::Field(of));
    let metrics = Metric::ALL.into_iter().filter(|m| !m.column.is_empty());
    let metrics = metrics.map(|metric| (metric.column, Value::Metric(metric)));
    let families = FAMILIES.iter().filter(|(has, _)| cells.iter().any(has));
    let all = HEAD.iter().map(field).chain(metrics);
    let all = all.chain(TAIL.iter().map(field));
    let all = all.chain(families.flat_map(|(_, fields)| fields.iter().map(field)));
    let mut columns: Vec<Column> = Vec::new();
    for (name, value) in all {
        match columns.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => columns.push((name, vec![value])),
        }
    }
    columns
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

fn program(cell: &CellFigures) -> Option<&ProgramFigures> {
    cell.program.as_ref()
}

fn elapsed(cell: &CellFigures) -> Option<Figure> {
    program(cell)?.elapsed_ns
}

fn durations(cell: &CellFigures) -> Option<&DurationFigures> {
    program(cell)?.durations.as_ref()
}

fn client(cell: &CellFigures) -> Option<&ClientFigures> {
    cell.client.as_ref()
}

fn spread(cell: &CellFigures, name: &str, of: fn(&SpreadFigure) -> f64) -> String {
    number(client(cell).and_then(|client| client.figures.get(name).map(of)))
}

fn mean(cell: &CellFigures, name: &str) -> String {
    spread(cell, name, |s| s.mean.median)
}

fn service(cell: &CellFigures) -> Option<&ServiceFigures> {
    cell.service.as_ref()
}

fn by_process(cell: &CellFigures) -> String {
    let process = |process: &ProcessFigures| {
        let ns = median(process.cpu_ns);
        format!("{}/{}:{ns}", process.role, process.name)
    };
    let all = service(cell).into_iter().flat_map(|s| &s.processes);
    all.map(process).collect::<Vec<_>>().join(" ")
}

fn counter(cell: &CellFigures) -> Option<&CounterFigures> {
    service(cell)?.counter.as_ref()
}

fn open(cell: &CellFigures) -> Option<&OpenFigures> {
    cell.open.as_ref()
}

fn search(cell: &CellFigures) -> Option<&SearchFigures> {
    cell.search.as_ref()
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
