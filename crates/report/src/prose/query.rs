//! What a bound figure is called, and what a run says that it is.
//!
//! ```text
//! NAME ["CELL or WORKLOAD"] [KEY=VALUE …] [as=FORM] [unit=UNIT]
//! ```
//!
//! A name is a path in `summary.json` (`latency_ns.p99.low`), or one of the short ones of [`SHORT`]. With a cell, or keys that
//! leave one, it is looked for there; without, in the whole. Units follow from the names in the file, which end with them.

use crate::ratio::OpenSide;
use prony_stats::Conclusion;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::escape;
use crate::numbers::{self, FigureUnit};
use crate::words::few;

/// Short names, and what they stand for in a cell.
const SHORT: &str = "rate=rate_per_s p50=latency_ns.p50 p90=latency_ns.p90 p99=latency_ns.p99 p99_9=latency_ns.p99_9 max=latency_max_ns \
    cpu=cpu_subject_ns cpu_generator=cpu_generator_ns memory=memory_peak_bytes ready=ready_ns first=first_answer_ns \
    after-rest=after_rest_ns blocks=rate_per_s.blocks ratio.p50=ratios.p50 ratio.p99=ratios.p99 ratio.cpu=ratios.cpu_subject";
/// Keys that are none of a setting.
const KEYS: [&str; 6] = ["cell", "subject", "workload", "connections", "n", "rate"];
const FORMS: [&str; 6] = ["value", "interval", "whole", "times", "change", "claim"];
const UNITS: [(&str, FigureUnit); 7] = [
    ("rate", FigureUnit::Rate),
    ("time", FigureUnit::Time),
    ("bytes", FigureUnit::Bytes),
    ("percent", FigureUnit::Percent),
    ("count", FigureUnit::Number),
    ("ratio", FigureUnit::Ratio),
    ("number", FigureUnit::Number),
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
    let query = Query::parse(words)?;
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
    let path = short().find(|(short, _)| *short == name);
    let path = path.map_or(name, |(_, path)| path);
    let found = at(cell, path)?;
    let bound = bound(cell, path)?;
    shown(found, path, &query, bound)
}

fn short() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHORT.split(' ').filter_map(|pair| pair.split_once('='))
}

/// Words, taken apart.
struct Query {
    name: String,
    cell: Option<String>,
    keys: Vec<(String, String)>,
    form: String,
    unit: Option<FigureUnit>,
}

impl Query {
    fn parse(text: &str) -> Result<Query, Wrong> {
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
                Some("unit") => match UNITS.iter().find(|(name, _)| *name == value) {
                    Some((_, unit)) => query.unit = Some(*unit),
                    None => return unknown(&value, "unit", UNITS.map(|(name, _)| name)),
                },
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
                let names = left.iter().filter_map(|cell| cell["cell"].as_str());
                let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                let (count, names) = (left.len(), few(&names));
                other(format!(
                    "{count} cells are meant; say which, as in cell=\"…\": {names}"
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
                let short = short().map(|(short, _)| short);
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
    let detectable = all.iter().filter(|of| of["detectable"].is_number());
    let own = query.keys.iter().find(|(key, _)| key == "workload");
    let name = query.cell.as_ref().or(own.map(|(_, value)| value));
    let is_meant = |of: &&Value| name.is_none_or(|name| of["workload"] == **name);
    let meant: Vec<&Value> = detectable.clone().filter(is_meant).collect();
    let names: Vec<&str> = detectable
        .filter_map(|of| of["workload"].as_str())
        .collect();
    match meant[..] {
        [one] => shown(&one["detectable"], "detectable", query, ""),
        _ if names.is_empty() => other("this run can tell no difference"),
        _ => unknown(name.map_or("", |name| name), "workload", names),
    }
}

/// A value as documents write it. A ratio that is not claimed says so wherever it does not show its interval.
fn shown(value: &Value, path: &str, query: &Query, bound: &str) -> Result<String, Wrong> {
    let all = [value, &value["median"], &value["ratio"]];
    let Some(middle) = all.into_iter().find_map(Value::as_f64) else {
        return match value {
            Value::String(text) => Ok(escape::markdown(text)),
            Value::Object(of) => {
                unknown("", "figure", of.keys().map(|key| format!("{path}.{key}")))
            }
            Value::Array(all) => other(format!("a list of {}: say which, from 0", all.len())),
            _ => other(format!("`{path}`: this run has no such figure")),
        };
    };
    let ends = value["low"].as_f64().zip(value["high"].as_f64());
    let is_ratio = value["ratio"].is_number();
    let own = serde_json::from_value::<OpenSide>(value["bound"].clone()).ok();
    let unit = match is_ratio {
        true => FigureUnit::Ratio,
        false => query.unit.unwrap_or_else(|| unit_of(path)),
    };
    let bound = own.map_or(bound, |own| OpenSide::words(Some(own)));
    let unclaimed = match serde_json::from_value(value["conclusion"].clone()) {
        Ok(Conclusion::Higher | Conclusion::Lower) => "",
        Ok(Conclusion::NoDifferenceShown) => ", no difference shown",
        _ if is_ratio => ", not claimed",
        _ => "",
    };
    let text = unit.text(middle);
    let is_scalable = is_ratio || ends.is_none();
    Ok(match (query.form.as_str(), ends) {
        ("value", _) => format!("{bound}{text}{unclaimed}"),
        ("interval", Some((low, high))) => unit.ends(low, high),
        ("whole", Some((low, high))) => {
            format!("{bound}{text} ({}){unclaimed}", unit.ends(low, high))
        }
        ("times", _) if is_scalable => format!("{bound}{text} ×{unclaimed}"),
        ("change", _) if is_scalable => {
            format!("{bound}{} %{unclaimed}", numbers::change(middle))
        }
        ("claim", Some(ends)) if is_ratio => {
            let blocks = value["blocks"].as_u64().unwrap_or(0);
            let words = numbers::change_words(middle, (blocks > 1).then_some(ends), own);
            format!("{words}{unclaimed}")
        }
        (form, None) => return other(format!("`as={form}`: it is a single number")),
        (form, Some(_)) => return other(format!("`as={form}` is one of ratios")),
    })
}

/// The unit that the names on a path tell, the nearest to the value first.
fn unit_of(path: &str) -> FigureUnit {
    let of_name = |name: &str| {
        Some(match name {
            _ if name.ends_with("bytes_per_s") => FigureUnit::BytesPerSecond,
            _ if name.ends_with("_per_s") => FigureUnit::Rate,
            _ if name.ends_with("_ns") => FigureUnit::Time,
            _ if name.ends_with("_bytes") => FigureUnit::Bytes,
            "bytes" | "bytes_per_answer" => FigureUnit::Bytes,
            "ratio" | "ratios" => FigureUnit::Ratio,
            "detectable" => FigureUnit::Percent,
            _ if name.starts_with("busy_") => FigureUnit::Percent,
            "blocks" | "counts" => FigureUnit::Number,
            _ => return None,
        })
    };
    path.rsplit('.')
        .find_map(of_name)
        .unwrap_or(FigureUnit::Number)
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
