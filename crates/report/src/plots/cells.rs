//! Pictures of what cells of one workload have beside their rate: latency and CPU time, in the order of their table.

use super::rows::{ChartMark, ChartRow, chart};
use super::{Axis, Picture, Tip};
use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::numbers;
use crate::table::absence;
use prony_record::DOWNLOADS;

/// Latencies, with the shapes and classes that stand for them.
const LATENCIES: [(Metric, &str, &str); 5] = [
    (Metric::P50, "circle", "fill"),
    (Metric::P90, "square", "mid"),
    (Metric::P99, "diamond", "open"),
    (Metric::P99_9, "triangle", "open"),
    (Metric::MAX, "tick", "tail"),
];

/// Latencies of cells with their names; what never ended is at the edge.
pub fn latency<'a>(cells: impl IntoIterator<Item = (String, &'a CellFigures)>) -> Picture {
    let rows: Vec<ChartRow> = cells.into_iter().map(latencies).collect();
    let marks = rows.iter().flat_map(|row| &row.marks);
    let axis = Axis::logarithmic(marks.map(|mark| mark.value), numbers::time);
    let title = "Latency (logarithmic; p99 as a number)";
    let mut plane = chart(title, axis, rows);
    for (metric, shape, class) in LATENCIES {
        plane.key(shape, class, metric.title);
    }
    plane.done()
}

fn latencies((name, cell): (String, &CellFigures)) -> ChartRow {
    let mark = |(metric, shape, class): (Metric, &'static str, &'static str)| {
        let value = (metric.value)(cell)?;
        let words = format!("{name}: {} {}", metric.title, numbers::time(value));
        Some(ChartMark {
            shape,
            class,
            value,
            ends: None,
            tip: Tip::of(cell, metric.path, value, words),
        })
    };
    // One that is overloaded has no latency of its own: it grows with the run.
    let own = LATENCIES.into_iter().filter(|_| !cell.is_overloaded());
    let mut marks: Vec<ChartMark> = own.rev().filter_map(mark).collect();
    let lowest = marks.last().map(|mark| mark.value);
    if let Some(highest) = marks.first_mut() {
        highest.ends = lowest.map(|lowest| (lowest, highest.value));
    }
    let value = match (Metric::P99.value)(cell) {
        _ if cell.is_overloaded() => "did not keep up".to_owned(),
        Some(p99) => numbers::time(p99),
        None => absence(cell).to_owned(),
    };
    ChartRow {
        is_baseline: cell.is_reference,
        value,
        marks,
        name,
    }
}

/// CPU time of two sides, of which the first stands as a number.
struct CpuSides {
    title: &'static str,
    show: fn(f64) -> String,
    sides: [CpuSide; 2],
}

/// What a side is called, its path within the cell, and its figure.
type CpuSide = (
    &'static str,
    &'static str,
    fn(&CellFigures) -> Option<Figure>,
);

const CLASSES: [&str; 2] = ["subject", "generator"];

const OF_SERVERS: CpuSides = CpuSides {
    title: "CPU time a request, µs",
    show: numbers::micros,
    sides: [
        ("subject", "cpu_subject_ns.median", |cell| {
            cell.cpu_subject_ns()
        }),
        ("generator", "cpu_generator_ns.median", |cell| {
            cell.cpu_generator_ns()
        }),
    ],
};
const OF_REQUESTS: CpuSides = CpuSides {
    sides: [
        ("client", "cpu_subject_ns.median", |cell| {
            cell.cpu_subject_ns()
        }),
        ("peer", "client.cpu_peer_ns.median", |cell| {
            cell.client.as_ref()?.cpu_peer_ns
        }),
    ],
    ..OF_SERVERS
};
const OF_DOWNLOADS: CpuSides = CpuSides {
    title: "CPU time of the client a GiB, s",
    show: |ns| numbers::three(ns / 1e9),
    sides: [
        ("system", "client.cpu_system_ns_per_gib.median", |cell| {
            cell.client.as_ref()?.cpu_system_ns_per_gib
        }),
        ("user", "client.cpu_user_ns_per_gib.median", |cell| {
            cell.client.as_ref()?.cpu_user_ns_per_gib
        }),
    ],
};
/// Bars that are longer than so many times the middle one are cut, and marked: they would make all others too small to see.
const CUT: f64 = 5.0;

/// CPU time of cells with their names.
pub fn cpu<'a>(cells: impl IntoIterator<Item = (String, &'a CellFigures)>) -> Picture {
    let cells: Vec<(String, &CellFigures)> = cells.into_iter().collect();
    let client = cells.iter().find_map(|(_, cell)| cell.client.as_ref());
    let of = match client.map(|client| client.work == DOWNLOADS) {
        None => OF_SERVERS,
        Some(false) => OF_REQUESTS,
        Some(true) => OF_DOWNLOADS,
    };
    let rows: Vec<ChartRow> = cells
        .into_iter()
        .map(|(name, cell)| row(&of, name, cell))
        .collect();
    let ends = CLASSES.into_iter().map(|class| {
        let all = rows.iter().flat_map(|row| &row.marks);
        let all = all.filter(|mark| mark.class == class);
        let all: Vec<f64> = all.map(|mark| mark.value).collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        prony_stats::median(&all).map_or(most, |middle| most.min(middle * CUT))
    });
    let axis = Axis::from_zero(ends, of.show);
    let mut plane = chart(of.title, axis, rows);
    let [first, other] = of.sides;
    plane.key("square", CLASSES[0], &format!("{} (number)", first.0));
    plane.key("square", CLASSES[1], other.0);
    plane.done()
}

fn row(of: &CpuSides, name: String, cell: &CellFigures) -> ChartRow {
    let mark = |(&(side, path, figure), class): (&CpuSide, &'static str)| {
        let value = figure(cell)?.median;
        let words = format!("{name}: {side} {}", (of.show)(value));
        Some(ChartMark {
            shape: "bar",
            class,
            value,
            ends: None,
            tip: Tip::of(cell, path, value, words),
        })
    };
    let first = (of.sides[0].2)(cell).map(|figure| (of.show)(figure.median));
    ChartRow {
        is_baseline: cell.is_reference,
        value: first.unwrap_or_else(|| absence(cell).to_owned()),
        marks: of.sides.iter().zip(CLASSES).filter_map(mark).collect(),
        name,
    }
}
