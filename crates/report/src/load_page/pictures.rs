//! The pictures of a load: rate, latency and errors over time, the percentiles, and a heat map of latency over time.

use super::LoadPage;
use super::series::{LoadColumn, quantile_of};
use crate::figure::INFINITE;
use crate::numbers::{self, RATE, TIME};
use crate::plots::{Axis, Picture, Plane, Tip};

const HEIGHT: f64 = 220.0;
/// Height of the picture of errors, which is read for when and not for how many.
const ERRORS_HEIGHT: f64 = 100.0;
/// Columns and rows of the heat map at the most.
const HEAT: (usize, usize) = (60, 26);
/// Classes of the heat map by the share of the fullest field, faintest first.
const SHADES: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];
/// Percentiles over time: name, quantile, class.
const OVER_TIME: [(&str, f64, &str); 4] = [
    ("p50", 0.5, "s0"),
    ("p90", 0.9, "s2"),
    ("p99", 0.99, "s1"),
    ("max", 1.0, "s7 faint"),
];
/// Percentiles that the curve has labels for.
const NINES: [(f64, &str); 6] = [
    (0.0, "0"),
    (0.9, "p90"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
    (0.99999, "p99.999"),
];
/// Points of that curve.
const STEPS: u32 = 120;

/// All that there is something to draw of.
pub fn all(page: &LoadPage) -> Vec<Picture> {
    let columns = page.series.columns();
    let answered = columns.iter().any(|of| of.latency.total() > 0);
    if !answered {
        return Vec::new();
    }
    let pictures = [
        latency(columns),
        rate(columns),
        heat(&page.series.merged(HEAT.0)),
        percentiles(page),
        errors(columns),
    ];
    let named = pictures
        .into_iter()
        .enumerate()
        .map(|(at, picture)| Picture {
            id: format!("load-{}", at + 1),
            ..picture
        });
    named.collect()
}

/// A plane over the time of the load, in nanoseconds.
fn over_time(title: &str, height: f64, columns: &[LoadColumn], y: Axis) -> Plane {
    let end = columns.last().map_or(1, |last| last.end_ns).max(1) as f64;
    let x = Axis::from_zero([end].into_iter(), TIME);
    // The axis ends where the load does, not at the next tick.
    let x = Axis { high: end, ..x };
    let x = x.titled("time since the start of the window");
    Plane::new(title, height, x, y)
}

fn middle(column: &LoadColumn) -> f64 {
    f64::midpoint(column.start_ns as f64, column.end_ns as f64)
}

fn latency(columns: &[LoadColumn]) -> Picture {
    let of = |q| columns.iter().filter_map(move |column| column.quantile(q));
    let values = OVER_TIME.into_iter().flat_map(|(_, q, _)| of(q));
    let y = Axis::logarithmic(values, TIME);
    let mut plane = over_time("Latency over time", HEIGHT, columns, y);
    for (name, q, class) in OVER_TIME {
        let point = |column: &LoadColumn| Some((middle(column), column.quantile(q)?));
        let points: Vec<_> = columns.iter().map(point).collect();
        plane.curve(&points, class);
        plane.key("line", class, name);
        let (low, high) = (of(q).reduce(f64::min), of(q).reduce(f64::max));
        if let (Some(low), Some(high)) = (low, high) {
            let (low, high) = (numbers::time(low), numbers::time(high));
            plane.describe(format!("{name} {low} to {high}"));
        }
    }
    plane.done()
}

fn rate(columns: &[LoadColumn]) -> Picture {
    let rates = || columns.iter().map(LoadColumn::rate_per_s);
    let y = Axis::from_zero(rates(), RATE);
    let mut plane = over_time("Requests a second over time", HEIGHT, columns, y);
    let points = columns.iter().map(|of| Some((middle(of), of.rate_per_s())));
    plane.curve(&points.collect::<Vec<_>>(), "s0");
    let least = numbers::rate(rates().fold(f64::INFINITY, f64::min));
    let most = numbers::rate(rates().fold(0.0, f64::max));
    plane.describe(format!("{least} to {most} a second"));
    plane.done()
}

fn errors(columns: &[LoadColumn]) -> Picture {
    let mut y = Axis::from_zero(columns.iter().map(|of| of.errors as f64), RATE);
    let errors = columns.iter().map(|column| column.errors);
    let all = errors.fold(0, u64::saturating_add);
    // Of a few errors there are no halves, and of none no number.
    y.ticks
        .retain(|(errors, _)| errors.fract() == 0.0 && all > 0);
    let mut plane = over_time("Errors over time", ERRORS_HEIGHT, columns, y);
    plane.describe(format!("{} in all", numbers::counted(all, "error")));
    if all == 0 {
        plane.absent("none");
    }
    for column in columns.iter().filter(|column| column.errors > 0) {
        let (from, to) = (column.start_ns as f64, column.end_ns as f64);
        let errors = numbers::counted(column.errors, "error");
        let tip = Tip::words(format!("{errors} from {}", numbers::time(from)));
        plane.bar((from, 0.0), (to, column.errors as f64), "generator", tip);
    }
    plane.done()
}

/// How far along the axis of nines a quantile stands.
fn nines(q: f64) -> f64 {
    -libm::log10(1.0 - q)
}

fn percentiles(page: &LoadPage) -> Picture {
    let total = page.histogram.total() + page.infinite;
    // A percentile that rests on fewer than ten requests is not drawn.
    let last = nines(1.0 - (10.0 / total.max(20) as f64).min(0.5)).clamp(1.0, 5.0);
    let at = |q: f64| quantile_of(&page.histogram, page.infinite, q);
    let shown = NINES.into_iter().filter(|(q, _)| nines(*q) <= last + 1e-9);
    let shown: Vec<(f64, &str)> = [(0.5, "p50")].into_iter().chain(shown).collect();
    let x = Axis {
        title: "percentile; each step to the right is a tenth of the requests".to_owned(),
        high: last,
        ticks: shown
            .iter()
            .map(|(q, name)| (nines(*q), (*name).to_owned()))
            .collect(),
        ..Axis::default()
    };
    let steps = (0..=STEPS).map(|step| last * f64::from(step) / f64::from(STEPS));
    let points = steps.filter_map(|x| Some((x, at(1.0 - libm::pow(10.0, -x))?)));
    let points: Vec<(f64, f64)> = points.collect();
    let y = Axis::logarithmic(points.iter().map(|point| point.1), TIME);
    let mut plane = Plane::new("Latency by percentile", HEIGHT, x, y);
    let ended = points.into_iter().filter(|(_, ns)| *ns < INFINITE);
    plane.curve(&ended.map(Some).collect::<Vec<_>>(), "s0");
    for (q, name) in shown.into_iter().filter(|(q, _)| *q > 0.0) {
        if let Some(ns) = at(q) {
            plane.describe(format!("{name} {}", numbers::time(ns)));
        }
    }
    plane.done()
}

fn heat(columns: &[LoadColumn]) -> Picture {
    let values = || columns.iter().flat_map(|of| &of.latency.counts);
    let y = Axis::logarithmic(values().map(|(ns, _)| *ns as f64), TIME);
    // Counts a second, so that a column that is cut short is as dark as its neighbours.
    let fields = columns.iter().map(|column| {
        let mut fields = [0.0; HEAT.1];
        let seconds = column.length_ns().max(1) as f64 / 1e9;
        for &(ns, count) in &column.latency.counts {
            fields[y.bin(ns as f64, HEAT.1)] += count as f64 / seconds;
        }
        fields
    });
    let fields: Vec<[f64; HEAT.1]> = fields.collect();
    let fullest = fields.iter().flatten().copied().fold(0.0, f64::max);
    let mut plane = over_time("Heat map of latency over time", HEIGHT, columns, y);
    for (column, fields) in columns.iter().zip(&fields) {
        let (from, to) = (column.start_ns as f64, column.end_ns as f64);
        for (row, count) in fields.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let (low, high) = plane.y.ends_of_bin(row, HEAT.1);
            let (rate, time) = (numbers::rate(*count), numbers::time(from));
            let tip = Tip::words(format!("{rate}/s at {time}"));
            plane.bar((from, low), (to, high), shade(*count, fullest), tip);
        }
    }
    let shortest = values().map(|(ns, _)| *ns).min().unwrap_or(0);
    let longest = values().map(|(ns, _)| *ns).max().unwrap_or(0);
    let [shortest, longest] = [shortest, longest].map(|ns| numbers::time(ns as f64));
    plane.describe(format!("from {shortest} to {longest}"));
    let [others @ .., last] = SHADES;
    others
        .into_iter()
        .for_each(|class| plane.key("square", class, ""));
    let words = format!("1/s to {}/s, logarithmic", numbers::rate(fullest));
    plane.key("square", last, &words);
    plane.done()
}

/// By the logarithm, so that a few slow requests among thousands of fast ones are seen.
fn shade(count: f64, fullest: f64) -> &'static str {
    let part = libm::log10(count.max(1.0)) / libm::log10(fullest.max(10.0));
    let at = (part * SHADES.len() as f64) as usize;
    SHADES[at.min(SHADES.len() - 1)]
}
