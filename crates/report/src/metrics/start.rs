//! Starting.

use prony_findings::{Case, measure};
use prony_record::Trial;
use prony_stats::Time;

use super::metric::{LOWER, Metric};
use crate::numbers;

/// Of older runs and of workloads without it there is none, so that no column of dashes is made of it.
const OF_START: Metric = Metric {
    key: "",
    path: "",
    column: "",
    unit: "ns",
    bench: "",
    better: LOWER,
    compared: "",
    alone: numbers::time,
    claimed: false,
    bound_below: None,
    measured: true,
    values: |_, _| Vec::new(),
    value: |_| None,
    title: "",
    below: "",
    details: true,
    show: numbers::time,
    rests_on_episodes: false,
    marks: &[],
};

/// Time from the start of the subject's process until its ready sign: with an HTTP sign its first answer.
pub const READY: Metric = Metric {
    key: "ready",
    path: "ready_ns.median",
    column: "ready_ns",
    bench: "ready-ns",
    compared: "time to ready",
    claimed: true,
    values: |_, case| of_trials(case, measure::time_to_ready),
    value: |cell| Some(cell.measured.get("ready_ns")?.median),
    title: "time to ready",
    ..OF_START
};

/// Time of the first of the workload's requests after its ready sign.
pub const FIRST: Metric = Metric {
    key: "first",
    path: "first_answer_ns.median",
    column: "first_answer_ns",
    bench: "first-answer-ns",
    compared: "first request",
    values: |_, case| of_trials(case, measure::first_answer),
    value: |cell| Some(cell.measured.get("first_answer_ns")?.median),
    title: "first request",
    ..OF_START
};

/// Time of a request after nothing had been asked for as long as the workload says.
pub const AFTER_REST: Metric = Metric {
    key: "after-rest",
    path: "after_rest_ns.median",
    column: "after_rest_ns",
    bench: "after-rest-ns",
    compared: "request after a rest",
    values: |_, case| of_trials(case, measure::after_rest),
    value: |cell| Some(cell.measured.get("after_rest_ns")?.median),
    title: "after a rest",
    ..OF_START
};

fn of_trials(case: &Case<'_>, time: fn(&Trial) -> Option<Time>) -> Vec<(u32, f64)> {
    let each = case.measured();
    each.filter_map(|trial| Some((trial.block, time(trial)?.0)))
        .collect()
}
