//! The figures of every cell, computed once from its records.
//!
//! Not for: what they are (`figures`), and how they are shown.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use prony_findings::{Case, Code, Finding, Records, Severity, client, measure, verdict};
use prony_record::{Cell, GeneratorKind, Histogram, LoadReport, Outcome, Role, Trial};
use prony_stats::{Share, Tail};

use crate::figure::{self, values};
use crate::figures::{CellFigures, CrossCheck, FailedTrial, Figure, Trials, name_of};
use crate::metrics::{Metric, QUANTILES, latency_of, stored};
use crate::ratio::{RatioFigure, measured_apart, paired};
use crate::rows::figures as services;
use crate::search::figures as search;
use crate::settings::{settings_agree, with_settings};
use crate::{Run, clients, open, programs, ratio, users};

/// The farthest percentile that is told of visits: what is rarer may have happened between them.
const VISITED_QUANTILE_MAX: f64 = 0.99;

/// The figures of every cell, in the plan's order.
pub fn cells(run: &Run, records: &Records<'_>, findings: &[Finding]) -> Vec<CellFigures> {
    let cases = records.cases().enumerate();
    let mut cells: Vec<CellFigures> = cases
        .map(|(place, case)| CellFigures {
            place,
            trials: outcomes(run, &case, place),
            ..of_cell(run, &case, findings)
        })
        .collect();
    // What the reference is with settings of its own is compared with nothing, and nothing with it.
    let compared = cells.iter().filter_map(|cell| {
        let ratio = cell.ratio.as_ref()?;
        Some((cell.workload.clone(), ratio.reference_cell.clone()))
    });
    let compared: BTreeSet<(String, String)> = compared.collect();
    for cell in cells.iter_mut().filter(|cell| cell.is_reference) {
        let in_its_workload = || compared.iter().filter(|(name, _)| *name == cell.workload);
        cell.is_reference =
            in_its_workload().count() == 0 || in_its_workload().any(|(_, of)| *of == cell.cell);
    }
    cells
}

fn of_cell(run: &Run, case: &Case<'_>, findings: &[Finding]) -> CellFigures {
    let cell = case.cell;
    let found: Vec<&Finding> = findings.iter().filter(|f| f.cell == cell.id).collect();
    let trials: Vec<&Trial> = case.complete().collect();
    let counts: Vec<TrialCounts> = trials
        .iter()
        .map(|trial| trial_counts(case, trial))
        .collect();
    let sum = |of: fn(&TrialCounts) -> u64| counts.iter().map(of).fold(0, u64::saturating_add);
    let (latency_ns, latency_max_ns, tail) = latencies(run, case, &trials);
    let baseline = baseline(case);
    let grave = found.iter().filter(|f| f.severity == Severity::Invalid);
    let processes = case.measured();
    let processes = processes.map(|trial| measure::processes(trial, Role::Subject).count());
    CellFigures {
        cell: cell.id.clone(),
        subject: cell.subject.clone(),
        label: label(case),
        workload: cell.workload.clone(),
        connections: cell.connections,
        asked_per_s: cell.rate_per_s,
        open: open::of_cell(case),
        users: users::figures::of_cell(case),
        search: search::of_cell(case),
        program: programs::figures::of_cell(case),
        client: clients::figures::of_cell(case),
        service: services::of_cell(case),
        settings: cell.settings.clone(),
        // In a table with rows of its own, each has one beside it.
        is_reference: run.plan.reference.as_ref() == Some(&cell.subject) && case.row().is_none(),
        is_copy: is_copy(case),
        verdict: (!case.trials().is_empty()).then(|| verdict(found.iter().copied())),
        findings: codes(found.iter()),
        invalid_by: codes(grave),
        rate_per_s: rate(case),
        // How many requests of an open loop start is the schedule's doing.
        ratio: baseline
            .filter(|_| !open::is_open(case))
            .and_then(|baseline| ratio::rates(&baseline, case)),
        ratios: baseline.map_or_else(BTreeMap::new, |baseline| rate_against(run, &baseline, case)),
        latency_max_ns,
        latency_ns,
        beyond_p99_9: tail.beyond,
        slow_periods: tail.periods,
        p99_9_supported: tail.is_enough(),
        measured: Metric::measured(run, case),
        processes: processes.max().unwrap_or(0),
        bytes_per_answer: Figure::over(&trials, |trial| bytes_per_answer(case, trial)),
        completed: sum(|of| of.completed),
        errors: sum(|of| of.errors),
        errors_by_kind: summed(counts.iter().flat_map(|of| &of.errors_by_kind)),
        ..CellFigures::default()
    }
}

/// Each code once.
fn codes<'a>(findings: impl Iterator<Item = &'a &'a Finding>) -> Vec<Code> {
    let mut codes: Vec<Code> = findings.map(|finding| finding.code).collect();
    codes.dedup();
    codes
}

/// What became of the requests of a trial: by the generator, or by a client's own word.
#[derive(Default)]
struct TrialCounts {
    completed: u64,
    errors: u64,
    errors_by_kind: Vec<(String, u64)>,
}

