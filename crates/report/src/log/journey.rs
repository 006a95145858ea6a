//! The foremost figure of each workload over the entries of a log: a picture with a column for each entry, in the order of their dates.
//!
//! Columns are equally wide, as runs may be minutes apart and then months. A line joins two entries only where their figures are of
//! the same thing on the same machine. Not for: which of them differ (`history`).

use std::cmp::Reverse;

use prony_base::counted;

use super::entry::{CellEntry, Entry, Section};
use super::history::{Account, History};
use super::page::names;
use crate::escape::shortened;
use crate::lists::{distinct, most};
use crate::numbers;
use crate::plots::{Axis, Data, Picture, short};
use crate::templates;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 212.0;
/// Where the key begins, below the dates.
const KEY: f64 = 252.0;
/// From one name of the key to the next.
const LINE: f64 = 19.0;
/// Room of a date.
const DATE: f64 = 78.0;
/// Characters of a name in the key.
const NAME_CHARS: usize = 48;
/// Distance of two subjects in the column of an entry.
const BESIDE: f64 = 6.0;
/// Classes of subjects, of which a picture has no more than these.
const SERIES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// A figure of an entry: its column, and the cell.
#[derive(Clone, Copy)]
struct Point<'a> {
    column: usize,
    entry: &'a Entry,
    cell: &'a CellEntry,
    rate: f64,
}

/// The pictures of a log, each a path in its folder, a title and SVG; none of a workload that fewer than two entries have figures of.
pub fn pictures(history: &History) -> Vec<(String, String, String)> {
    let Some(newest) = history.accounts.last() else {
        return Vec::new();
    };
    let of = |(name, section): (String, &Section)| {
        let picture = picture(history, section)?;
        let svg = templates::svg(&templates::templates(), &picture, true);
        Some((format!("over-time-{name}.svg"), picture.title, svg))
    };
    let sections = &newest.entry.sections;
    let named = names(sections).into_iter().zip(sections);
    named.filter_map(of).collect()
}

/// The figures of a workload with the number of connections that has most of them; of equals the most connections, where servers
/// differ most.
fn foremost<'a>(history: &'a History, workload: &str) -> Option<(u32, Vec<Point<'a>>)> {
    let mut all: Vec<(&Entry, &CellEntry, f64)> = Vec::new();
    for Account { entry, .. } in &history.accounts {
        let own = entry.sections.iter().filter(|own| own.workload == workload);
        let cells = own.flat_map(|own| &own.cells);
        let cells = cells.filter(|cell| cell.verdict != "invalid");
        all.extend(cells.filter_map(|cell| Some((entry, cell, cell.rate_per_s?))));
    }
    let mut sizes: Vec<u32> = all.iter().map(|(_, cell, _)| cell.connections).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let size = most(distinct(sizes.iter().copied()), |size| {
        sizes.iter().filter(|other| *other == size).count()
    })?;
    all.retain(|(_, cell, _)| cell.connections == size);
    let columns = distinct(all.iter().map(|(entry, ..)| &entry.id));
    let point = |(entry, cell, rate): (&'a Entry, &'a CellEntry, f64)| {
        let column = columns.iter().position(|id| **id == entry.id)?;
        Some(Point {
            column,
            entry,
            cell,
            rate,
        })
    };
    let points = all.iter().copied().filter_map(point).collect();
    (columns.len() > 1).then_some((size, points))
}

