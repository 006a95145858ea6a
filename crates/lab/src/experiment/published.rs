//! `[[published]]`: claims of published documents, and which cells answer them. Pure.
//!
//! They say nothing of what is measured. So they stand at the end of a file, and what names an experiment (its digest) is
//! of the text before them: [`measured`].
//!
//! Not for: whether the cells are there, which only the plan can tell ([`crate::plan::check_published`]).

use std::ops::Range;

use prony_base::typed::share;
use prony_record::{CellMetric, Dimension, Stated};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Problems, Value};
use super::keys::{self, CONNECTIONS};
use super::types::{Connections, Experiment, Published, Wanted};
use super::words::short;
use super::{rows, work};
use crate::diagnosis::{Diagnosis, suggest};

/// The key.
pub const KEY: &str = "published";
/// How far two ratios may be apart and still be the same, where a claim does not say it.
const WITHIN: f64 = 0.1;
/// Bytes of a claim, of its source, and of a reason, at the most.
const TEXT_BYTES_MAX: usize = 400;
const FIGURE: &str = "figure = { is = \"ratio\", value = 1.5 }";
const KINDS: [&str; 5] = ["absolute", "ratio", "higher", "lower", "range"];
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
pub fn measured<'t>(text: &'t str, root: &DeTable<'_>) -> &'t str {
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
pub fn check_last(root: &DeTable<'_>, p: &mut Problems) {
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
        p.note(Diagnosis::new(place, message).help(help));
    }
}

