//! Pictures of clients: bars in the order of the plan, one picture of rates and one of CPU time for each
//! row of a section on requests, and for a section on downloads.

use super::Context;
use super::figures::ClientFigures;
use super::sections::Section;
use crate::figures::{CellFigures, Figure};
use crate::numbers;
use crate::plots::{Axis, Chart, Data, Layout, Picture};

const CLIENTS: Layout = Layout {
    width: 560.0,
    names: 215.0,
    values: 66.0,
    row: 26.0,
    name_chars: 26,
};
/// Height of the bars of a row together.
const BARS: f64 = 16.0;
/// Bars that are longer than so many times the middle one are cut, and marked.
const CUT: f64 = 5.0;
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
        let axis = Axis::linear(ends.fold(0.0, f64::max));
        let mut chart = Chart::new(&CLIENTS, (title, cells.len()), axis, show);
        let mut x = chart.key();
        for one in series {
            x = chart.picture.key(x, ("square", one.class), one.word);
        }
        for (row, cell) in cells.iter().enumerate() {
            let label = section.label_of(self.run, cell);
            self.row(&mut chart, row, (cell, &label), of);
        }
        chart.done()
    }

    /// Name, bars and number of one cell.
    fn row(
        &self,
        chart: &mut Chart,
        row: usize,
        (cell, label): (&CellFigures, &str),
        (series, (unit, show)): (&[Series], Unit),
    ) {
        chart.name(row, label, cell.is_reference);
        let number = series.iter().find_map(|one| (one.of)(cell));
        let Some(number) = number.map(|figure| show(figure.median / unit)) else {
            chart.absent(row, "not measured");
            return;
        };
        chart.value(row, &number);
        let height = BARS / series.len() as f64;
        for (at, one) in series.iter().enumerate() {
            let Some(figure) = (one.of)(cell) else {
                continue;
            };
            let value = figure.median / unit;
            let y = chart.middle(row) - BARS / 2.0 + height * at as f64;
            let data = Data {
                cell: String::new(),
                figure: self.places.path(cell, one.path).into(),
                value: Some(figure.median),
            };
            let tip = format!("{}, {}: {}", cell.cell, one.word, show(value));
            chart.bar((value, one.class), (y, height - 1.0), tip, data);
            if value > chart.axis.high {
                let place = (chart.axis.to + 5.0, y + height - 1.0);
                chart.picture.text(place, "middle", "key", "»".to_owned());
            }
            if series.len() == 1 && figure.blocks > 1 {
                let middle = chart.middle(row);
                let ends = [figure.low, figure.high].map(|end| chart.axis.x(end / unit));
                chart
                    .picture
                    .line((ends[0], middle), (ends[1], middle), "tail");
            }
        }
        chart.say(format!("{label} {number}"));
    }
}

/// Where the axis ends for bars of one kind: one value far beyond the others would make them all too small
/// to see.
fn highest(ends: &[f64]) -> f64 {
    let most = ends.iter().copied().fold(0.0, f64::max);
    prony_stats::median(ends).map_or(most, |middle| most.min(middle * CUT))
}
