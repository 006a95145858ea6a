//! The picture of a table with rows: a bar for each row in the order of the table, its title above it.

use super::sections::{Context, Rows};
use crate::escape::shortened;
use crate::figures::CellFigures;
use crate::numbers;
use crate::part::figures_word;
use crate::plots::{Chart, Data, Layout, Picture, axis_of_rates};

const ROWS: Layout = Layout {
    width: 520.0,
    // Names stand above the bars.
    names: 4.0,
    values: 66.0,
    row: 38.0,
    name_chars: 68,
};
/// Place of the bar within its row, below the title, and its height.
const BAR: (f64, f64) = (19.0, 13.0);
/// Rows of a picture; the table has all.
const ROWS_MAX: usize = 40;

impl Context<'_> {
    /// Requests a second of the rows.
    pub(super) fn rates_picture(&self, id: &str, rows: &Rows<'_>) -> Picture {
        let shown = &rows.rows[..rows.rows.len().min(ROWS_MAX)];
        let cells: Vec<&CellFigures> = shown.iter().filter_map(|(_, cell)| *cell).collect();
        let (title, axis) = ("Requests a second", axis_of_rates(&cells));
        let mut chart = Chart::new(&ROWS, (title, shown.len()), axis, numbers::rate);
        let next = chart
            .picture
            .key(chart.key(), ("square", "subject"), "median");
        let word = figures_word(cells.iter().filter_map(|cell| cell.rate_per_s));
        if !word.is_empty() {
            let picture = &mut chart.picture;
            picture.line((next - 6.0, 13.0), (next + 8.0, 13.0), "tail");
            picture.text((next + 14.0, 17.5), "start", "key", word.to_owned());
        }
        for (at, (row, cell)) in shown.iter().enumerate() {
            let top = chart.top(at);
            let title = shortened(&row.title, ROWS.name_chars);
            let picture = &mut chart.picture;
            picture.text((4.0, top + 14.0), "start", "name", title);
            match cell.filter(|cell| cell.rate_per_s.is_some()) {
                Some(cell) => self.rate_bar(&mut chart, top, cell),
                None => {
                    let place = (4.0, top + BAR.0 + 11.0);
                    picture.text(place, "start", "absent", "not measured".to_owned());
                }
            }
        }
        let mut picture = chart.done();
        id.clone_into(&mut picture.id);
        picture
    }

    /// The bar of one row with its spread and its number.
    fn rate_bar(&self, chart: &mut Chart, top: f64, cell: &CellFigures) {
        let Some(rate) = cell.rate_per_s else {
            return;
        };
        let number = numbers::rate(rate.median);
        let (y, height) = (top + BAR.0, BAR.1);
        let data = Data {
            cell: String::new(),
            figure: self.places.path(cell, "rate_per_s.median").into(),
            value: Some(rate.median),
        };
        let ends = numbers::rates(rate.low, rate.high);
        let tip = format!("{}: {number}/s ({ends})", cell.label);
        chart.bar((rate.median, "subject"), (y, height), tip, data);
        if rate.blocks > 1 {
            let middle = y + height / 2.0;
            let (low, high) = (chart.axis.x(rate.low), chart.axis.x(rate.high));
            chart.picture.line((low, middle), (high, middle), "tail");
        }
        let place = (ROWS.width - 2.0, y + 11.0);
        chart.say(format!("{} {number}", cell.label));
        chart.picture.text(place, "end", "value", number);
    }
}
