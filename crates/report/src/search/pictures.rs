//! Latency against offered rate: a curve for each subject, both axes with units, and the knee marked.
//!
//! The subjects stand below the axes, each on a line of its own with what its mark stands for, so that no name covers another
//! or a curve however near they lie.

use super::figures::SearchFigures;
use super::sections::Section;
use crate::escape::shortened;
use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::numbers;
use crate::plots::{Axis, Data, Picture, short};

const WIDTH: f64 = 420.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 22.0;
/// Where the axes begin, below the two lines of the key.
const TOP: f64 = 48.0;
const HEIGHT: f64 = 230.0;
/// Tick labels and the title of the axis of rates.
const AXIS: f64 = 46.0;
const LINE: f64 = 19.0;
/// Characters of a name beside its value.
const NAME_CHARS: usize = 26;
/// Rates are drawn up to this multiple of the highest mark: what lies beyond is far too much for all.
const BEYOND: f64 = 1.3;
/// Highest over lowest rate from which the axis of rates is logarithmic.
const LOGARITHMIC: f64 = 8.0;
/// Labels of the axis of rates at the most, where it is logarithmic.
const LABELS_MAX: usize = 8;
/// Classes of curves and of their dots; a further one begins again. The second is that of the lower curve.
const SERIES: [(&str, &str); 8] = [
    ("s0", "s0 faint"),
    ("s1", "s1 faint"),
    ("s2", "s2 faint"),
    ("s3", "s3 faint"),
    ("s4", "s4 faint"),
    ("s5", "s5 faint"),
    ("s6", "s6 faint"),
    ("s7", "s7 faint"),
];

/// One subject.
struct Curve<'a> {
    label: &'a str,
    points: Vec<Point<'a>>,
    mark: Option<Mark<'a>>,
    /// What stands beside its name.
    value: String,
}

/// Latencies at a rate, nanoseconds, with where they are in `summary.json`.
struct Point<'a> {
    cell: &'a str,
    rate: f64,
    lower: f64,
    upper: f64,
    /// Paths of the two within the cell.
    paths: (String, String),
}

/// The knee.
struct Mark<'a> {
    cell: &'a str,
    rate: f64,
    ends: (f64, f64),
    /// Path of the rate within the cell.
    path: &'static str,
    /// Its latency; `None`: at the upper edge, as none is given.
    ns: Option<f64>,
}

/// What is drawn beside the curves.
struct Frame<'a> {
    id: String,
    title: String,
    /// Names of the upper and the lower curve.
    names: (&'a str, &'a str),
    /// The objective's latency and its words.
    objective: Option<(f64, String)>,
    /// What the mark is.
    mark: &'a str,
}

/// Of the cells of a search.
pub(super) fn of_search(id: &str, section: &Section<'_>) -> Picture {
    let curves: Vec<Curve<'_>> = section
        .cells
        .iter()
        .filter_map(|cell| searched(cell))
        .collect();
    let search = section.cells.iter().find_map(|cell| cell.search.as_ref());
    let figure = search.map_or("p99", |of| upper(of).0);
    let objective = search.map(|of| (of.below_ns as f64, of.objective_words()));
    draw(
        &Frame {
            id: format!("{id}-curve"),
            title: "Latency against offered rate (latency logarithmic)".to_owned(),
            names: (figure, "p50"),
            objective,
            mark: "highest rate that keeps it",
        },
        &curves,
    )
}

/// The upper curve of a search: the objective's own figure, and of one about the median the 99th percentile.
fn upper(search: &SearchFigures) -> (&str, &'static str) {
    match search.figure() {
        "p50" => ("p99", "p99_ns"),
        figure => (figure, "objective_ns"),
    }
}

