//! What the figures of programs allow to say, for the top of the document.

use std::collections::BTreeMap;

use prony_findings::{Code, Verdict};
use prony_stats::BLOCKS_INTERVAL_MIN;

use super::across::{
    Across, Effect, ScalingFigure, THREADS, decimals, distinct, is_usual, main_count,
};
use super::figures::first_value;
use super::{heading, is_timed, threads_word};
use crate::Run;
use crate::answer::listed;
use crate::figures::{CellFigures, RatioFigure, name_of};
use crate::numbers;

/// The sentences on programs, in order; none where no cell was measured.
pub fn sentences(run: &Run, cells: &[&CellFigures], across: &Across) -> Vec<String> {
    let measured: Vec<&CellFigures> = cells
        .iter()
        .copied()
        .filter(|c| !c.trials.measured.is_empty())
        .collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let mut said = vec![claim(run, cells, &measured)];
    // What did other work is compared with nothing.
    let sound = |c: &&CellFigures| is_timed(c) && c.verdict != Some(Verdict::Invalid);
    let timed: Vec<&CellFigures> = measured.iter().copied().filter(sound).collect();
    for workload in distinct(&timed, |c| c.workload.as_str()) {
        said.extend(of_workload(run, workload, &timed));
    }
    said.extend(other_work(run, &measured));
    said.extend(settings(run, across));
    said.extend(growth(run, across));
    said.extend(threads(run, across));
    said.extend(deadlines(&measured));
    said
}

/// How much was done, and what may follow from it.
fn claim(run: &Run, cells: &[&CellFigures], measured: &[&CellFigures]) -> String {
    let blocks = measured
        .iter()
        .map(|c| c.trials.measured.len())
        .max()
        .unwrap_or(0);
    let of = |n: usize, one: &str, many: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let done = format!(
        "{} of {} measured, each by {} of fresh processes.",
        measured.len(),
        of(cells.len(), "cell was", "cells were"),
        of(blocks, "run", "runs")
    );
    let quick = if run.plan.quick {
        "This was a quick run. "
    } else {
        ""
    };
    if blocks < BLOCKS_INTERVAL_MIN {
        format!(
            "{quick}{done} That is enough to see orders of magnitude and faults, and too little for an \
             interval: none is claimed, nothing is ranked, and no complexity is named."
        )
    } else {
        format!("{quick}{done} What is said below to differ does so by its 95 % interval.")
    }
}

/// Who printed another checksum.
fn other_work(run: &Run, measured: &[&CellFigures]) -> Option<String> {
    let differs = |c: &&CellFigures| c.findings.contains(&Code::P015);
    let cells: Vec<&CellFigures> = measured.iter().copied().filter(differs).collect();
    let names = distinct(&cells, |c| {
        format!("{} on {}", name_of(&run.plan, &c.subject), c.workload)
    });
    (!names.is_empty()).then(|| {
        format!(
            "Another checksum than that of the others was printed by {}: that is not the same work, and \
             no sentence here compares it.",
            listed(&names)
        )
    })
}

/// A paragraph: a sentence for each number of threads, on the usual values of the other settings.
fn of_workload(run: &Run, workload: &str, timed: &[&CellFigures]) -> Option<String> {
    let count = main_count(timed, workload);
    let own = timed.iter().copied().filter(|c| {
        c.workload == workload
            && c.program.as_ref().map(|p| p.count) == count
            && is_usual(&run.plan, &c.settings)
    });
    let own: Vec<&CellFigures> = own.collect();
    let threads = distinct(&own, |c| c.settings.get(THREADS));
    let several = threads.len() > 1;
    let sentence = |value: Option<&String>| {
        let with = own
            .iter()
            .copied()
            .filter(|c| c.settings.get(THREADS) == value);
        let said = of_cells(run, &with.collect::<Vec<_>>())?;
        Some(match value.filter(|_| several) {
            Some(value) => format!("With {}, {said}", threads_word(value)),
            None => said,
        })
    };
    let sentences: Vec<String> = threads.into_iter().filter_map(sentence).collect();
    let place = heading(workload, count);
    (!sentences.is_empty()).then(|| format!("{place}: {}", sentences.join(" ")))
}

