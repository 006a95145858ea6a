//! P008 and P028: was there one rate to measure, and was there one all the time?

use prony_record::{LoadReport, Trial, Visit};
use prony_stats::{SLICES_MIN, freeze, sorted, steadiness, two_modes};

use super::seen::{Seen, finding, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Unit};
use crate::limits;
use crate::records::Case;

const WITHIN: (&str, &str) = (
    "The rate changed within the window: its mean describes no part of it.",
    "Warm up for longer if it drifted; look for pauses (garbage collection, disk, other programs) if it \
     stalled.",
);
const MODES: (&str, &str) = (
    "The blocks fall into two groups: the subject, or the machine, has two states, and a median \
     describes neither.",
    "Find what differs between the blocks (memory layout, core, number of accepted connections a \
     thread) and measure each state by itself.",
);

/// P008: not steady within the window, or blocks in two groups. How far blocks lie apart otherwise is in the intervals.
pub(super) fn unstable(case: &Case<'_>) -> Vec<Finding> {
    let mut found = within(case);
    found.extend(modes(case));
    found
}

fn within(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P008, case.measured(), |trial| {
        let slices = &parts(trial)?;
        let seen = steadiness(slices).filter(|seen| !seen.is_steady())?;
        let drift = (seen.drift.0 - 1.0).abs();
        let evidence = vec![
            Evidence::number("last third over first third", seen.drift.0, Unit::Ratio),
            Evidence::number(
                "explained by the slices' own spread",
                seen.tolerance.0,
                Unit::Share,
            ),
            Evidence::number("slices under half the median", seen.stalled.0, Unit::Share),
            Evidence::count("slices", slices.len() as u64),
        ];
        debug_assert!(slices.len() >= SLICES_MIN);
        Some(Seen::note(drift.max(seen.stalled.0), WITHIN, evidence))
    })
}

/// Answers in equal parts of the window: slices, or visits as if all were equally long, between which the machine has
/// had time for something else.
fn parts(trial: &Trial) -> Option<Vec<u64>> {
    let load = trial.load.as_ref()?;
    let visits = &trial.visits;
    if visits.is_empty() {
        return Some(load.slices.completed.clone());
    }
    let all: f64 = visits.iter().map(|visit| visit.window_ns as f64).sum();
    let mean = all / visits.len() as f64;
    let scaled = |visit: &Visit| visit.completed as f64 * mean / visit.window_ns.max(1) as f64;
    Some(visits.iter().map(|visit| scaled(visit) as u64).collect())
}

const FROZE: (&str, &str) = (
    "For part of the window no request completed at all, while some were in flight: the rate is that of the rest, \
     spread over the whole window. In a closed loop few requests wait that long, as none are sent while none are \
     answered: its percentiles hide most of it.",
    "Find out what the subject waited for (garbage collection, a disk, a lock, another program on its core); an open \
     loop (arrival = { rate = … }) shows what users would have experienced.",
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
        Some(Seen::note(seen.share.0, FROZE, evidence))
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

fn modes(case: &Case<'_>) -> Option<Finding> {
    let (blocks, rates): (Vec<u32>, Vec<f64>) = case.rates().into_iter().unzip();
    let modes = two_modes(&sorted(&rates))?;
    let rate = |what: &str, of: f64| Evidence::number(what, of, Unit::PerSecond);
    let evidence = vec![
        rate("lower group", modes.low),
        rate("higher group", modes.high),
        Evidence::count("blocks", rates.len() as u64),
    ];
    Some(finding(
        case,
        Code::P008,
        blocks,
        Seen::note(1.0, MODES, evidence),
    ))
}
