//! An estimate of how long a run of a plan takes, before any of its trials ran. Pure.
//!
//! Not for: the rest of a run that is under way ([`crate::run`] knows its trials).

use prony_base::{Nanos, counted};
use prony_record::{Arrival, Cell, Plan, Source, Work};

use super::find_max;
use super::{client, visits};
use crate::experiment::Spoken;

/// Estimate for a run of a program before one was measured.
const PROGRAM: Nanos = Nanos::from_secs(1);

/// Estimate for starting and stopping each further process of a cell.
const PROCESS: Nanos = Nanos::from_millis(200);

/// Whether a cell is cross-checked by wrk where that is installed: cells of the reference are, if they are closed loops
/// of one plain request to a server without services. wrk has no open loop, no search and no lists of requests, and cannot drive programs
/// or clients; and it sleeps before answers for which the generator looks, which is another rate.
pub fn is_cross_checked(plan: &Plan, cell: &Cell) -> bool {
    let workload = plan.workload_of(cell);
    let is_server = workload.is_none_or(|w| {
        let requests = w.work() == Work::Server;
        let lasts = w.find_max.is_none() && w.requests_max.is_none();
        requests && w.source.is_none() && w.arrival == Arrival::Closed && lasts
    });
    let subject = plan.subject_of(cell);
    let is_secure =
        |source: &Source| matches!(source, Source::Url { url } if url.starts_with("https"));
    let is_plain =
        Spoken::from_cell(cell).is_plain() && !subject.is_some_and(|s| is_secure(&s.source));
    is_server
        && is_plain
        && cell.around.is_alone()
        && cell.look_before_sleep_ns == 0
        && plan.reference.as_ref() == Some(&cell.subject)
}

/// Whether a cell is profiled where the plan has profiles: all are but those of servers that Prony did not start.
pub fn is_profiled(plan: &Plan, cell: &Cell) -> bool {
    let subject = plan.subject_of(cell);
    plan.profile.is_some() && !subject.is_some_and(|s| matches!(s.source, Source::Url { .. }))
}

/// Whether a cell is of a server, which is there before its load and after it.
pub fn is_server(plan: &Plan, cell: &Cell) -> bool {
    let workload = plan.workload_of(cell);
    workload.is_none_or(|w| w.work() == Work::Server)
}

/// Trials beside those that are measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Beside {
    /// Whether wrk is there for cross-checks.
    pub wrk: bool,
    /// Trials that it takes to profile a cell of a server ([`crate::profile::Means::passes`]); of another it is one.
    pub passes: u64,
}

/// How many trials a run has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Trials {
    /// The trials that are measured: one of each cell in each block.
    pub measured: u64,
    /// The trials by wrk.
    pub by_wrk: u64,
    /// The trials that profile.
    pub profiled: u64,
}

/// Trials of a run.
pub fn trials(plan: &Plan, beside: Beside) -> Trials {
    let checks = plan.cells.iter().filter(|c| is_cross_checked(plan, c));
    let checks = if beside.wrk { checks.count() } else { 0 };
    let profiled = plan.cells.iter().filter(|c| is_profiled(plan, c));
    let passes = |cell| match is_server(plan, cell) {
        true => beside.passes,
        false => beside.passes.min(1),
    };
    Trials {
        measured: plan.cells.len() as u64 * u64::from(plan.blocks),
        by_wrk: checks as u64,
        profiled: profiled.map(passes).sum(),
    }
}

/// How long the run takes, if a trial costs `per_trial` beside warm-up and window, and a
/// program a second. Builds are not in it.
pub fn estimate(plan: &Plan, per_trial: Nanos, all: Beside) -> Nanos {
    let window = Nanos(plan.warmup_ns) + Nanos(plan.duration_ns);
    let in_turns = |cell: &Cell| match &plan.visits {
        Some(visits) if visits::is_visited(plan, cell) => {
            visits::time_of_turns(visits, Nanos(plan.duration_ns))
        }
        _ => Nanos::ZERO,
    };
    let of = |cell: &Cell| {
        let workload = plan.workload_of(cell);
        match workload.and_then(|workload| workload.client.as_ref()) {
            Some(client) => client::estimate(client, Nanos(plan.duration_ns)),
            None if cell.count.is_some() => PROGRAM,
            // How long so many requests take is not known: mostly far less than a window.
            None if workload.is_some_and(|of| of.requests_max.is_some()) => PROGRAM,
            None => window + in_turns(cell) + workload.map_or(Nanos::ZERO, find_max::length),
        }
    };
    let beside = |cell: &Cell| {
        let workload = plan.workload_of(cell);
        let counter = workload.and_then(|workload| workload.counter.as_ref());
        // A server that must keep its counter is restarted once.
        let again = u64::from(counter.is_some_and(|counter| counter.ended_by.is_some()));
        let around = &cell.around;
        let instances = u64::from(around.instances.saturating_sub(1));
        let services = around.backings.len() as u64 + u64::from(around.front.is_some());
        let rest = workload.map_or(Nanos::ZERO, |workload| Nanos(workload.rest_ns));
        rest + per_trial * (1 + again) + PROCESS * (instances + services)
    };
    let block = plan
        .cells
        .iter()
        .fold(Nanos::ZERO, |sum, cell| sum + of(cell) + beside(cell));
    let trials = trials(plan, all);
    let profile = plan.profile.as_ref().map_or(0, |p| p.window_ns);
    let profile = Nanos(plan.warmup_ns) + Nanos(profile) + per_trial;
    block * u64::from(plan.blocks)
        + (window + per_trial) * trials.by_wrk
        + profile * trials.profiled
}

/// The estimate as a line for people: `22 combinations in 6 blocks: 132 trials and 2 by wrk, about 29 min`.
pub fn estimate_line(plan: &Plan, per_trial: Nanos, all: Beside) -> String {
    let seconds = estimate(plan, per_trial, all).0.div_ceil(1_000_000_000);
    let about = match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    };
    let trials = trials(plan, all);
    let checks = match trials.by_wrk {
        0 => String::new(),
        checks => format!(" and {checks} by wrk"),
    };
    let profiles = match trials.profiled {
        0 => String::new(),
        profiles => format!(" and {profiles} to profile"),
    };
    let guess = match plan.cells.iter().any(|cell| cell.count.is_some()) {
        true => " if a program runs for a second",
        false => "",
    };
    format!(
        "{} in {}: {}{checks}{profiles}, about {about}{guess}",
        counted(plan.cells.len(), "combination"),
        counted(plan.blocks, "block"),
        counted(trials.measured, "trial")
    )
}
