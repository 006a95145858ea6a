//! `[[published]]`: claims of published documents, and which cells answer them. Pure.
//!
//! They say nothing of what is measured. So they stand at the end of a file, and what names an experiment (its digest) is
//! of the text before them: [`without_claims`].
//!
//! Not for: whether the cells are there, which only the plan can tell ([`crate::plan::check_published`]).

use std::ops::Range;

use prony_base::typed::share;
use prony_record::{CellMetric, Dimension, Stated};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Problems, Value};
use super::types::{Experiment, Published, Wanted};
use super::words::short;
use super::{keys, rows};
use crate::diagnosis::suggest;

/// The key.
pub const KEY: &str = "published";
/// Units, what they are of, and how many of the units of records they are.
const UNITS: [(&str, Dimension, f64); 21] = [
    ("ns", Dimension::Time, 1.0),
    ("us", Dimension::Time, 1e3),
    ("µs", Dimension::Time, 1e3),
    ("ms", Dimension::Time, 1e6),
    ("s", Dimension::Time, 1e9),
    ("B", Dimension::Bytes, 1.0),
    ("kB", Dimension::Bytes, 1e3),
    ("MB", Dimension::Bytes, 1e6),
    ("GB", Dimension::Bytes, 1e9),
    ("KiB", Dimension::Bytes, 1024.0),
    ("MiB", Dimension::Bytes, 1_048_576.0),
    ("GiB", Dimension::Bytes, 1_073_741_824.0),
    ("/s", Dimension::Rate, 1.0),
    ("k/s", Dimension::Rate, 1e3),
    ("M/s", Dimension::Rate, 1e6),
    ("B/s", Dimension::Throughput, 1.0),
    ("MB/s", Dimension::Throughput, 1e6),
    ("MiB/s", Dimension::Throughput, 1_048_576.0),
    ("GB/s", Dimension::Throughput, 1e9),
    ("", Dimension::Number, 1.0),
    ("%", Dimension::Number, 0.01),
];

/// The part of an experiment's text that says what is measured: all before its claims, and before blank lines and comments
/// that stand directly above these.
pub fn without_claims<'t>(text: &'t str, root: &DeTable<'_>) -> &'t str {
    let Some(start) = start(root) else {
        return text;
    };
    // The line of the first thing in a claim, and back to the header above it: only comments can be in between.
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > start {
            break;
        }
        lines.push((at, line.trim()));
        at += line.len();
    }
    let header = lines.iter().rposition(|(_, line)| is_header(line));
    lines.truncate(header.unwrap_or(lines.len().saturating_sub(1)) + 1);
    let first = lines.pop().map_or(0, |(at, _)| at);
    let is_said = |line: &str| !line.is_empty() && !line.starts_with('#');
    let last = lines.iter().rposition(|(_, line)| is_said(line));
    let end = last.map_or(0, |last| lines.get(last + 1).map_or(first, |(at, _)| *at));
    &text[..end]
}

fn is_header(line: &str) -> bool {
    let inner = line
        .strip_prefix("[[")
        .and_then(|rest| rest.split_once("]]"));
    inner.is_some_and(|(name, _)| name.trim().trim_matches(['"', '\'']) == KEY)
}

/// Where the first claim, or something of it, stands.
fn start(root: &DeTable<'_>) -> Option<usize> {
    let (key, value) = root.get_key_value(KEY)?;
    Some(key.span().start.min(extent(value).start))
}

/// From the first to the last thing in a value that has a place.
fn extent(value: &Value<'_>) -> Range<usize> {
    let all: Vec<Range<usize>> = match value.get_ref() {
        DeValue::Array(items) => items.iter().map(extent).collect(),
        DeValue::Table(table) => table
            .iter()
            .flat_map(|(key, value)| [key.span(), extent(value)])
            .collect(),
        _ => Vec::new(),
    };
    let own = value.span();
    let start = all.iter().map(|of| of.start).min();
    let end = all.iter().map(|of| of.start).max();
    start.unwrap_or(own.start).min(own.start)..end.unwrap_or(own.start).max(own.start)
}

