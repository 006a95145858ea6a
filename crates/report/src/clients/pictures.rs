//! Pictures of clients: bars in the order of the plan, one picture of rates and one of CPU time for each
//! row of a section on requests, and for a section on downloads.

use super::Context;
use super::figures::ClientFigures;
use super::sections::Section;
use crate::escape::shortened;
use crate::figures::{CellFigures, Figure};
use crate::numbers;
use crate::plots::{Axis, Data, Picture, short};

const WIDTH: f64 = 560.0;
const NAMES: f64 = 215.0;
const VALUES: f64 = 66.0;
const ROW: f64 = 26.0;
const TOP: f64 = 30.0;
const AXIS: f64 = 30.0;
/// Height of the bars of a row together.
const BARS: f64 = 16.0;
/// Bars that are longer than so many times the middle one are cut, and marked.
const CUT: f64 = 5.0;
/// Characters of a name that fit beside the picture.
const NAME_CHARS: usize = 29;
/// Rows of a picture; `summary.json` has the figures of all.
const ROWS_MAX: usize = 40;

/// Bars of one kind: what they are called, their class, and where the figure is.
struct Series {
    word: &'static str,
    class: &'static str,
    path: &'static str,
    of: fn(&CellFigures) -> Option<Figure>,
}

fn client(cell: &CellFigures, of: fn(&ClientFigures) -> Option<Figure>) -> Option<Figure> {
    cell.client.as_ref().and_then(of)
}

const RATES: [Series; 1] = [Series {
    word: "median, with range or interval",
    class: "subject",
    path: "rate_per_s.median",
    of: |cell| cell.rate_per_s,
}];
const CPU: [Series; 2] = [
    Series {
        word: "client (number)",
        class: "subject",
        path: "cpu_subject_ns.median",
        of: |cell| cell.cpu_subject_ns(),
    },
    Series {
        word: "peer",
        class: "generator",
        path: "client.cpu_peer_ns.median",
        of: |cell| client(cell, |c| c.cpu_peer_ns),
    },
];
const SPEEDS: [Series; 1] = [Series {
    word: "median, with range or interval",
    class: "subject",
    path: "client.bytes_per_s.median",
    of: |cell| client(cell, |c| c.bytes_per_s),
}];
const CPU_PER_GIB: [Series; 2] = [
    Series {
        word: "system (number)",
        class: "subject",
        path: "client.cpu_system_ns_per_gib.median",
        of: |cell| client(cell, |c| c.cpu_system_ns_per_gib),
    },
    Series {
        word: "user",
        class: "generator",
        path: "client.cpu_user_ns_per_gib.median",
        of: |cell| client(cell, |c| c.cpu_user_ns_per_gib),
    },
];

/// A unit: how many of the figures' own make one, and how a number of them is shown.
type Unit = (f64, fn(f64) -> String);

const PER_SECOND: Unit = (1.0, numbers::rate);
const MICROSECONDS: Unit = (1e3, numbers::three);
const SECONDS: Unit = (1e9, numbers::three);
const MIB: Unit = (1_048_576.0, numbers::three);