fn of_cells(run: &Run, cells: &[&CellFigures]) -> Option<String> {
    let name = |c: &CellFigures| name_of(&run.plan, &c.subject).to_owned();
    let with = |conclusion: &str, words: fn(&RatioFigure) -> String| -> Vec<String> {
        let others = cells.iter().filter(|c| !c.is_copy);
        let own = others.filter_map(|c| {
            let ratio = c.ratio.as_ref().filter(|r| r.conclusion == conclusion)?;
            Some(format!("{} ({})", name(c), words(ratio)))
        });
        own.collect()
    };
    let parts = [
        (
            "faster than it:",
            with("higher", |r| times(r.ratio, r.low, r.high)),
        ),
        (
            "slower:",
            with("lower", |r| times(1.0 / r.ratio, 1.0 / r.high, 1.0 / r.low)),
        ),
        (
            "not shown to differ:",
            with("no-difference-shown", |r| {
                format!("to within {}", resolution(r))
            }),
        ),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(words, names)| format!("{words} {}", listed(&names)))
        .collect();
    let elapsed = |c: &CellFigures| Some(c.program.as_ref()?.elapsed_ns?.median);
    let reference = cells.iter().find(|c| c.is_reference);
    if let Some(reference) = reference.filter(|_| !parts.is_empty()) {
        return Some(format!(
            "{} takes {} ({} {}/s); {}.",
            name(reference),
            numbers::time(elapsed(reference)?),
            numbers::rate(reference.rate_per_s?.median),
            reference.program.as_ref().map_or("", |p| &p.measure),
            parts.join("; "),
        ));
    }
    let all: Vec<f64> = cells.iter().filter_map(|c| elapsed(c)).collect();
    let lowest = all.iter().copied().reduce(f64::min)?;
    let highest = all.iter().copied().reduce(f64::max)?;
    Some(match all.len() {
        1 => format!("{} took {}.", name(cells[0]), numbers::time(lowest)),
        n => format!(
            "the medians of the {n} subjects lie between {} and {}.",
            numbers::time(lowest),
            numbers::time(highest)
        ),
    })
}

/// `5.96 times, 5.90–6.02`.
fn times(ratio: f64, low: f64, high: f64) -> String {
    let decimals = match ratio {
        _ if ratio < 2.0 => 3,
        _ if ratio < 10.0 => 2,
        _ if ratio < 100.0 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$} times, {low:.decimals$}–{high:.decimals$}")
}

fn ratio_words(ratio: &RatioFigure) -> String {
    format!(
        "{}, {}–{}",
        numbers::ratio(ratio.ratio),
        numbers::ratio(ratio.low),
        numbers::ratio(ratio.high)
    )
}

/// How large a difference the interval still leaves room for: `3 %`.
fn resolution(ratio: &RatioFigure) -> String {
    let room = (ratio.high - 1.0).max(1.0 - ratio.low);
    let percents = libm::ceil(room * 1000.0) / 10.0;
    if percents < 10.0 {
        format!("{percents:.1} %")
    } else {
        format!("{} %", numbers::three(percents))
    }
}

/// What each value of a setting did, one sentence a value.
fn settings(run: &Run, across: &Across) -> Vec<String> {
    let mut said = Vec::new();
    let mut changes: Vec<(&str, &str, &str)> = Vec::new();
    for effect in &across.effects {
        let change = (&*effect.setting, &*effect.value, &*effect.base);
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    for change in changes {
        let of_change = across
            .effects
            .iter()
            .filter(|e| (&*e.setting, &*e.value, &*e.base) == change);
        let of_change: Vec<&Effect> = of_change.collect();
        said.extend(of_setting(run, change, &whole(&of_change)));
    }
    said
}

/// Of each subject the effect over all its works, or over the only one.
fn whole<'a>(effects: &[&'a Effect]) -> Vec<&'a Effect> {
    let mut by_subject: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    for effect in effects {
        by_subject.entry(&effect.subject).or_default().push(effect);
    }
    let mut whole: Vec<&Effect> = Vec::new();
    for effect in effects {
        let own = &by_subject[&*effect.subject];
        if effect.workload.is_none() || own.len() == 1 {
            whole.push(effect);
        }
    }
    whole
}

fn of_setting(run: &Run, change: (&str, &str, &str), effects: &[&Effect]) -> Option<String> {
    let (setting, value, base) = change;
    let place = format!("{setting}={value} instead of {base}");
    let name = |e: &Effect| {
        let works = e
            .workload
            .as_ref()
            .map_or(String::new(), |w| format!(" on {w}"));
        format!("{}{works}", name_of(&run.plan, &e.subject))
    };
    let with = |conclusion: &str, words: fn(&RatioFigure) -> String| -> Vec<String> {
        let own = effects.iter().filter(|e| e.ratio.conclusion == conclusion);
        own.map(|e| format!("{} ({})", name(e), words(&e.ratio)))
            .collect()
    };
    let mut parts = Vec::new();
    for (names, words) in [
        (with("higher", ratio_words), "faster for"),
        (with("lower", ratio_words), "slower for"),
        (
            with("no-difference-shown", |r| {
                format!("at a resolution of {}", resolution(r))
            }),
            "no difference is seen for",
        ),
    ] {
        if !names.is_empty() {
            parts.push(format!("{words} {}", listed(&names)));
        }
    }
    if parts.is_empty() {
        // Under six blocks the table has the ranges, and nothing is said.
        return None;
    }
    let over = match effects.iter().any(|e| e.workload.is_none()) {
        true => ", over all works",
        false => "",
    };
    Some(format!("{place}{over}: {}.", parts.join("; ")))
}

