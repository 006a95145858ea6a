//! The picture of a table with rows: a bar for each row in the order of the table, its title above it.

use super::Context;
use super::sections::Rows;
use crate::escape::shortened;
use crate::figures::CellFigures;
use crate::numbers;
use crate::part::spread_word;
use crate::plots::{Axis, Data, Picture, short};

const WIDTH: f64 = 520.0;
const VALUES: f64 = 66.0;
const ROW: f64 = 38.0;
const TOP: f64 = 30.0;
const AXIS: f64 = 30.0;
/// Place of the bar within its row, below the title, and its height.
const BAR: (f64, f64) = (19.0, 13.0);
/// Characters of a title that fit above its bar.
const TITLE_CHARS: usize = 68;
/// Rows of a picture; the table has all.
const ROWS_MAX: usize = 40;

impl Context<'_> {
    /// Requests a second of the rows.
    pub(super) fn rates_picture(&self, id: &str, rows: &Rows<'_>) -> Picture {
        let shown = &rows.rows[..rows.rows.len().min(ROWS_MAX)];
        let rates = shown
            .iter()
            .filter_map(|(_, cell)| cell.and_then(|c| c.rate_per_s));
        let rates: Vec<_> = rates.collect();
        let (axis, ticks) = Axis::linear(rates.iter().map(|rate| rate.high).fold(0.0, f64::max));
        let axis = axis.between(4.0, WIDTH - VALUES);
        let bottom = TOP + ROW * shown.len() as f64;
        let mut picture = Picture::new("Requests a second", WIDTH, bottom + AXIS);
        picture.id = id.to_owned();
        for tick in ticks {
            let x = axis.x(tick);
            picture.line((x, TOP), (x, bottom), "grid");
            let anchor = if tick > 0.0 { "middle" } else { "start" };
            picture.text(
                (x, bottom + 17.0),
                anchor,
                "tick",
                short(numbers::rate(tick)),
            );
        }
        let next = picture.key(9.0, ("square", "subject"), "median");
        let word = spread_word(rates.iter().map(|rate| (rate.is_interval(), rate.blocks)));
        if !word.is_empty() {
            picture.line((next - 6.0, 13.0), (next + 8.0, 13.0), "tail");
            picture.text((next + 14.0, 17.5), "start", "key", word.to_owned());
        }
        let mut said = Vec::new();
        for (at, (row, cell)) in shown.iter().enumerate() {
            let top = TOP + ROW * at as f64;
            let title = shortened(&row.title, TITLE_CHARS);
            picture.text((4.0, top + 14.0), "start", "name", title);
            match cell.and_then(|cell| self.rate_bar(&mut picture, &axis, top, cell)) {
                Some(number) => said.push(format!("{} {number}", row.title)),
                None => {
                    let place = (4.0, top + BAR.0 + 11.0);
                    picture.text(place, "start", "absent", "not measured".to_owned());
                }
            }
        }
        picture.description = said.join("; ");
        picture
    }

    /// The bar of one row with its spread and its number, which it gives.
    fn rate_bar(
        &self,
        picture: &mut Picture,
        axis: &Axis,
        top: f64,
        cell: &CellFigures,
    ) -> Option<String> {
        let rate = cell.rate_per_s?;
        let number = numbers::rate(rate.median);
        let (y, height) = (top + BAR.0, BAR.1);
        let data = Data {
            cell: String::new(),
            figure: self.places.path(cell, "rate_per_s.median").into(),
            value: Some(rate.median),
        };
        let ends = numbers::rates(rate.low, rate.high);
        let tip = format!("{}: {number}/s ({ends})", cell.label);
        let size = (axis.x(rate.median) - axis.x(0.0), height);
        picture.bar_of((axis.x(0.0), y), size, "subject", tip, data);
        if rate.blocks > 1 {
            let middle = y + height / 2.0;
            let (low, high) = (axis.x(rate.low), axis.x(rate.high));
            picture.line((low, middle), (high, middle), "tail");
        }
        let place = (WIDTH - 2.0, y + 11.0);
        picture.text(place, "end", "value", number.clone());
        Some(number)
    }
}
