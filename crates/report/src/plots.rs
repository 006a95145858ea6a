//! Pictures: a row a subject, in the order of the plan, so that all pictures of a group and its
//! table read across, and no order claims a ranking.
//!
//! A picture is a list of shapes with their places, computed here and written out by a template.

use std::borrow::Cow;

use serde::Serialize;

use crate::escape::shortened;
use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::numbers;
use crate::search::figures::SearchFigures;

/// Which picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Plot {
    /// Requests a second, with range or interval.
    Rate,
    /// Latency percentiles on a logarithmic axis.
    Latency,
    /// CPU time a request of both sides.
    Cpu,
}

impl Plot {
    /// All of them, in the order of the page.
    pub const ALL: [Plot; 3] = [Plot::Rate, Plot::Latency, Plot::Cpu];

    fn name(self) -> &'static str {
        match self {
            Plot::Rate => "rate",
            Plot::Latency => "latency",
            Plot::Cpu => "cpu",
        }
    }
}

/// A picture, laid out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Picture {
    /// Unique in the document.
    pub id: String,
    /// What it shows, for the heading and for readers who hear it.
    pub title: String,
    /// The figures in words.
    pub description: String,
    /// Size in its own units.
    pub width: f64,
    /// Size in its own units.
    pub height: f64,
    lines: Vec<Line>,
    bars: Vec<Bar>,
    dots: Vec<Dot>,
    texts: Vec<Text>,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    x1: String,
    y1: String,
    x2: String,
    y2: String,
    class: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct Bar {
    x: String,
    y: String,
    width: String,
    height: String,
    class: &'static str,
    tip: String,
    data: Data,
}

#[derive(Clone, Debug, Serialize)]
struct Dot {
    x: String,
    y: String,
    shape: &'static str,
    class: &'static str,
    tip: String,
    data: Data,
}

#[derive(Clone, Debug, Serialize)]
struct Text {
    x: String,
    y: String,
    anchor: &'static str,
    class: &'static str,
    text: String,
}

/// The figure that a shape shows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Data {
    pub(crate) cell: String,
    pub(crate) figure: Cow<'static, str>,
    pub(crate) value: Option<f64>,
}

const WIDTH: f64 = 400.0;
const NAMES: f64 = 122.0;
const VALUES: f64 = 64.0;
const ROW: f64 = 26.0;
const TOP: f64 = 30.0;
const AXIS: f64 = 30.0;
/// Characters of a name that fit beside the picture.
const NAME_CHARS: usize = 14;

/// The picture `plot` of the cells of one workload and number of connections.
pub fn picture(plot: Plot, group: &str, cells: &[&CellFigures]) -> Picture {
    let mut picture = Picture {
        id: format!("{}-{group}", plot.name()),
        width: WIDTH,
        height: TOP + ROW * cells.len() as f64 + AXIS,
        ..Picture::default()
    };
    match plot {
        Plot::Rate => rate(&mut picture, cells),
        Plot::Latency => latency(&mut picture, cells),
        Plot::Cpu => cpu(&mut picture, cells),
    }
    picture
}

/// A coordinate with one decimal: enough, and short.
fn at(value: f64) -> String {
    format!("{value:.1}")
}

/// From a value to a place, by default between the names and the values.
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) logarithmic: bool,
    /// Place of `low`.
    pub(crate) from: f64,
    /// Place of `high`.
    pub(crate) to: f64,
}

impl Axis {
    /// The same between other places.
    pub(crate) fn between(self, from: f64, to: f64) -> Axis {
        Axis { from, to, ..self }
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        let scale = |v: f64| {
            if self.logarithmic {
                libm::log10(v.max(1e-300))
            } else {
                v
            }
        };
        let part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        let part = if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.from + part * (self.to - self.from)
    }

    /// From zero, with its ticks.
    pub(crate) fn linear(highest: f64) -> (Axis, Vec<f64>) {
        let highest = if highest.is_finite() && highest > 0.0 {
            highest
        } else {
            1.0
        };
        let power = libm::pow(10.0, libm::floor(libm::log10(highest)));
        let step = [0.25, 0.5, 1.0, 2.0, 5.0].map(|s| s * power).into_iter();
        let step = step
            .filter(|s| highest / s <= 4.0)
            .fold(5.0 * power, f64::min);
        let count = libm::ceil(highest / step).clamp(1.0, 6.0);
        let ticks = (0..=count as u32).map(|i| f64::from(i) * step).collect();
        let axis = Axis {
            low: 0.0,
            high: count * step,
            logarithmic: false,
            from: NAMES,
            to: WIDTH - VALUES,
        };
        (axis, ticks)
    }