fn searched(cell: &CellFigures) -> Option<Curve<'_>> {
    let search = cell.search.as_ref()?;
    let (_, field) = upper(search);
    let points = search.curve.iter().enumerate().map(|(at, point)| Point {
        cell: &cell.cell,
        rate: point.rate_per_s,
        lower: point.p50_ns,
        upper: match field {
            "p99_ns" => point.p99_ns,
            _ => point.objective_ns,
        },
        paths: (
            format!("search.curve.{at}.p50_ns"),
            format!("search.curve.{at}.{field}"),
        ),
    });
    let least = match cell.verdict {
        Some(prony_findings::Verdict::Bound) => "≥ ",
        _ => "",
    };
    let value = match cell.rate_per_s {
        Some(rate) => format!(
            "{least}{} ({})",
            numbers::rate(rate.median),
            numbers::rates(rate.low, rate.high)
        ),
        None if search.blocks_nowhere > 0 => "none found".to_owned(),
        None => crate::table::absence(cell).to_owned(),
    };
    Some(Curve {
        label: &cell.label,
        points: points.collect(),
        mark: cell.rate_per_s.map(|rate| Mark {
            cell: &cell.cell,
            rate: rate.median,
            ends: (rate.low, rate.high),
            path: "rate_per_s.median",
            ns: Some(search.below_ns as f64),
        }),
        value,
    })
}

/// Of the cells of an open workload with one number of connections, whatever their rates.
pub(super) fn of_open_loops(id: &str, cells: &[&CellFigures]) -> Picture {
    let labels = distinct(cells.iter().map(|cell| &*cell.label));
    let curve = |label: &&'_ str| {
        let mut own: Vec<&CellFigures> = cells
            .iter()
            .copied()
            .filter(|c| c.label == **label)
            .collect();
        let rate = |cell: &CellFigures| cell.asked_per_s.unwrap_or_default();
        own.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        asked(own)
    };
    let curves: Vec<Curve<'_>> = labels.iter().filter_map(curve).collect();
    draw(
        &Frame {
            id: format!("{id}-curve"),
            title: "Latency against offered rate (latency logarithmic)".to_owned(),
            names: ("p99", "p50"),
            objective: None,
            mark: "first rate that is not kept up with",
        },
        &curves,
    )
}

/// The curve of the cells of one subject, whose rates rise, up to the first that it does not keep up with.
fn asked(cells: Vec<&CellFigures>) -> Option<Curve<'_>> {
    let label = &cells.first()?.label;
    let lost = cells.iter().position(|cell| cell.is_overloaded());
    let kept = &cells[..lost.unwrap_or(cells.len())];
    let mut points = Vec::new();
    for cell in kept {
        let of = |name: &str| cell.latency_ns.get(name).map(|figure| figure.median);
        if let (Some(rate), Some(lower), Some(upper)) = (cell.asked_per_s, of("p50"), of("p99")) {
            points.push(Point {
                cell: &cell.cell,
                rate,
                lower,
                upper,
                paths: (
                    "latency_ns.p50.median".to_owned(),
                    "latency_ns.p99.median".to_owned(),
                ),
            });
        }
    }
    let lost = lost.and_then(|at| Some((cells[at], cells[at].asked_per_s?)));
    let value = match (lost, points.last()) {
        (Some((_, rate)), _) => format!("lost from {}", numbers::rate(rate)),
        (None, Some(last)) => format!("kept up to {}", numbers::rate(last.rate)),
        (None, None) => "not measured".to_owned(),
    };
    Some(Curve {
        label,
        points,
        mark: lost.map(|(cell, rate)| Mark {
            cell: &cell.cell,
            rate,
            ends: (rate, rate),
            path: "asked_per_s",
            ns: None,
        }),
        value,
    })
}

