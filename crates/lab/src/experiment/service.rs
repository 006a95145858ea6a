//! The parts of an experiment that are about the topology of a server: backing services,
//! proxies in front, instances, where output goes, and numbers that must come out right. Pure.
//!
//! Not for: rows of a table ([`super::rows`]), or the topology of one cell
//! ([`crate::plan`]).

use std::ops::RangeInclusive;

use prony_record::{Ended, Output};
use toml::Spanned;

use super::fields::{self, Fields, Problems, Value};
use super::folder;
use super::keys::{by_value, check_path};
use super::types::{Counter, Setting, SettingTopology, SubjectEntry};
use super::words::{self, BACKING_PLACEHOLDERS, FRONT_PLACEHOLDERS, short};
use crate::diagnosis::{Diagnosis, suggest};

/// Values of both.
const PROCESSES: RangeInclusive<u64> = 1..=64;
/// Folders of a role, which begin the names of services.
const PREFIX: &str = "backing/";
/// What one request adds to a counter.
const ADDS: RangeInclusive<u64> = 1..=1 << 32;

fn is_path(name: &str) -> bool {
    name.contains('/')
}

/// `[[backing]]`.
pub fn read_backing(table: Fields<'_, '_>, p: &mut Problems) -> Option<SubjectEntry> {
    read_service(table, "ref = \"backing/redis\"", &BACKING_PLACEHOLDERS, p)
}

/// `[[front]]`.
pub fn read_front(table: Fields<'_, '_>, p: &mut Problems) -> Option<SubjectEntry> {
    read_service(table, "ref = \"front/nginx\"", &FRONT_PLACEHOLDERS, p)
}

fn read_service(
    table: Fields<'_, '_>,
    example: &str,
    right: &[&str],
    p: &mut Problems,
) -> Option<SubjectEntry> {
    let entry = table.place;
    let refusal = |key: &str| {
        let message = format!("`{key}` cannot be in {entry}: only a folder can");
        let help = format!("a folder with a subject.toml of this role: {example}");
        (message, help)
    };
    let name_fault = |name: &str| {
        let fault = || format!("it cannot be called `{name}`: `{{{name}}}` means something else");
        is_taken(name).then(fault)
    };
    let kind = folder::Kind {
        example,
        refusal: &refusal,
        placeholders: right,
        elsewhere: &[],
        name_fault: &name_fault,
    };
    folder::read(table, &kind, p)
}

/// Whether `{name}` is a placeholder of its own.
fn is_taken(name: &str) -> bool {
    let right = words::with_clients(&FRONT_PLACEHOLDERS);
    right.contains(&name) || words::START_PLACEHOLDERS.contains(&name) || name == "value"
}

/// The names that services are given in the file, as placeholders.
pub fn names(entries: &[SubjectEntry]) -> Vec<String> {
    let names = entries.iter().filter_map(|entry| entry.name.as_ref());
    names.map(|name| name.get_ref().clone()).collect()
}

/// `backing_of`, `front_of`, `output_of` and `network_of` of a setting with these values.
pub fn read_topology(
    table: &mut Fields<'_, '_>,
    values: &[String],
    p: &mut Problems,
) -> SettingTopology {
    SettingTopology {
        backings: by_value(table, "backing_of", values, p, |key, value, p| {
            let items = fields::list(key, value, "a list such as [\"backing/redis\"]", p)?;
            let names = items.iter().map(|item| fields::text(key, item, p));
            Some(names.collect::<Vec<_>>().into_iter().flatten().collect())
        }),
        fronts: by_value(table, "front_of", values, p, fields::text),
        outputs: by_value(table, "output_of", values, p, output),
        networks: by_value(table, "network_of", values, p, fields::text),
    }
}

