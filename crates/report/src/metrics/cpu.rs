//! CPU time a request.

use prony_findings::measure;
use prony_record::Role;

use super::metric::{Better, Metric};
use crate::numbers;
use crate::table::{MICROS, ON_CPU, Shown};

/// CPU time of the subject a request.
pub const SUBJECT: Metric = Metric {
    key: "cpu_subject",
    shown: Shown::of("CPU subject", "cpu_subject_ns", MICROS)
        .below("µs/req")
        .marked(ON_CPU),
    column: "cpu_subject_ns_per_request",
    unit: "ns/request",
    bench: "cpu-ns/req",
    better: Better::Lower,
    compared: "CPU a request",
    alone: numbers::time,
    claimed: true,
    // It is what was used, whoever was the limit.
    bound_below: None,
    own: None,
    values: |_, case| {
        let each = case.measured();
        each.filter_map(|t| Some((t.block, measure::cpu_per_request(t, Role::Subject)?.0)))
            .collect()
    },
};

/// CPU time of the generator a request.
pub const GENERATOR: Metric = Metric {
    key: "cpu_generator",
    shown: Shown::of("CPU generator", "cpu_generator_ns", MICROS)
        .below("µs/req")
        .detail(),
    column: "cpu_generator_ns_per_request",
    bench: "",
    claimed: false,
    values: |_, case| {
        let each = case.measured();
        each.filter_map(|t| {
            let ns = measure::generator_cpu_per_request(t.load.as_ref()?)?.0;
            Some((t.block, ns))
        })
        .collect()
    },
    compared: "CPU of the generator a request",
    ..SUBJECT
};
