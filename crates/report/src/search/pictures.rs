//! Latency against offered rate: a curve for each subject, and its knee marked.

use crate::figure::INFINITE;
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::numbers;
use crate::plots::{Axis, Picture, Plane, Tip, series};

const HEIGHT: f64 = 250.0;
/// Rates are drawn up to this multiple of the highest mark: what lies beyond is far too much for all.
const BEYOND: f64 = 1.3;
/// Highest over lowest rate from which the axis of rates is logarithmic.
const LOGARITHMIC: f64 = 8.0;
/// Classes of the lower curves, which belong to those of [`series`].
const FAINT: [&str; 8] = [
    "s0 faint", "s1 faint", "s2 faint", "s3 faint", "s4 faint", "s5 faint", "s6 faint", "s7 faint",
];

/// One subject.
struct Curve {
    name: String,
    points: Vec<CurvePoints>,
    knee: Option<Knee>,
    /// What stands beside its name.
    value: String,
}

/// A rate with the lower and the upper latency there, nanoseconds, each with its figure.
struct CurvePoints {
    rate: f64,
    both: [(f64, Tip); 2],
}

/// The rate that is marked.
struct Knee {
    rate: f64,
    ends: (f64, f64),
    /// Its latency; what never ended is at the upper edge.
    ns: f64,
    tip: Tip,
}

/// What is drawn beside the curves.
struct CurveKey {
    /// Names of the lower and the upper curve.
    names: [String; 2],
    /// The objective's latency and its words.
    objective: Option<(f64, String)>,
    /// What the knee is.
    knee: &'static str,
}

/// Of the cells of a search; `None` where they are of none.
pub fn curve(cells: &[(String, &CellFigures)]) -> Option<Picture> {
    let search = cells.iter().find_map(|(_, cell)| cell.search.as_ref())?;
    // Of an objective about the median the upper curve is the 99th percentile.
    let upper = match search.figure() {
        "p50" => "p99",
        figure => figure,
    };
    let key = CurveKey {
        names: ["p50".to_owned(), upper.to_owned()],
        objective: Some((search.below_ns as f64, search.objective_words())),
        knee: "highest rate that keeps it",
    };
    let curves = cells
        .iter()
        .filter_map(|(name, cell)| searched(&key, name, cell));
    Some(draw(&key, &curves.collect::<Vec<_>>()))
}

fn searched(key: &CurveKey, name: &str, cell: &CellFigures) -> Option<Curve> {
    let search = cell.search.as_ref()?;
    let points = search.curve.iter().enumerate().map(|(at, point)| {
        let upper = match search.figure() {
            "p50" => ("p99_ns", point.p99_ns),
            _ => ("objective_ns", point.objective_ns),
        };
        let both = [("p50_ns", point.p50_ns), upper];
        let both = both.map(|(field, ns)| (format!("search.curve.{at}.{field}"), ns));
        key.points(name, cell, point.rate_per_s, both)
    });
    let least = match cell.verdict {
        Some(prony_findings::Verdict::Bound) => "≥ ",
        _ => "",
    };
    let value = match cell.rate_per_s {
        Some(rate) => format!(
            "{least}{} ({})",
            numbers::rate(rate.median),
            numbers::rates(rate.low, rate.high)
        ),
        None if search.blocks_nowhere > 0 => "none found".to_owned(),
        None => crate::table::absence(cell).to_owned(),
    };
    let ns = search.below_ns as f64;
    let knee = cell.rate_per_s.map(|of| {
        key.knee(
            name,
            cell,
            "rate_per_s.median",
            (of.low, of.median, of.high),
            ns,
        )
    });
    Some(Curve {
        name: name.to_owned(),
        points: points.collect(),
        knee,
        value,
    })
}

/// Of the cells of an open workload with one number of connections, whatever their rates.
pub(super) fn of_open_loops(cells: &[&CellFigures]) -> Picture {
    let key = CurveKey {
        names: ["p50", "p99"].map(str::to_owned),
        objective: None,
        knee: "first rate that is not kept up with",
    };
    let curve = |label: &String| {
        let own = cells.iter().copied().filter(|cell| cell.label == *label);
        let rates = own.filter_map(|cell| Some((cell.asked_per_s?, cell)));
        let mut rates: Vec<(f64, &CellFigures)> = rates.collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        asked(&key, label, &rates)
    };
    let labels = distinct(cells.iter().map(|cell| cell.label.clone()));
    let curves: Vec<Curve> = labels.iter().map(curve).collect();
    draw(&key, &curves)
}