fn output(key: &str, value: &Value<'_>, p: &mut Problems) -> Option<Output> {
    let word = fields::text(key, value, p)?;
    let known = [
        ("file", Output::File),
        ("pipe", Output::Pipe),
        ("terminal", Output::Terminal),
        ("null", Output::Null),
    ];
    let found = known.iter().find(|(name, _)| name == word.get_ref());
    if found.is_none() {
        let names = known.map(|(name, _)| name);
        let message = format!("output cannot go to `{}`", short(word.get_ref()));
        let help = suggest(word.get_ref(), "output", &names);
        p.note(Diagnosis::new(word.span(), message).help(help));
    }
    found.map(|&(_, output)| output)
}

/// Whether the values of `instances` and `generators` are numbers of processes.
pub fn check_processes(name: &str, values: &[String], table: &Fields<'_, '_>, p: &mut Problems) {
    let is_right = |value: &&String| {
        let number = value.parse().ok();
        number.is_some_and(|count: u64| PROCESSES.contains(&count))
    };
    if let Some(wrong) = values.iter().find(|value| !is_right(value)) {
        let (least, most) = PROCESSES.into_inner();
        let message = format!("`{}` is no number of {name}", short(wrong));
        let help = format!("values = [1, 2]: whole numbers from {least} to {most}");
        p.note(Diagnosis::new(table.span_of("values"), message).help(help));
    }
}

/// `counter`.
pub fn read_counter(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Counter> {
    let mut table = table.table("counter", "counter = {…}", p)?;
    let path = table.text_needed("path", "path = \"/\"", p);
    if let Some(path) = &path {
        check_path(path, p);
    }
    if !table.has("adds") {
        table.missing("adds", "adds = 1", p);
    }
    let adds = table.whole("adds", ADDS, p);
    let kept = table.text("kept", p).map(|word| kept(&word, p));
    let place = table.span.clone();
    table.finish(&[], p);
    Some(Counter {
        place,
        path: path?.into_inner(),
        adds: adds?,
        kept: kept.flatten(),
    })
}

fn kept(word: &Spanned<String>, p: &mut Problems) -> Option<Ended> {
    match word.get_ref().as_str() {
        "no" => None,
        "stop" => Some(Ended::Stopped),
        "kill" => Some(Ended::Killed),
        other => {
            let message = format!("`{}` is no way to end a server", short(other));
            let help = "kept = \"stop\": as its [stop] says; \"kill\": by SIGKILL under load; \
                        \"no\": it is not started anew";
            p.note(Diagnosis::new(word.span(), message).help(help));
            None
        }
    }
}

/// Keys of requests to servers in a workload of programs or clients.
pub fn refuse_without_request(table: &mut Fields<'_, '_>, p: &mut Problems) {
    for key in ["rows", "counter", "rest"] {
        if let Some(value) = table.value(key) {
            let message = format!("`{key}` is for a workload with a `request`");
            p.note(Diagnosis::new(value.span(), message));
        }
    }
}

/// A cell has one proxy in front, and its output goes to one place.
pub fn check_within(settings: &[Setting], p: &mut Problems) {
    let fronts = |setting: &&Setting| !setting.topology.fronts.is_empty();
    let outputs = |setting: &&Setting| !setting.topology.outputs.is_empty();
    let of_fronts: Vec<&Setting> = settings.iter().filter(fronts).collect();
    let of_outputs: Vec<&Setting> = settings.iter().filter(outputs).collect();
    for (key, all) in [("front_of", of_fronts), ("output_of", of_outputs)] {
        let Some((first, others)) = all.split_first() else {
            continue;
        };
        for other in others {
            let first = first.name.get_ref();
            let message = format!("the setting `{first}` has `{key}`, too, and a cell has one");
            let help = format!("make `{first}` and this one setting with more values");
            p.note(Diagnosis::new(other.name.span(), message).help(help));
        }
    }
}

/// Names in braces that must be those of backing services.
pub fn named<'t>(texts: impl Iterator<Item = &'t String>, has_backings: bool) -> Vec<&'t str> {
    let names = texts.flat_map(|text| words::services(text));
    let meant = |name: &&str| is_path(name) && (has_backings || name.starts_with(PREFIX));
    names.filter(meant).collect()
}
