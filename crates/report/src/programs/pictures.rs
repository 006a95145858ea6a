//! Pictures of programs: rates of a group, growth over sizes, lengths of runs.

use super::across::ScalingFigure;
use super::context::Context;
use super::figures::DurationFigures;
use crate::escape::shortened;
use crate::figures::CellFigures;
use crate::numbers;
use crate::plots::{Axis, Chart, Data, Layout, Picture, axis_of_rates, short};
use crate::settings::{THREADS, first_value, is_usual};

const WIDTH: f64 = 640.0;
/// That of the picture of rates, with long names.
const RATES: Layout = Layout {
    width: 820.0,
    names: 390.0,
    values: 70.0,
    row: 24.0,
    name_chars: 52,
};
const TOP: f64 = 30.0;
const AXIS: f64 = 30.0;
/// Height of a picture with two axes.
const HEIGHT: f64 = 340.0;
/// Left and right of a picture with two axes.
const LEFT: f64 = 70.0;
const LABELS: f64 = 170.0;
/// Characters of a name that fit at the end of a line.
const LABEL_CHARS: usize = 20;
/// Distance between two labels at the ends of lines.
const LABEL_STEP: f64 = 15.0;
/// Bars of a histogram.
const BINS: usize = 60;
/// Histograms of one group; more would be no help.
const HISTOGRAMS_MAX: usize = 12;
/// Classes of lines and of their dots; a further one begins again.
const SERIES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// Rates of the cells of one workload and size, a row each.
pub fn rates(cells: &[&CellFigures], labels: &[String]) -> Picture {
    let title = "Rate a second (settings have their first value unless named)";
    let axis = axis_of_rates(cells);
    let mut chart = Chart::new(&RATES, (title, cells.len()), axis, numbers::rate);
    chart.key_of_rates(cells);
    for (row, (cell, label)) in cells.iter().zip(labels).enumerate() {
        chart.name(row, label, cell.is_reference);
        match cell.rate_per_s {
            Some(_) => chart.rate(row, cell, label),
            None => chart.absent(row, "not measured"),
        }
    }
    chart.done()
}

/// How a number of an axis is shown.
type Show = fn(f64) -> String;

/// An empty picture with two axes.
fn plane(x: &(Axis, Vec<f64>), y: &(Axis, Vec<f64>), show: (Show, Show)) -> Picture {
    let mut picture = Picture::new("", WIDTH, HEIGHT);
    let (left, right) = (x.0.from, x.0.to);
    let (bottom, top) = (y.0.from, y.0.to);
    for &tick in &x.1 {
        let place = x.0.x(tick);
        picture.line((place, top), (place, bottom), "grid");
        let text = short(show.0(tick));
        picture.text((place, bottom + 19.0), "middle", "tick", text);
    }
    for &tick in &y.1 {
        let place = y.0.x(tick);
        picture.line((left, place), (right, place), "grid");
        let text = short(show.1(tick));
        picture.text((left - 6.0, place + 4.0), "end", "tick", text);
    }
    picture
}

/// Time over size of one workload, both logarithmic: a line for each subject with the usual
/// values of its settings and the first number of threads.
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
    let points = || shown.iter().flat_map(|(_, f)| f.points.iter());
    let span = |of: fn(&(u64, f64)) -> f64| {
        let low = points().map(of).fold(f64::INFINITY, f64::min);
        let high = points().map(of).fold(1.0, f64::max);
        Axis::logarithmic(if low.is_finite() { low } else { 1.0 }, high)
    };
    let (x, x_ticks) = span(|p| p.0 as f64);
    let (y, y_ticks) = span(|p| p.1);
    let x = (x.between(LEFT, WIDTH - LABELS), x_ticks);
    let y = (y.between(HEIGHT - AXIS, TOP), y_ticks);
    let mut picture = plane(&x, &y, (numbers::rate, numbers::time));
    picture.title = "Time over size, both logarithmic".to_owned();
    let mut ends = Vec::new();
    let mut words = Vec::new();
    for (at, (place, figure)) in shown.iter().enumerate() {
        let class = SERIES[at % SERIES.len()];
        let label = figure.subject.clone();
        let line = Line {
            class,
            label: &label,
            path: format!("/programs/scaling/{place}/points"),
        };
        draw(&mut picture, &(&x.0, &y.0), figure, &line);
        if let Some(last) = figure.points.last() {
            ends.push((y.0.x(last.1), class, label.clone()));
        }
        words.push(format!("{label} exponent {:.2}", figure.exponent));
    }
    label_ends(&mut picture, ends);
    picture.description = words.join("; ");
    picture
}

/// A line of a picture over sizes.
struct Line<'a> {
    class: &'static str,
    label: &'a str,
    /// Where its points are in `summary.json`.
    path: String,
}

