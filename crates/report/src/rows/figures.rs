//! Numbers of cells that are rows of a table, that keep a number, or that have something around their
//! server, computed once for each.
//!
//! What they share with other servers (rate, ratio, latency) is in `CellFigures`; here is the deviation over
//! seconds, each process's share of CPU time and memory, who was the limit, and what became of the number.
//! Not for: laying out.

use std::collections::{BTreeMap, BTreeSet};

use prony_base::Nanos;
use prony_findings::{Case, keeps_nothing, measure};
use prony_record::{Ended, Output, ProcessRecord, Role, Trial};
use prony_stats::{seconds, whole_seconds};
use serde::Serialize;

use crate::figure::{Figure, by_name};

/// From here on a core or a thread counts as full.
const FULL: f64 = prony_findings::limits::SATURATED_SHARE;

/// What a service and what is around it recorded, over the blocks of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceFigures {
    /// The row that it is; `None`: its workload has no rows of its own.
    pub row: Option<RowFigures>,
    /// `id` of the proxy before it.
    pub front: Option<String>,
    /// `id`s of the services behind it.
    pub backings: Vec<String>,
    /// Processes of the subject that serve.
    pub instances: u32,
    /// Threads of the generator; 0: one for each of its cores.
    pub generators: u32,
    /// Where its output goes.
    pub output: Output,
    /// How its rate moved from second to second.
    pub seconds: Option<SecondsFigure>,
    /// CPU time a request of all processes of a role, nanoseconds.
    pub cpu_ns: BTreeMap<&'static str, Figure>,
    /// Peak resident memory of the largest process of a role.
    pub memory_peak_bytes: BTreeMap<&'static str, Figure>,
    /// The same by process, those of one role and name together; without the generator.
    pub processes: Vec<ProcessFigures>,
    /// How busy the busiest core or thread of the subject's side was; 1 is all the time.
    pub busy_subject: Option<Figure>,
    /// How busy the busiest core or thread of the generator was.
    pub busy_generator: Option<Figure>,
    /// What was full in most blocks: `subject`, `generator`, `both`, `neither`; empty: not known.
    pub limit: &'static str,
    /// Blocks by what was full.
    pub limits: BTreeMap<&'static str, u32>,
    /// What became of the number that its requests raise; `None`: they raise none.
    pub counter: Option<CounterFigures>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowFigures {
    /// What the table calls it.
    pub title: String,
    /// Title of the row beside which its ratio is.
    pub baseline: Option<String>,
    /// That row's cell, where the run has it.
    pub baseline_cell: Option<String>,
}

/// The deviation over seconds of one trial: the one in the middle of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SecondsFigure {
    /// Its block.
    pub block: u32,
    /// Whole seconds.
    pub count: usize,
    /// Mean of their rates.
    pub mean_per_s: f64,
    /// Sample standard deviation of their rates.
    pub deviation_per_s: f64,
    /// Smallest.
    pub min_per_s: f64,
    /// Largest.
    pub max_per_s: f64,
}

/// Processes of one role and name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessFigures {
    /// What they are in the trial.
    pub role: &'static str,
    /// Name as the kernel has it.
    pub name: String,
    /// How many, the most of all blocks.
    pub count: usize,
    /// Their CPU time a request together, nanoseconds.
    pub cpu_ns: Option<Figure>,
    /// Peak resident memory of the largest of them.
    pub memory_peak_bytes: Option<Figure>,
}

/// What became of the number, over the blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CounterFigures {
    /// How the subject was ended before it was asked what it kept: `stopped`, `killed`; `None`: it was not.
    pub ended_by: Option<Ended>,
    /// Whether the row states that nothing is kept.
    pub keeps_nothing: bool,
    /// Blocks with a number.
    pub blocks: u32,
    /// What acknowledged requests must have added, in all blocks.
    pub acknowledged: u64,
    /// What requests without an answer may have added.
    pub unanswered: u64,
    /// Blocks in which the number was read after the load.
    pub read: u32,
    /// Acknowledged in these.
    pub read_acknowledged: u64,
    /// By how much the number rose in these.
    pub counted: u64,
    /// Acknowledged in these and not counted.
    pub uncounted: u64,
    /// Blocks in which the subject was started anew and asked.
    pub asked: u32,
    /// Acknowledged in these.
    pub asked_acknowledged: u64,
    /// Requests without an answer in these may have added so much.
    pub asked_unanswered: u64,
    /// How much of the rise it had kept in these.
    pub kept: u64,
    /// Acknowledged in these and not there any more.
    pub lost: u64,
    /// Blocks in which something was lost.
    pub blocks_lost: u32,
    /// Counted beyond all that was sent.
    pub invented: u64,
}

/// The roles that figures are given of, with their names.
pub const ROLES: [(Role, &str); 4] = [
    (Role::Subject, "subject"),
    (Role::Front, "front"),
    (Role::Backing, "backing"),
    (Role::Generator, "generator"),
];

