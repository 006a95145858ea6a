//! Pictures: a row a subject, in the order of the plan, so that all pictures of a group and its
//! table read across, and no order claims a ranking.
//!
//! A picture is a list of shapes with their places, computed here and written out by a template.

use std::borrow::Cow;

use serde::Serialize;

use crate::escape::shortened;
use crate::figure::INFINITE;
use crate::figures::{CellFigures, Figure};
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

    /// What its file is called.
    pub fn name(self) -> &'static str {
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

/// How a picture with a row for each of several things is laid out.
pub(crate) struct Layout {
    /// Of the whole.
    pub(crate) width: f64,
    /// Room on the left, for names.
    pub(crate) names: f64,
    /// Room on the right, for values.
    pub(crate) values: f64,
    /// Height of a row.
    pub(crate) row: f64,
    /// Characters of a name that fit.
    pub(crate) name_chars: usize,
}

/// That of the pictures of groups.
const GROUPS: Layout = Layout {
    width: 400.0,
    names: 122.0,
    values: 64.0,
    row: 26.0,
    name_chars: 14,
};
/// Where the first row begins, below the key.
const TOP: f64 = 30.0;
/// From one line of a name to the next.
const LINE: f64 = 12.0;
/// Height of the axis below the last row.
const AXIS: f64 = 30.0;

/// The picture `plot` of the cells of one workload and number of connections.
pub fn picture(plot: Plot, group: &str, cells: &[&CellFigures]) -> Picture {
    let chart = match plot {
        Plot::Rate => rate(cells),
        Plot::Latency => latency(cells),
        Plot::Cpu => cpu(cells),
    };
    Picture {
        id: format!("{}-{group}", plot.name()),
        ..chart.done()
    }
}

/// A coordinate with one decimal: enough, and short.
fn at(value: f64) -> String {
    format!("{value:.1}")
}

/// From a value to a place.
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
            from: 0.0,
            to: 1.0,
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
            from: 0.0,
            to: 1.0,
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

    /// Whether it shows a figure.
    pub(crate) fn has_marks(&self) -> bool {
        let bars = self.bars.iter().map(|bar| &bar.data);
        let mut all = bars.chain(self.dots.iter().map(|dot| &dot.data));
        all.any(|data| data.value.is_some())
    }

    /// A shape and what it stands for, from `x` on; gives the place for the next.
    pub(crate) fn key(&mut self, x: f64, look: (&'static str, &'static str), word: &str) -> f64 {
        self.dot((x, 13.0), look, String::new(), Data::default());
        self.text((x + 9.0, 17.5), "start", "key", word.to_owned());
        x + 22.0 + 7.0 * word.chars().count() as f64
    }
}

