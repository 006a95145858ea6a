//! The figures of single trials for other programs: a long table, benchstat's format, JUnit.
//!
//! An export is a function here and a line in [`Export`]; what it has values of are the [`Metric`]s.

use std::fmt::Write as _;

use minijinja::context;
use prony_findings::{Case, Records};

use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::words::capitalised;
use crate::{Run, csv, templates, view};

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
    let head = "cell,subject,workload,connections,block,metric,unit,better,value\n";
    let mut text = head.to_owned();
    for case in records.cases() {
        let cell = case.cell;
        for metric in Metric::claimed() {
            for (block, value) in metric.by_block(run, &case) {
                let [connections, block] = [cell.connections, block].map(|of| of.to_string());
                text.push_str(&csv::line(&[
                    &cell.id,
                    &cell.subject,
                    &cell.workload,
                    &connections,
                    &block,
                    metric.key,
                    metric.unit,
                    metric.better(),
                    &value.to_string(),
                ]));
            }
        }
    }
    text
}

fn benchstat(run: &Run, records: &Records<'_>) -> String {
    let mut text = String::new();
    for metric in Metric::claimed() {
        let _ = writeln!(text, "Unit {} better={}", metric.bench, metric.better());
    }
    let environment = &run.environment;
    let _ = writeln!(text, "prony: {}", one_line(&environment.prony_version));
    let _ = writeln!(text, "cpu: {}", one_line(&environment.cpu_model));
    for case in records.cases() {
        let values = Metric::claimed().map(|metric| (metric, metric.by_block(run, &case)));
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
    let mut parts = vec![
        format!("Benchmark{}", capitalised(&plain(&cell.workload))),
        format!("subject={}", plain(&cell.subject)),
        match cell.count {
            Some(count) => format!("n={count}"),
            None => format!("c={}", cell.connections),
        },
    ];
    parts.extend(cell.rate_per_s.map(|rate| format!("rate={rate}")));
    let settings = cell.settings.iter();
    parts.extend(settings.map(|(setting, value)| format!("{}={}", plain(setting), plain(value))));
    parts.join("/")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn junit(run: &Run) -> String {
    let computed = view::compute(run);
    // Why a cell fails; of one that was not measured, nothing.
    let wrong = |cell: &CellFigures| {
        let codes = cell.invalid_by.iter().filter(|_| cell.is_invalid());
        let codes = codes.map(|code| format!("{code}, {}", code.title()));
        let required = computed.required.iter();
        let missed = required.filter(|of| of.cell == cell.cell && !of.outcome.held);
        let missed = missed.map(|of| of.outcome.sentence.clone());
        codes.chain(missed).collect::<Vec<_>>().join("; ")
    };
    let is_missing = |cell: &CellFigures| cell.verdict.is_none() && wrong(cell).is_empty();
    let cells = &computed.cells;
    let case = |cell: &CellFigures| {
        context! {
            name => &cell.cell,
            workload => &cell.workload,
            why => wrong(cell),
            is_missing => is_missing(cell),
            rate => cell.rate_per_s.map(|rate| rate.median.to_string()),
        }
    };
    let values = context! {
        title => &*run.plan.title,
        failures => cells.iter().filter(|cell| !wrong(cell).is_empty()).count(),
        skipped => cells.iter().filter(|cell| is_missing(cell)).count(),
        cells => cells.iter().map(case).collect::<Vec<_>>(),
    };
    templates::fill(&templates::templates(), "junit.xml", values)
}
