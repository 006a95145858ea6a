//! A ranking as a picture: a bar for each subject, with its whole interval, and the baseline's line across.

use super::ranking::Ranking;
use crate::figure::INFINITE;
use crate::plots::{Axis, Chart, Data, Layout, Picture};

const LAYOUT: Layout = Layout {
    width: 640.0,
    names: 200.0,
    values: 84.0,
    row: 28.0,
    name_chars: 26,
};

/// The picture with this `id`.
pub fn picture(of: &Ranking, id: &str) -> Picture {
    let show = of.show.0;
    let figures = || of.rows.iter().filter_map(|row| row.drawn.figure);
    let ends = figures()
        .map(|figure| figure.high)
        .filter(|end| *end < INFINITE);
    let (axis, ticks) = Axis::linear(ends.fold(0.0, f64::max));
    let mut chart = Chart::new(&LAYOUT, ("", of.rows.len()), (axis, ticks), show);
    let (top, bottom) = (chart.top(0), chart.top(of.rows.len()));
    for (at, row) in of.rows.iter().enumerate() {
        chart.name(at, &row.name, row.drawn.is_baseline);
        chart.value(at, &row.value);
        chart.say(format!("{} {}", row.name, row.value));
        let Some(figure) = row.drawn.figure else {
            continue;
        };
        let y = chart.middle(at);
        let class = if row.drawn.is_baseline {
            "generator"
        } else {
            "subject"
        };
        let tip = format!(
            "{}: {} ({} to {})",
            row.name,
            row.value,
            show(figure.low),
            show(figure.high)
        );
        let data = Data {
            cell: row.drawn.cell.clone(),
            figure: of.figure.into(),
            value: Some(figure.median),
        };
        chart.bar((figure.median, class), (y - 8.0, 16.0), tip, data);
        let [low, high] = [figure.low, figure.high].map(|end| chart.axis.x(end));
        chart.picture.line((low, y), (high, y), "whisker");
        if row.drawn.is_baseline {
            let x = chart.axis.x(figure.median);
            chart.picture.line((x, top), (x, bottom), "mark");
        }
    }
    let is_interval = figures().any(|figure| figure.is_interval());
    let spread = if is_interval {
        "95 % interval"
    } else {
        "range of the blocks"
    };
    let baseline = if of.baseline.is_empty() {
        ""
    } else {
        ", dashes: the baseline"
    };
    let key = format!("bar: median, line: {spread}{baseline}");
    chart.picture.text((chart.key(), 17.5), "start", "key", key);
    chart.axis_title(&of.metric);
    let mut picture = chart.done();
    (picture.id, picture.title) = (id.to_owned(), of.title.clone());
    picture
}
