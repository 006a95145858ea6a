//! Which cells are visited in turns, and why others are not. Pure.

use prony_base::{Nanos, counted};
use prony_record::{Arrival, Cell, NotVisited, Plan, PlannedVisits, Source, Work};

use super::options::Options;
use crate::experiment::Run;
use crate::sysctl;

/// Reason for a cell that is compared with no other.
const ALONE: &str =
    "no other server of its workload and connections is there to be visited beside it";
/// Cells that a line names at the most.
const LISTED_MAX: usize = 8;
/// The lead-in of a visit: this fraction of its window, within these bounds.
const LEAD_IN_OF: u64 = 10;
const LEAD_IN_MIN: Nanos = Nanos::from_millis(15);
const LEAD_IN_MAX: Nanos = Nanos::from_millis(50);
/// The length of a window varies by up to this fraction of the mean, so that periodic interference does not always hit
/// the same subject.
const JITTER_OF: u64 = 8;
/// Overhead of a turn beside its load: continuing processes, outstanding responses, stopping them, reporting.
const BESIDE: Nanos = Nanos::from_millis(10);

/// Default length of visits.
const LENGTH: Nanos = Nanos::from_millis(200);

/// The length of visits by the command line, or else by the experiment; zero is `off`.
pub(super) fn requested_length(options: &Options, run: &Run) -> Option<Nanos> {
    options.visits.or(run.visits)
}

/// The visits of a plan: as requested, or the default in a run that aims at narrow intervals, and in a quick one, whose few blocks
/// could rank nobody otherwise.
pub(super) fn chosen(options: &Options, run: &Run) -> Option<PlannedVisits> {
    requested_length(options, run)
        .or((options.aims || options.quick).then_some(LENGTH))
        .filter(|length| *length > Nanos::ZERO)
        .map(planned)
}

/// Removes visits that were not requested where no cell can have them.
pub(super) fn leave_where_nobody_is_visited(plan: &mut Plan) {
    let is_any = |visits: &PlannedVisits| visits.fresh.len() < plan.cells.len();
    if !plan.visits.as_ref().is_some_and(is_any) {
        plan.visits = None;
    }
}

/// Visits of this length; which cells have none is found by [`settle`].
pub(super) fn planned(length: Nanos) -> PlannedVisits {
    let lead_in = Nanos(length.0 / LEAD_IN_OF).clamp(LEAD_IN_MIN, LEAD_IN_MAX);
    PlannedVisits {
        length_ns: length.0,
        lead_in_ns: lead_in.0,
        fresh: Vec::new(),
    }
}

/// Names the cells that are measured by themselves, and why: those that cannot be visited, and the cells that
/// are compared with them, because both sides of a comparison are measured alike.
pub(super) fn settle(plan: &mut Plan) {
    let Some(visits) = plan.visits.take() else {
        return;
    };
    let reasons = plan.cells.iter().map(|cell| why_fresh(plan, cell));
    let reasons: Vec<Option<&str>> = reasons.collect();
    let of_mates = |cell: &Cell| {
        let all = plan.cells.iter().zip(&reasons);
        let mut mates = all.filter(|(other, _)| is_beside(cell, other));
        mates.find(|(_, reason)| reason.is_some())
    };
    let is_alone = |cell: &Cell| {
        let mates = plan.cells.iter().filter(|other| is_beside(cell, other));
        mates.count() < 2
    };
    let why = |(cell, reason): (&Cell, &Option<&str>)| {
        let of_mates = || {
            let (other, _) = of_mates(cell)?;
            Some(format!(
                "it is compared with {}, which is measured by itself",
                other.id
            ))
        };
        let alone = || is_alone(cell).then(|| ALONE.to_owned());
        let reason = reason.map(str::to_owned).or_else(of_mates).or_else(alone)?;
        Some(NotVisited {
            cell: cell.id.clone(),
            reason,
        })
    };
    let fresh = plan.cells.iter().zip(&reasons).filter_map(why).collect();
    plan.visits = Some(PlannedVisits { fresh, ..visits });
}

/// Whether the two are visited in the same turns: they are those that are compared.
pub fn is_beside(one: &Cell, other: &Cell) -> bool {
    one.workload == other.workload && one.connections == other.connections
}

/// Whether a cell is visited, as far as the plan goes.
pub fn is_visited(plan: &Plan, cell: &Cell) -> bool {
    let visits = plan.visits.as_ref();
    visits.is_some_and(|visits| visits.fresh.iter().all(|fresh| fresh.cell != cell.id))
}

