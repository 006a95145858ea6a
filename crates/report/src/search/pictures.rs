//! Latency against offered rate: a curve for each subject, and its knee marked.

use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::numbers::{self, RATE, TIME};
use crate::plots::{Axis, Picture, Plane, Tip, series};
use crate::table::absence;
use prony_findings::Verdict;

const HEIGHT: f64 = 250.0;
/// Rates are drawn up to this multiple of where the farthest curve ends: what lies beyond is far too much for all.
const BEYOND: f64 = 1.3;
/// Highest over lowest rate from which the axis of rates is logarithmic.
const LOGARITHMIC: f64 = 8.0;
/// One subject.
struct Curve<'a> {
    name: &'a str,
    /// Rates rise.
    points: Vec<AtRate<'a>>,
    knee: Option<Knee<'a>>,
    /// What stands beside its name.
    value: String,
}

/// The lower and the upper latency at a rate, nanoseconds, each with its path within the cell.
struct AtRate<'a> {
    cell: &'a CellFigures,
    rate: f64,
    both: [(String, f64); 2],
}

/// The rate that is marked.
struct Knee<'a> {
    cell: &'a CellFigures,
    /// Path of the rate within the cell.
    path: &'static str,
    rate: f64,
    ends: (f64, f64),
    /// Its latency; what never ended is at the upper edge.
    ns: f64,
}

/// What is drawn beside the curves.
struct CurveKey<'a> {
    /// Names of the lower and the upper curve.
    names: [&'a str; 2],
    /// The objective's latency and its words.
    objective: Option<(f64, String)>,
    /// What the knee is.
    knee: &'static str,
}

/// Of the cells of a search; `None` where they are of none.
pub fn curve(cells: &[(String, &CellFigures)]) -> Option<Picture> {
    let search = cells.iter().find_map(|(_, cell)| cell.search.as_ref())?;
    let key = CurveKey {
        // Of an objective about the median the upper curve is the 99th percentile.
        names: match search.figure() {
            "p50" => ["p50", "p99"],
            figure => ["p50", figure],
        },
        objective: Some((search.below_ns as f64, search.objective_words())),
        knee: "highest rate that keeps it",
    };
    let curves = cells.iter().filter_map(|(name, cell)| searched(name, cell));
    Some(draw(&key, &curves.collect::<Vec<_>>()))
}

fn searched<'a>(name: &'a str, cell: &'a CellFigures) -> Option<Curve<'a>> {
    let search = cell.search.as_ref()?;
    let points = search.curve.iter().enumerate().map(|(at, point)| {
        let upper = match search.figure() {
            "p50" => ("p99_ns", point.p99_ns),
            _ => ("objective_ns", point.objective_ns),
        };
        let both = [("p50_ns", point.p50_ns), upper];
        AtRate {
            cell,
            rate: point.rate_per_s,
            both: both.map(|(field, ns)| (format!("search.curve.{at}.{field}"), ns)),
        }
    });
    let least = match cell.verdict {
        Some(Verdict::Bound) => "≥ ",
        _ => "",
    };
    let value = match cell.rate_per_s {
        Some(of) => {
            let ends = RATE.ends(of.low, of.high);
            format!("{least}{} ({ends})", numbers::rate(of.median))
        }
        None if search.blocks_nowhere > 0 => "none found".to_owned(),
        None => absence(cell).to_owned(),
    };
    let knee = cell.rate_per_s.map(|of| Knee {
        cell,
        path: "rate_per_s",
        rate: of.median,
        ends: (of.low, of.high),
        ns: search.below_ns as f64,
    });
    Some(Curve {
        name,
        points: points.collect(),
        knee,
        value,
    })
}

/// Of the cells of an open workload with one number of connections, whatever their rates.
pub(super) fn of_open_loops(cells: &[&CellFigures]) -> Picture {
    let key = CurveKey {
        names: ["p50", "p99"],
        objective: None,
        knee: "first rate that is not kept up with",
    };
    let names = distinct(cells.iter().map(|cell| &*cell.label)).into_iter();
    let curves: Vec<Curve<'_>> = names.map(|name| asked(name, cells)).collect();
    draw(&key, &curves)
}