fn trial_counts(case: &Case<'_>, trial: &Trial) -> TrialCounts {
    let Some(run) = &trial.program else {
        let load = trial.load.as_ref();
        return load.map_or_else(TrialCounts::default, |load| of_load(case, load));
    };
    let count = measure::line(run).map_or(0, |line| line.count);
    let failed = client::figures(trial).filter(|_| case.is_client());
    let kinds = failed.map(|said| said.failed_by_kind.clone());
    TrialCounts {
        completed: if case.is_client() { count } else { 0 },
        errors: failed.map_or(0, |said| said.failed),
        errors_by_kind: kinds.into_iter().flatten().collect(),
    }
}

/// Without the failures that are not the subject's: what a kill breaks off after the window.
fn of_load(case: &Case<'_>, load: &LoadReport) -> TrialCounts {
    let mut own = load.clone();
    if case.is_killed() {
        (own.counts.drain_failed, own.counts.abandoned) = (0, 0);
    }
    let counts = &own.counts;
    let connecting = counts.connect_failed.by_kind();
    let connecting = connecting.map(|(kind, count)| (format!("connect_{kind}"), count));
    let others = [
        ("unexpected_status", counts.unexpected_status),
        ("drain_failed", counts.drain_failed),
        ("abandoned", counts.abandoned),
    ];
    let failed = counts.failed.by_kind().into_iter().chain(others);
    let failed = failed.map(|(kind, count)| (kind.to_owned(), count));
    TrialCounts {
        completed: own.completed,
        errors: measure::errors(&own),
        errors_by_kind: failed.chain(connecting).collect(),
    }
}

/// Counts by kind, only of what happened.
fn summed<'a>(counts: impl Iterator<Item = &'a (String, u64)>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, count) in counts.filter(|(_, count)| *count > 0) {
        let sum = sums.entry(kind.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    sums
}

/// Bytes received a completed request; of a client, of bodies.
fn bytes_per_answer(case: &Case<'_>, trial: &Trial) -> Option<f64> {
    let Some(run) = &trial.program else {
        return Some(measure::bytes_per_answer(trial.load.as_ref()?)?.0);
    };
    let line = measure::line(run).filter(|line| line.bytes > 0 && line.count > 0);
    let line = line.filter(|_| case.is_client())?;
    Some(line.bytes as f64 / line.count as f64)
}

/// `axum`, or `axum, logging=info` where there are settings; the id where a name is not unique; of a row
/// its title.
fn label(case: &Case<'_>) -> String {
    if let Some(row) = case.row() {
        return row.title.clone();
    }
    let name = name_of(case.records.plan, &case.cell.subject);
    with_settings(name, &case.cell.settings)
}

/// Whether the subject starts the very program of the reference.
fn is_copy(case: &Case<'_>) -> bool {
    let plan = case.records.plan;
    let beside = case
        .baseline_cell()
        .filter(|b| b.settings == case.cell.settings);
    let id = match case.row() {
        Some(_) => beside.map(|beside| &beside.subject),
        None => plan.reference.as_ref(),
    };
    let reference = plan.subjects.iter().find(|s| Some(&s.id) == id);
    let (Some(subject), Some(reference)) = (case.subject, reference) else {
        return false;
    };
    let program = |s: &prony_record::PlannedSubject| {
        (
            s.source.clone(),
            s.start.clone(),
            s.program.clone(),
            s.client.clone(),
            s.env.clone(),
            s.threads,
            s.build_key.clone(),
        )
    };
    subject.id != reference.id && program(subject) == program(reference)
}

fn outcomes(run: &Run, case: &Case<'_>, place: usize) -> Trials {
    let in_block = |order: &&Vec<u32>| order.iter().any(|&at| at as usize == place);
    let planned = run.plan.order.iter().filter(in_block).count();
    let failed = case
        .trials()
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Failed { phase, reason } => Some(FailedTrial {
                block: trial.block,
                phase: *phase,
                reason: reason.clone(),
            }),
            _ => None,
        });
    Trials {
        planned: u32::try_from(planned).unwrap_or(u32::MAX),
        measured: case.complete().map(|trial| trial.block).collect(),
        failed: failed.collect(),
    }
}

fn rate(case: &Case<'_>) -> Option<Figure> {
    if case.is_search() {
        return search::rate(case);
    }
    Figure::interval(values(case.rates()))
}

