//! Starting.

use prony_findings::{Case, measure};
use prony_record::Trial;
use prony_stats::Time;

use super::metric::{LOWER, Metric};
use crate::numbers;
use crate::table::{Shown, TIME};

/// Of older runs and of workloads without it there is none, so that no column of dashes is made of it.
const OF_START: Metric = Metric {
    key: "",
    shown: Shown::of("", "", TIME),
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
};

/// Time from the start of the subject's process until its ready sign: with an HTTP sign its first answer.
pub const READY: Metric = Metric {
    key: "ready",
    shown: Shown::of("time to ready", "ready_ns", TIME),
    column: "ready_ns",
    bench: "ready-ns",
    compared: "time to ready",
    claimed: true,
    values: |_, case| of_trials(case, measure::time_to_ready),
    value: |cell| Some(cell.measured.get("ready_ns")?.median),
    ..OF_START
};

/// Time of the first of the workload's requests after its ready sign.
pub const FIRST: Metric = Metric {
    key: "first",
    shown: Shown::of("first request", "first_answer_ns", TIME),
    column: "first_answer_ns",
    compared: "first request",
    values: |_, case| of_trials(case, measure::first_answer),
    value: |cell| Some(cell.measured.get("first_answer_ns")?.median),
    ..OF_START
};

/// Time of a request after nothing had been asked for as long as the workload says.
pub const AFTER_REST: Metric = Metric {
    key: "after-rest",
    shown: Shown::of("after a rest", "after_rest_ns", TIME),
    column: "after_rest_ns",
    compared: "request after a rest",
    values: |_, case| of_trials(case, measure::after_rest),
    value: |cell| Some(cell.measured.get("after_rest_ns")?.median),
    ..OF_START
};

fn of_trials(case: &Case<'_>, time: fn(&Trial) -> Option<Time>) -> Vec<(u32, f64)> {
    let each = case.measured();
    each.filter_map(|trial| Some((trial.block, time(trial)?.0)))
        .collect()
}
