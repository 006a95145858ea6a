//! A ranking as a picture: a bar for each subject, with its whole interval, and the baseline's line across.

use super::ranking::{Ranked, Ranking};
use crate::figure::{INFINITE, spread_word};
use crate::plots::rows::{ChartMark, ChartRow, chart};
use crate::plots::{Axis, Picture, Tip};
use crate::words::paragraph;

/// The picture.
pub fn picture(of: &Ranking) -> Picture {
    let unit = of.unit;
    let row = |row: &Ranked| {
        let mark = row.figure.map(|figure| ChartMark {
            shape: "bar",
            class: match row.is_baseline {
                true => "generator",
                false => "subject",
            },
            value: figure.median,
            ends: figure.ends(),
            tip: Tip {
                words: format!(
                    "{}: {} ({} to {})",
                    row.name,
                    row.value,
                    unit.text(figure.low),
                    unit.text(figure.high)
                ),
                cell: row.cell.clone(),
                figure: of.figure.clone(),
                value: Some(figure.median),
            },
        });
        ChartRow {
            name: row.name.clone(),
            is_baseline: row.is_baseline,
            value: row.value.clone(),
            marks: mark.into_iter().collect(),
        }
    };
    let figures = || of.rows.iter().filter_map(|row| row.figure);
    let ends = figures().map(|figure| figure.high);
    let highest = ends.filter(|end| *end < INFINITE).fold(0.0, f64::max);
    let axis = Axis::linear((0.0, highest), unit).titled(&of.metric);
    let rows: Vec<ChartRow> = of.rows.iter().map(row).collect();
    let bottom = rows.len() as f64;
    let mut plane = chart(&of.title, axis, rows);
    plane.key("square", "subject", "median");
    match spread_word(figures()) {
        _ if figures().all(|figure| figure.ends().is_none()) => {}
        "range" => plane.key("line", "whisker", &paragraph("range")),
        interval => plane.key("line", "whisker", interval),
    }
    if let Some(row) = of.rows.iter().find(|row| row.is_baseline) {
        let at = row.figure.map_or(0.0, |figure| figure.median);
        plane.line((at, 0.0), (at, bottom), "mark");
        plane.key("line", "mark", "the baseline");
    }
    plane.done()
}
