//! Keys and values that several tables of an experiment, or of a `subject.toml`, have. Pure.
//!
//! Not for: reading any table ([`super::fields`]), or what a table as a whole means.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use prony_base::Nanos;
use prony_record::{AnswerChecks, Arrival, RequestTemplate};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{self, Fields, FromValue, Problems, Value, ValueRule};
use super::types::{Connections, Experiment, SubjectEntry, Workload};
use super::words::{self, short};
use crate::diagnosis::{nearest, quoted, suggest};
use crate::reference::KeyFile;

/// Threads of a subject, or processors that it may use.
pub const THREADS: RangeInclusive<u64> = 1..=4_096;

impl FromValue for Connections {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Connections> {
        match value.get_ref() {
            DeValue::String(word) if word == "max" => Some(Connections::Max),
            DeValue::String(word) => {
                let message = format!("`{}` is no number of connections", short(word));
                let help = "write a whole number, or \"max\" for as many as the machine allows";
                p.advise(value.span(), message, help);
                None
            }
            DeValue::Array(_) => p.wrong(rule.name, value, &format!("a {}", rule.form)),
            _ => u32::read(value, rule, p).map(Connections::Exactly),
        }
    }
}

/// `connections`, so many where it is not said, and `max`.
pub fn connections(table: &Fields<'_>, usual: u32) -> (Vec<Connections>, u32) {
    let max: u32 = table.value("max");
    let list: Option<Vec<Connections>> = table.get("connections");
    let above = list.iter().flatten().find_map(|&count| match count {
        Connections::Exactly(count) if count > max => Some(count),
        _ => None,
    });
    if let Some(count) = above {
        let message = format!("{count} connections are more than this workload's max, {max}");
        table.note("connections", message, format!("add max = {count}"));
    }
    let list = list.unwrap_or_else(|| vec![Connections::Exactly(usual)]);
    (list, max)
}

/// `cmd`: an argument vector, or else a command line where it may be one.
pub fn command(table: &Fields<'_>, is_line: bool) -> Option<Vec<String>> {
    let p = table.problems;
    let Some(value) = table.raw("cmd") else {
        return table.get("cmd");
    };
    if let DeValue::String(_) = value.get_ref() {
        let line = fields::text("cmd", value, p)?;
        if !is_line {
            let place = table.place;
            let message = format!("`cmd` of {place} must be a list of words: no shell reads it");
            table.note("cmd", message, table.example("cmd"));
            return None;
        }
        return words::split_command(line.get_ref())
            .map_err(|reason| p.note(value.span(), format!("`cmd` cannot be run: {reason}")))
            .ok();
    }
    let items = fields::list("cmd", value, "a command line, or a list of its words", p)?;
    let words = items.iter().filter_map(|item| fields::text("cmd", item, p));
    let words: Vec<String> = words.map(Spanned::into_inner).collect();
    if words.first().is_none_or(String::is_empty) {
        p.note(value.span(), "`cmd` names no program");
        return None;
    }
    Some(words)
}

/// What workloads of all kinds have; `usual_name` where it has no name.
pub fn workload(table: &Fields<'_>, usual_name: &str) -> Workload {
    let usual_name = || Spanned::new(table.span.clone(), usual_name.to_owned());
    Workload {
        name: table.get("name").unwrap_or_else(usual_name),
        title: table.value("title"),
        work: None,
        client: None,
        request: RequestTemplate::default(),
        source: None,
        require: Vec::new(),
        expect_status: 0,
        expect_content_type: None,
        expect_body: None,
        expect_checks: AnswerChecks::default(),
        arrival: Arrival::Closed,
        connections: Vec::new(),
        connections_max: 0,
        timeout: Nanos::ZERO,
        subjects: table.get("subjects"),
        rows: Vec::new(),
        counter: None,
        find_max: None,
        rest: None,
        requests_max: None,
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

/// `timeout_s = 60`, or `timeout = "60s"` as of requests.
pub fn timeout(table: &Fields<'_>) -> Nanos {
    let seconds = table.get("timeout_s").map(Nanos::from_secs);
    let length = table.get("timeout");
    if table.has("timeout_s") && table.has("timeout") {
        let message = "`timeout` and `timeout_s` say the same; one of them is enough";
        table.note("timeout", message, "");
    }
    seconds.or(length).unwrap_or(Nanos::from_secs(60))
}

/// A table by the values of a setting.
pub fn by_value<T: FromValue>(
    table: &Fields<'_>,
    key: &'static str,
    values: &[String],
) -> BTreeMap<String, T> {
    let Some(read) = table.get(key) else {
        return BTreeMap::new();
    };
    for (typed, _) in table.entries(key) {
        let value = *typed.get_ref();
        if !values.iter().any(|one| one == value) {
            let known: Vec<&str> = values.iter().map(String::as_str).collect();
            let message = format!("this setting has no value `{}`", short(value));
            let help = suggest(value, "value", &known);
            table.problems.advise(typed.span(), message, help);
        }
    }
    read
}

/// Texts without their places.
pub fn texts(spanned: Vec<Spanned<String>>) -> Vec<String> {
    spanned.into_iter().map(Spanned::into_inner).collect()
}

/// Notes every text but the first of those that are the same. `noun`: what each is.
pub fn check_differ(texts: &[Spanned<String>], noun: &str, p: &Problems) {
    for (index, text) in texts.iter().enumerate() {
        if texts[..index].contains(text) {
            let message = format!("the {noun} `{}` stands here twice", short(text.get_ref()));
            p.note(text.span(), message);
        }
    }
}

/// Notes every name but the first of those that are the same.
pub fn twice(kind: &str, names: &[&Spanned<String>], p: &Problems) {
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            let message = format!("two {kind}s are called `{}`", name.get_ref());
            let help = format!("give each {kind} a `name` of its own");
            p.advise(name.span(), message, help);
        }
    }
}

