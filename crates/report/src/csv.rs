//! The figures as comma-separated values, a row a cell, units in the names of the columns.
//!
//! A run that has only servers alone has only their columns; what programs, clients and services have
//! besides is to the right of them, and empty for the others. A column is a line below: its name, and where it is in a cell of
//! `summary.json`; those of the [metrics](crate::metrics) are theirs.
//! Not for: findings and comparisons of several cells, which `summary.json` has.

use serde_json::{Number, Value};

use crate::escape;
use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::lists::push_under;
use crate::metrics::Metric;

/// A column: its name, and the path of what it has of a cell. Of a [figure](crate::figure::Figure) that is its median.
type Column = (&'static str, &'static str);

/// What every run has, before the metrics.
const HEAD: &[Column] = &[
    ("cell", "cell"),
    ("subject", "subject"),
    ("workload", "workload"),
    ("connections", "connections"),
    ("settings", "settings"),
    ("verdict", "verdict"),
    ("blocks_measured", "trials.measured.length"),
    ("trials_failed", "trials.failed.length"),
    ("rate_per_s", "rate_per_s"),
    ("rate_low_per_s", "rate_per_s.low"),
    ("rate_high_per_s", "rate_per_s.high"),
    ("rate_spread", "rate_per_s.spread"),
    ("ratio", "ratio.ratio"),
    ("ratio_low", "ratio.low"),
    ("ratio_high", "ratio.high"),
    ("conclusion", "ratio.conclusion"),
];

/// What every run has, after the metrics.
const TAIL: &[Column] = &[
    ("completed", "completed"),
    ("errors", "errors"),
    ("findings", "findings"),
];

/// What a run has besides, where a cell has what its path begins with: some kinds of work only.
const KINDS: &[Column] = &[
    ("count", "program.count"),
    ("threads", "program.threads"),
    ("measure", "program.measure"),
    ("elapsed_ns", "program.elapsed_ns"),
    ("elapsed_low_ns", "program.elapsed_ns.low"),
    ("elapsed_high_ns", "program.elapsed_ns.high"),
    ("elapsed_spread", "program.elapsed_ns.spread"),
    ("bytes_per_s", "program.bytes_per_s"),
    ("wall_ns", "program.wall_ns"),
    ("cpu_user_ns", "program.cpu_user_ns"),
    ("cpu_system_ns", "program.cpu_system_ns"),
    ("checksum", "program.checksum"),
    ("runs", "program.durations.runs"),
    ("run_min_ns", "program.durations.min_ns"),
    ("run_mean_ns", "program.durations.mean_ns"),
    ("run_p99_ns", "program.durations.p99_ns"),
    ("run_p99_9_ns", "program.durations.p99_9_ns"),
    ("run_max_ns", "program.durations.max_ns"),
    ("deadline_ns", "program.durations.deadline_ns"),
    ("missed", "program.durations.missed_count"),
    ("work", "client.work"),
    ("peer", "client.peer"),
    ("network", "client.network"),
    ("client_threads", "client.threads"),
    ("peer_threads", "client.peer_threads"),
    ("client_elapsed_ns", "client.elapsed_ns"),
    ("client_wall_ns", "client.wall_ns"),
    ("cpu_user_ns_per_request", "client.cpu_user_ns"),
    ("cpu_system_ns_per_request", "client.cpu_system_ns"),
    ("cpu_peer_ns_per_request", "client.cpu_peer_ns"),
    ("cpu_ratio", "client.cpu_ratio.ratio"),
    ("client_bytes_per_s", "client.bytes_per_s"),
    ("in_flight", "client.in_flight"),
    ("busy_client", "client.busy_client"),
    ("busy_peer", "client.busy_peer"),
    ("limit", "client.limit"),
    ("in_flight_said", "client.counts.in_flight"),
    ("requests_by_peer", "client.counts.by_peer"),
    ("blocks_compared", "client.counts.compared"),
    ("blocks_agreed", "client.counts.agree"),
    ("discards", "client.discards"),
    ("socket_ns", "client.figures.socket_ns.mean"),
    ("setup_ns", "client.figures.setup_ns.mean"),
    ("connect_ns", "client.figures.connect_ns.mean"),
    ("first_byte_ns", "client.figures.first_byte_ns.mean"),
    ("download_ns", "client.figures.download_ns.mean"),
    ("download_min_ns", "client.figures.download_ns.min"),
    ("download_max_ns", "client.figures.download_ns.max"),
    ("download_stdev_ns", "client.figures.download_ns.stdev"),
    ("rate_bytes_per_s", "client.download_bytes_per_s"),
    ("run_ns", "client.figures.run_ns.mean"),
    ("pss_bytes", "client.figures.pss_bytes.mean"),
    ("stall_max_ns", "client.figures.stall_ns.max"),
    ("row", "service.row.title"),
    ("baseline", "service.row.baseline"),
    ("front", "service.front"),
    ("backings", "service.backings"),
    ("instances", "service.instances"),
    ("generators", "service.generators"),
    ("output", "service.output"),
    (
        "deviation_over_seconds_per_s",
        "service.seconds.deviation_per_s",
    ),
    ("seconds", "service.seconds.count"),
    ("cpu_front_ns_per_request", "service.cpu_ns.front"),
    ("cpu_backing_ns_per_request", "service.cpu_ns.backing"),
    ("cpu_by_process_ns_per_request", "service.processes"),
    ("memory_peak_front_bytes", "service.memory_peak_bytes.front"),
    (
        "memory_peak_backing_bytes",
        "service.memory_peak_bytes.backing",
    ),
    ("busy_subject", "service.busy_subject"),
    ("busy_generator", "service.busy_generator"),
    ("limit", "service.limit"),
    ("acknowledged", "service.counter.acknowledged"),
    ("unanswered", "service.counter.unanswered"),
    ("counted", "service.counter.counted"),
    ("uncounted", "service.counter.uncounted"),
    ("kept", "service.counter.kept"),
    ("lost", "service.counter.lost"),
    ("blocks_asked", "service.counter.asked"),
    ("blocks_lost", "service.counter.blocks_lost"),
    ("invented", "service.counter.invented"),
    // A cell has it before it is measured.
    ("rate_asked_per_s", "asked_per_s"),
    ("rate_drawn_per_s", "open.drawn_per_s"),
    ("waiting_max", "open.waiting_max"),
    ("never_sent", "open.never_sent"),
    ("blocks_overloaded", "open.blocks_overloaded"),
    ("blocks_generator_short", "open.blocks_generator_short"),
    ("objective", "search.objective"),
    ("objective_below_ns", "search.below_ns"),
    ("step_ns", "search.step_ns"),
    ("steps", "search.steps"),
    ("closed_loop_per_s", "search.closed_loop_per_s"),
    ("p50_at_highest_ns", "search.p50_ns"),
    ("blocks_at_least", "search.blocks_at_least"),
    ("blocks_nowhere", "search.blocks_nowhere"),
];

