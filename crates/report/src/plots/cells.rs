//! Pictures of what cells of one workload have beside their rate: latency and CPU time, in the order of their table.

use super::rows::{ChartMark, ChartRow, chart};
use super::{Axis, Picture, Tip};
use crate::clients::figures::ClientFigures;
use crate::figure::INFINITE;
use crate::figures::{CellFigures, Figure};
use crate::numbers;
use crate::table::absence;
use prony_record::DOWNLOADS;

/// Latencies, with the shapes and classes that stand for them.
const LATENCIES: [(&str, &str, &str); 5] = [
    ("p50", "circle", "fill"),
    ("p90", "square", "mid"),
    ("p99", "diamond", "open"),
    ("p99_9", "triangle", "open"),
    ("max", "tick", "tail"),
];

/// Latencies of cells with their names.
pub fn latency<'a>(cells: impl IntoIterator<Item = (String, &'a CellFigures)>) -> Picture {
    let rows: Vec<ChartRow> = cells.into_iter().map(latencies).collect();
    let values = rows.iter().flat_map(|row| &row.marks);
    let axis = Axis::logarithmic(values.map(|mark| mark.value), numbers::time);
    let title = "Latency (logarithmic; p99 as a number)";
    let mut plane = chart(title, axis, rows);
    for (key, shape, class) in LATENCIES {
        plane.key(shape, class, &key.replace('_', "."));
    }
    plane.done()
}

fn latencies((name, cell): (String, &CellFigures)) -> ChartRow {
    let mark = |(key, shape, class): (&str, &'static str, &'static str)| {
        let (path, value) = match key {
            "max" => (
                "latency_max_ns".to_owned(),
                cell.latency_max_ns.map(|ns| ns as f64),
            ),
            key => {
                let ns = cell.latency_ns.get(key).map(|of| of.median);
                (
                    format!("latency_ns.{key}.median"),
                    ns.filter(|ns| *ns < INFINITE),
                )
            }
        };
        let value = value?;
        let words = format!("{name}: {} {}", key.replace('_', "."), numbers::time(value));
        Some(ChartMark {
            shape,
            class,
            value,
            ends: None,
            tip: Tip::of(cell, path, value, words),
        })
    };
    // One that is overloaded has no latency of its own: it grows with the run.
    let own = LATENCIES
        .into_iter()
        .rev()
        .filter(|_| !cell.is_overloaded());
    let mut marks: Vec<ChartMark> = own.filter_map(mark).collect();
    let lowest = marks.last().map(|mark| mark.value);
    if let Some(highest) = marks.first_mut() {
        highest.ends = lowest.map(|lowest| (lowest, highest.value));
    }
    let p99 = cell.latency_ns.get("p99").filter(|_| !marks.is_empty());
    let absent = match cell.is_overloaded() {
        true => "did not keep up",
        false => absence(cell),
    };
    ChartRow {
        is_baseline: cell.is_reference,
        value: p99.map_or_else(|| absent.to_owned(), |of| numbers::time(of.median)),
        marks,
        name,
    }
}

/// CPU time of two sides.
struct CpuSides {
    title: &'static str,
    show: fn(f64) -> String,
    /// The side that stands as a number, and the other one.
    sides: [CpuSide; 2],
}

struct CpuSide {
    word: &'static str,
    path: &'static str,
    of: fn(&CellFigures) -> Option<Figure>,
}

const CLASSES: [&str; 2] = ["subject", "generator"];

const SERVERS: CpuSides = CpuSides {
    title: "CPU time a request, µs",
    show: numbers::micros,
    sides: [
        CpuSide {
            word: "subject",
            path: "cpu_subject_ns.median",
            of: CellFigures::cpu_subject_ns,
        },
        CpuSide {
            word: "generator",
            path: "cpu_generator_ns.median",
            of: CellFigures::cpu_generator_ns,
        },
    ],
};
const CLIENTS: CpuSides = CpuSides {
    sides: [
        CpuSide {
            word: "client",
            ..SERVERS.sides[0]
        },
        CpuSide {
            word: "peer",
            path: "client.cpu_peer_ns.median",
            of: |cell| client(cell, |of| of.cpu_peer_ns),
        },
    ],
    ..SERVERS
};
const OF_DOWNLOADS: CpuSides = CpuSides {
    title: "CPU time of the client a GiB, s",
    show: |ns| numbers::three(ns / 1e9),
    sides: [
        CpuSide {
            word: "system",
            path: "client.cpu_system_ns_per_gib.median",
            of: |cell| client(cell, |of| of.cpu_system_ns_per_gib),
        },
        CpuSide {
            word: "user",
            path: "client.cpu_user_ns_per_gib.median",
            of: |cell| client(cell, |of| of.cpu_user_ns_per_gib),
        },
    ],
};
/// Bars that are longer than so many times the middle one are cut, and marked: they would make all others too small to see.
const CUT: f64 = 5.0;

fn client(cell: &CellFigures, of: fn(&ClientFigures) -> Option<Figure>) -> Option<Figure> {
    cell.client.as_ref().and_then(of)
}

/// CPU time of cells with their names.
pub fn cpu<'a>(cells: impl IntoIterator<Item = (String, &'a CellFigures)>) -> Picture {
    let cells: Vec<(String, &CellFigures)> = cells.into_iter().collect();
    let client = cells.iter().find_map(|(_, cell)| cell.client.as_ref());
    let of = match client.map(|client| client.work == DOWNLOADS) {
        None => SERVERS,
        Some(false) => CLIENTS,
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
    plane.key("square", CLASSES[0], &format!("{} (number)", first.word));
    plane.key("square", CLASSES[1], other.word);
    plane.done()
}

fn row(of: &CpuSides, name: String, cell: &CellFigures) -> ChartRow {
    let mark = |(side, class): (&CpuSide, &'static str)| {
        let value = (side.of)(cell)?.median;
        let words = format!("{name}: {} {}", side.word, (of.show)(value));
        Some(ChartMark {
            shape: "bar",
            class,
            value,
            ends: None,
            tip: Tip::of(cell, side.path, value, words),
        })
    };
    let first = (of.sides[0].of)(cell).map(|figure| (of.show)(figure.median));
    ChartRow {
        is_baseline: cell.is_reference,
        value: first.unwrap_or_else(|| absence(cell).to_owned()),
        marks: of.sides.iter().zip(CLASSES).filter_map(mark).collect(),
        name,
    }
}
