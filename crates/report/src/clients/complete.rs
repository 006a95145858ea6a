//! What a client has in common with a server and says in its own way.
//!
//! Not for: what only a client has, which is in `figures`.

use prony_findings::{Case, client, measure};
use prony_record::{ProgramReport, Trial};
use prony_stats::{Share, Tail};

use super::figures::cpu;
use crate::figures::{CellFigures, Figure};
use crate::metrics::QUANTILES;

/// Fills in what a client has in common with a server and says in its own way: latency, CPU time an
/// answer, counts.
pub fn complete(case: &Case<'_>, cell: &mut CellFigures) {
    if !case.is_client() {
        return;
    }
    let runs: Vec<(&Trial, &ProgramReport)> = case.runs().collect();
    let latencies = || runs.iter().filter_map(|(trial, _)| client::latency(trial));
    for (name, q) in QUANTILES {
        let given = latencies().filter_map(|of| of.percentile(100.0 * q));
        let given = given.filter(|ns| *ns > 0);
        let values: Vec<f64> = given.map(|ns| ns as f64).collect();
        cell.latency_ns
            .extend(Figure::range(&values).map(|figure| (name, figure)));
    }
    cell.latency_max_ns = latencies().map(|l| l.max).max().filter(|ns| *ns > 0);
    let mut tail = Tail::default();
    for (trial, _) in &runs {
        let said = client::said(trial).and_then(|said| said.histogram.as_ref());
        said.iter()
            .for_each(|histogram| tail.add(histogram, Share(0.999), None));
    }
    (cell.beyond_p99_9, cell.slow_periods) = (tail.beyond, tail.periods);
    cell.p99_9_supported = tail.is_enough();
    let over = |of: fn(&ProgramReport) -> Option<f64>| {
        let values = runs.iter().filter_map(|(_, run)| of(run));
        Figure::range(&values.collect::<Vec<_>>())
    };
    cell.measured.set("cpu_subject_ns", over(cpu));
    cell.bytes_per_answer = over(|run| {
        let line = measure::line(run).filter(|line| line.bytes > 0 && line.count > 0)?;
        Some(line.bytes as f64 / line.count as f64)
    });
    for (trial, run) in &runs {
        let count = measure::line(run).map_or(0, |line| line.count);
        cell.completed = cell.completed.saturating_add(count);
        let Some(said) = client::said(trial) else {
            continue;
        };
        cell.errors = cell.errors.saturating_add(said.failed);
        for (kind, count) in said.failed_by_kind.iter().filter(|(_, count)| **count > 0) {
            let sum = cell.errors_by_kind.entry(kind.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}
