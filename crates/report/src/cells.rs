//! The figures of every cell, computed once from its records.
//!
//! Not for: what they are (`figures`), and how they are shown.

use std::collections::{BTreeMap, BTreeSet};

use prony_findings::{Case, Code, Finding, Records, Severity, measure, verdict};
use prony_record::{Cell, Histogram, LoadReport, Outcome, Role, Trial};
use prony_stats::{Share, Tail};

use crate::Run;
use crate::clients;
use crate::figure;
use crate::figures::{CellFigures, CrossCheck, FailedTrial, Figure, Trials, name_of};
use crate::metrics::{Metric, QUANTILES, latency_of, stored};
use crate::open;
use crate::programs;
use crate::ratio;
use crate::ratio::{RatioFigure, measured_apart, paired};
use crate::rows::figures as services;
use crate::search::figures as search;
use crate::settings::{settings_agree, with_settings};
use crate::users;

/// The farthest percentile that is told of visits: what is rarer may have happened between them.
const VISITED_QUANTILE_MAX: f64 = 0.99;

/// The figures of every cell, in the plan's order.
pub fn cells(run: &Run, records: &Records<'_>, findings: &[Finding]) -> Vec<CellFigures> {
    let mut cells: Vec<CellFigures> = records
        .cases()
        .map(|case| of_cell(run, &case, findings))
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
    let trials: Vec<&Trial> = case.measured().collect();
    let loads = || trials.iter().filter_map(|trial| trial.load.as_ref());
    let own: Vec<LoadReport> = loads().map(|load| with_own_errors(case, load)).collect();
    let (latency_ns, latency_max_ns, tail) = latencies(run, case, &trials);
    let baseline = baseline(case);
    let grave = found.iter().filter(|f| f.severity == Severity::Invalid);
    let mut figures = CellFigures {
        cell: cell.id.clone(),
        subject: cell.subject.clone(),
        label: label(case),
        workload: cell.workload.clone(),
        connections: cell.connections,
        asked_per_s: cell.rate_per_s,
        open: open::figures::of_cell(case),
        users: users::figures::of_cell(case),
        search: search::of_cell(case),
        program: programs::figures::of_cell(case),
        client: clients::figures::of_cell(case),
        service: services::of_cell(case),
        settings: cell.settings.clone(),
        // In a table with rows of its own, each has one beside it.
        is_reference: run.plan.reference.as_ref() == Some(&cell.subject) && case.row().is_none(),
        is_copy: is_copy(case),
        trials: outcomes(run, case),
        verdict: (!case.trials().is_empty()).then(|| verdict(found.iter().copied())),
        findings: codes(found.iter()),
        invalid_by: codes(grave),
        rate_per_s: rate(case),
        // How many requests of an open loop start is the schedule's doing.
        ratio: baseline
            .filter(|_| !open::figures::is_open(case))
            .and_then(|baseline| ratio::rates(&baseline, case)),
        ratios: baseline.map_or_else(BTreeMap::new, |baseline| rate_against(run, &baseline, case)),
        latency_max_ns,
        latency_ns,
        beyond_p99_9: tail.beyond,
        slow_periods: tail.periods,
        p99_9_supported: tail.is_enough(),
        measured: Metric::measured(run, case),
        processes: trials
            .iter()
            .map(|trial| measure::processes(trial, Role::Subject).count())
            .max()
            .unwrap_or(0),
        bytes_per_answer: Figure::over(&trials, |t| {
            Some(measure::bytes_per_answer(t.load.as_ref()?)?.0)
        }),
        completed: loads()
            .map(|load| load.completed)
            .fold(0, u64::saturating_add),
        errors: own.iter().map(measure::errors).fold(0, u64::saturating_add),
        errors_by_kind: errors_by_kind(own.iter()),
    };
    clients::complete::complete(case, &mut figures);
    figures
}

/// Each code once.
fn codes<'a>(findings: impl Iterator<Item = &'a &'a Finding>) -> Vec<Code> {
    let mut codes: Vec<Code> = findings.map(|finding| finding.code).collect();
    codes.dedup();
    codes
}

