//! The parts of an experiment that are about the topology of a server: backing services,
//! proxies in front, instances, where output goes, and numbers that must come out right. Pure.
//!
//! Not for: rows of a table ([`super::rows`]), or the topology of one cell
//! ([`crate::plan`]).

use prony_record::{Ended, Output};

use super::fields::{Fields, FromValue, Problems, Value, ValueRule};
use super::folder;
use super::keys::by_value;
use super::types::{Counter, Setting, SettingTopology, SubjectEntry};
use super::words::{self, BACKING_PLACEHOLDERS, FRONT_PLACEHOLDERS};

/// Folders of a role, which begin the names of services.
const PREFIX: &str = "backing/";
fn is_path(name: &str) -> bool {
    name.contains('/')
}

/// `[[backing]]`.
pub fn read_backing(table: &Fields<'_>) -> Option<SubjectEntry> {
    read_service(table, "backing/redis", &BACKING_PLACEHOLDERS)
}

/// `[[front]]`.
pub fn read_front(table: &Fields<'_>) -> Option<SubjectEntry> {
    read_service(table, "front/nginx", &FRONT_PLACEHOLDERS)
}

fn read_service(table: &Fields<'_>, example: &str, right: &[&str]) -> Option<SubjectEntry> {
    let message = format!("`{{key}}` cannot be in {}: only a folder can", table.place);
    let help = format!("a folder with a subject.toml of this role: ref = \"{example}\"");
    let name: Option<String> = table.get("name");
    if let Some(name) = name.filter(|name| is_taken(name)) {
        let taken = format!("it cannot be called `{name}`: `{{{name}}}` means something else");
        table.note("name", taken, "");
    }
    folder::read(table, (&message, &help), right)
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
pub fn read_topology(table: &Fields<'_>, values: &[String]) -> SettingTopology {
    SettingTopology {
        backings: by_value(table, "backing_of", values),
        fronts: by_value(table, "front_of", values),
        outputs: by_value(table, "output_of", values),
        networks: by_value(table, "network_of", values),
    }
}

impl FromValue for Output {
    fn read(value: &Value<'_>, rule: ValueRule<'_>, p: &Problems) -> Option<Output> {
        match String::read(value, rule, p)?.as_str() {
            "pipe" => Some(Output::Pipe),
            "terminal" => Some(Output::Terminal),
            "null" => Some(Output::Null),
            _ => Some(Output::File),
        }
    }
}

/// `counter`.
pub fn read_counter(table: &Fields<'_>) -> Option<Counter> {
    let table = table.table("counter")?;
    let (path, adds) = (table.get("path"), table.get("adds"));
    Some(Counter {
        place: table.span.clone(),
        ended_by: match table.value::<String>("kept").as_str() {
            "stop" => Some(Ended::Stopped),
            "kill" => Some(Ended::Killed),
            _ => None,
        },
        path: path?,
        adds: adds?,
    })
}

/// Keys of requests to servers in a workload of programs or clients.
pub fn refuse_without_request(table: &Fields<'_>) {
    let message = "`{key}` is for a workload with a `request`";
    table.refuse(&["rows", "counter", "rest", "requests_max"], message, "");
}

/// A cell has one proxy in front, and its output goes to one place.
pub fn check_within(settings: &[Setting], p: &Problems) {
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
            p.advise(other.name.span(), message, help);
        }
    }
}

/// Names in braces that must be those of backing services.
pub fn named<'t>(texts: impl Iterator<Item = &'t String>, has_backings: bool) -> Vec<&'t str> {
    let names = texts.flat_map(|text| words::services(text));
    let meant = |name: &&str| is_path(name) && (has_backings || name.starts_with(PREFIX));
    names.filter(meant).collect()
}
