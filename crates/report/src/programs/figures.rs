//! Numbers of cells whose subject is a program, computed once for each.

use prony_base::Nanos;
use prony_findings::{Case, measure};
use prony_record::{Cell, Histogram, ProgramLine, ProgramReport};
use prony_stats::{PERIODS_MIN, Share, Tail, quantile};
use serde::Serialize;

use crate::figure::{Figure, block_number, merged};
use crate::lists::distinct;

/// What a program recorded, over the blocks of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramFigures {
    /// How much each thread was asked to do.
    pub count: u64,
    /// What was counted, in the plural; empty where nothing was recorded.
    pub measure: String,
    /// Threads that did the work, by its own word; 0 where nothing was recorded.
    pub threads: u32,
    /// How much of what it counts was handled, the least of any block, where it tells that and it was not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled: Option<u64>,
    /// Time that the work took by its own clock.
    pub elapsed_ns: Option<Figure>,
    /// Bytes worked through a second of that time.
    pub bytes_per_s: Option<Figure>,
    /// From its start to its end.
    pub wall_ns: Option<Figure>,
    /// CPU time in user mode and in the kernel together.
    pub cpu_ns: Option<Figure>,
    /// CPU time in user mode.
    pub cpu_user_ns: Option<Figure>,
    /// CPU time in the kernel.
    pub cpu_system_ns: Option<Figure>,
    /// The checksum that it printed first; empty: none.
    pub checksum: String,
    /// Other subjects that printed one for the same work.
    pub checksum_others: usize,
    /// Lines that it printed after the first, the most of any block; they are in no figure.
    pub lines_left_out: usize,
    /// Lengths of repeated runs, where those are what is measured.
    pub durations: Option<DurationFigures>,
}

/// Lengths of the runs of a job, over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DurationFigures {
    /// Runs of all blocks.
    pub runs: u64,
    /// Shortest of all.
    pub min_ns: u64,
    /// Means of the blocks.
    pub mean_ns: Option<Figure>,
    /// 99th percentile of all runs.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile of all runs.
    pub p99_9_ns: Option<u64>,
    /// Whether at least ten runs lie beyond p99.9.
    pub p99_9_supported: bool,
    /// Longest of all.
    pub max_ns: u64,
    /// What no run should exceed; 0: none was set.
    pub deadline_ns: u64,
    /// Runs that exceeded it.
    pub missed_count: u64,
    /// Those that the program named.
    pub missed: Vec<MissedRun>,
    /// All lengths of all blocks.
    #[serde(skip)]
    pub histogram: Histogram,
}

/// A run that exceeded its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissedRun {
    /// The block.
    pub block: u32,
    /// Number of the run, from 0.
    pub run: u64,
    /// Its length.
    pub ns: u64,
}

impl MissedRun {
    /// Its block as a reader counts them.
    pub fn block_number(&self) -> String {
        block_number(self.block)
    }
}

/// The figures of a cell; `None` of a server's.
pub fn of_cell(case: &Case<'_>) -> Option<ProgramFigures> {
    if !case.is_program() {
        return None;
    }
    let runs: Vec<&ProgramReport> = case.runs().map(|(_, run)| run).collect();
    let lines = || runs.iter().filter_map(|run| measure::line(run));
    let over = |of: fn(&ProgramReport) -> u64| Figure::range(runs.iter().map(|run| of(run) as f64));
    let elapsed = runs.iter();
    let elapsed = elapsed.filter_map(|run| Some(measure::elapsed(run)?.0));
    let (first, printed) = (lines().next(), lines().find(has_checksum));
    let printed_most = runs.iter().map(|run| run.lines.len()).max();
    Some(ProgramFigures {
        count: case.cell.count.unwrap_or(0),
        measure: first.map_or_else(String::new, |line| line.measure.clone()),
        threads: first.map_or(0, |line| line.threads),
        handled: lines().filter_map(measure::handled_of).min(),
        elapsed_ns: Figure::interval(elapsed),
        bytes_per_s: Figure::interval(lines().filter_map(bytes_per_s)),
        wall_ns: over(|run| run.wall_ns),
        cpu_ns: over(|run| run.user_ns.saturating_add(run.system_ns)),
        cpu_user_ns: over(|run| run.user_ns),
        cpu_system_ns: over(|run| run.system_ns),
        checksum: printed.map_or_else(String::new, |line| line.checksum.clone()),
        checksum_others: others_with_checksum(case),
        lines_left_out: printed_most.unwrap_or(0).saturating_sub(1),
        durations: durations(case),
    })
}

fn bytes_per_s(line: &ProgramLine) -> Option<f64> {
    let seconds = Nanos(line.elapsed_ns).as_secs_f64();
    (line.bytes > 0 && line.elapsed_ns > 0).then(|| line.bytes as f64 / seconds)
}

fn has_checksum(line: &&ProgramLine) -> bool {
    !line.checksum.is_empty()
}

fn others_with_checksum(case: &Case<'_>) -> usize {
    let prints = |cell: &&Cell| {
        let mut runs = case.records.case(cell).runs();
        runs.any(|(_, run)| measure::line(run).as_ref().is_some_and(has_checksum))
    };
    let alike = case.records.plan.cells.iter().filter(|cell| {
        (&cell.workload, cell.count) == (&case.cell.workload, case.cell.count)
            && cell.subject != case.cell.subject
    });
    distinct(alike.filter(prints).map(|cell| &cell.subject)).len()
}

fn durations(case: &Case<'_>) -> Option<DurationFigures> {
    let of_runs = case
        .runs()
        .filter_map(|(trial, run)| Some((trial.block, measure::line(run)?.durations.as_ref()?)));
    let blocks: Vec<_> = of_runs
        .filter(|(_, durations)| durations.count > 0)
        .collect();
    let mut histogram = merged(blocks.iter().map(|(_, durations)| &durations.histogram));
    histogram.counts.retain(|(_, count)| *count > 0);
    let mut tail = Tail::default();
    for (_, durations) in &blocks {
        tail.add(&durations.histogram, Share(0.999), None);
    }
    let missed = blocks.iter().flat_map(|(block, durations)| {
        let named = durations.missed.iter();
        named.map(|missed| MissedRun {
            block: *block,
            run: missed.run,
            ns: missed.ns,
        })
    });
    let sum = |of: fn(&prony_record::Durations) -> u64| {
        blocks
            .iter()
            .map(|(_, d)| of(d))
            .fold(0, u64::saturating_add)
    };
    Some(DurationFigures {
        runs: sum(|d| d.count),
        min_ns: blocks.iter().map(|(_, d)| d.min_ns).min()?,
        mean_ns: Figure::range(blocks.iter().map(|(_, d)| d.mean_ns)),
        p99_ns: quantile(&histogram, 0.99).map(|ns| ns.0),
        p99_9_ns: quantile(&histogram, 0.999).map(|ns| ns.0),
        // Runs follow each other on one thread: each is a period of its own.
        p99_9_supported: tail.beyond >= PERIODS_MIN,
        max_ns: blocks.iter().map(|(_, d)| d.max_ns).max()?,
        deadline_ns: blocks.iter().map(|(_, d)| d.deadline_ns).max()?,
        missed_count: sum(|d| d.missed_count),
        missed: missed.collect(),
        histogram,
    })
}
