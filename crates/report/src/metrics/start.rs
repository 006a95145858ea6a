//! Starting.

use prony_findings::measure;

use super::metric::{LOWER, Metric};
use crate::numbers;

/// Time from the start of the subject's process until its ready sign: with an HTTP sign its first answer.
pub const READY: Metric = Metric {
    key: "ready",
    path: "ready_ns.median",
    column: "ready_ns",
    unit: "ns",
    bench: "ready-ns",
    better: LOWER,
    compared: "time to ready",
    more_less: ["longer until it is ready", "sooner ready"],
    alone: numbers::time,
    claimed: false,
    bound_below: None,
    measured: true,
    values: |_, case| {
        let each = case.measured();
        each.filter_map(|t| Some((t.block, measure::time_to_ready(t)?.0)))
            .collect()
    },
    value: |cell| Some(cell.ready_ns()?.median),
    title: "time to ready",
    below: "",
    details: true,
    show: numbers::time,
    rests_on_episodes: false,
    marks: &[],
};
