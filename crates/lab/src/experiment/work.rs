//! The parts of an experiment that came with programs: works and their sizes, and the
//! settings, which choose among builds, threads and kernel settings too. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use prony_record::{AnswerChecks, Arrival, RequestTemplate};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{self, Fields, Problems, Value};
use super::keys::{self, by_value, check_placeholders, read_name};
use super::types::{ALL_CORES, From, Setting, THREADS, Work, Workload, is_number_of_processes};
use super::words::{self, PROGRAM_PLACEHOLDERS, START_PLACEHOLDERS, short};
use super::{client, find_max, service, sources, spoken};
use crate::diagnosis::Diagnosis;

/// Sizes of a work.
pub const COUNT: RangeInclusive<u64> = 1..=1_000_000_000_000;
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
pub fn read_workload(
    name: Option<Spanned<String>>,
    mut table: Fields<'_, '_>,
    p: &mut Problems,
) -> Option<Workload> {
    let work = table.text("work", p);
    for problem in work
        .iter()
        .filter_map(|work| words::name_problem(work.get_ref()))
    {
        p.note(Diagnosis::new(table.span_of("work"), problem));
    }
    client::refuse_without_client(&mut table, p);
    for key in OF_REQUESTS.into_iter().chain(sources::KEYS) {
        if let Some(value) = table.value(key) {
            let message = format!("`{key}` cannot go with `work`: a program is sent no requests");
            p.note(Diagnosis::new(value.span(), message));
        }
    }
    let counts = match table.value("count") {
        Some(value) => counts(value, p),
        None => {
            table.missing(
                "count",
                "count = 1000000, or a sweep: count = [1000, 10000]",
                p,
            );
            None
        }
    };
    let args = keys::texts(table.texts("args", p).unwrap_or_default());
    check_placeholders(&args, &PROGRAM_PLACEHOLDERS, &table.span_of("args"), p);
    let timeout = keys::timeout(&mut table, p);
    service::refuse_without_request(&mut table, p);
    find_max::refuse(&mut table, p);
    let subjects = table.texts("subjects", p);
    let title = keys::read_title(&mut table, p);
    table.finish(&[], p);
    let work = work?;
    Some(Workload {
        name: name.unwrap_or_else(|| work.clone()),
        title,
        client: None,
        work: Some(Work {
            work: work.into_inner(),
            counts: counts?,
            args,
        }),
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
        timeout,
        subjects,
        rows: Vec::new(),
        counter: None,
        find_max: None,
        rest: None,
    })
}

/// Keys of a work in a workload that is requests.
pub fn refuse_without_work(table: &mut Fields<'_, '_>, p: &mut Problems) {
    // Known here, so that a list of keys names it.
    let _ = table.value("work");
    for key in ["count", "args", "timeout_s"] {
        if let Some(value) = table.value(key) {
            let message =
                format!("`{key}` is for the `work` of a program, and this is a `request`");
            p.note(Diagnosis::new(value.span(), message));
        }
    }
}

/// `[1000, 10000]`, or one of them alone.
pub fn counts(value: &Value<'_>, p: &mut Problems) -> Option<Vec<u64>> {
    let wanted = "a whole number, or a list such as [1000, 10000]";
    let items = match value.get_ref() {
        DeValue::Array(_) => fields::list("count", value, wanted, p)?,
        _ => std::slice::from_ref(value),
    };
    let mut read: Vec<u64> = Vec::with_capacity(items.len());
    for item in items {
        let Some(count) = fields::whole("count", item, COUNT, p) else {
            continue;
        };
        if read.contains(&count) {
            p.note(Diagnosis::new(item.span(), "this count stands here twice"));
        }
        read.push(count);
    }
    if items.is_empty() {
        let message = format!("`count` is empty; it is {wanted}");
        p.note(Diagnosis::new(value.span(), message));
    }
    Some(read)
}

/// Reports keys that cannot go with this kind of subject.
pub fn refuse_for(from: &Option<From>, table: &Fields<'_, '_>, p: &mut Problems) {
    let (keys, why): (&[&str], &str) = match from {
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
            "cannot go with `url`: Prony does not start that server",
        ),
        Some(From::Ref(_)) => (
            &["works", "output"],
            "goes with `cmd`; a folder says it in its subject.toml",
        ),
        Some(From::Command(_)) if table.has("works") => (
            &["endpoints", "ready", "stop"],
            "is of servers, and with `works` this is a program that is run to its end",
        ),
        Some(From::Command(_)) => (
            &["output"],
            "is of programs: add works = [\"…\"], the works that it does",
        ),
        None => (&[], ""),
    };
    for key in keys.iter().filter(|key| table.has(key)) {
        p.note(Diagnosis::new(table.span_of(key), format!("`{key}` {why}")));
    }
}

