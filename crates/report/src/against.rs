//! Sentences on how servers compare with the reference.

use std::collections::BTreeMap;

use prony_findings::Code;

use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::numbers;
use crate::ratio::{self, RatioFigure};
use crate::words::listed;

/// Cells in a reservation before it gives their number instead: the tables mark each.
pub const CELLS_MAX: usize = 3;

/// What is named as invalid at the end of a sentence; nothing where none is.
pub fn left_out(invalid: &[&CellFigures]) -> String {
    if invalid.is_empty() {
        return String::new();
    }
    let named: Vec<String> = invalid.iter().map(|c| why_invalid(c, &c.label)).collect();
    format!(" Left out, as invalid: {}.", listed(&named))
}

/// `axum (P006, requests failed: 48 of 3381)`.
fn why_invalid(cell: &CellFigures, name: &str) -> String {
    let failed = match cell.invalid_by.contains(&Code::P006) {
        true => format!(
            ": {} of {}",
            cell.errors,
            cell.errors.saturating_add(cell.completed)
        ),
        false => String::new(),
    };
    format!("{name} ({}{failed})", titles(&cell.invalid_by))
}

pub fn titles(codes: &[Code]) -> String {
    let title = |code: &Code| format!("{}, {}", code.as_str(), code.title());
    codes.iter().map(title).collect::<Vec<_>>().join("; ")
}

/// How the rates of `cells` compare with that of the reference among them.
pub fn against_reference(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let reference = cells.iter().find(|c| c.is_reference)?;
    let mut told: BTreeMap<Told, Vec<(f64, String)>> = BTreeMap::new();
    for cell in cells {
        // The copy of the reference has a sentence of its own.
        let Some(ratio) = cell.ratio.as_ref().filter(|_| !cell.is_copy) else {
            continue;
        };
        let Some(what) = Told::of(ratio) else {
            continue;
        };
        let name = match what {
            Told::Faster | Told::Slower => {
                format!("{} {}", cell.label, numbers::change_of(ratio))
            }
            Told::NoDifference => match cpu(cell) {
                Some(cpu) => format!("{} (CPU a request {cpu})", cell.label),
                None => cell.label.clone(),
            },
            Told::NotByBound | Told::NotByCopy | Told::NotByOthers => cell.label.clone(),
        };
        told.entry(what).or_default().push((ratio.ratio, name));
    }
    if told.is_empty() {
        return None;
    }
    let mut parts: Vec<String> = lead(reference, cells).into_iter().collect();
    for (what, names) in &mut told {
        // The highest first.
        names.sort_by(|a, b| b.0.total_cmp(&a.0));
        let names: Vec<String> = names.iter().map(|(_, name)| name.clone()).collect();
        parts.push(format!("{} {}", what.words(), listed(&names)));
    }
    Some(format!(
        "{place}, against the {}/s of {}: {}.",
        numbers::rate(reference.rate_per_s?.median),
        reference.label,
        parts.join("; "),
    ))
}

/// Who is the fastest, where the intervals say it; nothing where no ratio may be told. One of which nothing may be told
/// (its rate, or that of the reference, is a bound) may be the fastest, too.
fn lead(reference: &CellFigures, cells: &[&CellFigures]) -> Option<String> {
    let others = cells.iter().filter(|c| !c.is_copy);
    let all = others.filter_map(|c| Some((*c, c.ratio.as_ref()?)));
    let (told, untold): (Vec<_>, Vec<_>) = all
        .filter(|(_, ratio)| ratio.is_interval())
        .partition(|(_, ratio)| ratio.unclaimed.is_empty());
    if told.is_empty() {
        return None;
    }
    let untold = untold.into_iter().map(|(c, _)| c.label.clone());
    let faster = told
        .iter()
        .filter(|(_, ratio)| ratio.conclusion == "higher");
    let Some((first, best)) = faster.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) else {
        let is_first = told.iter().all(|(_, ratio)| ratio.conclusion == "lower");
        let untold: Vec<String> = untold.collect();
        return Some(match (is_first, untold.is_empty()) {
            (true, true) => format!("fastest is {}", reference.label),
            (true, false) => format!("fastest is {} or {}", reference.label, untold.join(" or ")),
            (false, _) => format!("none is shown to be faster than {}", reference.label),
        });
    };
    // One that is at least so fast may be faster than the first.
    let near = |(other, ratio): &&(&CellFigures, &RatioFigure)| {
        other.cell != first.cell && (ratio.high >= best.low || ratio.bound == "at-least")
    };
    let near = told.iter().filter(near).map(|(c, _)| c.label.clone());
    let near: Vec<String> = near.chain(untold).collect();
    Some(match near.len() {
        0 => format!("fastest is {}", first.label),
        1..=CELLS_MAX => format!(
            "fastest is {}, or {}, as their intervals overlap",
            first.label,
            near.join(" or ")
        ),
        many => format!(
            "fastest is {}, or one of {many} others, as their intervals overlap",
            first.label
        ),
    })
}

/// The CPU time a request beside the reference's, where it is shown to differ.
fn cpu(cell: &CellFigures) -> Option<String> {
    let ratio = cell.ratios.get(Metric::CPU.key)?;
    matches!(ratio.conclusion, "higher" | "lower").then(|| numbers::change_of(ratio))
}

/// What may be said of a rate beside the reference's, in the order in which it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Told {
    Faster,
    Slower,
    NoDifference,
    NotByBound,
    NotByCopy,
    NotByOthers,
}

impl Told {
    fn of(ratio: &RatioFigure) -> Option<Told> {
        match (ratio.conclusion, ratio.unclaimed) {
            ("higher", _) => Some(Told::Faster),
            ("lower", _) => Some(Told::Slower),
            ("no-difference-shown", _) => Some(Told::NoDifference),
            (_, ratio::BY_BOUND) => Some(Told::NotByBound),
            (_, ratio::BY_COPY) => Some(Told::NotByCopy),
            (_, ratio::BY_OTHERS) => Some(Told::NotByOthers),
            _ => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Told::Faster => "faster:",
            Told::Slower => "slower:",
            Told::NoDifference => "no difference shown:",
            Told::NotByBound => "not to be told, as the generator was the limit:",
            Told::NotByCopy => {
                "not to be told, as a copy of the reference came out different, too:"
            }
            Told::NotByOthers => {
                "not to be told, as others used the cores for over a third of the blocks:"
            }
        }
    }
}
