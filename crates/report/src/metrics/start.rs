//! Starting.

use prony_findings::{Case, measure};
use prony_record::Trial;
use prony_stats::Time;

use super::metric::{Better, Metric};
use crate::numbers;
use crate::table::{Shown, TIME};

/// Time from the start of the subject's process until its ready sign: with an HTTP sign its first answer. Older runs have none.
pub const READY: Metric = Metric {
    key: "ready",
    shown: Shown::of("time to ready", "ready_ns", TIME),
    column: "ready_ns",
    unit: "ns",
    bench: "ready-ns",
    better: Better::Lower,
    compared: "time to ready",
    alone: numbers::time,
    claimed: true,
    bound_below: None,
    values: |_, case| of_trials(case, measure::time_to_ready),
    own: None,
};

/// Time of the first of the workload's requests after its ready sign.
pub const FIRST: Metric = Metric {
    key: "first",
    shown: Shown::of("first request", "first_answer_ns", TIME),
    column: "first_answer_ns",
    compared: "first request",
    claimed: false,
    values: |_, case| of_trials(case, measure::first_answer),
    ..READY
};

/// Time of a request after nothing had been asked for as long as the workload says.
pub const AFTER_REST: Metric = Metric {
    key: "after-rest",
    shown: Shown::of("after a rest", "after_rest_ns", TIME),
    column: "after_rest_ns",
    compared: "request after a rest",
    values: |_, case| of_trials(case, measure::after_rest),
    ..FIRST
};

fn of_trials(case: &Case<'_>, time: fn(&Trial) -> Option<Time>) -> Vec<(u32, f64)> {
    let each = case.measured();
    each.filter_map(|trial| Some((trial.block, time(trial)?.0)))
        .collect()
}
