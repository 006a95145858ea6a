//! The foremost figure of each workload over the entries of a log: a picture with a column for each entry, in the order of their dates.
//!
//! Columns are equally wide, as runs may be minutes apart and then months. A line joins two entries only where their figures are of
//! the same thing on the same machine. Not for: which of them differ (`history`).

use std::cmp::Reverse;

use prony_base::counted;
use prony_findings::{Code, Verdict};

use super::entry::{CellEntry, Entry, Section};
use super::history::{Account, History};
use super::page::names;
use crate::lists::{distinct, most};
use crate::numbers::{self, RATE};
use crate::plots::{Axis, Picture, Plane, SERIES, SPAN, Tip, series};
use crate::table::verdict_word;
use crate::templates;

const HEIGHT: f64 = 200.0;
/// Distance of two subjects in the column of an entry.
const BESIDE: f64 = 6.0;

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
    let points = history.accounts.iter().flat_map(|Account { entry, .. }| {
        let own = entry.sections.iter().filter(|own| own.workload == workload);
        let cells = own.flat_map(|own| &own.cells);
        let cells = cells.filter(|cell| cell.verdict != "invalid");
        cells.filter_map(move |cell| {
            Some(Point {
                column: 0,
                entry,
                cell,
                rate: cell.rate_per_s?,
            })
        })
    });
    let mut points: Vec<Point<'_>> = points.collect();
    let mut sizes: Vec<u32> = points.iter().map(|of| of.cell.connections).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let size = most(distinct(sizes.iter().copied()), |size| {
        sizes.iter().filter(|other| *other == size).count()
    })?;
    points.retain(|of| of.cell.connections == size);
    let columns = distinct(points.iter().map(|of| &of.entry.id));
    for point in &mut points {
        let column = columns.iter().position(|id| **id == point.entry.id);
        point.column = column.unwrap_or(0);
    }
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
    let highest = points
        .iter()
        .map(|of| of.cell.ends.map_or(of.rate, |(_, high)| high));
    let step = SPAN / (last + 1) as f64;
    let x = Axis {
        low: -0.5,
        high: last as f64 + 0.5,
        ticks: moments(&points),
        ..Axis::default()
    };
    let mut plane = Plane::new(&title, HEIGHT, x, Axis::from_zero(highest, RATE));
    let beside = (BESIDE / step).min(1.0 / (labels.len() + 1) as f64);
    let newest = &history.accounts.last()?.entry.id;
    for (at, label) in labels.iter().enumerate() {
        let aside = beside * (at as f64 - (labels.len() - 1) as f64 / 2.0);
        let own = of(label);
        draw(&mut plane, &own, aside, series(at));
        plane.legend(series(at), label, first_and_last(&own, newest));
    }
    Some(Picture {
        id: format!("over-time-{}", section.workload),
        ..plane.done()
    })
}

impl Point<'_> {
    /// Whether their figures are of the same thing on the same machine.
    fn is_like(&self, other: &Point<'_>) -> bool {
        let of = |point: &Point<'_>| (point.entry.environment.clone(), point.cell.series.clone());
        of(self) == of(other)
    }

    /// Its rate, with `≥` where the generator, or the other side, was the limit.
    fn value(&self) -> String {
        let limits = [Code::P001, Code::P020].map(Code::as_str);
        let mut codes = self.cell.codes.iter();
        let is_bound = self.cell.verdict == verdict_word(Verdict::Bound)
            && codes.any(|code| limits.contains(&code.as_str()));
        let least = if is_bound { "≥ " } else { "" };
        format!("{least}{}", numbers::rate(self.rate))
    }
}

/// What a subject came to where it was measured last: at first, and in the end, which is now where it is in the newest entry.
fn first_and_last(own: &[Point<'_>], newest: &str) -> String {
    let Some(last) = own.last() else {
        return String::new();
    };
    let when = if last.entry.id == newest {
        "now"
    } else {
        "at last"
    };
    let first = own.iter().find(|of| of.is_like(last));
    let first = first.filter(|of| of.column != last.column);
    let first = first.map_or_else(String::new, |of| format!("{} at first, ", of.value()));
    format!("{first}{} {when}", last.value())
}

/// The moments of columns.
fn moments(points: &[Point<'_>]) -> Vec<(f64, String)> {
    let moment = |of: &Point<'_>| {
        let moment = numbers::moment(of.entry.moment_unix_ms());
        (of.column as f64, moment.trim_end_matches(" UTC").to_owned())
    };
    distinct(points.iter().map(moment))
}

/// One subject: its dots with their ends as whiskers, and lines between those that may be compared.
fn draw(plane: &mut Plane, own: &[Point<'_>], aside: f64, class: &'static str) {
    for (at, point) in own.iter().enumerate() {
        let x = point.column as f64 + aside;
        if let Some(next) = own[at + 1..].iter().find(|of| of.is_like(point)) {
            let to = (next.column as f64 + aside, next.rate);
            plane.line((x, point.rate), to, class);
        }
        let mut words = format!("{}: {}", point.entry.run, point.value());
        if let Some((low, high)) = point.cell.ends {
            plane.line((x, low), (x, high), class);
            words.push_str(&format!(" ({})", RATE.ends(low, high)));
        }
        plane.dot((x, point.rate), "circle", class, Tip::words(words));
    }
}
