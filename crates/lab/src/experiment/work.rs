//! The parts of an experiment that came with programs: works and their sizes, and the
//! settings, which choose among builds, threads and kernel settings too. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toml::Spanned;

use super::fields::Fields;
use super::keys::{self, by_value, check_placeholders};
use super::types::{ALL_CORES, From, GENERATORS, INSTANCES, Setting, THREADS, Work, Workload};
use super::words::{self, PROGRAM_PLACEHOLDERS, START_PLACEHOLDERS, short};
use super::{client, find_max, service, sources, spoken};

/// Values of the settings of processes.
const PROCESSES: RangeInclusive<u64> = 1..=64;
/// Keys of a workload that are about requests.
const OF_REQUESTS: [&str; 6] = [
    "request",
    "require",
    "expect",
    "arrival",
    "connections",
    "max",
];

/// A `[[workload]]` with a `work`.
pub fn read_workload(table: &Fields<'_>) -> Option<Workload> {
    let work: Option<String> = table.get("work");
    client::refuse_without_client(table);
    let message = "`{key}` cannot go with `work`: a program is sent no requests";
    table.refuse(&OF_REQUESTS, message, "");
    table.refuse(&sources::KEYS, message, "");
    if !table.has("count") {
        let example = "count = 1000000, or a sweep: count = [1000, 10000]";
        table.missing("count", example);
    }
    let args = table.value("args");
    check_placeholders(table, "args", &args, &PROGRAM_PLACEHOLDERS);
    service::refuse_without_request(table);
    find_max::refuse(table);
    let counts: Option<Vec<u64>> = table.get("count");
    let workload = Workload {
        timeout: keys::timeout(table),
        work: Some(Work {
            work: work.clone().unwrap_or_default(),
            counts: counts.clone().unwrap_or_default(),
            args,
        }),
        ..keys::workload(table, work.as_deref().unwrap_or_default())
    };
    work.and(counts).map(|_| workload)
}

/// Keys of a work in a workload that is requests.
pub fn refuse_without_work(table: &Fields<'_>) {
    let message = "`{key}` is for the `work` of a program, and this is a `request`";
    table.refuse(&["count", "args", "timeout_s"], message, "");
}

/// Reports keys that cannot go with this kind of subject.
pub fn refuse_for(from: &Option<From>, table: &Fields<'_>) {
    let (keys, message): (&[&str], &str) = match from {
        Some(From::Url(_)) => (
            &[
                "args",
                "env",
                "threads",
                "stop",
                "works",
                "output",
                "commands",
                "capabilities",
            ],
            "`{key}` cannot go with `url`: Prony does not start that server",
        ),
        Some(From::Ref(_)) => (
            &["works", "output"],
            "`{key}` goes with `cmd`; a folder says it in its subject.toml",
        ),
        Some(From::Command(_)) if table.has("works") => (
            &["endpoints", "ready", "stop"],
            "`{key}` is of servers, and with `works` this is a program that is run to its end",
        ),
        Some(From::Command(_)) => (
            &["output"],
            "`{key}` is of programs: add works = [\"…\"], the works that it does",
        ),
        None => (&[], ""),
    };
    table.refuse(keys, message, "");
}

/// `[[setting]]`. `backings`: names that stand in braces for addresses.
pub fn read_setting(table: &Fields<'_>, backings: &[String]) -> Option<Setting> {
    let name: Option<Spanned<String>> = table.get("name");
    let values = setting_values(table);
    let env: BTreeMap<String, String> = table.value("env");
    let args: Vec<String> = table.value("args");
    let mut right = words::with_clients(&START_PLACEHOLDERS);
    right.extend(["count", "value"]);
    let right = words::with_names(&right, backings);
    check_placeholders(table, "args", &args, &right);
    check_placeholders(table, "env", env.values(), &right);
    let env_of: BTreeMap<String, BTreeMap<String, String>> = by_value(table, "env_of", &values);
    let texts = env_of.values().flat_map(BTreeMap::values);
    check_placeholders(table, "env_of", texts, &right);
    if let Some(name) = &name {
        check_meaning(name.get_ref(), &values, table);
    }
    Some(Setting {
        sysctl: sysctl(table),
        topology: service::read_topology(table, &values),
        subjects: table.get("subjects"),
        workloads: table.get("workloads"),
        name: name?,
        values,
        env,
        args,
        env_of,
    })
}

/// Notes a value that is not what the name of its setting means.
fn check_meaning(name: &str, values: &[String], table: &Fields<'_>) {
    let problem = |value: &String| {
        let number = value.parse().unwrap_or(0_u64);
        let (is_right, help) = match name {
            THREADS => (
                value == ALL_CORES || keys::THREADS.contains(&number),
                "values = [1, 4, \"cores\"]: numbers, or \"cores\" for all that there are",
            ),
            INSTANCES | GENERATORS => (
                PROCESSES.contains(&number),
                "values = [1, 2]: whole numbers from 1 to 64",
            ),
            _ => return spoken::value_problem(name, value),
        };
        let message = || format!("`{}` is no number of {name}", short(value));
        (!is_right).then(|| (message(), help.to_owned()))
    };
    if let Some((message, help)) = values.iter().find_map(problem) {
        table.note("values", message, help);
    }
}

/// `sysctl`: the name of a kernel setting, as `sysctl` writes it.
fn sysctl(table: &Fields<'_>) -> Option<String> {
    let name: String = table.get("sysctl")?;
    if !crate::sysctl::is_name(&name) {
        let message = format!("`{}` is no name of a kernel setting", short(&name));
        let help = "sysctl = \"kernel.sched_rt_runtime_us\", as `sysctl -a` lists them";
        table.note("sysctl", message, help);
    }
    Some(name)
}

/// Strings, whole numbers and booleans, each as it is written.
fn setting_values(table: &Fields<'_>) -> Vec<String> {
    let values: Option<Vec<Spanned<String>>> = table.get("values");
    let values = values.unwrap_or_default();
    for value in &values {
        let text = value.get_ref();
        if text.len() > words::NAME_BYTES_MAX || text.contains(char::is_control) {
            let most = words::NAME_BYTES_MAX;
            let message = format!("a value is one line of at most {most} bytes");
            table.problems.note(value.span(), message);
        }
    }
    if table.is_empty_list("values") {
        let message = "`values` is empty; it is a list of strings or whole numbers";
        table.note("values", message, "");
    }
    keys::check_differ(&values, "value", table.problems);
    keys::texts(values)
}
