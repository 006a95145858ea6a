//! What a bound figure is called, and what a run says that it is.
//!
//! ```text
//! NAME ["CELL or WORKLOAD"] [KEY=VALUE …] [as=FORM] [unit=UNIT]
//! ```
//!
//! A name is a path in `summary.json` (`latency_ns.p99.low`), or one of the short ones of [`SHORT`]. With a cell, or keys that
//! leave one, it is looked for there; without, in the whole. Units follow from the names in the file, which end with them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::escape;
use crate::numbers;

/// Short names, and what they stand for in a cell.
const SHORT: [(&str, &str); 16] = [
    ("rate", "rate_per_s"),
    ("p50", "latency_ns.p50"),
    ("p90", "latency_ns.p90"),
    ("p99", "latency_ns.p99"),
    ("p99_9", "latency_ns.p99_9"),
    ("max", "latency_max_ns"),
    ("cpu", "cpu_subject_ns"),
    ("cpu_generator", "cpu_generator_ns"),
    ("memory", "memory_peak_bytes"),
    ("ready", "ready_ns"),
    ("first", "first_answer_ns"),
    ("after-rest", "after_rest_ns"),
    ("blocks", "rate_per_s.blocks"),
    ("ratio.p50", "ratios.p50"),
    ("ratio.p99", "ratios.p99"),
    ("ratio.cpu", "ratios.cpu_subject"),
];
/// Keys that are none of a setting.
const KEYS: [&str; 6] = ["cell", "subject", "workload", "connections", "n", "rate"];
const FORMS: [&str; 6] = ["value", "interval", "whole", "times", "change", "claim"];
const UNITS: [&str; 7] = [
    "rate", "time", "bytes", "percent", "count", "ratio", "number",
];
/// The smallest differences that a run can tell, by workload.
const RESOLUTION: &str = "resolution";

/// Why there is no figure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wrong {
    /// A word that is none here, what it is to be, and those that are.
    Unknown {
        /// As it was typed.
        typed: String,
        /// `figure`, `subject`, `form`.
        kind: String,
        /// What would be right.
        words: Vec<String>,
    },
    /// Anything else, in words.
    Other(String),
}

fn other<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Other(what.into()))
}

fn unknown<T>(
    typed: &str,
    kind: &str,
    words: impl IntoIterator<Item = impl ToString>,
) -> Result<T, Wrong> {
    Err(Wrong::Unknown {
        typed: typed.to_owned(),
        kind: kind.to_owned(),
        words: words.into_iter().map(|word| word.to_string()).collect(),
    })
}

/// The figure that `words` name, of the run whose `summary.json` is `summary`, as documents write it.
pub fn figure(summary: &Value, words: &str) -> Result<String, Wrong> {
    let query = Query::of(words)?;
    let name = query.name.as_str();
    if name == RESOLUTION {
        return resolution(summary, &query);
    }
    if query.cell.is_none() && query.keys.is_empty() {
        let text = name == "answer" || name.starts_with("answer.");
        let found = at(summary, name)?;
        return match found {
            Value::String(line) if text => Ok(escape::markdown(line)),
            found => shown(found, name, &query, ""),
        };
    }
    let cell = query.cell_of(summary)?;
    let short = SHORT.iter().find(|(short, _)| *short == name);
    let path = short.map_or(name, |(_, path)| path);
    let found = at(cell, path)?;
    let bound = bound(cell, path)?;
    shown(found, path, &query, bound)
}

/// Words, taken apart.
struct Query {
    name: String,
    cell: Option<String>,
    keys: Vec<(String, String)>,
    form: String,
    unit: Option<String>,
}

