//! The figures of single trials for other programs: a long table, benchstat's format, JUnit.
//!
//! An export is a function here and a line in [`Export`]; what it has values of are the [`Metric`]s.

use std::fmt::Write as _;

use prony_findings::{Case, Records, Verdict};

use crate::Run;
use crate::escape::html;
use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::view;

/// A format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Export {
    /// Comma-separated values, a row for each figure of each trial.
    Long,
    /// What `benchstat` reads (golang.org/design/14313-benchmark-format): a line for each trial.
    Benchstat,
    /// JUnit's XML: a test case for each cell, which fails where it is invalid or not as required.
    Junit,
}

/// `run` in a format of others.
pub fn export(run: &Run, format: Export) -> String {
    let records = Records::new(&run.plan, &run.trials);
    match format {
        Export::Long => long(run, &records),
        Export::Benchstat => benchstat(run, &records),
        Export::Junit => junit(run),
    }
}

fn long(run: &Run, records: &Records<'_>) -> String {
    let mut text =
        String::from("cell,subject,workload,connections,block,metric,unit,better,value\n");
    for case in records.cases() {
        let cell = case.cell;
        for metric in Metric::claimed() {
            for (block, value) in (metric.values)(run, &case) {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{value}",
                    field(&cell.id),
                    field(&cell.subject),
                    field(&cell.workload),
                    cell.connections,
                    block,
                    metric.key,
                    metric.unit,
                    metric.better,
                );
            }
        }
    }
    text
}

/// A field of comma-separated values, quoted where it must be (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn benchstat(run: &Run, records: &Records<'_>) -> String {
    let mut text = String::new();
    for metric in Metric::claimed() {
        let _ = writeln!(text, "Unit {} better={}", metric.bench, metric.better);
    }
    let environment = &run.environment;
    let _ = writeln!(text, "prony: {}", one_line(&environment.prony_version));
    let _ = writeln!(text, "cpu: {}", one_line(&environment.cpu_model));
    for case in records.cases() {
        let values = Metric::claimed().map(|metric| (metric, (metric.values)(run, &case)));
        let values: Vec<(Metric, Vec<(u32, f64)>)> = values.collect();
        for trial in case.complete() {
            let count = match (&trial.load, &trial.program) {
                (Some(load), _) => load.completed,
                (None, Some(_)) => case.cell.count.unwrap_or(1),
                (None, None) => 1,
            };
            let _ = write!(text, "{}\t{}", bench_name(&case), count.max(1));
            for (metric, values) in &values {
                let own = values.iter().find(|(block, _)| *block == trial.block);
                if let Some((_, value)) = own {
                    let _ = write!(text, "\t{value} {}", metric.bench);
                }
            }
            text.push('\n');
        }
    }
    text
}

/// `BenchmarkPing/subject=rust_axum/c=2/services=on`.
fn bench_name(case: &Case<'_>) -> String {
    let plain = |text: &str| -> String {
        let keep = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        text.chars()
            .map(|c| if keep(c) { c } else { '_' })
            .collect()
    };
    let cell = case.cell;
    let workload = plain(&cell.workload);
    let mut letters = workload.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    let mut name = format!(
        "Benchmark{}{}/subject={}",
        first.unwrap_or_default(),
        letters.as_str(),
        plain(&cell.subject)
    );
    let _ = match cell.count {
        Some(count) => write!(name, "/n={count}"),
        None => write!(name, "/c={}", cell.connections),
    };
    if let Some(rate) = cell.rate_per_s {
        let _ = write!(name, "/rate={rate}");
    }
    for (setting, value) in &cell.settings {
        let _ = write!(name, "/{}={}", plain(setting), plain(value));
    }
    name
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn junit(run: &Run) -> String {
    let computed = view::compute(run);
    let cells = &computed.cells;
    let count = |of: &dyn Fn(&CellFigures) -> bool| cells.iter().filter(|cell| of(cell)).count();
    // Why a cell fails; of one that was not measured, nothing.
    let wrong = |cell: &CellFigures| -> Vec<String> {
        let by = match cell.verdict {
            Some(Verdict::Invalid) => &cell.invalid_by[..],
            _ => &[],
        };
        let codes = by
            .iter()
            .map(|code| format!("{}, {}", code.as_str(), code.title()));
        let required = computed.required.iter();
        let missed = required.filter(|of| of.cell == cell.cell && !of.outcome.held);
        codes
            .chain(missed.map(|of| of.outcome.sentence.clone()))
            .collect()
    };
    let missing = |cell: &CellFigures| cell.verdict.is_none() && wrong(cell).is_empty();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\">",
        xml(&run.plan.title),
        cells.len(),
        count(&|cell| !wrong(cell).is_empty()),
        count(&missing),
    );
    for cell in cells {
        let _ = write!(
            text,
            "<testcase classname=\"{}\" name=\"{}\"",
            xml(&cell.workload),
            xml(&cell.cell)
        );
        let (why, is_missing) = (wrong(cell), missing(cell));
        let inner = match (why.is_empty(), is_missing, &cell.rate_per_s) {
            (false, _, _) => format!("<failure message=\"{}\"/>", xml(&why.join("; "))),
            (_, true, _) => "<skipped message=\"no trial of it has ended\"/>".to_owned(),
            (_, _, Some(rate)) => format!("<system-out>{} a second</system-out>", rate.median),
            _ => String::new(),
        };
        let _ = match inner.is_empty() {
            true => writeln!(text, "/>"),
            false => writeln!(text, ">{inner}</testcase>"),
        };
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

/// Escaped for XML, without what XML has no words for.
fn xml(text: &str) -> String {
    let printed = text.chars().filter(|c| !c.is_control());
    html(&printed.collect::<String>())
}