/// What a cell is compared with: the reference's cell with the same workload and size, and with its settings as far as the
/// reference has them; of a row that of the row that it stands beside.
pub fn baseline<'a>(case: &Case<'a>) -> Option<Case<'a>> {
    let plan = case.records.plan;
    let other = if case.row().is_some() {
        case.baseline_cell()?
    } else if case.is_client() {
        clients::figures::reference_cell(plan, case.cell)?
    } else {
        let reference = plan.reference.as_ref()?;
        let matches = |cell: &&Cell| {
            &cell.subject == reference
                && cell.workload == case.cell.workload
                && cell.connections == case.cell.connections
                && cell.rate_per_s == case.cell.rate_per_s
                && cell.count == case.cell.count
        };
        let same = |cell: &&Cell| matches(cell) && cell.settings == case.cell.settings;
        // The reference with other settings is a reference of its own.
        let of_others = &case.cell.subject != reference || case.is_program();
        let agrees = |cell: &&Cell| matches(cell) && settings_agree(plan, case.cell, cell);
        let cells = || plan.cells.iter();
        let exact = cells().find(same).filter(|_| !case.is_program());
        exact.or_else(|| cells().find(agrees).filter(|_| of_others))?
    };
    (other.id != case.cell.id).then(|| case.records.case(other))
}

/// Percentiles over the blocks, from the histograms, or from the report of the generator where a
/// trial has none; the largest of all; and what stands behind p99.9. Those of clients are their own word. Nothing of searches: the latencies
/// of the closed loop before one are not those at its rate; no largest of visits, between which a longer one may have been.
fn latencies(
    run: &Run,
    case: &Case<'_>,
    trials: &[&Trial],
) -> (BTreeMap<&'static str, Figure>, Option<u64>, Tail) {
    if case.is_search() {
        return (BTreeMap::new(), None, Tail::default());
    }
    let is_visited = |trial: &Trial| !trial.visits.is_empty();
    let figure = |(name, q): (&'static str, f64)| {
        let is_known = |trial: &&&Trial| !is_visited(trial) || q <= VISITED_QUANTILE_MAX;
        let known = trials.iter().filter(is_known);
        let values = known.filter_map(|trial| percentile(run, trial, q));
        Some((name, figure::latencies(values.map(|ns| ns as f64))?))
    };
    let longest = |trial: &&Trial| match &trial.load {
        Some(load) => Some(load.latency_ns.max),
        None => Some(client::latency(trial)?.max).filter(|ns| *ns > 0),
    };
    let max = trials.iter().filter_map(longest).max();
    let mut tail = Tail::default();
    for trial in trials.iter().filter(|trial| !is_visited(trial)) {
        let periods = trial.load.as_ref().and_then(|load| load.slow_periods);
        if let Some(histogram) = histogram(run, trial) {
            tail.add(&histogram, Share(0.999), periods);
        }
    }
    let all = QUANTILES.into_iter().filter_map(figure).collect();
    (
        all,
        max.filter(|_| !trials.iter().any(|trial| is_visited(trial))),
        tail,
    )
}

/// A percentile of a trial, nanoseconds. A client says 0 of what it does not know.
fn percentile(run: &Run, trial: &Trial, q: f64) -> Option<u64> {
    match client::latency(trial) {
        Some(own) => own.percentile(100.0 * q).filter(|ns| *ns > 0),
        None => latency_of(run, trial, q),
    }
}

/// The latencies of a trial, of which a load has at the least the number.
fn histogram<'a>(run: &'a Run, trial: &'a Trial) -> Option<Cow<'a, Histogram>> {
    let Some(load) = &trial.load else {
        let said = client::figures(trial)?.histogram.as_ref();
        return said.map(Cow::Borrowed);
    };
    let counted = || Histogram {
        counts: vec![(1, load.latency_ns.count)],
        ..Histogram::default()
    };
    let stored = stored(run, trial).map(Cow::Borrowed);
    Some(stored.unwrap_or_else(|| Cow::Owned(counted())))
}

/// wrk's rates beside Prony's, where a cell was measured by both in the same block.
pub fn cross_checks(run: &Run, records: &Records<'_>) -> Vec<CrossCheck> {
    let by_wrk = run
        .trials
        .iter()
        .filter(|t| t.generator == GeneratorKind::Wrk && t.outcome == Outcome::Measured);
    let checked = by_wrk.filter_map(|trial| {
        let own = records
            .trials(&trial.cell)
            .iter()
            .find(|own| own.block == trial.block && own.outcome == Outcome::Measured)?;
        let wrk_per_s = trial.load.as_ref()?.rate_per_s;
        let prony_per_s = measure::rate(own.load.as_ref()?)?.0;
        let ratio = prony_per_s / wrk_per_s;
        ratio.is_finite().then(|| CrossCheck {
            cell: trial.cell.clone(),
            block: trial.block,
            prony_per_s,
            wrk_per_s,
            ratio,
        })
    });
    checked.collect()
}

/// What a server has beside its rate, against its baseline. CPU time a request and latency of an open loop are claimed, too;
/// its rate is the schedule's doing.
fn rate_against(
    run: &Run,
    baseline: &Case<'_>,
    case: &Case<'_>,
) -> BTreeMap<&'static str, RatioFigure> {
    let apart = measured_apart(baseline, case);
    let figure = |metric: Metric| {
        let own = metric.by_block(run, case).into_iter();
        let own = own.filter(|(block, _)| !apart.contains(block));
        let figure = paired(baseline, case, own, metric.by_block(run, baseline))?;
        Some((metric.key, figure))
    };
    Metric::beside_rate().filter_map(figure).collect()
}