impl Query {
    fn of(text: &str) -> Result<Query, Wrong> {
        let mut words = words(text)?.into_iter();
        let Some((None, name)) = words.next() else {
            return other("the name of a figure comes first: {{rate \"ping\" subject=rust/prony}}");
        };
        let mut query = Query {
            name,
            cell: None,
            keys: Vec::new(),
            form: FORMS[0].to_owned(),
            unit: None,
        };
        for (key, value) in words {
            match key.as_deref() {
                None if query.cell.is_some() => {
                    return other(format!("`{value}`: a cell or workload is named already"));
                }
                None => query.cell = Some(value),
                Some("as") if !FORMS.contains(&&*value) => return unknown(&value, "form", FORMS),
                Some("as") => query.form = value,
                Some("unit") if !UNITS.contains(&&*value) => return unknown(&value, "unit", UNITS),
                Some("unit") => query.unit = Some(value),
                Some(key) => query.keys.push((key.to_owned(), value)),
            }
        }
        Ok(query)
    }

    /// The one cell that is meant.
    fn cell_of<'a>(&self, summary: &'a Value) -> Result<&'a Value, Wrong> {
        let all: Vec<&Value> = summary["cells"].as_array().into_iter().flatten().collect();
        let mut left = all.clone();
        if let Some(name) = &self.cell {
            left.retain(|cell| ["cell", "workload"].iter().any(|key| cell[key] == **name));
            if left.is_empty() {
                let names = all
                    .iter()
                    .flat_map(|cell| [&cell["workload"], &cell["cell"]]);
                let names: BTreeSet<&str> = names.filter_map(Value::as_str).collect();
                return unknown(name, "workload", names);
            }
        }
        for (key, value) in &self.keys {
            let values: BTreeSet<String> = all.iter().filter_map(|c| of_key(c, key)).collect();
            if values.is_empty() {
                let settings = all.iter().filter_map(|cell| cell["settings"].as_object());
                let settings = settings.flat_map(|of| of.keys().map(String::as_str));
                let words: BTreeSet<&str> = settings.chain(KEYS).collect();
                return unknown(key, "key", words);
            }
            if !values.contains(value) {
                return unknown(value, key, values);
            }
            left.retain(|cell| of_key(cell, key).as_ref() == Some(value));
        }
        match left[..] {
            [cell] => Ok(cell),
            [] => other("no cell has all of this"),
            _ => {
                const SHOWN_MAX: usize = 6;
                let names = left.iter().filter_map(|cell| cell["cell"].as_str());
                let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                let more = names.len().saturating_sub(SHOWN_MAX);
                let shown = names[..names.len().min(SHOWN_MAX)].join(", ");
                let more = match more {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                other(format!(
                    "{} cells are meant; say which, as in cell=\"…\": {shown}{more}",
                    left.len()
                ))
            }
        }
    }
}

/// The words of a query, each with its key where it has one. Quotes hold a value together.
fn words(text: &str) -> Result<Vec<(Option<String>, String)>, Wrong> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find([' ', '=', '"']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let (key, behind) = match behind.strip_prefix('=') {
            Some(behind) => (Some(word.to_owned()), behind),
            None => (None, behind),
        };
        let (value, behind) = match (behind.strip_prefix('"'), &key) {
            (Some(quoted), _) if key.is_some() || word.is_empty() => match quoted.split_once('"') {
                Some((value, behind)) => (value, behind),
                None => return other(format!("`{rest}` has no second quote")),
            },
            (None, Some(_)) => behind.split_at(behind.find(' ').unwrap_or(behind.len())),
            (Some(_), _) => return other(format!("`{rest}`: a quote stands in a word")),
            (None, None) => (word, behind),
        };
        words.push((key, value.to_owned()));
        rest = behind.trim_start();
    }
    Ok(words)
}

/// What a cell has by a key.
fn of_key(cell: &Value, key: &str) -> Option<String> {
    let value = match key {
        "cell" | "subject" | "workload" | "connections" => &cell[key],
        "n" => &cell["program"]["count"],
        "rate" => &cell["asked_per_s"],
        setting => &cell["settings"][setting],
    };
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string().trim_end_matches(".0").to_owned()),
        _ => None,
    }
}