fn draw(frame: &Frame<'_>, curves: &[Curve<'_>]) -> Picture {
    let (x, x_ticks) = rates(curves);
    let (y, y_ticks) = latencies(frame, curves, &x);
    let bottom = TOP + HEIGHT;
    let height = bottom + AXIS + LINE * curves.len() as f64 + 4.0;
    let mut picture = Picture::new(&frame.title, WIDTH, height);
    picture.id.clone_from(&frame.id);
    for tick in x_ticks {
        let place = x.x(tick);
        picture.line((place, TOP), (place, bottom), "grid");
        let text = short(numbers::rate(tick));
        picture.text((place, bottom + 18.0), "middle", "tick", text);
    }
    for tick in y_ticks {
        let place = y.x(tick);
        picture.line((LEFT, place), (WIDTH - RIGHT, place), "grid");
        let text = short(numbers::time(tick));
        picture.text((LEFT - 6.0, place + 4.0), "end", "tick", text);
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let title = "requests to start a second".to_owned();
    picture.text((middle, bottom + 35.0), "middle", "tick", title);
    key(&mut picture, frame);
    if let Some((ns, _)) = &frame.objective {
        let place = y.x(*ns);
        picture.line((LEFT, place), (WIDTH - RIGHT, place), "mark");
    }
    for (at, curve) in curves.iter().enumerate() {
        line_of(&mut picture, frame, (&x, &y), (at, curve));
    }
    let mut said = Vec::new();
    for (at, curve) in curves.iter().enumerate() {
        let place = bottom + AXIS + LINE * (at as f64 + 0.5);
        let series = SERIES[at % SERIES.len()].0;
        let look = ("circle", series);
        picture.dot((LEFT - 40.0, place), look, String::new(), Data::default());
        let name = shortened(curve.label, NAME_CHARS);
        picture.text((LEFT - 30.0, place + 4.5), "start", "name", name);
        picture.text(
            (WIDTH - RIGHT, place + 4.5),
            "end",
            "value",
            curve.value.clone(),
        );
        said.push(format!("{} {}", curve.label, curve.value));
    }
    picture.description = match &frame.objective {
        Some((_, objective)) => format!("{}, {objective}: {}", frame.mark, said.join("; ")),
        None => said.join("; "),
    };
    picture
}

/// What lines and shapes stand for.
fn key(picture: &mut Picture, frame: &Frame<'_>) {
    let (upper, lower) = frame.names;
    let mut x = LEFT;
    let mut line = |picture: &mut Picture, class, word: &str| {
        picture.line((x, 13.0), (x + 22.0, 13.0), class);
        picture.text((x + 28.0, 17.5), "start", "key", word.to_owned());
        x += 46.0 + 7.0 * word.chars().count() as f64;
    };
    line(picture, "s7", upper);
    line(picture, "s7 faint", lower);
    if let Some((_, objective)) = &frame.objective {
        line(picture, "mark", objective);
    }
    picture.dot(
        (LEFT + 11.0, 33.0),
        ("diamond", "s7"),
        String::new(),
        Data::default(),
    );
    picture.text((LEFT + 28.0, 37.5), "start", "key", frame.mark.to_owned());
}

/// The axis of rates.
fn rates(curves: &[Curve<'_>]) -> (Axis, Vec<f64>) {
    let marks = || curves.iter().filter_map(|curve| curve.mark.as_ref());
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let all = points().map(|point| point.rate);
    let highest = all.clone().fold(1.0, f64::max);
    let mark = marks().map(|mark| mark.ends.1).reduce(f64::max);
    // What has no mark is drawn as far as it goes.
    let bare = curves.iter().filter(|curve| curve.mark.is_none());
    let bare = bare.flat_map(|curve| &curve.points).map(|point| point.rate);
    let high = match mark {
        Some(mark) => highest
            .min(mark * BEYOND)
            .max(mark)
            .max(bare.fold(0.0, f64::max)),
        None => highest,
    };
    let ends = marks().map(|mark| mark.ends.0);
    let low = all.chain(ends).fold(high, f64::min).max(1e-3);
    let (axis, ticks) = match high / low > LOGARITHMIC {
        true => logarithmic_between(low, high),
        false => linear_between(low, high),
    };
    (axis.between(LEFT, WIDTH - RIGHT), ticks)
}

/// From below `low` to above `high`, each 1, 2 or 5 times a power of ten.
fn logarithmic_between(low: f64, high: f64) -> (Axis, Vec<f64>) {
    let first = libm::floor(libm::log10(low)) as i32;
    let last = libm::ceil(libm::log10(high)) as i32;
    let power = |at: i32| libm::pow(10.0, f64::from(at));
    let all = (first..=last).flat_map(|at| [1.0, 2.0, 5.0].map(|part| part * power(at)));
    let below = all
        .clone()
        .filter(|tick| *tick <= low)
        .fold(power(first), f64::max);
    let above = all
        .clone()
        .filter(|tick| *tick >= high)
        .fold(power(last), f64::min);
    let mut ticks: Vec<f64> = all.filter(|tick| (below..=above).contains(tick)).collect();
    if ticks.len() > LABELS_MAX {
        ticks = (first..=last)
            .map(power)
            .filter(|tick| (below..=above).contains(tick))
            .collect();
    }
    let axis = Axis {
        low: below,
        high: above,
        logarithmic: true,
        from: 0.0,
        to: 1.0,
    };
    (axis, ticks)
}

/// From below `low` to above `high` in round steps.
fn linear_between(low: f64, high: f64) -> (Axis, Vec<f64>) {
    let span = (high - low).max(high * 0.1);
    let power = libm::pow(10.0, libm::floor(libm::log10(span)));
    let steps = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5].map(|step| step * power);
    let step = steps.into_iter().find(|step| span / step <= 4.5);
    let step = step.unwrap_or(5.0 * power);
    let first = libm::floor(low / step);
    let count = libm::ceil(high / step).max(first + 1.0) - first;
    let ticks = (0..=count as u32).map(|at| (first + f64::from(at)) * step);
    let ticks: Vec<f64> = ticks.collect();
    let axis = Axis {
        low: first * step,
        high: (first + count) * step,
        logarithmic: false,
        from: 0.0,
        to: 1.0,
    };
    (axis, ticks)
}

/// The axis of latencies, by the points that the axis of rates shows.
fn latencies(frame: &Frame<'_>, curves: &[Curve<'_>], x: &Axis) -> (Axis, Vec<f64>) {
    let points = curves.iter().flat_map(|curve| &curve.points);
    let shown = points.filter(|point| point.rate <= x.high);
    let both = shown.flat_map(|point| [point.lower, point.upper]);
    let objective = frame.objective.iter().map(|(ns, _)| *ns);
    let ended = both
        .chain(objective)
        .filter(|ns| *ns < INFINITE && *ns > 0.0);
    let low = ended.clone().fold(f64::INFINITY, f64::min);
    let high = ended.fold(1.0, f64::max);
    let (axis, ticks) = Axis::logarithmic(if low.is_finite() { low } else { 1.0 }, high);
    (axis.between(TOP + HEIGHT, TOP), ticks)
}

