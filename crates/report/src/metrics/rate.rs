//! How much is done a second: requests, and bytes of their answers.

use prony_findings::measure;

use super::metric::{Better, Metric, RATE as RATE_KEY};
use crate::numbers;
use crate::table::{self, ON_RATE, Shown, Unit};

/// Requests, or what a program counts, a second. `summary.csv` has its ends beside it.
pub const RATE: Metric = Metric {
    key: RATE_KEY,
    shown: Shown::of("requests/s", "rate_per_s", table::RATE)
        .with_ends()
        .marked(ON_RATE),
    column: "",
    unit: "requests/s",
    bench: "req/s",
    better: Better::Higher,
    compared: "requests/s",
    alone: numbers::rate,
    claimed: true,
    bound_below: Some(true),
    values: |_, case| case.rates(),
    own: Some(|cell| Some(cell.rate_per_s?.median)),
};

/// Bytes of answers received a second, heads included.
pub const RECEIVED: Metric = Metric {
    key: "received",
    shown: Shown::of("received", "received_bytes_per_s", Unit::of(received))
        .below("a second")
        .detail(),
    column: "received_bytes_per_s",
    unit: "B/s",
    bench: "",
    compared: "received a second",
    alone: received,
    claimed: false,
    own: None,
    values: |_, case| {
        let each = case.measured().filter_map(|trial| {
            let load = trial.load.as_ref()?;
            let per_s = measure::rate(load)?.0 * measure::bytes_per_answer(load)?.0;
            Some((trial.block, per_s))
        });
        each.collect()
    },
    ..RATE
};

fn received(bytes: f64) -> String {
    format!("{}/s", numbers::bytes(bytes))
}