/// The curve of the cells of one subject, whose rates rise, up to the first that it does not keep up with.
fn asked(key: &CurveKey, name: &str, rates: &[(f64, &CellFigures)]) -> Curve {
    let lost = rates.iter().position(|(_, cell)| cell.is_overloaded());
    let point = |(rate, cell): &(f64, &CellFigures)| {
        let [lower, upper] = ["p50", "p99"].map(|of| {
            let figure = cell.latency_ns.get(of)?;
            Some((format!("latency_ns.{of}.median"), figure.median))
        });
        Some(key.points(name, cell, *rate, [lower?, upper?]))
    };
    let kept = rates[..lost.unwrap_or(rates.len())].iter();
    let points: Vec<CurvePoints> = kept.filter_map(point).collect();
    let lost = lost.map(|at| rates[at]);
    let value = match (lost, points.last()) {
        (Some((rate, _)), _) => format!("lost from {}", numbers::rate(rate)),
        (None, Some(last)) => format!("kept up to {}", numbers::rate(last.rate)),
        (None, None) => "not measured".to_owned(),
    };
    let knee =
        lost.map(|(rate, cell)| key.knee(name, cell, "asked_per_s", (rate, rate, rate), INFINITE));
    Curve {
        name: name.to_owned(),
        points,
        knee,
        value,
    }
}

impl CurveKey {
    /// The lower and the upper latency of a cell at a rate, each with its path.
    fn points(
        &self,
        name: &str,
        cell: &CellFigures,
        rate: f64,
        both: [(String, f64); 2],
    ) -> CurvePoints {
        let mut names = self.names.iter();
        let both = both.map(|(path, ns)| {
            let figure = names.next().map_or("", String::as_str);
            let words = format!(
                "{name}: {figure} {} at {}/s",
                numbers::time(ns),
                numbers::rate(rate)
            );
            (ns, Tip::of(cell, path, ns, words))
        });
        CurvePoints { rate, both }
    }

    fn knee(
        &self,
        name: &str,
        cell: &CellFigures,
        path: &str,
        (low, rate, high): (f64, f64, f64),
        ns: f64,
    ) -> Knee {
        let words = format!("{name}: {} {}/s", self.knee, numbers::rate(rate));
        Knee {
            rate,
            ends: (low, high),
            ns,
            tip: Tip::of(cell, path, rate, words),
        }
    }
}

fn draw(key: &CurveKey, curves: &[Curve]) -> Picture {
    let x = rates(curves).titled("requests to start a second");
    let points = curves.iter().flat_map(|curve| &curve.points);
    let shown = points.filter(|point| point.rate <= x.high);
    let latencies = shown.flat_map(|point| point.both.iter().map(|(ns, _)| *ns));
    let objective = key.objective.iter().map(|(ns, _)| *ns);
    let y = Axis::logarithmic(latencies.chain(objective), numbers::time);
    let title = "Latency against offered rate (latency logarithmic)";
    let mut plane = Plane::new(title, HEIGHT, x, y);
    let [lower, upper] = &key.names;
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
        let shown = curve
            .points
            .iter()
            .filter(|point| point.rate <= plane.x.high);
        let shown: Vec<&CurvePoints> = shown.collect();
        for (side, class) in [FAINT[at % FAINT.len()], series(at)]
            .into_iter()
            .enumerate()
        {
            let line = shown
                .iter()
                .map(|point| Some((point.rate, point.both[side].0)));
            plane.curve(&line.collect::<Vec<_>>(), class);
            for point in &shown {
                let (ns, tip) = point.both[side].clone();
                plane.dot((point.rate, ns), "bead", series(at), tip);
            }
        }
        if let Some(knee) = &curve.knee {
            plane.line((knee.ends.0, knee.ns), (knee.ends.1, knee.ns), series(at));
            plane.dot(
                (knee.rate, knee.ns),
                "diamond",
                series(at),
                knee.tip.clone(),
            );
        }
        plane.legend(series(at), &curve.name, curve.value.clone());
    }
    plane.done()
}

/// The axis of rates.
fn rates(curves: &[Curve]) -> Axis {
    let rates = |curve: &Curve| -> Vec<f64> { curve.points.iter().map(|of| of.rate).collect() };
    let all: Vec<f64> = curves.iter().flat_map(rates).collect();
    let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    let knees = || curves.iter().filter_map(|curve| curve.knee.as_ref());
    let high = match knees().map(|knee| knee.ends.1).reduce(f64::max) {
        Some(knee) => {
            // What has no mark is drawn as far as it goes.
            let bare = curves.iter().filter(|curve| curve.knee.is_none());
            let bare: Vec<f64> = bare.flat_map(rates).collect();
            most(&all).min(knee * BEYOND).max(knee).max(most(&bare))
        }
        None => most(&all),
    };
    let all = all.into_iter().chain(knees().map(|knee| knee.ends.0));
    let low = all.fold(high, f64::min);
    match high / low > LOGARITHMIC {
        true => Axis::logarithmic([low, high].into_iter(), numbers::rate),
        false => Axis::linear((low, high), false, numbers::rate),
    }
}
