//! The rows of a workload's table, where it is not all combinations of subjects and settings:
//! each names its subject, the settings that it has, and its baseline. Pure.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, Problems, Value, word};
use super::keys;
use super::types::{Baseline, Experiment, Row, Workload};
use super::words::short;
use crate::diagnosis::suggest;

/// Bytes of a title at the most.
const TITLE_BYTES_MAX: usize = 200;

/// `rows` of a workload; empty where there are none.
pub fn read(table: &Fields<'_>) -> Vec<Row> {
    if table.is_empty_list("rows") {
        let message = "`rows` is empty: the workload would have no cell";
        table.note("rows", message, "");
    }
    if table.has("rows") {
        let message = "`{key}` cannot go with `rows`: each row names its subject";
        table.refuse(&["subjects"], message, "");
    }
    table.tables("rows").iter().filter_map(read_row).collect()
}

fn read_row(table: &Fields<'_>) -> Option<Row> {
    let title = table.get("title");
    if let Some(title) = &title {
        check_title(title, table.problems);
    }
    let (subject, settings) = (table.get("subject"), values_by_setting(table));
    let baseline = match table.raw("baseline").map(|value| value.get_ref()) {
        None => Some(Baseline::First),
        Some(DeValue::Boolean(false)) => Some(Baseline::Nothing),
        Some(_) => table.get("baseline").map(Baseline::Row),
    };
    Some(Row {
        title: title?,
        subject: subject?,
        settings,
        baseline: baseline?,
    })
}

fn check_title(title: &Spanned<String>, p: &Problems) {
    let text = title.get_ref();
    if text.trim().is_empty() || text.len() > TITLE_BYTES_MAX || text.contains(char::is_control) {
        let message = format!("a title is one line of at most {TITLE_BYTES_MAX} bytes");
        p.note(title.span(), message);
    }
}

/// The other keys of a table, as values of settings.
pub fn values_by_setting(table: &Fields<'_>) -> Vec<(Spanned<String>, Spanned<String>)> {
    let setting = |(key, value): (Spanned<&str>, &Value<'_>)| {
        let text = word(key.get_ref(), value, table.problems)?;
        let name = Spanned::new(key.span(), (*key.get_ref()).to_owned());
        Some((name, Spanned::new(value.span(), text)))
    };
    table.others().filter_map(setting).collect()
}

/// What can be checked without the subjects' own files.
pub fn check_within(experiment: &Experiment, p: &Problems) {
    for workload in &experiment.workloads {
        for row in &workload.rows {
            let place = ("workload.rows", "in a row");
            keys::check_settings(experiment, place, &row.settings, p);
        }
        check_titles(workload, p);
        check_alike(workload, p);
        check_baselines(workload, p);
    }
    check_used(experiment, p);
}

/// A setting that no cell can have was meant to be in one.
fn check_used(experiment: &Experiment, p: &Problems) {
    let workloads = &experiment.workloads;
    let has_all = |workload: &Workload| workload.rows.is_empty();
    if workloads.is_empty() || workloads.iter().any(has_all) {
        return;
    }
    let rows = || workloads.iter().flat_map(|workload| &workload.rows);
    let named: BTreeSet<&str> = rows()
        .flat_map(|row| &row.settings)
        .map(|(name, _)| name.get_ref().as_str())
        .collect();
    for setting in &experiment.settings {
        let name = setting.name.get_ref();
        if !named.contains(name.as_str()) {
            let message = format!("no row has the setting `{name}`, and all tables have rows");
            p.advise(setting.name.span(), message, "leave it out");
        }
    }
}

fn check_titles(workload: &Workload, p: &Problems) {
    for (index, row) in workload.rows.iter().enumerate() {
        let mut before = workload.rows[..index].iter();
        if before.any(|other| other.title == row.title) {
            let message = format!("two rows are called `{}`", short(row.title.get_ref()));
            let help = "give each row a `title` of its own";
            p.advise(row.title.span(), message, help);
        }
    }
}

/// Two rows of one subject with the same settings are one cell.
fn check_alike(workload: &Workload, p: &Problems) {
    let mut seen: BTreeMap<(&str, BTreeMap<&str, &str>), &str> = BTreeMap::new();
    for row in &workload.rows {
        let settings = row.settings.iter();
        let settings =
            settings.map(|(name, value)| (name.get_ref().as_str(), value.get_ref().as_str()));
        let title = row.title.get_ref().as_str();
        let key = (row.subject.get_ref().as_str(), settings.collect());
        let Some(other) = seen.insert(key, title) else {
            continue;
        };
        let other = short(other);
        let message =
            format!("this row is the same as `{other}`: its subject and its settings are");
        let help = "leave it out, or give it a setting in which it differs";
        p.advise(row.title.span(), message, help);
    }
}

fn check_baselines(workload: &Workload, p: &Problems) {
    let rows = &workload.rows;
    let titles: Vec<&str> = rows
        .iter()
        .map(|row| row.title.get_ref().as_str())
        .collect();
    let places: BTreeMap<&str, usize> = titles.iter().copied().zip(0..).collect();
    let next = |(index, row): (usize, &Row)| {
        let title = row.baseline_of(index, rows)?;
        places.get(title).copied()
    };
    let next: Vec<Option<usize>> = rows.iter().enumerate().map(next).collect();
    for (index, row) in rows.iter().enumerate() {
        let Baseline::Row(baseline) = &row.baseline else {
            continue;
        };
        if baseline.get_ref() == row.title.get_ref() {
            let message = "a row cannot be its own baseline";
            let help = "`baseline = false`: it stands for itself, without a ratio";
            p.advise(baseline.span(), message, help);
        } else if !titles.contains(&baseline.get_ref().as_str()) {
            let message = format!("no row is called `{}`", short(baseline.get_ref()));
            let help = suggest(baseline.get_ref(), "row", &titles);
            p.advise(baseline.span(), message, help);
        } else if comes_back(index, &next) {
            let message = "the baselines of the rows lead back to themselves";
            let help = "one of them must stand for itself: baseline = false";
            p.advise(baseline.span(), message, help);
        }
    }
}

/// Whether the way from row to row that begins at `start` leads back to it.
fn comes_back(start: usize, next: &[Option<usize>]) -> bool {
    let mut at = start;
    for _ in 0..next.len() {
        match next[at] {
            Some(next) if next == start => return true,
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}