pub fn known<S: AsRef<str>>(kind: &str, name: &Spanned<String>, right: &[S], p: &Problems) {
    let right: Vec<&str> = right.iter().map(AsRef::as_ref).collect();
    if !right.contains(&name.get_ref().as_str()) {
        let message = format!("there is no {kind} `{}` in this experiment", name.get_ref());
        let help = suggest(name.get_ref(), kind, &right);
        p.advise(name.span(), message, help);
    }
}

/// Notes which values of settings, of the table at `path`, the experiment does not have. `place`: how messages name the table.
pub fn check_settings(
    experiment: &Experiment,
    (path, place): (&str, &str),
    written: &[(Spanned<String>, Spanned<String>)],
    p: &Problems,
) {
    let settings = &experiment.settings;
    for (name, value) in written {
        let Some(setting) = settings.iter().find(|setting| setting.name == *name) else {
            let mut keys = KeyFile::Experiment.names_in(path);
            keys.extend(
                settings
                    .iter()
                    .map(|setting| setting.name.get_ref().as_str()),
            );
            let message = format!("unknown key `{}` {place}", short(name.get_ref()));
            let help = suggest(name.get_ref(), "key", &keys);
            p.advise(name.span(), message, help);
            continue;
        };
        let values: Vec<&str> = setting.values.iter().map(String::as_str).collect();
        if !values.contains(&value.get_ref().as_str()) {
            let (name, value_typed) = (name.get_ref(), value.get_ref());
            let message = format!("setting `{name}` has no value `{value_typed}`");
            p.advise(
                value.span(),
                message,
                suggest(value_typed, "value", &values),
            );
        }
    }
}

/// Notes every entry that has the id of one before it.
pub fn differ(kind: &str, ids: &[String], entries: &[SubjectEntry], p: &Problems) {
    for (index, (id, entry)) in ids.iter().zip(entries).enumerate() {
        if ids[..index].contains(id) {
            let message = format!("two {kind}s are called `{id}`");
            let help = "give one of them a `name` of its own";
            p.advise(entry.place.clone(), message, help);
        }
    }
}

/// Notes placeholders in the texts of `key` that are none of the `right` ones.
pub fn check_placeholders<'a>(
    table: &Fields<'_>,
    key: &str,
    texts: impl IntoIterator<Item = &'a String>,
    right: &[&str],
) {
    let names = texts.into_iter().flat_map(|text| words::placeholders(text));
    for name in names.filter(|name| !right.contains(name)) {
        let message = format!("unknown placeholder `{{{}}}`", short(name));
        table.note(key, message, suggest_placeholder(name, right));
    }
}

/// What may have been meant by a placeholder that is none of the `right` ones.
pub fn suggest_placeholder(name: &str, right: &[&str]) -> String {
    let braced: Vec<String> = right.iter().map(|name| format!("{{{name}}}")).collect();
    match nearest(name, right.iter().copied()) {
        Some(word) => format!("did you mean `{{{word}}}`?"),
        None => format!("placeholders here: {}", quoted(&braced)),
    }
}
