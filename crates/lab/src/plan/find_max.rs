//! How long searches for a highest rate take. Pure.

use prony_base::Nanos;
use prony_record::PlannedWorkload;

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