/// Which exponent each has, a sentence a workload: with the usual values of the settings, and
/// the first number of threads.
fn growth(run: &Run, across: &Across) -> Vec<String> {
    let usual = |f: &&ScalingFigure| {
        let threads = f.settings.get(THREADS);
        let first = first_value(&run.plan, THREADS);
        is_usual(&run.plan, &f.settings) && (threads.is_none() || threads == first)
    };
    let mut by_workload: Vec<(&str, Vec<&ScalingFigure>)> = Vec::new();
    for figure in across.scaling.iter().filter(usual) {
        match by_workload.iter_mut().find(|(w, _)| *w == figure.workload) {
            Some((_, figures)) => figures.push(figure),
            None => by_workload.push((&figure.workload, vec![figure])),
        }
    }
    let claimed = |figures: &[&ScalingFigure]| figures.iter().any(|f| f.growth != "not-claimed");
    by_workload.retain(|(_, figures)| claimed(figures));
    let sentence = |(workload, figures): (&str, Vec<&ScalingFigure>)| {
        let words = figures.iter().map(|f| {
            let spread = match f.spread {
                "interval" => format!("{}–{}", decimals(f.low), decimals(f.high)),
                _ => format!("blocks from {} to {}", decimals(f.low), decimals(f.high)),
            };
            let name = name_of(&run.plan, &f.subject);
            format!("{name} {} ({spread}), {}", decimals(f.exponent), f.says)
        });
        let words: Vec<String> = words.collect();
        format!(
            "The exponents by which the time of {workload} grows with its size: {}.",
            words.join("; ")
        )
    };
    by_workload.into_iter().map(sentence).collect()
}

/// What more threads do, a sentence for each number of them.
fn threads(run: &Run, across: &Across) -> Vec<String> {
    let mut by_threads: BTreeMap<u32, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    let usual = across
        .efficiencies
        .iter()
        .filter(|e| is_usual(&run.plan, &e.settings) && e.ratio.blocks >= BLOCKS_INTERVAL_MIN);
    for e in usual {
        let subjects = by_threads.entry(e.threads).or_default();
        subjects.entry(&e.subject).or_default().push(e.ratio.ratio);
    }
    let cores = super::across::cores(run);
    let sentence = |(threads, subjects): (u32, BTreeMap<&str, Vec<f64>>)| {
        let ordered = run.plan.subjects.iter().filter_map(|s| {
            let values = subjects.get(&*s.id)?;
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(0.0, f64::max);
            let (low, high) = (numbers::ratio(low), numbers::ratio(high));
            let span = if low == high {
                low
            } else {
                format!("{low}–{high}")
            };
            Some(format!("{} {span}", name_of(&run.plan, &s.id)))
        });
        let ordered: Vec<String> = ordered.collect();
        let bound = match cores {
            cores if cores > 0 && cores < threads => {
                let most = f64::from(cores) / f64::from(threads);
                format!(
                    " (no more than {} is possible on {cores} cores)",
                    numbers::ratio(most)
                )
            }
            _ => String::new(),
        };
        format!(
            "Efficiency of {threads} threads, the rate over {threads} times that of one, from the work that gains \
             least to the one that gains most{bound}: {}.",
            listed(&ordered)
        )
    };
    by_threads.into_iter().map(sentence).collect()
}

/// Which deadlines were missed.
fn deadlines(measured: &[&CellFigures]) -> Vec<String> {
    let sentence = |cell: &&CellFigures| {
        let durations = cell.program.as_ref()?.durations.as_ref()?;
        if durations.deadline_ns == 0 {
            return None;
        }
        let missed = match durations.missed_count {
            0 => "none of".to_owned(),
            n => format!("{} of", numbers::count(n)),
        };
        Some(format!(
            "{}, {}: {missed} {} runs took longer than {}; min {}, max {}{}.",
            cell.workload,
            cell.label,
            numbers::count(durations.runs),
            numbers::time(durations.deadline_ns as f64),
            numbers::time(durations.min_ns as f64),
            numbers::time(durations.max_ns as f64),
            durations.mean_ns.map_or_else(String::new, |mean| {
                format!(", average {}", numbers::time(mean.median))
            }),
        ))
    };
    measured.iter().filter_map(sentence).collect()
}