/// All cells.
pub fn csv(cells: &[CellFigures]) -> String {
    let cells = cells.iter().map(serde_json::to_value);
    let cells: Vec<Value> = cells.filter_map(Result::ok).collect();
    let is_there = |(_, path): &&Column| {
        let kind = path.split('.').next().unwrap_or_default();
        cells.iter().any(|cell| cell.get(kind).is_some())
    };
    let metrics = Metric::ALL
        .iter()
        .map(|metric| (metric.column, metric.shown.path));
    let metrics: Vec<Column> = metrics.filter(|(name, _)| !name.is_empty()).collect();
    let all = HEAD.iter().chain(&metrics).chain(TAIL);
    // One that two kinds of cells have is there once, with what the cell's own kind says.
    let mut columns: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, path) in all.chain(KINDS.iter().filter(is_there)) {
        push_under(&mut columns, name, path);
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut text = line(&names);
    for cell in &cells {
        let field = |(_, paths): &(&str, Vec<&str>)| {
            let mut texts = paths.iter().map(|path| field(cell, path));
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        };
        text.push_str(&line(&columns.iter().map(field).collect::<Vec<_>>()));
    }
    text
}

/// A line of fields by RFC 4180. One that a spreadsheet would take for a formula is kept from that.
pub fn line(fields: &[impl AsRef<str>]) -> String {
    let field = |field: &_| {
        let text = escape::clean(AsRef::as_ref(field));
        let is_formula = text.starts_with(['=', '+', '@'])
            || text.starts_with('-') && text.parse::<f64>().is_err();
        let text = if is_formula { format!("'{text}") } else { text };
        match text.contains([',', '"']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text,
        }
    };
    fields.iter().map(field).collect::<Vec<_>>().join(",") + "\n"
}

/// What a cell has at the path of a column.
fn field(cell: &Value, path: &str) -> String {
    let at = |path: &str| path.split('.').fold(cell, |value, key| &value[key]);
    // Of a number that was not asked for it is not known what became of it.
    let asked = match path.strip_prefix("service.counter.") {
        Some("counted" | "uncounted") => "service.counter.read",
        Some("kept" | "lost" | "blocks_lost") => "service.counter.asked",
        _ => "",
    };
    match (path.strip_suffix(".length"), at(asked).as_u64()) {
        (_, Some(0)) => String::new(),
        (Some(list), _) => at(list).as_array().map_or(0, Vec::len).to_string(),
        // Of a figure over the blocks its median.
        (None, _) => words(at(path).get("median").unwrap_or_else(|| at(path))),
    }
}

/// A value in one field: of a figure its median, of a process its CPU time.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(is) => is.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(value) => number(value),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(" "),
        Value::Object(of) if of.values().all(Value::is_string) => {
            let settings = of
                .iter()
                .map(|(name, value)| format!("{name}={}", words(value)));
            settings.collect::<Vec<_>>().join(" ")
        }
        Value::Object(of) if of.contains_key("median") => words(&value["median"]),
        Value::Object(_) => {
            let [role, name, cpu] = ["role", "name", "cpu_ns"].map(|key| words(&value[key]));
            format!("{role}/{name}:{cpu}")
        }
    }
}

fn number(value: &Number) -> String {
    match (value.as_f64(), value.as_u64()) {
        (Some(INFINITE), _) => "inf".to_owned(),
        (_, Some(whole)) => whole.to_string(),
        (Some(value), None) => value.to_string(),
        (None, None) => String::new(),
    }
}