/// One of `[[published]]`.
pub fn read(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Published> {
    let place = table.span.clone();
    let text = line(
        table.text_needed("text", "text = \"A is faster than B\"", p),
        p,
    );
    let source = table.text_needed("where", "where = \"README, Benchmarks\"", p);
    let source = line(source, p);
    let why_not = line(table.text("why_not", p), p);
    let cores_min = table.whole("cores", 1..=4_096, p).map_or(0, |n| n as u32);
    let original = table.table("original", "original = {…}", p);
    let original = original.and_then(|table| wanted(table, p));
    let ours = table.table("ours", "ours = {…}", p);
    let ours = ours.and_then(|table| wanted(table, p));
    let is_answered = table.has("original") || table.has("ours");
    let stated = match table.table("figure", FIGURE, p) {
        Some(figure) => stated(figure, p)?,
        None if is_answered && !table.has("figure") => {
            table.missing("figure", FIGURE, p);
            return None;
        }
        None => Stated::Words,
    };
    let (told_why, has_original) = (table.has("why_not"), table.has("original"));
    if told_why == has_original && (has_original || !is_answered) {
        let message = "a claim has cells that answer it, or the reason why the original cannot";
        let help =
            "give `original`, `ours` or both; or why_not = \"…\", which may stand beside `ours`";
        p.note(Diagnosis::new(place, message).help(help));
    }
    for wanted in original.iter().chain(&ours) {
        check_fits(stated, wanted, p);
    }
    table.finish(&[], p);
    Some(Published {
        text: text?,
        source: source?,
        stated,
        original,
        ours,
        cores_min,
        why_not: why_not.unwrap_or_default(),
    })
}

/// A text of one line, which tables can show.
fn line(text: Option<Spanned<String>>, p: &mut Problems) -> Option<String> {
    let text = text?;
    let own = text.get_ref();
    if own.trim().is_empty() || own.len() > TEXT_BYTES_MAX || own.contains(char::is_control) {
        let message = format!("this is one line of at most {TEXT_BYTES_MAX} bytes");
        p.note(Diagnosis::new(text.span(), message));
        return None;
    }
    Some(text.into_inner())
}

/// `figure`.
fn stated(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Stated> {
    let kind = table.text_needed("is", "is = \"ratio\"", p)?;
    let stated = match kind.get_ref().as_str() {
        "higher" => Some(Stated::Higher),
        "lower" => Some(Stated::Lower),
        "ratio" => {
            let within = match table.text("within", p) {
                None => WITHIN,
                Some(text) => share::parse_positive(text.get_ref())
                    .map_err(|why| p.note(Diagnosis::new(text.span(), why)))
                    .ok()?,
            };
            let value = number_needed(&mut table, "value", p)?;
            Some(Stated::Ratio { value, within })
        }
        "absolute" => {
            let (dimension, factor) = unit(&mut table, p)?;
            let value = number_needed(&mut table, "value", p)? * factor;
            Some(Stated::Absolute { value, dimension })
        }
        "range" => {
            let (dimension, factor) = unit(&mut table, p)?;
            let mut end = |key| number(&mut table, key, p).map(|end: f64| end * factor);
            let (from, to) = (end("from"), end("to"));
            let is_upside_down = matches!((from, to), (Some(from), Some(to)) if from > to);
            if from.or(to).is_none() || is_upside_down {
                let message = "a range has `from`, `to` or both, in this order";
                p.note(Diagnosis::new(table.span.clone(), message));
                return None;
            }
            Some(Stated::Range {
                from,
                to,
                dimension,
            })
        }
        other => {
            let message = format!("`{}` is no kind of figure", short(other));
            let help = suggest(other, "kind", &KINDS);
            p.note(Diagnosis::new(kind.span(), message).help(help));
            return None;
        }
    };
    table.finish(&[], p);
    stated
}

fn unit(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<(Dimension, f64)> {
    let Some(text) = table.text("unit", p) else {
        return (!table.has("unit")).then_some((Dimension::Number, 1.0));
    };
    let found = UNITS.iter().find(|(name, ..)| name == text.get_ref());
    if found.is_none() {
        let words = UNITS.map(|(name, ..)| name);
        let message = format!("`{}` is no unit", short(text.get_ref()));
        let help = suggest(text.get_ref(), "unit", &words);
        p.note(Diagnosis::new(text.span(), message).help(help));
    }
    found.map(|(_, dimension, factor)| (*dimension, *factor))
}

fn number_needed(table: &mut Fields<'_, '_>, key: &'static str, p: &mut Problems) -> Option<f64> {
    if !table.has(key) {
        table.missing(key, &format!("{key} = 1.5"), p);
        return None;
    }
    number(table, key, p)
}

/// A number that is not negative.
fn number(table: &mut Fields<'_, '_>, key: &'static str, p: &mut Problems) -> Option<f64> {
    let value = table.value(key)?;
    let text = match value.get_ref() {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => "",
    };
    let read = text.replace('_', "").parse::<f64>().ok();
    let read = read.filter(|number| number.is_finite() && *number >= 0.0);
    if read.is_none() {
        let message = format!("`{key}` must be a number that is not negative");
        p.note(Diagnosis::new(value.span(), message));
    }
    read
}

/// What one table says of a cell; nothing of it need be there in `over`.
struct Said {
    place: Range<usize>,
    subject: Option<Spanned<String>>,
    workload: Option<Spanned<String>>,
    connections: Option<Spanned<Connections>>,
    count: Option<u64>,
    metric: Option<CellMetric>,
    settings: Vec<(Spanned<String>, Spanned<String>)>,
}

/// `original` or `ours`.
fn wanted(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Wanted> {
    let over = match table.table("over", "over = {…}", p) {
        Some(over) => Some(said(over, p)?),
        None if table.has("over") => return None,
        None => None,
    };
    for (key, example) in [
        ("subject", "subject = \"rust/axum\""),
        ("workload", "workload = \"ping\""),
        ("metric", "metric = \"rate\""),
    ] {
        if !table.has(key) {
            table.missing(key, example, p);
        }
    }
    let own = said(table, p)?;
    let whole = Wanted {
        place: own.place,
        subject: own.subject?,
        workload: own.workload?,
        connections: own.connections,
        count: own.count,
        settings: own.settings,
        metric: own.metric?,
        over: None,
    };
    let over = over.map(|over| Box::new(laid_over(&whole, over)));
    Some(Wanted { over, ..whole })
}

/// `base` with what `over` says in its place. Settings of one subject are none of another.
fn laid_over(base: &Wanted, over: Said) -> Wanted {
    let mut settings = match over.subject {
        Some(_) => Vec::new(),
        None => base.settings.clone(),
    };
    settings.retain(|(name, _)| over.settings.iter().all(|(other, _)| other != name));
    settings.extend(over.settings);
    Wanted {
        place: over.place,
        subject: over.subject.unwrap_or_else(|| base.subject.clone()),
        workload: over.workload.unwrap_or_else(|| base.workload.clone()),
        connections: over.connections.or_else(|| base.connections.clone()),
        count: over.count.or(base.count),
        settings,
        metric: over.metric.unwrap_or(base.metric),
        over: None,
    }
}

fn said(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Said> {
    // It was read already, and is no setting.
    let _ = table.value("over");
    let connections = match table.value("connections") {
        None => None,
        Some(value) => {
            let read = keys::connections(value, p)?;
            match read[..] {
                [one] => Some(Spanned::new(value.span(), one)),
                _ => {
                    let message = format!(
                        "one number of connections, from {} to {}, or \"max\"",
                        CONNECTIONS.start(),
                        CONNECTIONS.end()
                    );
                    p.note(Diagnosis::new(value.span(), message));
                    return None;
                }
            }
        }
    };
    let metric = match table.text("metric", p) {
        None => None,
        Some(text) => Some(metric(&text, p)?),
    };
    Some(Said {
        place: table.span.clone(),
        subject: table.text("subject", p),
        workload: table.text("workload", p),
        connections,
        count: table.whole("count", work::COUNT, p),
        metric,
        settings: rows::values_by_setting(&table, p),
    })
}

fn metric(text: &Spanned<String>, p: &mut Problems) -> Option<CellMetric> {
    let found = CellMetric::ALL
        .into_iter()
        .find(|metric| metric.name() == text.get_ref());
    if found.is_none() {
        let message = format!("there is no metric `{}`", short(text.get_ref()));
        let words = CellMetric::ALL.map(CellMetric::name);
        let help = suggest(text.get_ref(), "metric", &words);
        p.note(Diagnosis::new(text.span(), message).help(help));
    }
    found
}

/// Whether a claim of this kind can be answered by such a figure.
fn check_fits(stated: Stated, wanted: &Wanted, p: &mut Problems) {
    let mut note = |message: String| p.note(Diagnosis::new(wanted.place.clone(), message));
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
pub fn check_within(experiment: &Experiment, p: &mut Problems) {
    let workloads: Vec<&str> = experiment
        .workloads
        .iter()
        .map(|workload| workload.name.get_ref().as_str())
        .collect();
    let claims = experiment.published.iter();
    let wanted = claims.flat_map(|claim| claim.original.iter().chain(&claim.ours));
    for wanted in wanted.flat_map(Wanted::both) {
        keys::known("workload", &wanted.workload, &workloads, p);
        for (name, value) in &wanted.settings {
            let Some(setting) = experiment.settings.iter().find(|s| s.name == *name) else {
                let mut keys = vec![
                    "subject",
                    "workload",
                    "connections",
                    "count",
                    "metric",
                    "over",
                ];
                keys.extend(
                    experiment
                        .settings
                        .iter()
                        .map(|s| s.name.get_ref().as_str()),
                );
                let message = format!("unknown key `{}` of a cell", short(name.get_ref()));
                let help = suggest(name.get_ref(), "key", &keys);
                p.note(Diagnosis::new(name.span(), message).help(help));
                continue;
            };
            let values: Vec<&str> = setting.values.iter().map(String::as_str).collect();
            keys::known_value(name, value, &values, p);
        }
    }
}
