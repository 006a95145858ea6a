//! Every number of the document, computed once for each cell. `summary.json` holds these very
//! values; tables and plots only lay them out.

use std::collections::BTreeMap;

use prony_findings::{Case, Code, Finding, Records, Severity, Verdict, measure, verdict};
use prony_record::{Cell, Failures, Histogram, LoadReport, Outcome, Phase, Plan, Role, Trial};
use prony_stats::{
    Quantity, Share, SpreadKind, Summary, Tail, median, quantile, sorted, summarise,
};
use serde::Serialize;

use crate::Run;
use crate::claims::{self, RatioFigure};
use crate::clients::{self, figures::ClientFigures};
use crate::open::{self, OpenFigures};
use crate::programs::{self, figures::ProgramFigures};
use crate::rows::figures::{self as services, RowFigures, ServiceFigures};
use crate::search::figures::{self as search, SearchFigures};

/// Quantiles of the latency table, with their names.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// The farthest percentile that is told of visits: what is rarer may have happened between them.
const VISITED_QUANTILE_MAX: f64 = 0.99;

/// A figure over the blocks of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Median over the blocks.
    pub median: f64,
    /// Lower end of range or interval.
    pub low: f64,
    /// Higher end.
    pub high: f64,
    /// `range` or `interval`.
    pub spread: &'static str,
    /// Blocks that it rests on.
    pub blocks: usize,
}

impl Figure {
    /// Median, and range or interval as the number of blocks allows.
    pub fn of<U: Quantity>(values: &[f64]) -> Option<Figure> {
        let summary: Summary<U> = summarise(values)?;
        Some(Figure {
            median: summary.median.value(),
            low: summary.spread.low.value(),
            high: summary.spread.high.value(),
            spread: kind_name(summary.spread.kind),
            blocks: summary.blocks,
        })
    }

    /// With the range for its spread, whatever the number of blocks: only rates claim more.
    pub fn range(values: &[f64]) -> Option<Figure> {
        let kept = sorted(values);
        Some(Figure {
            median: median(&kept)?,
            low: *kept.first()?,
            high: *kept.last()?,
            spread: kind_name(SpreadKind::Range),
            blocks: kept.len(),
        })
    }

    /// Whether low and high are a confidence interval.
    pub fn is_interval(&self) -> bool {
        self.spread == kind_name(SpreadKind::Interval)
    }
}

fn kind_name(kind: SpreadKind) -> &'static str {
    match kind {
        SpreadKind::Range => "range",
        SpreadKind::Interval => "interval",
    }
}

/// What became of a cell's trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trials {
    /// Trials that the plan has.
    pub planned: u32,
    /// Blocks that were measured.
    pub measured: Vec<u32>,
    /// Trials that failed.
    pub failed: Vec<FailedTrial>,
}

/// A trial that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedTrial {
    /// Its block.
    pub block: u32,
    /// The phase that failed.
    pub phase: Phase,
    /// Why.
    pub reason: String,
}