/// A name in at most two lines of so many characters, broken behind a space, a comma or a slash.
fn in_lines(name: &str, chars: usize) -> Vec<String> {
    let at = |n: usize| name.char_indices().nth(n).map(|(at, _)| at);
    let Some(end) = at(chars) else {
        return vec![name.to_owned()];
    };
    let broken = name[..end].rfind([' ', ',', '/']).map_or(end, |at| at + 1);
    let (first, second) = name.split_at(broken);
    vec![first.trim_end().to_owned(), shortened(second, chars)]
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

/// A figure of a cell, by its path within it.
pub(crate) fn data(cell: &CellFigures, figure: &'static str, value: f64) -> Data {
    Data {
        cell: cell.cell.clone(),
        figure: figure.into(),
        value: Some(value),
    }
}

/// A picture with a row for each of several things, along one axis.
pub(crate) struct Chart {
    pub(crate) picture: Picture,
    pub(crate) axis: Axis,
    layout: &'static Layout,
    rows: usize,
    said: Vec<String>,
}

impl Chart {
    /// Grid and tick labels.
    pub(crate) fn new(
        layout: &'static Layout,
        (title, rows): (&str, usize),
        (axis, ticks): (Axis, Vec<f64>),
        show: impl Fn(f64) -> String,
    ) -> Chart {
        let bottom = TOP + layout.row * rows as f64;
        let mut chart = Chart {
            picture: Picture::new(title, layout.width, bottom + AXIS),
            axis: axis.between(layout.names, layout.width - layout.values),
            layout,
            rows,
            said: Vec::new(),
        };
        let mut free = f64::NEG_INFINITY;
        for tick in ticks {
            let x = chart.axis.x(tick);
            chart.picture.line((x, TOP), (x, bottom), "grid");
            let text = short(show(tick));
            // A label has its room, or none.
            let half = 3.5 * text.chars().count() as f64 + 3.0;
            if x - half < free {
                continue;
            }
            free = x + half;
            // At the very edge half of a label would be cut off.
            let anchor = match x < 10.0 {
                true => "start",
                false => "middle",
            };
            chart.picture.text((x, bottom + 17.0), anchor, "tick", text);
        }
        chart
    }

    /// The same of cells, with the names of all; rows without a figure say so.
    fn of_group(
        title: &str,
        cells: &[&CellFigures],
        axis: (Axis, Vec<f64>),
        show: fn(f64) -> String,
        absent: fn(&CellFigures) -> Option<&'static str>,
    ) -> Chart {
        let mut chart = Chart::new(&GROUPS, (title, cells.len()), axis, show);
        for (row, cell) in cells.iter().enumerate() {
            chart.name(row, &cell.label, cell.is_reference);
            if let Some(absent) = absent(cell) {
                chart.absent(row, absent);
            }
        }
        chart
    }

    /// The upper edge of a row.
    pub(crate) fn top(&self, row: usize) -> f64 {
        TOP + self.layout.row * row as f64
    }

    /// The middle of a row.
    pub(crate) fn middle(&self, row: usize) -> f64 {
        TOP + self.layout.row * (row as f64 + 0.5)
    }

    /// Where the key begins.
    pub(crate) fn key(&self) -> f64 {
        self.layout.names + 5.0
    }

    /// The name of a row, on its left, in two lines where one is too short for it.
    pub(crate) fn name(&mut self, row: usize, name: &str, is_reference: bool) {
        let class = match is_reference {
            true => "name reference",
            false => "name",
        };
        let lines = in_lines(name, self.layout.name_chars);
        let first = self.middle(row) + 4.5 - LINE / 2.0 * (lines.len() - 1) as f64;
        for (at, line) in lines.into_iter().enumerate() {
            let place = (self.layout.names - 8.0, first + LINE * at as f64);
            self.picture.text(place, "end", class, line);
        }
    }

    /// What the axis is of, below its ticks.
    pub(crate) fn axis_title(&mut self, title: &str) {
        let middle = f64::midpoint(self.layout.names, self.layout.width - self.layout.values);
        let place = (middle, self.picture.height + 4.0);
        self.picture.height += 12.0;
        self.picture.text(place, "middle", "key", title.to_owned());
    }

    /// What stands in the place of a figure.
    pub(crate) fn absent(&mut self, row: usize, word: &str) {
        let place = (self.layout.names + 6.0, self.middle(row) + 4.5);
        self.picture.text(place, "start", "absent", word.to_owned());
    }

    /// The number of a row, on its right.
    pub(crate) fn value(&mut self, row: usize, number: &str) {
        let place = (self.layout.width - 2.0, self.middle(row) + 4.5);
        self.picture.text(place, "end", "value", number.to_owned());
    }

    /// A bar from zero on: its upper edge and height, and what it shows.
    pub(crate) fn bar(
        &mut self,
        (value, class): (f64, &'static str),
        (y, height): (f64, f64),
        tip: String,
        data: Data,
    ) {
        let from = self.axis.x(0.0);
        let size = (self.axis.x(value) - from, height);
        self.picture.bar_of((from, y), size, class, tip, data);
    }

    /// Adds to what the picture shows in words.
    pub(crate) fn say(&mut self, words: String) {
        self.said.push(words);
    }

    /// The picture.
    pub(crate) fn done(self) -> Picture {
        Picture {
            description: self.said.join("; "),
            ..self.picture
        }
    }

    /// The key of rates.
    pub(crate) fn key_of_rates(&mut self, cells: &[&CellFigures]) {
        let mut rates = cells.iter().filter_map(|c| c.rate_per_s);
        let spread = match rates.any(|rate| rate.is_interval()) {
            true => "95 % interval",
            false => "range of the blocks",
        };
        let next = self.picture.key(self.key(), ("circle", "fill"), "median");
        self.picture
            .line((next - 6.0, 13.0), (next + 8.0, 13.0), "spread");
        let place = (next + 14.0, 17.5);
        self.picture.text(place, "start", "key", spread.to_owned());
    }

    /// The rate of a row with its spread, where it has one.
    pub(crate) fn rate(&mut self, row: usize, cell: &CellFigures, label: &str) {
        let Some(rate) = cell.rate_per_s else {
            return;
        };
        let (y, shown) = (self.middle(row), numbers::rate(rate.median));
        let ends = numbers::rates(rate.low, rate.high);
        let tip = format!("{}: {shown}/s ({ends})", cell.cell);
        let [zero, low, middle, high] =
            [0.0, rate.low, rate.median, rate.high].map(|value| self.axis.x(value));
        self.picture.line((zero, y), (low, y), "lead");
        self.picture.line((low, y), (high, y), "spread");
        let look = match cell.is_reference {
            true => "fill reference",
            false => "fill",
        };
        let figure = data(cell, "rate_per_s.median", rate.median);
        self.picture.dot((middle, y), ("circle", look), tip, figure);
        self.value(row, &shown);
        self.say(format!("{label} {shown}"));
    }
}

/// The axis of the rates of cells.
pub(crate) fn axis_of_rates(cells: &[&CellFigures]) -> (Axis, Vec<f64>) {
    let ends = cells.iter().filter_map(|c| Some(c.rate_per_s?.high));
    Axis::linear(ends.fold(0.0, f64::max))
}

fn rate(cells: &[&CellFigures]) -> Chart {
    let (axis, title) = (axis_of_rates(cells), "Requests a second");
    let mut chart = Chart::of_group(title, cells, axis, numbers::rate, no_rate);
    chart.key_of_rates(cells);
    for (row, cell) in cells.iter().enumerate() {
        if let Some(rate) = cell.rate_per_s.filter(|_| cell.is_reference) {
            let (x, bottom) = (chart.axis.x(rate.median), chart.top(chart.rows));
            chart.picture.line((x, TOP), (x, bottom), "mark");
        }
        chart.rate(row, cell, &cell.label);
    }
    chart
}

/// Percentiles of a row, with the shapes that stand for them.
const LATENCIES: [(&str, &str, &str, &str); 4] = [
    ("p50", "latency_ns.p50.median", "circle", "p50"),
    ("p90", "latency_ns.p90.median", "square", "p90"),
    ("p99", "latency_ns.p99.median", "diamond", "p99"),
    ("p99_9", "latency_ns.p99_9.median", "triangle", "p99.9"),
];

fn latency(cells: &[&CellFigures]) -> Chart {
    // One that is overloaded has no latency of its own: it grows with the run.
    let ranked = |c: &&CellFigures| !c.is_overloaded();
    let p50 = |c: &&CellFigures| {
        let p50 = c.latency_ns.get("p50").filter(|_| ranked(c));
        p50.map(|f| f.median).filter(|&ns| ns < INFINITE)
    };
    let lowest = cells.iter().filter_map(p50).fold(f64::INFINITY, f64::min);
    let max = |c: &&CellFigures| c.latency_max_ns.map(|ns| ns as f64);
    // What is measured in turns has no maximum: it ends at its highest percentile.
    let highest_of = |c: &&CellFigures| {
        let of = c.latency_ns.values().map(|figure| figure.median);
        max(c).or_else(|| of.filter(|&ns| ns < INFINITE).reduce(f64::max))
    };
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
    let axis = Axis::logarithmic(lowest, highest);
    let title = "Latency (logarithmic; p99 as a number)";
    let mut chart = Chart::of_group(title, cells, axis, numbers::time, no_rate);
    let mut x = chart.key();
    for (_, _, shape, word) in LATENCIES {
        x = chart.picture.key(x, (shape, class_of(shape)), word);
    }
    chart.picture.key(x, ("bar", "tail"), "max");
    for (row, cell) in cells.iter().enumerate() {
        let y = chart.middle(row);
        let (Some(from), Some(to)) = (p50(cell), highest_of(cell)) else {
            continue;
        };
        // What never ended is drawn to the edge.
        let end = chart.axis.x(to.min(highest));
        let start = chart.axis.x(from);
        chart.picture.line((start, y), (end, y), "tail");
        if max(cell).is_some() {
            let tip = format!("{}: max {}", cell.cell, numbers::time(to));
            let figure = data(cell, "latency_max_ns", to);
            chart.picture.dot((end, y), ("bar", "tail"), tip, figure);
        }
        for (name, figure, shape, word) in LATENCIES.into_iter().rev() {
            let value = cell.latency_ns.get(name).map(|f| f.median);
            let Some(value) = value.filter(|&ns| ns < INFINITE) else {
                continue;
            };
            let tip = format!("{}: {word} {}", cell.cell, numbers::time(value));
            let (place, figure) = ((chart.axis.x(value), y), data(cell, figure, value));
            chart
                .picture
                .dot(place, (shape, class_of(shape)), tip, figure);
        }
        if let Some(p99) = cell.latency_ns.get("p99") {
            let (p50, p99) = (numbers::time(from), numbers::time(p99.median));
            chart.value(row, &p99);
            chart.say(format!("{} p50 {p50}, p99 {p99}", cell.label));
        }
    }
    chart
}

fn class_of(shape: &str) -> &'static str {
    match shape {
        "circle" => "fill",
        "square" => "mid",
        _ => "open",
    }
}

/// Bars of CPU time: side, its figure and where that is, and how far below the middle of a row the bar begins.
type Side = (
    &'static str,
    fn(&CellFigures) -> Option<Figure>,
    &'static str,
    f64,
);

const SIDES: [Side; 2] = [
    (
        "subject",
        CellFigures::cpu_subject_ns,
        "cpu_subject_ns.median",
        -8.0,
    ),
    (
        "generator",
        CellFigures::cpu_generator_ns,
        "cpu_generator_ns.median",
        1.0,
    ),
];

fn cpu(cells: &[&CellFigures]) -> Chart {
    let all = cells.iter().flat_map(|c| SIDES.map(|(_, of, ..)| of(c)));
    let highest = all.flatten().map(|of| of.median).fold(0.0, f64::max);
    // A search that found no rate has CPU time all the same.
    let absent = |cell: &CellFigures| no_rate(cell).filter(|_| cell.cpu_subject_ns().is_none());
    let (axis, title) = (Axis::linear(highest), "CPU time a request, µs");
    let mut chart = Chart::of_group(title, cells, axis, numbers::micros, absent);
    let next = chart
        .picture
        .key(chart.key(), ("square", "subject"), "subject (number)");
    chart
        .picture
        .key(next, ("square", "generator"), "generator");
    for (row, cell) in cells.iter().enumerate() {
        for (side, of, figure, up) in SIDES {
            let Some(value) = of(cell).map(|figure| figure.median) else {
                continue;
            };
            let shown = numbers::micros(value);
            let tip = format!("{}: {side} {shown} µs", cell.cell);
            let place = (chart.middle(row) + up, 7.0);
            chart.bar((value, side), place, tip, data(cell, figure, value));
            if side == "subject" {
                chart.value(row, &shown);
            }
            chart.say(format!("{} {side} {shown} µs", cell.label));
        }
    }
    chart
}