fn draw(picture: &mut Picture, axes: &(&Axis, &Axis), figure: &ScalingFigure, line: &Line<'_>) {
    let place = |p: &(u64, f64)| (axes.0.x(p.0 as f64), axes.1.x(p.1));
    for pair in figure.points.windows(2) {
        picture.line(place(&pair[0]), place(&pair[1]), line.class);
    }
    for (at, point) in figure.points.iter().enumerate() {
        let tip = format!(
            "{}: {} in {}",
            line.label,
            numbers::count(point.0),
            numbers::time(point.1)
        );
        let data = Data {
            cell: String::new(),
            figure: format!("{}/{at}/1", line.path).into(),
            value: Some(point.1),
        };
        picture.dot(place(point), ("circle", line.class), tip, data);
    }
}

/// Names at the ends of lines, moved apart where they would cover each other.
fn label_ends(picture: &mut Picture, mut ends: Vec<(f64, &'static str, String)>) {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = HEIGHT - AXIS;
    let mut free = TOP - LABEL_STEP;
    let count = ends.len();
    for (at, (y, class, label)) in ends.into_iter().enumerate() {
        // Those that follow need room, too.
        let last = lowest - LABEL_STEP * (count - 1 - at) as f64;
        let y = y.min(last).max(free + LABEL_STEP);
        free = y;
        let x = WIDTH - LABELS + 10.0;
        picture.dot((x, y), ("circle", class), String::new(), Data::default());
        let text = shortened(&label, LABEL_CHARS);
        picture.text((x + 9.0, y + 4.5), "start", "name", text);
    }
}

/// Lengths of the runs of each cell, all over the same axes.
pub fn histograms(cells: &[&CellFigures], labels: &[String]) -> Vec<Picture> {
    let durations = |cell: &CellFigures| {
        let durations = cell.program.as_ref()?.durations.clone();
        durations.filter(|d| !d.histogram.counts.is_empty())
    };
    let with: Vec<(&str, DurationFigures)> = cells
        .iter()
        .zip(labels)
        .filter_map(|(cell, label)| Some((label.as_str(), durations(cell)?)))
        .take(HISTOGRAMS_MAX)
        .collect();
    let values = || with.iter().flat_map(|(_, d)| d.histogram.counts.iter());
    let shortest = values().map(|(ns, _)| *ns).min().unwrap_or(1);
    let deadline = with.iter().map(|(_, d)| d.deadline_ns).max().unwrap_or(0);
    let longest = values().map(|(ns, _)| *ns).max().unwrap_or(1).max(deadline);
    let most = with.iter().map(|(_, d)| d.runs).max().unwrap_or(1);
    with.iter()
        .map(|(label, durations)| {
            let (x, x_ticks) = Axis::logarithmic(shortest as f64, longest as f64);
            let (y, y_ticks) = Axis::logarithmic(1.0, most as f64);
            // A single run must be seen: the axis begins below it.
            let y = Axis { low: 0.5, ..y };
            let x = (x.between(LEFT, WIDTH - 30.0), x_ticks);
            let y = (y.between(HEIGHT - AXIS, TOP), y_ticks);
            let mut picture = plane(&x, &y, (numbers::time, numbers::rate));
            picture.title = format!("Runs by length, both logarithmic: {label}");
            picture.description = format!(
                "{} runs from {} to {}, {} missed the deadline",
                numbers::count(durations.runs),
                numbers::time(durations.min_ns as f64),
                numbers::time(durations.max_ns as f64),
                numbers::count(durations.missed_count)
            );
            bars(&mut picture, &x.0, &y.0, durations);
            picture
        })
        .collect()
}

fn bars(picture: &mut Picture, x: &Axis, y: &Axis, durations: &DurationFigures) {
    let mut bins = [0_u64; BINS];
    let width = (x.to - x.from) / BINS as f64;
    for &(ns, count) in &durations.histogram.counts {
        let bin = ((x.x(ns as f64) - x.from) / width) as usize;
        let bin = &mut bins[bin.min(BINS - 1)];
        *bin = bin.saturating_add(count);
    }
    for (at, count) in bins.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let (left, top) = (x.from + width * at as f64, y.x(count as f64));
        let tip = format!("{} runs", numbers::count(count));
        let size = (width - 0.5, y.from - top);
        picture.bar((left, top), size, tip, Data::default());
    }
    if durations.deadline_ns > 0 {
        let place = x.x(durations.deadline_ns as f64);
        picture.line((place, y.to), (place, y.from), "mark");
        let text = format!("deadline {}", numbers::time(durations.deadline_ns as f64));
        picture.text((place, y.to - 8.0), "middle", "key", text);
    }
}
