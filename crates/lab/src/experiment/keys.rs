//! Keys and values that several tables of an experiment, or of a `subject.toml`, have. Pure.
//!
//! Not for: reading any table ([`super::fields`]), or what a table as a whole means.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use prony_base::Nanos;
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{self, Fields, Problems, Value};
use super::types::{Connections, SubjectEntry};
use super::words::{self, short};
use crate::diagnosis::{Diagnosis, nearest, quoted, suggest};

/// Measured windows that an experiment, or `--duration`, may ask for.
pub const DURATION: RangeInclusive<Nanos> = Nanos::from_millis(100)..=Nanos::from_secs(3_600);

/// Threads of a subject, or processors that it may use.
pub const THREADS: RangeInclusive<u64> = 1..=4_096;

/// Connections that a workload may ask for.
pub const CONNECTIONS: RangeInclusive<u64> = 1..=1_000_000;

/// `[2, 400, "max"]`, or one of them alone.
pub fn connections(value: &Value<'_>, p: &mut Problems) -> Option<Vec<Connections>> {
    let wanted = "a list such as [2, 400, \"max\"]";
    let items = match value.get_ref() {
        DeValue::Array(_) => fields::list("connections", value, wanted, p)?,
        _ => std::slice::from_ref(value),
    };
    let mut read: Vec<Connections> = Vec::with_capacity(items.len());
    for item in items {
        let Some(count) = connection_count(item, p) else {
            continue;
        };
        if read.contains(&count) {
            p.note(Diagnosis::new(
                item.span(),
                "this number of connections stands here twice",
            ));
        }
        read.push(count);
    }
    if items.is_empty() {
        p.note(Diagnosis::new(
            value.span(),
            format!("`connections` is empty; it is {wanted}"),
        ));
    }
    Some(read)
}

/// One number of connections, or `"max"`.
pub fn connection_count(item: &Value<'_>, p: &mut Problems) -> Option<Connections> {
    match item.get_ref() {
        DeValue::String(word) if word == "max" => Some(Connections::Max),
        DeValue::String(word) => {
            let message = format!("`{}` is no number of connections", short(word));
            let help = "write a whole number, or \"max\" for as many as the machine allows";
            p.note(Diagnosis::new(item.span(), message).help(help));
            None
        }
        _ => {
            let count = fields::whole("connections", item, CONNECTIONS, p)?;
            Some(Connections::Exactly(count as u32))
        }
    }
}

/// A command line, or an argument vector.
pub fn command(value: &Value<'_>, p: &mut Problems) -> Option<Vec<String>> {
    if let DeValue::String(_) = value.get_ref() {
        let line = fields::text("cmd", value, p)?;
        return match words::split_command(line.get_ref()) {
            Ok(words) => Some(words),
            Err(reason) => {
                let message = format!("`cmd` cannot be run: {reason}");
                p.note(Diagnosis::new(value.span(), message));
                None
            }
        };
    }
    let items = fields::list("cmd", value, "a command line, or a list of its words", p)?;
    let words: Vec<Spanned<String>> = items
        .iter()
        .filter_map(|item| fields::text("cmd", item, p))
        .collect();
    if words
        .first()
        .is_none_or(|program| program.get_ref().is_empty())
    {
        p.note(Diagnosis::new(value.span(), "`cmd` names no program"));
        return None;
    }
    Some(words.into_iter().map(Spanned::into_inner).collect())
}