    /// Over whole decades.
    pub(crate) fn logarithmic(lowest: f64, highest: f64) -> (Axis, Vec<f64>) {
        let low = libm::floor(libm::log10(lowest.clamp(1.0, 1e18)));
        let high = libm::ceil(libm::log10(highest.clamp(1.0, 1e19))).max(low + 1.0);
        let decades = (high - low) as i32;
        let power = |i: i32| libm::pow(10.0, low + f64::from(i));
        let ticks = (0..=decades).map(power).collect();
        let axis = Axis {
            low: power(0),
            high: power(decades),
            logarithmic: true,
            from: NAMES,
            to: WIDTH - VALUES,
        };
        (axis, ticks)
    }
}

impl Picture {
    /// Empty, of a size.
    pub(crate) fn new(title: &str, width: f64, height: f64) -> Picture {
        Picture {
            title: title.to_owned(),
            width,
            height,
            ..Picture::default()
        }
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &'static str) {
        self.lines.push(Line {
            x1: at(from.0),
            y1: at(from.1),
            x2: at(to.0),
            y2: at(to.1),
            class,
        });
    }

    pub(crate) fn text(
        &mut self,
        place: (f64, f64),
        anchor: &'static str,
        class: &'static str,
        text: String,
    ) {
        self.texts.push(Text {
            x: at(place.0),
            y: at(place.1),
            anchor,
            class,
            text,
        });
    }

    /// Grid, tick labels and the names of the rows; rows without a figure say so.
    fn frame(
        &mut self,
        cells: &[&CellFigures],
        axis: &Axis,
        ticks: &[f64],
        show: fn(f64) -> String,
        absent: fn(&CellFigures) -> Option<&'static str>,
    ) {
        let bottom = TOP + ROW * cells.len() as f64;
        for &tick in ticks {
            let x = axis.x(tick);
            self.line((x, TOP), (x, bottom), "grid");
            self.text((x, bottom + 17.0), "middle", "tick", show(tick));
        }
        for (row, cell) in cells.iter().enumerate() {
            let y = middle(row);
            let class = if cell.is_reference {
                "name reference"
            } else {
                "name"
            };
            self.text(
                (NAMES - 8.0, y + 4.5),
                "end",
                class,
                shortened(&cell.label, NAME_CHARS),
            );
            if let Some(absent) = absent(cell) {
                let place = (NAMES + 6.0, y + 4.5);
                self.text(place, "start", "absent", absent.to_owned());
            }
        }
    }

    /// A bar from its upper left corner, `(width, height)` large.
    pub(crate) fn bar(&mut self, place: (f64, f64), size: (f64, f64), tip: String, data: Data) {
        self.bar_of(place, size, "subject", tip, data);
    }

    /// The same, of a side.
    pub(crate) fn bar_of(
        &mut self,
        place: (f64, f64),
        size: (f64, f64),
        class: &'static str,
        tip: String,
        data: Data,
    ) {
        self.bars.push(Bar {
            x: at(place.0),
            y: at(place.1),
            width: at(size.0),
            height: at(size.1),
            class,
            tip,
            data,
        });
    }

    pub(crate) fn dot(
        &mut self,
        place: (f64, f64),
        look: (&'static str, &'static str),
        tip: String,
        data: Data,
    ) {
        self.dots.push(Dot {
            x: at(place.0),
            y: at(place.1),
            shape: look.0,
            class: look.1,
            tip,
            data,
        });
    }

    /// A shape and what it stands for, from `x` on; gives the place for the next.
    pub(crate) fn key(&mut self, x: f64, look: (&'static str, &'static str), word: &str) -> f64 {
        self.dot((x, 13.0), look, String::new(), Data::default());
        self.text((x + 9.0, 17.5), "start", "key", word.to_owned());
        x + 22.0 + 7.0 * word.chars().count() as f64
    }
}