/// The figures of a cell; `None` of a server alone whose requests raise no number, and of what is no server.
pub fn of_cell(case: &Case<'_>) -> Option<ServiceFigures> {
    let around = &case.cell.around;
    let (row, counter) = (case.row(), case.counter());
    let alone = row.is_none() && counter.is_none() && around.is_alone();
    if alone || case.is_program() || case.is_client() {
        return None;
    }
    let trials: Vec<&Trial> = case.measured().collect();
    let (limits, limit) = by_name(trials.iter().filter_map(|trial| limit(trial)));
    let busy_generator = |t: &Trial| Some(measure::generator_busy(t, t.load.as_ref()?)?.0);
    Some(ServiceFigures {
        row: row.map(|row| RowFigures {
            title: row.title.clone(),
            baseline: row.baseline.clone(),
            baseline_cell: case.baseline_cell().map(|cell| cell.id.clone()),
        }),
        front: around.front.clone(),
        backings: around.backings.clone(),
        instances: around.instances,
        generators: around.generators,
        output: around.output,
        seconds: middle(trials.iter().filter_map(|t| of_seconds(t)).collect()),
        cpu_ns: by_role(|role| Figure::over(&trials, |trial| cpu(trial, role))),
        memory_peak_bytes: by_role(|role| {
            Figure::over(&trials, |trial| Some(measure::memory_peak(trial, role)?.0))
        }),
        processes: processes(&trials),
        busy_subject: Figure::over(&trials, |trial| Some(measure::subject_busy(trial)?.0)),
        busy_generator: Figure::over(&trials, busy_generator),
        limit,
        limits,
        counter: counter.map(|counter| of_counter(case, counter.ended_by)),
    })
}

fn by_role(of: impl Fn(Role) -> Option<Figure>) -> BTreeMap<&'static str, Figure> {
    let figure = |(role, name): (Role, &'static str)| Some((name, of(role)?));
    ROLES.into_iter().filter_map(figure).collect()
}

/// CPU time a request: the generator's by its own threads' clocks.
fn cpu(trial: &Trial, role: Role) -> Option<f64> {
    let each = match role {
        Role::Generator => measure::generator_cpu_per_request(trial.load.as_ref()?),
        role => measure::cpu_per_request(trial, role),
    };
    Some(each?.0)
}

fn of_seconds(trial: &Trial) -> Option<SecondsFigure> {
    let slices = &trial.load.as_ref()?.slices;
    let seen = seconds(&whole_seconds(&slices.completed, slices.slice_ns))?;
    Some(SecondsFigure {
        block: trial.block,
        count: seen.count,
        mean_per_s: seen.mean.0,
        deviation_per_s: seen.deviation?.0,
        min_per_s: seen.min.0,
        max_per_s: seen.max.0,
    })
}

/// The one with the median deviation; of an even number the lower of the two in the middle, so that it
/// is a trial that there was.
fn middle(mut of_trials: Vec<SecondsFigure>) -> Option<SecondsFigure> {
    of_trials.sort_by(|a, b| a.deviation_per_s.total_cmp(&b.deviation_per_s));
    let at = of_trials.len().checked_sub(1)? / 2;
    of_trials.get(at).copied()
}

fn processes(trials: &[&Trial]) -> Vec<ProcessFigures> {
    let around = ROLES.into_iter();
    let around = around.filter(|(role, _)| *role != Role::Generator);
    let of_role = |(role, word): (Role, &'static str)| {
        let all = trials.iter().flat_map(|t| measure::processes(t, role));
        let names: BTreeSet<&str> = all.map(|process| process.name.as_str()).collect();
        let names = names.into_iter();
        names.map(move |name| process(trials, (role, word), name))
    };
    around.flat_map(of_role).collect()
}

fn process(trials: &[&Trial], (role, word): (Role, &'static str), name: &str) -> ProcessFigures {
    let own = |trial: &'_ Trial| -> Vec<ProcessRecord> {
        let named = measure::processes(trial, role).filter(|process| process.name == name);
        named.cloned().collect()
    };
    let cpu = |trial: &Trial| {
        let times = own(trial).into_iter().map(|process| Nanos(process.cpu_ns));
        let time = times.reduce(|sum, time| sum + time)?;
        Some(measure::each_request(trial, time)?.0)
    };
    let memory = |trial: &Trial| {
        let peaks = own(trial).into_iter().filter_map(|p| p.memory.peak_bytes);
        Some(peaks.max()? as f64)
    };
    let counts = trials.iter().map(|trial| own(trial).len());
    ProcessFigures {
        role: word,
        name: name.to_owned(),
        count: counts.max().unwrap_or(0),
        cpu_ns: Figure::over(trials, cpu),
        memory_peak_bytes: Figure::over(trials, memory),
    }
}

/// Which side was full in a trial.
fn limit(trial: &Trial) -> Option<&'static str> {
    let generator = measure::generator_busy(trial, trial.load.as_ref()?)?;
    let subject = measure::subject_busy(trial)?;
    Some(match (subject.0 >= FULL, generator.0 >= FULL) {
        (true, true) => "both",
        (true, false) => "subject",
        (false, true) => "generator",
        (false, false) => "neither",
    })
}

fn of_counter(case: &Case<'_>, ended_by: Option<Ended>) -> CounterFigures {
    let mut sums = CounterFigures {
        ended_by,
        keeps_nothing: keeps_nothing(case.cell),
        ..CounterFigures::default()
    };
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    for (_, counter) in case.counters() {
        sums.blocks += 1;
        add(&mut sums.acknowledged, counter.acknowledged);
        add(&mut sums.unanswered, counter.unanswered);
        add(&mut sums.invented, counter.invented());
        if let (Some(after), Some(uncounted)) = (counter.after, counter.uncounted()) {
            sums.read += 1;
            add(&mut sums.read_acknowledged, counter.acknowledged);
            add(&mut sums.counted, after.saturating_sub(counter.before));
            add(&mut sums.uncounted, uncounted);
        }
        if let (Some(kept), Some(lost)) = (counter.kept, counter.lost()) {
            sums.asked += 1;
            sums.blocks_lost += u32::from(lost > 0);
            add(&mut sums.asked_acknowledged, counter.acknowledged);
            add(&mut sums.asked_unanswered, counter.unanswered);
            add(&mut sums.kept, kept.saturating_sub(counter.before));
            add(&mut sums.lost, lost);
        }
    }
    sums
}
