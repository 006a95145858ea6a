//! Memory.

use prony_findings::measure;
use prony_record::Role;

use super::metric::{Better, Metric};
use crate::numbers;
use crate::table::{BYTES, Shown};

/// Peak resident memory of the subject's largest process, in the window or a program's whole run.
pub const PEAK: Metric = Metric {
    key: "memory_peak",
    shown: Shown::of("memory peak", "memory_peak_bytes", BYTES).detail(),
    column: "memory_peak_bytes",
    unit: "B",
    bench: "peak-B",
    better: Better::Lower,
    compared: "memory peak",
    alone: numbers::bytes,
    claimed: true,
    bound_below: None,
    own: None,
    values: |_, case| {
        let trials = case.measured();
        let of_server =
            trials.filter_map(|t| Some((t.block, measure::memory_peak(t, Role::Subject)?.0)));
        let of_program = case.runs().map(|(t, run)| (t.block, run.peak_bytes as f64));
        of_server.chain(of_program).collect()
    },
};
