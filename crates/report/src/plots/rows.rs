//! A row for each of several subjects, so that a picture and its table read across: bars, or dots, along one axis.

use super::{Axis, Plane, Tip};
use crate::escape::shortened;

/// Height of a row.
const ROW: f64 = 28.0;
/// Height of its bars together, as a part of it.
const BARS: f64 = 0.6;
/// Characters of a name in one line; it may have two.
const NAME_CHARS: usize = 30;
/// From one line of a name to the next.
const LINE: f64 = 12.0;
/// Where the axis ends, left of the values.
const RIGHT: f64 = 556.0;

/// A subject.
#[derive(Clone, Debug, Default)]
pub struct ChartRow {
    /// Its name.
    pub name: String,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
    /// Its number; where it has no marks, what stands in their place.
    pub value: String,
    /// What is drawn of it: bars from below upwards, dots each over the one before.
    pub marks: Vec<ChartMark>,
}

/// A figure of a subject.
#[derive(Clone, Debug)]
pub struct ChartMark {
    /// `bar`, or the shape of a dot.
    pub shape: &'static str,
    /// Its class.
    pub class: &'static str,
    /// The figure.
    pub value: f64,
    /// Its interval or range, which is a line.
    pub ends: Option<(f64, f64)>,
    /// What it stands for.
    pub tip: Tip,
}

/// The picture, to which keys are added, and lines across.
pub fn chart(title: &str, axis: Axis, rows: Vec<ChartRow>) -> Plane {
    let longest = rows.iter().map(|row| row.name.chars().count()).max();
    let left = 22.0 + 7.0 * longest.unwrap_or(0).min(NAME_CHARS) as f64;
    let count = rows.len() as f64;
    let down = Axis {
        low: count,
        high: 0.0,
        ..Axis::default()
    };
    let mut plane = Plane::within((left, RIGHT), title, ROW * count, axis, down);
    for (at, row) in rows.into_iter().enumerate() {
        draw(&mut plane, at as f64, row);
    }
    plane
}

fn draw(plane: &mut Plane, top: f64, row: ChartRow) {
    let (low, high, middle) = (plane.x.low, plane.x.high, top + 0.5);
    let class = match row.is_baseline {
        true => "name reference",
        false => "name",
    };
    let lines = in_lines(&row.name);
    let first = 4.5 - LINE / 2.0 * (lines.len() - 1) as f64;
    for (at, line) in lines.into_iter().enumerate() {
        let below = first + LINE * at as f64;
        plane.text((low, middle), (-8.0, below), ("end", class), line);
    }
    plane.describe(format!("{} {}", row.name, row.value));
    match row.marks.is_empty() {
        true => plane.text((low, middle), (6.0, 4.5), ("start", "absent"), row.value),
        false => plane.text((high, middle), (82.0, 4.5), ("end", "value"), row.value),
    }
    let bars = row.marks.iter().filter(|mark| mark.shape == "bar");
    let height = BARS / bars.count().max(1) as f64;
    for (at, mark) in row.marks.into_iter().enumerate() {
        let is_bar = mark.shape == "bar";
        let below = middle + BARS / 2.0 - height * at as f64;
        if is_bar {
            let above = below - height * 0.95;
            plane.bar(
                (0.0, below),
                (mark.value, above),
                mark.class,
                mark.tip.clone(),
            );
            if mark.value > high {
                plane.text((high, below), (5.0, 0.0), ("middle", "key"), "»".to_owned());
            }
        }
        if let Some((low, high)) = mark.ends {
            let class = if is_bar { "whisker" } else { "tail" };
            plane.line((low, middle), (high, middle), class);
        }
        if !is_bar {
            plane.dot((mark.value, middle), mark.shape, mark.class, mark.tip);
        }
    }
}

/// A name in at most two lines, broken behind a space, a comma or a slash.
fn in_lines(name: &str) -> Vec<String> {
    let Some((end, _)) = name.char_indices().nth(NAME_CHARS) else {
        return vec![name.to_owned()];
    };
    let broken = name[..end].rfind([' ', ',', '/']).map_or(end, |at| at + 1);
    let (first, second) = name.split_at(broken);
    vec![first.trim_end().to_owned(), shortened(second, NAME_CHARS)]
}