/// What is at a path of names and places, with dots between.
fn at<'a>(root: &'a Value, path: &str) -> Result<&'a Value, Wrong> {
    let mut here = root;
    for part in path.split('.') {
        let next = match here {
            Value::Array(all) => part.parse().ok().and_then(|at: usize| all.get(at)),
            here => here.get(part),
        };
        here = match next {
            Some(next) => next,
            None => {
                let is_cell = root.get("cell").is_some();
                let short = SHORT.iter().map(|(short, _)| *short);
                let short = short.filter(|_| is_cell && std::ptr::eq(here, root));
                let run = [RESOLUTION].into_iter().filter(|_| !is_cell);
                let own = here.as_object().into_iter().flat_map(Map::keys);
                let words: Vec<&str> = short.chain(run).chain(own.map(String::as_str)).collect();
                return match here {
                    Value::Array(all) => other(format!(
                        "`{part}`: here is a list of {}, counted from 0",
                        all.len()
                    )),
                    Value::Null => other(format!("`{path}`: this run has no such figure")),
                    _ => unknown(part, "figure", words),
                };
            }
        };
    }
    Ok(here)
}

/// How the figure of a cell is to be read where it is a bound. One that cannot be used is none.
fn bound(cell: &Value, path: &str) -> Result<&'static str, Wrong> {
    let first = path.split('.').next().unwrap_or_default();
    let is_latency = first.starts_with("latency");
    let of_work = first == "rate_per_s" || is_latency || first.starts_with("cpu_");
    match cell["verdict"].as_str() {
        Some("invalid") if of_work => {
            let codes = cell["invalid_by"].as_array().into_iter().flatten();
            let codes: Vec<&str> = codes.filter_map(Value::as_str).collect();
            other(format!(
                "the cell is invalid ({}): no figure of it can be quoted",
                codes.join(", ")
            ))
        }
        Some("bound") if first == "rate_per_s" && !path.ends_with(".blocks") => Ok("at least "),
        Some("bound") if is_latency => Ok("at most "),
        _ => Ok(""),
    }
}

/// The smallest differences of a rate that a run can tell.
fn resolution(summary: &Value, query: &Query) -> Result<String, Wrong> {
    let Some(all) = summary["resolutions"].as_array() else {
        return other("this summary.json has no resolution: `prony report` writes it anew");
    };
    let told = all.iter().filter(|of| of["detectable"].is_number());
    let told: Vec<&Value> = told.collect();
    let own = query.keys.iter().find(|(key, _)| key == "workload");
    let name = query.cell.as_ref().or(own.map(|(_, value)| value));
    let names = || told.iter().filter_map(|of| of["workload"].as_str());
    let found = match name {
        Some(name) => match told.iter().find(|of| of["workload"] == **name) {
            Some(found) => *found,
            None => return unknown(name, "workload", names()),
        },
        None => match told[..] {
            [one] => one,
            [] => return other("this run can tell no difference"),
            _ => return unknown("", "workload", names()),
        },
    };
    shown(&found["detectable"], "detectable", query, "")
}

/// A value as documents write it.
fn shown(value: &Value, path: &str, query: &Query, bound: &str) -> Result<String, Wrong> {
    let unit = match query.unit.as_deref() {
        Some(unit) => Unit::named(unit),
        None => Unit::of(path),
    };
    let number = |of: &Value| of.as_f64();
    if let Some(single) = number(value) {
        let text = unit.text(single);
        return match query.form.as_str() {
            "value" => Ok(format!("{bound}{text}")),
            "times" => Ok(format!("{bound}{text} ×")),
            "change" => Ok(format!("{bound}{} %", numbers::change(single))),
            form => other(format!("`as={form}`: it is a single number")),
        };
    }
    let ends = (number(&value["low"]), number(&value["high"]));
    match (value, ends) {
        (Value::String(text), _) => Ok(escape::markdown(text)),
        (Value::Object(of), (Some(low), Some(high))) if of.contains_key("median") => {
            let median = unit.text(number(&value["median"]).unwrap_or(f64::NAN));
            let ends = unit.ends(low, high);
            match query.form.as_str() {
                "value" => Ok(format!("{bound}{median}")),
                "interval" => Ok(ends),
                "whole" => Ok(format!("{bound}{median} ({ends})")),
                form => other(format!("`as={form}` is one of ratios")),
            }
        }
        (Value::Object(of), (Some(low), Some(high))) if of.contains_key("ratio") => {
            ratio(value, (low, high), &query.form)
        }
        (Value::Object(of), _) => {
            unknown("", "figure", of.keys().map(|key| format!("{path}.{key}")))
        }
        (Value::Array(all), _) => other(format!("a list of {}: say which, from 0", all.len())),
        _ => other(format!("`{path}`: this run has no such figure")),
    }
}