fn line_of(
    picture: &mut Picture,
    frame: &Frame<'_>,
    axes: (&Axis, &Axis),
    of: (usize, &Curve<'_>),
) {
    let ((x, y), (at, curve)) = (axes, of);
    let (series, faint) = SERIES[at % SERIES.len()];
    let shown: Vec<&Point<'_>> = curve
        .points
        .iter()
        .filter(|point| point.rate <= x.high)
        .collect();
    let (upper, lower) = frame.names;
    let place = |point: &Point<'_>, ns: f64| (x.x(point.rate), y.x(ns));
    for pair in shown.windows(2) {
        picture.line(
            place(pair[0], pair[0].lower),
            place(pair[1], pair[1].lower),
            faint,
        );
        picture.line(
            place(pair[0], pair[0].upper),
            place(pair[1], pair[1].upper),
            series,
        );
    }
    for point in shown {
        let rate = numbers::rate(point.rate);
        for (name, ns, path) in [
            (lower, point.lower, &point.paths.0),
            (upper, point.upper, &point.paths.1),
        ] {
            let tip = format!("{}: {name} {} at {rate}/s", curve.label, numbers::time(ns));
            let data = Data {
                cell: point.cell.to_owned(),
                figure: path.clone().into(),
                value: Some(ns),
            };
            picture.dot(place(point, ns), ("bead", series), tip, data);
        }
    }
    if let Some(mark) = &curve.mark {
        let level = mark.ns.map_or(y.to, |ns| y.x(ns));
        picture.line((x.x(mark.ends.0), level), (x.x(mark.ends.1), level), series);
        let tip = format!(
            "{}: {} {}/s",
            curve.label,
            frame.mark,
            numbers::rate(mark.rate)
        );
        let data = Data {
            cell: mark.cell.to_owned(),
            figure: mark.path.into(),
            value: Some(mark.rate),
        };
        picture.dot((x.x(mark.rate), level), ("diamond", series), tip, data);
    }
}
