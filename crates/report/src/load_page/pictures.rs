//! The pictures of a load: rate, latency and errors over time, the percentiles, and a heat map of latency over time.

use super::LoadPage;
use super::series::{LoadColumn, quantile_of};
use crate::figure::INFINITE;
use crate::numbers;
use crate::plots::{Axis, Data, Picture, short};

const WIDTH: f64 = 560.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 18.0;
/// Where the axes begin, below the key.
const TOP: f64 = 30.0;
const HEIGHT: f64 = 200.0;
/// Tick labels and the title of the lower axis.
const AXIS: f64 = 42.0;
/// Height of the picture of errors, which is read for when and not for how many.
const ERRORS_HEIGHT: f64 = 90.0;
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

/// All that there is something to draw of.
pub fn all(page: &LoadPage) -> Vec<Picture> {
    let columns = page.series.columns();
    let answered = columns.iter().any(|of| of.latency.total() > 0);
    if !answered {
        return Vec::new();
    }
    vec![
        latency(columns),
        rate(columns),
        heat(&page.series.merged(HEAT.0)),
        percentiles(page),
        errors(columns),
    ]
}

/// A picture with its lower axis of time.
fn over_time(id: &str, title: &str, columns: &[LoadColumn], height: f64) -> (Picture, Axis) {
    let mut picture = Picture::new(title, WIDTH, TOP + height + AXIS);
    picture.id = format!("load-{id}");
    let end = columns.last().map_or(1, |last| last.end_ns).max(1) as f64;
    let (axis, ticks) = Axis::linear(end / 1e9);
    // The axis ends where the load does, not at the next tick.
    let axis = Axis {
        high: end / 1e9,
        ..axis
    }
    .between(LEFT, WIDTH - RIGHT);
    let bottom = TOP + height;
    for tick in ticks.into_iter().filter(|tick| *tick <= axis.high) {
        let x = axis.x(tick);
        picture.line((x, TOP), (x, bottom), "grid");
        let text = short(numbers::time(tick * 1e9));
        let text = if tick == 0.0 { "0".to_owned() } else { text };
        picture.text((x, bottom + 16.0), "middle", "tick", text);
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    picture.text(
        (middle, bottom + 34.0),
        "middle",
        "key",
        "time since the start of the window".to_owned(),
    );
    (picture, axis)
}

/// The axis on the left, with its lines.
fn upright(
    picture: &mut Picture,
    (axis, ticks): (Axis, Vec<f64>),
    height: f64,
    show: fn(f64) -> String,
) -> Axis {
    let axis = axis.between(TOP + height, TOP);
    for tick in ticks {
        let y = axis.x(tick);
        picture.line((LEFT, y), (WIDTH - RIGHT, y), "grid");
        picture.text((LEFT - 6.0, y + 4.5), "end", "tick", short(show(tick)));
    }
    axis
}

/// The middle of a column, in seconds.
fn middle(column: &LoadColumn) -> f64 {
    f64::midpoint(column.start_ns as f64, column.end_ns as f64) / 1e9
}

/// A line through points; a single one is a dot. `None` breaks it.
fn curve(picture: &mut Picture, points: &[Option<(f64, f64)>], class: &'static str) {
    for (at, pair) in points.windows(2).enumerate() {
        if let (Some(from), Some(to)) = (pair[0], pair[1]) {
            picture.line(from, to, class);
        }
        let alone = pair[1].is_none() && (at == 0 || points[at - 1].is_none());
        if let Some(place) = pair[0].filter(|_| alone) {
            picture.dot(place, ("bead", class), String::new(), Data::default());
        }
    }
    if let [Some(place)] | [.., None, Some(place)] = points {
        picture.dot(*place, ("bead", class), String::new(), Data::default());
    }
}

/// The lowest and the highest finite latency of some.
fn ends(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let ended = values.filter(|ns| *ns < INFINITE && *ns > 0.0);
    let low = ended.clone().fold(f64::INFINITY, f64::min);
    let high = ended.fold(1.0, f64::max);
    (if low.is_finite() { low } else { 1.0 }, high)
}

fn latency(columns: &[LoadColumn]) -> Picture {
    let (mut picture, x) = over_time("latency", "Latency over time", columns, HEIGHT);
    let of = |q| columns.iter().filter_map(move |column| column.quantile(q));
    let (low, high) = ends(OVER_TIME.into_iter().flat_map(|(_, q, _)| of(q)));
    let y = upright(
        &mut picture,
        Axis::logarithmic(low, high),
        HEIGHT,
        numbers::time,
    );
    let mut key = LEFT;
    let mut said = Vec::new();
    for (name, q, class) in OVER_TIME.into_iter().rev() {
        let place = |column: &LoadColumn| {
            let value = column.quantile(q)?;
            Some((x.x(middle(column)), y.x(value.min(y.high))))
        };
        let points: Vec<_> = columns.iter().map(place).collect();
        curve(&mut picture, &points, class);
        if let Some((low, high)) = Some(ends(of(q))).filter(|_| of(q).next().is_some()) {
            said.push(format!(
                "{name} {} to {}",
                numbers::time(low),
                numbers::time(high)
            ));
        }
    }
    for (name, _, class) in OVER_TIME {
        picture.line((key, 13.0), (key + 20.0, 13.0), class);
        picture.text((key + 26.0, 17.5), "start", "key", name.to_owned());
        key += 72.0;
    }
    picture.description = said.join("; ");
    picture
}

fn rate(columns: &[LoadColumn]) -> Picture {
    let (mut picture, x) = over_time("rate", "Requests a second over time", columns, HEIGHT);
    let rates = || columns.iter().map(LoadColumn::rate_per_s);
    let highest = rates().fold(0.0, f64::max);
    let y = upright(&mut picture, Axis::linear(highest), HEIGHT, numbers::rate);
    let place = |column: &LoadColumn| Some((x.x(middle(column)), y.x(column.rate_per_s())));
    let points: Vec<_> = columns.iter().map(place).collect();
    curve(&mut picture, &points, "s0");
    let least = rates().fold(f64::INFINITY, f64::min);
    picture.description = format!(
        "{} to {} a second",
        numbers::rate(least),
        numbers::rate(highest)
    );
    picture
}

fn errors(columns: &[LoadColumn]) -> Picture {
    let all: u64 = columns.iter().map(|column| column.errors).sum();
    let (mut picture, x) = over_time("errors", "Errors over time", columns, ERRORS_HEIGHT);
    picture.description = format!("{} in all", numbers::counted(all, "error"));
    if all == 0 {
        let place = (
            f64::midpoint(LEFT, WIDTH - RIGHT),
            TOP + ERRORS_HEIGHT / 2.0,
        );
        picture.text(place, "middle", "absent", "none".to_owned());
        return picture;
    }
    let highest = columns
        .iter()
        .map(|column| column.errors)
        .max()
        .unwrap_or(1);
    let (axis, mut ticks) = Axis::linear(highest as f64);
    // Of a few errors there are no halves, and in a low picture no room for more than three lines.
    ticks.retain(|tick| tick.fract() == 0.0 && (*tick == 0.0 || *tick * 2.0 >= axis.high));
    let y = upright(&mut picture, (axis, ticks), ERRORS_HEIGHT, numbers::rate);
    for column in columns.iter().filter(|column| column.errors > 0) {
        let (from, to) = (
            x.x(column.start_ns as f64 / 1e9),
            x.x(column.end_ns as f64 / 1e9),
        );
        let top = y.x(column.errors as f64);
        let tip = format!(
            "{} from {}",
            numbers::counted(column.errors, "error"),
            numbers::time(column.start_ns as f64)
        );
        let size = ((to - from - 0.5).max(1.0), TOP + ERRORS_HEIGHT - top);
        picture.bar_of((from, top), size, "generator", tip, Data::default());
    }
    picture
}

/// How far along the axis of nines a quantile stands.
fn nines(q: f64) -> f64 {
    -libm::log10(1.0 - q)
}

fn percentiles(page: &LoadPage) -> Picture {
    let mut picture = Picture::new("Latency by percentile", WIDTH, TOP + HEIGHT + AXIS);
    "load-percentiles".clone_into(&mut picture.id);
    let total = page.histogram.total() + page.infinite;
    // A percentile that rests on fewer than ten requests is not drawn.
    let last = nines(1.0 - (10.0 / total.max(20) as f64).min(0.5)).clamp(1.0, 5.0);
    let x = Axis {
        low: 0.0,
        high: last,
        logarithmic: false,
        from: LEFT,
        to: WIDTH - RIGHT,
    };
    let at = |q: f64| quantile_of(&page.histogram, page.infinite, q);
    let steps = 120;
    let quantiles =
        (0..=steps).map(|step| 1.0 - libm::pow(10.0, -last * f64::from(step) / f64::from(steps)));
    let values: Vec<(f64, f64)> = quantiles.filter_map(|q| Some((q, at(q)?))).collect();
    let (low, high) = ends(values.iter().map(|of| of.1));
    let y = upright(
        &mut picture,
        Axis::logarithmic(low, high),
        HEIGHT,
        numbers::time,
    );
    let shown = NINES.into_iter().filter(|(q, _)| nines(*q) <= last + 1e-9);
    let more = [(0.5, "p50")].into_iter();
    let mut said = Vec::new();
    for (q, name) in more.chain(shown) {
        let place = x.x(nines(q));
        picture.line((place, TOP), (place, TOP + HEIGHT), "grid");
        picture.text(
            (place, TOP + HEIGHT + 16.0),
            "middle",
            "tick",
            name.to_owned(),
        );
        if let Some(value) = at(q).filter(|_| q > 0.0) {
            said.push(format!("{name} {}", numbers::time(value)));
        }
    }
    let title = "percentile; each step to the right is a tenth of the requests";
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    picture.text(
        (middle, TOP + HEIGHT + 34.0),
        "middle",
        "key",
        title.to_owned(),
    );
    let points = values
        .iter()
        .map(|(q, ns)| (*ns < INFINITE).then(|| (x.x(nines(*q)), y.x(*ns))));
    curve(&mut picture, &points.collect::<Vec<_>>(), "s0");
    picture.description = said.join("; ");
    picture
}

fn heat(columns: &[LoadColumn]) -> Picture {
    let (mut picture, x) = over_time("heat", "Heat map of latency over time", columns, HEIGHT);
    let values = columns
        .iter()
        .flat_map(|of| of.latency.counts.iter().map(|pair| pair.0 as f64));
    let (low, high) = ends(values);
    let y = upright(
        &mut picture,
        Axis::logarithmic(low, high),
        HEIGHT,
        numbers::time,
    );
    let rows = HEAT.1 as f64;
    let row = |ns: f64| (((y.from - y.x(ns)) / HEIGHT * rows) as usize).min(HEAT.1 - 1);
    // Counts a second, so that a column that is cut short is as dark as its neighbours.
    let fields: Vec<[f64; HEAT.1]> = columns
        .iter()
        .map(|column| {
            let mut fields = [0.0; HEAT.1];
            let seconds = column.length_ns().max(1) as f64 / 1e9;
            for &(ns, count) in &column.latency.counts {
                fields[row(ns as f64)] += count as f64 / seconds;
            }
            fields
        })
        .collect();
    let fullest = fields.iter().flatten().copied().fold(0.0, f64::max);
    let step = HEIGHT / rows;
    for (column, fields) in columns.iter().zip(&fields) {
        let (from, to) = (
            x.x(column.start_ns as f64 / 1e9),
            x.x(column.end_ns as f64 / 1e9),
        );
        for (row, count) in fields.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let top = y.from - step * (row + 1) as f64;
            let tip = format!(
                "{}/s at {}",
                numbers::rate(*count),
                numbers::time(column.start_ns as f64)
            );
            let size = ((to - from).max(1.0), step);
            picture.bar_of(
                (from, top),
                size,
                shade(*count, fullest),
                tip,
                Data::default(),
            );
        }
    }
    picture.description = format!("from {} to {}", numbers::time(low), numbers::time(high));
    let mut key = LEFT;
    for class in SHADES {
        picture.bar_of(
            (key, 7.0),
            (14.0, 12.0),
            class,
            String::new(),
            Data::default(),
        );
        key += 14.0;
    }
    let text = format!("1/s to {}/s, logarithmic", numbers::rate(fullest));
    picture.text((key + 8.0, 17.5), "start", "key", text);
    picture
}

/// By the logarithm, so that a few slow requests among thousands of fast ones are seen.
fn shade(count: f64, fullest: f64) -> &'static str {
    let part = libm::log10(count.max(1.0)) / libm::log10(fullest.max(10.0));
    let at = (part * SHADES.len() as f64) as usize;
    SHADES[at.min(SHADES.len() - 1)]
}