/// The curve of a subject up to the first rate that it does not keep up with.
fn asked<'a>(name: &'a str, cells: &[&'a CellFigures]) -> Curve<'a> {
    let own = cells.iter().filter(|cell| cell.label == name);
    let mut own: Vec<(f64, &CellFigures)> = own
        .filter_map(|cell| Some((cell.asked_per_s?, *cell)))
        .collect();
    own.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lost = own.iter().position(|(_, cell)| cell.is_overloaded());
    let knee = lost.map(|at| Knee {
        cell: own[at].1,
        path: "asked_per_s",
        rate: own[at].0,
        ends: (own[at].0, own[at].0),
        ns: INFINITE,
    });
    own.truncate(lost.unwrap_or(own.len()));
    let point = |(rate, cell): (f64, &'a CellFigures)| {
        let [lower, upper] = ["p50", "p99"].map(|of| {
            let figure = cell.latency_ns.get(of)?;
            Some((format!("latency_ns.{of}.median"), figure.median))
        });
        let both = [lower?, upper?];
        Some(AtRate { cell, rate, both })
    };
    let points: Vec<AtRate<'_>> = own.into_iter().filter_map(point).collect();
    let value = match (&knee, points.last()) {
        (Some(lost), _) => format!("lost from {}", numbers::rate(lost.rate)),
        (None, Some(last)) => format!("kept up to {}", numbers::rate(last.rate)),
        (None, None) => "not measured".to_owned(),
    };
    Curve {
        name,
        points,
        knee,
        value,
    }
}

fn draw(key: &CurveKey<'_>, curves: &[Curve<'_>]) -> Picture {
    let x = rates(curves).titled("requests to start a second");
    let points = curves.iter().flat_map(|curve| &curve.points);
    let shown = points.filter(|point| point.rate <= x.high);
    let latencies = shown.flat_map(|point| point.both.iter().map(|(_, ns)| *ns));
    let objective = key.objective.iter().map(|(ns, _)| *ns);
    let y = Axis::logarithmic(latencies.chain(objective), TIME);
    let title = "Latency against offered rate (latency logarithmic)";
    let mut plane = Plane::new(title, HEIGHT, x, y);
    let [lower, upper] = key.names;
    plane.key("line", "s7", upper);
    plane.key("line", "s7 faint", lower);
    if let Some((ns, objective)) = &key.objective {
        let (from, to) = (plane.x.low, plane.x.high);
        plane.line((from, *ns), (to, *ns), "mark");
        plane.key("line", "mark", objective);
        plane.describe(format!("{}, {objective}", key.knee));
    }
    plane.key("diamond", "s7", key.knee);
    for (at, curve) in curves.iter().enumerate() {
        line_of(&mut plane, key, at, curve);
    }
    plane.done()
}

fn line_of(plane: &mut Plane, key: &CurveKey<'_>, at: usize, curve: &Curve<'_>) {
    let (name, class) = (curve.name, series(at));
    let points = curve.points.iter();
    let shown: Vec<&AtRate<'_>> = points.filter(|point| point.rate <= plane.x.high).collect();
    for (side, line) in [format!("{class} faint"), class.to_owned()]
        .iter()
        .enumerate()
    {
        let places = shown.iter().map(|of| Some((of.rate, of.both[side].1)));
        plane.curve(&places.collect::<Vec<_>>(), line);
        for AtRate { cell, rate, both } in &shown {
            let (path, ns) = both[side].clone();
            let (time, per_s) = (numbers::time(ns), numbers::rate(*rate));
            let words = format!("{name}: {} {time} at {per_s}/s", key.names[side]);
            plane.dot(
                (*rate, ns),
                "bead",
                class,
                Tip::figure(cell, path, ns, words),
            );
        }
    }
    if let Some(knee) = &curve.knee {
        let (low, high) = knee.ends;
        let words = format!("{name}: {} {}/s", key.knee, numbers::rate(knee.rate));
        let tip = Tip::figure(knee.cell, knee.cell.path(knee.path), knee.rate, words);
        plane.line((low, knee.ns), (high, knee.ns), class);
        plane.dot((knee.rate, knee.ns), "diamond", class, tip);
    }
    plane.legend(class, name, curve.value.clone());
}

/// The axis of rates.
fn rates(curves: &[Curve<'_>]) -> Axis {
    let points = curves.iter().flat_map(|curve| &curve.points);
    let knees = curves.iter().filter_map(|curve| curve.knee.as_ref());
    let all = points.map(|point| point.rate);
    let all: Vec<f64> = all.chain(knees.map(|knee| knee.ends.0)).collect();
    // A curve without a knee is drawn as far as it goes.
    let end = |curve: &Curve<'_>| match &curve.knee {
        Some(knee) => knee.ends.1,
        None => curve.points.last().map_or(0.0, |last| last.rate),
    };
    let end = curves.iter().map(end).fold(0.0, f64::max);
    let high = all.iter().copied().fold(0.0, f64::max);
    let high = high.min(end * BEYOND).max(end);
    let low = all.into_iter().fold(high, f64::min);
    match high / low > LOGARITHMIC {
        true => Axis::logarithmic([low, high].into_iter(), RATE),
        false => Axis::linear((low, high), RATE),
    }
}