/// `[[setting]]`. `backings`: names that stand in braces for addresses.
pub fn read_setting(
    mut table: Fields<'_, '_>,
    backings: &[String],
    p: &mut Problems,
) -> Option<Setting> {
    let name = read_name(&mut table, p);
    if name.is_none() && !table.has("name") {
        table.missing("name", "name = \"logging\"", p);
    }
    let values = match table.value("values") {
        Some(values) => setting_values(values, p),
        None => {
            table.missing("values", "values = [\"off\", \"info\"]", p);
            Vec::new()
        }
    };
    let env = table.map("env", p).unwrap_or_default();
    let args = keys::texts(table.texts("args", p).unwrap_or_default());
    let mut right = words::with_clients(&START_PLACEHOLDERS);
    right.extend(["count", "value"]);
    let right = words::with_names(&right, backings);
    check_placeholders(&args, &right, &table.span_of("args"), p);
    check_placeholders(env.values(), &right, &table.span_of("env"), p);
    let env_of = env_of(&mut table, &values, &right, p);
    let sysctl = sysctl(&mut table, p);
    let topology = service::read_topology(&mut table, &values, p);
    let subjects = table.texts("subjects", p);
    let workloads = table.texts("workloads", p);
    if let Some(name) = &name {
        check_meaning(name.get_ref(), &values, &table, p);
    }
    table.finish(&[], p);
    Some(Setting {
        name: name?,
        values,
        env,
        args,
        env_of,
        sysctl,
        topology,
        subjects,
        workloads,
    })
}

/// Whether the values of a setting whose name has a meaning are what it means.
fn check_meaning(name: &str, values: &[String], table: &Fields<'_, '_>, p: &mut Problems) {
    if name == THREADS {
        check_threads(values, table, p);
    } else if is_number_of_processes(name) {
        service::check_processes(name, values, table, p);
    } else if spoken::is_spoken(name) {
        spoken::check(name, values, table, p);
    }
}

/// Checks that the values of the setting `threads` are numbers of threads.
fn check_threads(values: &[String], table: &Fields<'_, '_>, p: &mut Problems) {
    let right = |value: &&String| {
        let number = value
            .parse()
            .is_ok_and(|count: u64| keys::THREADS.contains(&count));
        !number && value.as_str() != ALL_CORES
    };
    if let Some(wrong) = values.iter().find(right) {
        let message = format!("`{}` is no number of threads", short(wrong));
        let help = "values = [1, 4, \"cores\"]: numbers, or \"cores\" for all that there are";
        p.note(Diagnosis::new(table.span_of("values"), message).help(help));
    }
}

/// `env_of`: tables of environment by value.
fn env_of(
    table: &mut Fields<'_, '_>,
    values: &[String],
    right: &[&str],
    p: &mut Problems,
) -> BTreeMap<String, BTreeMap<String, String>> {
    by_value(table, "env_of", values, p, |typed, value, p| {
        let env = fields::map(typed, value, p).unwrap_or_default();
        check_placeholders(env.values(), right, &value.span(), p);
        Some(env)
    })
}

/// `sysctl`: the name of a kernel setting, as `sysctl` writes it.
fn sysctl(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<String> {
    let name = table.text("sysctl", p)?;
    let text = name.get_ref().as_str();
    if !crate::sysctl::is_name(text) {
        let message = format!("`{}` is no name of a kernel setting", short(text));
        let help = "sysctl = \"kernel.sched_rt_runtime_us\", as `sysctl -a` lists them";
        p.note(Diagnosis::new(name.span(), message).help(help));
    }
    Some(name.into_inner())
}

/// Strings, whole numbers and booleans, each as it is written.
fn setting_values(value: &Value<'_>, p: &mut Problems) -> Vec<String> {
    let wanted = "a list of strings or whole numbers";
    let items = fields::list("values", value, wanted, p).unwrap_or_default();
    let mut values: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let text = match item.get_ref() {
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Boolean(truth) => Some(truth.to_string()),
            _ => fields::text("values", item, p).map(Spanned::into_inner),
        };
        let Some(text) = text else { continue };
        if text.len() > words::NAME_BYTES_MAX || text.contains(char::is_control) {
            let message = format!(
                "a value is one line of at most {} bytes",
                words::NAME_BYTES_MAX
            );
            p.note(Diagnosis::new(item.span(), message));
        }
        if values.contains(&text) {
            let message = format!("the value `{}` stands here twice", short(&text));
            p.note(Diagnosis::new(item.span(), message));
        }
        values.push(text);
    }
    if let DeValue::Array(items) = value.get_ref()
        && items.is_empty()
    {
        p.note(Diagnosis::new(
            value.span(),
            format!("`values` is empty; it is {wanted}"),
        ));
    }
    values
}