/// Claims stand last, so that what is measured is all before them.
pub fn check_last(root: &DeTable<'_>, p: &Problems) {
    let Some(start) = start(root) else { return };
    for (key, value) in root {
        if key.get_ref() == KEY || extent(value).end.max(key.span().start) < start {
            continue;
        }
        let message = format!("`{}` stands behind [[{KEY}]]", short(key.get_ref()));
        let help = format!("claims stand at the end of the file: move [[{KEY}]] behind all else");
        let place = match key.span() {
            header if header.start > start => header,
            _ => extent(value).end..value.span().end,
        };
        p.advise(place, message, help);
    }
}

/// One of `[[published]]`.
pub fn read(table: &Fields<'_>) -> Option<Published> {
    let (text, source) = (table.get("text"), table.get("where"));
    let (cores_min, why_not) = (table.value("cores"), table.value("why_not"));
    let original = table
        .table("original")
        .and_then(|table| wanted(&table, None));
    let ours = table.table("ours").and_then(|table| wanted(&table, None));
    let has_original = table.has("original");
    let is_answered = has_original || table.has("ours");
    let stated = match table.table("figure") {
        Some(figure) => stated(&figure)?,
        None if is_answered && !table.has("figure") => {
            table.missing("figure", "figure = { is = \"ratio\", value = 1.5 }");
            return None;
        }
        None => Stated::Words,
    };
    if table.has("why_not") == has_original && (has_original || !is_answered) {
        let message = "a claim has cells that answer it, or the reason why the original cannot";
        let help =
            "give `original`, `ours` or both; or why_not = \"…\", which may stand beside `ours`";
        table.problems.advise(table.span.clone(), message, help);
    }
    for wanted in original.iter().chain(&ours) {
        check_fits(stated, wanted, table.problems);
    }
    Some(Published {
        text: text?,
        source: source?,
        stated,
        original,
        ours,
        cores_min,
        why_not,
    })
}

/// `figure`.
fn stated(table: &Fields<'_>) -> Option<Stated> {
    let kind: String = table.get("is")?;
    let others: &[&str] = match kind.as_str() {
        "higher" | "lower" => &["value", "within", "unit", "from", "to"],
        "ratio" => &["unit", "from", "to"],
        "absolute" => &["within", "from", "to"],
        _ => &["value", "within"],
    };
    let message = format!("`{{key}}` is no key of a figure that is {kind}");
    table.refuse(others, &message, "");
    match kind.as_str() {
        "higher" => Some(Stated::Higher),
        "lower" => Some(Stated::Lower),
        "ratio" => Some(Stated::Ratio {
            within: table.parsed("within", share::parse_positive)?,
            value: number_needed(table, "value")?,
        }),
        "absolute" => {
            let (dimension, factor) = unit(table)?;
            let value = number_needed(table, "value")? * factor;
            Some(Stated::Absolute { value, dimension })
        }
        "range" => {
            let (dimension, factor) = unit(table)?;
            let end = |key| table.get(key).map(|end: f64| end * factor);
            let (from, to) = (end("from"), end("to"));
            let is_upside_down = matches!((from, to), (Some(from), Some(to)) if from > to);
            if from.or(to).is_none() || is_upside_down {
                let message = "a range has `from`, `to` or both, in this order";
                table.problems.note(table.span.clone(), message);
                return None;
            }
            Some(Stated::Range {
                from,
                to,
                dimension,
            })
        }
        _ => None,
    }
}

fn unit(table: &Fields<'_>) -> Option<(Dimension, f64)> {
    if !table.has("unit") {
        return Some((Dimension::Number, 1.0));
    }
    let name: String = table.get("unit")?;
    let unit = UNITS.iter().find(|(own, ..)| *own == name);
    if unit.is_none() {
        let message = format!("`{}` is no unit", short(&name));
        let help = suggest(&name, "unit", &UNITS.map(|(own, ..)| own));
        table.note("unit", message, help);
    }
    unit.map(|(_, dimension, factor)| (*dimension, *factor))
}

