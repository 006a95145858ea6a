//! The figures as comma-separated values, a row a cell, units in the names of the columns.
//!
//! A run that has only servers alone has only their columns; what programs, clients and services have
//! besides is to the right of them, and empty for the others. A column is a word: its name, which is where it is in a cell of
//! `summary.json` unless that stands behind it; those of the [metrics](crate::metrics) are theirs.
//! Not for: findings and comparisons of several cells, which `summary.json` has.

use serde_json::{Number, Value};

use crate::escape;
use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::lists::push_under;
use crate::metrics::Metric;

/// A column: its name, and the path of what it has of a cell. Of a [figure](crate::figure::Figure) that is its median.
type Column = (&'static str, String);

/// What every run has, before the metrics.
const HEAD: &str = "cell subject workload connections settings verdict blocks_measured=trials.measured.length \
    trials_failed=trials.failed.length rate_per_s rate_low_per_s=rate_per_s.low rate_high_per_s=rate_per_s.high \
    rate_spread=rate_per_s.spread ratio=ratio.ratio ratio_low=ratio.low ratio_high=ratio.high conclusion=ratio.conclusion";

/// What every run has, after the metrics.
const TAIL: &str = "completed errors findings";

/// What a run has besides, where a cell has what its path begins with: some kinds of work only. A rate that is asked for a cell has before it
/// is measured.
const KINDS: &str = include_str!("templates/columns.txt");

/// The columns of lines that have their names, each with its path where that is another, below the path that the line begins with.
fn columns(lines: &'static str) -> impl Iterator<Item = Column> {
    let of_line = |line: &'static str| {
        let (place, words) = line.split_once(": ").unwrap_or(("", line));
        words.split(' ').map(move |word| {
            let (name, path) = word.split_once('=').unwrap_or((word, word));
            let path = format!("{place}.{path}");
            (name, path.trim_start_matches('.').to_owned())
        })
    };
    lines.lines().flat_map(of_line)
}

/// All cells.
pub fn csv(cells: &[CellFigures]) -> String {
    let metrics = Metric::ALL.into_iter().filter(|of| of.is_in(cells));
    let cells = cells.iter().map(serde_json::to_value);
    let cells: Vec<Value> = cells.filter_map(Result::ok).collect();
    let is_there = |(_, path): &Column| {
        let kind = path.split('.').next().unwrap_or_default();
        cells.iter().any(|cell| cell.get(kind).is_some())
    };
    let metrics = metrics.map(|metric| (metric.column, metric.shown.path.to_owned()));
    let metrics = metrics.filter(|(name, _)| !name.is_empty());
    let all = columns(HEAD).chain(metrics).chain(columns(TAIL));
    // One that two kinds of cells have is there once, with what the cell's own kind says.
    let mut all_columns: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, path) in all.chain(columns(KINDS).filter(is_there)) {
        push_under(&mut all_columns, name, path);
    }
    let names: Vec<&str> = all_columns.iter().map(|(name, _)| *name).collect();
    let mut text = line(&names);
    for cell in &cells {
        let field = |(_, paths): &(&str, Vec<String>)| {
            let mut texts = paths.iter().map(|path| field(cell, path));
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        };
        text.push_str(&line(&all_columns.iter().map(field).collect::<Vec<_>>()));
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
        // Of a figure its median.
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