/// `name`, checked.
pub fn read_name(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Spanned<String>> {
    let name = table.text("name", p)?;
    if let Some(problem) = words::name_problem(name.get_ref()) {
        p.note(Diagnosis::new(name.span(), problem));
    }
    Some(name)
}

/// What headings call a workload; empty where it is not said.
pub fn read_title(table: &mut Fields<'_, '_>, p: &mut Problems) -> String {
    let title = table.text("title", p);
    title.map_or_else(String::new, Spanned::into_inner)
}

pub fn check_below_max(span: Range<usize>, list: &[Connections], max: u32, p: &mut Problems) {
    let above = list.iter().find_map(|&count| match count {
        Connections::Exactly(count) if count > max => Some(count),
        _ => None,
    });
    if let Some(count) = above {
        let message = format!("{count} connections are more than this workload's max, {max}");
        p.note(Diagnosis::new(span, message).help(format!("add max = {count}")));
    }
}

/// `/a/b?c` is called `a-b`, and `/` is called `root`.
pub fn name_of_path(path: &str) -> String {
    let path = path.split(['?', '{']).next().unwrap_or_default();
    let plain = |c: char| {
        if c.is_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = path.trim_matches('/').chars().map(plain).take(40).collect();
    match name.trim_matches('-') {
        "" => "root".to_owned(),
        name => name.to_owned(),
    }
}

pub fn check_path(path: &Spanned<String>, p: &mut Problems) {
    let text = path.get_ref();
    let problem = if !text.starts_with('/') {
        "a path begins with `/`"
    } else if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        "a path has no space and no control character; write %20 for a space"
    } else if text.contains('#') {
        "`#` and what follows it is never sent to a server"
    } else if !text.is_ascii() {
        "a path is ASCII; write other characters as %XX"
    } else {
        return;
    };
    p.note(Diagnosis::new(path.span(), problem));
}

/// Texts without their places.
pub fn texts(spanned: Vec<Spanned<String>>) -> Vec<String> {
    spanned.into_iter().map(Spanned::into_inner).collect()
}

/// Time-out of a program's run.
const TIMEOUT: RangeInclusive<Nanos> = Nanos::from_millis(1)..=Nanos::from_secs(7_200);

const TIMEOUT_USUAL: Nanos = Nanos::from_secs(60);

/// `timeout_s = 60`, or `timeout = "60s"` as of requests.
pub fn timeout(table: &mut Fields<'_, '_>, p: &mut Problems) -> Nanos {
    let seconds = table.whole("timeout_s", 1..=7_200, p).map(Nanos::from_secs);
    let length = table.duration("timeout", TIMEOUT, p);
    if table.has("timeout_s") && table.has("timeout") {
        let message = "`timeout` and `timeout_s` say the same; one of them is enough";
        p.note(Diagnosis::new(table.span_of("timeout"), message));
    }
    seconds.or(length).unwrap_or(TIMEOUT_USUAL)
}

/// A table by the values of a setting, each read by `read`.
pub fn by_value<T>(
    table: &mut Fields<'_, '_>,
    key: &'static str,
    values: &[String],
    p: &mut Problems,
    read: impl Fn(&str, &Value<'_>, &mut Problems) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut by_value = BTreeMap::new();
    let Some(inner) = table.table(key, "by value", p) else {
        return by_value;
    };
    let keys: Vec<(Spanned<&str>, &Value<'_>)> = inner.rest().collect();
    for (key, value) in keys {
        let typed = *key.get_ref();
        if !values.iter().any(|own| own == typed) {
            let known: Vec<&str> = values.iter().map(String::as_str).collect();
            let message = format!("this setting has no value `{}`", short(typed));
            let help = suggest(typed, "value", &known);
            p.note(Diagnosis::new(key.span(), message).help(help));
        }
        by_value.extend(read(typed, value, p).map(|read| (typed.to_owned(), read)));
    }
    by_value
}

/// Notes every name but the first of those that are the same.
pub fn twice(kind: &str, names: &[&Spanned<String>], p: &mut Problems) {
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            let message = format!("two {kind}s are called `{}`", name.get_ref());
            let help = format!("give each {kind} a `name` of its own");
            p.note(Diagnosis::new(name.span(), message).help(help));
        }
    }
}

pub fn known(kind: &str, name: &Spanned<String>, right: &[&str], p: &mut Problems) {
    if !right.contains(&name.get_ref().as_str()) {
        let message = format!("there is no {kind} `{}` in this experiment", name.get_ref());
        let help = suggest(name.get_ref(), kind, right);
        p.note(Diagnosis::new(name.span(), message).help(help));
    }
}

/// Notes a value that the setting does not have.
pub fn known_value(
    setting: &Spanned<String>,
    value: &Spanned<String>,
    right: &[&str],
    p: &mut Problems,
) {
    if !right.contains(&value.get_ref().as_str()) {
        let message = format!(
            "setting `{}` has no value `{}`",
            setting.get_ref(),
            value.get_ref()
        );
        let help = suggest(value.get_ref(), "value", right);
        p.note(Diagnosis::new(value.span(), message).help(help));
    }
}

/// Notes every entry that has the id of one before it.
pub fn differ(kind: &str, ids: &[String], entries: &[SubjectEntry], p: &mut Problems) {
    for (index, (id, entry)) in ids.iter().zip(entries).enumerate() {
        if ids[..index].contains(id) {
            let message = format!("two {kind}s are called `{id}`");
            let help = "give one of them a `name` of its own";
            p.note(Diagnosis::new(entry.place.clone(), message).help(help));
        }
    }
}

/// Notes placeholders that are none of the `right` ones.
pub fn check_placeholders<'a>(
    texts: impl IntoIterator<Item = &'a String>,
    right: &[&str],
    span: &Range<usize>,
    p: &mut Problems,
) {
    let names = texts.into_iter().flat_map(|text| words::placeholders(text));
    for name in names.filter(|name| !right.contains(name)) {
        let message = format!("unknown placeholder `{{{}}}`", short(name));
        p.note(Diagnosis::new(span.clone(), message).help(suggest_placeholder(name, right)));
    }
}

pub fn suggest_placeholder(name: &str, right: &[&str]) -> String {
    let braced: Vec<String> = right.iter().map(|name| format!("{{{name}}}")).collect();
    match nearest(name, right.iter().copied()) {
        Some(word) => format!("did you mean `{{{word}}}`?"),
        None => format!("placeholders here: {}", quoted(&braced)),
    }
}
