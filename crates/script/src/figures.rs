//! The results of a run, as `done` receives them.

use std::collections::BTreeMap;

use prony_load::LoadResult;

use crate::value::LuaValue;

/// The arguments of `done`: the summary, latencies in microseconds, and requests a second of each thread in tenths of a second.
pub fn figures(result: &LoadResult) -> [LuaValue; 3] {
    let report = &result.report;
    let number = |count: u64| LuaValue::Number(count as f64);
    let failed = &report.counts.failed;
    let errors = LuaValue::named([
        ("connect", number(report.counts.connect_failed.total())),
        ("read", number(failed.total() - failed.timeout)),
        ("write", number(0)),
        ("status", number(above_399(result))),
        ("timeout", number(failed.timeout)),
    ]);
    let summary = LuaValue::named([
        ("duration", number(report.window_ns / 1_000)),
        ("requests", number(report.counts.completed)),
        ("bytes", number(report.received_bytes)),
        ("errors", errors),
    ]);
    let latencies = result.histogram.counts.iter();
    let latency = distribution(latencies.map(|&(ns, count)| ((ns + 500) / 1_000, count)));
    let threads = u64::from(report.threads.max(1));
    let slices = &report.slices;
    let a_second = |count: u64| count * 1_000_000_000 / slices.slice_ns.max(1) / threads;
    let rates = slices.completed.iter().filter(|count| **count > 0);
    [
        summary,
        latency,
        distribution(rates.map(|&count| (a_second(count), 1))),
    ]
}

fn above_399(result: &LoadResult) -> u64 {
    let errors = result.report.status.iter();
    let errors =
        errors.filter(|(status, _)| status.parse::<u16>().is_ok_and(|status| status > 399));
    errors.map(|(_, count)| count).sum()
}

/// Values and how often each occurred, in order, with their moments.
fn distribution(all: impl Iterator<Item = (u64, u64)>) -> LuaValue {
    let mut counts = BTreeMap::new();
    for (value, count) in all {
        *counts.entry(value).or_insert(0) += count;
    }
    let total = counts.values().sum::<u64>() as f64;
    let sum: f64 = counts
        .iter()
        .map(|(&value, &count)| value as f64 * count as f64)
        .sum();
    let mean = if total > 0.0 { sum / total } else { 0.0 };
    let squares: f64 = counts
        .iter()
        .map(|(&value, &count)| (value as f64 - mean).powi(2) * count as f64)
        .sum();
    let number = |count: Option<&u64>| LuaValue::Number(count.copied().unwrap_or_default() as f64);
    LuaValue::named([
        ("min", number(counts.keys().next())),
        ("max", number(counts.keys().next_back())),
        ("mean", LuaValue::Number(mean)),
        (
            "stdev",
            LuaValue::Number(if total > 1.0 {
                (squares / (total - 1.0)).sqrt()
            } else {
                0.0
            }),
        ),
        (
            "values",
            LuaValue::list(counts.keys().map(|&value| LuaValue::Number(value as f64))),
        ),
        (
            "counts",
            LuaValue::list(counts.values().map(|&count| LuaValue::Number(count as f64))),
        ),
    ])
}