fn picture(history: &History, section: &Section) -> Option<Picture> {
    let (size, points) = foremost(history, &section.workload)?;
    // Those of the newest entry stand first, and where there are more than colours those with the longest history.
    let of = |label: &str| -> Vec<Point<'_>> {
        let all = points.iter().copied();
        all.filter(|of| of.cell.label == label).collect()
    };
    let last = points.last()?.column;
    let newest = points.iter().filter(|of| of.column == last);
    let mut labels = distinct(newest.chain(&points).map(|of| &*of.cell.label));
    labels.sort_by_key(|label| Reverse(of(label).len()));
    let all = labels.len();
    labels.truncate(SERIES.len());
    let mut title = format!("{}, rate a second", section.title);
    if size > 0 {
        title.push_str(&format!(", {}", counted(size, "connection")));
    }
    if all > labels.len() {
        title.push_str(&format!(" ({} of {all} subjects)", labels.len()));
    }
    let mut picture = Picture::new(&title, WIDTH, KEY + LINE * labels.len() as f64);
    picture.id = format!("over-time-{}", section.workload);
    let highest = points
        .iter()
        .map(|of| of.cell.ends.map_or(of.rate, |(_, high)| high));
    let (axis, ticks) = Axis::linear(highest.fold(0.0, f64::max));
    let axis = axis.between(BOTTOM, TOP);
    for tick in ticks {
        let (y, words) = (axis.x(tick), short(numbers::rate(tick)));
        picture.line((LEFT, y), (WIDTH - RIGHT, y), "grid");
        picture.text((LEFT - 6.0, y + 4.5), "end", "tick", words);
    }
    let step = (WIDTH - RIGHT - LEFT) / (last + 1) as f64;
    dates(&mut picture, &points, step);
    let beside = BESIDE.min(step / (labels.len() + 1) as f64);
    for (at, (label, class)) in labels.iter().zip(SERIES).enumerate() {
        let aside = beside * (at as f64 - (labels.len() - 1) as f64 / 2.0);
        let own = of(label);
        let place = |of: &Point<'_>| (middle(step, of.column) + aside, axis.x(of.rate));
        series(&mut picture, &own, class, place, &axis);
        let ends = own.first().zip(own.last());
        let (first, last) = ends.map_or((0.0, 0.0), |(first, last)| (first.rate, last.rate));
        let (label, y) = (shortened(label, NAME_CHARS), KEY + LINE * at as f64);
        let (first, last) = (numbers::rate(first), numbers::rate(last));
        let words = format!("{label}: {first} at first, {last} now");
        picture.description.push_str(&format!("{words}. "));
        picture.dot((LEFT, y), ("circle", class), String::new(), Data::default());
        picture.text((LEFT + 10.0, y + 4.5), "start", "key", words);
    }
    Some(picture)
}

/// The middle of a column.
fn middle(step: f64, column: usize) -> f64 {
    LEFT + step * (column as f64 + 0.5)
}

/// The date of each column below it where another day begins, else the time, as far as there is room.
fn dates(picture: &mut Picture, points: &[Point<'_>], step: f64) {
    let (mut free, mut before) = (0.0, String::new());
    for point in points {
        let moment = numbers::moment(point.entry.moment_unix_ms());
        let (day, time) = moment.split_once(' ').unwrap_or_default();
        let x = middle(step, point.column);
        if x - DATE / 2.0 >= free {
            let words = if day == before { time } else { day };
            picture.line((x, BOTTOM), (x, BOTTOM + 4.0), "grid");
            picture.text((x, BOTTOM + 18.0), "middle", "tick", words.to_owned());
            (free, before) = (x + DATE / 2.0, day.to_owned());
        }
    }
}

/// One subject: its dots with their ends as whiskers, and lines between those that may be compared.
fn series(
    picture: &mut Picture,
    own: &[Point<'_>],
    class: &'static str,
    place: impl Fn(&Point<'_>) -> (f64, f64),
    axis: &Axis,
) {
    let of = |point: &Point<'_>| (point.entry.environment.clone(), point.cell.series.clone());
    for pair in own.windows(2).filter(|pair| of(&pair[0]) == of(&pair[1])) {
        picture.line(place(&pair[0]), place(&pair[1]), class);
    }
    for point in own {
        let (x, y) = place(point);
        let mut tip = format!("{}: {}", point.entry.run, numbers::rate(point.rate));
        if let Some((low, high)) = point.cell.ends {
            picture.line((x, axis.x(low)), (x, axis.x(high)), class);
            tip.push_str(&format!(" ({})", numbers::rates(low, high)));
        }
        picture.dot((x, y), ("circle", class), tip, Data::default());
    }
}