fn number_needed(table: &Fields<'_>, key: &'static str) -> Option<f64> {
    if !table.has(key) {
        table.missing(key, &format!("{key} = 1.5"));
    }
    table.get(key)
}

/// `original` or `ours`; or what it is divided by, where nothing of its `base` need be said again.
fn wanted(table: &Fields<'_>, base: Option<&Wanted>) -> Option<Wanted> {
    let inherited = |key: &str| base.filter(|_| !table.has(key));
    let name = |key, of: fn(&Wanted) -> &Spanned<String>| match inherited(key) {
        Some(base) => Some(of(base).clone()),
        None => table.get(key),
    };
    let subject = name("subject", |of| &of.subject);
    let workload = name("workload", |of| &of.workload);
    let metric = match inherited("metric") {
        Some(base) => Some(base.metric),
        None => metric(table),
    };
    let (connections, count) = (table.get("connections"), table.get("count"));
    let own = rows::values_by_setting(table);
    // Settings of one subject are none of another.
    let settings = inherited("subject").map(|base| base.settings.clone());
    let mut settings = settings.unwrap_or_default();
    settings.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
    settings.extend(own);
    let over = match base {
        Some(_) => None,
        None => table.table("over"),
    };
    let wanted = Wanted {
        place: table.span.clone(),
        subject: subject?,
        workload: workload?,
        connections: connections.or_else(|| base?.connections.clone()),
        count: count.or_else(|| base?.count),
        settings,
        metric: metric?,
        over: None,
    };
    let over = match over {
        Some(over) => Some(Box::new(self::wanted(&over, Some(&wanted))?)),
        None if base.is_none() && table.has("over") => return None,
        None => None,
    };
    Some(Wanted { over, ..wanted })
}

fn metric(table: &Fields<'_>) -> Option<CellMetric> {
    let name: String = table.get("metric")?;
    let mut all = CellMetric::ALL.into_iter();
    let found = all.find(|metric| metric.name() == name);
    if found.is_none() {
        let message = format!("there is no metric `{}`", short(&name));
        let help = suggest(&name, "metric", &CellMetric::ALL.map(CellMetric::name));
        table.note("metric", message, help);
    }
    found
}

/// Whether a claim of this kind can be answered by such a figure.
fn check_fits(stated: Stated, wanted: &Wanted, p: &Problems) {
    let note = |message: String| p.note(wanted.place.clone(), message);
    let dimension = wanted.metric.dimension();
    if let Some(over) = &wanted.over {
        if !wanted.metric.is_of_blocks() || !over.metric.is_of_blocks() {
            note("`over`: errors, missed, longest, shortest and exponent are of a whole run, and have no ratio".into());
        } else if over.metric.dimension() != dimension {
            note("`over` has a metric of another unit".into());
        }
    }
    match (stated, wanted.over.is_some()) {
        (Stated::Ratio { .. } | Stated::Higher | Stated::Lower, false) => {
            note("a ratio or an order needs a second cell: over = {…} says how it differs".into());
        }
        (Stated::Absolute { .. }, true) => {
            note("an absolute figure is one of a single cell, without `over`".into());
        }
        (Stated::Absolute { dimension: of, .. }, false) if of != dimension => {
            note("`unit` of the figure is not that of the metric".into());
        }
        (Stated::Range { dimension: of, .. }, over) => {
            let right = if over { Dimension::Number } else { dimension };
            if of != right {
                note("`unit` of the figure is not that of the metric".into());
            }
        }
        _ => {}
    }
}

/// What can be checked without the subjects' own files.
pub fn check_within(experiment: &Experiment, p: &Problems) {
    let workloads = experiment.workload_names();
    let claims = experiment.published.iter();
    let wanted = claims.flat_map(|claim| claim.original.iter().chain(&claim.ours));
    for wanted in wanted.flat_map(Wanted::both) {
        keys::known("workload", &wanted.workload, &workloads, p);
        let place = ("published.original", "of a cell");
        keys::check_settings(experiment, place, &wanted.settings, p);
    }
}
