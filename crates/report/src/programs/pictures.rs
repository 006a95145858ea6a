//! Pictures of programs: growth over sizes, lengths of runs.

use super::across::ScalingFigure;
use super::context::Context;
use super::figures::DurationFigures;
use crate::figures::CellFigures;
use crate::numbers::{self, RATE, TIME};
use crate::plots::{Axis, Picture, Plane, Tip, series};
use crate::settings::{THREADS, first_value, is_usual};

const HEIGHT: f64 = 280.0;
/// Bars of a histogram.
const BINS: usize = 60;
/// Histograms of one group; more would be no help.
const HISTOGRAMS_MAX: usize = 12;

/// Time over size of one workload: a curve for each subject with the usual values of its settings and the first number of threads.
pub fn growth(context: &Context<'_>, figures: &[(usize, &ScalingFigure)]) -> Picture {
    let plan = &context.run.plan;
    let first = first_value(plan, THREADS);
    let usual = figures.iter().filter(|(_, f)| {
        let threads = f.settings.get(THREADS);
        is_usual(plan, &f.settings) && (threads.is_none() || threads == first)
    });
    let mut shown: Vec<&(usize, &ScalingFigure)> = usual.collect();
    if shown.is_empty() {
        shown = figures.iter().collect();
    }
    let points = || shown.iter().flat_map(|(_, of)| &of.points);
    let x = Axis::logarithmic(points().map(|point| point.0 as f64), RATE);
    let y = Axis::logarithmic(points().map(|point| point.1), TIME);
    let title = "Time over size, both logarithmic";
    let mut plane = Plane::new(title, HEIGHT, x.titled("N"), y);
    for (at, (place, of)) in shown.iter().enumerate() {
        let points = of.points.iter().map(|(size, ns)| (*size as f64, *ns));
        plane.curve(&points.map(Some).collect::<Vec<_>>(), series(at));
        for (number, (size, ns)) in of.points.iter().enumerate() {
            let (count, time) = (numbers::count(*size), numbers::time(*ns));
            let tip = Tip {
                figure: format!("/programs/scaling/{place}/points/{number}/1"),
                value: Some(*ns),
                ..Tip::words(format!("{}: {count} in {time}", of.subject))
            };
            plane.dot((*size as f64, *ns), "circle", series(at), tip);
        }
        plane.legend(
            series(at),
            &of.subject,
            format!("exponent {:.2}", of.exponent),
        );
    }
    plane.done()
}

/// Lengths of the runs of each cell, all over the same axes.
pub fn histograms(cells: &[&CellFigures], labels: &[String]) -> Vec<Picture> {
    let of = |(cell, label): (&&CellFigures, &String)| {
        let durations = cell.program.as_ref()?.durations.clone()?;
        let is_empty = durations.histogram.counts.is_empty();
        (!is_empty).then(|| (label.clone(), durations))
    };
    let all: Vec<(String, DurationFigures)> = cells
        .iter()
        .zip(labels)
        .filter_map(of)
        .take(HISTOGRAMS_MAX)
        .collect();
    let lengths = all.iter().flat_map(|(_, of)| {
        let deadline = std::iter::once(of.deadline_ns);
        of.histogram
            .counts
            .iter()
            .map(|(ns, _)| *ns)
            .chain(deadline)
    });
    let x = Axis::logarithmic(lengths.map(|ns| ns as f64), TIME);
    // A single run must be seen: the axis begins below it.
    let runs = all.iter().map(|(_, of)| of.runs as f64).chain([0.5]);
    let mut y = Axis::logarithmic(runs, RATE);
    y.ticks.retain(|(runs, _)| *runs >= 1.0);
    let picture = |(label, of): &(String, DurationFigures)| {
        let title = format!("Runs by length, both logarithmic: {label}");
        histogram(Plane::new(&title, HEIGHT, x.clone(), y.clone()), of)
    };
    all.iter().map(picture).collect()
}

fn histogram(mut plane: Plane, durations: &DurationFigures) -> Picture {
    plane.describe(format!(
        "{} runs from {} to {}, {} missed the deadline",
        numbers::count(durations.runs),
        numbers::time(durations.min_ns as f64),
        numbers::time(durations.max_ns as f64),
        numbers::count(durations.missed_count)
    ));
    let mut bins = [0_u64; BINS];
    for &(ns, count) in &durations.histogram.counts {
        let bin = &mut bins[plane.x.bin(ns as f64, BINS)];
        *bin = bin.saturating_add(count);
    }
    let bottom = plane.y.low;
    for (bin, count) in bins.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let (from, to) = plane.x.ends_of_bin(bin, BINS);
        let tip = Tip::words(format!("{} runs", numbers::count(count)));
        plane.bar((from, bottom), (to, count as f64), "subject", tip);
    }
    if durations.deadline_ns > 0 {
        let (ns, top) = (durations.deadline_ns as f64, plane.y.high);
        plane.line((ns, bottom), (ns, top), "mark");
        plane.key("line", "mark", &format!("deadline {}", numbers::time(ns)));
    }
    plane.done()
}