impl Context<'_> {
    /// Rates, and CPU time of both sides, of the clients of one row.
    pub(super) fn pictures_of_requests(
        &self,
        section: &Section<'_>,
        title: &str,
        cells: &[&CellFigures],
    ) -> [Picture; 2] {
        let rates = (&RATES[..], PER_SECOND);
        let cpu = (&CPU[..], MICROSECONDS);
        [
            self.bars(
                &format!("Requests a second: {title}"),
                section,
                cells,
                rates,
            ),
            self.bars(
                &format!("CPU time a request, µs: {title}"),
                section,
                cells,
                cpu,
            ),
        ]
    }

    /// Rates of all connections together, and CPU time, of a section on downloads.
    pub(super) fn pictures_of_downloads(
        &self,
        section: &Section<'_>,
        cells: &[&CellFigures],
    ) -> [Picture; 2] {
        let (speeds, cpu) = ((&SPEEDS[..], MIB), (&CPU_PER_GIB[..], SECONDS));
        [
            self.bars(
                "MiB a second, all connections together",
                section,
                cells,
                speeds,
            ),
            self.bars("CPU time of the client a GiB, s", section, cells, cpu),
        ]
    }

    fn bars(
        &self,
        title: &str,
        section: &Section<'_>,
        cells: &[&CellFigures],
        of: (&[Series], Unit),
    ) -> Picture {
        let cells = &cells[..cells.len().min(ROWS_MAX)];
        let (series, (unit, show)) = of;
        let ends = series.iter().map(|one| {
            let figures = cells.iter().filter_map(|cell| (one.of)(cell));
            let end = |figure: Figure| match series.len() {
                1 => figure.high,
                _ => figure.median,
            };
            highest(&figures.map(|figure| end(figure) / unit).collect::<Vec<_>>())
        });
        let (axis, ticks) = Axis::linear(ends.fold(0.0, f64::max));
        let axis = axis.between(NAMES, WIDTH - VALUES);
        let bottom = TOP + ROW * cells.len() as f64;
        let mut picture = Picture::new(title, WIDTH, bottom + AXIS);
        for tick in ticks {
            let x = axis.x(tick);
            picture.line((x, TOP), (x, bottom), "grid");
            picture.text((x, bottom + 17.0), "middle", "tick", short(show(tick)));
        }
        let mut x = NAMES + 5.0;
        for one in series {
            x = picture.key(x, ("square", one.class), one.word);
        }
        let mut said = Vec::new();
        for (row, cell) in cells.iter().enumerate() {
            let top = TOP + ROW * row as f64;
            let label = section.label_of(self.run, cell);
            said.extend(self.row(&mut picture, &axis, top, (cell, &label), of));
        }
        picture.description = said.join("; ");
        picture
    }

    /// Name, bars and number of one cell; what it shows in words.
    fn row(
        &self,
        picture: &mut Picture,
        axis: &Axis,
        top: f64,
        (cell, label): (&CellFigures, &str),
        (series, (unit, show)): (&[Series], Unit),
    ) -> Option<String> {
        let middle = top + ROW / 2.0;
        let class = match cell.is_reference {
            true => "name reference",
            false => "name",
        };
        let name = shortened(label, NAME_CHARS);
        picture.text((NAMES - 8.0, middle + 4.5), "end", class, name);
        let number = series.iter().find_map(|one| (one.of)(cell));
        let Some(number) = number.map(|figure| show(figure.median / unit)) else {
            let place = (NAMES + 6.0, middle + 4.5);
            picture.text(place, "start", "absent", "not measured".to_owned());
            return None;
        };
        let place = (WIDTH - 2.0, middle + 4.5);
        picture.text(place, "end", "value", number.clone());
        let height = BARS / series.len() as f64;
        for (at, one) in series.iter().enumerate() {
            let Some(figure) = (one.of)(cell) else {
                continue;
            };
            let y = top + (ROW - BARS) / 2.0 + height * at as f64;
            let size = (axis.x(figure.median / unit) - axis.x(0.0), height - 1.0);
            let data = Data {
                cell: String::new(),
                figure: self.places.path(cell, one.path).into(),
                value: Some(figure.median),
            };
            let tip = format!(
                "{}, {}: {}",
                cell.cell,
                one.word,
                show(figure.median / unit)
            );
            picture.bar_of((axis.x(0.0), y), size, one.class, tip, data);
            if figure.median / unit > axis.high {
                let place = (axis.to + 5.0, y + height - 1.0);
                picture.text(place, "middle", "key", "»".to_owned());
            }
            if series.len() == 1 && figure.blocks > 1 {
                let (low, high) = (axis.x(figure.low / unit), axis.x(figure.high / unit));
                picture.line((low, middle), (high, middle), "tail");
            }
        }
        Some(format!("{label} {number}"))
    }
}

/// Where the axis ends for bars of one kind: one value far beyond the others would make them all too small
/// to see.
fn highest(ends: &[f64]) -> f64 {
    let most = ends.iter().copied().fold(0.0, f64::max);
    prony_stats::median(ends).map_or(most, |middle| most.min(middle * CUT))
}
