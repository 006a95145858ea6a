//! How much is done a second.

use super::metric::{HIGHER, Metric, RATE as RATE_KEY};
use crate::numbers;
use crate::table::ON_RATE;

/// Requests, or what a program counts, a second. `summary.csv` has its ends beside it.
pub const RATE: Metric = Metric {
    key: RATE_KEY,
    path: "rate_per_s.median",
    column: "",
    unit: "requests/s",
    bench: "req/s",
    better: HIGHER,
    compared: "requests/s",
    more_less: ["faster", "slower"],
    alone: numbers::rate,
    claimed: true,
    bound_below: Some(true),
    measured: false,
    values: |_, case| case.rates(),
    value: |cell| Some(cell.rate_per_s?.median),
    title: "requests/s",
    below: "",
    details: false,
    show: numbers::rate,
    rests_on_episodes: false,
    marks: ON_RATE,
};