/// A ratio. One that is not claimed says so wherever it does not show its interval.
fn ratio(of: &Value, (low, high): (f64, f64), form: &str) -> Result<String, Wrong> {
    let ratio = of["ratio"].as_f64().unwrap_or(f64::NAN);
    let bound = match of["bound"].as_str() {
        Some("at-least") => "at least ",
        Some("at-most") => "at most ",
        _ => "",
    };
    let unclaimed = match of["conclusion"].as_str() {
        Some("higher" | "lower") => "",
        Some("no-difference-shown") => ", no difference shown",
        _ => ", not claimed",
    };
    let ends = format!("{}–{}", numbers::ratio(low), numbers::ratio(high));
    Ok(match form {
        "interval" => ends,
        "whole" => format!("{bound}{} ({ends}){unclaimed}", numbers::ratio(ratio)),
        "times" => format!("{bound}{} ×{unclaimed}", numbers::ratio(ratio)),
        "change" => format!("{bound}{} %{unclaimed}", numbers::change(ratio)),
        "claim" => {
            let blocks = of["blocks"].as_u64().unwrap_or(0);
            let said = of["bound"].as_str().unwrap_or_default();
            let words = numbers::change_words(ratio, (blocks > 1).then_some((low, high)), said);
            format!("{words}{unclaimed}")
        }
        _ => format!("{bound}{}{unclaimed}", numbers::ratio(ratio)),
    })
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    Rate,
    Time,
    Bytes,
    BytesPerSecond,
    Percent,
    Ratio,
    Count,
    Number,
}

impl Unit {
    fn named(name: &str) -> Unit {
        match name {
            "rate" => Unit::Rate,
            "time" => Unit::Time,
            "bytes" => Unit::Bytes,
            "percent" => Unit::Percent,
            "ratio" => Unit::Ratio,
            "count" => Unit::Count,
            _ => Unit::Number,
        }
    }

    /// By the names on a path, the nearest to the value first.
    fn of(path: &str) -> Unit {
        let of_name = |name: &str| {
            Some(match name {
                _ if name.ends_with("bytes_per_s") => Unit::BytesPerSecond,
                _ if name.ends_with("_per_s") => Unit::Rate,
                _ if name.ends_with("_ns") => Unit::Time,
                _ if name.ends_with("_bytes") || name == "bytes" => Unit::Bytes,
                "bytes_per_answer" => Unit::Bytes,
                "ratio" | "ratios" => Unit::Ratio,
                "detectable" => Unit::Percent,
                _ if name.starts_with("busy_") => Unit::Percent,
                "blocks" | "completed" | "errors" | "errors_by_kind" | "count" | "processes"
                | "beyond_p99_9" | "seed" | "counts" | "connections" => Unit::Count,
                _ => return None,
            })
        };
        path.rsplit('.').find_map(of_name).unwrap_or(Unit::Number)
    }

    fn text(self, value: f64) -> String {
        match self {
            Unit::Rate => numbers::rate(value),
            Unit::Time => numbers::time(value),
            Unit::Bytes => numbers::bytes(value),
            Unit::BytesPerSecond => format!("{}/s", numbers::bytes(value)),
            Unit::Percent => numbers::percent(value),
            Unit::Ratio => numbers::ratio(value),
            Unit::Count if value >= 0.0 => numbers::count(libm::round(value) as u64),
            Unit::Count | Unit::Number => numbers::three(value),
        }
    }

    fn ends(self, low: f64, high: f64) -> String {
        match self {
            Unit::Rate => numbers::rates(low, high),
            Unit::Time => numbers::times(low, high),
            Unit::Bytes => numbers::sizes(low, high),
            _ => format!("{}–{}", self.text(low), self.text(high)),
        }
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
