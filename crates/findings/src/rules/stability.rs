//! P008 and P028: was there one rate to measure, and was there one all the time?

use prony_record::LoadReport;
use prony_stats::{Rate, SLICES_MIN, Summary, Warning, freeze, steadiness, summarise};

use super::{Seen, finding, limits, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Unit};
use crate::records::Case;

const WITHIN: (&str, &str) = (
    "The rate moved within the window: its mean describes no moment of it.",
    "Warm up for longer if it drifted; look for pauses (garbage collection, disk, other programs) if it \
     stalled.",
);
const BETWEEN: (&str, &str) = (
    "The blocks of this cell lie far apart: differences of that size between subjects mean nothing.",
    "Run more and longer blocks on a quieter machine.",
);
const MODES: (&str, &str) = (
    "The blocks fall into two groups: the subject, or the machine, has two states, and a median \
     describes neither.",
    "Find what differs between the blocks (memory layout, core, number of accepted connections a \
     thread) and measure each state by itself.",
);

/// P008: not steady within the window, blocks more than 10 % apart, or blocks in two groups.
pub(super) fn unstable(case: &Case<'_>) -> Vec<Finding> {
    let mut found = within(case);
    found.extend(between(case));
    found
}

fn within(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P008, case.measured(), |trial| {
        let slices = &trial.load.as_ref()?.slices.completed;
        let seen = steadiness(slices).filter(|seen| !seen.is_steady())?;
        let drift = (seen.drift.0 - 1.0).abs();
        let evidence = vec![
            Evidence::number("last third over first third", seen.drift.0, Unit::Ratio),
            Evidence::number("spread of the slices", seen.spread.0, Unit::Share),
            Evidence::number("slices under half the median", seen.stalled.0, Unit::Share),
            Evidence::count("slices", slices.len() as u64),
        ];
        debug_assert!(slices.len() >= SLICES_MIN);
        Some(Seen::suspect(
            drift.max(seen.spread.0).max(seen.stalled.0),
            WITHIN,
            evidence,
        ))
    })
}

const FROZE: (&str, &str) = (
    "For a part of the window nothing was completed at all, while requests were out: the rate is that of the rest, \
     spread over all of it. In a closed loop few requests have waited that long, as none follow while none are \
     answered: its percentiles hide most of it.",
    "Look for what the subject waited for (garbage collection, a disk, a lock, another program on its core); an open \
     loop (arrival = { rate = … }) shows what users would have seen of it.",
);

/// P028: nothing was completed in three slices or more that follow each other, although chance does not explain
/// that, requests were out for so long, and it is much longer than they usually take.
pub(super) fn froze(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P028, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let seen = freeze(&load.slices.completed)?;
        let slice_ns = load.slices.slice_ns as f64;
        let length = seen.slices as f64 * slice_ns;
        if !was_out(load, length - 2.0 * slice_ns, seen.at_end) || !is_unusual(load, length) {
            return None;
        }
        let mut evidence = vec![
            Evidence::number("longest time without an answer", length, Unit::Nanoseconds),
            Evidence::number(
                "part of the window in such times",
                seen.share.0,
                Unit::Share,
            ),
            Evidence::number(
                "median latency",
                load.latency_ns.p50 as f64,
                Unit::Nanoseconds,
            ),
        ];
        if seen.at_end {
            let left = load.counts.in_flight;
            evidence.push(Evidence::count("at its end, requests out", left));
        }
        Some(Seen::suspect(seen.share.0, FROZE, evidence))
    })
}

/// Whether some request waited for an answer for about as long.
fn was_out(load: &LoadReport, least_ns: f64, at_end: bool) -> bool {
    // Records of before have no latency of what was answered after the window.
    let older = load.delay.is_none() && at_end && load.counts.in_flight > 0;
    load.latency_ns.max as f64 >= least_ns || load.drain_cut || load.counts.abandoned > 0 || older
}

/// Whether requests usually take much less.
fn is_unusual(load: &LoadReport, length_ns: f64) -> bool {
    let above = |latency: u64| length_ns >= limits::FROZEN_LATENCIES * latency as f64;
    let long = length_ns >= limits::FROZEN_SHARE * load.window_ns as f64;
    above(load.latency_ns.p50) || long && above(load.latency_ns.min)
}

fn between(case: &Case<'_>) -> Option<Finding> {
    let (blocks, rates): (Vec<u32>, Vec<f64>) = case.rates().into_iter().unzip();
    let lowest = rates.iter().copied().reduce(f64::min)?;
    let highest = rates.iter().copied().reduce(f64::max)?;
    let summary: Summary<Rate> = summarise(&rates)?;
    let mut evidence = vec![
        Evidence::number("lowest block", lowest, Unit::PerSecond),
        Evidence::number("highest block", highest, Unit::PerSecond),
        Evidence::count("blocks", rates.len() as u64),
    ];
    for warning in &summary.warnings {
        if let Warning::TwoModes(modes) = warning {
            evidence.push(Evidence::number("lower group", modes.low, Unit::PerSecond));
            evidence.push(Evidence::number(
                "higher group",
                modes.high,
                Unit::PerSecond,
            ));
            return Some(finding(
                case,
                Code::P008,
                blocks,
                Seen::suspect(1.0, MODES, evidence),
            ));
        }
    }
    let spread = (highest - lowest) / summary.median.0;
    evidence.push(Evidence::number(
        "(highest - lowest) / median",
        spread,
        Unit::Share,
    ));
    let seen = Seen::suspect(spread, BETWEEN, evidence);
    (spread > limits::BLOCKS_SPREAD).then(|| finding(case, Code::P008, blocks, seen))
}