/// What stands in the place of a rate, where there is none.
fn no_rate(cell: &CellFigures) -> Option<&'static str> {
    let found = |search: &SearchFigures| search.blocks_nowhere == 0;
    match (cell.rate_per_s, &cell.search) {
        (Some(_), _) => None,
        (None, Some(search)) if !found(search) => Some("none found"),
        (None, _) => Some("not measured"),
    }
}

fn middle(row: usize) -> f64 {
    TOP + ROW * (row as f64 + 0.5)
}

/// A round number of an axis without the digits that only a measured one needs.
pub(crate) fn short(number: String) -> String {
    let (digits, unit) = match number.split_once(' ') {
        Some((digits, unit)) => (digits, format!(" {unit}")),
        None => (number.as_str(), String::new()),
    };
    if !digits.contains('.') || digits.contains('e') {
        return number;
    }
    format!(
        "{}{unit}",
        digits.trim_end_matches('0').trim_end_matches('.')
    )
}

fn data(cell: &CellFigures, figure: &'static str, value: f64) -> Data {
    Data {
        cell: cell.cell.clone(),
        figure: figure.into(),
        value: Some(value),
    }
}

fn rate(picture: &mut Picture, cells: &[&CellFigures]) {
    let highest = cells
        .iter()
        .filter_map(|c| Some(c.rate_per_s?.high))
        .fold(0.0, f64::max);
    let (axis, ticks) = Axis::linear(highest);
    let interval = cells
        .iter()
        .filter_map(|c| c.rate_per_s)
        .any(|rate| rate.is_interval());
    picture.title = "Requests a second".to_owned();
    let show = |per_second| short(numbers::rate(per_second));
    picture.frame(cells, &axis, &ticks, show, no_rate);
    let next = picture.key(NAMES + 5.0, ("circle", "fill"), "median");
    let spread = if interval {
        "95 % interval"
    } else {
        "range of the blocks"
    };
    picture.line((next - 6.0, 13.0), (next + 8.0, 13.0), "spread");
    picture.text((next + 14.0, 17.5), "start", "key", spread.to_owned());
    let mut words = Vec::new();
    for (row, cell) in cells.iter().enumerate() {
        let Some(rate) = cell.rate_per_s else {
            continue;
        };
        let y = middle(row);
        let shown = numbers::rate(rate.median);
        let tip = format!(
            "{}: {shown}/s ({})",
            cell.cell,
            numbers::rates(rate.low, rate.high)
        );
        if cell.is_reference {
            let x = axis.x(rate.median);
            picture.line((x, TOP), (x, TOP + ROW * cells.len() as f64), "mark");
        }
        picture.line((axis.x(0.0), y), (axis.x(rate.low), y), "lead");
        picture.line((axis.x(rate.low), y), (axis.x(rate.high), y), "spread");
        let look = if cell.is_reference {
            "fill reference"
        } else {
            "fill"
        };
        let figure = data(cell, "rate_per_s.median", rate.median);
        picture.dot((axis.x(rate.median), y), ("circle", look), tip, figure);
        picture.text((WIDTH - 2.0, y + 4.5), "end", "value", shown.clone());
        words.push(format!("{} {shown}", cell.label));
    }
    picture.description = words.join("; ");
}

/// Percentiles of a row, with the shapes that stand for them.
const LATENCIES: [(&str, &str, &str, &str); 4] = [
    ("p50", "latency_ns.p50.median", "circle", "p50"),
    ("p90", "latency_ns.p90.median", "square", "p90"),
    ("p99", "latency_ns.p99.median", "diamond", "p99"),
    ("p99_9", "latency_ns.p99_9.median", "triangle", "p99.9"),
];

