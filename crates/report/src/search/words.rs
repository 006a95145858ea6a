//! Sentences on searches.

use super::sections::Section;
use crate::Run;
use crate::numbers;
use crate::sent::sent;

/// What a reader must know before the table.
pub fn before(section: &Section<'_>) -> String {
    let step = section
        .workload
        .find_max
        .as_ref()
        .map_or(0, |of| of.step_ns);
    format!(
        "{}. Each search goes by steps of {}, each an open loop at one rate that begins with nothing in flight; latency counts \
         from when a request was to start. CPU time and errors are those of the closed loop before it.",
        sent(section.workload, false),
        numbers::duration(step)
    )
}

/// What stands below the table.
pub fn after(section: &Section<'_>) -> Vec<String> {
    let one = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let is_one = one.clone().any(|rate| rate.blocks == 1);
    is_one
        .then(|| {
            "The interval is that of one search: how far its six rounds lie apart. Another start of the same server may differ by \
             more."
                .to_owned()
        })
        .into_iter()
        .collect()
}

/// How it was done, where it was.
pub fn method(run: &Run) -> Option<String> {
    run.plan.workloads.iter().any(|w| w.find_max.is_some()).then(|| {
        "The highest rate that keeps an objective is looked for after the closed loop, on the same server: doubled or halved until it \
         is once kept and once missed, then six times anew around that edge, each from where chance puts its steps. A step keeps the \
         objective where its figure stays below the limit, under 1 % of its requests failed, and what is in flight did not grow. The \
         outcome is the median of the six."
            .to_owned()
    })
}

/// What it cannot tell, where it was done.
pub fn limits(run: &Run) -> Option<String> {
    run.plan.workloads.iter().any(|w| w.find_max.is_some()).then(|| {
        "A step shows what holds for its length: what fills up slowly (a log, a heap, a queue that grows by less than 0.2 %) breaks an \
         objective later."
            .to_owned()
    })
}