/// All figures of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellFigures {
    /// The cell's `id`.
    pub cell: String,
    /// The subject's `id`.
    pub subject: String,
    /// The subject's name, with the settings.
    pub label: String,
    /// The workload's name.
    pub workload: String,
    /// Connections.
    pub connections: u32,
    /// Requests that are to start a second, where a rate is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// What became of the schedule of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenFigures>,
    /// What a search for the highest rate found beside it; nothing of any other work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFigures>,
    /// What a program recorded beside its rate and its memory; nothing of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFigures>,
    /// What a client and its peer recorded besides; nothing of a server or another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientFigures>,
    /// What a service and what is around it recorded besides; nothing of a server alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceFigures>,
    /// Settings.
    pub settings: BTreeMap<String, String>,
    /// Whether its subject is the reference.
    pub is_reference: bool,
    /// Whether it is the same program as the reference, under another id (A/A).
    pub is_copy: bool,
    /// Its trials.
    pub trials: Trials,
    /// What the findings come to; `None` where nothing was recorded.
    pub verdict: Option<Verdict>,
    /// Codes of its findings.
    pub findings: Vec<Code>,
    /// Those of them for which its figures cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_by: Vec<Code>,
    /// Requests a second; of a program what it counts, a second of its own clock; of a search the highest rate that keeps
    /// its objective.
    pub rate_per_s: Option<Figure>,
    /// Rate over that of the reference.
    pub ratio: Option<RatioFigure>,
    /// The same of what a server has beside its rate: `p50`, `p99`, `cpu_subject`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ratios: BTreeMap<&'static str, RatioFigure>,
    /// Latency by percentile, nanoseconds; 2^64 - 1: among the requests that were never answered.
    pub latency_ns: BTreeMap<&'static str, Figure>,
    /// Largest latency of all blocks, nanoseconds; 2^64 - 1: some request was never answered.
    pub latency_max_ns: Option<u64>,
    /// Requests beyond p99.9.
    pub beyond_p99_9: u64,
    /// Separate periods in which these were slow, at the least, as far as it is known.
    pub slow_periods: u64,
    /// Whether these are enough for p99.9 to be read.
    pub p99_9_supported: bool,
    /// CPU time of the subject a request, nanoseconds.
    pub cpu_subject_ns: Option<Figure>,
    /// CPU time of the generator a request, nanoseconds.
    pub cpu_generator_ns: Option<Figure>,
    /// Peak resident memory of the subject's largest process, in the window or a program's whole run.
    pub memory_peak_bytes: Option<Figure>,
    /// Processes of the subject, the most of all blocks.
    pub processes: usize,
    /// Bytes received a completed request.
    pub bytes_per_answer: Option<Figure>,
    /// Completed requests of all blocks.
    pub completed: u64,
    /// Everything that went wrong in all blocks.
    pub errors: u64,
    /// The same by kind, only those that happened.
    pub errors_by_kind: BTreeMap<String, u64>,
}

/// A rate by wrk beside that by Prony's generator, of the same cell and block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrossCheck {
    /// The cell.
    pub cell: String,
    /// The block.
    pub block: u32,
    /// Requests a second by Prony's generator.
    pub prony_per_s: f64,
    /// Requests a second by wrk.
    pub wrk_per_s: f64,
    /// The first over the second.
    pub ratio: f64,
}

/// The figures of every cell, in the plan's order.
pub fn cells(run: &Run, records: &Records<'_>, findings: &[Finding]) -> Vec<CellFigures> {
    records
        .cases()
        .map(|case| of_cell(run, &case, findings))
        .collect()
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
        open: open::of_cell(case),
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
            .filter(|_| !open::is_open(case))
            .and_then(|baseline| claims::rates(&baseline, case)),
        ratios: baseline.map_or_else(BTreeMap::new, |baseline| {
            claims::rate_against(run, &baseline, case)
        }),
        latency_max_ns,
        latency_ns,
        beyond_p99_9: tail.beyond,
        slow_periods: tail.periods,
        p99_9_supported: tail.is_enough(),
        cpu_subject_ns: over(&trials, |t| {
            Some(measure::cpu_per_request(t, Role::Subject)?.0)
        }),
        cpu_generator_ns: over(&trials, |t| {
            Some(measure::generator_cpu_per_request(t.load.as_ref()?)?.0)
        }),
        memory_peak_bytes: memory(case),
        processes: trials
            .iter()
            .map(|trial| measure::processes(trial, Role::Subject).count())
            .max()
            .unwrap_or(0),
        bytes_per_answer: over(&trials, |t| {
            Some(measure::bytes_per_answer(t.load.as_ref()?)?.0)
        }),
        completed: loads()
            .map(|load| load.completed)
            .fold(0, u64::saturating_add),
        errors: own.iter().map(measure::errors).fold(0, u64::saturating_add),
        errors_by_kind: errors_by_kind(own.iter()),
    };
    clients::figures::complete(case, &mut figures);
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

impl CellFigures {
    /// Whether its subject is a server that the generator drives.
    pub fn is_server(&self) -> bool {
        self.program.is_none() && self.client.is_none()
    }