fn latency(picture: &mut Picture, cells: &[&CellFigures]) {
    // One that is overloaded has no latency of its own: it grows with the run.
    let ranked = |c: &&CellFigures| !c.is_overloaded();
    let p50 = |c: &&CellFigures| {
        let p50 = c.latency_ns.get("p50").filter(|_| ranked(c));
        p50.map(|f| f.median).filter(|&ns| ns < INFINITE)
    };
    let lowest = cells.iter().filter_map(p50).fold(f64::INFINITY, f64::min);
    let max = |c: &&CellFigures| c.latency_max_ns.map(|ns| ns as f64);
    let ended = |c: &&CellFigures| {
        let of = c.latency_ns.values().map(|figure| figure.median);
        let all = of.chain(max(c)).filter(|&ns| ns < INFINITE);
        all.reduce(f64::max)
    };
    let highest = cells
        .iter()
        .filter(|c| ranked(c))
        .filter_map(ended)
        .fold(1.0, f64::max);
    let lowest = if lowest.is_finite() { lowest } else { 1.0 };
    let (axis, ticks) = Axis::logarithmic(lowest, highest);
    picture.title = "Latency (logarithmic; p99 as a number)".to_owned();
    let show = |ns| short(numbers::time(ns));
    picture.frame(cells, &axis, &ticks, show, no_rate);
    let mut x = NAMES + 5.0;
    for (_, _, shape, word) in LATENCIES {
        x = picture.key(x, (shape, class_of(shape)), word);
    }
    picture.key(x, ("bar", "tail"), "max");
    let mut words = Vec::new();
    for (row, cell) in cells.iter().enumerate() {
        let y = middle(row);
        let (Some(from), Some(to)) = (p50(cell), max(cell)) else {
            continue;
        };
        // What never ended is drawn to the edge.
        let end = axis.x(to.min(highest));
        picture.line((axis.x(from), y), (end, y), "tail");
        picture.dot(
            (end, y),
            ("bar", "tail"),
            format!("{}: max {}", cell.cell, numbers::time(to)),
            data(cell, "latency_max_ns", to),
        );
        for (name, figure, shape, word) in LATENCIES.into_iter().rev() {
            let value = cell.latency_ns.get(name).map(|f| f.median);
            let Some(value) = value.filter(|&ns| ns < INFINITE) else {
                continue;
            };
            let tip = format!("{}: {word} {}", cell.cell, numbers::time(value));
            picture.dot(
                (axis.x(value), y),
                (shape, class_of(shape)),
                tip,
                data(cell, figure, value),
            );
        }
        if let Some(p99) = cell.latency_ns.get("p99") {
            let shown = numbers::time(p99.median);
            picture.text((WIDTH - 2.0, y + 4.5), "end", "value", shown.clone());
            words.push(format!(
                "{} p50 {}, p99 {shown}",
                cell.label,
                numbers::time(from)
            ));
        }
    }
    picture.description = words.join("; ");
}

fn class_of(shape: &str) -> &'static str {
    match shape {
        "circle" => "fill",
        "square" => "mid",
        _ => "open",
    }
}

fn cpu(picture: &mut Picture, cells: &[&CellFigures]) {
    let of = |c: &CellFigures| {
        [
            (c.cpu_subject_ns(), "cpu_subject_ns.median", "subject", -8.0),
            (
                c.cpu_generator_ns(),
                "cpu_generator_ns.median",
                "generator",
                1.0,
            ),
        ]
        .map(|(figure, name, side, up)| (figure.map(|f| f.median), name, side, up))
    };
    let all = cells.iter().flat_map(|c| of(c)).filter_map(|bar| bar.0);
    let (axis, ticks) = Axis::linear(all.fold(0.0, f64::max));
    picture.title = "CPU time a request, µs".to_owned();
    let show = |ns| short(numbers::three(ns / 1e3));
    // A search that found no rate has CPU time all the same.
    let absent = |cell: &CellFigures| no_rate(cell).filter(|_| cell.cpu_subject_ns().is_none());
    picture.frame(cells, &axis, &ticks, show, absent);
    let next = picture.key(NAMES + 5.0, ("square", "subject"), "subject (number)");
    picture.key(next, ("square", "generator"), "generator");
    let mut words = Vec::new();
    for (row, cell) in cells.iter().enumerate() {
        for (value, figure, side, up) in of(cell) {
            let Some(value) = value else { continue };
            let shown = numbers::micros(value);
            picture.bars.push(Bar {
                x: at(axis.x(0.0)),
                y: at(middle(row) + up),
                width: at(axis.x(value) - axis.x(0.0)),
                height: at(7.0),
                class: if side == "subject" {
                    "subject"
                } else {
                    "generator"
                },
                tip: format!("{}: {side} {shown} µs", cell.cell),
                data: data(cell, figure, value),
            });
            if side == "subject" {
                picture.text(
                    (WIDTH - 2.0, middle(row) + 4.5),
                    "end",
                    "value",
                    shown.clone(),
                );
            }
            words.push(format!("{} {side} {shown} µs", cell.label));
        }
    }
    picture.description = words.join("; ");
}