/// A report without the failures that are not the subject's: what a kill breaks off after the window.
fn with_own_errors(case: &Case<'_>, load: &LoadReport) -> LoadReport {
    let mut own = load.clone();
    if case.is_killed() {
        (own.counts.drain_failed, own.counts.abandoned) = (0, 0);
    }
    own
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

fn outcomes(run: &Run, case: &Case<'_>) -> Trials {
    let index = run
        .plan
        .cells
        .iter()
        .position(|cell| cell.id == case.cell.id);
    let in_block = |order: &&Vec<u32>| order.iter().any(|&i| Some(i as usize) == index);
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
    let rates: Vec<f64> = case.rates().into_iter().map(|(_, rate)| rate).collect();
    Figure::of::<prony_stats::Rate>(&rates)
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

/// The longest latency; `None` of visits, between which a longer one may have been, nanoseconds.
fn longest(trials: &[&Trial]) -> Option<u64> {
    let is_visited = trials.iter().any(|trial| !trial.visits.is_empty());
    let loads = trials.iter().filter_map(|trial| trial.load.as_ref());
    let longest = loads.map(|load| load.latency_ns.max).max();
    longest.filter(|_| !is_visited)
}

/// Percentiles over the blocks, from the histograms, or from the report of the generator where a
/// trial has none; the largest of all; and what stands behind p99.9. Nothing of searches: the latencies of the closed loop before
/// one are not those at its rate.
fn latencies(
    run: &Run,
    case: &Case<'_>,
    trials: &[&Trial],
) -> (BTreeMap<&'static str, Figure>, Option<u64>, Tail) {
    if case.is_search() {
        return (BTreeMap::new(), None, Tail::default());
    }
    let mut tail = Tail::default();
    let mut values: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        let Some(load) = &trial.load else { continue };
        let is_visited = !trial.visits.is_empty();
        for (name, q) in QUANTILES {
            if is_visited && q > VISITED_QUANTILE_MAX {
                continue;
            }
            let value = latency_of(run, trial, q).map(|ns| ns as f64);
            values.entry(name).or_default().extend(value);
        }
        if is_visited {
            continue;
        }
        let stored = stored(run, trial);
        let counted = Histogram {
            counts: vec![(1, load.latency_ns.count)],
            ..Histogram::default()
        };
        tail.add(stored.unwrap_or(&counted), Share(0.999), load.slow_periods);
    }
    let figure =
        |(name, values): (&'static str, Vec<f64>)| Some((name, figure::latencies(&values)?));
    let max = longest(trials);
    (values.into_iter().filter_map(figure).collect(), max, tail)
}

fn errors_by_kind<'a>(loads: impl Iterator<Item = &'a LoadReport>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for counts in loads.map(|load| &load.counts) {
        let connecting = counts.connect_failed.by_kind();
        let connecting = connecting.map(|(kind, count)| (format!("connect_{kind}"), count));
        let others = [
            ("unexpected_status", counts.unexpected_status),
            ("drain_failed", counts.drain_failed),
            ("abandoned", counts.abandoned),
        ];
        let failed = counts.failed.by_kind().into_iter().chain(others);
        let failed = failed.map(|(kind, count)| (kind.to_owned(), count));
        for (kind, count) in failed.chain(connecting).filter(|(_, count)| *count > 0) {
            let sum = sums.entry(kind).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    sums
}

/// wrk's rates beside Prony's, where a cell was measured by both in the same block.
pub fn cross_checks(run: &Run, records: &Records<'_>) -> Vec<CrossCheck> {
    let by_wrk = run
        .trials
        .iter()
        .filter(|t| t.generator == "wrk" && t.outcome == Outcome::Measured);
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
        let own = (metric.values)(run, case).into_iter();
        let figure = paired(
            baseline,
            case,
            own.filter(|(block, _)| !apart.contains(block)),
            (metric.values)(run, baseline),
        )?;
        Some((metric.key, figure))
    };
    Metric::beside_rate().filter_map(figure).collect()
}