/// Visits of each server that make up a window; `None` where none is visited.
pub fn in_window(plan: &Plan, window: Nanos) -> Option<u64> {
    let visits = plan.visits.as_ref()?;
    let is_any = visits.fresh.len() < plan.cells.len();
    is_any.then(|| count(visits, window))
}

/// Visits of a trial whose windows make up `duration`, on average.
pub fn count(visits: &PlannedVisits, duration: Nanos) -> u64 {
    let length = visits.length_ns.max(1);
    ((duration.0 + length / 2) / length).max(1)
}

/// Shortest and longest window of a visit where `duration` is measured in all.
pub fn lengths(visits: &PlannedVisits, duration: Nanos) -> (Nanos, Nanos) {
    let mean = duration.0 / count(visits, duration);
    (
        Nanos(mean - mean / JITTER_OF),
        Nanos(mean + mean / JITTER_OF),
    )
}

/// Estimate of the longest that a turn takes, overhead included.
pub fn turn_max(visits: &PlannedVisits, duration: Nanos) -> Nanos {
    lengths(visits, duration).1 + Nanos(visits.lead_in_ns) + BESIDE
}

/// Longest time for which one of `subjects` is expected to be stopped: first in one round, and last in the next.
pub fn pause_max(visits: &PlannedVisits, duration: Nanos, subjects: usize) -> Nanos {
    turn_max(visits, duration) * (2 * subjects.saturating_sub(1) as u64)
}

/// Overhead of a visited trial beside its warm-up and window.
pub(super) fn time_of_turns(visits: &PlannedVisits, duration: Nanos) -> Nanos {
    (Nanos(visits.lead_in_ns) + BESIDE) * count(visits, duration)
}

/// The visits of a plan as lines for a reader: which cells are measured alone, by reason.
pub fn lines(plan: &Plan) -> Vec<String> {
    let Some(visits) = &plan.visits else {
        return Vec::new();
    };
    let visited = plan.cells.len() - visits.fresh.len();
    let mut lines = vec![match visited {
        0 => "nothing can be visited in turns".to_owned(),
        _ => format!(
            "{} visited in turns of {} (after a lead-in of {}), {} in each block, with the others stopped",
            counted(visited, "combination"),
            Nanos(visits.length_ns),
            Nanos(visits.lead_in_ns),
            count(visits, Nanos(plan.duration_ns)),
        ),
    }];
    let mut reasons: Vec<&String> = visits.fresh.iter().map(|fresh| &fresh.reason).collect();
    reasons.sort();
    reasons.dedup();
    lines.extend(reasons.into_iter().map(|reason| {
        let alike = visits.fresh.iter().filter(|fresh| fresh.reason == *reason);
        let ids: Vec<&str> = alike.map(|fresh| fresh.cell.as_str()).collect();
        let listed = ids.len().min(LISTED_MAX);
        let more = match ids.len() - listed {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "measured by itself, as {reason}: {}{more}",
            ids[..listed].join(", ")
        )
    }));
    lines
}

fn why_fresh(plan: &Plan, cell: &Cell) -> Option<&'static str> {
    let workload = plan.workload_of(cell)?;
    let subject = plan.subject_of(cell)?;
    let has_users = workload.source.iter().any(|of| of.scenario.is_some());
    Some(match workload.work() {
        Work::Program(_) => "it is a program that runs to its end",
        Work::Client(_) => "it is a client, whose peer cannot wait",
        _ if workload.arrival != Arrival::Closed => {
            "its load is no closed loop without think time, and continues while servers are paused"
        }
        _ if has_users => "its users would be in the middle of their steps when servers are paused",
        _ if workload.requests_max.is_some() => "its load is the first requests after the start",
        _ if workload.counter.is_some() => "a number that it keeps is read",
        _ if workload.find_max.is_some() => "its workload looks for a highest rate, step by step",
        _ if !cell.around.is_alone() => {
            "it has services or several instances, which would wait for what is stopped"
        }
        _ if matches!(subject.source, Source::Url { .. }) => {
            "it was not started by Prony, which pauses only its own processes"
        }
        _ if !sysctl::wanted(cell, &plan.settings).is_empty() => {
            "its kernel settings would be those of its neighbours"
        }
        _ => return None,
    })
}
