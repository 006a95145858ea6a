//! Searches for a highest rate: how long their steps are, and how long they take. Pure.

use prony_base::Nanos;
use prony_record::{FindMax, PlannedWorkload};

use super::Options;
use crate::experiment::Search;

/// What is looked for. A quick run's steps are no longer than its windows (`duration`); else they are as the workload says,
/// whatever `--duration`, or a pilot, says of windows.
pub(super) fn planned(asked: Search, duration: Nanos, options: &Options) -> FindMax {
    let step = match options.quick {
        true => asked.step.min(duration),
        false => asked.step,
    };
    FindMax {
        objective: asked.objective.to_string(),
        below_ns: asked.objective.below().0,
        step_ns: step.0,
    }
}

/// How long the search of a trial usually takes; nothing where there is none.
pub(crate) fn length(workload: &PlannedWorkload) -> Nanos {
    let search = workload.find_max.as_ref();
    search.map_or(Nanos::ZERO, |search| {
        prony_load::usual_length(Nanos(search.step_ns))
    })
}

/// How long it may take at the most.
pub(crate) fn longest(workload: &PlannedWorkload) -> Nanos {
    let search = workload.find_max.as_ref();
    search.map_or(Nanos::ZERO, |search| {
        prony_load::longest_length(Nanos(search.step_ns), Nanos(workload.timeout_ns))
    })
}