    /// The row of a table that it is.
    pub fn row(&self) -> Option<&RowFigures> {
        self.service.as_ref()?.row.as_ref()
    }

    /// Whether it is in a table of all combinations.
    pub fn is_combined(&self) -> bool {
        self.is_server() && self.row().is_none() && self.search.is_none()
    }
}

/// The name of a subject, or its id where the name is not unique.
pub fn name_of<'a>(plan: &'a Plan, id: &'a str) -> &'a str {
    let subjects = &plan.subjects;
    let shared = |name: &str| subjects.iter().filter(|s| s.name == name).count() > 1;
    let subject = subjects.iter().find(|s| s.id == id);
    let name = subject.map(|subject| subject.name.as_str());
    name.filter(|name| !name.is_empty() && !shared(name))
        .unwrap_or(id)
}

/// `axum`, or `axum, logging=info` where there are settings; the id where a name is not unique; of a row
/// its title.
fn label(case: &Case<'_>) -> String {
    if let Some(row) = case.row() {
        return row.title.clone();
    }
    let mut label = name_of(case.records.plan, &case.cell.subject).to_owned();
    for (setting, value) in &case.cell.settings {
        label.push_str(&format!(", {setting}={value}"));
    }
    label
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

fn over(trials: &[&Trial], of: impl Fn(&Trial) -> Option<f64>) -> Option<Figure> {
    let values: Vec<f64> = trials.iter().filter_map(|trial| of(trial)).collect();
    Figure::range(&values)
}

fn memory(case: &Case<'_>) -> Option<Figure> {
    let trials = case.measured();
    let of_server = trials.filter_map(|t| Some(measure::memory_peak(t, Role::Subject)?.0));
    let of_program = case.runs().map(|(_, run)| run.peak_bytes as f64);
    Figure::range(&of_server.chain(of_program).collect::<Vec<_>>())
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
        let agrees = |cell: &&Cell| {
            matches(cell) && programs::figures::settings_agree(plan, case.cell, cell)
        };
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
            let value = latency_of(run, trial, name, q).map(|ns| ns as f64);
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
    let figure = |(name, values): (&'static str, Vec<f64>)| Some((name, open::latencies(&values)?));
    let max = longest(trials);
    (values.into_iter().filter_map(figure).collect(), max, tail)
}

fn stored<'a>(run: &'a Run, trial: &Trial) -> Option<&'a Histogram> {
    run.histograms.get(trial.histogram.as_ref()?)
}

/// A percentile of a trial, nanoseconds; [`NEVER`](prony_record::NEVER): among the requests that were never answered.
pub fn latency_of(run: &Run, trial: &Trial, name: &str, q: f64) -> Option<u64> {
    let load = trial.load.as_ref()?;
    // A histogram has only latencies that ended.
    match stored(run, trial).filter(|_| load.latency_ns.infinite == 0) {
        Some(histogram) => quantile(histogram, q).map(|ns| ns.0),
        None => (load.latency_ns.count > 0).then(|| reported(load, name)),
    }
}

fn reported(load: &LoadReport, quantile: &str) -> u64 {
    let latency = &load.latency_ns;
    match quantile {
        "p50" => latency.p50,
        "p90" => latency.p90,
        "p99" => latency.p99,
        "p99_9" => latency.p99_9,
        _ => latency.p99_99,
    }
}

fn errors_by_kind<'a>(loads: impl Iterator<Item = &'a LoadReport>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: String, count: u64| {
        if count > 0 {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    };
    for load in loads {
        let counts = &load.counts;
        let mut kinds = |prefix: &str, failures: &Failures| {
            for (kind, count) in failures.by_kind() {
                add(format!("{prefix}{kind}"), count);
            }
        };
        kinds("", &counts.failed);
        kinds("connect_", &counts.connect_failed);
        add("unexpected_status".to_owned(), counts.unexpected_status);
        add("drain_failed".to_owned(), counts.drain_failed);
        add("abandoned".to_owned(), counts.abandoned);
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
