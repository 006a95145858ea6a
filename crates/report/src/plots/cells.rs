//! Pictures of what cells of one workload have beside their rate: latency and CPU time, in the order of their table.

use prony_record::DOWNLOADS;

use super::rows::{ChartMark, ChartRow, chart};
use super::{Axis, Picture, Tip};
use crate::figures::CellFigures;
use crate::numbers::{FigureUnit, MICROS, SECONDS, TIME};
use crate::table::absence;

/// A picture with several figures of each cell.
struct CellPicture {
    title: &'static str,
    unit: FigureUnit,
    /// Which of the figures is a number, too.
    number: usize,
    /// What each is called, and its path within the cell.
    figures: &'static [(&'static str, &'static str)],
    /// The shape and the class of each.
    looks: &'static [(&'static str, &'static str)],
}

const LATENCY: CellPicture = CellPicture {
    title: "Latency (logarithmic)",
    unit: TIME,
    number: 2,
    figures: &[
        ("p50", "latency_ns.p50"),
        ("p90", "latency_ns.p90"),
        ("p99", "latency_ns.p99"),
        ("p99.9", "latency_ns.p99_9"),
        ("max", "latency_max_ns"),
    ],
    looks: &[
        ("circle", "fill"),
        ("square", "mid"),
        ("diamond", "open"),
        ("triangle", "open"),
        ("tick", "tail"),
    ],
};
const CPU: CellPicture = CellPicture {
    title: "CPU time a request, µs",
    unit: MICROS,
    number: 0,
    figures: &[
        ("subject", "cpu_subject_ns"),
        ("generator", "cpu_generator_ns"),
    ],
    looks: &[("bar", "subject"), ("bar", "generator")],
};
const CPU_OF_REQUESTS: CellPicture = CellPicture {
    figures: &[("client", "cpu_subject_ns"), ("peer", "client.cpu_peer_ns")],
    ..CPU
};
const CPU_OF_DOWNLOADS: CellPicture = CellPicture {
    title: "CPU time of the client a GiB, s",
    unit: SECONDS,
    figures: &[
        ("system", "client.cpu_system_ns_per_gib"),
        ("user", "client.cpu_user_ns_per_gib"),
    ],
    ..CPU
};
/// Bars that are longer than so many times the middle one are cut, and marked: they would make all others too small to see.
const CUT: f64 = 5.0;

/// Latencies of cells with their names; what never ended is at the edge.
pub fn latency(cells: &[(String, &CellFigures)]) -> Picture {
    let row = |(name, cell): &(String, &CellFigures)| {
        let mut row = LATENCY.row(name, cell);
        // One that is overloaded has no latency of its own: it grows with the run.
        if cell.is_overloaded() {
            row.marks.clear();
            "did not keep up".clone_into(&mut row.value);
        }
        let lowest = row.marks.last().map(|mark| mark.value);
        if let Some(highest) = row.marks.first_mut() {
            highest.ends = lowest.map(|lowest| (lowest, highest.value));
        }
        row
    };
    let rows: Vec<ChartRow> = cells.iter().map(row).collect();
    let marks = rows.iter().flat_map(|row| &row.marks);
    let axis = Axis::logarithmic(marks.map(|mark| mark.value), TIME);
    LATENCY.picture(axis, rows)
}

/// CPU time of cells with their names.
pub fn cpu(cells: &[(String, &CellFigures)]) -> Picture {
    let client = cells.iter().find_map(|(_, cell)| cell.client.as_ref());
    let of = match client.map(|client| client.work == DOWNLOADS) {
        None => CPU,
        Some(false) => CPU_OF_REQUESTS,
        Some(true) => CPU_OF_DOWNLOADS,
    };
    let ends = of.figures.iter().map(|(_, path)| {
        let all = cells.iter().filter_map(|(_, cell)| cell.number(path));
        let all: Vec<f64> = all.collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        prony_stats::median(&all).map_or(most, |middle| most.min(middle * CUT))
    });
    let axis = Axis::from_zero(ends, of.unit);
    let rows = cells.iter().map(|(name, cell)| of.row(name, cell));
    of.picture(axis, rows.collect())
}

impl CellPicture {
    /// The figures of a cell, the first on top.
    fn row(&self, name: &str, cell: &CellFigures) -> ChartRow {
        let figures = self.figures.iter().zip(self.looks).rev();
        let marks = figures.filter_map(|((word, path), &(shape, class))| {
            let value = cell.number(path)?;
            let words = format!("{name}: {word} {}", self.unit.text(value));
            Some(ChartMark {
                shape,
                class,
                value,
                ends: None,
                tip: Tip::figure(cell, cell.path(path), value, words),
            })
        });
        let number = cell.number(self.figures[self.number].1);
        ChartRow {
            name: name.to_owned(),
            is_baseline: cell.is_reference,
            value: match number {
                Some(number) => self.unit.text(number),
                None => absence(cell).to_owned(),
            },
            marks: marks.collect(),
        }
    }

    fn picture(&self, axis: Axis, rows: Vec<ChartRow>) -> Picture {
        let mut plane = chart(self.title, axis, rows);
        let figures = self.figures.iter().zip(self.looks).enumerate();
        for (at, ((word, _), (shape, class))) in figures {
            let number = if at == self.number { " (number)" } else { "" };
            plane.key(shape, class, &format!("{word}{number}"));
        }
        plane.done()
    }
}
